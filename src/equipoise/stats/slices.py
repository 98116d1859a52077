"""Slices: the score on the units that share a property, with n and interval."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from equipoise.config import StatsConfig
from equipoise.errors import InputError, UndefinedError
from equipoise.metrics.parser import find_metric
from equipoise.stats.bootstrap_mean import mean_intervals
from equipoise.stats.estimate import estimate_from_values
from equipoise.stats.intervals import Bounds, wilson_interval
from equipoise.stats.verdict import Vocabulary

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Floats, Ints

MIN_UNITS = 20
"""Below this many units a slice is uninformative: the 95 % interval of an accuracy of 0.8 is then wider
than a third of the scale, so that slices overlap for any system."""
NOT_GIVEN = "not given"
"""The value of units that lack a property."""

Properties = Mapping[Any, Mapping[str, object]]
"""What is known of each unit, by its id: names and values."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The units whose property ``name`` has this value, and the score on them."""

    name: str
    value: str
    estimate: Estimate

    @property
    def few(self) -> bool:
        """Whether the slice is too small to be read as more than a hint."""
        return self.estimate.n < MIN_UNITS


def slice_estimates(result: Result, metric: str, slices: Properties) -> tuple[Slice, ...]:
    """The metric on every value of every property.

    Properties are in the order of their first occurrence in the units of the result. Values that are numbers,
    weekdays or months are in their natural order, others by their number of units, largest first. Units
    that lack a property, or have None, are the slice ``not given`` of that property, which is last; nothing
    is left out, so the n of a property's slices add up. Intervals use the method and the options of those of all
    units, with the units of the slice alone; the chance level of a slice is unknown. Small slices are included: see
    ``MIN_UNITS``.

    >>> from equipoise.stats.estimate import result_from_values
    >>> result = result_from_values("mine", ["a", "b", "c"], {"accuracy": [1, 0, 1]})
    >>> kinds = {"a": {"kind": "date"}, "b": {"kind": "name"}, "c": {"kind": "date"}}
    >>> rows = slice_estimates(result, "accuracy", kinds)
    >>> [(row.value, row.estimate.value, row.estimate.n) for row in rows]
    [('date', 1.0, 2), ('name', 0.0, 1)]
    """
    estimate = result[metric]
    if estimate.metric not in result.per_unit:
        raise UndefinedError(
            f"{estimate.metric} is not a mean over units, so a slice has no value",
            hint="score the evidence of the slice: evidence.take(index)",
        )
    units = result.unit_ids.tolist()
    properties = [slices.get(unit, {}) for unit in units]
    if not any(properties) and slices:
        raise InputError(
            f"none of the {len(units)} units of {result.system} has properties",
            hint=f"the result has units such as {units[0]!r}; compare the ids",
        )
    known_metric = find_metric(estimate.metric)
    if known_metric is not None and known_metric.name != estimate.metric:
        known_metric = None
    recorded = {name: result.settings[name] for name in ("n_resamples", "seed") if name in result.settings}
    config = StatsConfig(confidence_level=estimate.interval.confidence_level, **recorded)
    return tuple(
        Slice(name, value, _estimate(result, estimate, rows, known_metric, config, _stream(config, name, value)))
        for name in dict.fromkeys(name for unit_properties in properties for name in unit_properties)
        for value, rows in _parts([unit_properties.get(name) for unit_properties in properties]).items()
    )


def _parts(values: list[object]) -> dict[str, Ints]:
    """The rows of each value, in natural order or by their number, rows without a value last."""
    rows_by_value: dict[str, list[int]] = {}
    for row, value in enumerate(values):
        rows_by_value.setdefault(NOT_GIVEN if value is None else str(value), []).append(row)
    largest_first = sorted(rows_by_value, key=lambda value: (-len(rows_by_value[value]), value))
    rows_by_value = {value: rows_by_value[value] for value in in_natural_order(largest_first)}
    if NOT_GIVEN in rows_by_value:
        rows_by_value[NOT_GIVEN] = rows_by_value.pop(NOT_GIVEN)
    return {value: np.array(rows, dtype=np.int64) for value, rows in rows_by_value.items()}


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CALENDAR = {
    **{name.casefold()[:length]: place for place, name in enumerate(WEEKDAYS) for length in (3, len(name))},
    **{name: place for place, name in enumerate(_MONTHS)},
}
"""The position of weekdays, in full and by three letters, and of months."""
_NUMBER = re.compile(r"\s*-?\d+(?:\.\d+)?")


def in_natural_order(values: Collection[str]) -> list[str]:
    """Values that all begin with a number by its size, weekdays and months by the calendar; others as they are.

    >>> in_natural_order(["10-12", "9", "1 to 9"]), in_natural_order(["Tue", "Sunday", "Mon"])
    (['1 to 9', '9', '10-12'], ['Mon', 'Tue', 'Sunday'])
    >>> in_natural_order(["b", "a", "3"])
    ['b', 'a', '3']
    """
    names = [value for value in values if value != NOT_GIVEN]
    positions: list[float] = []
    for name in names:
        number = _NUMBER.match(name)
        position = float(number[0]) if number else _CALENDAR.get(name.strip().casefold())
        if position is None:
            return list(values)
        positions.append(position)
    return [name for _, name in sorted(zip(positions, names, strict=True))] + [NOT_GIVEN] * (NOT_GIVEN in values)


def _stream(config: StatsConfig, name: str, value: str) -> np.random.Generator:
    """A random stream per slice, so that a slice does not depend on other slices."""
    return config.rng(crc32(f"{name}={value}".encode()))


def _estimate(
    result: Result,
    overall: Estimate,
    rows: Ints,
    metric: Metric[Any] | None,
    config: StatsConfig,
    rng: np.random.Generator,
) -> Estimate:
    name = overall.metric
    values = np.asarray(result.per_unit[name], dtype=np.float64)[rows]
    weights = np.asarray(result.weights[name])[rows] if name in result.weights else None
    if _averaged_hits(overall, values) and weights is None and result.clusters is None:
        defined = values[~np.isnan(values)]
        interval = wilson_interval(float(defined.sum()), len(defined), config.confidence_level)
    else:
        interval = mean_intervals(
            values[:, None],
            weights=None if weights is None else weights[:, None],
            clusters=None if result.clusters is None else result.clusters[rows],
            bounds=None if metric is None else [metric.bounds],
            limits=None if metric is None else [_limits(result, metric)],
            config=config,
            rng=rng,
        )[0]
        noun = Vocabulary.nouns([result]).cluster
        interval = replace(interval, reason=interval.reason.replace("cluster", noun))
    return estimate_from_values(name, values, interval, weights=weights, better=overall.better, unit=overall.unit)


def _averaged_hits(overall: Estimate, values: Floats) -> bool:
    """Whether the values are hits averaged over splits, whose overall score has Wilson's interval.

    Such a mean varies no more than one of hits and misses does, so that Wilson's interval is wide enough. A
    bootstrap of a slice where all but one value is 1 would be far too narrow.
    """
    defined = values[~np.isnan(values)]
    return bool(overall.interval.method.startswith("wilson") and len(defined) > 1 and defined.min() >= 0.0)


def _limits(result: Result, metric: Metric[Any]) -> Bounds:
    """The values that the evidence allows, where the result carries evidence of that kind."""
    matches = isinstance(result.evidence, metric.evidence)
    return metric.bounds_on(result.evidence) if matches else metric.bounds
