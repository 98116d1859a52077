"""Near misses: how alike what was retrieved is to what was expected, as MaxOntSim needs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.evidence.ranking import Ranking
from equipoise.io.dag import Rows, segment_offsets

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology.similarity import TermSimilarity
    from equipoise.types import Bools, Floats, Ints

# Ties at the end of a list: all terms that score as much as the last one listed, listed or not.


@dataclass(frozen=True, slots=True)
class CutoffTies:
    """For some units, all terms that tie with the last one listed; a bit for every term of the ontology."""

    terms: int
    bits: dict[int, NDArray[np.uint8]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.bits)

    def keep(self, unit: int, tied: Bools) -> None:
        """Take note of which terms tie."""
        self.bits[unit] = np.packbits(tied)

    def items(self) -> Iterator[tuple[int, Ints]]:
        """The units, each with the places of its tied terms in the order of the ontology."""
        for unit, packed in self.bits.items():
            yield unit, np.flatnonzero(np.unpackbits(packed, count=self.terms))


@dataclass(frozen=True, slots=True)
class TiedSimilarities:
    """The similarities that occur among tied terms, and of how many: a row a level of a unit.

    ``size`` is how many terms tie in all, and ``before`` how many of them an order by id puts before the
    first of the level.
    """

    unit: Ints
    gain: Floats
    copies: Ints
    before: Ints
    size: Ints

    def __len__(self) -> int:
        return len(self.unit)


def tied_similarities(similarity: TermSimilarity, tails: CutoffTies, relevant: Rows) -> TiedSimilarities:
    """How alike the tied terms of each unit are to its nearest relevant term; relevant ones are left out."""
    by_id = id_order(tails.terms if len(tails) else 0)
    parts = [_levels(similarity, unit, tied, relevant[unit], by_id) for unit, tied in tails.items()]
    empty = TiedSimilarities(*(np.zeros(0, dtype=kind) for kind in (np.int64, np.float64, *[np.int64] * 3)))
    joined = zip(*([getattr(part, name) for name in _COLUMNS] for part in [empty, *parts]), strict=True)
    return TiedSimilarities(*(np.concatenate(column) for column in joined))


def id_order(terms: int) -> Ints:
    """The place of each term when equal scores are put into the order of ids, as everywhere: last name first.

    >>> id_order(12).tolist()
    [11, 10, 7, 6, 5, 4, 3, 2, 1, 0, 9, 8]
    """
    order: Ints = np.argsort(np.argsort(np.arange(terms).astype(str)))
    return terms - 1 - order


def _levels(similarity: TermSimilarity, unit: int, tied: Ints, relevant: Ints, by_id: Ints) -> TiedSimilarities:
    if not len(relevant):
        tied = tied[:0]
    tied = tied[np.argsort(by_id[tied])]
    place = np.flatnonzero(~np.isin(tied, relevant))
    alike = similarity.between(relevant, tied[place]).max(axis=0) if len(place) else np.zeros(0)
    gain, first, copies = np.unique(alike, return_index=True, return_counts=True)
    return TiedSimilarities(np.full(len(gain), unit), gain, copies, place[first], np.full(len(gain), len(tied)))


_COLUMNS = ("unit", "gain", "copies", "before", "size")


NO_TERM = -1
"""A place in the list of retrieved terms that nothing stands at."""

_BLOCK_BYTES = 64 << 20


def with_max_similarity(
    ranking: Ranking,
    retrieved: Ints,
    scores: Floats | None,
    expected: Sequence[Sequence[int]],
    similarity: TermSimilarity,
    *,
    tails: CutoffTies | None = None,
    chance: Floats | bool = True,
) -> Ranking:
    """The ranking with the nearest misses of every unit, so that MaxOntSim@k is defined on it.

    ``retrieved`` holds the places of the terms that each unit (row) retrieved, best first, and -1 where a
    list is shorter; ``scores`` their scores, by which ties are known (none: every rank is its own).
    ``expected`` holds the places of the relevant terms of each unit. ``tails`` has the units whose last
    listed term ties with terms that are not listed; without it such ties are not seen, and lists should reach
    a few ranks deeper than the largest cutoff. ``chance`` is what terms drawn at random would reach: the
    table of ``random_max_similarity``, which is the same for every system, or whether to compute it.
    """
    check_bounded(similarity)
    relevant = Rows.of(expected)
    if len(retrieved) != len(ranking) or len(relevant) != len(ranking):
        raise ShapeError(
            f"{len(ranking)} units have {len(retrieved)} lists of retrieved terms and {len(relevant)} of expected ones"
        )
    gain, hit = nearest_relevant(similarity, retrieved, relevant)
    misses = (retrieved != NO_TERM) & ~hit & (relevant.counts > 0)[:, None]
    levels = tied_similarities(similarity, tails or CutoffTies(len(similarity.ontology)), relevant)
    near = _near(ranking, retrieved, scores, gain, misses, levels)
    found = ranking.with_near(near)
    if chance is True:
        chance = random_max_similarity(similarity, relevant, retrieved.shape[1])
    return found if chance is False else replace(found, random_near=chance)


def nearest_relevant(similarity: TermSimilarity, retrieved: Ints, relevant: Rows) -> tuple[Floats, Bools]:
    """For each retrieved term, its largest similarity to a relevant one, and whether it is one itself."""
    units, depth = retrieved.shape
    gain, hit = np.zeros((units, depth)), np.zeros((units, depth), dtype=bool)
    filled = relevant.counts > 0
    if not filled.any() or not depth:
        return gain, hit
    lists = retrieved[relevant.owner]
    terms = np.repeat(relevant.values, depth)
    alike = similarity.pairs(terms, np.maximum(lists, 0).ravel()).reshape(lists.shape)
    first = relevant.starts[:-1][filled]
    gain[filled] = np.maximum.reduceat(alike, first, axis=0)
    hit[filled] = np.logical_or.reduceat(lists == relevant.values[:, None], first, axis=0)
    return gain, hit


def random_max_similarity(similarity: TermSimilarity, expected: Rows | Sequence[Sequence[int]], depth: int) -> Floats:
    """The expected MaxOntSim@k of k terms drawn at random, for each unit and k = 1 .. ``depth``.

    Exact: with the similarities s1 >= s2 >= ... of all N terms to the nearest relevant one, the largest of
    k drawn without repetition is the i-th with the chance C(N - i, k - 1) / C(N, k).
    """
    relevant = expected if isinstance(expected, Rows) else Rows.of(expected)
    size = len(similarity.ontology)
    weights = _largest_of(size, depth)
    every = np.arange(size)
    table = np.full((len(relevant), depth), np.nan)
    filled = np.flatnonzero(relevant.counts > 0)
    units_in_block = max(1, _BLOCK_BYTES // (8 * size))
    for start in range(0, len(filled), units_in_block):
        block = filled[start : start + units_in_block]
        terms = relevant.values[relevant.slots(block)]
        alike = similarity.between(terms, every)
        alike[np.arange(len(terms)), terms] = 1.0  # a hit counts 1, whatever the measure gives equal terms
        best = np.maximum.reduceat(alike, segment_offsets(relevant.counts[block])[:-1], axis=0)
        best.sort(axis=1)
        table[block] = best[:, ::-1] @ weights
    return table


def _largest_of(size: int, depth: int) -> Floats:
    """The chance that the i-th largest of ``size`` is the largest of k drawn, a column for each k."""
    drawn = np.minimum(np.arange(1, depth + 1), size)
    missed = np.ones((size + 1, depth))
    left = size - np.arange(size)[:, None]
    # The chance that none of the i largest is drawn, one after another.
    np.cumprod(np.maximum(left - drawn, 0) / left, axis=0, out=missed[1:])
    return missed[:-1] - missed[1:]


def _near(
    ranking: Ranking,
    retrieved: Ints,
    scores: Floats | None,
    gain: Floats,
    misses: Bools,
    levels: TiedSimilarities,
) -> Ranking:
    """The misses as listed; where the last of a list tie with more, the levels of all that tie."""
    above, tied = _places(retrieved, scores)
    last = above.max(axis=1, initial=0)
    if len(levels):
        misses = misses.copy()
        wide = np.unique(levels.unit)
        misses[wide] &= above[wide] < last[wide, None]
    unit = np.concatenate([np.nonzero(misses)[0], levels.unit])
    order = np.argsort(unit, kind="stable")
    columns = (
        (gain[misses], levels.gain),
        (above[misses], last[levels.unit]),
        (tied[misses], levels.size - 1),
        (_before(retrieved, above)[misses], levels.before),
        (np.ones(int(misses.sum()), dtype=np.int64), levels.copies),
    )
    gains, aboves, ties, before, copies = (np.concatenate(pair)[order] for pair in columns)
    depth = (retrieved != NO_TERM).sum(axis=1)
    return Ranking.of_items(
        ranking.unit_ids,
        np.bincount(unit, minlength=len(ranking)),
        gain=gains,
        above=aboves,
        tied=ties,
        before=before,
        copies=copies if len(levels) else None,
        # A unit that retrieved nothing has no miss at any depth.
        depth=np.minimum(np.where(depth == 0, max(retrieved.shape[1], 1), depth), ranking.candidates),
        candidates=ranking.candidates,
    )


def _places(retrieved: Ints, scores: Floats | None) -> tuple[Ints, Ints]:
    """How many of the list stand strictly above each term, and how many others tie with it."""
    place = np.broadcast_to(np.arange(retrieved.shape[1]), retrieved.shape)
    if scores is None:
        return place, np.zeros_like(place)
    if scores.shape != retrieved.shape:
        raise ShapeError(f"scores of shape {scores.shape} cannot belong to lists of shape {retrieved.shape}")
    listed = retrieved != NO_TERM
    ordered = np.where(listed, scores, -np.inf)
    if (ordered[:, 1:] > ordered[:, :-1]).any():
        raise InputError("a list of retrieved terms is not ordered by its scores", hint="put the best first")
    opens = np.ones(retrieved.shape, dtype=bool)
    opens[:, 1:] = (scores[:, 1:] != scores[:, :-1]) | (listed[:, 1:] != listed[:, :-1])
    group = np.cumsum(opens.ravel()) - 1
    size = np.bincount(group)[group].reshape(retrieved.shape) if retrieved.size else place
    return np.maximum.accumulate(np.where(opens, place, 0), axis=1), size - 1


def _before(retrieved: Ints, above: Ints) -> Ints:
    """How many terms of the same score an order by id puts before each."""
    name = id_order(int(retrieved.max(initial=NO_TERM)) + 1)
    order = np.lexsort((np.where(retrieved == NO_TERM, NO_TERM, name[retrieved]) if len(name) else above, above))
    place = np.empty_like(above)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(above.shape[1]), above.shape), axis=1)
    return place - above


def check_bounded(similarity: TermSimilarity) -> None:
    """MaxOntSim is a share of 1, so the measure must be one too."""
    if not similarity.measure.bounded:
        raise ParameterError(
            f"MaxOntSim lies between 0 and 1, and {similarity.measure.name} has no upper bound",
            hint="use lin, or resnik-normalised",
        )
