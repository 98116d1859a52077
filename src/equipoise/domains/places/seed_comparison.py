"""Models that were trained several times, with one seed each: what holds over seeds, and what over users."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import join_names, pluralize
from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.places.metrics import user_means
from equipoise.domains.places.report import display_metric
from equipoise.errors import PairingError, ParameterError
from equipoise.metrics.parser import parse_metrics
from equipoise.report.view import View
from equipoise.runs.evaluate import metric_names
from equipoise.stats.comparison import Comparison, Contrast
from equipoise.stats.estimate import result_from_values
from equipoise.stats.intervals import Interval
from equipoise.stats.multiple_comparisons import CORRECTIONS, adjust
from equipoise.stats.pairing import AlignedResults, align_results, compare_results
from equipoise.stats.result import Estimate, Result
from equipoise.stats.seeds import SeedContrast, SeedSummary, compare_seeds, summarise_seeds
from equipoise.stats.verdict import Vocabulary
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.types import Floats

SeedResults = Mapping[str, Result]
"""The results of one model by seed."""


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

    @property
    def estimate(self) -> Estimate:
        """The mean over seeds with its interval over users; over seeds for a metric that is no mean over units."""
        if self.pooled is not None:
            return self.pooled
        (metric,) = parse_metrics(self.metric)
        seeds = self.seeds
        return Estimate(
            self.metric, seeds.mean, seeds.interval, seeds.seeds, seeds.undefined, nan, metric.better, metric.unit
        )

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

    @property
    def p_users(self) -> float:
        """The adjusted p over users, 1 if the users prefer the other system; NaN without this test."""
        if self.permutation is None:
            return nan
        return 1.0 if self.permutation.difference * self.seeds.difference < 0 else self.permutation.adjusted

    @property
    def adjusted_p(self) -> float:
        """The larger of both p values: a difference must be significant over seeds and over users.

        A test that is not defined is left out: with one seed, with differences that are the same for all seeds, or
        for a metric that is no mean over units.
        """
        return float(np.fmax(self.p_seeds, self.p_users))

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
    config: StatsConfig = DEFAULT_STATS
    notes: tuple[str, ...] = ()

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

    @cached_property
    def decision(self) -> Comparison:
        """The models on the primary metric. A difference is significant if it is so over seeds and over users."""
        systems = tuple(dict.fromkeys(row.system for row in self.rows))
        estimates: dict[str, dict[str, Estimate]] = {system: {} for system in systems}
        for row in self.rows:
            estimates[row.system][row.metric] = row.estimate
        pairs = [pair for pair in self.pairs if pair.metric == self.primary]
        return Comparison(
            systems=systems,
            metrics=tuple(dict.fromkeys(row.metric for row in self.rows)),
            primary=self.primary,
            better=pairs[0].better,
            n=self.units,
            clusters=self.n_users,
            estimates=estimates,
            contrasts=tuple(combined_contrast(pair, self.units) for pair in pairs),
            scores={row.system: row.seeds.mean for row in self.rows if row.metric == self.primary},
            families={self.primary: self.family},
            config=self.config,
            words=Vocabulary("visit", "model", display_metric(self.primary), percent=True, cluster="user"),
        )

    def verdict(self) -> str:
        """Which model is best over seeds and over users, or which test does not show it."""
        return self.view().answer.headline

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
            "order": list(self.decision.order),
            "ranks": {name: list(ends) for name, ends in self.decision.ranks.items()},
            "systems": [row.to_dict() for row in self.rows],
            "pairs": [row.to_dict() for row in self.pairs],
            "verdict": self.verdict(),
            "notes": list(self.notes),
        }

    def view(self) -> View:
        """The answer on the primary metric, then all metrics and pairs, and how to read them."""
        from equipoise.domains.places.seed_report import seed_view

        return seed_view(self)


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
        config=config,
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
                f"{first} was run with {pluralize(len(first_runs), 'seed')} ({join_names(list(first_runs))}) and "
                f"{model} with {len(results)} ({join_names(list(results))})",
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
    names = list(dict.fromkeys([leading, *shared]))
    for name in names:
        if results[0].estimates[name].unit != "fraction":
            raise ParameterError(
                f"{name} is not a fraction, and models are compared in percent",
                hint="choose MRR or an accuracy, or use eq compare for one seed per model",
            )
    return names


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
            chance={name: _mean([result.estimates[name].chance for result in runs.values()]) for name in means},
            config=replace(config, clusters=pairing.clusters),
        )
    return pooled


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


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


def combined_contrast(pair: SeedDifference, n: int) -> Contrast:
    """A pair with the larger p value of both tests."""
    reason = (pair.seeds.reason or "no test is defined") if isnan(pair.adjusted_p) else ""
    unknown = Interval.unknown("the tests over seeds and users have different intervals")
    return Contrast(
        metric=pair.metric,
        a=pair.a,
        b=pair.b,
        better=pair.better,
        difference=pair.seeds.difference,
        interval=unknown,
        p=pair.adjusted_p,
        adjusted=pair.adjusted_p,
        n=n,
        undefined=0,
        reason=reason,
        test="larger p value of the tests over seeds and users",
    )
