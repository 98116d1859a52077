"""From published records to rows that the laws understand: metrics recognised, units left open or decided."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from equipoise.audit.assumptions import (
    Assumption,
    TableContext,
    contradicted_assumptions,
    parse_context,
    parse_count,
)
from equipoise.audit.metric_labels import ColumnRole, parse_label, without_differences
from equipoise.audit.table import (
    AVERAGES,
    AuditedTable,
    PublishedMetric,
    PublishedRow,
    PublishedValue,
    ValueRange,
)
from equipoise.errors import ParameterError
from equipoise.io.published.numbers import PrintedNumber, as_exact, parse_printed, strip_markup

if TYPE_CHECKING:
    from equipoise.io.published.tables import PublishedTable, SystemRecord, TableCell

# Sums over units: ``correct@10`` and ``rr`` alongside ``total``, as evaluation loops add them up.

_PREFIX = r"(?:(?P<group>.+?)[/:._])?"
_COUNT = re.compile(rf"{_PREFIX}(?:n_|num_)?(?P<word>correct|hits?)(?:_?@|_at_|_)(?P<k>\d+)")
_SUM = re.compile(rf"{_PREFIX}(?:(?P<last>rr|mrr|ndcg|dcg)_sum|(?:sum|total)_(?P<first>rr|mrr|ndcg|dcg)|(?P<bare>rr))")
_TOTAL = re.compile(rf"{_PREFIX}(?:total|n|n_test|num_samples|samples|n_samples|total_samples|units|visits|n_total)")
MOST_PERCENT = 100.0
"""No share is larger, so what is larger is a sum, whatever it is called."""
_SUMMED = ("MRR", "nDCG", "HR")


@dataclass(frozen=True, slots=True)
class SumName:
    """What a label of a sum counts; ``certain`` where no share has such a name."""

    measure: PublishedMetric
    group: str
    certain: bool


@lru_cache(maxsize=4096)
def key_of(label: str) -> str:
    """A label in lower case with underscores for blanks and dashes."""
    return re.sub(r"[\s-]+", "_", strip_markup(label).strip().casefold())


@lru_cache(maxsize=4096)
def sum_name(label: str) -> SumName | None:
    """The metric whose sum a label names; None where it names no sum.

    >>> sum_name("correct@5").measure.name, sum_name("rr").measure.name, sum_name("mrr")
    ('HR@5', 'MRR', None)
    """
    key = key_of(label)
    if match := _COUNT.fullmatch(key):
        return SumName(PublishedMetric("HR", int(match["k"])), match["group"] or "", match["word"] == "correct")
    if match := _SUM.fullmatch(key):
        word = match["last"] or match["first"] or "rr"
        symbol = "MRR" if word.endswith("rr") else "nDCG"
        return SumName(PublishedMetric(symbol), match["group"] or "", match["bare"] is None)
    return None


def is_count(label: str) -> bool:
    """Whether a label can only be that of a number of hits."""
    found = sum_name(label)
    return found is not None and found.certain and found.measure.symbol == "HR"


def is_total(label: str) -> bool:
    """Whether a label is that of the number of units behind sums."""
    return _TOTAL.fullmatch(key_of(label)) is not None


@dataclass(frozen=True, slots=True)
class Sums:
    """What the cells of one record say of its sums: ``totals`` by group, and whether ``hits`` are counts."""

    totals: Mapping[str, float]
    shares: frozenset[PublishedMetric]
    """The metrics whose shares are in the record as well."""
    counted_hits: bool
    raw: bool
    """Whether the record holds sums and no share."""

    @classmethod
    def of(cls, cells: Sequence[TableCell]) -> Sums:
        """From the cells of a record."""
        totals: dict[str, float] = {}
        for cell in cells:
            match = _TOTAL.fullmatch(key_of(cell.label))
            number = parse_printed(cell.text) if match and cell.text else None
            if match and number is not None and number.value >= 1 and number.value == int(number.value):
                totals.setdefault(match["group"] or "", number.value)
        shares = frozenset(_share_names(cells))
        sums = [cell for cell in cells if cell.text and (name := sum_name(cell.label)) and name.certain]
        hits = [number for cell in cells if (number := _hits(cell)) is not None]
        return cls(
            totals,
            shares,
            bool(hits) and any(each.value > MOST_PERCENT for each in hits),
            bool(sums) and not shares,
        )

    def total(self, group: str) -> float | None:
        """The number of units behind the sums of a group."""
        return self.totals.get(group, self.totals.get(""))

    def reads_as_sum(self, cell: TableCell, number: PrintedNumber) -> bool | None:
        """Whether a cell holds a sum; None where that is open, so that nothing can be said of it."""
        name = sum_name(cell.label)
        if number.percent or cell.exact:
            return False
        if name is None:
            share = parse_label(cell.label)
            if share is None or share.measure is None or share.measure.symbol not in _SUMMED or share.percent:
                return False
            total = self.total(key_of(share.group))
            return total is not None and (number.low > MOST_PERCENT or self.raw)
        total = self.total(name.group)
        if total is None:
            # rr above 100 is a sum over a number of units that is not given.
            return None if name.certain or number.low > MOST_PERCENT else False
        if name.certain or (name.measure.symbol == "MRR" and (number.value > 1 or name.measure in self.shares)):
            return True
        if name.measure.symbol == "HR" and _is_whole(number) and number.value > 1:
            # 52 hits of 300 units, or 52 %.
            return True if self.counted_hits else None
        return False


def _share_names(cells: Iterable[TableCell]) -> Iterable[PublishedMetric]:
    for cell in cells:
        found = parse_label(cell.label) if cell.text and sum_name(cell.label) is None else None
        measure = found.measure if found and found.role is ColumnRole.VALUE else None
        if measure is not None and measure.symbol in ("HR", "Acc", "MRR"):
            yield measure


def _hits(cell: TableCell) -> PrintedNumber | None:
    """The number alongside a label such as hits@10, which may be a count or a share."""
    name = sum_name(cell.label)
    number = parse_printed(cell.text) if name and not name.certain and cell.text else None
    return number if number and name and name.measure.symbol == "HR" and not number.percent else None


def _is_whole(number: PrintedNumber) -> bool:
    return number.value == int(number.value) and number.half >= 0.05


def over_total(number: PrintedNumber, total: float) -> PrintedNumber:
    """A sum divided by the number of units; a number of hits is known exactly."""
    half = 0.0 if _is_whole(number) else number.half
    return PrintedNumber(f"{number.text}/{total:g}", number.value / total, half / total)


def unit_beside(number: PrintedNumber, mean: ValueRange) -> bool | None:
    """Whether a share is percent, given the mean that its sum proves; None where both or neither fit."""
    whole = ValueRange(number.low, number.high)
    fraction, percent = not whole.apart(mean), not (whole * 0.01).apart(mean)
    return percent if fraction != percent else None


# The figures of a record before anybody has decided whether they are percent or fractions.

_REPORT = re.compile(rf"(?i)\b({'|'.join(AVERAGES)})[ _]avg\b")
PER_CUTOFF = "torchmetrics"
CHOSEN = ("best", "optimized", "optimised", "tuned")

Column = tuple[str, PublishedMetric]


@dataclass(frozen=True)
class UnresolvedValue:
    """A figure before its unit is decided; ``percent`` is None where no sign says anything."""

    measure: PublishedMetric
    group: str
    cell: TableCell
    number: PrintedNumber
    percent: bool | None
    ends: tuple[PrintedNumber, PrintedNumber] | None
    n: int | None = None
    is_sum: bool = False
    """Whether it is a sum divided by the number of units: then it is a fraction."""
    proven_percent: bool = False
    """Whether the sum of the same metric proves that it is percent."""

    @property
    def is_over(self) -> bool:
        """Whether it can only be percent."""
        return self.number.low > 1.0 or self.proven_percent

    @property
    def column(self) -> Column:
        """Figures of one column have one unit."""
        return self.group, self.measure

    def figure(self, percent: bool) -> PublishedValue:
        """The figure, a share being read as percent or as a fraction where it has no sign."""
        signed = percent if self.percent is None else self.percent
        scale = 0.01 if self.measure.is_share and signed else 1.0
        number = replace(self.number, percent=scale != 1.0)
        span = (ValueRange(number.low, number.high) * scale).within(*self.measure.bounds)
        ends = self.ends and (_span(self.ends[0], scale), _span(self.ends[1], scale))
        text = f"{self.ends[0].text} to {self.ends[1].text}" if self.ends else ""
        return PublishedValue(self.measure, self.cell.label, number, span, self.n, ends, text)


def parse_values(record: SystemRecord) -> list[UnresolvedValue]:
    """The figures that can be made out, with their intervals; a number of units that cannot be is refused."""
    found: list[UnresolvedValue] = []
    ends: dict[tuple[str, PublishedMetric | None], dict[ColumnRole, PrintedNumber]] = {}
    report = _REPORT.search(record.name)
    facts = {cell.label: cell.text for cell in record.cells} | {each.label: each.text for each in record.said}
    like = facts.get("like", "")
    # A table with AP beside mAP has two metrics: one threshold or class, and the mean over several.
    single = any(map(_single, record.cells)) and any(map(_mean, record.cells))
    sums = Sums.of(record.cells)
    for cell in record.cells:
        number = parse_printed(cell.text) if cell.text else None
        summed = number is not None and sums.reads_as_sum(cell, number)
        if number is not None and summed:
            found.append(_summed(cell, number, sums))
        label = parse_label(cell.label)
        if label is None or number is None or summed is not False:
            continue
        number = as_exact(number) if cell.exact else number
        if label.role in (ColumnRole.LOW, ColumnRole.HIGH):
            ends.setdefault((label.group, label.measure), {})[label.role] = number
        elif label.role is ColumnRole.VALUE and label.measure is not None:
            measure = _averaged(label.measure, report[1].casefold() if report else "")
            percent = True if label.percent or number.percent else (False if cell.exact else None)
            apart = "AP" if single and _single(cell) else _rules_of(measure, like)
            group = " ".join(filter(None, (label.group, apart)))
            n = parse_count(cell.n, f"n of {' '.join(filter(None, (record.name, cell.label)))}") if cell.n else None
            found.append(UnresolvedValue(measure, group, cell, number, percent, number.ends, n))
    for (group, owner), pair in ends.items():
        owned = _owner(found, group, owner)
        if owned is not None and len(pair) == 2:
            found[owned] = replace(found[owned], ends=(pair[ColumnRole.LOW], pair[ColumnRole.HIGH]))
    return _with_units(found)


def _summed(cell: TableCell, number: PrintedNumber, sums: Sums) -> UnresolvedValue:
    """The figure of a sum, divided by the number of units."""
    name, share = sum_name(cell.label), parse_label(cell.label)
    measure, group = (name.measure, name.group) if name else (share.measure, share.group)  # type: ignore[union-attr]
    mean = over_total(number, sums.total(group) or 1.0)
    return UnresolvedValue(measure, " ".join(group.split("_")), cell, mean, False, None, is_sum=True)  # type: ignore[arg-type]


def _with_units(drafts: list[UnresolvedValue]) -> list[UnresolvedValue]:
    """With the units that sums prove: 56.9 alongside 569 of 1,000 is percent."""
    means = {each.column: ValueRange(each.number.low, each.number.high) for each in drafts if each.is_sum}
    decided = []
    for each in drafts:
        mean = None if each.is_sum or each.percent is not None else means.get(each.column)
        percent = None if mean is None else unit_beside(each.number, mean)
        proven = replace(each, proven_percent=True) if percent else replace(each, percent=False)
        decided.append(each if percent is None else proven)
    return decided


def _rules_of(measure: PublishedMetric, like: str) -> str:
    """What figures must share to be held against each other where they were scored like a library.

    Every metric has its own rules for ties and for queries that are missing, and where the best k are picked
    as torch does it, every cutoff has its own order of equals.
    """
    if not like:
        return ""
    return measure.name if PER_CUTOFF in like else measure.symbol


def _single(cell: TableCell) -> bool:
    return strip_markup(cell.label).casefold().partition("@")[0].strip() == "ap"


def _mean(cell: TableCell) -> bool:
    return strip_markup(cell.label).casefold().partition("@")[0].strip() == "map"


def _averaged(measure: PublishedMetric, average: str) -> PublishedMetric:
    """In a row such as ``macro avg`` precision, recall and F1 are macro averages."""
    bare = measure.symbol in ("P", "R", "F1") and measure.k is None and not measure.parameters
    return replace(measure, parameters=(("average", average),)) if average and bare else measure


def _owner(found: Sequence[UnresolvedValue], group: str, measure: PublishedMetric | None) -> int | None:
    """Whose interval it is: the metric's that is named, the only one's, or the chosen one's."""
    places = [
        at
        for at, each in enumerate(found)
        if (measure is None or each.measure == measure) and (each.group == group or measure is None)
    ]
    alike = [at for at in places if found[at].group == group]
    chosen = [at for at in places if last_word(found[at].group) in CHOSEN]
    for offered in (alike, chosen, places):
        if len(offered) == 1:
            return offered[0]
    return None


