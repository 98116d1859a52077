"""Fair comparison of embedding models on your own document, with all the names that its source has.

    from equipoise.recipes.fair import run_fair_comparison

    for r in run_fair_comparison(["st:bge-base", "bm25:"], text, qa_pairs):
        print(r.model_name, r.nested_accuracy, r.best_accuracy, r.best_params)

The parts are here too: ``FixedSizeChunker``, ``SentenceTransformerEmbedding``, ``OpenAIEmbedding``,
``InMemoryVectorStore``, ``BinaryEvaluator`` and ``validate_fixture``. Everything is imported when it is
first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.lazy import from_homes

if TYPE_CHECKING:
    from equipoise.embed.chunk.chunkers import FixedSizeChunker
    from equipoise.embed.stores.compat import InMemoryVectorStore
    from equipoise.recipes.fair.compare import optimize_model, run_fair_comparison
    from equipoise.recipes.fair.embedding import OpenAIEmbedding, SentenceTransformerEmbedding
    from equipoise.recipes.fair.evaluator import BinaryEvaluator
    from equipoise.recipes.fair.result import OptimizationResult
    from equipoise.recipes.fair.validation import validate_fixture

_HOMES = {
    "BinaryEvaluator": "equipoise.recipes.fair.evaluator",
    "FixedSizeChunker": "equipoise.embed.chunk.chunkers",
    "InMemoryVectorStore": "equipoise.embed.stores.compat",
    "OpenAIEmbedding": "equipoise.recipes.fair.embedding",
    "OptimizationResult": "equipoise.recipes.fair.result",
    "SentenceTransformerEmbedding": "equipoise.recipes.fair.embedding",
    "optimize_model": "equipoise.recipes.fair.compare",
    "run_fair_comparison": "equipoise.recipes.fair.compare",
    "validate_fixture": "equipoise.recipes.fair.validation",
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

__getattr__ = from_homes(__name__, _HOMES)
