"""The league: every system on one metric with its interval, the chance level, and who is tied with whom."""

from __future__ import annotations

from equipoise.report.charts.chart import Chart, chart
from equipoise.report.charts.layers import (
    PLACE,
    SAID,
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
    towards,
    upright,
    whiskers,
)
from equipoise.report.charts.naming import short_names
from equipoise.report.charts.theme import LIGHT, Spec
from equipoise.report.page.model import League, LeagueRow

WIDTH = 380
GAP = 18
LETTER_STEP = 14


def league_chart(league: League, name: str = "league") -> Chart:
    """The systems from best to worst; circles are tied with the leader, open diamonds are behind it.

    Two systems share a letter where the data cannot tell them apart.
    """
    leaders = set(league.rows[0].bands) if league.rows else set()
    called = short_names([row.system for row in league.rows])
    rows = [_row(place, row, league, leaders) for place, row in enumerate(league.rows)]
    rows = [{**row, "name": name} for row, name in zip(rows, called, strict=True)]
    x = axis_of(league.scale, towards(league.metric, league.better))
    figures = WIDTH + GAP
    letters = figures + text_width(row["figure"] for row in rows) + GAP
    layers = [stripes(WIDTH), *_chance(league, rows, x), *whiskers(x), dots(x), names()]
    layers += [texts("figure", figures), head(f"value [{league.level} interval]", figures)]
    if leaders:
        layers += [_letters(league, letters), head("tie bands", letters), *_key(rows)]
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
        "figure": shown(row.figure),
        "shape": "circle" if ahead else "diamond",
        "fill": colour if ahead else LIGHT["paper"],
        "stroke": colour,
        "says": _says(row, league),
    }


def _says(row: LeagueRow, league: League) -> str:
    parts = [f"{row.system}: {league.metric} {shown(row.figure)}", f"n {row.n}"]
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
            "data": {
                "values": [{"value": rows[0]["chance"], "text": f"chance {league.rows[0].chance_text}"}]
            },
            "mark": {"type": "text", "align": "left", "dx": -2, "fill": LIGHT["chance"]},
            "encoding": {
                "x": {**x, "field": "value"},
                "y": {"value": -11},
                "text": {"field": "text"},
            },
        }
        return [upright(rows[0]["chance"], x, colour="chance", **mark), label]
    return [
        {
            "transform": [{"filter": "isValid(datum.chance)"}],
            "mark": {"type": "tick", "orient": "vertical", "size": 18, "thickness": 1.5, **mark}
            | {"color": LIGHT["chance"]},
            "encoding": {"y": PLACE, "x": {**x, "field": "chance"}, **SAID},
        }
    ]


def _letters(league: League, left: float) -> Spec:
    """Each letter in a column of its own, so that a band is seen as what stands below each other."""
    known = sorted(
        {letter for row in league.rows for letter in row.bands}, key=lambda each: (len(each), each)
    )
    marks = [
        {"row": place, "letter": letter, "at": left + known.index(letter) * LETTER_STEP}
        for place, row in enumerate(league.rows)
        for letter in row.bands
    ]
    return {
        "data": {"values": marks},
        "mark": {"type": "text", "align": "left", "fontWeight": "bold"},
        "encoding": {
            "y": PLACE,
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
    return key(entries[: len({row["shape"] for row in rows if row["value"] is not None})])


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
    lead = f"{best.system} has {league.metric} {shown(best.figure)}"
    if len(league.rows) == 1:
        chance = f", chance is {best.chance_text}" if best.chance_text else ""
        return f"{lead}{chance}."
    tied = [row.system for row in league.rows[1:] if set(row.bands) & set(best.bands)]
    whom = f"; tied with it: {', '.join(tied)}" if tied else ""
    end = f"{last.system} has {shown(last.figure)}"
    return f"Of {len(league.rows)} systems {lead} and stands first, {end}{whom}."
