"""The cache of vectors: how fast a second run is, and how much memory a large corpus takes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.row import Row
from benchmarks.timing import extra_megabytes, fastest, number_printed_by
from equipoise.models.embedder import embedder
from equipoise.models.encoder import Role
from equipoise.models.vector_cache import VectorCache

DIMS = 384
GOAL = 50_000
"""Vectors per second that a second run must reach, including the hashing of the texts."""


def rows(quick: bool) -> list[Row]:
    """Reading, writing, and a corpus with the static model."""
    return [*_cache(20_000 if quick else 100_000), *_corpus(100_000 if quick else 1_000_000)]


class GivenVectors:
    """A model with given vectors that fails if it is called again."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self.vectors = vectors
        self.finished = False

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """The vectors of the numbered texts."""
        assert not self.finished, "a text was embedded again"
        return self.vectors[[int(text.split()[2]) for text in texts]]


def _cache(count: int) -> list[Row]:
    vectors = np.random.default_rng(0).normal(size=(count, DIMS)).astype(np.float32)
    texts = [f"text number {number} of a corpus that was embedded before" for number in range(count)]
    stored = GivenVectors(vectors)
    with tempfile.TemporaryDirectory() as folder:
        cache = VectorCache(Path(folder) / "vectors.sqlite")
        model = embedder(stored, identity="stored", cache=cache)
        first_seconds, _ = fastest(lambda: model.embed(texts), times=1)
        stored.finished = True
        second_seconds, cached_vectors = fastest(lambda: model.embed(texts), times=4)
        assert cached_vectors.tobytes() == vectors.tobytes()
        request = (model.encoder.identity, model.variant(Role.DOCUMENT), texts, DIMS)
        read_seconds, rows_by_index = fastest(lambda: cache.get_many(*request), times=4)
        assert len(rows_by_index) == count
        cache.close()
    shape = f"{count:,} vectors of {DIMS} dimensions"
    return [
        _timed_row(f"second run of a model, all from the cache, {shape}", second_seconds, count, "byte-equal"),
        _timed_row(f"Cache.get_many, {shape}", read_seconds, count),
        Row(f"first run of a model that costs nothing, {shape}", first_seconds, note=_rate(count, first_seconds)),
    ]


def _timed_row(task: str, seconds: float, count: int, note: str = "") -> Row:
    note_text = ", ".join(filter(None, [_rate(count, seconds), note]))
    return Row(task, seconds, target=count / GOAL, goal="below", note=note_text)


def _rate(count: int, seconds: float) -> str:
    return f"{count / seconds:,.0f} vectors per second"


def _corpus(count: int) -> list[Row]:
    """Short texts embedded with WordLlama into a file, in a separate process."""
    from equipoise.models.backends.model_files import is_installed

    if not is_installed("wordllama"):
        return []
    megabytes = number_printed_by("benchmarks.cache", str(count))
    return [
        Row(
            f"memory, {count:,} short texts through the static model into a file",
            megabytes,
            target=1.5 * 1024,
            goal="below",
            unit="MB",
        )
    ]


def megabytes_of_corpus(count: int) -> float:
    """The memory for embedding this number of texts, including cache and file."""
    from equipoise.models.corpus import embed_to_file

    with tempfile.TemporaryDirectory() as folder:

        def work() -> None:
            model = embedder("wordllama", cache=VectorCache(Path(folder) / "vectors.sqlite"))
            texts = (f"short text number {number} about subject {number % 977}" for number in range(count))
            embed_to_file(texts, model, Path(folder) / "vectors.npz")

        return extra_megabytes(work)


if __name__ == "__main__":
    print(megabytes_of_corpus(int(sys.argv[1])))
