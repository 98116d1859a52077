"""From published records to rows that the laws understand: metrics recognised, units decided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from equipoise.checks.audit.facts import Facts, Need, facts_of
from equipoise.checks.audit.measure import AVERAGES, Measure
from equipoise.checks.audit.names import Role, named
from equipoise.checks.audit.row import Figure, Row, Table
from equipoise.checks.audit.span import Span
from equipoise.data.published.markup import plain
from equipoise.data.published.printed import Printed, exactly, printed
from equipoise.data.published.record import Cell, Published, Record
from equipoise.errors import ParameterError

_LUCK = re.compile(
    r"(?:random|chance|guess(?:ing)?)(?: (?:baseline|guess(?:ing)?|scorer|choice|order|ranking|level|model))?"
)
_AVERAGE = re.compile(r"(?i)^(?:avg\.?|average|mean|overall)$")
_REPORT = re.compile(rf"(?i)\b({'|'.join(AVERAGES)})[ _]avg\b")
_CHOSEN = ("best", "optimized", "optimised", "tuned")


@dataclass(frozen=True)
class Declared:
    """What the options say of a table."""

    n: int | None = None
    needs: frozenset[Need] = frozenset()


Column = tuple[str, Measure]


@dataclass(frozen=True)
class Draft:
    """A figure before its unit is decided; ``percent`` is None where no sign says anything."""

    measure: Measure
    group: str
    cell: Cell
    number: Printed
    percent: bool | None
    ends: tuple[Printed, Printed] | None

    @property
    def column(self) -> Column:
        """Figures of one column have one unit."""
        return self.group, self.measure


MIXED = 6
"""So many columns are read in every mixture of fractions and percent."""


def readings(published: Published, declared: Declared) -> Iterator[Table]:
    """The table as its figures can be read: unsigned columns as fractions or as percent, in every mixture.

    Where they are many, all columns of one metric are taken to have one unit.
    """
    drafts = [(record, _drafts(record)) for record in published.records]
    every = [each for _, found in drafts for each in found if each.measure.is_share]
    unsigned = [each for each in every if each.percent is None]
    over = {each.column for each in unsigned if each.number.low > 1.0}
    unsure = {each.column for each in unsigned} - over if over else set()
    rows = [(record, found) for record, found in drafts if found or _others(record)]
    names = {each.column: each.cell.label for each in unsigned}
    for more in _mixtures(unsure):
        percents = over | more
        made = [row for record, found in rows for row in _rows(record, found, percents, published, declared)]
        yield Table(
            published.name,
            tuple(made),
            tuple(sorted(names[each] for each in unsure)),
            tuple(sorted(names[each] for each in over)) if unsure else (),
        )


def _mixtures(unsure: set[Column]) -> Iterator[set[Column]]:
    """Which of the columns are percent: none, all, and everything between."""
    if not unsure:
        yield set()
        return
    yield from (set(), unsure)
    parts: list[set[Column]] = [{each} for each in sorted(unsure, key=str)]
    if len(parts) > MIXED:
        symbols = sorted({measure.symbol for _, measure in unsure})
        parts = [{each for each in unsure if each[1].symbol == symbol} for symbol in symbols]
    for some in range(1, len(parts)):
        for chosen in combinations(parts, some):
            yield set().union(*chosen)


def _drafts(record: Record) -> list[Draft]:
    found: list[Draft] = []
    ends: dict[tuple[str, Measure | None], dict[Role, Printed]] = {}
    report = _REPORT.search(record.name)
    # Scored like a library, every metric has its own rules for ties and for queries that are missing.
    like = any(cell.label == "like" and cell.text for cell in record.cells)
    # A table with AP beside mAP has two metrics: one threshold or class, and the mean over several.
    single = any(map(_single, record.cells)) and any(map(_mean, record.cells))
    for cell in record.cells:
        label = named(cell.label)
        number = None if label is None or not cell.text else printed(cell.text)
        if label is None or number is None:
            continue
        number = exactly(number) if cell.exact else number
        if label.role in (Role.LOW, Role.HIGH):
            ends.setdefault((label.group, label.measure), {})[label.role] = number
        elif label.role is Role.VALUE and label.measure is not None:
            measure = _averaged(label.measure, report[1].casefold() if report else "")
            percent = True if label.percent or number.percent else (False if cell.exact else None)
            apart = "AP" if single and _single(cell) else measure.symbol if like and cell.exact else ""
            group = " ".join(filter(None, (label.group, apart)))
            found.append(Draft(measure, group, cell, number, percent, number.ends))
    for (group, owner), pair in ends.items():
        owned = _owner(found, group, owner)
        if owned is not None and len(pair) == 2:
            found[owned] = replace(found[owned], ends=(pair[Role.LOW], pair[Role.HIGH]))
    return found


def _single(cell: Cell) -> bool:
    return plain(cell.label).casefold().partition("@")[0].strip() == "ap"


def _mean(cell: Cell) -> bool:
    return plain(cell.label).casefold().partition("@")[0].strip() == "map"


def _averaged(measure: Measure, average: str) -> Measure:
    """In a row such as ``macro avg`` precision, recall and F1 are macro averages."""
    bare = measure.symbol in ("P", "R", "F1") and measure.k is None and not measure.parameters
    return replace(measure, parameters=(("average", average),)) if average and bare else measure


def _owner(found: Sequence[Draft], group: str, measure: Measure | None) -> int | None:
    """Whose interval it is: the metric's that is named, the only one's, or the chosen one's."""
    places = [
        at
        for at, each in enumerate(found)
        if (measure is None or each.measure == measure) and (each.group == group or measure is None)
    ]
    alike = [at for at in places if found[at].group == group]
    chosen = [at for at in places if found[at].group.split(" ")[-1].casefold() in _CHOSEN]
    for offered in (alike, chosen, places):
        if len(offered) == 1:
            return offered[0]
    return None


