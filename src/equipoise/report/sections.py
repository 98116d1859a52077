"""Sections of the view model: leaderboards, pairs, slices, distributions, costs and parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from math import ceil, floor, log10
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from equipoise.report import view_model
from equipoise.report.pairwise import chance_note, family_note, interval_note
from equipoise.report.tables import (
    SystemColumn,
    bounded_systems,
    chance_text,
    cost_columns,
    finite_or_none,
    format_cost,
)
from equipoise.report.tables import caption as score_caption
from equipoise.stats.formatting import (
    PERCENT_UNIT,
    about,
    capitalised,
    column_decimals,
    estimate_decimals,
    format_count,
    format_difference,
    format_interval,
    format_p,
    format_percent,
    format_ranks,
    format_value,
    metric_heading,
    metric_in_percent,
    metric_in_sentence,
    percent_sign,
    shared_decimals,
)
from equipoise.stats.power import POWER
from equipoise.stats.slices import MIN_UNITS
from equipoise.stats.verdict import plural
from equipoise.types import Direction, Floats

if TYPE_CHECKING:
    from equipoise.report.build_view import RunSet
    from equipoise.report.unit_explorer import Slices as UnitSlices
    from equipoise.stats.comparison import Comparison, Contrast
    from equipoise.stats.intervals import Interval
    from equipoise.stats.result import Estimate

TICK_STEPS = (1, 2, 5, 10)
N_TICKS = 5
MAX_PARAMETER = 24
"""Longer parameters are in the protocol only."""
MAX_SLICE_VALUES = 40
"""A slice with more values than this is an identifier, not a category, and is left out."""
MAX_DISTINCT_VALUES = 12
"""Up to this many distinct values, each has its own bin."""
BINS = 20
UNIT_INTERVAL_BINS = 10


ENTRY_NAMES = {
    "n_resamples": "bootstrap resamples",
    "n_permutations": "random permutations",
    "seconds_with_cache": "total seconds, cached texts not counted",
    "tied_questions": "questions with tied scores",
    "window": "input window",
    "matcher": "answer matching",
    "data": "fingerprint of the parsed data",
    "tokenizer": "token counting",
    "budget": "token budget per question, on average",
    "retrieved_tokens": "retrieved tokens per question",
    "chunk_size": "chunk size in tokens",
    "overlap": "overlap in tokens",
    "top_k": "chunks per question (top-k)",
    "chunker": "chunking method",
    "dim": "dimensions",
    "dims": "dimensions of the vectors",
    "n_negatives": "negatives per pair",
    "n_branch_negatives": "negatives from the same branch",
    "n_neighbor_negatives": "negatives among the nearest nodes",
    "tol": "tolerance of convergence",
    "temperature": "temperature of the loss",
    "norm_mean": "mean norm",
    "norm_std": "standard deviation of the norms",
    "norm_sd": "standard deviation of the norms",
}
"""Settings and costs in words, where the words of their key are not enough."""


def entry_name(name: str) -> str:
    """A setting, parameter or cost in words."""
    return ENTRY_NAMES.get(name, name.replace("_", " "))


def slice_table(subject: RunSet, slices: UnitSlices) -> view_model.SliceTable | None:
    """One row per value of every slice, one cell per system; None if there are no slices."""
    usable = _usable(slices)
    if not usable or subject.per_unit(subject.primary) is None:
        return None
    columns = subject.slice_estimates(usable)
    keys = dict.fromkeys(key for column in columns for key in column)
    cells = {key: [column.get(key) for column in columns] for key in keys}
    estimates = [estimate for row in cells.values() for estimate in row if estimate is not None]
    if not estimates:
        return None
    large = [estimate for estimate in estimates if estimate.n >= MIN_UNITS]
    decimals = shared_decimals(estimate.interval for estimate in large)
    values = [estimate.value for estimate in large if finite_or_none(estimate.value) is not None]
    rows = [_row(key, row, decimals, values, subject.better) for key, row in cells.items()]
    with_interval = {
        name for (name, _), row in cells.items() if any(item is not None and item.interval.known for item in row)
    }
    # Slices without any interval, such as single users, come last.
    rows = sorted((row for row in rows if row.n), key=lambda row: row.name not in with_interval)
    return view_model.SliceTable(
        subject.primary, str(subject.better), tuple(rows), _caption(subject, estimates[0]), subject.words.plural
    )


def _row(
    key: tuple[str, str],
    estimates: Sequence[Estimate | None],
    decimals: int,
    values: Sequence[float],
    better: Direction,
) -> view_model.SliceRow:
    n = max((estimate.n for estimate in estimates if estimate is not None), default=0)
    cells = tuple(_cell(estimate, n, decimals, values, better) for estimate in estimates)
    return view_model.SliceRow(key[0], key[1], n, n < MIN_UNITS, cells)


def _cell(
    estimate: Estimate | None, n: int, decimals: int, values: Sequence[float], better: Direction
) -> view_model.HeatCell:
    """One system on a slice of ``n`` units; the note has its own n if some units are undefined."""
    if estimate is None:
        return view_model.HeatCell("", None, None, small_sample=True)
    small_sample = estimate.n < MIN_UNITS
    value = finite_or_none(estimate.value)
    return view_model.HeatCell(
        text=format_value(estimate.value, decimals),
        value=value,
        shade=None if small_sample or value is None or not values else relative_shade(value, values, better),
        note=format_interval(estimate.interval, decimals)
        + ("" if estimate.n == n else f", n {format_count(estimate.n)}"),
        small_sample=small_sample,
    )


def _usable(slices: UnitSlices) -> UnitSlices:
    """The slices with at least two and at most ``MAX_SLICE_VALUES`` values."""
    values: dict[str, Counter[str]] = {}
    for by_name in slices.values():
        for name, value in by_name.items():
            values.setdefault(name, Counter())[str(value)] += 1
    names = {name for name, counts in values.items() if 1 < len(counts) <= MAX_SLICE_VALUES}
    shared_slices = {
        unit: {name: by_name[name] for name in by_name if name in names} for unit, by_name in slices.items()
    }
    return {unit: by_name for unit, by_name in shared_slices.items() if by_name}


def _caption(subject: RunSet, estimate: Estimate) -> str:
    better = "higher" if subject.better == Direction.UP else "lower"
    systems = f" of every {subject.words.system}" if len(subject.runs) > 1 else ""
    return (
        f"The {metric_in_percent(subject.primary)}{systems} by slice, "
        f"with {format_percent(estimate.interval.confidence_level)} intervals; {better} values are better and darker. "
        f"Slices of fewer than {MIN_UNITS} {subject.words.plural} are grey: their scores are not reliable."
    )


def value_distributions(subject: RunSet) -> tuple[view_model.ValueDistribution, ...]:
    """The distribution of every metric, and of the difference of the first two systems on the primary metric."""
    parts = []
    for metric in subject.metrics:
        values = subject.per_unit(metric)
        if values is not None and np.isfinite(values).any():
            parts.append(_values(subject, metric, values))
    values = subject.per_unit(subject.primary)
    if len(subject.runs) > 1 and values is not None:
        differences = values[:, 0] - values[:, 1]
        if np.isfinite(differences).any():
            parts.insert(1, _differences(subject, differences))
    return tuple(parts)


def _values(subject: RunSet, metric: str, values: Floats) -> view_model.ValueDistribution:
    edges, labels = _bins(values)
    words = subject.words
    series = tuple(_series(name, column, edges) for name, column in zip(subject.names, values.T, strict=True))
    return view_model.ValueDistribution(
        title=_units_by(subject, metric),
        metric=metric,
        bins_heading=metric_heading(metric),
        edges=edges,
        labels=labels,
        series=series,
        caption=(
            f"The number of {words.plural} by {metric_in_percent(metric)} for each {words.system} "
            f"({words.units(len(values))})."
        ),
        units=words.plural,
    )


def _differences(subject: RunSet, differences: Floats) -> view_model.ValueDistribution:
    first, second = subject.names[:2]
    edges, labels = _bins(differences)
    unit = " (points)" if percent_sign(subject.primary) else ""
    n_equal = int((np.round(differences, 9) == 0).sum())
    better = "Above" if subject.better == Direction.UP else "Below"
    return view_model.ValueDistribution(
        title=_units_by(subject, f"difference in {metric_in_sentence(subject.primary)}, {first} minus {second}"),
        metric=subject.primary,
        bins_heading=f"Difference in {metric_in_sentence(subject.primary)}{unit}",
        n_equal=n_equal,
        edges=edges,
        labels=labels,
        series=(_series(f"{first} minus {second}", differences, edges),),
        caption=(
            f"The number of {subject.words.plural} by difference in {metric_in_sentence(subject.primary)}. "
            f"{better} 0, {first} is better. The two are equal on {subject.words.units(n_equal)}."
        ),
        units=subject.words.plural,
    )


def _units_by(subject: RunSet, what: str) -> str:
    units = subject.words.plural
    return f"{capitalised(units)} by {what}"


def _series(name: str, column: Floats, edges: tuple[float, ...]) -> view_model.BinCounts:
    # Rounded as in _bins: 1 - 0.8 and 0.2 are the same value, and an edge is between them.
    finite = np.round(column[np.isfinite(column)], 9)
    counts = np.histogram(finite, bins=np.array(edges))[0]
    return view_model.BinCounts(name, tuple(counts.tolist()), len(column) - len(finite))


def _bins(values: Floats) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Edges and labels: one bin per value if there are few, else bins of equal width."""
    finite = values[np.isfinite(values)]
    distinct = np.unique(np.round(finite, 9))
    if len(distinct) <= MAX_DISTINCT_VALUES:
        between = (distinct[:-1] + distinct[1:]) / 2
        ends = np.concatenate([[distinct[0] - 0.5], between, [distinct[-1] + 0.5]])
        return tuple(ends.tolist()), tuple(_short(value) for value in distinct.tolist())
    low, high = float(distinct.min()), float(distinct.max())
    if low >= 0 and high <= 1:
        edges = np.round(np.linspace(0.0, 1.0, UNIT_INTERVAL_BINS + 1), 9)
    elif low >= -1 and high <= 1:
        edges = np.round(np.linspace(-1.0, 1.0, BINS + 1), 9)
    else:
        edges = np.linspace(low, high, BINS + 1)
    ends = edges.tolist()
    decimals = next((n for n in (0, 1) if all(abs(end - round(end, n)) < 1e-9 for end in ends)), 2)
    labels = tuple(f"{format_value(start, decimals)} to {format_value(end, decimals)}" for start, end in pairwise(ends))
    return tuple(ends), labels