def last_word(group: str) -> str:
    """The word that stands directly before a metric."""
    return group.rpartition(" ")[2].casefold()


def _span(number: PrintedNumber, scale: float) -> ValueRange:
    return ValueRange(number.low * scale, number.high * scale)


_LUCK = re.compile(
    r"(?:random|chance|guess(?:ing)?)(?: (?:baseline|guess(?:ing)?|scorer|choice|order|ranking|level|model))?"
)
_AVERAGE = re.compile(r"(?i)^(?:avg\.?|average|mean|overall)$")
_UNTUNED = ("baseline", "default")
_TUNED_WITHOUT_SEARCH = "tuned"
"""A model that was fine-tuned stands beside a baseline, too."""


@dataclass(frozen=True)
class DeclaredContext:
    """What the options say of a table."""

    n: int | None = None
    needs: frozenset[Assumption] = frozenset()
    percent: bool | None = None
    """The unit of all shares without a sign; None leaves it to the table."""


@dataclass(frozen=True)
class UnresolvedRow:
    """A row whose unsigned figures may still be percent or fractions."""

    frame: PublishedRow
    drafts: tuple[UnresolvedValue, ...]

    @property
    def columns(self) -> list[Column]:
        """The columns of its figures."""
        return [each.column for each in self.drafts]

    def row(self, percents: Set[Column], *, without: Set[Column] = frozenset()) -> PublishedRow:
        """The row when these columns are percent, less some columns: what is left of a true row is true."""
        kept = [each for each in self.drafts if each.column not in without]
        return replace(self.frame, figures=tuple(each.figure(each.column in percents) for each in kept))


