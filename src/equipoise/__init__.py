"""Which embedding should I use for my data, and how sure can I be?

    from equipoise import Ranking, compare, evaluate

    ranking = Ranking.from_runs(qrels, run)
    evaluate(ranking, ["nDCG@10", "MRR", "HR@{1,3,5,10}"])

Names are imported when they are first used, so that ``import equipoise`` loads no other module of the package and no
numpy. ``scripts/write_stubs.py`` writes ``__init__.pyi`` for type checkers from the table below.
"""

from equipoise.lazy_imports import lazy_module

# The version, stated once. Reading it from the metadata of the installed package would slow down every start.
__version__ = "0.1.0"

PUBLIC_NAMES = {
    "BaseMetric": "equipoise.metrics.base",
    "BinaryEvaluator": "equipoise.domains.fair.compat",
    "Comparison": "equipoise.stats.comparison",
    "Dataset": "equipoise.io.dataset",
    "EquipoiseError": "equipoise.errors",
    "Estimate": "equipoise.stats.result",
    "Evidence": "equipoise.evidence.base",
    "Finding": "equipoise.types",
    "FixedSizeChunker": "equipoise.models.chunking",
    "Interval": "equipoise.stats.intervals",
    "Labels": "equipoise.evidence.labels",
    "Pairs": "equipoise.evidence.pairs",
    "Ranking": "equipoise.evidence.ranking",
    "RankingStream": "equipoise.evidence.ranking_from_scores",
    "Result": "equipoise.stats.result",
    "Sets": "equipoise.evidence.sets",
    "Space": "equipoise.evidence.space",
    "StatsConfig": "equipoise.config",
    "StoredRun": "equipoise.runs.run_folder",
    "accounts": "equipoise.accounts",
    "bench": "equipoise.bench",
    "compare": "equipoise.runs.compare",
    "concepts": "equipoise.concepts",
    "embedder": "equipoise.models.embedder",
    "evaluate": "equipoise.runs.evaluate",
    "fair": "equipoise.fair",
    "find_runs": "equipoise.runs.run_folder",
    "load_evidence": "equipoise.runs.run_folder",
    "load_run": "equipoise.runs.run_folder",
    "log_scores": "equipoise.runs.trackers",
    "nearest_neighbors": "equipoise.geometry.search",
    "optimize_model": "equipoise.domains.fair.experiment",
    "parse_metrics": "equipoise.metrics.parser",
    "phenotypes": "equipoise.phenotypes",
    "places": "equipoise.places",
    "read_unit_scores": "equipoise.io.unit_scores",
    "render_svg": "equipoise.report.charts.chart",
    "reranker": "equipoise.models.rerank",
    "retriever": "equipoise.models.retriever",
    "run_fair_comparison": "equipoise.domains.fair.experiment",
    "save_run": "equipoise.runs.run_folder",
    "shards": "equipoise.shards",
    "validate_fixture": "equipoise.domains.fair.validation",
    "wilson_interval": "equipoise.stats.intervals",
}

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
