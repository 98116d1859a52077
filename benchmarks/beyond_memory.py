"""Exact search and full-depth ranks over shards on disk: seconds and peak memory as the corpus grows.

python -m benchmarks beyond_memory              up to 5,000,000 vectors: about 8 GB of disk and half an hour
python -m benchmarks.beyond_memory 500000       one size, printed as JSON

Every size runs in a separate process, with two threads for the shards and one per matrix product. The CPU time
per pair of query and vector is constant if the time grows linearly with the corpus.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

from benchmarks.row import Row
from benchmarks.timing import peak_kilobytes
from equipoise.evidence.ranking_from_vectors import ranking_from_shards
from equipoise.geometry.sharded_search import nearest_in_shards
from equipoise.geometry.shards import open_shards, write_shards

DIMS, K, QUERIES, THREADS = 384, 10, 1_000, 2
SIZES, QUICK = (500_000, 1_000_000, 2_000_000, 5_000_000), (20_000, 40_000, 80_000)
LIMIT = 4096
"""Maximum memory of the largest corpus in MB."""

_BLOCK = 50_000


@dataclass(frozen=True, slots=True)
class Cost:
    """Times and memory of one size; memory is the peak of the whole process."""

    vectors: int
    kind: str
    gigabytes: float
    top_seconds: float
    top_cpu: float
    rank_seconds: float
    rank_cpu: float
    megabytes: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The formatted cells in the columns of ``HEAD``."""
        pairs = self.vectors * QUERIES / 1e9
        return (
            f"{self.vectors:,}",
            self.kind,
            f"{self.gigabytes:.2f}",
            f"{self.top_seconds:.1f}",
            f"{self.top_cpu / pairs:.1f}",
            f"{self.rank_seconds:.1f}",
            f"{self.rank_cpu / pairs:.1f}",
            f"{self.megabytes:.0f}",
        )


HEAD = (
    "vectors",
    "stored as",
    "GB on disk",
    f"top {K} of {QUERIES:,} queries, s",
    "CPU ns per pair",
    "full-depth ranks, s",
    "CPU ns per pair",
    "peak memory, MB",
)


def rows(quick: bool) -> list[Row]:
    """The peak memory of the largest corpus, with a target below 4 GiB."""
    largest = all_costs(QUICK if quick else SIZES)[-2]
    task = f"memory, {largest.vectors:,} x {DIMS} float32 in shards, top {K} and ranks"
    note = f"{largest.gigabytes:.1f} GB on disk"
    return [Row(task, largest.megabytes, target=LIMIT, goal="below", unit="MB", note=note)]


def curve(quick: bool) -> list[tuple[str, ...]]:
    """One line per size, the largest also as int8."""
    return [HEAD, *(cost.cells for cost in all_costs(QUICK if quick else SIZES))]


@cache
def all_costs(sizes: tuple[int, ...]) -> list[Cost]:
    """All sizes as float32, then the largest as int8."""
    return [cost_of(size, "float32") for size in sizes] + [cost_of(sizes[-1], "int8")]


def cost_of(vectors: int, kind: str) -> Cost:
    """Write the shards, and search them in a new process to measure its peak memory."""
    with TemporaryDirectory() as folder:
        location = Path(folder)
        write_shards(location / "shards", blocks(vectors), kind=kind)
        size = sum(file.stat().st_size for file in (location / "shards").iterdir())
        command = [sys.executable, "-m", "benchmarks.beyond_memory", str(location / "shards")]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        root = Path(__file__).parents[1]
        completed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root, env=environment)
        return Cost(vectors=vectors, kind=kind, gigabytes=size / 1e9, **json.loads(completed.stdout))


def blocks(vectors: int) -> Iterator[NDArray[np.float32]]:
    """Vectors near a subspace of 32 dimensions, like embeddings of texts, generated in blocks."""
    basis = np.random.default_rng(0).normal(size=(32, DIMS)).astype(np.float32)
    for first in range(0, vectors, _BLOCK):
        rng = np.random.default_rng([1, first])
        size = min(_BLOCK, vectors - first)
        noise = rng.standard_normal(size=(size, DIMS), dtype=np.float32)
        yield rng.standard_normal(size=(size, 32), dtype=np.float32) @ basis + noise


def search(folder: str) -> dict[str, float]:
    """Search the top 10 and the rank of one relevant vector per query, and measure the peak memory of this process."""
    shards = open_shards(folder)
    queries = next(blocks(_BLOCK))[:QUERIES] + np.float32(0.5)
    top_times = timed(lambda: nearest_in_shards(queries, shards, K, threads=THREADS))
    relevant = np.random.default_rng(2).integers(0, len(shards), size=QUERIES)
    rank_times = timed(lambda: ranking_from_shards(queries, shards, relevant, threads=THREADS))
    return {
        "top_seconds": top_times[0],
        "top_cpu": top_times[1],
        "rank_seconds": rank_times[0],
        "rank_cpu": rank_times[1],
        "megabytes": peak_kilobytes() / 1024,
    }


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds of a call; only wall seconds depend on other processes."""
    wall, cpu = perf_counter(), process_time()
    work()
    return perf_counter() - wall, process_time() - cpu


def main() -> None:
    """Search a folder (in a subprocess), or measure one size."""
    command = sys.argv[1]
    if command.isdecimal():
        for kind in ("float32", "int8"):
            print(json.dumps(asdict(cost_of(int(command), kind))))
    else:
        print(json.dumps(search(command)))


if __name__ == "__main__":
    main()
