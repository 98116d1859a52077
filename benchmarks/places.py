"""Metrics of next-place logits, compared with sorting in torch and with one read of the array.

One read is numpy's maximum of all, the fastest reduction of numpy, which takes one thread. By default ours uses the
compiled kernel once a process has counted 2^24 scores, with all cores. It is compared with one read in wall time, one
thread with one in CPU time, and all cores with a read by all cores. The numpy kernel, used before and without llvmlite,
takes several reads.

python -m benchmarks.places gpu       the same on an NVIDIA GPU, as a share of the bandwidth of a copy
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.logits import by_torch
from benchmarks.row import Row
from benchmarks.timing import (
    all_cores,
    extra_megabytes,
    fastest,
    fastest_in_turn,
    number_printed_by,
    seconds_by_events,
    seconds_on_gpu,
)
from equipoise.domains.places.training_meter import calculate_correct_total_prediction

SIZES = ((20_000, 1_000), (5_000, 50_000))
SORTING_TARGET, READ_TARGET, MEMORY_TARGET = 4.0, 1.1, 500.0
SORTED_ROWS = 1_000
"""Rows that torch sorts at a time: the places of all 250 million scores would fill the memory."""
WIDE = 50_000
ROOM = 2 << 30
"""Bytes of disk that the file of mostly holes may take."""


def rows(quick: bool) -> list[Row]:
    """Speed on both sizes, then the memory of a large file."""
    rows_so_far = []
    for units, classes in SIZES:
        rows_so_far += _speed(units // 10 if quick else units, classes)
    rows_so_far += _large_file(1_000 if quick else 100_000)
    return rows_so_far


def _speed(units: int, classes: int) -> list[Row]:
    logits, targets = sample_logits(units, classes)
    plain = partial(calculate_correct_total_prediction, compiled=False)
    numpy_seconds, (sums, _, _) = fastest(lambda: plain(logits, targets), times=7)
    sorting, by_sorting = fastest(lambda: _by_sorting(logits, targets), times=1)
    assert np.abs(sums[:6] / units - by_sorting).max() <= 1e-6  # torch's means are in 32 bits
    task = f"counts, labels and top-1 of {units / 1000:g}k x {classes:,} logits"
    read, compiled_rows = _compiled(task, logits, targets, sums)
    return [
        Row(f"{task}, numpy", numpy_seconds, "torch: topk and argsort, in batches", sorting, SORTING_TARGET),
        Row(f"{task}, numpy", numpy_seconds, "one read: numpy's maximum of all", read, goal="within"),
        *compiled_rows,
        *_double_precision(task, logits, targets),
        *_threaded(f"{task}, default", logits, targets),
    ]


def _compiled(task: str, logits: NDArray[Any], targets: NDArray[Any], sums: NDArray[Any]) -> tuple[float, list[Row]]:
    """One thread compared with reads by numpy: the seconds of the fastest read, and the rows."""
    compiled = partial(calculate_correct_total_prediction, compiled=True)
    compiled(logits[:2], targets[:2])  # compiled here
    assert (compiled(logits, targets)[0] == sums).all()
    ours, read, added, by_row = fastest_in_turn(
        lambda: compiled(logits, targets),
        logits.max,
        logits.sum,
        lambda: logits.max(axis=1),
        times=_times(logits),
    )
    task = f"{task}, compiled, one thread"
    return read, [
        Row(task, ours, "the same maximum", read, READ_TARGET, goal="within"),
        Row(task, ours, "one read: numpy's sum of all", added, goal="within"),
        Row(task, ours, "one read: numpy's maximum of each row", by_row, goal="within"),
    ]


def _double_precision(task: str, logits: NDArray[Any], targets: NDArray[Any]) -> list[Row]:
    """The same scores in 64 bits, if they are few enough for the memory."""
    if logits.nbytes > 1 << 28:
        return []
    double = logits.astype(np.float64)
    sums, _, _ = calculate_correct_total_prediction(double, targets, compiled=False)
    return _compiled(f"{task}, float64", double, targets, sums)[1]


def _threaded(task: str, logits: NDArray[Any], targets: NDArray[Any]) -> list[Row]:
    """All cores compared with a read by as many threads and by one, in wall time."""
    with all_cores() as count, ThreadPoolExecutor(count) as pool:
        if count == 1:
            return []
        parts = np.array_split(logits, count)
        ours, read, shared = fastest_in_turn(
            lambda: calculate_correct_total_prediction(logits, targets),
            logits.max,
            lambda: max(pool.map(np.max, parts)),
            times=4 * _times(logits),
            clock=perf_counter,
        )
    task = f"{task}, {count} threads"
    note = f"wall time, load {os.getloadavg()[0]:.1f} on {count} cores, our own included"
    by_one, by_all = (
        "one read by one thread: numpy's maximum of all",
        f"one read by {count} threads: numpy's maximum of parts",
    )
    return [
        Row(task, ours, by_one, read, READ_TARGET, goal="within", note=note),
        Row(task, ours, by_all, shared, READ_TARGET, goal="within", note=note),
    ]


def _times(logits: NDArray[Any]) -> int:
    """Short works are repeated more often."""
    return max(15, 60_000 // logits.shape[1])


def sample_logits(units: int, classes: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Logits whose target comes first about four times in ten."""
    rng = np.random.default_rng(0)
    targets = rng.integers(0, classes, units)
    logits = rng.standard_normal((units, classes), dtype=np.float32)
    logits[np.arange(units), targets] += rng.normal(3.0, 1.5, units).astype(np.float32)
    return logits, targets


