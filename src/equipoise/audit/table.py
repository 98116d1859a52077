"""Data of the audit: the context of a table, published metrics, value ranges, rows, and violations of a rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property, lru_cache, wraps
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from equipoise.checks.base import Observation
from equipoise.errors import ParameterError
from equipoise.evidence.space import Space
from equipoise.io.published.numbers import parse_printed, strip_markup
from equipoise.io.text import parse_number
from equipoise.metrics.parser import builtin
from equipoise.stats.formatting import format_value

if TYPE_CHECKING:
    from equipoise.audit.composite_rules import ScoredSystems
    from equipoise.io.published.numbers import PrintedNumber
    from equipoise.io.published.tables import StatedFact, TableCell
    from equipoise.metrics.base import Metric


# The context of a table: counts of units, classes and candidates, and the assumptions that rules depend on.

_COUNTED = "(?:n|num|number_of|total)?_?"
_UNITS = "queries|questions|units|cases|instances|topics"
UNITS = re.compile(rf"n|num_q|(?:n|num|number_of|total|test|n_test)?_?(?:{_UNITS})|(?:n_)?test_(?:samples|examples)")
OTHER_COUNTS = re.compile(rf"{_COUNTED}(?:documents|samples|examples|labels|trials)")
"""Counts that may be of units, of their parts, or of answers."""
CLASSES = re.compile(r"(?:n|num|number_of)?_?(?:classes|locations)|vocab(?:ulary)?(?:_size)?")
CANDIDATES = re.compile(r"(?:n|num|number_of)?_?candidates|corpus_size")
TRIALS = re.compile(
    r"(?:n|num|number_of)?_?(?:(?:configurations|configs)(?:_tested|_tried)?|trials_(?:tested|tried))|grid_size"
)
RELEVANT = re.compile(r"(?:n_|num_)?relevant_(?:per_)?(?:query|unit|item|document)")
BROKEN_TIES = ("by_id", "optimistic", "pessimistic", "none", "broken", "no")
LIBRARIES = ("trec_eval", "pytrec_eval", "ranx", "beir", "sentence-transformers", "torchmetrics", "sklearn")
"""Libraries without averaging over ties: every unit is a hit or a miss. mteb does so for ranked lists only."""
_CUT = re.compile(r".*(?:@|_at_)\d+")
MTEB = "mteb"
OVER_RELEVANT = ("trec_eval", "pytrec_eval", "ranx", MTEB, "beir", "sentence-transformers")
"""Libraries whose average precision is divided by the number of relevant items, cut or not."""


ANN = re.compile(
    r"(?i)(?<![a-z0-9])(?:qps|hnsw\w*|ivf\w*|faiss|scann|annoy|nmslib|diskann|ef_?search|ef_?construction|"
    r"n_?probes?|ann)(?![a-z0-9])"
)
"""Terms of approximate nearest-neighbour search, where recall counts true neighbours."""


class Assumption(StrEnum):
    """A condition under which a rule holds."""

    ONE_RELEVANT = "every query has one relevant item"
    BINARY = "items are relevant or not, without grades"
    HITS = "every query is a hit or a miss, without averaging over tied scores"
    OVER_RELEVANT = "average precision is divided by the relevant items, not by those that were found"
    EXPECTED = "the row gives expected chance levels and was not measured"
    MEAN_RANK = "MR is a mean rank and not a miss rate"
    FRACTIONS = "the values are fractions and not percent below 1"
    PLAIN_MEAN = "the average is the unweighted mean of the values shown in the table"
    FIXED_RELEVANT = (
        "recall is over the same relevant items at every cutoff, and not ANN recall, the overlap of the k "
        "nearest neighbours"
    )


OPTION_OF_ASSUMPTION = {
    Assumption.ONE_RELEVANT: "--one-relevant",
    Assumption.BINARY: "--binary",
    Assumption.HITS: "--no-ties",
    Assumption.OVER_RELEVANT: "--map-over-relevant",
}
"""The option that declares an assumption. The number of units declares that a row was measured."""


@dataclass(frozen=True)
class TableContext:
    """The context of one record; None is unknown.

    ``averaged`` means that the values are means over experiments, ``tuned`` that parameters were selected, and
    ``stated`` quotes the text around the table per assumption; values may contradict it.
    """

    n: int | None = None
    classes: int | None = None
    candidates: int | None = None
    trials: int | None = None
    confidence_level: float | None = None
    assumed: frozenset[Assumption] = frozenset()
    rejected: frozenset[Assumption] = frozenset()
    nested: bool = False
    averaged: bool = False
    tuned: bool = False
    stated: Mapping[Assumption, str] = field(default_factory=dict)


def parse_context(cells: Iterable[TableCell], location: str, statements: Iterable[StatedFact] = ()) -> TableContext:
    """The context that the cells of a record give. An impossible count is an error."""
    counts: dict[str, int] = {}
    texts: dict[str, str] = {}
    disputed: set[str] = set()
    for label, text, *_ in cells:
        key, name = _read(label)
        texts.setdefault(key, strip_markup(text).casefold())
        if name and (key == "n" or parse_printed(text) is not None) and text.strip():
            recorded = counts.setdefault(name, parse_count(text, f"{label} of {location}"))
            disputed |= {name} if recorded != parse_count(text, label) else set()
    assumed, rejected = _conventions(texts)
    if ANN.search(f"{location} {' '.join(texts)}"):
        rejected |= {Assumption.FIXED_RELEVANT}
    return TableContext(
        # With two different counts of units, it is open which of them the values have.
        n=None if "n" in disputed else counts.get("n"),
        classes=counts.get("classes"),
        candidates=counts.get("candidates"),
        trials=counts.get("trials"),
        confidence_level=_level(texts.get("level", "")),
        assumed=assumed,
        rejected=rejected,
        nested=any("nested" in key or "held_out" in key for key in texts),
        averaged="scores_per_experiment" in texts,
        tuned=any(TUNED.fullmatch(key) for key in texts),
        stated={
            need: statement.quote
            for statement in statements
            for need in _IMPLIED.get((statement.label, statement.text), ())
        },
    )


TUNED = re.compile(r"best_(?:params|parameters|config(?:uration)?)")
_IMPLIED = {
    ("relation", "parent"): (Assumption.ONE_RELEVANT, Assumption.BINARY, Assumption.OVER_RELEVANT),
    ("map_over", "relevant"): (Assumption.OVER_RELEVANT,),
}
"""The assumptions that a stated fact implies."""
_COUNTS = {"n": UNITS, "classes": CLASSES, "candidates": CANDIDATES, "trials": TRIALS}


@lru_cache(maxsize=4096)
def label_key(label: str) -> str:
    """A label in lower case with underscores for blanks and dashes."""
    return re.sub(r"[\s-]+", "_", strip_markup(label).strip().casefold())


@lru_cache(maxsize=4096)
def _read(label: str) -> tuple[str, str]:
    """A label in lower case with underscores, and what it counts, if anything."""
    key = label_key(label)
    return key, next((name for name, pattern in _COUNTS.items() if pattern.fullmatch(key)), "")


def parse_count(value: object, subject: str) -> int:
    """A positive integer."""
    text = str(value).strip().replace(",", "")
    try:
        number = parse_number(text)
    except ValueError:
        number = 0
    if number != int(number) or number < 1:
        raise ParameterError(f"{subject} is {value}", hint="a count is an integer from 1")
    return int(number)


def is_count_label(label: str) -> bool:
    """Whether the label names a count."""
    key, name = _read(label)
    return bool(name) or OTHER_COUNTS.fullmatch(key) is not None


def _conventions(texts: dict[str, str]) -> tuple[frozenset[Assumption], frozenset[Assumption]]:
    assumed, rejected = set(), set()
    one = texts.get("one_relevant") == "true" or texts.get("relation") == "parent"
    for key, text in texts.items():
        if RELEVANT.fullmatch(key):
            one, several = one or text == "1", text not in ("1", "")
            rejected |= {Assumption.ONE_RELEVANT} if several else set()
    ties = texts.get("ties", "")
    library = texts.get("library", texts.get("evaluator", ""))
    mteb = library == MTEB or "mteb_version" in texts
    # Classification tasks of mteb report means over several experiments.
    if ties in BROKEN_TIES or library in LIBRARIES or (mteb and any(map(_CUT.match, texts))):
        assumed.add(Assumption.HITS)
    if library in OVER_RELEVANT or mteb:
        assumed.add(Assumption.OVER_RELEVANT)
    elif library == "torchmetrics":
        rejected.add(Assumption.OVER_RELEVANT)
    if ties == "expected":
        rejected.add(Assumption.HITS)
    if texts.get("relevance") == "binary":
        assumed.add(Assumption.BINARY)
    elif texts.get("relevance") == "graded":
        rejected.add(Assumption.BINARY)
    if one:
        assumed |= {Assumption.ONE_RELEVANT, Assumption.BINARY}
    return frozenset(assumed), frozenset(rejected - assumed)


def _level(text: str) -> float | None:
    try:
        level = float(parse_number(text.rstrip("% ")))
    except ValueError:
        return None
    level = level / 100 if level > 1 else level
    return level if 0 < level < 1 else None


# Published metrics, values, rows and violations.

AVERAGES = ("micro", "macro", "weighted")
_INDEX_UNITS = ("fraction", "correlation", "index", "cosine")
"""Units that are often printed in percent."""
_STANDARD_SPACE = ("Silhouette", "MeanCosine", "NormDepth")
"""Metrics of embedding spaces with one common definition."""


@dataclass(frozen=True, slots=True)
class PublishedMetric:
    """A metric by symbol, cutoff and parameters; the average of P, R and F1 is None unless the label names it."""

    symbol: str
    k: int | None = None
    parameters: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, metric: Metric[Any], *, average: str | None = None) -> PublishedMetric:
        """The published metric of a parsed one. Only parameters that differ from their default are kept."""
        parameters = {
            field.name: str(getattr(metric, field.name))
            for field in fields(metric)  # type: ignore[arg-type]
            if field.name not in ("k", "average") and getattr(metric, field.name) != field.default
        }
        if average is not None:
            parameters["average"] = average
        return cls(metric.symbol, getattr(metric, "k", None), tuple(sorted(parameters.items())))

    @property
    def name(self) -> str:
        """The name in the catalogue."""
        inner = ",".join(key if value == "True" else f"{key}={value}" for key, value in self.parameters)
        cutoff = "" if self.k is None else f"@{self.k}"
        return f"{self.symbol}{f'({inner})' if inner else ''}{cutoff}"

    def __str__(self) -> str:
        return self.name

    def matches(self, parameters: Mapping[str, str]) -> bool:
        """Whether these are all its parameters."""
        return len(self.parameters) == len(parameters) and dict(self.parameters) == parameters

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest possible value."""
        low, high = self._declared.bounds
        return float(low), float(high)

    @property
    def is_fraction(self) -> bool:
        """Whether it is also printed in percent."""
        return self.is_standard and self._declared.unit in _INDEX_UNITS

    @property
    def is_standard(self) -> bool:
        """Whether its name has one common definition; diversity and coherence have several."""
        return self._declared.evidence is not Space or self.symbol in _STANDARD_SPACE

    @property
    def _declared(self) -> Any:
        return builtin().named(self.symbol)[0]


