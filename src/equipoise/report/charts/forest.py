"""The forest: the difference of every pair of systems with its interval, and a line where there is none."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.report.charts.chart import Chart, chart
from equipoise.report.charts.layers import (
    Row,
    axis_of,
    dots,
    head,
    key,
    names,
    row_step,
    shown,
    stripes,
    text_width,
    texts,
    upright,
    whiskers,
)
from equipoise.report.charts.naming import short_names
from equipoise.report.charts.theme import LIGHT
from equipoise.report.page.model import Pair, Pairs

WIDTH = 360
GAP = 18
MOST_PAIRS = 30
LONGEST_SIDE = 24
KEY = (
    ("circle", LIGHT["lead"], LIGHT["lead"], "told apart"),
    ("diamond", LIGHT["paper"], LIGHT["behind"], "not told apart"),
)


def forest_chart(pairs: Pairs, name: str = "forest") -> Chart:
    """Differences of pairs; filled circles where the data tell the two apart, open diamonds where not.

    With more pairs than a picture can hold only those with the leader are drawn.
    """
    drawn = drawn_pairs(pairs)
    systems = list(dict.fromkeys(name for pair in drawn for name in (pair.a, pair.b)))
    called = dict(zip(systems, short_names(systems, LONGEST_SIDE), strict=True))
    rows = [_row(place, pair, called) for place, pair in enumerate(drawn)]
    x = axis_of(pairs.scale, f"difference in {pairs.metric}")
    figures = WIDTH + GAP
    chances = figures + max(text_width(row["figure"] for row in rows), 120) + GAP
    worse, better = ("second better", "first better")
    if pairs.better == "down":
        worse, better = better, worse
    zero = _place(0.0, pairs)
    layers = [
        stripes(WIDTH),
        upright(0.0, x, colour="soft", strokeWidth=1.2),
        *whiskers(x),
        dots(x),
        names(),
        texts("figure", figures),
        texts("p", chances),
        head("difference [interval]", figures),
        head("adjusted p", chances),
        head(f"← {worse}", zero - 8, align="right"),
        head(f"{better} →", zero + 8),
        *key(KEY),
    ]
    left_out = len(pairs.rows) - len(drawn)
    return chart(
        name,
        f"Paired differences in {pairs.metric}",
        _sentence(pairs),
        layers,
        subtitle=f"Only pairs with the leader; {left_out} others are in the table." if left_out else "",
        width=WIDTH,
        height=row_step(len(rows)),
        data={"values": rows},
    )


def drawn_pairs(pairs: Pairs) -> tuple[Pair, ...]:
    """The pairs that are drawn: all, or those with the first system where all would be too many."""
    if len(pairs.rows) <= MOST_PAIRS:
        return pairs.rows
    leader = pairs.rows[0].a
    return tuple(pair for pair in pairs.rows if leader in (pair.a, pair.b))[:MOST_PAIRS]


def _row(place: int, pair: Pair, called: Mapping[str, str]) -> Row:
    apart = bool(pair.winner)
    colour = LIGHT["lead" if apart else "behind"]
    figure = shown(pair.figure)
    counts = "" if pair.wins is None else f"; win/tie/loss {pair.wins}/{pair.ties}/{pair.losses}"
    verdict = f"{pair.winner} is better" if apart else pair.reason or "not told apart"
    return {
        "row": place,
        "name": f"{called[pair.a]} − {called[pair.b]}",
        "value": pair.figure.value,
        "low": pair.figure.low,
        "high": pair.figure.high,
        "figure": figure,
        "p": pair.adjusted,
        "shape": "circle" if apart else "diamond",
        "fill": colour if apart else LIGHT["paper"],
        "stroke": colour,
        "says": f"{pair.a} minus {pair.b}: {figure}; adjusted p {pair.adjusted}; {verdict}{counts}",
    }


def _place(value: float, pairs: Pairs) -> float:
    """Where a value stands in the plot, from its left edge."""
    low, high = pairs.scale.low, pairs.scale.high
    return (value - low) / (high - low) * WIDTH if high > low else WIDTH / 2


def _sentence(pairs: Pairs) -> str:
    if not pairs.rows:
        return f"There is no pair of systems to compare on {pairs.metric}."
    apart = [pair for pair in pairs.rows if pair.winner]
    widest = max(pairs.rows, key=lambda pair: abs(pair.figure.value or 0.0))
    count = "one pair" if len(pairs.rows) == 1 else f"{len(pairs.rows)} pairs"
    return (
        f"Of {count} on {pairs.metric} the data tell {len(apart)} apart; the largest difference is "
        f"{widest.a} minus {widest.b}, {shown(widest.figure)}, adjusted p {widest.adjusted}."
    )
