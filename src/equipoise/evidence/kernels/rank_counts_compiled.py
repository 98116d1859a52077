"""Rank counts by the compiled kernel: when it pays, and rows divided among threads."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.base import constant_column
from equipoise.evidence.kernels.rank_counts import HostRows, NanTargetError, RankCounts, softmax
from equipoise.types import Floats, Ints, require_extra

R = TypeVar("R")


LIMITS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Variables by which people say how many threads a program may use; the lower number counts."""


THREADS_WORTH = 4 << 20
"""Bytes for each thread, at least: it takes as long to wake one as to read some hundred thousand of them."""


PART = 4 << 20
"""Bytes that a thread takes at a time."""


def available_cores() -> int:
    """How many cores this process may use, or how many the environment leaves it."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = (os.environ.get(name, "").partition(",")[0].strip() for name in LIMITS)
    return max(1, min([count, *(int(limit) for limit in given if limit.isdecimal())]))


def threads_for(size: int) -> int:
    """How many threads are to read so many bytes.

    >>> threads_for(1000)
    1
    """
    return 1 if size < 2 * THREADS_WORTH else min(available_cores(), size // THREADS_WORTH)


def map_row_ranges(work: Callable[[tuple[int, int]], R], rows: int, row_bytes: int) -> list[R]:
    """What the work answers for all rows, in parts from a first row up to another, in any order.

    >>> map_row_ranges(lambda part: part, 5, row_bytes=4000)
    [(0, 5)]
    """
    threads = threads_for(rows * row_bytes)
    if threads == 1:
        return [work((0, rows))]
    step = max(1, PART // row_bytes)
    left = deque((start, min(start + step, rows)) for start in range(0, rows, step))

    def take() -> list[R]:
        answers = []
        while left:
            try:
                part = left.popleft()
            except IndexError:  # another thread took the last one
                break
            answers.append(work(part))
        return answers

    pool = _pool(os.getpid())
    others = [pool.submit(take) for _ in range(threads - 1)]
    answers = take()
    for other in others:
        if not other.cancel():
            answers += other.result()
    return answers


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """Threads that wait for the next call, begun when they are needed; a forked process makes its own."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="equipoise-rows")


WORTH = 1 << 31
"""Scores from which on it pays to load numba and the kernel, which takes a second: half a nanosecond each."""


_KERNEL = "equipoise.evidence.kernels.rank_counts_llvm"


def should_use_llvm(scores: NDArray[Any], wanted: bool | None = None) -> bool:
    """Whether the compiled kernel is to read the scores: it can, and it was asked for or pays by itself.

    It pays for very many scores, and for any once it is loaded for scores of that type.

    >>> should_use_llvm(np.zeros((2, 3), dtype=np.int8), True)
    False
    """
    able = (
        scores.dtype in (np.float32, np.float64)
        and scores.dtype.isnative
        and scores.flags.aligned
        and scores.strides[1] == scores.itemsize
    )
    kernel = sys.modules.get(_KERNEL)
    if wanted:
        if kernel is None:
            require_extra("numba", extra="fast")
        return able
    if wanted is False or not able:
        return False
    if kernel is not None and kernel.supports_dtype(scores.dtype):
        return True
    return scores.size >= WORTH and find_spec("numba") is not None


class LlvmRankCounter(HostRows):
    """Places the targets of blocks of rows by the compiled kernel."""

    def __call__(self, block: NDArray[Any], targets: Ints) -> RankCounts:
        """The rank counts of the targets (columns) of the block's rows."""
        from equipoise.evidence.kernels.rank_counts_llvm import rank_rows

        rows, width = block.shape
        above, tied, predicted = (np.empty(rows, dtype=np.int64) for _ in range(3))
        shared = np.empty(rows, dtype=bool)
        scores = block.__array_interface__["data"][0], block.strides[0], width
        like = np.empty(0, dtype=block.dtype)

        def count(part: tuple[int, int]) -> tuple[int, int]:
            found: tuple[int, int] = rank_rows(scores, like, targets, above, tied, predicted, shared, part)
            return found

        lost, ties = zip(*map_row_ranges(count, rows, width * block.itemsize), strict=True)
        if max(lost) >= 0:
            raise NanTargetError(min(row for row in lost if row >= 0))
        if any(ties):
            before = self.before(block, targets, tied)
        else:
            tied = before = constant_column(np.int64(0), rows)
        shares: tuple[Floats | None, Floats | None] = (None, None)
        if self.probabilities:
            every = np.arange(rows)
            shares = softmax(block, block[every, predicted], block[every, targets])
        return RankCounts(above, tied, before, predicted, shared, *shares)
