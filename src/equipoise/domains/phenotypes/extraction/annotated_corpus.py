"""Annotated documents: readers (folder, JSON, JSONL), and their ids resolved to the live terms of an ontology."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.phenotypes.assertion.rules import ASSERTIONS
from equipoise.domains.phenotypes.extraction.candidates import ClinicalText
from equipoise.domains.phenotypes.language import LANGUAGES, validate_language
from equipoise.domains.phenotypes.ontology import Ontology, ResolvedId
from equipoise.errors import FormatError, InputError, UnknownNameError, did_you_mean
from equipoise.io.json import parse_json, parse_line
from equipoise.io.tables import table_format
from equipoise.io.text import PathLike, display_path, open_text

CharSpan = tuple[int, int]
"""Characters from the first number up to the second, which is exclusive."""


_ASSERTION_ALIASES = {
    "present": "affirmed",
    "positive": "affirmed",
    "true": "affirmed",
    "absent": "negated",
    "negative": "negated",
    "denied": "negated",
    "false": "negated",
    "possible": "uncertain",
    "suspected": "uncertain",
    "family": "family_history",
    "conditional": "hypothetical",
}
_NUMBERED = re.compile(r"([A-Za-z]+)\s*[:_]\s*(\d+)")
_SEVEN_DIGITS = ("HP", "MP", "MONDO", "GO", "UBERON")
"""Ontologies whose ids are numbers of seven digits, which are sometimes shortened."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A term, its assertion, and its evidence spans, which may be missing."""

    term: str
    assertion: str = "affirmed"
    spans: tuple[CharSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class AnnotatedDocument:
    """A text with gold annotations; every (term, assertion) is unique."""

    id: str
    text: str
    annotations: tuple[Annotation, ...]
    language: str = ""
    dataset: str = ""


def parse_assertion(text: str) -> str:
    """One of ``ASSERTIONS`` from the aliases that corpora use.

    >>> parse_assertion("PRESENT"), parse_assertion("Family history")
    ('affirmed', 'family_history')
    """
    name = re.sub(r"[\s\-_]+", "_", text.strip().casefold())
    assertion = _ASSERTION_ALIASES.get(name, name)
    if assertion not in ASSERTIONS:
        raise FormatError(
            f"has the assertion {text!r}",
            hint=did_you_mean(name, [*ASSERTIONS, *_ASSERTION_ALIASES]) or f"write one of {', '.join(ASSERTIONS)}",
        )
    return assertion


def term_id(name: str) -> str:
    """An id in the canonical form of its ontology, if that is known; otherwise stripped.

    >>> term_id("hp_1250"), term_id(" HP:0001250 "), term_id("heart-12")
    ('HP:0001250', 'HP:0001250', 'heart-12')
    """
    match = _NUMBERED.fullmatch(name.strip())
    if match is None or match[1].upper() not in _SEVEN_DIGITS:
        return name.strip()
    return f"{match[1].upper()}:{int(match[2]):07d}"


IDS = ("doc_id", "id", "document_id")
TEXTS = ("full_text", "text")
ANNOTATIONS = ("annotations", "gold_hpo_terms", "hpo_ids", "terms")
TERMS = ("hpo_id", "id", "term_id", "term")
ASSERTED = ("assertion_status", "assertion", "status")
SPANS = ("evidence_spans", "spans")
STARTS, ENDS, WORDS = ("start_char", "start"), ("end_char", "end"), ("text_snippet", "text")
EXAMPLE = '{"doc_id": "d1", "full_text": "...", "annotations": [{"hpo_id": "HP:0001250"}]}'


def parse_document(value: Any, *, name: str, dataset: str = "") -> tuple[AnnotatedDocument, list[str]]:
    """The document of an object, and what in it does not fit; ``name`` is its id where it has none.

    A span that does not fit the text is listed and left out; its term stays gold. A term without an id or with
    an unknown assertion is an error.
    """
    if not isinstance(value, Mapping):
        raise FormatError("is not a JSON object", hint=f"write {EXAMPLE}")
    document_id = _first(value, IDS)
    called = str(document_id).strip() if isinstance(document_id, str | int) and str(document_id).strip() else name
    text = _first(value, TEXTS)
    if not isinstance(text, str):
        raise FormatError(f"has no text: no key {' or '.join(TEXTS)}", hint=f"write {EXAMPLE}")
    if not text.strip():
        raise FormatError("has an empty text", hint="fill it in, or take the document out")
    entries = _first(value, ANNOTATIONS)
    if not isinstance(entries, list):
        raise FormatError(
            f"has no list of annotations: no key {', '.join(ANNOTATIONS)}",
            hint="a document in which nothing was found has an empty list",
        )
    messages: list[str] = []
    gold = _merge_mentions([_parse_annotation(entry, text, messages) for entry in entries])
    document_dataset = _text(value, "dataset") or dataset
    return AnnotatedDocument(called, text, gold, _text(value, "language"), document_dataset), messages


def _parse_annotation(value: Any, text: str, messages: list[str]) -> Annotation:
    if isinstance(value, str):
        value = {TERMS[0]: value}
    if not isinstance(value, Mapping):
        raise FormatError(f"has the annotation {value!r}", hint="write an object with hpo_id, or an id")
    term = _first(value, TERMS)
    if not isinstance(term, str) or not term.strip():
        raise FormatError("has an annotation without a term", hint=f"give it a key {TERMS[0]}")
    asserted = _first(value, ASSERTED)
    if asserted is not None and not isinstance(asserted, str):
        raise FormatError(f"has the assertion {asserted!r}", hint="write affirmed or negated, for example")
    spans = _first(value, SPANS)
    if spans is not None and not isinstance(spans, list):
        raise FormatError(f"has the spans {spans!r} for {term}", hint="give a list of spans")
    parsed_spans = [_parse_span(span, text, term, messages) for span in spans or ()]
    return Annotation(
        term_id(term), parse_assertion(asserted or "affirmed"), tuple(span for span in parsed_spans if span)
    )


def _parse_span(value: Any, text: str, term: str, messages: list[str]) -> CharSpan | None:
    """The offsets of a span; None, with a problem in ``messages``, if it is invalid."""
    words: Any = None
    if isinstance(value, Mapping):
        start, end, words = (_first(value, keys) for keys in (STARTS, ENDS, WORDS))
    elif isinstance(value, list) and len(value) == 2:
        start, end = value
    else:
        start = end = None
    if type(start) is not int or type(end) is not int:
        messages.append(f"a span of {term} has no integer start_char and end_char")
    elif not 0 <= start < end <= len(text):
        messages.append(f"a span of {term} goes from {start} to {end} in a text of {len(text)} characters")
    elif words is not None and text[start:end] != words:
        messages.append(f"a span of {term} from {start} to {end} reads {text[start:end]!r}, not {words!r}")
    else:
        return start, end
    return None


def _merge_mentions(annotations: list[Annotation]) -> tuple[Annotation, ...]:
    """Mentions of the same term with the same assertion are one entry with several spans."""
    spans: dict[tuple[str, str], set[CharSpan]] = {}
    for annotation in annotations:
        spans.setdefault((annotation.term, annotation.assertion), set()).update(annotation.spans)
    return tuple(Annotation(*entry, tuple(sorted(positions))) for entry, positions in spans.items())


def _text(value: Mapping[str, Any], key: str) -> str:
    text = value.get(key)
    return text.strip() if isinstance(text, str) else ""


def _first(value: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The value of the first of these keys that is present."""
    return next((value[key] for key in keys if value.get(key) is not None), None)


SAMPLE = "notes"

"""The bundled short notes."""
FOLDER = "annotations"
_LIST_KEYS = ("documents", "data")


@dataclass(frozen=True, slots=True)
class AnnotationIssue:
    """A problem of the annotations and its location; ``lost``: the whole document is left out.

    ``hint`` is what to do about it, where that is known.
    """

    where: str
    message: str
    lost: bool
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.where} {self.message}" if self.lost else f"{self.where}: {self.message}"


@dataclass(frozen=True)
class AnnotatedCorpus:
    """Documents with gold, in the order of their files, and the problems of reading them."""

    documents: tuple[AnnotatedDocument, ...]
    problems: tuple[AnnotationIssue, ...] = ()
    source: str = ""

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def lost(self) -> tuple[AnnotationIssue, ...]:
        """The documents that could not be read."""
        return tuple(problem for problem in self.problems if problem.lost)

    @property
    def without_gold(self) -> tuple[str, ...]:
        """The documents without annotations, for which recall is undefined."""
        return tuple(document.id for document in self.documents if not document.annotations)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of texts and gold: equal content, equal fingerprint."""
        content = [asdict(document) for document in self.documents]
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode("utf-8")).hexdigest()


def read_annotated_corpus(source: PathLike, dataset: str | None = None) -> AnnotatedCorpus:
    """Read annotated documents.

    Spans are compared with the text, and ids are normalised. A document that cannot be read is listed in ``problems``;
    if none can be read, that is an error.

    Parameters
    ----------
    source
        A folder with ``annotations/*.json`` (one document per file) or with several such datasets; a JSON file with a
        list of documents, or an object with that list under ``documents``; a JSONL file with one document per line; or
        ``notes`` for the included sample.
    dataset
        One dataset of a folder, or the documents of a file whose key ``dataset`` has this value.

    Returns
    -------
    AnnotatedCorpus
        The documents, and the problems that were found.

    Examples
    --------
    >>> notes = read_annotated_corpus("notes", dataset="german")
    >>> len(notes) > 9, notes.problems, notes.documents[0].language
    (True, (), 'de')
    """
    if str(source) == SAMPLE and not Path(SAMPLE).exists():
        with as_file(files("equipoise.io") / "samples" / SAMPLE) as folder:
            return _read_corpus(Path(folder), dataset, SAMPLE)
    return _read_corpus(Path(source), dataset, display_path(source))


def _read_corpus(path: Path, dataset: str | None, source: str) -> AnnotatedCorpus:
    documents: dict[str, AnnotatedDocument] = {}
    problems: list[AnnotationIssue] = []
    first_error: InputError | None = None
    records = _read_folder(path, dataset) if path.is_dir() else _read_single_file(path, dataset)
    for location, name, scope, value in records:
        try:
            if isinstance(value, InputError):
                raise value
            document, messages = parse_document(value, name=name, dataset=scope)
            if document.id in documents:
                raise FormatError(f"has the id {document.id}, as a document before it", hint="rename one")
        except InputError as error:
            first_error = first_error or error
            sentence = error.message.removeprefix(location).strip()
            problems.append(AnnotationIssue(location, sentence, lost=True, hint=error.hint))
            continue
        documents[document.id] = document
        problems += [AnnotationIssue(location, message, lost=False) for message in messages]
    if not documents:
        scope = "" if dataset is None else f"the dataset {dataset} of "
        fact = str(problems[0]) if problems else f"{scope}{source} holds no document"
        hint = first_error.hint if first_error else f"give a folder with {FOLDER}/*.json, or a JSON file"
        raise InputError(f"no document can be read: {fact}", hint=hint)
    return AnnotatedCorpus(tuple(documents.values()), tuple(problems), source)


RawDocument = tuple[str, str, str, Any]
"""Location, default name, dataset, and the parsed value or its error."""


def _read_folder(folder: Path, dataset: str | None) -> Iterator[RawDocument]:
    """The documents of every dataset, or of one, in the order of their names."""
    datasets = _datasets(folder)
    if dataset is not None:
        if dataset not in datasets:
            more = f"{display_path(folder)} has {', '.join(datasets) or 'none'}"
            raise UnknownNameError.of("dataset", dataset, datasets, more=more)
        datasets = {dataset: datasets[dataset]}
    for name, folder_path in datasets.items():
        for file in sorted(folder_path.iterdir()):
            if table_format(file) in ("json", "jsonl"):
                yield from _read_file(file, name)


def _read_single_file(path: Path, dataset: str | None) -> Iterator[RawDocument]:
    """The documents of a flat file, or those that say of themselves that they are of a dataset."""
    records = list(_read_file(path, "", is_only_file=True))
    if dataset is None:
        yield from records
        return
    dataset_names = [value.get("dataset") if isinstance(value, dict) else None for _, _, _, value in records]
    datasets = sorted({name for name in dataset_names if isinstance(name, str)})
    if dataset not in datasets:
        more = f"the documents of {display_path(path)} are of {', '.join(datasets)}"
        more = more if datasets else f"no document of {display_path(path)} names a dataset"
        raise UnknownNameError.of("dataset", dataset, datasets, more=more)
    for record, record_dataset in zip(records, dataset_names, strict=True):
        if record_dataset == dataset or isinstance(record[-1], InputError):
            yield record


def _datasets(folder: Path) -> dict[str, Path]:
    """The folders that hold documents, by the names of their datasets."""
    if (folder / FOLDER).is_dir():
        return {folder.name: folder / FOLDER}
    below = {entry.name: entry / FOLDER for entry in sorted(folder.iterdir()) if (entry / FOLDER).is_dir()}
    return below or {folder.parent.name if folder.name == FOLDER else folder.name: folder}


def _read_file(path: Path, dataset: str, *, is_only_file: bool = False) -> Iterator[RawDocument]:
    """The values of a file; a file that cannot be read is one error, unless there is no other."""
    location, form = display_path(path), table_format(path)
    if is_only_file and form not in ("json", "jsonl"):
        open_text(path)
        raise FormatError(f"{location} does not have the file extension of a JSON file", hint="name it .json or .jsonl")
    try:
        file = open_text(path)
        if form == "jsonl":
            for number, line in enumerate(file.lines, start=1):
                if line.strip():
                    at = f"{location} line {number}"
                    try:
                        value = parse_line(file, number, line)
                    except InputError as error:
                        value = error
                    yield at, f"d{number}", dataset, value
            return
        content = parse_json(file)
    except InputError as error:
        if is_only_file:
            raise
        yield location, path.stem, dataset, error
        return
    listed = _document_list(content)
    if listed is None:
        yield location, path.stem, dataset, content
        return
    for number, value in enumerate(listed, start=1):
        yield f"{location} document {number}", f"d{number}", dataset, value


def _document_list(content: Any) -> list[Any] | None:
    """The list of documents that a JSON value is or holds; None where it is one document itself."""
    if isinstance(content, dict):
        return next((content[key] for key in _LIST_KEYS if isinstance(content.get(key), list)), None)
    return content if isinstance(content, list) else None


@dataclass(frozen=True)
class GoldAnnotations:
    """Documents with gold annotations of live terms, and the problems of reading and resolving them."""

    annotated: AnnotatedCorpus
    ontology: Ontology
    resolved_ids: tuple[ResolvedId, ...]

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprints of the documents and of the ontology, by name."""
        return {"documents": self.annotated.fingerprint, self.ontology.title: self.ontology.fingerprint}

    @property
    def moved(self) -> tuple[ResolvedId, ...]:
        """The ids that are not those of live terms."""
        return tuple(resolution for resolution in self.resolved_ids if resolution.how != "live")

    @property
    def annotations(self) -> Mapping[str, tuple[Annotation, ...]]:
        return {document.id: document.annotations for document in self.annotated.documents}

    @cached_property
    def documents(self) -> tuple[ClinicalText, ...]:
        """The texts as inputs of the pipeline."""
        return tuple(
            ClinicalText(
                document.id, document.text, document.language if supports_assertions(document.language) else None
            )
            for document in self.annotated.documents
        )

    def sets(self) -> dict[str, list[tuple[str, str]]]:
        return {
            name: [(entry.term, entry.assertion) for entry in entries] for name, entries in self.annotations.items()
        }

    @property
    def lost(self) -> tuple[AnnotationIssue, ...]:
        """The documents that could not be read or resolved."""
        return self.annotated.lost

    @property
    def problem_messages(self) -> tuple[str, ...]:
        """All problems as text; those of lost documents are last."""
        return tuple(map(str, sorted(self.annotated.problems, key=lambda problem: problem.lost)))

    @property
    def lost_message(self) -> str:
        """Which documents could not be read; empty if none."""
        if not self.lost:
            return ""
        names = join_names([problem.where for problem in self.lost])
        return f"{pluralize(len(self.lost), 'document')} could not be read: {names}"

    @property
    def notes(self) -> tuple[str, ...]:
        unannotated = self.annotated.without_gold
        problems = [problem for problem in self.annotated.problems if not problem.lost]
        notes = [self.lost_message] if self.lost else []
        if unannotated:
            notes.append(
                f"{pluralize(len(unannotated), 'document')} without gold terms, whose recall is undefined: "
                f"{join_names(unannotated)}"
            )
        if self.moved:
            kinds = Counter(resolution.how for resolution in self.moved)
            counts = " and ".join(f"{kinds[kind]} {kind}" for kind in ("alternative", "replaced") if kinds[kind])
            total, verb = pluralize(len(self.resolved_ids), "annotated id"), "was" if len(self.moved) == 1 else "were"
            notes.append(f"{len(self.moved)} of {total} {verb} resolved to the current id of the term ({counts})")
        other_languages = sorted({document.language for document in self.annotated.documents} - {""})
        other_languages = [code for code in other_languages if not supports_assertions(code)]
        if other_languages:
            languages = " or ".join(LANGUAGES)
            notes.append(f"no rules for assertions in {join_names(other_languages)}: those of {languages} are used")
        if problems:
            notes.append(f"{pluralize(len(problems), 'mismatch', 'mismatches')} in the gold")
        return tuple(notes)


def supports_assertions(language: str) -> bool:
    """Whether there are assertion rules for a language.

    >>> supports_assertions("de"), supports_assertions("fr"), supports_assertions("")
    (True, False, False)
    """
    try:
        validate_language(language)
    except UnknownNameError:
        return False
    return True


def resolve_annotations(annotated: AnnotatedCorpus, ontology: Ontology) -> GoldAnnotations:
    """Resolve every id; ids without a live term are listed as problems and left out.

    A document without any resolvable id is dropped: it would count as a document without gold, and every
    predicted term would be wrong.
    """
    problems = list(annotated.problems)
    resolved: list[ResolvedId] = []
    resolved_documents = [_resolve_document(document, ontology, problems, resolved) for document in annotated.documents]
    documents = tuple(document for document in resolved_documents if document is not None)
    if annotated.documents and resolved == [] and len(problems) > len(annotated.problems):
        raise InputError(
            f"none of the gold ids of {annotated.source or 'the documents'} is a term of {ontology.title}: "
            f"{problems[len(annotated.problems)]}",
            hint="name the ontology of these ids with --ontology",
        )
    if not resolved:
        source, number = annotated.source or "the list", pluralize(len(documents), "document")
        raise InputError(
            f"no document of {source} has gold ({number} without any)",
            hint="for texts without annotations, use eq phenotypes extract",
        )
    return GoldAnnotations(replace(annotated, documents=documents, problems=tuple(problems)), ontology, tuple(resolved))


def _resolve_document(
    document: AnnotatedDocument,
    ontology: Ontology,
    problems: list[AnnotationIssue],
    resolved: list[ResolvedId],
) -> AnnotatedDocument | None:
    live: list[Annotation] = []
    for annotation in document.annotations:
        try:
            resolution = ontology.resolve(annotation.term)
        except UnknownNameError as error:
            problems.append(AnnotationIssue(f"document {document.id}", f"{error.message}; left out", False, error.hint))
            continue
        resolved.append(resolution)
        live.append(replace(annotation, term=ontology.ids[resolution.term]))
    if document.annotations and not live:
        sentence = f"has no gold id that is a term of {ontology.title}"
        hint = "correct its ids, or name their ontology with --ontology"
        problems.append(AnnotationIssue(f"document {document.id}", sentence, True, hint))
        return None
    # Two ids of one term are one entry of the gold.
    return replace(document, annotations=_merge_mentions(live))