def _short(value: float) -> str:
    """The number with at most two decimals."""
    text = format_value(value, 2)
    return text.rstrip("0").rstrip(".") if "." in text else text


def pairwise_table(subject: RunSet) -> view_model.PairwiseTable | None:
    """The better-ranked system of each pair minus the other; None for a single run."""
    return None if subject.comparison is None else comparison_pairs(subject.comparison, subject.words.plural)


def comparison_pairs(comparison: Comparison, units: str) -> view_model.PairwiseTable:
    """``pairwise_table`` of a comparison whose runs need not be stored; ``units`` is what the units are called."""
    rows = _pair_rows(comparison, comparison.primary)
    others = [name for name in comparison.metrics if name != comparison.primary]
    return view_model.PairwiseTable(
        metric=comparison.primary,
        better=str(comparison.better),
        scale=axis_scale([row.difference for row in rows], [0.0]),
        rows=rows,
        matrix=tuple(tuple(_win_cell(comparison, a, b) for b in comparison.order) for a in comparison.order),
        others=tuple(row for name in others for row in _pair_rows(comparison, name)),
        caption=f"{_pairs_caption(comparison)}{interval_note(comparison)}",
        units=units,
        system=comparison.words.system,
        adjusted=comparison.is_adjusted,
    )


def _pair_rows(comparison: Comparison, metric: str) -> tuple[view_model.PairDifference, ...]:
    contrasts = [comparison.contrast(a, b, metric) for a, b in combinations(comparison.order, 2)]
    decimals = column_decimals([pair.difference for pair in contrasts], [pair.interval for pair in contrasts])
    scores = [by_metric[metric] for by_metric in comparison.estimates.values()]
    decimals = min(decimals, estimate_decimals(scores) + 1)
    return tuple(_pair(contrast, decimals, comparison.alpha) for contrast in contrasts)


