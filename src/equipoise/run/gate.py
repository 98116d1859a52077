"""The gate of continuous integration: does a run reach what is asked, and has it lost against a baseline?

Whatever keeps the question from being answered closes the gate: missing units, runs that were scored in
different ways, runs that are not complete or were tuned on the units they report, figures that are not
defined, losses on too few units to judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isclose, isfinite, isnan
from typing import Any

from equipoise.errors import ParameterError
from equipoise.run.loss import Loss
from equipoise.run.measured import with_metrics
from equipoise.run.regression import regressions
from equipoise.run.requirement import Requirement
from equipoise.run.store import StoredRun
from equipoise.run.verdict import Verdict
from equipoise.stats.interval import checked_level
from equipoise.stats.numbers import decimals, figure, percent
from equipoise.stats.result import Estimate, Result
from equipoise.types import Direction

MISSING = "EQ101"
"""The code of units that the truth has and a run lacks."""

FLATTERED = "EQ201"
"""The code of a figure that is the best of several, on the units that made it the best."""

RESAMPLES_OF_A_LOOK = 1
"""Where only the figure is wanted and not its interval."""


@dataclass(frozen=True)
class Gate:
    """The answers to all that was asked; open when every one is yes."""

    system: str
    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        """Whether the gate is open."""
        return all(verdict.passed for verdict in self.verdicts)

    def __repr__(self) -> str:
        return f"<Gate of {self.system}: {'passed' if self.passed else 'failed'}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        verdicts = [asdict(verdict) for verdict in self.verdicts]
        return {"system": self.system, "passed": self.passed, "verdicts": verdicts}


@dataclass(frozen=True, slots=True)
class Against:
    """A baseline and how much may be lost against it before the gate closes."""

    baseline: StoredRun
    margin: float = 0.0
    metrics: tuple[str, ...] = ()
    test: str = "t"


def gate_run(
    run: StoredRun,
    minimums: Sequence[str] = (),
    *,
    confident: bool = False,
    against: Against | None = None,
    allow_missing: bool = False,
    level: float = 0.95,
    flips: int = 10_000,
    seed: int = 0,
) -> Gate:
    """Ask whether a run meets every minimum, and whether it is no worse than a baseline.

    A minimum is compared with the point estimate, or, ``confident``, with the end of the interval on the
    wrong side. Against a baseline the gate closes only on a loss that significantly exceeds the margin: a
    paired one-sided test on the same units (see ``run.loss``), adjusted by Holm for several metrics, and on
    a loss that so few units cannot judge. The metrics are those of ``against``, else those of the minimums,
    else the first of the run. Fewer ``flips`` than the level needs are refused. Units that the truth has and
    a run lacks close the gate, unless it is told to allow them; they score 0 then.
    """
    checked_level(level)
    if against is not None and level <= 0.5:
        raise ParameterError(
            f"the level {level:g} would call a loss significant that is as likely as not",
            hint="give a level above 0.5, such as 0.95",
        )
    asked = [Requirement.parse(text) for text in minimums]
    if not asked and against is None:
        raise ParameterError(
            "the gate asks for nothing",
            hint="eq gate RUN --min 'nDCG@10>=0.60', or --no-worse-than BASELINE",
        )
    if against is not None and not (isfinite(against.margin) and against.margin >= 0):
        raise ParameterError(
            f"the margin {against.margin} is no loss that could be borne",
            hint="for example 0.01; 0 bears none",
        )
    verdicts = [_complete(run)] if run.caution else []
    verdicts += _flattered(run)
    if not allow_missing:
        verdicts += _missing(run, "the run")
        verdicts += _missing(against.baseline, "the baseline") if against else []
    verdicts += [_minimum(run.result, each, confident=confident, level=level) for each in asked]
    if against is not None:
        names = against.metrics or tuple(each.metric for each in asked) or run.result.names[:1]
        asked_loss = Loss(against.margin, level, flips, seed, against.test)
        verdicts += regressions(run, against.baseline, names, asked_loss)
    return Gate(run.result.system, tuple(verdicts))


def _complete(run: StoredRun) -> Verdict:
    return Verdict(False, f"{run.caution}, so its figures decide nothing", "run")


def _flattered(run: StoredRun) -> list[Verdict]:
    """The complaint that parameters were chosen on the units that the run reports, if it was made."""
    return [
        Verdict(False, f"the run was tuned on the units it reports: {finding.sentence} ({FLATTERED})", "run")
        for finding in run.result.findings
        if finding.code == FLATTERED
    ]


def _missing(run: StoredRun, who: str) -> list[Verdict]:
    """The complaint that a run lacks units of the truth, if it was made."""
    return [
        Verdict(False, f"{who} lacks units of the truth: {finding.sentence} ({MISSING})", "run")
        for finding in run.result.findings
        if finding.code == MISSING
    ]


def _falsified(result: Result, estimate: Estimate) -> str:
    """What the evidence says instead of the figure that is stored; empty where they agree."""
    if result.evidence is None or "like" in result.settings:
        return ""
    again = _bare(result, level=estimate.interval.level, resamples=RESAMPLES_OF_A_LOOK)
    found = with_metrics(again, [estimate.metric]).estimates[estimate.metric].value
    if isclose(found, estimate.value, rel_tol=1e-9, abs_tol=1e-9) or (isnan(found) and isnan(estimate.value)):
        return ""
    return f"the stored figure is {estimate.value:.6g} and the evidence of the run gives {found:.6g}"


def _minimum(result: Result, asked: Requirement, *, confident: bool, level: float) -> Verdict:
    estimate = _estimate(result, asked.metric)
    asked.checked(estimate)
    metric, value = estimate.metric, estimate.value
    if falsified := _falsified(result, estimate):
        return Verdict(False, f"{metric} cannot be trusted: {falsified}", "minimum", metric, value)
    if isnan(value):
        reason = estimate.interval.reason or "undefined on this evidence"
        return Verdict(False, f"{metric} has no value ({reason})", "minimum", metric)
    if confident:
        return _sure(_at_level(result, estimate, level), asked, level)
    passed = asked.holds(value)
    shown = _beside(value, asked, decimals(estimate.interval))
    return Verdict(passed, f"{metric} is {shown}, {_not(passed)}{asked.words}", "minimum", metric, value)


def _sure(estimate: Estimate, asked: Requirement, level: float) -> Verdict:
    """Whether the end of the interval that lies on the wrong side still meets what is asked."""
    metric, value, reach = estimate.metric, estimate.value, estimate.interval
    if not reach.known or reach.level != level:
        why = reach.reason or f"only one at {percent(reach.level)} is stored"
        return Verdict(False, f"{metric} has no {percent(level)} interval ({why})", "minimum", metric, value)
    end, which = (reach.low, "lower") if estimate.better == Direction.UP else (reach.high, "upper")
    passed, places = asked.holds(end), decimals(reach)
    sentence = (
        f"{metric} is {figure(value, places)}, and the {which} end of its {percent(level)} interval, "
        f"{_beside(end, asked, places)}, is {_not(passed)}{asked.words}"
    )
    return Verdict(passed, sentence, "minimum", metric, value, end)


def _not(passed: bool) -> str:
    return "" if passed else "not "


def _beside(value: float, asked: Requirement, places: int) -> str:
    """A figure with enough decimals to show on which side of the limit it lies."""
    while places < 12 and asked.holds(float(figure(value, places).replace(",", ""))) != asked.holds(value):
        places += 1
    return figure(value, places)


def _estimate(result: Result, metric: str) -> Estimate:
    found = with_metrics(result, [metric])
    if len(found.estimates) != 1:
        raise ParameterError(
            f"{metric} names {len(found.estimates)} metrics, and a gate asks for one at a time",
            hint=f"write {found.names[0]}",
        )
    return next(iter(found.estimates.values()))


def _at_level(result: Result, estimate: Estimate, level: float) -> Estimate:
    """The figure with its interval at this level, made anew where the evidence is there."""
    if result.evidence is None or estimate.interval.level == level:
        return estimate
    return with_metrics(_bare(result, level=level), [estimate.metric]).estimates[estimate.metric]


def _bare(result: Result, **settings: Any) -> Result:
    """The result as if nothing had been scored yet, with these settings."""
    return replace(result, estimates={}, per_unit={}, weights={}, settings={**result.settings, **settings})
