"""The quality terms of concept scores: diversity, variance and the spread of norms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nan

import numpy as np

from equipoise.evidence.space import Space
from equipoise.metrics.base import CHANCE_SHUFFLES, DOWN, CorpusMetric
from equipoise.metrics.directions import directions, mean_cosine


def random_directions(space: Space, rng: np.random.Generator) -> Space:
    """Points as far from the origin as before, each in a direction of its own."""
    drawn = rng.standard_normal(space.vectors.shape)
    lengths = np.linalg.norm(space.vectors.astype(np.float64), axis=1)
    return replace(space, vectors=drawn * (lengths / np.linalg.norm(drawn, axis=1))[:, None])


class AgainstRandom(CorpusMetric[Space]):
    """A property of the vectors, held against random vectors of the same shape and the same norms."""

    evidence = Space

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The mean over random vectors."""
        drawn = [self.value(random_directions(evidence, rng)) for _ in range(CHANCE_SHUFFLES)]
        return float(np.mean(drawn))


@dataclass(frozen=True)
class Diversity(AgainstRandom):
    """1 less the mean cosine over all pairs of different points.

    From 0 (all in one direction) to 2; random directions earn about 1. Norms do not matter; the cosine of a
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
class EmbeddingVariance(AgainstRandom):
    """Variance of each coordinate over the points, averaged over the coordinates.

    At least 0; it grows with the square of the scale. Vectors of length one in d dimensions cannot exceed
    1/d, so it says more about how a model scales its vectors than about what it knows.

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
class NormRatio(AgainstRandom):
    """Standard deviation of the norms over their mean.

    At least 0, and lower is more consistent: 0 when all vectors are equally long, as those of models that
    set them to length one are. Directions do not matter, so random ones of the same norms earn the same.

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
        # Vectors set to length one in single precision differ in the last digit, which is no spread.
        ratio = float(norms.std() / norms.mean())
        return ratio if ratio > _SINGLE else 0.0

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The figure itself: no direction can change it."""
        return self.value(evidence)


_SINGLE = float(np.finfo(np.float32).eps)
