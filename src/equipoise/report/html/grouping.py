"""Rows put together for the page: who stands where, slices of one name, and what is known of tunings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from equipoise.report.page.model import LeagueRow, SliceRow, Tuned


def standing(rows: Sequence[LeagueRow]) -> list[tuple[str, list[LeagueRow]]]:
    """Those that lead or are tied for it, those behind them, and those that nothing is known of."""
    leaders = rows[0].bands
    first = [row for row in rows if shares(leaders, row.bands)]
    behind = [row for row in rows if row.bands and not shares(leaders, row.bands)]
    named = [
        ("Leads" if len(first) == 1 else "Tied for first", first),
        ("Behind the leader", behind),
        ("Without a value", [row for row in rows if not row.bands]),
    ]
    return [(what, group) for what, group in named if group]


def shares(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two systems have a letter in common."""
    return bool(set(one) & set(other))


def by_name(rows: Iterable[SliceRow]) -> list[tuple[str, list[SliceRow]]]:
    """The rows of each slice, in the order in which they stand."""
    return [(name, list(group)) for name, group in groupby(rows, key=lambda row: row.name)]


def fact_names(tuned: Iterable[Tuned]) -> list[str]:
    """What is said of at least one tuning, each once."""
    return list(dict.fromkeys(name for each in tuned for name, _ in each.facts))
