"""The charts of an evaluation: similarities, maps, the star of scores, cosines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from equipoise.data.atomic import write_bytes
from equipoise.errors import MissingExtraError, StoreError
from equipoise.evidence.space import Space
from equipoise.metrics.directions import directions
from equipoise.recipes.concepts.plane import flattened
from equipoise.recipes.fair.pictures import VISUALIZATIONS
from equipoise.report.charts.chart import Chart, apart
from equipoise.report.charts.concepts import concept_map_chart, cosines_chart, similarity_chart
from equipoise.report.charts.radar import radar_chart
from equipoise.report.charts.render import png, svg
from equipoise.stats.numbers import figure, span
from equipoise.types import Floats

if TYPE_CHECKING:
    from equipoise.recipes.concepts.evaluation import ConceptEvaluation

FEWEST_SPOKES = 3
"""A star of fewer scores is a line."""
FEWEST_POINTS = 3


def charts_of(found: ConceptEvaluation) -> tuple[Chart, ...]:
    """Every chart that the measured tasks allow; names of files all differ."""
    charts: list[Chart] = []
    if len(found.tasks) >= FEWEST_SPOKES:
        charts.append(radar_chart({each.score: each.estimates for each in found.standings}))
    charts += _similarities(found)
    spaces = _spaces(found)
    if spaces:
        every = {name: _cosines(space) for name, space in spaces.items()}
        charts.append(cosines_chart(every, {name: _related(space) for name, space in spaces.items()}))
        charts += [_map(name, space) for name, space in spaces.items()]
    return apart(charts)


def _similarities(found: ConceptEvaluation) -> list[Chart]:
    charts = []
    for name, own in found.scores.items():
        observed = own.tasks["similarity"].observed if "similarity" in own.tasks else None
        if observed is None or observed.pairs is None:
            continue
        pairs, linear = observed.pairs, observed.parts["correlation"]
        told = f"Correlation {figure(linear.value, 2)} {span(linear.interval, 2)}"
        ids = [str(each) for each in pairs.unit_ids]
        charts.append(similarity_chart(name, ids, pairs.predicted, pairs.expected, told))
    return charts


def _spaces(found: ConceptEvaluation) -> dict[str, Space]:
    """The concepts of the clusters with their true clusters, where there are any to draw."""
    spaces = {}
    for name, own in found.scores.items():
        space = own.tasks["clustering"].observed.space if "clustering" in own.tasks else None
        if space is not None and int(directions(space)[1].sum()) >= FEWEST_POINTS:
            spaces[name] = space
    return spaces


def _map(name: str, space: Space) -> Chart:
    plane = flattened(space)
    labels = [] if space.labels is None or space.classes is None else space.classes[space.labels].tolist()
    return concept_map_chart(
        name,
        [str(space.unit_ids[row]) for row in plane.rows],
        [str(labels[row]) for row in plane.rows],
        plane.points,
        plane.caption,
    )


def _cosines(space: Space) -> Floats:
    units, _ = directions(space)
    return np.asarray((units @ units.T)[np.triu_indices(len(units), 1)])


def _related(space: Space) -> Floats:
    """The cosines of two concepts of one cluster."""
    units, pointed = directions(space)
    labels = np.zeros(len(units)) if space.labels is None else space.labels[pointed]
    one, other = np.triu_indices(len(units), 1)
    return np.asarray((units @ units.T)[one, other][labels[one] == labels[other]])


def draw(folder: Path, found: ConceptEvaluation) -> list[Path]:
    """Every chart as SVG and PNG below the folder; none where nothing is installed to draw them."""
    target = folder / VISUALIZATIONS
    written = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for each in charts_of(found):
            for ending, content in (("svg", svg(each).encode()), ("png", png(each))):
                file = target / f"{each.name}.{ending}"
                write_bytes(file, content)
                written.append(file)
    except MissingExtraError:
        return []
    except OSError as error:
        raise StoreError(
            f"{target} cannot hold the charts: {error.strerror}", hint="choose another folder"
        ) from error
    return written
