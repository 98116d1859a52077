"""From evidence to a result: parse the metrics, order ties, estimate values, run the checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import ScoredResult, run_checks
from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import InputError, ParameterError, UndefinedError, UnknownNameError
from equipoise.evidence.base import Evidence
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.base import Metric
from equipoise.metrics.parser import parse_metrics
from equipoise.stats.estimate import estimate, with_confidence_level
from equipoise.stats.verdict import UNIT_NOUN

if TYPE_CHECKING:
    from equipoise.metrics.parser import MetricCatalogue
    from equipoise.stats.result import Result

MetricNames = str | Metric[Any] | Iterable[str | Metric[Any]]
"""Names such as ``nDCG@10`` and ``HR@{1,10}``, metrics, or several of both."""

RECORDED = ("confidence_level", "n_resamples", "seed", "test", "correction", "n_permutations")
"""The settings of a result by which it is also compared."""

DEFAULT_METRICS: dict[str, tuple[str, ...]] = {
    "ranking": ("nDCG@10", "MRR", "HR@{1,10}"),
    "labels": ("Acc", "F1(average=macro)"),
    "sets": ("F1(average=micro)", "P(average=micro)", "R(average=micro)"),
    "pairs": ("Spearman", "Pearson"),
}
"""The default metrics per kind of evidence; there is none that fits every space."""


def evaluate(
    evidence: Evidence,
    metrics: MetricNames | None = None,
    *,
    system: str = "system",
    config: StatsConfig = DEFAULT_STATS,
    chance: bool = True,
    catalogue: MetricCatalogue | None = None,
    unit_noun: str | None = None,
) -> Result:
    """Evaluate one system: every metric with interval, n, undefined count and chance level; and findings.

    The result keeps the evidence before ties are ordered.

    Parameters
    ----------
    evidence
        What the system returned for every unit, with the truth.
    metrics
        Metric names such as ``nDCG@10`` or ``HR@{1,10}``, or metrics. By default nDCG@10, MRR, HR@1 and HR@10 of a
        ``Ranking``, accuracy and macro F1 of ``Labels``, micro F1, precision and recall of ``Sets``, Spearman and
        Pearson of ``Pairs``; a ``Space`` has no default.
    system
        The name of the system in the result.
    config
        Confidence level, resamples, seed, ties and clusters.
    chance
        Whether chance levels are computed; without them they are NaN.
    catalogue
        Metrics in addition to the built-in ones.
    unit_noun
        What a unit is called, such as ``example``; by default ``query`` for a ``Ranking``, and so on.

    Returns
    -------
    Result
        Estimates by metric name, per-unit values, findings and the evidence.

    Examples
    --------
    >>> result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=20), ["MRR", "HR@{1,3}"])
    >>> result.names, round(result["MRR"].value, 4)
    (('MRR', 'HR@1', 'HR@3'), 0.5833)
    """
    if not isinstance(evidence, Evidence):
        raise InputError(
            f"a {type(evidence).__name__} is not evidence",
            hint="make evidence first: Ranking.from_runs(qrels, run)",
        )
    chosen = parse_metrics(metrics or default_metrics(evidence.kind), evidence=type(evidence), catalogue=catalogue)
    observed = evidence
    settings: dict[str, Any] = {} if unit_noun is None else {UNIT_NOUN: unit_noun}
    if isinstance(evidence, Ranking):
        evidence = evidence.ordered(config.ties)
        settings["ties"] = str(config.ties)
    try:
        result = estimate(evidence, chosen, system=system, config=config, chance=chance, settings=settings)
    except UndefinedError as error:
        raise UndefinedError(f"{system}: {error.message}", hint=error.hint) from error
    result = replace(result, evidence=observed)
    return replace(result, findings=run_checks(ScoredResult(result, {metric.name: metric for metric in chosen})))


def default_metrics(kind: str) -> tuple[str, ...]:
    """The default metrics of this kind of evidence."""
    if kind not in DEFAULT_METRICS:
        raise ParameterError(
            f"no metric was given, and {kind} evidence has no default metrics",
            hint=f"eq ls metrics --kind {kind} lists those that fit",
        )
    return DEFAULT_METRICS[kind]


# A stored result with other metrics: those that it lacks are computed from its evidence.


def with_metrics(result: Result, metrics: Sequence[str], *, catalogue: MetricCatalogue | None = None) -> Result:
    """The result with these metrics and no others, in this order.

    A metric that the result has is not computed again, also if only the result has its name. Ties, clusters,
    confidence level and seed are those of the result.

    >>> from equipoise.evidence.ranking import Ranking
    >>> result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=9), ["MRR", "HR@1"])
    >>> with_metrics(result, ["HR@{1,3}"]).names
    ('HR@1', 'HR@3')
    """
    names = list(dict.fromkeys(name for expression in metrics for name in metric_names(result, expression, catalogue)))
    missing = [name for name in names if name not in result.estimates]
    complete = _with_computed(result, missing, catalogue) if missing else result
    return replace(
        complete,
        estimates={name: complete.estimates[name] for name in names},
        per_unit={name: column for name, column in complete.per_unit.items() if name in names},
        weights={name: column for name, column in complete.weights.items() if name in names},
    )


def at_confidence_level(result: Result, config: StatsConfig, *, catalogue: MetricCatalogue | None = None) -> Result:
    """The result with all intervals at the confidence level of ``config``, as far as they can be computed again."""
    kind = None if result.evidence is None else type(result.evidence)
    metrics: dict[str, Metric[Any] | None] = {}
    for name in result.names:
        try:
            (metrics[name],) = parse_metrics(name, evidence=kind, catalogue=catalogue)
        except (UnknownNameError, ParameterError):
            metrics[name] = None
    return with_confidence_level(result, metrics, config)


def recorded_stats(results: Iterable[Result], base: StatsConfig = DEFAULT_STATS) -> StatsConfig:
    """``base`` with the options that all these results record.

    A setting that is missing in a result, or differs between results, is that of ``base``.
    """
    recorded = [result.settings for result in results]
    values = {name: {settings.get(name) for settings in recorded} for name in RECORDED}
    shared = {name: options.pop() for name, options in values.items() if len(options) == 1}
    return replace(base, **{name: value for name, value in shared.items() if value is not None})


def metric_names(result: Result, expression: str, catalogue: MetricCatalogue | None = None) -> list[str]:
    """The canonical names of an expression; a name that only the result has is used as it is."""
    kind = None if result.evidence is None else type(result.evidence)
    try:
        return [metric.name for metric in parse_metrics(expression, evidence=kind, catalogue=catalogue)]
    except (UnknownNameError, ParameterError):
        if expression not in result.estimates:
            raise
        return [expression]


def _with_computed(result: Result, names: Sequence[str], catalogue: MetricCatalogue | None) -> Result:
    """The result with these metrics added; nothing else changes."""
    if result.evidence is None:
        raise UnknownNameError.of(
            f"metric of {result.system}", names[0], result.names, more=f"it has {', '.join(result.names)}"
        )
    settings = {name: result.settings[name] for name in _STATS_SETTINGS if name in result.settings}
    added = evaluate(
        result.evidence,
        names,
        system=result.system,
        config=StatsConfig(clusters=result.clusters, **settings),
        catalogue=catalogue,
    )
    return replace(
        result,
        estimates={**result.estimates, **added.estimates},
        per_unit={**result.per_unit, **added.per_unit},
        weights={**result.weights, **added.weights},
    )


_STATS_SETTINGS = ("ties", *RECORDED)
"""The settings of a result that are options of ``StatsConfig``."""
