"""Rules on samples and averages: which means, intervals, chance levels and averages are possible."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, floor, inf, log, log2, pi, sqrt
from typing import NamedTuple

from equipoise.audit.metric_labels import parse_label
from equipoise.audit.rank_rules import harmonic_number
from equipoise.audit.relevance_rules import harmonic_mean
from equipoise.audit.table import (
    REQUIRES_ONE_RELEVANT,
    SLACK,
    Assumption,
    AuditedTable,
    PublishedMetric,
    PublishedRow,
    PublishedValue,
    ValueRange,
    Violation,
    format_digits,
)
from equipoise.checks.base import pluralize
from equipoise.io.published.numbers import strip_markup
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
        return 1, "a query is a hit or a miss", REQUIRES_BINARY_HITS
    if metric.symbol == "P" and metric.k is not None:
        why = f"a query has an integer number of relevant items among its first {metric.k}"
        return metric.k, why, REQUIRES_BINARY_HITS
    if metric.symbol == "R" and metric.k is not None and not metric.parameters:
        return 1, "a query's one relevant item is found or not", (*REQUIRES_ONE_RELEVANT, Assumption.HITS)
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
        f"{value} cannot be a mean over {pluralize(n, 'query', 'queries')}: the nearest are "
        f"{format_digits(below / steps)} and {format_digits(above / steps)}",
        (f"{why}, so the mean over {n} queries is a multiple of 1/{unit}",),
        assumptions,
        so=(
            f"{below}/{steps} = {format_digits(below / steps)} and {above}/{steps} = {format_digits(above / steps)} "
            "would both be printed differently",
        ),
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
        above = value.range.is_above(high) and value.range.high < most - SLACK
        if below or above or low.is_above(high):
            so = (f"the interval goes from {value.interval_text}", "an interval contains the value it was computed for")
            yield Violation((value,), f"{value} is outside its own interval", (), so=so)
        elif value.metric.symbol in ("HR", "Acc") and not row.averaged:
            yield from _too_narrow(row, value, low, high)


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
            f"{pluralize(n, 'query', 'queries')}",
            (f"a share of {n} hits and misses varies by sqrt(p (1 - p) / n) from sample to sample",),
            (Assumption.HITS,),
            so=(
                f"the interval goes from {value.interval_text}",
                f"it is {format_digits(high.high - low.low)} wide at most",
                f"{level_text} the narrowest method, the normal approximation, gives about {format_digits(least, 4)}",
            ),
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
            yield from _chance_deviation(row, value, pool, chance)


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
    first = row.value_of("HR", 1) or row.value_of("Acc")
    if first is None or first.range.low <= 0 or row.n_units(first) is not None:
        return None
    least, most = ceil(1 / first.range.high - SLACK), floor(1 / first.range.low + SLACK)
    return CandidateCount(least, most, assumptions, first) if least <= most else None


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

        def discount(n: int) -> float:
            return sum(1.0 / log2(rank + 1) for rank in range(1, int(min(k, n)) + 1)) / n

        return ChanceScore("the mean of 1 / log2(rank + 1)", discount, discount)
    if symbol == "MR":
        return ChanceScore("(n + 1) / 2", lambda n: (n + 1) / 2, lambda n: (n + 1) * (2 * n + 1) / 6, float)
    return None


_SQUARES = pi**2 / 6
"""The sum of 1, 1/4, 1/9, ...: an upper bound for squared reciprocal ranks."""


def _chance_deviation(
    row: PublishedRow, value: PublishedValue, pool: CandidateCount, chance: ChanceScore
) -> Iterator[Violation]:
    ends = sorted(chance.mean(size) for size in (pool.least, pool.most))
    expected = ValueRange(ends[0], ends[1])
    if not expected.is_disjoint(value.range):
        return
    n, deviation = _chance_spread(row, value, pool, chance)
    measured = not ValueRange(ends[0] - deviation, ends[1] + deviation).is_disjoint(value.range)
    if measured and row.n_units(value) is not None:
        return
    stated = (f"{pool.derived_from.derivation_step}; it is 1/n, so n is {pool}",) if pool.derived_from else ()
    deviations = (f"on {n} queries chance moves it by at most {format_digits(deviation, 4)}",) if not measured else ()
    yield Violation(
        (value,),
        f"{value} is not the chance level among {pool}: {expected}",
        (
            *stated,
            f"the right answer has each of n ranks equally often, so {value.metric} is {chance.description}",
            f"for n = {pool} that is {expected}",
            *deviations,
        ),
        (*_needs(value, pool, expected), *((Assumption.EXPECTED,) if measured else ())),
        hint="if it was measured, give the number of queries with --n or a column n" if measured else "",
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
        hit_rates = [value.range for value in row.values if value.metric.symbol in ("HR", "Acc")]
        n = max([1, *(floor(1 / share.high + SLACK) for share in hit_rates if share.low > 0)])
    sizes = (pool.least, pool.most)
    square, most = max(map(chance.square, sizes)), max(map(chance.most, sizes))
    # Bernstein's inequality; the variance is below the mean square.
    odds = log(2 / MIN_P_VALUE)
    deviation = sqrt(2 * square * odds / n) + most * odds / (3 * n)
    return n, deviation if units is not None else ESTIMATED_N_FACTOR * deviation


# Averages: an average row or column is the mean of the rows or columns that it covers.

_AVERAGE = re.compile(r"(?i)(?:macro[ -])?(?:avg\.?|average|mean)|arithmetic mean")
_AGGREGATE = re.compile(
    r"(?i).*\b(?:avg|average|mean|median|total|overall|sum|all|min(?:imum)?|max(?:imum)?|micro|macro|weighted|"
    r"best|worst|combined|pooled)\b.*"
)
_POOLING = frozenset(("max", "min", "sum", "cls", "last", "first", "median", "attention", "concat", "eos"))
"""Next to these a mean is a pooling method of vectors and no average of the rows."""
_SYSTEMS = re.compile(r"(?i).*(?:model|system|method|approach|encoder|retriever|run|strategy|pooling|variant).*")
"""In a table of systems, an average may be a system that averages the others."""
MAX_ROWS_FOR_SUBSETS = 10
"""With more rows not every subset is tried."""
MIN_METRICS_FOR_SUBSETS = 3
"""The number of metrics that must agree before any subset of the rows counts as an explanation."""


@dataclass(frozen=True)
class StatedAverage:
    """A row that is called an average, the rows that it may cover, and whether its name is unambiguous."""

    row: PublishedRow
    candidates: tuple[tuple[PublishedRow, ...], ...]
    over: str
    plain: bool

    @property
    def members(self) -> tuple[PublishedRow, ...]:
        """All rows that it may cover."""
        return self.candidates[0]

    @property
    def shared(self) -> list[PublishedValue]:
        """Its values that every member has as well."""
        return [
            value
            for value in self.row.values
            if all(_value_in_row(member, value.metric) is not None for member in self.members)
        ]


def wrong_averages(table: AuditedTable) -> Iterator[Violation]:
    """EQ417: a stated average that is not the mean of its rows or columns."""
    for average in _row_averages(table):
        mismatched = _mismatched_values(average)
        if mismatched:
            yield from _violations(average, mismatched, other_scope=_other_scope(average, mismatched))
    columns = list(_column_averages(table))
    checked = [(average, _mismatched_values(average)) for average in columns if average.shared]
    # If no system's average is the mean of its columns, it covers other columns than those shown.
    other_columns = len(checked) > 1 and all(mismatched for _, mismatched in checked)
    for average, mismatched in checked:
        if mismatched:
            yield from _violations(
                average, mismatched, other_scope=other_columns and not _outside_range(average, mismatched)
            )


def _violations(
    average: StatedAverage, mismatched: Sequence[PublishedValue], *, other_scope: bool
) -> Iterator[Violation]:
    for value in mismatched:
        mean = _mean([_value_in_row(member, value.metric) for member in average.members])
        values = ", ".join(f"{member.name}: {_value_in_row(member, value.metric)}" for member in average.members[:5])
        rows = pluralize(len(average.members), average.over)
        yield Violation(
            (value,),
            f"{value} is not the mean of its {rows}, {mean}",
            (values, f"their mean is {mean}"),
            (Assumption.PLAIN_MEAN,) if other_scope or not average.plain else (),
            hint="name what the average covers, and its weights",
            subject=average.row.name,
        )


def _row_averages(table: AuditedTable) -> Iterator[StatedAverage]:
    groups: dict[str, list[PublishedRow]] = {}
    for row in table.rows:
        if row.values:
            groups.setdefault(row.group, []).append(row)
    for rows in groups.values():
        names = [_bare(row.label) for row in rows]
        if len(rows) < 3 or {name.casefold() for name in names} & _POOLING or any(row.chance for row in rows):
            continue
        averages = [at for at, name in enumerate(names) if _AVERAGE.fullmatch(name)]
        members = [at for at, name in enumerate(names) if not _AGGREGATE.fullmatch(name)]
        for at in averages:
            before = max([average for average in averages if average < at], default=-1)
            after = min([average for average in averages if average > at], default=len(rows))
            blocks = [
                tuple(rows[member] for member in members),
                tuple(rows[member] for member in members if before < member < at),
                tuple(rows[member] for member in members if at < member < after),
                tuple(rows[average] for average in averages if average != at),
            ]
            at_an_end = not any(member > at for member in members) or not any(member < at for member in members)
            if len(blocks[0]) > 1 and at_an_end:
                long_blocks = tuple(block for block in blocks if len(block) > 1)
                yield StatedAverage(rows[at], long_blocks, "row", _SYSTEMS.fullmatch(rows[at].header) is None)


def _column_averages(table: AuditedTable) -> Iterator[StatedAverage]:
    records: dict[int, list[PublishedRow]] = {}
    for row in table.rows:
        if row.values:
            records.setdefault(row.record, []).append(row)
    for rows in records.values():
        groups = [row.group for row in rows]
        if len(rows) < 3 or {group.casefold() for group in groups} & _POOLING:
            continue
        members = tuple(row for row in rows if not _AGGREGATE.fullmatch(row.group))
        for row in rows:
            if _AVERAGE.fullmatch(row.group) and len(members) > 1:
                yield StatedAverage(row, (members,), "column", plain=True)


def _bare(name: str) -> str:
    """The last part of a row's name, without the words after it."""
    return strip_markup(name.rpartition("/")[2].partition(", ")[0]).strip(" :")


