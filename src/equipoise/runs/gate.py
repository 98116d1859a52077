"""The gate of continuous integration: does a run meet its requirements, and is it no worse than a baseline?

The gate fails if the question cannot be answered: missing units, runs that were scored in different ways, runs
that are incomplete or were tuned on the units they report, undefined values, losses on too few units for a test.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isclose, isfinite, isnan
from typing import TYPE_CHECKING, Any

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import ParameterError
from equipoise.io.text import parse_number
from equipoise.redaction import inert
from equipoise.runs.evaluate import with_metrics
from equipoise.runs.inferiority_test import GateCheck, InferiorityTest, check_regressions
from equipoise.stats.formatting import format_percent, format_value, n_decimals
from equipoise.stats.verdict import plural, unit_noun
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.runs.run_folder import StoredRun
    from equipoise.stats.result import Estimate, Result

# Requirements: ``nDCG@10>=0.60``, or ``MR<=5`` for a metric where lower is better.

AT_LEAST, AT_MOST = ">=", "<="
_REQUIREMENT = re.compile(
    r"^\s*(?P<metric>.*?[^\s<>=!])\s*(?P<sign><=|>=|=>|=<|==?|!=|<|>)\s*(?P<limit>\S+?)\s*(?P<percent>%?)\s*$"
)
_WORDS = {AT_LEAST: ("at least", "below"), AT_MOST: ("at most", "above")}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A metric and the value that it must reach, or must not exceed.

    >>> Requirement.parse("nDCG@10 >= 60%")
    Requirement(metric='nDCG@10', sign='>=', limit=0.6, text='60%')
    """

    metric: str
    sign: str
    limit: float
    text: str

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """From text; a percent sign divides by 100."""
        # The = of a parameter, as in MAP(norm=R)@10, is not a comparison: only the part after the brackets counts.
        head, bracket, tail = text.rpartition(")")
        match = _REQUIREMENT.match(f"_{tail}" if bracket else tail)
        if match is None:
            raise ParameterError(
                f"{text!r} is not a requirement", hint="write a metric, >= or <=, and a number: nDCG@10>=0.60"
            )
        metric = f"{head})" + match["metric"].removeprefix("_") if bracket else match["metric"]
        if match["sign"] not in _WORDS:
            raise ParameterError(
                f"{text!r} has {match['sign']} instead of >= or <=",
                hint=f"write {metric}>={match['limit']}, or {metric}<={match['limit']} if lower is better",
            )
        try:
            limit = float(parse_number(match["limit"]))
        except ValueError:
            raise ParameterError(
                f"{text!r} requires {match['limit']!r}, which is not a number", hint="for example nDCG@10>=0.60"
            ) from None
        percent = match["percent"]
        return cls(metric, match["sign"], limit / 100 if percent else limit, match["limit"] + percent)

    def in_words(self, met: bool) -> str:
        """``at least 0.60``, or ``below 0.60`` if it is not met."""
        return f"{_WORDS[self.sign][0 if met else 1]} {self.text}"

    def holds(self, value: float) -> bool:
        """Whether a value meets the requirement; NaN does not."""
        return value >= self.limit if self.sign == AT_LEAST else value <= self.limit

    def checked(self, estimate: Estimate) -> Requirement:
        """The same requirement; an error if it has the wrong direction for the metric, or is out of range."""
        expected_sign = AT_LEAST if estimate.better == Direction.UP else AT_MOST
        if self.sign != expected_sign:
            better = "higher" if estimate.better == Direction.UP else "lower"
            raise ParameterError(
                f"{self.metric}{self.sign}{self.text} has the wrong direction: {better} {estimate.metric} is better",
                hint=f"write {self.metric}{expected_sign}{self.text}",
            )
        if estimate.unit == "fraction" and not 0.0 <= self.limit <= 1.0:
            raise ParameterError(
                f"{self.metric} is between 0 and 1, and {self.text} is not",
                hint=f"write {self.metric}{self.sign}{self.limit / 100:g}, or {self.text}%",
            )
        return self


MISSING = "EQ101"
"""The code of units of the ground truth that a run lacks."""

TUNED_ON_TEST_UNITS = "EQ201"
"""The code of a value that was selected on the units that it reports."""

_VALUE_ONLY_RESAMPLES = 1
"""If only the value is needed, not its interval."""


