"""From published records to rows that the laws understand: metrics recognised, units left open or decided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from equipoise.checks.audit.differences import without_differences
from equipoise.checks.audit.disproof import disproved
from equipoise.checks.audit.drafts import CHOSEN, Column, Draft, drafts_of, last_word
from equipoise.checks.audit.facts import Facts, Need, facts_of
from equipoise.checks.audit.row import Row, Table
from equipoise.data.published.printed import Printed, printed
from equipoise.data.published.record import Published, Record
from equipoise.errors import ParameterError

_LUCK = re.compile(
    r"(?:random|chance|guess(?:ing)?)(?: (?:baseline|guess(?:ing)?|scorer|choice|order|ranking|level|model))?"
)
_AVERAGE = re.compile(r"(?i)^(?:avg\.?|average|mean|overall)$")
_UNTUNED = ("baseline", "default")
_TUNED_WITHOUT_SEARCH = "tuned"
"""A model that was fine-tuned stands beside a baseline, too."""


@dataclass(frozen=True)
class Declared:
    """What the options say of a table."""

    n: int | None = None
    needs: frozenset[Need] = frozenset()
    percent: bool | None = None
    """The unit of all shares without a sign; None leaves it to the table."""


@dataclass(frozen=True)
class RowDraft:
    """A row whose unsigned figures may still be percent or fractions."""

    frame: Row
    drafts: tuple[Draft, ...]

    @property
    def columns(self) -> list[Column]:
        """The columns of its figures."""
        return [each.column for each in self.drafts]

    def row(self, percents: Set[Column], *, without: Set[Column] = frozenset()) -> Row:
        """The row when these columns are percent, less some columns: what is left of a true row is true."""
        kept = [each for each in self.drafts if each.column not in without]
        return replace(self.frame, figures=tuple(each.figure(each.column in percents) for each in kept))


@dataclass(frozen=True)
class Reading:
    """A table with what is known of its units: ``over`` are percent, and ``unsure`` may be either."""

    name: str
    rows: tuple[RowDraft, ...]
    over: frozenset[Column]
    unsure: frozenset[Column]
    labels: Mapping[Column, str]
    differences: tuple[str, ...] = ()
    """The rows and columns that hold differences of metric values."""

    @property
    def unsigned(self) -> frozenset[Column]:
        """All columns of shares that carry no sign."""
        return frozenset(self.labels)

    def table(self, percents: Set[Column]) -> Table:
        """The table when these columns are percent."""
        rows = tuple(self.final(each.row(percents)) for each in self.rows)
        over = tuple(sorted(self.labels[each] for each in self.over)) if self.unsure else ()
        return Table(self.name, rows, tuple(sorted(self.labels[each] for each in self.unsure)), over)

    def final(self, row: Row) -> Row:
        """With what the text around the table says, unless the figures prove it wrong or units are open."""
        told = row.facts.told.keys()
        if not told or self.unsure or told & disproved(row):
            return row
        return replace(row, facts=replace(row.facts, assumed=row.facts.assumed | told))


def reading_of(published: Published, declared: Declared) -> Reading:
    """The rows of a table, and which of its columns have no sign of their unit."""
    drafts, differences = without_differences([(each, drafts_of(each)) for each in published.records])
    every = [each for _, found in drafts for each in found if each.measure.is_share]
    unsigned = [each for each in every if each.percent is None]
    signed = any(each.percent and not each.is_sum for each in every)
    told = any(each.label == "unit" for record in published.records for each in record.said)
    over = _percent_columns(unsigned, declared.percent, known_percent=signed or told)
    labels = {each.column: each.cell.label for each in unsigned}
    rows = [
        row
        for at, (record, found) in enumerate(drafts)
        if found or others_of(record)
        for row in _rows(at, record, found, published.name, declared)
    ]
    unsure = frozenset(labels) - over if over and declared.percent is None else frozenset()
    return Reading(published.name, tuple(rows), over, unsure, labels, tuple(differences))


def _rows(
    at: int, record: Record, drafts: Sequence[Draft], table: str, declared: Declared
) -> Iterator[RowDraft]:
    """A row for each group of figures that rest on the same units."""
    facts = facts_of(record.cells, record.name or table, record.said)
    facts = _declared(facts, declared, record.name)
    others = others_of(record)
    untuned = any(last_word(each.group) in _UNTUNED for each in drafts)
    for group in dict.fromkeys(each.group for each in drafts) or {"": None}:
        name = "/".join(filter(None, (record.name, group))) or table
        for own in _on_the_same_units([each for each in drafts if each.group == group], facts.n):
            frame = Row(
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
            yield RowDraft(frame, tuple(own))


LARGEST_SLIP = 2.0
"""A share above 1 in a column of fractions; what is larger is percent."""


def _percent_columns(
    unsigned: Sequence[Draft], declared: bool | None, *, known_percent: bool
) -> frozenset[Column]:
    """The columns that are percent, by all of their values.

    A value above 1 makes a column percent, unless it is an exception: most values of every such column are at
    most 1, none is much above, and nothing else in the table is percent. Then the value is impossible.
    """
    columns: dict[Column, list[Draft]] = {}
    for each in unsigned:
        columns.setdefault(each.column, []).append(each)
    if declared is not None:
        return frozenset(columns) if declared else frozenset()
    over = {column: drafts for column, drafts in columns.items() if any(each.is_over for each in drafts)}
    slips = not known_percent and all(map(_is_slip, over.values()))
    return frozenset() if slips else frozenset(over)


def _is_slip(column: Sequence[Draft]) -> bool:
    above = [each for each in column if each.is_over]
    small = all(each.number.low <= LARGEST_SLIP and not each.proven_percent for each in above)
    return small and len(column) >= 3 * len(above)


def _header(record: Record) -> str:
    """The label of the cell that gives the record its name."""
    first = record.name.rpartition("/")[2].partition(", ")[0]
    return next((cell.label for cell in record.cells if cell.text and cell.text == first), "")


def _on_the_same_units(drafts: list[Draft], n: int | None) -> list[list[Draft]]:
    """The figures apart by the number of their units, where they have several."""
    counts = dict.fromkeys(each.n or n for each in drafts)
    if len([each for each in counts if each is not None]) < 2:
        return [drafts]
    return [[each for each in drafts if (each.n or n) == count] for count in counts]


def _is_chosen(word: str, facts: Facts, untuned: bool) -> bool:
    """Whether a search for parameters chose what these figures are of."""
    return word in CHOSEN and (facts.tuned or (untuned and word != _TUNED_WITHOUT_SEARCH))


def _words(name: str) -> list[str]:
    return [part.strip(" *_\\").casefold() for part in re.split(r"[,/]", name)]


def _declared(facts: Facts, declared: Declared, name: str) -> Facts:
    if declared.n is not None and facts.n not in (None, declared.n):
        raise ParameterError(
            f"{name or 'the table'} says that it rests on {facts.n} units, and --n says {declared.n}",
            hint="leave --n out where the table has its own",
        )
    needs = facts.assumed | declared.needs
    return replace(facts, n=facts.n if declared.n is None else declared.n, assumed=needs)


def others_of(record: Record) -> dict[str, Printed]:
    """All numbers of a record under their labels, also those that are no metrics."""
    found: dict[str, Printed] = {}
    for cell in record.cells:
        key = re.sub(r"[\s-]+", "_", cell.label.strip().casefold())
        number = printed(cell.text) if cell.text else None
        if number is not None:
            found.setdefault(key, number)
    return found
