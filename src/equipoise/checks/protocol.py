"""Checks of comparisons: partial runs, unequal terms, too few units, and differences that few units decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.checks.base import Check, Observation, evidence_names, join_names, pluralize
from equipoise.errors import EquipoiseError
from equipoise.stats.comparison import Comparison, Contrast
from equipoise.stats.formatting import (
    about,
    format_count,
    format_interval,
    format_p,
    format_percent,
    format_value,
    metric_in_sentence,
)
from equipoise.stats.power import POWER
from equipoise.stats.result import BUDGET, FOLDS, GRID, SPEC, SPENT, TOKENIZER, TRIALS, WINDOW, Result
from equipoise.stats.verdict import UNEQUAL_TUNING
from equipoise.types import Severity, with_label

PARTIAL_RUN = "EQ206"
MAX_TRUNCATION_GAP = 0.01
"""The largest difference in the share of truncated texts that hardly changes a score."""
EQUAL_COST_RATIO = 0.9
"""Below this ratio to the highest cost a system spends less, beyond rounding."""
PLACES = 4
MIN_DIFFERING_UNITS = 10
"""Below this many units that differ, intervals of differences cover 85 to 95 % in simulations."""


@dataclass(frozen=True)
class ComparedResults:
    """The results of the systems of a comparison; their settings tell how they were measured."""

    results: Sequence[Result]

    def settings(self, key: str) -> dict[str, Any]:
        """By system, a setting that its result records."""
        return {result.system: result.settings[key] for result in self.results if result.settings.get(key) is not None}


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


def no_lexical_baseline(compared: ComparedResults) -> Iterator[Observation]:
    """EQ107: a comparison of models without a lexical baseline."""
    specs = [str(spec) for spec in compared.settings(SPEC).values()]
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
    trials = {system: int(n_trials) for system, n_trials in compared.settings(TRIALS).items()}
    terms = {result.system: _terms(result.settings) for result in compared.results if result.system in trials}
    spent = {system: float(cost) for system, cost in compared.settings(SPENT).items() if system in trials}
    unequal = [*_unequal_trials(trials), *_other_terms(terms)]
    if not unequal:
        return
    details = {
        system: [pluralize(n_trials, "trial"), *(f"{name} {value}" for name, value in terms[system].items())]
        + ([f"{format_count(round(spent[system]))} tokens on average"] if system in spent else [])
        for system, n_trials in trials.items()
    }
    yield Observation(
        ", ".join(trials),
        "; ".join([*unequal, *_unequal_costs(spent)]),
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
    """How the first system with other tuning settings differs from the first of all."""
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


def _unequal_costs(spent: Mapping[str, float]) -> Iterator[str]:
    if spent and min(spent.values()) < EQUAL_COST_RATIO * max(spent.values()):
        most, least = max(spent, key=spent.__getitem__), min(spent, key=spent.__getitem__)
        yield (
            f"{most} uses {format_count(round(spent[most]))} tokens on average and "
            f"{least} {format_count(round(spent[least]))}"
        )


def unequal_truncation(compared: ComparedResults) -> Iterator[Observation]:
    """EQ205: systems truncate different shares of the texts."""
    windows = {name: window for name, window in compared.settings(WINDOW).items() if isinstance(window, Mapping)}
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
    share = "none" if shares[best] == 0 else format_value(shares[best], PLACES)
    yield Observation(
        ", ".join(shares),
        f"{worst} truncates {format_value(shares[worst], PLACES)} of the texts{limit}, and {best} truncates {share}",
        tuple(
            with_label(system, f"{format_value(share, PLACES)} of the texts truncated")
            for system, share in shares.items()
        ),
    )


def too_few_units(comparison: Comparison) -> Iterator[Observation]:
    """EQ304: pairs that are not significantly different, but would be with more units."""
    undecided = [pair for pair in comparison.undecided if pair.needed.value > pair.n]
    if not undecided:
        return
    first = undecided[0]
    n_others = len(undecided) - 1
    more = (
        f"; {pluralize(n_others, 'other pair')} {'is' if n_others == 1 else 'are'} not separated either"
        if n_others
        else ""
    )
    yield Observation(
        f"{first.a}, {first.b}",
        f"about {about(first.needed.value)} {comparison.words.plural} would be needed to separate {first.a} and "
        f"{first.b} with {format_percent(POWER)} power ({comparison.adjustment}) on "
        f"{metric_in_sentence(comparison.primary)}, and there are {first.n:,}{more}",
        tuple(map(_evidence, undecided)),
    )


def _evidence(contrast: Contrast) -> str:
    pair = f"{contrast.a} and {contrast.b.removesuffix(':')}"
    return f"{pair}: adjusted p {format_p(contrast.adjusted)}, about {about(contrast.needed.value)} needed"


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
        more = f" (also {pluralize(len(pairs) - 1, 'more pair')})" if len(pairs) > 1 else ""
        n_differing = (first.wins or 0) + (first.losses or 0)
        yield Observation(
            f"{first.a}, {first.b}",
            f"their {metric_in_sentence(comparison.primary)} differs on only {n_differing} of {first.n:,} "
            f"{comparison.words.plural}, so the {format_percent(first.interval.confidence_level)} interval of the "
            f"difference, {format_interval(first.interval)}, may be too narrow{more}",
            tuple(
                with_label(f"{pair.a}, {pair.b}", f"{pair.wins} won, {pair.losses} lost, n {pair.n}") for pair in pairs
            ),
        )


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ107",
        title="no lexical baseline",
        severity=Severity.TIP,
        applies_to=ComparedResults,
        function=no_lexical_baseline,
        why="""\
