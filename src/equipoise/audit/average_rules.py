"""Stated averages: an average row or column is the mean of the rows or columns that it is over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from equipoise.audit.assumptions import Assumption
from equipoise.audit.metric_labels import parse_label
from equipoise.audit.relevance_rules import harmonic_mean
from equipoise.audit.table import (
    AuditedTable,
    PublishedMetric,
    PublishedRow,
    PublishedValue,
    ValueRange,
    Violation,
    as_check,
)
from equipoise.checks.base import Check, pluralize
from equipoise.io.published.numbers import strip_markup
from equipoise.types import Severity

_AVERAGE = re.compile(r"(?i)(?:macro[ -])?(?:avg\.?|average|mean)|arithmetic mean")
_AGGREGATE = re.compile(
    r"(?i).*\b(?:avg|average|mean|median|total|overall|sum|all|min(?:imum)?|max(?:imum)?|micro|macro|weighted|"
    r"best|worst|combined|pooled)\b.*"
)
_POOLING = frozenset(("max", "min", "sum", "cls", "last", "first", "median", "attention", "concat", "eos"))
"""Alongside these a mean is a way to pool vectors, and no average of the rows."""
_SYSTEMS = re.compile(r"(?i).*(?:model|system|method|approach|encoder|retriever|run|strategy|pooling|variant).*")
"""Rows of systems: an average there may be the system that averages the others."""
MOST_ROWS = 10
"""Among more rows not every subset is tried."""
MEASURES_FOR_SUBSETS = 3
"""So many metrics must agree before any subset of the rows counts as an explanation."""


@dataclass(frozen=True)
class Average:
    """A row that is called an average, the rows that it may be over, and whether its name is plain."""

    row: PublishedRow
    candidates: tuple[tuple[PublishedRow, ...], ...]
    over: str
    plain: bool

    @property
    def members(self) -> tuple[PublishedRow, ...]:
        """All rows that it may be over."""
        return self.candidates[0]

    @property
    def shared(self) -> list[PublishedValue]:
        """Its figures that every member has as well."""
        return [
            each for each in self.row.figures if all(_of(member, each.measure) is not None for member in self.members)
        ]


def wrong_averages(table: AuditedTable) -> Iterator[Violation]:
    """EQ417: a stated average that is not the mean of its rows or columns."""
    for average in _row_averages(table):
        wrong = _wrong(average)
        if wrong:
            yield from _violations(average, wrong, other_scope=_other_scope(average, wrong))
    columns = list(_column_averages(table))
    checked = [(average, _wrong(average)) for average in columns if average.shared]
    # Where no system's average is the mean of its columns, it is over other columns than are shown.
    elsewhere = len(checked) > 1 and all(wrong for _, wrong in checked)
    for average, wrong in checked:
        if wrong:
            yield from _violations(average, wrong, other_scope=elsewhere and not _beyond(average, wrong))


def _violations(average: Average, wrong: Sequence[PublishedValue], *, other_scope: bool) -> Iterator[Violation]:
    for figure in wrong:
        mean = _mean([_of(member, figure.measure) for member in average.members])
        values = ", ".join(f"{member.name}: {_of(member, figure.measure)}" for member in average.members[:5])
        rows = pluralize(len(average.members), average.over)
        yield Violation(
            (figure,),
            f"{figure} is not the mean of its {rows}, {mean}",
            (values, f"their mean is {mean}", figure.read),
            (Assumption.PLAIN_MEAN,) if other_scope or not average.plain else (),
            hint="say over what the average is, and with which weights",
            subject=average.row.name,
        )


# ---- which rows are averages, and of what --------------------------------------------------------


def _row_averages(table: AuditedTable) -> Iterator[Average]:
    groups: dict[str, list[PublishedRow]] = {}
    for row in table.rows:
        if row.figures:
            groups.setdefault(row.group, []).append(row)
    for rows in groups.values():
        names = [_bare(row.label) for row in rows]
        if len(rows) < 3 or {name.casefold() for name in names} & _POOLING or any(row.chance for row in rows):
            continue
        averages = [at for at, name in enumerate(names) if _AVERAGE.fullmatch(name)]
        members = [at for at, name in enumerate(names) if not _AGGREGATE.fullmatch(name)]
        for at in averages:
            before = max([each for each in averages if each < at], default=-1)
            after = min([each for each in averages if each > at], default=len(rows))
            blocks = [
                tuple(rows[each] for each in members),
                tuple(rows[each] for each in members if before < each < at),
                tuple(rows[each] for each in members if at < each < after),
                tuple(rows[each] for each in averages if each != at),
            ]
            at_an_end = not any(each > at for each in members) or not any(each < at for each in members)
            if len(blocks[0]) > 1 and at_an_end:
                kept = tuple(block for block in blocks if len(block) > 1)
                yield Average(rows[at], kept, "row", _SYSTEMS.fullmatch(rows[at].header) is None)


def _column_averages(table: AuditedTable) -> Iterator[Average]:
    records: dict[int, list[PublishedRow]] = {}
    for row in table.rows:
        if row.figures:
            records.setdefault(row.record, []).append(row)
    for rows in records.values():
        groups = [row.group for row in rows]
        if len(rows) < 3 or {group.casefold() for group in groups} & _POOLING:
            continue
        members = tuple(row for row in rows if not _AGGREGATE.fullmatch(row.group))
        for row in rows:
            if _AVERAGE.fullmatch(row.group) and len(members) > 1:
                yield Average(row, (members,), "column", plain=True)


def _bare(name: str) -> str:
    """The name of a row without the objects around it and the words alongside it."""
    return strip_markup(name.rpartition("/")[2].partition(", ")[0]).strip(" :")


# ---- whether an average is what it says -----------------------------------------------------------


def _wrong(average: Average) -> list[PublishedValue]:
    """The figures of an average that are not the mean, plain or with sizes as weights.

    The weights that explain most figures are taken. Some of the rows may explain all of them.
    """
    ways: list[Sequence[float]] = [(), *_sizes(average.members)]
    wrong = min((_missed(average, weights) for weights in ways), key=len)
    return [] if not wrong or _explained(average) else wrong


def _missed(average: Average, weights: Sequence[float]) -> list[PublishedValue]:
    members = average.members
    return [each for each in average.shared if not _is_mean(average.row, each, members, weights)]


def _other_scope(average: Average, wrong: Sequence[PublishedValue]) -> bool:
    """Whether most of several metrics miss the mean together: then it may be over other rows."""
    shared = len(average.shared)
    return shared > 1 and 2 * len(wrong) > shared and not _beyond(average, wrong)


def _beyond(average: Average, wrong: Sequence[PublishedValue]) -> bool:
    """Whether an average lies outside of all values it is over, which no weights explain."""
    for figure in wrong:
        spans = [_of(member, figure.measure).span for member in average.members]  # type: ignore[union-attr]
        if figure.span.apart(ValueRange(min(each.low for each in spans), max(each.high for each in spans))):
            return True
    return False


def _explained(average: Average) -> bool:
    """Whether some of the rows give all figures of the average."""
    figures, members = average.shared, average.members
    parts = [*average.candidates[1:], *combinations(members, len(members) - 1)]
    if len(figures) >= MEASURES_FOR_SUBSETS and len(members) <= MOST_ROWS:
        parts += [part for size in range(2, len(members) - 1) for part in combinations(members, size)]
    return any(len(part) > 1 and all(_is_mean(average.row, each, part) for each in figures) for part in parts)


def _is_mean(
    row: PublishedRow, figure: PublishedValue, members: Sequence[PublishedRow], weights: Sequence[float] = ()
) -> bool:
    found = [_of(member, figure.measure) for member in members]
    if any(each is None for each in found):
        return False
    # Half a unit more than rounding allows: some programs cut digits off.
    spare = (figure.span.high - figure.span.low) / 2
    stated = ValueRange(figure.span.low - spare, figure.span.high + spare)
    return not stated.apart(_mean(found, weights)) or _is_harmonic(row, figure, stated)


def _is_harmonic(row: PublishedRow, figure: PublishedValue, stated: ValueRange) -> bool:
    """Whether an average F1 is that of the average precision and recall."""
    precision, recall = (row.one(symbol) for symbol in ("P", "R"))
    if figure.measure.symbol != "F1" or precision is None or recall is None:
        return False
    low, high = (
        harmonic_mean(max(0.0, getattr(precision.span, end)), max(0.0, getattr(recall.span, end)))
        for end in ("low", "high")
    )
    return not stated.apart(ValueRange(low, high))


def _mean(figures: Sequence[PublishedValue | None], weights: Sequence[float] = ()) -> ValueRange:
    shares = list(weights) or [1.0] * len(figures)
    total = ValueRange(0.0, 0.0)
    for each, weight in zip(figures, shares, strict=True):
        if each is not None:
            total += ValueRange(each.span.low * weight, each.span.high * weight)
    return ValueRange(total.low / sum(shares), total.high / sum(shares))


def _sizes(members: Sequence[PublishedRow]) -> Iterator[list[float]]:
    """The columns of integers that may be the sizes of the rows."""
    for key in members[0].others:
        numbers = [member.others.get(key) for member in members]
        values = [each.value for each in numbers if each is not None and each.value == int(each.value)]
        if len(values) == len(members) and min(values) >= 1 and parse_label(key) is None:
            yield values
    if all(member.facts.n for member in members):
        yield [float(member.facts.n or 1) for member in members]


def _of(row: PublishedRow, measure: PublishedMetric) -> PublishedValue | None:
    return next((each for each in row.figures if each.measure == measure), None)


CHECK = Check(
    code="EQ417",
    title="an average that is not the mean of its rows",
    severity=Severity.ISSUE,
    applies_to=AuditedTable,
    function=as_check(wrong_averages),
    why="""\
A row or a column that is called an average is the mean of the others. Rounding moves it by a unit of the last
digit at most. Weights by the sizes of the data sets, or rows that are left out, give other averages. They are
tried where the table shows them. Where all averages of a table miss the mean together it is only noted.""",
    hint="compute the average again from the rows of the table, and say over what it is",
    example="""\
from equipoise.audit.audit import audit_table
rows = [("NQ", 0.52), ("SciFact", 0.64), ("Average", 0.68)]
audit_table([{"dataset": name, "nDCG@10": value} for name, value in rows]).findings""",
)
