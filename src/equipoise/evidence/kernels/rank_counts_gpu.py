"""Rank counts on a device: Triton kernels for NVIDIA GPUs, array-API operations elsewhere.

``count_thresholds_gpu`` counts scores (rows, width) above and equal to any number of thresholds per row; one
program handles 16 thresholds of one row. ``GpuRankCounter`` counts one target per row and finds the largest
score: its fused kernel reads each score once. ``triton_sums`` also adds gains by rank in that kernel. Both write
labels straight to host memory.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.kernels.rank_counts import ClassColumns, RankCounts, check_no_nan
from equipoise.evidence.kernels.threshold_counts import InvalidScoreError

if TYPE_CHECKING:
    from collections.abc import Callable

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
        raise InvalidScoreError(int(np.argmax(np.isposinf(largest))), infinite=True)
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

_PROGRAMS_PER_PROCESSOR = 32
"""Maximum programs per multiprocessor if each counts many rows."""

_SUM_PROGRAMS_PER_PROCESSOR = 16
"""The same for sums, where each program ends with atomic additions to the same counter."""

_PARTIAL_SUMS = 64
"""Programs add to different partial sums, so that few wait for each other."""

N_SUMS = 8
"""Columns of a table of gains and number of sums; the last counts invalid rows."""


def supports_fused_kernel(block: Any) -> bool:
    """Whether the kernel supports the array: a floating CUDA tensor with contiguous rows, and Triton installed."""
    on_gpu = triton is not None and getattr(block, "is_cuda", False)
    return bool(on_gpu and block.is_floating_point() and block.stride(1) == 1)


def triton_counts(block: Any, targets: Any) -> tuple[Ints, Ints, Ints, Bools, NDArray[Any]]:
    """Above, tied, top class, whether it is tied, and the largest score (NaN if the row contains NaN)."""
    import torch

    counts = torch.empty((3, len(block)), dtype=torch.int32, device=block.device)
    host = _host_buffer(2 * len(block))
    columns = torch.as_tensor(targets, device=block.device).contiguous()
    launch_counts(block, columns, counts, host)
    above, equal, occurrences = counts.cpu().numpy().astype(np.int64)  # waits for the kernel
    first, largest = host.numpy().reshape(2, -1)
    return above, equal - 1, first, occurrences > 1, largest.view(np.float64)


def triton_sums(block: Any, targets: Any, gains: Callable[[int, Any], Any]) -> tuple[Floats, Ints, Ints] | None:
    """Sums of the gains of all targets, the targets and the top classes, in host memory.

    ``gains(classes, device)`` is a tensor (classes + 1, ``N_SUMS``) that holds in row r the sum of the gains of the
    first r ranks: a tied target gets the mean gain of the ranks that it shares. Gains are at most 1 and are added as
    integers, in units of ``2 ** -bits``: the order in which programs add them does not change the sum. None if the
    kernel does not support the tensors, or if a row is invalid.
    """
    device = block.device
    plan = _sum_plan(
        (block.shape, block.stride(), block.dtype),
        (targets.shape, targets.stride(), targets.dtype),
        (block.data_ptr() | targets.data_ptr()) % 16 == 0,
        device,
        triton.runtime.driver.active.get_current_stream(device.index),
        gains,
    )
    if plan is None:
        return None
    host, sums, true, predicted = plan.spare.pop() if plan.spare else _host_views(plan.rows)
    plan.launch(block, targets, plan.gains, plan.workspace, host, *plan.arguments, stream=plan.stream.cuda_stream)
    plan.spare.append(_host_views(plan.rows))
    plan.stream.synchronize()
    scaled: Floats = np.multiply(sums, plan.unit, dtype=np.float64)
    return None if scaled[-1] else (scaled, true, predicted)


def _host_views(rows: int) -> tuple[Any, Ints, Ints, Ints]:
    """A buffer in host memory, and its parts: the sums, the targets and the top classes."""
    host = _host_buffer(2 * rows + N_SUMS)
    values = host.numpy()
    return host, values[2 * rows :], values[:rows], values[rows : 2 * rows]


def _host_buffer(size: int) -> Any:
    """Integers in host memory that the device can write; the allocator keeps such memory between calls."""
    import torch

    return torch.empty(size, dtype=torch.int64, pin_memory=True)


class _SumPlan(NamedTuple):
    """What the calls with tensors of one type and shape share: finding it again takes a few microseconds.

    ``workspace`` has partial sums and the number of finished programs; the last program of a call sets them to 0.
    ``unit`` is that of the integer sums. ``spare`` holds the buffer of the next call, made while the kernel runs.
    """

    launch: Any
    arguments: tuple[Any, ...]
    gains: Any
    workspace: Any
    stream: Any
    rows: int
    unit: float
    spare: list[Any]


@lru_cache(maxsize=64)
def _sum_plan(
    block: tuple[Any, ...],
    targets: tuple[Any, ...],
    aligned: bool,
    device: Any,
    stream: int,
    gains: Callable[[int, Any], Any],
) -> _SumPlan | None:
    """The plan for shapes, strides and types of a block and its targets; None if the kernel does not support them."""
    import torch

    shape, strides, kind = block
    is_index = targets[2] in (torch.int64, torch.int32, torch.int16, torch.uint8)
    if len(shape) != 2 or 0 in shape or strides[1] != 1 or not kind.is_floating_point:
        return None
    if targets[0] != shape[:1] or targets[1] != (1,) or not is_index:
        return None
    bits = 62 - shape[0].bit_length()
    kinds = (kind, targets[2], torch.float64, torch.int64, torch.int64)
    launch, arguments = _launcher(
        _sum_rows, _SUM_PROGRAMS_PER_PROCESSOR, device, kinds, aligned, *shape, strides[0], 2.0**bits
    )
    workspace = torch.zeros(N_SUMS * _PARTIAL_SUMS + 1, dtype=torch.int64, device=device)
    external = torch.cuda.ExternalStream(stream, device)  # type: ignore[no-untyped-call]
    return _SumPlan(launch, arguments, gains(shape[1], device), workspace, external, shape[0], 2.0**-bits, [])


def launch_counts(block: Any, targets: Any, counts: Any, host: Any) -> None:
    """Queue the kernel that counts rows.

    ``counts`` (3, rows) gets above, equal and the occurrences of the maximum; equal is 0 in a row with NaN or without
    a valid target. ``host`` gets the top classes and the largest scores.
    """
    if not len(block):
        return
    import torch

    tensors = (block, targets, counts, host)
    kinds = tuple(tensor.dtype for tensor in tensors)
    aligned = all(tensor.data_ptr() % 16 == 0 for tensor in tensors)
    with torch.cuda.device(block.device):
        launch, arguments = _launcher(
            _count_rows, _PROGRAMS_PER_PROCESSOR, block.device, kinds, aligned, *block.shape, block.stride(0)
        )
        launch(*tensors, *arguments, stream=torch.cuda.current_stream().cuda_stream)


@lru_cache(maxsize=64)
def _launcher(
    kernel: Any,
    programs_per_processor: int,
    device: Any,
    kinds: tuple[Any, ...],
    aligned: bool,
    rows: int,
    width: int,
    stride: int,
    *numbers: float,
) -> tuple[Any, tuple[Any, ...]]:
    """The function that launches the kernel on the current device, and its arguments after the tensors.

    Triton finds the compiled kernel of a call in 20 to 40 microseconds, as long as the kernel takes for 20,000 x 1,000
    scores; this lookup takes 2.
    """
    import torch

    unit = gcd(width, stride, _VECTOR)
    shape = launch_shape(rows, width)
    options = {"UNIT": unit, "DOUBLE": kinds[0].itemsize == 8, "ROWS": shape.rows, "STEP": shape.step}
    options |= {"STEPS": shape.steps, "LOOP": shape.loop}
    n_tiles = triton.cdiv(rows, shape.rows)
    max_programs = programs_per_processor * torch.cuda.get_device_properties(device).multi_processor_count
    grid = (min(n_tiles, max_programs) if shape.loop else n_tiles, 1, 1)
    scalars = (rows, width // unit, stride // unit, *numbers)
    if not aligned:
        return lambda *given, stream: kernel[grid](*given, **options, num_warps=shape.warps), scalars
    compiled = kernel.warmup(*kinds, *scalars, **options, num_warps=shape.warps, grid=grid)
    return compiled[grid], (*scalars, *options.values())


class LaunchShape(NamedTuple):
    """Rows per tile, scores of each row per step, steps whose loads are in flight, warps per program, and whether each
    program loops over tiles."""

    rows: int
    step: int
    steps: int
    warps: int
    loop: bool


def launch_shape(rows: int, width: int) -> LaunchShape:
    """The fastest shape on an H200.

    A wide row is read by eight warps. One warp reads four shorter rows, so that no sum waits for another warp.
    """
    if width > _WIDE:
        return LaunchShape(1, 1024, 4, 8, loop=False)
    if width <= _NARROW:
        return LaunchShape(16, 32, 2, 4, loop=False)
    iterations = -(-width // 1024)
    return LaunchShape(4, 128, -(-width // (128 * iterations)), 1, loop=True)


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _larger(x, y):  # type: ignore[no-untyped-def]
        return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _count_targets(  # type: ignore[no-untyped-def]
        scores,
        targets,
        tile,
        rows,
        width,
        stride,
        ROWS: tl.constexpr,
        STEP: tl.constexpr,
        STEPS: tl.constexpr,
        KIND: tl.constexpr,
        TIES: tl.constexpr,
    ):
        """Row, target, above, equal, lowest index of the maximum, its occurrences and the maximum of ``ROWS`` rows.

        Lane ``l`` reads the columns ``l + k * STEP``; columns beyond the row are read as -inf. Counts are floats: a
        comparison gives 0.0 or 1.0 in one instruction. With ``TIES``, the first and the last step with the largest
        score of a lane differ if it is tied.
        """
        row = tile * ROWS + tl.arange(0, ROWS)
        inside_row = tl.minimum(row, rows - 1).to(tl.int64)
        target = tl.load(targets + inside_row).to(tl.int64)
        target_column = tl.minimum(tl.maximum(target, 0), width - 1)
        row_scores = scores + inside_row * stride
        limit = tl.load(row_scores + target_column).to(KIND)
        lane = tl.arange(0, STEP)[None, :]
        above = tl.zeros([ROWS, STEP], dtype=tl.float32)
        at_least = tl.zeros([ROWS, STEP], dtype=tl.float32)
        first = tl.zeros([ROWS, STEP], dtype=tl.int32)
        last = tl.zeros([ROWS, STEP], dtype=tl.int32)
        best = tl.full([ROWS, STEP], float("-inf"), dtype=KIND)
        n_columns = tl.cdiv(width, STEP * STEPS) * (STEP * STEPS)
        for start in range(0, n_columns, STEP * STEPS):
            for nth in tl.static_range(STEPS):
                column = start + nth * STEP + lane
                score = tl.load(row_scores[:, None] + column, mask=column < width, other=float("-inf")).to(KIND)
                above += tl.where(score > limit[:, None], 1.0, 0.0)
                at_least += tl.where(score >= limit[:, None], 1.0, 0.0)
                first = tl.where(score > best, start // STEP + nth, first)
                if TIES:
                    last = tl.where((score >= best) & (column < width), start // STEP + nth, last)
                best = _larger(best, score)
        top = tl.reduce(best, 1, _larger)
        column = first * STEP + lane
        at_top = (best == top[:, None]) & (column < width)
        lowest = tl.min(tl.where(at_top, column, 2147483647), axis=1)
        times = tl.sum(tl.where(at_top, tl.where(last > first, 2, 1), 0), axis=1) if TIES else lowest
        n_above = tl.sum(above, axis=1).to(tl.int32)
        equal = tl.sum(at_least, axis=1).to(tl.int32) - n_above
        equal -= tl.where(limit == float("-inf"), n_columns - width, 0)
        equal = tl.where((top != top) | (target != target_column), 0, equal)
        return row, target, n_above, equal, lowest, times, top

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _count_tile(  # type: ignore[no-untyped-def]
        scores,
        targets,
        counts,
        host,
        tile,
        rows,
        width,
        stride,
        ROWS: tl.constexpr,
        STEP: tl.constexpr,
        STEPS: tl.constexpr,
        KIND: tl.constexpr,
    ):
        """Write the counts of ``ROWS`` rows."""
        row, _, above, equal, first, times, top = _count_targets(
            scores, targets, tile, rows, width, stride, ROWS, STEP, STEPS, KIND, True
        )
        real = row < rows
        tl.store(counts + row, above, mask=real)
        tl.store(counts + rows + row, equal, mask=real)
        tl.store(counts + 2 * rows + row, times, mask=real)
        tl.store(host + row, first.to(tl.int64), mask=real)
        tl.store(host + rows + row, top.to(tl.float64).to(tl.int64, bitcast=True), mask=real)

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
        DOUBLE: tl.constexpr,
        ROWS: tl.constexpr,
        STEP: tl.constexpr,
        STEPS: tl.constexpr,
        LOOP: tl.constexpr,
    ):
        """Count all rows: with ``LOOP`` every program takes many tiles, otherwise one."""
        kind: tl.constexpr = tl.float64 if DOUBLE else tl.float32
        width, stride = width_units * UNIT, stride_units * UNIT
        if LOOP:
            for tile in range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0)):
                _count_tile(scores, targets, counts, host, tile, rows, width, stride, ROWS, STEP, STEPS, kind)
        else:
            first = tl.program_id(0)
            _count_tile(scores, targets, counts, host, first, rows, width, stride, ROWS, STEP, STEPS, kind)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _sum_tile(  # type: ignore[no-untyped-def]
        scores,
        targets,
        gains,
        host,
        tile,
        rows,
        width,
        stride,
        scale,
        ROWS: tl.constexpr,
        STEP: tl.constexpr,
        STEPS: tl.constexpr,
        KIND: tl.constexpr,
    ):
        """The sums of the gains of ``ROWS`` rows; their targets and top classes are written to the host."""
        row, target, above, equal, first, _, _ = _count_targets(
            scores, targets, tile, rows, width, stride, ROWS, STEP, STEPS, KIND, False
        )
        real = row < rows
        tl.store(host + row, target, mask=real)
        tl.store(host + rows + row, first.to(tl.int64), mask=real)
        field = tl.arange(0, 8)
        low = tl.load(gains + above[:, None] * 8 + field[None, :])
        high = tl.load(gains + (above + equal)[:, None] * 8 + field[None, :])
        gain = (high - low) / tl.maximum(equal, 1)[:, None].to(tl.float64)
        gain = tl.where(field[None, :] == 7, (equal == 0)[:, None].to(tl.float64), gain)
        return tl.sum(tl.where(real[:, None], gain * scale, 0.0).to(tl.int64), axis=0)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _sum_rows(  # type: ignore[no-untyped-def]
        scores,
        targets,
        gains,
        workspace,
        host,
        rows,
        width_units,
        stride_units,
        scale,
        UNIT: tl.constexpr,
        DOUBLE: tl.constexpr,
        ROWS: tl.constexpr,
        STEP: tl.constexpr,
        STEPS: tl.constexpr,
        LOOP: tl.constexpr,
    ):
        """Add the gains of all rows; the last program writes the sums to the host."""
        PARTIAL: tl.constexpr = 64
        kind: tl.constexpr = tl.float64 if DOUBLE else tl.float32
        width, stride = width_units * UNIT, stride_units * UNIT
        field = tl.arange(0, 8)
        if LOOP:
            total = tl.zeros([8], dtype=tl.int64)
            for tile in range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0)):
                total += _sum_tile(
                    scores, targets, gains, host, tile, rows, width, stride, scale, ROWS, STEP, STEPS, kind
                )
        else:
            total = _sum_tile(
                scores, targets, gains, host, tl.program_id(0), rows, width, stride, scale, ROWS, STEP, STEPS, kind
            )
        tl.atomic_add(workspace + (tl.program_id(0) % PARTIAL) * 8 + field, total, sem="relaxed")
        tl.debug_barrier()
        n_finished = workspace + PARTIAL * 8
        if tl.atomic_add(n_finished, 1, sem="acq_rel") == tl.num_programs(0) - 1:
            partial_sums = workspace + tl.arange(0, PARTIAL)[:, None] * 8 + field[None, :]
            sums = tl.sum(tl.load(partial_sums, cache_modifier=".cg"), axis=0)
            tl.store(host + 2 * rows + field, sums)
            tl.debug_barrier()
            tl.store(partial_sums, tl.zeros([PARTIAL, 8], dtype=tl.int64))
            tl.store(n_finished, 0)
