"""Concepts: what a sentence model knows of a field, in five scores and what lies behind them.

    from equipoise.recipes.concepts import evaluate_concepts

    found = evaluate_concepts(["minilm", "wordllama"])
    print(found.summary)
    found["minilm"]["semantic_similarity_score"]

Everything is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.lazy import from_homes

if TYPE_CHECKING:
    from equipoise.recipes.concepts.blends import BLENDS, Blend, Term
    from equipoise.recipes.concepts.evaluate import evaluate_concepts
    from equipoise.recipes.concepts.evaluation import ConceptEvaluation
    from equipoise.recipes.concepts.readings import reading
    from equipoise.recipes.concepts.weighing import winning_shares

_HOMES = {
    "BLENDS": "equipoise.recipes.concepts.blends",
    "Blend": "equipoise.recipes.concepts.blends",
    "ConceptEvaluation": "equipoise.recipes.concepts.evaluation",
    "Term": "equipoise.recipes.concepts.blends",
    "evaluate_concepts": "equipoise.recipes.concepts.evaluate",
    "reading": "equipoise.recipes.concepts.readings",
    "winning_shares": "equipoise.recipes.concepts.weighing",
}

__all__ = [
    "BLENDS",
    "Blend",
    "ConceptEvaluation",
    "Term",
    "evaluate_concepts",
    "reading",
    "winning_shares",
]

__getattr__ = from_homes(__name__, _HOMES)