# Interval arithmetic on the range of values that round to the printed digits.

REQUIRES_ONE_RELEVANT, REQUIRES_BINARY = (Assumption.ONE_RELEVANT,), (Assumption.BINARY,)
SLACK = 1e-6
"""Tolerance of equality, for programs that compute in single precision."""
_PLACES = 6


@dataclass(frozen=True, slots=True)
class ValueRange:
    """All values from ``low`` to ``high``."""

    low: float
    high: float

    def __add__(self, other: ValueRange) -> ValueRange:
        return ValueRange(self.low + other.low, self.high + other.high)

    def __mul__(self, factor: float) -> ValueRange:
        """Scale by a non-negative number."""
        return ValueRange(self.low * factor, self.high * factor)

    def is_above(self, other: ValueRange) -> bool:
        """Whether every value of this range exceeds every value of the other."""
        return self.low > other.high + SLACK

    def is_disjoint(self, other: ValueRange) -> bool:
        """Whether the two ranges have no value in common."""
        return self.is_above(other) or other.is_above(self)

    def widened(self, amount: float) -> ValueRange:
        """The range with both ends moved outwards."""
        return ValueRange(self.low - amount, self.high + amount)

    def within(self, low: float, high: float) -> ValueRange:
        """The part between two bounds, or the range unchanged if it is wholly outside them."""
        if self.high < low or self.low > high:
            return self
        return ValueRange(max(self.low, low), min(self.high, high))

    def __str__(self) -> str:
        low, high = format_digits(self.low), format_digits(self.high)
        return low if low == high else f"{low} to {high}"


