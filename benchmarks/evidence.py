"""21 metrics from dicts of dicts and from arrays: ours, pytrec_eval, ranx."""

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
    """ranx compiles on its first call, which is measured apart."""
    small = Results.of_size(20, 20, 3)
    peers.by_ranx(*small.as_dicts())
    peers.by_ranx_from_arrays(*small.as_pairs())


def _from_dicts(size: tuple[int, int, int], times: int) -> list[Row]:
    qrels, run = Results.of_size(*size).as_dicts()
    # A peer's turn and ours alternate in one process, so that a busy machine slows both.
    mine, values = fastest(lambda: peers.ours(Ranking.from_runs(qrels, run)), times=times)
    trec, by_trec = fastest(lambda: peers.by_pytrec_eval(qrels, run), times=max(2, times - 2))
    again, _ = fastest(lambda: peers.ours(Ranking.from_runs(qrels, run)), times=times)
    ranx, by_ranx = fastest(lambda: peers.by_ranx(qrels, run), times=2)
    matrix = peers.matrix_of_ours(values)
    peers.refuse_difference(matrix, peers.matrix_of_pytrec_eval(by_trec), "pytrec_eval")
    peers.refuse_difference(matrix, peers.matrix_of_ranx(by_ranx), "ranx")
    task, mine = f"21 metrics from dicts, {size_name(*size)}", min(mine, again)
    return [
        Row(task, mine, "pytrec_eval", trec, TREC_TARGET),
        Row(task, mine, "ranx, compiled", ranx, RANX_TARGET),
    ]


def _memory(size: tuple[int, int, int]) -> Row:
    mine, theirs = (
        number_printed_by("benchmarks.memory", program, *map(str, size)) for program in ("ours", "pytrec_eval")
    )
    task = f"extra memory of the same, {size_name(*size)}"
    return Row(task, mine, "pytrec_eval", theirs, LESS_MEMORY, unit="MB")


def _from_arrays(size: tuple[int, int, int], times: int) -> Row:
    results = Results.of_size(*size)
    pairs = results.as_pairs()
    ranx, by_ranx = fastest(lambda: peers.by_ranx_from_arrays(*pairs), times=times)
    mine, values = fastest(lambda: peers.ours(Ranking.from_lists(results.retrieved, results.relevant)), times=times)
    peers.refuse_difference(peers.matrix_of_ours(values), peers.matrix_of_ranx(by_ranx), "ranx")
    target = DEEP_ARRAYS_TARGET if size[1] >= 1_000 else ARRAYS_TARGET
    return Row(f"21 metrics from arrays, {size_name(*size)}", mine, "ranx, compiled", ranx, target)


def _cold_ranx() -> Row:
    """The first call of either in a process, with nothing compiled before."""
    program = "from benchmarks import peers, retrieval as r; d = r.Results.of_size(100, 20, 3).as_dicts(); "
    theirs = [sys.executable, "-c", program + "peers.by_ranx(*d)"]
    ours = [sys.executable, "-c", program + "peers.ours(peers.Ranking.from_runs(*d))"]
    with TemporaryDirectory() as empty, patch.dict(os.environ, NUMBA_CACHE_DIR=empty):
        seconds = seconds_of(theirs, times=1, cold=True)
    return Row("first call, 100 x 20 x 3, wall", seconds_of(ours, times=3), "ranx, not compiled", seconds)
