"""Every embedder of trees: shapes, seeds, names, options, and points within their space."""

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
    """A tree in which every inner node has the same number of children; the root is r."""
    nodes, edges, layer = ["r"], [], ["r"]
    for _ in range(levels):
        child_edges = [(f"{parent}{child}", parent) for parent in layer for child in range(children)]
        edges += child_edges
        layer = [node for node, _ in child_edges]
        nodes += layer
    return Tree.of(nodes, edges)


def diamond() -> Tree:
    """Two roots, a node with two parents, and an isolated node."""
    return Tree.of(["a", "b", "c", "d", "isolated"], [("c", "a"), ("c", "b"), ("d", "c")])


def mean_precision(tree: Tree, vectors: np.ndarray, name: str, relation: str = "closure") -> float:
    """Mean average precision over the undirected closure or another relation, by sorting every row."""
    related = np.zeros((len(tree), len(tree)), dtype=bool)
    descendants, ancestors = (tree.edges if relation == "parent" else tree.closure()).T
    related[descendants, ancestors] = True
    if relation == "closure":
        related |= related.T
    precisions = []
    for node in range(len(tree)):
        order = np.argsort(DISTANCES[name](vectors[node], vectors), kind="stable")
        hits = related[node, order[order != node]]
        if hits.any():
            precisions.append(np.mean((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits]))
    return float(np.mean(precisions))


@pytest.mark.slow
@pytest.mark.parametrize("name", TREE_EMBEDDERS)
def test_every_node_gets_a_point_that_its_geometry_accepts(name: str) -> None:
    tree = diamond()
    embedding = tree_embedder(name).fit(tree, 3)
    assert embedding.ids == tree.ids
    assert embedding.vectors.shape == (5, 4 if name == "lorentz" else 3)
    assert embedding.dim == 3
    assert embedding.vectors.dtype == np.float64
    assert geometry(embedding.geometry).check(embedding.vectors).ok
    assert embedding.geometry == tree_embedder(name).geometry


@pytest.mark.parametrize("name", TREE_EMBEDDERS)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_points(name: str) -> None:
    tree = branching(3, 2)
    first, repeated, other = (tree_embedder(name).fit(tree, 4, seed) for seed in (1, 1, 2))
    assert first.vectors.tobytes() == repeated.vectors.tobytes()
    assert not np.array_equal(first.vectors, other.vectors)


@pytest.mark.parametrize("name", ["poincare", "lorentz"])
def test_hyperbolic_training_reconstructs_a_tree_in_five_dimensions(name: str) -> None:
    tree = branching(3, 4)
    embedding = tree_embedder(name, epochs=60, train_relation="closure").fit(tree, 5)
    assert mean_precision(tree, embedding.vectors, name) > 0.97
    assert np.mean(embedding.history[-5:]) < 0.5 * max(embedding.history)


@pytest.mark.slow
def test_euclidean_training_is_better_than_chance_and_worse_than_hyperbolic() -> None:
    tree = branching(4, 3)
    euclidean = tree_embedder("euclidean", epochs=60, train_relation="closure").fit(tree, 3)
    hyperbolic = tree_embedder("lorentz", epochs=60, train_relation="closure").fit(tree, 3)
    chance = mean_precision(tree, tree_embedder("random").fit(tree, 3).vectors, "euclidean")
    euclidean_precision = mean_precision(tree, euclidean.vectors, "euclidean")
    assert chance + 0.3 < euclidean_precision < mean_precision(tree, hyperbolic.vectors, "lorentz")


def test_ball_and_hyperboloid_have_the_same_points() -> None:
    tree = branching(2, 3)
    ball = tree_embedder("poincare", epochs=5).fit(tree, 3).vectors
    hyperboloid = tree_embedder("lorentz", epochs=5).fit(tree, 3).vectors
    np.testing.assert_allclose(distances.ball_to_hyperboloid(ball), hyperboloid, rtol=1e-8, atol=1e-8)


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
def test_no_learning_rate_moves_a_point_out_of_its_space(
    learning_rate: float, temperature: float, name: str, dim: int, epochs: int, seed: int, relation: str
) -> None:
    options = {
        "learning_rate": learning_rate,
        "final_learning_rate": learning_rate,
        "temperature": temperature,
        "epochs": epochs,
    }
    embedding = tree_embedder(name, train_relation=relation, **options).fit(diamond(), dim, seed)
    assert np.isfinite(embedding.vectors).all()
    assert np.isfinite(embedding.history).all()
    assert geometry(name).check(embedding.vectors).ok


