"""For every gold term: found, or the stage of the pipeline at which it was lost."""

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
    """What people marked: a term, what is asserted of it, and where; the spans may be none."""

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
    """Where a gold term ended, in the order of the pipeline."""

    CHUNKING = "chunking"
    """No chunk holds a whole mention of it, and no chunk led to it."""
    RETRIEVAL = "retrieval"
    """It is not among the stored candidates of any chunk."""
    NUM_RESULTS = "num_results"
    """It is a candidate, but behind the first ``num_results``."""
    TOP_TERM = "top_term"
    """Another term came first, and only the first counts."""
    THRESHOLD = "threshold"
    """Its score is below ``chunk_threshold``."""
    OVERLAP = "overlap"
    """Its chunk gave way to a better one that overlaps it."""
    CONFIDENCE = "confidence"
    """Its mean score is below ``min_confidence``."""
    ASSERTION = "assertion"
    """It was found, with another assertion."""
    FOUND = "found"


@dataclass(frozen=True, slots=True)
class TracedTerm:
    """What became of a gold term; rank, score and chunk are those of its best candidate, where it has one."""

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
    """For every gold term of every document, how far it came.

    ``gold`` is by document id; ids of terms must be those of the ontology. With several candidates for a
    term, the one that came furthest tells. Where predictions carry no assertions, gold ones do not count.
    """
    places = {document.id: place for place, document in enumerate(candidates.documents)}
    strange = [name for name in gold if name not in places]
    if strange or predictions.ids != tuple(places):
        raise PairingError(
            f"gold, candidates and predictions are not of the same documents: {', '.join(strange[:3])}",
            hint="predict from these candidates, and give the gold of these documents",
        )
    tracer = _Tracer(candidates, predictions)
    return tuple(tracer.of(places[name], each) for name, terms in gold.items() for each in terms)


def count_by_stage(traced: Iterable[TracedTerm]) -> dict[LossStage, int]:
    """How many gold terms ended at each stage, all stages in order.

    >>> count_by_stage([TracedTerm("a", "HP:1", "affirmed", LossStage.FOUND)])[LossStage.FOUND]
    1
    """
    counts = Counter(each.stage for each in traced)
    return {stage: counts[stage] for stage in LossStage}


class _Tracer:
    """The stages of all candidates, worked out once."""

    def __init__(self, candidates: Candidates, predictions: Predictions) -> None:
        self._candidates, self._settings = candidates, predictions.settings
        self._stages: SelectionMasks = selection_masks(candidates, self._settings)
        self._entries: ScoredEntries = aggregate_entries(candidates, self._settings, self._stages.chosen)
        self._asserted = [{each.term: set[Assertion]() for each in found} for found in predictions.found]
        for known, found in zip(self._asserted, predictions.found, strict=True):
            for each in found:
                known[each.term].add(each.assertion)
        self._code = {term: code for code, term in enumerate(candidates.term_ids)}
        self._rows = [np.flatnonzero(candidates.document == place) for place in range(len(predictions))]

    def of(self, place: int, gold: GoldTerm) -> TracedTerm:
        candidates, rows = self._candidates, self._rows[place]
        name = candidates.documents[place].id
        code = self._code.get(gold.term, -1)
        inside, slots = np.nonzero(candidates.terms[rows] == code)
        if not len(inside):
            stage = LossStage.RETRIEVAL if self._reached(place, gold.spans) else LossStage.CHUNKING
            return TracedTerm(name, gold.term, gold.assertion, stage)
        chunks = rows[inside]
        reached = self._candidate_stage(chunks, slots)
        best = max(range(len(chunks)), key=lambda at: (reached[at], candidates.scores[chunks[at], slots[at]]))
        chunk, slot = int(chunks[best]), int(slots[best])
        return TracedTerm(
            name,
            gold.term,
            gold.assertion,
            self._stage(place, gold, reached[best]),
            slot + 1,
            float(candidates.scores[chunk, slot]),
            (int(candidates.start[chunk]), int(candidates.end[chunk])),
        )

    def _candidate_stage(self, chunks: np.ndarray, slots: np.ndarray) -> list[int]:
        """How many choices each candidate passed."""
        passed = [getattr(self._stages, name)[chunks, slots] for name in ("within", "top", "above", "chosen")]
        entry = self._entries.member[chunks, slots]
        sure = np.zeros(len(chunks), dtype=np.bool_)
        sure[entry >= 0] = self._entries.score[entry[entry >= 0]] >= self._settings.min_confidence
        counts: list[int] = np.sum([*passed, sure], axis=0).tolist()
        return counts

    def _stage(self, place: int, gold: GoldTerm, passed: int) -> LossStage:
        asserted = self._asserted[place].get(gold.term)
        if asserted is None:
            return _LOST[passed]
        said = gold.assertion if self._settings.assertions else Assertion.AFFIRMED
        return LossStage.FOUND if said in asserted else LossStage.ASSERTION

    def _reached(self, place: int, spans: Sequence[Span]) -> bool:
        """Whether some chunk holds a whole mention; without spans it cannot be told, and is assumed."""
        rows = self._rows[place]
        starts, ends = self._candidates.start[rows], self._candidates.end[rows]
        return not spans or any(((starts <= start) & (ends >= end)).any() for start, end in spans)


_LOST = (
    LossStage.NUM_RESULTS,
    LossStage.TOP_TERM,
    LossStage.THRESHOLD,
    LossStage.OVERLAP,
    LossStage.CONFIDENCE,
)
"""By how many choices a candidate passed, the one that it did not."""