@dataclass(frozen=True)
class GateResult:
    """All checks of a gate; it passes if every check passes."""

    system: str
    verdicts: tuple[GateCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether all checks pass."""
        return all(verdict.passed for verdict in self.verdicts)

    def __repr__(self) -> str:
        return f"<Gate of {self.system}: {'passed' if self.passed else 'failed'}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        verdicts = [asdict(verdict) for verdict in self.verdicts]
        return {"system": self.system, "passed": self.passed, "verdicts": verdicts}

    def to_junit(self) -> str:
        """The checks as JUnit XML, one test case per check.

        >>> check = GateCheck(False, "MRR is 0.4, below 0.5", "minimum", "MRR")
        >>> print(GateResult("minilm", (check,)).to_junit())
        <?xml version='1.0' encoding='utf-8'?>
        <testsuites>
          <testsuite name="eq gate minilm" tests="1" failures="1" errors="0" skipped="0">
            <testcase classname="eq gate minilm" name="minimum MRR">
              <failure message="MRR is 0.4, below 0.5" />
            </testcase>
          </testsuite>
        </testsuites>
        """
        from xml.etree import ElementTree

        root = ElementTree.Element("testsuites")
        name = f"eq gate {self.system}"
        failures = sum(not verdict.passed for verdict in self.verdicts)
        counts = {"tests": len(self.verdicts), "failures": failures, "errors": 0, "skipped": 0}
        attributes = {"name": name, **{key: str(count) for key, count in counts.items()}}
        suite = ElementTree.SubElement(root, "testsuite", attributes)
        for verdict in self.verdicts:
            title = " ".join(filter(None, (verdict.about, verdict.metric)))
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=title)
            if verdict.passed:
                ElementTree.SubElement(case, "system-out").text = inert(verdict.message)
            else:
                ElementTree.SubElement(case, "failure", message=inert(verdict.message))
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True).decode("utf-8")


@dataclass(frozen=True, slots=True)
class BaselineCheck:
    """A baseline, and the loss against it that is tolerated."""

    baseline: StoredRun
    margin: float = 0.0
    metrics: tuple[str, ...] = ()
    test: str | None = None


def check_gate(
    run: StoredRun,
    minimums: Sequence[str] = (),
    *,
    confident: bool = False,
    against: BaselineCheck | None = None,
    allow_missing: bool = False,
    config: StatsConfig = DEFAULT_STATS,
) -> GateResult:
    """Check whether a run meets every minimum, and whether it is no worse than a baseline.

    A minimum is compared with the point estimate, or, with ``confident``, with the less favourable end of the
    interval. Against a baseline the gate fails on a loss that significantly exceeds the margin: a paired
    one-sided test on the same units (see ``inferiority_test``), adjusted for several metrics. It also fails
    on a loss with too few units for the test. The metrics are those of ``against``, else those of the minimums,
    else the first of the run. Fewer ``n_permutations`` than the confidence level needs are an error. Units of
    the ground truth that a run lacks fail the gate, unless ``allow_missing``; then they score 0.
    """
    confidence_level = config.confidence_level
    if against is not None and confidence_level <= 0.5:
        raise ParameterError(
            f"confidence_level={confidence_level:g} is too low: half of all random losses would be significant",
            hint="use a confidence level above 0.5, such as 0.95",
        )
    requirements = [Requirement.parse(text) for text in minimums]
    if not requirements and against is None:
        raise ParameterError(
            "the gate has no requirement",
            hint="eq gate RUN --require 'nDCG@10>=0.60', or --no-worse-than BASELINE",
        )
    if against is not None and not (isfinite(against.margin) and against.margin >= 0):
        raise ParameterError(
            f"the margin {against.margin} is not a loss of 0 or more",
            hint="for example 0.01; with 0 no loss is tolerated",
        )
    names = tuple(requirement.metric for requirement in requirements) or run.result.names[:1]
    names = names if against is None else against.metrics or names
    if against is not None and against.margin >= 1.0:
        for name, estimate in with_metrics(run.result, names).estimates.items():
            if estimate.unit == "fraction":
                raise ParameterError(
                    f"the margin {against.margin:g} is not below the range of {name}, which is a fraction",
                    hint="for example 0.01 for a loss of one percentage point",
                )
    verdicts = [GateCheck(False, f"{run.caution}, so its values are not used", "run")] if run.caution else []
    verdicts += _findings(run, TUNED_ON_TEST_UNITS, "the run was tuned on the {units} it reports")
    if not allow_missing:
        verdicts += _findings(run, MISSING, "the run lacks {units} of the ground truth")
    if not allow_missing and against is not None:
        verdicts += _findings(against.baseline, MISSING, "the baseline lacks {units} of the ground truth")
    verdicts += [
        _minimum(run.result, requirement, confident=confident, confidence_level=confidence_level)
        for requirement in requirements
    ]
    if against is not None:
        test = InferiorityTest(against.margin, against.test, config)
        verdicts += check_regressions(run, against.baseline, names, test)
    return GateResult(run.result.system, tuple(verdicts))


def _findings(run: StoredRun, code: str, problem: str) -> list[GateCheck]:
    """A failed check for every finding of this code."""
    problem = problem.format(units=plural(unit_noun([run.result])))
    return [
        GateCheck(False, f"{problem}: {finding.message} ({code})", "run")
        for finding in run.result.findings
        if finding.code == code
    ]


def _contradiction(result: Result, estimate: Estimate) -> str:
    """How the stored value differs from that of the stored evidence; empty if they agree."""
    if result.evidence is None or "like" in result.settings:
        return ""
    again = _bare(result, confidence_level=estimate.interval.confidence_level, n_resamples=_VALUE_ONLY_RESAMPLES)
    value = with_metrics(again, [estimate.metric]).estimates[estimate.metric].value
    if isclose(value, estimate.value, rel_tol=1e-9, abs_tol=1e-9) or (isnan(value) and isnan(estimate.value)):
        return ""
    return f"the stored value is {estimate.value:.6g} and the evidence of the run gives {value:.6g}"


def _minimum(result: Result, requirement: Requirement, *, confident: bool, confidence_level: float) -> GateCheck:
    estimate = _estimate(result, requirement.metric)
    requirement.checked(estimate)
    metric, value = estimate.metric, estimate.value
    if contradiction := _contradiction(result, estimate):
        return GateCheck(False, f"{metric} cannot be trusted: {contradiction}", "minimum", metric, value)
    if isnan(value):
        reason = estimate.interval.reason or "undefined on this evidence"
        return GateCheck(False, f"{metric} has no value ({reason})", "minimum", metric)
    if confident:
        return _confident_check(_at_level(result, estimate, confidence_level), requirement, confidence_level)
    passed = requirement.holds(value)
    shown = _format_against(value, requirement, n_decimals(estimate.interval))
    return GateCheck(passed, f"{metric} is {shown}, {requirement.in_words(passed)}", "minimum", metric, value)


def _confident_check(estimate: Estimate, requirement: Requirement, confidence_level: float) -> GateCheck:
    """Whether the less favourable end of the interval meets the requirement."""
    metric, value, interval = estimate.metric, estimate.value, estimate.interval
    if not interval.known or interval.confidence_level != confidence_level:
        reason = interval.reason or f"only one at {format_percent(interval.confidence_level)} is stored"
        return GateCheck(
            False, f"{metric} has no {format_percent(confidence_level)} interval ({reason})", "minimum", metric, value
        )
    end, bound = (interval.low, "lower") if estimate.better == Direction.UP else (interval.high, "upper")
    passed, places = requirement.holds(end), n_decimals(interval)
    message = (
        f"{metric} is {format_value(value, places)}, and the {bound} end of its "
        f"{format_percent(confidence_level)} interval, {_format_against(end, requirement, places)}, is "
        f"{requirement.in_words(passed)}"
    )
    return GateCheck(passed, message, "minimum", metric, value, end)


def _format_against(value: float, requirement: Requirement, places: int) -> str:
    """A value with enough decimals to show on which side of the limit it is."""
    holds = requirement.holds
    while places < 12 and holds(float(format_value(value, places).replace(",", ""))) != holds(value):
        places += 1
    return format_value(value, places)


def _estimate(result: Result, metric: str) -> Estimate:
    scored = with_metrics(result, [metric])
    if len(scored.estimates) != 1:
        raise ParameterError(
            f"{metric} names {len(scored.estimates)} metrics, and a requirement has one",
            hint=f"write {scored.names[0]}",
        )
    return next(iter(scored.estimates.values()))


def _at_level(result: Result, estimate: Estimate, confidence_level: float) -> Estimate:
    """The estimate with its interval at this level, computed again if the evidence is stored."""
    if result.evidence is None or estimate.interval.confidence_level == confidence_level:
        return estimate
    return with_metrics(_bare(result, confidence_level=confidence_level), [estimate.metric]).estimates[estimate.metric]


def _bare(result: Result, **settings: Any) -> Result:
    """The result without scores, with these settings."""
    return replace(result, estimates={}, per_unit={}, weights={}, settings={**result.settings, **settings})
