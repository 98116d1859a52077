"""The league: every system on one metric with its interval, the chance level, and who is tied with whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from equipoise.report.charts.chart import Chart, chart, shorten_labels
from equipoise.report.charts.marks import (
    ROW_POSITION,
    TOOLTIP,
    Row,
    column_header,
    interval_bars,
    legend,
    metric_axis_title,
    points,
    reference_line,
    row_labels,
    row_lines,
    row_step,
    scale_axis,
    text_column,
    text_width,
    value_label,
)
from equipoise.report.charts.theme import LIGHT, Spec

if TYPE_CHECKING:
    from equipoise.report.view_model import League, LeagueRow, Pair, Pairs

WIDTH = 380
GAP = 18
LETTER_STEP = 14


def leaderboard_chart(league: League, name: str = "league") -> Chart:
    """The systems from best to worst; circles are tied with the leader, open diamonds are behind it.

    Two systems share a letter where the data cannot tell them apart.
    """
    leaders = set(league.rows[0].bands) if league.rows else set()
    called = shorten_labels([row.system for row in league.rows])
    rows = [_row(place, row, league, leaders) for place, row in enumerate(league.rows)]
    rows = [{**row, "name": name} for row, name in zip(rows, called, strict=True)]
    x = scale_axis(league.scale, metric_axis_title(league.metric, league.better))
    figures = WIDTH + GAP
    letters = figures + text_width(row["figure"] for row in rows) + GAP
    layers = [row_lines(WIDTH), *_chance(league, rows, x), *interval_bars(x), points(x), row_labels()]
    layers += [text_column("figure", figures), column_header(f"value [{league.level} interval]", figures)]
    if leaders:
        layers += [_letters(league, letters), column_header("tie bands", letters), *_key(rows)]
    return chart(
        name,
        f"{_systems(len(rows))} by {league.metric}",
        _sentence(league),
        layers,
        subtitle=_subtitle(league, leaders),
        width=WIDTH,
        height=row_step(len(rows)),
        data={"values": rows},
    )


def _row(place: int, row: LeagueRow, league: League, leaders: set[str]) -> Row:
    ahead = not leaders or bool(leaders & set(row.bands))
    colour = LIGHT["lead" if ahead else "behind"]
    return {
        "row": place,
        "value": row.figure.value,
        "low": row.figure.low,
        "high": row.figure.high,
        "chance": row.chance,
        "figure": value_label(row.figure),
        "shape": "circle" if ahead else "diamond",
        "fill": colour if ahead else LIGHT["paper"],
        "stroke": colour,
        "says": _says(row, league),
    }


def _says(row: LeagueRow, league: League) -> str:
    parts = [f"{row.system}: {league.metric} {value_label(row.figure)}", f"n {row.n}"]
    parts += [f"undefined {row.undefined}"] if row.undefined not in ("", "0") else []
    parts += [f"chance {row.chance_text}"] if row.chance_text else []
    parts += [f"rank {row.rank}"] if row.rank else []
    parts += [f"tie bands {' '.join(row.bands)}"] if row.bands else []
    parts += [f"to the leader {row.difference}, adjusted p {row.p}"] if row.difference else []
    return "; ".join(parts)


def _chance(league: League, rows: list[Row], x: Spec) -> list[Spec]:
    """One line where luck scores the same for all; else a short one a row."""
    levels = {row["chance"] for row in rows}
    mark: Spec = {"strokeDash": [4, 3], "strokeWidth": 1.3}
    if len(levels) == 1 and None not in levels:
        label: Spec = {
            "data": {"values": [{"value": rows[0]["chance"], "text": f"chance {league.rows[0].chance_text}"}]},
            "mark": {"type": "text", "align": "left", "dx": -2, "fill": LIGHT["chance"]},
            "encoding": {
                "x": {**x, "field": "value"},
                "y": {"value": -11},
                "text": {"field": "text"},
            },
        }
        return [reference_line(rows[0]["chance"], x, colour="chance", **mark), label]
    return [
        {
            "transform": [{"filter": "isValid(datum.chance)"}],
            "mark": {"type": "tick", "orient": "vertical", "size": 18, "thickness": 1.5, **mark}
            | {"color": LIGHT["chance"]},
            "encoding": {"y": ROW_POSITION, "x": {**x, "field": "chance"}, **TOOLTIP},
        }
    ]


def _letters(league: League, left: float) -> Spec:
    """Each letter in a column of its own, so that a band is seen as what stands below each other."""
    known = sorted({letter for row in league.rows for letter in row.bands}, key=lambda each: (len(each), each))
    marks = [
        {"row": place, "letter": letter, "at": left + known.index(letter) * LETTER_STEP}
        for place, row in enumerate(league.rows)
        for letter in row.bands
    ]
    return {
        "data": {"values": marks},
        "mark": {"type": "text", "align": "left", "fontWeight": "bold"},
        "encoding": {
            "y": ROW_POSITION,
            "x": {"field": "at", "type": "quantitative", "scale": None, "axis": None},
            "text": {"field": "letter"},
        },
    }


def _key(rows: list[Row]) -> list[Spec]:
    if len(rows) < 2:
        return []
    lead, behind = LIGHT["lead"], LIGHT["behind"]
    entries = [
        ("circle", lead, lead, "tied with the leader"),
        ("diamond", LIGHT["paper"], behind, "behind it"),
    ]
    return legend(entries[: len({row["shape"] for row in rows if row["value"] is not None})])


def _subtitle(league: League, leaders: set[str]) -> str:
    said = []
    if len(league.rows) > 1 and leaders:
        said.append("The data cannot tell systems apart that share a letter.")
    if len({row.chance for row in league.rows} - {None}) > 1:
        said.append("Short red lines are chance levels.")
    return " ".join(said)


def _systems(count: int) -> str:
    return "One system" if count == 1 else f"{count} systems"


def _sentence(league: League) -> str:
    if not league.rows:
        return f"No system was measured on {league.metric}."
    best, last = league.rows[0], league.rows[-1]
    lead = f"{best.system} has {league.metric} {value_label(best.figure)}"
    if len(league.rows) == 1:
        chance = f", chance is {best.chance_text}" if best.chance_text else ""
        return f"{lead}{chance}."
    tied = [row.system for row in league.rows[1:] if set(row.bands) & set(best.bands)]
    whom = f"; tied with it: {', '.join(tied)}" if tied else ""
    end = f"{last.system} has {value_label(last.figure)}"
    return f"Of {len(league.rows)} systems {lead} and stands first, {end}{whom}."


# The forest: the difference of every pair of systems with its interval, and a line where there is none.

FOREST_WIDTH = 360
FOREST_GAP = 18
MAX_PAIRS = 30
LONGEST_SIDE = 24
KEY = (
    ("circle", LIGHT["lead"], LIGHT["lead"], "told apart"),
    ("diamond", LIGHT["paper"], LIGHT["behind"], "not told apart"),
)


def difference_chart(pairs: Pairs, name: str = "forest") -> Chart:
    """Differences of pairs; filled circles where the data tell the two apart, open diamonds where not.

    With more pairs than a picture can hold only those with the leader are drawn.
    """
    drawn = shown_pairs(pairs)
    systems = list(dict.fromkeys(name for pair in drawn for name in (pair.a, pair.b)))
    called = dict(zip(systems, shorten_labels(systems, LONGEST_SIDE), strict=True))
    rows = [_forest_row(place, pair, called) for place, pair in enumerate(drawn)]
    x = scale_axis(pairs.scale, f"difference in {pairs.metric}")
    figures = FOREST_WIDTH + FOREST_GAP
    chances = figures + max(text_width(row["figure"] for row in rows), 120) + FOREST_GAP
    worse, better = ("second better", "first better")
    if pairs.better == "down":
        worse, better = better, worse
    zero = _place(0.0, pairs)
    layers = [
        row_lines(FOREST_WIDTH),
        reference_line(0.0, x, colour="soft", strokeWidth=1.2),
        *interval_bars(x),
        points(x),
        row_labels(),
        text_column("figure", figures),
        text_column("p", chances),
        column_header("difference [interval]", figures),
        column_header("adjusted p", chances),
        column_header(f"← {worse}", zero - 8, align="right"),
        column_header(f"{better} →", zero + 8),
        *legend(KEY),
    ]
    left_out = len(pairs.rows) - len(drawn)
    return chart(
        name,
        f"Paired differences in {pairs.metric}",
        _forest_sentence(pairs),
        layers,
        subtitle=f"Only pairs with the leader; {left_out} others are in the table." if left_out else "",
        width=FOREST_WIDTH,
        height=row_step(len(rows)),
        data={"values": rows},
    )


def shown_pairs(pairs: Pairs) -> tuple[Pair, ...]:
    """The pairs that are drawn: all, or those with the first system where all would be too many."""
    if len(pairs.rows) <= MAX_PAIRS:
        return pairs.rows
    leader = pairs.rows[0].a
    return tuple(pair for pair in pairs.rows if leader in (pair.a, pair.b))[:MAX_PAIRS]


def _forest_row(place: int, pair: Pair, called: Mapping[str, str]) -> Row:
    apart = bool(pair.winner)
    colour = LIGHT["lead" if apart else "behind"]
    figure = value_label(pair.figure)
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
    return (value - low) / (high - low) * FOREST_WIDTH if high > low else FOREST_WIDTH / 2


def _forest_sentence(pairs: Pairs) -> str:
    if not pairs.rows:
        return f"There is no pair of systems to compare on {pairs.metric}."
    apart = [pair for pair in pairs.rows if pair.winner]
    widest = max(pairs.rows, key=lambda pair: abs(pair.figure.value or 0.0))
    count = "one pair" if len(pairs.rows) == 1 else f"{len(pairs.rows)} pairs"
    return (
        f"Of {count} on {pairs.metric} the data tell {len(apart)} apart; the largest difference is "
        f"{widest.a} minus {widest.b}, {value_label(widest.figure)}, adjusted p {widest.adjusted}."
    )
