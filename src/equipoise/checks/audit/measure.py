"""What a published figure measures: a metric of the catalogue, with no more parameters than were spelled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from equipoise.evidence.space import Space
from equipoise.metrics.base import Metric
from equipoise.metrics.catalogue import builtin

AVERAGES = ("micro", "macro", "weighted")
_INDEX_UNITS = ("fraction", "correlation", "index", "cosine")
"""Units whose figures people multiply by 100."""
_STANDARD_SPACE = ("Silhouette", "MeanCosine", "NormDepth")
"""Metrics of embedding spaces that are defined alike everywhere."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric by symbol, cutoff and parameters; the average of P, R and F1 is None unless it was spelled.

    >>> Measure("MAP", 10, (("norm", "R"),)).name
    'MAP(norm=R)@10'
    """

    symbol: str
    k: int | None = None
    parameters: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, metric: Metric[Any], *, average: str | None = None) -> Measure:
        """The measure of a parsed metric; defaults do not count as spelled, and the average is given."""
        found = {
            each.name: str(getattr(metric, each.name))
            for each in fields(metric)  # type: ignore[arg-type]
            if each.name not in ("k", "average") and getattr(metric, each.name) != each.default
        }
        if average is not None:
            found["average"] = average
        return cls(metric.symbol, getattr(metric, "k", None), tuple(sorted(found.items())))

    @property
    def name(self) -> str:
        """The spelling of the catalogue."""
        inner = ",".join(key if value == "True" else f"{key}={value}" for key, value in self.parameters)
        cutoff = "" if self.k is None else f"@{self.k}"
        return f"{self.symbol}{f'({inner})' if inner else ''}{cutoff}"

    def __str__(self) -> str:
        return self.name

    def having(self, parameters: Mapping[str, str]) -> bool:
        """Whether these are all its parameters."""
        return len(self.parameters) == len(parameters) and dict(self.parameters) == parameters

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which values the metric lies."""
        low, high = self._declared.bounds
        return float(low), float(high)

    @property
    def is_share(self) -> bool:
        """Whether people print it in percent as well."""
        return self.is_standard and self._declared.unit in _INDEX_UNITS

    @property
    def is_standard(self) -> bool:
        """Whether its name means one thing: diversity and coherence are other quantities elsewhere."""
        return self._declared.evidence is not Space or self.symbol in _STANDARD_SPACE

    @property
    def _declared(self) -> Any:
        return builtin().named(self.symbol)[0]
