"""Concepts: what a sentence model knows of a field, in five scores and what lies behind them.

    from equipoise.domains.concepts.experiment import evaluate_concepts

    found = evaluate_concepts(["minilm", "wordllama"])
    print(found.summary)
    found["minilm"]["semantic_similarity_score"]

Everything is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.lazy import lazy_attributes

if TYPE_CHECKING:
    from equipoise.domains.concepts.comparison import weight_sensitivity
    from equipoise.domains.concepts.experiment import evaluate_concepts
    from equipoise.domains.concepts.results import ConceptEvaluation
    from equipoise.domains.concepts.scores import CONCEPT_SCORES, ConceptScore, ScoreTerm, interpret_score

_HOMES = {
    "CONCEPT_SCORES": "equipoise.domains.concepts.scores",
    "ConceptScore": "equipoise.domains.concepts.scores",
    "ConceptEvaluation": "equipoise.domains.concepts.results",
    "ScoreTerm": "equipoise.domains.concepts.scores",
    "evaluate_concepts": "equipoise.domains.concepts.experiment",
    "interpret_score": "equipoise.domains.concepts.scores",
    "weight_sensitivity": "equipoise.domains.concepts.comparison",
}

__all__ = [
    "CONCEPT_SCORES",
    "ConceptEvaluation",
    "ConceptScore",
    "ScoreTerm",
    "evaluate_concepts",
    "interpret_score",
    "weight_sensitivity",
]

__getattr__ = lazy_attributes(__name__, _HOMES)
