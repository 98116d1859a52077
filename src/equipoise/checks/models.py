"""Checks of models: the vector cache, truncated texts, and the recall of an index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from equipoise.checks.base import Check, Observation, pluralize
from equipoise.models.cache import VectorCache
from equipoise.models.retriever import FittedRetriever
from equipoise.stats.formatting import format_count, format_value
from equipoise.types import Severity

MAX_RECALL_LOSS = 0.01


@dataclass(frozen=True)
class TruncationStats:
    """Truncation by the input window of a model: the window, the texts and what was truncated; None is unknown."""

    model: str
    tokens: int | None
    texts: int
    truncated: int | None
    lost_tokens: int | None


def cache_problem(cache: VectorCache) -> Iterator[Observation]:
    """EQ150: the file of the cache cannot be used, or parts of it failed verification."""
    for trouble in cache.troubles:
        yield Observation(trouble.subject, trouble.message, (str(cache.path),), trouble.hint)


def truncated_texts(window: TruncationStats) -> Iterator[Observation]:
    """EQ151: texts longer than the input window of the model."""
    if window.truncated:
        reads = f"{format_count(window.tokens)} tokens" if window.tokens is not None else "its window"
        yield Observation(
            window.model,
            f"of {pluralize(window.texts, 'text')}, {format_count(window.truncated)} exceed {reads}; "
            f"{pluralize(window.lost_tokens or 0, 'token')} of them were not read",
            (f"{format_value(window.truncated / window.texts, 4)} of the texts",),
        )


def low_index_recall(system: FittedRetriever) -> Iterator[Observation]:
    """EQ152: the approximate index of a system misses what an exact search finds."""
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
Vectors are cached so that no text is embedded twice. If the file cannot be written or is damaged, they
are computed again and not stored: the scores are the same, but each run repeats the work.""",
        hint="make the folder writable, or set EQUIPOISE_CACHE to another folder",
        example="""\
import numpy
from equipoise.checks.base import run_checks
from equipoise.models.cache import VectorCache
from equipoise.models.retriever import FittedRetriever
cache = VectorCache("/dev/null/a file is no folder")
cache.put_many("model", "query", ["text"], numpy.ones((1, 2), dtype="float32"))
run_checks(cache)""",
    ),
    Check(
        code="EQ151",
        title="texts longer than the model's input window",
        severity=Severity.TIP,
        applies_to=TruncationStats,
        function=truncated_texts,
        why="""\
A model reads a fixed number of tokens and drops the rest without a message. An answer in the dropped part
cannot be found by its vector, and a model with a larger window then scores higher for a reason
other than embedding quality.""",
        hint="split the texts into chunks that fit, or use a model with a larger window",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.checks.models import TruncationStats
run_checks(TruncationStats("minilm", tokens=256, texts=100, truncated=12, lost_tokens=3400))""",
    ),
    Check(
        code="EQ152",
        title="low recall of the index",
        severity=Severity.TIP,
        applies_to=FittedRetriever,
        function=low_index_recall,
        why="""\
An approximate index trades some of the nearest neighbours for speed. What it misses lowers every score of the
system, and without this value the loss would be attributed to the model.""",
        hint="use exact search to compare models, or raise the search effort of the index",
        example="""\
import numpy
from equipoise import retriever
from equipoise.checks.base import run_checks
from equipoise.models.stores.recall import IndexRecall
from equipoise.types import Severity
system = retriever("hash").fit(["rye", "wheat"])  # with store="faiss:hnsw", search measures the recall
system.index_recall = IndexRecall(10, numpy.array([1.0, 0.9, 0.7]))
run_checks(system)""",
    ),
)
