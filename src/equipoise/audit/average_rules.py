"""Rules on averages: an average row or column is the mean of the rows or columns that it covers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from equipoise.audit.metric_labels import parse_label
from equipoise.audit.relevance_rules import harmonic_mean
from equipoise.audit.table import (
    Assumption,
    AuditedTable,
    PublishedMetric,
    PublishedRow,
    PublishedValue,
    ValueRange,
    Violation,
)
from equipoise.checks.base import pluralize
from equipoise.io.published.numbers import strip_markup

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
        wrong = _wrong(average)
        if wrong:
            yield from _violations(average, wrong, other_scope=_other_scope(average, wrong))
    columns = list(_column_averages(table))
    checked = [(average, _wrong(average)) for average in columns if average.shared]
    # If no system's average is the mean of its columns, it covers other columns than those shown.
    other_columns = len(checked) > 1 and all(wrong for _, wrong in checked)
    for average, wrong in checked:
        if wrong:
            yield from _violations(average, wrong, other_scope=other_columns and not _beyond(average, wrong))


def _violations(average: StatedAverage, wrong: Sequence[PublishedValue], *, other_scope: bool) -> Iterator[Violation]:
    for value in wrong:
        mean = _mean([_value_in_row(member, value.metric) for member in average.members])
        values = ", ".join(f"{member.name}: {_value_in_row(member, value.metric)}" for member in average.members[:5])
        rows = pluralize(len(average.members), average.over)
        yield Violation(
            (value,),
            f"{value} is not the mean of its {rows}, {mean}",
            (values, f"their mean is {mean}", value.derivation_step),
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


def _wrong(average: StatedAverage) -> list[PublishedValue]:
    """The values of an average that are not the mean, unweighted or weighted by size.

    The weights that explain most values are used. A subset of the rows may explain all of them.
    """
    ways: list[Sequence[float]] = [(), *_sizes(average.members)]
    wrong = min((_missed_columns(average, weights) for weights in ways), key=len)
    return [] if not wrong or _explained_by_subset(average) else wrong


def _missed_columns(average: StatedAverage, weights: Sequence[float]) -> list[PublishedValue]:
    members = average.members
    return [column for column in average.shared if not _is_mean(average.row, column, members, weights)]


def _other_scope(average: StatedAverage, wrong: Sequence[PublishedValue]) -> bool:
    """Whether most metrics miss the mean together: then the average may cover other rows."""
    shared = len(average.shared)
    return shared > 1 and 2 * len(wrong) > shared and not _beyond(average, wrong)


def _beyond(average: StatedAverage, wrong: Sequence[PublishedValue]) -> bool:
    """Whether an average is outside the range of its members, which no weights explain."""
    for value in wrong:
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
    spare = (value.range.high - value.range.low) / 2
    stated = ValueRange(value.range.low - spare, value.range.high + spare)
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
