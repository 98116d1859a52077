"""The figures of a record before anybody has decided whether they are percent or fractions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from equipoise.checks.audit.facts import count
from equipoise.checks.audit.measure import AVERAGES, Measure
from equipoise.checks.audit.names import Role, named
from equipoise.checks.audit.row import Figure
from equipoise.checks.audit.span import Span
from equipoise.checks.audit.sums import Sums, over_total, sum_name, unit_beside
from equipoise.data.published.markup import plain
from equipoise.data.published.printed import Printed, exactly, printed
from equipoise.data.published.record import Cell, Record

_REPORT = re.compile(rf"(?i)\b({'|'.join(AVERAGES)})[ _]avg\b")
PER_CUTOFF = "torchmetrics"
CHOSEN = ("best", "optimized", "optimised", "tuned")

Column = tuple[str, Measure]


@dataclass(frozen=True)
class Draft:
    """A figure before its unit is decided; ``percent`` is None where no sign says anything."""

    measure: Measure
    group: str
    cell: Cell
    number: Printed
    percent: bool | None
    ends: tuple[Printed, Printed] | None
    n: int | None = None
    is_sum: bool = False
    """Whether it is a sum divided by the number of units: then it is a fraction."""
    proven_percent: bool = False
    """Whether the sum of the same metric proves that it is percent."""

    @property
    def is_over(self) -> bool:
        """Whether it can only be percent."""
        return self.number.low > 1.0 or self.proven_percent

    @property
    def column(self) -> Column:
        """Figures of one column have one unit."""
        return self.group, self.measure

    def figure(self, percent: bool) -> Figure:
        """The figure, a share being read as percent or as a fraction where it has no sign."""
        signed = percent if self.percent is None else self.percent
        scale = 0.01 if self.measure.is_share and signed else 1.0
        number = replace(self.number, percent=scale != 1.0)
        span = (Span(number.low, number.high) * scale).within(*self.measure.bounds)
        ends = self.ends and (_span(self.ends[0], scale), _span(self.ends[1], scale))
        text = f"{self.ends[0].text} to {self.ends[1].text}" if self.ends else ""
        return Figure(self.measure, self.cell.label, number, span, self.n, ends, text)


def drafts_of(record: Record) -> list[Draft]:
    """The figures that can be made out, with their intervals; a number of units that cannot be is refused."""
    found: list[Draft] = []
    ends: dict[tuple[str, Measure | None], dict[Role, Printed]] = {}
    report = _REPORT.search(record.name)
    facts = {cell.label: cell.text for cell in record.cells} | {each.label: each.text for each in record.said}
    like = facts.get("like", "")
    # A table with AP beside mAP has two metrics: one threshold or class, and the mean over several.
    single = any(map(_single, record.cells)) and any(map(_mean, record.cells))
    sums = Sums.of(record.cells)
    for cell in record.cells:
        number = printed(cell.text) if cell.text else None
        summed = number is not None and sums.reads_as_sum(cell, number)
        if number is not None and summed:
            found.append(_summed(cell, number, sums))
        label = named(cell.label)
        if label is None or number is None or summed is not False:
            continue
        number = exactly(number) if cell.exact else number
        if label.role in (Role.LOW, Role.HIGH):
            ends.setdefault((label.group, label.measure), {})[label.role] = number
        elif label.role is Role.VALUE and label.measure is not None:
            measure = _averaged(label.measure, report[1].casefold() if report else "")
            percent = True if label.percent or number.percent else (False if cell.exact else None)
            apart = "AP" if single and _single(cell) else _rules_of(measure, like)
            group = " ".join(filter(None, (label.group, apart)))
            n = count(cell.n, f"n of {' '.join(filter(None, (record.name, cell.label)))}") if cell.n else None
            found.append(Draft(measure, group, cell, number, percent, number.ends, n))
    for (group, owner), pair in ends.items():
        owned = _owner(found, group, owner)
        if owned is not None and len(pair) == 2:
            found[owned] = replace(found[owned], ends=(pair[Role.LOW], pair[Role.HIGH]))
    return _with_units(found)


def _summed(cell: Cell, number: Printed, sums: Sums) -> Draft:
    """The figure of a sum, divided by the number of units."""
    name, share = sum_name(cell.label), named(cell.label)
    measure, group = (name.measure, name.group) if name else (share.measure, share.group)  # type: ignore[union-attr]
    mean = over_total(number, sums.total(group) or 1.0)
    return Draft(measure, " ".join(group.split("_")), cell, mean, False, None, is_sum=True)  # type: ignore[arg-type]


def _with_units(drafts: list[Draft]) -> list[Draft]:
    """With the units that sums prove: 56.9 alongside 569 of 1,000 is percent."""
    means = {each.column: Span(each.number.low, each.number.high) for each in drafts if each.is_sum}
    decided = []
    for each in drafts:
        mean = None if each.is_sum or each.percent is not None else means.get(each.column)
        percent = None if mean is None else unit_beside(each.number, mean)
        proven = replace(each, proven_percent=True) if percent else replace(each, percent=False)
        decided.append(each if percent is None else proven)
    return decided


def _rules_of(measure: Measure, like: str) -> str:
    """What figures must share to be held against each other where they were scored like a library.

    Every metric has its own rules for ties and for queries that are missing, and where the best k are picked
    as torch does it, every cutoff has its own order of equals.
    """
    if not like:
        return ""
    return measure.name if PER_CUTOFF in like else measure.symbol


def _single(cell: Cell) -> bool:
    return plain(cell.label).casefold().partition("@")[0].strip() == "ap"


def _mean(cell: Cell) -> bool:
    return plain(cell.label).casefold().partition("@")[0].strip() == "map"


def _averaged(measure: Measure, average: str) -> Measure:
    """In a row such as ``macro avg`` precision, recall and F1 are macro averages."""
    bare = measure.symbol in ("P", "R", "F1") and measure.k is None and not measure.parameters
    return replace(measure, parameters=(("average", average),)) if average and bare else measure


def _owner(found: Sequence[Draft], group: str, measure: Measure | None) -> int | None:
    """Whose interval it is: the metric's that is named, the only one's, or the chosen one's."""
    places = [
        at
        for at, each in enumerate(found)
        if (measure is None or each.measure == measure) and (each.group == group or measure is None)
    ]
    alike = [at for at in places if found[at].group == group]
    chosen = [at for at in places if last_word(found[at].group) in CHOSEN]
    for offered in (alike, chosen, places):
        if len(offered) == 1:
            return offered[0]
    return None


def last_word(group: str) -> str:
    """The word that stands directly before a metric."""
    return group.rpartition(" ")[2].casefold()


def _span(number: Printed, scale: float) -> Span:
    return Span(number.low * scale, number.high * scale)
