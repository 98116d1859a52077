"""How close points of a class lie, how far apart classes are, and who the neighbours of a point are."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

import numpy as np

from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.space import Space
from equipoise.metrics.base import CorpusMetric, UnitMetric
from equipoise.metrics.directions import NOISE, blocks, directions, mean_cosine
from equipoise.types import Floats, Ints


def _labels(space: Space, metric: str) -> Ints:
    if space.labels is None:
        raise UndefinedError(
            f"{metric} needs classes, and this space has none", hint="Space.of(vectors, labels=...) adds them"
        )
    return space.labels


def class_sums(space: Space, metric: str) -> tuple[Floats, Ints, Ints]:
    """The summed directions of each class, how many of its points have one, and how many points it has."""
    labels = _labels(space, metric)
    units, pointed = directions(space)
    _, own, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    sums = np.zeros((len(sizes), space.vectors.shape[1]))
    np.add.at(sums, own[pointed], units)
    return sums, np.bincount(own[pointed], minlength=len(sizes)), sizes


@dataclass(frozen=True)
class ClusterCoherence(CorpusMetric[Space]):
    """Mean cosine over the pairs of points of a class, averaged over the classes.

    From -1 to 1. Classes count alike; one with a single point has no pair and is left out. The cosine of a
    zero vector with any other is 0. Chance is the mean cosine of all pairs: a collapsed space is coherent
    however it is labelled.

    >>> space = Space.of([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [3.0, 4.0]], labels=["x", "x", "y", "y"])
    >>> round(ClusterCoherence().measure(space).value, 4)
    0.9
    """

    symbol = "ClusterCoherence"
    title = "mean cosine within classes"
    evidence = Space
    aliases = ("cluster_coherence",)
    bounds = (-1.0, 1.0)
    unit = "cosine"
    formula = r"\frac{1}{|C|} \sum_c \frac{\|s_c\|^2 - n_c}{n_c (n_c - 1)}, s_c = \sum_{i \in c} u_i"
    undefined = "no class of two points, or fewer than two points that are not zero"

    def value(self, evidence: Space) -> float:
        """From the summed directions of each class; no pair is looked at."""
        sums, directed, sizes = class_sums(evidence, self.symbol)
        several = sizes > 1
        if not several.any() or directed.sum() < 2:
            return nan
        squares = np.einsum("ij,ij->i", sums, sums)
        return float(np.mean((squares - directed)[several] / (sizes * (sizes - 1))[several]))

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The mean cosine of all pairs: a pair within a random class is any of them alike."""
        if np.isnan(self.value(evidence)):
            return nan
        return mean_cosine(directions(evidence)[0], len(evidence))


@dataclass(frozen=True)
class ClusterSeparation(CorpusMetric[Space]):
    """Mean of 1 - cosine over the points of one class and those of another, averaged over pairs of classes.

    From 0 to 2. Pairs of classes count alike; the cosine of a zero vector with any other is 0. Chance is the
    mean distance of all pairs of points.

    >>> space = Space.of([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], labels=["x", "x", "y"])
    >>> ClusterSeparation().measure(space).value
    1.0
    """

    symbol = "ClusterSeparation"
    title = "mean cosine distance between classes"
    evidence = Space
    aliases = ("cluster_separation",)
    bounds = (0.0, 2.0)
    unit = "distance"
    formula = r"1 - \frac{2}{|C| (|C| - 1)} \sum_{c < d} \frac{s_c \cdot s_d}{n_c n_d}"
    undefined = "a single class, or fewer than two points that are not zero"

    def value(self, evidence: Space) -> float:
        """From the mean direction of each class: their inner products are the mean cosines."""
        sums, directed, sizes = class_sums(evidence, self.symbol)
        count = len(sizes)
        if count < 2 or directed.sum() < 2:
            return nan
        means = sums / sizes[:, None]
        total = means.sum(axis=0)
        crossed = total @ total - np.einsum("ij,ij->", means, means)
        return float(np.clip(1.0 - crossed / (count * (count - 1)), 0.0, 2.0))

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The mean distance of all pairs: a pair across random classes is any of them alike."""
        if np.isnan(self.value(evidence)):
            return nan
        return 1.0 - mean_cosine(directions(evidence)[0], len(evidence))


@dataclass(frozen=True)
class Purity(UnitMetric[Space]):
    """The share of a point's nearest ``neighbours``, by cosine, that are of its own class.

    From 0 to 1. Points tied for the last place share it. Chance is the share of other points that are of
    the point's class. Zero vectors are left out.

    >>> space = Space.of([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], labels=["x", "x", "y", "x"])
    >>> Purity(neighbours=1).measure(space).value
    0.5
    """

    neighbours: int = 5

    symbol = "Purity"
    title = "share of neighbours of the same class"
    evidence = Space
    aliases = ("purity", "knn_purity")
    formula = r"\frac{1}{k} \sum_{j \in N_k(i)} [\,c_j = c_i\,]"
    undefined = "no more points than neighbours; a zero vector"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neighbours < 1:
            raise ParameterError(f"purity looks at {self.neighbours} neighbours", hint="it is 1 or more")

    def per_unit(self, evidence: Space) -> Floats:
        """The share of each point."""
        labels = _labels(evidence, self.symbol)
        units, pointed = directions(evidence)
        values = np.full(len(evidence), nan)
        if len(units) > self.neighbours:
            values[pointed] = own_shares(units, labels[pointed], self.neighbours)
        return values

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The mean over all ways to deal out the classes, which is exact."""
        pointed = directions(evidence)[1]
        count = int(pointed.sum())
        if count <= self.neighbours:
            return nan
        sizes = np.bincount(_labels(evidence, self.symbol)[pointed])
        return float((sizes * (sizes - 1)).sum() / (count * (count - 1)))


def own_shares(units: Floats, labels: Ints, neighbours: int) -> Floats:
    """How much of each point's neighbourhood is of its class; ties share the last places."""
    count = len(units)
    shares = np.empty(count)
    for rows in blocks(count, count):
        cosines = units[rows] @ units.T
        cosines[np.arange(len(cosines)), np.arange(rows.start, rows.stop)] = -inf
        last = np.partition(cosines, count - neighbours, axis=1)[:, count - neighbours, None]
        nearer = cosines > last + NOISE
        tied = (cosines >= last - NOISE) & ~nearer
        left = (neighbours - nearer.sum(axis=1)) / tied.sum(axis=1)
        same = labels[rows][:, None] == labels
        shares[rows] = (nearer & same).sum(axis=1) + left * (tied & same).sum(axis=1)
    return shares / neighbours
