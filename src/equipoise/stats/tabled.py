"""A result made of per-unit values alone: figures that were tabled elsewhere, or put together from parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from equipoise.errors import (
    DuplicateError,
    EquipoiseError,
    InputError,
    NotFiniteError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from equipoise.evidence.base import as_ids
from equipoise.metrics.base import Measurement
from equipoise.metrics.parse import parse
from equipoise.stats.draws import checked_resamples, checked_seed
from equipoise.stats.estimate import MEANS
from equipoise.stats.interval import Bounds, Interval, checked_level
from equipoise.stats.resample import mean_intervals
from equipoise.stats.result import Estimate, Result
from equipoise.types import Direction, Floats, Ids

T = TypeVar("T")


def result_of_values(
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
    clusters: Any = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
) -> Result:
    """A result from per-unit values, with no evidence behind it: it compares and is stored like any other.

    ``values`` holds a number a unit for each metric, NaN where undefined, all within ``bounds``. Means get
    the intervals of ``mean_intervals``: Wilson's where only 0 and 1 occur. ``intervals`` replaces them where
    values are not as independent as they look, such as those of a nested choice, and ``errors`` says how far
    the figure was off when all was drawn anew. ``chance`` is what luck would score; where it is not given it
    is unknown, not 0. Names that the catalogue knows are spelled as it spells them (``accuracy`` is ``Acc``),
    as in every result, and found under any spelling; others stand as they are.

    >>> result = result_of_values("mine", ["q1", "q2", "q3"], {"accuracy": [1, 0, 1]})
    >>> result["accuracy"].interval.method, round(result["accuracy"].value, 3)
    ('wilson', 0.667)
    """
    ids = as_ids(list(unit_ids), 0)
    _check_ids(ids)
    spelled = {name: _spelled(name, bounds, better) for name in values}
    _check_names(system, spelled)
    columns = {spelled[name]: _column(name, column, ids, bounds) for name, column in values.items()}
    given, luck = _named(intervals, spelled), _named(chance, spelled)
    checked_seed(seed)
    found = mean_intervals(
        np.column_stack(list(columns.values())),
        clusters=clusters,
        bounds=[bounds] * len(columns),
        level=checked_level(level),
        resamples=checked_resamples(resamples),
        rng=np.random.default_rng([seed, MEANS]),
    )
    reaches = dict(zip(columns, found, strict=True)) | given
    estimates = {
        name: estimate_of_values(
            name, column, reaches[name], better=better, unit=unit, chance=luck.get(name, float("nan"))
        )
        for name, column in columns.items()
    }
    return Result(
        system=system,
        unit_ids=ids,
        estimates=estimates,
        per_unit=columns,
        clusters=None if clusters is None else as_ids(clusters, len(ids)),
        settings={"level": level, "resamples": resamples, "seed": seed, **(settings or {})},
        errors=_named(errors, spelled),
    )


def estimate_of_values(
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

    >>> estimate_of_values("accuracy", np.array([1.0, np.nan]), Interval.unknown("one unit")).undefined
    1
    """
    undefined = int(np.count_nonzero(np.isnan(values)))
    return Estimate(
        metric=metric,
        value=Measurement.mean(values, weights).value,
        interval=interval,
        n=len(values) - undefined,
        undefined=undefined,
        chance=chance,
        better=better,
        unit=unit,
    )


def _spelled(name: str, bounds: Bounds, better: Direction) -> str:
    """The catalogue's spelling of a metric that it knows and that has these bounds and this direction."""
    try:
        (found,) = parse(name)
    except EquipoiseError:
        return name
    return found.name if (found.bounds, found.better) == (bounds, better) else name


def _named(facts: Mapping[str, T] | None, spelled: Mapping[str, str]) -> dict[str, T]:
    """What was given for some of the metrics, under the names that the result uses."""
    for name in facts or {}:
        if name not in spelled:
            raise UnknownNameError.of(
                "metric of these values", name, spelled, more=f"they are {', '.join(spelled)}"
            )
    return {spelled[name]: fact for name, fact in (facts or {}).items()}


def _check_names(system: str, spelled: Mapping[str, str]) -> None:
    if not spelled:
        raise ParameterError(f"{system} has no metric", hint="give {'accuracy': one number a unit}")
    if len(set(spelled.values())) < len(spelled):
        raise DuplicateError(f"two of {', '.join(spelled)} are the same metric", hint="name each once")


def _check_ids(ids: Ids) -> None:
    units = ids.tolist()
    if not units:
        raise InputError("there are no units", hint="give at least one unit id")
    seen: set[object] = set()
    for unit in units:
        if unit in seen:
            raise DuplicateError(f"unit {unit} appears twice", hint="give every unit one value")
        seen.add(unit)


def _column(metric: str, values: Any, ids: Ids, bounds: Bounds) -> Floats:
    """The values as numbers, one a unit, none beyond the bounds."""
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{metric} has values that are no numbers: {error}", hint="write nan for undefined"
        ) from error
    if column.shape != ids.shape:
        raise ShapeError(
            f"{metric} has values of shape {column.shape} for {len(ids)} units", hint="give one number a unit"
        )
    beyond = np.flatnonzero((column < bounds[0]) | (column > bounds[1]))
    if len(beyond):
        first, (low, high) = beyond[0], bounds
        raise InputError(
            f"{metric} of {ids[first]} is {column[first]:g}, beyond its bounds {low:g} to {high:g}",
            hint="shares are fractions, not percent; other metrics need their own bounds=(low, high)",
        )
    if np.isinf(column).any():
        raise NotFiniteError(f"{metric} has an infinite value", hint="undefined units are NaN")
    return column
