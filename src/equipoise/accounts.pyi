# Written by scripts/write_stubs.py from PUBLIC_NAMES. Do not edit.

from equipoise.domains.accounts.embedders import TreeEmbedder as TreeEmbedder
from equipoise.domains.accounts.embedders import tree_embedder as tree_embedder
from equipoise.domains.accounts.evaluation import EmbeddingEvaluation as EmbeddingEvaluation
from equipoise.domains.accounts.evaluation import evaluate_embedding as evaluate_embedding
from equipoise.domains.accounts.experiment import evaluate_tree as evaluate_tree
from equipoise.domains.accounts.results import AccountsEvaluation as AccountsEvaluation
from equipoise.domains.accounts.tester import AccountEmbedderTester as AccountEmbedderTester
from equipoise.domains.accounts.training.trainer import TrainingConfig as TrainingConfig
from equipoise.domains.accounts.trees.files import from_codes as from_codes
from equipoise.domains.accounts.trees.files import read_codes as read_codes
from equipoise.domains.accounts.trees.files import read_edges as read_edges
from equipoise.domains.accounts.trees.files import read_json as read_json
from equipoise.domains.accounts.trees.files import read_table as read_table
from equipoise.domains.accounts.trees.formats import from_networkx as from_networkx
from equipoise.domains.accounts.trees.formats import read_gnucash as read_gnucash
from equipoise.domains.accounts.trees.formats import read_obo_tree as read_obo_tree
from equipoise.domains.accounts.trees.formats import read_wordnet as read_wordnet
from equipoise.domains.accounts.trees.read import read_tree as read_tree
from equipoise.domains.accounts.trees.sql import TableColumns as TableColumns
from equipoise.domains.accounts.trees.sql import read_sql as read_sql
from equipoise.domains.accounts.trees.tree import Tree as Tree
from equipoise.domains.accounts.vectors import NodeVectors as NodeVectors
from equipoise.domains.accounts.vectors import read_node_vectors as read_node_vectors
