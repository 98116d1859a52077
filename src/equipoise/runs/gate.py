"""The gate of continuous integration: does a run reach what is asked, and has it lost against a baseline?

Whatever keeps the question from being answered closes the gate: missing units, runs that were scored in
different ways, runs that are not complete or were tuned on the units they report, figures that are not
defined, losses on too few units to judge.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isclose, isfinite, isnan
from typing import TYPE_CHECKING, Any

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import ParameterError
from equipoise.io.text import NumberRangeError, NumberSyntaxError, parse_number
from equipoise.runs.evaluate import with_metrics
from equipoise.runs.regression_gate import GateCheck, RegressionTest, check_regressions
from equipoise.stats.formatting import format_percent, format_value, n_decimals
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.runs.store import StoredRun
    from equipoise.stats.result import Estimate, Result

# What a gate asks of a run: ``nDCG@10>=0.60``, or ``MR<=5`` where less is better.

AT_LEAST, AT_MOST = ">=", "<="
_SPELLING = re.compile(
    r"^\s*(?P<metric>.*?[^\s<>=!])\s*(?P<sign><=|>=|==?|!=|<|>)\s*(?P<limit>\S+?)\s*(?P<percent>%?)\s*$"
)
_WORDS = {AT_LEAST: "at least", AT_MOST: "at most"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A metric and the figure that it must reach, or must not exceed.

    >>> Requirement.parse("nDCG@10 >= 60%")
    Requirement(metric='nDCG@10', sign='>=', limit=0.6, text='60%')
    """

    metric: str
    sign: str
    limit: float
    text: str

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """From the spelling; a percent sign divides by 100."""
        # The = of a parameter, as in MAP(norm=R)@10, is no sign: only what follows the brackets counts.
        head, bracket, tail = text.rpartition(")")
        match = _SPELLING.match(f"_{tail}" if bracket else tail)
        if match is None:
            raise ParameterError(
                f"{text!r} is no requirement", hint="write a metric, >= or <=, and a number: nDCG@10>=0.60"
            )
        metric = f"{head})" + match["metric"].removeprefix("_") if bracket else match["metric"]
        if match["sign"] not in _WORDS:
            raise ParameterError(
                f"{text!r} compares with {match['sign']}",
                hint=f"write {metric}>={match['limit']}, or <= where less is better",
            )
        try:
            limit = float(parse_number(match["limit"]))
        except (NumberSyntaxError, NumberRangeError):
            raise ParameterError(
                f"{text!r} asks for {match['limit']!r}, which is no number", hint="for example nDCG@10>=0.60"
            ) from None
        percent = match["percent"]
        return cls(metric, match["sign"], limit / 100 if percent else limit, match["limit"] + percent)

    @property
    def words(self) -> str:
        """``at least 0.60``."""
        return f"{_WORDS[self.sign]} {self.text}"

    def holds(self, value: float) -> bool:
        """Whether a figure meets it; NaN does not."""
        return value >= self.limit if self.sign == AT_LEAST else value <= self.limit

    def checked(self, estimate: Estimate) -> Requirement:
        """The same requirement, when it asks in the direction in which the metric is better."""
        wanted = AT_LEAST if estimate.better == Direction.UP else AT_MOST
        if self.sign != wanted:
            which = "more" if estimate.better == Direction.UP else "less"
            raise ParameterError(
                f"{self.metric}{self.sign}{self.text} asks for the wrong side: of {estimate.metric} {which} is better",
                hint=f"write {self.metric}{wanted}{self.text}",
            )
        if estimate.unit == "fraction" and not 0.0 <= self.limit <= 1.0:
            raise ParameterError(
                f"{self.metric} lies between 0 and 1, and {self.text} does not",
                hint=f"write {self.metric}{self.sign}{self.limit / 100:g}, or {self.text}%",
            )
        return self


MISSING = "EQ101"
"""The code of units that the truth has and a run lacks."""

TUNED_ON_TEST_UNITS = "EQ201"
"""The code of a figure that is the best of several, on the units that made it the best."""

RESAMPLES_OF_A_LOOK = 1
"""Where only the figure is wanted and not its interval."""


@dataclass(frozen=True)
class GateResult:
    """The answers to all that was asked; open when every one is yes."""

    system: str
    verdicts: tuple[GateCheck, ...]

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
class BaselineCheck:
    """A baseline and how much may be lost against it before the gate closes."""

    baseline: StoredRun
    margin: float = 0.0
    metrics: tuple[str, ...] = ()
    test: str = "t"


