"""The kernel for arrays in host memory: one read of memory, and mostly one look at each score.

That look counts the scores below the target's. Where none is left but the target's own, it came first and
nothing more has to be known. Where few are left, these alone are looked at again. Only rows with many left
(few, with a good model) need three more looks, at scores that are still in the cache. Nothing is sorted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.base import constant_column

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats, Ints

# The rank kernel: how many scores of a row beat a threshold, and how many equal it.

_COUNTING_LANES = 8
_COUNTING_LONGEST_SUM = 255
"""How many bytes can be added before an 8-bit lane could overflow."""

_ROW_BLOCK_BYTES = 1 << 20
"""Rows compared at a time: they stay in the second-level cache between the two comparisons."""

_WIDE = 8192
"""Rows at least this wide are compared one by one."""

_COLUMN_BLOCK_ROWS = 512
"""Rows transposed at a time: long enough for the comparisons to run at full width."""


class NanScoreError(Exception):
    """A score is no number; ``row`` is the first row that holds one."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def count_above_and_tied(
    scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints, *, refuse_nan: bool = False
) -> tuple[Ints, Ints]:
    """For each threshold: how many scores of its row are strictly above it, and how many others equal it.

    ``scores`` is (rows, width); the ``counts[r]`` thresholds of row ``r`` stand one after another, and each
    is one of the row's own scores, or NaN for what the row does not hold. A NaN among the scores
    counts as neither above nor equal, which lets it mark what is no candidate; ``refuse_nan`` raises
    ``NanScoreError`` instead.

    >>> count_above_and_tied(np.array([[3.0, 1.0, 2.0, 2.0]]), np.array([2.0, np.nan]), np.array([2]))
    (array([1, 0]), array([1, 0]))
    """
    if scores.shape[1] < _WIDE and len(thresholds) == len(counts) and (counts == 1).all():
        return _one_each(scores, thresholds, refuse_nan)
    if refuse_nan:
        _look_for_nan(scores)
    return (_wide if scores.shape[1] >= _WIDE else _several_each)(scores, thresholds, counts)


