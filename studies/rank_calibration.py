"""Coverage of rank intervals, by simulation: how often the interval of a system contains its true rank.

The intervals come from the tests of all pairs with Holm's correction, so together they must contain the ranks of all
systems in at least 95 % of the trials, within three Monte Carlo errors. The mean width says what that costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from equipoise.stats.multiple_comparisons import adjust, rank_intervals
from equipoise.stats.paired_tests import run_test
from equipoise.types import Floats, Ints

LEVEL = 0.95
N_PERMUTATIONS = 9_999
SYSTEM_SHARES: Mapping[str, Floats] = {
    "two, nearly equal": np.array([0.701, 0.699]),
    "six, nearly equal": np.linspace(0.702, 0.698, 6),
    "six, equal steps": np.linspace(0.9, 0.4, 6),
    "twenty, small steps": np.linspace(0.75, 0.55, 20),
}
"""The true values of the systems, from best to worst: shares of hits, or means of graded values."""
SHARED_VARIANCE = 0.4
"""The fraction of the variance of a unit that all systems share: its difficulty."""
SIZES = (5, 10, 30, 130)


@dataclass(frozen=True, slots=True)
class RankRow:
    """How often the rank intervals of all systems contain their ranks, and the mean number of ranks of an interval."""

    systems: str
    values: str
    units: int
    trials: int
    coverage: float
    mean_width: float

    @property
    def kept(self) -> bool:
        """Whether all ranks are covered as often as stated, within three Monte Carlo errors."""
        return self.coverage >= LEVEL - 3.0 * sqrt(LEVEL * (1.0 - LEVEL) / self.trials)


def rank_coverage(
    simulations: int,
    rng: np.random.Generator,
    *,
    systems: Sequence[str] = tuple(SYSTEM_SHARES),
    sizes: Sequence[int] = SIZES,
) -> list[RankRow]:
    """The coverage for every group of systems, kind of values and number of units."""
    return [
        _row(name, values, size, simulations, rng)
        for name in systems
        for values in ("binary", "graded")
        for size in sizes
    ]


def _row(name: str, values: str, size: int, simulations: int, rng: np.random.Generator) -> RankRow:
    shares = SYSTEM_SHARES[name]
    ranks = np.arange(1, len(shares) + 1)
    n_covered, widths = 0, 0.0
    for _ in range(simulations):
        low, high = rank_intervals(_signs(_values(shares, values, size, rng), rng)).T
        n_covered += bool(((low <= ranks) & (ranks <= high)).all())
        widths += float((high - low + 1).mean())
    return RankRow(name, values, size, simulations, n_covered / simulations, widths / simulations)


def _signs(values: Floats, rng: np.random.Generator) -> Ints:
    """The signs of the significant differences of all pairs."""
    first, second = np.triu_indices(values.shape[1], 1)
    differences = values[:, second] - values[:, first]
    p = adjust(run_test("randomisation", differences, n_permutations=N_PERMUTATIONS, rng=rng))
    signs = np.zeros((values.shape[1], values.shape[1]), dtype=np.int64)
    signs[first, second] = np.sign(differences.mean(axis=0)) * (p < 1.0 - LEVEL)
    return np.asarray(signs - signs.T)


def _values(shares: Floats, values: str, size: int, rng: np.random.Generator) -> Floats:
    """Values of correlated systems: hits with these probabilities, or graded values with these means."""
    difficulty = sqrt(SHARED_VARIANCE) * rng.standard_normal((size, 1))
    latent = difficulty + sqrt(1.0 - SHARED_VARIANCE) * rng.standard_normal((size, len(shares)))
    if values == "binary":
        from scipy.special import ndtri

        return np.asarray(latent < ndtri(shares), dtype=np.float64)
    return shares + 0.3 * latent
