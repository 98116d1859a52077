"""On an NVIDIA GPU: what share of its matrix rate and bandwidth search, ranks and training reach.

python -m benchmarks.gpu [MODEL_FOLDER] [VECTORS.npz ...]     prints the page benchmarks/gpu.md

A model folder is one that sentence-transformers reads. A file of vectors holds ``start`` (points of the
hyperboloid, time first) and ``closure`` (pairs of places).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from benchmarks.places import gpu_rows
from benchmarks.timing import seconds_on_gpu
from equipoise.domains.accounts.training.torch_backend import FullSoftmaxConfig, train_full_softmax
from equipoise.evidence.ranking_from_vectors import ranking_from_points_on
from equipoise.geometry.gpu_prefilter import PrefilteredCorpus
from equipoise.geometry.gpu_search import GpuSearch, top_k_gpu
from equipoise.geometry.spaces import geometry
from equipoise.io.dag import Rows
from equipoise.models.embedder import Embedder, embedder
from equipoise.models.vector_cache import VectorCache

SIDE = 8192
CORPUS, QUERIES, DIMS, K, LARGE_K = 1_000_000, 10_000, 384, 100, 1000
GEOMETRIES = ("dot", "cosine", "euclidean", "poincare", "lorentz")
EPOCHS = 5
WORD_ENDS = ("n", "r", "st", "ter", "ning", "ration", "ed")
TEXTS = (
    "20,000 mixed texts of 5 to 250 words and 40,000 short ones of 5 to 20; calls after the first, which also starts "
    "the processes that tokenise."
)
OF_A_COPY = (
    "Percentages are of a copy of the same tensor, read and written, measured for each size: "
    "a small copy is slower than the large one above."
)


def main() -> None:
    """Measure everything, and print it as a page."""
    import torch

    print(
        f"# On a GPU\n\n{torch.cuda.get_device_name()}, torch {torch.__version__}; "
        "wall seconds, the minimum of several runs. Printed by `python -m benchmarks.gpu`.\n"
    )
    rates = {name: _matrix_rate(name) for name in ("full", "tf32", "bf16")}
    copied = _copy_rate()
    print("## The machine\n")
    _table(
        ["what", "rate"],
        [
            *(
                [f"matrix product of {SIDE:,} x {SIDE:,}, {name}", f"{rate / 1e12:.0f} TFLOP/s"]
                for name, rate in rates.items()
            ),
            ["copy on the device, read and written", f"{copied / 1e9:,.0f} GB/s"],
        ],
    )
    print("## Exact search\n")
    _table(
        ["task", "seconds", "share of the matrix rate", "share of the copy rate"],
        [
            *(line for geometry in GEOMETRIES for line in _prefiltered_search(geometry, rates["bf16"], copied)),
            *(_search(name, rates[name], copied) for name in rates),
        ],
    )
    print(f"## Logits\n\n{OF_A_COPY}\n", flush=True)
    _table(["task", "seconds", "note"], [[row.task, f"{row.ours:.3g}", row.note] for row in gpu_rows()])
    for path in sys.argv[1:]:
        if Path(path).is_dir():
            print(f"## Embedding\n\n{TEXTS}\n")
            _table(["task", "mixed, texts per second", "short, texts per second"], _embedding(path))
            continue
        print(f"## {path.rpartition('/')[2]}\n")
        _table(["task", "seconds", "found"], _tree(path))


def _table(head: list[str], lines: list[list[str]]) -> None:
    for line in (head, ["---"] * len(head), *lines):
        print("| " + " | ".join(line) + " |", flush=True)
    print()


def _matrix_rate(precision: str) -> float:
    """Multiplications and additions per second of a large square product."""
    import torch

    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    left, right = (torch.randn((SIDE, SIDE), device="cuda", dtype=kind) for _ in range(2))
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    seconds = seconds_on_gpu(lambda: left @ right)
    torch.set_float32_matmul_precision("highest")
    return 2 * SIDE**3 / seconds


def _copy_rate() -> float:
    import torch

    source = torch.empty(1 << 30, device="cuda", dtype=torch.float32)
    target = torch.empty_like(source)
    return 2 * source.nbytes / seconds_on_gpu(lambda: target.copy_(source))


def _prefiltered_search(geometry: str, rate: float, copied: float) -> list[list[str]]:
    """The exact search that screens in float16, of queries against a corpus that lies on the device."""
    corpus, queries = (_points(geometry, count, seed) for seed, count in enumerate((CORPUS, QUERIES)))
    search, left = GpuSearch.of(queries, corpus, geometry, "cuda", "full")
    prefiltered = PrefilteredCorpus.of(search.corpus, left)
    kind = str(search.corpus.dtype).removeprefix("torch.")
    work, moved = 2 * CORPUS * QUERIES * DIMS, 2.0 * CORPUS * QUERIES
    lines = []
    for k in (K, LARGE_K):
        *_, left_to_do = prefiltered.nearest(left, k)
        seconds = seconds_on_gpu(partial(prefiltered.nearest, left, k), times=5)
        note = f", {len(left_to_do):,} queries left to the full product" if len(left_to_do) else ""
        task = f"top {k} of {QUERIES / 1000:g}k x {CORPUS / 1e6:g}M x {DIMS}, {geometry}, {kind} by a float16 screen"
        rates = [f"{work / seconds / rate:.0%} of bf16", f"{moved / seconds / copied:.0%}, writing the bounds once"]
        lines.append([f"{task}{note}", f"{seconds:.3g}", *rates])
    return lines


def _points(geometry: str, count: int, seed: int) -> NDArray[np.float32]:
    """Points of the geometry with normally distributed coordinates."""
    points = np.random.default_rng(seed).standard_normal((count, DIMS), dtype=np.float32)
    if geometry == "poincare":
        points /= 1.0 + np.linalg.norm(points, axis=1, keepdims=True)
    if geometry == "lorentz":
        points *= DIMS**-0.5
        points[:, 0] = np.sqrt(1.0 + np.square(points[:, 1:]).sum(axis=1))
    return points


def _search(precision: str, rate: float, copied: float) -> list[str]:
    """The product, and the selection of the best, of queries against a corpus that lies on the device."""
    import torch

    rng = np.random.default_rng(0)
    corpus = rng.standard_normal((CORPUS, DIMS), dtype=np.float32)
    queries = rng.standard_normal((QUERIES, DIMS), dtype=np.float32)
    search, left = GpuSearch.of(queries, corpus, "dot", "cuda", precision)

    def best() -> None:
        for _, block in search.blocks(left, 8 << 30):
            top_k_gpu(block, K)

    seconds = seconds_on_gpu(best, times=3)
    work, moved = 2 * CORPUS * QUERIES * DIMS, 4.0 * CORPUS * QUERIES
    peak = torch.cuda.max_memory_allocated() / 1e9
    task = f"top {K} of {QUERIES / 1000:g}k x {CORPUS / 1e6:g}M x {DIMS}, {precision} (peak {peak:.0f} GB)"
    return [
        task,
        f"{seconds:.3g}",
        f"{work / seconds / rate:.0%}",
        f"{moved / seconds / copied:.0%}, writing the scores once",
    ]


def _embedding(folder: str) -> list[list[str]]:
    """Texts per second of this package and of sentence-transformers, which encodes fewer texts at batch 32."""
    import torch
    from sentence_transformers import SentenceTransformer

    rng = np.random.default_rng(0)
    words = np.array([f"{letter}{vowel}{end}" for letter in "bcdfgklmnprst" for vowel in "aeiou" for end in WORD_ENDS])
    mixed = [" ".join(rng.choice(words, n)) for n in rng.integers(5, 251, 20_000)]
    short = [" ".join(rng.choice(words, n)) for n in rng.integers(5, 21, 40_000)]
    rows = []
    for title, options in (("equipoise", {}), ("equipoise, float32", {"precision": "float32"})):
        with embedder(f"st:{folder}", cache=False, device="cuda", **options) as model:
            rates = [_rate(texts, model.embed) for texts in (mixed, short)]
            rows.append([f"{title}: {model.card.device}, no cache", *rates])
        if not options:
            rows.append([f"{title}: with the cache", *(_cached_rate(folder, texts) for texts in (mixed, short))])
    for precision in ("float32", "bfloat16", "float16"):
        peer = SentenceTransformer(folder, device="cuda").to(getattr(torch, precision))
        for batch in (32, 1024):
            encode = partial(peer.encode, batch_size=batch, show_progress_bar=False)
            rates = [_rate(texts[: 256 * batch], encode, times=2) for texts in (mixed, short)]
            rows.append(
                [f"sentence-transformers {version('sentence-transformers')}: {precision}, batch {batch}", *rates]
            )
    return rows


def _rate(texts: list[str], work: Callable[[list[str]], object], times: int = 4) -> str:
    """The highest number of texts per second of several calls, after one call that warms up."""
    return f"{len(texts) / seconds_on_gpu(lambda: work(texts), times=times):,.0f}"


def _cached_rate(folder: str, texts: list[str]) -> str:
    """With every vector written to an empty cache."""
    seconds = []
    with TemporaryDirectory() as caches, embedder(f"st:{folder}", cache=False, device="cuda") as model:
        model.embed(texts)
        for number in range(3):
            with VectorCache(Path(caches) / f"{number}.sqlite") as cache:
                start = perf_counter()
                Embedder(model.encoder, model.spec, cache=cache).embed(texts)
                seconds.append(perf_counter() - start)
    return f"{len(texts) / min(seconds):,.0f}"


def _tree(path: str) -> list[list[str]]:
    """The evaluation of a hierarchy, and some epochs of its training."""
    held = np.load(path)
    points, closure = held["start"], held["closure"].astype(np.int64)
    pairs = np.concatenate([closure, closure[:, ::-1]])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    seconds = seconds_on_gpu(lambda: ranking_from_points_on("cuda", points, pairs, geometry("lorentz")), times=2)
    ranking = ranking_from_points_on("cuda", points, pairs, geometry("lorentz"))
    mean = float(np.mean(ranking.ranks))
    rows = [
        [
            f"ranks of {len(pairs):,} targets among {len(points):,} nodes",
            f"{seconds:.3g}",
            f"raw mean rank {mean:,.1f}",
        ]
    ]
    relatives = Rows.of_pairs(len(points), pairs)
    start = perf_counter()
    _, history = train_full_softmax(points, relatives, FullSoftmaxConfig(epochs=EPOCHS, learning_rate=0.01))
    seconds_per_epoch = (perf_counter() - start) / EPOCHS
    cells = float(len(points)) ** 2
    note = (
        f"{cells / seconds_per_epoch / 1e9:,.1f} billion pairs per second; loss {history[0]:.3f} to {history[-1]:.3f}"
    )
    return [*rows, ["one epoch of training, every node against all others", f"{seconds_per_epoch:.3g}", note]]


if __name__ == "__main__":
    main()
