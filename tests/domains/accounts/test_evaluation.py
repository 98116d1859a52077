"""Evaluations of embeddings, compared with slow reference code."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

from equipoise.config import StatsConfig
from equipoise.domains.accounts.embedders import tree_embedder
from equipoise.domains.accounts.evaluation import SPEARMAN, evaluate_embedding
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.domains.accounts.vectors import NodeVectors
from equipoise.geometry.spaces import geometry

QUICK = StatsConfig(n_resamples=60)


def node_vectors(tree: Tree, name: str, dim: int = 3) -> NodeVectors:
    options = {"epochs": 5} if name in ("lorentz", "poincare", "euclidean") else {}
    return tree_embedder(name, **options).fit(tree, dim, 0)


def slow(tree: Tree, found: NodeVectors, relation: str, *, filtered: bool) -> tuple[list[float], list[float]]:
    """The rank of each relative, and the average precision of each node, by sorting nothing."""
    space = geometry(found.geometry)
    relatives: dict[int, set[int]] = {}
    for node, other in tree.pairs(relation).tolist():
        relatives.setdefault(node, set()).add(other)
    ranks, precisions = [], []
    for node, own in relatives.items():
        others = [other for other in range(len(tree)) if other != node]
        far = {other: float(space.distance(found.vectors[node], found.vectors[other])) for other in others}
        for each in own:
            rivals = [other for other in others if not (filtered and other in own)]
            ranks.append(1.0 + sum(far[other] < far[each] for other in rivals))
        labels = [other in own for other in others]
        precisions.append(float(average_precision_score(labels, [-far[other] for other in others])))
    return ranks, precisions


@pytest.mark.parametrize("name", ["lorentz", "poincare", "euclidean"])
@pytest.mark.parametrize(("relation", "filtered"), [("parent", False), ("closure", True), ("ancestors", False)])
def test_figures_are_those_of_slow_code(chart: Tree, name: str, relation: str, filtered: bool) -> None:
    found = node_vectors(chart, name)
    evaluation = evaluate_embedding(chart, found, relation=relation, filtered=filtered, config=QUICK)
    ranks, precisions = slow(chart, found, relation, filtered=filtered)
    assert evaluation.mean_rank.value == pytest.approx(np.mean(ranks))
    assert evaluation.median_rank.value == pytest.approx(np.median(ranks))
    assert evaluation.map.value == pytest.approx(np.mean(precisions))


@pytest.mark.parametrize("name", ["lorentz", "poincare", "euclidean"])
def test_spearman_is_that_of_scipy(chart: Tree, name: str) -> None:
    found = node_vectors(chart, name)
    norms = geometry(name).norm(found.vectors)
    expected = spearmanr(norms, chart.normalised_rank).statistic
    assert evaluate_embedding(chart, found, config=QUICK).spearman.value == pytest.approx(expected)


def test_norms_and_distances_are_plain_means_and_deviations(chart: Tree) -> None:
    found = node_vectors(chart, "euclidean")
    evaluation = evaluate_embedding(chart, found, config=QUICK)
    apart = np.linalg.norm(found.vectors[chart.edges[:, 0]] - found.vectors[chart.edges[:, 1]], axis=1)
    assert evaluation.norms.mean == pytest.approx(np.linalg.norm(found.vectors, axis=1).mean())
    assert evaluation.parent_distances.mean == pytest.approx(apart.mean())
    assert evaluation.parent_distances.sd == pytest.approx(apart.std(ddof=1))


def test_with_one_parent_average_precision_is_the_reciprocal_rank(chart: Tree) -> None:
    evaluation = evaluate_embedding(chart, node_vectors(chart, "random"), config=QUICK)
    assert evaluation.has_single_target
    assert evaluation.map.value == evaluation.result["MRR"].value
    assert not evaluate_embedding(
        chart, node_vectors(chart, "random"), relation="closure", config=QUICK
    ).has_single_target


def test_no_interval_of_a_rank_reaches_beyond_the_last_rank() -> None:
    tree = Tree.from_edges([("b", "a"), ("c", "a"), ("y", "x"), ("z", "x"), ("w", "z")])
    evaluation = evaluate_embedding(tree, node_vectors(tree, "random", 2), config=QUICK)
    for each in (evaluation.mean_rank, evaluation.macro_mean_rank, evaluation.median_rank):
        assert not each.interval.known or each.interval.high <= len(tree) - 1


def test_roots_are_counted_as_left_out_and_are_no_finding(chart: Tree) -> None:
    evaluation = evaluate_embedding(chart, node_vectors(chart, "random"), config=QUICK)
    assert evaluation.map.undefined == len(chart.roots)
    assert "EQ104" not in {finding.code for finding in evaluation.result.findings}


def test_every_figure_of_ranks_counts_the_same_nodes(chart: Tree) -> None:
    evaluation = evaluate_embedding(chart, node_vectors(chart, "random"), config=QUICK)
    ranks = [each for name, each in evaluation.result.estimates.items() if name != SPEARMAN]
    assert {(each.n, each.undefined) for each in ranks} == {(36, 4)}


def test_radii_of_the_ball_are_hyperbolic_and_those_of_the_hyperboloid_the_same(chart: Tree) -> None:
    flat, above = (node_vectors(chart, name) for name in ("poincare", "lorentz"))
    in_ball, lorentz = (evaluate_embedding(chart, each, config=QUICK) for each in (flat, above))
    assert in_ball.norms.most < 1.0
    assert in_ball.origin_distances.mean == pytest.approx(lorentz.origin_distances.mean, rel=1e-6)
    euclidean = evaluate_embedding(chart, node_vectors(chart, "euclidean"), config=QUICK)
    assert euclidean.origin_distances == euclidean.norms


def test_slices_cover_every_depth_and_every_top_level_branch(chart: Tree) -> None:
    slices = evaluate_embedding(chart, node_vectors(chart, "random"), config=QUICK).slices
    assert {each.value for each in slices if each.name == "depth"} == {"0", "1", "2"}
    assert {each.value for each in slices if each.name == "branch"} == {"assets", "debts", "income", "costs"}
