"""Intrinsic metrics of vectors, without labels: effective rank, isotropy, hubness, norms, concept diversity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp, inf, log, nan
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import ParameterError
from equipoise.evidence.space import Space
from equipoise.metrics.base import DOWN, N_CHANCE_SHUFFLES, CorpusMetric

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats

# Unit vectors, and blocks over all pairs of points.

BLOCK_BYTES = 32 << 20
NOISE = 1e-12
"""Cosines in double precision that differ by less are equal."""


def directions(space: Space) -> tuple[Floats, Bools]:
    """Unit vectors of the points that have a direction, and which points those are."""
    vectors = space.vectors.astype(np.float64, copy=False)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    is_nonzero = lengths > 0
    if not is_nonzero.all():
        vectors, lengths = vectors[is_nonzero], lengths[is_nonzero]
    return vectors / lengths[:, None], is_nonzero


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Slices of rows, so that a block of ``columns`` doubles per row fits ``BLOCK_BYTES``."""
    step = max(1, BLOCK_BYTES // (8 * max(1, columns)))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def mean_cosine(units: Floats, points: int | None = None) -> float:
    """Mean over pairs of different rows; NaN for fewer than two.

    ``points`` counts those without a direction as well, whose cosine with any other is 0.
    """
    total, count = units.sum(axis=0), len(units) if points is None else points
    return float((total @ total - len(units)) / (count * (count - 1))) if len(units) > 1 else nan


class IntrinsicMetric(CorpusMetric[Space]):
    """A property of the vectors that needs no labels and has no chance level."""

    evidence = Space

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """Undefined: shuffling labels or edges does not change the vectors."""
        return nan


@dataclass(frozen=True)
class EffectiveRank(IntrinsicMetric):
    """The exponential of the entropy of the singular values of the matrix of vectors, each divided by their sum.

    From 1 (all vectors on a line through the origin) to the number of dimensions or of points, whichever is smaller;
    rescaling all vectors changes nothing.

    >>> round(EffectiveRank().measure(Space.of([[1.0, 0.0], [0.0, 1.0]])).value, 6)
    2.0
    """

    symbol = "EffectiveRank"
    title = "effective rank"
    aliases = ("effective_rank", "erank")
    bounds = (1.0, inf)
    unit = "dimensions"
    formula = r"\exp\left(-\sum_i p_i \ln p_i\right), p_i = \sigma_i / \sum_j \sigma_j"
    undefined = "no points, or zero vectors only"
    cite = "Roy and Vetterli, EUSIPCO 2007"

    def value(self, evidence: Space) -> float:
        """From the singular values, not centred."""
        if not evidence.vectors.any():
            return nan
        values = np.linalg.svd(evidence.vectors.astype(np.float64), compute_uv=False)
        shares = values[values > 0] / values.sum()
        return exp(float(-(shares * np.log(shares)).sum()))


@dataclass(frozen=True)
class MeanCosine(IntrinsicMetric):
    """Mean cosine over all pairs of different points.

    From -1 to 1; near 0 when directions are spread, near 1 when the space has collapsed into a cone.
    Norms do not matter; zero vectors are left out.

    >>> MeanCosine().measure(Space.of([[1.0, 0.0], [0.0, 5.0], [2.0, 0.0]])).value
    0.3333333333333333
    """

    symbol = "MeanCosine"
    title = "mean cosine between points"
    aliases = ("mean_cosine", "average_cosine", "avg_pairwise_cosine")
    bounds = (-1.0, 1.0)
    better = DOWN
    unit = "cosine"
    formula = r"\frac{\|\sum_i u_i\|^2 - n}{n (n - 1)}, u_i = x_i / \|x_i\|"
    undefined = "fewer than two points that are not zero"
    cite = "Ethayarajh, EMNLP 2019"

    def value(self, evidence: Space) -> float:
        """From the sum of the directions, in time linear in the points."""
        return mean_cosine(directions(evidence)[0])


@dataclass(frozen=True)
class Uniformity(IntrinsicMetric):
    """Logarithm of the mean of exp(-t |u - v|^2) over all pairs of different points, as unit vectors.

    Low if the directions cover the sphere evenly, 0 if all are the same. Norms do not matter; zero vectors are
    left out.

    >>> Uniformity().measure(Space.of([[1.0, 0.0], [-3.0, 0.0]])).value
    -8.0
    """

    t: float = 2.0

    symbol = "Uniformity"
    title = "uniformity on the sphere"
    aliases = ("uniformity", "uniformity_loss")
    bounds = (-inf, 0.0)
    better = DOWN
    unit = "log"
    formula = r"\ln \frac{1}{n(n-1)} \sum_{i \ne j} e^{-t \|u_i - u_j\|^2}"
    undefined = "fewer than two points that are not zero"
    cite = "Wang and Isola, ICML 2020"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.t < inf:
            raise ParameterError(f"t is {self.t} in Uniformity", hint="t must be a number above 0")

    def value(self, evidence: Space) -> float:
        """Over blocks of the upper triangle."""
        units, _ = directions(evidence)
        count = len(units)
        if count < 2:
            return nan
        total = 0.0
        for rows in row_blocks(count, count):
            closeness = units[rows] @ units[rows.start :].T
            closeness -= 1.0
            closeness *= 2 * self.t
            np.minimum(closeness, 0.0, out=closeness)
            np.exp(closeness, out=closeness)
            height = len(closeness)
            square = closeness[:, :height]
            np.fill_diagonal(square, 0.0)
            total += square.sum() / 2 + closeness[:, height:].sum()
        return log(total / (count * (count - 1) / 2))


@dataclass(frozen=True)
class Hubness(IntrinsicMetric):
    """Skewness of the number of times that each point is among the k nearest neighbours of another point, by cosine.

    k is ``neighbours``. Near 0 if all points are neighbours about equally often; high if a few hubs are among the
    neighbours of most points. Points tied for the last place share it equally. Zero vectors are left out.

    >>> space = Space.of([[1.0, 0.0], [0.8, 0.6], [0.8, -0.6], [0.3, 1.0]])
    >>> round(Hubness(neighbours=1).measure(space).value, 4)
    0.0
    """

    neighbours: int = 10

    symbol = "Hubness"
    title = "hubness of the nearest neighbours"
    aliases = ("hubness", "k_skewness")
    bounds = (-inf, inf)
    better = DOWN
    unit = "skewness"
    formula = r"\frac{E[(N_k - \mu)^3]}{\sigma^3}"
    undefined = "no more than k + 1 points, or all points are neighbours equally often"
    cite = "Radovanovic, Nanopoulos and Ivanovic, Journal of Machine Learning Research 11, 2010"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neighbours < 1:
            raise ParameterError(f"neighbours is {self.neighbours} in Hubness", hint="neighbours must be 1 or more")

    def value(self, evidence: Space) -> float:
        """The third standardised moment of the occurrences."""
        units, _ = directions(evidence)
        if len(units) <= self.neighbours + 1:
            return nan
        times = k_occurrences(units, self.neighbours)
        centred = times - times.mean()
        variance = float(np.mean(centred**2))
        return float(np.mean(centred**3)) / variance**1.5 if np.ptp(times) > NOISE * len(units) else nan


def k_occurrences(units: Floats, neighbours: int) -> Floats:
    """The number of times each point is among the nearest ``neighbours`` of another; ties share the last ranks."""
    times = np.zeros(len(units))
    for _, nearer, tied, share in neighbourhoods(units, neighbours):
        times += nearer.sum(axis=0) + share @ tied
    return times


def neighbourhoods(units: Floats, neighbours: int) -> Iterator[tuple[slice, Bools, Bools, Floats]]:
    """For blocks of points: which are nearer than the last neighbour, which are tied, and the share of a tie."""
    count = len(units)
    for rows in row_blocks(count, count):
        cosines = units[rows] @ units.T
        cosines[np.arange(len(cosines)), np.arange(rows.start, rows.stop)] = -inf
        last = np.partition(cosines, count - neighbours, axis=1)[:, count - neighbours, None]
        nearer = cosines > last + NOISE
        tied = (cosines >= last - NOISE) & ~nearer
        yield rows, nearer, tied, (neighbours - nearer.sum(axis=1)) / tied.sum(axis=1)


@dataclass(frozen=True)
class Isotropy(IntrinsicMetric):
    """IsoScore: (r - 1) / (d - 1) with r = (sum of variances)^2 / sum of squared variances along the d axes.

    From 0 (all variance along one axis) to 1 (equal variance along all axes), in the basis of the principal
    components; neither the mean nor the scale of the vectors matters. With too few points it cannot reach 1.

    >>> Isotropy().measure(Space.of([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])).value
    1.0
    """

    symbol = "Isotropy"
    title = "isotropy (IsoScore)"
    aliases = ("isotropy", "IsoScore", "isoscore")
    unit = "index"
    formula = r"\frac{(\mathrm{tr}\,C)^2 / \|C\|_F^2 - 1}{d - 1}, C = \mathrm{cov}(x)"
    undefined = "one dimension, or points that are all the same"
    cite = "Rudman, Gillman, Rayne and Eickhoff, Findings of ACL 2022"

    def value(self, evidence: Space) -> float:
        """The published formula reduces to trace and Frobenius norm, so no eigenvectors are needed."""
        points, size = evidence.vectors.astype(np.float64), evidence.vectors.shape[1]
        if size < 2 or not len(points) or not np.ptp(points, axis=0).any():
            return nan
        points -= points.mean(axis=0)
        points /= np.abs(points).max()
        products = points.T @ points if size <= len(points) else points @ points.T
        axes = float(np.trace(products) ** 2 / np.sum(products**2))
        return float(np.clip((axes - 1) / (size - 1), 0.0, 1.0))


# Terms of the concept quality score: diversity, variance and the spread of norms.


def random_vectors(space: Space, rng: np.random.Generator) -> Space:
    """Random directions with the norms of the original points."""
    sample = rng.standard_normal(space.vectors.shape)
    lengths = np.linalg.norm(space.vectors.astype(np.float64), axis=1)
    return replace(space, vectors=sample * (lengths / np.linalg.norm(sample, axis=1))[:, None])


class RandomBaselineMetric(CorpusMetric[Space]):
    """A property of the vectors; chance is its value for random vectors of the same shape and norms."""

    evidence = Space

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The mean over random vectors with the same norms."""
        values = [self.value(random_vectors(evidence, rng)) for _ in range(N_CHANCE_SHUFFLES)]
        return float(np.mean(values))


@dataclass(frozen=True)
class Diversity(RandomBaselineMetric):
    """1 minus the mean cosine over all pairs of different points.

    From 0 (all in one direction) to 2; random directions score about 1. Norms do not matter; the cosine of a
    zero vector with any other is 0.

    >>> Diversity().measure(Space.of([[1.0, 0.0], [0.0, 5.0]])).value
    1.0
    """

    symbol = "Diversity"
    title = "diversity of directions"
    aliases = ("diversity", "diversity_score")
    bounds = (0.0, 2.0)
    unit = "distance"
    formula = r"1 - \frac{2}{n (n - 1)} \sum_{i < j} \cos(x_i, x_j)"
    undefined = "fewer than two points that are not zero"

    def value(self, evidence: Space) -> float:
        """From the sum of the directions."""
        return 1.0 - mean_cosine(directions(evidence)[0], len(evidence))


@dataclass(frozen=True)
class EmbeddingVariance(RandomBaselineMetric):
    """Variance of each coordinate over the points, averaged over the coordinates.

    It grows with the square of the scale of the vectors. For vectors of length 1 in d dimensions it is at most
    1/d, so it depends more on scale than on quality.

    >>> EmbeddingVariance().measure(Space.of([[1.0, 0.0], [-1.0, 0.0]])).value
    0.5
    """

    symbol = "EmbeddingVariance"
    title = "mean variance of the coordinates"
    aliases = ("embedding_variance",)
    bounds = (0.0, inf)
    unit = "squared length"
    formula = r"\frac{1}{d} \sum_k \frac{1}{n} \sum_i (x_{ik} - \bar x_k)^2"
    undefined = "fewer than two points, or zero vectors only"

    def value(self, evidence: Space) -> float:
        """The variance of the population, not of a sample."""
        if len(evidence) < 2 or not evidence.vectors.any():
            return nan
        return float(np.var(evidence.vectors.astype(np.float64), axis=0).mean())


@dataclass(frozen=True)
class NormRatio(RandomBaselineMetric):
    """Standard deviation of the norms over their mean.

    0 if all vectors have the same length, as with models that normalise them. Directions do not matter, so
    random vectors with the same norms have the same value.

    >>> NormRatio().measure(Space.of([[1.0, 0.0], [0.0, 3.0]])).value
    0.5
    """

    symbol = "NormRatio"
    title = "spread of the norms over their mean"
    aliases = ("norm_ratio", "norm_consistency")
    bounds = (0.0, inf)
    better = DOWN
    unit = "ratio"
    formula = r"\mathrm{sd}(\|x\|) / \mathrm{mean}(\|x\|)"
    undefined = "fewer than two points, or zero vectors only"

    def value(self, evidence: Space) -> float:
        """Of the norms, with the deviation of the population."""
        norms = evidence.radii
        if len(norms) < 2 or not norms.any():
            return nan
        # Vectors set to length one in single precision differ in the last digit, which is not variance.
        ratio = float(norms.std() / norms.mean())
        return ratio if ratio > _SINGLE else 0.0

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The value itself: it does not depend on directions."""
        return self.value(evidence)


_SINGLE = float(np.finfo(np.float32).eps)
