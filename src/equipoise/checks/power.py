"""Checks of a comparison: whether there were enough units for what it shows."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.base import Check, Complaint, counted
from equipoise.stats.comparison import Comparison
from equipoise.stats.contrast import Contrast
from equipoise.stats.numbers import decimals, figure, p_value, signed
from equipoise.types import Severity


def too_few_units(comparison: Comparison) -> Iterator[Complaint]:
    """EQ304: pairs that are not told apart, and whose difference would take more units to show."""
    open_pairs = [
        each
        for each in comparison.contrasts
        if each.metric == comparison.primary
        and each.winner(comparison.alpha) is None
        and each.needed.known
        and each.needed.value > each.n
    ]
    if not open_pairs:
        return
    nearest = min(open_pairs, key=lambda each: each.needed.value)
    first = next((each for each in open_pairs if comparison.leader in (each.a, each.b)), nearest)
    more = f" ({counted(len(open_pairs) - 1, 'more pair')} like it)" if len(open_pairs) > 1 else ""
    yield Complaint(
        f"{first.a}, {first.b}",
        f"the difference of {figure(abs(first.difference), decimals(first.interval))} on "
        f"{comparison.primary} would take an n of about {first.needed.value:,.0f} to show, "
        f"and here n is {first.n:,}{more}",
        tuple(map(_evidence, open_pairs)),
    )


def _evidence(seen: Contrast) -> str:
    return (
        f"{seen.a} minus {seen.b.removesuffix(':')}: {signed(seen.difference, decimals(seen.interval))}, "
        f"adjusted p {p_value(seen.adjusted)}, n {seen.n}, n needed {seen.needed.value:.0f}"
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
them. "Not significant" does not mean "equal". The number of units that would show this difference four
times in five is computed from the spread of the paired differences. It takes the difference seen for the
true one, and that is often smaller: plan for more.""",
        remedy="score about that many units, or report the systems as tied",
        example="""\
from equipoise import Ranking, compare
first = Ranking.from_ranks([1, 2, 1, 3, 1, 2, 4, 1], candidates=9)
second = Ranking.from_ranks([1, 3, 1, 2, 2, 2, 4, 2], candidates=9)
compare({"first": first, "second": second}, "MRR").findings""",
    ),
)
