"""The chart of a benchmark, quality against cost with the Pareto front, and the page of a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError
from equipoise.io.atomic import write_text
from equipoise.io.json import parse_json
from equipoise.io.text import open_text
from equipoise.report.charts.chart import Chart, chart, shorten_labels
from equipoise.report.charts.marks import (
    TOOLTIP,
    line,
    literals,
    log_axis,
    log_scale,
    position,
    scale_axis,
    text_marks,
    with_grid,
)
from equipoise.report.charts.theme import LIGHT, series_style
from equipoise.report.html.render import render_views
from equipoise.report.publish import ReportOptions, write_report
from equipoise.report.sections import axis_scale
from equipoise.report.view import View
from equipoise.runs.experiment_folder import RESULTS, RUNS, folder_names
from equipoise.runs.store import find_runs

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.report.charts.marks import Row

WIDTH, HEIGHT = 560, 300


@dataclass(frozen=True, slots=True)
class CostPoint:
    """One system: milliseconds per document, the score, and its interval."""

    system: str
    milliseconds: float
    score: float
    low: float
    high: float


def pareto_front(points: Sequence[CostPoint]) -> list[CostPoint]:
    """The systems that no other beats in score at no more cost, cheapest first.

    >>> a, b, c = (CostPoint(n, ms, s, s, s) for n, ms, s in (("a", 1, 0.2), ("b", 2, 0.1), ("c", 3, 0.5)))
    >>> [point.system for point in pareto_front([c, b, a])]
    ['a', 'c']
    """
    front: list[CostPoint] = []
    for point in sorted(points, key=lambda each: (each.milliseconds, -each.score)):
        if not front or point.score > front[-1].score:
            front.append(point)
    return front


def cost_chart(points: Sequence[CostPoint], metric: str, name: str = "cost") -> Chart:
    """Score by time per document; the line is the Pareto front."""
    front = pareto_front(points)
    times = [point.milliseconds for point in points]
    scale = log_scale(min(times) / 1.5, max(times) * 1.5)
    x = with_grid(log_axis(scale.low, scale.high, scale.ticks, "milliseconds per document (logarithmic)"))
    y_scale = axis_scale([], [end for point in points for end in (point.low, point.high)])
    y = with_grid(scale_axis(y_scale, metric))
    where = position(x, y, "cost", "value")
    rows = [_row(point, index) for index, point in enumerate(points)]
    for row, label in zip(rows, shorten_labels([point.system for point in points]), strict=True):
        row["text"] = label
    steps: list[Row] = [{"cost": point.milliseconds, "value": point.score} for point in front]
    layers = [
        line([*steps, {**steps[-1], "cost": scale.high}], where, LIGHT["chance"], interpolate="step-after"),
        {
            "data": {"values": rows},
            "mark": {"type": "rule", "strokeWidth": 1.2, "opacity": 0.6},
            "encoding": {
                "x": {**x, "field": "cost", "type": "quantitative"},
                "y": {**y, "field": "low", "type": "quantitative"},
                "y2": {"field": "high"},
            },
        },
        {
            "data": {"values": rows},
            "mark": {"type": "point", "size": 60, "filled": True, "opacity": 1},
            "encoding": {**where, **literals("shape", "fill"), **TOOLTIP},
        },
        text_marks(rows, where, align="left", dx=8, dy=-6),
    ]
    listed = ", ".join(point.system for point in front)
    return chart(
        name,
        f"{metric} by cost",
        f"The Pareto front of {metric} and time per document: {listed}.",
        layers,
        subtitle="Line: the best score at or below each cost. Bars: intervals.",
        width=WIDTH,
        height=HEIGHT,
    )


def _row(point: CostPoint, index: int) -> Row:
    color, shape = series_style(index)
    return {
        "cost": point.milliseconds,
        "value": point.score,
        "low": point.low,
        "high": point.high,
        "fill": color,
        "shape": shape,
        "tooltip": f"{point.system}: {point.score:.3f}, {point.milliseconds:.3g} ms per document",
    }


# The page of a benchmark: the answer, quality against cost, and every data set.


def stored_suite(path: str | Path) -> Mapping[str, Any] | None:
    """The content of results.json of a benchmark with several data sets; None for any other folder."""
    file = Path(path) / RESULTS
    if not file.is_file():
        return None
    try:
        content: Any = parse_json(open_text(file))
    except EquipoiseError:
        return None
    known = isinstance(content, dict) and {"answers", "datasets", "decision"} <= set(content)
    return content if known and len(content["datasets"]) > 1 else None


def write_suite_page(
    folder: str | Path,
    output: str | Path,
    config: StatsConfig,
    *,
    charts: bool = True,
    progress: Callable[[str], None] = lambda message: None,
) -> str:
    """Write the page of a suite, and next to it a full report per data set; returns the decision."""
    content = stored_suite(folder)
    assert content is not None
    target = Path(output)
    names = [each["name"] for each in content["datasets"]]
    places = folder_names(names)
    links: dict[str, str] = {}
    for name in names:
        progress(f"writing {name}")
        page = target.with_name(f"{target.stem}-{places[name]}{target.suffix or '.html'}")
        runs = [("", run) for run in find_runs(Path(folder) / RUNS / places[name])]
        write_report(runs, page, ReportOptions(config=config, charts=charts))
        links[name] = page.name
    write_text(target, suite_html(content, links, charts=charts))
    return View.from_dict(content["answers"][0]).answer.headline


def suite_html(content: Mapping[str, Any], links: Mapping[str, str] | None = None, *, charts: bool = True) -> str:
    """The page of ``BenchComparison.to_dict()``; ``links`` are the full reports by data set."""
    views = [View.from_dict(view) for view in content["answers"]]
    datasets = content["datasets"]
    n_suite = len(views) - len(datasets)  # 1 if there is an aggregate, else 0
    points = [suite_points(content)] * n_suite + [data_points(dataset) for dataset in datasets]
    metrics = ["mean score"] * n_suite + [dataset["primary"] for dataset in datasets]
    drawn = [
        view.with_charts([cost_chart(shown, metric, f"cost-{number}")], "Quality and cost") if len(shown) > 1 else view
        for number, (view, shown, metric) in enumerate(zip(views, points, metrics, strict=True))
    ]
    pages = {
        view.title: links[dataset["name"]]
        for view, dataset in zip(views[n_suite:], datasets, strict=True)
        if links and dataset["name"] in links
    }
    return render_views(f"Benchmark: {views[0].title}", drawn, links=pages, charts=charts)


def data_points(dataset: Mapping[str, Any]) -> list[CostPoint]:
    """The systems of a data set whose cost is known."""
    found = []
    for system in dataset["systems"]:
        rate = system["cost"].get("documents_per_second")
        estimate = next(each for each in system["estimates"] if each["metric"] == dataset["primary"])
        if rate and estimate["value"] is not None:
            low, high = (estimate["interval"][end] for end in ("low", "high"))
            value = float(estimate["value"])
            found.append(
                CostPoint(
                    system["name"], 1000 / rate, value, value if low is None else low, value if high is None else high
                )
            )
    return found


def suite_points(content: Mapping[str, Any]) -> list[CostPoint]:
    """The systems of the aggregate whose cost is known on every data set."""
    if content.get("aggregate") is None:
        return []
    times: dict[str, list[float]] = {}
    for dataset in content["datasets"]:
        for point in data_points(dataset):
            times.setdefault(point.system, []).append(point.milliseconds)
    count = len(content["datasets"])
    return [
        CostPoint(
            row["system"],
            sum(times[row["system"]]) / count,
            row["mean_score"],
            row["score_interval"][0],
            row["score_interval"][1],
        )
        for row in content["aggregate"]["rows"]
        if len(times.get(row["system"], ())) == count
    ]
