"""Where the units lie: how many of each system's units have which value."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from equipoise.checks.base import counted
from equipoise.report.page.model import Distribution, Series
from equipoise.report.page.subject import Subject
from equipoise.stats.numbers import figure
from equipoise.types import Direction, Floats

FEW_VALUES = 12
BINS = 20
UNIT_BINS = 10
UNITS_BY = "Units by "


def distributions(subject: Subject) -> tuple[Distribution, ...]:
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


def _values(subject: Subject, metric: str, values: Floats) -> Distribution:
    edges, labels = _bins(values)
    series = tuple(_series(name, column, edges) for name, column in zip(subject.names, values.T, strict=True))
    return Distribution(
        title=f"{UNITS_BY}{metric}",
        metric=metric,
        edges=edges,
        labels=labels,
        series=series,
        caption=f"How many of {counted(len(values), 'unit')} have which {metric}, for each system.",
    )


def _differences(subject: Subject, gained: Floats) -> Distribution:
    first, second = subject.names[:2]
    edges, labels = _bins(gained)
    better = "Above" if subject.better == Direction.UP else "Below"
    return Distribution(
        title=f"{UNITS_BY}{first} minus {second}",
        metric=subject.primary,
        edges=edges,
        labels=labels,
        series=(_series(f"{first} minus {second}", gained, edges),),
        caption=f"How many units have which difference in {subject.primary}. {better} 0, {first} is better.",
    )


def _series(name: str, column: Floats, edges: tuple[float, ...]) -> Series:
    finite = column[np.isfinite(column)]
    counts = np.histogram(finite, bins=np.array(edges))[0]
    return Series(name, tuple(counts.tolist()), len(column) - len(finite))


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
    text = figure(value, 2)
    return text.rstrip("0").rstrip(".") if "." in text else text