def _pair(contrast: Contrast, decimals: int, alpha: float) -> view_model.PairDifference:
    needed = contrast.needed
    return view_model.PairDifference(
        metric=contrast.metric,
        a=contrast.a,
        b=contrast.b,
        difference=to_value(contrast.difference, contrast.interval, decimals, difference=True),
        p=format_p(contrast.p, reason=contrast.reason),
        p_adjusted=format_p(contrast.adjusted, reason=contrast.reason),
        winner=contrast.winner(alpha) or "",
        n=format_count(contrast.n),
        wins=contrast.wins,
        ties=contrast.ties,
        losses=contrast.losses,
        detectable=format_value(contrast.detectable.value, decimals, reason=contrast.detectable.reason),
        n_needed=about(needed.value) if needed.known else f"n/a ({needed.reason})",
        reason=contrast.reason,
    )


def _win_cell(comparison: Comparison, row: str, column: str) -> view_model.WinCell | None:
    if row == column:
        return None
    contrast = comparison.contrast(row, column)
    significant = contrast.winner(comparison.alpha) is not None
    share = finite_or_none(contrast.wins / contrast.n) if contrast.wins is not None and contrast.n else None
    return view_model.WinCell(contrast.counts, share, significant)


def _pairs_caption(comparison: Comparison) -> str:
    side = "right" if comparison.better == Direction.UP else "left"
    unit = " in percentage points" if percent_sign(comparison.primary) else ""
    units, system = comparison.words.plural, comparison.words.system
    return (
        f"The first {system} minus the second on {metric_in_sentence(comparison.primary)}{unit}, with "
        f"{format_percent(comparison.config.confidence_level)} intervals; a point to the {side} of 0 means that the "
        f"first is better. {capitalised(comparison.test)}; "
        f"{comparison.family.replace(PERCENT_UNIT, '')}. Detectable is the smallest difference that this test would "
        f"detect with {format_percent(POWER)} power. {capitalised(units)} needed: the number of {units} with "
        "which the observed difference would be detected with that power. Wins and losses count any difference."
    )


