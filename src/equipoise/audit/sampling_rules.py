"""What a scorer that knows nothing earns is known exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil, floor, inf, log, log2, pi, sqrt
from typing import NamedTuple

from equipoise.audit.assumptions import Assumption
from equipoise.audit.rank_rules import harmonic_number
from equipoise.audit.table import (
    SLACK,
    PublishedRow,
    PublishedValue,
    ValueRange,
    Violation,
    as_check,
    format_digits,
)
from equipoise.checks.base import Check, pluralize
from equipoise.stats.formatting import format_percent
from equipoise.stats.intervals import normal_critical
from equipoise.types import Severity

# Means that n units cannot give: a share of 200 units is a multiple of 1/200.

ONE, HITS = (Assumption.ONE_RELEVANT,), (Assumption.HITS,)
GRANULARITY_LARGEST = 10**8
"""Beyond so many steps rounding to double precision would decide."""


def impossible_mean_of_n(row: PublishedRow) -> Iterator[Violation]:
    """EQ407: a figure that lies between two neighbouring values that n units can give."""
    if row.chance or row.averaged:
        return
    for figure in row.figures:
        n = row.units(figure)
        parts = _parts(figure)
        if n is not None and parts is not None:
            yield from _missed(figure, n, *parts)


def _parts(figure: PublishedValue) -> tuple[int, str, tuple[Assumption, ...]] | None:
    """How many steps a unit adds between 0 and 1, what a step is, and what must hold for that."""
    measure = figure.measure
    if measure.symbol in ("HR", "Acc") and not measure.parameters:
        return 1, "a unit is a hit or a miss", HITS
    if measure.symbol == "P" and measure.k is not None:
        return measure.k, f"a unit has a whole number of relevant items among its first {measure.k}", HITS
    if measure.symbol == "R" and measure.k is not None and not measure.parameters:
        return 1, "a unit's one relevant item is found or not", (*ONE, Assumption.HITS)
    if measure.symbol == "MR" and not measure.parameters:
        return 2, "a rank is a whole number, or a half where it is averaged over ties", ONE
    return None


def _missed(figure: PublishedValue, n: int, parts: int, why: str, needs: tuple[Assumption, ...]) -> Iterator[Violation]:
    steps = n * parts
    if steps > GRANULARITY_LARGEST or figure.span.high < 0:
        return
    first = ceil(figure.span.low * steps - SLACK * steps)
    if first <= figure.span.high * steps + SLACK * steps:
        return
    below, above = floor(figure.span.low * steps), floor(figure.span.low * steps) + 1
    unit = f"{n}" if parts == 1 else f"({n} x {parts})"
    yield Violation(
        (figure,),
        f"{figure} is no mean over {pluralize(n, 'unit')}: the nearest are {format_digits(below / steps)} and "
        f"{format_digits(above / steps)}",
        (
            f"{why}, so the mean over {n} units is a multiple of 1/{unit}",
            figure.read,
            f"{below}/{steps} = {format_digits(below / steps)} and {above}/{steps} = {format_digits(above / steps)} "
            "would both be printed differently",
        ),
        needs,
    )


GRANULARITY_CHECK = Check(
    code="EQ407",
    title="a value that n units cannot give",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(impossible_mean_of_n),
    why="""\
If every unit is a hit or a miss, a hit rate over n units is a whole number of hits over n. With 70 units
there is nothing between 50/70 and 51/70. Precision at k over n units comes in steps of 1/(nk). A printed
figure that lies between two steps was computed on another number of units, with other weights, or not at all.
The idea is that of the GRIM test (Brown and Heathers 2017). Averages over tied scores need not obey it, so it
accuses only where these are excluded.""",
    hint="find out on how many units the figure rests, and whether some were left out or weighted",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"HR@1": "0.333"}, n=200, no_ties=True).findings""",
)


# Confidence intervals that n units cannot give.

WIDTH_TOLERANCE = 0.8
"""Methods differ by less than this factor where the normal approximation, the narrowest, is any good."""
ASSUMED_CONFIDENCE_LEVEL = 0.8
"""The level that an interval without one is taken to have, so that nothing common looks too narrow."""


