"""Simulated data with known true values: hits, graded scores, reciprocal ranks, ranks, and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, inf, log
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.base import Arrays, Evidence
from equipoise.evidence.labels import Labels
from equipoise.metrics.labels import AdjustedRand, MutualInformation
from equipoise.stats.bootstrap_mean import OPEN_REACH, UNBOUNDED
from equipoise.stats.corpus_metrics import HALVES_AND_MOST, SubsampleFractions
from equipoise.stats.pairing import DIFFERENCE_REACH

if TYPE_CHECKING:
    from equipoise.metrics.base import CorpusMetric
    from equipoise.stats.intervals import Bounds
    from equipoise.types import Floats, Ints

MEAN_CLUSTER_SIZE = 5
TRUTH_SAMPLES = 1500


@dataclass(frozen=True, slots=True)
class Sample:
    """Per-unit values, one column per trial, in the format of ``mean_intervals``."""

    values: Floats
    weights: Floats | None = None
    clusters: Ints | None = None


Sampler = Callable[[int, int, np.random.Generator], Sample]
"""A function from a size (units or clusters), a number of trials and a random generator to a sample."""


@dataclass(frozen=True, slots=True)
class MeanTrial:
    """A distribution of per-unit values with a known mean; for clustered data the size is the number of clusters.

    ``rare`` marks data whose mean depends on values that many samples lack: coverage above the guarantee is then
    allowed. ``extreme`` marks hits so close to a bound that the coverage of Wilson's interval varies.
    """

    data: str
    draw: Sampler
    truth: float
    bounds: Bounds = (0.0, 1.0)
    limits: Bounds | None = None
    reach: float = OPEN_REACH
    clustered: bool = False
    rare: bool = False
    extreme: bool = False


@dataclass(frozen=True, slots=True)
class CorpusTrial:
    """A distribution of rows, and a statistic of them with a known true value; ``rare`` as above."""

    data: str
    draw: Callable[[int, np.random.Generator], Floats]
    figure: Callable[[NumberRows], float]
    truth: float | None
    bounds: Bounds = UNBOUNDED
    subsample: bool | SubsampleFractions = False
    rare: bool = False

    def truth_at(self, size: int) -> float:
        """The true value, or the mean statistic of many samples of this size if none is given.

        Mutual information is biased upwards, more so with fewer units, and its interval is for the mean of
        samples with this number of units.
        """
        if self.truth is not None:
            return self.truth
        rng = np.random.default_rng(size)
        return float(np.mean([self.figure(NumberRows(self.draw(size, rng))) for _ in range(TRUTH_SAMPLES)]))


class NumberRows(Evidence):
    """Evidence for simulations: rows of numbers."""

    kind = "rows"

    def __init__(self, table: Floats) -> None:
        self.table = table
        self.unit_ids = np.arange(len(table))

    def take(self, index: Ints) -> Self:
        """The rows at ``index``."""
        return type(self)(self.table[index])

    def shuffled(self, rng: np.random.Generator) -> Self:
        """The rows with a permuted first column, which is then independent of the others."""
        return type(self)(np.column_stack([rng.permutation(self.table[:, 0]), self.table[:, 1:]]))

    def to_arrays(self) -> Arrays:
        """The table."""
        return {"table": self.table}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The rows of a stored table."""
        return cls(arrays["table"])


def mean_trials() -> list[MeanTrial]:
    """Every kind of per-unit data, with and without clusters."""
    ranks = (1.0, inf)
    reciprocal = (_mean_reciprocal(0.1) + _mean_reciprocal(0.4)) / 2.0
    return [
        MeanTrial("binary, p = 0.5", _binary(0.5), 0.5),
        MeanTrial("binary, p = 0.8", _binary(0.8), 0.8),
        MeanTrial("binary, p = 0.9", _binary(0.9), 0.9),
        MeanTrial("binary, p = 0.99", _binary(0.99), 0.99, extreme=True),
        MeanTrial("graded, middling", _graded(0.3, 0.2, 2.0, 2.0), 0.2 + 0.5 * 0.5),
        MeanTrial("graded, high", _graded(0.05, 0.55, 4.0, 2.0), 0.55 + 0.4 * 4.0 / 6.0),
        MeanTrial("graded, low", _graded(0.6, 0.05, 1.5, 4.0), 0.05 + 0.35 * 1.5 / 5.5),
        MeanTrial("graded, 94 % perfect", _graded(0.01, 0.94, 4.0, 2.0), 0.94 + 0.05 * 4.0 / 6.0, rare=True),
        MeanTrial("1/rank of 100, by chance", _uniform_ranks(100), _mean_uniform(100), rare=True),
        MeanTrial("1/rank of 1,000, by chance", _uniform_ranks(1000), _mean_uniform(1000), rare=True),
        MeanTrial("reciprocal ranks", _reciprocal_ranks, _mean_reciprocal(0.25)),
        MeanTrial("ranks", _ranks, 10.0, ranks),
        MeanTrial("ranks, long tail", _long_tail, 1.0 + exp(0.5), ranks),
        MeanTrial("ranks over items, weighted", _item_ranks, 11.0, ranks),
        MeanTrial("ranks of 203, log-uniform", _log_uniform_ranks(203), _mean_log_uniform(203), ranks, (1.0, 203.0)),
        *_difference_trials(),
        MeanTrial("binary in clusters, p = 0.5", _clustered_binary(0.5), 0.5, clustered=True),
        MeanTrial("binary in clusters, p = 0.8", _clustered_binary(0.8), 0.8, clustered=True),
        MeanTrial("binary in clusters, p = 0.9", _clustered_binary(0.9), 0.9, clustered=True),
        MeanTrial("graded in clusters", _clustered_graded, 0.6, clustered=True),
        MeanTrial("reciprocal ranks in clusters", _clustered_reciprocal_ranks, reciprocal, clustered=True),
        MeanTrial("ranks in clusters", _clustered_ranks, 11.0, ranks, clustered=True),
    ]


