"""Charts of accounts, and any other tree, by the names of their source."""

from equipoise.recipes.accounts.evaluate import evaluate_tree
from equipoise.recipes.accounts.evaluation import AccountsEvaluation
from equipoise.recipes.accounts.judged import Judged, judge
from equipoise.recipes.accounts.tester import AccountEmbedderTester

__all__ = ["AccountEmbedderTester", "AccountsEvaluation", "Judged", "evaluate_tree", "judge"]
