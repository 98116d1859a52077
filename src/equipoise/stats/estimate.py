"""From evidence to a result: measure every metric, and compute all intervals together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import (
    DuplicateError,
    InputError,
    NotFiniteError,
    ParameterError,
    ShapeError,
    UndefinedError,
    UnknownNameError,
)
from equipoise.evidence.base import Evidence, as_ids
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.base import Metric, MetricValue
from equipoise.metrics.parser import find_metric
from equipoise.stats.bootstrap_mean import UNBOUNDED, cluster_codes, id_order, mean_intervals
from equipoise.stats.intervals import Bounds, Interval
from equipoise.stats.result import Estimate, Result
from equipoise.types import Bools, Direction, Floats, Ids

CORPUS_METHODS = ("bias-corrected", "subsample")
"""The methods of intervals of metrics that are not means over units."""
MEANS, CORPUS, CHANCE = range(3)
"""Random streams: the samples of one part must not depend on whether another part is requested."""


def estimate(
    evidence: Evidence,
    metrics: Sequence[Metric[Any]],
    *,
    system: str = "system",
    config: StatsConfig = DEFAULT_STATS,
    chance: bool = True,
    settings: Mapping[str, Any] | None = None,
) -> Result:
    """Measure every metric on the evidence, with interval, n, undefined count and chance level.

    Means over units get the intervals of ``mean_intervals``, other metrics those of ``evidence_intervals``.
    Figures of a space are subsampled, all of them: what one point scores depends on the others; so are the
    agreements of partitions. ``n_subsamples`` limits ``n_resamples`` where each measures the evidence again.
    ``clusters`` holds one id per unit; clusters are then resampled. ``chance=False`` skips the chance
    levels (they are NaN). The same seed gives the same bytes.
    """
    _check(evidence, metrics)
    n_units = len(evidence.unit_ids)
    clusters = None if config.clusters is None else config.clusters_for(evidence.unit_ids)
    if clusters is not None:
        cluster_codes(clusters, n_units)
    measured = {metric.name: metric.measure(evidence) for metric in metrics}
    means = [metric for metric in metrics if _is_mean(measured[metric.name], evidence)]
    corpus = [metric for metric in metrics if not _is_mean(measured[metric.name], evidence)]
    intervals = _intervals_of_means(means, measured, evidence, clusters, config)
    by_id, clusters_by_id = _in_id_order(evidence, clusters) if corpus or chance else (evidence, clusters)
    if corpus:
        intervals |= _intervals_of_corpus(corpus, by_id, clusters_by_id, config)
    estimates = {
        metric.name: _estimate(
            metric,
            measured[metric.name],
            intervals[metric.name],
            n_units,
            _chance(metric, by_id, config) if chance else float("nan"),
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
        clusters=None if clusters is None else as_ids(clusters, n_units),
        evidence=evidence,
        settings={**_recorded_options(config), **(settings or {})},
    )


def _in_id_order(evidence: Evidence, clusters: Any) -> tuple[Evidence, Any]:
    """Evidence and clusters in the order of the unit ids: random samples do not depend on the order of the input."""
    order = id_order(evidence.unit_ids)
    if (order == np.arange(len(order))).all():
        return evidence, clusters
    return evidence.take(order), None if clusters is None else as_ids(clusters, len(order))[order]


def _recorded_options(config: StatsConfig) -> dict[str, Any]:
    """The options that a result records; those of paired tests only if they are not the defaults."""
    of_intervals = {name: getattr(config, name) for name in ("confidence_level", "n_resamples", "seed")}
    of_tests = {name: getattr(config, name) for name in ("test", "correction", "n_permutations")}
    return of_intervals | {name: value for name, value in of_tests.items() if value != getattr(DEFAULT_STATS, name)}


def _check(evidence: Evidence, metrics: Sequence[Metric[Any]]) -> None:
    repeated = [name for name, count in Counter(metric.name for metric in metrics).items() if count > 1]
    if repeated:
        raise ParameterError(f"the metric {repeated[0]} is requested more than once", hint="name every metric once")
    for metric in metrics:
        if not isinstance(evidence, metric.evidence):
            raise UndefinedError(
                f"{metric.name} measures {metric.evidence.kind} evidence, not {evidence.kind} evidence",
                hint=f"`eq ls metrics` lists the metrics of {evidence.kind} evidence",
            )


def _is_mean(measurement: MetricValue, evidence: Evidence) -> bool:
    return measurement.per_unit is not None and evidence.kind != "space"


def _intervals_of_means(
    metrics: Sequence[Metric[Any]],
    measured: Mapping[str, MetricValue],
    evidence: Evidence,
    clusters: Any,
    config: StatsConfig,
) -> dict[str, Interval]:
    if not metrics:
        return {}
    parts = [measured[metric.name] for metric in metrics]
    values = np.column_stack([part.per_unit for part in parts if part.per_unit is not None])
    weights = {metric.name: part.weights for metric, part in zip(metrics, parts, strict=True)}
    bounds = [metric.bounds for metric in metrics]
    limits = [metric.bounds_on(evidence) for metric in metrics]
    intervals = mean_intervals(
        values,
        weights=_stacked_weights(weights, len(values)),
        clusters=clusters,
        bounds=bounds,
        limits=limits,
        config=config,
        rng=config.rng(MEANS),
    )
    return {metric.name: interval for metric, interval in zip(metrics, intervals, strict=True)}


def _stacked_weights(weights: Mapping[str, Floats | None], units: int) -> Floats | None:
    """The weights of each metric as a column; None if all units count equally."""
    if all(column is None for column in weights.values()):
        return None
    return np.column_stack([np.ones(units) if column is None else column for column in weights.values()])


def _intervals_of_corpus(
    metrics: Sequence[Metric[Any]], evidence: Evidence, clusters: Any, config: StatsConfig
) -> dict[str, Interval]:
    """Metrics with the same kind of resamples share them."""
    from equipoise.stats.corpus_metrics import CorpusValue, evidence_intervals, subsample_fractions

    kinds = {metric.name: subsample_fractions(metric, evidence) for metric in metrics}
    estimated: dict[str, Interval] = {}
    for shares in sorted(set(kinds.values())):
        batch = [metric for metric in metrics if kinds[metric.name] == shares]
        intervals = evidence_intervals(
            [CorpusValue(metric) for metric in batch],
            evidence,
            clusters=clusters,
            bounds=[metric.bounds_on(evidence) for metric in batch],
            config=config,
            subsample=shares,
            rng=config.rng(CORPUS, *(round(100 * share) for share in shares)),
        )
        for metric, interval in zip(batch, intervals, strict=True):
            reason = metric.why_no_interval(evidence)
            estimated[metric.name] = (
                Interval.unknown(reason, confidence_level=interval.confidence_level) if reason else interval
            )
    return estimated


def _chance(metric: Metric[Any], evidence: Evidence, config: StatsConfig) -> float:
    """The chance level from the stream that the metric names: the order of metrics changes nothing."""
    stream = crc32(metric.chance_stream.encode())
    return metric.chance(evidence, config.rng(CHANCE, stream))


def _estimate(metric: Metric[Any], measurement: MetricValue, interval: Interval, units: int, chance: float) -> Estimate:
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


# A stored result at another confidence level.


def with_confidence_level(result: Result, metrics: Mapping[str, Metric[Any] | None], config: StatsConfig) -> Result:
    """The result with intervals at the confidence level of ``config``, as far as they can be computed again.

    Intervals of means need the per-unit values, those of tuned systems the bootstrap errors of their scores, and those
    of other metrics the metric and the evidence. The values do not change.
    """
    stale = {
        name: result.estimates[name].interval
        for name in metrics
        if result.estimates[name].interval.known
        and result.estimates[name].interval.confidence_level != config.confidence_level
    }
    tuned = [name for name in stale if name in result.errors]
    corpus = [name for name, interval in stale.items() if interval.method in CORPUS_METHODS]
    means = [name for name in stale if name in result.per_unit and name not in (*tuned, *corpus)]
    intervals = {
        **(_stored_mean_intervals(result, {name: metrics[name] for name in means}, config) if means else {}),
        **(_stored_corpus_intervals(result, [metrics[name] for name in corpus], config) if corpus else {}),
    }
    for name in tuned:
        from equipoise.stats.tuning_uncertainty import METHOD, interval_from_errors

        values, errors = result.per_unit.get(name), result.errors[name]
        if values is not None and stale[name].method.endswith(METHOD):
            bounds = _bounds_of(metrics[name], values)
            value = result.estimates[name].value
            intervals[name] = interval_from_errors(value, values, errors, bounds, config.confidence_level)
    estimates = {
        name: replace(estimated, interval=intervals.get(name, estimated.interval))
        for name, estimated in result.estimates.items()
    }
    return replace(result, estimates=estimates) if stale else result


def _stored_mean_intervals(
    result: Result, metrics: Mapping[str, Metric[Any] | None], config: StatsConfig
) -> dict[str, Interval]:
    """The intervals of means, from the per-unit values of the result."""
    values = {name: result.per_unit[name] for name in metrics}
    bounds = {name: _bounds_of(metrics[name], values[name]) for name in metrics}
    limits = [
        bounds[name] if metric is None or result.evidence is None else metric.bounds_on(result.evidence)
        for name, metric in metrics.items()
    ]
    intervals = mean_intervals(
        np.column_stack(list(values.values())),
        weights=_stacked_weights({name: result.weights.get(name) for name in metrics}, len(result.unit_ids)),
        clusters=result.clusters,
        bounds=list(bounds.values()),
        limits=limits,
        config=config,
        rng=config.rng(MEANS),
    )
    return dict(zip(metrics, intervals, strict=True))


def _stored_corpus_intervals(
    result: Result, metrics: Sequence[Metric[Any] | None], config: StatsConfig
) -> dict[str, Interval]:
    """The intervals of metrics that are not means, from the evidence of the result; none without it."""
    known = [metric for metric in metrics if metric is not None]
    evidence, ties = result.evidence, result.settings.get("ties")
    if evidence is None or not known:
        return {}
    ordered = evidence.ordered(ties) if ties and isinstance(evidence, Ranking) else evidence
    by_id, clusters = _in_id_order(ordered, result.clusters)
    return _intervals_of_corpus(known, by_id, clusters, config)


def _bounds_of(metric: Metric[Any] | None, values: Floats) -> Bounds:
    """The bounds of a metric; those of a metric that only the result knows follow from its values."""
    return value_bounds(values) if metric is None else metric.bounds


def value_bounds(values: Floats) -> Bounds:
    """The bounds of a metric that is known only by its values: 0 and 1, or none if a value is beyond them."""
    return UNBOUNDED if ((values < 0.0) | (values > 1.0)).any() else (0.0, 1.0)


def on_units(result: Result, name: str, kept: Bools, metric: Metric[Any] | None, config: StatsConfig) -> Result:
    """The result with the values of one metric only on the units ``kept``, and undefined on the others.

    The value, its interval at the same confidence level and, if it is known, the chance level are computed again.
    Bootstrap errors are scaled like standard errors, by the root of the number of units.
    """
    before, all_values = result.estimates[name], result.per_unit[name]
    values, weights = np.where(kept, all_values, np.nan), result.weights.get(name)
    part = replace(result, per_unit={**result.per_unit, name: values})
    config = replace(config, confidence_level=before.interval.confidence_level)
    if name in result.errors:
        from equipoise.stats.tuning_uncertainty import interval_from_errors

        n_before, n_after = (max(int(np.count_nonzero(~np.isnan(column))), 1) for column in (all_values, values))
        errors = result.errors[name] * np.sqrt(n_before / n_after)
        part = replace(part, errors={**result.errors, name: errors})
        value, bounds = MetricValue.mean(values, weights).value, _bounds_of(metric, all_values)
        interval = interval_from_errors(value, values, errors, bounds, config.confidence_level)
    else:
        interval = _stored_mean_intervals(part, {name: metric}, config)[name]
    chance = before.chance
    if metric is not None and result.evidence is not None and kept.any() and not np.isnan(chance):
        chance = _chance(metric, _in_id_order(result.evidence.take(np.flatnonzero(kept)), None)[0], config)
    estimated = estimate_from_values(
        name, values, interval, weights=weights, better=before.better, unit=before.unit, chance=chance
    )
    return replace(part, estimates={**result.estimates, name: estimated})


def in_clusters(result: Result, metrics: Mapping[str, Metric[Any] | None], config: StatsConfig) -> Result:
    """The result with the clusters of ``config``, and the intervals of these means from its per-unit values."""
    n_units = len(result.unit_ids)
    clusters = config.clusters_for(result.unit_ids)
    clustered = replace(result, clusters=None if clusters is None else as_ids(clusters, n_units))
    for name, metric in metrics.items():
        clustered = on_units(clustered, name, np.ones(n_units, dtype=bool), metric, config)
    return clustered


# Results from per-unit values without evidence: scores computed by other programs, or combined from parts.

T = TypeVar("T")


def result_from_values(
    system: str,
    unit_ids: Iterable[Any],
    values: Mapping[str, Any],
    *,
    bounds: Bounds = (0.0, 1.0),
    better: Direction = Direction.UP,
    unit: str = "fraction",
    chance: Mapping[str, float] | None = None,
    intervals: Mapping[str, Interval] | None = None,
    errors: Mapping[str, Floats] | None = None,
    config: StatsConfig = DEFAULT_STATS,
    settings: Mapping[str, Any] | None = None,
) -> Result:
    """A result from per-unit values without evidence; it can be compared and stored like any other.

    ``values`` holds one number per unit for each metric, NaN where undefined, all within ``bounds``. Means get
    the intervals of ``mean_intervals``: Wilson's where only 0 and 1 occur. ``intervals`` replaces them where
    values are not independent, such as those of nested cross-validation, and ``errors`` holds the bootstrap
    errors of the score. ``chance`` is the chance level; if it is not given, it
    is unknown, not 0. Aliases of known metrics are replaced by their names (``accuracy`` is ``Acc``),
    as in every result, and can be looked up by any alias; other names are kept.

    >>> result = result_from_values("mine", ["q1", "q2", "q3"], {"accuracy": [1, 0, 1]})
    >>> result["accuracy"].interval.method, round(result["accuracy"].value, 3)
    ('wilson', 0.667)
    """
    ids = as_ids(list(unit_ids), 0)
    _check_ids(ids)
    canonical = {name: _canonical_name(name, bounds, better) for name in values}
    _check_names(system, canonical)
    columns = {canonical[name]: _column(name, column, ids, bounds) for name, column in values.items()}
    given_intervals, chance_levels = _by_canonical_name(intervals, canonical), _by_canonical_name(chance, canonical)
    clusters = config.clusters_for(ids)
    estimated = mean_intervals(
        np.column_stack(list(columns.values())),
        clusters=clusters,
        bounds=[bounds] * len(columns),
        config=config,
        rng=config.rng(MEANS),
    )
    known_intervals = dict(zip(columns, estimated, strict=True)) | given_intervals
    estimates = {
        name: estimate_from_values(
            name, column, known_intervals[name], better=better, unit=unit, chance=chance_levels.get(name, float("nan"))
        )
        for name, column in columns.items()
    }
    return Result(
        system=system,
        unit_ids=ids,
        estimates=estimates,
        per_unit=columns,
        clusters=None if clusters is None else as_ids(clusters, len(ids)),
        settings={**_recorded_options(config), **(settings or {})},
        errors=_by_canonical_name(errors, canonical),
    )


def estimate_from_values(
    metric: str,
    values: Floats,
    interval: Interval,
    *,
    weights: Floats | None = None,
    better: Direction = Direction.UP,
    unit: str = "fraction",
    chance: float = float("nan"),
) -> Estimate:
    """The mean of per-unit values with an interval that is known already.

    >>> estimate_from_values("accuracy", np.array([1.0, np.nan]), Interval.unknown("one unit")).undefined
    1
    """
    undefined = int(np.count_nonzero(np.isnan(values)))
    return Estimate(
        metric=metric,
        value=MetricValue.mean(values, weights).value,
        interval=interval,
        n=len(values) - undefined,
        undefined=undefined,
        chance=chance,
        better=better,
        unit=unit,
    )


def _canonical_name(name: str, bounds: Bounds, better: Direction) -> str:
    """The catalogue's name of a metric, if it is known with these bounds and this direction."""
    metric = find_metric(name)
    return metric.name if metric is not None and (metric.bounds, metric.better) == (bounds, better) else name


