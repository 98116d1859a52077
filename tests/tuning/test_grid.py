"""Parameter grids: every combination once, filters and errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import ParameterGrid

from equipoise.errors import DuplicateError, ParameterError
from equipoise.tuning.grid import overlap_fits, parameter_grid

AXES = st.dictionaries(
    st.sampled_from(["chunk_size", "overlap", "top_k", "chunker"]),
    st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True),
)


@given(AXES)
def test_grids_agree_with_scikit_learn(axes: dict[str, Any]) -> None:
    points = [tuple(sorted(point.items())) for point in parameter_grid(**axes)]
    assert sorted(points) == sorted(tuple(sorted(point.items())) for point in ParameterGrid(axes))
    assert len(set(points)) == len(points)


def test_a_grid_of_three_axes_is_in_the_order_of_its_axes() -> None:
    points = parameter_grid(chunk_size=[256, 512, 1024], overlap=[0, 50, 100], top_k=[5, 10, 20])
    assert len(points) == 27
    assert points[0] == {"chunk_size": 256, "overlap": 0, "top_k": 5}
    assert points[-1] == {"chunk_size": 1024, "overlap": 100, "top_k": 20}
    assert [point["top_k"] for point in points[:4]] == [5, 10, 20, 5]


def test_points_with_an_overlap_of_at_least_the_chunk_size_are_excluded() -> None:
    points = parameter_grid(chunk_size=[64, 128], overlap=[0, 64, 128], valid=overlap_fits)
    assert [(p["chunk_size"], p["overlap"]) for p in points] == [(64, 0), (128, 0), (128, 64)]


def test_points_without_an_overlap_are_valid() -> None:
    assert overlap_fits({"chunk_size": 64})
    assert overlap_fits({"overlap": 64, "chunk_size": None})


def test_grids_without_valid_points_raise_parameter_error() -> None:
    with pytest.raises(ParameterError, match=r"chunk_size 64; overlap 64, 128") as error:
        parameter_grid(chunk_size=[64], overlap=[64, 128], valid=overlap_fits)
    assert "overlap must be smaller than the chunk size" in error.value.hint


@pytest.mark.parametrize("values", [[5, 5], [1, 1.0], ["a", "b", "a"]])
def test_duplicate_values_of_an_axis_raise_duplicate_error(values: list[Any]) -> None:
    with pytest.raises(DuplicateError, match=r"top_k"):
        parameter_grid(top_k=values)


@pytest.mark.parametrize("values", ["fixed", 5, [], [[1, 2]]])
def test_invalid_axes_raise_parameter_error(values: object) -> None:
    with pytest.raises(ParameterError) as error:
        parameter_grid(chunker=values)  # type: ignore[arg-type]
    assert error.value.hint
