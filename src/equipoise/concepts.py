"""Concept evaluation: sentence embedding models on pairs, clusters, entities and relations of a domain.

Example::

    from equipoise.concepts import evaluate_concepts

    evaluation = evaluate_concepts(["minilm", "wordllama"])
    print(evaluation.summary)
    evaluation["minilm"]["semantic_similarity_score"]
"""

from equipoise.lazy_imports import lazy_module

PUBLIC_NAMES = {
    "CONCEPT_SCORES": "equipoise.domains.concepts.scores",
    "ConceptEvaluation": "equipoise.domains.concepts.results",
    "ConceptScore": "equipoise.domains.concepts.scores",
    "ConceptSet": "equipoise.domains.concepts.concept_set",
    "ScoreTerm": "equipoise.domains.concepts.scores",
    "evaluate_concepts": "equipoise.domains.concepts.experiment",
    "interpret_score": "equipoise.domains.concepts.scores",
    "read_concept_set": "equipoise.domains.concepts.concept_set_reader",
    "weight_sensitivity": "equipoise.domains.concepts.comparison",
}

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
