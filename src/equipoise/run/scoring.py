"""From evidence to a result: metrics read, ties decided, figures estimated, checks made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from equipoise.checks.catalogue import examine
from equipoise.checks.subjects import Scored
from equipoise.errors import InputError, ParameterError, did_you_mean
from equipoise.evidence.base import Evidence
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.base import Metric
from equipoise.metrics.catalogue import Catalogue
from equipoise.metrics.parse import parse
from equipoise.stats.estimate import estimate
from equipoise.stats.result import Result
from equipoise.types import Ties

Metrics = str | Metric[Any] | Iterable[str | Metric[Any]]
"""Spellings such as ``nDCG@10`` and ``HR@{1,10}``, metrics themselves, or several of both."""

DEFAULTS: dict[str, tuple[str, ...]] = {
    "ranking": ("nDCG@10", "MRR", "HR@{1,10}"),
    "labels": ("Acc", "F1(average=macro)"),
    "sets": ("F1(average=micro)", "P(average=micro)", "R(average=micro)"),
    "pairs": ("Spearman", "Pearson"),
}
"""What is measured when nobody says; a space has no figure that fits them all."""


def evaluate(
    evidence: Evidence,
    metrics: Metrics | None = None,
    *,
    system: str = "system",
    ties: Ties | str = Ties.EXPECTED,
    clusters: Any = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    chance: bool = True,
    catalogue: Catalogue | None = None,
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
    chosen = parse(metrics or default_metrics(evidence.kind), evidence=type(evidence), catalogue=catalogue)
    policy, observed = tie_policy(ties), evidence
    settings: dict[str, Any] = {}
    if isinstance(evidence, Ranking):
        evidence, settings = evidence.ordered(policy), {"ties": str(policy)}
    result = estimate(
        evidence,
        chosen,
        system=system,
        clusters=_clusters(clusters, observed),
        level=level,
        resamples=resamples,
        seed=seed,
        chance=chance,
        settings=settings,
    )
    result = replace(result, evidence=observed)
    return replace(result, findings=examine(Scored(result, {metric.name: metric for metric in chosen})))


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
    if kind not in DEFAULTS:
        raise ParameterError(
            f"no metric was named, and {kind} evidence has no usual ones",
            hint=f"eq ls metrics --kind {kind} lists those that fit",
        )
    return DEFAULTS[kind]


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
