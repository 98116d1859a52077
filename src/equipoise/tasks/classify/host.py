"""The kernel for arrays in host memory: one read of memory, and mostly one look at each score.

That look counts the scores below the target's. Where none is left but the target's own, it came first and
nothing more has to be known. Where few are left, these alone are looked at again. Only rows with many left
(few, with a good model) need three more looks, at scores that are still in the cache. Nothing is sorted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.columns import repeated
from equipoise.tasks.classify.placed import Columns, EndlessError, Placed, refuse_nan
from equipoise.types import Bools, Floats, Ints

_LANES = 8
_LONGEST_SUM = 255
"""How many bytes can be added before an 8-bit lane could overflow."""

_BUFFER = 512
"""Elements that numpy may buffer. By default it copies the thresholds of rows shorter than 8,192 into a full
matrix before it compares, which takes longer than the comparison."""

_NONE = np.int64(0)
_EVEN_BYTES = np.uint64(0x00FF_00FF_00FF_00FF)
_ONE_IN_EACH_PAIR = np.uint64(0x0001_0001_0001_0001)


_FEW = 100
"""One in so many scores of a row are few: to pick them out costs less than three more looks at the row."""


@dataclass(frozen=True, slots=True)
class Looked:
    """Of each row: classes above the target and tied with it, the first class, its score, if it is tied."""

    above: Ints
    tied: Ints
    predicted: Ints
    largest: NDArray[Any]
    shared: Bools


class HostRows:
    """Places the targets of blocks of at most so many rows; the memory for flags is used again and again.

    >>> look = HostRows(Columns(np.arange(4)), rows=1)
    >>> placed = look(np.array([[3.0, 1.0, 2.0, 2.0]]), np.array([2]))
    >>> placed.above, placed.tied, placed.before, placed.predicted, placed.tied_top
    (array([1]), array([1]), array([1]), array([0]), array([False]))
    """

    def __init__(self, columns: Columns, rows: int, *, probabilities: bool = False) -> None:
        self.columns = columns
        self.probabilities = probabilities
        self.rows = rows

    @cached_property
    def _flags(self) -> _Flags:
        return _Flags(self.rows, len(self.columns.codes))

    def __call__(self, block: NDArray[Any], targets: Ints) -> Placed:
        """Where the targets (places among the columns) of the block landed."""
        limit = block[np.arange(len(block)), targets]
        seen = self.looked(block, targets, limit)
        before = self.before(block, targets, seen.tied)
        shares = softmax(block, seen.largest, limit) if self.probabilities else (None, None)
        return Placed(seen.above, seen.tied, before, seen.predicted, seen.shared, *shares)

    def looked(self, block: NDArray[Any], targets: Ints, limit: NDArray[Any]) -> Looked:
        """Where targets with these scores landed, and what came first; a NaN is refused."""
        rows, width = block.shape
        with np.errstate():  # the size of the buffer is restored with it
            np.setbufsize(_BUFFER)
            # A NaN is not below anything, so that no row with one passes for a target that came first.
            left = width - self._flags.below(block, limit)
            tops = _Tops(targets.copy(), limit.copy(), np.zeros(rows, np.int64), np.zeros(rows, dtype=bool))
            few = left <= max(1, width // _FEW)
            if 2 * np.count_nonzero(few) < rows:
                tops.put(slice(None), self._of_all(block, limit))
            else:
                # In this order: the flags of the first look serve the rows with few left, and are gone then.
                tops.put(some := np.flatnonzero(few & (left > 1)), self._of_few(block, limit, some, left))
                tops.put(many := np.flatnonzero(~few), self._of_all(block[many], limit[many]))
        refuse_nan(tops.largest)
        return Looked(left - 1 - tops.tied, tops.tied, tops.predicted, tops.largest, tops.shared)

    def _of_few(self, block: NDArray[Any], limit: NDArray[Any], rows: Ints, left: Ints) -> _Tops:
        """From the scores that are not below the target's, picked out of some rows."""
        counts, width = left[rows], block.shape[1]
        if not len(rows):
            return self._of_all(block[rows], limit[rows])
        starts = np.cumsum(counts) - counts
        place = np.repeat(np.arange(len(rows)), counts)
        column = np.flatnonzero(~self._flags.bytes[rows, :width]) - place * width
        score = block[rows[place], column]
        largest = np.maximum.reduceat(score, starts)
        at_top = score == largest[place]
        tied = np.add.reduceat(score == limit[rows][place], starts, dtype=np.int64) - 1
        shared = np.add.reduceat(at_top, starts, dtype=np.int64) > 1
        predicted = np.minimum.reduceat(np.where(at_top, column, width), starts)
        return _Tops(predicted, largest, tied, shared)

    def _of_all(self, block: NDArray[Any], limit: NDArray[Any]) -> _Tops:
        """From all scores: the largest and its class, those equal to the target's and to the largest."""
        predicted = block.argmax(axis=1)
        largest = block[np.arange(len(block)), predicted]
        tied = self._flags.equal(block, limit) - 1
        return _Tops(predicted, largest, tied, self._flags.equal(block, largest) > 1)

    def before(self, block: NDArray[Any], targets: Ints, tied: Ints) -> Ints:
        """For each row how many of those tied with its target an order by id puts first."""
        if not tied.any():
            return repeated(_NONE, len(block))
        before = np.zeros(len(block), dtype=np.int64)
        order = self.columns.order
        for row in np.flatnonzero(tied).tolist():
            scores, target = block[row], targets[row]
            before[row] = np.count_nonzero((scores == scores[target]) & (order > order[target]))
        return before


