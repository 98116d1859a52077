"""The units one by one: their values, and the retrieved items of the most informative ones."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import StoreError
from equipoise.evidence.base import FILE_CHANGED
from equipoise.io.dataset import Value
from equipoise.report.view_model import Number, UnitExplorer
from equipoise.runs.manifest import DETAILS
from equipoise.runs.unit_table import UnitContent, json_text, parse_details
from equipoise.stats.formatting import format_count, metric_in_sentence, percent_sign
from equipoise.stats.slices import in_natural_order
from equipoise.types import Direction, Floats, Ints

if TYPE_CHECKING:
    from equipoise.report.build_view import RunSet
    from equipoise.runs.run_folder import StoredRun

# Selection of units if a page cannot hold all: those on which the systems differ most.

SEED = 0
_DECIMALS = 4


@dataclass(frozen=True)
class UnitSelection:
    """Indices of the selected units in their order; ``ranked`` has the largest differences first."""

    kept: Ints
    ranked: Ints
    note: str


def select_units(values: Floats, n_units: int, better: Direction, *, seed: int = SEED) -> UnitSelection:
    """At most ``n_units`` units: where the systems differ most, or where a single one is worst. Ties are random."""
    ranked = np.lexsort((np.random.default_rng(seed).permutation(len(values)), -_unit_differences(values, better)))
    chosen = ranked[:n_units].astype(np.int64)
    note = ""
    if len(values) > n_units:
        why = "the systems differ most" if values.shape[1] > 1 else "the system is worst"
        note = (
            f"{format_count(n_units)} of {format_count(len(values))} are shown: those on which {why}; ties are broken "
            f"at random (seed {seed}). The tables and charts above use all of them."
        )
    return UnitSelection(np.sort(chosen), chosen, note)


def _unit_differences(values: Floats, better: Direction) -> Floats:
    """The difference between the systems on each unit; lowest for a unit that is undefined for all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a row without any value
        if values.shape[1] == 1:
            order_keys = -values[:, 0] if better == Direction.UP else values[:, 0]
        else:
            order_keys = np.nanmax(values, axis=1) - np.nanmin(values, axis=1)
    order_keys = np.nan_to_num(order_keys, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return np.asarray(order_keys, dtype=np.float64)


# Texts, each stored once and truncated to fit.

ELLIPSIS = "…"
LENGTHS = (4000, 2000, 1000, 600, 400, 300, 200, 160)
"""Lengths to which texts may be truncated, longest first."""


class TextPool:
    """Every text once, truncated to ``length`` characters; the first is empty."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.texts = [""]
        self._places = {"": 0}

    def place(self, text: str) -> int:
        """The index of the text."""
        place = self._places.get(text)
        if place is None:
            place = self._places[text] = len(self.texts)
            self.texts.append(truncate_text(text, self.length))
        return place


def truncate_text(text: str, length: int) -> str:
    """The text, truncated with an ellipsis if it is longer."""
    return text if len(text) <= length else text[:length].rstrip() + ELLIPSIS


def max_text_length(texts: Iterable[str], max_bytes: int) -> int | None:
    """The length to which texts must be truncated to fit into ``max_bytes``; None if no length is short enough."""
    sizes = [(len(text), len(text.encode("utf-8", "replace"))) for text in texts]
    for length in LENGTHS:
        n_bytes = sum(size if long <= length else size * length // long for long, size in sizes)
        if n_bytes <= max_bytes:
            return length
    return None


# The details of selected units; large runs are read line by line.

MANY = 20_000
"""A run with more units than this is read line by line."""

# Lines as ``detail_lines`` writes them. Inside a string the quotes would be escaped, and a slice has no list
# for a value, so that each of these marks is where it seems to be.
_ID, _TEXT, _BODY = b'{"id": ', b', "text": ', b', "retrieved": ['

Slices = Mapping[str | int, Mapping[str, Value]]


def read_unit_details(run: StoredRun, units: Collection[str | int]) -> dict[str | int, UnitContent]:
    """The stored details of these units; units without details are left out."""
    if run.manifest.units <= MANY:
        return {unit: run.details[unit] for unit in units if unit in run.details}
    file = run.path / DETAILS
    prefixes = {_ID + json_text(unit).encode() for unit in units}
    lines = [
        (number, _parsed(line, file, number)) for number, line in _lines(file) if line.partition(_TEXT)[0] in prefixes
    ]
    return parse_details(lines, source=str(file))


def read_unit_slices(runs: Sequence[StoredRun]) -> Slices:
    """The slices of every unit, from the first run that has any."""
    for run in runs:
        if run.manifest.units <= MANY:
            slices: Slices = {unit: detail.slices for unit, detail in run.details.items() if detail.slices}
        else:
            heads = _heads(run.path / DETAILS)
            slices = {head["id"]: head["slices"] for head in heads if head.get("slices")}
        if slices:
            return slices
    return {}


def _heads(file: Path) -> Iterator[dict[str, Any]]:
    """The beginning of every line, up to the retrieved items."""
    for number, line in _lines(file):
        head, body, _ = line.partition(_BODY)
        yield _parsed(head + b"}" if body else line, file, number)


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    if not file.is_file():
        return
    with open(file, "rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.startswith(_ID):
                raise _changed(file, number)
            yield number, line


def _parsed(line: bytes, file: Path, number: int) -> Any:
    try:
        parsed = json.loads(line)
    except ValueError as error:
        raise _changed(file, number) from error
    if not isinstance(parsed, dict):
        raise _changed(file, number)
    return parsed


def _changed(file: Path, number: int) -> StoreError:
    return StoreError(
        f"{file} line {number} is not the detail of a unit",
        hint=FILE_CHANGED,
    )


MOST_CELLS = 200_000
"""Values of units, metrics and systems together."""
MOST_HITS = 40_000
"""Retrieved items of all units and systems together."""
TEXT_BYTES = 900_000
"""All texts together, each counted once."""

Found = tuple[UnitContent | None, ...]
"""The details of one unit, one per system."""


def build_unit_explorer(subject: RunSet, slices: Slices) -> UnitExplorer | None:
    """The selected units; None if no metric has a value per unit."""
    tables = {name: table for name in subject.metrics if (table := subject.per_unit(name)) is not None}
    if not tables or not subject.units:
        return None
    leading = next(iter(tables))
    better = {name: subject.estimates(name)[0].better for name in tables}
    n_units = max(1, MOST_CELLS // (len(tables) * len(subject.runs)))
    chosen = select_units(tables[leading], n_units, better[leading])
    ids = subject.units
    unit_ids = [ids[place] for place in chosen.kept]
    known = _details(subject, [ids[place] for place in chosen.ranked])
    details, shown = _fitted(unit_ids, known)
    return UnitExplorer(
        units=[str(unit) for unit in unit_ids],
        columns=[_column(name, better[name], values[chosen.kept].T) for name, values in tables.items()],
        slices=_unit_slices(unit_ids, slices),
        details=details,
        items=shown.items,
        texts=shown.texts.texts,
        total=len(ids),
        note=" ".join(filter(None, (_over_splits(subject), _note(chosen, known, details, shown.texts.length)))),
        unit_note=_splits_note(subject),
    )


def _splits_note(subject: RunSet) -> str:
    """The retrieved items of systems that were tuned by several nested cross-validations; empty if there are none."""
    counts = {run.tuning.splits for run in subject.runs if run.tuning is not None and run.tuning.splits > 1}
    if not counts:
        return ""
    return (
        f"The items that a tuned {subject.words.system} retrieved are those of the configuration that was used for "
        f"this {subject.words.unit} in most of the {' or '.join(map(str, sorted(counts)))} random splits."
    )


def _column(name: str, better: Direction, values: Floats) -> dict[str, Any]:
    rows = [[_rounded(value) for value in row] for row in values.tolist()]
    return {"metric": name, "better": str(better), "values": rows}


def _rounded(value: float) -> Number:
    """The value with at most four decimals, an integer without a point; None if it is not finite."""
    if not isfinite(value):
        return None
    rounded = round(value, _DECIMALS)
    return int(rounded) if rounded == int(rounded) else rounded


def _details(subject: RunSet, ranked: Sequence[str | int]) -> dict[str | int, Found]:
    """The stored details of these units, the largest differences first."""
    by_run = [read_unit_details(run, ranked) for run in subject.runs]
    details_by_unit = {unit: tuple(details.get(unit) for details in by_run) for unit in ranked}
    return {unit: details for unit, details in details_by_unit.items() if any(details)}


@dataclass
class _Table:
    """Items and texts, each once."""

    texts: TextPool
    items: list[tuple[str, int, int]] = field(default_factory=list)
    places: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def hits(self, detail: UnitContent | None) -> list[list[Any]]:
        """What one system retrieved: indices of items, their scores, and the ranks (from 0) of the relevant ones."""
        retrieved = () if detail is None else detail.retrieved
        items = []
        for hit in retrieved:
            key = (hit.id, hit.text, hit.where)
            if key not in self.places:
                self.places[key] = len(self.items)
                self.items.append((hit.id, self.texts.place(hit.text), self.texts.place(hit.where)))
            items.append(self.places[key])
        scores = [None if hit.score is None else _rounded(hit.score) for hit in retrieved]
        return [items, scores, [rank for rank, hit in enumerate(retrieved) if hit.relevant]]


def _fitted(unit_ids: Sequence[str | int], known: Mapping[str | int, Found]) -> tuple[list[list[Any] | None], _Table]:
    """As many details as fit: retrieved items are left out first, then texts are truncated."""
    listed = _first_with_hits(known)
    length = max_text_length(_texts(known, listed), TEXT_BYTES)
    while length is None and listed:
        listed = dict(list(listed.items())[: len(listed) // 2])
        length = max_text_length(_texts(known, listed), TEXT_BYTES)
    table = _Table(TextPool(length or LENGTHS[-1]))
    return [_detail(known.get(unit), table, with_hits=unit in listed) for unit in unit_ids], table


def _first_with_hits(known: Mapping[str | int, Found]) -> dict[str | int, Found]:
    """The first units, up to as many retrieved items as a page can hold."""
    listed: dict[str | int, Found] = {}
    hits = 0
    for unit, details in known.items():
        hits += sum(len(detail.retrieved) for detail in details if detail is not None)
        if hits > MOST_HITS:
            break
        listed[unit] = details
    return listed


def _texts(known: Mapping[str | int, Found], shown: Mapping[str | int, Found]) -> set[str]:
    texts = {text for details in known.values() for text in (_shown(details).text, *_shown(details).expected)}
    hits = (hit for details in shown.values() for detail in details if detail for hit in detail.retrieved)
    return texts.union(*((hit.text, hit.where) for hit in hits))


def _shown(details: Found) -> UnitContent:
    """The details from the first system that has them: text and answers are the same for all."""
    return next(detail for detail in details if detail is not None)


def _detail(details: Found | None, table: _Table, *, with_hits: bool) -> list[Any] | None:
    if details is None:
        return None
    shown = _shown(details)
    text, expected = table.texts.place(shown.text), [table.texts.place(answer) for answer in shown.expected]
    return [text, expected, [table.hits(detail) for detail in details] if with_hits else []]


def _unit_slices(unit_ids: Sequence[str | int], slices: Slices) -> list[dict[str, Any]]:
    names = dict.fromkeys(name for unit in unit_ids for name in slices.get(unit, ()))
    return [_unit_slice(name, [slices.get(unit, {}).get(name) for unit in unit_ids]) for name in names]


def _unit_slice(name: str, values: Sequence[Value | None]) -> dict[str, Any]:
    texts = [None if value is None else str(value) for value in values]
    distinct = sorted({text for text in texts if text is not None}, key=_natural)
    places = {text: place for place, text in enumerate(in_natural_order(distinct))}
    return {"name": name, "values": list(places), "of": [-1 if text is None else places[text] for text in texts]}


def _natural(text: str) -> list[tuple[int, str]]:
    """A key that sorts numbers in texts by their values.

    >>> sorted(["u10", "u9", "u1"], key=_natural)
    ['u1', 'u9', 'u10']
    """
    parts = re.split(r"(\d+)", text)
    return [(int(part), "") if index % 2 else (0, part) for index, part in enumerate(parts)]


def _over_splits(subject: RunSet) -> str:
    """What the score of a unit is if the units were split into folds several times."""
    splits = max((run.tuning.splits for run in subject.runs if run.tuning is not None), default=1)
    if splits < 2:
        return ""
    unit, metric = subject.words.unit, metric_in_sentence(subject.primary)
    if percent_sign(subject.primary):
        value = f"the share of the {format_count(splits)} random splits in which it was answered"
    else:
        value = f"the mean over {format_count(splits)} random splits into folds"
    return f"For a single {unit}, {metric} is {value}."


def _note(
    chosen: UnitSelection,
    known: Mapping[str | int, Found],
    details: Sequence[list[Any] | None],
    length: int,
) -> str:
    """Notes on everything that was left out."""
    sentences = [chosen.note] if chosen.note else []
    retrieving = sum(any(detail and detail.retrieved for detail in details) for details in known.values())
    listed = sum(detail is not None and any(items for items, *_ in detail[2]) for detail in details)
    if listed < retrieving:
        sentences.append(
            f"Retrieved items are shown for {format_count(listed)} of them, where the systems differ most."
        )
    all_texts = (text for details in known.values() for text in _texts({"": details}, {"": details}))
    if any(len(text) > length for text in all_texts):
        sentences.append(f"Texts are truncated to {format_count(length)} characters.")
    return " ".join(sentences)
