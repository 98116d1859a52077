"""The kernel for arrays in host memory: four looks at a block that stays in the cache, one read of memory.

The largest score and its class; the scores below the target; those equal to it; those equal to the largest.
Nothing is sorted, and nothing is made that is larger than a byte a score of the block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.tasks.classify.placed import Columns, EndlessError, Placed, refuse_nan
from equipoise.types import Bools, Floats, Ints

_LANES = 8
_LONGEST_SUM = 255
"""How many bytes can be added before an 8-bit lane could overflow."""

_BUFFER = 512
"""Elements that numpy may buffer. By default it copies the thresholds of rows shorter than 8,192 into a full
matrix before it compares, which takes longer than the comparison."""

_EVEN_BYTES = np.uint64(0x00FF_00FF_00FF_00FF)
_ONE_IN_EACH_PAIR = np.uint64(0x0001_0001_0001_0001)


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
        self.flags = _Flags(rows, len(columns.codes))

    def __call__(self, block: NDArray[Any], targets: Ints) -> Placed:
        """Where the targets (places among the columns) of the block landed."""
        rows, width = block.shape
        every = np.arange(rows)
        predicted = block.argmax(axis=1)
        largest, limit = block[every, predicted], block[every, targets]
        refuse_nan(largest)
        with np.errstate():  # the size of the buffer is restored with it
            np.setbufsize(_BUFFER)
            below = self.flags.below(block, limit)
            tied = self.flags.equal(block, limit) - 1
            shared = self.flags.equal(block, largest) > 1
        before = self._before(block, targets, limit, np.flatnonzero(tied))
        shares = _softmax(block, largest, limit) if self.probabilities else (None, None)
        return Placed(width - 1 - below - tied, tied, before, predicted, shared, *shares)

    def _before(self, block: NDArray[Any], targets: Ints, limit: NDArray[Any], rows: Ints) -> Ints:
        before = np.zeros(len(block), dtype=np.int64)
        for row in rows.tolist():
            order = self.columns.order
            before[row] = np.count_nonzero((block[row] == limit[row]) & (order > order[targets[row]]))
        return before


def _softmax(block: NDArray[Any], largest: NDArray[Any], limit: NDArray[Any]) -> tuple[Floats, Floats]:
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
