"""Models that were trained several times, with one seed each: what holds over seeds, what over users, and the view."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import join_names, pluralize
from equipoise.config import CONFIDENCE_LEVEL, DEFAULT_STATS, StatsConfig
from equipoise.domains.places.metrics import user_means
from equipoise.domains.places.report import display_metric
from equipoise.errors import PairingError, ParameterError
from equipoise.metrics.parser import parse_metrics
from equipoise.report.answer import Answer
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import Section, View
from equipoise.runs.evaluate import metric_names
from equipoise.stats.comparison import Comparison
from equipoise.stats.estimate import result_from_values
from equipoise.stats.formatting import format_difference, format_p, format_percent, format_value
from equipoise.stats.multiple_comparisons import CORRECTIONS, adjust
from equipoise.stats.pairing import AlignedResults, align_results, compare_results
from equipoise.stats.result import Estimate, Result
from equipoise.stats.seeds import SeedContrast, SeedSummary, compare_seeds, summarise_seeds
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.stats.comparison import Contrast
    from equipoise.stats.intervals import Interval
    from equipoise.types import Floats

SeedResults = Mapping[str, Result]
"""The results of one model by seed."""

DECIMALS = 2
"""Decimals of percent."""


@dataclass(frozen=True)
class SeedScores:
    """One system on one metric: over seeds, and averaged over seeds over units and over users.

    ``pooled`` and ``by_user`` are None for a metric that is no mean over units.
    """

    metric: str
    system: str
    seeds: SeedSummary
    pooled: Estimate | None = None
    by_user: Estimate | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "metric": self.metric,
            "system": self.system,
            "values": list(self.seeds.values),
            "mean": self.seeds.mean,
            "deviation": self.seeds.deviation,
            "seeds": self.seeds.seeds,
            "reason": self.seeds.interval.reason,
            "pooled": None if self.pooled is None else self.pooled.to_dict(),
            "by_user": None if self.by_user is None else self.by_user.to_dict(),
        }


@dataclass(frozen=True)
class SeedDifference:
    """Two systems on one metric, ``a`` minus ``b``; p of seeds are adjusted for the pairs of the metric.

    ``t`` and ``permutation`` are the contrasts over users by the paired t test and by the randomisation test.
    """

    metric: str
    a: str
    b: str
    better: Direction
    seeds: SeedContrast
    p_seeds: float
    p_seed_permutation: float
    t: Contrast | None = None
    permutation: Contrast | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        users = None
        if self.permutation is not None and self.t is not None:
            users = {
                "difference": self.permutation.difference,
                "low": self.permutation.interval.low,
                "high": self.permutation.interval.high,
                "n": self.permutation.n,
                "t_p": self.t.p,
                "t_adjusted_p": self.t.adjusted,
                "permutation_p": self.permutation.p,
                "permutation_adjusted_p": self.permutation.adjusted,
            }
        seeds = {
            "difference": self.seeds.difference,
            "deviation": self.seeds.differences.deviation,
            "low": self.seeds.interval.low,
            "high": self.seeds.interval.high,
            "t_p": self.seeds.p,
            "t_adjusted_p": self.p_seeds,
            "permutation_p": self.seeds.p_permutation,
            "permutation_adjusted_p": self.p_seed_permutation,
            "reason": self.seeds.reason,
        }
        return {"metric": self.metric, "a": self.a, "b": self.b, "seeds": seeds, "users": users}


@dataclass(frozen=True)
class SeedComparison:
    """Models over seeds and over users.

    ``rows`` has each system on each metric, ``pairs`` each pair of systems. The tests over users take each user's
    mean, averaged over seeds, or each unit if the users are unknown (``n_users`` is None). Metrics that are not means
    over units, such as F1, are compared over seeds only.
    """

    rows: tuple[SeedScores, ...]
    pairs: tuple[SeedDifference, ...]
    primary: str
    units: int
    n_users: int | None
    seeds: int
    family: str
    confidence_level: float = CONFIDENCE_LEVEL
    notes: tuple[str, ...] = ()

    @property
    def alpha(self) -> float:
        """The significance level."""
        return round(1 - self.confidence_level, 12)

    @property
    def resampled(self) -> str:
        """What the second tests resample: users, or visits if users are not known."""
        return "visits" if self.n_users is None else "users"

    def pair(self, a: str, b: str, metric: str) -> SeedDifference:
        """System ``a`` against system ``b`` as they were paired, on a metric under any of its names."""
        (name,) = (parsed.name for parsed in parse_metrics(metric))
        for row in self.pairs:
            if (row.metric, row.a, row.b) == (name, a, b):
                return row
        raise ParameterError(
            f"there is no pair {a}, {b} on {metric}",
            hint=f"the first pair is {self.pairs[0].a}, {self.pairs[0].b} on {self.pairs[0].metric}",
        )

    def claims(self) -> list[str]:
        """A sentence for each pair on the primary metric."""
        return [_verdict(pair, self) for pair in self.pairs if pair.metric == self.primary]

    def verdict(self) -> str:
        """The sentences of ``claims``."""
        return " ".join(self.claims())

    def __repr__(self) -> str:
        systems = list(dict.fromkeys(row.system for row in self.rows))
        return f"<SeedComparison of {join_names(systems)}: {self.seeds} seeds, {self.units} units>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values: fractions, with the reason where there is no number."""
        return {
            "unit": "fraction",
            "units": self.units,
            "people": "units" if self.n_users is None else "users",
            "people_count": self.units if self.n_users is None else self.n_users,
            "seeds": self.seeds,
            "primary": self.primary,
            "family": self.family,
            "systems": [row.to_dict() for row in self.rows],
            "pairs": [row.to_dict() for row in self.pairs],
            "verdict": self.verdict(),
            "notes": list(self.notes),
        }

    def view(self) -> View:
        """What the tests show, then the systems, the pairs, and how to read them."""
        seeds = "one seed" if self.seeds == 1 else f"{self.seeds} seeds"
        users = "" if self.n_users is None else f" of {pluralize(self.n_users, 'user')}"
        size = f"{pluralize(self.units, 'visit')}{users}, {seeds} per model (percent)."
        answer = Answer(self.verdict(), tuple(_score_columns(self)), (size,))
        title = "Differences (percentage points)"
        differences = Section.of_table(title, _difference_columns(self), *self.method_notes(), *self.notes)
        return View(answer, (replace(differences, always=True),), title="Seeds and users")

    def method_notes(self) -> list[str]:
        """What each test is about."""
        what = self.resampled
        sentences = [
            f"Over seeds: would the order be the same for other seeds and these {what}? Over {what}: would it be the "
            f"same for other {what} and these models? t is the paired t test, perm. the randomisation test; "
            f"{self.family}."
        ]
        if self.n_users is not None:
            sentences.append(
                "The intervals of the systems are for the mean over all visits. The tests over users compare the means "
                "of users, in which every user has the same weight."
            )
        unpooled = dict.fromkeys(display_metric(row.metric) for row in self.rows if row.pooled is None)
        if unpooled:
            verb, rest = ("have", "they are") if len(unpooled) > 1 else ("has", "it is")
            sentences.append(
                f"{join_names(list(unpooled))} {verb} no value per visit, so {rest} compared only over seeds."
            )
        lowest = 2.0 ** (1 - self.seeds)  # the smallest p value of a two-sided sign-flip test
        if self.seeds == 1:
            sentences.append("One seed: how much the scores vary when training is repeated is unknown.")
        elif lowest > self.alpha:
            sentences.append(
                f"With {self.seeds} seeds the p value of the randomisation test cannot be below "
                f"{format_value(lowest, 3)}, and the verdict over seeds uses the t test."
            )
        return sentences


