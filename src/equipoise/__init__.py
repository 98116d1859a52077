"""Which embedding should I use for my data, and how sure can I be?

    from equipoise import Ranking, compare, evaluate

    ranking = Ranking.from_runs(qrels, run)
    evaluate(ranking, ["nDCG@10", "MRR", "HR@{1,3,5,10}"])

Everything here is imported when it is first used, so that ``import equipoise`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.lazy import from_homes
from equipoise.version import __version__

if TYPE_CHECKING:
    from equipoise.data.dataset import Dataset
    from equipoise.embed.chunk.chunkers import FixedSizeChunker
    from equipoise.embed.model import embedder
    from equipoise.embed.retriever import retriever
    from equipoise.errors import EquipoiseError
    from equipoise.evidence.base import Evidence
    from equipoise.evidence.labels import Labels
    from equipoise.evidence.pairs import Pairs
    from equipoise.evidence.ranking import Ranking
    from equipoise.evidence.sets import Sets
    from equipoise.evidence.space import Space
    from equipoise.evidence.stream import RankingStream
    from equipoise.geometry.search import nearest
    from equipoise.metrics.base import BaseMetric
    from equipoise.metrics.parse import parse
    from equipoise.recipes.fair.compare import optimize_model, run_fair_comparison
    from equipoise.recipes.fair.evaluator import BinaryEvaluator
    from equipoise.recipes.fair.validation import validate_fixture
    from equipoise.run.evaluate import compare, evaluate
    from equipoise.run.manifest import Manifest
    from equipoise.run.store import StoredRun, load_evidence, read_run, write_run
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.interval import Interval
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Finding

_HOMES = {
    "BaseMetric": "equipoise.metrics.base",
    "BinaryEvaluator": "equipoise.recipes.fair.evaluator",
    "Comparison": "equipoise.stats.comparison",
    "Dataset": "equipoise.data.dataset",
    "EquipoiseError": "equipoise.errors",
    "Estimate": "equipoise.stats.result",
    "Evidence": "equipoise.evidence.base",
    "Finding": "equipoise.types",
    "FixedSizeChunker": "equipoise.embed.chunk.chunkers",
    "Interval": "equipoise.stats.interval",
    "Labels": "equipoise.evidence.labels",
    "Manifest": "equipoise.run.manifest",
    "Pairs": "equipoise.evidence.pairs",
    "Ranking": "equipoise.evidence.ranking",
    "RankingStream": "equipoise.evidence.stream",
    "Result": "equipoise.stats.result",
    "Sets": "equipoise.evidence.sets",
    "Space": "equipoise.evidence.space",
    "StoredRun": "equipoise.run.store",
    "compare": "equipoise.run.evaluate",
    "embedder": "equipoise.embed.model",
    "evaluate": "equipoise.run.evaluate",
    "load_evidence": "equipoise.run.store",
    "nearest": "equipoise.geometry.search",
    "optimize_model": "equipoise.recipes.fair.compare",
    "parse": "equipoise.metrics.parse",
    "read_run": "equipoise.run.store",
    "retriever": "equipoise.embed.retriever",
    "run_fair_comparison": "equipoise.recipes.fair.compare",
    "validate_fixture": "equipoise.recipes.fair.validation",
    "write_run": "equipoise.run.store",
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
    "nearest",
    "optimize_model",
    "parse",
    "read_run",
    "retriever",
    "run_fair_comparison",
    "validate_fixture",
    "write_run",
]


__getattr__ = from_homes(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