def format_digits(value: float, decimals: int = _PLACES) -> str:
    """A number without trailing zeros.

    >>> format_digits(0.5), format_digits(2 / 3, 4), format_digits(3.0)
    ('0.5', '0.6667', '3')
    """
    text = format_value(value, decimals)
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True)
class PublishedValue:
    """A printed value and the range of numbers that are printed this way, as a fraction or a rank."""

    metric: PublishedMetric
    label: str
    printed: PrintedNumber
    range: ValueRange
    n: int | None = None
    interval: tuple[ValueRange, ValueRange] | None = None
    interval_text: str = ""
    """The interval as printed: ``88.3 to 97.4``."""

    @property
    def k(self) -> float:
        """The cutoff; infinity if there is none."""
        return inf if self.metric.k is None else self.metric.k

    @property
    def text(self) -> str:
        """The number as printed in the table."""
        sign = "%" if self.printed.percent and "%" not in self.printed.text else ""
        return f"{self.printed.text}{sign}"

    def __str__(self) -> str:
        return f"{self.metric} {self.text}"

    @property
    def derivation_step(self) -> str:
        """A step of a derivation: the range that the printed digits imply."""
        return f"{self} is printed, so the value is {self.range}"


@dataclass(frozen=True)
class PublishedRow:
    """The values of one system, with the declared and stated context.

    ``other_numbers`` are numbers that are not metrics. ``chance`` marks a random baseline, ``averaged`` means over
    seeds or data sets, ``is_exact`` values at full precision, and ``is_selected`` the best configuration of a
    parameter search.
    """

    __checks__: ClassVar[str] = "equipoise.audit.rules"

    name: str
    values: tuple[PublishedValue, ...]
    context: TableContext = field(default_factory=TableContext)
    other_numbers: Mapping[str, PrintedNumber] = field(default_factory=dict)
    chance: bool = False
    averaged: bool = False
    is_exact: bool = False
    is_selected: bool = False
    label: str = ""
    """The name of its record in the table; ``record`` is the index of that record."""
    record: int = 0
    group: str = ""
    """The prefix that its columns share, such as a data set."""
    header: str = ""
    """The label of the column that names the rows."""

    @cached_property
    def _by_symbol(self) -> dict[str, list[PublishedValue]]:
        by_symbol: dict[str, list[PublishedValue]] = {}
        for value in self.values:
            by_symbol.setdefault(value.metric.symbol, []).append(value)
        return by_symbol

    def value_of(self, symbol: str, k: int | None = None, **parameters: str) -> PublishedValue | None:
        """The value of a metric, or None."""
        values = self._by_symbol.get(symbol, [])
        return next((value for value in values if value.metric.k == k and value.metric.matches(parameters)), None)

    def values_by_cutoff(self, symbol: str, *, require_cutoff: bool = True, **parameters: str) -> list[PublishedValue]:
        """The values of a metric by cutoff. Without ``require_cutoff``, the value without one comes last."""
        values = self._by_symbol.get(symbol, [])
        matching = [
            value for value in values if value.metric.matches(parameters) and (value.metric.k or not require_cutoff)
        ]
        return sorted(matching, key=lambda value: value.k)

    def n_units(self, value: PublishedValue) -> int | None:
        """The number of units of a value."""
        return value.n if value.n is not None else self.context.n

    @cached_property
    def rejected(self) -> frozenset[Assumption]:
        """Assumptions that the table rejects or its values contradict."""
        return self.context.rejected | (contradicted_assumptions(self) - self.context.assumed)