def compare_across_seeds(
    models: Mapping[str, SeedResults],
    *,
    metrics: Sequence[str] | None = None,
    primary: str | None = None,
    config: StatsConfig = DEFAULT_STATS,
) -> SeedComparison:
    """Compare models that were trained with several seeds each, on the same units.

    Seeds are paired by name if the models have the same ones, otherwise by their order, with a note.

    Parameters
    ----------
    models
        For each model, the results by seed. All results must be of the same units; their clusters are the users.
    metrics
        Metric names; by default those of the results.
    primary
        The metric that decides the order; by default the first one.
    config
        Confidence level, resamples, permutations, seed, test and correction.

    Returns
    -------
    SeedComparison
        Scores and differences over seeds and over users.

    Examples
    --------
    >>> compare_across_seeds({"gru": gru_results, "markov": markov_results}, primary="MRR")  # doctest: +SKIP
    """
    adjust([], config.correction)
    if len(models) < 2:
        raise ParameterError(f"a comparison needs at least two models; {len(models)} was given", hint="add another one")
    lined_up, notes = pair_seeds(models)
    pairing = align_results(
        [replace(result, system=f"{model} {seed}") for model, runs in lined_up.items() for seed, result in runs.items()]
    )
    names = _metrics(pairing.results, metrics, primary)
    pooled = _average_over_seeds(lined_up, pairing, names, config)
    by_user = _by_user(pooled, config)
    permutation, t = (_compare(by_user, test, config) for test in ("randomisation", "t"))
    return SeedComparison(
        rows=tuple(_row(name, model, lined_up[model], pooled, by_user, config) for name in names for model in lined_up),
        pairs=tuple(row for name in names for row in _pairs(name, lined_up, permutation, t, config)),
        primary=names[0],
        units=len(pairing),
        n_users=None if pairing.clusters is None else len(set(pairing.clusters.tolist())),
        seeds=len(next(iter(lined_up.values()))),
        family=_family(len(models), config.correction),
        confidence_level=config.confidence_level,
        notes=tuple(notes),
    )


