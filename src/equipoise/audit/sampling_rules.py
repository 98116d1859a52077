"""Rules on samples: which means, intervals and chance levels n units and random ranking can give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil, floor, inf, log, log2, pi, sqrt
from typing import NamedTuple

from equipoise.audit.rank_rules import harmonic_number
from equipoise.audit.table import (
    REQUIRES_ONE_RELEVANT,
    SLACK,
    Assumption,
    PublishedRow,
    PublishedValue,
    ValueRange,
    Violation,
    format_digits,
)
from equipoise.checks.base import pluralize
from equipoise.stats.formatting import format_percent
from equipoise.stats.intervals import normal_critical

REQUIRES_BINARY_HITS = (Assumption.HITS,)
MAX_STEPS = 10**8
"""With more steps the rounding of double precision would decide."""


def impossible_mean_of_n(row: PublishedRow) -> Iterator[Violation]:
    """EQ407: a value between two neighbouring values that n units can give (the GRIM test)."""
    if row.chance or row.averaged:
        return
    for value in row.values:
        n = row.n_units(value)
        parts = _parts(value)
        if n is not None and parts is not None:
            yield from _fraction_violations(value, n, *parts)


def _parts(value: PublishedValue) -> tuple[int, str, tuple[Assumption, ...]] | None:
    """The number of steps per unit between 0 and 1, the reason, and the assumptions."""
    metric = value.metric
    if metric.symbol in ("HR", "Acc") and not metric.parameters:
        return 1, "a unit is a hit or a miss", REQUIRES_BINARY_HITS
    if metric.symbol == "P" and metric.k is not None:
        return (
            metric.k,
            f"a unit has an integer number of relevant items among its first {metric.k}",
            REQUIRES_BINARY_HITS,
        )
    if metric.symbol == "R" and metric.k is not None and not metric.parameters:
        return 1, "a unit's one relevant item is found or not", (*REQUIRES_ONE_RELEVANT, Assumption.HITS)
    if metric.symbol == "MR" and not metric.parameters:
        return 2, "a rank is an integer, or a multiple of 1/2 if it is averaged over ties", REQUIRES_ONE_RELEVANT
    return None


def _fraction_violations(
    value: PublishedValue, n: int, parts: int, why: str, assumptions: tuple[Assumption, ...]
) -> Iterator[Violation]:
    steps = n * parts
    if steps > MAX_STEPS or value.range.high < 0:
        return
    first = ceil(value.range.low * steps - SLACK * steps)
    if first <= value.range.high * steps + SLACK * steps:
        return
    below, above = floor(value.range.low * steps), floor(value.range.low * steps) + 1
    unit = f"{n}" if parts == 1 else f"({n} x {parts})"
    yield Violation(
        (value,),
        f"{value} cannot be a mean over {pluralize(n, 'unit')}: the nearest are {format_digits(below / steps)} and "
        f"{format_digits(above / steps)}",
        (
            f"{why}, so the mean over {n} units is a multiple of 1/{unit}",
            value.derivation_step,
            f"{below}/{steps} = {format_digits(below / steps)} and {above}/{steps} = {format_digits(above / steps)} "
            "would both be printed differently",
        ),
        assumptions,
    )


WIDTH_TOLERANCE = 0.8
"""Interval methods differ by less than this factor where the normal approximation, the narrowest, is valid."""
ASSUMED_CONFIDENCE_LEVEL = 0.8
"""The confidence level assumed for an interval without one; low, so that no common interval looks too narrow."""


def impossible_interval(row: PublishedRow) -> Iterator[Violation]:
    """EQ409: an interval that excludes its own value, or is narrower than n hits and misses allow."""
    if row.chance:
        return
    for value in row.values:
        if value.interval is None:
            continue
        low, high = value.interval
        least, most = value.metric.bounds
        # A credible interval excludes a value at the end of the scale.
        below = low.is_above(value.range) and value.range.low > least + SLACK
        beyond = value.range.is_above(high) and value.range.high < most - SLACK
        if below or beyond or low.is_above(high):
            yield _outside_interval(value)
        elif value.metric.symbol in ("HR", "Acc") and not row.averaged:
            yield from _too_narrow(row, value, low, high)


def _outside_interval(value: PublishedValue) -> Violation:
    return Violation(
        (value,),
        f"{value} is outside its own interval",
        (
            value.derivation_step,
            f"the interval goes from {value.interval_text}",
            "an interval contains the value it was computed for",
        ),
    )


def _too_narrow(row: PublishedRow, value: PublishedValue, low: ValueRange, high: ValueRange) -> Iterator[Violation]:
    n = row.n_units(value)
    if n is None:
        return
    level = row.context.confidence_level
    critical = normal_critical(level or ASSUMED_CONFIDENCE_LEVEL) * (WIDTH_TOLERANCE if level else 1.0)
    share = min(value.range.low, 1.0 - value.range.high)
    share = max(0.0, min(share, 0.5))
    half = critical * sqrt(share * (1.0 - share) / n)
    # The approximation may leave [0, 1]: only the part inside counts.
    middle = value.range.low if value.range.low < 0.5 else value.range.high
    least = min(1.0, middle + half) - max(0.0, middle - half)
    if high.high - low.low < least - SLACK:
        level_text = f"at {format_percent(level)}" if level else f"even at {format_percent(ASSUMED_CONFIDENCE_LEVEL)}"
        yield Violation(
            (value,),
            f"the interval of {value} is {format_digits(high.high - low.low, 4)} wide, too narrow for "
            f"{pluralize(n, 'unit')}",
            (
                f"a share of {n} hits and misses varies by sqrt(p (1 - p) / n) from sample to sample",
                value.derivation_step,
                f"the interval goes from {value.interval_text}",
                f"it is {format_digits(high.high - low.low)} wide at most",
                f"{level_text} the narrowest method, the normal approximation, gives about {format_digits(least, 4)}",
            ),
            (Assumption.HITS,),
        )


MIN_P_VALUE = 1e-9
"""The smallest p value of a measured random run that still passes."""
MAX_CANDIDATES = 10**6
ESTIMATED_N_FACTOR = 5.0
"""Factor on the allowed deviation if the number of units is only estimated from the values."""


def wrong_chance_level(row: PublishedRow) -> Iterator[Violation]:
    """EQ410: a random baseline that is not at the chance level."""
    pool = _pool(row) if row.chance else None
    if pool is None or pool.most > MAX_CANDIDATES:
        return
    for value in row.values:
        chance = _chance_score(value)
        if chance is not None and value is not pool.derived_from:
            yield from _off(row, value, pool, chance)


class CandidateCount(NamedTuple):
    """The number of items among which the right answer is ranked; ``derived_from`` is the value that implies it."""

    least: int
    most: int
    assumptions: tuple[Assumption, ...]
    derived_from: PublishedValue | None = None

    def __str__(self) -> str:
        return f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"


def _pool(row: PublishedRow) -> CandidateCount | None:
    """The number of classes or candidates, or the n that a random accuracy of 1/n implies."""
    assumptions = (Assumption.ONE_RELEVANT,)
    if row.context.classes:
        several = Assumption.ONE_RELEVANT in row.rejected
        return CandidateCount(row.context.classes, row.context.classes, assumptions if several else ())
    if row.context.candidates:
        return CandidateCount(row.context.candidates, row.context.candidates, assumptions)
    first = _first(row)
    if first is None or first.range.low <= 0 or row.n_units(first) is not None:
        return None
    least, most = ceil(1 / first.range.high - SLACK), floor(1 / first.range.low + SLACK)
    return CandidateCount(least, most, assumptions, first) if least <= most else None


def _first(row: PublishedRow) -> PublishedValue | None:
    return row.value_of("HR", 1) or row.value_of("Acc")


class ChanceScore(NamedTuple):
    """The score of random ranking among n items: description, mean, mean square and maximum, given n."""

    description: str
    mean: Callable[[int], float]
    square: Callable[[int], float]
    most: Callable[[int], float] = lambda n: 1.0


def _chance_score(value: PublishedValue) -> ChanceScore | None:
    """The mean score of the right answer over all ranks from 1 to n."""
    symbol, k = value.metric.symbol, value.k
    if value.metric.parameters:
        return None
    if symbol == "MRR":
        words = "the mean of 1, 1/2, ... 1/n, which is H_n / n" if k == inf else f"H_{int(k)} / n"
        return ChanceScore(words, lambda n: harmonic_number(min(k, n)) / n, lambda n: _SQUARES / n)
    if symbol in ("HR", "Acc"):
        hits = k if symbol == "HR" else 1
        return ChanceScore(f"{int(hits)} / n", lambda n: min(hits, n) / n, lambda n: min(hits, n) / n)
    if symbol == "nDCG":
        return ChanceScore("the mean of 1 / log2(rank + 1)", *[lambda n: _discounts(int(min(k, n))) / n] * 2)
    if symbol == "MR":
        return ChanceScore("(n + 1) / 2", lambda n: (n + 1) / 2, lambda n: (n + 1) * (2 * n + 1) / 6, float)
    return None


_SQUARES = pi**2 / 6
"""The sum of 1, 1/4, 1/9, ...: an upper bound for squared reciprocal ranks."""


def _discounts(last: int) -> float:
    return sum(1.0 / log2(rank + 1) for rank in range(1, last + 1))


def _off(row: PublishedRow, value: PublishedValue, pool: CandidateCount, chance: ChanceScore) -> Iterator[Violation]:
    ends = sorted(chance.mean(size) for size in (pool.least, pool.most))
    expected = ValueRange(ends[0], ends[1])
    if not expected.is_disjoint(value.range):
        return
    n, deviation = _chance_spread(row, value, pool, chance)
    measured = not ValueRange(ends[0] - deviation, ends[1] + deviation).is_disjoint(value.range)
    if measured and row.n_units(value) is not None:
        return
    stated = (f"{pool.derived_from.derivation_step}; it is 1/n, so n is {pool}",) if pool.derived_from else ()
    moved = (f"on {n} units chance moves it by at most {format_digits(deviation, 4)}",) if not measured else ()
    yield Violation(
        (value,),
        f"{value} is not the chance level among {pool}: {expected}",
        (
            *stated,
            f"the right answer has each of n ranks equally often, so {value.metric} is {chance.description}",
            f"for n = {pool} that is {expected}",
            *moved,
            value.derivation_step,
        ),
        (*_needs(value, pool, expected), *((Assumption.EXPECTED,) if measured else ())),
        hint="if it was measured, give the number of units with --n or a column n" if measured else "",
    )


def _needs(value: PublishedValue, pool: CandidateCount, expected: ValueRange) -> tuple[Assumption, ...]:
    """Several relevant items do not matter if a random accuracy is known and the value is above.

    By chance the first k ranks contain a relevant item at most k times as often as the first one does.
    """
    bounded = pool.derived_from is not None and value.metric.symbol in ("HR", "MRR")
    return () if bounded and value.range.is_above(expected) else pool.assumptions


def _chance_spread(
    row: PublishedRow, value: PublishedValue, pool: CandidateCount, chance: ChanceScore
) -> tuple[int, float]:
    """The smallest number of units of a random run, and how far chance moves its mean."""
    units = row.n_units(value)
    n = units
    if n is None:
        # A share above 0 is at least one hit of n.
        shares = [value.range.high for value in row.values if value.metric.symbol in _HITS and value.range.low > 0]
        n = max(1, *(floor(1 / share + SLACK) for share in shares)) if shares else 1
    sizes = (pool.least, pool.most)
    square, most = max(map(chance.square, sizes)), max(map(chance.most, sizes))
    deviation = _chance_deviation(square, most, n)
    return n, deviation if units is not None else ESTIMATED_N_FACTOR * deviation


_HITS = ("HR", "Acc")


def _chance_deviation(square: float, most: float, n: int) -> float:
    """How far a mean over n units may deviate by chance (Bernstein); the variance is below the mean square."""
    odds = log(2 / MIN_P_VALUE)
    return sqrt(2 * square * odds / n) + most * odds / (3 * n)
