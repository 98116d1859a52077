"""How many scores of a row beat a limit, and how many equal it, for many limits a row, on a GPU.

With Triton each row is read once for sixteen limits, mostly from the cache of the device. Elsewhere torch
compares the rows of many limits at a time.
"""

from __future__ import annotations

from typing import Any

try:  # comes with torch where there is CUDA; this module is only loaded when a tensor is counted
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    triton = None

_LIMITS = 16
_STEP = 512
_CELLS = 1 << 26
"""Comparisons made at a time without Triton."""


def count_pairs(scores: Any, row: Any, limit: Any) -> tuple[Any, Any]:
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
