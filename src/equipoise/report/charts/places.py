"""Classes and ranks: accuracy over every k, where the right class stands, and who is taken for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from equipoise.report.charts.chart import Chart, chart, slug
from equipoise.report.charts.frontier import spaced
from equipoise.report.charts.heat import Cell, cell_size, heat_layers, shade_key
from equipoise.report.charts.layers import SAID, Row, axis, head
from equipoise.report.charts.naming import short, short_names
from equipoise.report.charts.theme import LIGHT, SMALL_SIZE, TEXT_SIZE, Spec, identity
from equipoise.stats.numbers import count, figure

WIDTH, HEIGHT = 520, 320
CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
SHARES = tuple((tenth / 10, figure(tenth / 10, 1)) for tenth in range(0, 11, 2))
BAND = 58
BAR_ROOM = 0.66
"""The share of a band that the tallest bar takes; a figure stands above it."""
LEAST_FIGURE = 0.0005
CHANCE = "chance"
_OWN: Spec = {"type": "nominal", "scale": None}
_PLAIN: Spec = {"type": "quantitative", "scale": None, "axis": None}


def accuracy_chart(
    curves: Mapping[str, Sequence[float]],
    chance: Sequence[float] | None = None,
    name: str = "accuracy-over-k",
    *,
    what: str = "Accuracy",
    symbol: str = "Acc",
) -> Chart:
    """A line a system: Acc@1, Acc@2, ... as given; the k axis is logarithmic, the dashes are luck.

    ``what`` and ``symbol`` are how the field calls the share of units whose answer is within the first k.
    """
    deepest = max(len(curve) for curve in curves.values())
    cutoffs = [k for k in CUTOFFS if k <= deepest]
    x = axis(1, max(deepest, 2), [(k, str(k)) for k in cutoffs], "k (logarithmic)", type="log")
    del x["scale"]["zero"]  # a logarithmic axis has none
    y = axis(0.0, 1.0, SHARES, f"{what.casefold()} within the first k (higher is better ↑)")
    for each in (x, y):
        each["axis"]["grid"] = True
    layers: list[Spec] = [] if chance is None else [_luck(chance[:deepest], x, y)]
    for place, (system, curve) in enumerate(curves.items()):
        layers += _curve(system, curve, place, cutoffs, x, y, symbol)
    layers += end_labels(list(curves), [curve[-1] for curve in curves.values()], WIDTH, HEIGHT)
    return chart(
        name,
        f"{what} over k",
        _curves_sentence(curves, chance, what),
        layers,
        subtitle="" if chance is None else "Dashed: what a scorer that knows nothing would reach.",
        width=WIDTH,
        height=HEIGHT,
    )


def _line(rows: list[Row], x: Spec, y: Spec, **mark: object) -> Spec:
    return {
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2, "aria": False, **mark},
        "encoding": {"x": {**x, "field": "k"}, "y": {**y, "field": "value"}},
    }


def _luck(chance: Sequence[float], x: Spec, y: Spec) -> Spec:
    rows = [{"k": k, "value": value} for k, value in enumerate(chance, start=1)]
    return _line(rows, x, y, stroke=LIGHT[CHANCE], strokeDash=[4, 3], strokeWidth=1.4)


def _curve(
    system: str,
    curve: Sequence[float],
    place: int,
    cutoffs: Sequence[int],
    x: Spec,
    y: Spec,
    symbol: str,
) -> list[Spec]:
    """The line, and a mark at each cutoff that people quote."""
    colour, shape = identity(place)
    rows = [{"k": k, "value": value} for k, value in enumerate(curve, start=1)]
    marks = [
        {**rows[k - 1], "says": f"{system}: {symbol}@{k} {figure(curve[k - 1])}"}
        for k in cutoffs
        if k <= len(curve)
    ]
    dots: Spec = {
        "data": {"values": marks},
        "mark": {"type": "point", "shape": shape, "fill": colour, "stroke": colour, "size": 44, "opacity": 1},
        "encoding": {"x": {**x, "field": "k"}, "y": {**y, "field": "value"}, **SAID},
    }
    return [_line(rows, x, y, stroke=colour), dots]


def end_labels(systems: Sequence[str], values: Sequence[float], width: float, height: float) -> list[Spec]:
    """The names at the right of shares, in the order of these and moved apart."""
    called = short_names(systems, 28)
    ends = sorted(((1.0 - value) * height, place) for place, value in enumerate(values))
    rows = [
        {"at": at, "text": called[place], **dict(zip(("fill", "shape"), identity(place), strict=True))}
        for at, (_, place) in zip(spaced([at for at, _ in ends]), ends, strict=True)
    ]
    y: Spec = {"field": "at", **_PLAIN}
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "aria": False},
            "encoding": {
                "x": {"value": width + 14},
                "y": y,
                "shape": {"field": "shape", **_OWN},
                "fill": {"field": "fill", **_OWN},
            },
        },
        {
            "data": {"values": rows},
            "mark": {"type": "text", "align": "left"},
            "encoding": {"x": {"value": width + 24}, "y": y, "text": {"field": "text"}},
        },
    ]


def _curves_sentence(curves: Mapping[str, Sequence[float]], chance: Sequence[float] | None, what: str) -> str:
    parts = [
        f"{system} from {figure(curve[0])} at k = 1 to {figure(curve[-1])} at k = {len(curve)}"
        for system, curve in curves.items()
    ]
    luck = "" if chance is None else f"; chance begins at {figure(chance[0], 4)}"
    return f"{what} grows with k: {', '.join(parts)}{luck}."


def ranks_chart(
    classes: Sequence[str], shares: Mapping[str, Sequence[float]], name: str = "rank-distribution"
) -> Chart:
    """A row of bars a system: the share of units whose right class stands in each class of ranks."""
    tallest = max((max(row) for row in shares.values()), default=0.0) or 1.0
    bars = [
        bar
        for place, (system, row) in enumerate(shares.items())
        for bar in _bars(system, place, classes, row, tallest)
    ]
    x: Spec = {
        "field": "bin",
        "type": "ordinal",
        "scale": {"domain": list(range(len(classes))), "paddingInner": 0.12, "paddingOuter": 0.06},
        "axis": None,
    }
    named = [
        {"name": called, "at": (place + 0.7) * BAND}
        for place, called in enumerate(short_names(list(shares), 28))
    ]
    layers: list[Spec] = [
        {
            "data": {"values": bars},
            "mark": {"type": "rect"},
            "encoding": {
                "x": x,
                "y": {"field": "top", **_PLAIN},
                "y2": {"field": "base"},
                "fill": {"field": "fill", **_OWN},
                **SAID,
            },
        },
        _words(bars, x, {"field": "top", **_PLAIN}, "text", dy=-8, fill=LIGHT["soft"]),
        {
            "data": {"values": named},
            "mark": {"type": "text", "align": "right", "fontSize": TEXT_SIZE},
            "encoding": {"x": {"value": -12}, "y": {"field": "at", **_PLAIN}, "text": {"field": "name"}},
        },
        _words(
            [{"bin": place, "text": text} for place, text in enumerate(classes)],
            x,
            {"value": len(shares) * BAND + 14},
            "text",
            fontSize=SMALL_SIZE,
        ),
        head("rank of the right class", 0, y=len(shares) * BAND + 34),
    ]
    return chart(
        name,
        "Where the right class stands",
        _ranks_sentence(classes, shares),
        layers,
        subtitle="The share of units in each class of ranks; equal scores share their ranks.",
        width=WIDTH,
        height=len(shares) * BAND,
    )


def _bars(system: str, place: int, classes: Sequence[str], row: Sequence[float], tallest: float) -> list[Row]:
    base = (place + 1) * BAND - 4
    return [
        {
            "bin": at,
            "base": base,
            "top": base - BAND * BAR_ROOM * share / tallest,
            "text": figure(share, 2 if share >= 0.005 or share < LEAST_FIGURE else 3),
            "fill": LIGHT["lead" if at == 0 else "heat4"],
            "says": f"{system}: {figure(share)} of the units have rank {classes[at]}",
        }
        for at, share in enumerate(row)
    ]


def _words(rows: list[Row], x: Spec, y: Spec, field: str, **mark: object) -> Spec:
    return {
        "data": {"values": rows},
        "mark": {"type": "text", "fontSize": SMALL_SIZE, **mark},
        "encoding": {"x": x, "y": y, "text": {"field": field}},
    }


def _ranks_sentence(classes: Sequence[str], shares: Mapping[str, Sequence[float]]) -> str:
    parts = [
        f"{system} has {figure(row[0])} of the units at rank {classes[0]} and {figure(row[-1])} at "
        f"{classes[-1]}"
        for system, row in shares.items()
    ]
    return f"{'; '.join(parts)}."


def confusion_chart(
    system: str, classes: Sequence[str], counts: Sequence[Sequence[int]], name: str = ""
) -> Chart:
    """A row a true class, a column a predicted one, the last for all others; shades are shares of a row."""
    cells = [
        _cell(row, column, units, sum(line), classes)
        for row, line in enumerate(counts)
        for column, units in enumerate(line)
    ]
    size = cell_size(cells)
    rows = [
        f"{called} (n {count(sum(line))})"
        for called, line in zip(short_names(list(classes), 20), counts, strict=True)
    ]
    columns = [*short_names(list(classes), 20), "others"]
    layers = heat_layers(cells, rows, columns, size)
    layers += [head("true ↓  predicted →", -10, align="right", y=-10)]
    layers += shade_key("none of the row", "all of it", y=len(rows) * size.height + 20)
    return chart(
        name or f"confusion-{slug(system)}",
        f"What {short(system)} takes the most frequent classes for",
        _confusion_sentence(system, classes, counts),
        layers,
        subtitle="Shares of the units of each true class; framed: predicted right.",
        **size.of(rows, columns),
    )


def _cell(row: int, column: int, units: int, total: int, classes: Sequence[str]) -> Cell:
    share = units / total if total else 0.0
    taken = classes[column] if column < len(classes) else "another class"
    return Cell(
        row,
        column,
        figure(share, 2) if units else "",
        f"{count(units)} of {count(total)} units of {classes[row]} are predicted as {taken}",
        share,
        strong=row == column,
    )


def _confusion_sentence(system: str, classes: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    right = sum(line[row] for row, line in enumerate(counts))
    total = sum(map(sum, counts))
    wrong = [
        (units, classes[row], classes[column])
        for row, line in enumerate(counts)
        for column, units in enumerate(line[:-1])
        if row != column and units
    ]
    most = max(wrong, default=None)
    told = f"; {most[1]} is most often taken for {most[2]} ({count(most[0])} units)" if most else ""
    return (
        f"{system} predicts {count(right)} of {count(total)} units of the {len(classes)} most frequent "
        f"classes right{told}."
    )
