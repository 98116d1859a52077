"""The frontier: the best value that each system reaches for a cost, and what a budget affords."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from equipoise.report.charts.chart import Chart, chart
from equipoise.report.charts.layers import SAID, Row, axis, axis_of
from equipoise.report.charts.naming import short_names
from equipoise.report.charts.theme import LIGHT, Spec, identity
from equipoise.report.page.figures import scale_of
from equipoise.report.page.model import Scale, System, TrialPoint, Tuned
from equipoise.stats.numbers import figure

WIDTH, HEIGHT = 600, 340
LINE_HEIGHT = 14
LOGARITHMIC = 20
"""Costs that differ by this factor are drawn on a logarithmic axis."""


def frontier_chart(tuned: Sequence[Tuned], systems: Sequence[System], name: str = "frontier") -> Chart:
    """A stepped line a system: the best value among the points that cost no more. Small marks are others."""
    places = {system.name: place for place, system in enumerate(systems)}
    called = dict(zip(places, short_names(list(places), 28), strict=True))
    points = [row for each in tuned for row in _points(each, places[each.system])]
    corners = [row for row in points if row["frontier"]]
    budget = next((each.budget for each in tuned if each.budget is not None), None)
    costs = [row["cost"] for row in points] + ([] if budget is None else [budget])
    metric, unit = tuned[0].metric, tuned[0].cost_unit
    log = min(costs) > 0 and max(costs) / min(costs) >= LOGARITHMIC
    across = powers(min(costs), max(costs)) if log else scale_of([], [0.0, max(costs)])
    title = f"{unit or 'cost'} for one unit{' (logarithmic)' if log else ''}"
    x = axis(across.low, across.high, across.ticks, title, **({"type": "log"} if log else {}))
    up = scale_of([], [row["value"] for row in points])
    y = axis_of(up, metric)
    for each in (x, y):
        each["axis"]["grid"] = True
    layers = [
        *_budget(budget, unit, x),
        _others([row for row in points if not row["frontier"]], x, y),
        *(_line([row for row in corners if row["system"] == each.system], x, y) for each in tuned),
        _corners(corners, x, y),
        _ends(points, called, up),
    ]
    return chart(
        name,
        f"What more {unit or 'cost'} would buy",
        _sentence(tuned, budget),
        layers,
        subtitle=f"Lines: the best {metric} that is to be had for the cost, on the units that chose it.",
        width=WIDTH,
        height=HEIGHT,
    )


def _points(tuned: Tuned, place: int) -> list[Row]:
    """Every trial with a cost, cheapest first."""
    colour, shape = identity(place)
    known = [(trial.cost, trial) for trial in tuned.trials if trial.cost is not None]
    return [
        {
            "system": tuned.system,
            "cost": cost,
            "value": trial.value,
            "frontier": trial.frontier,
            "shape": shape,
            "fill": colour,
            "stroke": LIGHT["ink"] if trial.within_budget else colour,
            "says": _says(tuned, trial),
        }
        for cost, trial in sorted(known, key=lambda each: (each[0], each[1].value))
    ]


def _says(tuned: Tuned, trial: TrialPoint) -> str:
    within = "; the best within the budget" if trial.within_budget else ""
    cost = f"{trial.cost_text} {tuned.cost_unit}".rstrip()
    return f"{tuned.system}, {trial.label}: {tuned.metric} {trial.text}; {cost}{within}"


def _where(x: Spec, y: Spec) -> Spec:
    return {"x": {**x, "field": "cost"}, "y": {**y, "field": "value"}}


def _others(rows: list[Row], x: Spec, y: Spec) -> Spec:
    own = {"type": "nominal", "scale": None}
    return {
        "data": {"values": rows},
        "mark": {"type": "point", "size": 14, "filled": True, "opacity": 0.4},
        "encoding": {
            **_where(x, y),
            "shape": {"field": "shape", **own},
            "fill": {"field": "fill", **own},
            **SAID,
        },
    }


def _line(rows: list[Row], x: Spec, y: Spec) -> Spec:
    """What the cost buys; beyond the last corner more of it buys nothing more of what was tried."""
    colour = rows[0]["fill"] if rows else LIGHT["ink"]
    drawn = [{"cost": row["cost"], "value": row["value"]} for row in rows]
    drawn += [{**drawn[-1], "cost": x["scale"]["domain"][1]}] if drawn else []
    return {
        "data": {"values": drawn},
        "mark": {
            "type": "line",
            "interpolate": "step-after",
            "stroke": colour,
            "strokeWidth": 2,
            "aria": False,
        },
        "encoding": _where(x, y),
    }


def _corners(rows: list[Row], x: Spec, y: Spec) -> Spec:
    own = {"type": "nominal", "scale": None}
    return {
        "data": {"values": rows},
        "mark": {"type": "point", "size": 40, "strokeWidth": 1.4, "opacity": 1},
        "encoding": {
            **_where(x, y),
            "shape": {"field": "shape", **own},
            "fill": {"field": "fill", **own},
            "stroke": {"field": "stroke", **own},
            **SAID,
        },
    }


def _budget(budget: float | None, unit: str, x: Spec) -> list[Spec]:
    if budget is None:
        return []
    data: Spec = {"values": [{"cost": budget, "text": f"budget {figure(budget, 0)} {unit}".rstrip()}]}
    at = {"x": {**x, "field": "cost"}}
    return [
        {
            "data": data,
            "mark": {"type": "rule", "stroke": LIGHT["chance"], "strokeDash": [4, 3], "strokeWidth": 1.3},
            "encoding": at,
        },
        {
            "data": data,
            "mark": {"type": "text", "fill": LIGHT["chance"]},
            "encoding": {**at, "y": {"value": -10}, "text": {"field": "text"}},
        },
    ]


def _ends(points: list[Row], called: dict[str, str], up: Scale) -> Spec:
    """The names at the right end, moved apart where lines end close together."""
    last: dict[str, Row] = {}
    for row in points:
        if row["frontier"] or row["system"] not in last:
            last[row["system"]] = row
    spread = up.high - up.low
    ends = sorted(((up.high - row["value"]) / spread * HEIGHT, name) for name, row in last.items())
    labels = [
        {"at": at, "text": called[name], "shape": last[name]["shape"], "fill": last[name]["fill"]}
        for at, (_, name) in zip(spaced([at for at, _ in ends]), ends, strict=True)
    ]
    y: Spec = {"field": "at", "type": "quantitative", "scale": None, "axis": None}
    own = {"type": "nominal", "scale": None}
    return {
        "data": {"values": labels},
        "layer": [
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "aria": False},
                "encoding": {
                    "x": {"value": WIDTH + 14},
                    "y": y,
                    "shape": {"field": "shape", **own},
                    "fill": {"field": "fill", **own},
                },
            },
            {
                "mark": {"type": "text", "align": "left"},
                "encoding": {"x": {"value": WIDTH + 24}, "y": y, "text": {"field": "text"}},
            },
        ],
    }


def spaced(places: Sequence[float], apart: float = LINE_HEIGHT) -> list[float]:
    """Places in ascending order, pushed down until neighbours are apart, and the whole moved back up.

    >>> spaced([10.0, 12.0, 50.0], 10.0)
    [6.0, 16.0, 50.0]
    """
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _top(groups[-1], apart) < _bottom(groups[-2], apart) + apart:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_top(group, apart) + apart * step for group in groups for step in range(len(group))]


def _top(group: Sequence[float], apart: float) -> float:
    return sum(group) / len(group) - apart * (len(group) - 1) / 2


def _bottom(group: Sequence[float], apart: float) -> float:
    return _top(group, apart) + apart * (len(group) - 1)


def powers(low: float, high: float) -> Scale:
    """A logarithmic axis with ticks at 1, 2 and 5 times the powers of ten."""
    ticks = [
        (step * 10.0**power)
        for power in range(floor(log10(low)) - 1, ceil(log10(high)) + 1)
        for step in (1, 2, 5)
    ]
    first = max(tick for tick in ticks if tick <= low)
    last = min([tick for tick in ticks if tick >= high] or [ticks[-1]])
    shown = tuple(
        (tick, figure(tick, max(0, -floor(log10(tick))))) for tick in ticks if first <= tick <= last
    )
    return Scale(first, last, shown)


def _sentence(tuned: Sequence[Tuned], budget: float | None) -> str:
    said = []
    for each in tuned:
        held = next((trial for trial in each.trials if trial.within_budget), None)
        best = next((trial for trial in each.trials if trial.best), None)
        chosen = held if budget is not None and held else best
        if chosen:
            said.append(f"{each.system} {chosen.text} for {chosen.cost_text} {each.cost_unit}".rstrip())
    within = (
        f"Within {figure(budget, 0)} {tuned[0].cost_unit}" if budget is not None else "At their best points"
    )
    return f"{within} the systems reach on {tuned[0].metric}: {', '.join(said)}."
