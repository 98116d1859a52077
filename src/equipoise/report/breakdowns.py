"""The primary metric by slice, and the distribution of per-unit values by system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from equipoise.report.tables import finite_or_none, relative_shade
from equipoise.report.view_model import BinCounts, HeatCell, SliceRow, SliceTable, ValueDistribution
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
"""A slice with more values than this is an identifier, not a category, and is left out."""
MAX_DISTINCT_VALUES = 12
"""Up to this many distinct values, each has its own bin."""
BINS = 20
UNIT_INTERVAL_BINS = 10


def slice_table(subject: RunSet, slices: UnitSlices) -> SliceTable | None:
    """One row per value of every slice, one cell per system; None if there are no slices."""
    usable = _usable(slices)
    if not usable or subject.per_unit(subject.primary) is None:
        return None
    columns = [
        {(part.name, part.value): part.estimate for part in slice_estimates(run.result, subject.primary, usable)}
        for run in subject.runs
    ]
    keys = dict.fromkeys(key for column in columns for key in column)
    cells = {key: [column.get(key) for column in columns] for key in keys}
    estimates = [estimate for row in cells.values() for estimate in row if estimate is not None]
    if not estimates:
        return None
    large = [estimate for estimate in estimates if estimate.n >= MIN_UNITS]
    decimals = shared_decimals(estimate.interval for estimate in large)
    values = [estimate.value for estimate in large if finite_or_none(estimate.value) is not None]
    rows = tuple(_row(key, row, decimals, values, subject.better) for key, row in cells.items())
    return SliceTable(subject.primary, str(subject.better), rows, _caption(subject, estimates[0]), subject.words.plural)


def _row(
    key: tuple[str, str],
    estimates: Sequence[Estimate | None],
    decimals: int,
    values: Sequence[float],
    better: Direction,
) -> SliceRow:
    n = max((estimate.n for estimate in estimates if estimate is not None), default=0)
    cells = tuple(_cell(estimate, n, decimals, values, better) for estimate in estimates)
    return SliceRow(key[0], key[1], n, n < MIN_UNITS, cells)


def _cell(estimate: Estimate | None, n: int, decimals: int, values: Sequence[float], better: Direction) -> HeatCell:
    """One system on a slice of ``n`` units; the note has its own n if some units are undefined."""
    if estimate is None:
        return HeatCell("", None, None, small_sample=True)
    small_sample = estimate.n < MIN_UNITS
    value = finite_or_none(estimate.value)
    return HeatCell(
        text=format_value(estimate.value, decimals),
        value=value,
        shade=None if small_sample or value is None or not values else relative_shade(value, values, better),
        note=format_interval(estimate.interval, decimals)
        + ("" if estimate.n == n else f", n {format_count(estimate.n)}"),
        small_sample=small_sample,
    )


def _usable(slices: UnitSlices) -> UnitSlices:
    """The slices with at least two and at most ``MAX_SLICE_VALUES`` values."""
    values: dict[str, Counter[str]] = {}
    for by_name in slices.values():
        for name, value in by_name.items():
            values.setdefault(name, Counter())[str(value)] += 1
    names = {name for name, counts in values.items() if 1 < len(counts) <= MAX_SLICE_VALUES}
    kept = {unit: {name: by_name[name] for name in by_name if name in names} for unit, by_name in slices.items()}
    return {unit: by_name for unit, by_name in kept.items() if by_name}


def _caption(subject: RunSet, estimate: Estimate) -> str:
    best = "highest" if subject.better == Direction.UP else "lowest"
    return (
        f"The {subject.primary}{' of every system' if len(subject.runs) > 1 else ''} by slice, "
        f"with {format_percent(estimate.interval.confidence_level)} intervals; darker is better ({best} is best). "
        f"Slices of fewer than {MIN_UNITS} {subject.words.plural} are grey: their scores are not reliable."
    )


def value_distributions(subject: RunSet) -> tuple[ValueDistribution, ...]:
    """The distribution of every metric, and of the difference of the first two systems on the primary metric."""
    parts = []
    for metric in subject.metrics:
        values = subject.per_unit(metric)
        if values is not None and np.isfinite(values).any():
            parts.append(_values(subject, metric, values))
    values = subject.per_unit(subject.primary)
    if len(subject.runs) > 1 and values is not None:
        differences = values[:, 0] - values[:, 1]
        if np.isfinite(differences).any():
            parts.insert(1, _differences(subject, differences))
    return tuple(parts)


def _values(subject: RunSet, metric: str, values: Floats) -> ValueDistribution:
    edges, labels = _bins(values)
    words = subject.words
    series = tuple(_series(name, column, edges) for name, column in zip(subject.names, values.T, strict=True))
    return ValueDistribution(
        title=_units_by(subject, metric),
        metric=metric,
        edges=edges,
        labels=labels,
        series=series,
        caption=f"The number of {words.plural} by {metric} for each system ({words.units(len(values))}).",
        units=words.plural,
    )


def _differences(subject: RunSet, differences: Floats) -> ValueDistribution:
    first, second = subject.names[:2]
    edges, labels = _bins(differences)
    better = "Above" if subject.better == Direction.UP else "Below"
    return ValueDistribution(
        title=_units_by(subject, f"{first} minus {second}"),
        metric=subject.primary,
        edges=edges,
        labels=labels,
        series=(_series(f"{first} minus {second}", differences, edges),),
        caption=(
            f"The number of {subject.words.plural} by difference in {subject.primary}. {better} 0, {first} is better."
        ),
        units=subject.words.plural,
    )


def _units_by(subject: RunSet, what: str) -> str:
    units = subject.words.plural
    return f"{units[:1].upper()}{units[1:]} by {what}"


def _series(name: str, column: Floats, edges: tuple[float, ...]) -> BinCounts:
    # Rounded as in _bins: 1 - 0.8 and 0.2 are the same value, and an edge is between them.
    finite = np.round(column[np.isfinite(column)], 9)
    counts = np.histogram(finite, bins=np.array(edges))[0]
    return BinCounts(name, tuple(counts.tolist()), len(column) - len(finite))


def _bins(values: Floats) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Edges and labels: one bin per value if there are few, else bins of equal width."""
    finite = values[np.isfinite(values)]
    distinct = np.unique(np.round(finite, 9))
    if len(distinct) <= MAX_DISTINCT_VALUES:
        between = (distinct[:-1] + distinct[1:]) / 2
        ends = np.concatenate([[distinct[0] - 0.5], between, [distinct[-1] + 0.5]])
        return tuple(ends.tolist()), tuple(_short(value) for value in distinct.tolist())
    low, high = float(distinct.min()), float(distinct.max())
    if low >= 0 and high <= 1:
        edges = np.round(np.linspace(0.0, 1.0, UNIT_INTERVAL_BINS + 1), 9)
    elif low >= -1 and high <= 1:
        edges = np.round(np.linspace(-1.0, 1.0, BINS + 1), 9)
    else:
        edges = np.linspace(low, high, BINS + 1)
    ends = edges.tolist()
    labels = tuple(f"{_short(start)} to {_short(end)}" for start, end in pairwise(ends))
    return tuple(ends), labels


def _short(value: float) -> str:
    """The number with at most two decimals."""
    text = format_value(value, 2)
    return text.rstrip("0").rstrip(".") if "." in text else text
