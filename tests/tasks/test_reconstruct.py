"""Reconstruction of hierarchies from vectors, compared with a full sort of the distances per node."""

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


def random_tree(nodes: int = 120, seed: int = 0, second_parents: int = 6) -> Tree:
    """A forest of three roots in which some nodes have two parents."""
    rng = np.random.default_rng(seed)
    parents = [(f"n{node}", f"n{rng.integers(0, max(3, node // 2))}") for node in range(3, nodes)]
    second_edges = [(f"n{node}", f"n{rng.integers(3)}") for node in rng.integers(60, nodes, second_parents)]
    return Tree.of([f"n{node}" for node in range(nodes)], dict.fromkeys([*parents, *second_edges]))


def points_of(tree: Tree, name: str, seed: int = 0) -> Floats:
    """Points with norms that increase with depth, in directions close to those of the parents."""
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


def scores_by_sorting(tree: Tree, vectors: Floats, name: str, relation: str) -> tuple[float, float, float]:
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


def metric_value(reconstruction: Reconstruction, metric: str) -> float:
    return parse_metrics(metric)[0].measure(reconstruction.ranking).value


def test_norms_are_not_compared_with_chance() -> None:
    tree = random_tree(second_parents=0)
    reconstruction = reconstruct(tree, -points_of(tree, "euclidean")[np.argsort(tree.depth)[::-1]])
    metrics = reconstruction_metrics(filtered=False)
    findings = with_findings(
        reconstruction_result(reconstruction, config=StatsConfig(n_resamples=50)), reconstruction, metrics
    ).findings
    assert any(finding.code == "EQ302" for finding in findings)
    assert not any("NormDepth" in finding.message for finding in findings)


def test_given_clusters_replace_the_branches() -> None:
    tree = random_tree()
    reconstruction = reconstruct(tree, points_of(tree, "euclidean"))
    clusters = np.array([f"c{node % 12}" for node in range(len(tree))], dtype=object)
    result = reconstruction_result(reconstruction, config=StatsConfig(clusters=clusters, n_resamples=50))
    assert result.clusters is not None
    assert result.clusters.tolist() == clusters.tolist()
    assert reconstruction_result(reconstruction, config=StatsConfig(n_resamples=50)).clusters.tolist() == list(
        tree.branches
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["euclidean", "poincare", "lorentz"])
def test_scores_agree_with_a_sort_per_node(name: str, relation: str) -> None:
    tree = random_tree()
    vectors = points_of(tree, name)
    reconstruction = reconstruct(tree, vectors, name, relation=relation)
    values = [metric_value(reconstruction, metric) for metric in ("MR", "MR(filtered)", "MAP")]
    assert values == pytest.approx(scores_by_sorting(tree, vectors, name, relation), rel=1e-12)


def test_norm_depth_correlation_agrees_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    tree = random_tree()
    vectors = points_of(tree, "lorentz")
    reconstruction = reconstruct(tree, vectors, "lorentz")
    has_rank = ~np.isnan(tree.normalised_rank)
    radii = np.arccosh(vectors[has_rank, 0])
    expected = stats.spearmanr(radii, tree.normalised_rank[has_rank]).statistic
    assert reconstruction_result(reconstruction, config=StatsConfig(n_resamples=50))[
        "NormDepth"
    ].value == pytest.approx(expected)


def test_random_vectors_have_the_chance_mean_rank() -> None:
    tree = random_tree(300)
    ranks = [
        metric_value(reconstruct(tree, np.random.default_rng(seed).normal(size=(300, 5))), "MR") for seed in range(10)
    ]
    assert np.mean(ranks) == pytest.approx(150.0, abs=6.0)


def test_the_chance_level_is_half_of_the_nodes() -> None:
    result = reconstruction_result(
        reconstruct(random_tree(), points_of(random_tree(), "euclidean")), config=StatsConfig(n_resamples=50)
    )
    assert result["MR"].chance == pytest.approx(60.0)


def test_ranks_are_raw_for_parents_and_filtered_otherwise_by_default() -> None:
    tree, vectors = random_tree(), points_of(random_tree(), "euclidean")
    assert [reconstruct(tree, vectors, relation=relation).filtered for relation in RELATIONS] == [False, True, True]
    assert reconstruct(tree, vectors, relation="closure", filtered=False).filtered is False
    assert reconstruct(tree, vectors, filtered=True).filtered is True


