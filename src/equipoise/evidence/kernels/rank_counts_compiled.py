"""Rank counts with the compiled LLVM kernel: when to use it, and how rows are divided among threads.

The shapes and the counts are those of ``rank_counts.NumpyRankCounter``. Threads take ranges of rows from a queue.
Measured on 5,000 x 50,000 float32 (benchmarks/README.md): 0.158 s with numpy, 0.0417 s compiled with one thread,
0.0225 s with two; one pass of numpy's maximum takes 0.0386 s. Loading llvmlite and compiling the kernel takes about
0.1 s, so the kernel is used from ``MIN_SCORES_TO_COMPILE`` scores on, or once it is loaded.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.base import constant_column
from equipoise.evidence.kernels.rank_counts import NanTargetError, NumpyRankCounter, RankCounts, softmax
from equipoise.types import Floats, Ints, install_command, require_extra

R = TypeVar("R")


THREAD_VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables that limit the number of threads; the lowest value applies."""


MIN_BYTES_PER_THREAD = 4 << 20
"""Minimum bytes per thread: waking a thread takes as long as reading some hundred thousand bytes."""


BYTES_PER_TASK = 4 << 20
"""Bytes of the range of rows that a thread takes from the queue."""


def available_cores() -> int:
    """The number of cores of this process, limited by ``THREAD_VARIABLES``."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = (os.environ.get(name, "").partition(",")[0].strip() for name in THREAD_VARIABLES)
    return max(1, min([count, *(int(limit) for limit in limits if limit.isdecimal())]))


def threads_for(size: int) -> int:
    """The number of threads for an array of this many bytes.

    >>> threads_for(1000)
    1
    """
    return 1 if size < 2 * MIN_BYTES_PER_THREAD else min(available_cores(), size // MIN_BYTES_PER_THREAD)


def map_row_ranges(work: Callable[[tuple[int, int]], R], rows: int, row_bytes: int) -> list[R]:
    """Call ``work((start, stop))`` for ranges that cover all rows; returns the results in any order.

    >>> map_row_ranges(lambda part: part, 5, row_bytes=4000)
    [(0, 5)]
    """
    threads = threads_for(rows * row_bytes)
    if threads == 1:
        return [work((0, rows))]
    step = max(1, BYTES_PER_TASK // row_bytes)
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
    """A thread pool that is kept between calls; a forked process creates its own."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="equipoise-rows")


MIN_SCORES_TO_COMPILE = 1 << 24
"""Number of scores, in one array or in several, from which the kernel is loaded and compiled: one matrix of 20,000 x
1,000. Its first call takes 0.09 CPU-seconds instead of 0.018; about six more such calls repay that."""


_LOGGER = logging.getLogger("equipoise")


class _KernelUse:
    """The types of scores with a compiled kernel, and how many scores of each type numpy has counted so far."""

    def __init__(self) -> None:
        self.compiled: set[np.dtype[Any]] = set()
        self.counted: dict[np.dtype[Any], int] = {}
        self.available = True

    def compile(self, dtype: np.dtype[Any]) -> None:
        """Load llvmlite and compile the kernel for this type of scores."""
        from equipoise.evidence.kernels.rank_counts_llvm import rank_rows

        rank_rows(dtype)
        self.compiled.add(dtype)

    def is_worthwhile(self, scores: NDArray[Any]) -> bool:
        """Whether the scores that were counted, including these, are enough to repay the compilation."""
        self.counted[scores.dtype] = self.counted.get(scores.dtype, 0) + scores.size
        return self.available and self.counted[scores.dtype] >= MIN_SCORES_TO_COMPILE


_USE = _KernelUse()


def should_use_llvm(scores: NDArray[Any], requested: bool | None = None) -> bool:
    """Whether to use the compiled kernel: it supports the array, and it was requested or is faster.

    It is faster once it is compiled for this type of scores, and for scores that are many, together with those that
    this process counted before. Without llvmlite, which the extra ``fast`` installs, this is logged once.

    >>> should_use_llvm(np.zeros((2, 3), dtype=np.int8), True)
    False
    """
    if requested:
        require_extra("llvmlite", extra="fast")
    supported = (
        scores.dtype in (np.float32, np.float64)
        and scores.dtype.isnative
        and scores.flags.aligned
        and scores.strides[1] == scores.itemsize
    )
    if requested is False or not supported:
        return False
    if scores.dtype in _USE.compiled:
        return True
    if not requested and not _USE.is_worthwhile(scores):
        return False
    try:
        _USE.compile(scores.dtype)
    except (ImportError, RuntimeError, AttributeError):  # no llvmlite, or one that does not know this assembly
        if requested:
            raise
        _USE.available = False
        _LOGGER.warning("Large score matrices are read several times faster with %s.", install_command("fast"))
        return False
    return True


class LlvmRankCounter(NumpyRankCounter):
    """Counts blocks of rows with the compiled kernel."""

    def __call__(self, block: NDArray[Any], targets: Ints) -> RankCounts:
        """The rank counts of the targets (columns) of the block's rows."""
        from equipoise.evidence.kernels.rank_counts_llvm import rank_rows

        rows, width = block.shape
        # One allocation: the C library returns several of this size to the system after each call, and first access
        # to pages that come back from there takes longer than writing the counts.
        above, tied, predicted, flags = np.empty((4, rows), dtype=np.int64)
        shared = flags.view(bool)[:rows]
        targets = np.ascontiguousarray(targets, dtype=np.int64)
        addresses = [_address(column) for column in (targets, above, tied, predicted, shared)]
        count_rows = rank_rows(block.dtype)

        def count(part: tuple[int, int]) -> tuple[int, int]:
            n_tied = np.zeros(1, dtype=np.int64)
            nan_row = count_rows(_address(block), block.strides[0], width, *addresses, *part, _address(n_tied))
            return int(nan_row), int(n_tied[0])

        nan_rows, ties = zip(*map_row_ranges(count, rows, width * block.itemsize), strict=True)
        if max(nan_rows) >= 0:
            raise NanTargetError(min(row for row in nan_rows if row >= 0))
        if any(ties):
            before = self.before(block, targets, tied)
        else:
            tied = before = constant_column(np.int64(0), rows)
        shares: tuple[Floats | None, Floats | None] = (None, None)
        if self.probabilities:
            every = np.arange(rows)
            shares = softmax(block, block[every, predicted], block[every, targets])
        return RankCounts(above, tied, before, predicted, shared, *shares)


def _address(column: NDArray[Any]) -> int:
    """The address of the first element."""
    return int(column.__array_interface__["data"][0])