On many collections BM25 or TF-IDF over character n-grams is as good as a model, costs almost nothing and
needs no download. A comparison of models alone cannot show whether any of them is worth its cost.""",
        hint="add bm25: or tfidf: to the systems",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.checks.protocol import ComparedResults
from equipoise.stats.estimate import result_from_values
results = [result_from_values(spec, ["q1"], {"HR": [1]}, settings={"model": spec}) for spec in ("minilm", "use")]
run_checks(ComparedResults(results))""",
    ),
    Check(
        code=UNEQUAL_TUNING,
        title="unequal tuning budgets",
        severity=Severity.ISSUE,
        applies_to=ComparedResults,
        function=unequal_budgets,
        why="""\
The more configurations are tried for a system, the higher its best score, whatever its quality. A new method with 27
trials beats an equally good one with one trial. A system that may retrieve 7,000 tokens beats one that may retrieve
200, because it finds more. Without the same grid and budget for every system the
comparison measures the tuning effort.""",
        hint="tune all systems over the same grid, within the same budget",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.checks.protocol import ComparedResults
from equipoise.stats.estimate import result_from_values
tuned = result_from_values("minilm", ["q1"], {"HR": [1]}, settings={"configurations": 27})
fixed = result_from_values("bm25", ["q1"], {"HR": [1]}, settings={"configurations": 1})
run_checks(ComparedResults([tuned, fixed]))""",
    ),
    Check(
        code="EQ204",
        title="systems were measured on different data",
        severity=Severity.ISSUE,
        applies_to=ComparedResults,
        function=unpaired_units,
        why="""\
Two systems are compared on the same units, each unit with itself. The difficulty of the units then
cancels out, and far fewer of them are needed. Comparing only the shared units would
hide the units that one of the systems failed on. So unequal sets are rejected, and this finding lists the
difference.""",
        hint="score every system on the whole ground truth, where a missing id scores 0",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.checks.protocol import ComparedResults
from equipoise.stats.estimate import result_from_values
lexical = result_from_values("bm25", ["q1", "q2"], {"HR": [1, 0]})
dense = result_from_values("dense", ["q2", "q3"], {"HR": [1, 0]})
run_checks(ComparedResults([lexical, dense]))""",
    ),
    Check(
        code="EQ205",
        title="truncation differs between systems",
        severity=Severity.ISSUE,
        applies_to=ComparedResults,
        function=unequal_truncation,
        why="""\
A model that reads 256 tokens of a 512-token chunk searches half a document, while another, or a lexical
system, reads all of it. The scores then compare the windows as much as the models, and smaller chunks
may reverse the order.""",
        hint="use chunks that fit every model, or report the truncation with the scores",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.checks.protocol import ComparedResults
from equipoise.stats.estimate import result_from_values
short = {"window": {"tokens": 256, "texts": 100, "truncated": 93}}
whole = {"window": {"tokens": None, "texts": 100, "truncated": 0}}
minilm = result_from_values("minilm", ["q1"], {"HR": [1]}, settings=short)
bm25 = result_from_values("bm25", ["q1"], {"HR": [1]}, settings=whole)
run_checks(ComparedResults([minilm, bm25]))""",
    ),
    Check(
        code=PARTIAL_RUN,
        title="a run is partial",
        severity=Severity.ISSUE,
        applies_to=Result,
        function=partial_run,
        why="""\
The run directory records that the run was interrupted or failed. It contains only the units finished
before that. The last units are not a random sample, so the scores may move in either
direction when the run is complete, and a comparison with a complete run is not valid.""",
        hint="repeat the command until it completes; finished work is not repeated",
        example="""\
from dataclasses import replace
from equipoise import Ranking, evaluate
from equipoise.checks.base import run_checks
result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=20), "MRR", system="bm25")
run_checks(replace(result, settings={"status": "partial", "status_reason": "interrupted"}))""",
    ),
    Check(
        code="EQ304",
        title="too little data for the observed difference",
        severity=Severity.TIP,
        applies_to=Comparison,
        function=too_few_units,
        why="""\
The systems differ on these units, but a difference of that size often arises by chance with so few of
them. "Not significant" does not mean "equal". The number of units that would show this difference with 80 %
power is computed from the standard deviation of the paired differences, for the reported test: with several
systems, at the significance level of this pair after the correction for the number of pairs. Showing that one system
is best takes more units, because all its pairs must be significant at once. Both numbers assume that the observed
differences are the true ones. The true ones are often smaller, so plan for more.""",
        hint="collect about that many, or report the systems as tied",
        example="""\
from equipoise import Ranking, compare
first = Ranking.from_ranks([1, 2, 1, 3, 1, 2, 4, 1], candidates=9)
second = Ranking.from_ranks([1, 3, 1, 2, 2, 2, 4, 2], candidates=9)
compare({"first": first, "second": second}, "MRR").findings""",
    ),
    Check(
        code="EQ308",
        title="a difference that few observations decide",
        severity=Severity.NOTE,
        applies_to=Comparison,
        function=few_differing_units,
        why="""\
Only units on which two systems differ contribute to their difference. With fewer than ten of them the
sample often lacks the largest differences. In simulations the 95 % interval then contains the true difference in
96 to 99 % of the trials for hits and misses, but in only 86 to 96 % for graded metrics; with ten or more such units,
in 93 to 97 %.
The p value of the randomisation test does not depend on the interval and stays valid.""",
        hint="score more data, or decide by the p value rather than by the interval",
        example="""\
from equipoise import Ranking, compare
first = Ranking.from_ranks([1] * 40, candidates=9)
second = Ranking.from_ranks([1] * 36 + [2, 3, 3, 4], candidates=9)
compare({"first": first, "second": second}, "MRR").findings""",
    ),
)
