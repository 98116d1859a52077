"""Rankings from arrays of retrieved and relevant ids, or from ranks that are already known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.errors import DuplicateError, InputError, NotFiniteError, ShapeError
from equipoise.evidence.columns import unique_ids
from equipoise.evidence.placement import NEVER, pool_of
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.rows import IdRows, gains_of, id_rows, numbers_beside
from equipoise.types import Bools, Floats, Ids, Ints

_TABLE_SLOTS = 1 << 18
"""Slots of the position table: it should stay in the second-level cache."""


def ranking_from_lists(
    retrieved: Any,
    relevant: Any,
    *,
    scores: Any = None,
    gains: Any = None,
    unit_ids: Any = None,
    corpus_size: int | None = None,
) -> Ranking:
    """See ``Ranking.from_lists``."""
    lists, truth = id_rows(retrieved, "retrieved ids"), id_rows(relevant, "relevant ids")
    if len(lists.cells) != len(truth.cells):
        raise ShapeError(
            f"{len(lists.cells)} lists were retrieved for {len(truth.cells)} units",
            hint="give one row of retrieved ids a unit",
        )
    units = unique_ids(unit_ids, len(lists.cells))
    gain = gains_of(gains, truth)
    values = None if scores is None else _scores(scores, lists, units)
    if values is not None:
        lists, values = _best_first(lists, values)
    codes, wanted, span = _codes(lists, truth)
    places = _places(codes, lists, wanted, truth, span, units)
    found = np.where(places >= 0, places, NEVER)
    tied, before = np.zeros_like(found), np.zeros_like(found)
    if values is not None:
        found, tied, before = _ties(values, lists, found, truth)
    depth = lists.lengths
    kept = truth.inside & (gain > 0)
    return Ranking.of_items(
        units,
        kept.sum(axis=1),
        gain=gain[kept],
        above=found[kept],
        tied=tied[kept],
        before=before[kept],
        depth=depth,
        candidates=None if corpus_size is None else pool_of(corpus_size, depth),
    )


def ranking_from_ranks(ranks: Any, *, candidates: int, unit_ids: Any = None) -> Ranking:
    """See ``Ranking.from_ranks``."""
    array = np.asarray(ranks)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ShapeError("ranks must be one whole number a unit", hint="for example [2, 1, 5]")
    wrong = (array < 1) | (array > candidates)
    if wrong.any():
        raise InputError(
            f"rank {array[wrong][0]} does not lie between 1 and the {candidates} candidates",
            hint="ranks start at 1",
        )
    count = len(array)
    pool = np.full(count, candidates, dtype=np.int64)
    return Ranking.of_items(
        unique_ids(unit_ids, count),
        np.ones(count, dtype=np.int64),
        gain=np.ones(count),
        above=array.astype(np.int64) - 1,
        tied=np.zeros(count, dtype=np.int64),
        depth=pool,
        candidates=pool,
    )


def _scores(scores: Any, lists: IdRows, units: Ids) -> Floats:
    values = numbers_beside(scores, lists, "scores", "retrieved ids")
    if np.isnan(values[lists.inside]).any():
        row = int(np.flatnonzero((np.isnan(values) & lists.inside).any(axis=1))[0])
        raise NotFiniteError(
            f"unit {units[row]} has a score that is no number", hint="drop items without a score"
        )
    return values


def _best_first(lists: IdRows, values: Floats) -> tuple[IdRows, Floats]:
    """The lists in falling order of their scores."""
    if lists.inside.all() and (values[:, 1:] <= values[:, :-1]).all():
        return lists, values
    values = np.where(lists.inside, values, -np.inf)
    order = np.lexsort((lists.inside * -1, -values), axis=1)
    cells = np.take_along_axis(lists.cells, order, 1)
    return replace(lists, cells=cells), np.take_along_axis(values, order, 1)


def _codes(lists: IdRows, truth: IdRows) -> tuple[Ints, Ints, int]:
    """Ids as small whole numbers; filler becomes the number just beyond them."""
    if lists.cells.dtype.kind in "iu" and truth.cells.dtype.kind in "iu":
        span = max(lists.largest, truth.largest) + 1
        if span <= 8 * _TABLE_SLOTS:
            return _filled(lists, span), _filled(truth, span), span
    kept = np.concatenate([rows.cells[rows.inside].astype(_common(lists, truth)) for rows in (lists, truth)])
    names, code = np.unique(kept, return_inverse=True)
    split = int(lists.lengths.sum())
    codes = []
    for rows, part in ((lists, code[:split]), (truth, code[split:])):
        cells = np.full(rows.cells.shape, len(names), dtype=np.int64)
        cells[rows.inside] = part
        codes.append(cells)
    return codes[0], codes[1], len(names)


def _common(lists: IdRows, truth: IdRows) -> Any:
    return np.int64 if lists.cells.dtype.kind == truth.cells.dtype.kind == "i" else str


def _filled(rows: IdRows, span: int) -> Ints:
    if (rows.lengths == rows.cells.shape[1]).all():
        return rows.cells
    return np.where(rows.inside, rows.cells, span)


def _places(codes: Ints, lists: IdRows, wanted: Ints, truth: IdRows, span: int, units: Ids) -> Ints:
    """Where each wanted id stands in its unit's list, -1 where it does not.

    The ids of a few lists are written into a table by position; what is read back tells both where
    the wanted ones stand and whether an id stood twice. The table is never cleared: an entry counts
    only if the list holds the wanted id at that very place.
    """
    count, width = codes.shape
    step = max(1, _TABLE_SLOTS // (span + 1))
    small = np.int16 if width <= np.iinfo(np.int16).max else np.int32
    table = np.zeros(step * (span + 1), dtype=small)
    shift = (np.arange(step) * (span + 1))[:, None]
    column = np.tile(np.arange(width, dtype=small), step)
    places = np.full(wanted.shape, -1, dtype=np.int64)
    if width == 0:
        return places
    for start in range(0, count, step):
        block = codes[start : start + step]
        asked = wanted[start : start + step]
        slots = (block + shift[: len(block)]).reshape(-1)
        position = column[: slots.size]
        table[slots] = position
        overwritten = table.take(slots, mode="clip") != position  # clip: every slot is known to be inside
        if overwritten.any():
            _refuse_repeats(lists, units, start, overwritten, block, span)
        place = table[asked + shift[: len(block)]].astype(np.int64)
        there = (np.take_along_axis(block, place, axis=1) == asked) & (asked != span)
        places[start : start + step] = np.where(there, place, -1)
    ordered = np.sort(np.where(truth.inside, wanted, -1 - np.arange(wanted.shape[1])), axis=1)
    double = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if double.any():
        raise _listed_twice(truth, units, int(np.flatnonzero(double)[0]), "relevant")
    return places


def _refuse_repeats(
    lists: IdRows, units: Ids, start: int, overwritten: Bools, block: Ints, span: int
) -> None:
    """An id that stood twice overwrote its own entry; filler may."""
    rows = (overwritten.reshape(block.shape) & (block != span)).any(axis=1)
    if rows.any():
        raise _listed_twice(lists, units, start + int(np.flatnonzero(rows)[0]), "retrieved")


def _listed_twice(rows: IdRows, units: Ids, row: int, what: str) -> DuplicateError:
    names, times = np.unique(rows.cells[row, : rows.lengths[row]], return_counts=True)
    return DuplicateError(
        f"unit {units[row]} lists the {what} id {names[times > 1][0]} twice",
        hint="each id may stand once a unit",
    )


def _ties(values: Floats, lists: IdRows, found: Ints, truth: IdRows) -> tuple[Ints, Ints, Ints]:
    """Above, tied and before of each wanted place, when scores may be equal; lists are best first."""
    zeros = np.zeros_like(found)
    same = (values[:, 1:] == values[:, :-1]) & lists.inside[:, 1:]
    if not same.any():
        return found, zeros, zeros
    width = values.shape[1]
    column = np.broadcast_to(np.arange(width), values.shape)
    edge = np.ones((len(values), 1), dtype=bool)
    opens = np.where(np.hstack([edge, ~same]), column, 0)
    closes = np.where(np.hstack([~same, edge]), column, width)
    first = np.maximum.accumulate(opens, axis=1)
    last = np.minimum.accumulate(closes[:, ::-1], axis=1)[:, ::-1]
    there = (found != NEVER) & truth.inside
    place = np.where(there, found, 0)
    above = np.where(there, np.take_along_axis(first, place, 1), NEVER)
    end = np.where(there, np.take_along_axis(last, place, 1), 0)
    tied = np.where(there, end - above, 0)
    before = zeros.copy()
    for unit, item in np.argwhere(tied > 0):
        own = str(truth.cells[unit, item])
        equals = lists.cells[unit, above[unit, item] : end[unit, item] + 1]
        before[unit, item] = sum(str(each) > own for each in equals)
    return above, tied, before
