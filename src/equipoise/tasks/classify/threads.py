"""Rows shared out among threads: each takes the next few until none are left.

Every row is counted by itself, so that neither the number of threads nor their order changes anything. A
thread that finds its core busy takes fewer, and one that has not begun when all rows are taken is not waited
for.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

R = TypeVar("R")

LIMITS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Variables by which people say how many threads a program may use; the lower number counts."""

WORTH = 4 << 20
"""Bytes for each thread, at least: it takes as long to wake one as to read some hundred thousand of them."""

PART = 4 << 20
"""Bytes that a thread takes at a time."""


def cores() -> int:
    """How many cores this process may use, or how many the environment leaves it."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = (os.environ.get(name, "").partition(",")[0].strip() for name in LIMITS)
    return max(1, min([count, *(int(limit) for limit in given if limit.isdecimal())]))


def threads_for(size: int) -> int:
    """How many threads are to read so many bytes.

    >>> threads_for(1000)
    1
    """
    return 1 if size < 2 * WORTH else min(cores(), size // WORTH)


def shared_out(work: Callable[[tuple[int, int]], R], rows: int, row_bytes: int) -> list[R]:
    """What the work answers for all rows, in parts from a first row up to another, in any order.

    >>> shared_out(lambda part: part, 5, row_bytes=4000)
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
