"""One kernel for an NVIDIA GPU: each score is read once, and five figures a row are written."""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.types import Bools, Ints

try:  # comes with torch where there is CUDA; this module is only loaded when a tensor lies there
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    triton = None

_WIDE, _NARROW = 16_384, 64
"""Classes beyond which a row is wide, and up to which it is narrow: measured on an H200."""

_VECTOR = 16
"""Rows that start and end at multiples of this are read with the widest loads; divisors of it do in part."""


def is_fusible(block: Any) -> bool:
    """Whether the kernel can read the array: a floating tensor on CUDA, rows without gaps, and Triton there.

    >>> is_fusible(np.zeros((2, 3)))
    False
    """
    on_gpu = triton is not None and getattr(block, "is_cuda", False)
    return bool(on_gpu and block.is_floating_point() and block.stride(1) == 1)


def fused_counts(block: Any, targets: Ints) -> tuple[Ints, Ints, Ints, Bools, NDArray[Any]]:
    """Above, tied, first class, whether it is tied, and the largest score (NaN where the row holds one)."""
    counts, largest = counts_on_device(block, targets)
    above, equal, first, at_top = counts.cpu().numpy().astype(np.int64)
    return above, equal - 1, first, at_top > 1, largest.cpu().numpy()


def counts_on_device(block: Any, targets: Any) -> tuple[Any, Any]:
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
            seen, lost, best, first, last = _looked(
                score, score != score, limit, step, seen, lost, best, first, last
            )
        if steps * STEP < width:
            inside = (steps * STEP + lane) < width
            score = tl.load(own + (steps * STEP + lane), mask=inside, other=float("nan")).to(kind)
            unknown = inside & (score != score)
            seen, lost, best, first, last = _looked(
                score, unknown, limit, steps, seen, lost, best, first, last
            )
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
