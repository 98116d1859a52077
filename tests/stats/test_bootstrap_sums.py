"""The resampling kernel, compared with a loop over resamples."""

import numpy as np
import pytest

from equipoise.errors import NotFiniteError, ParameterError, ShapeError
from equipoise.stats import bootstrap_mean
from equipoise.stats.bootstrap_mean import ResamplingUnits, bootstrap_sums, cluster_codes, cluster_members


def test_bootstrap_sums_are_the_sums_of_the_resampled_rows() -> None:
    columns = np.random.default_rng(1).random((40, 3))
    resampled_rows = np.random.default_rng(7).integers(0, 40, size=(25, 40), dtype=np.int32)
    expected = np.array([columns[row].sum(axis=0) for row in resampled_rows])
    assert bootstrap_sums(columns, 25, np.random.default_rng(7)) == pytest.approx(expected, abs=1e-12)


def test_bootstrap_sums_do_not_depend_on_the_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = np.arange(60.0).reshape(30, 2)
    expected = bootstrap_sums(columns, 50, np.random.default_rng(3))
    monkeypatch.setattr(bootstrap_mean, "BLOCK_CELLS", 70)
    assert np.array_equal(bootstrap_sums(columns, 50, np.random.default_rng(3)), expected)


def test_cluster_codes_follow_the_order_of_appearance() -> None:
    assert cluster_codes(["x", 3, "x", (1, 2)], 4).tolist() == [0, 1, 0, 2]
    assert [rows.tolist() for rows in cluster_members(["b", "a", "b"], 3)] == [[0, 2], [1]]
    assert cluster_members([], 0) == []


def test_resampling_units_of_clusters_sum_their_values() -> None:
    values = np.array([[1.0], [2.0], [np.nan], [4.0]])
    weights = np.array([1.0, 3.0, 5.0, 2.0])
    units = ResamplingUnits.of(values, weights, ["a", "b", "b", "a"])
    assert units.totals.ravel().tolist() == [9.0, 6.0]
    assert units.masses.ravel().tolist() == [3.0, 3.0]
    assert units.means == pytest.approx(np.average([1, 2, 4], weights=[1, 3, 2]))


def test_standard_error_of_an_unweighted_mean() -> None:
    values = np.random.default_rng(2).random(30)
    expected = values.std(ddof=1) / np.sqrt(30)
    assert ResamplingUnits.of(values).standard_errors == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "weights", "clusters", "error", "fragment"),
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
def test_invalid_arrays_raise_errors(
    values: object, weights: object, clusters: object, error: type[Exception], fragment: str
) -> None:
    with pytest.raises(error, match=fragment):
        ResamplingUnits.of(values, weights, clusters)


def test_weights_of_undefined_values_are_ignored() -> None:
    assert ResamplingUnits.of([1.0, np.nan, 3.0], [1.0, np.nan, 1.0]).means == pytest.approx(2.0)
