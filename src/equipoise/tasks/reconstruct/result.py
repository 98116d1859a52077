"""From a reconstruction to a result: ranks over edges and over nodes, precision, and norm against depth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from equipoise.metrics.base import Metric
from equipoise.metrics.parse import parse
from equipoise.metrics.ranking import AveragePrecision, MeanRank, MedianRank, ReciprocalRank
from equipoise.metrics.space import NormDepth
from equipoise.stats.estimate import estimate
from equipoise.stats.result import Estimate, Result
from equipoise.stats.slices import Slice, sliced
from equipoise.stats.terms import DATA
from equipoise.tasks.reconstruct.reconstruct import Reconstruction
from equipoise.types import Ties


def reconstruction_metrics(*, filtered: bool) -> tuple[Metric[Any], ...]:
    """What is measured of ranks: mean rank over edges and over nodes, median, MAP and MRR, the first primary.

    Average precision and the reciprocal rank are those of the whole list, whether ranks are filtered or not.

    >>> [metric.name for metric in reconstruction_metrics(filtered=True)]
    ['MR(filtered)', 'MR(over=units,filtered)', 'MedianRank(filtered)', 'MAP', 'MRR']
    """
    return (
        MeanRank(filtered=filtered),
        MeanRank(over="units", filtered=filtered),
        MedianRank(filtered=filtered),
        AveragePrecision(),
        ReciprocalRank(),
    )


def reconstruction_result(
    found: Reconstruction,
    *,
    system: str = "system",
    metrics: Any = None,
    clusters: Any = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    chance: bool = True,
) -> Result:
    """All figures of a reconstruction in one result, whose evidence is the ranking.

    ``metrics`` replaces the usual ranking metrics. Intervals resample the nodes, those of one cluster
    together: the top-level branches, unless ``clusters`` holds another id a node. No interval of a rank
    reaches beyond the last one. ``NormDepth``, Spearman's correlation of norm and normalised rank, comes
    last.
    """
    options: dict[str, Any] = {
        "system": system,
        "clusters": found.branches if clusters is None else clusters,
        "level": level,
        "resamples": resamples,
        "seed": seed,
        "chance": chance,
        "settings": {
            "ties": str(Ties.EXPECTED),
            "relation": found.relation,
            "filtered": found.filtered,
            "geometry": found.geometry.name,
            "dim": dimension(found),
            DATA: {"tree": found.tree.fingerprint},
        },
    }
    chosen = reconstruction_metrics(filtered=found.filtered) if metrics is None else parse(metrics)
    ranks = estimate(found.ranking, chosen, **options)
    depth = estimate(found.space, [NormDepth()], **options)
    return replace(ranks, estimates={**_within(ranks.estimates, len(found) - 1), **depth.estimates})


def _within(estimates: Mapping[str, Estimate], candidates: int) -> dict[str, Estimate]:
    """The same, no interval of a rank reaching beyond the last one: few branches would allow anything."""
    return {
        name: replace(each, interval=each.interval.clipped((1.0, float(candidates))))
        if each.unit == MeanRank.unit
        else each
        for name, each in estimates.items()
    }


def dimension(found: Reconstruction) -> int:
    """The dimension of the space: a Lorentz point has one coordinate more."""
    return int(found.space.vectors.shape[1]) - (found.geometry.name == "lorentz")


def reconstruction_slices(
    found: Reconstruction, result: Result, metric: str | None = None, *, seed: int = 0
) -> tuple[Slice, ...]:
    """A metric (the primary one unless named) at each depth and in each top-level branch.

    Depths come from the root down, branches in the order of the tree.
    """
    units = zip(result.unit_ids.tolist(), found.depth.tolist(), found.tree.branches, strict=True)
    known = {unit: {"depth": depth, "branch": branch} for unit, depth, branch in units}
    slices = sliced(result, metric or result.names[0], known, seed=seed)
    by_depth = [each for each in slices if each.name == "depth"]
    return (
        *sorted(by_depth, key=lambda each: int(each.value)),
        *(each for each in slices if each.name == "branch"),
    )
