"""The things that checks look at, beside a ``Comparison``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from equipoise.evidence.ranking import Ranking
from equipoise.geometry.base import Geometry
from equipoise.metrics.base import Metric
from equipoise.stats.result import Result
from equipoise.stats.terms import SPEC


@dataclass(frozen=True)
class Scored:
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
class Embedded:
    """Vectors, the geometry they are meant for, and what to call them."""

    name: str
    vectors: Any
    geometry: Geometry


@dataclass(frozen=True)
class Window:
    """How many texts were longer than what a model reads, and what it did not read; None is unknown."""

    model: str
    tokens: int | None
    texts: int
    truncated: int | None
    lost_tokens: int | None


@dataclass(frozen=True)
class LineUp:
    """The systems that are about to be compared, by their specs."""

    specs: Sequence[str]

    @classmethod
    def of_results(cls, results: Sequence[Result]) -> Self:
        """The specs that the results name; none where one of them does not say what was measured."""
        specs = [result.settings.get(SPEC) for result in results]
        return cls([] if None in specs else [str(spec) for spec in specs])
