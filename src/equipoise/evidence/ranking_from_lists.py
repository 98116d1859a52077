"""Rankings from retrieved lists: runs and qrels (dicts of dicts or files), arrays of ids, or known ranks."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import DuplicateError, InputError, NotFiniteError, ShapeError
from equipoise.evidence.base import unique_ids
from equipoise.evidence.kernels.threshold_counts import count_above_and_tied, count_in_sorted_rows
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.segments import NOT_RETRIEVED, candidate_counts
from equipoise.types import Bools, Floats, Ids, Ints


@dataclass(frozen=True, slots=True)
class RaggedIds:
    """Rows of unequal length in one matrix; cells beyond the length of a row are filler."""

    cells: NDArray[Any]
    lengths: Ints
    largest: int = -1
    """The largest integer among the cells; -1 if they are names."""

    @property
    def inside(self) -> Bools:
        """Which cells belong to a row."""
        return np.arange(self.cells.shape[1]) < self.lengths[:, None]


def as_ragged_ids(value: Any, name: str) -> RaggedIds:
    """A matrix of ids, or a sequence of rows; negative integers are filler, as in faiss."""
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "iu":
        return _without_filler(value.astype(np.int64, copy=False))
    if isinstance(value, np.ndarray) and value.ndim != 2 and value.dtype != object:
        raise ShapeError(f"the {name} are an array of {value.ndim} dimension(s); 2 are needed", hint="one row per unit")
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ShapeError(f"the {name} are a {type(value).__name__}, not rows of ids", hint="one row per unit")
    rows = [_row(row, unit, name) for unit, row in enumerate(value)]
    integer = all(row.dtype != object or len(row) == 0 for row in rows)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    width = int(lengths.max(initial=0))
    if integer:
        cells: NDArray[Any] = np.full((len(rows), width), -1, dtype=np.int64)
    else:
        cells = np.full((len(rows), width), "", dtype=object)
    for unit, row in enumerate(rows):
        cells[unit, : len(row)] = row if integer else row.astype(str)
    return _without_filler(cells) if integer else RaggedIds(cells, lengths)


def _without_filler(cells: Ints) -> RaggedIds:
    # As unsigned integers, negative numbers are the largest: one maximum finds both filler and the largest id.
    largest = int(cells.view(np.uint64).max(initial=0))
    if largest < 1 << 63:
        return RaggedIds(cells, np.full(len(cells), cells.shape[1], dtype=np.int64), largest)
    is_id = cells >= 0
    lengths = is_id.sum(axis=1)
    if not (is_id == (np.arange(cells.shape[1]) < lengths[:, None])).all():
        cells = np.take_along_axis(cells, np.argsort(~is_id, axis=1, kind="stable"), axis=1)
    return RaggedIds(cells, lengths, int(cells.max(initial=0)))


def _row(row: Any, unit: int, argument: str) -> NDArray[Any]:
    """One row of ids; integers remain integers, anything else becomes a string."""
    try:
        array = np.asarray(row)
    except ValueError:
        array = np.empty(())
    if array.ndim != 1:
        raise ShapeError(f"row {unit} of the {argument} is not a list of ids", hint="one row of ids per unit")
    if array.dtype.kind in "iu" and (array.size == 0 or array.max() <= np.iinfo(np.int64).max):
        return array.astype(np.int64)
    return np.array([str(name) for name in row], dtype=object)


def check_gains(gains: Any, truth: RaggedIds) -> Floats:
    """The gains of the relevant ids; 1 if ``gains`` is None."""
    if gains is None:
        return np.ones(truth.cells.shape)
    return values_for_ids(gains, truth, "gains", "relevant ids")


def values_for_ids(values: Any, rows: RaggedIds, name: str, ids_name: str) -> Floats:
    """Numbers that belong to the cells of ``rows``, in the same layout."""
    if isinstance(values, np.ndarray) and values.ndim == 2:
        matrix = values.astype(np.float64, copy=False)
    else:
        matrix = np.zeros(rows.cells.shape)
        for unit, row in enumerate(values):
            if unit >= len(matrix) or np.shape(row) != (rows.lengths[unit],):
                raise ShapeError(f"row {unit} of the {name} does not fit the {ids_name}", hint="one number per id")
            matrix[unit, : len(row)] = row
    if matrix.shape != rows.cells.shape:
        raise ShapeError(
            f"the {name} have shape {matrix.shape}, the {ids_name} {rows.cells.shape}", hint="one number per id"
        )
    return matrix


_TABLE_SLOTS = 1 << 18
"""Slots of the position table: it should fit in the L2 cache."""


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
    lists, truth = as_ragged_ids(retrieved, "retrieved ids"), as_ragged_ids(relevant, "relevant ids")
    if len(lists.cells) != len(truth.cells):
        raise ShapeError(
            f"{len(lists.cells)} lists were retrieved for {len(truth.cells)} units",
            hint="give one row of retrieved ids per unit",
        )
    units = unique_ids(unit_ids, len(lists.cells))
    gain = check_gains(gains, truth)
    values = None if scores is None else _check_list_scores(scores, lists, units)
    if values is not None:
        lists, values = _sort_by_score(lists, values)
    codes, target_codes, span = _codes(lists, truth)
    positions = _target_positions(codes, lists, target_codes, truth, span, units)
    retrieved_at = np.where(positions >= 0, positions, NOT_RETRIEVED)
    tied, before = np.zeros_like(retrieved_at), np.zeros_like(retrieved_at)
    if values is not None:
        retrieved_at, tied, before = _tie_counts(values, lists, retrieved_at, truth)
    depth = lists.lengths
    candidates = None if corpus_size is None else candidate_counts(corpus_size, depth)
    is_relevant = truth.inside & (gain > 0)
    relevant, other = (
        Ranking.of_items(
            units,
            chosen.sum(axis=1),
            gain=gain[chosen],
            above=retrieved_at[chosen],
            tied=tied[chosen],
            before=before[chosen],
            depth=depth,
            candidates=candidates,
        )
        for chosen in (is_relevant, truth.inside & ~is_relevant)
    )
    return replace(relevant, nonrelevant=replace(other, candidates=relevant.candidates) if len(other.above) else None)


def ranking_from_ranks(ranks: Any, *, candidates: int, unit_ids: Any = None) -> Ranking:
    """See ``Ranking.from_ranks``."""
    array = np.asarray(ranks)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ShapeError("ranks must be one integer per unit", hint="for example [2, 1, 5]")
    invalid = (array < 1) | (array > candidates)
    if invalid.any():
        raise InputError(
            f"rank {array[invalid][0]} is not between 1 and {candidates}, the number of candidates",
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


def _check_list_scores(scores: Any, lists: RaggedIds, units: Ids) -> Floats:
    values = values_for_ids(scores, lists, "scores", "retrieved ids")
    if np.isnan(values[lists.inside]).any():
        row = int(np.flatnonzero((np.isnan(values) & lists.inside).any(axis=1))[0])
        raise NotFiniteError(f"unit {units[row]} has a NaN score", hint="remove items without a score")
    return values


def _sort_by_score(lists: RaggedIds, values: Floats) -> tuple[RaggedIds, Floats]:
    """The lists in descending order of their scores."""
    if lists.inside.all() and (values[:, 1:] <= values[:, :-1]).all():
        return lists, values
    values = np.where(lists.inside, values, -np.inf)
    order = np.lexsort((lists.inside * -1, -values), axis=1)
    cells = np.take_along_axis(lists.cells, order, 1)
    return replace(lists, cells=cells), np.take_along_axis(values, order, 1)


def _codes(lists: RaggedIds, truth: RaggedIds) -> tuple[Ints, Ints, int]:
    """Ids as small integers; filler becomes the integer after the largest."""
    if lists.cells.dtype.kind in "iu" and truth.cells.dtype.kind in "iu":
        span = max(lists.largest, truth.largest) + 1
        if span <= 8 * _TABLE_SLOTS:
            return _with_filler_code(lists, span), _with_filler_code(truth, span), span
    dtype = np.int64 if lists.cells.dtype.kind == truth.cells.dtype.kind == "i" else str
    values = np.concatenate([rows.cells[rows.inside].astype(dtype) for rows in (lists, truth)])
    names, code = np.unique(values, return_inverse=True)
    split = int(lists.lengths.sum())
    codes = []
    for rows, part in ((lists, code[:split]), (truth, code[split:])):
        cells = np.full(rows.cells.shape, len(names), dtype=np.int64)
        cells[rows.inside] = part
        codes.append(cells)
    return codes[0], codes[1], len(names)


def _with_filler_code(rows: RaggedIds, span: int) -> Ints:
    if (rows.lengths == rows.cells.shape[1]).all():
        return rows.cells
    return np.where(rows.inside, rows.cells, span)


def _target_positions(
    codes: Ints, lists: RaggedIds, target_codes: Ints, truth: RaggedIds, span: int, units: Ids
) -> Ints:
    """The position of each relevant id in the list of its unit, -1 if it was not retrieved.

    The positions of a few lists are written into a table indexed by id. Reading it back gives the positions of the
    relevant ids and finds ids listed twice. The table is never cleared: an entry is valid only if the list has the
    relevant id at that position.
    """
    count, width = codes.shape
    step = max(1, _TABLE_SLOTS // (span + 1))
    small = np.int16 if width <= np.iinfo(np.int16).max else np.int32
    table = np.zeros(step * (span + 1), dtype=small)
    shift = (np.arange(step) * (span + 1))[:, None]
    column = np.tile(np.arange(width, dtype=small), step)
    positions = np.full(target_codes.shape, -1, dtype=np.int64)
    if width == 0:
        return positions
    for start in range(0, count, step):
        block = codes[start : start + step]
        targets = target_codes[start : start + step]
        slots = (block + shift[: len(block)]).reshape(-1)
        position = column[: slots.size]
        table[slots] = position
        overwritten = table.take(slots, mode="clip") != position  # clip: every slot is inside the table
        if overwritten.any():
            _check_no_repeats(lists, units, start, overwritten, block, span)
        looked_up = table[targets + shift[: len(block)]].astype(np.int64)
        valid = (np.take_along_axis(block, looked_up, axis=1) == targets) & (targets != span)
        positions[start : start + step] = np.where(valid, looked_up, -1)
    ordered = np.sort(np.where(truth.inside, target_codes, -1 - np.arange(target_codes.shape[1])), axis=1)
    double = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if double.any():
        raise _duplicate_error(truth, units, int(np.flatnonzero(double)[0]), "relevant")
    return positions


def _check_no_repeats(lists: RaggedIds, units: Ids, start: int, overwritten: Bools, block: Ints, span: int) -> None:
    """Raise ``DuplicateError`` if an id overwrote its own entry; filler may."""
    rows = (overwritten.reshape(block.shape) & (block != span)).any(axis=1)
    if rows.any():
        raise _duplicate_error(lists, units, start + int(np.flatnonzero(rows)[0]), "retrieved")


def _duplicate_error(rows: RaggedIds, units: Ids, row: int, name: str) -> DuplicateError:
    names, times = np.unique(rows.cells[row, : rows.lengths[row]], return_counts=True)
    return DuplicateError(
        f"unit {units[row]} lists the {name} id {names[times > 1][0]} twice",
        hint="each id may occur once per unit",
    )


def _tie_counts(values: Floats, lists: RaggedIds, retrieved_at: Ints, truth: RaggedIds) -> tuple[Ints, Ints, Ints]:
    """Above, tied and before of each relevant item, from scores that may be equal; lists are best first."""
    zeros = np.zeros_like(retrieved_at)
    is_tied = (values[:, 1:] == values[:, :-1]) & lists.inside[:, 1:]
    if not is_tied.any():
        return retrieved_at, zeros, zeros
    width = values.shape[1]
    column = np.broadcast_to(np.arange(width), values.shape)
    edge = np.ones((len(values), 1), dtype=bool)
    opens = np.where(np.hstack([edge, ~is_tied]), column, 0)
    closes = np.where(np.hstack([~is_tied, edge]), column, width)
    first = np.maximum.accumulate(opens, axis=1)
    last = np.minimum.accumulate(closes[:, ::-1], axis=1)[:, ::-1]
    is_retrieved = (retrieved_at != NOT_RETRIEVED) & truth.inside
    position = np.where(is_retrieved, retrieved_at, 0)
    above = np.where(is_retrieved, np.take_along_axis(first, position, 1), NOT_RETRIEVED)
    end = np.where(is_retrieved, np.take_along_axis(last, position, 1), 0)
    tied = np.where(is_retrieved, end - above, 0)
    before = zeros.copy()
    for unit, item in np.argwhere(tied > 0):
        relevant_id = str(truth.cells[unit, item])
        tied_ids = lists.cells[unit, above[unit, item] : end[unit, item] + 1]
        before[unit, item] = sum(str(tied_id) > relevant_id for tied_id in tied_ids)
    return above, tied, before


Qrels = Mapping[str, Mapping[str, float]]
Scores = Mapping[str, Mapping[str, float]]

_DICT_OR_PATH = (Mapping, str, Path)
_BLOCK_SCORES = 1 << 16
_BLOCK_UNITS = 256
"""Scores and units per block: a block ends at ``_BLOCK_SCORES``, but not before it has this many units."""
_MAX_BLOCK_SCORES = 1 << 20

Counted = tuple[Ints, Floats, Ints, Ints, Ints]
"""Counts of a few units, and gains, above, tied and before of their items."""
CountedParts = tuple[Counted, Counted]
"""The relevant items and the assessed items that are not relevant."""


def ranking_from_runs(
    qrels: Any, run: Any, *, corpus_size: int | None = None, columns: Mapping[str, str] | None = None
) -> Ranking:
    """See ``Ranking.from_runs``."""
    qrels, run = _as_mappings(qrels, run, columns)
    if not isinstance(qrels, _DICT_OR_PATH) and not isinstance(run, _DICT_OR_PATH):
        return ranking_from_lists(run, qrels, corpus_size=corpus_size)
    if isinstance(run, str | Path):
        from equipoise.evidence.ranking_from_run_file import QrelsArrays, streamed_ranking

        arrays = QrelsArrays.read(qrels) if isinstance(qrels, str | Path) else None
        qrels = qrels if arrays is not None else _judgements(qrels)
        ranking = streamed_ranking(arrays or QrelsArrays.of_dicts(qrels), run, corpus_size=corpus_size)
        if ranking is not None:
            return ranking
    judgements = _judgements(qrels)
    units = list(judgements)
    if not units:
        raise InputError("the qrels contain no units", hint="check the qrels")
    scores = _scores(run)
    empty: Mapping[str, float] = {}
    lists = [scores.get(unit, empty) for unit in units]
    try:
        depth = np.fromiter(map(len, lists), np.int64, len(lists))
    except TypeError as error:
        raise _invalid_value_error(units, [], lists) from error
    assessed = list(judgements.values())
    parts = [_count(units[part], assessed[part], lists[part], depth[part]) for part in _blocks(depth)]
    unknown = tuple(sorted(str(unit) for unit in scores if unit not in judgements))
    return _join_blocks(units, depth, parts, corpus_size, unknown)


def _as_mappings(qrels: Any, run: Any, columns: Mapping[str, str] | None) -> tuple[Any, Any]:
    """Judgements and run, with frames and objects of other libraries as dicts; other values unchanged."""
    if all(isinstance(value, _DICT_OR_PATH) and not hasattr(value, "column_names") for value in (qrels, run)):
        return qrels, run
    from equipoise.io.retrieval_tables import judgements_and_run

    judgements, scores = judgements_and_run(qrels, run, columns)
    if judgements is None and scores is None:
        return qrels, run
    # The ids of a table are strings, so those of a dict must be strings, too.
    return (
        _with_string_ids(qrels) if judgements is None else judgements,
        _with_string_ids(run) if scores is None else scores,
    )


def _with_string_ids(value: Any) -> Any:
    if not isinstance(value, Mapping) or all(isinstance(unit, str) for unit in value):
        return value
    return {str(unit): {str(item): number for item, number in row.items()} for unit, row in value.items()}


def _join_blocks(
    units: list[str],
    depth: Ints,
    parts: list[CountedParts],
    corpus_size: int | None,
    unknown_units: tuple[str, ...],
) -> Ranking:
    candidates = None if corpus_size is None else candidate_counts(corpus_size, depth)
    unit_ids = np.array(units, dtype=object)
    relevant = _ranking_of_blocks(unit_ids, depth, [part[0] for part in parts], candidates)
    other = None
    if any(len(gain) for _, (_, gain, *_) in parts):
        other = _ranking_of_blocks(unit_ids, depth, [part[1] for part in parts], relevant.candidates)
    return replace(relevant, unknown_units=unknown_units, nonrelevant=other)


def _ranking_of_blocks(units: Ids, depth: Ints, blocks: list[Counted], candidates: Ints | None) -> Ranking:
    counts, gain, above, tied, before = (np.concatenate(column) for column in zip(*blocks, strict=True))
    return Ranking.of_items(
        units, counts, gain=gain, above=above, tied=tied, before=before, depth=depth, candidates=candidates
    )


def _judgements(qrels: Any) -> Qrels:
    if isinstance(qrels, str | Path):
        from equipoise.io.run_files import read_qrels

        return read_qrels(qrels)
    return _mapping(qrels, "judgements", "{unit: {item: gain}}")


def _scores(run: Any) -> Scores:
    if isinstance(run, str | Path):
        from equipoise.io.run_files import read_run

        return read_run(run)
    return _mapping(run, "run", "{unit: {item: score}}")


def _mapping(value: Any, name: str, form: str) -> Mapping[str, Mapping[str, float]]:
    if not isinstance(value, Mapping):
        raise InputError(
            f"the {name}: a {type(value).__name__} is not a dict of dicts",
            hint=f"give {form}, a path, or use Ranking.from_lists for arrays",
        )
    return value


def _blocks(depth: Ints) -> Iterator[slice]:
    """Runs of units whose padded matrix of scores fits the block size."""
    start = 0
    while start < len(depth):
        window = depth[start : start + _BLOCK_UNITS + _BLOCK_SCORES // max(1, int(depth[start]))]
        units = np.arange(1, len(window) + 1)
        size = np.maximum.accumulate(window) * units
        too_large = size > np.where(units > _BLOCK_UNITS, _BLOCK_SCORES, _MAX_BLOCK_SCORES)
        too_large[0] = False
        stop = start + (int(too_large.argmax()) if too_large.any() else len(window))
        yield slice(start, stop)
        start = stop


def _count(
    units: list[str], qrels: list[Mapping[str, float]], lists: list[Mapping[str, float]], depth: Ints
) -> CountedParts:
    """Counts, gains, above, tied and before of the assessed items of a few units."""
    try:
        matrix, target_scores, gains = _gather(qrels, lists, depth)
    except (TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:
        raise _invalid_value_error(units, qrels, lists) from error
    sizes = np.fromiter(map(len, qrels), np.int64, len(qrels))
    if np.isnan(gains).any() or np.count_nonzero(np.isnan(matrix)) > matrix.size - depth.sum():
        raise _invalid_value_error(units, qrels, lists)
    relevant = gains > 0
    if relevant.all():
        empty = np.zeros(0, dtype=np.int64)
        other: Counted = (np.zeros_like(sizes), np.zeros(0), empty, empty, empty)
        return _counted(matrix, target_scores, gains, sizes, qrels, lists, count_above_and_tied), other
    unit = np.repeat(np.arange(len(qrels)), sizes)
    first, second = (
        _counted(
            matrix,
            target_scores[chosen],
            gains[chosen],
            np.bincount(unit[chosen], minlength=len(qrels)).astype(np.int64),
            qrels,
            lists,
            count,
        )
        for chosen, count in ((relevant, count_above_and_tied), (~relevant, count_in_sorted_rows))
    )
    return first, second


def _counted(
    matrix: Floats,
    target_scores: Floats,
    gains: Floats,
    counts: Ints,
    qrels: list[Mapping[str, float]],
    lists: list[Mapping[str, float]],
    count: Callable[[Floats, Floats, Ints], tuple[Ints, Ints]],
) -> Counted:
    above, tied = count(matrix, target_scores, counts)
    above[np.isnan(target_scores)] = NOT_RETRIEVED
    are_relevant = bool(len(gains)) and gains[0] > 0
    return counts, gains, above, tied, _before(qrels, lists, counts, target_scores, tied, are_relevant)


def _gather(
    qrels: list[Mapping[str, float]], lists: list[Mapping[str, float]], depth: Ints
) -> tuple[Floats, Floats, Floats]:
    """The lists as rows of a matrix (padded with NaN), the scores of the items in the qrels, the gains.

    Reading floats from dicts takes most of the time: ``struct`` is fastest.
    """
    widths = depth.tolist()
    pack_by_width = {width: struct.Struct(f"{width}d").pack for width in set(widths)}
    rows = [pack_by_width[width](*row.values()) for row, width in zip(lists, widths, strict=True)]
    scores = np.frombuffer(b"".join(rows))
    # None, the score of an item that was not retrieved, becomes NaN.
    targets = [row.get(item) for items, row in zip(qrels, lists, strict=True) for item in items]
    gains = [gain for items in qrels for gain in items.values()]
    if len(pack_by_width) == 1:
        matrix = scores.reshape(len(lists), widths[0])
    else:
        matrix = np.full((len(lists), max(widths)), np.nan)
        matrix[np.arange(matrix.shape[1]) < depth[:, None]] = scores
    return matrix, np.array(targets, dtype=np.float64), np.array(gains, dtype=np.float64)


def _before(
    qrels: list[Mapping[str, float]],
    lists: list[Mapping[str, float]],
    counts: Ints,
    thresholds: Floats,
    tied: Ints,
    are_relevant: bool,
) -> Ints:
    """For each tied item, the number of tied items with a larger id: trec_eval puts those first.

    The items are the relevant ones of the qrels, or the others.
    """
    before = np.zeros_like(tied)
    if not tied.any():
        return before
    first = np.cumsum(counts) - counts
    unit_of = np.repeat(np.arange(len(counts)), counts)
    for unit in np.unique(unit_of[tied > 0]):
        items = [item for item, gain in qrels[unit].items() if (gain > 0) == are_relevant]
        positions: dict[float, dict[str, int]] = {}
        for index in np.flatnonzero(tied[first[unit] : first[unit] + counts[unit]]) + first[unit]:
            score = float(thresholds[index])
            if score not in positions:
                tied_items = sorted((item for item, s in lists[unit].items() if s == score), key=str, reverse=True)
                positions[score] = {item: position for position, item in enumerate(tied_items)}
            before[index] = positions[score][items[index - first[unit]]]
    return before


def _invalid_value_error(units: list[str], qrels: list[Any], lists: list[Any]) -> InputError:
    """The error for the first row that is not a dict, or the first score or gain that is not a number."""
    for name, rows in (("score", lists), ("gain", qrels)):
        for unit, row in zip(units, rows, strict=False):
            if not isinstance(row, Mapping):
                return InputError(
                    f"the {name}s of unit {unit!r} are a {type(row).__name__}, not a dict",
                    hint=f"give {{unit: {{item: {name}}}}}",
                )
            for item, value in row.items():
                if not _is_number(value):
                    return NotFiniteError(
                        f"the {name} of item {item!r} for unit {unit!r} is {value!r}, which is not a number",
                        hint=f"every {name} must be a number; remove items without one",
                    )
    return InputError("a score or a gain is not a number", hint="scores and gains are floats")


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, str) and not np.isnan(float(value))
    except (TypeError, ValueError, OverflowError):
        return False
