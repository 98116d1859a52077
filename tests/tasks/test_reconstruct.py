"""Hierarchies read back from vectors, held against the plain method: all distances, sorted node by node."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.checks.base import run_checks
from equipoise.config import StatsConfig
from equipoise.domains.accounts.checks import ReconstructedTree, with_findings
from equipoise.domains.accounts.evaluation import (
    Reconstruction,
    reconstruct,
    reconstruction_metrics,
    reconstruction_result,
    reconstruction_slices,
)
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.errors import InputError, NotFiniteError, ShapeError, UndefinedError, UnknownNameError
from equipoise.geometry import distances as functions
from equipoise.geometry.spaces import geometry
from equipoise.metrics.parser import parse_metrics
from equipoise.stats.result import Result
from equipoise.stats.seeds import mean_and_deviation
from equipoise.types import Floats

RELATIONS = ("parent", "ancestors", "closure")
HIERARCHY = ("EQ113", "EQ305", "EQ306")


def a_tree(nodes: int = 120, seed: int = 0, second_parents: int = 6) -> Tree:
    """A forest of three roots in which some nodes have two parents."""
    rng = np.random.default_rng(seed)
    parents = [(f"n{node}", f"n{rng.integers(0, max(3, node // 2))}") for node in range(3, nodes)]
    more = [(f"n{node}", f"n{rng.integers(3)}") for node in rng.integers(60, nodes, second_parents)]
    return Tree.of([f"n{node}" for node in range(nodes)], dict.fromkeys([*parents, *more]))


def points_of(tree: Tree, name: str, seed: int = 0) -> Floats:
    """Deeper nodes farther out, in a direction near that of a parent."""
    rng = np.random.default_rng(seed)
    points = np.zeros((len(tree), 4))
    for node in np.argsort(tree.depth, kind="stable"):
        parents = tree.parents(int(node))
        start = points[parents[0]] if len(parents) else np.zeros(4)
        points[node] = start + rng.normal(size=4)
    if name in ("poincare", "lorentz"):
        points *= np.tanh(0.4 * np.linalg.norm(points, axis=1) / 2.0)[:, None] / np.linalg.norm(
            points, axis=1, keepdims=True
        )
    return functions.ball_to_hyperboloid(points) if name == "lorentz" else points


def sorted_by_node(tree: Tree, vectors: Floats, name: str, relation: str) -> tuple[float, float, float]:
    """Mean rank raw and filtered over edges, and MAP over nodes: scikit-learn and a sort for every node."""
    average_precision_score = pytest.importorskip("sklearn.metrics").average_precision_score
    distances = geometry(name).distances(vectors, vectors)
    raw, filtered, precisions = [], [], []
    pairs = tree.pairs(relation)
    for node in range(len(tree)):
        relatives = pairs[pairs[:, 0] == node, 1]
        if not len(relatives):
            continue
        others = np.delete(np.arange(len(tree)), node)
        order = others[np.argsort(distances[node, others], kind="stable")]
        ranks = np.flatnonzero(np.isin(order, relatives)) + 1
        raw += ranks.tolist()
        filtered += (ranks - np.arange(len(ranks))).tolist()
        precisions.append(average_precision_score(np.isin(others, relatives), -distances[node, others]))
    return float(np.mean(raw)), float(np.mean(filtered)), float(np.mean(precisions))


def value(found: Reconstruction, metric: str) -> float:
    return parse_metrics(metric)[0].measure(found.ranking).value


def test_norms_are_described_and_not_held_against_chance() -> None:
    tree = a_tree(second_parents=0)
    found = reconstruct(tree, -points_of(tree, "euclidean")[np.argsort(tree.depth)[::-1]])
    metrics = reconstruction_metrics(filtered=False)
    told = with_findings(reconstruction_result(found, config=StatsConfig(n_resamples=50)), found, metrics).findings
    assert any(each.code == "EQ302" for each in told)
    assert not any("NormDepth" in each.message for each in told)


def test_other_clusters_are_resampled_where_they_are_named() -> None:
    tree = a_tree()
    found = reconstruct(tree, points_of(tree, "euclidean"))
    clusters = np.array([f"c{node % 12}" for node in range(len(tree))], dtype=object)
    result = reconstruction_result(found, config=StatsConfig(clusters=clusters, n_resamples=50))
    assert result.clusters is not None
    assert result.clusters.tolist() == clusters.tolist()
    assert reconstruction_result(found, config=StatsConfig(n_resamples=50)).clusters.tolist() == list(tree.branches)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["euclidean", "poincare", "lorentz"])
def test_figures_are_those_of_a_sort_for_every_node(name: str, relation: str) -> None:
    tree = a_tree()
    vectors = points_of(tree, name)
    found = reconstruct(tree, vectors, name, relation=relation)
    figures = [value(found, metric) for metric in ("MR", "MR(filtered)", "MAP")]
    assert figures == pytest.approx(sorted_by_node(tree, vectors, name, relation), rel=1e-12)


def test_spearman_is_that_of_scipy_over_nodes_of_known_rank() -> None:
    stats = pytest.importorskip("scipy.stats")
    tree = a_tree()
    vectors = points_of(tree, "lorentz")
    found = reconstruct(tree, vectors, "lorentz")
    known = ~np.isnan(tree.normalised_rank)
    radii = np.arccosh(vectors[known, 0])
    expected = stats.spearmanr(radii, tree.normalised_rank[known]).statistic
    assert reconstruction_result(found, config=StatsConfig(n_resamples=50))["NormDepth"].value == pytest.approx(
        expected
    )


def test_random_vectors_rank_relatives_in_the_middle() -> None:
    tree = a_tree(300)
    ranks = [value(reconstruct(tree, np.random.default_rng(seed).normal(size=(300, 5))), "MR") for seed in range(10)]
    assert np.mean(ranks) == pytest.approx(150.0, abs=6.0)


def test_the_chance_level_is_half_of_the_nodes() -> None:
    result = reconstruction_result(
        reconstruct(a_tree(), points_of(a_tree(), "euclidean")), config=StatsConfig(n_resamples=50)
    )
    assert result["MR"].chance == pytest.approx(60.0)


def test_ranks_are_raw_for_the_parent_and_filtered_for_the_rest_unless_said() -> None:
    tree, vectors = a_tree(), points_of(a_tree(), "euclidean")
    assert [reconstruct(tree, vectors, relation=relation).filtered for relation in RELATIONS] == [False, True, True]
    assert reconstruct(tree, vectors, relation="closure", filtered=False).filtered is False
    assert reconstruct(tree, vectors, filtered=True).filtered is True


@pytest.mark.parametrize("filtered", [True, False])
def test_a_result_says_what_was_measured(filtered: bool) -> None:
    found = reconstruct(a_tree(), points_of(a_tree(), "lorentz"), "lorentz", relation="closure", filtered=filtered)
    result = reconstruction_result(found, system="mine", config=StatsConfig(n_resamples=50))
    assert result.names == (
        *(metric.name for metric in reconstruction_metrics(filtered=filtered)),
        "NormDepth",
    )
    assert result["MR(filtered)" if filtered else "MR"].value == value(found, result.names[0])
    kept = {"relation": "closure", "filtered": filtered, "geometry": "lorentz", "dim": 4}
    assert kept.items() <= result.settings.items()
    assert result.clusters is not None
    assert set(result.clusters) == set(found.tree.branches)


def test_nodes_of_a_branch_are_drawn_together() -> None:
    """Copies of a node under the same branch add no evidence: the interval stays as wide."""
    branches, copies = 30, 4
    rng = np.random.default_rng(0)
    edges, places = [], {}
    for branch in range(branches):
        places[f"b{branch}"] = rng.normal(size=3) * 4
        child = places[f"b{branch}"] + rng.normal(size=3) * 4
        for copy in range(copies):
            edges.append((f"c{branch}.{copy}", f"b{branch}"))
            places[f"c{branch}.{copy}"] = child + rng.normal(size=3) * 1e-6
    tree = Tree.from_edges(edges)
    result = reconstruction_result(
        reconstruct(tree, [places[node] for node in tree.ids]), config=StatsConfig(n_resamples=500)
    )
    per_unit = result.per_unit["MR"]
    independent = 1.96 * np.nanstd(per_unit) / np.sqrt(branches * copies)
    half_width = (result["MR"].interval.high - result["MR"].interval.low) / 2
    assert half_width > 1.5 * independent


def test_with_one_parent_each_map_is_mrr_and_a_finding_says_so() -> None:
    tree = a_tree(second_parents=0)
    found = reconstruct(tree, points_of(tree, "euclidean"))
    result = reconstruction_result(found, config=StatsConfig(n_resamples=50))
    assert result["MAP"].value == result["MRR"].value
    assert "EQ305" in codes(found)
    assert "EQ305" not in codes(reconstruct(tree, points_of(tree, "euclidean"), relation="closure"))


def test_roots_have_no_parent_and_no_rank() -> None:
    found = reconstruct(a_tree(), points_of(a_tree(), "euclidean"))
    result = reconstruction_result(found, config=StatsConfig(n_resamples=50))
    assert np.isnan(result.per_unit["MR"][found.tree.roots]).all()
    assert result["MR"].undefined == len(found.tree.roots) == 3


def test_slices_by_depth_and_branch_leave_no_node_out() -> None:
    found = reconstruct(a_tree(), points_of(a_tree(), "euclidean"), relation="ancestors")
    result = reconstruction_result(found, config=StatsConfig(n_resamples=50))
    slices = reconstruction_slices(found, result)
    for name, values in (("depth", found.depth.tolist()), ("branch", list(found.tree.branches))):
        parts = [part for part in slices if part.name == name]
        assert {each.value for each in parts} == {str(each) for each in values}
        assert sum(part.estimate.n for part in parts) == result[result.names[0]].n
    depths = [int(part.value) for part in slices if part.name == "depth"]
    assert depths == sorted(depths)
    weights = result.weights[result.names[0]]
    at_two = found.depth == 2
    expected = np.average(result.per_unit[result.names[0]][at_two], weights=weights[at_two])
    assert next(part.estimate.value for part in slices if part.value == "2") == pytest.approx(expected)


def test_distances_to_parents_and_norms_are_described() -> None:
    tree = Tree.from_edges([("b", "a"), ("c", "a")])
    found = reconstruct(tree, [[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]])
    assert found.parent_distances.tolist() == [5.0, 1.0]
    assert found.norms.tolist() == [5.0, 0.0, 1.0]
    told = mean_and_deviation(found.parent_distances)
    assert (told.mean, told.least, told.most, told.n) == (3.0, 1.0, 5.0, 2)
    assert told.sd == pytest.approx(np.std([5.0, 1.0], ddof=1))
    assert mean_and_deviation(np.array([2.0])).to_dict()["sd"] is None
    assert mean_and_deviation(np.array([])).to_dict() == dict.fromkeys(
        ("mean", "sd", "least", "most", "low", "high")
    ) | {"n": 0}


def test_vectors_that_do_not_fit_the_tree_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"119 vectors.*120 nodes"):
        reconstruct(a_tree(), np.zeros((119, 2)))


def test_an_unknown_relation_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="'parents'") as caught:
        reconstruct(a_tree(), np.zeros((120, 2)), relation="parents")
    assert "parent" in caught.value.hint


def test_a_tree_without_edges_has_nothing_to_find() -> None:
    with pytest.raises(UndefinedError):
        reconstruct(Tree.of(["a", "b"], []), np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("name", "bad", "error", "words"),
    [
        ("poincare", [1.0, 0.5], InputError, "1 of the 3 points of .* outside the ball of radius 1: c"),
        ("lorentz", [1.0, 5.0], InputError, "1 of the 3 points of .* hyperboloid .*: c"),
        ("euclidean", [np.nan, 0.0], NotFiniteError, "1 of the 3 points of .* NaN or infinity: c"),
    ],
)
def test_points_outside_their_space_are_named_and_not_moved(
    name: str, bad: list[float], error: type[InputError], words: str
) -> None:
    tree = Tree.of(["a", "b", "c"], [("b", "a"), ("c", "a")])
    good = [1.0, 0.0] if name == "lorentz" else [0.0, 0.0]
    with pytest.raises(error, match=words):
        reconstruct(tree, [good, good, bad], name)


# ---- findings --------------------------------------------------------------------------------


def codes(found: Reconstruction) -> list[str]:
    return [finding.code for finding in run_checks(ReconstructedTree("mine", found)) if finding.code in HIERARCHY]


def test_a_sound_closure_raises_nothing_of_its_own() -> None:
    for name in ("euclidean", "poincare", "lorentz"):
        assert codes(reconstruct(a_tree(), points_of(a_tree(), name), name, relation="closure")) == []


@pytest.mark.parametrize("name", ["poincare", "lorentz"])
def test_a_hierarchy_inside_out_is_found(name: str) -> None:
    tree = a_tree()
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(len(tree), 3))
    radius = 0.9 - 0.8 * tree.depth / tree.depth.max() + 0.01 * rng.random(len(tree))
    points = directions / np.linalg.norm(directions, axis=1, keepdims=True) * radius[:, None]
    vectors = functions.ball_to_hyperboloid(points) if name == "lorentz" else points
    assert codes(reconstruct(tree, vectors, name, relation="closure")) == ["EQ306"]
    assert codes(reconstruct(tree, points, "euclidean", relation="closure")) == []


@pytest.mark.parametrize("name", ["poincare", "lorentz"])
def test_points_too_far_out_for_their_digits_are_named(name: str) -> None:
    tree = a_tree()
    points = points_of(tree, "poincare")
    points[7] *= (1.0 - 1e-6) / np.linalg.norm(points[7])
    vectors = functions.ball_to_hyperboloid(points) if name == "lorentz" else points
    assert codes(reconstruct(tree, vectors, name, relation="closure")) == []
    for single in (vectors.astype(np.float32), vectors.astype(np.float32).astype(np.float64)):
        found = reconstruct(tree, single, name, relation="closure")
        (finding,) = (finding for finding in run_checks(ReconstructedTree("mine", found)) if finding.code == "EQ113")
        assert finding.evidence == ("n7",)
        assert "1 of 120 points are so far from the origin that rounding to float32" in finding.message


def test_a_result_gets_the_findings_of_its_reconstruction() -> None:
    tree = a_tree(second_parents=0)
    found = reconstruct(tree, points_of(tree, "euclidean"))
    result: Result = reconstruction_result(found, system="mine", config=StatsConfig(n_resamples=50))
    full = with_findings(result, found, reconstruction_metrics(filtered=found.filtered))
    assert {"EQ104", "EQ305"} <= {finding.code for finding in full.findings}
    assert with_findings(full, found, reconstruction_metrics(filtered=False)).findings == full.findings


@pytest.mark.engines("torch")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["euclidean", "poincare", "lorentz"])
def test_a_device_ranks_as_the_host_does(name: str, relation: str) -> None:
    pytest.importorskip("torch")
    tree = a_tree()
    vectors = points_of(tree, name)
    mine, hosts = (
        reconstruct(tree, vectors, name, relation=relation, device=device).ranking for device in ("cpu", None)
    )
    for column in ("above", "tied", "before"):
        np.testing.assert_array_equal(getattr(mine, column), getattr(hosts, column))
