"""Rank counts with numpy: the reference for the other kernels.

``count_above_and_tied`` takes scores (rows, width) and any number of thresholds per row. For threshold ``t`` of
row ``i``::

    above = #{j : s[i, j] > t}        tied = #{j : s[i, j] == t} - 1   (the threshold is one of the scores)

``NumpyRankCounter`` takes one target per row and also finds the largest score of the row. Its first pass counts
the scores below the target. If only the target is left, it is the largest and the row is done. If few are left,
only these are compared again. Rows with many left need three more passes over scores that are in the cache.
Comparison results are bytes and are added eight at a time as one 64-bit word.

Measured (benchmarks/README.md): 0.0153 s for 20,000 x 1,000 float32, against 3.01 s for topk and argsort in
torch, and 0.0025 s for reading the array once.
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


_BYTES_PER_WORD = 8
_MAX_WORDS_PER_SUM = 255
"""Words that can be added before one of their bytes can overflow."""

_ROW_BLOCK_BYTES = 1 << 20
"""Bytes of scores per block: they stay in the L2 cache between the two comparisons."""

_WIDE_ROW = 8192
"""Width from which rows are compared one by one."""

_COLUMN_BLOCK_ROWS = 512
"""Rows per transposed block: enough for the comparisons to use full vector width."""


class _RowError(Exception):
    """Something is wrong with the scores of ``row``, the first such row of the block."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


class NanScoreError(_RowError):
    """A score is NaN."""


class InfiniteScoreError(_RowError):
    """A score is infinite and a softmax was requested."""


def count_above_and_tied(
    scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints, *, check_nan: bool = False
) -> tuple[Ints, Ints]:
    """For each threshold: how many scores of its row are strictly above it, and how many others are equal to it.

    ``scores`` is (rows, width). ``thresholds`` holds the ``counts[r]`` thresholds of row ``r``, row after row. Each
    is one of the scores of the row, or NaN for an item that is not in the row. A NaN score counts as neither
    above nor equal and can mark a column that is not a candidate; ``check_nan`` raises ``NanScoreError`` instead.
    """
    if scores.shape[1] < _WIDE_ROW and len(thresholds) == len(counts) and (counts == 1).all():
        return _count_one_threshold_per_row(scores, thresholds, check_nan)
    if check_nan:
        _check_no_nan_scores(scores)
    return (_count_row_by_row if scores.shape[1] >= _WIDE_ROW else _count_many_thresholds_per_row)(
        scores, thresholds, counts
    )


def count_in_sorted_rows(matrix: NDArray[Any], thresholds: NDArray[Any], counts: Ints) -> tuple[Ints, Ints]:
    """``count_above_and_tied`` for many thresholds per row, by binary search: assessed pools hold hundreds."""
    above, tied = np.zeros(len(thresholds), dtype=np.int64), np.zeros(len(thresholds), dtype=np.int64)
    ends = np.cumsum(counts)
    for row in np.flatnonzero(counts).tolist():
        part = slice(ends[row] - counts[row], ends[row])
        ascending = np.sort(matrix[row])
        ascending = ascending[: len(ascending) - np.count_nonzero(np.isnan(ascending))]
        last = np.searchsorted(ascending, thresholds[part], side="right")
        above[part] = len(ascending) - last
        tied[part] = np.maximum(last - np.searchsorted(ascending, thresholds[part]) - 1, 0)
    return above, tied


