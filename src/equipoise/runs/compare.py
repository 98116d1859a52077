"""Compare systems: unique names, the same metrics and the same protocol, then all pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import ComparedResults, ScoredResult, run_checks
from equipoise.config import DEFAULT_STATS, StatsConfig, Ties
from equipoise.errors import DuplicateError, InputError, ParameterError, UnknownNameError
from equipoise.evidence.base import Evidence
from equipoise.metrics.base import Metric
from equipoise.metrics.parser import parse_metrics
from equipoise.runs.evaluate import MetricNames, default_metrics, evaluate
from equipoise.stats.comparison import Comparison
from equipoise.stats.estimate import in_clusters, with_confidence_level
from equipoise.stats.pairing import compare_results
from equipoise.stats.result import DATA, MATCHER, Result
from equipoise.stats.verdict import DISPLAY, UNIT_NOUN

if TYPE_CHECKING:
    from equipoise.metrics.parser import MetricCatalogue

EvidenceOrResult = Evidence | Result


def _entries(systems: Mapping[str, EvidenceOrResult] | Sequence[Result]) -> dict[str, EvidenceOrResult]:
    """The systems by name, each of them evidence or a result."""
    if not isinstance(systems, Mapping):
        named: dict[str, EvidenceOrResult] = {}
        for number, result in enumerate(systems, 1):
            name = getattr(result, "system", f"system {number}")
            if name in named:
                raise DuplicateError(
                    f"two results are called {name!r}",
                    hint="give each system its own name: evaluate(..., system='a') or compare({'a': ..., 'b': ...})",
                )
            named[name] = result
        systems = named
    for name, entry in systems.items():
        if not isinstance(entry, Evidence | Result):
            raise InputError(
                f"the system {name} is a {type(entry).__name__}, neither evidence nor a result",
                hint="make evidence first: Ranking.from_runs(qrels, run)",
            )
    if len(systems) < 2:
        raise ParameterError(
            f"a comparison needs at least two systems; {len(systems)} was given", hint="add another run"
        )
    return dict(systems)


def _check_same_ties(entries: Mapping[str, EvidenceOrResult], ties: Ties | str) -> None:
    """Raise an error if equal scores were ordered differently: such systems are not comparable."""
    used: dict[str, str] = {}
    for name, entry in entries.items():
        policy = entry.settings.get("ties") if isinstance(entry, Result) else str(ties)
        if policy is not None:
            used.setdefault(str(policy), name)
    if len(used) > 1:
        (one, first), (other, second), *_ = used.items()
        raise ParameterError(
            f"{first} was scored with ties={one} and {second} with ties={other}",
            hint=f"score both with --{one}" if one.startswith("like ") else f"score both with ties={one!r}",
        )


def _shared_metrics(entries: Mapping[str, EvidenceOrResult]) -> Sequence[str]:
    """The metrics that all results have; with evidence only, the default ones of its kind."""
    results = [entry for entry in entries.values() if isinstance(entry, Result)]
    if results:
        shared = [name for name in results[0].names if all(name in result.names for result in results)]
        if not shared:
            listed = "; ".join(f"{result.system} has {', '.join(result.names) or 'none'}" for result in results)
            raise ParameterError(
                f"the results share no metric: {listed}", hint="score every system with the same metrics"
            )
        return shared
    return default_metrics(_evidence_of(entries)[0].kind)


def _evidence_of(entries: Mapping[str, EvidenceOrResult]) -> list[Evidence]:
    stored = (entry.evidence if isinstance(entry, Result) else entry for entry in entries.values())
    return [evidence for evidence in stored if evidence is not None]


def _metrics(
    entries: Mapping[str, EvidenceOrResult], expressions: MetricNames, catalogue: MetricCatalogue | None
) -> dict[str, Metric[Any] | None]:
    """The metrics by their canonical names; None for a name that only the results have."""
    kinds = {type(evidence) for evidence in _evidence_of(entries)}
    if len(kinds) > 1:
        raise ParameterError(
            f"the systems have {' and '.join(sorted(kind.kind for kind in kinds))} evidence",
            hint="compare systems on evidence of one kind",
        )
    names = [frozenset(entry.names if isinstance(entry, Result) else ()) for entry in entries.values()]
    in_results = frozenset.intersection(*names)
    metrics: dict[str, Metric[Any] | None] = {}
    for expression in [expressions] if isinstance(expressions, str | Metric) else expressions:
        try:
            parsed = parse_metrics(expression, evidence=next(iter(kinds), None), catalogue=catalogue)
            metrics.update((metric.name, metric) for metric in parsed)
        except (UnknownNameError, ParameterError):
            if expression not in in_results:
                raise
            metrics[str(expression)] = None
    if not metrics:
        raise ParameterError("no metric was given", hint="for example nDCG@10 or HR@{1,3,5,10}")
    return metrics


def _result(
    system: str,
    entry: EvidenceOrResult,
    metrics: Mapping[str, Metric[Any] | None],
    config: StatsConfig,
    scorer: Callable[..., Result],
) -> Result:
    """The result of the system with all these metrics, computed if it lacks some."""
    expressions = [metric or name for name, metric in metrics.items()]
    if isinstance(entry, Evidence):
        return scorer(entry, expressions, system=system, config=config)
    result = entry if entry.system == system else entry.renamed(system)
    if set(metrics) <= set(result.names) and config.clusters is None:
        return _with_primary_findings(with_confidence_level(result, metrics, config), metrics)
    if result.evidence is None and set(metrics) <= result.per_unit.keys() - result.errors.keys():
        return in_clusters(with_confidence_level(result, metrics, config), metrics, config)
    if result.evidence is None:
        raise ParameterError(
            f"the result of {system} lacks metrics or clusters, and has no evidence to compute them",
            hint=f"compare what it has ({', '.join(result.names)}), or score the system again",
        )
    from equipoise.runs.manifest import STATUS_SETTINGS

    clusters = result.clusters if config.clusters is None else config.clusters
    again_config = replace(config, ties=result.settings.get("ties", config.ties), clusters=clusters)
    again = scorer(
        result.evidence,
        expressions,
        system=system,
        config=again_config,
        unit_noun=result.settings.get(UNIT_NOUN),
    )
    names = (*STATUS_SETTINGS, DATA, MATCHER, DISPLAY)
    kept = {name: result.settings[name] for name in names if name in result.settings}
    again = replace(again, settings={**again.settings, **kept})
    return replace(again, findings=run_checks(again) + again.findings)


def _with_primary_findings(result: Result, metrics: Mapping[str, Metric[Any] | None]) -> Result:
    """The result with the findings about the primary metric, if that is another one than before."""
    known = {name: metric for name, metric in metrics.items() if metric is not None}
    if result.evidence is None or result.names[:1] == tuple(metrics)[:1] or len(known) < len(metrics):
        return result
    from equipoise.checks.scores import concerns_primary_metric

    others = (finding for finding in result.findings if not concerns_primary_metric(finding))
    new = (finding for finding in run_checks(ScoredResult(result, known)) if concerns_primary_metric(finding))
    return replace(result, findings=(*others, *new))


__all__ = ["compare", "evaluate"]


def compare(
    systems: Mapping[str, Evidence | Result] | Sequence[Result],
    metrics: MetricNames | None = None,
    *,
    primary: str | None = None,
    config: StatsConfig = DEFAULT_STATS,
    chance: bool = True,
    catalogue: MetricCatalogue | None = None,
    unit_noun: str | None = None,
) -> Comparison:
    """Compare two or more systems, pair by pair, on the same units.

    Every pair of systems gets the mean difference with its interval, a paired test and a p value that is adjusted for
    the number of pairs. Systems that are not significantly different share a tie band. Systems that were not evaluated
    on the same units and data by the same rules are an error. Unequal tuning is a finding.

    Parameters
    ----------
    systems
        Names mapped to evidence or to results, or a sequence of results. A result that lacks a metric or the clusters
        is scored again from its evidence.
    metrics
        Metric names such as ``nDCG@10`` or ``HR@{1,10}``, or metrics. By default nDCG@10, MRR, HR@1 and HR@10 of a
        ``Ranking``, accuracy and macro F1 of ``Labels``, micro F1, precision and recall of ``Sets``, Spearman and
        Pearson of ``Pairs``; a ``Space`` has no default.
    primary
        The metric that decides the order and the tie bands; by default the first one.
    config
        Confidence level, resamples, permutations, seed, test, correction, ties and clusters.
    chance
        Whether chance levels are computed; without them they are NaN.
    catalogue
        Metrics in addition to the built-in ones.
    unit_noun
        What a unit of evidence is called, such as ``example``; by default ``query`` for a ``Ranking``, and so on.

    Returns
    -------
    Comparison
        Results, pairwise differences, tie bands and rank intervals; ``verdict()`` is the conclusion in words.

    Examples
    --------
    >>> from equipoise import Ranking
    >>> a, b = (Ranking.from_ranks(ranks, candidates=9) for ranks in ([1] * 9, [1, 2, 3] * 3))
    >>> compare({"a": a, "b": b}, "MRR").leader
    'a'
    """
    entries = _entries(systems)
    _check_same_ties(entries, config.ties)
    chosen = _metrics(entries, _shared_metrics(entries) if metrics is None else metrics, catalogue)
    if primary is not None:
        first = _metrics(entries, primary, catalogue)
        if len(first) > 1:
            raise ParameterError(
                f"{primary} names {len(first)} metrics, and only one can be primary",
                hint=f"write {next(iter(first))}",
            )
        chosen |= first
        primary = next(iter(first))
    primary = primary or next(iter(chosen))
    # Checks that quote one metric quote the first.
    primary_first = {primary: chosen[primary], **chosen}
    scorer = partial(evaluate, chance=chance, catalogue=catalogue, unit_noun=unit_noun)
    results = [_result(system, entry, primary_first, config, scorer) for system, entry in entries.items()]
    comparison = compare_results(
        results,
        metrics=list(chosen),
        primary=primary,
        config=config,
        metric_objects={name: metric for name, metric in chosen.items() if metric is not None},
    )
    system_findings = tuple(finding for result in results for finding in result.findings)
    findings = (*run_checks(ComparedResults(results)), *system_findings, *run_checks(comparison))
    return replace(comparison, findings=tuple(dict.fromkeys(findings)))
