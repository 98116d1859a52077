"""What a comparison comes to, in two plain sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import floor, isnan, log10
from typing import TYPE_CHECKING

from equipoise.stats.contrast import Contrast
from equipoise.stats.interval import Interval
from equipoise.stats.numbers import about, decimals, figure, p_value, percent, shared_decimals, span
from equipoise.stats.power import POWER
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.stats.comparison import Comparison

NAMED = 3


def sentences(comparison: Comparison, noun: str = "unit") -> str:
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
        f"{name} ({_shown(comparison, name)})"
        for name in comparison.tied_with_leader
        if comparison.scores[name] != own
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
    return f"with {percent(POWER)} power ({comparison.adjustment})"


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
    shown = f"differences of about {figure(size, places)} or more{between}"
    return f", which can show {shown} {_with_power(comparison)}"


def _certainty(seen: Contrast) -> str:
    p = f"adjusted p {p_value(seen.adjusted)}"
    if not seen.interval.known:
        return p
    low, high = seen.interval.low, seen.interval.high
    if low + high < 0:  # the leader's side of the difference, whichever way is better
        low, high = -high, -low
    return f"{percent(seen.interval.level)} interval {span(Interval(low, high))}, {p}"


def _shown(comparison: Comparison, name: str) -> str:
    intervals = [comparison.estimates[each][comparison.primary].interval for each in comparison.systems]
    return figure(comparison.scores[name], shared_decimals(intervals))


def _difference(seen: Contrast) -> str:
    """As many decimals as the interval deserves, and one that is not 0 where there is one."""
    size = abs(seen.difference)
    first = -floor(log10(size)) if size > 0 else 0
    return figure(size, max(decimals(seen.interval), first))


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
