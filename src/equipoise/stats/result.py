"""A result: per-unit values of one system, and its estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isnan
from typing import TYPE_CHECKING, Any

from equipoise.errors import UnknownNameError
from equipoise.io.tables import rows_to_frame
from equipoise.types import json_value, nan_equal

if TYPE_CHECKING:
    from equipoise.evidence.base import Evidence
    from equipoise.stats.intervals import Interval
    from equipoise.types import Direction, Finding, Floats, Ids

# Keys in the settings of a result: how it was measured.

DATA = "data"
"""What was measured on: the SHA-256 of each part, by its name."""

MATCHER = "matcher"
"""The rule by which a unit counts as right."""

TRIALS = "configurations"
"""The number of configurations that were tried."""

GRID = "grid"
"""The values over which each parameter was tuned."""

BUDGET = "budget"
"""The maximum cost of a configuration that can be selected; None without a limit."""

SPENT = "retrieved_tokens"
"""The cost per unit of the selected configuration."""

FOLDS = "folds"
"""The number of folds of the nested cross-validation; 1 means none."""

TOKENIZER = "tokenizer"
"""The tokenizer of sizes, costs and budgets."""

SPEC = "model"
"""The spec of the model that was measured."""

WINDOW = "window"
"""The window of the model in tokens, the number of texts, and the number of truncated ones."""

NOTES = "notes"
"""What to know about how the measurement was made, in sentences."""


@nan_equal
@dataclass(frozen=True, slots=True)
class Estimate:
    """One score: value, interval, number of units and chance level.

    Attributes
    ----------
    metric
        The name of the metric.
    value
        The score.
    interval
        The confidence interval, or the reason why there is none.
    n
        Number of units with a defined value.
    undefined
        Number of units without one.
    chance
        The expected score of a random baseline; NaN if unknown.
    better
        Whether higher or lower values are better.
    unit
        The unit of the value, such as ``fraction``.
    """

    metric: str
    value: float
    interval: Interval
    n: int
    undefined: int
    chance: float
    better: Direction
    unit: str = "fraction"

    def __str__(self) -> str:
        return f"{self.metric} {_format(self.value)} [{_ends(self.interval)}]"

    def to_dict(self) -> dict[str, Any]:
        """Plain values with their unit; unknown values are None, with a reason.

        >>> from equipoise.stats.intervals import Interval
        >>> from equipoise.types import Direction
        >>> estimate = Estimate("MRR", 0.5, Interval.unknown("one unit"), 1, 0, float("nan"), Direction.UP)
        >>> estimate.to_dict()["interval"]["reason"], estimate.to_dict()["chance"]
        ('one unit', None)
        """
        bounds = self.interval
        interval = {"low": _plain(bounds.low), "high": _plain(bounds.high)}
        report: dict[str, Any] = {
            "metric": self.metric,
            "unit": self.unit,
            "better": str(self.better),
            "value": _plain(self.value),
            "interval": interval
            | {"unit": self.unit, "confidence_level": bounds.confidence_level, "method": bounds.method},
            "n": self.n,
            "undefined": self.undefined,
            "chance": _plain(self.chance),
        }
        if not bounds.known:
            report["interval"]["reason"] = bounds.reason
        if isnan(self.value):
            report["reason"] = bounds.reason or "undefined on this evidence"
        if isnan(self.chance):
            report["chance_reason"] = "not computed, or undefined on shuffled evidence"
        return report

    def row(self) -> dict[str, Any]:
        """The score as one row of a table; unknown values are None."""
        return {
            "metric": self.metric,
            "value": _plain(self.value),
            "low": _plain(self.interval.low),
            "high": _plain(self.interval.high),
            "n": self.n,
            "undefined": self.undefined,
            "chance": _plain(self.chance),
        }


@dataclass(frozen=True)
class Result:
    """The scores of one system: per-unit values, and estimates with intervals.

    ``result["nDCG@10"]`` is the estimate of a metric, under any of its aliases.

    Attributes
    ----------
    system
        The name of the system.
    unit_ids
        Ids of the units.
    estimates
        One ``Estimate`` per metric name.
    per_unit
        Per-unit values by metric name; a corpus-level metric has none.
    weights
        Weights of the units by metric name, if they are not equal.
    clusters
        The cluster of each unit, if units depend on each other.
    evidence
        The evidence before ties are ordered.
    findings
        Results of the checks.
    settings
        The options that were used.
    errors
        Bootstrap errors of scores whose units depend on each other, by metric name.
    """

    system: str
    unit_ids: Ids
    estimates: Mapping[str, Estimate]
    per_unit: Mapping[str, Floats]
    weights: Mapping[str, Floats] = field(default_factory=dict)
    clusters: Ids | None = None
    evidence: Evidence | None = field(default=None, repr=False)
    findings: tuple[Finding, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, Floats] = field(default_factory=dict, repr=False)

    def __getitem__(self, metric: str) -> Estimate:
        """The estimate of a metric, under any of its names: ``result["Acc@1"]`` is ``result["HR@1"]``."""
        requested = metric
        if metric not in self.estimates:
            from equipoise.metrics.parser import find_metric

            known = find_metric(metric, self.evidence)
            metric = metric if known is None else known.name
        if metric not in self.estimates:
            shown = self.settings.get("display", {}).get("percent", {})
            names = [shown.get(name, name) for name in self.names]
            raise UnknownNameError.of("metric of this result", requested, names, more=f"it has {', '.join(names)}")
        return self.estimates[metric]

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics, in the requested order."""
        return tuple(self.estimates)

    @property
    def n_clusters(self) -> int | None:
        """The number of clusters of units; None if the units are independent."""
        return None if self.clusters is None else len(set(self.clusters.tolist()))

    def __repr__(self) -> str:
        scores = ", ".join(str(estimate) for estimate in self.estimates.values())
        status = f" ({self.settings['status']} run)" if "status" in self.settings else ""
        from equipoise.stats.verdict import Vocabulary

        units = Vocabulary.nouns([self]).units(len(self.unit_ids))
        return f"<Result {self.system}{status}: {units}; {scores or 'no metrics'}>"

    def _repr_html_(self) -> str:
        """A small table for notebooks, and the findings below it."""
        from equipoise.report.tables import result_html

        return result_html(self)

    def renamed(self, system: str) -> Result:
        """The result under another name of its system, in its findings too."""
        findings = tuple(
            replace(finding, subject=system) if finding.subject == self.system else finding for finding in self.findings
        )
        return replace(self, system=system, findings=findings)

    def to_frame(self, library: str = "pandas", *, per_unit: bool = False) -> Any:
        """A data frame with one row per metric, or one row per unit and one column per metric.

        Parameters
        ----------
        library
            ``pandas``, ``polars`` or ``pyarrow``.
        per_unit
            Whether the rows are units. Metrics without per-unit values are left out.

        Examples
        --------
        >>> from equipoise import Ranking, evaluate
        >>> evaluate(Ranking.from_ranks([1, 2], candidates=9), "MRR").to_frame()["value"].tolist()
        [0.75]
        """
        if not per_unit:
            rows = [{"system": self.system, **estimate.row()} for estimate in self.estimates.values()]
            return rows_to_frame(rows, library)
        values = {metric: list(map(_plain, column.tolist())) for metric, column in self.per_unit.items()}
        columns = {"unit": self.unit_ids.tolist(), **values}
        return rows_to_frame(
            [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)], library
        )

    def to_markdown(self) -> str:
        """A Markdown table with its caption."""
        from equipoise.report.export.paper_table import PaperTable, markdown_table

        return markdown_table(PaperTable.of_result(self))

    def to_latex(self) -> str:
        """A LaTeX table (booktabs) with its caption."""
        from equipoise.report.export.paper_table import PaperTable, latex_table

        return latex_table(PaperTable.of_result(self))

    def to_dict(self, *, flat: bool = False) -> dict[str, Any]:
        """The result without its per-unit table, ready for JSON: no NaN, every value with its unit.

        With ``flat``, one level of numbers for experiment trackers: ``nDCG@10``, ``nDCG@10_low``, ``nDCG@10_high``
        and ``units``; unknown numbers are left out.
        """
        if flat:
            scores = (item for estimate in self.estimates.values() for item in flat_scores(estimate).items())
            return {**dict(scores), "units": len(self.unit_ids)}
        return {
            "system": self.system,
            "units": len(self.unit_ids),
            "clusters": self.n_clusters,
            "estimates": [estimate.to_dict() for estimate in self.estimates.values()],
            "findings": json_value(self.findings),
            "settings": dict(self.settings),
        }


def flat_scores(estimate: Estimate, prefix: str = "") -> dict[str, float]:
    """The value of a score and the ends of its interval, by name; unknown numbers are left out."""
    name = f"{prefix}{estimate.metric}"
    numbers = {name: estimate.value, f"{name}_low": estimate.interval.low, f"{name}_high": estimate.interval.high}
    return {key: float(number) for key, number in numbers.items() if not isnan(number)}


def _ends(interval: Interval) -> str:
    if not interval.known:
        return f"n/a ({interval.reason})"
    return f"{_format(interval.low)} to {_format(interval.high)}"


def _format(value: float) -> str:
    return "n/a" if isnan(value) else f"{value:.4g}"


def _plain(value: float) -> float | None:
    return None if isnan(value) else float(value)
