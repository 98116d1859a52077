"""What people see of models that were trained several times: spread over seeds, tests on seeds and users."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

from equipoise.checks.base import counted
from equipoise.report.places import shown_name
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph, heading
from equipoise.stats.contrast import Contrast
from equipoise.stats.interval import Interval
from equipoise.stats.numbers import figure, p_value, percent, signed
from equipoise.stats.result import Estimate
from equipoise.stats.seeds import SeedContrast, SeedSummary
from equipoise.types import Direction

PLACES = 2
"""Decimals of percent."""


@dataclass(frozen=True)
class SystemRow:
    """One system on one metric: over seeds, and averaged over seeds over units and over users.

    ``pooled`` and ``by_user`` are None for a metric that is no mean over units.
    """

    metric: str
    system: str
    seeds: SeedSummary
    pooled: Estimate | None = None
    by_user: Estimate | None = None


@dataclass(frozen=True)
class PairRow:
    """Two systems on one metric, ``a`` minus ``b``; p of seeds are adjusted for the pairs of the metric.

    ``t`` and ``flips`` are the contrasts over users by the paired t and by the randomisation test.
    """

    metric: str
    a: str
    b: str
    better: Direction
    seeds: SeedContrast
    p_seeds: float
    p_seed_flips: float
    t: Contrast | None = None
    flips: Contrast | None = None


@dataclass(frozen=True)
class SeedsEdition:
    """All that the report shows; ``people`` is what the second tests resample, users or units."""

    rows: tuple[SystemRow, ...]
    pairs: tuple[PairRow, ...]
    primary: str
    units: int
    people: str
    people_count: int
    seeds: int
    family: str
    level: float = 0.95
    notes: tuple[str, ...] = ()

    @property
    def alpha(self) -> float:
        """The p below which two systems are told apart."""
        return round(1 - self.level, 12)


def replicates_report(edition: SeedsEdition, *, quiet: bool = False) -> list[Any]:
    """The systems, the pairs, how to read them, and the verdict."""
    seeds = "one seed" if edition.seeds == 1 else f"{edition.seeds} seeds"
    users = "" if edition.people == "units" else f" of {counted(edition.people_count, 'user')}"
    title = f"{counted(edition.units, 'unit')}{users}, {seeds} a model (percent)"
    parts: list[Any] = [heading(title), Paragraph(""), FittedTable(system_columns(edition))]
    parts += [Paragraph(""), heading("Differences (percentage points)"), Paragraph("")]
    parts += [FittedTable(pair_columns(edition))]
    if quiet:
        return parts
    parts += [
        Paragraph(""),
        *map(Paragraph, explained(edition)),
        *(Paragraph(note) for note in edition.notes),
    ]
    return [*parts, Paragraph(""), *map(Paragraph, verdicts(edition))]


def system_columns(edition: SeedsEdition) -> list[Column]:
    """One row a metric and system, the metric named once."""
    rows = edition.rows
    level = percent(edition.level)
    named = [shown_name(row.metric) for row in rows]
    once = [name if at == 0 or named[at - 1] != name else "" for at, name in enumerate(named)]
    own = "users" if edition.people == "users" else "units"
    columns = [
        Column("metric", once),
        Column("system", [row.system for row in rows], shortens="middle"),
        Column("mean ± sd over seeds", [_spread(row.seeds) for row in rows], right=True),
        Column(f"{level} over {own}", [_reach(row.pooled) for row in rows], right=True, rank=1),
    ]
    if edition.people == "users":
        columns.append(Column("mean of users", [_mean(row.by_user) for row in rows], right=True, rank=2))
    return columns


def pair_columns(edition: SeedsEdition) -> list[Column]:
    """One row a metric and pair: the difference, and p of four tests."""
    pairs, who, level = edition.pairs, edition.people, percent(edition.level)
    return [
        Column("metric", [shown_name(pair.metric) for pair in pairs]),
        Column("difference", [f"{pair.a} - {pair.b}" for pair in pairs], shortens="middle"),
        Column("over seeds", [_spread(pair.seeds.differences, sign=True) for pair in pairs], right=True),
        Column("seeds: t p", [p_value(pair.p_seeds, reason=_why(pair)) for pair in pairs], right=True),
        Column("flips p", [p_value(pair.p_seed_flips) for pair in pairs], right=True, rank=3),
        Column(f"over {who}", [_difference(pair.flips) for pair in pairs], right=True),
        Column(f"{level} interval", [_span(pair.flips) for pair in pairs], right=True, rank=1),
        Column(f"{who}: t p", [_adjusted(pair.t) for pair in pairs], right=True, rank=2),
        Column("flips p", [_adjusted(pair.flips) for pair in pairs], right=True),
    ]


def explained(edition: SeedsEdition) -> list[str]:
    """What each test speaks of."""
    who = edition.people
    own = "each user's mean" if who == "users" else "each unit"
    told = [
        f"Over seeds: would other seeds show the same order on these {who}? Over {who} ({own}, averaged over "
        f"seeds): would other {who} show it with these models? t is the paired t test, flips the "
        f"randomisation test; {edition.family}."
    ]
    whole = dict.fromkeys(shown_name(row.metric) for row in edition.rows if row.pooled is None)
    if whole:
        names, verb = (", ".join(whole), "are no means" if len(whole) > 1 else "is no mean")
        told.append(f"{names} {verb} over units and can be compared over seeds alone.")
    if edition.seeds == 1:
        told.append("One seed: nothing is known about how far the figures move when training is repeated.")
    elif _lowest(edition.seeds) > edition.alpha:
        told.append(
            f"With {edition.seeds} seeds the randomisation test cannot fall below "
            f"{figure(_lowest(edition.seeds), 3)}, so over seeds the t test decides."
        )
    return told


def verdicts(edition: SeedsEdition) -> list[str]:
    """A sentence for each pair on the primary metric."""
    return [_verdict(pair, edition) for pair in edition.pairs if pair.metric == edition.primary]


def _verdict(pair: PairRow, edition: SeedsEdition) -> str:
    name, who = shown_name(pair.metric), edition.people
    up = pair.seeds.difference > 0
    leads, behind = (pair.a, pair.b) if up == (pair.better == Direction.UP) else (pair.b, pair.a)
    gap = figure(100 * abs(pair.seeds.difference), PLACES)
    by_seeds = pair.p_seeds < edition.alpha
    by_users = pair.flips is not None and pair.flips.adjusted < edition.alpha
    if pair.seeds.difference == 0:
        return f"On {name} {pair.a} and {pair.b} are equal."
    ahead = f"On {name} {leads} is ahead of {behind} by {gap} points"
    if edition.seeds == 1:
        told = f"other {who} would most likely show it" if by_users else f"other {who} might not show it"
        return f"{ahead}: {told}, and with one seed it may still be the luck of training."
    if by_seeds and by_users:
        return f"{ahead}, and the data tell the two apart: over seeds and over {who}."
    if by_seeds:
        return f"{ahead}: other seeds would most likely show it on these {who}, other {who} might not."
    if by_users:
        return f"{ahead}: other {who} would most likely show it, but training again might not."
    return f"{ahead}, and the data cannot tell the two apart, neither over seeds nor over {who}."


def _lowest(seeds: int) -> float:
    """The smallest p of a two-sided sign-flip test."""
    return float(2.0 ** (1 - seeds))


def _spread(summary: SeedSummary, *, sign: bool = False) -> str:
    written = signed if sign else figure
    mean = written(100 * summary.mean, PLACES, reason=summary.interval.reason)
    if isnan(summary.mean):
        return mean
    if isnan(summary.deviation):
        return f"{mean} (one seed)"
    return f"{mean} ± {figure(100 * summary.deviation, PLACES)}"


def _reach(estimate: Estimate | None) -> str:
    return "n/a" if estimate is None else _in_percent(estimate.interval)


def _mean(estimate: Estimate | None) -> str:
    return "n/a" if estimate is None else figure(100 * estimate.value, PLACES)


def _span(contrast: Contrast | None) -> str:
    return "" if contrast is None else _in_percent(contrast.interval)


def _in_percent(interval: Interval) -> str:
    if not interval.known:
        return f"n/a ({interval.reason})"
    return f"[{figure(100 * interval.low, PLACES)}, {figure(100 * interval.high, PLACES)}]"


def _difference(contrast: Contrast | None) -> str:
    return "n/a" if contrast is None else signed(100 * contrast.difference, PLACES)


def _adjusted(contrast: Contrast | None) -> str:
    return "" if contrast is None else p_value(contrast.adjusted)


def _why(pair: PairRow) -> str:
    """The reason for no test, unless the column beside it has just given it."""
    return "" if pair.seeds.seeds < 2 else pair.seeds.reason
