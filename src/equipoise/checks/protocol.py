"""Checks of tuning: were parameters chosen on equal terms, and what is the figure of the choice worth?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING, Any, Self

from equipoise.checks.base import Check, ComparedSystems, Observation, TruncationStats, join_names, pluralize
from equipoise.errors import EquipoiseError
from equipoise.models.retriever import has_lexical_baseline
from equipoise.stats.alignment import BUDGET, FOLDS, GRID, SPENT, TOKENIZER, TRIALS, WINDOW
from equipoise.stats.comparison import UNEQUAL_TUNING
from equipoise.stats.formatting import format_count, format_difference, format_value
from equipoise.stats.result import Result
from equipoise.types import Severity, with_label

if TYPE_CHECKING:
    from equipoise.tuning.grid import Trial, TuningRecord

# Checks of the protocol: whether a run is what its figures take it for.

PARTIAL_RUN = "EQ206"


def partial_run(result: Result) -> Iterator[Observation]:
    """EQ206: a result that was read from a run directory which is not complete."""
    status = result.settings.get("status", "complete")
    if status != "complete":
        reason = result.settings.get("status_reason") or "no reason was recorded"
        yield Observation(
            result.system,
            f"the run is {status}: {reason}",
            (f"{pluralize(len(result.unit_ids), 'unit')} in the run directory",),
        )


def no_lexical_baseline(line_up: ComparedSystems) -> Iterator[Observation]:
    """EQ107: models are compared with each other, and with nothing that only looks at words."""
    try:
        lacking = len(line_up.specs) > 1 and not has_lexical_baseline(line_up.specs)
    except EquipoiseError:  # a name that is no spec does not say what the system looks at
        return
    if lacking:
        yield Observation(
            ", ".join(line_up.specs),
            "no system that only looks at words is compared with these models",
            (f"{pluralize(len(line_up.specs), 'system')} compared",),
        )


PROTOCOL_CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ107",
        title="no lexical baseline",
        severity=Severity.TIP,
        applies_to=ComparedSystems,
        function=no_lexical_baseline,
        why="""\
On many collections BM25 or TF-IDF over character n-grams is as good as a model, costs next to nothing and
needs no download. A comparison of models alone cannot show that none of them is worth its price.""",
        hint="add bm25: or tfidf: to the systems",
        example="""\
from equipoise.checks.registry import run_checks
from equipoise.types import Severity
from equipoise.checks.base import ComparedSystems
run_checks(ComparedSystems(["minilm", "use"]))""",
    ),
    Check(
        code=PARTIAL_RUN,
        title="a run is partial",
        severity=Severity.ISSUE,
        applies_to=Result,
        function=partial_run,
        why="""\
The run directory says of itself that the run was interrupted or failed. What it holds is what was finished
before that. The units that come last are not a sample of all of them, so the figures may move in either
direction when the rest is there, and a comparison with a complete run is not on equal terms.""",
        hint="run the command again until it ends; what was finished is not done twice",
        example="""\
from dataclasses import replace
from equipoise import Ranking, evaluate
from equipoise.checks.registry import run_checks
result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=20), "MRR", system="bm25")
run_checks(replace(result, settings={"status": "partial", "status_reason": "interrupted"}))""",
    ),
)


DEPTHS = ("top_k", "k", "depth")
"""Parameters that say how much is retrieved: what is among the first five is also among the first ten."""
MAX_TRUNCATION_GAP = 0.01
"""A hundredth of the texts more or less hardly moves any score; from there on the loss may decide one."""
EQUAL_COST_RATIO = 0.9
"""Below this share of the dearest a system spends less, and not just rounds otherwise."""
PLACES = 4
MAX_LISTED = 3


@dataclass(frozen=True)
class TunedSystem:
    """A system, how its parameters were chosen, and whether the figure reported for it is the nested one."""

    system: str
    tuning: TuningRecord
    nested: bool
    depths: Sequence[str] = DEPTHS

    @classmethod
    def of(cls, system: str, tuning: TuningRecord) -> Self:
        """A system that reports the nested figure where its tuning has one, else the best trial's."""
        return cls(system, tuning, nested=bool(tuning.folds))


@dataclass(frozen=True)
class TuningBudgets:
    """How much tuning each system got.

    ``trials`` counts the points of the grid by system. ``terms`` holds whatever else was given to each, in
    words and by name, such as the values of a parameter or a budget; ``spent`` is what a unit costs with what
    was chosen, in ``unit``.
    """

    trials: Mapping[str, int]
    terms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    spent: Mapping[str, float] = field(default_factory=dict)
    unit: str = "tokens"

    @classmethod
    def of(cls, tunings: Mapping[str, TuningRecord]) -> Self:
        """The trials that the tunings record."""
        return cls({system: len(tuning.grid) for system, tuning in tunings.items()})

    @classmethod
    def of_results(cls, results: Sequence[Result]) -> Self:
        """What the results say of their tuning in their settings; what one does not say is unknown."""
        told = {result.system: result.settings for result in results if TRIALS in result.settings}
        return cls(
            {system: int(settings[TRIALS]) for system, settings in told.items()},
            {system: _terms(settings) for system, settings in told.items()},
            {system: float(each[SPENT]) for system, each in told.items() if each.get(SPENT) is not None},
        )


