"""Rows distributed among threads give the same bytes as a single thread."""

from __future__ import annotations

import subprocess
import sys
from threading import Barrier

import numpy as np
import pytest

from equipoise.domains.places.training_meter import PlaceMeter, calculate_correct_total_prediction
from equipoise.errors import NotFiniteError
from equipoise.evidence.kernels import rank_counts_llvm
from equipoise.tasks.classification import classify

ROWS, WIDTH = 900, 257


@pytest.fixture
def set_threads(monkeypatch):
    """Sets the number of threads, with small chunks and without a minimum of work."""

    def set_count(count):
        monkeypatch.setattr(rank_counts_llvm, "available_cores", lambda: count)
        monkeypatch.setattr(rank_counts_llvm, "MIN_BYTES_PER_THREAD", 1)
        monkeypatch.setattr(rank_counts_llvm, "BYTES_PER_CHUNK", 4 * WIDTH * 7)

    return set_count


def random_case(dtype=np.float32):
    """Scores with some ties, and targets."""
    rng = np.random.default_rng(0)
    scores = (rng.standard_normal((ROWS, WIDTH)) * 500).round().astype(dtype)
    return scores, rng.integers(1, WIDTH, ROWS)


def bytes_of(classification):
    columns = classification.ranking.to_arrays() | {
        f"label {k}": v for k, v in classification.labels.to_arrays().items()
    }
    return {name: (column.dtype, column.tobytes()) for name, column in columns.items()}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", [{}, {"padding": 0}, {"block_bytes": 1 << 17}, {"probabilities": True}])
def test_the_number_of_threads_does_not_change_the_bytes(set_threads, dtype, options):
    pytest.importorskip("llvmlite")
    scores, targets = random_case(dtype)
    single = classify(scores, targets, compiled=True, **options)
    assert single.ranking.has_ties
    for count in (2, 3, 16):
        set_threads(count)
        threaded = classify(scores, targets, compiled=True, **options)
        assert bytes_of(threaded) == bytes_of(single)
    assert bytes_of(classify(scores, targets, compiled=False, **options)) == bytes_of(single)


def test_sums_and_meters_do_not_depend_on_the_number_of_threads(set_threads):
    pytest.importorskip("llvmlite")
    scores, targets = random_case()
    results = []
    for count in (1, 2, 5):
        set_threads(count)
        meter = PlaceMeter(compiled=True)
        for start in range(0, ROWS, 300):
            meter.update(scores[start : start + 300], targets[start : start + 300])
        sums = calculate_correct_total_prediction(scores, targets, compiled=True)
        results.append((*(total.tobytes() for total in sums), meter.compute().fractions))
    assert results[0] == results[1] == results[2]


def test_the_first_row_with_nan_is_reported_with_threads(set_threads):
    pytest.importorskip("llvmlite")
    scores, targets = random_case()
    scores[[403, 40, 899], [0, 256, 100]] = np.nan
    set_threads(4)
    for _ in range(20):
        with pytest.raises(NotFiniteError, match="row 40 "):
            classify(scores, targets, compiled=True)


def test_errors_of_other_threads_are_raised():
    barrier = Barrier(2, timeout=30)

    def work(thread):
        barrier.wait()
        if thread:
            raise KeyError(thread)

    with pytest.raises(KeyError):
        rank_counts_llvm.call_in_threads(work, 2)


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [
        ("OMP_NUM_THREADS", "1", 1),
        ("NUMBA_NUM_THREADS", "1", 1),
        ("OMP_NUM_THREADS", "1,4", 1),
        ("OMP_NUM_THREADS", "0", 1),
        ("OMP_NUM_THREADS", "7", 7),
        ("OMP_NUM_THREADS", "many", None),
        ("OMP_NUM_THREADS", "", None),
    ],
)
def test_environment_variables_limit_the_number_of_threads(monkeypatch, name, value, limit):
    for variable in rank_counts_llvm.THREAD_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    cores = rank_counts_llvm.available_cores.__wrapped__  # without the cache: a process reads the environment once
    unlimited = cores()
    monkeypatch.setenv(name, value)
    assert cores() == (unlimited if limit is None else min(unlimited, limit))


def test_the_number_of_threads_increases_with_the_work(monkeypatch):
    monkeypatch.setattr(rank_counts_llvm, "available_cores", lambda: 8)
    assert [rank_counts_llvm.threads_for(size << 20) for size in (0, 7, 8, 23, 80)] == [1, 1, 2, 5, 8]
    monkeypatch.setattr(rank_counts_llvm, "available_cores", lambda: 1)
    assert rank_counts_llvm.threads_for(80 << 20) == 1


FORKED = """
import os, sys
from threading import Barrier
from equipoise.evidence.kernels import rank_counts_llvm as threads

def meet():
    barrier = Barrier(2, timeout=30)  # both parts must run at the same time
    threads.call_in_threads(lambda thread: barrier.wait(), 2)

meet()
child = os.fork()
if child == 0:
    try:
        meet()
    except BaseException:
        os._exit(1)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are not forked there")
def test_forked_processes_have_separate_threads():
    process = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], timeout=60, check=False)
    assert process.returncode == 0