def _rows(
    record: Record,
    drafts: Sequence[Draft],
    percents: set[Column],
    published: Published,
    declared: Declared,
) -> list[Row]:
    facts = _declared(facts_of(record.cells, record.name or published.name), declared, record.name)
    others = _others(record)
    groups = dict.fromkeys(each.group for each in drafts) or {"": None}
    rows = []
    for group in groups:
        name = "/".join(filter(None, (record.name, group))) or published.name
        own = [each for each in drafts if each.group == group]
        figures = tuple(_figure(each, each.column in percents) for each in own)
        rows.append(
            Row(
                name,
                figures,
                facts,
                others,
                chance=any(map(_LUCK.fullmatch, _words(name))),
                averaged=any(each.number.spread is not None for each in own)
                or any(map(_AVERAGE.match, _words(name))),
                own=bool(own) and all(each.cell.exact for each in own),
            )
        )
    return rows


def _words(name: str) -> list[str]:
    return [part.strip(" *_\\").casefold() for part in re.split(r"[,/]", name)]


def _figure(draft: Draft, percent: bool) -> Figure:
    scale = 0.01 if draft.measure.is_share and (draft.percent or percent) else 1.0
    number = replace(draft.number, percent=scale != 1.0)
    span = Span(number.low * scale, number.high * scale).within(*draft.measure.bounds)
    ends = draft.ends and (_end(draft.ends[0], scale), _end(draft.ends[1], scale))
    return Figure(draft.measure, draft.cell.label, number, span, draft.cell.n, ends)


def _end(number: Printed, scale: float) -> Span:
    return Span(number.low * scale, number.high * scale)


def _declared(facts: Facts, declared: Declared, name: str) -> Facts:
    if declared.n is not None and facts.n not in (None, declared.n):
        raise ParameterError(
            f"{name or 'the table'} says that it rests on {facts.n} units, and --n says {declared.n}",
            hint="leave --n out where the table has its own",
        )
    needs = facts.assumed | declared.needs
    return replace(facts, n=facts.n if declared.n is None else declared.n, assumed=needs)


def _others(record: Record) -> dict[str, Printed]:
    """Numbers under names that are no metrics."""
    found: dict[str, Printed] = {}
    for cell in record.cells:
        key = re.sub(r"[\s-]+", "_", cell.label.strip().casefold())
        number = printed(cell.text) if cell.text else None
        if number is not None:
            found.setdefault(key, number)
    return found
