"""What a check is: a suspicion with a code, a function that looks, and the words for people."""

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
    """What a function of a check has seen; the check adds code, severity and, where none is given, hint."""

    subject: str
    message: str
    evidence: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True)
class Check:
    """One suspicion: what it looks at, when it complains, why that matters, and what to do.

    ``function`` gets a thing of the type ``applies_to`` and yields a complaint for everything it dislikes.
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

    def findings(self, thing: object) -> Iterator[Finding]:
        """The complaints about a thing; none about a thing of another type."""
        if not isinstance(thing, self.applies_to):
            return
        for seen in self.function(thing):
            yield Finding(
                code=self.code,
                severity=self.severity,
                subject=seen.subject,
                message=seen.message,
                hint=seen.hint or self.hint,
                evidence=seen.evidence,
            )


def join_names(names: Sequence[object]) -> str:
    """The first few names, and how many more there are.

    >>> join_names(["q1", "q2", "q3", "q4", "q5", "q6", "q7"])
    'q1, q2, q3, q4, q5 and 2 more'
    """
    shown = ", ".join(str(name) for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def evidence_names(names: Sequence[object]) -> tuple[str, ...]:
    """Names as evidence of a finding: enough to go and look, not a second copy of the data."""
    rest = len(names) - KEPT
    return (*(str(name) for name in names[:KEPT]), *((f"and {rest} more",) if rest > 0 else ()))


def pluralize(count: int, noun: str, plural: str = "") -> str:
    """A number and its noun: ``1 unit``, ``3 units``; ``plural`` where an s does not make it.

    >>> pluralize(2, "entry", "entries")
    '2 entries'
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


# The things that checks look at, beside a ``Comparison``.


@dataclass(frozen=True)
class ScoredResult:
    """A result with the metrics that made it; its evidence is as observed, ties and all."""

    result: Result
    metrics: Mapping[str, Metric[Any]]

    @property
    def system(self) -> str:
        """The name of the system, the subject of most complaints."""
        return self.result.system

    @property
    def primary(self) -> Metric[Any]:
        """The metric that was named first."""
        return next(iter(self.metrics.values()))

    @property
    def ranking(self) -> Ranking | None:
        """The evidence, where it is a ranking."""
        evidence = self.result.evidence
        return evidence if isinstance(evidence, Ranking) else None


@dataclass(frozen=True)
class UnitSets:
    """The unit ids that each of several systems was measured on."""

    systems: Mapping[str, Sequence[object]]


@dataclass(frozen=True)
class NamedPoints:
    """Vectors, the geometry they are meant for, and what to call them."""

    name: str
    vectors: Any
    geometry: Geometry


@dataclass(frozen=True)
class TruncationStats:
    """How many texts were longer than what a model reads, and what it did not read; None is unknown."""

    model: str
    tokens: int | None
    texts: int
    truncated: int | None
    lost_tokens: int | None


@dataclass(frozen=True)
class ComparedSystems:
    """The systems that are about to be compared, by their specs."""

    specs: Sequence[str]

    @classmethod
    def of_results(cls, results: Sequence[Result]) -> Self:
        """The specs that the results name; none where one of them does not say what was measured."""
        specs = [result.settings.get(SPEC) for result in results]
        return cls([] if None in specs else [str(spec) for spec in specs])
