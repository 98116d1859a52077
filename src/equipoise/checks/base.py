"""Checks and their subjects. A check has a code, a function that detects problems, a rationale and a hint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from equipoise.evidence.ranking import Ranking
from equipoise.stats.alignment import SPEC
from equipoise.types import Finding, Severity

if TYPE_CHECKING:
    from equipoise.geometry.base import Geometry
    from equipoise.metrics.base import Metric
    from equipoise.stats.result import Result

SHOWN = 5
KEPT = 20


class Observation(NamedTuple):
    """One detection of a check; the check adds code and severity, and its hint if none is given."""

    subject: str
    message: str
    evidence: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True)
class Check:
    """One kind of problem: its subject type, its detection, why it matters, and what to do.

    ``function`` takes a subject of type ``applies_to`` and yields one observation per problem.
    ``example`` is Python whose last line has findings with this code.
    """

    code: str
    title: str
    severity: Severity
    applies_to: type | UnionType
    function: Callable[[Any], Iterator[Observation]]
    why: str
    hint: str
    example: str

    def findings(self, subject: object) -> Iterator[Finding]:
        """The findings about a subject; none if it has another type."""
        if not isinstance(subject, self.applies_to):
            return
        for observation in self.function(subject):
            yield Finding(
                code=self.code,
                severity=self.severity,
                subject=observation.subject,
                message=observation.message,
                hint=observation.hint or self.hint,
                evidence=observation.evidence,
            )


def join_names(names: Sequence[object]) -> str:
    """The first few names, and how many more there are.

    >>> join_names(["q1", "q2", "q3", "q4", "q5", "q6", "q7"])
    'q1, q2, q3, q4, q5 and 2 more'
    """
    shown = ", ".join(str(name) for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def evidence_names(names: Sequence[object]) -> tuple[str, ...]:
    """The first names as evidence of a finding, and how many more there are."""
    rest = len(names) - KEPT
    return (*(str(name) for name in names[:KEPT]), *((f"and {rest} more",) if rest > 0 else ()))


def pluralize(count: int, noun: str, plural: str = "") -> str:
    """A number and its noun: ``1 unit``, ``3 units``; ``plural`` for nouns that do not just add an s.

    >>> pluralize(2, "entry", "entries")
    '2 entries'
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


@dataclass(frozen=True)
class ScoredResult:
    """A result with its metrics; its evidence is as observed, including ties."""

    result: Result
    metrics: Mapping[str, Metric[Any]]

    @property
    def system(self) -> str:
        """The name of the system, the subject of most findings."""
        return self.result.system

    @property
    def primary(self) -> Metric[Any]:
        """The metric that was named first."""
        return next(iter(self.metrics.values()))

    @property
    def ranking(self) -> Ranking | None:
        """The evidence if it is a ranking, else None."""
        evidence = self.result.evidence
        return evidence if isinstance(evidence, Ranking) else None


@dataclass(frozen=True)
class UnitSets:
    """The unit ids that each of several systems was measured on."""

    systems: Mapping[str, Sequence[object]]


@dataclass(frozen=True)
class NamedPoints:
    """Vectors with their geometry and a name."""

    name: str
    vectors: Any
    geometry: Geometry


@dataclass(frozen=True)
class TruncationStats:
    """Truncation by the input window of a model: the window, the texts and what was truncated; None is unknown."""

    model: str
    tokens: int | None
    texts: int
    truncated: int | None
    lost_tokens: int | None


@dataclass(frozen=True)
class ComparedSystems:
    """The systems of a comparison, by their specs."""

    specs: Sequence[str]

    @classmethod
    def of_results(cls, results: Sequence[Result]) -> Self:
        """The specs of the results; empty if one of them has none."""
        specs = [result.settings.get(SPEC) for result in results]
        return cls([] if None in specs else [str(spec) for spec in specs])
