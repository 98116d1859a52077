"""The same look compiled by numba, where that is installed: the first look tells nearly everything.

numpy makes a pass for each question. Compiled, one pass asks them all: what is above the target, what equals
it, what is below it, and which score is the largest. That takes about as long as reading the array. Only the
stretch that holds the largest score is looked at again, for its place and for ties.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.tasks.classify.host import HostRows, Looked
from equipoise.tasks.classify.placed import NotANumberError
from equipoise.types import Ints, need

STRETCH = 4096
"""Scores looked at in one go: their counts are exact in 32-bit floats, and they stay in the nearest cache."""

_VECTORS = 64
"""Compiled loops take so many scores at a time, and what is left over one by one: it is filled up instead."""

WORTH = 1 << 32
"""Scores from which on it pays by itself: to load numba and to compile takes some seconds."""

_KINDS = {"float32": ("float32", "int32"), "float64": ("float64", "int64")}


def use_compiled(scores: NDArray[Any], wanted: bool | None = None) -> bool:
    """Whether the compiled kernel is to read the scores: it can, and it was asked for or pays by itself.

    >>> use_compiled(np.zeros((2, 3), dtype=np.int8), True)
    False
    """
    able = scores.dtype.name in _KINDS and scores.dtype.isnative and scores.strides[1] == scores.itemsize
    if wanted:
        need("numba", extra="fast")
        return able
    return able and wanted is None and scores.size >= WORTH and find_spec("numba") is not None


class CompiledRows(HostRows):
    """Places the targets of blocks of rows by the compiled kernel."""

    def looked(self, block: NDArray[Any], targets: Ints, limit: NDArray[Any]) -> Looked:
        """Where the targets landed, and what came first."""
        rows = len(block)
        seen = Looked.empty(rows, block.dtype)
        place = kernel(block.dtype.name)
        lost = place(block, targets, limit, seen.above, seen.tied, seen.predicted, seen.largest, seen.shared)
        if lost >= 0:
            raise NotANumberError(int(lost))
        return seen


@cache
def kernel(dtype: str) -> Any:
    """The compiled function for 32 or 64 bits; it returns the first row that holds a NaN, else -1."""
    number, whole = (np.dtype(each).type for each in _KINDS[dtype])
    tally = _tally(number, whole)
    ends = _compiled(_ends)
    nowhere = number(-np.inf)

    def place(block, targets, limits, above, tied, predicted, largest, shared):  # type: ignore[no-untyped-def]
        rows, width = block.shape
        body = width // _VECTORS * _VECTORS
        spare = _VECTORS - (width - body)
        tail = np.full(_VECTORS, nowhere)
        for i in range(rows):
            row, limit = block[i], limits[i]
            over, same, under, top, where, again = 0, 0, 0, nowhere, -1, False
            for start in range(0, width, STRETCH):
                stop = min(start + STRETCH, body)
                if start < stop:
                    a, e, b, best = tally(row[start:stop], limit)
                    over, same, under = over + a, same + e, under + b
                    if where < 0 or best > top:
                        top, where, again = best, start, False
                    elif best == top:
                        again = True
            if body < width:
                tail[: width - body] = row[body:]
                a, e, b, best = tally(tail, limit)
                over = over + a
                if limit > nowhere:
                    same, under = same + e, under + b - spare
                else:
                    same, under = same + e - spare, under + b
                if where < 0 or best > top:
                    top, where, again = best, body, False
                elif best == top:
                    again = True
            if over + same + under != width:
                return i
            above[i], tied[i], largest[i] = over, same - 1, top
            if over == 0 and same == 1:
                predicted[i], shared[i] = targets[i], False
            else:
                stop = min(where + STRETCH, body) if where < body else width
                first, last = ends(row[where:stop], top)
                predicted[i], shared[i] = where + first, again or first != last
        return -1

    return _compiled(place)


def _tally(number: Any, whole: Any) -> Any:
    """Counts above, equal and below, and the largest score, of a few thousand scores.

    A largest float cannot be found many at a time, as floats have NaN; a largest integer can. The bits of a
    float are made an integer of the same order by turning round those of a negative one. Counts are added
    as floats, which stay as wide as the scores.
    """
    one, none, lowest = number(1), number(0), np.iinfo(whole).min
    mask, shift = whole(np.iinfo(whole).max), 8 * np.dtype(whole).itemsize - 1

    def tally(row, limit):  # type: ignore[no-untyped-def]
        above, equal, below, most = none, none, none, whole(lowest)
        bits = row.view(whole)
        for j in range(row.shape[0]):
            score = row[j]
            above += one if score > limit else none
            equal += one if score == limit else none
            below += one if score < limit else none
            most = max(most, whole(bits[j] ^ ((bits[j] >> shift) & mask)))
        turned = np.empty(1, whole)
        turned[0] = most ^ ((most >> shift) & mask)
        return int(above), int(equal), int(below), turned.view(number)[0]

    return _compiled(tally, fastmath={"reassoc"})


def _ends(row, top):  # type: ignore[no-untyped-def]
    """The first and the last place of a score that is there."""
    first, last = np.int32(row.shape[0]), np.int32(-1)
    for j in range(row.shape[0]):
        at = row[j] == top
        first = min(first, np.int32(j) if at else np.int32(2147483647))
        last = max(last, np.int32(j) if at else np.int32(-1))
    return first, last


def _compiled(function: Any, **options: Any) -> Any:
    import numba  # type: ignore[import-untyped, import-not-found, unused-ignore]

    return numba.njit(function, nogil=True, **options)
