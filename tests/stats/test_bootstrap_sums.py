"""The resampling kernel against a loop that draws one resample at a time."""

import numpy as np
import pytest

from equipoise.errors import NotFiniteError, ParameterError, ShapeError
from equipoise.stats import bootstrap_mean
from equipoise.stats.bootstrap_mean import ResamplingUnits, bootstrap_sums, cluster_codes, cluster_members


def test_resampled_sums_are_the_sums_of_the_rows_that_were_drawn() -> None:
    columns = np.random.default_rng(1).random((40, 3))
    picks = np.random.default_rng(7).integers(0, 40, size=(25, 40), dtype=np.int32)
    expected = np.array([columns[row].sum(axis=0) for row in picks])
    assert bootstrap_sums(columns, 25, np.random.default_rng(7)) == pytest.approx(expected, abs=1e-12)


def test_the_size_of_the_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = np.arange(60.0).reshape(30, 2)
    whole = bootstrap_sums(columns, 50, np.random.default_rng(3))
    monkeypatch.setattr(bootstrap_mean, "BLOCK_CELLS", 70)
    assert np.array_equal(bootstrap_sums(columns, 50, np.random.default_rng(3)), whole)


def test_clusters_of_any_kind_of_id_are_numbered_as_they_appear() -> None:
    assert cluster_codes(["x", 3, "x", (1, 2)], 4).tolist() == [0, 1, 0, 2]
    assert [rows.tolist() for rows in cluster_members(["b", "a", "b"], 3)] == [[0, 2], [1]]
    assert cluster_members([], 0) == []


def test_draws_of_clusters_add_up_their_units() -> None:
    values = np.array([[1.0], [2.0], [np.nan], [4.0]])
    weights = np.array([1.0, 3.0, 5.0, 2.0])
    draws = ResamplingUnits.of(values, weights, ["a", "b", "b", "a"])
    assert draws.totals.ravel().tolist() == [9.0, 6.0]
    assert draws.masses.ravel().tolist() == [3.0, 3.0]
    assert draws.means == pytest.approx(np.average([1, 2, 4], weights=[1, 3, 2]))


def test_the_standard_error_of_an_unweighted_mean_is_the_textbook_one() -> None:
    values = np.random.default_rng(2).random(30)
    expected = values.std(ddof=1) / np.sqrt(30)
    assert ResamplingUnits.of(values).standard_errors == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "weights", "clusters", "error", "sentence"),
    [
        (np.zeros((2, 2, 2)), None, None, ShapeError, "3 dimensions"),
        ([1.0, np.inf], None, None, NotFiniteError, "infinite"),
        ([1.0, 2.0], [1.0], None, ShapeError, "do not fit"),
        ([1.0, 2.0], [1.0, -1.0], None, ParameterError, "negative"),
        ([1.0, 2.0], [1.0, np.nan], None, ParameterError, "negative"),
        ([1.0, 2.0], None, ["a"], ShapeError, "1 cluster ids were given for 2 units"),
        ([1.0, 2.0], None, ["a", None], NotFiniteError, "no cluster id"),
        ([1.0, 2.0], None, [0.5, np.nan], NotFiniteError, "no cluster id"),
    ],
)
def test_arrays_that_cannot_be_resampled_are_refused_with_a_sentence(
    values: object, weights: object, clusters: object, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        ResamplingUnits.of(values, weights, clusters)


def test_a_weight_may_be_anything_where_the_value_is_undefined() -> None:
    assert ResamplingUnits.of([1.0, np.nan, 3.0], [1.0, np.nan, 1.0]).means == pytest.approx(2.0)
