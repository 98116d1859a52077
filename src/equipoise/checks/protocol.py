"""Checks of the experimental protocol: partial runs, baselines, tuning budgets and truncation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING, Any, Self

from equipoise.checks.base import Check, Observation, TruncationStats, join_names, pluralize, run_checks
from equipoise.errors import EquipoiseError
from equipoise.stats.alignment import BUDGET, FOLDS, GRID, SPEC, SPENT, TOKENIZER, TRIALS, WINDOW
from equipoise.stats.comparison import UNEQUAL_TUNING
from equipoise.stats.formatting import format_count, format_difference, format_value
from equipoise.stats.result import Result
from equipoise.types import Finding, Severity, with_label

if TYPE_CHECKING:
    from equipoise.tuning.grid import Trial, TuningRecord


PARTIAL_RUN = "EQ206"


def protocol_findings(results: Sequence[Result]) -> Iterator[Finding]:
    """Findings about unequal tuning, unequal truncation and missing baselines of compared results."""
    for subject in (TuningBudgets, TruncationBySystem, ComparedSystems):
        yield from run_checks(subject.of_results(results))


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


@dataclass(frozen=True)
class ComparedSystems:
    """The systems of a comparison, by their specs."""

    specs: Sequence[str]

    @classmethod
    def of_results(cls, results: Sequence[Result]) -> Self:
        """The specs of the results; empty if one of them has none."""
        specs = [result.settings.get(SPEC) for result in results]
        return cls([] if None in specs else [str(spec) for spec in specs])


def no_lexical_baseline(systems: ComparedSystems) -> Iterator[Observation]:
    """EQ107: a comparison of models without a lexical baseline."""
    if len(systems.specs) < 2:
        return
    from equipoise.models.retriever import has_lexical_baseline

    try:
        is_missing = not has_lexical_baseline(systems.specs)
    except EquipoiseError:  # a name that is not a spec does not tell whether the system is lexical
        return
    if is_missing:
        yield Observation(
            ", ".join(systems.specs),
            "the comparison has no lexical baseline",
            (f"{pluralize(len(systems.specs), 'system')} compared",),
        )


PROTOCOL_CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ107",
        title="no lexical baseline",
        severity=Severity.TIP,
        applies_to=ComparedSystems,
        function=no_lexical_baseline,
        why="""\
On many collections BM25 or TF-IDF over character n-grams is as good as a model, costs almost nothing and
needs no download. A comparison of models alone cannot show whether any of them is worth its cost.""",
        hint="add bm25: or tfidf: to the systems",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.types import Severity
from equipoise.checks.protocol import ComparedSystems
run_checks(ComparedSystems(["minilm", "use"]))""",
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
)


DEPTHS = ("top_k", "k", "depth")
"""Parameters of the retrieval depth: the first five results are part of the first ten."""
MAX_TRUNCATION_GAP = 0.01
"""The largest difference in the share of truncated texts that hardly changes a score."""
EQUAL_COST_RATIO = 0.9
"""Below this ratio to the highest cost a system spends less, beyond rounding."""
PLACES = 4
MAX_LISTED = 3


@dataclass(frozen=True)
class TunedSystem:
    """A system, its tuning, and whether its reported score is the nested one."""

    system: str
    tuning: TuningRecord
    nested: bool
    depths: Sequence[str] = DEPTHS

    @classmethod
    def of(cls, system: str, tuning: TuningRecord) -> Self:
        """A system that reports the nested score if its tuning has one, else that of the best trial."""
        return cls(system, tuning, nested=bool(tuning.folds))


@dataclass(frozen=True)
class TuningBudgets:
    """The tuning budget of each system.

    ``trials`` is the number of grid points by system. ``terms`` are other settings of the tuning by name, such
    as the values of a parameter or a budget. ``spent`` is the cost per unit of the selected configuration,
    in ``unit``.
    """

    trials: Mapping[str, int]
    terms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    spent: Mapping[str, float] = field(default_factory=dict)
    unit: str = "tokens"

    @classmethod
    def of_results(cls, results: Sequence[Result]) -> Self:
        """The tuning that the settings of the results record; missing entries are unknown."""
        tuned = {result.system: result.settings for result in results if TRIALS in result.settings}
        return cls(
            {system: int(settings[TRIALS]) for system, settings in tuned.items()},
            {system: _terms(settings) for system, settings in tuned.items()},
            {system: float(settings[SPENT]) for system, settings in tuned.items() if settings.get(SPENT) is not None},
        )


