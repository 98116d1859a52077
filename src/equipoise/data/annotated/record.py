"""One document of a JSON object, in the words of the corpora that people have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.data.annotated.document import AnnotatedDocument, Annotation, Place, assertion_of, term_id
from equipoise.errors import FormatError

IDS = ("doc_id", "id", "document_id")
TEXTS = ("full_text", "text")
ANNOTATIONS = ("annotations", "gold_hpo_terms", "hpo_ids", "terms")
TERMS = ("hpo_id", "id", "term_id", "term")
ASSERTED = ("assertion_status", "assertion", "status")
SPANS = ("evidence_spans", "spans")
STARTS, ENDS, WORDS = ("start_char", "start"), ("end_char", "end"), ("text_snippet", "text")
EXAMPLE = '{"doc_id": "d1", "full_text": "...", "annotations": [{"hpo_id": "HP:0001250"}]}'


def document_of(value: Any, *, name: str, dataset: str = "") -> tuple[AnnotatedDocument, list[str]]:
    """The document of an object, and what in it does not fit; ``name`` is its id where it has none.

    A span that does not fit the text is told and left out, and its term stays gold. A term without an id,
    or with an assertion that nobody knows, is an error: the gold would be another.
    """
    if not isinstance(value, Mapping):
        raise FormatError("is no JSON object", hint=f"write {EXAMPLE}")
    given = _first(value, IDS)
    called = str(given).strip() if isinstance(given, str | int) and str(given).strip() else name
    text = _first(value, TEXTS)
    if not isinstance(text, str):
        raise FormatError(f"has no text: no key {' or '.join(TEXTS)}", hint=f"write {EXAMPLE}")
    if not text.strip():
        raise FormatError("has an empty text", hint="fill it in, or take the document out")
    found = _first(value, ANNOTATIONS)
    if not isinstance(found, list):
        raise FormatError(
            f"has no list of annotations: no key {', '.join(ANNOTATIONS)}",
            hint="a document in which nothing was found has an empty list",
        )
    told: list[str] = []
    gold = _merged([_annotation(each, text, told) for each in found])
    of = _text(value, "dataset") or dataset
    return AnnotatedDocument(called, text, gold, _text(value, "language"), of), told


def _annotation(value: Any, text: str, told: list[str]) -> Annotation:
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
    places = [_place(each, text, term, told) for each in spans or ()]
    return Annotation(
        term_id(term), assertion_of(asserted or "affirmed"), tuple(each for each in places if each)
    )


def _place(value: Any, text: str, term: str, told: list[str]) -> Place | None:
    """Where a span stands; None, and a sentence, where it cannot stand there."""
    words: Any = None
    if isinstance(value, Mapping):
        start, end, words = (_first(value, keys) for keys in (STARTS, ENDS, WORDS))
    elif isinstance(value, list) and len(value) == 2:
        start, end = value
    else:
        start = end = None
    if type(start) is not int or type(end) is not int:
        told.append(f"a span of {term} has no whole numbers start_char and end_char")
    elif not 0 <= start < end <= len(text):
        told.append(f"a span of {term} goes from {start} to {end} in a text of {len(text)} characters")
    elif words is not None and text[start:end] != words:
        told.append(f"a span of {term} from {start} to {end} reads {text[start:end]!r}, not {words!r}")
    else:
        return start, end
    return None


def _merged(annotations: list[Annotation]) -> tuple[Annotation, ...]:
    """Mentions of the same term with the same assertion are one entry with several spans."""
    spans: dict[tuple[str, str], set[Place]] = {}
    for each in annotations:
        spans.setdefault((each.term, each.assertion), set()).update(each.spans)
    return tuple(Annotation(*entry, tuple(sorted(places))) for entry, places in spans.items())


def _text(value: Mapping[str, Any], key: str) -> str:
    text = value.get(key)
    return text.strip() if isinstance(text, str) else ""


def _first(value: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """What stands under the first of these keys that is there."""
    return next((value[key] for key in keys if value.get(key) is not None), None)
