"""21 ranking metrics from dicts and from arrays, compared with pytrec_eval and ranx."""

from __future__ import annotations

import os
import sys
from tempfile import TemporaryDirectory
from unittest.mock import patch

from benchmarks import peers
from benchmarks.retrieval import SIZES, Results, size_name
from benchmarks.row import Row
from benchmarks.timing import fastest, number_printed_by, seconds_of
from equipoise.evidence.ranking import Ranking

TREC_TARGET, RANX_TARGET, ARRAYS_TARGET, DEEP_ARRAYS_TARGET = 5.0, 15.0, 5.0, 2.0
LESS_MEMORY = 4.0


def rows(quick: bool) -> list[Row]:
    """Time and memory for each size; the smallest two when ``quick``."""
    sizes = SIZES[:2] if quick else SIZES
    _warm_up()
    table = [row for size in sizes for row in _from_dicts(size, times=3 if quick else 5)]
    table += [_memory(size) for size in sizes]
    table += [_from_arrays(size, times=5 if quick else 9) for size in sizes]
    return table if quick else [*table, _cold_ranx()]


def _warm_up() -> None:
    """Compile ranx with a first call, which ``_cold_ranx`` measures."""
    small = Results.of_size(20, 20, 3)
    peers.by_ranx(*small.as_dicts())
    peers.by_ranx_from_arrays(*small.as_pairs())


def _from_dicts(size: tuple[int, int, int], times: int) -> list[Row]:
    qrels, run = Results.of_size(*size).as_dicts()
    # Calls of both packages alternate in one process, so that other load slows both.
    our_seconds, values = fastest(lambda: peers.by_equipoise(Ranking.from_runs(qrels, run)), times=times)
    trec_seconds, trec_values = fastest(lambda: peers.by_pytrec_eval(qrels, run), times=max(2, times - 2))
    our_second_seconds, _ = fastest(lambda: peers.by_equipoise(Ranking.from_runs(qrels, run)), times=times)
    ranx_seconds, ranx_values = fastest(lambda: peers.by_ranx(qrels, run), times=2)
    matrix = peers.matrix_of_equipoise(values)
    peers.check_equal(matrix, peers.matrix_of_pytrec_eval(trec_values), "pytrec_eval")
    peers.check_equal(matrix, peers.matrix_of_ranx(ranx_values), "ranx")
    task, our_seconds = f"21 metrics from dicts, {size_name(*size)}", min(our_seconds, our_second_seconds)
    return [
        Row(task, our_seconds, "pytrec_eval", trec_seconds, TREC_TARGET),
        Row(task, our_seconds, "ranx, compiled", ranx_seconds, RANX_TARGET),
    ]


def _memory(size: tuple[int, int, int]) -> Row:
    our_megabytes, peer_megabytes = (
        number_printed_by("benchmarks.memory", program, *map(str, size)) for program in ("equipoise", "pytrec_eval")
    )
    task = f"extra memory of the same, {size_name(*size)}"
    return Row(task, our_megabytes, "pytrec_eval", peer_megabytes, LESS_MEMORY, unit="MB")


def _from_arrays(size: tuple[int, int, int], times: int) -> Row:
    results = Results.of_size(*size)
    pairs = results.as_pairs()
    ranx_seconds, ranx_values = fastest(lambda: peers.by_ranx_from_arrays(*pairs), times=times)
    our_seconds, values = fastest(
        lambda: peers.by_equipoise(Ranking.from_lists(results.retrieved, results.relevant)), times=times
    )
    peers.check_equal(peers.matrix_of_equipoise(values), peers.matrix_of_ranx(ranx_values), "ranx")
    target = DEEP_ARRAYS_TARGET if size[1] >= 1_000 else ARRAYS_TARGET
    return Row(f"21 metrics from arrays, {size_name(*size)}", our_seconds, "ranx, compiled", ranx_seconds, target)


def _cold_ranx() -> Row:
    """The first call of each package in a process, without compiled code."""
    program = "from benchmarks import peers, retrieval as r; d = r.Results.of_size(100, 20, 3).as_dicts(); "
    peer_command = [sys.executable, "-c", program + "peers.by_ranx(*d)"]
    our_command = [sys.executable, "-c", program + "peers.by_equipoise(peers.Ranking.from_runs(*d))"]
    with TemporaryDirectory() as empty, patch.dict(os.environ, NUMBA_CACHE_DIR=empty):
        seconds = seconds_of(peer_command, times=1, cold=True)
    return Row("first call, 100 x 20 x 3, wall", seconds_of(our_command, times=3), "ranx, not compiled", seconds)