def count_above(scores: NDArray[Any], limits: NDArray[Any]) -> Ints:
    """How many scores of each row are strictly above the limit of the row, which need not be among them.

    >>> count_above(np.array([[3.0, 1.0, 2.0]]), np.array([1.5]))
    array([2])
    """
    rows, width = scores.shape
    counts = np.empty(rows, dtype=np.int64)
    step = max(1, _ROW_BLOCK_BYTES // max(1, width * scores.itemsize))
    flags = np.zeros((min(step, rows), -(-width // _COUNTING_LANES) * _COUNTING_LANES), dtype=bool)
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        some = flags[: part.stop - start]
        np.greater(scores[part], limits[part, None], out=some[:, :width])
        counts[part] = _count_rows(some)
    return counts


def _look_for_nan(scores: NDArray[Any]) -> None:
    if scores.size and np.isnan(scores.max()):
        raise NanScoreError(int(np.flatnonzero(np.isnan(scores).any(axis=1))[0]))


def _wide(scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints) -> tuple[Ints, Ints]:
    """One row and threshold at a time: the row is long enough to pay for the calls."""
    above, tied = np.empty(len(thresholds), dtype=np.int64), np.empty(len(thresholds), dtype=np.int64)
    flags = np.empty(scores.shape[1], dtype=bool)
    for item, row in enumerate(np.repeat(np.arange(len(scores)), counts).tolist()):
        above[item] = np.count_nonzero(np.greater(scores[row], thresholds[item], out=flags))
        tied[item] = np.count_nonzero(np.equal(scores[row], thresholds[item], out=flags)) - 1
    return above, np.maximum(tied, 0)


def _one_each(scores: NDArray[Any], thresholds: NDArray[Any], refuse_nan: bool) -> tuple[Ints, Ints]:
    """Row by row, as the scores lie: nothing is moved for a single look at them."""
    rows, width = scores.shape
    above, tied = np.empty(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    step = max(1, _ROW_BLOCK_BYTES // max(1, width * scores.itemsize))
    mask = np.empty((min(step, rows), -(-width // _COUNTING_LANES) * _COUNTING_LANES), dtype=bool)
    mask[:, width:] = False
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        block, limit = scores[part], thresholds[part, None]
        flags = mask[: len(block)]
        if refuse_nan and np.isnan(block.max()):
            raise NanScoreError(start + int(np.flatnonzero(np.isnan(block).any(axis=1))[0]))
        np.greater(block, limit, out=flags[:, :width])
        above[part] = _count_rows(flags)
        np.equal(block, limit, out=flags[:, :width])
        if _any_ties(flags, limit):
            tied[part] = np.maximum(_count_rows(flags) - 1, 0)
    return above, tied


def _any_ties(equal: NDArray[np.bool_], thresholds: NDArray[Any]) -> bool:
    """Whether any score but the thresholds themselves is equal: one sum, as ties are rare."""
    return np.count_nonzero(equal) != thresholds.size - np.count_nonzero(thresholds != thresholds)


def _count_rows(flags: NDArray[np.bool_]) -> Ints:
    """How many entries of each row are true; eight bytes are added at a time as one word."""
    words = flags.view(np.uint64)
    total = np.zeros(len(flags), dtype=np.int64)
    for start in range(0, words.shape[1], _COUNTING_LONGEST_SUM):
        lanes = np.add.reduce(words[:, start : start + _COUNTING_LONGEST_SUM], axis=1)
        total += lanes.view(np.uint8).reshape(-1, _COUNTING_LANES).sum(axis=1, dtype=np.int64)
    return total


def _several_each(scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints) -> tuple[Ints, Ints]:
    """Column by column of the transposed scores: one threshold of many rows at a time.

    Comparing in 32 bits takes half the time and is exact wherever nothing but the thresholds
    themselves is equal, since rounding never swaps two numbers; the rest is compared in full.
    """
    above, tied = np.zeros(len(thresholds), dtype=np.int64), np.zeros(len(thresholds), dtype=np.int64)
    first = np.cumsum(counts) - counts
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(np.float32)
    for start in range(0, len(scores), _COLUMN_BLOCK_ROWS):
        part = slice(start, start + _COLUMN_BLOCK_ROWS)
        block, lead, own = scores[part], first[part], counts[part]
        most = int(own.max(initial=0))
        if own.min(initial=most) < most:
            # Rows with many thresholds first: those that still have one are then always a prefix.
            order = np.argsort(-own, kind="stable")
            block, lead, own = block[order], lead[order], own[order]
        with np.errstate(over="ignore"):
            columns = block.T.astype(np.float32, order="C")
        mask = np.empty(columns.shape, dtype=bool)
        for item in range(most):
            size = int(np.searchsorted(-own, -item, side="left"))
            index = lead[:size] + item
            limit, flags = rounded[index], mask[:, :size]
            np.equal(columns[:, :size], limit, out=flags)
            if not _any_ties(flags, limit):
                above[index] = _count_columns(np.greater(columns[:, :size], limit, out=flags))
                continue
            limit, full = thresholds[index], block[:size].T
            above[index] = _count_columns(np.greater(full, limit, out=flags))
            tied[index] = np.maximum(_count_columns(np.equal(full, limit, out=flags)) - 1, 0)
    return above, tied


def _count_columns(flags: NDArray[np.bool_]) -> Ints:
    """How many entries of each column are true."""
    total = np.zeros(flags.shape[1], dtype=np.int64)
    for start in range(0, len(flags), _COUNTING_LONGEST_SUM):
        total += np.add.reduce(flags[start : start + _COUNTING_LONGEST_SUM].view(np.uint8), axis=0, dtype=np.uint8)
    return total


# What a look at some rows tells: where each target landed, and which class came first.


@dataclass(frozen=True, slots=True)
class RankCounts:
    """For each row: the classes above its target and tied with it, the first class, and whether that is tied.

    ``before`` counts those tied with the target that an order by id puts first, as in a ``Ranking``.
    ``confidence`` and ``target_probability`` are the softmax of the first class and of the target; None where
    nobody asked.
    """

    above: Ints
    tied: Ints
    before: Ints
    predicted: Ints
    tied_top: Bools
    confidence: Floats | None = None
    target_probability: Floats | None = None

    @property
    def has_ties(self) -> bool:
        """Whether any target shares its score with another class."""
        return bool(self.tied.any())

    @classmethod
    def empty(cls, rows: int, *, probabilities: bool) -> Self:
        """Room for so many rows."""
        above, tied, before, predicted = np.zeros((4, rows), dtype=np.int64)
        shares = [np.zeros(rows) if probabilities else None for _ in range(2)]
        return cls(above, tied, before, predicted, np.zeros(rows, dtype=bool), *shares)

    def put(self, part: slice, other: RankCounts) -> None:
        """Write what a block has shown into its rows."""
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if mine is not None and theirs is not None:
                mine[part] = theirs


@dataclass(frozen=True)
class ClassColumns:
    """The classes that are candidates, by rising codes; an order of their names is made when a tie asks."""

    codes: Ints

    @cached_property
    def order(self) -> Ints:
        """A number for each column that grows as its name does in an order by id; "10" comes before "9".

        >>> ClassColumns(np.array([1, 9, 10, 11, 100])).order.argsort().tolist()
        [0, 2, 4, 3, 1]
        """
        codes, longest = self.codes, len(str(self.codes[-1]))
        digits = 1 + sum((codes >= 10**power).astype(np.int64) for power in range(1, longest))
        # All names are filled up to one length; of those that are equal then, the shorter comes first.
        order: Ints = codes * 10 ** (longest - digits) * (longest + 1) + digits
        return order

    @property
    def span(self) -> slice | None:
        """The columns as one slice, where no gap is between them; then nothing has to be copied."""
        first, last = int(self.codes[0]), int(self.codes[-1])
        return slice(first, last + 1) if last - first + 1 == len(self.codes) else None

    def places(self, codes: Ints) -> Ints:
        """The column of each class among these."""
        if self.span is None:
            return np.searchsorted(self.codes, codes)
        return codes - self.span.start if self.span.start else codes

    def named(self, places: Ints) -> Ints:
        """The class of each column: the inverse of ``places``."""
        if self.span is None:
            return self.codes[places]
        return places + self.span.start if self.span.start else places


class NanTargetError(Exception):
    """A score is no number; ``row`` is the first row of the block that holds one."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


class InfiniteScoreError(Exception):
    """A score is infinite where a softmax was asked for; ``row`` is the first such row of the block."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def check_no_nan(largest: NDArray[Any]) -> None:
    """Refuse a row whose largest score is NaN: a maximum passes NaN on."""
    unknown = largest != largest
    if unknown.any():
        raise NanTargetError(int(np.argmax(unknown)))


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
class RowCounts:
    """Of each row: classes above the target and tied with it, the first class, its score, if it is tied."""

    above: Ints
    tied: Ints
    predicted: Ints
    largest: NDArray[Any]
    shared: Bools


class HostRows:
    """Places the targets of blocks of at most so many rows; the memory for flags is used again and again.

    >>> look = HostRows(ClassColumns(np.arange(4)), rows=1)
    >>> placed = look(np.array([[3.0, 1.0, 2.0, 2.0]]), np.array([2]))
    >>> placed.above, placed.tied, placed.before, placed.predicted, placed.tied_top
    (array([1]), array([1]), array([1]), array([0]), array([False]))
    """

    def __init__(self, columns: ClassColumns, rows: int, *, probabilities: bool = False) -> None:
        self.columns = columns
        self.probabilities = probabilities
        self.rows = rows

    @cached_property
    def _flags(self) -> _Flags:
        return _Flags(self.rows, len(self.columns.codes))

    def __call__(self, block: NDArray[Any], targets: Ints) -> RankCounts:
        """Where the targets (places among the columns) of the block landed."""
        limit = block[np.arange(len(block)), targets]
        seen = self.looked(block, targets, limit)
        before = self.before(block, targets, seen.tied)
        shares = softmax(block, seen.largest, limit) if self.probabilities else (None, None)
        return RankCounts(seen.above, seen.tied, before, seen.predicted, seen.shared, *shares)

    def looked(self, block: NDArray[Any], targets: Ints, limit: NDArray[Any]) -> RowCounts:
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
        check_no_nan(tops.largest)
        return RowCounts(left - 1 - tops.tied, tops.tied, tops.predicted, tops.largest, tops.shared)

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
            return constant_column(_NONE, len(block))
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
        raise InfiniteScoreError(int(np.argmax(np.isposinf(top))))
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