def pair_seeds(models: Mapping[str, SeedResults]) -> tuple[dict[str, dict[str, Result]], list[str]]:
    """The results of all models under the seeds of the first, and what had to be assumed for that."""
    (first, first_runs), *others = models.items()
    if not first_runs:
        raise ParameterError(f"{first} has no results", hint="give one result per seed")
    lined_up, notes = {first: dict(first_runs)}, []
    for model, results in others:
        if len(results) != len(first_runs):
            raise PairingError(
                f"{first} was run with {len(first_runs)} seeds ({join_names(list(first_runs))}) and {model} with "
                f"{len(results)} ({join_names(list(results))})",
                hint="the tests are paired: run both with every seed, or leave the odd ones out",
            )
        if set(results) == set(first_runs):
            lined_up[model] = {seed: results[seed] for seed in first_runs}
            continue
        lined_up[model] = dict(zip(first_runs, results.values(), strict=True))
        if len(first_runs) > 1:
            pairs = [f"{one} with {other}" for one, other in zip(first_runs, results, strict=True)]
            notes.append(
                f"The seeds of {first} and {model} have different names, so they are paired in the order given: "
                f"{join_names(pairs)}."
            )
    return lined_up, notes


def _metrics(results: Sequence[Result], requested: Sequence[str] | None, primary: str | None) -> list[str]:
    """The metrics that every result has, the primary one first."""
    shared = [name for name in results[0].names if all(name in result.names for result in results)]
    if requested:
        names = [
            results[0][name].metric
            for expression in requested
            for name in (metric_names(results[0], expression) if "{" in expression else [expression])
        ]
        missing = [name for name in names if name not in shared]
        if missing:
            raise ParameterError(f"not every seed was scored with {missing[0]}", hint=f"all have {join_names(shared)}")
        shared = list(dict.fromkeys(names))
    if not shared:
        raise ParameterError("the results share no metric", hint="score every seed with the same metrics")
    leading = shared[0] if primary is None else results[0][primary].metric
    return list(dict.fromkeys([leading, *shared]))