@pytest.mark.parametrize("relation", ["parent", "ancestors"])
def test_training_on_a_relation_improves_that_relation(relation: str) -> None:
    tree = branching(4, 3)
    precision, closure_precision = (
        mean_precision(
            tree,
            tree_embedder("lorentz", epochs=60, train_relation=train_relation).fit(tree, 3).vectors,
            "lorentz",
            relation,
        )
        for train_relation in (relation, "closure")
    )
    assert 1.0 - precision < 0.5 * (1.0 - closure_precision)


def test_training_stops_when_the_loss_does_not_decrease() -> None:
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
        first, shuffled_vectors = (tree_embedder(name).fit(item, 3, 5).vectors for item in (tree, shuffled))
        np.testing.assert_array_equal(first[order], shuffled_vectors)


def test_the_run_with_the_lowest_loss_is_kept() -> None:
    tree = branching(4, 3)
    embedder = tree_embedder("euclidean", restarts=4, epochs=20)
    runs = [embedder.fit_from(tree, 2, 3, start) for start in range(4)]  # type: ignore[attr-defined]
    embedding = embedder.fit(tree, 2, 3)
    losses = [run.settings["loss"] for run in runs]
    assert embedding.settings["start"] == int(np.argmin(losses))
    np.testing.assert_array_equal(embedding.vectors, runs[int(np.argmin(losses))].vectors)
    # The loss is the mean logarithm of the ranks, here by sorting.
    sorted_distances = np.array(
        [np.sort(DISTANCES["euclidean"](point, embedding.vectors)) for point in embedding.vectors]
    )
    child, parent = tree.edges.T
    parent_distances = DISTANCES["euclidean"](embedding.vectors[child], embedding.vectors[parent])
    ranks = (sorted_distances[child] < parent_distances[:, None] - 1e-9).sum(axis=1)
    assert embedding.settings["loss"] == pytest.approx(np.log(ranks).mean(), abs=1e-6)


def test_progress_is_reported_for_every_epoch_of_every_run() -> None:
    progress_calls: list[tuple[int, int]] = []
    tree_embedder("euclidean", epochs=3, restarts=2).fit(
        branching(4, 3), 2, progress=lambda done, total: progress_calls.append((done, total))
    )
    assert [total for _, total in progress_calls] == [6] * len(progress_calls)
    assert [done for done, _ in progress_calls] == sorted(done for done, _ in progress_calls)
    assert progress_calls[-1] == (6, 6)


def test_a_tree_without_edges_needs_no_training() -> None:
    embedding = tree_embedder("lorentz").fit(Tree.of(["only"], []), 2)
    assert embedding.history == ()
    assert geometry("lorentz").check(embedding.vectors).ok