@dataclass(frozen=True)
class TableInterpretation:
    """A table with what is known of its units: ``over`` are percent, and ``unsure`` may be either."""

    name: str
    rows: tuple[UnresolvedRow, ...]
    over: frozenset[Column]
    unsure: frozenset[Column]
    labels: Mapping[Column, str]
    differences: tuple[str, ...] = ()
    """The rows and columns that hold differences of metric values."""

    @property
    def unsigned(self) -> frozenset[Column]:
        """All columns of shares that carry no sign."""
        return frozenset(self.labels)

    def table(self, percents: Set[Column]) -> AuditedTable:
        """The table when these columns are percent."""
        rows = tuple(self.final(each.row(percents)) for each in self.rows)
        over = tuple(sorted(self.labels[each] for each in self.over)) if self.unsure else ()
        return AuditedTable(self.name, rows, tuple(sorted(self.labels[each] for each in self.unsure)), over)

    def final(self, row: PublishedRow) -> PublishedRow:
        """With what the text around the table says, unless the figures prove it wrong or units are open."""
        told = row.facts.told.keys()
        if not told or self.unsure or told & contradicted_assumptions(row):
            return row
        return replace(row, facts=replace(row.facts, assumed=row.facts.assumed | told))


def interpret_table(published: PublishedTable, declared: DeclaredContext) -> TableInterpretation:
    """The rows of a table, and which of its columns have no sign of their unit."""
    drafts, differences = without_differences([(each, parse_values(each)) for each in published.records])
    every = [each for _, found in drafts for each in found if each.measure.is_share]
    unsigned = [each for each in every if each.percent is None]
    signed = any(each.percent and not each.is_sum for each in every)
    told = any(each.label == "unit" for record in published.records for each in record.said)
    over = _percent_columns(unsigned, declared.percent, known_percent=signed or told)
    labels = {each.column: each.cell.label for each in unsigned}
    rows = [
        row
        for at, (record, found) in enumerate(drafts)
        if found or other_numbers(record)
        for row in _rows(at, record, found, published.name, declared)
    ]
    unsure = frozenset(labels) - over if over and declared.percent is None else frozenset()
    return TableInterpretation(published.name, tuple(rows), over, unsure, labels, tuple(differences))


