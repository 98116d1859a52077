"""Checks of a comparison: whether there were enough units for what it shows."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.base import Check, Complaint, counted
from equipoise.stats.comparison import Comparison
from equipoise.stats.contrast import Contrast
from equipoise.stats.numbers import about, decimals, p_value, signed
from equipoise.stats.verdict import undecided_pairs, what_they_show
from equipoise.types import Severity


def too_few_units(comparison: Comparison) -> Iterator[Complaint]:
    """EQ304: pairs that are not significantly different, and that more units would separate."""
    open_pairs = [
        each for each in undecided_pairs(comparison) if each.needed.known and each.needed.value > each.n
    ]
    if not open_pairs:
        return
    first = open_pairs[0]
    more = f" ({counted(len(open_pairs) - 1, 'more pair')} like it)" if len(open_pairs) > 1 else ""
    yield Complaint(
        f"{first.a}, {first.b}",
        f"on {comparison.primary} an n of about {about(first.needed.value)} "
        f"{what_they_show(comparison, first)}; here n is {first.n:,}{more}",
        tuple(map(_evidence, open_pairs)),
    )


def _evidence(seen: Contrast) -> str:
    return (
        f"{seen.a} minus {seen.b.removesuffix(':')}: {signed(seen.difference, decimals(seen.interval))}, "
        f"adjusted p {p_value(seen.adjusted)}, n {seen.n}, n needed about {about(seen.needed.value)}"
    )


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ304",
        title="too few units for the difference seen",
        severity=Severity.TIP,
        applies_to=Comparison,
        function=too_few_units,
        why="""\
The systems differ on these units, but a difference of that size arises too often by luck with so few of
them. "Not significant" does not mean "equal". The number of units that would show this difference with 80 %
power is computed from the spread of the paired differences, for the test that is reported: with several
systems, at the level that the correction for the number of pairs leaves to this pair. Showing that one system
is best takes more units, because all its pairs must be significant at once. Both numbers take the differences
seen for the true ones, and those are often smaller: plan for more.""",
        remedy="score about that many units, or report the systems as tied",
        example="""\
from equipoise import Ranking, compare
first = Ranking.from_ranks([1, 2, 1, 3, 1, 2, 4, 1], candidates=9)
second = Ranking.from_ranks([1, 3, 1, 2, 2, 2, 4, 2], candidates=9)
compare({"first": first, "second": second}, "MRR").findings""",
    ),
)