def leaderboard_tables(subject: RunSet) -> tuple[view_model.Leaderboard, ...]:
    """One leaderboard per metric, the primary one first."""
    return tuple(_leaderboard(subject, metric) for metric in subject.metrics)


def _leaderboard(subject: RunSet, metric: str) -> view_model.Leaderboard:
    estimates = subject.estimates(metric)
    decimals = estimate_decimals(estimates)
    rows = tuple(_leaderboard_row(subject, index, estimate, decimals) for index, estimate in enumerate(estimates))
    return view_model.Leaderboard(
        metric=metric,
        better=str(estimates[0].better),
        unit=estimates[0].unit,
        confidence_level=format_percent(estimates[0].interval.confidence_level),
        scale=axis_scale([row.score for row in rows], [row.chance for row in rows]),
        rows=rows,
        caption=_leaderboard_caption(subject, metric),
        system=subject.words.system,
        untested="" if subject.comparison is None else subject.comparison.untested_reason(metric),
        adjusted=subject.comparison is not None and subject.comparison.is_adjusted,
    )


def _leaderboard_row(subject: RunSet, index: int, estimate: Estimate, decimals: int) -> view_model.LeaderboardRow:
    name, comparison = subject.names[index], subject.comparison
    bounded = name in bounded_systems(subject.findings)
    row = view_model.LeaderboardRow(
        system=name,
        score=to_value(estimate.value, estimate.interval, decimals),
        n=format_count(estimate.n),
        undefined=format_count(estimate.undefined),
        chance=finite_or_none(estimate.chance),
        chance_text=chance_text(estimate, decimals, bounded=bounded),
    )
    return row if comparison is None else _with_comparison(row, comparison, estimate.metric, decimals)


def _with_comparison(
    row: view_model.LeaderboardRow, comparison: Comparison, metric: str, decimals: int
) -> view_model.LeaderboardRow:
    """The row with its tie groups, its rank, and its difference to the best system."""
    name = row.system
    row = replace(
        row, tie_groups=comparison.bands_on(metric)[name], rank=format_ranks(*comparison.ranks_on(metric)[name])
    )
    if comparison.leader is None or name == comparison.leader:
        return row
    contrast = comparison.contrast(name, comparison.leader, metric)
    decimals = max(decimals, shared_decimals([contrast.interval]))
    return replace(
        row,
        difference=format_difference(contrast.difference, decimals),
        p=format_p(contrast.adjusted, reason=contrast.reason),
        counts=contrast.counts,
    )


