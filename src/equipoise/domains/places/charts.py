"""Charts of one scored system: accuracy over k, ranks, reliability, confusion matrix, and a map of the distances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.places.geography import EARTH_RADIUS_KM
from equipoise.domains.places.metrics import accuracy_curve, confusion_counts, rank_histogram
from equipoise.errors import UndefinedError
from equipoise.report.charts.bars import CalibrationPoint, rank_histogram_chart, reliability_chart
from equipoise.report.charts.chart import LIGHT, Chart, Spec, chart, heat_color, shorten_label, slug
from equipoise.report.charts.curves import accuracy_at_k_chart
from equipoise.report.charts.heatmap import confusion_chart
from equipoise.report.charts.marks import PIXELS, TOOLTIP, Row, column_header, legend, line, literals, position
from equipoise.stats.formatting import format_count, format_value

if TYPE_CHECKING:
    from equipoise.domains.places.geography import DistanceErrors
    from equipoise.domains.places.score import PlaceScores
    from equipoise.evidence.ranking import Ranking
    from equipoise.stats.calibration_curve import CalibrationCurve

RELIABILITY_CUTOFFS = (1, 5)
MOST_CUTOFFS = 50
MOST_PLACES_ON_MAP = 600
MAP_SIZE = 420
MIN_MARK, MAX_MARK = 18.0, 260.0


@dataclass(frozen=True)
class PlaceCharts:
    """The charts of one scored system, by the section that they belong to."""

    ranks: tuple[Chart, ...] = ()
    calibration: tuple[Chart, ...] = ()
    confusion: tuple[Chart, ...] = ()
    distances: tuple[Chart, ...] = ()

    @property
    def all(self) -> tuple[Chart, ...]:
        """All charts."""
        return (*self.ranks, *self.calibration, *self.confusion, *self.distances)


def place_charts(scores: PlaceScores) -> PlaceCharts:
    """Every chart that the data allow."""
    rankings = {scores.system: scores.classified.ranking}
    rankings |= {name: guess.ranking for name, guess in scores.guesses.items()}
    mixed = confusion_counts(scores.classified.labels)
    curves = {} if scores.calibration is None else scores.calibration.curves
    return PlaceCharts(
        ranks=tuple(_rank_charts(rankings)),
        calibration=tuple(_reliability(scores.system, curves[k], k) for k in RELIABILITY_CUTOFFS if k in curves),
        confusion=(confusion_chart(scores.system, mixed.classes, mixed.counts.tolist()),),
        distances=() if scores.distances is None else (error_map_chart(scores.system, scores.distances),),
    )


def _rank_charts(rankings: dict[str, Ranking]) -> Iterator[Chart]:
    first = next(iter(rankings.values()))
    # The number of places in each list of predictions, if these are not all places.
    listed = None if first.complete else max(1, int(first.depth.min()))
    deepest = listed or MOST_CUTOFFS
    try:
        curves = {name: accuracy_curve(ranking, deepest).tolist() for name, ranking in rankings.items()}
        histograms = {name: rank_histogram(ranking, deepest=listed) for name, ranking in rankings.items()}
    except UndefinedError:
        return
    chance = _random_accuracy(first, deepest) if first.complete or first.pool_known else None
    system = slug(next(iter(rankings)))
    yield accuracy_at_k_chart(curves, chance, f"accuracy-over-k-{system}", percent=True)
    names = max((histogram.names for histogram in histograms.values()), key=len)
    if all(histogram.names == names for histogram in histograms.values()):
        missing = f"not in the first {listed}"
        yield rank_histogram_chart(
            (*names, missing) if listed else names,
            {
                name: [*ranks.shares.tolist(), ranks.lost] if listed else ranks.shares.tolist()
                for name, ranks in histograms.items()
            },
            f"rank-distribution-{system}",
        )


def _random_accuracy(ranking: Ranking, deepest: int) -> list[float]:
    """The expected Acc@1, Acc@2, ... of a random order of the candidates."""
    candidates = ranking.candidates.astype(np.float64)
    cutoffs = range(1, min(deepest, int(candidates.max())) + 1)
    return [float(np.minimum(k / candidates, 1.0).mean()) for k in cutoffs]


def _reliability(system: str, curve: CalibrationCurve, k: int) -> Chart:
    points = [
        CalibrationPoint(
            bucket.low,
            bucket.high,
            bucket.confidence,
            bucket.accuracy,
            bucket.interval.low if bucket.interval.known else None,
            bucket.interval.high if bucket.interval.known else None,
            bucket.n,
        )
        for bucket in curve.bins
    ]
    if k == 1:
        return reliability_chart(system, points, curve.ece, curve.calibrated)
    label = f"{system}, first {k} places"
    return reliability_chart(label, points, curve.ece, curve.calibrated, f"reliability-{slug(system)}-top-{k}")


def error_map_chart(system: str, errors: DistanceErrors) -> Chart:
    """Each visited place at its coordinates: the size is the number of visits, the shade the mean distance error.

    Longitudes are scaled by the cosine of the mean latitude, so that distances are to scale near the centre.
    """
    defined = np.flatnonzero(errors.defined)
    targets = errors.targets[defined]
    places, codes, visits = np.unique(targets, return_inverse=True, return_counts=True)
    means = np.bincount(codes.reshape(-1), weights=errors.distances[defined]) / visits
    order = np.argsort(-visits, kind="stable")[:MOST_PLACES_ON_MAP]
    points = errors.coordinates[places[order]]
    longitude = points[:, 1] * np.cos(np.radians(points[:, 0].mean()))
    worst = float(means.max())
    rows: list[Row] = []
    for place, point, x, n, mean in zip(
        places[order].tolist(), points, longitude.tolist(), visits[order].tolist(), means[order].tolist(), strict=True
    ):
        share = mean / worst if worst > 0 else 0.0
        size = MIN_MARK + (MAX_MARK - MIN_MARK) * (n / int(visits.max())) ** 0.5
        tooltip = f"place {place}: {format_count(n)} visits, mean error {format_value(mean, 2)} km"
        rows.append({"x": x, "y": float(point[0]), "size": size, "fill": heat_color(share)[0], "tooltip": tooltip})
    x_axis, y_axis = _map_axes(longitude.tolist(), points[:, 0].tolist())
    layers: list[Spec] = [
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "opacity": 0.85, "stroke": LIGHT["soft"], "strokeWidth": 0.6},
            "encoding": {
                **position(x_axis, y_axis),
                **literals("fill"),
                "size": {"field": "size", "type": "quantitative", "scale": None},
                **TOOLTIP,
            },
        },
        *legend(
            [
                ("circle", heat_color(0.0)[0], LIGHT["soft"], "mean error 0 km"),
                ("circle", heat_color(1.0)[0], LIGHT["soft"], f"{format_value(worst, 1)} km"),
            ]
        ),
        column_header("north ↑", 4, y=12),
        *_scale_bar(y_axis["scale"]["domain"]),
    ]
    shown = f" The {MOST_PLACES_ON_MAP} places with most visits are shown." if len(places) > len(order) else ""
    farthest = places[int(np.argmax(means))]
    return chart(
        f"error-map-{slug(system)}",
        f"Distance error of {shorten_label(system)} by true place",
        f"The mean distance error is {format_value(float(errors.distances[defined].mean()), 2)} km. Of "
        f"{format_count(len(places))} places, place {farthest} has the largest mean error, {format_value(worst, 2)} km."
        f"{shown}",
        layers,
        subtitle=f"Size: number of visits. Shade: mean distance from the prediction.{shown}",
        width=MAP_SIZE,
        height=MAP_SIZE,
    )


def _scale_bar(domain: list[float]) -> list[Spec]:
    """A line of a round length, at most a quarter of the map, below it on the left."""
    pixels_per_km = MAP_SIZE / ((domain[1] - domain[0]) * EARTH_RADIUS_KM * np.pi / 180)
    longest = MAP_SIZE / 4 / pixels_per_km
    power = 10.0 ** np.floor(np.log10(longest))
    length = max(factor * power for factor in (1, 2, 5) if factor * power <= longest)
    width, base = length * pixels_per_km, MAP_SIZE - 14.0
    return [
        line([{"at": 4.0}, {"at": 4.0 + width}], {"x": {"field": "at", **PIXELS}, "y": {"value": base}}, LIGHT["soft"]),
        column_header(f"{length:g} km", 4.0, y=base + 12),
    ]


def _map_axes(xs: list[float], ys: list[float]) -> tuple[Spec, Spec]:
    """Axes of the same length in degrees of latitude."""
    half = max(max(xs) - min(xs), max(ys) - min(ys)) * 0.54 or 0.01
    x, y = (
        {
            "type": "quantitative",
            "scale": {"domain": [centre - half, centre + half], "nice": False, "zero": False},
            "axis": None,
        }
        for centre in ((max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2)
    )
    return x, y