def _mismatched_values(average: StatedAverage) -> list[PublishedValue]:
    """The values of an average that are not the mean, unweighted or weighted by size.

    The weights that explain most values are used. A subset of the rows may explain all of them.
    """
    ways: list[Sequence[float]] = [(), *_sizes(average.members)]
    missed = (
        [column for column in average.shared if not _is_mean(average.row, column, average.members, weights)]
        for weights in ways
    )
    mismatched = min(missed, key=len)
    return [] if not mismatched or _explained_by_subset(average) else mismatched


def _other_scope(average: StatedAverage, mismatched: Sequence[PublishedValue]) -> bool:
    """Whether most metrics miss the mean together: then the average may cover other rows."""
    shared = len(average.shared)
    return shared > 1 and 2 * len(mismatched) > shared and not _outside_range(average, mismatched)


def _outside_range(average: StatedAverage, mismatched: Sequence[PublishedValue]) -> bool:
    """Whether an average is outside the range of its members, which no weights explain."""
    for value in mismatched:
        spans = [_value_in_row(member, value.metric).range for member in average.members]  # type: ignore[union-attr]
        if value.range.is_disjoint(ValueRange(min(span.low for span in spans), max(span.high for span in spans))):
            return True
    return False


def _explained_by_subset(average: StatedAverage) -> bool:
    """Whether a subset of the rows gives all values of the average."""
    values, members = average.shared, average.members
    parts = [*average.candidates[1:], *combinations(members, len(members) - 1)]
    if len(values) >= MIN_METRICS_FOR_SUBSETS and len(members) <= MAX_ROWS_FOR_SUBSETS:
        parts += [part for size in range(2, len(members) - 1) for part in combinations(members, size)]
    return any(len(part) > 1 and all(_is_mean(average.row, value, part) for value in values) for part in parts)


