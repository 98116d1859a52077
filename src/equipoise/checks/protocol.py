"""Checks of comparisons: partial runs, unequal terms, too few units, and differences that few units decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from equipoise.checks.base import ComparedResults, Observation, declared_checks, evidence_names, join_names, pluralize
from equipoise.errors import EquipoiseError
from equipoise.stats.comparison import Comparison, Contrast
from equipoise.stats.formatting import (
    about,
    format_count,
    format_interval,
    format_percent,
    format_value,
    metric_in_sentence,
)
from equipoise.stats.power import POWER
from equipoise.stats.result import BUDGET, FOLDS, GRID, SPEC, SPENT, TOKENIZER, TRIALS, WINDOW, Result
from equipoise.stats.verdict import PARTIAL_RUN, UNEQUAL_TUNING
from equipoise.types import with_label

MAX_TRUNCATION_GAP = 0.01
"""The largest difference in the share of truncated texts that hardly changes a score."""
EQUAL_COST_RATIO = 0.9
"""Below this ratio to the highest cost a system spends less, beyond rounding."""
MIN_PERCENTAGE = 10.0
"""Percentages of some units are usually at least as large as this."""
MIN_DIFFERING_UNITS = 10
"""Below this many units that differ, intervals of differences cover 85 to 95 % in simulations."""


def partial_run(result: Result) -> Iterator[Observation]:
    """EQ206: a result from a run directory that is not complete."""
    status = result.settings.get("status", "complete")
    if status != "complete":
        reason = result.settings.get("status_reason") or "no reason was recorded"
        yield Observation(
            result.system,
            f"the run is {status}: {reason}",
            (f"{pluralize(len(result.unit_ids), 'result')} in the run directory",),
        )


def unpaired_units(compared: ComparedResults) -> Iterator[Observation]:
    """EQ204: systems that were not measured on the units of the first one."""
    first, *others = compared.results
    for second in others:
        if np.array_equal(first.unit_ids, second.unit_ids):
            continue
        only_first, only_second = _without(first, second), _without(second, first)
        if only_first or only_second:
            yield Observation(
                f"{first.system}, {second.system}",
                f"{pluralize(len(only_first), 'id')} only in {first.system} ({join_names(only_first) or 'none'}), "
                f"{len(only_second):,} only in {second.system} ({join_names(only_second) or 'none'})",
                (
                    *(f"only in {first.system}: {unit}" for unit in evidence_names(only_first)),
                    *(f"only in {second.system}: {unit}" for unit in evidence_names(only_second)),
                ),
            )


def _without(result: Result, other: Result) -> list[object]:
    """The units that are not among those of the other result, in their order."""
    excluded = set(other.unit_ids.tolist())
    return [unit for unit in result.unit_ids.tolist() if unit not in excluded]


def _settings(compared: ComparedResults, key: str) -> dict[str, Any]:
    """By system, a setting that its result records."""
    recorded = {result.system: result.settings.get(key) for result in compared.results}
    return {system: value for system, value in recorded.items() if value is not None}


def no_lexical_baseline(compared: ComparedResults) -> Iterator[Observation]:
    """EQ107: a comparison of models without a lexical baseline."""
    specs = [str(spec) for spec in _settings(compared, SPEC).values()]
    if len(specs) < max(2, len(compared.results)):
        return
    from equipoise.models.retriever import has_lexical_baseline

    try:
        is_missing = not has_lexical_baseline(specs)
    except EquipoiseError:  # a name that is not a spec does not tell whether the system is lexical
        return
    if is_missing:
        yield Observation(
            ", ".join(specs), "the comparison has no lexical baseline", (f"{pluralize(len(specs), 'system')} compared",)
        )


def unequal_budgets(compared: ComparedResults) -> Iterator[Observation]:
    """EQ203: systems were tuned with different numbers of trials, grids or costs."""
    trials = {system: int(n_trials) for system, n_trials in _settings(compared, TRIALS).items()}
    terms = {result.system: _terms(result.settings) for result in compared.results if result.system in trials}
    costs = {system: float(cost) for system, cost in _settings(compared, SPENT).items() if system in trials}
    unequal = [*_unequal_trials(trials), *_other_terms(terms)]
    if not unequal:
        return
    details = {
        system: [pluralize(n_trials, "trial"), *(f"{name} {value}" for name, value in terms[system].items())]
        + ([f"{format_count(round(costs[system]))} tokens on average"] if system in costs else [])
        for system, n_trials in trials.items()
    }
    yield Observation(
        ", ".join(trials),
        "; ".join([*unequal, *_unequal_costs(costs)]),
        tuple(with_label(system, ", ".join(words)) for system, words in details.items()),
    )


def _terms(settings: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a tuning in words."""
    grid = settings.get(GRID)
    terms = {name: _values(values) for name, values in grid.items()} if isinstance(grid, Mapping) else {}
    budget = settings.get(BUDGET)
    terms[BUDGET] = "none" if budget is None else format_value(float(budget), 0)
    return terms | {name: str(settings[name]) for name in (FOLDS, TOKENIZER) if name in settings}


