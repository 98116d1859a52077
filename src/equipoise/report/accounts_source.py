"""Figures of embedded trees in the source's layout: a column a dimension, a row a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

from equipoise.report.accounts import SINGLE, AccountsRow
from equipoise.stats.numbers import figure, percent, span

WIDTH = 100
NAMES = 26
CELL = 9
DASHES = "-" * WIDTH
FIGURES: tuple[tuple[str, str, float], ...] = (
    ("mean_rank", "Mean Rank (MR)", 1.0),
    ("median_rank", "Median Rank", 1.0),
    ("map", "MAP (%)", 100.0),
    ("spearman", "Spearman ρ (%)", 100.0),
)
"""The rows: the column of the frame, the name in print, and what it is multiplied with in print."""
BESIDE = "evaluate_tree(tester.tree, ...) puts a tuned euclidean embedding and a random one beside."
BEST = (
    ("mean_rank", "Best Mean Rank", 1.0, "", min),
    ("map", "Best MAP", 100.0, "%", max),
    ("spearman", "Best Spearman ρ", 100.0, "%", max),
)


def source_table(dims: Sequence[int], figures: Mapping[str, Sequence[float]], title: str) -> str:
    """The table as text. ``figures`` are ranks and fractions, one a dimension, by the names of the frame.

    >>> print(source_table([2, 5], {"mean_rank": [4, 2], "map": [0.5, 0.75]}, "Accounts").splitlines()[9])
    Mean Rank (MR)            |     4.00     2.00
    """
    lines = ["=" * WIDTH, title.center(WIDTH).rstrip(), "=" * WIDTH, ""]
    lines += ["By embedding dimension, as Nickel & Kiela (2018) report it:", DASHES, ""]
    lines += [_line("Metric", [str(dim) for dim in dims]), DASHES]
    lines += [
        _line(name, [figure(scale * float(value), 2) for value in figures[column]])
        for column, name, scale in FIGURES
        if column in figures
    ]
    return "\n".join([*lines, DASHES, "", "Summary:", *_summary(dims, figures)]) + "\n"


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<{NAMES}}|" + "".join(f"{cell:>{CELL}}" for cell in cells)


def _summary(dims: Sequence[int], figures: Mapping[str, Sequence[float]]) -> list[str]:
    lines = []
    for column, name, scale, sign, choose in BEST:
        known = [(float(value), dim) for value, dim in zip(figures.get(column, ()), dims, strict=False)]
        known = [each for each in known if not isnan(each[0])]
        if not known:
            lines.append(f"  {name}: n/a")
            continue
        value, dim = choose(known, key=lambda each: each[0])
        lines.append(f"  {name}: {figure(scale * value, 2)}{sign} at dimension {dim}")
    return lines


def source_summary(row: AccountsRow, *, nodes: int, single: bool) -> str:
    """One embedding in plain lines: every figure of the source, with its interval."""
    level = percent(row.map.interval.level)
    lines = [
        "=" * WIDTH,
        f"{row.system}: {nodes} nodes, {row.geometry}, {row.dim} dimensions",
        "=" * WIDTH,
        f"{'':<{NAMES}}|{'estimate':>12}   {level} interval",
        DASHES,
    ]
    for name, title, scale in FIGURES:
        estimate = getattr(row, name)
        reach = estimate.interval
        if reach.known:
            reach = type(reach)(scale * reach.low, scale * reach.high, reach.level, reach.method)
        lines.append(f"{title:<{NAMES}}|{figure(scale * estimate.value, 2):>12}   {span(reach, 2)}")
    lines.append(DASHES)
    described = [("Norm", row.norms), ("Parent-child distance", row.parent_distances)]
    if row.radii != row.norms:
        described.insert(1, ("Distance from the origin", row.radii))
    for title, pair in described:
        lines.append(f"{title:<{NAMES}}|{figure(pair[0], 3):>12}   standard deviation {figure(pair[1], 3)}")
    by_luck = figure(row.mean_rank.chance, 1), figure(100 * row.map.chance, 2)
    chance = f"By chance MR would be {by_luck[0]} and MAP {by_luck[1]} %."
    return "\n".join([*lines, DASHES, chance, BESIDE, *([SINGLE] if single else [])]) + "\n"
