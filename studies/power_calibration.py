"""Power with the planned number of units, by simulation: separating a pair, and showing the best system.

Five systems with known means and spreads are compared with as many units as planned, by the paired t test or
the randomisation test, with a correction over the ten pairs. The stated power is 80 %. The tolerance is four
percentage points and three Monte Carlo errors: a plan takes the mean number of significant pairs, and the
step at which a pair is tested varies between samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np

from equipoise.stats.comparison import Contrast
from equipoise.stats.intervals import Interval
from equipoise.stats.multiple_comparisons import adjust
from equipoise.stats.paired_tests import run_test
from equipoise.stats.power import POWER, units_to_show_best, with_power
from equipoise.types import Direction, Floats

ALPHA = 0.05
TOLERANCE = 0.04
N_PERMUTATIONS = 999
SYSTEM_MEANS: Mapping[str, tuple[float, ...]] = {
    "equal steps": (0.8, 0.6, 0.4, 0.2, 0.0),
    "close to the best": (0.8, 0.65, 0.6, 0.6, 0.0),
    "one system ahead": (0.3, 0.0, 0.0, 0.0, 0.0),
    "three far behind": (2.0, 1.8, 0.0, 0.0, 0.0),
}
"""True means in units of the standard deviation of one system on one unit."""
SHARED_VARIANCE = 0.5
"""The fraction of the variance of a unit that all systems share: its difficulty."""


@dataclass(frozen=True, slots=True)
class PowerRow:
    """The rate of a decision with the number of units planned for it."""

    systems: str
    decision: str
    test: str
    correction: str
    n: int
    simulations: int
    rate: float

    @property
    def kept(self) -> bool:
        """Whether the decision was made in 80 % of the simulations, within the tolerance."""
        error = sqrt(POWER * (1.0 - POWER) / self.simulations)
        return abs(self.rate - POWER) <= TOLERANCE + 3.0 * error


def planned_power(
    simulations: int,
    rng: np.random.Generator,
    *,
    systems: Sequence[str] = tuple(SYSTEM_MEANS),
    tests: Sequence[str] = ("randomisation",),
    corrections: Sequence[str] = ("holm", "bh"),
) -> list[PowerRow]:
    """The rates of both decisions, separating the first two systems and showing the best, for every case."""
    return [
        row
        for name in systems
        for correction in corrections
        for test in tests
        for row in _rows(name, test, correction, simulations, rng)
    ]


def true_contrasts(means: Sequence[float], correction: str) -> list[Contrast]:
    """All pairs of systems with their true differences and standard deviations, with the planned numbers of units."""
    sd = sqrt(2.0 * (1.0 - SHARED_VARIANCE))
    pairs = [
        Contrast(
            metric="score",
            a=str(i),
            b=str(j),
            better=Direction.UP,
            difference=means[i] - means[j],
            interval=Interval.unknown("planned"),
            p=0.5,
            adjusted=0.5,
            n=100,
            undefined=0,
            sd=sd,
        )
        for i, j in combinations(range(len(means)), 2)
    ]
    return with_power(pairs, correction, ALPHA)


def _rows(name: str, test: str, correction: str, simulations: int, rng: np.random.Generator) -> list[PowerRow]:
    means = SYSTEM_MEANS[name]
    pairs = true_contrasts(means, correction)
    n_separated = round(pairs[0].needed.value)
    n_best = round(units_to_show_best(pairs, "0", correction, ALPHA).value)
    first_pair, leader_pairs = [0], list(range(len(means) - 1))
    return [
        PowerRow(name, decision, test, correction, n, simulations, rate)
        for decision, n, columns in (("separate two", n_separated, first_pair), ("show the best", n_best, leader_pairs))
        for rate in [_rate(means, n, columns, test, correction, simulations, rng)]
    ]


def _rate(
    means: Sequence[float],
    n: int,
    columns: Sequence[int],
    test: str,
    correction: str,
    simulations: int,
    rng: np.random.Generator,
) -> float:
    """The fraction of simulations in which all these pairs are significant in the true direction."""
    n_significant = 0
    for _ in range(simulations):
        differences = _differences(means, n, rng)
        p = run_test(test, differences, n_permutations=N_PERMUTATIONS, rng=rng)
        significant = (adjust(p, correction) < ALPHA) & (differences.mean(axis=0) > 0)
        n_significant += bool(significant[list(columns)].all())
    return n_significant / simulations


def _differences(means: Sequence[float], n: int, rng: np.random.Generator) -> Floats:
    """The differences of all pairs on ``n`` units, which share their difficulty: (units, pairs)."""
    difficulty = sqrt(SHARED_VARIANCE) * rng.standard_normal((n, 1))
    noise = sqrt(1.0 - SHARED_VARIANCE) * rng.standard_normal((n, len(means)))
    scores = np.asarray(means) + difficulty + noise
    return np.column_stack([scores[:, i] - scores[:, j] for i, j in combinations(range(len(means)), 2)])