def impossible_interval(row: PublishedRow) -> Iterator[Violation]:
    """EQ409: an interval beside its own figure, or narrower than n hits and misses allow."""
    if row.chance:
        return
    for figure in row.figures:
        if figure.ends is None:
            continue
        low, high = figure.ends
        least, most = figure.measure.bounds
        # A credible interval excludes a figure at the very end of the scale.
        below = low.above(figure.span) and figure.span.low > least + SLACK
        beyond = figure.span.above(high) and figure.span.high < most - SLACK
        if below or beyond or low.above(high):
            yield _beside(figure)
        elif figure.measure.symbol in ("HR", "Acc") and not row.averaged:
            yield from _too_narrow(row, figure, low, high)


def _beside(figure: PublishedValue) -> Violation:
    return Violation(
        (figure,),
        f"{figure} lies outside of its own interval",
        (
            figure.read,
            f"the interval goes from {figure.ends_text}",
            "an interval holds the figure it is made for",
        ),
    )


def _too_narrow(row: PublishedRow, figure: PublishedValue, low: ValueRange, high: ValueRange) -> Iterator[Violation]:
    n = row.units(figure)
    if n is None:
        return
    level = row.facts.level
    critical = normal_critical(level or ASSUMED_CONFIDENCE_LEVEL) * (WIDTH_TOLERANCE if level else 1.0)
    share = min(figure.span.low, 1.0 - figure.span.high)
    share = max(0.0, min(share, 0.5))
    half = critical * sqrt(share * (1.0 - share) / n)
    # The approximation may leave [0, 1], and is then cut there: only the part inside counts.
    middle = figure.span.low if figure.span.low < 0.5 else figure.span.high
    least = min(1.0, middle + half) - max(0.0, middle - half)
    if high.high - low.low < least - SLACK:
        said = f"at {format_percent(level)}" if level else f"even at {format_percent(ASSUMED_CONFIDENCE_LEVEL)}"
        yield Violation(
            (figure,),
            f"the interval of {figure} is {format_digits(high.high - low.low, 4)} wide, too narrow for "
            f"{pluralize(n, 'unit')}",
            (
                f"a share of {n} hits and misses varies by sqrt(p (1 - p) / n) from sample to sample",
                figure.read,
                f"the interval goes from {figure.ends_text}",
                f"it is {format_digits(high.high - low.low)} wide at most",
                f"{said} the narrowest method, the normal approximation, gives about {format_digits(least, 4)}",
            ),
            (Assumption.HITS,),
        )