def _average_over_seeds(
    lined_up: Mapping[str, SeedResults], pairing: AlignedResults, names: Sequence[str], config: StatsConfig
) -> dict[str, Result]:
    """One result a model: every unit's mean over seeds, where a metric has values of units at all."""
    means = [name for name in names if pairing.has_parts(name)]
    if not means:
        return {}
    columns = {name: pairing.per_unit(name) for name in means}
    pooled, start = {}, 0
    for model, runs in lined_up.items():
        part = slice(start, start + len(runs))
        start += len(runs)
        values = {name: _clip_fractions(column[:, part].mean(axis=1)) for name, column in columns.items()}
        pooled[model] = result_from_values(
            model,
            pairing.results[0].unit_ids,
            values,
            config=replace(config, clusters=pairing.clusters),
        )
    return pooled


def _clip_fractions(values: Floats) -> Floats:
    """Means of fractions, without what rounding adds beyond 1."""
    return np.clip(values, 0.0, 1.0)


def _by_user(pooled: Mapping[str, Result], config: StatsConfig) -> dict[str, Result]:
    """Every user's mean as one unit; without users, the units themselves."""
    by_model = {}
    for model, result in pooled.items():
        if result.clusters is None:
            by_model[model] = result
            continue
        users, means = user_means(dict(result.per_unit), result.clusters)
        by_model[model] = result_from_values(
            model,
            users,
            {name: _clip_fractions(values) for name, values in means.items()},
            config=config,
        )
    return by_model


def _compare(results: Mapping[str, Result], test: str, config: StatsConfig) -> Comparison | None:
    return compare_results(list(results.values()), config=replace(config, test=test)) if results else None


def _row(
    name: str,
    model: str,
    runs: SeedResults,
    pooled: Mapping[str, Result],
    by_user: Mapping[str, Result],
    config: StatsConfig,
) -> SeedScores:
    values = [result.estimates[name].value for result in runs.values()]
    summary = summarise_seeds(values, confidence_level=config.confidence_level, bounds=parse_metrics(name)[0].bounds)
    parts = (comparison[model].estimates.get(name) if comparison else None for comparison in (pooled, by_user))
    return SeedScores(name, model, summary, *parts)


def _pairs(
    name: str,
    lined_up: Mapping[str, SeedResults],
    permutation: Comparison | None,
    t: Comparison | None,
    config: StatsConfig,
) -> list[SeedDifference]:
    """All pairs on one metric; what they are corrected for is this family."""
    values: dict[str, dict[Hashable, float]] = {
        model: {seed: result.estimates[name].value for seed, result in runs.items()} for model, runs in lined_up.items()
    }
    couples = list(combinations(lined_up, 2))
    contrasts: list[SeedContrast] = [
        compare_seeds(values[a], values[b], bounds=parse_metrics(name)[0].bounds, config=config) for a, b in couples
    ]
    p, p_permutation = (
        adjust([getattr(contrast, field) for contrast in contrasts], config.correction)
        for field in ("p", "p_permutation")
    )
    better = next(iter(next(iter(lined_up.values())).values())).estimates[name].better
    return [
        SeedDifference(
            name,
            a,
            b,
            better,
            contrast,
            float(p[at]),
            float(p_permutation[at]),
            *(
                comparison.contrast(a, b, name) if comparison and name in comparison.metrics else None
                for comparison in (t, permutation)
            ),
        )
        for at, ((a, b), contrast) in enumerate(zip(couples, contrasts, strict=True))
    ]


def _family(models: int, correction: str) -> str:
    if models == 2 or correction == "none":
        return "with one pair per metric, no correction is needed" if models == 2 else "p values are not corrected"
    pairs = models * (models - 1) // 2
    return f"p values are corrected for the {pairs} pairs of each metric and test ({CORRECTIONS[correction][1]})"


# The view: tables of systems and of pairs, and the verdict.


def _score_columns(comparison: SeedComparison) -> list[ReportColumn]:
    """One row per metric and system; the metric is named once."""
    rows = comparison.rows
    names = [display_metric(row.metric) for row in rows]
    once = [name if at == 0 or names[at - 1] != name else "" for at, name in enumerate(names)]
    level = f"{format_percent(comparison.confidence_level)} interval ({comparison.resampled})"
    columns = [
        ReportColumn("metric", once),
        ReportColumn("system", [row.system for row in rows], shortens="middle"),
        ReportColumn("mean ± sd over seeds", [_spread(row.seeds) for row in rows], right=True),
        ReportColumn(
            level, [_in_percent(row.pooled.interval) if row.pooled else "n/a" for row in rows], right=True, rank=1
        ),
    ]
    if comparison.n_users is not None:
        means = [format_value(100 * row.by_user.value, DECIMALS) if row.by_user else "n/a" for row in rows]
        columns.append(ReportColumn("mean over users", means, right=True, rank=2))
    return columns


