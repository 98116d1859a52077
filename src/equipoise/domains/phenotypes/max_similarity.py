"""Evidence for MaxOntSim@k: similarity of retrieved to expected terms, ties at the cutoff, chance level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.evidence.ranking import Ranking
from equipoise.io.arrays import segment_offsets
from equipoise.io.dag import Rows

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.similarity import TermSimilarity
    from equipoise.types import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class CutoffTies:
    """Ties at the cutoff: per unit, all terms with the score of the last listed term, as a packed bit mask."""

    terms: int
    bits: dict[int, NDArray[np.uint8]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.bits)

    def add(self, unit: int, tied: Bools) -> None:
        """Add a unit with a mask of its tied terms."""
        self.bits[unit] = np.packbits(tied)

    def items(self) -> Iterator[tuple[int, Ints]]:
        """The units, each with the ascending indices of its tied terms."""
        for unit, packed in self.bits.items():
            yield unit, np.flatnonzero(np.unpackbits(packed, count=self.terms))


@dataclass(frozen=True, slots=True)
class TiedSimilarities:
    """The distinct similarities among tied terms with their counts: one row per unit and similarity.

    ``size`` is the number of tied terms, and ``before`` the number of them that come before the first term of
    the row in the order by id.
    """

    unit: Ints
    gain: Floats
    copies: Ints
    before: Ints
    size: Ints

    def __len__(self) -> int:
        return len(self.unit)


def tied_similarities(similarity: TermSimilarity, cutoff_ties: CutoffTies, relevant: Rows) -> TiedSimilarities:
    """Similarity of the tied terms of each unit to the nearest relevant term; relevant terms are left out."""
    by_id = id_order(cutoff_ties.terms if len(cutoff_ties) else 0)
    parts = [_unit_ties(similarity, unit, tied, relevant[unit], by_id) for unit, tied in cutoff_ties.items()]
    empty = TiedSimilarities(*(np.zeros(0, dtype=kind) for kind in (np.int64, np.float64, *[np.int64] * 3)))
    joined = zip(*([getattr(part, name) for name in _COLUMNS] for part in [empty, *parts]), strict=True)
    return TiedSimilarities(*(np.concatenate(column) for column in joined))


def id_order(terms: int) -> Ints:
    """The position of each term if equal scores are sorted by id in descending order, as in all rankings.

    >>> id_order(12).tolist()
    [11, 10, 7, 6, 5, 4, 3, 2, 1, 0, 9, 8]
    """
    order: Ints = np.argsort(np.argsort(np.arange(terms).astype(str)))
    return terms - 1 - order


def _unit_ties(similarity: TermSimilarity, unit: int, tied: Ints, relevant: Ints, by_id: Ints) -> TiedSimilarities:
    if not len(relevant):
        tied = tied[:0]
    tied = tied[np.argsort(by_id[tied])]
    positions = np.flatnonzero(~np.isin(tied, relevant))
    similarities = similarity.between(relevant, tied[positions]).max(axis=0) if len(positions) else np.zeros(0)
    gain, first, copies = np.unique(similarities, return_index=True, return_counts=True)
    return TiedSimilarities(np.full(len(gain), unit), gain, copies, positions[first], np.full(len(gain), len(tied)))


_COLUMNS = ("unit", "gain", "copies", "before", "size")


NO_TERM = -1
"""Padding in lists of retrieved terms."""

_BLOCK_BYTES = 64 << 20


def with_max_similarity(
    ranking: Ranking,
    retrieved: Ints,
    scores: Floats | None,
    expected: Sequence[Sequence[int]],
    similarity: TermSimilarity,
    *,
    cutoff_ties: CutoffTies | None = None,
    chance: Floats | bool = True,
) -> Ranking:
    """Add the similarities of near misses to a ranking, so that MaxOntSim@k is defined on it.

    Parameters
    ----------
    ranking
        The ranking of the expected terms.
    retrieved
        Term indices that each unit (row) retrieved, best first, padded with -1.
    scores
        Scores of the retrieved terms, which define ties; None if there are no ties.
    expected
        Term indices of the relevant terms of each unit.
    similarity
        The measure, see ``term_similarity``.
    cutoff_ties
        Units whose last listed term is tied with terms that are not listed. Without it such ties are ignored, and lists
        should be a few ranks longer than the largest cutoff.
    chance
        The table of ``random_max_similarity``, which is the same for all systems, or whether to compute it.

    Returns
    -------
    Ranking
        The ranking with the similarities.

    Examples
    --------
    >>> near = with_max_similarity(ranking, retrieved, None, expected, lin)  # doctest: +SKIP
    >>> evaluate(near, ["MaxOntSim@1", "MaxOntSim@3"])  # doctest: +SKIP
    """
    check_bounded(similarity)
    relevant = Rows.of(expected)
    if len(retrieved) != len(ranking) or len(relevant) != len(ranking):
        raise ShapeError(
            f"{len(ranking)} units have {len(retrieved)} lists of retrieved terms and {len(relevant)} of expected ones"
        )
    gain, hit = nearest_relevant(similarity, retrieved, relevant)
    misses = (retrieved != NO_TERM) & ~hit & (relevant.counts > 0)[:, None]
    levels = tied_similarities(similarity, cutoff_ties or CutoffTies(len(similarity.ontology)), relevant)
    near = _near_misses(ranking, retrieved, scores, gain, misses, levels)
    with_near = ranking.with_near(near)
    if chance is True:
        chance = random_max_similarity(similarity, relevant, retrieved.shape[1])
    return with_near if chance is False else replace(with_near, random_near=chance)


def nearest_relevant(similarity: TermSimilarity, retrieved: Ints, relevant: Rows) -> tuple[Floats, Bools]:
    """For each retrieved term, its largest similarity to a relevant term, and whether it is relevant."""
    units, depth = retrieved.shape
    gain, hit = np.zeros((units, depth)), np.zeros((units, depth), dtype=bool)
    filled = relevant.counts > 0
    if not filled.any() or not depth:
        return gain, hit
    lists = retrieved[relevant.owner]
    terms = np.repeat(relevant.values, depth)
    similarities = similarity.pairs(terms, np.maximum(lists, 0).ravel()).reshape(lists.shape)
    first = relevant.starts[:-1][filled]
    gain[filled] = np.maximum.reduceat(similarities, first, axis=0)
    hit[filled] = np.logical_or.reduceat(lists == relevant.values[:, None], first, axis=0)
    return gain, hit


def random_max_similarity(similarity: TermSimilarity, expected: Rows | Sequence[Sequence[int]], depth: int) -> Floats:
    """The expected MaxOntSim@k of k terms drawn at random, for each unit and k = 1 .. ``depth``.

    Exact: with the similarities s1 >= s2 >= ... of all N terms to the nearest relevant one, the largest of
    k drawn without replacement is the i-th with probability C(N - i, k - 1) / C(N, k).
    """
    relevant = expected if isinstance(expected, Rows) else Rows.of(expected)
    size = len(similarity.ontology)
    weights = _order_statistic_weights(size, depth)
    all_terms = np.arange(size)
    table = np.full((len(relevant), depth), np.nan)
    filled = np.flatnonzero(relevant.counts > 0)
    units_in_block = max(1, _BLOCK_BYTES // (8 * size))
    for start in range(0, len(filled), units_in_block):
        block = filled[start : start + units_in_block]
        terms = relevant.values[relevant.slots(block)]
        similarities = similarity.between(terms, all_terms)
        similarities[np.arange(len(terms)), terms] = 1.0  # also if the measure has another value there
        best = np.maximum.reduceat(similarities, segment_offsets(relevant.counts[block])[:-1], axis=0)
        best.sort(axis=1)
        table[block] = best[:, ::-1] @ weights
    return table


def _order_statistic_weights(size: int, depth: int) -> Floats:
    """The probability that the i-th largest of ``size`` is the largest of k drawn; one column per k."""
    n_sampled = np.minimum(np.arange(1, depth + 1), size)
    missed = np.ones((size + 1, depth))
    left = size - np.arange(size)[:, None]
    # The probability that none of the i largest is drawn.
    np.cumprod(np.maximum(left - n_sampled, 0) / left, axis=0, out=missed[1:])
    return missed[:-1] - missed[1:]


def _near_misses(
    ranking: Ranking,
    retrieved: Ints,
    scores: Floats | None,
    gain: Floats,
    misses: Bools,
    levels: TiedSimilarities,
) -> Ranking:
    """The near misses as a ranking; ties at the cutoff are replaced by the levels of all tied terms."""
    above, tied = _rank_counts(retrieved, scores)
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
        (_ties_before(retrieved, above)[misses], levels.before),
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
        # A unit without retrieved terms has no miss at any depth.
        depth=np.minimum(np.where(depth == 0, max(retrieved.shape[1], 1), depth), ranking.candidates),
        candidates=ranking.candidates,
    )


def _rank_counts(retrieved: Ints, scores: Floats | None) -> tuple[Ints, Ints]:
    """For each listed term, the numbers of terms with a higher score and of other terms with the same score."""
    position = np.broadcast_to(np.arange(retrieved.shape[1]), retrieved.shape)
    if scores is None:
        return position, np.zeros_like(position)
    if scores.shape != retrieved.shape:
        raise ShapeError(f"scores of shape {scores.shape} cannot belong to lists of shape {retrieved.shape}")
    listed = retrieved != NO_TERM
    ordered = np.where(listed, scores, -np.inf)
    if (ordered[:, 1:] > ordered[:, :-1]).any():
        raise InputError("a list of retrieved terms is not ordered by its scores", hint="put the best first")
    opens = np.ones(retrieved.shape, dtype=bool)
    opens[:, 1:] = (scores[:, 1:] != scores[:, :-1]) | (listed[:, 1:] != listed[:, :-1])
    group = np.cumsum(opens.ravel()) - 1
    size = np.bincount(group)[group].reshape(retrieved.shape) if retrieved.size else position
    return np.maximum.accumulate(np.where(opens, position, 0), axis=1), size - 1


def _ties_before(retrieved: Ints, above: Ints) -> Ints:
    """For each listed term, the number of tied terms before it in the order by id."""
    name = id_order(int(retrieved.max(initial=NO_TERM)) + 1)
    order = np.lexsort((np.where(retrieved == NO_TERM, NO_TERM, name[retrieved]) if len(name) else above, above))
    offset = np.empty_like(above)
    np.put_along_axis(offset, order, np.broadcast_to(np.arange(above.shape[1]), above.shape), axis=1)
    return offset - above


def check_bounded(similarity: TermSimilarity) -> None:
    """Raise an error unless the measure is between 0 and 1, as MaxOntSim requires."""
    if not similarity.measure.bounded:
        raise ParameterError(
            f"MaxOntSim needs a similarity between 0 and 1; {similarity.measure.name} has no upper bound",
            hint="use lin, or resnik-normalised",
        )
