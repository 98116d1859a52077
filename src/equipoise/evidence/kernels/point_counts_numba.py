"""Inner loops of ``point_counts``, compiled by numba: compare scores with the thresholds of each point.

A computed score is never lower than the true score, and higher by at most a gap. If the score is below a
threshold, the threshold is not reached. If it exceeds the threshold by more than the gap, it is reached. Otherwise
the pair is uncertain and is buffered for the exact formula. The thresholds of a point are descending, because its
targets are sorted by distance: a score reaches a suffix of them, and is counted once, at the first of them.

Numba because the loops have data-dependent branches that numpy cannot express; all ranks of WordNet's nouns take
3.93 s compiled and 13.2 s with numpy (benchmarks/README.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from equipoise.geometry.base import PointArray
    from equipoise.types import Bools, Floats, Ints

F = TypeVar("F", bound=Callable[..., Any])
compiled: Callable[[F], F] = cast(Any, numba.njit(cache=True, nogil=True))

CHUNK = 64
"""Adjacent scores that are skipped together if none reaches a threshold; ``TILE`` is a multiple of it."""

_MAX_DIRECT_THRESHOLDS = 64
"""Up to this many thresholds are compared with all scores, one after another; more use a grid."""

_ROW_CHUNK = 256
_LINEAR_STEPS = 6


@compiled
def first_threshold_reached(score: float, thresholds: PointArray, begin: int, end: int) -> int:
    """The first of descending thresholds that a score reaches; ``end`` if none."""
    for _ in range(_LINEAR_STEPS):
        if end == begin or thresholds[end - 1] > score:
            return end
        end -= 1
    while begin < end:
        middle = (begin + end) >> 1
        if thresholds[middle] <= score:
            end = middle
        else:
            begin = middle + 1
    return end


@compiled
def count_tile_pairs(
    tiles: PointArray,
    top: int,
    first: int,
    floor: PointArray,
    begins: Ints,
    ends: Ints,
    thresholds: Floats,
    slack: Floats,
    lengths: Floats,
    room: Floats,
    reached: Ints,
    pair_buffer: NDArray[np.int32],
    n_buffered: int,
) -> int:
    """Count each pair right of the diagonal for its row and for its column; returns the number of buffered pairs.

    ``tiles`` is (tiles, rows, columns); the rows start at point ``top``, the columns at point ``first``.
    ``floor`` is the last threshold of each point, infinity for a point without targets. ``reached`` (targets,) and
    ``pair_buffer`` (2, capacity) are written.
    """
    count, rows, width = tiles.shape
    for b in range(count):
        for r in range(rows):
            i = top + r
            row_floor = floor[i]
            for c in range(0, width, CHUNK):
                column = first + b * width + c
                scores, others = tiles[b, r, c : c + CHUNK], floor[column : column + CHUNK]
                near = np.int32(0)
                for j in range(CHUNK):
                    least = others[j] if others[j] < row_floor else row_floor
                    near += np.int32(scores[j] >= least)
                if near == 0:
                    continue
                for j in range(max(i + 1 - column, 0), CHUNK):
                    score = scores[j]
                    for way in range(2):
                        # Columns beyond the last point score NaN, which reaches nothing.
                        if not score >= (others[j] if way else row_floor):
                            continue
                        asker, other = (column + j, i) if way else (i, column + j)
                        at = first_threshold_reached(score, thresholds, begins[asker], ends[asker])
                        if at == ends[asker]:
                            continue
                        if score > thresholds[at] + (slack[i] * lengths[column + j] + room[asker]):
                            reached[at] += 1
                        else:
                            pair_buffer[0, n_buffered], pair_buffer[1, n_buffered] = asker, other
                            n_buffered += 1
    return n_buffered


@compiled
def count_rows(
    scores: PointArray,
    rows: Ints,
    start: int,
    starts: Ints,
    base: int,
    low: PointArray,
    high: PointArray,
    reached: Ints,
    pair_buffer: NDArray[np.int32],
    n_buffered: int,
) -> tuple[int, int]:
    """Count complete rows of scores from row ``start`` on; stops when the buffer could overflow.

    ``low`` and ``high`` are the thresholds of these rows, without and with the gap; the first row begins at
    ``base``. Returns the row it stopped at and the number of buffered pairs.
    """
    most = 0
    for r in range(start, len(rows)):
        most = max(most, starts[rows[r] + 1] - starts[rows[r]])
    grid = np.empty(2 * most + 2, np.int32)
    clear = np.empty(_MAX_DIRECT_THRESHOLDS, np.int64)
    for r in range(start, len(rows)):
        i, line = rows[r], scores[r]
        if n_buffered + len(line) > pair_buffer.shape[1]:
            return r, n_buffered
        line[i] = -np.inf
        begin, end = base, base + starts[i + 1] - starts[i]
        row_counts = reached[starts[i] : starts[i + 1]]
        lower, upper = low[begin:end], high[begin:end]
        if end - begin <= _MAX_DIRECT_THRESHOLDS:
            n_buffered = count_by_threshold(line, i, lower, upper, row_counts, clear, pair_buffer, n_buffered)
        else:
            n_buffered = count_by_grid(line, i, lower, upper, row_counts, grid, pair_buffer, n_buffered)
        base = end
    return len(rows), n_buffered


@compiled
def count_by_threshold(
    line: PointArray,
    i: int,
    low: PointArray,
    high: PointArray,
    reached: Ints,
    clear: Ints,
    pair_buffer: NDArray[np.int32],
    n_buffered: int,
) -> int:
    """Compare a chunk of scores with one threshold after another, lowest first, until none reaches it."""
    last = len(low) - 1
    for c in range(0, len(line), _ROW_CHUNK):
        part = line[c : c + _ROW_CHUNK]
        at, doubtful = last, False
        while at >= 0:
            least, most = low[at], high[at]
            n_possible, all_of_them = np.int32(0), np.int32(0)
            for j in range(len(part)):
                n_possible += np.int32(part[j] >= least)
                all_of_them += np.int32(part[j] > most)
            if n_possible == 0:
                break
            if n_possible != all_of_them:
                doubtful = True
                break
            clear[at] = n_possible
            at -= 1
        if not doubtful:
            before = 0
            for k in range(at + 1, last + 1):
                reached[k] += clear[k] - before
                before = clear[k]
            continue
        for j in range(len(part)):
            score = part[j]
            if score < low[last]:
                continue
            at = first_threshold_reached(score, low, 0, last + 1)
            if score > high[at]:
                reached[at] += 1
            else:
                pair_buffer[0, n_buffered], pair_buffer[1, n_buffered] = i, c + j
                n_buffered += 1
    return n_buffered


@compiled
def count_by_grid(
    line: PointArray,
    i: int,
    low: PointArray,
    high: PointArray,
    reached: Ints,
    grid: NDArray[np.int32],
    pair_buffer: NDArray[np.int32],
    n_buffered: int,
) -> int:
    """Look up each score in an even grid over the thresholds, which leaves few thresholds to search."""
    count = len(low)
    cells = 2 * count
    bottom = np.float64(low[count - 1])
    span = np.float64(low[0]) - bottom
    scale = (cells - 1) / span if span > 0.0 else 0.0
    # grid[k] thresholds are in cell k or higher. A score is above all thresholds of lower cells.
    for k in range(cells + 1):
        grid[k] = 0
    for k in range(count):
        grid[int((low[k] - bottom) * scale)] += 1
    for k in range(cells - 1, -1, -1):
        grid[k] += grid[k + 1]
    for j in range(len(line)):
        score = line[j]
        if score < low[count - 1]:
            continue
        cell = min(int(min((score - bottom) * scale, np.float64(cells))), cells - 1)
        at = first_threshold_reached(score, low, grid[cell + 1], grid[cell])
        if score > high[at]:
            reached[at] += 1
        else:
            pair_buffer[0, n_buffered], pair_buffer[1, n_buffered] = i, j
            n_buffered += 1
    return n_buffered


@compiled
def add_exact_counts(
    rows: Ints,
    columns: Ints,
    pair_excess: Floats,
    starts: Ints,
    target_rows: Ints,
    excess: Floats,
    reached: Ints,
    equal: Ints,
    shared: Bools,
) -> bool:
    """Count pairs by their exact excess, and mark pairs that tie with a target other than themselves.

    ``equal`` holds differences: +1 at the start of a run of equal targets, -1 after its end. Returns whether any
    pair is marked.
    """
    any_shared = False
    for k in range(len(rows)):
        end = starts[rows[k] + 1]
        first = first_greater(pair_excess[k], excess, starts[rows[k]], end, True)
        behind = first
        if first < end and excess[first] == pair_excess[k]:
            behind = first_greater(pair_excess[k], excess, first, end, False)
        if behind < end:
            reached[behind] += 1
        equal[first] += 1
        equal[behind] -= 1
        shared[k] = behind - first > 1 or (behind > first and target_rows[first] != columns[k])
        any_shared |= shared[k]
    return any_shared


@compiled
def first_greater(limit: float, numbers: Floats, begin: int, end: int, or_equal: bool) -> int:
    """The first of ascending numbers that is larger than a limit, or equal to it if ``or_equal``."""
    while begin < end:
        middle = (begin + end) >> 1
        if numbers[middle] > limit or (or_equal and numbers[middle] == limit):
            end = middle
        else:
            begin = middle + 1
    return end
