"""The view of models that were trained with several seeds: spread over seeds, tests over seeds and over users."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

from equipoise.checks.base import pluralize
from equipoise.domains.places.report import display_metric
from equipoise.report.answer import Answer
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import ReportTable, Section, View
from equipoise.stats.formatting import (
    format_difference,
    format_p,
    format_percent,
    format_value,
)
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.stats.comparison import Contrast
    from equipoise.stats.intervals import Interval
    from equipoise.stats.result import Estimate
    from equipoise.stats.seeds import SeedContrast, SeedSummary

PLACES = 2
"""Decimals of percent."""


@dataclass(frozen=True)
class SeedScores:
    """One system on one metric: over seeds, and averaged over seeds over units and over users.

    ``pooled`` and ``by_user`` are None for a metric that is no mean over units.
    """

    metric: str
    system: str
    seeds: SeedSummary
    pooled: Estimate | None = None
    by_user: Estimate | None = None


@dataclass(frozen=True)
class SeedDifference:
    """Two systems on one metric, ``a`` minus ``b``; p of seeds are adjusted for the pairs of the metric.

    ``t`` and ``n_permutations`` are the contrasts over users by the paired t and by the randomisation test.
    """

    metric: str
    a: str
    b: str
    better: Direction
    seeds: SeedContrast
    p_seeds: float
    p_seed_permutation: float
    t: Contrast | None = None
    permutation: Contrast | None = None


@dataclass(frozen=True)
class ReplicateReportData:
    """All that the report shows; ``people`` is what the second tests resample, users or units."""

    rows: tuple[SeedScores, ...]
    pairs: tuple[SeedDifference, ...]
    primary: str
    units: int
    people: str
    people_count: int
    seeds: int
    family: str
    confidence_level: float = 0.95
    notes: tuple[str, ...] = ()

    @property
    def alpha(self) -> float:
        """The significance level."""
        return round(1 - self.confidence_level, 12)


def seed_comparison_view(edition: ReplicateReportData) -> View:
    """What the tests show, then the systems, the pairs, and how to read them."""
    seeds = "one seed" if edition.seeds == 1 else f"{edition.seeds} seeds"
    users = "" if edition.people == "units" else f" of {pluralize(edition.people_count, 'user')}"
    title = f"{pluralize(edition.units, 'visit')}{users}, {seeds} per model (percent)"
    answer = Answer(" ".join(seed_claims(edition)), tuple(seed_table(edition)), (f"{title}.",))
    differences = ReportTable.of(seed_difference_table(edition))
    notes = (*method_notes(edition), *edition.notes)
    return View(answer, (Section("Differences (percentage points)", (differences,), notes, always=True),))


def _resampled(edition: ReplicateReportData) -> str:
    """What the second tests resample: users, or visits if users are not known."""
    return "users" if edition.people == "users" else "visits"


def seed_table(edition: ReplicateReportData) -> list[ReportColumn]:
    """One row a metric and system, the metric named once."""
    rows = edition.rows
    level = format_percent(edition.confidence_level)
    named = [display_metric(row.metric) for row in rows]
    once = [name if at == 0 or named[at - 1] != name else "" for at, name in enumerate(named)]
    resampled = _resampled(edition)
    columns = [
        ReportColumn("metric", once),
        ReportColumn("system", [row.system for row in rows], shortens="middle"),
        ReportColumn("mean ± sd over seeds", [_spread(row.seeds) for row in rows], right=True),
        ReportColumn(f"{level} over {resampled}", [_reach(row.pooled) for row in rows], right=True, rank=1),
    ]
    if edition.people == "users":
        columns.append(ReportColumn("mean of users", [_mean(row.by_user) for row in rows], right=True, rank=2))
    return columns


def seed_difference_table(edition: ReplicateReportData) -> list[ReportColumn]:
    """One row a metric and pair: the difference, and p of four tests."""
    pairs, who, level = edition.pairs, _resampled(edition), format_percent(edition.confidence_level)
    return [
        ReportColumn("metric", [display_metric(pair.metric) for pair in pairs]),
        ReportColumn("difference", [f"{pair.a} - {pair.b}" for pair in pairs], shortens="middle"),
        ReportColumn("over seeds", [_spread(pair.seeds.differences, sign=True) for pair in pairs], right=True),
        ReportColumn("seeds: t p", [format_p(pair.p_seeds, reason=_why(pair)) for pair in pairs], right=True),
        ReportColumn("permutation p", [format_p(pair.p_seed_permutation) for pair in pairs], right=True, rank=3),
        ReportColumn(f"over {who}", [_difference(pair.permutation) for pair in pairs], right=True),
        ReportColumn(f"{level} interval", [_span(pair.permutation) for pair in pairs], right=True, rank=1),
        ReportColumn(f"{who}: t p", [_adjusted(pair.t) for pair in pairs], right=True, rank=2),
        ReportColumn("permutation p", [_adjusted(pair.permutation) for pair in pairs], right=True),
    ]


def method_notes(edition: ReplicateReportData) -> list[str]:
    """What each test speaks of."""
    who = _resampled(edition)
    unit_text = "each user's mean" if who == "users" else "each visit"
    sentences = [
        f"Over seeds: would other seeds show the same order on these {who}? Over {who} ({unit_text}, averaged over "
        f"seeds): would other {who} show it with these models? t is the paired t test, permutation the "
        f"randomisation test; {edition.family}."
    ]
    whole = dict.fromkeys(display_metric(row.metric) for row in edition.rows if row.pooled is None)
    if whole:
        names, verb = (", ".join(whole), "are not means" if len(whole) > 1 else "is not a mean")
        sentences.append(f"{names} {verb} over visits: compared only over seeds.")
    if edition.seeds == 1:
        sentences.append("One seed: how much the scores vary when training is repeated is unknown.")
    elif _lowest(edition.seeds) > edition.alpha:
        sentences.append(
            f"With {edition.seeds} seeds the p value of the randomisation test cannot be below "
            f"{format_value(_lowest(edition.seeds), 3)}, so over seeds the t test decides."
        )
    return sentences


def seed_claims(edition: ReplicateReportData) -> list[str]:
    """A sentence for each pair on the primary metric."""
    return [_verdict(pair, edition) for pair in edition.pairs if pair.metric == edition.primary]


def _verdict(pair: SeedDifference, edition: ReplicateReportData) -> str:
    name, who = display_metric(pair.metric), _resampled(edition)
    up = pair.seeds.difference > 0
    leads, behind = (pair.a, pair.b) if up == (pair.better == Direction.UP) else (pair.b, pair.a)
    gap = format_value(100 * abs(pair.seeds.difference), PLACES)
    by_seeds = pair.p_seeds < edition.alpha
    by_users = pair.permutation is not None and pair.permutation.adjusted < edition.alpha
    if pair.seeds.difference == 0:
        return f"On {name} {pair.a} and {pair.b} are equal."
    ahead = f"On {name}, {leads} is better than {behind} by {gap} points"
    if edition.seeds == 1:
        significant = "is" if by_users else "is not"
        return f"{ahead}. The difference {significant} significant over {who}; with one seed it may be due to the seed."
    if by_seeds and by_users:
        return f"{ahead}. The difference is significant over seeds and over {who}."
    if by_seeds:
        return f"{ahead}. The difference is significant over seeds, but not over {who}."
    if by_users:
        return f"{ahead}. The difference is significant over {who}, but not over seeds."
    return f"{ahead}. The difference is not significant, neither over seeds nor over {who}."


def _lowest(seeds: int) -> float:
    """The smallest p of a two-sided sign-flip test."""
    return float(2.0 ** (1 - seeds))


def _spread(summary: SeedSummary, *, sign: bool = False) -> str:
    written = format_difference if sign else format_value
    mean = written(100 * summary.mean, PLACES, reason=summary.interval.reason)
    if isnan(summary.mean):
        return mean
    if isnan(summary.deviation):
        return f"{mean} (one seed)"
    return f"{mean} ± {format_value(100 * summary.deviation, PLACES)}"


def _reach(estimate: Estimate | None) -> str:
    return "n/a" if estimate is None else _in_percent(estimate.interval)


def _mean(estimate: Estimate | None) -> str:
    return "n/a" if estimate is None else format_value(100 * estimate.value, PLACES)


def _span(contrast: Contrast | None) -> str:
    return "" if contrast is None else _in_percent(contrast.interval)


def _in_percent(interval: Interval) -> str:
    if not interval.known:
        return f"n/a ({interval.reason})"
    return f"[{format_value(100 * interval.low, PLACES)}, {format_value(100 * interval.high, PLACES)}]"


def _difference(contrast: Contrast | None) -> str:
    return "n/a" if contrast is None else format_difference(100 * contrast.difference, PLACES)


def _adjusted(contrast: Contrast | None) -> str:
    return "" if contrast is None else format_p(contrast.adjusted)


def _why(pair: SeedDifference) -> str:
    """The reason for no test, unless another column has it."""
    return "" if pair.seeds.seeds < 2 else pair.seeds.reason
