"""Exact nearest neighbours and full-depth ranks, compared with the matrix product that they need.

python -m benchmarks.search              wall and CPU seconds of all searches, at 10k x 100k x 384
python -m benchmarks.search --quick      a tenth of the queries and of the corpus
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.row import Row
from benchmarks.timing import number_printed_by
from equipoise.evidence.ranking import Ranking
from equipoise.geometry.search import nearest_neighbors

Matrix = NDArray[np.float32]
K, DIM, RELEVANT = 100, 384, 5
QUERIES_AT_ONCE, POINTS_AT_ONCE = 4096, 1024
TOP_TARGET, RANKS_TARGET, MEGABYTES_TARGET = 1.15, 1.5, 200.0
PRODUCT = "numpy, the blocked matrix product alone"


@dataclass(frozen=True, slots=True)
class Vectors:
    """Random unit vectors of queries and of a corpus, and the relevant rows."""

    queries: Matrix
    corpus: Matrix
    relevant: NDArray[np.int64]

    @classmethod
    def of_size(cls, quick: bool) -> Vectors:
        """Vectors of the target size, or of a hundredth of it."""
        queries, corpus = (1_000, 10_000) if quick else (10_000, 100_000)
        rng = np.random.default_rng(0)
        return cls(
            _unit(rng.standard_normal((queries, DIM), dtype=np.float32)),
            _unit(rng.standard_normal((corpus, DIM), dtype=np.float32)),
            np.sort(rng.integers(0, corpus // RELEVANT, (queries, RELEVANT)) * RELEVANT + np.arange(RELEVANT)),
        )

    @property
    def size(self) -> str:
        """The size in the names of the tasks."""
        return f"{len(self.queries) // 1000}k x {len(self.corpus) // 1000}k x {DIM}"


@dataclass(frozen=True, slots=True)
class Seconds:
    """Minimum wall time and minimum CPU time of several repetitions."""

    wall: float
    cpu: float


def rows(quick: bool) -> list[Row]:
    """CPU seconds as ratios in one run, also for a small search, and the extra memory in a new process."""
    vectors = Vectors.of_size(quick)
    seconds = measure(vectors, times=5 if quick else 3)
    table = [] if quick else _small_rows()
    product = seconds.pop(PRODUCT)
    for name, search in SEARCHES.items():
        task, our_seconds = f"{search.task}, {vectors.size}", seconds.pop(name)
        table.append(_row_with_product(task, our_seconds, product, search.target))
        megabytes = number_printed_by("benchmarks.search", "--memory", name, *(["--quick"] if quick else []))
        table.append(Row(f"{task}, extra memory", megabytes, target=MEGABYTES_TARGET, goal="below", unit="MB"))
        if name == "dot":
            table += [Row(task, our_seconds.cpu, peer, seconds[peer].cpu) for peer in PEERS if peer in seconds]
    return table


def _small_rows() -> list[Row]:
    """The same at a hundredth of the size, where the time outside the product has more weight."""
    vectors = Vectors.of_size(quick=True)
    seconds = measure(vectors, times=15)
    return [
        _row_with_product(f"{search.task}, {vectors.size}", seconds[name], seconds[PRODUCT], search.target)
        for name, search in SEARCHES.items()
    ]


def _row_with_product(task: str, our_seconds: Seconds, product_seconds: Seconds, target: float) -> Row:
    note = f"{our_seconds.wall / product_seconds.wall:.3g} x of its wall time"
    return Row(task, our_seconds.cpu, PRODUCT, product_seconds.cpu, target, "within", note=note)


def measure(vectors: Vectors, times: int) -> dict[str, Seconds]:
    """Repeat all searches in alternation, so that other load affects all of them; run installed peers once."""
    searches: dict[str, Callable[[Vectors], object]] = {PRODUCT: product_alone}
    searches |= {name: search.call for name, search in SEARCHES.items()}
    searches |= {name: search for name, (module, search) in PEERS.items() if find_spec(module)}
    wall: dict[str, list[float]] = {name: [] for name in searches}
    cpu: dict[str, list[float]] = {name: [] for name in searches}
    for repetition in range(times):
        for name, search in searches.items():
            if repetition and name in PEERS:
                continue
            wall_start, cpu_start = perf_counter(), process_time()
            search(vectors)
            wall[name].append(perf_counter() - wall_start)
            cpu[name].append(process_time() - cpu_start)
    return {name: Seconds(min(wall[name]), min(cpu[name])) for name in searches}


def product_alone(vectors: Vectors) -> None:
    """The same product in the same blocks, without using its scores."""
    buffer = np.empty((QUERIES_AT_ONCE, POINTS_AT_ONCE), dtype=np.float32)
    for block in _blocks(vectors.queries, QUERIES_AT_ONCE):
        for columns in _blocks(vectors.corpus, POINTS_AT_ONCE):
            np.matmul(block, columns.T, out=buffer[: len(block), : len(columns)])


def by_argpartition(vectors: Vectors) -> None:
    """Matrix product and argpartition over blocks of queries."""
    for block in _blocks(vectors.queries, 256):
        scores = block @ vectors.corpus.T
        top_indices = np.argpartition(scores, -K, axis=1)[:, -K:]
        order = np.argsort(-np.take_along_axis(scores, top_indices, axis=1), axis=1)
        np.take_along_axis(top_indices, order, axis=1)


def by_torch(vectors: Vectors) -> None:
    """torch.topk over blocks of queries."""
    import torch

    torch.set_num_threads(1)
    corpus = torch.from_numpy(vectors.corpus)
    for block in _blocks(vectors.queries, 256):
        torch.topk(torch.from_numpy(block) @ corpus.T, K, dim=1)


def by_sklearn(vectors: Vectors) -> None:
    """NearestNeighbors with brute force and Euclidean distance, because it has no inner product."""
    from sklearn.neighbors import NearestNeighbors

    NearestNeighbors(n_neighbors=K, algorithm="brute").fit(vectors.corpus).kneighbors(vectors.queries)


def by_faiss(vectors: Vectors) -> None:
    """The flat index of faiss."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(DIM)
    index.add(vectors.corpus)
    index.search(vectors.queries, K)