def _is_mean(
    row: PublishedRow, value: PublishedValue, members: Sequence[PublishedRow], weights: Sequence[float] = ()
) -> bool:
    member_values = [_value_in_row(member, value.metric) for member in members]
    if any(member_value is None for member_value in member_values):
        return False
    # Half a unit more than rounding allows: some programs truncate digits.
    stated = value.range.widened((value.range.high - value.range.low) / 2)
    return not stated.is_disjoint(_mean(member_values, weights)) or _is_harmonic(row, value, stated)


def _is_harmonic(row: PublishedRow, value: PublishedValue, stated: ValueRange) -> bool:
    """Whether an average F1 is the harmonic mean of the average precision and recall."""
    precision, recall = (row.value_of(symbol) for symbol in ("P", "R"))
    if value.metric.symbol != "F1" or precision is None or recall is None:
        return False
    low, high = (
        harmonic_mean(max(0.0, getattr(precision.range, end)), max(0.0, getattr(recall.range, end)))
        for end in ("low", "high")
    )
    return not stated.is_disjoint(ValueRange(low, high))


def _mean(values: Sequence[PublishedValue | None], weights: Sequence[float] = ()) -> ValueRange:
    shares = list(weights) or [1.0] * len(values)
    total = ValueRange(0.0, 0.0)
    for part, weight in zip(values, shares, strict=True):
        if part is not None:
            total += ValueRange(part.range.low * weight, part.range.high * weight)
    return ValueRange(total.low / sum(shares), total.high / sum(shares))


def _sizes(members: Sequence[PublishedRow]) -> Iterator[list[float]]:
    """The columns of integers that may be the sizes of the rows."""
    for key in members[0].other_numbers:
        numbers = [member.other_numbers.get(key) for member in members]
        values = [number.value for number in numbers if number is not None and number.value == int(number.value)]
        if len(values) == len(members) and min(values) >= 1 and parse_label(key) is None:
            yield values
    if all(member.context.n for member in members):
        yield [float(member.context.n or 1) for member in members]


def _value_in_row(row: PublishedRow, metric: PublishedMetric) -> PublishedValue | None:
    return next((value for value in row.values if value.metric == metric), None)
