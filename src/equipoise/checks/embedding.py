"""Checks of how vectors came about: the cache, the model's window, the index."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.base import Check, Complaint, counted
from equipoise.checks.subjects import Window
from equipoise.embed.cache.cache import Cache
from equipoise.embed.retriever import Fitted
from equipoise.stats.numbers import count, figure
from equipoise.types import Severity

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


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ150",
        title="the vector cache cannot be used",
        severity=Severity.TIP,
        applies_to=Cache,
        function=cache_trouble,
        why="""\
Vectors are kept so that nothing is embedded twice. Where the file cannot be written or is damaged, they
are computed anew and not kept: the figures are the same, and the work is done again each time.""",
        remedy="make the folder writable, or set EQUIPOISE_CACHE to another one",
        example="""\
import numpy
from equipoise.checks.catalogue import examine
from equipoise.embed.cache.cache import Cache
from equipoise.embed.retriever import Fitted
cache = Cache("/dev/null/a file is no folder")
cache.put_many("model", "query", ["text"], numpy.ones((1, 2), dtype="float32"))
examine(cache)""",
    ),
    Check(
        code="EQ151",
        title="texts beyond the model's window",
        severity=Severity.TIP,
        applies_to=Window,
        function=beyond_the_window,
        why="""\
A model reads a fixed number of tokens and silently drops the rest. An answer that stands in the dropped part
cannot be found by its vector, and a model with a larger window then wins for a reason that has
nothing to do with how well it understands.""",
        remedy="split the texts into chunks that fit, or take a model that reads more",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.subjects import Window
examine(Window("minilm", tokens=256, texts=100, truncated=12, lost_tokens=3400))""",
    ),
    Check(
        code="EQ152",
        title="the index misses what exact search finds",
        severity=Severity.TIP,
        applies_to=Fitted,
        function=index_loss,
        why="""\
An approximate index trades some of the nearest neighbours for speed. What it misses lowers every score of the
system, and without this figure the loss would be put down to the model.""",
        remedy="search exactly while comparing models, or raise the index's effort",
        example="""\
import numpy
from equipoise import retriever
from equipoise.checks.catalogue import examine
from equipoise.embed.stores.recall import RecallReport
from equipoise.types import Severity
system = retriever("hash").fit(["rye", "wheat"])  # with store="faiss:hnsw", search measures the recall
system.index_recall = RecallReport(10, numpy.array([1.0, 0.9, 0.7]))
examine(system)""",
    ),
)
