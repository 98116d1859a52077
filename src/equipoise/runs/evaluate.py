"""From evidence to a result: metrics read, ties decided, figures estimated, checks made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import ScoredResult
from equipoise.checks.registry import run_checks
from equipoise.errors import InputError, ParameterError, UnknownNameError, did_you_mean
from equipoise.evidence.base import Evidence
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.base import Metric
from equipoise.metrics.parser import parse_metrics
from equipoise.stats.estimate import estimate
from equipoise.types import Ties

if TYPE_CHECKING:
    from equipoise.metrics.catalogue import MetricCatalogue
    from equipoise.stats.result import Result

MetricNames = str | Metric[Any] | Iterable[str | Metric[Any]]
"""Spellings such as ``nDCG@10`` and ``HR@{1,10}``, metrics themselves, or several of both."""

DEFAULT_METRICS: dict[str, tuple[str, ...]] = {
    "ranking": ("nDCG@10", "MRR", "HR@{1,10}"),
    "labels": ("Acc", "F1(average=macro)"),
    "sets": ("F1(average=micro)", "P(average=micro)", "R(average=micro)"),
    "pairs": ("Spearman", "Pearson"),
}
"""What is measured when nobody says; a space has no figure that fits them all."""


def evaluate(
    evidence: Evidence,
    metrics: MetricNames | None = None,
    *,
    system: str = "system",
    ties: Ties | str = Ties.EXPECTED,
    clusters: Any = None,
    confidence_level: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
    chance: bool = True,
    catalogue: MetricCatalogue | None = None,
) -> Result:
    """Measure one system: every metric with interval, n, undefined count and chance level; and findings.

    ``ties`` says what equal scores of a ranking mean. ``clusters`` is an id a unit, in the order of the
    units or as a mapping by unit id; whole clusters are then resampled. ``catalogue`` holds more
    metrics than the built-in ones. The result keeps the evidence as observed, ties and all.

    >>> result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=20), ["MRR", "HR@{1,3}"])
    >>> result.names, round(result["MRR"].value, 4)
    (('MRR', 'HR@1', 'HR@3'), 0.5833)
    """
    if not isinstance(evidence, Evidence):
        raise InputError(
            f"there is a {type(evidence).__name__} where evidence should be",
            hint="make evidence first: Ranking.from_runs(qrels, run)",
        )
    chosen = parse_metrics(metrics or default_metrics(evidence.kind), evidence=type(evidence), catalogue=catalogue)
    policy, observed = tie_policy(ties), evidence
    settings: dict[str, Any] = {}
    if isinstance(evidence, Ranking):
        evidence, settings = evidence.ordered(policy), {"ties": str(policy)}
    result = estimate(
        evidence,
        chosen,
        system=system,
        clusters=_clusters(clusters, observed),
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        seed=seed,
        chance=chance,
        settings=settings,
    )
    result = replace(result, evidence=observed)
    return replace(result, findings=run_checks(ScoredResult(result, {metric.name: metric for metric in chosen})))


def tie_policy(ties: Ties | str) -> Ties:
    """The tie policy of a name, or a did-you-mean.

    >>> tie_policy("by_id")
    <Ties.BY_ID: 'by_id'>
    """
    try:
        return Ties(ties)
    except ValueError as error:
        raise ParameterError(
            f"ties={ties!r} is no way to treat equal scores",
            hint=did_you_mean(str(ties), list(Ties)) or f"choose {', '.join(Ties)}",
        ) from error


def default_metrics(kind: str) -> tuple[str, ...]:
    """What is measured on this kind of evidence when nobody says."""
    if kind not in DEFAULT_METRICS:
        raise ParameterError(
            f"no metric was named, and {kind} evidence has no usual ones",
            hint=f"eq ls metrics --kind {kind} lists those that fit",
        )
    return DEFAULT_METRICS[kind]


def _clusters(clusters: Any, evidence: Evidence) -> Any:
    """Clusters in the order of the units."""
    if not isinstance(clusters, Mapping):
        return clusters
    units = evidence.unit_ids.tolist()
    lacking = [unit for unit in units if unit not in clusters]
    if lacking:
        raise InputError(
            f"{len(lacking)} of {len(units)} units have no cluster, {lacking[0]} is the first",
            hint="give every unit of the truth a cluster",
        )
    return [clusters[unit] for unit in units]


# A stored result with the metrics that someone asks for now: those it lacks are scored from its evidence.


def with_metrics(result: Result, metrics: Sequence[str], *, catalogue: MetricCatalogue | None = None) -> Result:
    """The result with these metrics and no others, in this order.

    A metric that the result has stays as it is, also where only the result knows its name. Ties, clusters,
    level and seed are those of the first time.

    >>> from equipoise.evidence.ranking import Ranking
    >>> result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=9), ["MRR", "HR@1"])
    >>> with_metrics(result, ["HR@{1,3}"]).names
    ('HR@1', 'HR@3')
    """
    names = list(dict.fromkeys(name for each in metrics for name in _names(result, each, catalogue)))
    lacking = [name for name in names if name not in result.estimates]
    whole = _scored(result, lacking, catalogue) if lacking else result
    return replace(
        whole,
        estimates={name: whole.estimates[name] for name in names},
        per_unit={name: column for name, column in whole.per_unit.items() if name in names},
        weights={name: column for name, column in whole.weights.items() if name in names},
    )


def _names(result: Result, expression: str, catalogue: MetricCatalogue | None) -> list[str]:
    """The canonical names of a spelling; a name that only the result knows stands for itself."""
    kind = None if result.evidence is None else type(result.evidence)
    try:
        return [metric.name for metric in parse_metrics(expression, evidence=kind, catalogue=catalogue)]
    except (UnknownNameError, ParameterError):
        if expression not in result.estimates:
            raise
        return [expression]


def _scored(result: Result, names: Sequence[str], catalogue: MetricCatalogue | None) -> Result:
    """The result and these metrics; what else it says of itself stays."""
    if result.evidence is None:
        raise UnknownNameError.of(
            f"metric of {result.system}", names[0], result.names, more=f"it has {', '.join(result.names)}"
        )
    kept = {name: result.settings[name] for name in _HOW if name in result.settings}
    more = evaluate(
        result.evidence,
        names,
        system=result.system,
        clusters=result.clusters,
        catalogue=catalogue,
        **kept,
    )
    return replace(
        result,
        estimates={**result.estimates, **more.estimates},
        per_unit={**result.per_unit, **more.per_unit},
        weights={**result.weights, **more.weights},
    )


_HOW = ("ties", "confidence_level", "n_resamples", "seed")
"""The settings of a result that say how it was scored."""
