"""Plain description of some numbers: mean and standard deviation, with how sure they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.stats.interval import Interval
from equipoise.stats.resample import mean_intervals
from equipoise.types import Floats


@dataclass(frozen=True, slots=True)
class Spread:
    """How some numbers lie: no claim that more or less would be better.

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
        figures = {"mean": self.mean, "sd": self.sd, "least": self.least, "most": self.most}
        figures |= {"low": self.interval.low, "high": self.interval.high}
        return {"n": self.n} | {
            name: None if np.isnan(each) else float(each) for name, each in figures.items()
        }


def spread(
    values: Floats, *, clusters: Any = None, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Spread:
    """Mean with an interval, standard deviation and range; clusters are resampled whole.

    >>> found = spread(np.array([1.0, 2.0, 3.0]))
    >>> found.mean, found.sd, found.n
    (2.0, 1.0, 3)
    """
    if not len(values):
        nan = float("nan")
        return Spread(0, nan, nan, nan, nan, Interval.unknown("no defined unit", level=level))
    interval = mean_intervals(
        values[:, None],
        clusters=clusters,
        level=level,
        resamples=resamples,
        rng=np.random.default_rng(seed),
    )[0]
    return Spread(
        n=len(values),
        mean=float(values.mean()),
        sd=float(values.std(ddof=1)) if len(values) > 1 else float("nan"),
        least=float(values.min()),
        most=float(values.max()),
        interval=interval,
    )
