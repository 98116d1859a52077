"""The components of terms in Chroma, from its default settings to those with a recall of nearly 1.

Chroma searches an approximate graph index. Its recall grows with ``ef_search`` and with the number of requested
components. Only settings with a recall of nearly 1 answer the question of the exact search, so only those have the
target; the others are printed for information.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import fastest
from equipoise.domains.phenotypes.index.files import ComponentKind, TermTexts
from equipoise.geometry.base import PointArray
from equipoise.models.encoder import Vectors

MIN_RECALL = 0.999
TARGET = 5.0


class Setting(NamedTuple):
    """``ef`` is ef_search of Chroma (default 100), ``depth`` the number of components per query."""

    ef: int
    depth: int
    filtered: bool = False


ALL = tuple(Setting(*sizes) for sizes in [(100, 50), (100, 200), (100, 1_000), (100, 2_000)])
ALL += tuple(Setting(100, depth, filtered=True) for depth in (50, 200))
ALL += tuple(Setting(ef, depth) for ef in (400, 600, 800, 1_600) for depth in (50, 200))
NAMES = (Setting(100, 200), *(Setting(ef, 50) for ef in (100, 400, 600, 800, 1_600, 3_200)))
"""Settings for a collection without definitions, which this strategy does not read."""


def chroma_rows(
    texts: TermTexts, corpus: Vectors, queries: Vectors, best: PointArray, ours: Row, plain: float
) -> list[Row]:
    """The best terms among the components returned by Chroma, with all queries in one batch.

    ``best`` are the exact scores of the best terms; ``plain`` are the seconds of the search without torch.
    """
    k, lines = best.shape[1], []
    for name, size, settings in [
        ("", len(texts), ALL),
        (", a collection without definitions", texts.without_definitions, NAMES),
    ]:
        for setting, seconds, hits in _search_settings(texts, corpus[:size], queries, settings):
            recall = _recall(texts, hits, best)
            setting_text = f"ef_search {setting.ef:,}, {setting.depth:,} components{name}"
            lines.append(
                replace(
                    ours,
                    peer=f"chromadb, {setting_text}{', definitions filtered' * setting.filtered}",
                    theirs=seconds,
                    target=TARGET if recall >= MIN_RECALL else None,
                    goal="faster",
                    note=f"Chroma finds {recall:.4f} of the best {k}; without torch {seconds / plain:.3g} x",
                )
            )
    sufficient = [line for line in lines if line.target is not None]
    if sufficient:
        cheapest = min(sufficient, key=lambda line: line.theirs or 0.0)
        lines[lines.index(cheapest)] = replace(cheapest, note=f"{cheapest.note}; its cheapest of {MIN_RECALL}")
    return lines


def _search_settings(
    texts: TermTexts, corpus: Vectors, queries: Vectors, settings: Sequence[Setting]
) -> Iterator[tuple[Setting, float, Any]]:
    """The seconds and the results of each setting."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        _fill(Path(folder), texts, corpus)
        # A collection uses a changed ef_search after it is opened again.
        for ef, group in groupby(settings, key=lambda setting: setting.ef):
            with _collection(folder) as collection:
                collection.modify(configuration={"hnsw": {"ef_search": ef}})
            with _collection(folder) as collection:
                collection.query(query_embeddings=queries[:1], n_results=1)
                for setting in group:
                    filter_options = (
                        {"where": {"kind": {"$ne": int(ComponentKind.DEFINITION)}}} if setting.filtered else {}
                    )
                    request = {"query_embeddings": queries, "n_results": setting.depth, "include": ["distances"]}
                    seconds, hits = fastest(partial(collection.query, **request, **filter_options), times=2)
                    yield setting, seconds, hits


def _fill(folder: Path, texts: TermTexts, corpus: Vectors, block_size: int = 5_000) -> None:
    with _client(str(folder)) as client:
        collection = client.create_collection("terms", embedding_function=None, configuration={"hnsw": {"space": "ip"}})
        for first in range(0, len(corpus), block_size):
            block = range(first, min(first + block_size, len(corpus)))
            collection.add(
                ids=[str(number) for number in block],
                embeddings=corpus[block.start : block.stop],
                metadatas=[{"kind": int(texts.kind[number])} for number in block],
            )


@contextmanager
def _collection(folder: str) -> Iterator[Any]:
    with _client(folder) as client:
        yield client.get_collection("terms", embedding_function=None)


@contextmanager
def _client(folder: str) -> Iterator[Any]:
    import chromadb
    from chromadb.config import Settings

    client: Any = chromadb.PersistentClient(folder, Settings(anonymized_telemetry=False))
    try:
        yield client
    finally:
        client.close()


def _recall(texts: TermTexts, hits: Any, best: PointArray) -> float:
    """The fraction of the first terms whose scores equal the exact ones; tied terms count."""
    recalls = []
    for names, distances, scores in zip(hits["ids"], hits["distances"], best, strict=True):
        columns = np.array(names, dtype=np.int64)
        is_name = texts.kind[columns] != ComponentKind.DEFINITION
        _, first_rows = np.unique(texts.term[columns[is_name]], return_index=True)
        similarities = 1.0 - np.array(distances)[is_name][np.sort(first_rows)[: len(scores)]]
        recalls.append((similarities >= scores[-1] - 1e-5).sum() / len(scores))
    return float(np.mean(recalls))
