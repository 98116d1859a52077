"""Branches as clusters for resampling."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.accounts.evaluation import branch_clusters
from equipoise.domains.accounts.experiment import evaluate_tree
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.stats.bootstrap_mean import FEW_RESAMPLING_UNITS


def test_many_top_level_branches_are_the_clusters() -> None:
    tree = Tree.from_edges([(f"{top}.{leaf}", f"{top}") for top in range(12) for leaf in range(3)])
    clusters = branch_clusters(tree)
    assert clusters.level == 0
    assert clusters.labels.tolist() == list(tree.branches)
    assert "A subtree is a node at the top" in clusters.caption


def test_with_few_top_level_branches_the_clusters_are_one_level_below(chart: Tree) -> None:
    clusters = branch_clusters(chart)
    label_of = dict(zip(chart.ids, clusters.labels.tolist(), strict=True))
    assert clusters.level == 1
    assert label_of["assets.1.0"] == label_of["assets.1.1"] == label_of["assets.1"] == "assets.1"
    assert label_of["assets"] == "assets"
    assert len(clusters) == 4 + 12
    assert "one level below the top" in clusters.caption


def test_a_tree_with_few_branches_at_every_level_keeps_the_top_level() -> None:
    tree = Tree.from_edges([("b", "a"), ("c", "b"), ("d", "b"), ("y", "x")])
    clusters = branch_clusters(tree)
    assert clusters.level == 0
    assert set(clusters.labels.tolist()) == {"a", "x"}


def test_leaves_are_not_branches_of_one_node_each() -> None:
    star = Tree.from_edges([(f"leaf{leaf}", "top") for leaf in range(30)] + [("b", "a"), ("c", "b")])
    assert len(branch_clusters(star)) < len(star)


def test_roots_have_no_value_and_are_not_counted_as_resampled_subtrees() -> None:
    edges = [(f"{top}{group}", top) for top in "abcde" for group in range(4)]
    edges += [(f"{group}.{leaf}", group) for group, _ in edges for leaf in range(2)]
    evaluation = evaluate_tree(Tree.from_edges(edges), dims=[2], embedders=["random"], learning_rates=[1.0])
    assert len(evaluation.branches) == 5 + 20
    assert len(evaluation.resampled_branches) == 20
    assert evaluation.comparison is not None
    assert evaluation.comparison.clusters == 20
    assert evaluation.to_dict()["branches"]["count"] == 20


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=80))
def test_nodes_of_one_cluster_are_below_its_top(draws: list[int]) -> None:
    edges = [(f"n{node + 1}", f"n{draw % (node + 1)}") for node, draw in enumerate(draws)]
    tree = Tree.of([f"n{node}" for node in range(len(draws) + 1)], edges)
    clusters = branch_clusters(tree)
    ancestors = {int(child): set() for child in range(len(tree))}
    for child, ancestor in tree.closure().tolist():
        ancestors[child].add(tree.ids[ancestor])
    for node, branch in enumerate(clusters.labels.tolist()):
        assert branch == tree.ids[node] or branch in ancestors[node]
    assert clusters.level == 0 or len(np.unique(clusters.labels.astype(str))) >= FEW_RESAMPLING_UNITS