def _difference_columns(comparison: SeedComparison) -> list[ReportColumn]:
    """One row per metric and pair: the difference, and the p values of four tests."""
    pairs, what, level = comparison.pairs, comparison.resampled, format_percent(comparison.confidence_level)
    over_users = [pair.permutation for pair in pairs]
    differences = [format_difference(100 * one.difference, DECIMALS) if one else "n/a" for one in over_users]
    # Without two seeds, another column has the reason for no test.
    reasons = ["" if pair.seeds.seeds < 2 else pair.seeds.reason for pair in pairs]
    seeds_p = [format_p(pair.p_seeds, reason=reason) for pair, reason in zip(pairs, reasons, strict=True)]
    return [
        ReportColumn("metric", [display_metric(pair.metric) for pair in pairs]),
        ReportColumn("difference", [f"{pair.a} - {pair.b}" for pair in pairs], shortens="middle"),
        ReportColumn("over seeds", [_spread(pair.seeds.differences, sign=True) for pair in pairs], right=True),
        ReportColumn("p seeds (t)", seeds_p, right=True),
        ReportColumn("p seeds (perm.)", [format_p(pair.p_seed_permutation) for pair in pairs], right=True, rank=3),
        ReportColumn(f"over {what}", differences, right=True),
        ReportColumn(
            f"{level} interval", [_in_percent(one.interval) if one else "" for one in over_users], right=True, rank=1
        ),
        ReportColumn(f"p {what} (t)", [_adjusted(pair.t) for pair in pairs], right=True, rank=2),
        ReportColumn(f"p {what} (perm.)", [_adjusted(one) for one in over_users], right=True),
    ]


def _verdict(pair: SeedDifference, comparison: SeedComparison) -> str:
    name, what = display_metric(pair.metric), comparison.resampled
    if pair.seeds.difference == 0:
        return f"On {name} {pair.a} and {pair.b} are equal."
    up = pair.seeds.difference > 0
    better, worse = (pair.a, pair.b) if up == (pair.better == Direction.UP) else (pair.b, pair.a)
    gap = format_value(100 * abs(pair.seeds.difference), DECIMALS)
    by_seeds = pair.p_seeds < comparison.alpha
    by_users = pair.permutation is not None and pair.permutation.adjusted < comparison.alpha
    if comparison.seeds == 1:
        significant = "is" if by_users else "is not"
        claim = f"{significant} significant over {what}; with one seed it may be due to the seed"
    elif by_seeds and by_users:
        claim = f"is significant over seeds and over {what}"
    elif by_seeds:
        claim = f"is significant over seeds, but not over {what}"
    elif by_users:
        claim = f"is significant over {what}, but not over seeds"
    else:
        claim = f"is not significant, neither over seeds nor over {what}"
    return f"On {name}, {better} is better than {worse} by {gap} points. The difference {claim}."


def _spread(summary: SeedSummary, *, sign: bool = False) -> str:
    written = format_difference if sign else format_value
    mean = written(100 * summary.mean, DECIMALS, reason=summary.interval.reason)
    if isnan(summary.mean):
        return mean
    if isnan(summary.deviation):
        return f"{mean} (one seed)"
    return f"{mean} ± {format_value(100 * summary.deviation, DECIMALS)}"


def _in_percent(interval: Interval) -> str:
    if not interval.known:
        return f"n/a ({interval.reason.replace('one cluster', 'one user')})"
    return f"[{format_value(100 * interval.low, DECIMALS)}, {format_value(100 * interval.high, DECIMALS)}]"


def _adjusted(contrast: Contrast | None) -> str:
    return "" if contrast is None else format_p(contrast.adjusted)
