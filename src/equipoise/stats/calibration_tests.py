"""The paired tests tried on data whose truth is known: how often do they cry wolf?

Two exchangeable systems are simulated: they share the difficulty of each unit, and where units come in
clusters each system has luck of its own with each cluster. The null hypothesis is true, so a test at 5 %
may reject in 5 % of the simulations. Tests of discrete data cannot always reach 5 % and stay below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from equipoise.stats.paired import TESTS, run_test
from equipoise.types import Floats, Ids

ALPHA = 0.05
SIZES = (20, 50, 200)
DATA = ("binary", "graded", "rank")
# Values on a coarse grid make many sign patterns equally extreme, and few p values possible.
COARSE = ("binary", "graded")
UNITS_PER_CLUSTER = 4
# 0.05 * (999 + 1) is a whole number, so the randomisation tests can reach 5 % exactly.
FLIPS = 999
# Simulations that share one set of random signs are not independent; small batches keep the rates honest.
BATCH = 50


@dataclass(frozen=True, slots=True)
class FalsePositiveRow:
    """How often one test rejected a true null hypothesis.

    ``clusters`` is "none", "used", or "ignored": the last shows what the cluster key is for, and is no
    promise. ``at_most`` marks tests that may stay below 5 % because p can only take a few values.
    """

    test: str
    data: str
    n: int
    clusters: str
    simulations: int
    rate: float
    at_most: bool

    @property
    def error(self) -> float:
        """The Monte Carlo standard error of a rate of 5 %."""
        return sqrt(ALPHA * (1 - ALPHA) / self.simulations)

    @property
    def promise(self) -> str:
        """What the rate should be."""
        if self.clusters == "ignored":
            return "none, clusters ignored"
        return "at most 5 %" if self.at_most else "5 %"

    @property
    def kept(self) -> bool:
        """Whether the rate is what was promised, within 3.5 Monte Carlo errors (and 0.5 % for t).

        Student's t is exact for normal differences only, and these are anything but normal.
        """
        if self.clusters == "ignored":
            return True
        slack = 3.5 * self.error + (0.005 if self.test == "t" else 0.0)
        return self.rate <= ALPHA + slack and (self.at_most or self.rate >= ALPHA - slack)


def false_positive_rates(
    simulations: int,
    rng: np.random.Generator,
    *,
    sizes: Sequence[int] = SIZES,
    data: Sequence[str] = DATA,
) -> list[FalsePositiveRow]:
    """The rate of every test on every kind of data and number of units, clustered and not."""
    rows = []
    for kind in data:
        for n in sizes:
            labels = np.arange(n) // UNITS_PER_CLUSTER
            for name, treated in _trials(kind):
                rejected = 0
                given = labels if treated == "used" else None
                for size in _batches(simulations):
                    differences = null_differences(kind, n, size, None if treated == "none" else labels, rng)
                    p = run_test(name, differences, clusters=given, flips=FLIPS, rng=rng)
                    rejected += int((p <= ALPHA).sum())
                blocks = n if treated == "none" else n // UNITS_PER_CLUSTER
                at_most = _may_stay_below(name, kind, blocks)
                rows.append(
                    FalsePositiveRow(name, kind, n, treated, simulations, rejected / simulations, at_most)
                )
    return rows


def null_differences(
    kind: str, n: int, simulations: int, clusters: Ids | None, rng: np.random.Generator
) -> Floats:
    """Differences of two exchangeable systems: shape (n, simulations).

    >>> null_differences("binary", 4, 2, None, np.random.default_rng(0)).shape
    (4, 2)
    """
    difficulty = rng.normal(size=(n, simulations))
    first, second = (_scores(kind, difficulty, clusters, rng) for _ in range(2))
    return first - second


def _scores(kind: str, difficulty: Floats, clusters: Ids | None, rng: np.random.Generator) -> Floats:
    """One system's values: the unit's difficulty, luck with its cluster and noise, as a metric sees them."""
    latent = difficulty + rng.normal(size=difficulty.shape)
    if clusters is not None:
        labels, inverse = np.unique(clusters, return_inverse=True)
        latent += rng.normal(size=(len(labels), difficulty.shape[1]))[inverse]
    if kind == "binary":
        return np.asarray(latent > 0, dtype=np.float64)
    if kind == "graded":
        return np.asarray(np.clip(np.round(2 + latent), 0, 4) / 4)
    return np.asarray(1.0 / np.ceil(np.exp(1.0 - latent).clip(1e-9, 1000.0)))


def _trials(kind: str) -> Iterator[tuple[str, str]]:
    """Every test with every treatment of clusters that it can take."""
    for name, test in TESTS.items():
        if test.binary_only and kind != "binary":
            continue
        yield name, "none"
        if "clusters" in test.takes:
            yield name, "used"
        yield name, "ignored"


def _may_stay_below(name: str, kind: str, blocks: int) -> bool:
    """Whether few p values are possible: few blocks, a coarse grid, or sums of few whole ranks."""
    if name == "t":
        return blocks < 20
    return kind in COARSE or blocks < (50 if name == "wilcoxon" else 20)


def _batches(simulations: int) -> Iterator[int]:
    for start in range(0, simulations, BATCH):
        yield min(BATCH, simulations - start)
