"""Checks of a comparison: whether there were enough units for what it shows."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.base import Complaint, counted
from equipoise.stats.comparison import Comparison
from equipoise.stats.contrast import Contrast
from equipoise.stats.numbers import decimals, figure, p_value, signed


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
        f"{comparison.primary} would take about {first.needed.value:,.0f} units to show, "
        f"and there are {first.n:,}{more}",
        tuple(map(_evidence, open_pairs)),
    )


def _evidence(seen: Contrast) -> str:
    return (
        f"{seen.a} minus {seen.b}: {signed(seen.difference, decimals(seen.interval))}, "
        f"adjusted p {p_value(seen.adjusted)}, n {seen.n}, units needed {seen.needed.value:.0f}"
    )
