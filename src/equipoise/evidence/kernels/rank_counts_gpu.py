"""Rank counts on a device: Triton kernels for NVIDIA GPUs, array-API operations elsewhere.

``count_thresholds_gpu`` counts scores (rows, width) above and equal to any number of thresholds per row; one
program handles 16 thresholds of one row. ``GpuRankCounter`` counts one target per row and finds the largest
score: its fused kernel reads each score once. ``triton_sums`` adds gains by rank on the device. Both write labels
straight to host memory: 20,000 x 1,000 float32 take 0.11 ms with the labels, 0.03 to 0.05 of it in the kernel, where a
copy of the matrix takes 0.055 (benchmarks/gpu.md).
"""

from __future__ import annotations

from functools import lru_cache, partial
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
"""Width above which a row is wide, and up to which it is narrow."""

_VECTOR = 16
"""Alignment (in scores) of rows that allows the widest loads; the largest common divisor is used."""

N_SUMS = 8
"""Columns of a table of gains and of the partial sums; the last counts invalid rows."""

_SUM_PROGRAMS, _SUM_ROWS = 256, 128
"""Programs that add gains, and rows that one adds at a time."""


def supports_fused_kernel(block: Any) -> bool:
    """Whether the kernel supports the array: a floating CUDA tensor with contiguous rows, and Triton installed."""
    on_gpu = triton is not None and getattr(block, "is_cuda", False)
    return bool(on_gpu and block.is_floating_point() and block.stride(1) == 1)


def triton_counts(block: Any, targets: Any) -> tuple[Ints, Ints, Ints, Bools, NDArray[Any]]:
    """Above, tied, top class, whether it is tied, and the largest score (NaN if the row contains NaN)."""
    import torch

    counts = torch.empty((4, len(block)), dtype=torch.int32, device=block.device)
    host = _host_buffer(2 * len(block))
    launch_fused_kernel(block, _columns(targets, block), counts, host)
    above, equal, occurrences, _ = counts.cpu().numpy().astype(np.int64)  # waits for the kernel
    first, largest = host.numpy().reshape(2, -1)
    return above, equal - 1, first, occurrences > 1, largest.view(np.float64)


def triton_sums(block: Any, targets: Any, gains: Any) -> tuple[Floats, Ints, Ints] | None:
    """Sums of the gains of all targets, the targets and the top classes, in host memory; None if a row is invalid.

    ``gains`` (classes + 1, ``N_SUMS``) holds in row r the sum of the gains of the first r ranks: a tied target gets
    the mean gain of the ranks that it shares. The kernels write labels and partial sums to host memory.
    """
    import torch

    rows = len(block)
    counts = torch.empty((4, rows), dtype=torch.int32, device=block.device)
    host = _host_buffer(2 * rows + N_SUMS * _SUM_PROGRAMS)
    launch_fused_kernel(block, _columns(targets, block), counts, host, labels=True)
    launch, arguments = _sum_launcher(rows)
    launch(counts, gains, host, *arguments)
    torch.cuda.current_stream(block.device).synchronize()
    results: Ints = host.numpy()
    sums: Floats = results[2 * rows :].view(np.float64).reshape(-1, N_SUMS).sum(axis=0)
    return None if sums[-1] else (sums, results[:rows], results[rows : 2 * rows])


def _columns(targets: Any, block: Any) -> Any:
    import torch

    return torch.as_tensor(targets, device=block.device).contiguous()


def _host_buffer(size: int) -> Any:
    """Integers in host memory that the device can write; the allocator keeps such memory between calls."""
    import torch

    return torch.empty(size, dtype=torch.int64, pin_memory=True)


def launch_fused_kernel(block: Any, targets: Any, counts: Any, host: Any, *, labels: bool = False) -> None:
    """Queue the kernel that counts rows.

    ``counts`` (4, rows) gets above, equal and the occurrences of the maximum; equal is 0 in a row with NaN or without
    a valid target. ``host`` gets the top classes and the largest scores, or with ``labels`` the targets and the top
    classes.
    """
    if not len(block):
        return
    tensors = (block, targets, counts, host)
    aligned = all(tensor.data_ptr() % 16 == 0 for tensor in tensors)
    kinds = tuple(tensor.dtype for tensor in tensors)
    launch, arguments = _launcher(kinds, aligned, *block.shape, block.stride(0), labels)
    launch(*tensors, *arguments)