@dataclass(frozen=True)
class TruncationBySystem:
    """Truncation of the same texts by several systems."""

    windows: Sequence[TruncationStats]

    @classmethod
    def of_results(cls, results: Sequence[Result]) -> Self:
        """The truncation that the settings of the results record."""
        windows = [(result.system, result.settings.get(WINDOW)) for result in results]
        return cls(
            [
                TruncationStats(
                    name, window.get("tokens"), int(window.get("texts") or 0), window.get("truncated"), None
                )
                for name, window in windows
                if isinstance(window, Mapping)
            ]
        )


def tuned_on_reported_units(tuned: TunedSystem) -> Iterator[Observation]:
    """EQ201: the score is that of the best of several trials, on the units that selected it."""
    tuning = tuned.tuning
    trials = len(tuning.affordable)
    if tuned.nested or trials < 2:
        return
    best = f"{tuning.trial_metric} {format_value(tuning.optimistic, PLACES)} is the best of {trials} trials"
    nested = f"the held-out score (nested cross-validation) is {format_value(tuning.nested, PLACES)}"
    yield Observation(
        tuned.system,
        f"{best} on the same data that selected it, so the score is optimistic",
        (best, *(() if isnan(tuning.nested) else (f"{nested}, {format_difference(-tuning.gap, PLACES)}",))),
    )


def monotone_parameter(tuned: TunedSystem) -> Iterator[Observation]:
    """EQ202: a retrieval depth was tuned without a cost, although more depth can only help."""
    tuning = tuned.tuning
    if tuning.budget is not None:
        return
    for axis in tuned.depths:
        series = _series(tuning.grid, axis)
        steps = [after.value - before.value for trials in series for before, after in pairwise(trials)]
        if steps and min(steps) >= 0 and max(steps) > 0:
            tried = sorted({_number(trial, axis) for trials in series for trial in trials})
            yield Observation(
                tuned.system,
                f"{axis} was tuned over {join_names([f'{depth:g}' for depth in tried])} without a budget, and "
                f"{tuning.trial_metric} never falls as it grows: tuning selects the largest value",
                tuple(_values_by_parameter(trials, axis) for trials in series[:MAX_LISTED]),
            )


def unequal_budgets(budgets: TuningBudgets) -> Iterator[Observation]:
    """EQ203: systems were tuned with different numbers of trials, grids or costs."""
    unequal = [*_unequal_trials(budgets.trials), *_other_terms(budgets.terms)]
    if unequal:
        yield Observation(
            ", ".join(budgets.trials),
            "; ".join([*unequal, *_unequal_costs(budgets)]),
            tuple(with_label(system, ", ".join(_tuning_details(budgets, system))) for system in budgets.trials),
        )


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


def _unequal_costs(budgets: TuningBudgets) -> Iterator[str]:
    spent = budgets.spent
    if spent and min(spent.values()) < EQUAL_COST_RATIO * max(spent.values()):
        most, least = max(spent, key=spent.__getitem__), min(spent, key=spent.__getitem__)
        yield (
            f"{most} uses {format_count(round(spent[most]))} {budgets.unit} on average and "
            f"{least} {format_count(round(spent[least]))}"
        )


def _tuning_details(budgets: TuningBudgets, system: str) -> Iterator[str]:
    """The tuning of one system in words."""
    yield pluralize(budgets.trials[system], "trial")
    yield from (f"{name} {value}" for name, value in budgets.terms.get(system, {}).items())
    if system in budgets.spent:
        yield f"{format_count(round(budgets.spent[system]))} {budgets.unit} on average"


