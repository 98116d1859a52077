"""One kernel for an NVIDIA GPU: each score is read once, and five figures a row are written."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.kernels.rank_counts import ClassColumns, InfiniteScoreError, RankCounts, check_no_nan

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats, Ints

# How many scores of a row beat a limit, and how many equal it, for many limits a row, on a GPU.

try:  # comes with torch where there is CUDA; this module is only loaded when a tensor is counted
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    triton = None

_LIMITS = 16
_STEP = 512
_CELLS = 1 << 26
"""Comparisons made at a time without Triton."""


def count_thresholds_gpu(scores: Any, row: Any, limit: Any) -> tuple[Any, Any]:
    """For each (row, limit): the scores of the row above the limit, and those equal to it.

    ``row`` does not fall. NaN is neither.
    """
    if triton is not None and scores.is_cuda:
        return _by_triton(scores, row, limit)
    return _by_comparing(scores, row, limit)


def _by_comparing(scores: Any, row: Any, limit: Any) -> tuple[Any, Any]:
    import torch

    above = torch.zeros(len(row), dtype=torch.int64, device=scores.device)
    equal = torch.zeros_like(above)
    step = max(1, _CELLS // max(1, scores.shape[1]))
    for start in range(0, len(row), step):
        part = slice(start, start + step)
        own = scores[row[part]]
        above[part] = (own > limit[part, None]).sum(dim=1)
        equal[part] = (own == limit[part, None]).sum(dim=1)
    return above, equal


def _by_triton(scores: Any, row: Any, limit: Any) -> tuple[Any, Any]:
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
        """Sixteen limits of one row a program."""
        kind: tl.constexpr = tl.float64 if WIDE else tl.float32
        program = tl.program_id(0)
        row = tl.load(owner + program)
        item = tl.load(start + program) + tl.arange(0, LIMITS)
        real = item < tl.load(stop + program)
        limit = tl.load(limits + item, mask=real, other=float("nan")).to(kind)
        over = tl.zeros([LIMITS, STEP], dtype=tl.int32)
        same = tl.zeros([LIMITS, STEP], dtype=tl.int32)
        lane = tl.arange(0, STEP)
        own = scores + row * stride
        for begin in range(0, width, STEP):
            inside = (begin + lane) < width
            score = tl.load(own + begin + lane, mask=inside, other=float("nan")).to(kind)
            over += (score[None, :] > limit[:, None]).to(tl.int32)
            same += (score[None, :] == limit[:, None]).to(tl.int32)
        tl.store(above + item, tl.sum(over, axis=1), mask=real)
        tl.store(equal + item, tl.sum(same, axis=1), mask=real)


# The same counts for tensors on another device: they are made there, and only counts travel.

_TIED_CELLS = 1 << 24
"""Scores of tied rows looked at together."""


class GpuRankCounter:
    """Places the targets of blocks of rows where these lie."""

    def __init__(self, columns: ClassColumns, *, probabilities: bool = False) -> None:
        self.columns = columns
        self.probabilities = probabilities

    def needs_blocks(self, scores: Any) -> bool:
        """Whether memory for the scores is needed again: all but the fused kernel alone write copies."""

        return self.probabilities or self.columns.span is None or not supports_fused_kernel(scores)

    def __call__(self, block: Any, targets: Ints) -> RankCounts:
        """Where the targets (places among the columns) of the block landed."""

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
    """Above, tied, first class, whether it is tied, and the largest score, with the library's own passes."""
    from array_api_compat import array_namespace, device

    xp = array_namespace(block)
    limit = _limits(block, targets)
    largest = xp.max(block, axis=1, keepdims=True)
    above = _host(xp.count_nonzero(block > limit, axis=1))
    tied = _host(xp.count_nonzero(block == limit, axis=1)) - 1
    at_top = block == largest
    shared = _host(xp.count_nonzero(at_top, axis=1)) > 1
    # Which of several largest scores argmax names is not defined everywhere: the lowest is meant.
    column = xp.arange(block.shape[1], device=device(block))
    predicted = xp.argmax(block, axis=1)
    first = _host(predicted).astype(np.int64)
    for row in np.flatnonzero(shared).tolist():
        first[row] = int(xp.min(column[at_top[row, :]]))
    top = _host(xp.astype(largest[:, 0], xp.float64) if _is_narrow(xp, block) else largest[:, 0])
    return above.astype(np.int64), tied.astype(np.int64), first, shared, top