def _leaderboard_caption(subject: RunSet, metric: str) -> str:
    comparison = subject.comparison
    if comparison is None:
        return score_caption([run.result for run in subject.runs])
    level = format_percent(comparison.alpha)
    note = chance_note(comparison) if metric == comparison.primary else family_note(comparison, [metric])
    if reason := comparison.untested_reason(metric):
        return f"The differences were not tested: {reason}. {note if metric == comparison.primary else ''}".rstrip()
    systems = plural(subject.words.system).capitalize()
    return f"{systems} in the same tie band do not differ significantly at the {level} level. {note}"


def to_value(value: float, interval: Interval, decimals: int, *, difference: bool = False) -> view_model.Value:
    """A value and its interval; a difference has an explicit sign."""
    text = format_difference(value, decimals) if difference else format_value(value, decimals)
    return view_model.Value(
        finite_or_none(value),
        finite_or_none(interval.low),
        finite_or_none(interval.high),
        text,
        format_interval(interval, decimals),
    )


def axis_scale(values: Iterable[view_model.Value], extra: Iterable[view_model.Number] = ()) -> view_model.AxisScale:
    """An axis from a round number below all values to a round number above them."""
    numbers = [end for value in values for end in (value.number, value.low, value.high)] + list(extra)
    defined = [number for number in numbers if number is not None]
    if not defined:
        return view_model.AxisScale(0.0, 1.0, ((0.0, "0"), (1.0, "1")))
    low, high = min(defined), max(defined)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-300):
        low, high = (low - 0.5, high + 0.5) if low else (0.0, 1.0)
    step = _step((high - low) / N_TICKS)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    decimals = max(0, -floor(log10(step) + 1e-9))
    ticks = tuple((round(n * step, 12), format_value(n * step, decimals)) for n in range(first, last + 1))
    return view_model.AxisScale(ticks[0][0], ticks[-1][0], ticks)


def _step(minimum: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below this."""
    power: float = 10.0 ** floor(log10(minimum))
    return next(step for step in TICK_STEPS if step * power >= minimum * (1 - 1e-9)) * power


def cost_table(subject: RunSet) -> tuple[SystemColumn, ...]:
    """The standard costs of the runs; other costs are in the protocol."""
    return cost_columns(subject.names, {run.result.system: run.manifest.cost for run in subject.runs})


def parameter_table(subject: RunSet) -> tuple[SystemColumn, ...]:
    """The short parameters that differ between the systems; the others, and names of models, are in the protocol."""
    recorded = [run.manifest.parameters for run in subject.runs]
    names = {name.removesuffix(":") for name in subject.names}
    columns = []
    is_cost = {"dim"} if any("dims" in run.manifest.cost for run in subject.runs) else set()
    for key in dict.fromkeys(key for parameters in recorded for key in parameters if key not in is_cost):
        values = [parameters.get(key) for parameters in recorded]
        texts = ["" if value is None else format_cost(value) if _is_number(value) else str(value) for value in values]
        is_name = any(text.removesuffix(":") in names for text in texts)
        if len(set(texts)) > 1 and not is_name and max(map(len, texts)) <= MAX_PARAMETER:
            numbers = tuple(float(value) if _is_number(value) else None for value in values)
            columns.append(SystemColumn(key, entry_name(key), numbers, tuple(texts)))
    return tuple(columns)


def relative_shade(value: float, values: Sequence[float], better: Direction) -> float:
    """The position of a value between the worst (0) and the best (1) of all values.

    >>> relative_shade(0.5, [0.0, 0.5, 1.0], Direction.UP), relative_shade(3.0, [3.0, 9.0], Direction.DOWN)
    (0.5, 1.0)
    """
    low, high = min(values), max(values)
    if high <= low:
        return 0.5
    fraction = (value - low) / (high - low)
    return fraction if better == Direction.UP else 1 - fraction


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
