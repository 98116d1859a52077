"""Measuring time and memory: the minimum of several repetitions, and memory in a separate process."""

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
    """Minimum CPU seconds of several calls, and the result of the last call.

    This is the CPU time of the whole process: it includes all threads, and depends little on other
    processes.
    """
    seconds = []
    for _ in range(times):
        start = process_time()
        result = work()
        seconds.append(process_time() - start)
    return min(seconds), result


def fastest_in_turn(*works: Callable[[], object], times: int, clock: Callable[[], float] = process_time) -> list[float]:
    """Minimum CPU seconds of each function; the functions are called in alternation, so that load affects all of them.

    Use ``perf_counter`` as the clock for multithreaded code; it also includes waiting for other processes.
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
    """Remove the limit of one thread that this package sets, and yield the number of cores."""
    saved = {name: os.environ.pop(name) for name in THREAD_VARIABLES if name in os.environ}
    available_cores.cache_clear()
    try:
        yield available_cores()
    finally:
        os.environ.update(saved)
        available_cores.cache_clear()


def seconds_of(command: list[str], *, times: int, cold: bool = False) -> float:
    """Minimum wall seconds of a command, after one call that fills the caches, unless ``cold``."""
    seconds = []
    for _ in range(times if cold else times + 1):
        start = perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(perf_counter() - start)
    return min(seconds[-times:])


def number_printed_by(module: str, *arguments: str) -> float:
    """Run a module in a new process and return the number that it prints."""
    command = [sys.executable, "-m", module, *arguments]
    root = Path(__file__).parents[1]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=root).stdout)


def extra_megabytes(work: Callable[[], object]) -> float:
    """Increase of the peak resident memory of this process during a call, in MB (Linux)."""
    gc.collect()
    # Return freed memory to the system and reset the peak.
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_kilobytes()
    result = work()
    extra = (peak_kilobytes() - before) / 1024
    del result
    assert extra > 0, "the peak memory did not increase: the measurement is invalid"
    return extra


def peak_kilobytes() -> int:
    """The peak memory of this program; ru_maxrss would include the peak of the parent process."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def seconds_by_events(work: Callable[[], object], times: int = 20) -> float:
    """Minimum seconds on the device between the first and the last kernel of a call."""
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
    """Minimum wall seconds of several synchronised calls; with ``waits`` the call synchronises the device itself."""
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
