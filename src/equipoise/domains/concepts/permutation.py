"""Permutation tests of the ground-truth metrics: the scores of vectors that are unrelated to the texts.

A permutation assigns the vectors to other texts. Pairs and relations that share a text are not independent; permuting
their values would therefore reject too often (the same holds for distance matrices: Mantel, Cancer Research 27, 1967).
Vectors are only exchanged between texts of similar length, so that a model that encodes nothing but the length of a
text is at chance as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isnan, nan
from typing import TYPE_CHECKING

import numpy as np

from equipoise.evidence.segments import average_ranks

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints

N_PERMUTATIONS = 9_999
"""The smallest p is 0.0001, which remains below 0.05 after a correction for 499 tests: five for each of 99 models."""
BLOCK_VALUES = 200_000
"""Values that are held in memory at once: as many as fit in the cache of a processor."""
LENGTH_GROUP = 8
"""Smallest group of texts of consecutive lengths within which vectors are exchanged."""
MAX_GRAM_TEXTS = 5_000
"""With more texts, the cosines of all pairs of texts would need over 100 MB."""


@dataclass(frozen=True)
class ChanceTest:
    """The observed value of a metric and its values under permutations of the vectors.

    >>> test = ChanceTest(0.9, np.array([0.1, 0.5, 0.9]))
    >>> test.chance, test.p
    (0.5, 0.5)
    """

    observed: float
    values: Floats = field(repr=False)

    @property
    def chance(self) -> float:
        """The mean over the permutations."""
        return float(self.values.mean())

    @property
    def p(self) -> float:
        """The share of permutations that are at least as good, the observed order included; NaN if undefined."""
        if isnan(self.observed) or np.isnan(self.values).any():
            return nan
        # Rounding must not decide between equal values.
        return float((np.count_nonzero(self.values >= self.observed - 1e-9) + 1) / (len(self.values) + 1))

    @classmethod
    def of(cls, metric: Callable[[Ints], Floats], orders: Ints) -> ChanceTest:
        """The test of a metric that has one value per order; the observed one is that of the identity."""
        return cls(float(metric(np.arange(orders.shape[1])[None])[0]), metric(orders))

    @classmethod
    def weighted(cls, tests: Sequence[ChanceTest], weights: Sequence[float]) -> ChanceTest:
        """The weighted sum of metrics, each rescaled so that chance is 0 and the maximum 1.

        Each metric has its own permutations, so that those with the same number are independent.
        """
        scales = [
            weight / (1.0 - test.chance) if test.chance < 1 else 0.0
            for test, weight in zip(tests, weights, strict=True)
        ]
        observed = sum(scale * (test.observed - test.chance) for test, scale in zip(tests, scales, strict=True))
        values = [scale * (test.values - test.chance) for test, scale in zip(tests, scales, strict=True)]
        return cls(observed, np.sum(values, axis=0))


def length_preserving_orders(texts: Sequence[str], seed: Sequence[int], n_permutations: int = N_PERMUTATIONS) -> Ints:
    """One permutation of the texts per row, which exchanges only texts of similar length.

    >>> orders = length_preserving_orders(["a", "b", "c" * 9, "d" * 9] * 4, [0], 2)
    >>> orders.shape, bool((orders[:, ::4] % 4 < 2).all())
    ((2, 16), True)
    """
    return _length_preserving_orders(tuple(texts), tuple(seed), n_permutations)


@lru_cache(maxsize=4)
def _length_preserving_orders(texts: tuple[str, ...], seed: tuple[int, ...], n_permutations: int) -> Ints:
    """Every model has the same permutations of each of the four metrics."""
    rng = np.random.default_rng([*seed, n_permutations])
    orders = np.empty((n_permutations, len(texts)), dtype=np.int64)
    for group in _length_groups(texts):
        orders[:, group] = rng.permuted(np.tile(group, (n_permutations, 1)), axis=1)
    orders.flags.writeable = False
    return orders


def _length_groups(texts: Sequence[str]) -> list[Ints]:
    """Positions of texts of similar length; texts of equal length are in one group."""
    lengths = np.array([len(text) for text in texts])
    by_length = np.argsort(lengths, kind="stable")
    starts = [0]
    for at in range(LENGTH_GROUP, len(texts) - LENGTH_GROUP + 1):
        is_longer = lengths[by_length[at]] > lengths[by_length[at - 1]]
        if is_longer and at - starts[-1] >= LENGTH_GROUP:
            starts.append(at)
    return np.split(by_length, starts[1:])


def _in_blocks(function: Callable[[Ints], Floats], orders: Ints, width: int) -> Floats:
    """The function of all permutations, computed for a part of them at a time; ``width`` values per permutation."""
    step = max(1, BLOCK_VALUES // max(width, 1))
    return np.concatenate([function(orders[at : at + step]) for at in range(0, len(orders), step)])


def permuted_spearman(unit_vectors: Floats, ends: Ints, expected: Floats, orders: Ints) -> Floats:
    """Spearman's correlation of the cosines of pairs with the expected similarities, per permutation of the vectors.

    ``ends`` has the rows of the first and of the second texts; ``unit_vectors`` have length one.
    """
    target = _standardized(average_ranks(expected)[None])[0]

    def cosines(order: Ints) -> Floats:
        # Rounded, so that equal cosines are equal.
        return np.einsum("ij,ij->i", unit_vectors[order[ends[0]]], unit_vectors[order[ends[1]]]).round(12)

    def correlations(part: Ints) -> Floats:
        values = np.array([cosines(order) for order in part])
        return np.asarray(_standardized(_average_ranks_of_rows(values)) @ target)

    if len(unit_vectors) > MAX_GRAM_TEXTS:
        return _in_blocks(correlations, orders, ends.shape[1])
    # All cosines are ordered once. A key has the place of a cosine in that order, and below it the number of the pair:
    # sorting keys takes a tenth of the time of ranking cosines.
    n_pairs = ends.shape[1]
    n_bits = n_pairs.bit_length()
    ordered, places = np.unique((unit_vectors @ unit_vectors.T).round(12), return_inverse=True)
    integer = np.int32 if len(ordered) < 2 ** (31 - n_bits) else np.int64
    places = places.reshape(len(unit_vectors), -1).astype(integer) << n_bits
    numbers = np.arange(n_pairs, dtype=integer)
    deviations = np.arange(n_pairs) - (n_pairs - 1) / 2
    length = float(np.linalg.norm(deviations))

    def correlations_of_keys(part: Ints) -> Floats:
        keys = places[part[:, ends[0]], part[:, ends[1]]] | numbers
        keys.sort(axis=1)
        values = target[keys & (2**n_bits - 1)] @ deviations / max(length, 1e-300)
        has_ties = ((keys[:, 1:] >> n_bits) == (keys[:, :-1] >> n_bits)).any(axis=1)
        if has_ties.any():
            tied = part[has_ties]
            ranks = _average_ranks_of_rows(places[tied[:, ends[0]], tied[:, ends[1]]])
            values[has_ties] = _standardized(ranks) @ target
        return np.asarray(values)

    return _in_blocks(correlations_of_keys, orders, n_pairs)


def _average_ranks_of_rows(rows: Floats | Ints) -> Floats:
    """The ranks within each row from 1; equal values share the mean of their ranks."""
    n_rows, width = rows.shape
    order = np.argsort(rows, axis=1)
    ordered = np.take_along_axis(rows, order, axis=1)
    starts = np.ones((n_rows, width), dtype=bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=starts[:, 1:])
    first = np.flatnonzero(starts)
    sizes = np.diff(first, append=rows.size)
    ranks = np.empty(rows.shape)
    np.put_along_axis(ranks, order, np.repeat(first % width + (sizes + 1) / 2, sizes).reshape(rows.shape), axis=1)
    return ranks


def _standardized(rows: Floats) -> Floats:
    """Rows with mean 0 and length 1; constant rows are 0."""
    centered = rows - rows.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centered, axis=1, keepdims=True)
    return np.divide(centered, lengths, out=np.zeros_like(centered), where=lengths > 0)


def permuted_ari(true: Ints, predicted: Ints, orders: Ints) -> Floats:
    """The adjusted Rand index of two partitions, per permutation of the second; NaN if it is undefined."""
    n_true, n_clusters = int(true.max()) + 1, int(predicted.max()) + 1
    n_cells = n_true * n_clusters

    def n_together(part: Ints) -> Floats:
        cells = true * n_clusters + predicted[part] + n_cells * np.arange(len(part))[:, None]
        counts = np.bincount(cells.ravel(), minlength=n_cells * len(part)).reshape(len(part), n_cells)
        return np.asarray((counts * (counts - 1.0)).sum(axis=1) / 2)

    classes, clusters = (
        float((counts * (counts - 1.0)).sum() / 2) for counts in (np.bincount(true), np.bincount(predicted))
    )
    expected = classes * clusters / (len(true) * (len(true) - 1) / 2)
    maximum = (classes + clusters) / 2
    in_both = _in_blocks(n_together, orders, max(len(true), n_cells))
    return (in_both - expected) / (maximum - expected) if maximum != expected else np.full(len(orders), nan)


def permuted_mrr(scores: Floats, ends: Ints, other_answers: Sequence[Sequence[int]], orders: Ints) -> Floats:
    """The mean reciprocal rank of the objects, per permutation of the columns (entities); ties count by expectation.

    ``scores`` has one row per relation and one column per entity. The subject and the other correct answers
    (``other_answers``) are not candidates.
    """
    n_relations, n_entities = scores.shape
    ordered = np.sort(scores, axis=1)
    ranges = [
        [np.searchsorted(row, values, side=side) for row, values in zip(ordered, scores, strict=True)]
        for side in ("left", "right")
    ]
    n_below, n_upto = np.array(ranges, dtype=np.int32)
    n_above, n_equal = n_entities - n_upto, n_upto - n_below
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n_entities + 1))])
    relations = np.arange(n_relations)
    left_out = [(relations, ends[:, 0])]
    for place in range(max((len(others) for others in other_answers), default=0)):
        rows = np.array([row for row, others in enumerate(other_answers) if len(others) > place])
        left_out.append((rows, np.array([other_answers[row][place] for row in rows])))

    def mean_reciprocal_ranks(part: Ints) -> Floats:
        target = part[:, ends[:, 1]]
        above, equal, position = (counts[relations, target] for counts in (n_above, n_equal, n_below))
        for rows, entities in left_out:
            other = n_below[rows, part[:, entities]]
            above[:, rows] -= other > position[:, rows]
            equal[:, rows] -= other == position[:, rows]
        return np.asarray(((harmonic[above + equal] - harmonic[above]) / equal).mean(axis=1))

    return _in_blocks(mean_reciprocal_ranks, orders, n_relations)


def permuted_probe(vectors: Floats, labels: Ints, orders: Ints) -> Floats:
    """The leave-one-out accuracy of a ridge classifier, per permutation of the labels.

    With predictions of a fixed classifier, permutations reject too often: the predictions of a cross-validation depend
    on the labels. The predictions of ridge regression are linear in the labels, so that fitting each permutation
    takes one product: (H y - diag(H) y) / (1 - diag(H)).
    """
    scales = vectors.std(axis=0)
    standardized = (vectors - vectors.mean(axis=0)) / np.where(scales > 0, scales, 1.0)
    gram = standardized @ standardized.T
    ridge = np.trace(gram) / len(gram) or 1.0
    hat_matrix = np.linalg.solve(gram + ridge * np.eye(len(gram)), gram)
    weights = (hat_matrix - np.diag(np.diag(hat_matrix))) / (1.0 - np.diag(hat_matrix))[:, None]
    targets = np.eye(int(labels.max()) + 1)[labels]
    targets -= targets.mean(axis=0)

    def accuracies(part: Ints) -> Floats:
        predicted = np.tensordot(weights, targets[part], axes=([1], [1])).argmax(axis=2)
        return np.asarray((predicted == labels[part].T).mean(axis=0))

    return _in_blocks(accuracies, orders, targets.size)
