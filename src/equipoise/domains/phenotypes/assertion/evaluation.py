"""Evaluation of assertion detection on marked sentences: accuracy with an interval, by construction and assertion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import Any

from equipoise.config import CONFIDENCE_LEVEL, DEFAULT_STATS, StatsConfig
from equipoise.domains.phenotypes.assertion.detect import detect_assertions
from equipoise.domains.phenotypes.assertion.rules import Assertion
from equipoise.domains.phenotypes.language import validate_language
from equipoise.errors import FormatError
from equipoise.io.text import PathLike, display_path, read_text
from equipoise.stats.intervals import Interval, wilson_interval

_MARKED = re.compile(r"\[([^\]|\[]+)\|([^\]|\[]+)\]")
_CODES = {str(assertion)[0]: assertion for assertion in Assertion}


@dataclass(frozen=True, slots=True)
class AssertionCase:
    """A finding in a sentence, and its assertion; ``kind`` is the heading of its section."""

    text: str
    span: tuple[int, int]
    expected: Assertion
    kind: str

    @property
    def finding(self) -> str:
        """The words of the finding."""
        return self.text[slice(*self.span)]


@dataclass(frozen=True)
class AssertionAccuracy:
    """The share of right assertions of a group of cases, with a Wilson interval."""

    group: str
    n_cases: int
    n_right: int
    interval: Interval

    @property
    def value(self) -> float:
        return self.n_right / self.n_cases

    def to_dict(self) -> dict[str, Any]:
        interval = [self.interval.low, self.interval.high]
        return {"group": self.group, "accuracy": self.value, "interval": interval, "n_cases": self.n_cases}


@dataclass(frozen=True)
class AssertionEvaluation:
    """The detected assertion of every case."""

    language: str
    cases: tuple[AssertionCase, ...]
    detected: tuple[Assertion, ...]
    confidence_level: float = CONFIDENCE_LEVEL

    @property
    def total(self) -> AssertionAccuracy:
        """The accuracy on all cases."""
        return self._accuracies(lambda case: "all")[0]

    @property
    def by_kind(self) -> list[AssertionAccuracy]:
        """The accuracy of each section."""
        return self._accuracies(lambda case: case.kind)

    @property
    def by_assertion(self) -> list[AssertionAccuracy]:
        """The accuracy of each expected assertion."""
        return self._accuracies(lambda case: str(case.expected))

    @property
    def errors(self) -> list[tuple[AssertionCase, Assertion]]:
        """The cases with a wrong assertion, and what was detected."""
        pairs = zip(self.cases, self.detected, strict=True)
        return [(case, assertion) for case, assertion in pairs if assertion is not case.expected]

    def to_dict(self) -> dict[str, Any]:
        groups = {"by_kind": self.by_kind, "by_assertion": self.by_assertion}
        return {
            "language": self.language,
            **self.total.to_dict(),
            **{name: [group.to_dict() for group in listed] for name, listed in groups.items()},
            "errors": [
                {"text": case.text, "finding": case.finding, "expected": case.expected, "detected": detected}
                for case, detected in self.errors
            ],
        }

    def _accuracies(self, group_of: Callable[[AssertionCase], str]) -> list[AssertionAccuracy]:
        outcomes: dict[str, list[bool]] = {}
        for case, assertion in zip(self.cases, self.detected, strict=True):
            outcomes.setdefault(group_of(case), []).append(assertion is case.expected)
        return [
            AssertionAccuracy(
                name, len(right), sum(right), wilson_interval(sum(right), len(right), self.confidence_level)
            )
            for name, right in outcomes.items()
        ]


def evaluate_assertions(
    language: str = "en", cases: Iterable[AssertionCase] | None = None, *, config: StatsConfig = DEFAULT_STATS
) -> AssertionEvaluation:
    """Detect the assertion of every case of a language.

    Parameters
    ----------
    language
        ``en`` or ``de``.
    cases
        The cases; by default the included sentences.
    config
        Its confidence level is that of the Wilson intervals; they need no other option.

    Returns
    -------
    AssertionEvaluation
        The accuracy in all and by section, with intervals, and every case that was wrong.

    Examples
    --------
    >>> evaluate_assertions("de").total.n_cases >= 300
    True
    """
    code = validate_language(language)
    listed = tuple(read_assertion_cases(code) if cases is None else cases)
    by_text: dict[str, list[AssertionCase]] = {}
    for case in listed:
        by_text.setdefault(case.text, []).append(case)
    detected: dict[AssertionCase, Assertion] = {}
    for text, of_text in by_text.items():
        spans = [case.span for case in of_text]
        detected |= dict(zip(of_text, detect_assertions(text, spans, code, names=spans), strict=True))
    return AssertionEvaluation(code, listed, tuple(detected[case] for case in listed), config.confidence_level)


def read_assertion_cases(source: PathLike) -> list[AssertionCase]:
    """The cases of a file, or those of the project by language (``en``, ``de``).

    Each line is a sentence in which findings are marked with the first letter of their assertion:
    ``No [fever|n], but [cough|a].`` A line that starts with ``#`` is the heading of a section.
    """
    if str(source) in ("en", "de"):
        with as_file(files(__package__) / f"cases_{source}.txt") as path:
            return _parse_cases(read_text(path).splitlines(), f"cases_{source}.txt")
    return _parse_cases(read_text(source).splitlines(), display_path(source))


def _parse_cases(lines: Sequence[str], source: str) -> list[AssertionCase]:
    cases: list[AssertionCase] = []
    kind = "all"
    for number, line in enumerate(map(str.strip, lines), start=1):
        if line.startswith("# "):
            kind = line.removeprefix("# ")
            continue
        text, position, spans = "", 0, []
        for match in _MARKED.finditer(line):
            text += line[position : match.start()]
            expected = _CODES.get(match[2][:1])
            if expected is None:
                raise FormatError(
                    f"{source} line {number} has the assertion {match[2]!r}", hint=f"write one of {', '.join(_CODES)}"
                )
            spans.append(((len(text), len(text) + len(match[1])), expected))
            text, position = text + match[1], match.end()
        text += line[position:]
        cases += [AssertionCase(text, span, expected, kind) for span, expected in spans]
    if not cases:
        raise FormatError(f"{source} marks no finding", hint="write such as: No [fever|n], but [cough|a].")
    return cases
