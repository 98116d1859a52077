"""Space: columns, edges, subsets, shuffling, storage and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import DuplicateError, InputError, NotFiniteError, ShapeError
from equipoise.evidence.space import Space


def full_space(n: int = 8) -> Space:
    rng = np.random.default_rng(n)
    return Space.of(
        rng.normal(size=(n, 3)),
        labels=[f"c{i % 3}" for i in range(n)],
        depth=np.arange(n),
        norms=rng.random(n),
        edges=[[i, i + 1] for i in range(n - 1)],
        unit_ids=[f"x{i}" for i in range(n)],
    )


@given(st.lists(st.integers(0, 7), max_size=12))
def test_take_keeps_the_edges_of_points_and_of_their_copies(index):
    space = full_space()
    taken = space.take(np.array(index, dtype=np.int64))
    edges = {tuple(edge) for edge in space.edges.tolist()}
    expected = [[i, j] for i, a in enumerate(index) for j, b in enumerate(index) if (a, b) in edges]
    assert sorted(taken.edges.tolist()) == sorted(expected)
    assert taken.vectors.tolist() == space.vectors[index].tolist()
    assert taken.depth.tolist() == [float(i) for i in index]


def test_taking_all_points_changes_nothing(tmp_path):
    space = full_space()
    space.save(tmp_path / "one.npz")
    space.take(np.arange(8)).save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


@pytest.mark.parametrize("space", [full_space(), Space.of([[1.0, 2.0]]), Space.of(np.ones((2, 2), np.float32))])
def test_saved_spaces_load_unchanged(tmp_path, space):
    space.save(tmp_path / "one.npz")
    loaded = Space.load(tmp_path / "one.npz")
    loaded.save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert loaded.vectors.dtype == space.vectors.dtype
    assert (loaded.edges is None) == (space.edges is None)


def test_shuffling_permutes_labels_depths_and_edges_together():
    space = full_space(60)
    shuffled = space.shuffled(np.random.default_rng(0))
    np.testing.assert_array_equal(shuffled.vectors, space.vectors)
    np.testing.assert_array_equal(shuffled.norms, space.norms)
    permutation = shuffled.depth.astype(int)
    assert (permutation != np.arange(60)).any()
    np.testing.assert_array_equal(shuffled.labels, space.labels[permutation])
    degrees = [np.bincount(some_space.edges.ravel(), minlength=60) for some_space in (space, shuffled)]
    assert sorted(degrees[0]) == sorted(degrees[1])


def test_norms_are_euclidean_unless_given():
    assert Space.of([[3.0, 4.0]]).radii.tolist() == [5.0]
    assert Space.of([[3.0, 4.0]], norms=[0.7]).radii.tolist() == [0.7]


def test_undefined_depths_are_nan_and_infinite_ones_raise_not_finite_error():
    assert np.isnan(Space.of([[1.0], [2.0]], depth=[0, np.nan]).depth[1])
    with pytest.raises(NotFiniteError):
        Space.of([[1.0], [2.0]], depth=[0, np.inf])


def test_bad_vectors_raise_errors():
    with pytest.raises(ShapeError, match=r"shape \(2,\)"):
        Space.of([1.0, 2.0])
    with pytest.raises(InputError):
        Space.of([["a", "b"]])
    with pytest.raises(InputError):
        Space.of([[1.0, 2.0], [1.0]])
    with pytest.raises(NotFiniteError, match=r"1 vector holds NaN.*1"):
        Space.of([[1.0], [np.inf]])
    with pytest.raises(ShapeError, match=r"2 vectors.*1 labels"):
        Space.of([[1.0], [2.0]], labels=["a"])
    with pytest.raises(ShapeError, match=r"2 vectors.*3 norms"):
        Space.of([[1.0], [2.0]], norms=[1, 2, 3])


def test_bad_edges_raise_errors():
    vectors = np.eye(3)
    with pytest.raises(ShapeError, match=r"shape \(2, 3\)"):
        Space.of(vectors, edges=[[0, 1, 2], [0, 1, 2]])
    with pytest.raises(InputError, match="0 to 3"):
        Space.of(vectors, edges=[[0, 3]])
    with pytest.raises(InputError, match="point 1"):
        Space.of(vectors, edges=[[0, 1], [1, 1]])
    with pytest.raises(DuplicateError, match=r"0.*1.*2"):
        Space.of(vectors, edges=[[0, 1], [0, 1]])
    assert Space.of(vectors, edges=[]).edges.shape == (0, 2)
