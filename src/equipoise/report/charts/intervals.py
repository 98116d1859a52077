"""Point-and-interval charts: the leaderboard (one row per system) and the paired differences (a forest plot)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from equipoise.checks.base import join_names
from equipoise.report.charts import marks
from equipoise.report.charts.chart import LIGHT, Chart, Spec, chart, shorten_labels, with_largest
from equipoise.stats.formatting import metric_in_sentence, p_in_sentence, value_in_sentence
from equipoise.stats.verdict import plural

if TYPE_CHECKING:
    from equipoise.report.view_model import Leaderboard, LeaderboardRow, PairDifference, PairwiseTable

LEADERBOARD_WIDTH = 380
DIFFERENCE_WIDTH = 360
GAP = 18
TIE_GROUP_STEP = 14
MAX_PAIRS = 30
MAX_SYSTEM_LABEL = 18
SIGNIFICANCE_LEGEND = (
    ("circle", LIGHT["lead"], LIGHT["lead"], "significant"),
    ("diamond", LIGHT["paper"], LIGHT["behind"], "not significant"),
)


def leaderboard_chart(board: Leaderboard) -> Chart:
    """The systems from best to worst; circles are tied with the best system, open diamonds are worse.

    Systems that share a letter do not differ significantly.
    """
    best_groups = set(board.rows[0].tie_groups) if board.rows else set()
    labels = shorten_labels([row.system for row in board.rows])
    rows = [_system_row(index, row, board, best_groups) for index, row in enumerate(board.rows)]
    rows = [{**row, "name": label} for row, label in zip(rows, labels, strict=True)]
    x = marks.scale_axis(board.scale, marks.metric_axis_title(board.metric, board.better))
    scores = LEADERBOARD_WIDTH + GAP
    groups = scores + marks.text_width(row["label"] for row in rows) + GAP
    layers = [
        marks.row_lines(LEADERBOARD_WIDTH),
        *_chance_marks(board, rows, x),
        *marks.interval_bars(x),
        marks.points(x),
        marks.row_labels(),
    ]
    layers += [
        marks.text_column("label", scores),
        marks.column_header(f"value [{board.confidence_level} interval]", scores),
    ]
    if best_groups:
        layers += [_tie_groups(board, groups), marks.column_header("tie band", groups), *_leaderboard_legend(rows)]
    return chart(
        "leaderboard",
        f"{_systems(len(rows), board.system)} by {board.metric}",
        _describe_leaderboard(board),
        layers,
        subtitle=_leaderboard_subtitle(board, best_groups),
        width=LEADERBOARD_WIDTH,
        fluid=True,
        height=marks.row_step(len(rows)),
        data={"values": rows},
    )


def _system_row(index: int, row: LeaderboardRow, board: Leaderboard, best_groups: set[str]) -> marks.Row:
    tied = not best_groups or bool(best_groups & set(row.tie_groups))
    color = LIGHT["lead" if tied else "behind"]
    return {
        "row": index,
        "value": row.score.number,
        "low": row.score.low,
        "high": row.score.high,
        "chance": row.chance,
        "label": marks.value_label(row.score),
        "shape": "circle" if tied else "diamond",
        "fill": color if tied else LIGHT["paper"],
        "stroke": color,
        "tooltip": _system_tooltip(row, board),
    }


def _system_tooltip(row: LeaderboardRow, board: Leaderboard) -> str:
    parts = [f"{row.system}: {_score(board, row)}", f"n {row.n}"]
    parts += [f"undefined {row.undefined}"] if row.undefined not in ("", "0") else []
    parts += [f"chance {row.chance_text}"] if row.chance_text else []
    parts += [f"rank {row.rank}"] if row.rank else []
    parts += [f"tie band {' '.join(row.tie_groups)}"] if row.tie_groups else []
    parts += [f"difference to the best {row.difference}, {_p_in_sentence(row.p, board)}"] if row.difference else []
    return "; ".join(parts)


def _chance_marks(board: Leaderboard, rows: list[marks.Row], x: Spec) -> list[Spec]:
    """One line if the chance level is the same for all systems; otherwise a short line per row."""
    levels = {row["chance"] for row in rows}
    dashed: Spec = {"strokeDash": [4, 3], "strokeWidth": 1.3}
    if len(levels) == 1 and None not in levels:
        text = {"value": rows[0]["chance"], "text": f"chance {board.rows[0].chance_text}"}
        where: Spec = {"x": {**x, "field": "value"}, "y": {"value": -11}}
        label = marks.text_marks([text], where, align="left", dx=-2, fill=LIGHT["chance"])
        return [marks.reference_line(rows[0]["chance"], x, color="chance", **dashed), label]
    at_chance = {"y": marks.ROW_POSITION, "x": {**x, "field": "chance"}, **marks.TOOLTIP}
    style: Spec = {"orient": "vertical", "size": 18, "thickness": 1.5, "color": LIGHT["chance"], **dashed}
    return [marks.layer("tick", at_chance, only=marks.HAS_CHANCE, **style)]


def _tie_groups(board: Leaderboard, left: float) -> Spec:
    """The letters of the tie groups; each letter has its own column."""
    letters = sorted(
        {letter for row in board.rows for letter in row.tie_groups}, key=lambda letter: (len(letter), letter)
    )
    rows = [
        {"row": index, "letter": letter, "at": left + letters.index(letter) * TIE_GROUP_STEP}
        for index, row in enumerate(board.rows)
        for letter in row.tie_groups
    ]
    return marks.text_marks(
        rows, {"y": marks.ROW_POSITION, "x": {"field": "at", **marks.PIXELS}}, "letter", align="left", fontWeight="bold"
    )


def _leaderboard_legend(rows: list[marks.Row]) -> list[Spec]:
    if len(rows) < 2:
        return []
    entries = [
        ("circle", LIGHT["lead"], LIGHT["lead"], "tied with the best"),
        ("diamond", LIGHT["paper"], LIGHT["behind"], "worse than the best"),
    ]
    return marks.legend(entries[: len({row["shape"] for row in rows if row["value"] is not None})])


def _score(board: Leaderboard, row: LeaderboardRow) -> str:
    return f"{metric_in_sentence(board.metric)} {value_in_sentence(board.metric, marks.value_label(row.score))}"


def _leaderboard_subtitle(board: Leaderboard, best_groups: set[str]) -> str:
    notes = []
    if len(board.rows) > 1 and best_groups:
        notes.append(f"{plural(board.system).capitalize()} that share a tie-band letter do not differ significantly.")
    if len({row.chance for row in board.rows} - {None}) > 1:
        notes.append("Short red lines are chance levels.")
    return " ".join(notes)


def _systems(count: int, noun: str) -> str:
    return f"One {noun}" if count == 1 else f"{count} {plural(noun)}"


def _describe_leaderboard(board: Leaderboard) -> str:
    if not board.rows:
        return f"No {board.system} has a score on {metric_in_sentence(board.metric)}."
    best, worst = board.rows[0], board.rows[-1]
    if len(board.rows) == 1:
        first = f"{best.system} has {_score(board, best)}"
        chance = f", chance is {best.chance_text}" if best.chance_text else ""
        return f"{first}{chance}."
    tied = [row.system for row in board.rows[1:] if set(row.tie_groups) & set(best.tie_groups)]
    ties = f" (tied with it: {', '.join(tied)})" if tied else ""
    first = f"{best.system} with {_score(board, best)}"
    equal = [row.system for row in board.rows[1:] if row.score.number == worst.score.number]
    lowest = value_in_sentence(board.metric, marks.value_label(worst.score))
    last = f"{'is' if len(equal) == 1 else 'are'} {join_names(equal)} with {lowest}"
    return f"Of {len(board.rows)} {plural(board.system)}, the first is {first}{ties}; the last {last}."


def difference_chart(table: PairwiseTable) -> Chart:
    """A forest plot of paired differences: filled circles are significant, open diamonds are not.

    With more than ``MAX_PAIRS`` pairs, only those with the best system are drawn.
    """
    pairs = shown_pairs(table)
    systems = list(dict.fromkeys(name for pair in pairs for name in (pair.a, pair.b)))
    labels = dict(zip(systems, shorten_labels(systems, MAX_SYSTEM_LABEL), strict=True))
    rows = [_pair_row(index, pair, labels, table) for index, pair in enumerate(pairs)]
    x = marks.scale_axis(table.scale, f"difference in {table.metric}")
    differences = DIFFERENCE_WIDTH + GAP
    p_values = differences + max(marks.text_width(row["label"] for row in rows), 120) + GAP
    left, right = ("second better", "first better") if table.better == "up" else ("first better", "second better")
    zero = _pixel(0.0, table)
    layers = [
        marks.row_lines(DIFFERENCE_WIDTH),
        marks.reference_line(0.0, x, color="soft", strokeWidth=1.2),
        *marks.interval_bars(x),
        marks.points(x),
        marks.row_labels(),
        marks.text_column("label", differences),
        marks.text_column("p", p_values),
        marks.column_header("difference [interval]", differences),
        marks.column_header("adjusted p" if table.adjusted else "p", p_values),
        marks.column_header(f"← {left}", zero - 8, align="right"),
        marks.column_header(f"{right} →", zero + 8),
        *marks.legend(SIGNIFICANCE_LEGEND),
    ]
    left_out = len(table.rows) - len(pairs)
    return chart(
        "differences",
        f"Paired differences in {table.metric}",
        _describe_differences(table),
        layers,
        subtitle=f"Only pairs with the best {table.system}; {left_out} others are in the table." if left_out else "",
        width=DIFFERENCE_WIDTH,
        fluid=True,
        height=marks.row_step(len(rows)),
        data={"values": rows},
    )


def shown_pairs(table: PairwiseTable) -> tuple[PairDifference, ...]:
    """The pairs that are drawn: all, or those with the best system if there are more than ``MAX_PAIRS``."""
    if len(table.rows) <= MAX_PAIRS:
        return table.rows
    best = table.rows[0].a
    return tuple(pair for pair in table.rows if best in (pair.a, pair.b))[:MAX_PAIRS]


def _pair_row(index: int, pair: PairDifference, labels: Mapping[str, str], table: PairwiseTable) -> marks.Row:
    significant = bool(pair.winner)
    color = LIGHT["lead" if significant else "behind"]
    label = marks.value_label(pair.difference)
    counts = "" if pair.wins is None else f"; win/tie/loss {pair.wins}/{pair.ties}/{pair.losses}"
    verdict = f"{pair.winner} is better" if significant else pair.reason or "not significant"
    p = _p_in_sentence(pair.p_adjusted, table)
    return {
        "row": index,
        "name": f"{labels[pair.a]} − {labels[pair.b]}",
        "value": pair.difference.number,
        "low": pair.difference.low,
        "high": pair.difference.high,
        "label": label,
        "p": pair.p_adjusted,
        "shape": "circle" if significant else "diamond",
        "fill": color if significant else LIGHT["paper"],
        "stroke": color,
        "tooltip": f"{pair.a} minus {pair.b}: {label}; {p}; {verdict}{counts}",
    }


def _p_in_sentence(p: str, table: Leaderboard | PairwiseTable) -> str:
    return f"adjusted {p_in_sentence(p)}" if table.adjusted else p_in_sentence(p)


def _pixel(value: float, table: PairwiseTable) -> float:
    """The position of a value, in pixels from the left edge of the plot."""
    low, high = table.scale.low, table.scale.high
    return (value - low) / (high - low) * DIFFERENCE_WIDTH if high > low else DIFFERENCE_WIDTH / 2


def _describe_differences(table: PairwiseTable) -> str:
    metric = metric_in_sentence(table.metric)
    if not table.rows:
        return f"There is no pair of {plural(table.system)} to compare on {metric}."
    significant = [pair for pair in table.rows if pair.winner]
    largest, *tied = with_largest(table.rows, lambda pair: abs(pair.difference.number or 0.0))
    equal = f"; equally large: {join_names([f'{pair.a} minus {pair.b}' for pair in tied])}" if tied else ""
    if len(table.rows) == 1:
        result = f"The pair {'differs' if significant else 'does not differ'} significantly on {metric}"
        label = "difference"
    else:
        result = f"{len(significant)} of {len(table.rows)} pairs differ significantly on {metric}"
        label = "largest difference"
    return (
        f"{result}; the {label} is {largest.a} minus {largest.b}, {marks.value_label(largest.difference)}, "
        f"{_p_in_sentence(largest.p_adjusted, table)}{equal}."
    )
