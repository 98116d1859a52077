"""Trace of gold terms: found, or the stage of the pipeline that lost them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import numpy as np

from equipoise.domains.phenotypes.assertion.rules import Assertion
from equipoise.domains.phenotypes.extraction.predict import (
    Predictions,
    ScoredEntries,
    SelectionMasks,
    aggregate_entries,
    selection_masks,
)
from equipoise.errors import PairingError

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.extraction.candidates import Candidates
    from equipoise.domains.phenotypes.extraction.splitters import Span


class GoldTerm(Protocol):
    """A gold annotation: a term, its assertion and its spans, which may be missing."""

    @property
    def term(self) -> str:
        """The id."""

    @property
    def assertion(self) -> str:
        """One of the assertions, by name."""

    @property
    def spans(self) -> Sequence[Span]:
        """First character and last plus one of each mention."""


class LossStage(StrEnum):
    """The last stage that a gold term reached, in pipeline order."""

    CHUNKING = "chunking"
    """No chunk contains a whole mention of it, and no chunk retrieved it."""
    RETRIEVAL = "retrieval"
    """It is not among the stored candidates of any chunk."""
    NUM_RESULTS = "num_results"
    """It is a candidate, but ranks below ``num_results``."""
    TOP_TERM = "top_term"
    """Another term ranks first, and only the first counts."""
    THRESHOLD = "threshold"
    """Its score is below ``chunk_threshold``."""
    OVERLAP = "overlap"
    """Its chunk was dropped for a better overlapping one."""
    CONFIDENCE = "confidence"
    """Its mean score is below ``min_confidence``."""
    ASSERTION = "assertion"
    """It was found, with another assertion."""
    FOUND = "found"


@dataclass(frozen=True, slots=True)
class TracedTerm:
    """The stage of a gold term, with rank, score and chunk of its best candidate if it has one."""

    document: str
    term: str
    assertion: str
    stage: LossStage
    rank: int | None = None
    score: float | None = None
    chunk: Span | None = None


def trace_gold_terms(
    candidates: Candidates, predictions: Predictions, gold: Mapping[str, Iterable[GoldTerm]]
) -> tuple[TracedTerm, ...]:
    """The last stage of every gold term of every document.

    ``gold`` is by document id; ids of terms must be those of the ontology. With several candidates for a
    term, the latest stage counts. If predictions have no assertions, those of the gold are ignored.
    """
    indices = {document.id: index for index, document in enumerate(candidates.documents)}
    unknown = [name for name in gold if name not in indices]
    if unknown or predictions.ids != tuple(indices):
        raise PairingError(
            f"gold, candidates and predictions are not of the same documents: {', '.join(unknown[:3])}",
            hint="predict from these candidates, and give the gold of these documents",
        )
    tracer = _Tracer(candidates, predictions)
    return tuple(tracer.of(indices[name], term) for name, terms in gold.items() for term in terms)


def count_by_stage(traced: Iterable[TracedTerm]) -> dict[LossStage, int]:
    """The number of gold terms per stage, all stages in order.

    >>> count_by_stage([TracedTerm("a", "HP:1", "affirmed", LossStage.FOUND)])[LossStage.FOUND]
    1
    """
    counts = Counter(term.stage for term in traced)
    return {stage: counts[stage] for stage in LossStage}


class _Tracer:
    """The selection steps of all candidates, computed once."""

    def __init__(self, candidates: Candidates, predictions: Predictions) -> None:
        self._candidates, self._settings = candidates, predictions.settings
        self._stages: SelectionMasks = selection_masks(candidates, self._settings)
        self._entries: ScoredEntries = aggregate_entries(candidates, self._settings, self._stages.chosen)
        self._asserted = [{term.term: set[Assertion]() for term in terms} for terms in predictions.found]
        for assertions, terms in zip(self._asserted, predictions.found, strict=True):
            for extracted in terms:
                assertions[extracted.term].add(extracted.assertion)
        self._code = {term: code for code, term in enumerate(candidates.term_ids)}
        self._rows = [np.flatnonzero(candidates.document == index) for index in range(len(predictions))]

    def of(self, index: int, gold: GoldTerm) -> TracedTerm:
        candidates, rows = self._candidates, self._rows[index]
        name = candidates.documents[index].id
        code = self._code.get(gold.term, -1)
        inside, slots = np.nonzero(candidates.terms[rows] == code)
        if not len(inside):
            stage = LossStage.RETRIEVAL if self._reached(index, gold.spans) else LossStage.CHUNKING
            return TracedTerm(name, gold.term, gold.assertion, stage)
        chunks = rows[inside]
        reached = self._candidate_stage(chunks, slots)
        best = max(range(len(chunks)), key=lambda at: (reached[at], candidates.scores[chunks[at], slots[at]]))
        chunk, slot = int(chunks[best]), int(slots[best])
        return TracedTerm(
            name,
            gold.term,
            gold.assertion,
            self._stage(index, gold, reached[best]),
            slot + 1,
            float(candidates.scores[chunk, slot]),
            (int(candidates.start[chunk]), int(candidates.end[chunk])),
        )

    def _candidate_stage(self, chunks: np.ndarray, slots: np.ndarray) -> list[int]:
        """The number of selection steps that each candidate passed."""
        passed = [getattr(self._stages, name)[chunks, slots] for name in ("within", "top", "above", "chosen")]
        entry = self._entries.member[chunks, slots]
        confident = np.zeros(len(chunks), dtype=np.bool_)
        confident[entry >= 0] = self._entries.score[entry[entry >= 0]] >= self._settings.min_confidence
        counts: list[int] = np.sum([*passed, confident], axis=0).tolist()
        return counts

    def _stage(self, index: int, gold: GoldTerm, passed: int) -> LossStage:
        asserted = self._asserted[index].get(gold.term)
        if asserted is None:
            return _STAGE_BY_N_PASSED[passed]
        expected = gold.assertion if self._settings.assertions else Assertion.AFFIRMED
        return LossStage.FOUND if expected in asserted else LossStage.ASSERTION

    def _reached(self, index: int, spans: Sequence[Span]) -> bool:
        """Whether a chunk contains a whole mention; assumed if there are no spans."""
        rows = self._rows[index]
        starts, ends = self._candidates.start[rows], self._candidates.end[rows]
        return not spans or any(((starts <= start) & (ends >= end)).any() for start, end in spans)


_STAGE_BY_N_PASSED = (
    LossStage.NUM_RESULTS,
    LossStage.TOP_TERM,
    LossStage.THRESHOLD,
    LossStage.OVERLAP,
    LossStage.CONFIDENCE,
)
"""The stage that lost a candidate, by the number of steps that it passed."""
