"""Evaluations of embeddings, compared with plain reference code."""

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


def reference_ranks(
    tree: Tree, vectors: NodeVectors, relation: str, *, filtered: bool
) -> tuple[list[float], list[float]]:
    """The rank of each target and the average precision of each node, by plain loops over distances."""
    space = geometry(vectors.geometry)
    relatives: dict[int, set[int]] = {}
    for node, other in tree.pairs(relation).tolist():
        relatives.setdefault(node, set()).add(other)
    ranks, precisions = [], []
    for node, targets in relatives.items():
        others = [other for other in range(len(tree)) if other != node]
        distances = {other: float(space.distance(vectors.vectors[node], vectors.vectors[other])) for other in others}
        for target in targets:
            candidates = [other for other in others if not (filtered and other in targets)]
            ranks.append(1.0 + sum(distances[other] < distances[target] for other in candidates))
        labels = [other in targets for other in others]
        precisions.append(float(average_precision_score(labels, [-distances[other] for other in others])))
    return ranks, precisions


@pytest.mark.parametrize("name", ["lorentz", "poincare", "euclidean"])
@pytest.mark.parametrize(("relation", "filtered"), [("parent", False), ("closure", True), ("ancestors", False)])
def test_scores_equal_the_reference(chart: Tree, name: str, relation: str, filtered: bool) -> None:
    vectors = node_vectors(chart, name)
    evaluation = evaluate_embedding(chart, vectors, relation=relation, filtered=filtered, config=QUICK)
    ranks, precisions = reference_ranks(chart, vectors, relation, filtered=filtered)
    assert evaluation.mean_rank.value == pytest.approx(np.mean(ranks))
    assert evaluation.median_rank.value == pytest.approx(np.median(ranks))
    assert evaluation.map.value == pytest.approx(np.mean(precisions))


@pytest.mark.parametrize("name", ["lorentz", "poincare", "euclidean"])
def test_spearman_equals_scipy(chart: Tree, name: str) -> None:
    vectors = node_vectors(chart, name)
    norms = geometry(name).norm(vectors.vectors)
    expected = spearmanr(norms, chart.normalised_rank).statistic
    assert evaluate_embedding(chart, vectors, config=QUICK).spearman.value == pytest.approx(expected)


def test_norms_and_distances_are_plain_means_and_deviations(chart: Tree) -> None:
    vectors = node_vectors(chart, "euclidean")
    evaluation = evaluate_embedding(chart, vectors, config=QUICK)
    distances = np.linalg.norm(vectors.vectors[chart.edges[:, 0]] - vectors.vectors[chart.edges[:, 1]], axis=1)
    assert evaluation.norms.mean == pytest.approx(np.linalg.norm(vectors.vectors, axis=1).mean())
    assert evaluation.parent_distances.mean == pytest.approx(distances.mean())
    assert evaluation.parent_distances.sd == pytest.approx(distances.std(ddof=1))


def test_with_one_parent_average_precision_is_the_reciprocal_rank(chart: Tree) -> None:
    evaluation = evaluate_embedding(chart, node_vectors(chart, "random"), config=QUICK)
    assert evaluation.has_single_target
    assert "MRR" not in evaluation.result.names
    assert evaluation.macro_mean_rank == evaluation.mean_rank
    assert not evaluate_embedding(
        chart, node_vectors(chart, "random"), relation="closure", config=QUICK
    ).has_single_target


def test_intervals_of_ranks_are_within_the_last_rank() -> None:
    tree = Tree.from_edges([("b", "a"), ("c", "a"), ("y", "x"), ("z", "x"), ("w", "z")])
    evaluation = evaluate_embedding(tree, node_vectors(tree, "random", 2), config=QUICK)
    for estimate in (evaluation.mean_rank, evaluation.macro_mean_rank, evaluation.median_rank):
        assert not estimate.interval.known or estimate.interval.high <= len(tree) - 1


def test_roots_are_counted_as_left_out_without_a_finding(chart: Tree) -> None:
    evaluation = evaluate_embedding(chart, node_vectors(chart, "random"), config=QUICK)
    assert evaluation.map.undefined == len(chart.roots)
    assert "EQ104" not in {finding.code for finding in evaluation.result.findings}


def test_every_rank_metric_counts_the_same_nodes(chart: Tree) -> None:
    evaluation = evaluate_embedding(chart, node_vectors(chart, "random"), config=QUICK)
    ranks = [estimate for name, estimate in evaluation.result.estimates.items() if name != SPEARMAN]
    assert {(estimate.n, estimate.undefined) for estimate in ranks} == {(36, 4)}


def test_distances_from_the_origin_are_equal_in_ball_and_hyperboloid(chart: Tree) -> None:
    ball_vectors, lorentz_vectors = (node_vectors(chart, name) for name in ("poincare", "lorentz"))
    ball, lorentz = (evaluate_embedding(chart, vectors, config=QUICK) for vectors in (ball_vectors, lorentz_vectors))
    assert ball.norms.most < 1.0
    assert ball.origin_distances.mean == pytest.approx(lorentz.origin_distances.mean, rel=1e-6)
    euclidean = evaluate_embedding(chart, node_vectors(chart, "euclidean"), config=QUICK)
    assert euclidean.origin_distances == euclidean.norms


def test_slices_cover_every_depth_and_every_top_level_branch(chart: Tree) -> None:
    slices = evaluate_embedding(chart, node_vectors(chart, "random"), config=QUICK).slices
    assert {part.value for part in slices if part.name == "depth"} == {"0", "1", "2"}
    assert {part.value for part in slices if part.name == "branch"} == {"assets", "debts", "income", "costs"}


def test_findings_of_a_run_have_hints_for_trees(chart: Tree) -> None:
    evaluation = evaluate_embedding(chart, node_vectors(chart, "combinatorial"), config=QUICK)
    hints = {finding.code: finding.hint for finding in evaluation.result.findings}
    assert hints["EQ303"] == "rank all related nodes: --relation closure"
