"""Exact nearest neighbours and full-depth ranks, compared with the matrix product that they need.

python -m benchmarks.search              wall and CPU seconds of all, at 10k x 100k x 384
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
    """Queries, a corpus and the relevant rows, at random; of length one, as most embedders give them."""

    queries: Matrix
    corpus: Matrix
    relevant: NDArray[np.int64]

    @classmethod
    def of_size(cls, quick: bool) -> Vectors:
        """The size of the target, or a hundredth of it."""
        queries, corpus = (1_000, 10_000) if quick else (10_000, 100_000)
        rng = np.random.default_rng(0)
        return cls(
            _unit(rng.standard_normal((queries, DIM), dtype=np.float32)),
            _unit(rng.standard_normal((corpus, DIM), dtype=np.float32)),
            np.sort(rng.integers(0, corpus // RELEVANT, (queries, RELEVANT)) * RELEVANT + np.arange(RELEVANT)),
        )

    @property
    def size(self) -> str:
        """As the tables name it."""
        return f"{len(self.queries) // 1000}k x {len(self.corpus) // 1000}k x {DIM}"


@dataclass(frozen=True, slots=True)
class Seconds:
    """The least wall time and the least CPU time of several tries."""

    wall: float
    cpu: float


def rows(quick: bool) -> list[Row]:
    """CPU seconds as ratios in one run, for a small search too, and the extra memory of each in a fresh process."""
    vectors = Vectors.of_size(quick)
    seconds = measured(vectors, times=5 if quick else 3)
    table = [] if quick else _small_rows()
    product = seconds.pop(PRODUCT)
    for name, work in OURS.items():
        task, mine = f"{work.task}, {vectors.size}", seconds.pop(name)
        table.append(_beside_product(task, mine, product, work.target))
        megabytes = number_printed_by("benchmarks.search", "--memory", name, *(["--quick"] if quick else []))
        table.append(Row(f"{task}, extra memory", megabytes, target=MEGABYTES_TARGET, goal="below", unit="MB"))
        if name == "dot":
            table += [Row(task, mine.cpu, peer, seconds[peer].cpu) for peer in PEERS if peer in seconds]
    return table


def _small_rows() -> list[Row]:
    """The same at a hundredth of the size, where what is not the product weighs more."""
    vectors = Vectors.of_size(quick=True)
    seconds = measured(vectors, times=15)
    return [
        _beside_product(f"{work.task}, {vectors.size}", seconds[name], seconds[PRODUCT], work.target)
        for name, work in OURS.items()
    ]


def _beside_product(task: str, mine: Seconds, product: Seconds, target: float) -> Row:
    note = f"{mine.wall / product.wall:.3g} x of its wall time"
    return Row(task, mine.cpu, PRODUCT, product.cpu, target, "within", note=note)


def measured(vectors: Vectors, times: int) -> dict[str, Seconds]:
    """All in turn, several times over, so that a busy machine slows all; peers once, where installed."""
    works: dict[str, Callable[[Vectors], object]] = {PRODUCT: product_alone}
    works |= {name: work.call for name, work in OURS.items()}
    works |= {name: work for name, (module, work) in PEERS.items() if find_spec(module)}
    wall: dict[str, list[float]] = {name: [] for name in works}
    cpu: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(times):
        for name, work in works.items():
            if turn and name in PEERS:
                continue
            started, used = perf_counter(), process_time()
            work(vectors)
            wall[name].append(perf_counter() - started)
            cpu[name].append(process_time() - used)
    return {name: Seconds(min(wall[name]), min(cpu[name])) for name in works}


def product_alone(vectors: Vectors) -> None:
    """The same product in the same blocks, its scores thrown away."""
    buffer = np.empty((QUERIES_AT_ONCE, POINTS_AT_ONCE), dtype=np.float32)
    for block in _blocks(vectors.queries, QUERIES_AT_ONCE):
        for part in _blocks(vectors.corpus, POINTS_AT_ONCE):
            np.matmul(block, part.T, out=buffer[: len(block), : len(part)])


def by_argpartition(vectors: Vectors) -> None:
    """The usual numpy way, in blocks of queries."""
    for block in _blocks(vectors.queries, 256):
        scores = block @ vectors.corpus.T
        best = np.argpartition(scores, -K, axis=1)[:, -K:]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        np.take_along_axis(best, order, axis=1)


def by_torch(vectors: Vectors) -> None:
    """torch.topk over blocks of queries."""
    import torch

    torch.set_num_threads(1)
    corpus = torch.from_numpy(vectors.corpus)
    for block in _blocks(vectors.queries, 256):
        torch.topk(torch.from_numpy(block) @ corpus.T, K, dim=1)


def by_sklearn(vectors: Vectors) -> None:
    """NearestNeighbors by brute force, euclidean: it knows no inner product."""
    from sklearn.neighbors import NearestNeighbors

    NearestNeighbors(n_neighbors=K, algorithm="brute").fit(vectors.corpus).kneighbors(vectors.queries)


def by_faiss(vectors: Vectors) -> None:
    """The flat index."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(DIM)
    index.add(vectors.corpus)
    index.search(vectors.queries, K)


@dataclass(frozen=True, slots=True)
class Ours:
    """One of our works: its line in the table, what it calls, and how near the product it should come."""

    task: str
    call: Callable[[Vectors], Any]
    target: float


def _nearest(geometry: str) -> Callable[[Vectors], Any]:
    return lambda vectors: nearest_neighbors(vectors.queries, vectors.corpus, K, geometry=geometry)


def _ranks(vectors: Vectors) -> Ranking:
    return Ranking.from_embeddings(vectors.queries, vectors.corpus, vectors.relevant, geometry="dot")


OURS = {
    "dot": Ours(f"exact top-{K} by dot", _nearest("dot"), TOP_TARGET),
    "cosine": Ours(f"exact top-{K} by cosine", _nearest("cosine"), TOP_TARGET),
    "ranks": Ours(f"full-depth ranks of {RELEVANT} relevant", _ranks, RANKS_TARGET),
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
    """Print wall and CPU seconds of everything, or the extra memory of one of ours."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small size")
    parser.add_argument("--memory", choices=OURS, help="only print the extra MB that this one takes")
    chosen = parser.parse_args()
    vectors = Vectors.of_size(chosen.quick)
    if chosen.memory:
        tracemalloc.start()
        OURS[chosen.memory].call(vectors)
        print(tracemalloc.get_traced_memory()[1] / 2**20)
        return
    taken = measured(vectors, times=5 if chosen.quick else 3)
    product = taken[PRODUCT]
    print(f"{vectors.size:44} {'wall s':>8} {'ratio':>6} {'CPU s':>8} {'ratio':>6}")
    for name, seconds in taken.items():
        task = OURS[name].task if name in OURS else name
        ratios = seconds.wall / product.wall, seconds.cpu / product.cpu
        print(f"{task:44} {seconds.wall:8.3f} {ratios[0]:6.3f} {seconds.cpu:8.3f} {ratios[1]:6.3f}")
    for name, work in OURS.items():
        megabytes = number_printed_by("benchmarks.search", "--memory", name, *(["--quick"] if chosen.quick else []))
        print(f"{work.task}, extra memory: {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
