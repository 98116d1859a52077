"""Fair comparison: embedding models on your own document and questions.

    from equipoise.fair import run_fair_comparison

    for result in run_fair_comparison(["st:bge-base", "bm25:"], text, qa_pairs):
        print(result.model_name, result.nested_accuracy, result.best_accuracy, result.best_params)

The names of the package embedding-eval are here too: ``FixedSizeChunker``, ``SentenceTransformerEmbedding``,
``OpenAIEmbedding``, ``InMemoryVectorStore``, ``BinaryEvaluator`` and ``validate_fixture``.
"""

from equipoise.lazy_imports import lazy_module

PUBLIC_NAMES = {
    "AnswerIssue": "equipoise.domains.fair.answer_verification",
    "BinaryEvaluator": "equipoise.domains.fair.compat",
    "DraftSet": "equipoise.domains.fair.draft",
    "EvaluationScore": "equipoise.domains.fair.compat",
    "FairComparison": "equipoise.domains.fair.results",
    "FairConfig": "equipoise.domains.fair.config",
    "FixedSizeChunker": "equipoise.models.chunking",
    "InMemoryVectorStore": "equipoise.domains.fair.compat",
    "OpenAIEmbedding": "equipoise.domains.fair.compat",
    "OptimizationResult": "equipoise.domains.fair.results",
    "QuestionAnswer": "equipoise.domains.fair.questions",
    "SentenceTransformerEmbedding": "equipoise.domains.fair.compat",
    "ValidationResult": "equipoise.domains.fair.validation",
    "draft_questions": "equipoise.domains.fair.draft",
    "optimize_model": "equipoise.domains.fair.experiment",
    "read_questions": "equipoise.domains.fair.questions",
    "run_fair_comparison": "equipoise.domains.fair.experiment",
    "timekeeping": "equipoise.domains.fair.questions",
    "validate_fixture": "equipoise.domains.fair.validation",
}

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