def _values(values: Any) -> str:
    """Several values separated by slashes: ``256/384/512``."""
    return "/".join(map(str, values)) if isinstance(values, list | tuple) else str(values)


def _unequal_trials(trials: Mapping[str, int]) -> Iterator[str]:
    if len(set(trials.values())) > 1:
        most, least = max(trials, key=trials.__getitem__), min(trials, key=trials.__getitem__)
        yield (
            f"{most} got {pluralize(trials[most], 'trial')} and {least} got {trials[least]:,}, and the best of "
            "more trials scores higher by chance"
        )


def _other_terms(terms: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """The difference between the first system and the first one with other tuning settings."""
    first, *others = terms or [""]
    for other in others:
        different = [
            f"{name} {value} against {terms[other][name]}"
            for name, value in terms[first].items()
            if terms[other].get(name, value) != value
        ]
        if different:
            yield f"{first} and {other} were tuned with different settings ({', '.join(different)})"
            return


def _unequal_costs(costs: Mapping[str, float]) -> Iterator[str]:
    if costs and min(costs.values()) < EQUAL_COST_RATIO * max(costs.values()):
        most, least = max(costs, key=costs.__getitem__), min(costs, key=costs.__getitem__)
        yield (
            f"{most} uses {format_count(round(costs[most]))} tokens on average and "
            f"{least} {format_count(round(costs[least]))}"
        )


def unequal_truncation(compared: ComparedResults) -> Iterator[Observation]:
    """EQ205: systems truncate different shares of the texts."""
    windows = {name: window for name, window in _settings(compared, WINDOW).items() if isinstance(window, Mapping)}
    shares = {
        system: window["truncated"] / window["texts"]
        for system, window in windows.items()
        if window.get("truncated") is not None and window.get("texts")
    }
    if not shares or max(shares.values()) - min(shares.values()) <= MAX_TRUNCATION_GAP:
        return
    worst, best = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    tokens = windows[worst].get("tokens")
    limit = "" if tokens is None else f" to {tokens:,} tokens"
    percent = {system: format_percent(round(share, 3)) for system, share in shares.items()}
    least = "none" if shares[best] == 0 else percent[best]
    yield Observation(
        ", ".join(shares),
        f"{worst} truncates {percent[worst]} of the texts{limit}, and {best} truncates {least}",
        tuple(with_label(system, f"{text} of the texts truncated") for system, text in percent.items()),
    )


def unequal_scales(compared: ComparedResults) -> Iterator[Observation]:
    """EQ209: values of one system are fractions and those of another one may be percentages."""
    first = compared.results[0]
    for metric in first.per_unit:
        if any(metric not in result.per_unit or result.evidence is not None for result in compared.results):
            continue
        largest = {
            result.system: float(np.nanmax(np.abs(result.per_unit[metric]), initial=0.0)) for result in compared.results
        }
        fractions = [system for system, value in largest.items() if value <= 1.0]
        percentages = [system for system, value in largest.items() if MIN_PERCENTAGE <= value <= 100.0]
        if fractions and percentages:
            yield Observation(
                ", ".join([*fractions, *percentages]),
                f"the values of {metric} are at most 1 for {join_names(fractions)}, but up to "
                f"{largest[percentages[0]]:g} for {percentages[0]}",
                tuple(with_label(system, f"largest value {value:g}") for system, value in largest.items()),
            )


def missing_scores(comparison: Comparison) -> Iterator[Observation]:
    """EQ208: systems without a value on some units of the others; metrics with the same gaps share an observation."""
    metrics_by_gap: dict[tuple[tuple[str, int], ...], list[str]] = {}
    for metric in sorted(comparison.missing, key=lambda name: name != comparison.primary):
        metrics_by_gap.setdefault(tuple(comparison.missing[metric].items()), []).append(metric)
    words = comparison.words
    for gap, metrics in metrics_by_gap.items():
        systems = [system for system, _ in gap]
        n_missing = [f"{n:,}" if len(gap) == 1 else f"{n:,} ({system})" for system, n in gap]
        names = join_names([metric_in_sentence(metric) for metric in metrics])
        n_compared = max(contrast.n for contrast in comparison.contrasts if contrast.metric == metrics[0])
        rest = f"all {words.system}s are compared on {words.units(n_compared)}" if n_compared else "nothing is compared"
        yield Observation(
            ", ".join(systems),
            f"missing values of {names}: {join_names(n_missing)} of {comparison.n:,}, so {rest}",
            tuple(with_label(system, f"{n:,} missing") for system, n in gap),
            "" if n_compared else f"leave out {join_names(systems)}",
        )


def too_few_units(comparison: Comparison) -> Iterator[Observation]:
    """EQ304: pairs that are not significantly different, but would be with more units."""
    planned = [pair for pair in comparison.undecided if pair.n < pair.needed.value and pair.needed.is_realistic(pair.n)]
    if not planned:
        return
    first, n_others = planned[0], len(comparison.undecided) - 1
    more = (
        f"; {pluralize(n_others, 'other pair')} {'is' if n_others == 1 else 'are'} not significantly different either"
        if n_others
        else ""
    )
    yield Observation(
        f"{first.a}, {first.b}",
        f"about {about(first.needed.value)} {comparison.words.plural} would be needed to distinguish them "
        f"with {format_percent(POWER)} power ({comparison.adjustment}) on "
        f"{metric_in_sentence(comparison.primary)}, but there are only {first.n:,}{more}",
        tuple(_evidence(comparison, contrast) for contrast in planned),
    )


def _evidence(comparison: Comparison, contrast: Contrast) -> str:
    pair = f"{contrast.a} and {contrast.b.removesuffix(':')}"
    return f"{pair}: {comparison.adjusted_p(contrast)}, about {about(contrast.needed.value)} needed"


def few_differing_units(comparison: Comparison) -> Iterator[Observation]:
    """EQ308: few units differ between two systems, so the interval of the difference may be too narrow."""
    pairs = [
        contrast
        for contrast in comparison.contrasts
        if contrast.metric == comparison.primary
        and contrast.interval.known
        and contrast.wins is not None
        and contrast.losses is not None
        and 0 < contrast.wins + contrast.losses < MIN_DIFFERING_UNITS
    ]
    if pairs:
        first = pairs[0]
        more = f" (and {pluralize(len(pairs) - 1, 'other pair')})" if len(pairs) > 1 else ""
        n_differing = (first.wins or 0) + (first.losses or 0)
        yield Observation(
            f"{first.a}, {first.b}",
            f"their {metric_in_sentence(comparison.primary)} differs on {_share(n_differing, first.n)} "
            f"{comparison.words.plural}, so the {format_percent(first.interval.confidence_level)} interval of the "
            f"difference, {format_interval(first.interval)}, may be too narrow{more}",
            tuple(
                with_label(f"{pair.a}, {pair.b}", f"{pair.wins} won, {pair.losses} lost, n {pair.n}") for pair in pairs
            ),
        )


def _share(part: int, total: int) -> str:
    return f"all {total:,}" if part == total else f"only {part:,} of {total:,}"


CHECKS = declared_checks(
    "equipoise.checks",
    {
        "EQ107": (ComparedResults, no_lexical_baseline),
        UNEQUAL_TUNING: (ComparedResults, unequal_budgets),
        "EQ204": (ComparedResults, unpaired_units),
        "EQ205": (ComparedResults, unequal_truncation),
        PARTIAL_RUN: (Result, partial_run),
        "EQ208": (Comparison, missing_scores),
        "EQ209": (ComparedResults, unequal_scales),
        "EQ304": (Comparison, too_few_units),
        "EQ308": (Comparison, few_differing_units),
    },
)
