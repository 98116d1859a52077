"""Distances between places against scikit-learn, and scores of distances against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import haversine_distances

from equipoise.domains.places.geography import EARTH_RADIUS_KM, check_coordinates, haversine_km, read_coordinates
from equipoise.domains.places.score import score_places
from equipoise.errors import EquipoiseError, InputError, ShapeError

CLASSES = 9


@pytest.fixture
def coordinates():
    rng = np.random.default_rng(1)
    return np.column_stack([rng.uniform(-90, 90, CLASSES), rng.uniform(-180, 180, CLASSES)])


def test_distances_equal_scikit_learn(coordinates):
    expected = EARTH_RADIUS_KM * haversine_distances(np.radians(coordinates))
    np.testing.assert_allclose(
        haversine_km(coordinates[:, None], coordinates[None, :]), expected, rtol=1e-12, atol=1e-9
    )


def test_antipodes_are_half_a_circumference_apart():
    assert haversine_km([0.0, 0.0], [0.0, 180.0]) == pytest.approx(np.pi * EARTH_RADIUS_KM, rel=1e-12)
    assert haversine_km([90.0, 12.0], [-90.0, -60.0]) == pytest.approx(np.pi * EARTH_RADIUS_KM, rel=1e-12)


def random_city(seed=0, rows=400):
    rng = np.random.default_rng(seed)
    points = np.column_stack([rng.normal(47.4, 0.03, CLASSES), rng.normal(8.5, 0.03, CLASSES)])
    logits, targets = rng.normal(size=(rows, CLASSES)), rng.integers(0, CLASSES, rows)
    logits[np.arange(rows), targets] += 1.5
    return logits, targets, points


def test_mean_median_and_accuracy_within_a_radius_equal_those_of_the_distances():
    logits, targets, points = random_city()
    scores = score_places(logits, targets, coordinates=points, train_counts=[5] + [1] * (CLASSES - 1)).distances
    distances = haversine_km(points[logits.argmax(axis=1)], points[targets])
    assert scores.result["distance error"].value == pytest.approx(distances.mean(), abs=1e-12)
    assert scores.median == pytest.approx(np.median(distances), abs=1e-12)
    for radius in (1, 5):
        assert scores.result[f"within {radius} km"].value == pytest.approx((distances <= radius).mean(), abs=1e-12)
    assert scores.median_low <= scores.median <= scores.median_high
    majority = haversine_km(points[0], points[targets])
    assert scores.baselines["majority"]["distance error"] == pytest.approx(majority.mean(), abs=1e-12)


def test_places_without_coordinates_are_undefined_and_counted():
    logits, targets, points = random_city()
    points[3] = np.nan
    scores = score_places(logits, targets, coordinates=points).distances
    affected = (targets == 3) | (logits.argmax(axis=1) == 3)
    assert scores.undefined == affected.sum() > 0
    assert scores.result["distance error"].n == (~affected).sum()


def test_the_interval_of_the_median_covers_it_when_users_differ():
    from dataclasses import replace

    from equipoise.config import DEFAULT_STATS
    from equipoise.domains.places.geography import _median_interval

    users, n_covered = np.repeat(np.arange(40), 10), 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        values = np.exp(rng.normal(0, 1, 40)[users] + rng.normal(0, 1, 400))
        low, high = _median_interval(values, replace(DEFAULT_STATS, clusters=users, n_resamples=200))
        n_covered += low <= 1.0 <= high
    assert n_covered >= 33  # 95 % of 40 are 38; fewer than 33 have a probability of 0.4 %


def test_coordinates_are_read_from_a_table_by_name_and_from_a_matrix(tmp_path, coordinates):
    (tmp_path / "places.csv").write_text(
        "place_id,Longitude,Latitude\n"
        + "".join(f"{place},{lon!r},{lat!r}\n" for place, (lat, lon) in enumerate(coordinates.tolist()) if place != 4)
    )
    result = read_coordinates(tmp_path / "places.csv", CLASSES)
    assert np.isnan(result[4]).all()
    known = np.delete(np.arange(CLASSES), 4)
    assert (result[known] == coordinates[known]).all()
    np.save(tmp_path / "places.npy", coordinates)
    assert (read_coordinates(tmp_path / "places.npy", CLASSES) == coordinates).all()


@pytest.mark.parametrize("empty", ["", " ", "NaN", "NA"])
def test_empty_cells_are_places_without_coordinates(tmp_path, empty):
    (tmp_path / "places.csv").write_text(f"place,code,lat,lon\n0,BQN,{empty},{empty}\n1,JFK,40.64,-73.78\n")
    assert np.array_equal(
        read_coordinates(tmp_path / "places.csv", 2), [[np.nan, np.nan], [40.64, -73.78]], equal_nan=True
    )


def test_missing_values_of_parquet_are_places_without_coordinates(tmp_path):
    table = {"place": [0, 1, 2], "lat": [None, 40.64, float("nan")], "lon": [None, -73.78, float("nan")]}
    pytest.importorskip("pyarrow.parquet").write_table(
        pytest.importorskip("pyarrow").table(table), tmp_path / "p.parquet"
    )
    assert np.isnan(read_coordinates(tmp_path / "p.parquet", 3)).all(axis=1).tolist() == [True, False, True]


@pytest.mark.parametrize(
    "text",
    [
        "place,lat,lon\n0,1,\n",
        "place,lat,lon\n0,91,0\n",
        "place,lat,lon\n99,1,0\n",
        "place,lat,lon\n0,1,0\n0,1,0\n",
        "place,lat,lon\n0,x,0\n",
        "place,lat\n0,1\n",
    ],
)
def test_malformed_coordinates_are_an_error_with_the_file_name(tmp_path, text):
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(EquipoiseError) as failure:
        read_coordinates(tmp_path / "c.csv", CLASSES)
    assert "c.csv" in failure.value.message


def test_swapped_columns_and_wrong_shapes_are_errors():
    with pytest.raises(InputError):
        check_coordinates(np.array([[116.4, 39.9]]), 1)
    with pytest.raises(ShapeError):
        check_coordinates(np.zeros((3, 2)), 4)