def unequal_truncation(truncation: TruncationBySystem) -> Iterator[Observation]:
    """EQ205: systems truncate different shares of the texts."""
    shares = {
        window.model: window.truncated / window.texts
        for window in truncation.windows
        if window.truncated is not None and window.texts
    }
    if not shares or max(shares.values()) - min(shares.values()) <= MAX_TRUNCATION_GAP:
        return
    worst, best = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    reads = {window.model: window.tokens for window in truncation.windows}
    tokens = "" if reads[worst] is None else f" to {reads[worst]:,} tokens"
    share = "none" if shares[best] == 0 else format_value(shares[best], PLACES)
    yield Observation(
        ", ".join(shares),
        f"{worst} truncates {format_value(shares[worst], PLACES)} of the texts{tokens}, and {best} truncates {share}",
        tuple(
            with_label(model, f"{format_value(share, PLACES)} of the texts truncated")
            for model, share in shares.items()
        ),
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


def _series(trials: Sequence[Trial], axis: str) -> list[list[Trial]]:
    """Groups of at least two trials that differ in this parameter only, sorted by its value."""
    groups: dict[tuple[object, ...], list[Trial]] = {}
    for trial in trials:
        if isinstance(trial.params.get(axis), int | float) and not isnan(trial.value):
            rest = tuple(sorted((name, str(value)) for name, value in trial.params.items() if name != axis))
            groups.setdefault(rest, []).append(trial)
    several = [group for group in groups.values() if len(group) > 1]
    return [sorted(group, key=lambda trial: _number(trial, axis)) for group in several]


def _number(trial: Trial, axis: str) -> float:
    return float(trial.params[axis] or 0)


def _values_by_parameter(trials: Sequence[Trial], axis: str) -> str:
    """``top_k 5: 0.7000, 10: 0.8000``, and the fixed parameters."""
    fixed = ", ".join(f"{name} {value}" for name, value in trials[0].params.items() if name != axis)
    steps = ", ".join(f"{_number(trial, axis):g}: {format_value(trial.value, PLACES)}" for trial in trials)
    return f"{axis} {steps}" + (f" ({fixed})" if fixed else "")


TUNING_CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ201",
        title="tuned on the reported data",
        severity=Severity.ISSUE,
        applies_to=TunedSystem,
        function=tuned_on_reported_units,
        why="""\
The best of many trials is partly the best by chance, and scoring it on the units that selected it counts that
chance again.
With 27 equally good configurations and 100 questions the best one scores about 6 points too high,
and a 95 % interval around it covers the true value in 75 % of cases. A system with more trials gains
more. The held-out score (nested cross-validation) is unbiased: the configuration that is scored on a
unit was selected without it.""",
        hint="report the held-out score, or select on one part of the data and report on the other",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.checks.protocol import TunedSystem
from equipoise.tuning.grid import Trial, TuningRecord
trials = (Trial({"chunk_size": 256}, 0.71), Trial({"chunk_size": 512}, 0.78))
tuning = TuningRecord("accuracy", trials, 1, None, optimistic=0.78, nested=float("nan"), folds=())
run_checks(TunedSystem.of("minilm", tuning))""",
    ),
    Check(
        code="EQ202",
        title="the score only rises or only falls with a parameter",
        severity=Severity.TIP,
        applies_to=TunedSystem,
        function=monotone_parameter,
        why="""\
Hits within the first 5 are also hits within the first 10. A metric that
counts hits can only rise with top_k, so tuning always selects the largest value of the grid, and the
accuracy shows how much was retrieved rather than how well. A cost makes the choice meaningful:
retrieved tokens cost money and distract the reader.""",
        hint="set a budget of retrieved tokens, fix top_k, or compare the whole frontier",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.checks.protocol import TunedSystem
from equipoise.tuning.grid import Trial, TuningRecord
trials = (Trial({"top_k": 5}, 0.71), Trial({"top_k": 10}, 0.78), Trial({"top_k": 20}, 0.84))
run_checks(TunedSystem.of("minilm", TuningRecord("accuracy", trials, 2, None, 0.84, float("nan"), folds=())))""",
    ),
    Check(
        code=UNEQUAL_TUNING,
        title="unequal tuning budgets",
        severity=Severity.ISSUE,
        applies_to=TuningBudgets,
        function=unequal_budgets,
        why="""\
The more configurations are tried for a system, the higher its best score, whatever its quality. A new method with 27
trials beats an equally good one with one trial. A system that may retrieve 7,000 tokens beats one that may retrieve
200, because it finds more. Without the same grid and budget for every system the
comparison measures the tuning effort.""",
        hint="tune all systems over the same grid, within the same budget",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.checks.protocol import TuningBudgets
run_checks(TuningBudgets({"minilm": 27, "bm25": 1}))""",
    ),
    Check(
        code="EQ205",
        title="truncation differs between systems",
        severity=Severity.ISSUE,
        applies_to=TruncationBySystem,
        function=unequal_truncation,
        why="""\
A model that reads 256 tokens of a 512-token chunk searches half a document, while another, or a lexical
system, reads all of it. The scores then compare the windows as much as the models, and smaller chunks
may reverse the order.""",
        hint="use chunks that fit every model, or report the truncation with the scores",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.checks.base import TruncationStats
from equipoise.checks.protocol import TruncationBySystem
minilm = TruncationStats("minilm", tokens=256, texts=100, truncated=93, lost_tokens=21000)
bm25 = TruncationStats("bm25:", tokens=None, texts=100, truncated=0, lost_tokens=0)
run_checks(TruncationBySystem([minilm, bm25]))""",
    ),
)


CHECKS: tuple[Check, ...] = (*TUNING_CHECKS, *PROTOCOL_CHECKS)
