"""Rank counts of one target per row in one pass over the scores: LLVM assembly, compiled when it is first used.

The shapes and the counts are those of ``rank_counts.NumpyRankCounter``. In ``rank_rows.ll`` each SIMD lane keeps its
largest score, and the index of the maximum is then searched in the columns of the lane that holds it. A second pass
over the row is needed only if another score equals the target's or is NaN. Threads take chunks of rows from a shared
counter.

The scores are read once, in order, and prefetched three rows of 1,000 ahead, because the prefetching of the processor
stops between rows: without it a call took 1.6 times as long. A whole call takes about as long as numpy's maximum of
all scores (benchmarks/README.md, section places). The Python code around a call takes 20 microseconds, but five to ten
times as long after a large array has displaced it from the cache.

Reason for LLVM code: numba does not vectorise this loop, because a float maximum must handle NaN and the lane of
the maximum is lost; it also takes a second to load and several to compile, where llvmlite alone needs 0.1 s in all.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.kernels.rank_counts import ClassColumns, NumpyRankCounter, RankCounts, softmax
from equipoise.evidence.kernels.threshold_counts import InvalidScoreError
from equipoise.types import Floats, Ints, install_command, require_extra

R = TypeVar("R")

THREAD_VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables that limit the number of threads; the lowest value applies."""

MIN_BYTES_PER_THREAD = 4 << 20
"""Minimum bytes per thread: waking a thread takes as long as reading some hundred thousand bytes."""

BYTES_PER_CHUNK = 1 << 20
"""Bytes of the rows that a thread takes at a time."""

MIN_SCORES_TO_COMPILE = 1 << 24
"""Number of scores, in one array or in several, from which the kernel is loaded and compiled: one matrix of 20,000 x
1,000. Its first call takes 0.09 CPU-seconds instead of 0.018; about six more such calls repay that."""

_LOGGER = logging.getLogger("equipoise")


@lru_cache(maxsize=1)
def available_cores() -> int:
    """The number of cores of this process, limited by ``THREAD_VARIABLES``; read once, as OpenMP does."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = (os.environ.get(name, "").partition(",")[0].strip() for name in THREAD_VARIABLES)
    return max(1, min([count, *(int(limit) for limit in limits if limit.isdecimal())]))


def threads_for(size: int) -> int:
    """The number of threads for an array of this many bytes."""
    return 1 if size < 2 * MIN_BYTES_PER_THREAD else min(available_cores(), size // MIN_BYTES_PER_THREAD)


def call_in_threads(work: Callable[[int], R], threads: int) -> list[R]:
    """``work(0)`` here and ``work(1)``, ... in other threads, except those that start too late to help."""
    if threads == 1:
        return [work(0)]
    pool = _pool(os.getpid())
    others = [pool.submit(work, number) for number in range(1, threads)]
    results = [work(0)]
    return results + [other.result() for other in others if not other.cancel()]


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """A thread pool that is kept between calls; a forked process creates its own."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="equipoise-rows")


class _CompiledKernels:
    """The kernel for each type of scores that has one, and how many scores of each type numpy has counted so far."""

    def __init__(self) -> None:
        self.functions: dict[np.dtype[Any], Any] = {}
        self.counted: dict[np.dtype[Any], int] = {}
        self.available = True

    def compile(self, dtype: np.dtype[Any]) -> None:
        """Load llvmlite and compile the kernel for this type of scores."""
        self.functions[dtype] = compile_rank_rows(dtype)

    def is_worthwhile(self, scores: NDArray[Any]) -> bool:
        """Whether the scores that were counted, including these, are enough to repay the compilation."""
        self.counted[scores.dtype] = self.counted.get(scores.dtype, 0) + scores.size
        return self.available and self.counted[scores.dtype] >= MIN_SCORES_TO_COMPILE


_KERNELS = _CompiledKernels()


