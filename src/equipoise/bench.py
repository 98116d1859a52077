"""A benchmark of embedding models on your own data, and statistics of published leaderboards.

from equipoise import bench

comparison = bench.compare(models=["minilm", my_model], data=["support/", "faq.csv"])
print(comparison.decision)
"""

from equipoise.lazy_imports import lazy_module

PUBLIC_NAMES = {
    "BenchComparison": "equipoise.domains.bench.results",
    "BenchData": "equipoise.domains.bench.base_data",
    "Bitext": "equipoise.domains.bench.text_data",
    "Classification": "equipoise.domains.bench.text_data",
    "Clustering": "equipoise.domains.bench.text_data",
    "LeaderboardAnalysis": "equipoise.domains.bench.leaderboard",
    "LeaderboardEntry": "equipoise.domains.bench.leaderboard",
    "PairClassification": "equipoise.domains.bench.text_data",
    "Reranking": "equipoise.domains.bench.retrieval_data",
    "Retrieval": "equipoise.domains.bench.retrieval_data",
    "Similarity": "equipoise.domains.bench.text_data",
    "compare": "equipoise.domains.bench.experiment",
    "evaluator": "equipoise.domains.bench.training_evaluator",
    "leaderboard": "equipoise.domains.bench.leaderboard",
    "read_data": "equipoise.domains.bench.read_data",
}

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
