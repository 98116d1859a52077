"""Distributions: the number of units of every system by value.

Metrics with few distinct values (hits and misses) are stacked bars. Others are histograms, one below the other
on the same axis, because overlaid lines are not legible with more than three or four systems.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from equipoise.checks.base import join_names
from equipoise.report.charts import marks
from equipoise.report.charts.chart import LIGHT, SMALL_SIZE, TEXT_SIZE, Chart, Spec, chart, shorten_labels
from equipoise.stats.formatting import format_count, format_percent, metric_in_sentence, percent_sign

if TYPE_CHECKING:
    from equipoise.report.view_model import BinCounts, ValueDistribution

WIDTH = 360
MAX_STACKED = 5
STACK_COLORS = ("heat4", "heat3", "heat2", "heat1")
"""The colours of all segments but the first; with fewer segments, the last colours are used."""
BAR_FRACTION = 0.84
"""The fraction of a row that its tallest bar takes."""
ROW_HEIGHTS = ((6, 52), (12, 38), (10**9, 26))
"""Maximum number of rows and the height of a row in pixels."""
TEXT_MARGIN = 6


def distribution_chart(distribution: ValueDistribution, name: str = "distribution") -> Chart:
    """Stacked bars or histograms of the units of every system by value."""
    draw = _stacked_bars if 2 <= len(distribution.labels) <= MAX_STACKED else _histograms
    return draw(distribution, name)


def _histograms(distribution: ValueDistribution, name: str) -> Chart:
    series, labels, noun = distribution.series, distribution.labels, distribution.units
    tallest = max((max(system.counts, default=0) for system in series), default=0)
    height = next(height for max_rows, height in ROW_HEIGHTS if len(series) <= max_rows)
    bars = [
        {
            "bin": index,
            "base": (row + 1) * height - 2,
            "top": (row + 1) * height - 2 - height * BAR_FRACTION * units / tallest,
            "tooltip": f"{system.name}: {format_count(units)} {noun} with {_in_bin(distribution, labels[index])}",
        }
        for row, system in enumerate(series)
        for index, units in enumerate(system.counts)
        if units
    ]
    x = marks.bin_axis(len(labels), gap=0.08)
    layers: list[Spec] = [
        _baselines(len(series), height),
        marks.rectangles(bars, {"x": x}, fill=LIGHT["lead"]),
        *_row_texts(distribution, height),
        _bin_labels(labels, x, len(series) * height + 12),
    ]
    return chart(
        name,
        distribution.title,
        _describe(distribution),
        layers,
        subtitle=f"All bars have the same scale; the tallest is {format_count(tallest)} {distribution.units}.",
        width=WIDTH,
        fluid=True,
        height=len(series) * height + 22,
    )


def _baselines(rows: int, height: float) -> Spec:
    """The baseline of the bars of each row."""
    where = {"x": {"value": 0}, "x2": {"value": WIDTH}, "y": {"field": "base", **marks.PIXELS}}
    bases = [{"base": (row + 1) * height - 2} for row in range(rows)]
    return marks.layer("rule", where, bases, stroke=LIGHT["line"])


def _row_texts(distribution: ValueDistribution, height: float) -> list[Spec]:
    """The names on the left, and the number of units on the right."""
    labels = _row_names(distribution)
    rows = [
        {"name": labels[row], "units": _units(system.counts, system.undefined), "at": (row + 0.62) * height}
        for row, system in enumerate(distribution.series)
    ]
    y: Spec = {"field": "at", **marks.PIXELS}
    left: Spec = {"x": {"value": -12}, "y": y}
    right: Spec = {"x": {"value": WIDTH + 12}, "y": y}
    return [
        marks.text_marks(rows, left, "name", align="right", fontSize=TEXT_SIZE, fill=LIGHT["ink"]),
        marks.text_marks(rows, right, "units", align="left", fontSize=SMALL_SIZE, fill=LIGHT["soft"]),
    ]


def _bin_labels(labels: tuple[str, ...], x: Spec, y: float) -> Spec:
    """The values below the bars; only every second or third if they would overlap."""
    bin_width = WIDTH / max(len(labels), 1)
    step = max(1, ceil((marks.text_width(labels) + 6) / bin_width))
    rows = [{"bin": index, "text": text} for index, text in enumerate(labels) if index % step == 0]
    return marks.text_marks(rows, {"x": x, "y": {"value": y}}, fill=LIGHT["soft"])


def _stacked_bars(distribution: ValueDistribution, name: str) -> Chart:
    """One bar per system: the units with the largest value first, then the next, undefined units last."""
    labels = _row_names(distribution)
    segments: list[marks.Row] = []
    rows: list[marks.Row] = []
    for row, system in enumerate(distribution.series):
        counts = tuple(zip(distribution.labels, system.counts, strict=True))[::-1]
        segments += _segments(row, system, distribution, counts)
        rows.append({"row": row, "name": labels[row], "units": _units(system.counts, system.undefined)})
    left: Spec = {"field": "from", **marks.PIXELS}
    style = {**marks.literals("fill", "stroke"), **marks.TOOLTIP}
    where = {"y": marks.ROW_POSITION, "x": left, "x2": {"field": "to"}, **style}
    solid = [segment for segment in segments if not segment["dashed"]]
    dashed = [segment for segment in segments if segment["dashed"]]
    bars = [marks.layer("bar", where, solid, strokeWidth=1)] if solid else []
    bars += [marks.layer("bar", where, dashed, strokeWidth=1, strokeDash=[3, 2])] if dashed else []
    texts = marks.text_marks(
        [segment for segment in segments if segment["text"]],
        {"y": marks.ROW_POSITION, "x": left, "fill": marks.literals("ink")["ink"]},
        align="left",
        dx=TEXT_MARGIN,
    )
    layers = [*bars, texts, marks.row_labels(), marks.text_column("units", WIDTH + 12, fill=LIGHT["soft"])]
    return chart(
        name,
        distribution.title,
        _describe(distribution),
        layers,
        subtitle=f"Each bar is all {distribution.units}, those with the largest value first.",
        width=WIDTH,
        fluid=True,
        height=marks.row_step(len(rows)),
        data={"values": rows},
    )


def _first_that_fits(texts: tuple[str, ...], width: float) -> str:
    """The first of the texts that fits into a segment of this width; empty if none does."""
    return next((text for text in texts if marks.text_width([text]) + 2 * TEXT_MARGIN <= width), "")


def _segments(
    row: int, system: BinCounts, distribution: ValueDistribution, counts: tuple[tuple[str, int], ...]
) -> list[marks.Row]:
    """The segments of one bar from left to right; segments without units are left out."""
    undefined = system.undefined
    total = sum(units for _, units in counts) + undefined
    styles = [
        ("lead", "lead", "on_high"),
        *((fill, "line", "on_low") for fill in STACK_COLORS[1 - len(counts) :]),
        ("paper", "line", "soft"),
    ]
    texts = [
        (f"with {_in_bin(distribution, label)}", f"{label}: {format_count(units)}", units) for label, units in counts
    ]
    texts.append(("undefined", format_count(undefined), undefined))
    segments, left = [], 0.0
    for (meaning, text, units), (fill, stroke, text_color) in zip(texts, styles, strict=True):
        right = left + (WIDTH * units / total if total else 0.0)
        if units:
            segments.append(
                {
                    "row": row,
                    "from": left,
                    "to": right,
                    "text": _first_that_fits((text, format_count(units)), right - left),
                    "fill": LIGHT[fill],
                    "stroke": LIGHT[stroke],
                    "ink": LIGHT[text_color],
                    "dashed": meaning == "undefined",
                    "tooltip": (
                        f"{system.name}: {format_count(units)} of {format_count(total)} {distribution.units} {meaning}"
                    ),
                }
            )
        left = right
    return segments


def _row_names(distribution: ValueDistribution) -> list[str]:
    """The labels of the rows; a single row is named by the title."""
    names = [system.name for system in distribution.series]
    return shorten_labels(names) if len(names) > 1 else [""]


def _units(counts: tuple[int, ...], undefined: int) -> str:
    units = f"n {format_count(sum(counts))}"
    return f"{units}, {format_count(undefined)} undefined" if undefined else units


def _in_bin(distribution: ValueDistribution, label: str) -> str:
    return f"{metric_in_sentence(distribution.metric)} {label}{percent_sign(distribution.metric)}"


def _describe(distribution: ValueDistribution) -> str:
    if not distribution.series:
        return f"No {metric_in_sentence(distribution.metric)} is defined."
    first = distribution.series[0]
    total = sum(first.counts)
    if not total:
        return f"{first.name} has no value of {metric_in_sentence(distribution.metric)}."
    most = max(first.counts)
    labels = [label for label, units in zip(distribution.labels, first.counts, strict=True) if units == most]
    metric, unit = metric_in_sentence(distribution.metric), percent_sign(distribution.metric)
    most_frequent = f"{metric} is" if len(labels) == 1 else f"values of {metric} are"
    if distribution.n_equal is not None:
        most_frequent = "difference is" if len(labels) == 1 else "differences are"
        unit = " points" if unit else ""
    each = "" if len(labels) == 1 else "each "
    undefined = f"; {format_count(first.undefined)} undefined" if first.undefined else ""
    equal = "" if distribution.n_equal is None else f"; {format_count(distribution.n_equal)} are equal"
    return (
        f"{first.name}: the most frequent {most_frequent} "
        f"{join_names(labels)}{unit}, "
        f"{each}on {format_count(most)} of {format_count(total)} {distribution.units} "
        f"({format_percent(round(most / total, 2))}){equal}{undefined}."
    )