def _by_sorting(logits: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.float64]:
    """The six means by sorting every row."""
    means = [
        by_torch(logits[start : start + SORTED_ROWS], targets[start : start + SORTED_ROWS], full=True)()
        * len(targets[start : start + SORTED_ROWS])
        for start in range(0, len(targets), SORTED_ROWS)
    ]
    total: NDArray[np.float64] = np.sum(means, axis=0) / len(targets)
    return total


def _large_file(units: int) -> list[Row]:
    """A memory-mapped sparse file, scored in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        if shutil.disk_usage(folder).free < ROOM:
            return []
        path = Path(folder) / "logits.npy"
        _write_with_holes(path, units)
        start = perf_counter()
        megabytes = number_printed_by("benchmarks.places", str(path))
        seconds = perf_counter() - start
        size = path.stat().st_size / 1e9
    return [
        Row(
            f"memory, a mapped .npy file of {size:.3g} GB",
            megabytes,
            target=MEMORY_TARGET,
            goal="below",
            unit="MB",
            note=f"{seconds:.3g} s, {size / seconds:.2g} GB per second",
        )
    ]


def _write_with_holes(path: Path, units: int) -> None:
    """One score a row is written, that of its target; what lies between takes no room on disk."""
    header = {"descr": "<f4", "fortran_order": False, "shape": (units, WIDE)}
    with open(path, "wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        begin = stream.tell()
        stream.truncate(begin + 4 * units * WIDE)
        for unit in range(units):
            stream.seek(begin + 4 * (unit * WIDE + unit % WIDE))
            stream.write(np.float32(1.0).tobytes())


def megabytes_of_file(path: str) -> float:
    """The memory that scoring a file takes."""
    from equipoise.io.arrays import read_array

    def work() -> None:
        logits = read_array(path, ndim=2)
        sums, _, _ = calculate_correct_total_prediction(logits, np.arange(len(logits)) % logits.shape[1])
        assert sums[0] == len(logits)

    with all_cores():
        return extra_megabytes(work)


def gpu_rows() -> list[Row]:
    """On the device, compared with a copy of the same tensor, which also writes it."""
    return [row for size in (*SIZES, (200_000, 1_000), (50_000, 50_000)) for row in _gpu(*size)]


def _gpu(units: int, classes: int) -> list[Row]:
    """The fused kernel alone, by device events; with the way of its counts to the host; and the whole function."""
    import torch

    from equipoise.evidence.kernels.rank_counts_gpu import launch_counts, supports_fused_kernel, triton_counts

    logits = torch.randn((units, classes), device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    targets: Any = torch.arange(units, device="cuda") % classes
    assert supports_fused_kernel(logits)
    counts = torch.empty((3, units), device="cuda", dtype=torch.int32)
    labels = torch.empty(2 * units, device="cuda", dtype=torch.int64)
    copy = seconds_on_gpu(lambda: torch.empty_like(logits).copy_(logits), times=100)
    seconds = {
        "counts, left there,": seconds_by_events(lambda: launch_counts(logits, targets, counts, labels)),
        "counts": seconds_on_gpu(lambda: triton_counts(logits, targets), waits=True),
        "counts, sums and labels": seconds_on_gpu(
            lambda: calculate_correct_total_prediction(logits, targets), times=100, waits=True
        ),
    }
    rows = []
    for name, duration in seconds.items():
        rate, copied = logits.nbytes / duration / 1e9, 2 * logits.nbytes / copy / 1e9
        note = f"{rate:,.0f} GB per second, {rate / copied:.0%} of a copy of as many bytes"
        task = f"GPU: {name} of {units / 1000:g}k x {classes:,} logits"
        rows.append(Row(task, duration, "copy of the tensor", copy, note=note))
    return rows


if __name__ == "__main__":
    if sys.argv[1] == "gpu":
        for row in gpu_rows():
            print(" | ".join(row.cells))
    else:
        print(megabytes_of_file(sys.argv[1]))