@dataclass(frozen=True)
class AuditedTable:
    """All rows of one source; ``ambiguous_columns`` are labels that may be percent or fractions."""

    __checks__: ClassVar[str] = "equipoise.audit.rules"

    name: str
    rows: tuple[PublishedRow, ...]
    ambiguous_columns: tuple[str, ...] = ()
    percents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Violation:
    """Values that contradict each other if all ``assumptions`` hold: ``why``, the values, and what follows (``so``).

    ``silent_if_undeclared`` suppresses the note if an assumption is not declared: the contradiction then shows
    that the assumption does not hold, not that the values are wrong.
    """

    values: tuple[PublishedValue, ...]
    message: str
    why: tuple[str, ...]
    assumptions: tuple[Assumption, ...] = ()
    silent_if_undeclared: bool = False
    hint: str = ""
    subject: str = ""
    """The part of the table that it concerns; empty for the subject of the rule."""
    so: tuple[str, ...] = ()
    gap: float = 0.0
    """The distance between the values."""

    @property
    def steps(self) -> tuple[str, ...]:
        """The derivation: the reason, the ranges that the printed digits imply, and what follows from both."""
        return (*self.why, *(value.derivation_step for value in self.values), *self.so)

    @property
    def key(self) -> tuple[str, ...]:
        """Its identity: two interpretations of a table with the same key give the same finding."""
        return tuple(str(value.metric) for value in self.values) or (self.message,)

    @property
    def one_cutoff(self) -> bool:
        """Whether all values have the same cutoff, which is the simplest contradiction to read."""
        return len({value.metric.k for value in self.values}) == 1


