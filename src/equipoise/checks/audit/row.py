"""A published table as the laws see it: rows of figures, each between two ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import ClassVar

from equipoise.checks.audit.facts import Facts, Need
from equipoise.checks.audit.measure import Measure
from equipoise.checks.audit.span import Span
from equipoise.data.published.printed import Printed


@dataclass(frozen=True)
class Figure:
    """A figure with what was printed and, as a fraction or a rank, where it must lie."""

    measure: Measure
    label: str
    printed: Printed
    span: Span
    n: int | None = None
    ends: tuple[Span, Span] | None = None
    ends_text: str = ""
    """The ends as they are printed: ``88.3 to 97.4``."""

    @property
    def k(self) -> float:
        """The cutoff; none is beyond every list."""
        return inf if self.measure.k is None else self.measure.k

    @property
    def text(self) -> str:
        """The number as it stands in the table."""
        sign = "%" if self.printed.percent and "%" not in self.printed.text else ""
        return f"{self.printed.text}{sign}"

    def __str__(self) -> str:
        return f"{self.measure} {self.text}"

    @property
    def read(self) -> str:
        """A step of a derivation: what the digits say of the value."""
        return f"{self} is printed, so the value is {self.span}"


@dataclass(frozen=True)
class Row:
    """The figures of one system, what is assumed of them, and what else is known.

    ``others`` are numbers that are no metrics. ``chance`` marks the row of a scorer that knows nothing,
    ``averaged`` one whose figures are means over seeds or data sets, ``chosen`` one of what a search for
    parameters chose.
    """

    __checks__: ClassVar[str] = "equipoise.checks.audit.laws"

    name: str
    figures: tuple[Figure, ...]
    facts: Facts = field(default_factory=Facts)
    others: Mapping[str, Printed] = field(default_factory=dict)
    chance: bool = False
    averaged: bool = False
    own: bool = False
    chosen: bool = False
    label: str = ""
    """The name of its record in the table, and ``record`` its number there."""
    record: int = 0
    group: str = ""
    """What its columns share, such as a data set."""
    header: str = ""
    """The label of the column that names the rows."""

    @cached_property
    def _by_symbol(self) -> dict[str, list[Figure]]:
        found: dict[str, list[Figure]] = {}
        for each in self.figures:
            found.setdefault(each.measure.symbol, []).append(each)
        return found

    def one(self, symbol: str, k: int | None = None, **parameters: str) -> Figure | None:
        """The figure of this measure, if the row has it."""
        alike = self._by_symbol.get(symbol, [])
        return next((each for each in alike if each.measure.k == k and each.measure.having(parameters)), None)

    def series(self, symbol: str, *, cut: bool = True, **parameters: str) -> list[Figure]:
        """The figures of a metric by cutoff; without ``cut`` also the one that has none, last."""
        alike = self._by_symbol.get(symbol, [])
        found = [each for each in alike if each.measure.having(parameters) and (each.measure.k or not cut)]
        return sorted(found, key=lambda each: each.k)

    def units(self, figure: Figure) -> int | None:
        """On how many units a figure rests."""
        return figure.n if figure.n is not None else self.facts.n

    @cached_property
    def denied(self) -> frozenset[Need]:
        """What the table itself says does not hold, or what its figures disprove."""
        from equipoise.checks.audit.disproof import disproved

        return self.facts.denied | (disproved(self) - self.facts.assumed)


@dataclass(frozen=True)
class Table:
    """All rows of one source; ``unsure`` are labels that may be percent or fractions."""

    __checks__: ClassVar[str] = "equipoise.checks.audit.laws"

    name: str
    rows: tuple[Row, ...]
    unsure: tuple[str, ...] = ()
    percents: tuple[str, ...] = ()
