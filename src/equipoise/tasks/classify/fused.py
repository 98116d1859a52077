"""One kernel for an NVIDIA GPU: each score is read once, and five figures a row are written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.types import Bools, Ints

try:  # comes with torch where there is CUDA; this module is only loaded when a tensor lies there
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    triton = None

_LARGEST_BLOCK = 2048
"""Scores of a row that a program looks at in one step."""


def is_fusible(block: Any) -> bool:
    """Whether the kernel can read the array: a floating tensor on CUDA, rows without gaps, and Triton there.

    >>> is_fusible(np.zeros((2, 3)))
    False
    """
    on_gpu = triton is not None and getattr(block, "is_cuda", False)
    return bool(on_gpu and block.is_floating_point() and block.stride(1) == 1)


def fused_counts(block: Any, targets: Ints) -> tuple[Ints, Ints, Ints, Bools, NDArray[Any]]:
    """Above, tied, first class, whether it is tied, and the largest score (NaN where the row holds one)."""
    import torch

    rows, width = block.shape
    counts = torch.empty((4, rows), dtype=torch.int32, device=block.device)
    largest = torch.empty(rows, dtype=torch.float64, device=block.device)
    places = torch.as_tensor(targets, device=block.device)
    size = min(_LARGEST_BLOCK, triton.next_power_of_2(width))
    wide = block.dtype == torch.float64
    _count_row[(rows,)](
        block, places, counts, largest, rows, width, block.stride(0), WIDE=wide, BLOCK=size, num_warps=8
    )
    above, equal, first, at_top = counts.cpu().numpy().astype(np.int64)
    return above, equal - 1, first, at_top > 1, largest.cpu().numpy()


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _count_row(  # type: ignore[no-untyped-def]
        scores, targets, counts, largest, rows, width, stride, WIDE: tl.constexpr, BLOCK: tl.constexpr
    ):
        """One row a program; every lane keeps the counts and the first largest score of its own columns."""
        kind: tl.constexpr = tl.float64 if WIDE else tl.float32
        row = tl.program_id(0).to(tl.int64)
        own = scores + row * stride
        limit = tl.load(own + tl.load(targets + row)).to(kind)
        lane = tl.arange(0, BLOCK)
        above = tl.zeros([BLOCK], dtype=tl.int32)
        equal = tl.zeros([BLOCK], dtype=tl.int32)
        unknown = tl.zeros([BLOCK], dtype=tl.int32)
        times = tl.zeros([BLOCK], dtype=tl.int32)
        first = tl.full([BLOCK], 2147483647, dtype=tl.int32)
        best = tl.full([BLOCK], float("-inf"), dtype=kind)
        for start in range(0, width, BLOCK):
            column = start + lane
            inside = column < width
            score = tl.load(own + column, mask=inside, other=float("-inf")).to(kind)
            above += (inside & (score > limit)).to(tl.int32)
            equal += (inside & (score == limit)).to(tl.int32)
            unknown += (score != score).to(tl.int32)
            better = inside & (score > best)
            same = inside & (score == best)
            first = tl.where(better | (same & (times == 0)), column, first)
            times = tl.where(better, 1, times + same.to(tl.int32))
            best = tl.where(better, score, best)
        top = tl.max(best, axis=0)
        at_top = (best == top) & (times > 0)
        tl.store(counts + row, tl.sum(above, axis=0))
        tl.store(counts + rows + row, tl.sum(equal, axis=0))
        tl.store(counts + 2 * rows + row, tl.min(tl.where(at_top, first, 2147483647), axis=0))
        tl.store(counts + 3 * rows + row, tl.sum(tl.where(at_top, times, 0), axis=0))
        lost = tl.sum(unknown, axis=0) > 0
        tl.store(largest + row, tl.where(lost, float("nan"), top.to(tl.float64)))
