"""The primary metric on parts of the units, as a heat table; greyed where a part is too small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from equipoise.checks.base import pluralize
from equipoise.report.tables import finite_or_none, relative_shade
from equipoise.report.view_model import BinCounts, HeatCell, SliceRow, Slices, ValueDistribution
from equipoise.stats.formatting import (
    format_count,
    format_interval,
    format_percent,
    format_value,
    shared_decimals,
)
from equipoise.stats.slices import MIN_UNITS, slice_estimates
from equipoise.types import Direction, Floats

if TYPE_CHECKING:
    from equipoise.report.build import RunSet
    from equipoise.report.unit_explorer import Slices as UnitSlices
    from equipoise.stats.result import Estimate

MAX_SLICE_VALUES = 40
"""A slice with more values than this is a name rather than a kind, and makes no table."""


def slice_table(subject: RunSet, known: UnitSlices) -> Slices | None:
    """A row for every value of every slice, a cell for every system; None where nothing is sliced."""
    usable = _usable(known)
    if not usable or subject.per_unit(subject.primary) is None:
        return None
    columns = [
        {(each.name, each.value): each.estimate for each in slice_estimates(run.result, subject.primary, usable)}
        for run in subject.runs
    ]
    keys = dict.fromkeys(key for column in columns for key in column)
    cells = {key: [column.get(key) for column in columns] for key in keys}
    found = [each for row in cells.values() for each in row if each is not None]
    if not found:
        return None
    places = shared_decimals(each.interval for each in found if each.n >= MIN_UNITS)
    solid = [each.value for each in found if each.n >= MIN_UNITS and finite_or_none(each.value) is not None]
    rows = tuple(_row(key, row, places, solid, subject.better) for key, row in cells.items())
    return Slices(subject.primary, str(subject.better), rows, _caption(subject, found[0]))


def _row(
    key: tuple[str, str],
    estimates: Sequence[Estimate | None],
    places: int,
    solid: Sequence[float],
    better: Direction,
) -> SliceRow:
    n = max((each.n for each in estimates if each is not None), default=0)
    cells = tuple(_cell(each, n, places, solid, better) for each in estimates)
    return SliceRow(key[0], key[1], n, n < MIN_UNITS, cells)


def _cell(estimate: Estimate | None, n: int, places: int, solid: Sequence[float], better: Direction) -> HeatCell:
    """One system on a slice of ``n`` units; it says how many it has a value for where not for all."""
    if estimate is None:
        return HeatCell("", None, None, few=True)
    few = estimate.n < MIN_UNITS
    value = finite_or_none(estimate.value)
    return HeatCell(
        text=format_value(estimate.value, places),
        value=value,
        shade=None if few or value is None or not solid else relative_shade(value, solid, better),
        note=format_interval(estimate.interval, places)
        + ("" if estimate.n == n else f", n {format_count(estimate.n)}"),
        few=few,
    )


def _usable(known: UnitSlices) -> UnitSlices:
    """The slices whose values are few enough to be kinds."""
    values: dict[str, Counter[str]] = {}
    for own in known.values():
        for name, value in own.items():
            values.setdefault(name, Counter())[str(value)] += 1
    names = {name for name, seen in values.items() if 1 < len(seen) <= MAX_SLICE_VALUES}
    kept = {unit: {name: own[name] for name in own if name in names} for unit, own in known.items()}
    return {unit: own for unit, own in kept.items() if own}


def _caption(subject: RunSet, one: Estimate) -> str:
    best = "highest" if subject.better == Direction.UP else "lowest"
    return (
        f"The {subject.primary}{' of every system' if len(subject.runs) > 1 else ''} on parts of the units, "
        f"with {format_percent(one.interval.confidence_level)} intervals; "
        f"the stronger the shade, the better ({best} is best). "
        f"Parts of fewer than {MIN_UNITS} units are greyed: their figures say little."
    )


# Where the units lie: how many of each system's units have which value.

FEW_VALUES = 12
BINS = 20
UNIT_BINS = 10
UNITS_BY_TITLE = "Units by "


def value_distributions(subject: RunSet) -> tuple[ValueDistribution, ...]:
    """The values of every metric, and the differences of the first two systems on the primary one."""
    parts = []
    for metric in subject.metrics:
        values = subject.per_unit(metric)
        if values is not None and np.isfinite(values).any():
            parts.append(_values(subject, metric, values))
    values = subject.per_unit(subject.primary)
    if len(subject.runs) > 1 and values is not None:
        gained = values[:, 0] - values[:, 1]
        if np.isfinite(gained).any():
            parts.insert(1, _differences(subject, gained))
    return tuple(parts)


def _values(subject: RunSet, metric: str, values: Floats) -> ValueDistribution:
    edges, labels = _bins(values)
    series = tuple(_series(name, column, edges) for name, column in zip(subject.names, values.T, strict=True))
    return ValueDistribution(
        title=f"{UNITS_BY_TITLE}{metric}",
        metric=metric,
        edges=edges,
        labels=labels,
        series=series,
        caption=f"How many of {pluralize(len(values), 'unit')} have which {metric}, for each system.",
    )


def _differences(subject: RunSet, gained: Floats) -> ValueDistribution:
    first, second = subject.names[:2]
    edges, labels = _bins(gained)
    better = "Above" if subject.better == Direction.UP else "Below"
    return ValueDistribution(
        title=f"{UNITS_BY_TITLE}{first} minus {second}",
        metric=subject.primary,
        edges=edges,
        labels=labels,
        series=(_series(f"{first} minus {second}", gained, edges),),
        caption=f"How many units have which difference in {subject.primary}. {better} 0, {first} is better.",
    )


def _series(name: str, column: Floats, edges: tuple[float, ...]) -> BinCounts:
    finite = column[np.isfinite(column)]
    counts = np.histogram(finite, bins=np.array(edges))[0]
    return BinCounts(name, tuple(counts.tolist()), len(column) - len(finite))


def _bins(values: Floats) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """A bin for each value where they are few, else bins of equal width; the edges and the labels."""
    finite = values[np.isfinite(values)]
    distinct = np.unique(np.round(finite, 9))
    if len(distinct) <= FEW_VALUES:
        between = (distinct[:-1] + distinct[1:]) / 2
        ends = np.concatenate([[distinct[0] - 0.5], between, [distinct[-1] + 0.5]])
        return tuple(ends.tolist()), tuple(_short(each) for each in distinct.tolist())
    low, high = float(finite.min()), float(finite.max())
    if low >= 0 and high <= 1:
        edges = np.linspace(0.0, 1.0, UNIT_BINS + 1)
    elif low >= -1 and high <= 1:
        edges = np.linspace(-1.0, 1.0, BINS + 1)
    else:
        edges = np.linspace(low, high, BINS + 1)
    ends = edges.tolist()
    labels = tuple(f"{_short(start)} to {_short(end)}" for start, end in pairwise(ends))
    return tuple(ends), labels


def _short(value: float) -> str:
    """As few decimals as say the number to a hundredth."""
    text = format_value(value, 2)
    return text.rstrip("0").rstrip(".") if "." in text else text