@dataclass(frozen=True)
class TruncationBySystem:
    """What each of several systems did not read of the same texts."""

    windows: Sequence[TruncationStats]

    @classmethod
    def of_results(cls, results: Sequence[Result]) -> Self:
        """What the results say of their windows in their settings."""
        told = [(result.system, result.settings.get(WINDOW)) for result in results]
        return cls(
            [
                TruncationStats(name, seen.get("tokens"), int(seen.get("texts") or 0), seen.get("truncated"), None)
                for name, seen in told
                if isinstance(seen, Mapping)
            ]
        )


def tuned_on_reported_units(tuned: TunedSystem) -> Iterator[Observation]:
    """EQ201: the figure is that of the best of several trials, on the units that made it the best."""
    tuning = tuned.tuning
    trials = len(tuning.affordable)
    if tuned.nested or trials < 2:
        return
    best = f"{tuning.trial_metric} {format_value(tuning.optimistic, PLACES)} is the best of {trials} trials"
    honest = f"on units that had no say it is {format_value(tuning.nested, PLACES)}"
    yield Observation(
        tuned.system,
        f"{best} on the same units that chose it, so luck is counted as merit",
        (best, *(() if isnan(tuning.nested) else (f"{honest}, {format_difference(-tuning.gap, PLACES)}",))),
    )


def monotone_parameter(tuned: TunedSystem) -> Iterator[Observation]:
    """EQ202: a depth was tuned that can only help, and nothing made it cost anything."""
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
                f"{axis} was tuned over {join_names([f'{each:g}' for each in tried])} without a budget, and "
                f"{tuning.trial_metric} never falls as it grows: tuning it means taking the largest",
                tuple(_ladder(trials, axis) for trials in series[:MAX_LISTED]),
            )


def unequal_budgets(budgets: TuningBudgets) -> Iterator[Observation]:
    """EQ203: some systems were tried at more points than others, at other ones, or at another price."""
    unequal = [*_unequal_trials(budgets.trials), *_other_terms(budgets.terms)]
    if unequal:
        yield Observation(
            ", ".join(budgets.trials),
            "; ".join([*unequal, *_unlike_spending(budgets)]),
            tuple(with_label(system, ", ".join(_told(budgets, system))) for system in budgets.trials),
        )


def _unequal_trials(trials: Mapping[str, int]) -> Iterator[str]:
    if len(set(trials.values())) > 1:
        most, least = max(trials, key=trials.__getitem__), min(trials, key=trials.__getitem__)
        yield (
            f"{most} got {pluralize(trials[most], 'trial')} and {least} got {trials[least]:,}, and the best of "
            "more trials is better by luck alone"
        )


