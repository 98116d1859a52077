"""Reports of comparisons: per-unit values, their paired statistics, and the view model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.report.build_view import build_view
from equipoise.report.charts.projection import projection_chart
from equipoise.report.view import RunsView
from equipoise.report.view_model import Point, Projection
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import StoredRun
from equipoise.runs.unit_table import UnitContent
from equipoise.stats.comparison import Comparison
from equipoise.stats.estimate import result_from_values
from equipoise.stats.pairing import compare_results
from equipoise.stats.result import Result
from equipoise.tuning.grid import FoldSelection, Trial, TuningRecord
from equipoise.types import Direction

UNITS = 60
Values = Mapping[str, Sequence[float]]


class KnownRun(StoredRun):
    """A run with details and tuning in memory instead of in files."""

    def __init__(self, result: Result, *, tuned: bool) -> None:
        super().__init__(result, Manifest(result.system), Path("nowhere"))
        kinds = {unit: ("exact" if index % 3 else "hard") for index, unit in enumerate(result.unit_ids.tolist())}
        details = {unit: UnitContent(f"text of {unit}", slices={"kind": kind}) for unit, kind in kinds.items()}
        self.__dict__["details"] = details
        self.__dict__["tuning"] = tuning() if tuned else None


def tuning() -> TuningRecord:
    """A small grid, three folds, a frontier and a budget."""
    trials = tuple(
        Trial({"chunk_size": size, "top_k": k}, round(0.4 + 0.001 * size + 0.02 * k, 3), 0.1, float(size * k))
        for size in (128, 256)
        for k in (3, 5, 10)
    )
    folds = tuple(FoldSelection(trials[index].params, 0.7, 0.6 + 0.02 * index, 20) for index in (5, 5, 4))
    frontier = (trials[0], trials[1], trials[2], trials[5])
    return TuningRecord("HR", trials, 5, 0, 0.856, 0.8, folds, frontier, "tokens", 1300.0, 2)


def make_values(systems: Sequence[str], metric: str, *, hits: bool, seed: int = 0) -> dict[str, dict[str, list[float]]]:
    """Values of one metric per system; later systems are worse."""
    rng = np.random.default_rng(seed)
    values = {}
    for index, name in enumerate(systems):
        column = rng.beta(3.0, 2.0 + 0.8 * index, UNITS)
        values[name] = {metric: (column > 0.5).astype(float).tolist() if hits else column.tolist()}
    return values


def make_report(
    systems: Sequence[str],
    *,
    hits: bool = False,
    better: Direction = Direction.UP,
    tuned: bool = False,
    undefined: Mapping[str, Sequence[int]] | None = None,
    metric: str = "",
) -> tuple[RunsView, Comparison | None]:
    """The view of these systems, and their comparison."""
    tables = make_values(systems, metric or ("HR@5" if hits else "MRR"), hits=hits)
    for name, positions in (undefined or {}).items():
        for column in tables[name].values():
            for position in positions:
                column[position] = float("nan")
    ids = np.array([f"q{position}" for position in range(UNITS)], dtype=object)
    results = [
        result_from_values(
            name, ids, columns, better=better, chance=dict.fromkeys(columns, 0.2), config=StatsConfig(n_resamples=200)
        )
        for name, columns in tables.items()
    ]
    comparison = (
        compare_results(results, config=StatsConfig(n_permutations=200, n_resamples=200)) if len(results) > 1 else None
    )
    runs = [KnownRun(result, tuned=tuned) for result in results]
    return build_view(runs, comparison, exports=False), comparison


def tree(count: int, kind: str = "disk") -> Projection:
    """A binary tree with the root in the centre."""
    points, links = [], []
    for index in range(count):
        depth = int(np.log2(index + 1))
        radius, angle = np.tanh(0.5 * depth), 2 * np.pi * (index + 1.5 - 2**depth) / 2**depth
        points.append(
            Point(
                float(radius * np.cos(angle)),
                float(radius * np.sin(angle)),
                f"node {index}",
                f"level {depth}",
            )
        )
        if index:
            links.append((index, (index - 1) // 2))
    return Projection("A tree", kind, tuple(points), tuple(links))


@pytest.fixture(scope="session")
def comparison_report() -> tuple[RunsView, Comparison]:
    """Four systems with every part of a report."""
    report, comparison = make_report(["alpha", "beta", "gamma", "delta"], tuned=True, undefined={"beta": [3]})
    assert comparison is not None
    return report.with_charts([projection_chart(tree(31)), projection_chart(tree(15, "plane"))]), comparison


@pytest.fixture(scope="session")
def report_maker() -> Callable[..., tuple[RunsView, Comparison | None]]:
    """Return the function that builds other views."""
    return make_report
