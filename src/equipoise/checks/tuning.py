"""Checks of tuning: were parameters chosen on equal terms, and what is the figure of the choice worth?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan
from typing import Self

from equipoise.checks.base import Check, Complaint, counted, listed
from equipoise.checks.subjects import Window
from equipoise.stats.numbers import figure, signed
from equipoise.tune.record import Trial, Tuning
from equipoise.types import Severity

DEPTHS = ("top_k", "k", "depth")
"""Parameters that say how much is retrieved: what is among the first five is also among the first ten."""
UNLIKE = 0.01
"""A hundredth of the texts more or less hardly moves any score; from there on the loss may decide one."""
PLACES = 4
SHOWN = 3


@dataclass(frozen=True)
class TunedSystem:
    """A system, how its parameters were chosen, and whether the figure reported for it is the nested one."""

    system: str
    tuning: Tuning
    nested: bool
    depths: Sequence[str] = DEPTHS

    @classmethod
    def of(cls, system: str, tuning: Tuning) -> Self:
        """A system that reports the nested figure where its tuning has one, else the best trial's."""
        return cls(system, tuning, nested=bool(tuning.folds))


@dataclass(frozen=True)
class TuningBudgets:
    """How many trials each system got."""

    trials: Mapping[str, int]

    @classmethod
    def of(cls, tunings: Mapping[str, Tuning]) -> Self:
        """The trials that the tunings record."""
        return cls({system: len(tuning.trials) for system, tuning in tunings.items()})


@dataclass(frozen=True)
class Windows:
    """What each of several systems did not read of the same texts."""

    windows: Sequence[Window]


def tuned_on_reported_units(tuned: TunedSystem) -> Iterator[Complaint]:
    """EQ201: the figure is that of the best of several trials, on the units that made it the best."""
    tuning = tuned.tuning
    if tuned.nested or len(tuning.trials) < 2:
        return
    best = f"{tuning.metric} {figure(tuning.optimistic, PLACES)} is the best of {len(tuning.trials)} trials"
    honest = f"on units that had no say it is {figure(tuning.nested, PLACES)}"
    yield Complaint(
        tuned.system,
        f"{best} on the same units that chose it, so luck is counted as merit",
        (best, *(() if isnan(tuning.nested) else (f"{honest}, {signed(-tuning.gap, PLACES)}",))),
    )


def monotone_parameter(tuned: TunedSystem) -> Iterator[Complaint]:
    """EQ202: a depth was tuned that can only help, and nothing made it cost anything."""
    tuning = tuned.tuning
    if tuning.budget is not None:
        return
    for axis in tuned.depths:
        series = _series(tuning.trials, axis)
        steps = [after.value - before.value for trials in series for before, after in pairwise(trials)]
        if steps and min(steps) >= 0 and max(steps) > 0:
            tried = sorted({_number(trial, axis) for trials in series for trial in trials})
            yield Complaint(
                tuned.system,
                f"{axis} was tuned over {listed([f'{each:g}' for each in tried])} without a budget, and "
                f"{tuning.metric} never falls as it grows: tuning it means taking the largest",
                tuple(_ladder(trials, axis) for trials in series[:SHOWN]),
            )


def unequal_budgets(budgets: TuningBudgets) -> Iterator[Complaint]:
    """EQ203: some systems were tried at more points than others."""
    trials = budgets.trials
    if len(set(trials.values())) > 1:
        most, least = max(trials, key=trials.__getitem__), min(trials, key=trials.__getitem__)
        yield Complaint(
            ", ".join(trials),
            f"{most} got {counted(trials[most], 'trial')} and {least} {trials[least]:,}: the best of more "
            "trials is better by luck alone",
            tuple(f"{system}: {counted(count, 'trial')}" for system, count in trials.items()),
        )


def unlike_truncation(seen: Windows) -> Iterator[Complaint]:
    """EQ205: some systems read the texts to their end, and others do not."""
    shares = {
        window.model: window.truncated / window.texts
        for window in seen.windows
        if window.truncated is not None and window.texts
    }
    if not shares or max(shares.values()) - min(shares.values()) <= UNLIKE:
        return
    worst, best = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    reads = {window.model: window.tokens for window in seen.windows}
    tokens = "" if reads[worst] is None else f", of which it reads {reads[worst]:,} tokens"
    whole = "reads all to the end" if shares[best] == 0 else f"of {figure(shares[best], PLACES)}"
    yield Complaint(
        ", ".join(shares),
        f"{worst} loses the end of {figure(shares[worst], PLACES)} of the texts{tokens}, and {best} {whole}",
        tuple(f"{model}: {figure(share, PLACES)} of the texts truncated" for model, share in shares.items()),
    )


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
    steps = ", ".join(f"{_number(trial, axis):g}: {figure(trial.value, PLACES)}" for trial in trials)
    return f"{axis} {steps}" + (f" ({fixed})" if fixed else "")


CHECKS: tuple[Check, ...] = (
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
        remedy="report the nested figure, or choose on some units and report on others",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.tuning import TunedSystem
from equipoise.tune.record import Trial, Tuning
trials = (Trial({"chunk_size": 256}, 0.71), Trial({"chunk_size": 512}, 0.78))
tuning = Tuning("accuracy", trials, 1, None, optimistic=0.78, nested=float("nan"), folds=())
examine(TunedSystem.of("minilm", tuning))""",
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
        remedy="set a budget of retrieved tokens, hold top_k fixed, or compare the whole frontier",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.tuning import TunedSystem
from equipoise.tune.record import Trial, Tuning
trials = (Trial({"top_k": 5}, 0.71), Trial({"top_k": 10}, 0.78), Trial({"top_k": 20}, 0.84))
examine(TunedSystem.of("minilm", Tuning("accuracy", trials, 2, None, 0.84, float("nan"), folds=())))""",
    ),
    Check(
        code="EQ203",
        title="unequal tuning budgets",
        severity=Severity.ISSUE,
        applies_to=TuningBudgets,
        function=unequal_budgets,
        why="""\
The more points of a grid a system is tried at, the better its best one looks, whatever the system is worth. A
new method with 27 trials beats its equal with one. Each system gets the same number of trials, or the
comparison is one of effort.""",
        remedy="tune all systems over the same grid",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.tuning import TuningBudgets
examine(TuningBudgets({"minilm": 27, "bm25": 1}))""",
    ),
    Check(
        code="EQ205",
        title="truncation differs between systems",
        severity=Severity.ISSUE,
        applies_to=Windows,
        function=unlike_truncation,
        why="""\
A model that reads 256 tokens of a 512-token chunk searches half a document, while another, or a system that
looks at words, reads it all. The figures then compare the windows as much as the models, and smaller chunks
may turn the order round.""",
        remedy="use chunks that every model reads to the end, or report the truncation beside the figures",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.subjects import Window
from equipoise.checks.tuning import Windows
minilm = Window("minilm", tokens=256, texts=100, truncated=93, lost_tokens=21000)
examine(Windows([minilm, Window("bm25:", tokens=None, texts=100, truncated=0, lost_tokens=0)]))""",
    ),
)
