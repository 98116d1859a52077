"""Checks of how vectors came about: the cache, the model's window, the index."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.base import Complaint, counted
from equipoise.checks.subjects import Window
from equipoise.embed.cache.cache import Cache
from equipoise.embed.retriever import Fitted
from equipoise.stats.numbers import count, figure

LOST_RECALL = 0.01


def cache_trouble(cache: Cache) -> Iterator[Complaint]:
    """EQ150: the file of the cache cannot be used, or parts of it could not be trusted."""
    for trouble in cache.troubles:
        yield Complaint(trouble.subject, trouble.sentence, (str(cache.path),), trouble.remedy)


def beyond_the_window(window: Window) -> Iterator[Complaint]:
    """EQ151: texts that the model reads only in part."""
    if window.truncated:
        reads = f"{count(window.tokens)} tokens" if window.tokens is not None else "its window"
        yield Complaint(
            window.model,
            f"of {counted(window.texts, 'text')}, {count(window.truncated)} exceed {reads}; "
            f"{counted(window.lost_tokens or 0, 'token')} of them were not read",
            (f"{figure(window.truncated / window.texts, 4)} of the texts",),
        )


def index_loss(system: Fitted) -> Iterator[Complaint]:
    """EQ152: the approximate index behind a system misses what an exact search finds."""
    recall = system.index_recall
    if recall is not None and recall.recall < 1 - LOST_RECALL:
        yield Complaint(
            "the index",
            f"it returns {figure(recall.recall, 4)} of the {recall.k} nearest on average, "
            f"{figure(recall.worst, 4)} in the worst case",
            (f"{count(recall.complete)} of {counted(len(recall.per_query), 'query')} complete",),
        )
