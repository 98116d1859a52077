"""Branches that are resampled whole."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.accounts.evaluation import branch_clusters
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.stats.bootstrap_mean import FEW_RESAMPLING_UNITS


def test_enough_branches_at_the_top_are_taken_as_they_are() -> None:
    tree = Tree.from_edges([(f"{top}.{leaf}", f"{top}") for top in range(12) for leaf in range(3)])
    found = branch_clusters(tree)
    assert found.level == 0
    assert found.labels.tolist() == list(tree.branches)
    assert "12 at the top" in found.caption


def test_few_branches_at_the_top_give_way_to_those_one_level_below(chart: Tree) -> None:
    found = branch_clusters(chart)
    of = dict(zip(chart.ids, found.labels.tolist(), strict=True))
    assert found.level == 1
    assert of["assets.1.0"] == of["assets.1.1"] == of["assets.1"] == "assets.1"
    assert of["assets"] == "assets"
    assert len(found) == 4 + 12
    assert "one level below the top" in found.caption


def test_a_tree_that_never_has_enough_branches_keeps_those_at_the_top() -> None:
    tree = Tree.from_edges([("b", "a"), ("c", "b"), ("d", "b"), ("y", "x")])
    found = branch_clusters(tree)
    assert found.level == 0
    assert set(found.labels.tolist()) == {"a", "x"}


def test_leaves_are_never_branches_of_one_node_each() -> None:
    star = Tree.from_edges([(f"leaf{leaf}", "top") for leaf in range(30)] + [("b", "a"), ("c", "b")])
    assert len(branch_clusters(star)) < len(star)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=80))
def test_nodes_of_one_branch_hang_below_its_top(draws: list[int]) -> None:
    edges = [(f"n{node + 1}", f"n{draw % (node + 1)}") for node, draw in enumerate(draws)]
    tree = Tree.of([f"n{node}" for node in range(len(draws) + 1)], edges)
    found = branch_clusters(tree)
    above = {int(child): set() for child in range(len(tree))}
    for child, ancestor in tree.closure().tolist():
        above[child].add(tree.ids[ancestor])
    for node, branch in enumerate(found.labels.tolist()):
        assert branch == tree.ids[node] or branch in above[node]
    assert found.level == 0 or len(np.unique(found.labels.astype(str))) >= FEW_RESAMPLING_UNITS