def test_a_mistyped_embedder_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="'lorenz'") as error_info:
        tree_embedder("lorenz")
    assert error_info.value.hint == "did you mean lorentz?"


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("lorentz", {"epoch": 3}, "'epoch'"),
        ("lorentz", {"learning_rate": -1.0}, "learning_rate is -1.0"),
        ("lorentz", {"learning_rate": float("nan")}, "learning_rate is nan"),
        ("euclidean", {"epochs": 0}, "epochs is 0"),
        ("lorentz", {"train_relation": "cousins"}, "train_relation is 'cousins'"),
        ("random", {"epochs": 3}, "epochs"),
        ("combinatorial", {"radius": 0.0}, "radius is 0"),
        ("lorentz", {"restarts": 0}, "restarts is 0"),
        ("text:", {}, "text:"),
    ],
)
def test_invalid_options_are_errors(name: str, options: dict[str, float], text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        tree_embedder(name, **options)


@pytest.mark.parametrize("dim", [0, -1, 2.5])
def test_a_dimension_is_a_positive_integer(dim: int) -> None:
    with pytest.raises(ParameterError, match=f"dim is {dim}"):
        tree_embedder("lorentz").fit(diamond(), dim)


def test_an_empty_tree_cannot_be_embedded() -> None:
    with pytest.raises(InputError):
        tree_embedder("random").fit(Tree.of([], []), 2)


@pytest.mark.slow
def test_text_embedders_embed_the_names() -> None:
    pytest.importorskip("wordllama")
    tree = Tree.of([("1", "cash"), ("2", "cash"), ("3", "elephant")], [])
    embedding = tree_embedder("text:wordllama").fit(tree, 8)
    assert isinstance(tree_embedder("text:wordllama"), TreeEmbedder)
    assert embedding.vectors.shape == (3, 8)
    np.testing.assert_array_equal(embedding.vectors[0], embedding.vectors[1])
    with pytest.raises(ParameterError, match="9999"):
        tree_embedder("text:wordllama").fit(tree, 9999)


@pytest.mark.parametrize(("name", "epochs"), [("lorentz", 1000), ("euclidean", 400)])
def test_training_stages_have_more_epochs_than_a_single_descent(name: str, epochs: int):
    assert tree_embedder(name).config.epochs == epochs
    assert tree_embedder(name, epochs=7).config.epochs == 7


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("count", [7, 15, 31])
def test_a_small_tree_is_embedded_exactly_within_the_radius(count: int, relation: str):
    tree = Tree.from_edges([(f"n{node}", f"n{(node - 1) // 2}") for node in range(1, count)])
    for seed in range(4):
        vectors = tree_embedder("lorentz", train_relation=relation).fit(tree, 3, seed).vectors
        ranking = reconstruct(tree, vectors, "lorentz", relation=relation).ranking
        assert parse_metrics("MR(filtered)")[0].measure(ranking).value < 1.2
        assert np.arccosh(vectors[:, 0]).max() < TRAINING_RADIUS + 1e-6


@pytest.mark.parametrize("option", ["learning_rate", "final_learning_rate", "temperature"])
def test_the_smallest_learning_rates_give_finite_points(option: str):
    embedding = tree_embedder("lorentz", epochs=12, **{option: 1e308 if option == "temperature" else 5e-324}).fit(
        branching(3, 3), 3
    )
    assert np.isfinite(embedding.vectors).all()


def test_refinement_is_optional():
    tree = branching(3, 3)
    unrefined, refined = (
        tree_embedder("euclidean", epochs=20, refinement_epochs=count).fit(tree, 3) for count in (0, 5)
    )
    assert len(refined.history) == 20
    assert unrefined.vectors.tobytes() != refined.vectors.tobytes()
    with pytest.raises(ParameterError, match="refinement_epochs is 20"):
        tree_embedder("lorentz", epochs=20, refinement_epochs=20)


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("relation", RELATIONS)
def test_given_settings_override_those_of_a_relation(name: str, relation: str):
    default = tree_embedder(name, train_relation=relation).config
    assert default.train_relation == relation
    changed = tree_embedder(
        name, train_relation=relation, temperature=0.2, learning_rate=0.7, n_branch_negatives=3
    ).config
    assert (changed.temperature, changed.learning_rate, changed.n_branch_negatives) == (0.2, 0.7, 3)
    assert changed.final_learning_rate == default.final_learning_rate


def test_names_of_embedders_ignore_case_and_white_space():
    assert tree_embedder(" Lorentz", epochs=2).config == tree_embedder("lorentz", epochs=2).config


def test_a_text_model_is_not_trained():
    with pytest.raises(ParameterError, match="train_relation"):
        tree_embedder("text:hash", train_relation="parent")


@pytest.mark.parametrize("name", TRAINED)
def test_training_continues_with_new_nodes_next_to_their_parents(name: str) -> None:
    tree = branching(3, 3)
    leaves = {tree.ids[leaf] for leaf in tree.leaves}
    old_tree = tree.taken(np.array([i for i, key in enumerate(tree.ids) if not (key in leaves and key.endswith("2"))]))
    embedder = tree_embedder(name, epochs=300)
    old_embedding = embedder.fit(old_tree, 5)
    embedding = embedder.fit_more(tree, old_embedding)  # type: ignore[attr-defined]
    assert embedding.ids == tree.ids
    assert embedding.settings["new_nodes"] == len(tree) - len(old_tree)
    assert geometry(embedding.geometry).check(embedding.vectors).ok
    assert mean_precision(tree, embedding.vectors, name, "parent") > 0.9
    rows = embedding.vectors[[tree.position(key) for key in old_tree.ids]]
    movement = DISTANCES[name](rows, old_embedding.vectors)
    assert np.median(movement) < np.median(DISTANCES[name](old_embedding.vectors[0], old_embedding.vectors[1:]))


def test_training_continues_only_in_the_same_space() -> None:
    tree = branching(2, 2)
    vectors = tree_embedder("lorentz", epochs=3).fit(tree, 3)
    assert tree_embedder("poincare", epochs=3).fit_more(tree, vectors).geometry == "poincare"  # type: ignore[attr-defined]
    with pytest.raises(ParameterError):
        tree_embedder("euclidean", epochs=3).fit_more(tree, vectors)  # type: ignore[attr-defined]
    with pytest.raises(InputError):
        tree_embedder("lorentz", epochs=3).fit_more(Tree.of(["x"], []), vectors)  # type: ignore[attr-defined]
