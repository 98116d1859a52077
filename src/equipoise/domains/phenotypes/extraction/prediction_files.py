"""Readers of the predictions of other programs: ClinPhen, PhenoBERT, PhenoTagger, FastHPOCR, Phentrieve, LLMs.

The format is recognised by content. A file has the terms of one document, whose id is the name of the file, or of
several documents: a table with a document column, PubTator lines, or JSON by document. A folder has such files.

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
from typing import Any

from equipoise.domains.phenotypes.extraction.annotated_corpus import ANNOTATIONS, IDS, TERMS, parse_assertion, term_id
from equipoise.errors import FormatError, InputError
from equipoise.io.text import PathLike, display_path, read_text

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
    """Read the predictions of a program for documents with these ids.

    Parameters
    ----------
    path
        A file, or a folder with one file per document.
    documents
        The ids of the gold documents. An id matches without its punctuation and with a suffix: ``P001_clinphen.txt``
        is of the document P001.
    name
        The name of the program; by default that of the file.

    Returns
    -------
    PredictedTerms
        The terms of each gold document; a document that the program does not mention has none.
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
        of = next(
            (str(value[key]) for key in IDS if isinstance(value.get(key), str | int) and not _has_term(value)), ""
        )
        listed = next((value[key] for key in _TERM_LISTS if isinstance(value.get(key), list)), None)
        documents = next((value[key] for key in _DOCUMENT_LISTS if isinstance(value.get(key), list | Mapping)), None)
        if listed is not None and documents is None:
            yield from ((of or document, entry) for item in listed for entry in _json_terms(item, problems))
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
        found = next((match for text in _term_texts(value) if (match := _TERM.search(text))), None)
        if found is None:
            problems.append(f"an entry without a term id: {str(value)[:80]}")
            return
        flags = [value[key] for key in ("excluded", "negated", "negation") if isinstance(value.get(key), bool)]
        asserted = next(
            (value[key] for key in ("assertion_status", "assertion", "status") if isinstance(value.get(key), str)), None
        )
        if flags:
            yield term_id(found[0]), "negated" if any(flags) else "affirmed"
        else:
            yield term_id(found[0]), _assertion(asserted, problems)
    else:
        problems.append(f"an entry that is neither an id nor an object: {value!r:.80}")


def _table_entries(text: str, document: str, problems: list[str]) -> Iterator[tuple[str, Entry]]:
    """The entries of lines: a table with a header, or lines that hold a term id, such as PubTator's."""
    lines = [line for line in text.splitlines() if line.strip()]
    delimiter = "\t" if "\t" in text else ","
    header = [re.sub(r"[\W_]+", "", name.casefold()) for name in lines[0].split(delimiter)]
    term = next((header.index(name) for name in _TERM_COLUMNS if name in header), None)
    if term is not None and not _TERM.search(lines[0]):
        of = next((header.index(name) for name in _DOCUMENT_COLUMNS if name in header), None)
        asserted = next((header.index(name) for name in _ASSERTION_COLUMNS if name in header), None)
        for number, line in enumerate(lines[1:], start=2):
            fields = _split(line, delimiter)
            found = _TERM.search(fields[term]) if term < len(fields) else None
            if found is None:
                problems.append(f"line {number} of {document} has no term id")
                continue
            value = fields[asserted] if asserted is not None and asserted < len(fields) else ""
            if asserted is not None and header[asserted] in _NEGATION_COLUMNS:
                assertion = "negated" if value.casefold() in _TRUE else "affirmed"
            else:
                assertion = _assertion(value, problems)
            yield fields[of] if of is not None and of < len(fields) else document, (term_id(found[0]), assertion)
        return
    for line in lines:
        fields = _split(line, delimiter)
        at = next((index for index, part in enumerate(fields) if _TERM.fullmatch(part.strip())), None)
        if at is None or "|t|" in line or "|a|" in line:
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
    """The names of several files, such as ``clinphen=out/``; by default the names of the files.

    >>> prediction_names(["clinphen=out/", "llm.json"])
    {'clinphen': 'out/', 'llm': 'llm.json'}
    """
    named: dict[str, str] = {}
    for given in paths:
        name, separator, path = given.partition("=")
        label, source = (name, path) if separator and not Path(given).exists() else (Path(given).stem, given)
        while label in named:
            label += "'"
        named[label] = source
    return named
