"""What was measured of an index, and the figures that follow: recall, latency percentiles, throughput."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan
from typing import Any

from equipoise.stats.interval import Interval
from equipoise.stats.quantiles import quantile, quantile_interval
from equipoise.stats.result import Estimate, Result
from equipoise.stats.tabled import result_of_values
from equipoise.types import Direction, Floats

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class IndexQuality:
    """What was measured: recall and seconds a query, and the seconds of everything else.

    ``stopped`` says why there are fewer queries than were asked for; ``batch_seconds`` is then NaN.
    """

    k: int
    vectors: int
    recall: Floats
    seconds: Floats
    fill_seconds: float
    build_seconds: float
    batch_seconds: float
    exact_seconds: float
    stopped: str = ""

    @property
    def throughput(self) -> float:
        """Queries a second when they come in batches."""
        return len(self.seconds) / self.batch_seconds if self.batch_seconds else nan

    def result(self, system: str, *, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> Result:
        """The figures with their intervals; a unit is a query."""
        shared: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
        units = [str(number) for number in range(len(self.recall))]
        name, waited = f"IndexRecall@{self.k}", 1000.0 * self.seconds
        luck = min(self.k, self.vectors) / self.vectors
        found = result_of_values(system, units, {name: self.recall}, chance={name: luck}, **shared)
        slow = result_of_values(
            system,
            units,
            {"Latency": waited},
            bounds=(0.0, inf),
            better=Direction.DOWN,
            unit="ms",
            **shared,
        )
        return Result(
            system=system,
            unit_ids=found.unit_ids,
            estimates={**found.estimates, **slow.estimates, **_tail(waited, level), **self._rate(level)},
            per_unit={**found.per_unit, **slow.per_unit},
            settings={**found.settings, "k": self.k, "vectors": self.vectors},
        )

    def _rate(self, level: float) -> dict[str, Estimate]:
        reach = Interval.unknown(self.stopped or "one pass over the queries", level=level)
        made = Estimate(
            "Throughput", self.throughput, reach, len(self.seconds), 0, nan, Direction.UP, "queries a second"
        )
        return {made.metric: made}


def _tail(milliseconds: Floats, level: float) -> dict[str, Estimate]:
    """The percentiles of the latency."""
    found = {}
    for percentile in PERCENTILES:
        name, share = f"Latency(p{percentile})", percentile / 100
        found[name] = Estimate(
            name,
            quantile(milliseconds, share),
            quantile_interval(milliseconds, share, level),
            len(milliseconds),
            0,
            nan,
            Direction.DOWN,
            "ms",
        )
    return found
