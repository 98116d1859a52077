"""A published table as the laws see it: rows of figures, each between two ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, wraps
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from equipoise.audit.assumptions import Assumption, TableContext
from equipoise.checks.base import Observation
from equipoise.evidence.space import Space
from equipoise.metrics.catalogue import builtin
from equipoise.stats.formatting import format_value

if TYPE_CHECKING:
    from equipoise.audit.composite_rules import Compared
    from equipoise.io.published.numbers import PrintedNumber
    from equipoise.metrics.base import Metric

# What a published figure measures: a metric of the catalogue, with no more parameters than were spelled.

AVERAGES = ("micro", "macro", "weighted")
_INDEX_UNITS = ("fraction", "correlation", "index", "cosine")
"""Units whose figures people multiply by 100."""
_STANDARD_SPACE = ("Silhouette", "MeanCosine", "NormDepth")
"""Metrics of embedding spaces that are defined alike everywhere."""


@dataclass(frozen=True, slots=True)
class PublishedMetric:
    """A metric by symbol, cutoff and parameters; the average of P, R and F1 is None unless it was spelled.

    >>> PublishedMetric("MAP", 10, (("norm", "R"),)).name
    'MAP(norm=R)@10'
    """

    symbol: str
    k: int | None = None
    parameters: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, metric: Metric[Any], *, average: str | None = None) -> PublishedMetric:
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


# Interval arithmetic: between which ends a figure lies, when only its printed digits are known.

SLACK = 1e-6
"""Figures nearer than this are equal: some programs compute in single precision, and none prints more."""
_PLACES = 6


@dataclass(frozen=True, slots=True)
class ValueRange:
    """All values from ``low`` to ``high``.

    >>> ValueRange(0.25, 0.35) + ValueRange(0.5, 0.5)
    ValueRange(low=0.75, high=0.85)
    """

    low: float
    high: float

    def __add__(self, other: ValueRange) -> ValueRange:
        return ValueRange(self.low + other.low, self.high + other.high)

    def __mul__(self, factor: float) -> ValueRange:
        """Scaled by a number that is not negative."""
        return ValueRange(self.low * factor, self.high * factor)

    def above(self, other: ValueRange) -> bool:
        """Whether every value here exceeds every value there."""
        return self.low > other.high + SLACK

    def apart(self, other: ValueRange) -> bool:
        """Whether the two can have no value in common."""
        return self.above(other) or other.above(self)

    def within(self, low: float, high: float) -> ValueRange:
        """The part between two bounds; the span itself where it lies wholly beyond one of them."""
        if self.high < low or self.low > high:
            return self
        return ValueRange(max(self.low, low), min(self.high, high))

    def __str__(self) -> str:
        low, high = format_digits(self.low), format_digits(self.high)
        return low if low == high else f"{low} to {high}"


def format_digits(value: float, places: int = _PLACES) -> str:
    """A number without the zeros at its end.

    >>> format_digits(0.5), format_digits(2 / 3, 4), format_digits(3.0)
    ('0.5', '0.6667', '3')
    """
    text = format_value(value, places)
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True)
class PublishedValue:
    """A figure with what was printed and, as a fraction or a rank, where it must lie."""

    measure: PublishedMetric
    label: str
    printed: PrintedNumber
    span: ValueRange
    n: int | None = None
    ends: tuple[ValueRange, ValueRange] | None = None
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
class PublishedRow:
    """The figures of one system, what is assumed of them, and what else is known.

    ``others`` are numbers that are no metrics. ``chance`` marks the row of a scorer that knows nothing,
    ``averaged`` one whose figures are means over seeds or data sets, ``chosen`` one of what a search for
    parameters chose.
    """

    __checks__: ClassVar[str] = "equipoise.audit.rules"

    name: str
    figures: tuple[PublishedValue, ...]
    facts: TableContext = field(default_factory=TableContext)
    others: Mapping[str, PrintedNumber] = field(default_factory=dict)
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
    def _by_symbol(self) -> dict[str, list[PublishedValue]]:
        found: dict[str, list[PublishedValue]] = {}
        for each in self.figures:
            found.setdefault(each.measure.symbol, []).append(each)
        return found

    def one(self, symbol: str, k: int | None = None, **parameters: str) -> PublishedValue | None:
        """The figure of this measure, if the row has it."""
        alike = self._by_symbol.get(symbol, [])
        return next((each for each in alike if each.measure.k == k and each.measure.having(parameters)), None)

    def series(self, symbol: str, *, cut: bool = True, **parameters: str) -> list[PublishedValue]:
        """The figures of a metric by cutoff; without ``cut`` also the one that has none, last."""
        alike = self._by_symbol.get(symbol, [])
        found = [each for each in alike if each.measure.having(parameters) and (each.measure.k or not cut)]
        return sorted(found, key=lambda each: each.k)

    def units(self, figure: PublishedValue) -> int | None:
        """On how many units a figure rests."""
        return figure.n if figure.n is not None else self.facts.n

    @cached_property
    def denied(self) -> frozenset[Assumption]:
        """What the table itself says does not hold, or what its figures disprove."""
        from equipoise.audit.assumptions import contradicted_assumptions

        return self.facts.denied | (contradicted_assumptions(self) - self.facts.assumed)


@dataclass(frozen=True)
class AuditedTable:
    """All rows of one source; ``unsure`` are labels that may be percent or fractions."""

    __checks__: ClassVar[str] = "equipoise.audit.rules"

    name: str
    rows: tuple[PublishedRow, ...]
    unsure: tuple[str, ...] = ()
    percents: tuple[str, ...] = ()


# What a law of arithmetic finds: figures that cannot stand together, and the steps that show it.


@dataclass(frozen=True)
class Violation:
    """Figures that contradict each other if all ``needs`` hold; ``steps`` derive it.

    A ``quiet`` one is kept to itself while a need is not declared: it says that the need does not hold
    rather than that the figures are wrong.
    """

    figures: tuple[PublishedValue, ...]
    message: str
    steps: tuple[str, ...]
    needs: tuple[Assumption, ...] = ()
    quiet: bool = False
    hint: str = ""
    subject: str = ""
    """Of what in a table it speaks; empty for the thing that the law looked at."""

    @property
    def key(self) -> tuple[str, ...]:
        """What it is about: two readings of a table that violate the same are the same complaint."""
        return tuple(str(each.measure) for each in self.figures) or (self.message,)

    @property
    def one_cutoff(self) -> bool:
        """Whether all figures have the same cutoff: such a contradiction is the plainest."""
        return len({each.measure.k for each in self.figures}) == 1


AuditRule = Callable[[Any], Iterator[Violation]]
"""A law looks at a row or at a whole table."""


def undeclared_assumptions(thing: PublishedRow | AuditedTable | Compared, violation: Violation) -> list[Assumption]:
    """The needs of a violation that nobody declared."""
    assumed = thing.facts.assumed if isinstance(thing, PublishedRow) else frozenset()
    return [need for need in violation.needs if need not in assumed]


def is_ruled_out(thing: PublishedRow | AuditedTable | Compared, violation: Violation) -> bool:
    """Whether a need of the violation is known not to hold, so that there is nothing to say."""
    return isinstance(thing, PublishedRow) and bool(set(violation.needs) & thing.denied - thing.facts.assumed)


def to_observation(thing: PublishedRow | AuditedTable | Compared, violation: Violation) -> Observation:
    """The violation as a check says it."""
    told = thing.facts.told if isinstance(thing, PublishedRow) else {}
    held = [
        f"given that {need}" + (f', as the text says: "{told[need]}"' if need in told else "")
        for need in violation.needs
    ]
    name = violation.subject or thing.name or "the table"
    return Observation(name, violation.message, (*held, *violation.steps), violation.hint)


def as_check(law: AuditRule) -> Callable[[Any], Iterator[Observation]]:
    """The function of a check: the violations of a law whose needs are all declared."""

    @wraps(law)
    def complaints(thing: PublishedRow | AuditedTable | Compared) -> Iterator[Observation]:
        for violation in law(thing):
            if not undeclared_assumptions(thing, violation) and not is_ruled_out(thing, violation):
                yield to_observation(thing, violation)

    return complaints


def largest_gap(violations: list[tuple[float, Violation]]) -> Iterator[Violation]:
    """Of several violations of one kind the one with the widest gap; the others say the same."""
    if violations:
        yield max(violations, key=lambda pair: (pair[1].one_cutoff, pair[0]))[1]