AuditRule = Callable[[Any], Iterator[Violation]]
"""A rule takes a row, a table or all systems of a source."""


def undeclared_assumptions(
    subject: PublishedRow | AuditedTable | ScoredSystems, violation: Violation
) -> list[Assumption]:
    """The assumptions of a violation that are not declared."""
    assumed = subject.context.assumed if isinstance(subject, PublishedRow) else frozenset()
    return [need for need in violation.assumptions if need not in assumed]


def is_ruled_out(subject: PublishedRow | AuditedTable | ScoredSystems, violation: Violation) -> bool:
    """Whether an assumption of the violation is known to be false."""
    return isinstance(subject, PublishedRow) and bool(
        set(violation.assumptions) & subject.rejected - subject.context.assumed
    )


def to_observation(subject: PublishedRow | AuditedTable | ScoredSystems, violation: Violation) -> Observation:
    """The violation as an observation of a check."""
    stated = subject.context.stated if isinstance(subject, PublishedRow) else {}
    conditions = [
        f"given that {need}" + (f', as the text says: "{stated[need]}"' if need in stated else "")
        for need in violation.assumptions
    ]
    name = violation.subject or subject.name or "the table"
    return Observation(name, violation.message, (*conditions, *violation.steps), violation.hint)


def as_check(rule: AuditRule) -> Callable[[Any], Iterator[Observation]]:
    """The function of a check: the violations of a rule whose assumptions are all declared."""

    @wraps(rule)
    def observations(subject: PublishedRow | AuditedTable | ScoredSystems) -> Iterator[Observation]:
        for violation in rule(subject):
            if not undeclared_assumptions(subject, violation) and not is_ruled_out(subject, violation):
                yield to_observation(subject, violation)

    return observations


def largest_gap(violations: Iterable[Violation]) -> Iterator[Violation]:
    """The violation with the largest gap, preferring those at one cutoff; the others add nothing."""
    listed = list(violations)
    if listed:
        yield max(listed, key=lambda violation: (violation.one_cutoff, violation.gap))


def _listed(values: Sequence[PublishedValue]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}" if first else last


def too_large(
    target: PublishedValue,
    others: Sequence[PublishedValue],
    most: float,
    why: tuple[str, ...],
    so: str,
    assumptions: tuple[Assumption, ...] = (),
) -> Iterator[Violation]:
    """A violation if a value is above the largest one that others allow; ``so`` is the conclusion up to that value."""
    if target.range.low > most + SLACK:
        sentence = f"{target} is too large for {_listed(others)}: at most {format_digits(most, 4)}"
        conclusion = f"{so} at most {format_digits(most)}"
        yield Violation((target, *others), sentence, why, assumptions, so=(conclusion,), gap=target.range.low - most)


def too_small(
    target: PublishedValue,
    others: Sequence[PublishedValue],
    least: float,
    why: tuple[str, ...],
    so: str,
    assumptions: tuple[Assumption, ...] = (),
    hint: str = "",
) -> Iterator[Violation]:
    """The same for the smallest value that others allow."""
    if target.range.high < least - SLACK:
        sentence = f"{target} is too small for {_listed(others)}: at least {format_digits(least, 4)}"
        conclusion = f"{so} at least {format_digits(least)}"
        yield Violation(
            (target, *others), sentence, why, assumptions, hint=hint, so=(conclusion,), gap=least - target.range.high
        )


def contradicted_assumptions(row: PublishedRow) -> frozenset[Assumption]:
    """The assumptions that the values of a row contradict."""
    contradicted = set()
    if _several_relevant(row):
        contradicted.add(Assumption.ONE_RELEVANT)
    gain, hits = row.value_of("nDCG", 1), row.value_of("HR", 1)
    if gain and hits and hits.range.is_above(gain.range):
        contradicted.add(Assumption.BINARY)
    return frozenset(contradicted)


def _several_relevant(row: PublishedRow) -> bool:
    """With one relevant item recall is the hit rate, precision its k-th part, and MAP is MRR."""
    for hits in row.values_by_cutoff("HR"):
        k = int(hits.k)
        recall, precision = row.value_of("R", k), row.value_of("P", k)
        if recall and recall.range.is_disjoint(hits.range):
            return True
        if precision and k > 1 and (precision.range * k).is_disjoint(hits.range):
            return True
    return any(
        reciprocal.range.is_disjoint(average.range)
        for average in row.values_by_cutoff("MAP", require_cutoff=False)
        if (reciprocal := row.value_of("MRR", average.metric.k)) is not None
    )
