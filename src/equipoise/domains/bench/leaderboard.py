"""Statistics of a leaderboard: which models could rank first, which ranks are separated, what the order depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import join_names, pluralize, run_checks
from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.bench.leaderboard_readers import Source, read_scores
from equipoise.errors import InputError, ParameterError, did_you_mean
from equipoise.io.json import parse_json
from equipoise.io.text import open_text
from equipoise.runs.experiment_folder import RESULTS, ExperimentFolder
from equipoise.stats.aggregate_ranks import (
    AGGREGATES,
    AdjacentPair,
    AggregateScores,
    OrderChange,
    Resample,
    adjacent_pairs,
    aggregate_scores,
    first_places,
    leave_one_out,
    median_ranks,
    order_change,
)
from equipoise.stats.formatting import format_percent
from equipoise.stats.intervals import Interval
from equipoise.stats.power import PowerEstimate, units_needed
from equipoise.types import Finding, require_extra

if TYPE_CHECKING:
    from pandas import DataFrame

    from equipoise.domains.bench.score_table import MissingPolicy, ScoreTable
    from equipoise.io.text import PathLike
    from equipoise.types import Floats

PAGE = "report.html"
N_STEPS = 2
"""Reading and resampling, as ``progress`` counts them."""


@dataclass(frozen=True, slots=True)
class LeaderboardEntry:
    """One model of a leaderboard.

    Attributes
    ----------
    model
        The name of the model.
    rank
        The position in the order of the aggregate.
    rank_low
        The lower end of the rank interval.
    rank_high
        The upper end of the rank interval.
    mean
        The mean score over the data sets; NaN if the scales differ.
    interval
        The interval of the mean; unknown if the scales differ.
    borda
        The Borda count: for every data set the number of models that this one beats. Ties count one half.
    zscore
        The mean over the data sets of the standardised score.
    median_rank
        The median over the data sets of the rank.
    first_places
        The number of data sets on which no model is better.
    """

    model: str
    rank: int
    rank_low: int
    rank_high: int
    mean: float
    interval: Interval
    borda: float
    zscore: float
    median_rank: float
    first_places: int


@dataclass(frozen=True)
class LeaderboardAnalysis:
    """The order of the models in a table of models and data sets, with its uncertainty.

    ``source`` is the table as it was read, ``table`` the complete part of it that the statistics use.
    """

    source: ScoreTable = field(repr=False)
    table: ScoreTable = field(repr=False)
    aggregate: str
    resample: Resample
    scores: Mapping[str, AggregateScores] = field(repr=False)
    adjacent: tuple[AdjacentPair, ...] = field(repr=False)
    by_aggregate: Mapping[str, OrderChange] = field(repr=False)
    without_dataset: tuple[OrderChange, ...] = field(repr=False)
    findings: tuple[Finding, ...]
    config: StatsConfig

    @property
    def primary(self) -> AggregateScores:
        """The scores that order the models."""
        return self.scores[self.aggregate]

    @cached_property
    def entries(self) -> tuple[LeaderboardEntry, ...]:
        """The models from best to worst."""
        rows = self.table.oriented.T
        ranks = self.primary.rank_intervals
        means, intervals = self._means()
        medians, firsts = median_ranks(rows), first_places(rows)
        borda = self.scores["borda"].by_dataset.sum(axis=0)
        return tuple(
            LeaderboardEntry(
                model=self.table.models[model],
                rank=position,
                rank_low=int(ranks[model, 0]),
                rank_high=int(ranks[model, 1]),
                mean=means[model],
                interval=intervals[model],
                borda=float(borda[model]),
                zscore=float(self.scores["zscore"].points[model]),
                median_rank=float(medians[model]),
                first_places=int(firsts[model]),
            )
            for position, model in enumerate(self.primary.order.tolist(), start=1)
        )

    def _means(self) -> tuple[list[float], list[Interval]]:
        """The mean scores as the table has them, also where lower is better; unknown if the scales differ."""
        bounds = self.table.bounds
        intervals = self.scores["mean"].intervals()
        if not self.table.is_comparable and self.aggregate != "mean":
            reason = "different scales"
            return [float("nan")] * len(intervals), [Interval.unknown(reason) for _ in intervals]
        points = self.scores["mean"].points
        if self.table.lower >= set(self.table.datasets):
            points, intervals = -points, [interval.mirrored() for interval in intervals]
        return points.tolist(), [interval.clipped(bounds) for interval in intervals]

    @property
    def tied_for_first(self) -> tuple[str, ...]:
        """The models whose rank interval includes 1, best first."""
        return tuple(entry.model for entry in self.entries if entry.rank_low == 1)

    @property
    def separated(self) -> tuple[AdjacentPair, ...]:
        """The adjacent ranks with a significant difference."""
        return tuple(pair for pair in self.adjacent if pair.p_adjusted < self.config.alpha)

    def verdict(self) -> str:
        """Whether the data sets show which model is best.

        >>> scores = {"a": {"x": 1.0, "y": 2.0, "z": 3.0}, "b": {"x": 2.0, "y": 1.0, "z": 3.5}}
        >>> print(leaderboard(scores).verdict())
        Inconclusive: both models could rank first on 3 data sets at 95 % confidence.
        """
        tied, n_models = self.tied_for_first, len(self.table.models)
        level = f"at {format_percent(self.config.confidence_level)} confidence"
        if len(tied) == 1:
            others = "the other model cannot" if n_models == 2 else "no other model can"
            return f"{tied[0]} is the best of {n_models} models on {self._sample}: {others} be first {level}."
        if len(tied) == n_models:
            models = "both models" if n_models == 2 else f"all {n_models} models"
            return f"Inconclusive: {models} could rank first on {self._sample} {level}."
        models = f"{len(tied)} of {n_models} models"
        return f"Inconclusive: {models} could rank first on {self._sample} {level} ({join_names(tied)})."

    @property
    def _sample(self) -> str:
        n_used, n_all = len(self.table.datasets), len(self.source.datasets)
        if n_used < n_all:
            return f"{n_used} of {n_all} data sets"
        if n_used == 1:
            return self.table.datasets[0]
        return f"{'these ' if self.resample == 'units' else ''}{n_used} data sets"

    @property
    def datasets_needed(self) -> PowerEstimate | None:
        """The data sets that would show the first model to be better than the next one that could be first.

        None if one model is first, or if data sets are not resampled.
        """
        if len(self.tied_for_first) < 2 or self.resample == "units":
            return None
        first, second = (self.table.models.index(model) for model in self.tied_for_first[:2])
        differences = self.primary.by_dataset[:, first] - self.primary.by_dataset[:, second]
        if len(differences) < 2:
            return None
        # The first model is compared with all others at once.
        level = 1.0 - self.config.alpha / (len(self.table.models) - 1)
        return units_needed(float(differences.mean()), float(differences.std(ddof=1)), confidence_level=level)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        models, datasets = self.table.models, self.table.datasets
        sizes = self.table.denominators()
        return {
            "source": self.table.name,
            "verdict": self.verdict(),
            "aggregate": self.aggregate,
            "resample": self.resample,
            "confidence_level": self.config.confidence_level,
            "n_resamples": self.config.n_resamples,
            "seed": self.config.seed,
            "test": self.config.test,
            "correction": self.config.correction,
            "leaderboard": [_entry_dict(entry) for entry in self.entries],
            "tied_for_first": list(self.tied_for_first),
            "adjacent": [
                {
                    "better": models[pair.better],
                    "worse": models[pair.worse],
                    "difference": pair.difference,
                    "p": pair.p,
                    "p_adjusted": pair.p_adjusted,
                    "separated": pair in self.separated,
                }
                for pair in self.adjacent
            ],
            "order_by_aggregate": {name: self._change_dict(change) for name, change in self.by_aggregate.items()},
            "order_without_dataset": {
                name: self._change_dict(change) for name, change in zip(datasets, self.without_dataset, strict=False)
            },
            "datasets": [
                {
                    "name": name,
                    "better": "down" if name in self.table.lower else "up",
                    "scale": self.table.scales[name],
                    "n_units": self.table.n_units.get(name),
                    "possible_n_units": list(sizes[name][:20]) if name in sizes else None,
                    "scores": dict(zip(models, self.table.scores[:, column].tolist(), strict=True)),
                }
                for column, name in enumerate(datasets)
            ],
            "missing_cells": [
                {"model": self.source.models[row], "dataset": self.source.datasets[column]}
                for row, column in zip(*self.source.missing.nonzero(), strict=True)
            ],
            "notes": list(self.table.notes),
            "findings": [
                {"code": f.code, "severity": str(f.severity), "message": f.message, "hint": f.hint}
                for f in self.findings
            ],
        }

    def _change_dict(self, change: OrderChange) -> dict[str, Any]:
        models = self.table.models
        largest_move = {"model": models[change.moved], "rank": change.rank, "new_rank": change.new_rank}
        return {"kendall_tau": change.tau, "first": models[change.first], "largest_move": largest_move}

    def to_frame(self) -> DataFrame:
        """One row per model, best first, as a pandas data frame."""
        pandas = require_extra("pandas", extra="accounts")
        frame: DataFrame = pandas.DataFrame(map(_entry_dict, self.entries)).set_index("model")
        return frame

    def report(self, path: PathLike) -> None:
        """Write a self-contained HTML page with the tables and the chart of rank intervals."""
        from equipoise.domains.bench.leaderboard_report import leaderboard_view, rank_chart
        from equipoise.io.atomic import write_text
        from equipoise.report.html.render import render_views
        from equipoise.report.view import Section

        view = leaderboard_view(self)
        chart = Section("Rank intervals", charts=(rank_chart(self),))
        write_text(path, render_views(view.title, [replace(view, sections=(chart, *view.sections))]))

    def write(self, folder: PathLike) -> tuple[Path, Path]:
        """Write ``results.json`` and ``report.html`` into a folder, and return their paths."""
        results = ExperimentFolder(Path(folder)).write_results(self.to_dict())
        page = Path(folder) / PAGE
        self.report(page)
        return results, page

    def __str__(self) -> str:
        from equipoise.domains.bench.leaderboard_report import leaderboard_view
        from equipoise.report.terminal import render_text

        return render_text(*leaderboard_view(self).parts())


def stored_page(folder: PathLike) -> Path | None:
    """The page that ``LeaderboardAnalysis.write`` wrote into a folder; None for any other folder."""
    page, results = Path(folder) / PAGE, Path(folder) / RESULTS
    if not (page.is_file() and results.is_file()):
        return None
    content: Any = parse_json(open_text(results))
    return page if isinstance(content, dict) and {"leaderboard", "tied_for_first"} <= set(content) else None


def leaderboard(
    table: Source,
    *,
    models: Sequence[str] = (),
    datasets: Sequence[str] = (),
    lower: Sequence[str] = (),
    accuracy: bool = False,
    missing: MissingPolicy | None = None,
    aggregate: str | None = None,
    resample: Resample | None = None,
    models_in: str | None = None,
    metric: str | None = None,
    split: str | None = None,
    subsets: Sequence[str] = (),
    config: StatsConfig = DEFAULT_STATS,
    progress: Callable[[str], None] = lambda message: None,
) -> LeaderboardAnalysis:
    """Rank the models of a published table, with the uncertainty of every rank.

    Parameters
    ----------
    table
        A file (CSV, TSV, Markdown, LaTeX, JSON, parquet) with models and data sets, a long table of model, data
        set, unit and score, a folder of MTEB results, a folder of run directories, a data frame, or
        ``{model: {data set: score}}``.
    models
        Only these models; all by default.
    datasets
        Only these data sets; all by default. Columns that are summaries, such as "Average", must be named.
    lower
        Data sets on which a lower score is better.
    accuracy
        Whether all scores are shares of correctly answered units. Their number is then recovered from the digits.
    missing
        What to do with missing cells: ``datasets`` keeps the data sets that all models share, ``models`` keeps the
        complete models, ``error`` raises an error. The default is ``models`` for run directories, otherwise
        ``datasets``. Nothing is imputed.
    aggregate
        ``mean``, ``borda`` or ``zscore``. By default the mean, or Borda if the data sets have different scales.
    resample
        ``datasets``: would the order hold on other data sets? ``units``: would it hold on other units of these
        data sets? ``both``: data sets, and units within them. By default ``both`` if there are units, and
        ``units`` on a single data set.
    models_in
        ``rows`` or ``columns`` of a wide table; by default the header decides.
    metric
        The metric to read if there are several.
    split
        The split of MTEB results.
    subsets
        The subsets (languages) of MTEB results.
    config
        Confidence level, resamples, seed, paired test and correction.
    progress
        Called with a description at the start of each of the ``N_STEPS`` steps.

    Returns
    -------
    LeaderboardAnalysis
        With ``entries``, ``verdict()``, ``to_frame()``, ``to_dict()`` and ``report(path)``.

    Examples
    --------
    >>> scores = {"a": {"x": 71.0, "y": 60.1}, "b": {"x": 69.0, "y": 60.3}}
    >>> [entry.model for entry in leaderboard(scores).entries]
    ['a', 'b']
    """
    progress("reading the scores")
    source = read_scores(
        table, datasets=datasets, models_in=models_in, metric=metric, split=split, subsets=subsets
    ).select(models, datasets)
    source = source.with_lower(lower)
    if accuracy:
        source = replace(source, accuracy=frozenset(source.datasets))
    if len(source.models) < 2:
        raise InputError(
            f"{source.name} has {pluralize(len(source.models), 'model')}; an order needs two",
            hint="add a model, or use --models-in columns if each column is a model",
        )
    complete = source.complete(missing)
    chosen = _aggregate(aggregate, complete)
    units = complete.oriented_units
    mode: Resample = resample or _default_resample(units, chosen)
    if mode == "units" and chosen != "mean":
        raise ParameterError(
            f"resample='units' tests differences of means, and the aggregate is {chosen}",
            hint="use --aggregate mean, or resample both",
        )
    progress("resampling")
    rows = complete.oriented.T
    low, high = complete.bounds
    bounds = (-high, -low) if complete.lower >= set(complete.datasets) else (low, high)
    scores = aggregate_scores(rows, units, mode, config, bounds=bounds)
    primary = scores[chosen]
    return LeaderboardAnalysis(
        source=source,
        table=complete,
        aggregate=chosen,
        resample=mode,
        scores=scores,
        adjacent=adjacent_pairs(primary, units, mode, config),
        by_aggregate={
            name: order_change(primary.points, other.points) for name, other in scores.items() if name != chosen
        },
        without_dataset=leave_one_out(primary, rows, chosen),
        findings=_findings(source, complete, mode),
        config=config,
    )


def _default_resample(units: Sequence[Floats] | None, aggregate: str) -> Resample:
    """The default resampling; a single data set cannot be resampled."""
    if units is None:
        return "datasets"
    return "units" if len(units) == 1 and aggregate == "mean" else "both"


def _findings(source: ScoreTable, complete: ScoreTable, mode: Resample) -> tuple[Finding, ...]:
    """The findings about the table as read, and about the complete part of it."""
    from equipoise.domains.bench.score_table import FEW_DATASETS_CODE

    # The number of data sets that are used decides what can be separated.
    findings = [finding for finding in run_checks(source) if finding.code != FEW_DATASETS_CODE]
    codes = {finding.code for finding in findings}
    if mode == "units":  # the test is over units
        codes.add(FEW_DATASETS_CODE)
    return (*findings, *(finding for finding in run_checks(complete) if finding.code not in codes))


def _aggregate(name: str | None, table: ScoreTable) -> str:
    """The aggregate that orders the models; by default the mean where it is meaningful."""
    if name is None:
        return "mean" if table.is_comparable else "borda"
    if name not in AGGREGATES:
        hint = did_you_mean(name, AGGREGATES) or f"choose {', '.join(AGGREGATES)}"
        raise ParameterError(f"aggregate={name!r} is not known", hint=hint)
    return name


def _entry_dict(entry: LeaderboardEntry) -> dict[str, Any]:
    return {
        "model": entry.model,
        "rank": entry.rank,
        "rank_low": entry.rank_low,
        "rank_high": entry.rank_high,
        "mean": entry.mean,
        "mean_low": entry.interval.low,
        "mean_high": entry.interval.high,
        "borda": entry.borda,
        "zscore": entry.zscore,
        "median_rank": entry.median_rank,
        "first_places": entry.first_places,
    }