@lru_cache(maxsize=64)
def _launcher(
    kinds: tuple[Any, ...], aligned: bool, rows: int, width: int, stride: int, labels: bool
) -> tuple[Any, tuple[Any, ...]]:
    """The function that launches the kernel, and its arguments after the tensors.

    Triton finds the compiled kernel of a call in 20 to 40 microseconds, as long as the kernel takes for 20,000 x 1,000
    scores. A kernel compiled ahead is launched in 12; it needs pointers that are multiples of 16 bytes.
    """
    unit = gcd(width, stride, _VECTOR)
    together, step, warps = launch_shape(width)
    options = {"UNIT": unit, "WIDE": kinds[0].itemsize == 8, "ROWS": together, "STEP": step, "LABELS": labels}
    grid, numbers = (triton.cdiv(rows, together), 1, 1), (rows, width // unit, stride // unit)
    if not aligned:
        return partial(_count_rows[grid], **options, num_warps=warps), numbers
    kernel = _count_rows.warmup(*kinds, *numbers, **options, num_warps=warps, grid=grid)
    return kernel[grid], (*numbers, *options.values())


@lru_cache(maxsize=64)
def _sum_launcher(rows: int) -> tuple[Any, tuple[int, int]]:
    import torch

    grid, kinds = (_SUM_PROGRAMS, 1, 1), (torch.int32, torch.float64, torch.int64)
    kernel = _sum_gains.warmup(*kinds, rows, ROWS=_SUM_ROWS, num_warps=4, grid=grid)
    return kernel[grid], (rows, _SUM_ROWS)


def launch_shape(width: int) -> tuple[int, int, int]:
    """Rows per program, scores of each row per step, and warps per program: the fastest on an H200.

    A wide row has its own program. Shorter rows are assigned to single warps, so that no sum waits for another
    warp.
    """
    if width > _WIDE:
        return 1, 1024, 8
    return (4, 128, 2) if width > _NARROW else (16, 32, 4)


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
    def _count_steps(  # type: ignore[no-untyped-def]
        row_scores, limit, width, ROWS: tl.constexpr, STEP: tl.constexpr, KIND: tl.constexpr
    ):
        """Above, equal, first index and occurrences of the maximum, NaN scores and the maximum of each row.

        Lane ``l`` reads the columns ``l + k * STEP``. Loading a row of 1,000 scores in one step took as long.
        """
        lane = tl.arange(0, STEP)[None, :]
        above = tl.zeros([ROWS, STEP], dtype=tl.int32)
        lost = tl.zeros([ROWS, STEP], dtype=tl.int1)
        first = tl.zeros([ROWS, STEP], dtype=tl.int32)
        last = tl.zeros([ROWS, STEP], dtype=tl.int32)
        best = tl.full([ROWS, STEP], float("-inf"), dtype=KIND)
        steps = width // STEP
        for step in range(0, steps):
            score = tl.load(row_scores + (step * STEP + lane)).to(KIND)
            above, lost, best, first, last = _update_lanes(
                score, score != score, limit, step, above, lost, best, first, last
            )
        if steps * STEP < width:
            inside = (steps * STEP + lane) < width
            score = tl.load(row_scores + (steps * STEP + lane), mask=inside, other=float("nan")).to(KIND)
            unknown = inside & (score != score)
            above, lost, best, first, last = _update_lanes(score, unknown, limit, steps, above, lost, best, first, last)
        top = tl.max(best, axis=1)
        column = first * STEP + lane
        at_top = (best == top[:, None]) & (column < width)
        times = tl.sum(tl.where(at_top, tl.where(last > first, 2, 1), 0), axis=1)
        lowest = tl.min(tl.where(at_top, column, 2147483647), axis=1)
        n_unknown = tl.sum(lost.to(tl.int32), axis=1)
        return tl.sum(above & 65535, axis=1), tl.sum(above >> 16, axis=1), lowest, times, n_unknown, top

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _count_rows(  # type: ignore[no-untyped-def]
        scores,
        targets,
        counts,
        host,
        rows,
        width_units,
        stride_units,
        UNIT: tl.constexpr,
        WIDE: tl.constexpr,
        ROWS: tl.constexpr,
        STEP: tl.constexpr,
        LABELS: tl.constexpr,
    ):
        """One program counts ``ROWS`` rows."""
        kind: tl.constexpr = tl.float64 if WIDE else tl.float32
        width = width_units * UNIT
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        real = row < rows
        row = tl.minimum(row, rows - 1).to(tl.int64)
        target = tl.load(targets + row).to(tl.int64)
        column = tl.minimum(tl.maximum(target, 0), width - 1)
        row_scores = scores + row * (stride_units * UNIT)
        limit = tl.load(row_scores + column).to(kind)[:, None]
        above, equal, first, times, unknown, top = _count_steps(row_scores[:, None], limit, width, ROWS, STEP, kind)
        equal = tl.where((unknown > 0) | (target != column), 0, equal)
        tl.store(counts + row, above, mask=real)
        tl.store(counts + rows + row, equal, mask=real)
        if LABELS:
            tl.store(host + row, target, mask=real)
            tl.store(host + rows + row, first.to(tl.int64), mask=real)
        else:
            tl.store(counts + 2 * rows + row, times, mask=real)
            tl.store(host + row, first.to(tl.int64), mask=real)
            largest = tl.where(unknown > 0, float("nan"), top.to(tl.float64))
            tl.store(host + rows + row, largest.to(tl.int64, bitcast=True), mask=real)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _sum_gains(counts, gains, host, rows, ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
        """Each program adds the gains of every ``num_programs``-th group of rows, in a fixed order."""
        field = tl.arange(0, 8)[None, :]
        total = tl.zeros([ROWS, 8], dtype=tl.float64)
        for start in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
            row = start + tl.arange(0, ROWS)
            real = row < rows
            above = tl.load(counts + row, mask=real, other=0)
            equal = tl.load(counts + rows + row, mask=real, other=1)
            low = tl.load(gains + above[:, None] * 8 + field)
            high = tl.load(gains + (above + equal)[:, None] * 8 + field)
            mean = (high - low) / tl.maximum(equal, 1)[:, None].to(tl.float64)
            mean = tl.where(field == 7, (equal == 0)[:, None].to(tl.float64), mean)
            total += tl.where(real[:, None], mean, 0.0)
        partial = tl.sum(total, axis=0).to(tl.int64, bitcast=True)
        tl.store(host + 2 * rows + tl.program_id(0) * 8 + tl.arange(0, 8), partial)
