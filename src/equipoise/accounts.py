"""Tree embedding: charts of accounts and other trees.

Example::

    from equipoise.accounts import evaluate_tree, read_tree

    print(evaluate_tree(read_tree("accounts.csv"), "lorentz", dims=(2, 5)))
"""

from equipoise.lazy_imports import lazy_module

PUBLIC_NAMES = {
    "AccountEmbedderTester": "equipoise.domains.accounts.tester",
    "AccountPlacer": "equipoise.domains.accounts.placement",
    "AccountsEvaluation": "equipoise.domains.accounts.results",
    "EmbeddingEvaluation": "equipoise.domains.accounts.evaluation",
    "NodeVectors": "equipoise.domains.accounts.vectors",
    "TableColumns": "equipoise.domains.accounts.trees.sql",
    "TrainingConfig": "equipoise.domains.accounts.training.trainer",
    "Tree": "equipoise.domains.accounts.trees.tree",
    "TreeEmbedder": "equipoise.domains.accounts.embedders",
    "evaluate_embedding": "equipoise.domains.accounts.evaluation",
    "evaluate_placement": "equipoise.domains.accounts.placement",
    "evaluate_tree": "equipoise.domains.accounts.experiment",
    "from_codes": "equipoise.domains.accounts.trees.files",
    "from_networkx": "equipoise.domains.accounts.trees.read",
    "misfiled_accounts": "equipoise.domains.accounts.misfiled",
    "nearest_nodes": "equipoise.domains.accounts.placement",
    "read_codes": "equipoise.domains.accounts.trees.files",
    "read_edges": "equipoise.domains.accounts.trees.files",
    "read_gnucash": "equipoise.domains.accounts.trees.read",
    "read_json": "equipoise.domains.accounts.trees.files",
    "read_node_vectors": "equipoise.domains.accounts.vectors",
    "read_obo_tree": "equipoise.domains.accounts.trees.read",
    "read_sql": "equipoise.domains.accounts.trees.sql",
    "read_table": "equipoise.domains.accounts.trees.files",
    "read_tree": "equipoise.domains.accounts.trees.read",
    "read_wordnet": "equipoise.domains.accounts.trees.read",
    "tree_embedder": "equipoise.domains.accounts.embedders",
}

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
