"""Vector files of other programs, and distance matrices."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from equipoise.domains.accounts.distances import align_distances, read_distances, scores_of_distances
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.domains.accounts.vectors import NodeVectors, node_vectors_from, read_node_vectors
from equipoise.errors import EquipoiseError, FormatError, ShapeError

ROWS = np.random.default_rng(0).normal(size=(3, 4))
IDS = ("cash", "petty cash", "bank")


def word2vec_text(header: bool) -> str:
    lines = [f"{key} {' '.join(map(repr, row))}" for key, row in zip(IDS, ROWS.tolist(), strict=True)]
    return "\n".join([*(["3 4"] if header else []), *lines]) + "\n"


def test_word2vec_text_may_have_spaces_in_ids(tmp_path: Path) -> None:
    file = tmp_path / "vectors.vec"
    file.write_text(word2vec_text(header=True))
    vectors = read_node_vectors(file)
    assert vectors.ids == IDS
    np.testing.assert_array_equal(vectors.vectors, ROWS)
    file.write_text("cash 1.0 2.0\nbank 3.0 4.0\n")
    assert read_node_vectors(file, "poincare").vectors.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("text", ["", "5 2\na 1 2\n", "2 2\na 1 x\nb 1 2\n", "1 2\n1 2\n"])
def test_malformed_word2vec_text_is_an_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text(text)
    with pytest.raises(EquipoiseError):
        read_node_vectors(file)


@pytest.mark.engines("gensim")
def test_gensim_files_are_read_without_gensim(tmp_path: Path) -> None:
    gensim = pytest.importorskip("gensim.models")
    keyed_vectors = gensim.KeyedVectors(4)
    keyed_vectors.add_vectors(list(IDS), ROWS)
    keyed_vectors.save(str(tmp_path / "vectors.kv"))
    vectors = read_node_vectors(tmp_path / "vectors.kv")
    assert (vectors.ids, vectors.geometry) == (IDS, "euclidean")
    np.testing.assert_allclose(vectors.vectors, ROWS, rtol=1e-6)
    keyed_vectors.save(str(tmp_path / "split.kv"), sep_limit=1)
    np.testing.assert_allclose(read_node_vectors(tmp_path / "split.kv").vectors, ROWS, rtol=1e-6)
    pairs = [("cash", "assets"), ("bank", "assets"), ("loan", "debts"), ("tax", "debts")]
    model = pytest.importorskip("gensim.models.poincare").PoincareModel(pairs, size=2, seed=0, negative=1)
    model.train(epochs=1)
    model.save(str(tmp_path / "poincare.model"))
    trained = read_node_vectors(tmp_path / "poincare.model")
    assert trained.geometry == "poincare"
    np.testing.assert_array_equal(trained.vectors[trained.ids.index("cash")], model.kv["cash"])


@pytest.mark.engines("gensim")
def test_files_of_gensim_and_word2vec_are_recognised_by_content(tmp_path: Path) -> None:
    gensim = pytest.importorskip("gensim.models")
    keyed_vectors = gensim.KeyedVectors(4)
    keyed_vectors.add_vectors(list(IDS), ROWS)
    keyed_vectors.save(str(tmp_path / "vectors.wordvectors"))
    keyed_vectors.save_word2vec_format(str(tmp_path / "vectors"))
    keyed_vectors.save_word2vec_format(str(tmp_path / "vectors.bin"), binary=True)
    for name in ("vectors.wordvectors", "vectors"):
        vectors = read_node_vectors(tmp_path / name)
        assert vectors.ids == IDS
        np.testing.assert_allclose(vectors.vectors, ROWS, rtol=1e-6)
    with pytest.raises(FormatError, match="word2vec"):
        read_node_vectors(tmp_path / "vectors.bin")


def test_points_on_the_hyperboloid_are_read_as_lorentz(tmp_path: Path) -> None:
    points = np.column_stack([np.sqrt(1.0 + (ROWS**2).sum(axis=1)), ROWS])
    vectors = NodeVectors(IDS, IDS, points, "lorentz")
    vectors.write(tmp_path / "vectors.csv")
    assert read_node_vectors(tmp_path / "vectors.csv").geometry == "lorentz"
    assert read_node_vectors(tmp_path / "vectors.csv", "euclidean").geometry == "euclidean"
    replace(vectors, vectors=points * 1.001).write(tmp_path / "other.csv")
    assert read_node_vectors(tmp_path / "other.csv").geometry == "euclidean"


def test_matrices_without_ids_are_errors(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", ROWS)
    with pytest.raises(FormatError, match="ids"):
        read_node_vectors(tmp_path / "vectors.npy")
    np.save(tmp_path / "distances.npy", 1.0 - np.eye(4))
    with pytest.raises(FormatError, match="distances"):
        read_node_vectors(tmp_path / "distances.npy")
    np.savetxt(tmp_path / "vectors.csv", ROWS, delimiter=",")
    with pytest.raises(FormatError, match="header"):
        read_node_vectors(tmp_path / "vectors.csv")


def test_a_pickle_with_code_is_an_error_and_not_executed(tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (eval, (f"open({str(tmp_path / 'harm')!r}, 'w')",))

    file = tmp_path / "vectors.kv"
    file.write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(FormatError):
        read_node_vectors(file)
    assert not (tmp_path / "harm").exists()


@pytest.mark.engines("torch")
def test_checkpoints_of_poincare_embeddings_are_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    weight = torch.tensor([[1.0, 0.0, 0.0], [2.0**0.5, 1.0, 0.0]], dtype=torch.float64)
    state = {"model": {"lt.weight": weight}, "objects": ["a", "b"], "conf": {"manifold": "lorentz", "dim": 2}}
    torch.save({**state, "objects": np.array(["a", "b"])}, tmp_path / "arrays.pth")
    assert read_node_vectors(tmp_path / "arrays.pth").ids == ("a", "b")
    torch.save(state, tmp_path / "mammals.pth")
    vectors = read_node_vectors(tmp_path / "mammals.pth")
    assert (vectors.ids, vectors.geometry, vectors.dim) == (("a", "b"), "lorentz", 2)
    np.testing.assert_array_equal(vectors.vectors, weight.numpy())
    torch.save({"objects": ["a"]}, tmp_path / "other.pth")
    with pytest.raises(FormatError):
        read_node_vectors(tmp_path / "other.pth")


LINE = Tree.from_edges([("b", "a"), ("c", "b"), ("d", "c")])
DISTANCES = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))


def test_a_distance_matrix_is_not_read_as_vectors(tmp_path: Path) -> None:
    file = tmp_path / "matrix.csv"
    names = list("abcd")
    rows = [f"{key},{','.join(map(str, row))}" for key, row in zip(names, DISTANCES.tolist(), strict=True)]
    file.write_text("\n".join(["id," + ",".join(names), *rows]) + "\n")
    with pytest.raises(FormatError):
        read_node_vectors(file)
    with pytest.raises(FormatError):
        node_vectors_from(DISTANCES, LINE, geometry="euclidean")
    with pytest.raises(FormatError):
        node_vectors_from(np.exp(-DISTANCES), LINE, geometry="euclidean")
    ids, matrix = read_distances(file)
    assert ids == names
    np.testing.assert_array_equal(matrix, DISTANCES)


@pytest.mark.parametrize("header", [True, False])
def test_ids_of_distances_may_be_numbers(tmp_path: Path, header: bool) -> None:
    file = tmp_path / "matrix.csv"
    names = ["1000", "1100", "1110", "1111"]
    rows = [f"{key};{';'.join(map(str, row))}" for key, row in zip(names, DISTANCES.tolist(), strict=True)]
    file.write_text("\n".join([f"id;{';'.join(names)}"] * header + rows) + "\n")
    ids, matrix = read_distances(file)
    assert ids == names
    np.testing.assert_array_equal(matrix, DISTANCES)


def test_the_header_of_a_distance_table_may_be_the_only_ids(tmp_path: Path) -> None:
    file = tmp_path / "matrix.csv"
    rows = "\n".join(",".join(map(str, row)) for row in DISTANCES.tolist())
    for names in (["a", "b, c", "d", "e"], ["1000", "1100", "1110", "1111"]):
        file.write_text(",".join(f'"{name}"' for name in names) + f"\n{rows}\n")
        ids, matrix = read_distances(file)
        assert ids == names
        np.testing.assert_array_equal(matrix, DISTANCES)


@pytest.mark.parametrize("text", ["", "a,b\n", "0,1\n1\n", "0,1\nx,0\n", "id,name,x0\na,Cash,1\nb,Bank,2\n"])
def test_a_table_that_is_no_matrix_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "matrix.csv").write_text(text)
    with pytest.raises(EquipoiseError):
        read_distances(tmp_path / "matrix.csv")


def test_symmetric_matrices_of_other_programs_are_not_vectors(tmp_path: Path) -> None:
    lines = [f"{key} {' '.join(map(str, row))}" for key, row in zip("abcd", DISTANCES.tolist(), strict=True)]
    (tmp_path / "matrix.txt").write_text("4 4\n" + "\n".join(lines) + "\n")
    with pytest.raises(FormatError, match="distances"):
        read_node_vectors(tmp_path / "matrix.txt")
    rows = [f"{key},{','.join(map(str, row))}" for key, row in zip("abcd", DISTANCES.tolist(), strict=True)]
    (tmp_path / "matrix.csv").write_text(",a,b,c,d\n" + "\n".join(rows) + "\n")
    with pytest.raises(FormatError, match="distances"):
        read_node_vectors(tmp_path / "matrix.csv")


def test_scores_of_distances_equal_hand_computed_ranks() -> None:
    order = np.array([LINE.ids.index(key) for key in "abcd"])
    aligned = align_distances(LINE, list("abcd"), DISTANCES)
    np.testing.assert_array_equal(aligned[np.ix_(order, order)], DISTANCES)
    scores = scores_of_distances(LINE, aligned)
    # b and c are as near to their child as to their parent: rank 1.5; d has only its parent nearest.
    assert scores["parent"].mean_rank == pytest.approx((1.5 + 1.5 + 1.0) / 3)
    assert scores["closure"].mean_rank == pytest.approx(1.0)


@pytest.mark.parametrize(
    "matrix",
    [np.ones((2, 3)), np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([[0.0, -1.0], [-1.0, 0.0]]), np.ones((2, 2))],
)
def test_an_invalid_distance_matrix_is_an_error(tmp_path: Path, matrix: np.ndarray) -> None:
    np.save(tmp_path / "matrix.npy", matrix)
    with pytest.raises(FormatError):
        read_distances(tmp_path / "matrix.npy")
    with pytest.raises(ShapeError):
        align_distances(LINE, None, np.zeros((2, 2)))