def _is_narrow(xp: Any, block: Any) -> bool:
    """Whether the numbers are of a kind that numpy may not know, such as bfloat16."""
    return bool(xp.isdtype(block.dtype, "real floating")) and block.dtype.itemsize < 4


def _limits(block: Any, targets: Ints) -> Any:
    """The score of the target of each row, as a column."""
    from array_api_compat import array_namespace, device

    xp = array_namespace(block)
    places = xp.asarray(targets, device=device(block))
    return xp.take_along_axis(block, xp.reshape(places, (-1, 1)), axis=1)


def _before(block: Any, targets: Ints, rows: Ints, columns: ClassColumns) -> Ints:
    """How many of the scores equal to the target's an order by id puts first."""
    before = np.zeros(len(targets), dtype=np.int64)
    if not len(rows):
        return before
    from array_api_compat import array_namespace, device

    xp = array_namespace(block)
    order = xp.asarray(columns.order, device=device(block))
    step = max(1, _TIED_CELLS // block.shape[1])
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        some = xp.take(block, xp.asarray(part, device=device(block)), axis=0)
        own = xp.asarray(columns.order[targets[part]][:, None], device=device(block))
        later = (some == _limits(some, targets[part])) & (order[None, :] > own)
        before[part] = _host(xp.count_nonzero(later, axis=1))
    return before


def _softmax(block: Any, targets: Ints, largest: NDArray[Any]) -> tuple[Floats, Floats]:
    """The share of the largest score and of the target; a row of nothing but -inf is shared evenly."""
    from array_api_compat import array_namespace, device

    if np.isposinf(largest).any():
        raise InfiniteScoreError(int(np.argmax(np.isposinf(largest))))
    xp = array_namespace(block)
    hidden = np.isneginf(largest)
    kind = xp.float64 if block.dtype == xp.float64 else xp.float32
    shift = xp.asarray(np.where(hidden, 0.0, largest)[:, None], dtype=kind, device=device(block))
    sums = _host(xp.sum(xp.exp(xp.astype(block, kind) - shift), axis=1, dtype=xp.float64))
    own = _host(xp.exp(xp.astype(_limits(block, targets), kind) - shift))[:, 0].astype(np.float64)
    sums, own = np.where(hidden, block.shape[1], sums), np.where(hidden, 1.0, own)
    return 1.0 / sums, own / sums


try:  # comes with torch where there is CUDA; this module is only loaded when a tensor lies there
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    triton = None

_WIDE, _NARROW = 16_384, 64
"""Classes beyond which a row is wide, and up to which it is narrow: measured on an H200."""

_VECTOR = 16
"""Rows that start and end at multiples of this are read with the widest loads; divisors of it do in part."""


def supports_fused_kernel(block: Any) -> bool:
    """Whether the kernel can read the array: a floating tensor on CUDA, rows without gaps, and Triton there.

    >>> supports_fused_kernel(np.zeros((2, 3)))
    False
    """
    on_gpu = triton is not None and getattr(block, "is_cuda", False)
    return bool(on_gpu and block.is_floating_point() and block.stride(1) == 1)


def triton_counts(block: Any, targets: Ints) -> tuple[Ints, Ints, Ints, Bools, NDArray[Any]]:
    """Above, tied, first class, whether it is tied, and the largest score (NaN where the row holds one)."""
    counts, largest = torch_counts(block, targets)
    above, equal, first, at_top = counts.cpu().numpy().astype(np.int64)
    return above, equal - 1, first, at_top > 1, largest.cpu().numpy()


def torch_counts(block: Any, targets: Any) -> tuple[Any, Any]:
    """Above, equal, first class and times it is largest as a (4, rows) tensor, and the largest scores."""
    import torch

    rows, width = block.shape
    counts = torch.empty((4, rows), dtype=torch.int32, device=block.device)
    largest = torch.empty(rows, dtype=torch.float64, device=block.device)
    if not rows:
        return counts, largest
    unit = gcd(width, block.stride(0), _VECTOR)
    together, step, warps = _program(width)
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


def _program(width: int) -> tuple[int, int, int]:
    """How many rows a program takes, how many scores of each in one step, and its warps.

    A wide row has a program of its own. Of shorter ones each warp has some for itself, so that no sum has to
    wait for another warp.
    """
    if width > _WIDE:
        return 1, 1024, 8
    return (8, 128, 4) if width > _NARROW else (16, 32, 4)


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _looked(score, unknown, limit, step, seen, lost, best, first, last):  # type: ignore[no-untyped-def]
        """What each lane knows after another score; one that is no number changes nothing but ``lost``.

        ``seen`` counts scores above the limit in its low half and equal ones in its high half; the first and
        the last step with the largest score of the lane differ where that is tied.
        """
        seen += tl.where(score > limit, 1, tl.where(score == limit, 65536, 0))
        first = tl.where(score > best, step, first)
        last = tl.where(score >= best, step, last)
        best = tl.where(score > best, score, best)
        return seen, lost | unknown, best, first, last

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
        """Some rows a program; every lane looks at its own columns."""
        kind: tl.constexpr = tl.float64 if WIDE else tl.float32
        width = width_units * UNIT
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        real = row < rows
        row = tl.minimum(row, rows - 1).to(tl.int64)
        own = scores + (row * (stride_units * UNIT))[:, None]
        limit = tl.load(scores + row * (stride_units * UNIT) + tl.load(targets + row)).to(kind)[:, None]
        lane = tl.arange(0, STEP)[None, :]
        seen = tl.zeros([ROWS, STEP], dtype=tl.int32)
        lost = tl.zeros([ROWS, STEP], dtype=tl.int1)
        first = tl.zeros([ROWS, STEP], dtype=tl.int32)
        last = tl.zeros([ROWS, STEP], dtype=tl.int32)
        best = tl.full([ROWS, STEP], float("-inf"), dtype=kind)
        steps = width // STEP
        for step in range(0, steps):
            score = tl.load(own + (step * STEP + lane)).to(kind)
            seen, lost, best, first, last = _looked(score, score != score, limit, step, seen, lost, best, first, last)
        if steps * STEP < width:
            inside = (steps * STEP + lane) < width
            score = tl.load(own + (steps * STEP + lane), mask=inside, other=float("nan")).to(kind)
            unknown = inside & (score != score)
            seen, lost, best, first, last = _looked(score, unknown, limit, steps, seen, lost, best, first, last)
        top = tl.max(best, axis=1)
        column = first * STEP + lane
        at_top = (best == top[:, None]) & (column < width)
        times = tl.sum(tl.where(at_top, tl.where(last > first, 2, 1), 0), axis=1)
        lowest = tl.min(tl.where(at_top, column, 2147483647), axis=1)
        tl.store(counts + row, tl.sum(seen & 65535, axis=1), mask=real)
        tl.store(counts + rows + row, tl.sum(seen >> 16, axis=1), mask=real)
        tl.store(counts + 2 * rows + row, lowest, mask=real)
        tl.store(counts + 3 * rows + row, times, mask=real)
        unknown_rows = tl.sum(lost.to(tl.int32), axis=1) > 0
        tl.store(largest + row, tl.where(unknown_rows, float("nan"), top.to(tl.float64)), mask=real)
