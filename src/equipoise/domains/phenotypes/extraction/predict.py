"""Predictions from stored candidates, and the stage of the pipeline that lost a gold term."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.phenotypes.assertion.rules import ASSERTIONS, Assertion
from equipoise.domains.phenotypes.extraction.candidates import SCORE_DECIMALS, Candidates, SelectionSettings
from equipoise.errors import PairingError

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.extraction.annotated_corpus import Annotation
    from equipoise.domains.phenotypes.extraction.splitters import Span
    from equipoise.types import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class SelectionMasks:
    """Masks of shape (chunks, depth): which candidates remain after each selection step."""

    within: Bools
    """The first ``num_results`` terms of the chunk."""
    top: Bools
    """Of these, only the first with ``top_term_only``."""
    above: Bools
    """Of these, with a score of at least ``chunk_threshold``."""
    chosen: Bools
    """Of these, in a chunk that overlaps no better chunk."""


@dataclass(frozen=True, eq=False)
class ScoredEntries:
    """Entries of (document, term, assertion) with the mean score of their evidence."""

    document: Ints
    term: Ints
    assertion: Ints
    score: Floats
    member: Ints
    """The entry of each candidate, in the shape of ``terms``; -1 if it was not selected."""


def selection_masks(candidates: Candidates, settings: SelectionSettings) -> SelectionMasks:
    """The masks of all selection steps."""
    slot = np.arange(candidates.depth)
    within = np.broadcast_to(slot < settings.num_results, candidates.terms.shape)
    top = within & (slot < 1) if settings.top_term_only else within
    above = top & (candidates.scores >= settings.chunk_threshold)
    alive: Bools = np.logical_or.reduce(above, axis=1)
    return SelectionMasks(within, top, above, above & _without_overlaps(candidates, alive)[:, None])


def aggregate_entries(candidates: Candidates, settings: SelectionSettings, chosen: Bools) -> ScoredEntries:
    """The selected candidates, grouped by document, term and assertion."""
    chunk, _ = np.nonzero(chosen)
    asserted = candidates.assertions if settings.assertions else np.zeros(len(candidates), dtype=np.int64)
    shape = (len(candidates.documents), max(1, len(candidates.term_ids)), len(ASSERTIONS))
    keys = np.ravel_multi_index((candidates.document[chunk], candidates.terms[chosen], asserted[chunk]), shape)
    distinct, entry = np.unique(keys, return_inverse=True)
    counts = np.bincount(entry, minlength=len(distinct))
    total = np.bincount(entry, weights=candidates.scores[chosen], minlength=len(distinct))
    member = np.full(chosen.shape, -1, dtype=np.int64)
    member[chosen] = entry
    document, term, assertion = np.unravel_index(distinct, shape)
    mean = np.round(total / np.maximum(counts, 1), SCORE_DECIMALS)
    return ScoredEntries(document, term, assertion, mean, member)


def prediction_key(candidates: Candidates, settings: SelectionSettings) -> bytes:
    """The predictions as bytes; equal for settings that predict the same entries for all documents."""
    entries = aggregate_entries(candidates, settings, selection_masks(candidates, settings).chosen)
    confident = entries.score >= settings.min_confidence
    return np.stack([entries.document, entries.term, entries.assertion])[:, confident].tobytes()


def _without_overlaps(candidates: Candidates, alive: Bools) -> Bools:
    """The chunks that remain if of overlapping chunks only the best is kept.

    Best is by the larger first score, then the longer chunk, then the earlier one.
    """
    surviving = alive.copy()
    # The dictionary has resolved the overlaps of its mentions; those that are left share words of a list.
    overlapping = _overlapping_chunks(candidates, alive & ~candidates.is_mention)
    if not len(overlapping):
        return surviving
    length = (candidates.end - candidates.start)[overlapping]
    order = np.lexsort((candidates.start[overlapping], -length, -candidates.scores[overlapping, 0]))
    best_spans = {
        document: np.zeros(len(candidates.documents[document].text), dtype=np.bool_)
        for document in np.unique(candidates.document[overlapping]).tolist()
    }
    for chunk in overlapping[order].tolist():
        is_covered = best_spans[int(candidates.document[chunk])][candidates.start[chunk] : candidates.end[chunk]]
        surviving[chunk] = not is_covered.any()
        if surviving[chunk]:
            is_covered[:] = True
    return surviving


def _overlapping_chunks(candidates: Candidates, alive: Bools) -> Ints:
    """The remaining chunks that share characters with another one."""
    live = np.flatnonzero(alive)
    order = live[np.lexsort((candidates.end[live], candidates.start[live], candidates.document[live]))]
    if len(order) < 2:
        return order[:0]
    document, start, end = (side[order] for side in (candidates.document, candidates.start, candidates.end))
    # Documents are offset, so that the largest end so far is never in an earlier document.
    offset = document * (int(end.max()) + 1)
    max_end = np.maximum.accumulate(end + offset)
    overlaps = start[1:] + offset[1:] < max_end[:-1]
    shares = np.zeros(len(order), dtype=np.bool_)
    shares[1:] = overlaps
    # The first chunk of a group overlaps the next one.
    shares[:-1] |= overlaps
    return order[shares]


@dataclass(frozen=True, slots=True)
class ExtractedTerm:
    """A term of a document, with its assertion, score and evidence spans."""

    term: str
    assertion: Assertion
    score: float
    """The mean score of its evidence."""
    spans: tuple[Span, ...]
    """The evidence chunks, in text order."""


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """The extracted terms of each document, in order; best first, equal scores by id."""

    ids: tuple[str, ...]
    found: tuple[tuple[ExtractedTerm, ...], ...]
    settings: SelectionSettings

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Predictions: {sum(map(len, self.found))} terms in {len(self)} documents>"

    def __iter__(self) -> Iterator[tuple[str, tuple[ExtractedTerm, ...]]]:
        return iter(zip(self.ids, self.found, strict=True))

    def of(self, document: str) -> tuple[ExtractedTerm, ...]:
        """The extracted terms of a document."""
        return self.found[self.ids.index(document)]

    def sets(self) -> dict[str, list[tuple[str, str]]]:
        """For each document the (term, assertion) pairs, as ``Sets.of`` takes them."""
        return {name: [(term.term, str(term.assertion)) for term in terms] for name, terms in self}


def predict(
    candidates: Candidates,
    *,
    num_results: int = SelectionSettings.num_results,
    chunk_threshold: float = SelectionSettings.chunk_threshold,
    min_confidence: float = SelectionSettings.min_confidence,
    top_term_only: bool = SelectionSettings.top_term_only,
    assertions: bool = True,
) -> Predictions:
    """Compute the extracted terms of each document from stored candidates.

    1. The first ``num_results`` terms per chunk are selected.
    2. Terms with a score below ``chunk_threshold`` are dropped.
    3. Of overlapping chunks only the one with the best first term is kept; of equal ones the longer.
    4. Evidence for the same term and assertion in a document is merged; its score is the mean.
    5. Terms with a score below ``min_confidence`` are dropped.

    Parameters
    ----------
    candidates
        The best terms of every chunk.
    num_results
        Terms per chunk.
    chunk_threshold
        Minimum score of a term in a chunk.
    min_confidence
        Minimum score of a term in a document.
    top_term_only
        Whether only the first term of each chunk is used.
    assertions
        Whether assertions are detected; otherwise all terms are affirmed.

    Returns
    -------
    Predictions
        The extracted terms by document.

    Examples
    --------
    >>> candidates = Candidates.load("results/default/candidates.npz")  # doctest: +SKIP
    >>> predict(candidates, chunk_threshold=0.5, top_term_only=True)  # doctest: +SKIP
    """
    settings = SelectionSettings(num_results, chunk_threshold, min_confidence, top_term_only, assertions)
    settings = settings.checked(candidates.depth)
    chosen = selection_masks(candidates, settings).chosen
    gathered = aggregate_entries(candidates, settings, chosen)
    spans: list[list[Span]] = [[] for _ in gathered.score]
    for chunk, slot in zip(*np.nonzero(chosen), strict=True):
        spans[gathered.member[chunk, slot]].append((int(candidates.start[chunk]), int(candidates.end[chunk])))
    extracted: list[list[ExtractedTerm]] = [[] for _ in candidates.documents]
    for entry in np.flatnonzero(gathered.score >= min_confidence).tolist():
        extracted[gathered.document[entry]].append(
            ExtractedTerm(
                candidates.term_ids[gathered.term[entry]],
                ASSERTIONS[gathered.assertion[entry]],
                float(gathered.score[entry]),
                tuple(sorted(spans[entry])),
            )
        )
    ordered = tuple(tuple(sorted(terms, key=lambda one: (-one.score, one.term, one.assertion))) for terms in extracted)
    return Predictions(tuple(document.id for document in candidates.documents), ordered, settings)


# Trace of gold terms: found, or the stage of the pipeline that lost them.


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
    candidates: Candidates, predictions: Predictions, gold: Mapping[str, Iterable[Annotation]]
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
    """The number of gold terms per stage, all stages in order."""
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

    def of(self, index: int, gold: Annotation) -> TracedTerm:
        candidates, rows = self._candidates, self._rows[index]
        name = candidates.documents[index].id
        code = self._code.get(gold.term, -1)
        inside, slots = np.nonzero((candidates.terms[rows] == code) & np.isfinite(candidates.scores[rows]))
        if not len(inside):
            stage = LossStage.RETRIEVAL if self._contains_mention(index, gold.spans) else LossStage.CHUNKING
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

    def _stage(self, index: int, gold: Annotation, passed: int) -> LossStage:
        asserted = self._asserted[index].get(gold.term)
        if asserted is None:
            return _STAGE_BY_N_PASSED[passed]
        expected = gold.assertion if self._settings.assertions else Assertion.AFFIRMED
        return LossStage.FOUND if expected in asserted else LossStage.ASSERTION

    def _contains_mention(self, index: int, spans: Sequence[Span]) -> bool:
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