def _rows(
    at: int, record: SystemRecord, drafts: Sequence[UnresolvedValue], table: str, declared: DeclaredContext
) -> Iterator[UnresolvedRow]:
    """A row for each group of figures that rest on the same units."""
    facts = parse_context(record.cells, record.name or table, record.said)
    facts = _declared(facts, declared, record.name)
    others = other_numbers(record)
    untuned = any(last_word(each.group) in _UNTUNED for each in drafts)
    for group in dict.fromkeys(each.group for each in drafts) or {"": None}:
        name = "/".join(filter(None, (record.name, group))) or table
        for own in _on_the_same_units([each for each in drafts if each.group == group], facts.n):
            frame = PublishedRow(
                name,
                (),
                facts,
                others,
                chance=any(map(_LUCK.fullmatch, _words(name))),
                averaged=facts.averaged
                or any(each.number.spread is not None for each in own)
                or any(map(_AVERAGE.match, _words(name))),
                own=bool(own) and all(each.cell.exact for each in own),
                chosen=_is_chosen(last_word(group), facts, untuned),
                label=record.name,
                record=at,
                group=group,
                header=_header(record),
            )
            yield UnresolvedRow(frame, tuple(own))


LARGEST_SLIP = 2.0
"""A share above 1 in a column of fractions; what is larger is percent."""