@dataclass(frozen=True, slots=True)
class _Tops:
    """Of each row: the first class, its score, how many others equal the target's, whether it is tied."""

    predicted: Ints
    largest: NDArray[Any]
    tied: Ints
    shared: Bools

    def put(self, rows: Ints | slice, other: _Tops) -> None:
        """Write what is known of some rows."""
        for each in fields(self):
            getattr(self, each.name)[rows] = getattr(other, each.name)


def softmax(block: NDArray[Any], largest: NDArray[Any], limit: NDArray[Any]) -> tuple[Floats, Floats]:
    """The share of the largest score and of the target; a row of nothing but -inf is shared evenly."""
    top = largest.astype(np.float64)
    if np.isposinf(top).any():
        raise EndlessError(int(np.argmax(np.isposinf(top))))
    real = block if block.dtype.kind == "f" else block.astype(np.float64)
    shift = np.where(np.isneginf(top), 0.0, top).astype(real.dtype)
    sums = np.exp(real - shift[:, None]).sum(axis=1, dtype=np.float64)
    own = np.exp(limit.astype(np.float64) - shift)
    hidden = np.isneginf(top)
    sums[hidden], own[hidden] = block.shape[1], 1.0
    return 1.0 / sums, own / sums


class _Flags:
    """A byte a score for the answer of a comparison, added eight at a time."""

    def __init__(self, rows: int, width: int) -> None:
        words = -(-width // _LANES)
        self.width = width
        self.pieces = -(-words // _LONGEST_SUM)
        self.length = -(-words // self.pieces)
        self.bytes: Bools = np.zeros((rows, self.pieces * self.length * _LANES), dtype=bool)

    def below(self, block: NDArray[Any], limit: NDArray[Any]) -> Ints:
        """How many scores of each row are below the limit of the row."""
        flags = self.bytes[: len(block)]
        np.less(block, limit[:, None], out=flags[:, : self.width])
        return self._sums(flags)

    def equal(self, block: NDArray[Any], limit: NDArray[Any]) -> Ints:
        """How many scores of each row are the limit of the row, which is one of them."""
        flags = self.bytes[: len(block)]
        np.equal(block, limit[:, None], out=flags[:, : self.width])
        # Ties are rare, and one sum over everything is cheaper than one a row.
        if np.count_nonzero(flags) == len(limit):
            return np.ones(len(limit), dtype=np.int64)
        return self._sums(flags)

    def _sums(self, flags: Bools) -> Ints:
        lanes = np.add.reduce(flags.view(np.uint64).reshape(-1, self.length), axis=1)
        pairs = (lanes & _EVEN_BYTES) + ((lanes >> np.uint64(8)) & _EVEN_BYTES)
        sums: Ints = ((pairs * _ONE_IN_EACH_PAIR) >> np.uint64(48)).astype(np.int64)
        return sums if self.pieces == 1 else sums.reshape(-1, self.pieces).sum(axis=1)
