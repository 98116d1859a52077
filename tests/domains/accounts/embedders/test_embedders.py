"""Every embedder of trees: shapes, seeds, names, options, and points that lie in their space."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.accounts.embedders import STARTS, TRAINING_RADIUS, TREE_EMBEDDERS, TreeEmbedder, tree_embedder
from equipoise.domains.accounts.evaluation import reconstruct
from equipoise.domains.accounts.trees.tree import RELATIONS, Tree
from equipoise.errors import InputError, ParameterError, UnknownNameError
from equipoise.geometry import distances
from equipoise.geometry.spaces import geometry
from equipoise.metrics.parser import parse_metrics

TRAINED = ("euclidean", "poincare", "lorentz")
DISTANCES: dict[str, Callable[..., np.ndarray]] = {
    "euclidean": distances.euclidean,
    "poincare": distances.poincare,
    "lorentz": distances.lorentz,
}


def branching(children: int, levels: int) -> Tree:
    """A tree in which every inner node has as many children; the root is called r."""
    nodes, edges, layer = ["r"], [], ["r"]
    for _ in range(levels):
        below = [(f"{parent}{child}", parent) for parent in layer for child in range(children)]
        edges += below
        layer = [node for node, _ in below]
        nodes += layer
    return Tree.of(nodes, edges)


def diamond() -> Tree:
    """Two roots, a node with two parents, and a node alone."""
    return Tree.of(["a", "b", "c", "d", "alone"], [("c", "a"), ("c", "b"), ("d", "c")])


def mean_precision(tree: Tree, vectors: np.ndarray, name: str, relation: str = "closure") -> float:
    """Mean average precision over the undirected closure or another relation, by sorting every row."""
    related = np.zeros((len(tree), len(tree)), dtype=bool)
    below, above = (tree.edges if relation == "parent" else tree.closure()).T
    related[below, above] = True
    if relation == "closure":
        related |= related.T
    found = []
    for node in range(len(tree)):
        order = np.argsort(DISTANCES[name](vectors[node], vectors), kind="stable")
        hits = related[node, order[order != node]]
        if hits.any():
            found.append(np.mean((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits]))
    return float(np.mean(found))


@pytest.mark.slow
@pytest.mark.parametrize("name", TREE_EMBEDDERS)
def test_every_node_gets_a_point_that_its_geometry_accepts(name: str) -> None:
    tree = diamond()
    found = tree_embedder(name).fit(tree, 3)
    assert found.ids == tree.ids
    assert found.vectors.shape == (5, 4 if name == "lorentz" else 3)
    assert found.dim == 3
    assert found.vectors.dtype == np.float64
    assert geometry(found.geometry).check(found.vectors).ok
    assert found.geometry == tree_embedder(name).geometry


@pytest.mark.parametrize("name", TREE_EMBEDDERS)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_points(name: str) -> None:
    tree = branching(3, 2)
    first, again, other = (tree_embedder(name).fit(tree, 4, seed) for seed in (1, 1, 2))
    assert first.vectors.tobytes() == again.vectors.tobytes()
    assert not np.array_equal(first.vectors, other.vectors)


@pytest.mark.parametrize("name", ["poincare", "lorentz"])
def test_hyperbolic_training_reconstructs_a_tree_in_five_dimensions(name: str) -> None:
    tree = branching(3, 4)
    found = tree_embedder(name, epochs=60, train_relation="closure").fit(tree, 5)
    assert mean_precision(tree, found.vectors, name) > 0.97
    assert np.mean(found.history[-5:]) < 0.5 * max(found.history)


@pytest.mark.slow
def test_flat_training_is_far_better_than_chance_and_worse_than_hyperbolic() -> None:
    tree = branching(4, 3)
    flat = tree_embedder("euclidean", epochs=60, train_relation="closure").fit(tree, 3)
    hyperbolic = tree_embedder("lorentz", epochs=60, train_relation="closure").fit(tree, 3)
    chance = mean_precision(tree, tree_embedder("random").fit(tree, 3).vectors, "euclidean")
    reached = mean_precision(tree, flat.vectors, "euclidean")
    assert chance + 0.3 < reached < mean_precision(tree, hyperbolic.vectors, "lorentz")


def test_ball_and_hyperboloid_are_two_pictures_of_the_same_points() -> None:
    tree = branching(2, 3)
    ball = tree_embedder("poincare", epochs=5).fit(tree, 3).vectors
    sheet = tree_embedder("lorentz", epochs=5).fit(tree, 3).vectors
    np.testing.assert_allclose(distances.ball_to_hyperboloid(ball), sheet, rtol=1e-8, atol=1e-8)


@settings(deadline=None, max_examples=25)
@given(
    learning_rate=st.sampled_from([1e-300, 1e-3, 1.0, 1e3, 1e100, 1e300]),
    temperature=st.sampled_from([1e3, 1.0, 0.02, 1e-9]),
    name=st.sampled_from(TRAINED),
    dim=st.integers(1, 4),
    epochs=st.integers(1, 12),
    seed=st.integers(0, 5),
    relation=st.sampled_from(RELATIONS),
)
def test_no_rate_leads_out_of_the_space(
    learning_rate: float, temperature: float, name: str, dim: int, epochs: int, seed: int, relation: str
) -> None:
    options = {
        "learning_rate": learning_rate,
        "final_learning_rate": learning_rate,
        "temperature": temperature,
        "epochs": epochs,
    }
    found = tree_embedder(name, train_relation=relation, **options).fit(diamond(), dim, seed)
    assert np.isfinite(found.vectors).all()
    assert np.isfinite(found.history).all()
    assert geometry(name).check(found.vectors).ok


@pytest.mark.parametrize("relation", ["parent", "ancestors"])
def test_training_on_a_relation_serves_that_relation(relation: str) -> None:
    tree = branching(4, 3)
    asked, default = (
        mean_precision(
            tree,
            tree_embedder("lorentz", epochs=60, train_relation=chosen).fit(tree, 3).vectors,
            "lorentz",
            relation,
        )
        for chosen in (relation, "closure")
    )
    assert 1.0 - asked < 0.5 * (1.0 - default)


def test_training_ends_once_the_loss_does_not_decrease() -> None:
    tree = Tree.from_edges([("a", "r"), ("b", "r")])
    options = {"learning_rate": 1e-9, "final_learning_rate": 1e-9}
    stopped, full = (
        tree_embedder("lorentz", epochs=500, patience=patience, **options).fit_from(tree, 2, 0, CONES)  # type: ignore[attr-defined]
        for patience in (5, 0)
    )
    assert len(stopped.history) < len(full.history) == 500


CONES = next(index for index, (radius, _) in enumerate(STARTS) if radius is None)


def test_the_order_of_nodes_and_edges_does_not_change_the_points() -> None:
    tree = branching(3, 3)
    order = np.random.default_rng(0).permutation(len(tree))
    shuffled = Tree.of([tree.ids[node] for node in order], tree.named_edges()[::-1])
    for name in ("lorentz", "euclidean", "combinatorial"):
        first, other = (tree_embedder(name).fit(item, 3, 5).vectors for item in (tree, shuffled))
        np.testing.assert_array_equal(first[order], other)


def test_the_run_with_the_lowest_loss_is_kept() -> None:
    tree = branching(4, 3)
    embedder = tree_embedder("euclidean", restarts=4, epochs=20)
    runs = [embedder.fit_from(tree, 2, 3, start) for start in range(4)]  # type: ignore[attr-defined]
    found = embedder.fit(tree, 2, 3)
    losses = [run.settings["loss"] for run in runs]
    assert found.settings["start"] == int(np.argmin(losses))
    np.testing.assert_array_equal(found.vectors, runs[int(np.argmin(losses))].vectors)
    # The loss is the mean logarithm of the ranks, here by sorting.
    near = np.array([np.sort(DISTANCES["euclidean"](point, found.vectors)) for point in found.vectors])
    child, parent = tree.edges.T
    to_parent = DISTANCES["euclidean"](found.vectors[child], found.vectors[parent])
    ranks = (near[child] < to_parent[:, None] - 1e-9).sum(axis=1)
    assert found.settings["loss"] == pytest.approx(np.log(ranks).mean(), abs=1e-6)


def test_progress_is_reported_for_every_epoch_of_every_run() -> None:
    reported: list[tuple[int, int]] = []
    tree_embedder("euclidean", epochs=3, restarts=2).fit(
        branching(4, 3), 2, progress=lambda done, total: reported.append((done, total))
    )
    assert [total for _, total in reported] == [6] * len(reported)
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
    assert reported[-1] == (6, 6)


def test_a_tree_without_edges_needs_no_training() -> None:
    found = tree_embedder("lorentz").fit(Tree.of(["only"], []), 2)
    assert found.history == ()
    assert geometry("lorentz").check(found.vectors).ok


def test_a_mistyped_embedder_is_offered_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="'lorenz'") as caught:
        tree_embedder("lorenz")
    assert caught.value.hint == "did you mean lorentz?"


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("lorentz", {"epoch": 3}, "has no option 'epoch'"),
        ("lorentz", {"learning_rate": -1.0}, "learning_rate is -1.0"),
        ("lorentz", {"learning_rate": float("nan")}, "learning_rate is nan"),
        ("euclidean", {"epochs": 0}, "epochs is 0"),
        ("lorentz", {"train_relation": "cousins"}, "train_relation is 'cousins'"),
        ("random", {"epochs": 3}, "has no option epochs"),
        ("combinatorial", {"radius": 0.0}, "radius is 0"),
        ("lorentz", {"restarts": 0}, "restarts is 0"),
        ("text:", {}, "has no model name"),
    ],
)
def test_options_that_mean_nothing_are_refused(name: str, options: dict[str, float], sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        tree_embedder(name, **options)


@pytest.mark.parametrize("dim", [0, -1, 2.5])
def test_a_dimension_is_a_whole_number(dim: int) -> None:
    with pytest.raises(ParameterError, match=f"dim is {dim}"):
        tree_embedder("lorentz").fit(diamond(), dim)


def test_an_empty_tree_cannot_be_embedded() -> None:
    with pytest.raises(InputError):
        tree_embedder("random").fit(Tree.of([], []), 2)


@pytest.mark.slow
def test_text_embedders_read_the_names() -> None:
    pytest.importorskip("wordllama")
    tree = Tree.of([("1", "cash"), ("2", "cash"), ("3", "elephant")], [])
    found = tree_embedder("text:wordllama").fit(tree, 8)
    assert isinstance(tree_embedder("text:wordllama"), TreeEmbedder)
    assert found.vectors.shape == (3, 8)
    np.testing.assert_array_equal(found.vectors[0], found.vectors[1])
    with pytest.raises(ParameterError, match="9999"):
        tree_embedder("text:wordllama").fit(tree, 9999)


@pytest.mark.parametrize(("name", "epochs"), [("lorentz", 1000), ("euclidean", 400)])
def test_stages_share_more_epochs_than_a_single_descent_has(name: str, epochs: int):
    assert tree_embedder(name).config.epochs == epochs
    assert tree_embedder(name, epochs=7).config.epochs == 7


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("count", [7, 15, 31])
def test_a_small_tree_is_embedded_without_fault_within_the_radius(count: int, relation: str):
    small = Tree.from_edges([(f"n{node}", f"n{(node - 1) // 2}") for node in range(1, count)])
    for seed in range(4):
        vectors = tree_embedder("lorentz", train_relation=relation).fit(small, 3, seed).vectors
        ranking = reconstruct(small, vectors, "lorentz", relation=relation).ranking
        assert parse_metrics("MR(filtered)")[0].measure(ranking).value < 1.2
        assert np.arccosh(vectors[:, 0]).max() < TRAINING_RADIUS + 1e-6


@pytest.mark.parametrize("option", ["learning_rate", "final_learning_rate", "temperature"])
def test_the_smallest_numbers_train_too(option: str):
    found = tree_embedder("lorentz", epochs=12, **{option: 1e308 if option == "temperature" else 5e-324}).fit(
        branching(3, 3), 3
    )
    assert np.isfinite(found.vectors).all()


def test_refinement_is_optional():
    tree = branching(3, 3)
    plain, refined = (tree_embedder("euclidean", epochs=20, refinement_epochs=count).fit(tree, 3) for count in (0, 5))
    assert len(refined.history) == 20
    assert plain.vectors.tobytes() != refined.vectors.tobytes()
    with pytest.raises(ParameterError, match="refinement_epochs is 20"):
        tree_embedder("lorentz", epochs=20, refinement_epochs=20)


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("relation", RELATIONS)
def test_settings_of_a_relation_give_way_to_those_that_are_given(name: str, relation: str):
    default = tree_embedder(name, train_relation=relation).config
    assert default.train_relation == relation
    changed = tree_embedder(
        name, train_relation=relation, temperature=0.2, learning_rate=0.7, n_branch_negatives=3
    ).config
    assert (changed.temperature, changed.learning_rate, changed.n_branch_negatives) == (0.2, 0.7, 3)
    assert changed.final_learning_rate == default.final_learning_rate


def test_a_name_in_other_letters_is_the_same_embedder():
    assert tree_embedder(" Lorentz", epochs=2).config == tree_embedder("lorentz", epochs=2).config


def test_a_text_model_is_not_trained():
    with pytest.raises(ParameterError, match="train_relation"):
        tree_embedder("text:hash", train_relation="parent")


@pytest.mark.parametrize("name", TRAINED)
def test_training_continues_with_new_nodes_next_to_their_parents(name: str) -> None:
    tree = branching(3, 3)
    leaves = {tree.ids[leaf] for leaf in tree.leaves}
    old = tree.taken(np.array([i for i, key in enumerate(tree.ids) if not (key in leaves and key.endswith("2"))]))
    embedder = tree_embedder(name, epochs=300)
    before = embedder.fit(old, 5)
    after = embedder.fit_more(tree, before)  # type: ignore[attr-defined]
    assert after.ids == tree.ids
    assert after.settings["new_nodes"] == len(tree) - len(old)
    assert geometry(after.geometry).check(after.vectors).ok
    assert mean_precision(tree, after.vectors, name, "parent") > 0.9
    rows = after.vectors[[tree.position(key) for key in old.ids]]
    moved = DISTANCES[name](rows, before.vectors)
    assert np.median(moved) < np.median(DISTANCES[name](before.vectors[0], before.vectors[1:]))


def test_training_continues_in_the_same_space_only() -> None:
    tree = branching(2, 2)
    vectors = tree_embedder("lorentz", epochs=3).fit(tree, 3)
    with pytest.raises(ParameterError):
        tree_embedder("poincare", epochs=3).fit_more(tree, vectors)  # type: ignore[attr-defined]
    with pytest.raises(InputError):
        tree_embedder("lorentz", epochs=3).fit_more(Tree.of(["x"], []), vectors)  # type: ignore[attr-defined]
