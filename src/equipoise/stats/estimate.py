"""From evidence to a result: every metric measured once, all intervals made together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.base import Evidence, as_ids
from equipoise.metrics.base import Measurement, Metric
from equipoise.stats.corpus_interval import evidence_intervals
from equipoise.stats.draws import checked_resamples, checked_seed, cluster_codes, id_order
from equipoise.stats.interval import Interval, checked_level
from equipoise.stats.parts import shares_for, too_sparse
from equipoise.stats.resample import mean_intervals
from equipoise.stats.result import Estimate, Result
from equipoise.types import Floats

MEANS, CORPUS, CHANCE = range(3)
"""Streams of randomness: what one part draws must not depend on whether another part is asked for."""


def estimate(
    evidence: Evidence,
    metrics: Sequence[Metric[Any]],
    *,
    system: str = "system",
    clusters: Any = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    chance: bool = True,
    settings: Mapping[str, Any] | None = None,
) -> Result:
    """Measure every metric on the evidence, with interval, n, undefined count and chance level.

    Means over units get the intervals of ``mean_intervals``, other figures those of ``evidence_intervals``.
    Figures of a space are subsampled, all of them: what one point scores depends on the others; so are the
    agreements of partitions. ``part_count`` limits ``resamples`` where each measures the evidence again.
    ``clusters`` holds an id a unit; whole clusters are then resampled. ``chance=False`` skips the chance
    levels (they are NaN). The same seed gives the same bytes.
    """
    _check(evidence, metrics)
    checked_level(level)
    checked_resamples(resamples)
    checked_seed(seed)
    if clusters is not None:
        cluster_codes(clusters, len(evidence))
    measured = {metric.name: metric.measure(evidence) for metric in metrics}
    means = [metric for metric in metrics if _is_mean(measured[metric.name], evidence)]
    corpus = [metric for metric in metrics if not _is_mean(measured[metric.name], evidence)]
    shared = {"clusters": clusters, "level": level, "resamples": resamples}
    intervals = _intervals_of_means(
        means, measured, evidence, rng=np.random.default_rng([seed, MEANS]), **shared
    )
    # What is drawn at random is drawn from units in the order of their ids, not of the input.
    order = id_order(evidence.unit_ids)
    by_id = evidence if (order == np.arange(len(order))).all() else evidence.take(order)
    if clusters is not None:
        shared["clusters"] = as_ids(clusters, len(evidence))[order]
    intervals |= _intervals_of_corpus(corpus, by_id, seed=seed, **shared)
    estimates = {
        metric.name: _estimate(
            metric,
            measured[metric.name],
            intervals[metric.name],
            len(evidence),
            _chance(metric, by_id, seed) if chance else float("nan"),
        )
        for metric in metrics
    }
    parts = {name: part for name, part in measured.items() if part.per_unit is not None}
    return Result(
        system=system,
        unit_ids=evidence.unit_ids,
        estimates=estimates,
        per_unit={name: part.per_unit for name, part in parts.items() if part.per_unit is not None},
        weights={name: part.weights for name, part in parts.items() if part.weights is not None},
        clusters=None if clusters is None else as_ids(clusters, len(evidence)),
        evidence=evidence,
        settings={"level": level, "resamples": resamples, "seed": seed, **(settings or {})},
    )


def _check(evidence: Evidence, metrics: Sequence[Metric[Any]]) -> None:
    twice = [name for name, count in Counter(metric.name for metric in metrics).items() if count > 1]
    if twice:
        raise ParameterError(
            f"the metric {twice[0]} was asked for more than once", hint="name every metric once"
        )
    for metric in metrics:
        if not isinstance(evidence, metric.evidence):
            raise UndefinedError(
                f"{metric.name} measures {metric.evidence.kind} evidence, not {evidence.kind} evidence",
                hint=f"`eq ls metrics` lists the metrics of {evidence.kind} evidence",
            )


def _is_mean(measurement: Measurement, evidence: Evidence) -> bool:
    return measurement.per_unit is not None and evidence.kind != "space"


def _intervals_of_means(
    metrics: Sequence[Metric[Any]], measured: Mapping[str, Measurement], evidence: Evidence, **options: Any
) -> dict[str, Interval]:
    if not metrics:
        return {}
    parts = [measured[metric.name] for metric in metrics]
    values = np.column_stack([part.per_unit for part in parts if part.per_unit is not None])
    weights: Floats | None = None
    if any(part.weights is not None for part in parts):
        ones = np.ones(len(values))
        weights = np.column_stack([ones if part.weights is None else part.weights for part in parts])
    bounds = [metric.bounds for metric in metrics]
    limits = [metric.bounds_on(evidence) for metric in metrics]
    found = mean_intervals(values, weights=weights, bounds=bounds, limits=limits, **options)
    return {metric.name: interval for metric, interval in zip(metrics, found, strict=True)}


def _intervals_of_corpus(
    metrics: Sequence[Metric[Any]], evidence: Evidence, *, seed: int, **options: Any
) -> dict[str, Interval]:
    """Metrics that bear the same kind of parts share them."""
    kinds = {metric.name: shares_for(metric, evidence) for metric in metrics}
    found: dict[str, Interval] = {}
    for shares in sorted(set(kinds.values())):
        alike = [metric for metric in metrics if kinds[metric.name] == shares]
        intervals = evidence_intervals(
            [_figure_of(metric) for metric in alike],
            evidence,
            bounds=[metric.bounds_on(evidence) for metric in alike],
            subsample=shares,
            rng=np.random.default_rng([seed, CORPUS, *(round(100 * share) for share in shares)]),
            **options,
        )
        for metric, interval in zip(alike, intervals, strict=True):
            reason = too_sparse(metric, evidence)
            found[metric.name] = Interval.unknown(reason, level=interval.level) if reason else interval
    return found


def _figure_of(metric: Metric[Any]) -> Callable[[Evidence], float]:
    return lambda part: metric.measure(part).value


def _chance(metric: Metric[Any], evidence: Evidence, seed: int) -> float:
    """The chance level from the stream that the metric names: the order of metrics changes nothing."""
    stream = crc32(metric.chance_stream.encode())
    return metric.chance(evidence, np.random.default_rng([seed, CHANCE, stream]))


def _estimate(
    metric: Metric[Any], measurement: Measurement, interval: Interval, units: int, chance: float
) -> Estimate:
    per_unit = measurement.per_unit
    undefined = measurement.undefined if per_unit is None else int(np.count_nonzero(np.isnan(per_unit)))
    return Estimate(
        metric=metric.name,
        value=measurement.value,
        interval=interval,
        n=units - undefined,
        undefined=undefined,
        chance=chance,
        better=metric.better,
        unit=metric.unit,
    )
