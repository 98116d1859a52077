"""Folders of notes, and their extracted terms as rows of a table and as GA4GH phenopackets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equipoise
from equipoise.domains.phenotypes.assertion.rules import Assertion
from equipoise.domains.phenotypes.extraction.candidates import ClinicalText
from equipoise.errors import DuplicateError, InputError
from equipoise.io.atomic import write_text
from equipoise.io.text import PathLike, display_path, read_text

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.extraction.predict import ExtractedTerm, Predictions
    from equipoise.domains.phenotypes.ontology import Ontology

NOTE_PATTERN = "*.txt"
SCHEMA_VERSION = "2.0"
"""The version of the phenopacket schema."""

_IRI = "http://purl.obolibrary.org/obo/"
_UNSAFE = re.compile(r"[^\w.-]+")


def read_notes(path: PathLike, *, language: str | None = None) -> tuple[ClinicalText, ...]:
    """Read the note of a file, or all text files below a folder.

    Parameters
    ----------
    path
        A text file, a folder, or a dash for standard input.
    language
        ``en`` or ``de``; detected by default.

    Returns
    -------
    tuple of ClinicalText
        The notes. The id of a note is its path; in a folder the path below it, without the extension.

    Examples
    --------
    >>> extract(read_notes("notes/"))  # doctest: +SKIP
    """
    folder = Path(path)
    if not folder.is_dir():
        name = "standard input" if str(path) == "-" else str(path)
        return (ClinicalText(name, _read_note(path), language),)
    files = sorted(folder.rglob(NOTE_PATTERN))
    if not files:
        raise InputError(f"{display_path(path)} has no files {NOTE_PATTERN}", hint="name a folder of text files")
    return tuple(
        ClinicalText(file.relative_to(folder).with_suffix("").as_posix(), _read_note(file), language) for file in files
    )


def _read_note(path: PathLike) -> str:
    text = read_text(path)
    if not text.strip():
        raise InputError(f"{display_path(path)} is empty", hint="give a text to read")
    return text


def term_rows(
    documents: Iterable[ClinicalText], predictions: Predictions, ontology: Ontology
) -> list[dict[str, str | float | int]]:
    """Tabulate extracted terms: one row per term and evidence span.

    Parameters
    ----------
    documents
        The documents.
    predictions
        Their extracted terms.
    ontology
        The ontology of the terms.

    Returns
    -------
    list of dict
        Rows with document, term, label, assertion, score, the text of the span, and its first character and last plus
        one, counted from 0.

    Examples
    --------
    >>> notes = read_notes("notes/")  # doctest: +SKIP
    >>> term_rows(notes, extract(notes), load_ontology())  # doctest: +SKIP
    """
    texts = {document.id: document.text for document in documents}
    return [
        {
            "document": name,
            "term": term.term,
            "label": ontology.label_of(term.term),
            "assertion": str(term.assertion),
            "score": term.score,
            "start": start,
            "end": end,
            "text": " ".join(texts[name][start:end].split()),
        }
        for name, terms in predictions
        for term in terms
        for start, end in term.spans
    ]


def to_phenopacket(
    document: str, terms: Iterable[ExtractedTerm], ontology: Ontology, *, created: datetime | None = None
) -> dict[str, Any]:
    """The extracted terms of one document as a phenopacket (GA4GH phenopacket schema, version 2).

    Affirmed terms are phenotypic features and negated ones excluded features; a term that is both is affirmed.
    Uncertain and hypothetical terms and those of relatives are not features of the subject, and are left out.

    Parameters
    ----------
    document
        The id of the document, which becomes the id of the phenopacket and of its subject.
    terms
        The extracted terms.
    ontology
        The ontology of the terms.
    created
        The time stamp; by default now.

    Returns
    -------
    dict
        The phenopacket as plain values for JSON.

    Examples
    --------
    >>> terms = extract("No fever, but seizures.").of("text")  # doctest: +SKIP
    >>> to_phenopacket("note", terms, load_ontology())  # doctest: +SKIP
    """
    excluded: dict[str, bool] = {}
    for term in terms:
        if term.assertion in (Assertion.AFFIRMED, Assertion.NEGATED):
            negated = term.assertion == Assertion.NEGATED
            excluded[term.term] = negated and excluded.get(term.term, True)
    features = [
        {"type": {"id": term, "label": ontology.label_of(term)}, **({"excluded": True} if negated else {})}
        for term, negated in excluded.items()
    ]
    timestamp = (created or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "id": document,
        "subject": {"id": document},
        "phenotypicFeatures": features,
        "metaData": {
            "created": timestamp,
            "createdBy": f"equipoise {equipoise.__version__}",
            "resources": [_resource(ontology)],
            "phenopacketSchemaVersion": SCHEMA_VERSION,
        },
    }


def write_phenopackets(
    folder: PathLike, predictions: Predictions, ontology: Ontology, *, created: datetime | None = None
) -> list[Path]:
    """Write one phenopacket per document as JSON, in a file that is named after the document.

    Parameters
    ----------
    folder
        Where the files are written.
    predictions
        The extracted terms of the documents.
    ontology
        The ontology of the terms.
    created
        The time stamp; by default now.

    Returns
    -------
    list of Path
        The files, in the order of the documents.

    Examples
    --------
    >>> write_phenopackets("packets", extract(read_notes("notes/")), load_ontology())  # doctest: +SKIP
    """
    names = {document: f"{_UNSAFE.sub('_', document)}.json" for document in predictions.ids}
    by_name: dict[str, str] = {}
    for document, name in names.items():
        if by_name.setdefault(name, document) != document:
            raise DuplicateError(
                f"{by_name[name]} and {document} would both be written to {name}", hint="rename one of the notes"
            )
    written = []
    for document, terms in predictions:
        packet = to_phenopacket(document, terms, ontology, created=created)
        file = Path(folder) / names[document]
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(packet, indent=2, ensure_ascii=False) + "\n")
        written.append(file)
    return written


def _resource(ontology: Ontology) -> dict[str, str]:
    """The ontology as a resource of the metadata; the prefix is that of its ids."""
    prefix = ontology.ids[0].partition(":")[0]
    return {
        "id": prefix.casefold(),
        "name": ontology.name,
        "url": f"{_IRI}{prefix.casefold()}.owl",
        "version": ontology.release,
        "namespacePrefix": prefix,
        "iriPrefix": f"{_IRI}{prefix}_",
    }
