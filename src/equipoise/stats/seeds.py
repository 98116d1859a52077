"""Several seeds of the same system: the variability of the score across random seeds; mean and spread of numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import CONFIDENCE_LEVEL, DEFAULT_STATS, StatsConfig
from equipoise.errors import PairingError
from equipoise.stats.bootstrap_mean import mean_intervals
from equipoise.stats.intervals import Bounds, Interval, t_interval
from equipoise.stats.paired_tests import paired_t_test, sign_flip_test
from equipoise.types import nan_equal

if TYPE_CHECKING:
    from equipoise.types import Floats


@nan_equal
@dataclass(frozen=True, slots=True)
class SeedSummary:
    """The mean over seeds, the sample standard deviation, and Student's interval of the mean.

    ``values`` holds one score per seed as given; those that are NaN are counted in ``undefined`` and take
    part in nothing else. One seed has no spread: ``deviation`` is NaN and the interval unknown.
    """

    values: tuple[float, ...]
    mean: float
    deviation: float
    interval: Interval
    undefined: int = 0

    @property
    def seeds(self) -> int:
        """The number of seeds with a score."""
        return len(self.values) - self.undefined

    def __str__(self) -> str:
        """``0.5 ± 0.02 (3 seeds)``; without a standard deviation, the reason is shown instead."""
        if isnan(self.mean):
            return f"n/a ({self.interval.reason})"
        if isnan(self.deviation):
            return f"{self.mean:.4g} (one seed)"
        return f"{self.mean:.4g} ± {self.deviation:.2g} ({self.seeds} seeds)"


def summarise_seeds(
    values: Sequence[float], *, confidence_level: float = CONFIDENCE_LEVEL, bounds: Bounds = (-np.inf, np.inf)
) -> SeedSummary:
    """Summarise the scores of one metric, one per seed.

    The interval describes seeds only: it is for the mean over all seeds on these units, not for
    other units.

    >>> print(summarise_seeds([0.50, 0.52, 0.54]))
    0.52 ± 0.02 (3 seeds)
    >>> print(summarise_seeds([0.50]))
    0.5 (one seed)
    """
    scores = tuple(float(value) for value in values)
    defined = np.array([value for value in scores if not isnan(value)])
    undefined = len(scores) - len(defined)
    mean = float(defined.mean()) if len(defined) else nan
    deviation = float(defined.std(ddof=1)) if len(defined) > 1 else nan
    reason = {0: "no defined seed", 1: "one seed"}.get(len(defined), "")
    if not reason and np.ptp(defined) == 0.0:
        reason, deviation = "all seeds have the same value", 0.0
    if reason:
        unknown = Interval.unknown(reason, confidence_level=confidence_level)
        return SeedSummary(scores, mean, deviation, unknown, undefined)
    interval = t_interval(mean, deviation / sqrt(len(defined)), len(defined) - 1, confidence_level)
    return SeedSummary(scores, mean, deviation, interval.clipped(bounds), undefined)


@nan_equal
@dataclass(frozen=True, slots=True)
class SeedContrast:
    """Two systems run with the same seeds: ``a`` minus ``b``, seed by seed.

    ``p`` is Student's paired t and ``p_permutation`` the sign-flip test, which is exact for few seeds but cannot
    fall below 2 / 2**seeds. Both are NaN if there is no test, for the reason in ``reason``.
    """

    differences: SeedSummary
    p: float
    p_permutation: float
    reason: str = ""

    @property
    def difference(self) -> float:
        """The mean difference over the seeds on which both are defined."""
        return self.differences.mean

    @property
    def interval(self) -> Interval:
        """Student's interval of the mean difference."""
        return self.differences.interval

    @property
    def seeds(self) -> int:
        """The number of seeds with a difference."""
        return self.differences.seeds

    def __str__(self) -> str:
        """``0.01 ± 0.002 (4 seeds), paired t p 0.002``; the reason if there is no test."""
        verdict = self.reason if isnan(self.p) else f"paired t p {self.p:.2g}"
        return str(self.differences) if self.seeds < 2 else f"{self.differences}, {verdict}"


def compare_seeds(
    a: Mapping[Hashable, float],
    b: Mapping[Hashable, float],
    *,
    bounds: Bounds = (-np.inf, np.inf),
    config: StatsConfig = DEFAULT_STATS,
) -> SeedContrast:
    """Test two systems across the seeds that both were run with; the scores are keyed by seed.

    The seeds must be the same on both sides, since the test is paired. It concerns seeds, not units: a
    small p means that other seeds would give the same order on these units. ``bounds`` are the metric's.

    >>> contrast = compare_seeds({1: 0.52, 2: 0.54, 3: 0.53}, {1: 0.50, 2: 0.51, 3: 0.51})
    >>> print(contrast, contrast.p_permutation)
    0.02333 ± 0.0058 (3 seeds), paired t p 0.02 0.25
    """
    if set(a) != set(b):
        unpaired = sorted(map(str, set(a) ^ set(b)))
        raise PairingError(
            f"the two systems were not run with the same seeds: {', '.join(unpaired)}",
            hint="run both with every seed",
        )
    values = np.array([float(a[seed]) - float(b[seed]) for seed in a])
    width = bounds[1] - bounds[0]
    summary = summarise_seeds(values.tolist(), confidence_level=config.confidence_level, bounds=(-width, width))
    if summary.seeds < 2:
        return SeedContrast(summary, nan, nan, summary.interval.reason)
    p = float(paired_t_test(values)[0])
    reason = "all differences are equal" if isnan(p) else ""
    rng = np.random.default_rng(config.seed)
    p_permutation = float(sign_flip_test(values, n_permutations=config.n_permutations, rng=rng)[0])
    return SeedContrast(summary, p, p_permutation, reason)


# Plain description of some numbers: mean and standard deviation, with intervals.


@dataclass(frozen=True, slots=True)
class MeanAndDeviation:
    """The distribution of some numbers, without a direction that is better.

    ``sd`` divides by n - 1 and is NaN for a single number.
    """

    n: int
    mean: float
    sd: float
    least: float
    most: float
    interval: Interval

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; what is not known is None."""
        numbers = {"mean": self.mean, "sd": self.sd, "least": self.least, "most": self.most}
        numbers |= {"low": self.interval.low, "high": self.interval.high}
        return {"n": self.n} | {name: None if np.isnan(value) else float(value) for name, value in numbers.items()}


def mean_and_deviation(
    values: Floats, *, clusters: Any = None, config: StatsConfig = DEFAULT_STATS
) -> MeanAndDeviation:
    """Mean with an interval, standard deviation and range; clusters are resampled.

    >>> summary = mean_and_deviation(np.array([1.0, 2.0, 3.0]))
    >>> summary.mean, summary.sd, summary.n
    (2.0, 1.0, 3)
    """
    if not len(values):
        nan = float("nan")
        return MeanAndDeviation(
            0, nan, nan, nan, nan, Interval.unknown("no defined value", confidence_level=config.confidence_level)
        )
    interval = mean_intervals(
        values[:, None],
        clusters=clusters,
        config=config,
        rng=np.random.default_rng(config.seed),
    )[0]
    return MeanAndDeviation(
        n=len(values),
        mean=float(values.mean()),
        sd=float(values.std(ddof=1)) if len(values) > 1 else float("nan"),
        least=float(values.min()),
        most=float(values.max()),
        interval=interval,
    )
