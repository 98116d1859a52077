"""The view of models that were trained with several seeds: the answer, then all metrics and pairs; in percent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isnan, nan
from typing import TYPE_CHECKING

from equipoise.checks.base import join_names
from equipoise.domains.places.report import display_metric
from equipoise.domains.places.seed_comparison import combined_contrast
from equipoise.report.answer import METRIC_RANK, Answer, AnswerOptions, comparison_answer, metric_column
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import Section, View
from equipoise.stats.formatting import (
    ScoreFormat,
    about,
    format_difference,
    format_p,
    format_percent,
    format_value,
)
from equipoise.stats.power import POWER, with_power
from equipoise.stats.verdict import score_format

if TYPE_CHECKING:
    from equipoise.domains.places.seed_comparison import SeedComparison, SeedDifference, SeedScores
    from equipoise.stats.intervals import Interval
    from equipoise.stats.seeds import SeedSummary

DECIMALS = 2
"""Decimals of percent in the tables of all metrics and pairs."""


def seed_view(comparison: SeedComparison) -> View:
    """The answer on the primary metric, then all metrics, and all pairs with both tests."""
    scores = Section.of_table("All metrics (percent)", _score_columns(comparison))
    title = "Differences (percentage points)"
    differences = Section.of_table(title, _difference_columns(comparison), *_method_notes(comparison))
    return View(_answer(comparison), (scores, differences), title="Seeds and users")


def _answer(comparison: SeedComparison) -> Answer:
    """The decision, and the models with the standard deviation over seeds and the other metrics."""
    decision, words, n_seeds = comparison.decision, comparison.decision.words, comparison.seeds
    columns = []
    if n_seeds > 1:
        deviations = [_row_of(comparison, name).seeds.deviation for name in decision.order]
        decimals = max(1, score_format(decision, words).decimals)
        cells = [format_value(100 * deviation, decimals) for deviation in deviations]
        head = f"sd of {n_seeds} seeds"
        columns.append(ReportColumn(head, cells, right=True, rank=3, values={"sd_seeds": deviations}))
    others = [name for name in decision.metrics if name != comparison.primary]
    for index, metric in enumerate(others):
        estimates = [decision.estimates[name][metric] for name in decision.order]
        shown = ScoreFormat.of([estimate.interval for estimate in estimates], percent=True)
        values = [shown.value(estimate.value) for estimate in estimates]
        columns.append(metric_column(display_metric(metric), values, estimates, rank=METRIC_RANK + index))
    both = f"A model is worse if the tests over seeds and over {comparison.resampled} are both significant."
    options = AnswerOptions(
        words,
        columns=tuple(columns),
        baseline="A random order",
        score_note=both if n_seeds > 1 else "",
        notes=comparison.notes,
        details="Details: add -v (other metrics, all pairs, both tests).",
        sample_size=_needed(comparison),
    )
    answer = comparison_answer(decision, options)
    one_seed = "With one seed per model, differences may be due to the seed." if n_seeds == 1 else ""
    return replace(answer, headline=" ".join(filter(None, (answer.headline, _undecided_test(comparison), one_seed))))


def _row_of(comparison: SeedComparison, system: str) -> SeedScores:
    return next(row for row in comparison.rows if (row.metric, row.system) == (comparison.primary, system))


def _tied_pairs(comparison: SeedComparison) -> dict[str, SeedDifference]:
    """By model, the pairs of the best model with those that are tied with it and have other scores, best first."""
    decision = comparison.decision
    of_leader = {
        name: pair
        for pair in comparison.pairs
        for name, other in ((pair.a, pair.b), (pair.b, pair.a))
        if pair.metric == comparison.primary and other == decision.leader and pair.seeds.difference
    }
    return {name: of_leader[name] for name in decision.tied_with_leader if name in of_leader}


def _undecided_test(comparison: SeedComparison) -> str:
    """Which of both tests does not show that the best model is better than those that are tied with it."""
    pairs, alpha, what = _tied_pairs(comparison), comparison.config.alpha, comparison.resampled
    over_users = [name for name, pair in pairs.items() if pair.p_users < alpha <= pair.p_seeds]
    over_seeds = [name for name, pair in pairs.items() if pair.p_seeds < alpha <= pair.p_users]
    sentences = []
    for names, shown, other in ((over_users, what, "seeds"), (over_seeds, "seeds", what)):
        if not names:
            continue
        subject, p = "They are" if len(names) == len(pairs) else f"{len(names)} of them are", ""
        if len(names) == 1:
            subject = f"{names[0]} is"
            p = f" ({comparison.decision.adjusted_p(combined_contrast(pairs[names[0]], comparison.units))})"
        sentences.append(f"{subject} significantly worse over {shown}, but not over {other}{p}.")
    return " ".join(sentences)


def _needed(comparison: SeedComparison) -> str:
    """How many seeds and users would show the difference between the best model and the next one."""
    other, pair = next(iter(_tied_pairs(comparison).items()), ("", None))
    if pair is None:
        return ""
    alpha, planned = comparison.config.alpha, []
    if pair.p_seeds >= alpha:
        planned.append(("seeds", comparison.seeds, _seeds_needed(comparison, pair)))
    if pair.permutation is not None and not pair.p_users < alpha:
        planned.append((comparison.resampled, pair.permutation.n, pair.permutation.needed.value))
    numbers = [f"about {about(needed)} {noun}" if needed > n else f"more {noun}" for noun, n, needed in planned]
    if not numbers:
        return ""
    text = " and ".join(numbers)
    power = f" ({format_percent(POWER)} power)" if "about" in text else ""
    return (
        f"{text[0].upper()}{text[1:]} would be needed to distinguish {comparison.decision.leader} from {other}{power}."
    )


def _seeds_needed(comparison: SeedComparison, pair: SeedDifference) -> float:
    """The seeds with which the t test would show the difference; NaN if unknown."""
    pairs = [item for item in comparison.pairs if item.metric == pair.metric]
    contrasts = [
        replace(combined_contrast(item, item.seeds.seeds), p=item.seeds.p, sd=item.seeds.differences.deviation)
        for item in pairs
    ]
    planned = with_power(contrasts, comparison.config.correction, comparison.config.alpha)
    return planned[pairs.index(pair)].needed.value


# The tables of all metrics and of all pairs.


def _method_notes(comparison: SeedComparison) -> list[str]:
    """What each test is about."""
    what = comparison.resampled
    sentences = [
        f"Over seeds: would the order be the same for other seeds and these {what}? Over {what}: would it be the "
        f"same for other {what} and these models? t is the paired t test, perm. the randomisation test; "
        f"{comparison.family}."
    ]
    if comparison.n_users is not None:
        sentences.append(
            "The intervals of the systems are for the mean over all visits. The tests over users compare the means "
            "of users, in which every user has the same weight."
        )
    unpooled = dict.fromkeys(display_metric(row.metric) for row in comparison.rows if row.pooled is None)
    if unpooled:
        verb, rest = ("have", "they are") if len(unpooled) > 1 else ("has", "it is")
        sentences.append(f"{join_names(list(unpooled))} {verb} no value per visit, so {rest} compared only over seeds.")
    lowest = 2.0 ** (1 - comparison.seeds)  # the smallest p value of a two-sided sign-flip test
    if comparison.seeds == 1:
        sentences.append("One seed: how much the scores vary when training is repeated is unknown.")
    elif lowest > comparison.config.alpha:
        sentences.append(
            f"With {comparison.seeds} seeds the p value of the randomisation test cannot be below "
            f"{format_value(lowest, 3)}, and the decision uses the t test."
        )
    return sentences


def _score_columns(comparison: SeedComparison) -> list[ReportColumn]:
    """One row per metric and system, in the order of the answer; the metric is named once."""
    metrics, order = comparison.decision.metrics, comparison.decision.order
    rows = sorted(comparison.rows, key=lambda row: (metrics.index(row.metric), order.index(row.system)))
    names = [display_metric(row.metric) for row in rows]
    once = [name if at == 0 or names[at - 1] != name else "" for at, name in enumerate(names)]
    level = f"{format_percent(comparison.config.confidence_level)} interval ({comparison.resampled})"
    columns = [
        ReportColumn("metric", once, values={"metric": names}),
        ReportColumn("model", [row.system for row in rows], shortens="middle"),
        _spread_column("mean ± sd over seeds", [row.seeds for row in rows], ("mean", "sd_seeds")),
        _interval_column(level, [row.pooled.interval if row.pooled else None for row in rows]),
    ]
    if comparison.n_users is not None:
        means = [row.by_user.value if row.by_user else nan for row in rows]
        cells = [format_value(100 * mean, DECIMALS) for mean in means]
        columns.append(ReportColumn("mean over users", cells, right=True, rank=2, values={"mean over users": means}))
    return columns


def _difference_columns(comparison: SeedComparison) -> list[ReportColumn]:
    """One row per metric and pair: the difference, and the p values of four tests."""
    pairs, what = comparison.pairs, comparison.resampled
    level = format_percent(comparison.config.confidence_level)
    over_users = [pair.permutation for pair in pairs]
    differences = [nan if one is None else one.difference for one in over_users]
    # Without two seeds, another column has the reason for no test.
    reasons = ["" if pair.seeds.seeds < 2 else pair.seeds.reason for pair in pairs]
    return [
        ReportColumn("metric", [display_metric(pair.metric) for pair in pairs]),
        ReportColumn(
            "difference",
            [f"{pair.a} - {pair.b}" for pair in pairs],
            shortens="middle",
            values={"a": [pair.a for pair in pairs], "b": [pair.b for pair in pairs]},
        ),
        _spread_column(
            "over seeds", [pair.seeds.differences for pair in pairs], ("difference", "sd_seeds"), is_difference=True
        ),
        _p_column("p seeds (t)", [pair.p_seeds for pair in pairs], reasons=reasons),
        _p_column("p seeds (perm.)", [pair.p_seed_permutation for pair in pairs], rank=3),
        ReportColumn(
            f"over {what}",
            [format_difference(100 * difference, DECIMALS) for difference in differences],
            right=True,
            values={f"difference_{what}": differences},
        ),
        _interval_column(f"{level} interval", [None if one is None else one.interval for one in over_users]),
        _p_column(f"p {what} (t)", [nan if pair.t is None else pair.t.adjusted for pair in pairs], rank=2),
        _p_column(f"p {what} (perm.)", [nan if one is None else one.adjusted for one in over_users]),
    ]


def _spread_column(
    head: str, summaries: Sequence[SeedSummary], names: tuple[str, str], *, is_difference: bool = False
) -> ReportColumn:
    """Mean and standard deviation over seeds."""
    values = ([summary.mean for summary in summaries], [summary.deviation for summary in summaries])
    cells = [_spread(summary, sign=is_difference) for summary in summaries]
    return ReportColumn(head, cells, right=True, values=dict(zip(names, values, strict=True)))


def _interval_column(head: str, intervals: Sequence[Interval | None]) -> ReportColumn:
    ends = {
        "low": [interval.low if interval else nan for interval in intervals],
        "high": [interval.high if interval else nan for interval in intervals],
    }
    cells = [_in_percent(interval) if interval else "n/a" for interval in intervals]
    return ReportColumn(head, cells, right=True, rank=1, values=ends)


def _p_column(head: str, p_values: Sequence[float], *, rank: int = 0, reasons: Sequence[str] = ()) -> ReportColumn:
    cells = [format_p(p, reason=reason) for p, reason in zip(p_values, reasons or [""] * len(p_values), strict=True)]
    return ReportColumn(head, cells, right=True, rank=rank, values={head: p_values})


def _spread(summary: SeedSummary, *, sign: bool = False) -> str:
    written = format_difference if sign else format_value
    mean = written(100 * summary.mean, DECIMALS, reason=summary.interval.reason)
    if isnan(summary.mean):
        return mean
    if isnan(summary.deviation):
        return f"{mean} (one seed)"
    return f"{mean} ± {format_value(100 * summary.deviation, DECIMALS)}"


def _in_percent(interval: Interval) -> str:
    if not interval.known:
        return f"n/a ({interval.reason.replace('one cluster', 'one user')})"
    return f"[{format_value(100 * interval.low, DECIMALS)}, {format_value(100 * interval.high, DECIMALS)}]"
