# Written by scripts/write_stubs.py from PUBLIC_NAMES. Do not edit.

from equipoise.domains.bench.base_data import BenchData as BenchData
from equipoise.domains.bench.experiment import compare as compare
from equipoise.domains.bench.leaderboard import LeaderboardAnalysis as LeaderboardAnalysis
from equipoise.domains.bench.leaderboard import LeaderboardEntry as LeaderboardEntry
from equipoise.domains.bench.leaderboard import leaderboard as leaderboard
from equipoise.domains.bench.read_data import read_data as read_data
from equipoise.domains.bench.results import BenchComparison as BenchComparison
from equipoise.domains.bench.retrieval_data import Reranking as Reranking
from equipoise.domains.bench.retrieval_data import Retrieval as Retrieval
from equipoise.domains.bench.text_data import Bitext as Bitext
from equipoise.domains.bench.text_data import Classification as Classification
from equipoise.domains.bench.text_data import Clustering as Clustering
from equipoise.domains.bench.text_data import PairClassification as PairClassification
from equipoise.domains.bench.text_data import Similarity as Similarity
from equipoise.domains.bench.training_evaluator import evaluator as evaluator
