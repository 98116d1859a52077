"""Whatever a user has becomes vectors of the nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise.domains.accounts.embedders import tree_embedder
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.domains.accounts.vectors import NodeVectors, node_vectors_from
from equipoise.errors import InputError, ParameterError, ShapeError

TREE = Tree.from_edges([("cash", "assets"), ("bank", "assets")], {"cash": "Petty cash"})
ROWS = np.arange(6, dtype=float).reshape(3, 2)


class OfNames:
    """Fits names and keeps what it was given."""

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}

    def fit(self, names: list[str], batch_size: int = 1, seed: int = 7) -> None:
        """Remember everything."""
        self.seen = {"names": names, "batch_size": batch_size, "seed": seed}

    def encode(self, names: list[str]) -> list[list[float]]:
        """As long as the name."""
        return [[float(len(name)), 1.0] for name in names]


def found(given: Any, **options: Any) -> NodeVectors:
    return node_vectors_from(given, TREE, geometry="euclidean", **options)


def test_a_matrix_has_a_row_a_node() -> None:
    assert np.array_equal(found(ROWS).vectors, ROWS)
    assert np.array_equal(found(ROWS.tolist()).vectors, ROWS)


def test_a_mapping_has_a_vector_an_id_in_any_order() -> None:
    mapping = dict(zip(reversed(TREE.ids), ROWS, strict=True))
    assert np.array_equal(found(mapping).vectors, ROWS[::-1])


@pytest.mark.engines("torch")
def test_a_tensor_that_is_trained_is_taken() -> None:
    torch = pytest.importorskip("torch")
    assert np.array_equal(found(torch.tensor(ROWS, requires_grad=True)).vectors, ROWS)


def test_fit_of_names_gets_the_names_the_training_options_and_the_seed() -> None:
    model = OfNames()
    vectors = found(model, seed=3, dim=5, batch_size=32).vectors
    assert model.seen == {"names": list(TREE.names), "batch_size": 32, "seed": 3}
    assert vectors[:, 0].tolist() == [len(name) for name in TREE.names]


def test_fit_of_a_tree_gets_the_tree() -> None:
    made = found(tree_embedder("random"), dim=4, seed=1)
    assert made.vectors.shape == (3, 4)
    assert np.array_equal(made.vectors, tree_embedder("random").fit(TREE, 4, 1).vectors)


def test_a_fit_that_returns_a_matrix_is_believed() -> None:
    class Returns:
        def fit(self, accounts: list[str]) -> Any:
            return ROWS

    assert np.array_equal(found(Returns()).vectors, ROWS)


def test_an_object_may_keep_its_vectors() -> None:
    class Keeps:
        def fit(self, tree: Tree) -> Any:
            self.embeddings = ROWS + len(tree)
            return self

    assert np.array_equal(found(Keeps()).vectors, ROWS + 3)


def test_vectors_with_ids_are_put_into_the_order_of_the_tree() -> None:
    turned = NodeVectors(TREE.ids[::-1], TREE.names[::-1], ROWS[::-1], "euclidean")
    again = found(turned)
    assert again.ids == TREE.ids
    assert np.array_equal(again.vectors, ROWS)


@pytest.mark.parametrize(
    ("given", "options", "kind", "words"),
    [
        (ROWS[:2], {}, ShapeError, "shape (2, 2) for 3 nodes"),
        ({"cash": [1.0]}, {}, InputError, "2 of 3 nodes have no vector, assets"),
        ([["a"], ["b"], ["c"]], {}, InputError, "not numeric rows"),
        (object(), {}, ParameterError, "object has no vectors"),
        (ROWS, {"epochs": 3}, ParameterError, "no training options, and got epochs"),
        (OfNames(), {"batchsize": 3}, ParameterError, "takes no batchsize"),
        (
            NodeVectors(("cash",), ("c",), ROWS[:1], "euclidean"),
            {},
            InputError,
            "2 of 3 nodes have no vector",
        ),
        (
            NodeVectors(("cash", "cash", "bank"), ("c",) * 3, ROWS, "euclidean"),
            {},
            InputError,
            "contain the node cash twice",
        ),
    ],
)
def test_what_gives_no_vectors_is_refused_with_a_sentence(
    given: Any, options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as caught:
        found(given, **options)
    assert words in str(caught.value)