def _by_canonical_name(facts: Mapping[str, T] | None, canonical: Mapping[str, str]) -> dict[str, T]:
    """What was given for some of the metrics, under the names that the result uses."""
    for name in facts or {}:
        if name not in canonical:
            raise UnknownNameError.of(
                "metric of these values", name, canonical, more=f"they are {', '.join(canonical)}"
            )
    return {canonical[name]: fact for name, fact in (facts or {}).items()}


def _check_names(system: str, canonical: Mapping[str, str]) -> None:
    if not canonical:
        raise ParameterError(f"{system} has no metric", hint="give {'accuracy': one number per unit}")
    if len(set(canonical.values())) < len(canonical):
        raise DuplicateError(f"two of {', '.join(canonical)} are the same metric", hint="name each once")


def _check_ids(ids: Ids) -> None:
    units = ids.tolist()
    if not units:
        raise InputError("there are no units", hint="give at least one unit id")
    ids_so_far: set[object] = set()
    for unit in units:
        if unit in ids_so_far:
            raise DuplicateError(f"unit {unit} appears twice", hint="give every unit one value")
        ids_so_far.add(unit)


def _column(metric: str, values: Any, ids: Ids, bounds: Bounds) -> Floats:
    """The values as numbers, one per unit, none beyond the bounds."""
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{metric} has values that are not numbers: {error}", hint="write nan for undefined"
        ) from error
    if column.shape != ids.shape:
        raise ShapeError(
            f"{metric} has values of shape {column.shape} for {len(ids)} units", hint="give one number per unit"
        )
    out_of_bounds = np.flatnonzero((column < bounds[0]) | (column > bounds[1]))
    if len(out_of_bounds):
        first, (low, high) = out_of_bounds[0], bounds
        raise InputError(
            f"{metric} of {ids[first]} is {column[first]:g}, beyond its bounds {low:g} to {high:g}",
            hint="shares are fractions, not percent; other metrics need bounds=(low, high)",
        )
    if np.isinf(column).any():
        raise NotFiniteError(f"{metric} has an infinite value", hint="undefined units are NaN")
    return column
