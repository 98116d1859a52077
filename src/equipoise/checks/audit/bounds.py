"""Figures beyond the bounds of their metric."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from equipoise.checks.audit.facts import Need
from equipoise.checks.audit.row import Figure, Row
from equipoise.checks.audit.span import SLACK, digits
from equipoise.checks.audit.violation import Violation, accusing
from equipoise.checks.base import Check
from equipoise.data.published.markup import plain
from equipoise.types import Severity


def out_of_bounds(row: Row) -> Iterator[Violation]:
    """EQ411: a figure that its metric cannot take: a share above 1, a rank below 1."""
    for figure in row.figures:
        low, high = figure.measure.bounds
        if not figure.measure.is_standard and not row.own:
            continue
        if low - SLACK <= figure.span.high and figure.span.low <= high + SLACK:
            continue
        reach = f"at least {digits(low)}" if high == inf else f"between {digits(low)} and {digits(high)}"
        reach = f"at most {digits(high)}" if low == -inf else reach
        if figure.measure.symbol in ("MR", "MedianRank"):
            reach = "at least 1, since ranks start at 1"
        yield Violation(
            (figure,),
            f"{figure} is out of bounds: {figure.measure} is {reach}",
            (figure.read, f"{figure.measure} is {reach}"),
            (Need.MEAN_RANK,) if _may_be_a_miss_rate(row, figure) else (),
            remedy=_remedy(row, figure),
        )


def _remedy(row: Row, figure: Figure) -> str:
    if _may_be_a_miss_rate(row, figure):
        return "if it is a mean rank, call it so: Mean Rank"
    if figure.measure.is_share and not figure.printed.percent and not row.own and figure.span.low > 1:
        return "most values of its column are at most 1; if the column is percent, run again with --percent"
    return ""


def _may_be_a_miss_rate(row: Row, figure: Figure) -> bool:
    """Detectors have an MR as well, a share; whoever ranks has other figures of ranks beside it."""
    bare = figure.measure.symbol == "MR" and plain(figure.label).strip().casefold() == "mr"
    ranked = any(each.measure.symbol in ("MRR", "HR", "MedianRank", "nDCG") for each in row.figures)
    return bare and not ranked and figure.span.high >= 0


CHECK = Check(
    code="EQ411",
    title="a figure out of bounds",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(out_of_bounds),
    why="""\
Shares lie between 0 and 1, or 0 and 100 %, correlations between -1 and 1, and ranks start at 1. A mean rank
below 1 was counted from 0, which also turns reciprocal ranks into something else. A share above 100 % is a
sum that was divided by too little: precision by the number of relevant items, or a mean over fewer units
than were summed.""",
    remedy="find out what the sum was divided by; count ranks from 1",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"mean_rank": 0.83, "MRR": 0.91}).findings""",
)
