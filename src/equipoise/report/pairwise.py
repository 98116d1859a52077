"""Terminal tables of a comparison: differences to the best system, every pair of systems, and captions."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from equipoise.report.answer import all_metrics_answer, marked_names
from equipoise.report.tables import (
    BOUND_NOTE,
    bounded_systems,
    chance_bound_sign,
    chance_text,
    interval_methods,
    method_name,
    paired_test_caption,
)
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import ReportTable, Section, View
from equipoise.stats.formatting import (
    PERCENT_UNIT,
    column_decimals,
    estimate_decimals,
    format_difference,
    format_interval,
    format_p,
    format_percent,
    format_range,
    format_ranks,
    format_value,
    metric_heading,
    metric_in_sentence,
    percent_sign,
    shared_decimals,
    with_unit,
)
from equipoise.stats.verdict import plural, units_to_show_best_note
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.stats.comparison import Comparison, Contrast

BEST = "best"
TO_BEST = "diff. from best"
DIFFERENCE_INTERVAL = "diff. interval"


def comparison_view(comparison: Comparison) -> View:
    """The answer, then the full tables and the methods."""
    others = [name for name in comparison.metrics if name != comparison.primary]
    methods = interval_methods(
        estimate for name in comparison.order for estimate in comparison.estimates[name].values()
    )
    notes = [f"Intervals of the scores: {methods}."] if methods else []
    sections = [
        Section.of_table(f"{metric_heading(comparison.primary)}, best first", primary_columns(comparison), *notes)
    ]
    if others:
        caption = other_metrics_caption(comparison, others)
        sections.append(Section.of_table("Other metrics", metric_table(comparison, others), caption))
    pairs = ReportTable.of(pairwise_claims(comparison))
    captions = (comparison_caption(comparison), chance_note(comparison), units_to_show_best_note(comparison))
    sections.append(Section("Every pair", (pairs,), tuple(filter(None, captions))))
    return View(all_metrics_answer(comparison), tuple(sections))


def primary_columns(comparison: Comparison) -> list[ReportColumn]:
    """One row per system, best first."""
    primary, order = comparison.primary, comparison.order
    estimates = [comparison.estimates[name][primary] for name in order]
    decimals = estimate_decimals(estimates)
    contrasts = [_to_best(comparison, name, primary) for name in order]
    intervals = [contrast.interval for contrast in contrasts if contrast is not None]
    fine = max(decimals, shared_decimals(intervals))
    best = _self_text(comparison)
    confidence_level = format_percent(comparison.config.confidence_level)
    return [
        ReportColumn("band", [" ".join(comparison.bands[name]) or "-" for name in order]),
        ReportColumn("system", marked_names(comparison), shortens="middle"),
        ReportColumn(primary, [format_value(estimate.value, decimals) for estimate in estimates], right=True),
        ReportColumn(
            f"{confidence_level} interval",
            [format_interval(estimate.interval, decimals) for estimate in estimates],
            right=True,
            rank=2,
        ),
        ReportColumn(
            TO_BEST,
            [_difference(contrast, fine, otherwise=best) for contrast in contrasts],
            right=True,
            rank=3,
        ),
        ReportColumn(
            DIFFERENCE_INTERVAL,
            [_interval(contrast, fine) for contrast in contrasts],
            right=True,
            rank=9,
            extra=True,
        ),
        ReportColumn(comparison.p_heading, [_p(contrast) for contrast in contrasts], right=True, rank=4),
        ReportColumn("win/tie/loss", [_counts(contrast) for contrast in contrasts], right=True, rank=6),
        ReportColumn("rank", [format_ranks(*comparison.ranks[name]) for name in order], right=True, rank=5),
    ]


def metric_table(comparison: Comparison, metrics: list[str]) -> list[ReportColumn]:
    """The other metrics in the order of the primary one, with differences to the best system on the primary one."""
    rows = []
    bounded = bounded_systems(comparison.findings)
    marked_name = dict(zip(comparison.order, marked_names(comparison), strict=True))
    for metric in metrics:
        estimates = {name: comparison.estimates[name][metric] for name in comparison.order}
        decimals = estimate_decimals(list(estimates.values()))
        for number, (name, estimate) in enumerate(estimates.items()):
            contrast = _to_best(comparison, name, metric)
            rows.append(
                (
                    with_unit(metric, estimate.unit) if number == 0 else "",
                    marked_name[name],
                    format_value(estimate.value, decimals),
                    format_interval(estimate.interval, decimals),
                    _difference(contrast, decimals, otherwise=_self_text(comparison)),
                    _p(contrast),
                    chance_text(estimate, decimals, bounded=name in bounded),
                )
            )
    metric_cells, system, value, interval, difference, p, chance = zip(*rows, strict=True)
    return [
        ReportColumn("metric", metric_cells),
        ReportColumn("system", system, shortens="middle"),
        ReportColumn("estimate", value, right=True),
        ReportColumn(f"{format_percent(comparison.config.confidence_level)} interval", interval, right=True, rank=1),
        ReportColumn(TO_BEST, difference, right=True, rank=2),
        ReportColumn(comparison.p_heading, p, right=True, rank=3),
        ReportColumn("chance", chance, right=True, rank=9, extra=True),
    ]


def pairwise_claims(comparison: Comparison) -> list[ReportColumn]:
    """Every pair on every metric, with the detectable difference at this number of units."""
    pairs = comparison.contrasts
    decimals = [column_decimals([contrast.difference], [contrast.interval]) for contrast in pairs]
    shown = list(zip(pairs, decimals, strict=True))
    adjusted = ReportColumn(
        comparison.p_heading, [format_p(contrast.adjusted) for contrast in pairs], right=True, rank=1
    )
    unadjusted = ReportColumn("p", [format_p(contrast.p) for contrast in pairs], right=True, rank=5)
    return [
        ReportColumn("metric", [contrast.metric for contrast in pairs]),
        ReportColumn("system", [contrast.a for contrast in pairs], shortens="middle"),
        ReportColumn("minus", [contrast.b for contrast in pairs], shortens="middle"),
        ReportColumn("difference", [_difference(contrast, digits) for contrast, digits in shown], right=True),
        ReportColumn("interval", [_interval(contrast, digits) for contrast, digits in shown], right=True, rank=4),
        *([unadjusted] if comparison.is_adjusted else []),
        adjusted,
        ReportColumn("win/tie/loss", [contrast.counts for contrast in pairs], right=True, rank=3),
        ReportColumn(
            "detectable",
            [format_value(contrast.detectable.value, digits) for contrast, digits in shown],
            right=True,
            rank=2,
        ),
    ]


def comparison_caption(comparison: Comparison, system: str = "System") -> str:
    """The meaning of the letters, and the methods of p and of the intervals of differences."""
    return (
        f"{plural(system)} that share a tie-band letter do not differ significantly at the "
        f"{format_percent(comparison.alpha)} level. {paired_test_caption(comparison)}; "
        f"{comparison.family.replace(PERCENT_UNIT, '')}."
        f"{interval_note(comparison)}"
    )


def other_metrics_caption(comparison: Comparison, metrics: list[str]) -> str:
    """The reference of the differences on the other metrics, and the correction of p."""
    reference = (
        f"Differences are from {comparison.leader}, the best {comparison.words.system} on {comparison.primary}. "
    )
    return f"{reference if comparison.leader else ''}{family_note(comparison, metrics)}"


def family_note(comparison: Comparison, metrics: list[str]) -> str:
    """The correction of p on these metrics."""
    return f"Each metric is a separate family of tests: {comparison.families_of(metrics)}."


def interval_note(comparison: Comparison) -> str:
    """The method of the intervals of differences, and why an interval may seem to contradict its p."""
    pairs = [contrast for contrast in comparison.contrasts if contrast.metric == comparison.primary]
    methods = dict.fromkeys(method_name(contrast.interval.method) for contrast in pairs if contrast.interval.known)
    if not methods:
        return ""
    method = ", ".join(methods)
    if comparison.correction == "none" or len(pairs) < 2:
        return f" Intervals of differences: {method}."
    return (
        f" Intervals of differences ({method}) are not adjusted for the {len(pairs)} pairs, so an interval can exclude "
        f"0 although the adjusted p is above {comparison.alpha:g}."
    )


def chance_note(comparison: Comparison) -> str:
    """The chance level on the primary metric."""
    estimates = [comparison.estimates[name][comparison.primary] for name in comparison.order]
    levels = [estimate.chance for estimate in estimates if not isnan(estimate.chance)]
    if not levels:
        return f"The chance level of {metric_in_sentence(comparison.primary)} is n/a (not computed)."
    decimals = shared_decimals(estimate.interval for estimate in estimates)
    line, percent = f"Chance level of {metric_in_sentence(comparison.primary)}: ", percent_sign(comparison.primary)
    if bounded_systems(comparison.findings):
        bound = max(levels) if comparison.better == Direction.UP else min(levels)
        return f"{line}{chance_bound_sign(comparison.better)}{format_value(bound, decimals)}{percent}. {BOUND_NOTE}"
    return f"{line}{format_range(min(levels), max(levels), decimals)}{percent}."


def _to_best(comparison: Comparison, name: str, metric: str) -> Contrast | None:
    """The system minus the best; None for the best system, and if there is no best system."""
    if comparison.leader is None or name == comparison.leader:
        return None
    return comparison.contrast(name, comparison.leader, metric)


def _self_text(comparison: Comparison) -> str:
    """The text in place of the difference of the best system to itself."""
    return BEST if comparison.leader is not None else "n/a"


def _difference(contrast: Contrast | None, decimals: int, *, otherwise: str = "") -> str:
    return otherwise if contrast is None else format_difference(contrast.difference, decimals)


def _interval(contrast: Contrast | None, decimals: int) -> str:
    return "" if contrast is None else format_interval(contrast.interval, decimals)


def _p(contrast: Contrast | None) -> str:
    return "" if contrast is None else format_p(contrast.adjusted)


def _counts(contrast: Contrast | None) -> str:
    return "" if contrast is None else contrast.counts
