"""The primary metric on parts of the units, as a heat table; greyed where a part is too small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from equipoise.report.page.figures import number
from equipoise.report.page.model import HeatCell, SliceRow, Slices
from equipoise.report.page.shades import shade
from equipoise.report.page.subject import Subject
from equipoise.report.page.unit_details import Slices as UnitSlices
from equipoise.stats.numbers import count, figure, percent, shared_decimals, span
from equipoise.stats.result import Estimate
from equipoise.stats.slices import FEW, sliced
from equipoise.types import Direction

MOST_VALUES = 40
"""A slice with more values than this is a name rather than a kind, and makes no table."""


def slices(subject: Subject, known: UnitSlices) -> Slices | None:
    """A row for every value of every slice, a cell for every system; None where nothing is sliced."""
    usable = _usable(known)
    if not usable or subject.per_unit(subject.primary) is None:
        return None
    columns = [
        {(each.name, each.value): each.estimate for each in sliced(run.result, subject.primary, usable)}
        for run in subject.runs
    ]
    keys = dict.fromkeys(key for column in columns for key in column)
    cells = {key: [column.get(key) for column in columns] for key in keys}
    found = [each for row in cells.values() for each in row if each is not None]
    if not found:
        return None
    places = shared_decimals(each.interval for each in found if each.n >= FEW)
    solid = [each.value for each in found if each.n >= FEW and number(each.value) is not None]
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
    return SliceRow(key[0], key[1], n, n < FEW, cells)


def _cell(
    estimate: Estimate | None, n: int, places: int, solid: Sequence[float], better: Direction
) -> HeatCell:
    """One system on a slice of ``n`` units; it says how many it has a value for where not for all."""
    if estimate is None:
        return HeatCell("", None, None, few=True)
    few = estimate.n < FEW
    value = number(estimate.value)
    return HeatCell(
        text=figure(estimate.value, places),
        value=value,
        shade=None if few or value is None or not solid else shade(value, solid, better),
        note=span(estimate.interval, places) + ("" if estimate.n == n else f", n {count(estimate.n)}"),
        few=few,
    )


def _usable(known: UnitSlices) -> UnitSlices:
    """The slices whose values are few enough to be kinds."""
    values: dict[str, Counter[str]] = {}
    for own in known.values():
        for name, value in own.items():
            values.setdefault(name, Counter())[str(value)] += 1
    names = {name for name, seen in values.items() if 1 < len(seen) <= MOST_VALUES}
    kept = {unit: {name: own[name] for name in own if name in names} for unit, own in known.items()}
    return {unit: own for unit, own in kept.items() if own}


def _caption(subject: Subject, one: Estimate) -> str:
    best = "highest" if subject.better == Direction.UP else "lowest"
    return (
        f"The {subject.primary}{' of every system' if len(subject.runs) > 1 else ''} on parts of the units, "
        f"with {percent(one.interval.level)} intervals; the stronger the shade, the better ({best} is best). "
        f"Parts of fewer than {FEW} units are greyed: their figures say little."
    )
