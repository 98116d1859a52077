"""Distances between the predicted and the true place, from the coordinates of the places.

The distance is that on a sphere of the Earth's mean radius (haversine). It is at most 0.56 % off that on the
ellipsoid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.places.prediction_files import find_column, require_column
from equipoise.domains.places.visits import PLACE
from equipoise.errors import DuplicateError, FormatError, InputError, ShapeError
from equipoise.evidence.base import to_numpy
from equipoise.io.arrays import ARRAY_FORMATS, read_matrix, split_member
from equipoise.io.tables import read_table
from equipoise.io.text import PathLike, display_path, parse_number
from equipoise.stats.estimate import result_from_values
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.stats.result import Result
    from equipoise.tasks.classification import ClassificationOutput
    from equipoise.types import Bools, Floats, Ids, Ints

EARTH_RADIUS_KM = 6371.0088
"""The mean radius (IUGG)."""

RADII_KM = (1.0, 5.0)
"""Distances within which a prediction counts as near."""

LATITUDE = ("latitude", "lat", "y", "center_lat")
LONGITUDE = ("longitude", "lon", "lng", "long", "x", "center_lon")
ERROR = "distance error"


def haversine_km(one: Any, other: Any) -> Floats:
    """The distance in km between points of latitude and longitude in degrees, the last axis of both arrays."""
    first, second = (np.radians(np.asarray(points, dtype=np.float64)) for points in (one, other))
    latitude, longitude = ((second - first)[..., axis] for axis in (0, 1))
    chord = np.sin(latitude / 2) ** 2 + np.cos(first[..., 0]) * np.cos(second[..., 0]) * np.sin(longitude / 2) ** 2
    return 2.0 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(chord, 0.0, 1.0)))


def check_coordinates(coordinates: Any, classes: int) -> Floats:
    """One row of latitude and longitude per class; NaN where they are unknown."""
    points = to_numpy(coordinates).astype(np.float64)
    if points.shape != (classes, 2):
        raise ShapeError(
            f"the coordinates have shape {points.shape} for {classes} places",
            hint="give one row per place: latitude and longitude in degrees",
        )
    invalid = (np.abs(points) > (90.0, 180.0)).any(axis=1)
    if invalid.any():
        place = int(np.argmax(invalid))
        raise InputError(
            f"place {place} is at {points[place, 0]:g}, {points[place, 1]:g}, which is not on Earth",
            hint="latitudes are from -90 to 90 and come first, longitudes from -180 to 180",
        )
    return points


def read_coordinates(path: PathLike, classes: int) -> Floats:
    """Read the coordinates of all places.

    Parameters
    ----------
    path
        A matrix with one row per place (latitude, longitude), or a table with place, latitude and longitude.
    classes
        Number of places. Places that the table lacks, or whose cells are empty, have no coordinates.

    Returns
    -------
    array
        One row per place: latitude and longitude in degrees, NaN where they are unknown.

    Examples
    --------
    >>> read_coordinates("places.csv", classes=1187)  # doctest: +SKIP
    """
    if split_member(path)[0].suffix.casefold() in ARRAY_FORMATS:
        return check_coordinates(read_matrix(path), classes)
    table = read_table(path)
    place = find_column(table, (*PLACE, "geo_id", "id")) or require_column(table, PLACE, "places")
    names = [require_column(table, LATITUDE, "latitudes"), require_column(table, LONGITUDE, "longitudes")]
    points = np.full((classes, 2), np.nan)
    listed: set[int] = set()
    for index, row in enumerate(table.rows):
        try:
            code = int(row[place])
            values = _row_coordinates([row.get(name) for name in names])
        except (KeyError, TypeError, ValueError):
            hint = "a row has a class code, a latitude and a longitude; leave both empty if they are unknown"
            raise table.error(FormatError, [index], "has no place with coordinates", hint=hint) from None
        if not 0 <= code < classes:
            raise table.error(InputError, [index], f"has the place {code}", hint=f"the places are 0 to {classes - 1}")
        if code in listed:
            raise table.error(DuplicateError, [index], f"has the place {code} a second time", hint="keep one")
        listed.add(code)
        points[code] = values
    try:
        return check_coordinates(points, classes)
    except InputError as error:
        raise type(error)(f"{display_path(path)}: {error.message}", hint=error.hint) from error


_EMPTY = frozenset({"", "na", "nan", "none", "null"})


def _row_coordinates(cells: Sequence[Any]) -> list[float]:
    """Latitude and longitude; NaN if both cells are empty."""
    if all(str("" if cell is None else cell).strip().casefold() in _EMPTY for cell in cells):
        return [nan, nan]
    return [float(parse_number(cell)) for cell in cells]


@dataclass(frozen=True)
class DistanceErrors:
    """The distance in km from the predicted to the true place, over units whose places both have coordinates.

    ``result`` has the mean distance (km, lower is better) and the accuracy within each radius, with intervals. The
    median has an interval too. ``baselines`` have the same scores without intervals. ``distances`` is NaN
    for units without coordinates.
    """

    distances: Floats
    result: Result
    median: float
    median_low: float
    median_high: float
    undefined: int
    baselines: Mapping[str, Mapping[str, float]]
    coordinates: Floats
    targets: Ints

    @property
    def defined(self) -> Bools:
        """Which units have a distance."""
        return ~np.isnan(self.distances)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **{name: estimate.to_dict() for name, estimate in self.result.estimates.items()},
            "median": {"value": self.median, "low": self.median_low, "high": self.median_high, "unit": "km"},
            "undefined": self.undefined,
            "baselines": {name: dict(scores) for name, scores in self.baselines.items()},
        }


def radius_metric(radius: float) -> str:
    """The name of the accuracy within a radius: ``within 5 km``."""
    return f"within {radius:g} km"


def distance_errors(
    classified: ClassificationOutput,
    baselines: Mapping[str, ClassificationOutput],
    coordinates: Floats,
    users: Ids | None,
    system: str,
    config: StatsConfig,
) -> DistanceErrors:
    """The distances of the first place of every unit; of tied first places, that of the lowest code."""
    labels = classified.labels
    distances = _distances(classified, coordinates)
    defined = ~np.isnan(distances)
    if not defined.any():
        raise InputError("no visit has coordinates of both its target and its prediction", hint="check the place codes")
    config = replace(config, clusters=None if users is None else users[defined])
    ids, known = labels.unit_ids[defined], distances[defined]
    mean = result_from_values(
        system, ids, {ERROR: known}, bounds=(0.0, inf), better=Direction.DOWN, unit="km", config=config
    )
    near = result_from_values(
        system, ids, {radius_metric(radius): (known <= radius).astype(float) for radius in RADII_KM}, config=config
    )
    result = replace(mean, estimates={**mean.estimates, **near.estimates}, per_unit={**mean.per_unit, **near.per_unit})
    low, high = _median_interval(known, config)
    return DistanceErrors(
        distances=distances,
        result=result,
        median=float(np.median(known)),
        median_low=low,
        median_high=high,
        undefined=int((~defined).sum()),
        baselines={name: _summary(_distances(guess, coordinates)) for name, guess in baselines.items()},
        coordinates=coordinates,
        targets=labels.true,
    )


def _distances(classified: ClassificationOutput, coordinates: Floats) -> Floats:
    labels = classified.labels
    return haversine_km(coordinates[labels.predicted], coordinates[labels.true])


def _summary(distances: Floats) -> dict[str, float]:
    known = distances[~np.isnan(distances)]
    if not len(known):
        return {}
    near = {radius_metric(radius): float((known <= radius).mean()) for radius in RADII_KM}
    return {ERROR: float(known.mean()), "median": float(np.median(known)), **near}


def _median_interval(values: Floats, config: StatsConfig) -> tuple[float, float]:
    """The interval of the median by that of the share of values up to it, also for clusters (Woodruff, JASA 1952).

    The ends of the interval of a share of one half are converted to values by the quantiles.
    """
    shares = (values <= np.median(values)).astype(float)
    estimate = result_from_values("median", np.arange(len(values)), {"share": shares}, config=config)["share"]
    if not estimate.interval.known:
        return nan, nan
    ends = 0.5 + estimate.interval.low - estimate.value, 0.5 + estimate.interval.high - estimate.value
    low, high = np.quantile(values, np.clip(ends, 0.0, 1.0))
    return float(low), float(high)
