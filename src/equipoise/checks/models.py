"""Checks of how vectors came about: the cache, the model's window, the index."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.base import Check, Observation, TruncationStats, pluralize
from equipoise.models.cache import VectorCache
from equipoise.models.retriever import FittedRetriever
from equipoise.stats.formatting import format_count, format_value
from equipoise.types import Severity

MAX_RECALL_LOSS = 0.01


def cache_problem(cache: VectorCache) -> Iterator[Observation]:
    """EQ150: the file of the cache cannot be used, or parts of it could not be trusted."""
    for trouble in cache.troubles:
        yield Observation(trouble.subject, trouble.message, (str(cache.path),), trouble.hint)


def truncated_texts(window: TruncationStats) -> Iterator[Observation]:
    """EQ151: texts that the model reads only in part."""
    if window.truncated:
        reads = f"{format_count(window.tokens)} tokens" if window.tokens is not None else "its window"
        yield Observation(
            window.model,
            f"of {pluralize(window.texts, 'text')}, {format_count(window.truncated)} exceed {reads}; "
            f"{pluralize(window.lost_tokens or 0, 'token')} of them were not read",
            (f"{format_value(window.truncated / window.texts, 4)} of the texts",),
        )


def low_index_recall(system: FittedRetriever) -> Iterator[Observation]:
    """EQ152: the approximate index behind a system misses what an exact search finds."""
    recall = system.index_recall
    if recall is not None and recall.recall < 1 - MAX_RECALL_LOSS:
        yield Observation(
            "the index",
            f"it returns {format_value(recall.recall, 4)} of the {recall.k} nearest on average, "
            f"{format_value(recall.worst, 4)} in the worst case",
            (f"{format_count(recall.complete)} of {pluralize(len(recall.per_query), 'query')} complete",),
        )


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ150",
        title="the vector cache cannot be used",
        severity=Severity.TIP,
        applies_to=VectorCache,
        function=cache_problem,
        why="""\
Vectors are kept so that nothing is embedded twice. Where the file cannot be written or is damaged, they
are computed anew and not kept: the figures are the same, and the work is done again each time.""",
        hint="make the folder writable, or set EQUIPOISE_CACHE to another one",
        example="""\
import numpy
from equipoise.checks.registry import run_checks
from equipoise.models.cache import VectorCache
from equipoise.models.retriever import FittedRetriever
cache = VectorCache("/dev/null/a file is no folder")
cache.put_many("model", "query", ["text"], numpy.ones((1, 2), dtype="float32"))
run_checks(cache)""",
    ),
    Check(
        code="EQ151",
        title="texts beyond the model's window",
        severity=Severity.TIP,
        applies_to=TruncationStats,
        function=truncated_texts,
        why="""\
A model reads a fixed number of tokens and silently drops the rest. An answer that stands in the dropped part
cannot be found by its vector, and a model with a larger window then wins for a reason that has
nothing to do with how well it understands.""",
        hint="split the texts into chunks that fit, or take a model that reads more",
        example="""\
from equipoise.checks.registry import run_checks
from equipoise.checks.base import TruncationStats
run_checks(TruncationStats("minilm", tokens=256, texts=100, truncated=12, lost_tokens=3400))""",
    ),
    Check(
        code="EQ152",
        title="the index misses what exact search finds",
        severity=Severity.TIP,
        applies_to=FittedRetriever,
        function=low_index_recall,
        why="""\
An approximate index trades some of the nearest neighbours for speed. What it misses lowers every score of the
system, and without this figure the loss would be put down to the model.""",
        hint="search exactly while comparing models, or raise the index's effort",
        example="""\
import numpy
from equipoise import retriever
from equipoise.checks.registry import run_checks
from equipoise.models.stores.recall import IndexRecall
from equipoise.types import Severity
system = retriever("hash").fit(["rye", "wheat"])  # with store="faiss:hnsw", search measures the recall
system.index_recall = IndexRecall(10, numpy.array([1.0, 0.9, 0.7]))
run_checks(system)""",
    ),
)