def should_use_llvm(scores: NDArray[Any], requested: bool | None = None) -> bool:
    """Whether to use the compiled kernel: it supports the array, and it was requested or is faster.

    It is faster once it is compiled for this type of scores, and for scores that are many, together with those that
    this process counted before. Without llvmlite, which the extra ``fast`` installs, this is logged once.
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
    if scores.dtype in _KERNELS.functions:
        return True
    if not requested and not _KERNELS.is_worthwhile(scores):
        return False
    try:
        _KERNELS.compile(scores.dtype)
    except (ImportError, RuntimeError, AttributeError):  # no llvmlite, or one that does not know this assembly
        if requested:
            raise
        _KERNELS.available = False
        _LOGGER.warning("Large score matrices are read several times faster with %s.", install_command("fast"))
        return False
    return True


def count_if_compiled(scores: Any, targets: Any) -> RankCounts | None:
    """The counts of plain arrays in memory, with no checks but the kernel's own; None if they need more.

    The kernel must be compiled already, the targets int64 columns and no score NaN. Python's general way costs a
    fifth of one read of 20,000 x 1,000 scores, because its code and data leave the cache during each read.
    """
    if type(scores) is not np.ndarray or type(targets) is not np.ndarray or scores.dtype not in _KERNELS.functions:
        return None
    if scores.ndim != 2 or not scores.size or not scores.flags.carray:  # what is writeable is not a mapped file
        return None
    if targets.dtype != np.int64 or targets.shape != scores.shape[:1] or not targets.flags.carray:
        return None
    try:
        return LlvmRankCounter(all_columns(scores.shape[1]), len(scores))(scores, targets)
    except InvalidScoreError:  # or a target that is not a column
        return None


@lru_cache(maxsize=4)
def all_columns(width: int) -> ClassColumns:
    """Every column as a candidate."""
    return ClassColumns(np.arange(width))


class LlvmRankCounter(NumpyRankCounter):
    """Counts blocks of rows with the compiled kernel."""

    def __call__(self, block: NDArray[Any], targets: Ints) -> RankCounts:
        """The rank counts of the targets (columns) of the block's rows."""
        rows, width = block.shape
        row_bytes = width * block.itemsize
        threads = threads_for(rows * row_bytes)
        chunk = max(1, BYTES_PER_CHUNK // row_bytes) if threads > 1 else rows
        # One allocation: the C library returns several of this size to the system after each call, and first access
        # to pages that come back from there takes longer than writing the counts.
        bins = width + 1
        memory = np.empty(4 * rows + (threads + 1) * bins, dtype=np.int64)
        histograms = memory[4 * rows :]  # one per thread, and last the counter of rows
        histograms.fill(0)
        targets = np.ascontiguousarray(targets, dtype=np.int64)
        kernel, start = _KERNELS.functions[block.dtype], _address(memory)
        inputs = (_address(block), block.strides[0], width, rows, chunk, _address(targets))
        outputs = (start, start + 8 * rows, start + 16 * rows, start + 24 * rows)
        first_bin = start + 32 * rows

        def count(thread: int) -> int:
            result: int = kernel(*inputs, *outputs, first_bin + 8 * thread * bins, first_bin + 8 * threads * bins)
            return result

        bad_rows = [row for row in call_in_threads(count, threads) if row >= 0]
        if bad_rows:
            raise InvalidScoreError(min(bad_rows))
        above, tied, predicted, flags = memory[: 4 * rows].reshape(4, rows)
        histogram = histograms[:bins] if threads == 1 else histograms.reshape(-1, bins)[:-1].sum(axis=0)
        before = self.before(block, targets, tied) if histogram[-1] else tied
        shares: tuple[Floats | None, Floats | None] = (None, None)
        if self.probabilities:
            every = np.arange(rows)
            shares = softmax(block, block[every, predicted], block[every, targets])
        return RankCounts(above, tied, before, predicted, flags.view(bool)[:rows], *shares, histogram)


def _address(column: NDArray[Any]) -> int:
    """The address of the first element."""
    return int(column.__array_interface__["data"][0])


CACHE_LINE_BYTES = 64

STEP_BYTES = 128
"""Bytes that each step of the loop reads."""

PREFETCH_BYTES = 12 << 10
"""How far ahead scores are prefetched."""

_ARGUMENTS = (ctypes.c_void_p, *(ctypes.c_int64,) * 4, *(ctypes.c_void_p,) * 7)

_ENGINES: list[Any] = []
"""The owners of the compiled code, which must not be freed."""


@lru_cache(maxsize=2)
def compile_rank_rows(dtype: np.dtype[Any]) -> Any:
    """The function of ``rank_rows.ll`` for float32 or float64 scores; calls release the interpreter lock."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    module = llvm.parse_assembly(_assembly(dtype.itemsize))
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _ENGINES.append(engine)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *_ARGUMENTS)(engine.get_function_address("rank_rows"))


def _assembly(size: int) -> str:
    """The code for scores of ``size`` bytes."""
    number, lanes = {4: "float", 8: "double"}[size], STEP_BYTES // size
    minus_inf = "0xFFF0000000000000"
    words = {
        "T": number,
        "V": f"<{lanes} x {number}>",
        "VN": f"v{lanes}f{8 * size}",
        "L": f"<{lanes} x i32>",
        "M": f"<{lanes} x i1>",
        "MASK_INT": f"i{lanes}",
        "N": lanes,
        "B": size,
        "SEGMENT": 64 * lanes,
        "MINUS_INF": minus_inf,
        "ALL_MINUS_INF": "<" + ", ".join([f"{number} {minus_inf}"] * lanes) + ">",
        "INDICES": "<" + ", ".join(f"i32 {lane}" for lane in range(lanes)) + ">",
        "AHEAD": PREFETCH_BYTES,
        "PREFETCH": "\n".join(
            f"  %line.{start} = getelementptr i8, ptr %s.at, i64 {PREFETCH_BYTES + start}\n"
            f"  call void @llvm.prefetch.p0(ptr %line.{start}, i32 0, i32 3, i32 1)"
            for start in range(0, STEP_BYTES, CACHE_LINE_BYTES)
        ),
    }
    code = files("equipoise.evidence.kernels").joinpath("rank_rows.ll").read_text(encoding="ascii")
    return re.sub(r"\$([A-Z_]+)", lambda word: str(words[word[1]]), code)
