"""Coverage of rank intervals, by simulation: how often the interval of a system contains its true rank.

The simultaneous tests are conservative: the interval of every system must contain its rank in at least 95 % of the
trials, within three Monte Carlo errors, with at least 10 units. The mean width says what that costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from equipoise.config import StatsConfig
from equipoise.stats.multiple_comparisons import rank_intervals
from equipoise.types import Direction, Floats

LEVEL = 0.95
MIN_UNITS = 10
SYSTEM_SHARES: Mapping[str, Floats] = {
    "two, nearly equal": np.array([0.701, 0.699]),
    "six, nearly equal": np.linspace(0.702, 0.698, 6),
    "six, equal steps": np.linspace(0.9, 0.4, 6),
    "twenty, small steps": np.linspace(0.75, 0.55, 20),
}
"""The true values of the systems, from best to worst: shares of hits, or means of graded values."""
SHARED_VARIANCE = 0.4
"""The fraction of the variance of a unit that all systems share: its difficulty."""
SIZES = (10, 30, 130)


@dataclass(frozen=True, slots=True)
class RankRow:
    """How often rank intervals contain the true rank: the lowest coverage over the systems."""

    systems: str
    values: str
    units: int
    trials: int
    coverage: float
    mean_width: float

    @property
    def kept(self) -> bool:
        """Whether the rank of every system is covered as often as stated, within three Monte Carlo errors."""
        return self.coverage >= LEVEL - 3.0 * sqrt(LEVEL * (1.0 - LEVEL) / self.trials)


def rank_coverage(
    simulations: int,
    rng: np.random.Generator,
    *,
    systems: Sequence[str] = tuple(SYSTEM_SHARES),
    sizes: Sequence[int] = SIZES,
    n_resamples: int = 1000,
) -> list[RankRow]:
    """The coverage for every group of systems, kind of values and number of units."""
    return [
        _row(name, values, size, simulations, n_resamples, rng)
        for name in systems
        for values in ("binary", "graded")
        for size in sizes
    ]


def _row(name: str, values: str, size: int, simulations: int, n_resamples: int, rng: np.random.Generator) -> RankRow:
    shares = SYSTEM_SHARES[name]
    ranks = np.arange(1, len(shares) + 1)
    covered, widths = np.zeros(len(shares)), 0.0
    for _ in range(simulations):
        intervals = rank_intervals(
            _values(shares, values, size, rng),
            better=Direction.UP,
            config=StatsConfig(n_resamples=n_resamples, confidence_level=LEVEL),
            rng=rng,
        )
        covered += (intervals[:, 0] <= ranks) & (ranks <= intervals[:, 1])
        widths += float((intervals[:, 1] - intervals[:, 0] + 1).mean())
    return RankRow(name, values, size, simulations, float(covered.min()) / simulations, widths / simulations)


def _values(shares: Floats, values: str, size: int, rng: np.random.Generator) -> Floats:
    """Values of correlated systems: hits with these probabilities, or graded values with these means."""
    difficulty = sqrt(SHARED_VARIANCE) * rng.standard_normal((size, 1))
    latent = difficulty + sqrt(1.0 - SHARED_VARIANCE) * rng.standard_normal((size, len(shares)))
    if values == "binary":
        from scipy.special import ndtri

        return np.asarray(latent < ndtri(shares), dtype=np.float64)
    return shares + 0.3 * latent
