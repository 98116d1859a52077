"""Rank counts on a device: Triton kernels for NVIDIA GPUs, array-API operations elsewhere.

``count_thresholds_gpu`` counts scores (rows, width) above and equal to any number of thresholds per row; one
program handles 16 thresholds of one row. ``GpuRankCounter`` counts one target per row and finds the largest
score: its fused kernel reads each score once and writes five values per row. Only counts are copied to the host.
The measurements are in benchmarks/gpu.md.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.kernels.rank_counts import ClassColumns, InfiniteScoreError, RankCounts, check_no_nan

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats, Ints

try:  # installed with torch for CUDA
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    triton = None

_LIMITS = 16
_STEP = 512
_MAX_COMPARISONS = 1 << 26
"""Comparisons per block without Triton."""


def count_thresholds_gpu(scores: Any, row: Any, limit: Any) -> tuple[Any, Any]:
    """For each (row, limit): how many scores of the row are above the limit, and how many equal it.

    ``row`` is non-decreasing. NaN is neither above nor equal.
    """
    if triton is not None and scores.is_cuda:
        return _count_with_triton(scores, row, limit)
    return _count_with_torch(scores, row, limit)


def _count_with_torch(scores: Any, row: Any, limit: Any) -> tuple[Any, Any]:
    import torch

    above = torch.zeros(len(row), dtype=torch.int64, device=scores.device)
    equal = torch.zeros_like(above)
    step = max(1, _MAX_COMPARISONS // max(1, scores.shape[1]))
    for start in range(0, len(row), step):
        part = slice(start, start + step)
        row_scores = scores[row[part]]
        above[part] = (row_scores > limit[part, None]).sum(dim=1)
        equal[part] = (row_scores == limit[part, None]).sum(dim=1)
    return above, equal


def _count_with_triton(scores: Any, row: Any, limit: Any) -> tuple[Any, Any]:
    import torch

    counts = torch.bincount(row, minlength=len(scores))
    tiles = (counts + _LIMITS - 1) // _LIMITS
    owner = torch.repeat_interleave(torch.arange(len(scores), device=scores.device), tiles)
    first = torch.cumsum(counts, 0) - counts
    number = torch.arange(len(owner), device=scores.device) - (torch.cumsum(tiles, 0) - tiles)[owner]
    start = first[owner] + number * _LIMITS
    stop = first[owner] + counts[owner]
    above = torch.zeros(len(row), dtype=torch.int32, device=scores.device)
    equal = torch.zeros_like(above)
    if len(owner):
        _count[(len(owner),)](
            scores,
            limit.contiguous(),
            owner,
            start,
            stop,
            above,
            equal,
            scores.shape[1],
            scores.stride(0),
            LIMITS=_LIMITS,
            STEP=_STEP,
            WIDE=scores.dtype == torch.float64,
        )
    return above.to(torch.int64), equal.to(torch.int64)


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _count(  # type: ignore[no-untyped-def]
        scores,
        limits,
        owner,
        start,
        stop,
        above,
        equal,
        width,
        stride,
        LIMITS: tl.constexpr,
        STEP: tl.constexpr,
        WIDE: tl.constexpr,
    ):
        """One program counts ``LIMITS`` limits of one row."""
        kind: tl.constexpr = tl.float64 if WIDE else tl.float32
        program = tl.program_id(0)
        row = tl.load(owner + program)
        item = tl.load(start + program) + tl.arange(0, LIMITS)
        real = item < tl.load(stop + program)
        limit = tl.load(limits + item, mask=real, other=float("nan")).to(kind)
        n_above = tl.zeros([LIMITS, STEP], dtype=tl.int32)
        same = tl.zeros([LIMITS, STEP], dtype=tl.int32)
        lane = tl.arange(0, STEP)
        row_scores = scores + row * stride
        for begin in range(0, width, STEP):
            inside = (begin + lane) < width
            score = tl.load(row_scores + begin + lane, mask=inside, other=float("nan")).to(kind)
            n_above += (score[None, :] > limit[:, None]).to(tl.int32)
            same += (score[None, :] == limit[:, None]).to(tl.int32)
        tl.store(above + item, tl.sum(n_above, axis=1), mask=real)
        tl.store(equal + item, tl.sum(same, axis=1), mask=real)


_MAX_TIED_SCORES = 1 << 24
"""Scores of tied rows per block."""


class GpuRankCounter:
    """Counts blocks of rows on the device of the array."""

    def __init__(self, columns: ClassColumns, *, probabilities: bool = False) -> None:
        self.columns = columns
        self.probabilities = probabilities

    def needs_blocks(self, scores: Any) -> bool:
        """Whether counting needs memory of the size of the scores: only the fused kernel alone does not."""

        return self.probabilities or self.columns.span is None or not supports_fused_kernel(scores)

    def __call__(self, block: Any, targets: Ints) -> RankCounts:
        """The rank counts of the targets (column indices) of the rows of the block."""

        counts = (triton_counts if supports_fused_kernel(block) else _separate_counts)(block, targets)
        above, tied, predicted, tied_top, largest = counts
        check_no_nan(largest)
        before = _before(block, targets, np.flatnonzero(tied), self.columns)
        shares = _softmax(block, targets, largest) if self.probabilities else (None, None)
        return RankCounts(above, tied, before, predicted, tied_top, *shares)


def _host(array: Any) -> NDArray[Any]:
    from array_api_compat import to_device

    return np.asarray(to_device(array, "cpu"))


def _separate_counts(block: Any, targets: Ints) -> tuple[Ints, Ints, Ints, Bools, NDArray[Any]]:
    """Above, tied, top class, whether it is tied, and the largest score, with operations of the array library."""
    from array_api_compat import array_namespace, device

    xp = array_namespace(block)
    limit = _target_scores(block, targets)
    largest = xp.max(block, axis=1, keepdims=True)
    above = _host(xp.count_nonzero(block > limit, axis=1))
    tied = _host(xp.count_nonzero(block == limit, axis=1)) - 1
    at_top = block == largest
    shared = _host(xp.count_nonzero(at_top, axis=1)) > 1
    # For equal maxima, the index that argmax returns is not defined everywhere: take the lowest.
    column = xp.arange(block.shape[1], device=device(block))
    predicted = xp.argmax(block, axis=1)
    first = _host(predicted).astype(np.int64)
    for row in np.flatnonzero(shared).tolist():
        first[row] = int(xp.min(column[at_top[row, :]]))
    top = _host(xp.astype(largest[:, 0], xp.float64) if _is_narrow(xp, block) else largest[:, 0])
    return above.astype(np.int64), tied.astype(np.int64), first, shared, top


def _is_narrow(xp: Any, block: Any) -> bool:
    """Whether numpy may lack the dtype, such as bfloat16."""
    return bool(xp.isdtype(block.dtype, "real floating")) and block.dtype.itemsize < 4


def _target_scores(block: Any, targets: Ints) -> Any:
    """The score of the target of each row, as a column."""
    from array_api_compat import array_namespace, device

    xp = array_namespace(block)
    columns = xp.asarray(targets, device=device(block))
    return xp.take_along_axis(block, xp.reshape(columns, (-1, 1)), axis=1)


def _before(block: Any, targets: Ints, rows: Ints, columns: ClassColumns) -> Ints:
    """For each of these rows, how many classes tied with the target precede it by id."""
    before = np.zeros(len(targets), dtype=np.int64)
    if not len(rows):
        return before
    from array_api_compat import array_namespace, device

    xp = array_namespace(block)
    order = xp.asarray(columns.order, device=device(block))
    step = max(1, _MAX_TIED_SCORES // block.shape[1])
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        selected = xp.take(block, xp.asarray(part, device=device(block)), axis=0)
        target_order = xp.asarray(columns.order[targets[part]][:, None], device=device(block))
        later = (selected == _target_scores(selected, targets[part])) & (order[None, :] > target_order)
        before[part] = _host(xp.count_nonzero(later, axis=1))
    return before


def _softmax(block: Any, targets: Ints, largest: NDArray[Any]) -> tuple[Floats, Floats]:
    """The softmax of the largest score and of the target; a row of only -inf is uniform."""
    from array_api_compat import array_namespace, device

    if np.isposinf(largest).any():
        raise InfiniteScoreError(int(np.argmax(np.isposinf(largest))))
    xp = array_namespace(block)
    hidden = np.isneginf(largest)
    kind = xp.float64 if block.dtype == xp.float64 else xp.float32
    shift = xp.asarray(np.where(hidden, 0.0, largest)[:, None], dtype=kind, device=device(block))
    sums = _host(xp.sum(xp.exp(xp.astype(block, kind) - shift), axis=1, dtype=xp.float64))
    target_mass = _host(xp.exp(xp.astype(_target_scores(block, targets), kind) - shift))[:, 0].astype(np.float64)
    sums, target_mass = np.where(hidden, block.shape[1], sums), np.where(hidden, 1.0, target_mass)
    return 1.0 / sums, target_mass / sums


_WIDE, _NARROW = 16_384, 64
"""Width above which a row is wide, and up to which it is narrow: measured on an H200."""

_VECTOR = 16
"""Alignment (in scores) of rows that allows the widest loads; the largest common divisor is used."""


def supports_fused_kernel(block: Any) -> bool:
    """Whether the kernel supports the array: a floating CUDA tensor with contiguous rows, and Triton installed.

    >>> supports_fused_kernel(np.zeros((2, 3)))
    False
    """
    on_gpu = triton is not None and getattr(block, "is_cuda", False)
    return bool(on_gpu and block.is_floating_point() and block.stride(1) == 1)


def triton_counts(block: Any, targets: Ints) -> tuple[Ints, Ints, Ints, Bools, NDArray[Any]]:
    """Above, tied, top class, whether it is tied, and the largest score (NaN if the row contains NaN)."""
    counts, largest = torch_counts(block, targets)
    above, equal, first, at_top = counts.cpu().numpy().astype(np.int64)
    return above, equal - 1, first, at_top > 1, largest.cpu().numpy()


def torch_counts(block: Any, targets: Any) -> tuple[Any, Any]:
    """Above, equal, top class and occurrences of the maximum as a (4, rows) tensor, and the largest scores."""
    import torch

    rows, width = block.shape
    counts = torch.empty((4, rows), dtype=torch.int32, device=block.device)
    largest = torch.empty(rows, dtype=torch.float64, device=block.device)
    if not rows:
        return counts, largest
    unit = gcd(width, block.stride(0), _VECTOR)
    together, step, warps = _launch_shape(width)
    _count_rows[(triton.cdiv(rows, together),)](
        block,
        torch.as_tensor(targets, device=block.device),
        counts,
        largest,
        rows,
        width // unit,
        block.stride(0) // unit,
        UNIT=unit,
        WIDE=block.dtype == torch.float64,
        ROWS=together,
        STEP=step,
        num_warps=warps,
    )
    return counts, largest


def _launch_shape(width: int) -> tuple[int, int, int]:
    """Rows per program, scores of each row per step, and warps per program.

    A wide row has its own program. Shorter rows are assigned to single warps, so that no sum waits for another
    warp.
    """
    if width > _WIDE:
        return 1, 1024, 8
    return (8, 128, 4) if width > _NARROW else (16, 32, 4)


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _update_lanes(score, unknown, limit, step, above, lost, best, first, last):  # type: ignore[no-untyped-def]
        """The state of each lane after another score; NaN changes only ``lost``.

        ``above`` counts scores above the limit in its low half and equal scores in its high half. The first and
        the last step with the largest score of the lane differ if it is tied.
        """
        above += tl.where(score > limit, 1, tl.where(score == limit, 65536, 0))
        first = tl.where(score > best, step, first)
        last = tl.where(score >= best, step, last)
        best = tl.where(score > best, score, best)
        return above, lost | unknown, best, first, last

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _count_rows(  # type: ignore[no-untyped-def]
        scores,
        targets,
        counts,
        largest,
        rows,
        width_units,
        stride_units,
        UNIT: tl.constexpr,
        WIDE: tl.constexpr,
        ROWS: tl.constexpr,
        STEP: tl.constexpr,
    ):
        """One program counts ``ROWS`` rows; lane ``l`` reads the columns ``l + k * STEP``."""
        kind: tl.constexpr = tl.float64 if WIDE else tl.float32
        width = width_units * UNIT
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        real = row < rows
        row = tl.minimum(row, rows - 1).to(tl.int64)
        row_scores = scores + (row * (stride_units * UNIT))[:, None]
        limit = tl.load(scores + row * (stride_units * UNIT) + tl.load(targets + row)).to(kind)[:, None]
        lane = tl.arange(0, STEP)[None, :]
        above = tl.zeros([ROWS, STEP], dtype=tl.int32)
        lost = tl.zeros([ROWS, STEP], dtype=tl.int1)
        first = tl.zeros([ROWS, STEP], dtype=tl.int32)
        last = tl.zeros([ROWS, STEP], dtype=tl.int32)
        best = tl.full([ROWS, STEP], float("-inf"), dtype=kind)
        steps = width // STEP
        for step in range(0, steps):
            score = tl.load(row_scores + (step * STEP + lane)).to(kind)
            above, lost, best, first, last = _update_lanes(
                score, score != score, limit, step, above, lost, best, first, last
            )
        if steps * STEP < width:
            inside = (steps * STEP + lane) < width
            score = tl.load(row_scores + (steps * STEP + lane), mask=inside, other=float("nan")).to(kind)
            unknown = inside & (score != score)
            above, lost, best, first, last = _update_lanes(score, unknown, limit, steps, above, lost, best, first, last)
        top = tl.max(best, axis=1)
        column = first * STEP + lane
        at_top = (best == top[:, None]) & (column < width)
        times = tl.sum(tl.where(at_top, tl.where(last > first, 2, 1), 0), axis=1)
        lowest = tl.min(tl.where(at_top, column, 2147483647), axis=1)
        tl.store(counts + row, tl.sum(above & 65535, axis=1), mask=real)
        tl.store(counts + rows + row, tl.sum(above >> 16, axis=1), mask=real)
        tl.store(counts + 2 * rows + row, lowest, mask=real)
        tl.store(counts + 3 * rows + row, times, mask=real)
        unknown_rows = tl.sum(lost.to(tl.int32), axis=1) > 0
        tl.store(largest + row, tl.where(unknown_rows, float("nan"), top.to(tl.float64)), mask=real)
