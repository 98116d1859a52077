"""Which embedding should I use for my data, and how sure can I be?

    from equipoise import Ranking, compare, evaluate

    ranking = Ranking.from_runs(qrels, run)
    evaluate(ranking, ["nDCG@10", "MRR", "HR@{1,3,5,10}"])

Everything here is imported when it is first used, so that ``import equipoise`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.lazy import lazy_attributes

if TYPE_CHECKING:
    from equipoise.domains.fair.compat import BinaryEvaluator
    from equipoise.domains.fair.experiment import optimize_model, run_fair_comparison
    from equipoise.domains.fair.validation import validate_fixture
    from equipoise.errors import EquipoiseError
    from equipoise.evidence.base import Evidence
    from equipoise.evidence.labels import Labels
    from equipoise.evidence.pairs import Pairs
    from equipoise.evidence.ranking import Ranking
    from equipoise.evidence.ranking_from_scores import RankingStream
    from equipoise.evidence.sets import Sets
    from equipoise.evidence.space import Space
    from equipoise.geometry.search import nearest_neighbors
    from equipoise.io.dataset import Dataset
    from equipoise.metrics.base import BaseMetric
    from equipoise.metrics.parser import parse_metrics
    from equipoise.models.chunking import FixedSizeChunker
    from equipoise.models.embedder import embedder
    from equipoise.models.retriever import retriever
    from equipoise.runs.compare import compare
    from equipoise.runs.evaluate import evaluate
    from equipoise.runs.manifest import Manifest
    from equipoise.runs.store import StoredRun, load_evidence, load_run, save_run
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.intervals import Interval
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Finding

# The version, stated once; asking the installed package for it would slow every start down.

__version__ = "0.1.0"


_HOMES = {
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
    "Manifest": "equipoise.runs.manifest",
    "Pairs": "equipoise.evidence.pairs",
    "Ranking": "equipoise.evidence.ranking",
    "RankingStream": "equipoise.evidence.ranking_from_scores",
    "Result": "equipoise.stats.result",
    "Sets": "equipoise.evidence.sets",
    "Space": "equipoise.evidence.space",
    "StoredRun": "equipoise.runs.store",
    "compare": "equipoise.runs.compare",
    "embedder": "equipoise.models.embedder",
    "evaluate": "equipoise.runs.evaluate",
    "load_evidence": "equipoise.runs.store",
    "nearest_neighbors": "equipoise.geometry.search",
    "optimize_model": "equipoise.domains.fair.experiment",
    "parse_metrics": "equipoise.metrics.parser",
    "load_run": "equipoise.runs.store",
    "retriever": "equipoise.models.retriever",
    "run_fair_comparison": "equipoise.domains.fair.experiment",
    "validate_fixture": "equipoise.domains.fair.validation",
    "save_run": "equipoise.runs.store",
}

__all__ = [
    "BaseMetric",
    "BinaryEvaluator",
    "Comparison",
    "Dataset",
    "EquipoiseError",
    "Estimate",
    "Evidence",
    "Finding",
    "FixedSizeChunker",
    "Interval",
    "Labels",
    "Manifest",
    "Pairs",
    "Ranking",
    "RankingStream",
    "Result",
    "Sets",
    "Space",
    "StoredRun",
    "__version__",
    "compare",
    "embedder",
    "evaluate",
    "load_evidence",
    "load_run",
    "nearest_neighbors",
    "optimize_model",
    "parse_metrics",
    "retriever",
    "run_fair_comparison",
    "save_run",
    "validate_fixture",
]


__getattr__ = lazy_attributes(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