def check_gate(
    run: StoredRun,
    minimums: Sequence[str] = (),
    *,
    confident: bool = False,
    against: BaselineCheck | None = None,
    allow_missing: bool = False,
    config: StatsConfig = DEFAULT_STATS,
) -> GateResult:
    """Ask whether a run meets every minimum, and whether it is no worse than a baseline.

    A minimum is compared with the point estimate, or, ``confident``, with the end of the interval on the
    wrong side. Against a baseline the gate closes only on a loss that significantly exceeds the margin: a
    paired one-sided test on the same units (see ``run.loss``), adjusted by Holm for several metrics, and on
    a loss that so few units cannot judge. The metrics are those of ``against``, else those of the minimums,
    else the first of the run. Fewer ``n_permutations`` than the level needs are refused. Units that the truth has and
    a run lacks close the gate, unless it is told to allow them; they score 0 then.
    """
    confidence_level = config.confidence_level
    if against is not None and confidence_level <= 0.5:
        raise ParameterError(
            f"confidence_level={confidence_level:g} would call a loss significant that is as likely as not",
            hint="use a confidence level above 0.5, such as 0.95",
        )
    asked = [Requirement.parse(text) for text in minimums]
    if not asked and against is None:
        raise ParameterError(
            "the gate asks for nothing",
            hint="eq gate RUN --require 'nDCG@10>=0.60', or --no-worse-than BASELINE",
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
    verdicts += [_minimum(run.result, each, confident=confident, confidence_level=confidence_level) for each in asked]
    if against is not None:
        names = against.metrics or tuple(each.metric for each in asked) or run.result.names[:1]
        asked_loss = RegressionTest(against.margin, against.test, config)
        verdicts += check_regressions(run, against.baseline, names, asked_loss)
    return GateResult(run.result.system, tuple(verdicts))


def _complete(run: StoredRun) -> GateCheck:
    return GateCheck(False, f"{run.caution}, so its figures decide nothing", "run")


def _flattered(run: StoredRun) -> list[GateCheck]:
    """The complaint that parameters were chosen on the units that the run reports, if it was made."""
    return [
        GateCheck(
            False,
            f"the run was tuned on the units it reports: {finding.message} ({TUNED_ON_TEST_UNITS})",
            "run",
        )
        for finding in run.result.findings
        if finding.code == TUNED_ON_TEST_UNITS
    ]


def _missing(run: StoredRun, who: str) -> list[GateCheck]:
    """The complaint that a run lacks units of the truth, if it was made."""
    return [
        GateCheck(False, f"{who} lacks units of the truth: {finding.message} ({MISSING})", "run")
        for finding in run.result.findings
        if finding.code == MISSING
    ]


def _falsified(result: Result, estimate: Estimate) -> str:
    """What the evidence says instead of the figure that is stored; empty where they agree."""
    if result.evidence is None or "like" in result.settings:
        return ""
    again = _bare(result, confidence_level=estimate.interval.confidence_level, n_resamples=RESAMPLES_OF_A_LOOK)
    found = with_metrics(again, [estimate.metric]).estimates[estimate.metric].value
    if isclose(found, estimate.value, rel_tol=1e-9, abs_tol=1e-9) or (isnan(found) and isnan(estimate.value)):
        return ""
    return f"the stored figure is {estimate.value:.6g} and the evidence of the run gives {found:.6g}"


def _minimum(result: Result, asked: Requirement, *, confident: bool, confidence_level: float) -> GateCheck:
    estimate = _estimate(result, asked.metric)
    asked.checked(estimate)
    metric, value = estimate.metric, estimate.value
    if falsified := _falsified(result, estimate):
        return GateCheck(False, f"{metric} cannot be trusted: {falsified}", "minimum", metric, value)
    if isnan(value):
        reason = estimate.interval.reason or "undefined on this evidence"
        return GateCheck(False, f"{metric} has no value ({reason})", "minimum", metric)
    if confident:
        return _sure(_at_level(result, estimate, confidence_level), asked, confidence_level)
    passed = asked.holds(value)
    shown = _beside(value, asked, n_decimals(estimate.interval))
    return GateCheck(passed, f"{metric} is {shown}, {_not(passed)}{asked.words}", "minimum", metric, value)


def _sure(estimate: Estimate, asked: Requirement, confidence_level: float) -> GateCheck:
    """Whether the end of the interval that lies on the wrong side still meets what is asked."""
    metric, value, reach = estimate.metric, estimate.value, estimate.interval
    if not reach.known or reach.confidence_level != confidence_level:
        why = reach.reason or f"only one at {format_percent(reach.confidence_level)} is stored"
        return GateCheck(
            False, f"{metric} has no {format_percent(confidence_level)} interval ({why})", "minimum", metric, value
        )
    end, which = (reach.low, "lower") if estimate.better == Direction.UP else (reach.high, "upper")
    passed, places = asked.holds(end), n_decimals(reach)
    sentence = (
        f"{metric} is {format_value(value, places)}, and the {which} end of its "
        f"{format_percent(confidence_level)} interval, {_beside(end, asked, places)}, is {_not(passed)}{asked.words}"
    )
    return GateCheck(passed, sentence, "minimum", metric, value, end)


def _not(passed: bool) -> str:
    return "" if passed else "not "


def _beside(value: float, asked: Requirement, places: int) -> str:
    """A figure with enough decimals to show on which side of the limit it lies."""
    while places < 12 and asked.holds(float(format_value(value, places).replace(",", ""))) != asked.holds(value):
        places += 1
    return format_value(value, places)


def _estimate(result: Result, metric: str) -> Estimate:
    found = with_metrics(result, [metric])
    if len(found.estimates) != 1:
        raise ParameterError(
            f"{metric} names {len(found.estimates)} metrics, and a gate asks for one at a time",
            hint=f"write {found.names[0]}",
        )
    return next(iter(found.estimates.values()))


def _at_level(result: Result, estimate: Estimate, confidence_level: float) -> Estimate:
    """The figure with its interval at this level, made anew where the evidence is there."""
    if result.evidence is None or estimate.interval.confidence_level == confidence_level:
        return estimate
    return with_metrics(_bare(result, confidence_level=confidence_level), [estimate.metric]).estimates[estimate.metric]


def _bare(result: Result, **settings: Any) -> Result:
    """The result as if nothing had been scored yet, with these settings."""
    return replace(result, estimates={}, per_unit={}, weights={}, settings={**result.settings, **settings})
