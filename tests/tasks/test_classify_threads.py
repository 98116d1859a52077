"""Rows shared out among threads: each is counted once, and nobody can tell by whom."""

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
def crowd(monkeypatch):
    """So many threads, also for little work, each taking a few rows at a time."""

    def many(count):
        monkeypatch.setattr(rank_counts_llvm, "available_cores", lambda: count)
        monkeypatch.setattr(rank_counts_llvm, "MIN_BYTES_PER_THREAD", 1)
        monkeypatch.setattr(rank_counts_llvm, "BYTES_PER_CHUNK", 4 * WIDTH * 7)

    return many


def made(dtype=np.float32):
    """Scores that tie now and then."""
    rng = np.random.default_rng(0)
    scores = (rng.standard_normal((ROWS, WIDTH)) * 500).round().astype(dtype)
    return scores, rng.integers(1, WIDTH, ROWS)


def bytes_of(found):
    columns = found.ranking.to_arrays() | {f"label {k}": v for k, v in found.labels.to_arrays().items()}
    return {name: (column.dtype, column.tobytes()) for name, column in columns.items()}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", [{}, {"padding": 0}, {"block_bytes": 1 << 17}, {"probabilities": True}])
def test_no_byte_depends_on_the_number_of_threads(crowd, dtype, options):
    pytest.importorskip("llvmlite")
    scores, targets = made(dtype)
    alone = classify(scores, targets, compiled=True, **options)
    assert alone.ranking.has_ties
    for count in (2, 3, 16):
        crowd(count)
        together = classify(scores, targets, compiled=True, **options)
        assert bytes_of(together) == bytes_of(alone)
    assert bytes_of(classify(scores, targets, compiled=False, **options)) == bytes_of(alone)


def test_sums_and_meters_are_the_same_bytes_with_threads_and_without(crowd):
    pytest.importorskip("llvmlite")
    scores, targets = made()
    told = []
    for count in (1, 2, 5):
        crowd(count)
        meter = PlaceMeter(compiled=True)
        for start in range(0, ROWS, 300):
            meter.update(scores[start : start + 300], targets[start : start + 300])
        sums = calculate_correct_total_prediction(scores, targets, compiled=True)
        told.append((*(each.tobytes() for each in sums), meter.compute().fractions))
    assert told[0] == told[1] == told[2]


def test_the_first_row_with_a_nan_is_named_whoever_finds_one_first(crowd):
    pytest.importorskip("llvmlite")
    scores, targets = made()
    scores[[403, 40, 899], [0, 256, 100]] = np.nan
    crowd(4)
    for _ in range(20):
        with pytest.raises(NotFiniteError, match="row 40 "):
            classify(scores, targets, compiled=True)


def test_an_error_in_another_thread_is_raised_here():
    both = Barrier(2, timeout=30)

    def work(thread):
        both.wait()
        if thread:
            raise KeyError(thread)

    with pytest.raises(KeyError):
        rank_counts_llvm.call_in_threads(work, 2)


@pytest.mark.parametrize(
    ("name", "value", "most"),
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
def test_the_environment_says_how_many_threads_there_may_be(monkeypatch, name, value, most):
    for variable in rank_counts_llvm.THREAD_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    cores = rank_counts_llvm.available_cores.__wrapped__  # without the cache: a process reads the environment once
    free = cores()
    monkeypatch.setenv(name, value)
    assert cores() == (free if most is None else min(free, most))


def test_little_work_is_done_alone_and_much_by_all(monkeypatch):
    monkeypatch.setattr(rank_counts_llvm, "available_cores", lambda: 8)
    assert [rank_counts_llvm.threads_for(size << 20) for size in (0, 7, 8, 23, 80)] == [1, 1, 2, 5, 8]
    monkeypatch.setattr(rank_counts_llvm, "available_cores", lambda: 1)
    assert rank_counts_llvm.threads_for(80 << 20) == 1


FORKED = """
import os, sys
from threading import Barrier
from equipoise.evidence.kernels import rank_counts_llvm as threads

def meet():
    both = Barrier(2, timeout=30)  # neither part is done before another thread has the other
    threads.call_in_threads(lambda thread: both.wait(), 2)

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
def test_a_forked_process_has_threads_of_its_own():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], timeout=60, check=False)
    assert done.returncode == 0