@pytest.mark.parametrize("filtered", [True, False])
def test_results_record_the_settings(filtered: bool) -> None:
    reconstruction = reconstruct(
        random_tree(), points_of(random_tree(), "lorentz"), "lorentz", relation="closure", filtered=filtered
    )
    result = reconstruction_result(reconstruction, system="model", config=StatsConfig(n_resamples=50))
    assert result.names == (
        *(metric.name for metric in reconstruction_metrics(filtered=filtered)),
        "NormDepth",
    )
    assert result["MR(filtered)" if filtered else "MR"].value == metric_value(reconstruction, result.names[0])
    settings = {"relation": "closure", "filtered": filtered, "geometry": "lorentz", "dim": 4}
    assert settings.items() <= result.settings.items()
    assert result.clusters is not None
    assert set(result.clusters) == set(reconstruction.tree.branches)


def test_nodes_of_a_branch_are_resampled_together() -> None:
    """Copies of a node under the same branch add no evidence: the interval stays as wide."""
    n_branches, n_copies = 30, 4
    rng = np.random.default_rng(0)
    edges, points = [], {}
    for branch in range(n_branches):
        points[f"b{branch}"] = rng.normal(size=3) * 4
        child = points[f"b{branch}"] + rng.normal(size=3) * 4
        for copy in range(n_copies):
            edges.append((f"c{branch}.{copy}", f"b{branch}"))
            points[f"c{branch}.{copy}"] = child + rng.normal(size=3) * 1e-6
    tree = Tree.from_edges(edges)
    result = reconstruction_result(
        reconstruct(tree, [points[node] for node in tree.ids]), config=StatsConfig(n_resamples=500)
    )
    per_unit = result.per_unit["MR"]
    independent = 1.96 * np.nanstd(per_unit) / np.sqrt(n_branches * n_copies)
    half_width = (result["MR"].interval.high - result["MR"].interval.low) / 2
    assert half_width > 1.5 * independent


def test_map_equals_mrr_with_one_parent_per_node() -> None:
    tree = random_tree(second_parents=0)
    reconstruction = reconstruct(tree, points_of(tree, "euclidean"))
    result = reconstruction_result(reconstruction, config=StatsConfig(n_resamples=50))
    assert result.names == ("MR", "MedianRank", "MAP", "NormDepth")
    assert result["MAP"].value == metric_value(reconstruction, "MRR")
    assert result["MR"].value == metric_value(reconstruction, "MR(over=units)")
    assert "EQ305" in finding_codes(reconstruction)
    assert "EQ305" not in finding_codes(reconstruct(tree, points_of(tree, "euclidean"), relation="closure"))


def test_roots_have_no_parent_and_no_rank() -> None:
    reconstruction = reconstruct(random_tree(), points_of(random_tree(), "euclidean"))
    result = reconstruction_result(reconstruction, config=StatsConfig(n_resamples=50))
    assert np.isnan(result.per_unit["MR"][reconstruction.tree.roots]).all()
    assert result["MR"].undefined == len(reconstruction.tree.roots) == 3


def test_slices_by_depth_and_branch_partition_the_nodes() -> None:
    reconstruction = reconstruct(random_tree(), points_of(random_tree(), "euclidean"), relation="ancestors")
    result = reconstruction_result(reconstruction, config=StatsConfig(n_resamples=50))
    slices = reconstruction_slices(reconstruction, result)
    for name, values in (("depth", reconstruction.depth.tolist()), ("branch", list(reconstruction.tree.branches))):
        slices_of_name = [slice_estimate for slice_estimate in slices if slice_estimate.name == name]
        assert {item.value for item in slices_of_name} == {str(item) for item in values}
        assert sum(slice_estimate.estimate.n for slice_estimate in slices_of_name) == result[result.names[0]].n
    depths = [int(slice_estimate.value) for slice_estimate in slices if slice_estimate.name == "depth"]
    assert depths == sorted(depths)
    weights = result.weights[result.names[0]]
    at_depth_2 = reconstruction.depth == 2
    expected = np.average(result.per_unit[result.names[0]][at_depth_2], weights=weights[at_depth_2])
    assert next(
        slice_estimate.estimate.value for slice_estimate in slices if slice_estimate.value == "2"
    ) == pytest.approx(expected)


def test_distances_to_parents_and_norms_are_described() -> None:
    tree = Tree.from_edges([("b", "a"), ("c", "a")])
    reconstruction = reconstruct(tree, [[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]])
    assert reconstruction.parent_distances.tolist() == [5.0, 1.0]
    assert reconstruction.norms.tolist() == [5.0, 0.0, 1.0]
    summary = mean_and_deviation(reconstruction.parent_distances)
    assert (summary.mean, summary.least, summary.most, summary.n) == (3.0, 1.0, 5.0, 2)
    assert summary.sd == pytest.approx(np.std([5.0, 1.0], ddof=1))
    assert mean_and_deviation(np.array([2.0])).to_dict()["sd"] is None
    assert mean_and_deviation(np.array([])).to_dict() == dict.fromkeys(
        ("mean", "sd", "least", "most", "low", "high")
    ) | {"n": 0}


