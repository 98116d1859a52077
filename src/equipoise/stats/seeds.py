"""Several seeds of the same system: how far the figure moves when nothing but luck changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt

import numpy as np

from equipoise.errors import ParameterError
from equipoise.stats.interval import Bounds, Interval, t_interval
from equipoise.stats.result import Result


@dataclass(frozen=True, slots=True)
class SeedSummary:
    """The mean over seeds, the sample standard deviation, and Student's interval of the mean.

    ``values`` holds one figure a seed as given; those that are NaN are counted in ``undefined`` and take
    part in nothing else. One seed has no spread: ``deviation`` is NaN and the interval unknown.
    """

    values: tuple[float, ...]
    mean: float
    deviation: float
    interval: Interval
    undefined: int = 0

    @property
    def seeds(self) -> int:
        """How many seeds gave a figure."""
        return len(self.values) - self.undefined

    def __str__(self) -> str:
        """``0.5 ± 0.02 (3 seeds)``; without a spread the reason stands in its place."""
        if isnan(self.mean):
            return f"n/a ({self.interval.reason})"
        if isnan(self.deviation):
            return f"{self.mean:.4g} (one seed)"
        return f"{self.mean:.4g} ± {self.deviation:.2g} ({self.seeds} seeds)"


def summarise_seeds(
    values: Sequence[float], *, level: float = 0.95, bounds: Bounds = (-np.inf, np.inf)
) -> SeedSummary:
    """Summarise the figures of one metric, one a seed.

    The interval speaks of seeds only: it says where the mean over all seeds lies on these units, not what
    other units would give.

    >>> print(summarise_seeds([0.50, 0.52, 0.54]))
    0.52 ± 0.02 (3 seeds)
    >>> print(summarise_seeds([0.50]))
    0.5 (one seed)
    """
    given = tuple(float(value) for value in values)
    defined = np.array([value for value in given if not isnan(value)])
    undefined = len(given) - len(defined)
    if len(defined) == 0:
        return SeedSummary(given, nan, nan, Interval.unknown("no defined seed", level=level), undefined)
    mean = float(defined.mean())
    if len(defined) == 1:
        return SeedSummary(given, mean, nan, Interval.unknown("one seed", level=level), undefined)
    if np.ptp(defined) == 0.0:
        same = Interval.unknown("all seeds have the same value", level=level)
        return SeedSummary(given, mean, 0.0, same, undefined)
    deviation = float(defined.std(ddof=1))
    interval = t_interval(mean, deviation / sqrt(len(defined)), len(defined) - 1, level)
    return SeedSummary(given, mean, deviation, interval.clipped(bounds), undefined)


def summarise_replicates(results: Sequence[Result], *, level: float = 0.95) -> dict[str, SeedSummary]:
    """One summary a metric over results that differ in their seed alone."""
    if not results:
        raise ParameterError("no results were given to summarise", hint="give one result a seed")
    names = results[0].names
    for result in results[1:]:
        if set(result.names) != set(names):
            odd = sorted(set(result.names) ^ set(names))
            raise ParameterError(
                f"{result.system} and {results[0].system} were not measured alike: {', '.join(odd)}",
                hint="measure every seed with the same metrics",
            )
    return {name: summarise_seeds([result[name].value for result in results], level=level) for name in names}