def count_above(scores: NDArray[Any], limits: NDArray[Any]) -> Ints:
    """How many scores of each row are strictly above the limit of the row, which need not be one of them."""
    rows, width = scores.shape
    counts = np.empty(rows, dtype=np.int64)
    step = max(1, _ROW_BLOCK_BYTES // max(1, width * scores.itemsize))
    flags = np.zeros((min(step, rows), -(-width // _BYTES_PER_WORD) * _BYTES_PER_WORD), dtype=bool)
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        buffer = flags[: part.stop - start]
        np.greater(scores[part], limits[part, None], out=buffer[:, :width])
        counts[part] = _count_rows(buffer)
    return counts


def _check_no_nan_scores(scores: NDArray[Any]) -> None:
    if scores.size and np.isnan(scores.max()):
        raise NanScoreError(int(np.flatnonzero(np.isnan(scores).any(axis=1))[0]))


def _count_row_by_row(scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints) -> tuple[Ints, Ints]:
    """One row and threshold at a time: a wide row outweighs the cost of the calls."""
    above, tied = np.empty(len(thresholds), dtype=np.int64), np.empty(len(thresholds), dtype=np.int64)
    flags = np.empty(scores.shape[1], dtype=bool)
    for item, row in enumerate(np.repeat(np.arange(len(scores)), counts).tolist()):
        above[item] = np.count_nonzero(np.greater(scores[row], thresholds[item], out=flags))
        tied[item] = np.count_nonzero(np.equal(scores[row], thresholds[item], out=flags)) - 1
    return above, np.maximum(tied, 0)


def _count_one_threshold_per_row(scores: NDArray[Any], thresholds: NDArray[Any], check_nan: bool) -> tuple[Ints, Ints]:
    """Compare blocks of rows in place: a transposed copy would cost more than one comparison."""
    rows, width = scores.shape
    above, tied = np.empty(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    step = max(1, _ROW_BLOCK_BYTES // max(1, width * scores.itemsize))
    mask = np.empty((min(step, rows), -(-width // _BYTES_PER_WORD) * _BYTES_PER_WORD), dtype=bool)
    mask[:, width:] = False
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        block, limit = scores[part], thresholds[part, None]
        flags = mask[: len(block)]
        if check_nan and np.isnan(block.max()):
            raise NanScoreError(start + int(np.flatnonzero(np.isnan(block).any(axis=1))[0]))
        np.greater(block, limit, out=flags[:, :width])
        above[part] = _count_rows(flags)
        np.equal(block, limit, out=flags[:, :width])
        if _any_ties(flags, limit):
            tied[part] = np.maximum(_count_rows(flags) - 1, 0)
    return above, tied


def _any_ties(equal: NDArray[np.bool_], thresholds: NDArray[Any]) -> bool:
    """Whether any score other than the thresholds is equal: one sum over the block, since ties are rare."""
    return np.count_nonzero(equal) != thresholds.size - np.count_nonzero(thresholds != thresholds)


def _count_rows(flags: NDArray[np.bool_]) -> Ints:
    """The number of true entries of each row; eight bytes are added at a time as one word."""
    words = flags.view(np.uint64)
    total = np.zeros(len(flags), dtype=np.int64)
    for start in range(0, words.shape[1], _MAX_WORDS_PER_SUM):
        lanes = np.add.reduce(words[:, start : start + _MAX_WORDS_PER_SUM], axis=1)
        total += lanes.view(np.uint8).reshape(-1, _BYTES_PER_WORD).sum(axis=1, dtype=np.int64)
    return total


def _count_many_thresholds_per_row(scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints) -> tuple[Ints, Ints]:
    """Compare the transposed scores with one threshold of many rows at a time.

    Comparing float32 takes half the time. Rounding is monotone, so the result is exact if only the thresholds
    themselves are equal; otherwise the original numbers are compared.
    """
    above, tied = np.zeros(len(thresholds), dtype=np.int64), np.zeros(len(thresholds), dtype=np.int64)
    first = np.cumsum(counts) - counts
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(np.float32)
    for start in range(0, len(scores), _COLUMN_BLOCK_ROWS):
        part = slice(start, start + _COLUMN_BLOCK_ROWS)
        block, offsets, sizes = scores[part], first[part], counts[part]
        most = int(sizes.max(initial=0))
        if sizes.min(initial=most) < most:
            # Rows with many thresholds first: the rows that have another threshold are always a prefix.
            order = np.argsort(-sizes, kind="stable")
            block, offsets, sizes = block[order], offsets[order], sizes[order]
        with np.errstate(over="ignore"):
            columns = block.T.astype(np.float32, order="C")
        mask = np.empty(columns.shape, dtype=bool)
        for item in range(most):
            size = int(np.searchsorted(-sizes, -item, side="left"))
            index = offsets[:size] + item
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
    """The number of true entries of each column."""
    total = np.zeros(flags.shape[1], dtype=np.int64)
    for start in range(0, len(flags), _MAX_WORDS_PER_SUM):
        total += np.add.reduce(flags[start : start + _MAX_WORDS_PER_SUM].view(np.uint8), axis=0, dtype=np.uint8)
    return total


@dataclass(frozen=True, slots=True)
class RankCounts:
    """For each row: the classes above its target and tied with it, the top class, and whether the top is tied.

    ``before`` counts the classes tied with the target that precede it by id, as in a ``Ranking``. ``confidence``
    and ``target_probability`` are the softmax of the top class and of the target; None if not requested.
    ``histogram`` is that of ``rank_histogram`` if the kernel counted it.
    """

    above: Ints
    tied: Ints
    before: Ints
    predicted: Ints
    tied_top: Bools
    confidence: Floats | None = None
    target_probability: Floats | None = None
    histogram: Ints | None = None

    def rank_histogram(self, classes: int) -> Ints:
        """How many rows without ties have 0, 1, ..., classes - 1 classes above the target; last, the rows with ties."""
        if self.histogram is not None:
            return self.histogram
        return np.bincount(np.where(self.tied > 0, classes, self.above), minlength=classes + 1)

    @classmethod
    def empty(cls, rows: int, *, probabilities: bool) -> Self:
        """Zeros for this number of rows."""
        above, tied, before, predicted = np.zeros((4, rows), dtype=np.int64)
        confidence, target_probability = (np.zeros(rows) if probabilities else None for _ in range(2))
        tied_top = np.zeros(rows, dtype=bool)
        return cls(above, tied, before, predicted, tied_top, confidence, target_probability)

    def put(self, part: slice, other: RankCounts) -> None:
        """Copy the counts of a block into its rows."""
        for field in fields(self):
            column, block_column = getattr(self, field.name), getattr(other, field.name)
            if column is not None and block_column is not None:
                column[part] = block_column


@dataclass(frozen=True)
class ClassColumns:
    """The candidate classes in ascending order of their codes; the order by name is computed when a tie needs it."""

    codes: Ints

    @cached_property
    def order(self) -> Ints:
        """A sort key per column: ascending keys are the codes in order of their decimal names ("10" before "9")."""
        codes, longest = self.codes, len(str(self.codes[-1]))
        digits = 1 + sum((codes >= 10**power).astype(np.int64) for power in range(1, longest))
        # All names are padded to one length; of equal padded names, the shorter comes first.
        order: Ints = codes * 10 ** (longest - digits) * (longest + 1) + digits
        return order

    @cached_property
    def span(self) -> slice | None:
        """The columns as one slice if they are contiguous; then no copy is needed."""
        first, last = int(self.codes[0]), int(self.codes[-1])
        return slice(first, last + 1) if last - first + 1 == len(self.codes) else None

    def indices_of(self, codes: Ints) -> Ints:
        """The index of each class among the candidate columns."""
        if self.span is None:
            return np.searchsorted(self.codes, codes)
        return codes - self.span.start if self.span.start else codes

    def codes_of(self, indices: Ints) -> Ints:
        """The class of each candidate column: the inverse of ``indices_of``."""
        if self.span is None:
            return self.codes[indices]
        return indices + self.span.start if self.span.start else indices


def check_no_nan(largest: NDArray[Any]) -> None:
    """Raise ``NanScoreError`` for a row whose largest score is NaN: a maximum propagates NaN."""
    unknown = largest != largest
    if unknown.any():
        raise NanScoreError(int(np.argmax(unknown)))


_UFUNC_BUFFER_SIZE = 512
"""Elements in numpy's ufunc buffer. With the default, numpy copies the thresholds of rows shorter than 8,192
into a full matrix before the comparison, which takes longer than the comparison itself."""

_ZERO = np.int64(0)
_EVEN_BYTES = np.uint64(0x00FF_00FF_00FF_00FF)
_ONE_IN_EACH_PAIR = np.uint64(0x0001_0001_0001_0001)


_FEW_FRACTION = 100
"""Up to 1 / 100 of a row: selecting so few scores costs less than three more passes over the row."""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """For each row: classes above the target and tied with it, the top class, its score, and whether it is tied."""

    above: Ints
    tied: Ints
    predicted: Ints
    largest: NDArray[Any]
    shared: Bools


class NumpyRankCounter:
    """Counts blocks of at most ``rows`` rows; the buffer for comparison results is reused."""

    def __init__(self, columns: ClassColumns, rows: int, *, probabilities: bool = False) -> None:
        self.columns = columns
        self.probabilities = probabilities
        self.rows = rows

    @cached_property
    def _flags(self) -> _FlagMatrix:
        return _FlagMatrix(self.rows, len(self.columns.codes))

    def __call__(self, block: NDArray[Any], targets: Ints) -> RankCounts:
        """The rank counts of the targets (column indices) of the rows of the block."""
        limit = block[np.arange(len(block)), targets]
        counts = self.count(block, targets, limit)
        before = self.before(block, targets, counts.tied)
        shares = softmax(block, counts.largest, limit) if self.probabilities else (None, None)
        return RankCounts(counts.above, counts.tied, before, counts.predicted, counts.shared, *shares)

    def count(self, block: NDArray[Any], targets: Ints, limit: NDArray[Any]) -> RowCounts:
        """The counts of targets with these scores, and the top class; NaN raises an error."""
        rows, width = block.shape
        with np.errstate():  # also restores the buffer size
            np.setbufsize(_UFUNC_BUFFER_SIZE)
            # NaN is not below anything, so a row with NaN never counts as done after the first pass.
            left = width - self._flags.below(block, limit)
            tops = _TopScores(targets.copy(), limit.copy(), np.zeros(rows, np.int64), np.zeros(rows, dtype=bool))
            few = left <= max(1, width // _FEW_FRACTION)
            if 2 * np.count_nonzero(few) < rows:
                tops.put(slice(None), self._of_all(block, limit))
            else:
                # In this order: ``_of_few`` reads the flags of the first pass, and ``_of_all`` overwrites them.
                tops.put(selected := np.flatnonzero(few & (left > 1)), self._of_few(block, limit, selected, left))
                tops.put(many := np.flatnonzero(~few), self._of_all(block[many], limit[many]))
        check_no_nan(tops.largest)
        return RowCounts(left - 1 - tops.tied, tops.tied, tops.predicted, tops.largest, tops.shared)

    def _of_few(self, block: NDArray[Any], limit: NDArray[Any], rows: Ints, left: Ints) -> _TopScores:
        """The top scores of these rows from the scores that are not below the target's."""
        counts, width = left[rows], block.shape[1]
        if not len(rows):
            return self._of_all(block[rows], limit[rows])
        starts = np.cumsum(counts) - counts
        position = np.repeat(np.arange(len(rows)), counts)
        column = np.flatnonzero(~self._flags.bytes[rows, :width]) - position * width
        score = block[rows[position], column]
        largest = np.maximum.reduceat(score, starts)
        at_top = score == largest[position]
        tied = np.add.reduceat(score == limit[rows][position], starts, dtype=np.int64) - 1
        shared = np.add.reduceat(at_top, starts, dtype=np.int64) > 1
        predicted = np.minimum.reduceat(np.where(at_top, column, width), starts)
        return _TopScores(predicted, largest, tied, shared)

    def _of_all(self, block: NDArray[Any], limit: NDArray[Any]) -> _TopScores:
        """The top scores from all scores of the block."""
        predicted = block.argmax(axis=1)
        largest = block[np.arange(len(block)), predicted]
        tied = self._flags.equal(block, limit) - 1
        return _TopScores(predicted, largest, tied, self._flags.equal(block, largest) > 1)

    def before(self, block: NDArray[Any], targets: Ints, tied: Ints) -> Ints:
        """For each row, how many classes tied with its target precede it by id."""
        if not tied.any():
            return constant_column(_ZERO, len(block))
        before = np.zeros(len(block), dtype=np.int64)
        order = self.columns.order
        for row in np.flatnonzero(tied).tolist():
            scores, target = block[row], targets[row]
            before[row] = np.count_nonzero((scores == scores[target]) & (order > order[target]))
        return before


@dataclass(frozen=True, slots=True)
class _TopScores:
    """For each row: the top class, its score, how many others equal the target's, and whether the top is tied."""

    predicted: Ints
    largest: NDArray[Any]
    tied: Ints
    shared: Bools

    def put(self, rows: Ints | slice, other: _TopScores) -> None:
        """Copy the values of some rows."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(other, field.name)


def softmax(block: NDArray[Any], largest: NDArray[Any], limit: NDArray[Any]) -> tuple[Floats, Floats]:
    """The softmax of the largest score and of the target; a row of only -inf is uniform."""
    top = largest.astype(np.float64)
    if np.isposinf(top).any():
        raise InfiniteScoreError(int(np.argmax(np.isposinf(top))))
    real = block if block.dtype.kind == "f" else block.astype(np.float64)
    shift = np.where(np.isneginf(top), 0.0, top).astype(real.dtype)
    sums = np.exp(real - shift[:, None]).sum(axis=1, dtype=np.float64)
    target = np.exp(limit.astype(np.float64) - shift)
    hidden = np.isneginf(top)
    sums[hidden], target[hidden] = block.shape[1], 1.0
    return 1.0 / sums, target / sums


class _FlagMatrix:
    """Comparison results, one byte per score, summed per row eight bytes at a time."""

    def __init__(self, rows: int, width: int) -> None:
        words = -(-width // _BYTES_PER_WORD)
        self.width = width
        self.pieces = -(-words // _MAX_WORDS_PER_SUM)
        self.length = -(-words // self.pieces)
        self.bytes: Bools = np.zeros((rows, self.pieces * self.length * _BYTES_PER_WORD), dtype=bool)

    def below(self, block: NDArray[Any], limit: NDArray[Any]) -> Ints:
        """How many scores of each row are below the limit of the row."""
        flags = self.bytes[: len(block)]
        np.less(block, limit[:, None], out=flags[:, : self.width])
        return self._sums(flags)

    def equal(self, block: NDArray[Any], limit: NDArray[Any]) -> Ints:
        """How many scores of each row equal the limit of the row, which is one of them."""
        flags = self.bytes[: len(block)]
        np.equal(block, limit[:, None], out=flags[:, : self.width])
        # Ties are rare, and one sum over the block is cheaper than one per row.
        if np.count_nonzero(flags) == len(limit):
            return np.ones(len(limit), dtype=np.int64)
        return self._sums(flags)

    def _sums(self, flags: Bools) -> Ints:
        lanes = np.add.reduce(flags.view(np.uint64).reshape(-1, self.length), axis=1)
        pairs = (lanes & _EVEN_BYTES) + ((lanes >> np.uint64(8)) & _EVEN_BYTES)
        sums: Ints = ((pairs * _ONE_IN_EACH_PAIR) >> np.uint64(48)).astype(np.int64)
        return sums if self.pieces == 1 else sums.reshape(-1, self.pieces).sum(axis=1)