def _difference_trials() -> list[MeanTrial]:
    """Differences of two systems, most of which are 0, with more positive than negative ones."""
    cases = {
        "differences of hits, 10 : 0": (_moved(0.1, 0.0, _ones), 0.1),
        "differences of hits, 10 : 2": (_moved(0.1, 0.02, _ones), 0.08),
        "differences of hits, 10 : 10": (_moved(0.1, 0.1, _ones), 0.0),
        "graded differences, 20 : 0": (_moved(0.2, 0.0, _uniform), 0.1),
        "graded differences, 20 : 5": (_moved(0.2, 0.05, _uniform), 0.075),
        "graded differences, dense": (_dense, 0.02),
    }
    return [
        MeanTrial(name, draw, truth, UNBOUNDED, (-1.0, 1.0), DIFFERENCE_REACH, rare=True)
        for name, (draw, truth) in cases.items()
    ]


def corpus_trials() -> list[CorpusTrial]:
    """Statistics that are not means: a correlation (also by subsampling), a median, an F1, and partitions.

    Independent partitions have the lowest possible agreement, where its variance is smaller than in subsamples,
    so higher coverage is allowed.
    """
    ari, nmi = _agreement(AdjustedRand()), _agreement(MutualInformation())
    wide, independent, similar = HALVES_AND_MOST, _partitions(5, 0.0), _partitions(5, 0.5)
    return [
        CorpusTrial("correlation", _correlated, _pearson, 0.6, (-1.0, 1.0)),
        CorpusTrial("correlation, no repeats", _correlated, _pearson, 0.6, (-1.0, 1.0), subsample=True),
        CorpusTrial("median", _exponential, _median, log(2.0)),
        CorpusTrial("F1", _labelled, _f1, 2.0 * 0.32 / (0.40 + 0.44), (0.0, 1.0)),
        CorpusTrial("ARI, independent", independent, ari, 0.0, (-0.5, 1.0), wide, rare=True),
        CorpusTrial("ARI, dependent", similar, ari, None, (-0.5, 1.0), wide),
        CorpusTrial("ARI, many classes", _partitions(20, 0.3), ari, None, (-0.5, 1.0), wide, rare=True),
        CorpusTrial("NMI, independent", independent, nmi, None, (0.0, 1.0), wide, rare=True),
        CorpusTrial("NMI, dependent", similar, nmi, None, (0.0, 1.0), wide),
        CorpusTrial("NMI, many classes", _partitions(20, 0.3), nmi, None, (0.0, 1.0), wide, rare=True),
    ]


def _binary(p: float) -> Sampler:
    return lambda size, trials, rng: Sample((rng.random((size, trials)) < p).astype(np.float64))


def _graded(zeros: float, ones: float, a: float, b: float) -> Sampler:
    """Like nDCG: a fraction of zeros, a fraction of ones, and a beta distribution between them."""

    def draw(size: int, trials: int, rng: np.random.Generator) -> Sample:
        quantile = rng.random((size, trials))
        inner = rng.beta(a, b, (size, trials))
        return Sample(np.where(quantile < zeros, 0.0, np.where(quantile < zeros + ones, 1.0, inner)))

    return draw


def _reciprocal_ranks(size: int, trials: int, rng: np.random.Generator) -> Sample:
    return Sample(1.0 / rng.geometric(0.25, (size, trials)))


def _uniform_ranks(candidates: int) -> Sampler:
    """Reciprocal ranks of random scores, whose mean depends on the few top ranks."""
    return lambda size, trials, rng: Sample(1.0 / rng.integers(1, candidates + 1, (size, trials)))


def _mean_uniform(candidates: int) -> float:
    return float(np.mean(1.0 / np.arange(1, candidates + 1)))


def _ranks(size: int, trials: int, rng: np.random.Generator) -> Sample:
    return Sample(rng.geometric(0.1, (size, trials)).astype(np.float64))


def _long_tail(size: int, trials: int, rng: np.random.Generator) -> Sample:
    """One more than a lognormal value: most are small, a few are huge."""
    return Sample(1.0 + rng.lognormal(size=(size, trials)))


def _log_uniform_ranks(candidates: int) -> Sampler:
    """Each octave of ranks is equally likely: many first ranks and a long tail."""
    span = log(candidates + 1)
    return lambda size, trials, rng: Sample(np.floor(np.exp(span * rng.random((size, trials)))))


