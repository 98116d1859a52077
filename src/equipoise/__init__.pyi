# Written by scripts/write_stubs.py from PUBLIC_NAMES. Do not edit.

from equipoise import accounts as accounts
from equipoise import bench as bench
from equipoise import concepts as concepts
from equipoise import fair as fair
from equipoise import phenotypes as phenotypes
from equipoise import places as places
from equipoise import shards as shards
from equipoise.config import StatsConfig as StatsConfig
from equipoise.domains.fair.compat import BinaryEvaluator as BinaryEvaluator
from equipoise.domains.fair.experiment import optimize_model as optimize_model
from equipoise.domains.fair.experiment import run_fair_comparison as run_fair_comparison
from equipoise.domains.fair.validation import validate_fixture as validate_fixture
from equipoise.errors import EquipoiseError as EquipoiseError
from equipoise.evidence.base import Evidence as Evidence
from equipoise.evidence.labels import Labels as Labels
from equipoise.evidence.pairs import Pairs as Pairs
from equipoise.evidence.ranking import Ranking as Ranking
from equipoise.evidence.ranking_from_scores import RankingStream as RankingStream
from equipoise.evidence.sets import Sets as Sets
from equipoise.evidence.space import Space as Space
from equipoise.geometry.search import nearest_neighbors as nearest_neighbors
from equipoise.io.dataset import Dataset as Dataset
from equipoise.io.unit_scores import read_unit_scores as read_unit_scores
from equipoise.metrics.base import BaseMetric as BaseMetric
from equipoise.metrics.parser import parse_metrics as parse_metrics
from equipoise.models.chunking import FixedSizeChunker as FixedSizeChunker
from equipoise.models.embedder import embedder as embedder
from equipoise.models.rerank import reranker as reranker
from equipoise.models.retriever import retriever as retriever
from equipoise.report.charts.chart import render_svg as render_svg
from equipoise.runs.compare import compare as compare
from equipoise.runs.evaluate import evaluate as evaluate
from equipoise.runs.run_folder import StoredRun as StoredRun
from equipoise.runs.run_folder import find_runs as find_runs
from equipoise.runs.run_folder import load_evidence as load_evidence
from equipoise.runs.run_folder import load_run as load_run
from equipoise.runs.run_folder import save_run as save_run
from equipoise.runs.trackers import log_scores as log_scores
from equipoise.stats.comparison import Comparison as Comparison
from equipoise.stats.intervals import Interval as Interval
from equipoise.stats.intervals import wilson_interval as wilson_interval
from equipoise.stats.result import Estimate as Estimate
from equipoise.stats.result import Result as Result
from equipoise.types import Finding as Finding

__version__: str
