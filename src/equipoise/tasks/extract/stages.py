"""How far each candidate gets on its way to a prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.ontology.assertion.kinds import ASSERTIONS
from equipoise.tasks.extract.candidates import SCORE_DECIMALS, Candidates
from equipoise.tasks.extract.settings import Settings
from equipoise.types import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Stages:
    """For each chunk and each of its terms: looked at, and then still in after each choice."""

    within: Bools
    """Among the first ``num_results``."""
    top: Bools
    """And the first, where only the first counts."""
    above: Bools
    """And not below the threshold."""
    chosen: Bools
    """And in a chunk that gave way to no better one."""


@dataclass(frozen=True, eq=False)
class Entries:
    """The evidence, entry by entry: a document, a term and an assertion each, with the mean of its scores."""

    document: Ints
    term: Ints
    assertion: Ints
    score: Floats
    member: Ints
    """The entry of each candidate, in the shape of ``terms``; -1 for one that was not chosen."""


def stages(candidates: Candidates, settings: Settings) -> Stages:
    """What each choice leaves, one after the other."""
    slot = np.arange(candidates.depth)
    within = np.broadcast_to(slot < settings.num_results, candidates.terms.shape)
    top = within & (slot < 1) if settings.top_term_only else within
    above = top & (candidates.scores >= settings.chunk_threshold)
    alive: Bools = np.logical_or.reduce(above, axis=1)
    return Stages(within, top, above, above & _undisputed(candidates, alive)[:, None])


def entries(candidates: Candidates, settings: Settings, chosen: Bools) -> Entries:
    """The chosen candidates, gathered by document, term and assertion."""
    chunk, _ = np.nonzero(chosen)
    asserted = candidates.assertions if settings.assertions else np.zeros(len(candidates), dtype=np.int64)
    shape = (len(candidates.documents), max(1, len(candidates.term_ids)), len(ASSERTIONS))
    keys = np.ravel_multi_index(
        (candidates.document[chunk], candidates.terms[chosen], asserted[chunk]), shape
    )
    distinct, entry = np.unique(keys, return_inverse=True)
    counts = np.bincount(entry, minlength=len(distinct))
    total = np.bincount(entry, weights=candidates.scores[chosen], minlength=len(distinct))
    member = np.full(chosen.shape, -1, dtype=np.int64)
    member[chosen] = entry
    document, term, assertion = np.unravel_index(distinct, shape)
    mean = np.round(total / np.maximum(counts, 1), SCORE_DECIMALS)
    return Entries(document, term, assertion, mean, member)


def outcome(candidates: Candidates, settings: Settings) -> bytes:
    """What is predicted, as bytes: settings with the same outcome say the same of every document."""
    found = entries(candidates, settings, stages(candidates, settings).chosen)
    sure = found.score >= settings.min_confidence
    return np.stack([found.document, found.term, found.assertion])[:, sure].tobytes()


def _undisputed(candidates: Candidates, alive: Bools) -> Bools:
    """The chunks that stay when those that overlap a better one give way.

    Better is the larger first score, then the longer chunk, then the earlier one.
    """
    kept = alive.copy()
    overlapping = _in_overlaps(candidates, alive)
    if not len(overlapping):
        return kept
    length = (candidates.end - candidates.start)[overlapping]
    order = np.lexsort((candidates.start[overlapping], -length, -candidates.scores[overlapping, 0]))
    taken = {
        place: np.zeros(len(candidates.documents[place].text), dtype=np.bool_)
        for place in np.unique(candidates.document[overlapping]).tolist()
    }
    for chunk in overlapping[order].tolist():
        room = taken[int(candidates.document[chunk])][candidates.start[chunk] : candidates.end[chunk]]
        kept[chunk] = not room.any()
        if kept[chunk]:
            room[:] = True
    return kept


def _in_overlaps(candidates: Candidates, alive: Bools) -> Ints:
    """The live chunks that share characters with another live one."""
    live = np.flatnonzero(alive)
    order = live[np.lexsort((candidates.end[live], candidates.start[live], candidates.document[live]))]
    if len(order) < 2:
        return order[:0]
    document, start, end = (side[order] for side in (candidates.document, candidates.start, candidates.end))
    # Documents are moved apart, so that the furthest end so far is never one of an earlier document.
    apart = document * (int(end.max()) + 1)
    reach = np.maximum.accumulate(end + apart)
    meets = start[1:] + apart[1:] < reach[:-1]
    shares = np.zeros(len(order), dtype=np.bool_)
    shares[1:] = meets
    # The first of a group is disputed by the one behind it.
    shares[:-1] |= meets
    return order[shares]
