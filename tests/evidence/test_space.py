"""Space: columns that fit the vectors, edges that follow their points, and what is refused."""

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
def test_edges_follow_their_points_and_copies_of_them(index):
    space = full_space()
    taken = space.take(np.array(index, dtype=np.int64))
    wanted = {tuple(edge) for edge in space.edges.tolist()}
    expected = [[i, j] for i, a in enumerate(index) for j, b in enumerate(index) if (a, b) in wanted]
    assert sorted(taken.edges.tolist()) == sorted(expected)
    assert taken.vectors.tolist() == space.vectors[index].tolist()
    assert taken.depth.tolist() == [float(i) for i in index]


def test_taking_all_points_changes_nothing(tmp_path):
    space = full_space()
    space.save(tmp_path / "one.npz")
    space.take(np.arange(8)).save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


@pytest.mark.parametrize("space", [full_space(), Space.of([[1.0, 2.0]]), Space.of(np.ones((2, 2), np.float32))])
def test_a_saved_file_reads_back_the_same(tmp_path, space):
    space.save(tmp_path / "one.npz")
    again = Space.load(tmp_path / "one.npz")
    again.save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert again.vectors.dtype == space.vectors.dtype
    assert (again.edges is None) == (space.edges is None)


def test_shuffling_deals_labels_depths_and_edges_by_one_permutation():
    space = full_space(60)
    shuffled = space.shuffled(np.random.default_rng(0))
    np.testing.assert_array_equal(shuffled.vectors, space.vectors)
    np.testing.assert_array_equal(shuffled.norms, space.norms)
    came_from = shuffled.depth.astype(int)
    assert (came_from != np.arange(60)).any()
    np.testing.assert_array_equal(shuffled.labels, space.labels[came_from])
    degrees = [np.bincount(each.edges.ravel(), minlength=60) for each in (space, shuffled)]
    assert sorted(degrees[0]) == sorted(degrees[1])


def test_norms_are_euclidean_unless_given():
    assert Space.of([[3.0, 4.0]]).radii.tolist() == [5.0]
    assert Space.of([[3.0, 4.0]], norms=[0.7]).radii.tolist() == [0.7]


def test_an_undefined_depth_is_nan_and_an_infinite_one_is_refused():
    assert np.isnan(Space.of([[1.0], [2.0]], depth=[0, np.nan]).depth[1])
    with pytest.raises(NotFiniteError):
        Space.of([[1.0], [2.0]], depth=[0, np.inf])


def test_bad_vectors_are_explained():
    with pytest.raises(ShapeError, match=r"shape \(2,\)"):
        Space.of([1.0, 2.0])
    with pytest.raises(InputError):
        Space.of([["a", "b"]])
    with pytest.raises(InputError):
        Space.of([[1.0, 2.0], [1.0]])
    with pytest.raises(NotFiniteError, match=r"1 vectors.*NaN.*1"):
        Space.of([[1.0], [np.inf]])
    with pytest.raises(ShapeError, match=r"2 vectors.*1 labels"):
        Space.of([[1.0], [2.0]], labels=["a"])
    with pytest.raises(ShapeError, match=r"2 vectors.*3 norms"):
        Space.of([[1.0], [2.0]], norms=[1, 2, 3])


def test_bad_edges_are_explained():
    vectors = np.eye(3)
    with pytest.raises(ShapeError, match=r"shape \(2, 3\)"):
        Space.of(vectors, edges=[[0, 1, 2], [0, 1, 2]])
    with pytest.raises(InputError, match="reach from 0 to 3"):
        Space.of(vectors, edges=[[0, 3]])
    with pytest.raises(InputError, match="joins point 1 to itself"):
        Space.of(vectors, edges=[[0, 1], [1, 1]])
    with pytest.raises(DuplicateError, match=r"0.*1 appears 2 times"):
        Space.of(vectors, edges=[[0, 1], [0, 1]])
    assert Space.of(vectors, edges=[]).edges.shape == (0, 2)