def _other_terms(terms: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """How the first system that was tuned on other terms than the first of all differs from that."""
    first, *others = terms or [""]
    for other in others:
        unlike = [
            f"{name} {value} against {terms[other][name]}"
            for name, value in terms[first].items()
            if terms[other].get(name, value) != value
        ]
        if unlike:
            yield f"{first} and {other} were tuned on other terms ({', '.join(unlike)})"
            return


def _unlike_spending(budgets: TuningBudgets) -> Iterator[str]:
    spent = budgets.spent
    if spent and min(spent.values()) < EQUAL_COST_RATIO * max(spent.values()):
        most, least = max(spent, key=spent.__getitem__), min(spent, key=spent.__getitem__)
        yield (
            f"a unit costs {format_count(round(spent[most]))} {budgets.unit} with {most} and "
            f"{format_count(round(spent[least]))} with {least}"
        )


def _told(budgets: TuningBudgets, system: str) -> Iterator[str]:
    """Everything that is known of the tuning of one system."""
    yield pluralize(budgets.trials[system], "trial")
    yield from (f"{name} {value}" for name, value in budgets.terms.get(system, {}).items())
    if system in budgets.spent:
        yield f"{format_count(round(budgets.spent[system]))} {budgets.unit} a unit"


def unequal_truncation(seen: TruncationBySystem) -> Iterator[Observation]:
    """EQ205: some systems read the texts to their end, and others do not."""
    shares = {
        window.model: window.truncated / window.texts
        for window in seen.windows
        if window.truncated is not None and window.texts
    }
    if not shares or max(shares.values()) - min(shares.values()) <= MAX_TRUNCATION_GAP:
        return
    worst, best = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    reads = {window.model: window.tokens for window in seen.windows}
    tokens = "" if reads[worst] is None else f", of which it reads {reads[worst]:,} tokens"
    whole = "reads all to the end" if shares[best] == 0 else f"of {format_value(shares[best], PLACES)}"
    yield Observation(
        ", ".join(shares),
        f"{worst} loses the end of {format_value(shares[worst], PLACES)} of the texts{tokens}, and {best} {whole}",
        tuple(
            with_label(model, f"{format_value(share, PLACES)} of the texts truncated")
            for model, share in shares.items()
        ),
    )


def _terms(settings: Mapping[str, Any]) -> dict[str, str]:
    """The terms of a tuning in words."""
    grid = settings.get(GRID)
    terms = {name: _values(values) for name, values in grid.items()} if isinstance(grid, Mapping) else {}
    budget = settings.get(BUDGET)
    terms[BUDGET] = "none" if budget is None else format_value(float(budget), 0)
    return terms | {name: str(settings[name]) for name in (FOLDS, TOKENIZER) if name in settings}


def _values(values: Any) -> str:
    """Several values with slashes between them: ``256/384/512``."""
    return "/".join(map(str, values)) if isinstance(values, list | tuple) else str(values)


def _series(trials: Sequence[Trial], axis: str) -> list[list[Trial]]:
    """Trials that differ in this parameter alone, from its smallest value on; two of them at least."""
    groups: dict[tuple[object, ...], list[Trial]] = {}
    for trial in trials:
        if isinstance(trial.params.get(axis), int | float) and not isnan(trial.value):
            rest = tuple(sorted((name, str(value)) for name, value in trial.params.items() if name != axis))
            groups.setdefault(rest, []).append(trial)
    several = [group for group in groups.values() if len(group) > 1]
    return [sorted(group, key=lambda trial: _number(trial, axis)) for group in several]


def _number(trial: Trial, axis: str) -> float:
    return float(trial.params[axis] or 0)


def _ladder(trials: Sequence[Trial], axis: str) -> str:
    """``top_k 5: 0.7000, 10: 0.8000``, and what was the same throughout."""
    fixed = ", ".join(f"{name} {value}" for name, value in trials[0].params.items() if name != axis)
    steps = ", ".join(f"{_number(trial, axis):g}: {format_value(trial.value, PLACES)}" for trial in trials)
    return f"{axis} {steps}" + (f" ({fixed})" if fixed else "")


TUNING_CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ201",
        title="tuned on reported units",
        severity=Severity.ISSUE,
        applies_to=TunedSystem,
        function=tuned_on_reported_units,
        why="""\
The best of many trials is partly the best by luck, and on the units that chose it, its luck is counted.
With 27 configurations of equal worth and 100 questions the best one looks some 6 points better than it is,
and a 95 % interval around it covers the truth in three cases of four. A system with more trials gains
more. The nested figure is free of this: what is scored on a unit was chosen without it.""",
        hint="report the nested figure, or choose on some units and report on others",
        example="""\
from equipoise.checks.registry import run_checks
from equipoise.checks.protocol import TunedSystem
from equipoise.tuning.grid import Trial, TuningRecord
trials = (Trial({"chunk_size": 256}, 0.71), Trial({"chunk_size": 512}, 0.78))
tuning = TuningRecord("accuracy", trials, 1, None, optimistic=0.78, nested=float("nan"), folds=())
run_checks(TunedSystem.of("minilm", tuning))""",
    ),
    Check(
        code="EQ202",
        title="parameter monotone in the metric",
        severity=Severity.TIP,
        applies_to=TunedSystem,
        function=monotone_parameter,
        why="""\
Whoever retrieves more finds more: hits within the first 5 are also hits within the first 10. A metric that
counts hits can only rise with top_k, so tuning it is no choice but the largest value of the grid, and the
accuracy shows how much was retrieved rather than how well. Only at a price is there something to choose:
retrieved tokens cost money and distract whoever reads them.""",
        hint="set a budget of retrieved tokens, hold top_k fixed, or compare the whole frontier",
        example="""\
from equipoise.checks.registry import run_checks
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
The more points of a grid a system is tried at, the better its best one looks, whatever the system is worth. A
new method with 27 trials beats its equal with one. So does one that may retrieve 7,000 tokens beside one
that may retrieve 200: whoever retrieves more finds more. Each system gets the same grid and the same budget,
or the comparison is one of effort.""",
        hint="tune all systems over the same grid, within the same budget",
        example="""\
from equipoise.checks.registry import run_checks
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
A model that reads 256 tokens of a 512-token chunk searches half a document, while another, or a system that
looks at words, reads it all. The figures then compare the windows as much as the models, and smaller chunks
may turn the order round.""",
        hint="use chunks that every model reads to the end, or report the truncation beside the figures",
        example="""\
from equipoise.checks.registry import run_checks
from equipoise.checks.base import TruncationStats
from equipoise.checks.protocol import TruncationBySystem
minilm = TruncationStats("minilm", tokens=256, texts=100, truncated=93, lost_tokens=21000)
bm25 = TruncationStats("bm25:", tokens=None, texts=100, truncated=0, lost_tokens=0)
run_checks(TruncationBySystem([minilm, bm25]))""",
    ),
)


CHECKS: tuple[Check, ...] = (*TUNING_CHECKS, *PROTOCOL_CHECKS)
