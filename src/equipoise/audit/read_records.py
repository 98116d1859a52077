"""Interpret published records: recognise metrics and sums, and decide or leave open which columns are percent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from equipoise.audit.metric_labels import ColumnRole, parse_label, without_differences
from equipoise.audit.table import (
    AVERAGES,
    Assumption,
    AuditedTable,
    PublishedMetric,
    PublishedRow,
    PublishedValue,
    TableContext,
    ValueRange,
    contradicted_assumptions,
    label_key,
    parse_context,
    parse_count,
)
from equipoise.errors import ParameterError
from equipoise.io.published.numbers import PrintedNumber, as_exact, parse_printed, strip_markup

if TYPE_CHECKING:
    from equipoise.io.published.tables import PublishedTable, SystemRecord, TableCell


_PREFIX = r"(?:(?P<group>.+?)[/:._])?"
_COUNT = re.compile(rf"{_PREFIX}(?:n_|num_)?(?P<word>correct|hits?)(?:_?@|_at_|_)(?P<k>\d+)")
_SUM = re.compile(rf"{_PREFIX}(?:(?P<last>rr|mrr|ndcg|dcg)_sum|(?:sum|total)_(?P<first>rr|mrr|ndcg|dcg)|(?P<bare>rr))")
_TOTAL = re.compile(rf"{_PREFIX}(?:total|n|n_test|num_samples|samples|n_samples|total_samples|units|visits|n_total)")
MAX_PERCENT = 100.0
"""The largest share in percent; any larger number is a sum."""
_SUMMED = ("MRR", "nDCG", "HR")


@dataclass(frozen=True, slots=True)
class SumLabel:
    """The metric that a sum adds up; ``certain`` if no share has such a label."""

    metric: PublishedMetric
    group: str
    certain: bool


@lru_cache(maxsize=4096)
def parse_sum_label(label: str) -> SumLabel | None:
    """The metric whose sum a label names; None if it names no sum."""
    key = label_key(label)
    if match := _COUNT.fullmatch(key):
        return SumLabel(PublishedMetric("HR", int(match["k"])), match["group"] or "", match["word"] == "correct")
    if match := _SUM.fullmatch(key):
        word = match["last"] or match["first"] or "rr"
        symbol = "MRR" if word.endswith("rr") else "nDCG"
        return SumLabel(PublishedMetric(symbol), match["group"] or "", match["bare"] is None)
    return None


def is_hit_count(label: str) -> bool:
    """Whether a label can only name a number of hits."""
    parsed = parse_sum_label(label)
    return parsed is not None and parsed.certain and parsed.metric.symbol == "HR"


def is_total(label: str) -> bool:
    """Whether a label names the number of units of the sums."""
    return _TOTAL.fullmatch(label_key(label)) is not None


@dataclass(frozen=True, slots=True)
class RecordSums:
    """The sums of one record: ``totals`` by group, and whether hits are counts."""

    totals: Mapping[str, float]
    shares: frozenset[PublishedMetric]
    """The metrics whose shares are also in the record."""
    counted_hits: bool
    raw: bool
    """Whether the record has sums and no shares."""

    @classmethod
    def of(cls, cells: Sequence[TableCell]) -> RecordSums:
        """From the cells of a record."""
        totals: dict[str, float] = {}
        for cell in cells:
            match = _TOTAL.fullmatch(label_key(cell.label))
            number = parse_printed(cell.text) if match and cell.text else None
            if match and number is not None and number.value >= 1 and number.value == int(number.value):
                totals.setdefault(match["group"] or "", number.value)
        shares = frozenset(_share_names(cells))
        sums = [cell for cell in cells if cell.text and (name := parse_sum_label(cell.label)) and name.certain]
        hits = [number for cell in cells if (number := _hits(cell)) is not None]
        return cls(
            totals,
            shares,
            bool(hits) and any(hit.value > MAX_PERCENT for hit in hits),
            bool(sums) and not shares,
        )

    def total(self, group: str) -> float | None:
        """The number of units of the sums of a group."""
        return self.totals.get(group, self.totals.get(""))

    def reads_as_sum(self, cell: TableCell, number: PrintedNumber) -> bool | None:
        """Whether a cell is a sum; None if that is open."""
        name = parse_sum_label(cell.label)
        if number.percent or cell.exact:
            return False
        if name is None:
            share = parse_label(cell.label)
            if share is None or share.metric is None or share.metric.symbol not in _SUMMED or share.percent:
                return False
            total = self.total(label_key(share.group))
            return total is not None and (number.low > MAX_PERCENT or self.raw)
        total = self.total(name.group)
        if total is None:
            # rr above 100 is a sum over an unknown number of units.
            return None if name.certain or number.low > MAX_PERCENT else False
        if name.certain or (name.metric.symbol == "MRR" and (number.value > 1 or name.metric in self.shares)):
            return True
        if name.metric.symbol == "HR" and _is_whole(number) and number.value > 1:
            # 52 hits of 300 units, or 52 %.
            return True if self.counted_hits else None
        return False


def _share_names(cells: Iterable[TableCell]) -> Iterable[PublishedMetric]:
    for cell in cells:
        parsed_label = parse_label(cell.label) if cell.text and parse_sum_label(cell.label) is None else None
        metric = parsed_label.metric if parsed_label and parsed_label.role is ColumnRole.VALUE else None
        if metric is not None and metric.symbol in ("HR", "Acc", "MRR"):
            yield metric


def _hits(cell: TableCell) -> PrintedNumber | None:
    """The number of a label such as hits@10, which may be a count or a share."""
    name = parse_sum_label(cell.label)
    number = parse_printed(cell.text) if name and not name.certain and cell.text else None
    return number if number and name and name.metric.symbol == "HR" and not number.percent else None


def _is_whole(number: PrintedNumber) -> bool:
    return number.value == int(number.value) and number.half >= 0.05


def divide_by_total(number: PrintedNumber, total: float) -> PrintedNumber:
    """A sum divided by the number of units; a number of hits is exact."""
    half = 0.0 if _is_whole(number) else number.half
    return PrintedNumber(f"{number.text}/{total:g}", number.value / total, half / total)


def unit_proven_by_mean(number: PrintedNumber, mean: ValueRange) -> bool | None:
    """Whether a share is percent, given the mean from its sum; None if both or neither fit."""
    interval = ValueRange(number.low, number.high)
    fraction, percent = not interval.is_disjoint(mean), not (interval * 0.01).is_disjoint(mean)
    return percent if fraction != percent else None


_REPORT = re.compile(rf"(?i)\b({'|'.join(AVERAGES)})[ _]avg\b")
CUTOFF_SPECIFIC_ORDER = "torchmetrics"
SELECTED_WORDS = ("best", "optimized", "optimised", "tuned")

Column = tuple[str, PublishedMetric]


@dataclass(frozen=True)
class UnresolvedValue:
    """A value before its unit is decided; ``percent`` is None without a percent sign."""

    metric: PublishedMetric
    group: str
    cell: TableCell
    number: PrintedNumber
    percent: bool | None
    interval: tuple[PrintedNumber, PrintedNumber] | None
    n: int | None = None
    is_sum: bool = False
    """Whether it is a sum divided by the number of units, which is a fraction."""
    is_proven_percent: bool = False
    """Whether the sum of the same metric proves that it is percent."""

    @property
    def exceeds_one(self) -> bool:
        """Whether it can only be percent."""
        return self.number.low > 1.0 or self.is_proven_percent

    @property
    def column(self) -> Column:
        """Values of one column have one unit."""
        return self.group, self.metric

    def resolve(self, percent: bool) -> PublishedValue:
        """The published value, read as percent or as a fraction if it has no percent sign."""
        signed = percent if self.percent is None else self.percent
        scale = 0.01 if self.metric.is_fraction and signed else 1.0
        number = replace(self.number, percent=scale != 1.0)
        value_range = (ValueRange(number.low, number.high) * scale).within(*self.metric.bounds)
        ends = self.interval and (_span(self.interval[0], scale), _span(self.interval[1], scale))
        text = f"{self.interval[0].text} to {self.interval[1].text}" if self.interval else ""
        return PublishedValue(self.metric, self.cell.label, number, value_range, self.n, ends, text)


def parse_values(record: SystemRecord) -> list[UnresolvedValue]:
    """The values of a record with their intervals. An impossible number of units is an error."""
    values: list[UnresolvedValue] = []
    ends: dict[tuple[str, PublishedMetric | None], dict[ColumnRole, PrintedNumber]] = {}
    report = _REPORT.search(record.name)
    context = {cell.label: cell.text for cell in record.cells} | {
        statement.label: statement.text for statement in record.stated
    }
    like = context.get("like", "")
    # A table with both AP and mAP has two metrics: one threshold or class, and the mean over several.
    single = {"ap", "map"} <= set(map(_bare_symbol, record.cells))
    sums = RecordSums.of(record.cells)
    for cell in record.cells:
        number = parse_printed(cell.text) if cell.text else None
        summed = number is not None and sums.reads_as_sum(cell, number)
        if number is not None and summed:
            values.append(_sum_value(cell, number, sums))
        label = parse_label(cell.label)
        if label is None or number is None or summed is not False:
            continue
        number = as_exact(number) if cell.exact else number
        if label.role in (ColumnRole.LOW, ColumnRole.HIGH):
            ends.setdefault((label.group, label.metric), {})[label.role] = number
        elif label.role is ColumnRole.VALUE and label.metric is not None:
            metric = _with_average(label.metric, report[1].casefold() if report else "")
            percent = True if label.percent or number.percent else (False if cell.exact else None)
            variant = "AP" if single and _bare_symbol(cell) == "ap" else _rules_key(metric, like)
            group = " ".join(filter(None, (label.group, variant)))
            n = parse_count(cell.n, f"n of {' '.join(filter(None, (record.name, cell.label)))}") if cell.n else None
            values.append(UnresolvedValue(metric, group, cell, number, percent, number.ends, n))
    for (group, owner), pair in ends.items():
        owned = _owner(values, group, owner)
        if owned is not None and len(pair) == 2:
            values[owned] = replace(values[owned], interval=(pair[ColumnRole.LOW], pair[ColumnRole.HIGH]))
    return _with_units(values)


def _sum_value(cell: TableCell, number: PrintedNumber, sums: RecordSums) -> UnresolvedValue:
    """The value of a sum, divided by the number of units."""
    name, share = parse_sum_label(cell.label), parse_label(cell.label)
    metric, group = (name.metric, name.group) if name else (share.metric, share.group)  # type: ignore[union-attr]
    mean = divide_by_total(number, sums.total(group) or 1.0)
    return UnresolvedValue(metric, " ".join(group.split("_")), cell, mean, False, None, is_sum=True)  # type: ignore[arg-type]


def _with_units(drafts: list[UnresolvedValue]) -> list[UnresolvedValue]:
    """Resolve the units that sums prove: 56.9 next to 569 of 1,000 is percent."""
    means = {draft.column: ValueRange(draft.number.low, draft.number.high) for draft in drafts if draft.is_sum}
    decided = []
    for value in drafts:
        mean = None if value.is_sum or value.percent is not None else means.get(value.column)
        percent = None if mean is None else unit_proven_by_mean(value.number, mean)
        proven = replace(value, is_proven_percent=True) if percent else replace(value, percent=False)
        decided.append(value if percent is None else proven)
    return decided


def _rules_key(metric: PublishedMetric, like: str) -> str:
    """The key that values must share to be compared with each other if they were scored like a library.

    Every metric has its own rules for ties and missing queries. Where the best k are selected as torch does it,
    every cutoff has its own order of ties.
    """
    if not like:
        return ""
    return metric.name if CUTOFF_SPECIFIC_ORDER in like else metric.symbol


def _bare_symbol(cell: TableCell) -> str:
    return strip_markup(cell.label).casefold().partition("@")[0].strip()


def _with_average(metric: PublishedMetric, average: str) -> PublishedMetric:
    """In a row such as ``macro avg``, precision, recall and F1 are macro averages."""
    has_average = metric.symbol in ("P", "R", "F1") and metric.k is None and not metric.parameters
    return replace(metric, parameters=(("average", average),)) if average and has_average else metric


def _owner(values: Sequence[UnresolvedValue], group: str, metric: PublishedMetric | None) -> int | None:
    """The index of the value of an interval: of the named metric, the only one, or the selected one."""
    candidates = [
        at
        for at, value in enumerate(values)
        if (metric is None or value.metric == metric) and (value.group == group or metric is None)
    ]
    same_group = [at for at in candidates if values[at].group == group]
    selected = [at for at in candidates if last_word(values[at].group) in SELECTED_WORDS]
    for indices in (same_group, selected, candidates):
        if len(indices) == 1:
            return indices[0]
    return None


def last_word(group: str) -> str:
    """The last word before a metric."""
    return group.rpartition(" ")[2].casefold()


def _span(number: PrintedNumber, scale: float) -> ValueRange:
    return ValueRange(number.low * scale, number.high * scale)


_CHANCE_ROW = re.compile(
    r"(?:random|chance|guess(?:ing)?)(?: (?:baseline|guess(?:ing)?|scorer|choice|order|ranking|level|model))?"
)
_AVERAGE = re.compile(r"(?i)^(?:avg\.?|average|mean|overall)$")
_UNTUNED = ("baseline", "default")
_TUNED_WITHOUT_SEARCH = "tuned"
"""A fine-tuned model is also listed next to a baseline."""


@dataclass(frozen=True)
class DeclaredContext:
    """The context that options declare for a table."""

    n: int | None = None
    assumptions: frozenset[Assumption] = frozenset()
    percent: bool | None = None
    """Whether all shares without a percent sign are percent; None if the table decides."""


@dataclass(frozen=True)
class UnresolvedRow:
    """A row whose values without a percent sign may be percent or fractions."""

    template: PublishedRow
    values: tuple[UnresolvedValue, ...]

    @property
    def columns(self) -> list[Column]:
        """The columns of its values."""
        return [value.column for value in self.values]

    def row(self, percents: Set[Column], *, without: Set[Column] = frozenset()) -> PublishedRow:
        """The row if these columns are percent, without some columns. A part of a possible row is possible."""
        values = [value for value in self.values if value.column not in without]
        return replace(self.template, values=tuple(value.resolve(value.column in percents) for value in values))


@dataclass(frozen=True)
class TableInterpretation:
    """A table with its units: ``percent_columns`` are percent, and ``ambiguous_columns`` may be either."""

    name: str
    rows: tuple[UnresolvedRow, ...]
    percent_columns: frozenset[Column]
    ambiguous_columns: frozenset[Column]
    labels: Mapping[Column, str]
    differences: tuple[str, ...] = ()
    """The rows and columns that contain differences of metric values."""

    @property
    def unsigned(self) -> frozenset[Column]:
        """All columns of shares without a percent sign."""
        return frozenset(self.labels)

    def table(self, percents: Set[Column]) -> AuditedTable:
        """The table if these columns are percent."""
        rows = tuple(self.final(row.row(percents)) for row in self.rows)
        scaled_columns = (
            tuple(sorted(self.labels[column] for column in self.percent_columns)) if self.ambiguous_columns else ()
        )
        return AuditedTable(
            self.name,
            rows,
            tuple(sorted(self.labels[column] for column in self.ambiguous_columns)),
            scaled_columns,
        )

    def final(self, row: PublishedRow) -> PublishedRow:
        """Add what the text around the table states, unless the values contradict it or units are ambiguous."""
        stated = row.context.stated.keys()
        if not stated or self.ambiguous_columns or stated & contradicted_assumptions(row):
            return row
        return replace(row, context=replace(row.context, assumed=row.context.assumed | stated))


def interpret_table(published: PublishedTable, declared: DeclaredContext) -> TableInterpretation:
    """The rows of a table, and which of its columns have no sign of their unit."""
    drafts, differences = without_differences([(record, parse_values(record)) for record in published.records])
    fractions = [value for _, values in drafts for value in values if value.metric.is_fraction]
    unsigned = [value for value in fractions if value.percent is None]
    signed = any(value.percent and not value.is_sum for value in fractions)
    unit_stated = any(statement.label == "unit" for record in published.records for statement in record.stated)
    percent_columns = _percent_columns(unsigned, declared.percent, known_percent=signed or unit_stated)
    labels = {value.column: value.cell.label for value in unsigned}
    rows = [
        row
        for at, (record, values) in enumerate(drafts)
        if values or parse_other_numbers(record)
        for row in _rows(at, record, values, published.name, declared)
    ]
    ambiguous = frozenset(labels) - percent_columns if percent_columns and declared.percent is None else frozenset()
    return TableInterpretation(published.name, tuple(rows), percent_columns, ambiguous, labels, tuple(differences))


def _rows(
    at: int, record: SystemRecord, drafts: Sequence[UnresolvedValue], table: str, declared: DeclaredContext
) -> Iterator[UnresolvedRow]:
    """One row per group of values with the same units."""
    context = parse_context(record.cells, record.name or table, record.stated)
    context = _declared_context(context, declared, record.name)
    other_numbers = parse_other_numbers(record)
    untuned = any(last_word(draft.group) in _UNTUNED for draft in drafts)
    for group in dict.fromkeys(draft.group for draft in drafts) or {"": None}:
        name, word = "/".join(filter(None, (record.name, group))) or table, last_word(group)
        for values in _on_the_same_units([draft for draft in drafts if draft.group == group], context.n):
            template = PublishedRow(
                name,
                (),
                context,
                other_numbers,
                chance=any(map(_CHANCE_ROW.fullmatch, _words(name))),
                averaged=context.averaged
                or any(value.number.spread is not None for value in values)
                or any(map(_AVERAGE.match, _words(name))),
                is_exact=bool(values) and all(value.cell.exact for value in values),
                is_selected=word in SELECTED_WORDS and (context.tuned or (untuned and word != _TUNED_WITHOUT_SEARCH)),
                label=record.name,
                record=at,
                group=group,
                header=_header(record),
            )
            yield UnresolvedRow(template, tuple(values))


MAX_FRACTION_ERROR = 2.0
"""The largest erroneous share in a column of fractions; a larger value means percent."""


def _percent_columns(
    unsigned: Sequence[UnresolvedValue], declared: bool | None, *, known_percent: bool
) -> frozenset[Column]:
    """The columns that are percent, by all of their values.

    A value above 1 makes a column percent, unless it is an exception: most values of every such column are at
    most 1, none is much above, and nothing else in the table is percent. Then the value is impossible.
    """
    columns: dict[Column, list[UnresolvedValue]] = {}
    for value in unsigned:
        columns.setdefault(value.column, []).append(value)
    if declared is not None:
        return frozenset(columns) if declared else frozenset()
    above_one = {column: drafts for column, drafts in columns.items() if any(draft.exceeds_one for draft in drafts)}
    are_errors = not known_percent and all(map(_is_fraction_error, above_one.values()))
    return frozenset() if are_errors else frozenset(above_one)


def _is_fraction_error(column: Sequence[UnresolvedValue]) -> bool:
    above = [value for value in column if value.exceeds_one]
    small = all(value.number.low <= MAX_FRACTION_ERROR and not value.is_proven_percent for value in above)
    return small and len(column) >= 3 * len(above)


def _header(record: SystemRecord) -> str:
    """The label of the cell that gives the record its name."""
    first = record.name.rpartition("/")[2].partition(", ")[0]
    return next((cell.label for cell in record.cells if cell.text and cell.text == first), "")


def _on_the_same_units(drafts: list[UnresolvedValue], n: int | None) -> list[list[UnresolvedValue]]:
    """The values grouped by their number of units, if there are several."""
    counts = dict.fromkeys(draft.n or n for draft in drafts)
    if len([count for count in counts if count is not None]) < 2:
        return [drafts]
    return [[draft for draft in drafts if (draft.n or n) == count] for count in counts]


def _words(name: str) -> list[str]:
    return [part.strip(" *_\\").casefold() for part in re.split(r"[,/]", name)]


def _declared_context(context: TableContext, declared: DeclaredContext, name: str) -> TableContext:
    if declared.n is not None and context.n not in (None, declared.n):
        raise ParameterError(
            f"{name or 'the table'} states {context.n} queries, and --n is {declared.n}",
            hint="omit --n if the table states the number of queries",
        )
    assumptions = context.assumed | declared.assumptions
    return replace(context, n=context.n if declared.n is None else declared.n, assumed=assumptions)


def parse_other_numbers(record: SystemRecord) -> dict[str, PrintedNumber]:
    """All numbers of a record by label, including those that are not metrics."""
    numbers: dict[str, PrintedNumber] = {}
    for cell in record.cells:
        key = re.sub(r"[\s-]+", "_", cell.label.strip().casefold())
        number = parse_printed(cell.text) if cell.text else None
        if number is not None:
            numbers.setdefault(key, number)
    return numbers
