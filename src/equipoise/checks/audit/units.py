"""Percent beside fractions, and nothing that says which is which."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.audit.row import Table
from equipoise.checks.audit.violation import Violation, accusing
from equipoise.checks.base import Check, listed
from equipoise.types import Severity


def mixed_units(table: Table) -> Iterator[Violation]:
    """EQ412: columns above 1 beside columns below it, and no percent sign on either."""
    if table.unsure and table.percents:
        many = len(table.unsure) > 1
        yield Violation(
            (),
            f"{listed(table.percents)} must be percent, and {listed(table.unsure)} may be "
            f"{'fractions' if many else 'a fraction'} or percent below 1",
            (
                f"a share is at most 1, so figures above 1 are percent: {listed(table.percents)}",
                f"all figures of {listed(table.unsure)} are below 1 and carry no sign",
                "each row was read in the mixtures of both, and only what none allows is called impossible",
            ),
        )


CHECK = Check(
    code="EQ412",
    title="percent beside fractions",
    severity=Severity.TIP,
    applies_to=Table,
    function=accusing(mixed_units),
    why="""\
A table that gives one share as 71.4 and another as 0.82 leaves the reader to guess: is the second one 0.82 or
0.82 %? Programs that average or compare such columns do not guess, they compute. A figure above 1 proves
percent for its column; one below 1 proves nothing.""",
    remedy="write a percent sign, or (%) into the head of the column, or use fractions throughout",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"HR@1": 71.4, "HR@10": 98.6, "MRR": 0.82}).findings""",
)
