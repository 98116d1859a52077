"""Sums over units: ``correct@10`` and ``rr`` alongside ``total``, as evaluation loops add them up.

A sum divided by the number of units is a metric value like any other. So a sum becomes a figure of its
metric, and every law that compares figures compares it with the share that the same file reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from equipoise.checks.audit.measure import Measure
from equipoise.checks.audit.names import Role, named
from equipoise.checks.audit.span import Span
from equipoise.data.published.markup import plain
from equipoise.data.published.printed import Printed, printed
from equipoise.data.published.record import Cell

_PREFIX = r"(?:(?P<group>.+?)[/:._])?"
_COUNT = re.compile(rf"{_PREFIX}(?:n_|num_)?(?P<word>correct|hits?)(?:_?@|_at_|_)(?P<k>\d+)")
_SUM = re.compile(
    rf"{_PREFIX}(?:(?P<last>rr|mrr|ndcg|dcg)_sum|(?:sum|total)_(?P<first>rr|mrr|ndcg|dcg)|(?P<bare>rr))"
)
_TOTAL = re.compile(
    rf"{_PREFIX}(?:total|n|n_test|num_samples|samples|n_samples|total_samples|units|visits|n_total)"
)
MOST_PERCENT = 100.0
"""No share is larger, so what is larger is a sum, whatever it is called."""
_SUMMED = ("MRR", "nDCG", "HR")


@dataclass(frozen=True, slots=True)
class SumName:
    """What a label of a sum counts; ``certain`` where no share has such a name."""

    measure: Measure
    group: str
    certain: bool


@lru_cache(maxsize=4096)
def key_of(label: str) -> str:
    """A label in lower case with underscores for blanks and dashes."""
    return re.sub(r"[\s-]+", "_", plain(label).strip().casefold())


@lru_cache(maxsize=4096)
def sum_name(label: str) -> SumName | None:
    """The metric whose sum a label names; None where it names no sum.

    >>> sum_name("correct@5").measure.name, sum_name("rr").measure.name, sum_name("mrr")
    ('HR@5', 'MRR', None)
    """
    key = key_of(label)
    if match := _COUNT.fullmatch(key):
        return SumName(Measure("HR", int(match["k"])), match["group"] or "", match["word"] == "correct")
    if match := _SUM.fullmatch(key):
        word = match["last"] or match["first"] or "rr"
        symbol = "MRR" if word.endswith("rr") else "nDCG"
        return SumName(Measure(symbol), match["group"] or "", match["bare"] is None)
    return None


def is_count(label: str) -> bool:
    """Whether a label can only be that of a number of hits."""
    found = sum_name(label)
    return found is not None and found.certain and found.measure.symbol == "HR"


def is_total(label: str) -> bool:
    """Whether a label is that of the number of units behind sums."""
    return _TOTAL.fullmatch(key_of(label)) is not None


@dataclass(frozen=True, slots=True)
class Sums:
    """What the cells of one record say of its sums: ``totals`` by group, and whether ``hits`` are counts."""

    totals: Mapping[str, float]
    shares: frozenset[Measure]
    """The metrics whose shares are in the record as well."""
    counted_hits: bool
    raw: bool
    """Whether the record holds sums and no share."""

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> Sums:
        """From the cells of a record."""
        totals: dict[str, float] = {}
        for cell in cells:
            match = _TOTAL.fullmatch(key_of(cell.label))
            number = printed(cell.text) if match and cell.text else None
            if match and number is not None and number.value >= 1 and number.value == int(number.value):
                totals.setdefault(match["group"] or "", number.value)
        shares = frozenset(_share_names(cells))
        sums = [cell for cell in cells if cell.text and (name := sum_name(cell.label)) and name.certain]
        hits = [number for cell in cells if (number := _hits(cell)) is not None]
        return cls(
            totals,
            shares,
            bool(hits) and any(each.value > MOST_PERCENT for each in hits),
            bool(sums) and not shares,
        )

    def total(self, group: str) -> float | None:
        """The number of units behind the sums of a group."""
        return self.totals.get(group, self.totals.get(""))

    def reads_as_sum(self, cell: Cell, number: Printed) -> bool | None:
        """Whether a cell holds a sum; None where that is open, so that nothing can be said of it."""
        name = sum_name(cell.label)
        if number.percent or cell.exact:
            return False
        if name is None:
            share = named(cell.label)
            if share is None or share.measure is None or share.measure.symbol not in _SUMMED or share.percent:
                return False
            total = self.total(key_of(share.group))
            return total is not None and (number.low > MOST_PERCENT or self.raw)
        total = self.total(name.group)
        if total is None:
            # rr above 100 is a sum over a number of units that is not given.
            return None if name.certain or number.low > MOST_PERCENT else False
        if name.certain or (
            name.measure.symbol == "MRR" and (number.value > 1 or name.measure in self.shares)
        ):
            return True
        if name.measure.symbol == "HR" and _is_whole(number) and number.value > 1:
            # 52 hits of 300 units, or 52 %.
            return True if self.counted_hits else None
        return False


def _share_names(cells: Iterable[Cell]) -> Iterable[Measure]:
    for cell in cells:
        found = named(cell.label) if cell.text and sum_name(cell.label) is None else None
        measure = found.measure if found and found.role is Role.VALUE else None
        if measure is not None and measure.symbol in ("HR", "Acc", "MRR"):
            yield measure


def _hits(cell: Cell) -> Printed | None:
    """The number alongside a label such as hits@10, which may be a count or a share."""
    name = sum_name(cell.label)
    number = printed(cell.text) if name and not name.certain and cell.text else None
    return number if number and name and name.measure.symbol == "HR" and not number.percent else None


def _is_whole(number: Printed) -> bool:
    return number.value == int(number.value) and number.half >= 0.05


def over_total(number: Printed, total: float) -> Printed:
    """A sum divided by the number of units; a number of hits is known exactly."""
    half = 0.0 if _is_whole(number) else number.half
    return Printed(f"{number.text}/{total:g}", number.value / total, half / total)


def unit_beside(number: Printed, mean: Span) -> bool | None:
    """Whether a share is percent, given the mean that its sum proves; None where both or neither fit."""
    whole = Span(number.low, number.high)
    fraction, percent = not whole.apart(mean), not (whole * 0.01).apart(mean)
    return percent if fraction != percent else None
