"""The units one by one: their values, and for those that tell most what each system retrieved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from equipoise.data.dataset import Value
from equipoise.report.page.figures import number
from equipoise.report.page.model import Column, Explorer, Hit, Item, UnitDetail, UnitSlice
from equipoise.report.page.selection import Selection, selected
from equipoise.report.page.subject import Subject
from equipoise.report.page.texts import LENGTHS, TextTable, longest_that_fits
from equipoise.report.page.unit_details import Slices, details_of
from equipoise.run.details import Detail
from equipoise.stats.numbers import count
from equipoise.types import Direction, Floats

MOST_CELLS = 200_000
"""Values of units, metrics and systems together."""
MOST_HITS = 40_000
"""Retrieved items of all units and systems together."""
TEXT_BYTES = 900_000
"""All texts together, each counted once."""

Found = tuple[Detail | None, ...]
"""What is known of one unit, a detail a system."""


def explorer(subject: Subject, slices: Slices) -> Explorer | None:
    """The units that are kept; None where no metric has a value for each unit."""
    tables = {name: table for name in subject.metrics if (table := subject.per_unit(name)) is not None}
    if not tables or not subject.units:
        return None
    leading = next(iter(tables))
    better = {name: subject.estimates(name)[0].better for name in tables}
    room = max(1, MOST_CELLS // (len(tables) * len(subject.runs)))
    chosen = selected(tables[leading], room, better[leading])
    ids = subject.units
    kept = [ids[place] for place in chosen.kept]
    known = _details(subject, [ids[place] for place in chosen.ranked])
    details, shown = _fitted(kept, known)
    return Explorer(
        units=tuple(str(unit) for unit in kept),
        columns=tuple(_column(name, better[name], values[chosen.kept].T) for name, values in tables.items()),
        slices=_unit_slices(kept, slices),
        details=details,
        items=tuple(shown.items),
        texts=tuple(shown.texts.texts),
        total=len(ids),
        note=_note(chosen, known, details, shown.texts.length),
    )


def _column(name: str, better: Direction, values: Floats) -> Column:
    return Column(name, str(better), tuple(tuple(map(number, row)) for row in values.tolist()))


def _details(subject: Subject, ranked: Sequence[str | int]) -> dict[str | int, Found]:
    """What the runs keep of these units, the most telling unit first."""
    by_run = [details_of(run, ranked) for run in subject.runs]
    found = {unit: tuple(details.get(unit) for details in by_run) for unit in ranked}
    return {unit: each for unit, each in found.items() if any(each)}


@dataclass
class _Table:
    """Items and texts, each once."""

    texts: TextTable
    items: list[Item] = field(default_factory=list)
    places: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def hits(self, detail: Detail | None) -> tuple[Hit, ...]:
        """What one system retrieved, by place."""
        if detail is None:
            return ()
        hits = []
        for each in detail.retrieved:
            key = (each.id, each.text, each.where)
            if key not in self.places:
                self.places[key] = len(self.items)
                self.items.append(Item(each.id, self.texts.place(each.text), self.texts.place(each.where)))
            score = None if each.score is None else number(each.score)
            hits.append(Hit(self.places[key], score, each.relevant))
        return tuple(hits)


def _fitted(
    kept: Sequence[str | int], known: Mapping[str | int, Found]
) -> tuple[tuple[UnitDetail | None, ...], _Table]:
    """As many details as there is room for: what was retrieved first gives way, then the ends of texts."""
    listed = _first_with_hits(known)
    length = longest_that_fits(_texts(known, listed), TEXT_BYTES)
    while length is None and listed:
        listed = dict(list(listed.items())[: len(listed) // 2])
        length = longest_that_fits(_texts(known, listed), TEXT_BYTES)
    table = _Table(TextTable(length or LENGTHS[-1]))
    return tuple(_detail(known.get(unit), table, with_hits=unit in listed) for unit in kept), table


def _first_with_hits(known: Mapping[str | int, Found]) -> dict[str | int, Found]:
    """The most telling units, up to as many retrieved items as a page can hold."""
    listed: dict[str | int, Found] = {}
    hits = 0
    for unit, found in known.items():
        hits += sum(len(detail.retrieved) for detail in found if detail is not None)
        if hits > MOST_HITS:
            break
        listed[unit] = found
    return listed


def _texts(known: Mapping[str | int, Found], listed: Mapping[str | int, Found]) -> set[str]:
    texts = {text for found in known.values() for text in (_shown(found).text, *_shown(found).expected)}
    hits = (hit for found in listed.values() for each in found if each for hit in each.retrieved)
    return texts.union(*((hit.text, hit.where) for hit in hits))


def _shown(found: Found) -> Detail:
    """The unit as the first system that keeps it has it: its text and its answers are the same for all."""
    return next(detail for detail in found if detail is not None)


def _detail(found: Found | None, table: _Table, *, with_hits: bool) -> UnitDetail | None:
    if found is None:
        return None
    shown = _shown(found)
    return UnitDetail(
        text=table.texts.place(shown.text),
        expected=tuple(table.texts.place(answer) for answer in shown.expected),
        retrieved=tuple(table.hits(each) for each in found) if with_hits else (),
    )


def _unit_slices(kept: Sequence[str | int], slices: Slices) -> tuple[UnitSlice, ...]:
    names = dict.fromkeys(name for unit in kept for name in slices.get(unit, ()))
    return tuple(_unit_slice(name, [slices.get(unit, {}).get(name) for unit in kept]) for name in names)


def _unit_slice(name: str, values: Sequence[Value | None]) -> UnitSlice:
    texts = [None if value is None else str(value) for value in values]
    places = {text: place for place, text in enumerate(sorted({text for text in texts if text is not None}))}
    return UnitSlice(name, tuple(places), tuple(-1 if text is None else places[text] for text in texts))


def _note(
    chosen: Selection,
    known: Mapping[str | int, Found],
    details: Sequence[UnitDetail | None],
    length: int,
) -> str:
    """Everything that was left out, in sentences."""
    sentences = [chosen.note] if chosen.note else []
    retrieving = sum(any(each and each.retrieved for each in found) for found in known.values())
    listed = sum(each is not None and any(each.retrieved) for each in details)
    if listed < retrieving:
        sentences.append(
            f"What was retrieved is shown for {count(listed)} of them, where the systems differ most."
        )
    everything = (text for found in known.values() for text in _texts({"": found}, {"": found}))
    if any(len(text) > length for text in everything):
        sentences.append(f"Texts are cut after {count(length)} characters.")
    return " ".join(sentences)
