"""Comparisons that cannot compare: every system is at the chance level, or every system is at the ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

from equipoise.stats.numbers import figure, shared_decimals
from equipoise.stats.result import Estimate
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.stats.comparison import Comparison

CEILING_MARGIN = 0.02
"""Shares above 1 minus this leave no room for a better system."""
HARDER = "Make the task harder: a smaller cutoff, smaller chunks, more candidates or harder {noun}s."
MORE = "Use more {noun}s, or a task with a lower chance level: a smaller cutoff or more candidates."
_ROUNDING = 1e-9


def why_uninformative(comparison: Comparison, noun: str = "unit") -> str:
    """Why the primary metric cannot compare these systems, and what to change; empty where it can.

    ``noun`` is what a unit is called.
    """
    estimates = [
        each
        for each in (comparison.estimates[name][comparison.primary] for name in comparison.systems)
        if not isnan(each.value)
    ]
    if len(estimates) < 2:
        return ""
    name, places = comparison.primary, shared_decimals(each.interval for each in estimates)
    chance = _range([each.chance for each in estimates], places)
    values = _range([each.value for each in estimates], places)
    if all(_is_share(each) and each.chance >= 1.0 - _ROUNDING for each in estimates):
        return (
            f"This setup cannot compare the systems: a random choice scores {chance} on {name}, as much as "
            f"any system can. {HARDER.format(noun=noun)}"
        )
    if _at_ceiling(estimates):
        return (
            f"This setup cannot compare the systems: all of them are at the ceiling of {name} ({values}), "
            f"where a better system could not score better. {HARDER.format(noun=noun)}"
        )
    # A chance level of 0 is the floor of a metric: any score above it is above chance.
    known = all(each.chance != 0.0 and not isnan(each.chance) for each in estimates)
    if known and not any(_above_chance(each) for each in estimates):
        return (
            f"No system is shown to be better than chance on {name} ({values}, chance {chance}) by these "
            f"{max(each.n for each in estimates):,} {noun}s, so this setup cannot compare them. "
            f"{MORE.format(noun=noun)}"
        )
    return ""


def _is_share(estimate: Estimate) -> bool:
    return estimate.better == Direction.UP and estimate.unit == "fraction"


def _at_ceiling(estimates: Sequence[Estimate]) -> bool:
    return all(_is_share(each) and 1.0 - CEILING_MARGIN <= each.value <= 1.0 for each in estimates)


def _above_chance(estimate: Estimate) -> bool:
    """Whether the whole interval is on the better side of chance; without one, the value."""
    reach = estimate.interval
    low, high = (reach.low, reach.high) if reach.known else (estimate.value, estimate.value)
    return low > estimate.chance if estimate.better == Direction.UP else high < estimate.chance


def _range(values: Sequence[float], places: int) -> str:
    low, high = figure(min(values), places), figure(max(values), places)
    return low if low == high else f"{low} to {high}"
