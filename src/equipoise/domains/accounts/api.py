"""Charts of accounts, and any other tree, by the names of their source."""

from equipoise.domains.accounts.evaluation import EmbeddingEvaluation, evaluate_embedding
from equipoise.domains.accounts.experiment import evaluate_tree
from equipoise.domains.accounts.results import AccountsEvaluation
from equipoise.domains.accounts.tester import AccountEmbedderTester

__all__ = [
    "AccountEmbedderTester",
    "AccountsEvaluation",
    "EmbeddingEvaluation",
    "evaluate_embedding",
    "evaluate_tree",
]
