"""Fair comparison of embedding models on your own document, with all the names that its source has.

    from equipoise.domains.fair.experiment import run_fair_comparison

    for r in run_fair_comparison(["st:bge-base", "bm25:"], text, qa_pairs):
        print(r.model_name, r.nested_accuracy, r.best_accuracy, r.best_params)

The parts are here too: ``FixedSizeChunker``, ``SentenceTransformerEmbedding``, ``OpenAIEmbedding``,
``InMemoryVectorStore``, ``BinaryEvaluator`` and ``validate_fixture``. Everything is imported when it is
first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.lazy import lazy_attributes

if TYPE_CHECKING:
    from equipoise.domains.fair.compat import (
        BinaryEvaluator,
        InMemoryVectorStore,
        OpenAIEmbedding,
        SentenceTransformerEmbedding,
    )
    from equipoise.domains.fair.experiment import optimize_model, run_fair_comparison
    from equipoise.domains.fair.model_result import OptimizationResult
    from equipoise.domains.fair.validation import validate_fixture
    from equipoise.models.chunking import FixedSizeChunker

_HOMES = {
    "BinaryEvaluator": "equipoise.domains.fair.compat",
    "FixedSizeChunker": "equipoise.models.chunking",
    "InMemoryVectorStore": "equipoise.domains.fair.compat",
    "OpenAIEmbedding": "equipoise.domains.fair.compat",
    "OptimizationResult": "equipoise.domains.fair.model_result",
    "SentenceTransformerEmbedding": "equipoise.domains.fair.compat",
    "optimize_model": "equipoise.domains.fair.experiment",
    "run_fair_comparison": "equipoise.domains.fair.experiment",
    "validate_fixture": "equipoise.domains.fair.validation",
}

__all__ = [
    "BinaryEvaluator",
    "FixedSizeChunker",
    "InMemoryVectorStore",
    "OpenAIEmbedding",
    "OptimizationResult",
    "SentenceTransformerEmbedding",
    "optimize_model",
    "run_fair_comparison",
    "validate_fixture",
]

__getattr__ = lazy_attributes(__name__, _HOMES)