INTERVALS_CHECK = Check(
    code="EQ409",
    title="an interval that n cannot give",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(impossible_interval),
    why="""\
An interval holds the figure it was made for. And for a share of n hits and misses its width is known: at 100
units and a share of 0.8, some 8 points to each side at 95 %. Much narrower ones were made from more units
than are said, from pooled folds or seeds counted as units, or are standard errors under another name.""",
    hint="make the interval from the units themselves, one value each; eq score does",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"HR@1": "0.80 [0.85, 0.91]"}, n=100).findings""",
)


MIN_P_VALUE = 1e-9
"""A random run that was measured may be this unlikely and still passes."""
LARGEST = 10**6
MARGIN = 5.0
"""How much further off a figure must be where only the figures themselves tell how many units there were."""


def wrong_chance_level(row: PublishedRow) -> Iterator[Violation]:
    """EQ410: a random baseline whose figure is not what luck gives."""
    pool = _pool(row) if row.chance else None
    if pool is None or pool.most > LARGEST:
        return
    for figure in row.figures:
        earned = _earned(figure)
        if earned is not None and figure is not pool.source:
            yield from _off(row, figure, pool, earned)


class CandidateCount(NamedTuple):
    """Among how many items the right answer is ranked; ``source`` is the figure that tells, if one does."""

    least: int
    most: int
    needs: tuple[Assumption, ...]
    source: PublishedValue | None = None

    def __str__(self) -> str:
        return f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"


def _pool(row: PublishedRow) -> CandidateCount | None:
    """The number of classes, of candidates, or what a random accuracy of 1/n says of it."""
    needs = (Assumption.ONE_RELEVANT,)
    if row.facts.classes:
        several = Assumption.ONE_RELEVANT in row.denied
        return CandidateCount(row.facts.classes, row.facts.classes, needs if several else ())
    if row.facts.candidates:
        return CandidateCount(row.facts.candidates, row.facts.candidates, needs)
    first = _first(row)
    if first is None or first.span.low <= 0 or row.units(first) is not None:
        return None
    least, most = ceil(1 / first.span.high - SLACK), floor(1 / first.span.low + SLACK)
    return CandidateCount(least, most, needs, first) if least <= most else None


def _first(row: PublishedRow) -> PublishedValue | None:
    return row.one("HR", 1) or row.one("Acc")


class ChanceScore(NamedTuple):
    """What luck earns among n items: in words, the mean, the mean of squares and the most, given n."""

    words: str
    mean: Callable[[int], float]
    square: Callable[[int], float]
    most: Callable[[int], float] = lambda n: 1.0


def _earned(figure: PublishedValue) -> ChanceScore | None:
    """The mean of what the right answer earns over all ranks from 1 to n."""
    symbol, k = figure.measure.symbol, figure.k
    if figure.measure.parameters:
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
"""The sum of 1, 1/4, 1/9 ...; no list of reciprocal ranks has more."""


def _discounts(last: int) -> float:
    return sum(1.0 / log2(rank + 1) for rank in range(1, last + 1))


def _off(row: PublishedRow, figure: PublishedValue, pool: CandidateCount, earned: ChanceScore) -> Iterator[Violation]:
    ends = sorted(earned.mean(size) for size in (pool.least, pool.most))
    expected = ValueRange(ends[0], ends[1])
    if not expected.apart(figure.span):
        return
    n, luck = _measured(row, figure, pool, earned)
    measured = not ValueRange(ends[0] - luck, ends[1] + luck).apart(figure.span)
    if measured and row.units(figure) is not None:
        return
    told = (f"{pool.source.read}; it is 1/n, so n is {pool}",) if pool.source else ()
    moved = (f"on {n} units luck may move it by {format_digits(luck, 4)} at most",) if not measured else ()
    yield Violation(
        (figure,),
        f"{figure} is not what a scorer that knows nothing earns among {pool}: {expected}",
        (
            *told,
            f"the right answer has each of n ranks equally often, so {figure.measure} is {earned.words}",
            f"for n = {pool} that is {expected}",
            *moved,
            figure.read,
        ),
        (*_needs(figure, pool, expected), *((Assumption.EXPECTED,) if measured else ())),
        hint="if it was measured, say on how many units, with --n or a column n" if measured else "",
    )


def _needs(figure: PublishedValue, pool: CandidateCount, expected: ValueRange) -> tuple[Assumption, ...]:
    """Several relevant items make no difference where a random accuracy is known and a figure is above.

    By luck the first k ranks hold a relevant item at most k times as often as the first one does.
    """
    bounded = pool.source is not None and figure.measure.symbol in ("HR", "MRR")
    return () if bounded and figure.span.above(expected) else pool.needs


def _measured(
    row: PublishedRow, figure: PublishedValue, pool: CandidateCount, earned: ChanceScore
) -> tuple[int, float]:
    """On how many units a random run was measured, at least, and how far luck moves it there."""
    units = row.units(figure)
    n = units
    if n is None:
        # A share above 0 is one hit of n at least.
        shares = [each.span.high for each in row.figures if each.measure.symbol in _HITS and each.span.low > 0]
        n = max(1, *(floor(1 / share + SLACK) for share in shares)) if shares else 1
    sizes = (pool.least, pool.most)
    square, most = max(map(earned.square, sizes)), max(map(earned.most, sizes))
    luck = _luck(square, most, n)
    return n, luck if units is not None else MARGIN * luck


_HITS = ("HR", "Acc")


def _luck(square: float, most: float, n: int) -> float:
    """How far a mean over n units may be off by luck (Bernstein); the variance is below the mean square."""
    odds = log(2 / MIN_P_VALUE)
    return sqrt(2 * square * odds / n) + most * odds / (3 * n)


CHECK = Check(
    code="EQ410",
    title="a chance level that luck does not give",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(wrong_chance_level),
    why="""\
A scorer that knows nothing puts the right answer at each of n ranks equally often. Its accuracy is 1/n, its
HR@k is k/n, its mean rank (n + 1)/2, and its MRR the mean of 1, 1/2, ... 1/n, which is H_n/n: 0.65 % for
1,187 classes. One over the logarithm of n, which some tables give, is larger by far, and makes a system that
has learnt something look worse than luck.""",
    hint="take H_n/n for MRR and 1/n for accuracy; if it was measured, say on how many units",
    example="""\
from equipoise.audit.audit import audit_table
audit_table([{"system": "random", "classes": 1187, "Acc@1": "0.08%", "MRR": "14%"}]).findings""",
)
