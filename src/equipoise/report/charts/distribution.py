"""Distributions: how many units of every system have which value.

Hits and misses, and other values of which there are few, are bars that are cut in as many parts; values of
which there are many are histograms, one below the other on the same axis, since lines on top of each other
cannot be told apart beyond three or four systems.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from equipoise.report.charts.chart import Chart, chart, shorten_labels
from equipoise.report.charts.marks import (
    ROW_POSITION,
    TOOLTIP,
    Row,
    row_labels,
    row_step,
    text_column,
    text_width,
)
from equipoise.report.charts.theme import LIGHT, SMALL_SIZE, TEXT_SIZE, Spec
from equipoise.stats.formatting import format_count, format_value

if TYPE_CHECKING:
    from equipoise.report.view_model import ValueDistribution

WIDTH = 360
MAX_STACKED = 5
STACK_COLORS = ("heat4", "heat3", "heat2", "heat1")
"""The grounds of all parts but the first; those of the last parts where there are fewer."""
BAR_FRACTION = 0.84
"""The share of a row that its tallest bar takes."""
HEIGHTS = ((6, 52), (12, 38), (10**9, 26))
"""How high a row is, with up to so many rows."""
TEXT_MARGIN = 6


def distribution_chart(distribution: ValueDistribution, name: str = "distribution") -> Chart:
    """The units of every system by value."""
    draw = _shares if 2 <= len(distribution.labels) <= MAX_STACKED else _histograms
    return draw(distribution, name)


def _histograms(distribution: ValueDistribution, name: str) -> Chart:
    series, labels = distribution.series, distribution.labels
    tallest = max((max(each.counts, default=0) for each in series), default=0)
    height = next(height for most, height in HEIGHTS if len(series) <= most)
    bars = [
        {
            "bin": place,
            "base": (row + 1) * height - 2,
            "top": (row + 1) * height - 2 - height * BAR_FRACTION * units / tallest,
            "says": f"{each.name}: {format_count(units)} units with {distribution.metric} {labels[place]}",
        }
        for row, each in enumerate(series)
        for place, units in enumerate(each.counts)
        if units
    ]
    x: Spec = {
        "field": "bin",
        "type": "ordinal",
        "scale": {"domain": list(range(len(labels))), "paddingInner": 0.08, "paddingOuter": 0.04},
        "axis": None,
    }
    plain: Spec = {"type": "quantitative", "scale": None, "axis": None}
    layers: list[Spec] = [
        _floors(len(series), height),
        {
            "data": {"values": bars},
            "mark": {"type": "rect", "fill": LIGHT["lead"]},
            "encoding": {"x": x, "y": {"field": "top", **plain}, "y2": {"field": "base"}, **TOOLTIP},
        },
        *_beside(distribution, height),
        _labels(labels, x, len(series) * height + 12),
    ]
    return chart(
        name,
        distribution.title,
        _sentence(distribution),
        layers,
        subtitle=f"All bars have one scale; the tallest is {format_count(tallest)} units.",
        width=WIDTH,
        height=len(series) * height + 22,
    )


def _floors(rows: int, height: float) -> Spec:
    """The line that the bars of each row stand on."""
    return {
        "data": {"values": [{"base": (row + 1) * height - 2} for row in range(rows)]},
        "mark": {"type": "rule", "stroke": LIGHT["line"]},
        "encoding": {
            "x": {"value": 0},
            "x2": {"value": WIDTH},
            "y": {"field": "base", "type": "quantitative", "scale": None, "axis": None},
        },
    }


def _beside(distribution: ValueDistribution, height: float) -> list[Spec]:
    """The names on the left, and how many units were counted on the right."""
    called = _names(distribution)
    rows = [
        {"name": called[row], "units": _units(each.counts, each.undefined), "at": (row + 0.62) * height}
        for row, each in enumerate(distribution.series)
    ]
    y: Spec = {"field": "at", "type": "quantitative", "scale": None, "axis": None}
    sides = (("name", -12, "right", TEXT_SIZE, "ink"), ("units", WIDTH + 12, "left", SMALL_SIZE, "soft"))
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "text", "align": align, "fontSize": size, "fill": LIGHT[colour]},
            "encoding": {"x": {"value": at}, "y": y, "text": {"field": field}},
        }
        for field, at, align, size, colour in sides
    ]


def _labels(labels: tuple[str, ...], x: Spec, y: float) -> Spec:
    """The values below the bars; only every second or third where they would run into each other."""
    room = WIDTH / max(len(labels), 1)
    every = max(1, ceil((text_width(labels) + 6) / room))
    shown = [{"bin": place, "text": text} for place, text in enumerate(labels) if place % every == 0]
    return {
        "data": {"values": shown},
        "mark": {"type": "text", "fill": LIGHT["soft"]},
        "encoding": {"x": x, "y": {"value": y}, "text": {"field": "text"}},
    }


def _shares(distribution: ValueDistribution, name: str) -> Chart:
    """A bar a system: the units with the largest value, then those with the next, at last undefined ones."""
    called = _names(distribution)
    parts: list[Row] = []
    ends: list[Row] = []
    for row, each in enumerate(distribution.series):
        kinds = tuple(zip(distribution.labels, each.counts, strict=True))[::-1]
        parts += _parts(row, each.name, distribution.metric, kinds, each.undefined)
        ends.append({"row": row, "name": called[row], "units": _units(each.counts, each.undefined)})
    plain: Spec = {"type": "quantitative", "scale": None, "axis": None}
    own = {"type": "nominal", "scale": None}
    x = {"x": {"field": "from", **plain}, "x2": {"field": "to"}}
    bars: list[Spec] = [
        {
            "data": {"values": [part for part in parts if bool(part["dashed"]) == dashed]},
            "mark": {"type": "bar", "strokeWidth": 1, **({"strokeDash": [3, 2]} if dashed else {})},
            "encoding": {
                "y": ROW_POSITION,
                **x,
                "fill": {"field": "fill", **own},
                "stroke": {"field": "stroke", **own},
                **TOOLTIP,
            },
        }
        for dashed in sorted({bool(part["dashed"]) for part in parts})
    ]
    words: Spec = {
        "data": {"values": [part for part in parts if part["text"]]},
        "mark": {"type": "text", "align": "left", "dx": TEXT_MARGIN},
        "encoding": {
            "y": ROW_POSITION,
            "x": {"field": "from", **plain},
            "text": {"field": "text"},
            "fill": {"field": "ink", **own},
        },
    }
    layers = [*bars, words, row_labels(), text_column("units", WIDTH + 12, fill=LIGHT["soft"])]
    return chart(
        name,
        distribution.title,
        _sentence(distribution),
        layers,
        subtitle=f"Each bar is all units: first those with {distribution.labels[-1]}, the largest value.",
        width=WIDTH,
        height=row_step(len(ends)),
        data={"values": ends},
    )


def _fitting(texts_of: tuple[str, ...], width: float) -> str:
    """The first of the texts that a part of this width has room for; nothing where none fits."""
    return next((text for text in texts_of if text_width([text]) + 2 * TEXT_MARGIN <= width), "")


def _parts(row: int, system: str, metric: str, kinds: tuple[tuple[str, int], ...], undefined: int) -> list[Row]:
    """The parts of one bar from left to right; parts without units are left out."""
    total = sum(units for _, units in kinds) + undefined
    looks = [
        ("lead", "lead", "on_high"),
        *((ground, "line", "on_low") for ground in STACK_COLORS[1 - len(kinds) :]),
    ]
    looks.append(("paper", "line", "soft"))
    texts_of = [(f"with {metric} {label}", f"{label}: {format_count(units)}", units) for label, units in kinds]
    texts_of.append(("undefined", format_count(undefined), undefined))
    parts, left = [], 0.0
    for (what, text, units), (fill, stroke, ink) in zip(texts_of, looks, strict=True):
        right = left + (WIDTH * units / total if total else 0.0)
        if units:
            parts.append(
                {
                    "row": row,
                    "from": left,
                    "to": right,
                    "text": _fitting((text, format_count(units)), right - left),
                    "fill": LIGHT[fill],
                    "stroke": LIGHT[stroke],
                    "ink": LIGHT[ink],
                    "dashed": what == "undefined",
                    "says": f"{system}: {format_count(units)} of {format_count(total)} units {what}",
                }
            )
        left = right
    return parts


def _names(distribution: ValueDistribution) -> list[str]:
    """What stands beside the rows; one row alone is named by the title."""
    names_of = [each.name for each in distribution.series]
    return shorten_labels(names_of) if len(names_of) > 1 else [""]


def _units(counts: tuple[int, ...], undefined: int) -> str:
    units = f"n {format_count(sum(counts))}"
    return f"{units}, {format_count(undefined)} undefined" if undefined else units


def _sentence(distribution: ValueDistribution) -> str:
    if not distribution.series:
        return f"No unit has a value of {distribution.metric}."
    first = distribution.series[0]
    total = sum(first.counts)
    if not total:
        return f"{first.name} has no unit with a value of {distribution.metric}."
    most = max(first.counts)
    label = distribution.labels[first.counts.index(most)]
    return (
        f"Of {format_count(total)} units of {first.name} {format_count(most)} "
        f"({format_value(most / total, 2)} of them) have "
        f"{distribution.metric} {label}, more than any other value; undefined: {format_count(first.undefined)}."
    )