@dataclass(frozen=True, slots=True)
class TimedSearch:
    """A search of this package: the name of its task, its function, and the target ratio to the product."""

    task: str
    call: Callable[[Vectors], Any]
    target: float


def _nearest(geometry: str) -> Callable[[Vectors], Any]:
    return lambda vectors: nearest_neighbors(vectors.queries, vectors.corpus, K, geometry=geometry)


def _ranks(vectors: Vectors) -> Ranking:
    return Ranking.from_embeddings(vectors.queries, vectors.corpus, vectors.relevant, geometry="dot")


SEARCHES = {
    "dot": TimedSearch(f"exact top-{K} by dot", _nearest("dot"), TOP_TARGET),
    "cosine": TimedSearch(f"exact top-{K} by cosine", _nearest("cosine"), TOP_TARGET),
    "ranks": TimedSearch(f"full-depth ranks of {RELEVANT} relevant", _ranks, RANKS_TARGET),
}
PEERS = {
    "torch.topk over blocks": ("torch", by_torch),
    "numpy.argpartition over blocks": ("numpy", by_argpartition),
    "scikit-learn NearestNeighbors, brute force": ("sklearn", by_sklearn),
    "faiss IndexFlatIP": ("faiss", by_faiss),
}


def _unit(matrix: Matrix) -> Matrix:
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix


def _blocks(matrix: Matrix, size: int) -> list[Matrix]:
    return [matrix[start : start + size] for start in range(0, len(matrix), size)]


def main() -> None:
    """Print wall and CPU seconds of all searches, or the extra memory of one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small size")
    parser.add_argument("--memory", choices=SEARCHES, help="only print the extra memory of this search in MB")
    options = parser.parse_args()
    vectors = Vectors.of_size(options.quick)
    if options.memory:
        tracemalloc.start()
        SEARCHES[options.memory].call(vectors)
        print(tracemalloc.get_traced_memory()[1] / 2**20)
        return
    seconds_by_name = measure(vectors, times=5 if options.quick else 3)
    product = seconds_by_name[PRODUCT]
    print(f"{vectors.size:44} {'wall s':>8} {'ratio':>6} {'CPU s':>8} {'ratio':>6}")
    for name, seconds in seconds_by_name.items():
        task = SEARCHES[name].task if name in SEARCHES else name
        ratios = seconds.wall / product.wall, seconds.cpu / product.cpu
        print(f"{task:44} {seconds.wall:8.3f} {ratios[0]:6.3f} {seconds.cpu:8.3f} {ratios[1]:6.3f}")
    for name, search in SEARCHES.items():
        megabytes = number_printed_by("benchmarks.search", "--memory", name, *(["--quick"] if options.quick else []))
        print(f"{search.task}, extra memory: {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