def _percent_columns(
    unsigned: Sequence[UnresolvedValue], declared: bool | None, *, known_percent: bool
) -> frozenset[Column]:
    """The columns that are percent, by all of their values.

    A value above 1 makes a column percent, unless it is an exception: most values of every such column are at
    most 1, none is much above, and nothing else in the table is percent. Then the value is impossible.
    """
    columns: dict[Column, list[UnresolvedValue]] = {}
    for each in unsigned:
        columns.setdefault(each.column, []).append(each)
    if declared is not None:
        return frozenset(columns) if declared else frozenset()
    over = {column: drafts for column, drafts in columns.items() if any(each.is_over for each in drafts)}
    slips = not known_percent and all(map(_is_slip, over.values()))
    return frozenset() if slips else frozenset(over)


def _is_slip(column: Sequence[UnresolvedValue]) -> bool:
    above = [each for each in column if each.is_over]
    small = all(each.number.low <= LARGEST_SLIP and not each.proven_percent for each in above)
    return small and len(column) >= 3 * len(above)


def _header(record: SystemRecord) -> str:
    """The label of the cell that gives the record its name."""
    first = record.name.rpartition("/")[2].partition(", ")[0]
    return next((cell.label for cell in record.cells if cell.text and cell.text == first), "")


def _on_the_same_units(drafts: list[UnresolvedValue], n: int | None) -> list[list[UnresolvedValue]]:
    """The figures apart by the number of their units, where they have several."""
    counts = dict.fromkeys(each.n or n for each in drafts)
    if len([each for each in counts if each is not None]) < 2:
        return [drafts]
    return [[each for each in drafts if (each.n or n) == count] for count in counts]


def _is_chosen(word: str, facts: TableContext, untuned: bool) -> bool:
    """Whether a search for parameters chose what these figures are of."""
    return word in CHOSEN and (facts.tuned or (untuned and word != _TUNED_WITHOUT_SEARCH))


def _words(name: str) -> list[str]:
    return [part.strip(" *_\\").casefold() for part in re.split(r"[,/]", name)]


def _declared(facts: TableContext, declared: DeclaredContext, name: str) -> TableContext:
    if declared.n is not None and facts.n not in (None, declared.n):
        raise ParameterError(
            f"{name or 'the table'} says that it rests on {facts.n} units, and --n says {declared.n}",
            hint="leave --n out where the table has its own",
        )
    needs = facts.assumed | declared.needs
    return replace(facts, n=facts.n if declared.n is None else declared.n, assumed=needs)


def other_numbers(record: SystemRecord) -> dict[str, PrintedNumber]:
    """All numbers of a record under their labels, also those that are no metrics."""
    found: dict[str, PrintedNumber] = {}
    for cell in record.cells:
        key = re.sub(r"[\s-]+", "_", cell.label.strip().casefold())
        number = parse_printed(cell.text) if cell.text else None
        if number is not None:
            found.setdefault(key, number)
    return found