def test_a_wrong_number_of_vectors_raises_shape_error() -> None:
    with pytest.raises(ShapeError, match=r"119 vectors.*120 nodes"):
        reconstruct(random_tree(), np.zeros((119, 2)))


def test_unknown_relations_raise_errors_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="'parents'") as error:
        reconstruct(random_tree(), np.zeros((120, 2)), relation="parents")
    assert "parent" in error.value.hint


def test_trees_without_edges_raise_undefined_error() -> None:
    with pytest.raises(UndefinedError):
        reconstruct(Tree.of(["a", "b"], []), np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("name", "invalid_point", "error", "message"),
    [
        ("poincare", [1.0, 0.5], InputError, "1 of the 3 points of .* outside the ball of radius 1: c"),
        ("lorentz", [1.0, 5.0], InputError, "1 of the 3 points of .* hyperboloid .*: c"),
        ("euclidean", [np.nan, 0.0], NotFiniteError, "1 of the 3 points of .* NaN or infinity: c"),
    ],
)
def test_points_outside_their_space_raise_errors(
    name: str, invalid_point: list[float], error: type[InputError], message: str
) -> None:
    tree = Tree.of(["a", "b", "c"], [("b", "a"), ("c", "a")])
    valid_point = [1.0, 0.0] if name == "lorentz" else [0.0, 0.0]
    with pytest.raises(error, match=message):
        reconstruct(tree, [valid_point, valid_point, invalid_point], name)


# ---- findings --------------------------------------------------------------------------------


def finding_codes(reconstruction: Reconstruction) -> list[str]:
    return [
        finding.code for finding in run_checks(ReconstructedTree("model", reconstruction)) if finding.code in HIERARCHY
    ]


def test_valid_closures_have_no_findings_of_the_hierarchy() -> None:
    for name in ("euclidean", "poincare", "lorentz"):
        assert finding_codes(reconstruct(random_tree(), points_of(random_tree(), name), name, relation="closure")) == []


@pytest.mark.parametrize("name", ["poincare", "lorentz"])
def test_inverted_hierarchies_are_reported(name: str) -> None:
    tree = random_tree()
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(len(tree), 3))
    radius = 0.9 - 0.8 * tree.depth / tree.depth.max() + 0.01 * rng.random(len(tree))
    points = directions / np.linalg.norm(directions, axis=1, keepdims=True) * radius[:, None]
    vectors = functions.ball_to_hyperboloid(points) if name == "lorentz" else points
    assert finding_codes(reconstruct(tree, vectors, name, relation="closure")) == ["EQ306"]
    assert finding_codes(reconstruct(tree, points, "euclidean", relation="closure")) == []


@pytest.mark.parametrize("name", ["poincare", "lorentz"])
def test_points_too_far_from_the_origin_for_float32_are_reported(name: str) -> None:
    tree = random_tree()
    points = points_of(tree, "poincare")
    points[7] *= (1.0 - 1e-6) / np.linalg.norm(points[7])
    vectors = functions.ball_to_hyperboloid(points) if name == "lorentz" else points
    assert finding_codes(reconstruct(tree, vectors, name, relation="closure")) == []
    for single in (vectors.astype(np.float32), vectors.astype(np.float32).astype(np.float64)):
        reconstruction = reconstruct(tree, single, name, relation="closure")
        (finding,) = (
            finding for finding in run_checks(ReconstructedTree("model", reconstruction)) if finding.code == "EQ113"
        )
        assert finding.evidence == ("n7",)
        assert "1 of 120 points is so far from the origin that rounding to float32" in finding.message


def test_results_include_the_findings_of_the_reconstruction() -> None:
    tree = random_tree(second_parents=0)
    reconstruction = reconstruct(tree, points_of(tree, "euclidean"))
    result: Result = reconstruction_result(reconstruction, system="model", config=StatsConfig(n_resamples=50))
    with_all_findings = with_findings(result, reconstruction, reconstruction_metrics(filtered=reconstruction.filtered))
    assert {"EQ104", "EQ305"} <= {finding.code for finding in with_all_findings.findings}
    assert (
        with_findings(with_all_findings, reconstruction, reconstruction_metrics(filtered=False)).findings
        == with_all_findings.findings
    )


@pytest.mark.engines("torch")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["euclidean", "poincare", "lorentz"])
def test_ranks_on_a_device_agree_with_the_host(name: str, relation: str) -> None:
    pytest.importorskip("torch")
    tree = random_tree()
    vectors = points_of(tree, name)
    on_device, on_host = (
        reconstruct(tree, vectors, name, relation=relation, device=device).ranking for device in ("cpu", None)
    )
    for column in ("above", "tied", "before"):
        np.testing.assert_array_equal(getattr(on_device, column), getattr(on_host, column))