def _mean_log_uniform(candidates: int) -> float:
    ranks = np.arange(1, candidates + 1)
    return float((ranks * np.log1p(1.0 / ranks)).sum() / log(candidates + 1))


def _moved(up: float, down: float, amount: Callable[[tuple[int, int], np.random.Generator], Floats]) -> Sampler:
    """Positive and negative differences for fractions of the units, and 0 for the others."""

    def draw(size: int, trials: int, rng: np.random.Generator) -> Sample:
        quantile = rng.random((size, trials))
        sign = np.where(quantile < up, 1.0, np.where(quantile < up + down, -1.0, 0.0))
        return Sample(sign * amount((size, trials), rng))

    return draw


def _ones(shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    return np.ones(shape)


def _uniform(shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    return rng.random(shape)


def _dense(size: int, trials: int, rng: np.random.Generator) -> Sample:
    return Sample(rng.normal(0.02, 0.1, (size, trials)))


def _item_ranks(size: int, trials: int, rng: np.random.Generator) -> Sample:
    """Mean rank of the relevant items of a unit, weighted by their number; difficult units have high ranks."""
    items = np.asarray(1 + rng.poisson(2.0, (size, trials)), dtype=np.float64)
    difficulty = rng.gamma(2.0, 5.0, (size, trials))
    return Sample(1.0 + rng.gamma(items, difficulty / items), weights=items)


def _clusters(count: int, rng: np.random.Generator) -> Ints:
    """A cluster number for each unit, clusters of unequal size."""
    return np.repeat(np.arange(count), 1 + rng.poisson(MEAN_CLUSTER_SIZE - 1, count))


def _clustered_binary(p: float) -> Sampler:
    """Hits whose probability differs between clusters: intra-cluster correlation 0.2."""

    def draw(size: int, trials: int, rng: np.random.Generator) -> Sample:
        clusters = _clusters(size, rng)
        chances = rng.beta(4.0 * p, 4.0 * (1.0 - p), (size, trials))[clusters]
        return Sample((rng.random(chances.shape) < chances).astype(np.float64), clusters=clusters)

    return draw


def _clustered_graded(size: int, trials: int, rng: np.random.Generator) -> Sample:
    clusters = _clusters(size, rng)
    level = rng.beta(3.0, 2.0, (size, trials))[clusters]
    return Sample(rng.beta(4.0 * level, 4.0 * (1.0 - level)), clusters=clusters)


def _clustered_reciprocal_ranks(size: int, trials: int, rng: np.random.Generator) -> Sample:
    """Reciprocal ranks with half of the clusters difficult."""
    clusters = _clusters(size, rng)
    chance = np.where(rng.random((size, trials)) < 0.5, 0.1, 0.4)[clusters]
    return Sample(1.0 / rng.geometric(chance), clusters=clusters)


def _clustered_ranks(size: int, trials: int, rng: np.random.Generator) -> Sample:
    clusters = _clusters(size, rng)
    difficulty = rng.gamma(4.0, 2.5, (size, trials))[clusters]
    return Sample(1.0 + rng.exponential(difficulty), clusters=clusters)


def _mean_reciprocal(p: float) -> float:
    """The expectation of one over a geometric rank."""
    return -p * log(p) / (1.0 - p)


def _correlated(size: int, rng: np.random.Generator) -> Floats:
    normal = rng.standard_normal((size, 2))
    return np.column_stack([normal[:, 0], 0.6 * normal[:, 0] + 0.8 * normal[:, 1]])


def _exponential(size: int, rng: np.random.Generator) -> Floats:
    return rng.exponential(size=(size, 1))


def _labelled(size: int, rng: np.random.Generator) -> Floats:
    """Labels with 40 % positives; 80 % of the positives and 20 % of the negatives are predicted as positive."""
    truth = rng.random(size) < 0.4
    return np.column_stack([truth, rng.random(size) < np.where(truth, 0.8, 0.2)]).astype(np.float64)


def _pearson(rows: NumberRows) -> float:
    x, y = (rows.table - rows.table.mean(axis=0)).T
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def _median(rows: NumberRows) -> float:
    return float(np.median(rows.table))


def _f1(rows: NumberRows) -> float:
    truth, predicted = rows.table.T
    return float(2.0 * (truth @ predicted) / (truth.sum() + predicted.sum()))


def _partitions(parts: int, agreement: float) -> Callable[[int, np.random.Generator], Floats]:
    """Two labels per unit: the second equals the first for a fraction of the units, and is random otherwise."""

    def draw(size: int, rng: np.random.Generator) -> Floats:
        first, other = rng.integers(0, parts, (2, size))
        return np.column_stack([first, np.where(rng.random(size) < agreement, first, other)]).astype(np.float64)

    return draw


def _agreement(metric: CorpusMetric[Labels]) -> Callable[[NumberRows], float]:
    def figure(rows: NumberRows) -> float:
        true, predicted = rows.table.T.astype(np.int64)
        return metric.value(Labels(rows.unit_ids, true, predicted, np.arange(rows.table.max() + 1)))

    return figure
