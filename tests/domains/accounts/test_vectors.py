"""Node vectors from arrays, mappings, tensors and embedders."""

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


class NameLengthModel:
    """Fits names and stores the arguments of ``fit``."""

    def __init__(self) -> None:
        self.fit_arguments: dict[str, Any] = {}

    def fit(self, names: list[str], batch_size: int = 1, seed: int = 7) -> None:
        """Store the arguments."""
        self.fit_arguments = {"names": names, "batch_size": batch_size, "seed": seed}

    def encode(self, names: list[str]) -> list[list[float]]:
        """The length of each name."""
        return [[float(len(name)), 1.0] for name in names]


def vectors_from(source: Any, **options: Any) -> NodeVectors:
    return node_vectors_from(source, TREE, geometry="euclidean", **options)


def test_a_matrix_has_one_row_per_node() -> None:
    assert np.array_equal(vectors_from(ROWS).vectors, ROWS)
    assert np.array_equal(vectors_from(ROWS.tolist()).vectors, ROWS)


def test_a_mapping_has_one_vector_per_id_in_any_order() -> None:
    mapping = dict(zip(reversed(TREE.ids), ROWS, strict=True))
    assert np.array_equal(vectors_from(mapping).vectors, ROWS[::-1])


@pytest.mark.engines("torch")
def test_a_tensor_with_gradient_is_accepted() -> None:
    torch = pytest.importorskip("torch")
    assert np.array_equal(vectors_from(torch.tensor(ROWS, requires_grad=True)).vectors, ROWS)


def test_fit_with_names_gets_the_names_the_training_options_and_the_seed() -> None:
    model = NameLengthModel()
    vectors = vectors_from(model, seed=3, dim=5, batch_size=32).vectors
    assert model.fit_arguments == {"names": list(TREE.names), "batch_size": 32, "seed": 3}
    assert vectors[:, 0].tolist() == [len(name) for name in TREE.names]


def test_fit_with_a_tree_gets_the_tree() -> None:
    vectors = vectors_from(tree_embedder("random"), dim=4, seed=1)
    assert vectors.vectors.shape == (3, 4)
    assert np.array_equal(vectors.vectors, tree_embedder("random").fit(TREE, 4, 1).vectors)


def test_a_matrix_returned_by_fit_is_used() -> None:
    class MatrixModel:
        def fit(self, accounts: list[str]) -> Any:
            return ROWS

    assert np.array_equal(vectors_from(MatrixModel()).vectors, ROWS)


def test_an_object_may_store_its_vectors() -> None:
    class StoringModel:
        def fit(self, tree: Tree) -> Any:
            self.embeddings = ROWS + len(tree)
            return self

    assert np.array_equal(vectors_from(StoringModel()).vectors, ROWS + 3)


def test_vectors_with_ids_are_put_into_the_order_of_the_tree() -> None:
    reversed_vectors = NodeVectors(TREE.ids[::-1], TREE.names[::-1], ROWS[::-1], "euclidean")
    reordered = vectors_from(reversed_vectors)
    assert reordered.ids == TREE.ids
    assert np.array_equal(reordered.vectors, ROWS)


@pytest.mark.parametrize(
    ("source", "options", "kind", "text"),
    [
        (ROWS[:2], {}, ShapeError, "shape (2, 2) for 3 nodes"),
        ({"cash": [1.0]}, {}, InputError, "2 of 3 nodes have no vector; the first is assets"),
        ([["a"], ["b"], ["c"]], {}, InputError, "not numeric rows"),
        (object(), {}, ParameterError, "object has no vectors"),
        (ROWS, {"epochs": 3}, ParameterError, "no training options, and got epochs"),
        (NameLengthModel(), {"batchsize": 3}, ParameterError, "takes no batchsize"),
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
def test_invalid_vectors_are_errors(source: Any, options: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as error_info:
        vectors_from(source, **options)
    assert text in str(error_info.value)
