"""What a comparison comes to, in two plain sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import floor, isnan, log10
from typing import TYPE_CHECKING

from equipoise.stats.formatting import (
    about,
    format_interval,
    format_p,
    format_percent,
    format_value,
    n_decimals,
    shared_decimals,
)
from equipoise.stats.intervals import Interval
from equipoise.stats.power import POWER
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.contrasts import Contrast
    from equipoise.stats.result import Estimate

# Comparisons that cannot compare: every system is at the chance level, or every system is at the ceiling.

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
    low, high = format_value(min(values), places), format_value(max(values), places)
    return low if low == high else f"{low} to {high}"


NAMED = 3


def verdict_text(comparison: Comparison, noun: str = "unit") -> str:
    """Who leads and who is tied with it; then what the data cannot tell, and what would help.

    ``noun`` is what a unit is called.
    """
    if comparison.leader is None:
        units = _units(comparison, comparison.n, noun)
        return (
            f"No system has a value of {comparison.primary} on these {units}. "
            "Nothing can be said about which is better."
        )
    return f"{_who_leads(comparison, comparison.leader)} {_what_is_open(comparison, comparison.leader, noun)}"


def _who_leads(comparison: Comparison, leader: str) -> str:
    tied = comparison.tied_with_leader
    beaten = [name for name in _scored(comparison) if name != leader and name not in tied]
    own = _shown(comparison, leader)
    missing = [name for name in comparison.systems if isnan(comparison.scores[name])]
    tail = f"; {_listed(missing)} could not be scored" if missing else ""
    if not tied and not beaten:
        return f"{leader} is the only system with a value of {comparison.primary} ({own}){tail}."
    if not tied:
        seen = comparison.contrast(leader, beaten[0])
        rest = f", and of {len(beaten) - 1} more" if len(beaten) > 1 else ""
        return (
            f"{leader} leads on {comparison.primary} with {own}, ahead of {beaten[0]} by "
            f"{_difference(seen)} ({_certainty(seen)}){rest}{tail}."
        )
    ahead = f"; {leader} is ahead of {_listed(beaten)}" if beaten else ""
    tie = _tied_scores(comparison, leader)
    return f"No system is shown to be best on {comparison.primary}: {tie}{ahead}{tail}."


def _tied_scores(comparison: Comparison, leader: str) -> str:
    """The leader and those that the data cannot tell from it, with their scores, as a clause."""
    own = comparison.scores[leader]
    equal = [name for name in comparison.tied_with_leader if comparison.scores[name] == own]
    others = [
        f"{name} ({_shown(comparison, name)})" for name in comparison.tied_with_leader if comparison.scores[name] != own
    ]
    if equal:
        start = f"{_listed([leader, *equal])} share the best score ({_shown(comparison, leader)})"
        return f"{start}, and the data cannot tell {leader} from {_listed(others)}" if others else start
    best = "highest" if comparison.better == Direction.UP else "lowest, which is best"
    own_score = _shown(comparison, leader)
    return f"{leader} scores {best} ({own_score}), but the data cannot tell it from {_listed(others)}"


def _what_is_open(comparison: Comparison, leader: str, noun: str) -> str:
    tied = comparison.tied_with_leader
    if tied:
        clause = _separation(comparison, comparison.contrast(leader, tied[0]), noun)
        return f"{clause[0].upper()}{clause[1:]}."
    scored = _scored(comparison)
    if len(scored) < 2:
        return "There is nothing to compare it with."
    undecided = undecided_pairs(comparison)
    if undecided:
        more = f" (and {len(undecided) - 1} more pairs)" if len(undecided) > 1 else ""
        first = f"{undecided[0].a} from {undecided[0].b}{more}"
        return f"Behind it the data cannot tell {first}: {_separation(comparison, undecided[0], noun)}."
    told = "The two systems" if len(scored) == 2 else f"All {len(scored)} systems"
    leading = comparison.contrast(leader, next(name for name in scored if name != leader))
    units = _units(comparison, leading.n, noun)
    return f"{told} are told apart by these {units}{_reach(comparison, leading)}."


def undecided_pairs(comparison: Comparison) -> list[Contrast]:
    """The pairs on the primary metric that are not significantly different, best systems first."""
    pairs = [comparison.contrast(a, b) for a, b in combinations(_scored(comparison), 2)]
    return [each for each in pairs if each.winner(comparison.alpha) is None]


def _separation(comparison: Comparison, seen: Contrast, noun: str) -> str:
    """How many units would separate two systems, as a clause."""
    if seen.reason:
        return f"there is no test of {seen.a} against {seen.b}: {seen.reason}"
    if not seen.needed.known:
        return f"how many {noun}s would separate {seen.a} and {seen.b} is unknown, since {seen.needed.reason}"
    if seen.needed.value > seen.n:
        units = f"about {about(seen.needed.value)} {noun}s"
        return f"{units} {what_they_show(comparison, seen)}; there are {_units(comparison, seen.n, noun)}"
    return (
        f"{_units(comparison, seen.n, noun)} are about enough to show the difference between {seen.a} and "
        f"{seen.b}, {_difference(seen)}, {_with_power(comparison)}, but the test did not show it"
    )


def what_they_show(comparison: Comparison, seen: Contrast) -> str:
    """What the units needed for a pair would show, with which power and adjustment.

    For the leader and a system that is tied with it, also how many would show the leader to be best.
    """
    return (
        f"would separate {seen.a} and {seen.b} {_with_power(comparison)} if the difference seen, "
        f"{_difference(seen)}, is the true one{_to_show_best(comparison, seen)}"
    )


def _with_power(comparison: Comparison) -> str:
    return f"with {format_percent(POWER)} power ({comparison.adjustment})"


def _to_show_best(comparison: Comparison, seen: Contrast) -> str:
    """How many units would show the leader to be best, where the pair is one of several with the leader."""
    needed = comparison.needed_for_best
    if comparison.leader not in (seen.a, seen.b) or len(_scored(comparison)) < 3 or not needed.known:
        return ""
    return f", and about {about(needed.value)} would show {comparison.leader} to be best"


def _scored(comparison: Comparison) -> list[str]:
    return [name for name in comparison.order if not isnan(comparison.scores[name])]


def _reach(comparison: Comparison, leading: Contrast) -> str:
    """The smallest difference that could be shown: that of the first two, since others may vary far more."""
    if not leading.detectable.known:
        return ""
    size = leading.detectable.value
    places = max(0, 1 - floor(log10(size))) if size > 0 else 0
    between = " between the first two" if len(_scored(comparison)) > 2 else ""
    shown = f"differences of about {format_value(size, places)} or more{between}"
    return f", which can show {shown} {_with_power(comparison)}"


def _certainty(seen: Contrast) -> str:
    p = f"adjusted p {format_p(seen.adjusted)}"
    if not seen.interval.known:
        return p
    low, high = seen.interval.low, seen.interval.high
    if low + high < 0:  # the leader's side of the difference, whichever way is better
        low, high = -high, -low
    return f"{format_percent(seen.interval.confidence_level)} interval {format_interval(Interval(low, high))}, {p}"


def _shown(comparison: Comparison, name: str) -> str:
    intervals = [comparison.estimates[each][comparison.primary].interval for each in comparison.systems]
    return format_value(comparison.scores[name], shared_decimals(intervals))


def _difference(seen: Contrast) -> str:
    """As many decimals as the interval deserves, and one that is not 0 where there is one."""
    size = abs(seen.difference)
    first = -floor(log10(size)) if size > 0 else 0
    return format_value(size, max(n_decimals(seen.interval), first))


def _units(comparison: Comparison, n: int, noun: str) -> str:
    """So many units; a contrast rests on those where both systems are defined."""
    within = f" in {comparison.clusters:,} clusters" if comparison.clusters is not None else ""
    return f"{n:,} {noun}{'' if n == 1 else 's'}{within}"


def _listed(names: Sequence[str]) -> str:
    """One, two or three names, and how many more there are."""
    shown, rest = list(names[:NAMED]), len(names) - NAMED
    if rest > 0:
        return f"{', '.join(shown)} and {rest} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
