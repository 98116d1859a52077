"""Systems by metrics, as a table in a paper has them: what LaTeX, Markdown and CSV write down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from equipoise.errors import ParameterError
from equipoise.report.chance import bound_sign, bounded_systems
from equipoise.run.store import StoredRun
from equipoise.stats.comparison import Comparison
from equipoise.stats.numbers import between, figure, shared_decimals, span
from equipoise.stats.result import Estimate
from equipoise.types import Direction

PARTIAL = "*"
"""Stands behind the name of a system whose run is not complete."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure as it is shown; ``letters`` are those of its tie bands on this metric."""

    value: str
    interval: str
    letters: str
    best: bool


@dataclass(frozen=True)
class Sheet:
    """Estimates by system and metric, the systems from best to worst, and what must stand beside them."""

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    estimates: Mapping[str, Mapping[str, Estimate]]
    bands: Mapping[str, Mapping[str, tuple[str, ...]]]
    units: int
    clusters: int | None
    cautions: Mapping[str, str]
    bounded: frozenset[str]
    comparison: Comparison | None = None
    like: str = ""

    @classmethod
    def of(cls, runs: Sequence[StoredRun], comparison: Comparison | None) -> Sheet:
        """The sheet of one run, or of several and their comparison."""
        cautions = {run.result.system: run.caution for run in runs if run.caution}
        if comparison is not None:
            return cls(
                comparison.order,
                comparison.metrics,
                comparison.estimates,
                {metric: comparison.bands_on(metric) for metric in comparison.metrics},
                comparison.n,
                comparison.clusters,
                cautions,
                frozenset(bounded_systems(comparison.findings)),
                comparison,
                scored_like(runs),
            )
        result = only(runs).result
        clusters = None if result.clusters is None else len(set(result.clusters.tolist()))
        bounded = frozenset(bounded_systems(result.findings))
        estimates = {result.system: result.estimates}
        units = len(result.unit_ids)
        return cls(
            *((result.system,), result.names, estimates, {}, units, clusters, cautions, bounded),
            like=scored_like(runs),
        )

    def column(self, metric: str) -> list[Estimate]:
        """What every system scores on a metric, in the order of the systems."""
        return [self.estimates[system][metric] for system in self.systems]

    def cell(self, system: str, metric: str) -> Cell:
        """The figure of a system on a metric."""
        places = self._places(metric)
        estimate = self.estimates[system][metric]
        value = figure(estimate.value, places)
        return Cell(
            value,
            span(estimate.interval, places) if estimate.interval.known else "",
            ",".join(self.letters(system, metric)),
            len(self.systems) > 1 and value == self._best(metric),
        )

    def letters(self, system: str, metric: str) -> tuple[str, ...]:
        """The tie bands of a system on a metric; none where it is not compared with another."""
        return self.bands.get(metric, {}).get(system, ())

    def chance(self, metric: str) -> str:
        """What luck would score: a figure, a range where the systems differ in it, or a bound."""
        known = [each.chance for each in self.column(metric) if not isnan(each.chance)]
        if not known:
            return "n/a"
        better, places = self.better(metric), self._places(metric)
        if self.bounded:
            return f"{bound_sign(better)}{figure(_best_of(known, better), places)}"
        return between(min(known), max(known), places)

    def better(self, metric: str) -> Direction:
        """Which way is better on a metric."""
        return self.column(metric)[0].better

    def _places(self, metric: str) -> int:
        return shared_decimals(each.interval for each in self.column(metric))

    def _best(self, metric: str) -> str:
        """The best figure as it is printed: who prints the same is as good to a reader."""
        known = [each.value for each in self.column(metric) if not isnan(each.value)]
        return figure(_best_of(known, self.better(metric)), self._places(metric)) if known else ""


def scored_like(runs: Sequence[StoredRun]) -> str:
    """The library as which the runs were scored; empty where they were scored as we do."""
    names = dict.fromkeys(str(run.result.settings.get("like") or "") for run in runs)
    return ", ".join(filter(None, names))


def only(runs: Sequence[StoredRun]) -> StoredRun:
    """The one run that is given; several are shown by way of their comparison."""
    if len(runs) != 1:
        raise ParameterError(
            f"{len(runs)} runs were given without their comparison",
            hint="compare them first: compare([run.result for run in runs])",
        )
    return runs[0]


def _best_of(values: Sequence[float], better: Direction) -> float:
    return max(values) if better == Direction.UP else min(values)
