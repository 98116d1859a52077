"""How time and memory are measured: the least of several tries, memory in a process of its own."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import TypeVar

from equipoise.evidence.kernels.rank_counts_llvm import THREAD_VARIABLES, available_cores

T = TypeVar("T")


def fastest(work: Callable[[], T], *, times: int) -> tuple[float, T]:
    """The least CPU seconds of several calls, and what the last one returned.

    CPU time of the whole process: a peer that computes on several threads pays for all of them, and
    what other processes do to the machine counts less.
    """
    seconds = []
    for _ in range(times):
        start = process_time()
        answer = work()
        seconds.append(process_time() - start)
    return min(seconds), answer


def fastest_in_turn(*works: Callable[[], object], times: int, clock: Callable[[], float] = process_time) -> list[float]:
    """The least CPU seconds of each, called one after another: a busy moment slows them all.

    Where threads are to save time, ``perf_counter`` is the clock, and counts what others do to the machine.
    """
    seconds: list[list[float]] = [[] for _ in works]
    for _ in range(times):
        for work, durations in zip(works, seconds, strict=True):
            start = clock()
            work()
            durations.append(clock() - start)
    return [min(durations) for durations in seconds]


@contextmanager
def all_cores() -> Iterator[int]:
    """Without the limit of one thread that this folder sets; how many cores there are then."""
    saved = {name: os.environ.pop(name) for name in THREAD_VARIABLES if name in os.environ}
    available_cores.cache_clear()
    try:
        yield available_cores()
    finally:
        os.environ.update(saved)
        available_cores.cache_clear()


def seconds_of(command: list[str], *, times: int, cold: bool = False) -> float:
    """The least wall seconds of a command, after one call that fills the caches, unless ``cold``."""
    seconds = []
    for _ in range(times if cold else times + 1):
        start = perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(perf_counter() - start)
    return min(seconds[-times:])


def number_printed_by(module: str, *arguments: str) -> float:
    """Run a module of this folder in a fresh process and read the number it prints."""
    command = [sys.executable, "-m", module, *arguments]
    root = Path(__file__).parents[1]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=root).stdout)


def extra_megabytes(work: Callable[[], object]) -> float:
    """By how much the peak resident memory of this process exceeds what it held before the work (Linux)."""
    gc.collect()
    # Give back what building the input has freed, and forget its peak.
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_kilobytes()
    result = work()
    extra = (peak_kilobytes() - before) / 1024
    del result
    assert extra > 0, "no growth was seen: the measurement is broken"
    return extra


def peak_kilobytes() -> int:
    """The peak of this program alone; ru_maxrss would begin with the peak of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def seconds_by_events(work: Callable[[], object], times: int = 20) -> float:
    """The least seconds on the device between the first and the last of what a call queues."""
    import torch

    seconds = []
    for _ in range(times):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        seconds.append(1e-3 * start.elapsed_time(end))
    return min(seconds)


def seconds_on_gpu(work: Callable[[], object], times: int = 20, *, waits: bool = False) -> float:
    """The least wall seconds of several calls, each waited for, unless a call ``waits`` for the device itself."""
    import torch

    seconds = []
    for _ in range(times):
        torch.cuda.synchronize()
        start = perf_counter()
        work()
        if not waits:
            torch.cuda.synchronize()
        seconds.append(perf_counter() - start)
    return min(seconds)
