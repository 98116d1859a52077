"""The result of comparing two libraries: scores, effects of conventions, changed units, and one worked example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, isnan, log2
from typing import TYPE_CHECKING, Any

from equipoise.reproduce.presets import CONVENTIONS, Conventions, Value
from equipoise.stats.formatting import format_count, format_ranks, format_value

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.reproduce.emulation import RunAndQrels
    from equipoise.reproduce.tie_orders import Scores

PLACES = 4
MOST_TERMS = 6

Places = Mapping[str, tuple[int, int]]
_TIED = {
    "expected": "averaged over all orders of equal scores",
    "optimistic": "in the best order of equal scores",
    "pessimistic": "in the worst order of equal scores",
}


def write_formula(
    inputs: RunAndQrels, unit: str, metric: Metric[Any], rules: Conventions, rank_ranges: Places, value: float
) -> str:
    """The formula of a unit's value under the conventions, in one line.

    ``rank_ranges`` are the ranks that its items can have.
    """
    if isnan(value):
        return f"left out: {_why_left_out(inputs, unit, rules)}"
    gains = {item: gain for item, gain in inputs.qrels(rules)[unit].items() if gain > 0}
    if unit not in inputs.run or not gains:
        return f"scores {format_value(value, PLACES)}: {_undefined_reason(inputs, unit)}"
    cutoff = getattr(metric, "k", None) or inf
    within = {item: rank_ranges[item] for item in gains if item in rank_ranges and rank_ranges[item][0] <= cutoff}
    tied = [ranks for ranks in within.values() if ranks[0] != ranks[1]]
    if tied and rules.ties in _TIED:
        positions = ", ".join(format_ranks(*ranks) for ranks in _relevant_ranges(metric, within)[:MOST_TERMS])
        terms = f"relevant at rank {positions}, {_TIED[rules.ties]}"
    elif metric.symbol == "MAP" and rules.ties == "threshold":
        terms = f"precision at the end of each group of equals, {_denominator(metric, rules, gains, within)}"
    else:
        order = sorted(within, key=lambda item: within[item])
        terms = _terms(metric, rules, [within[item][0] for item in order], gains, order)
    return f"{terms} -> {format_value(value, PLACES)}"


def _relevant_ranges(metric: Metric[Any], within: Places) -> list[tuple[int, int]]:
    """All rank ranges, or only those that the best relevant item can have."""
    nearest = min(last for _, last in within.values())
    only_best = metric.symbol in ("MRR", "HR")
    return sorted(ranks for ranks in within.values() if not only_best or ranks[0] <= nearest)


def _why_left_out(inputs: RunAndQrels, unit: str, rules: Conventions) -> str:
    if unit not in inputs.run:
        return "the run misses it"
    listed = len(inputs.compared(rules).get(unit, ()))
    if listed < rules.fewest:
        return f"its list has {format_count(listed)} of the {format_count(rules.fewest)} items that are needed"
    return "it has no relevant item"


def _undefined_reason(inputs: RunAndQrels, unit: str) -> str:
    if unit not in inputs.run:
        return "the run misses it"
    has_relevant = any(gain > 0 for gain in inputs.truth[unit].values())
    return "none of its relevant items counts here" if has_relevant else "it has no relevant item"


def _terms(
    metric: Metric[Any],
    rules: Conventions,
    at: Sequence[int],
    gains: Mapping[str, float],
    order: Sequence[str],
) -> str:
    """The sum in words; ``at`` are the ranks of the relevant items within the cutoff, in their ``order``."""
    k = getattr(metric, "k", None)
    within = f"within {k}" if k else "in the list"
    if metric.symbol == "nDCG":
        return _discounted_terms(rules, at, gains, order, k)
    if not at:
        return f"no relevant item {within}"
    if metric.symbol == "MRR":
        return f"1/{at[0]}"
    if metric.symbol == "HR":
        return f"a relevant item at rank {at[0]}, {within}"
    if metric.symbol == "P":
        return f"{len(at)} relevant {within}, over k = {k}"
    if metric.symbol == "R":
        least = min(len(gains), int(k or len(gains)))
        denominator = f"min(k, R) = {least}" if getattr(metric, "capped", False) else f"R = {len(gains)}"
        return f"{len(at)} relevant {within}, over {denominator}"
    precisions = [f"{position}/{rank}" for position, rank in enumerate(at, start=1)]
    return f"{_sum(precisions)} {_denominator(metric, rules, gains, at)}"


def _denominator(metric: Metric[Any], rules: Conventions, gains: Mapping[str, float], within: Any) -> str:
    k = getattr(metric, "k", None)
    if rules.norm == "hits":
        return f"over {len(within)} found"
    if rules.norm == "R" or k is None:
        return f"over R = {len(gains)}"
    return f"over min({k}, {len(gains)}) = {min(k, len(gains))}"


def _discounted_terms(
    rules: Conventions, at: Sequence[int], gains: Mapping[str, float], order: Sequence[str], k: int | None
) -> str:
    """Discounted gain over the ideal one."""

    def gain(grade: float) -> float:
        return 2.0**grade - 1.0 if rules.gain == "exp" else float(grade)

    summed = sum(gain(gains[item]) / log2(rank + 1) for item, rank in zip(order, at, strict=True))
    best = sorted(map(gain, gains.values()), reverse=True)[:k]
    ideal = sum(gain / log2(rank + 1) for rank, gain in enumerate(best, start=1))
    terms = [f"{gain(gains[item]):g}/log2({rank + 1})" for item, rank in zip(order, at, strict=True)]
    first = f"{_sum(terms)} = {format_value(summed, PLACES)}" if terms else format_value(0.0, PLACES)
    items = "item" if len(best) == 1 else "items"
    return f"{first} over the ideal of {format_count(len(best))} {items}, {format_value(ideal, PLACES)}"


def _sum(terms: Sequence[str]) -> str:
    """Terms with plus signs, in brackets where they are several; long sums lose their middle."""
    if len(terms) > MOST_TERMS:
        terms = [*terms[: MOST_TERMS - 1], "...", terms[-1]]
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"


# One unit item by item: the rank of each document under both sets of conventions.

SHOWN = 10

Place = tuple[int, int] | None
"""The first and the last rank that an item can have; None where it is not in the list."""


@dataclass(frozen=True)
class ItemRow:
    """A document of the unit: its score, gain and rank on each side."""

    item: str
    score: float | None
    gain: float
    one: Place
    other: Place


@dataclass(frozen=True)
class WorkedExample:
    """The worked unit; ``more`` counts the rows that were left out, ``sums`` write out both values."""

    unit: str
    one: float
    other: float
    rows: tuple[ItemRow, ...]
    more: int = 0
    sums: tuple[str, str] = ("", "")

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def worked_example(
    inputs: RunAndQrels,
    unit: str,
    metric: Metric[Any],
    values: tuple[float, float],
    sides: tuple[Conventions, Conventions],
) -> WorkedExample:
    """The relevant documents of a unit and those that exchange ranks with them, as the first side ranks."""
    scores, gains = inputs.run.get(unit, {}), inputs.truth[unit]
    cutoff = getattr(metric, "k", None)
    one, other = (rank_ranges(inputs, unit, side, cutoff) for side in sides)
    relevant = [item for item, gain in gains.items() if gain > 0]
    competitors = _competitors(inputs, unit, relevant, sides)
    rows = [
        ItemRow(str(item), scores.get(item), gains.get(item, 0), one.get(item), other.get(item))
        for item in dict.fromkeys([*scores, *relevant])
        if item in relevant or (item in competitors and one.get(item) != other.get(item))
    ]
    rows.sort(key=lambda row: row.one or row.other or (len(scores) + 1, 0))
    first, second = (
        write_formula(inputs, unit, metric, side, ranks, value)
        for side, ranks, value in zip(sides, (one, other), values, strict=True)
    )
    return WorkedExample(str(unit), *values, tuple(rows[:SHOWN]), max(0, len(rows) - SHOWN), (first, second))


def rank_ranges(
    inputs: RunAndQrels, unit: str, conventions: Conventions, k: int | None = None
) -> dict[str, tuple[int, int]]:
    """The ranks that each item of a list can have; tied items without an order share a range."""
    scores: Scores = inputs.ranked(conventions, k).get(unit, {})
    ranges = {item: _range(scores, item) for item in sorted(scores, key=scores.__getitem__, reverse=True)}
    if conventions.ties == "threshold":
        ranges = {item: (last, last) for item, (_, last) in ranges.items()}
    deepest = conventions.depth or len(scores)
    return {item: ranks for item, ranks in ranges.items() if ranks[0] <= deepest}


def _competitors(
    inputs: RunAndQrels, unit: str, relevant: list[str], sides: tuple[Conventions, Conventions]
) -> set[str]:
    """What has the score of a relevant item on either side, or is in the list of one side only."""
    competitors: set[str] = set()
    lists = [inputs.compared(side).get(unit, {}) for side in sides]
    for scores in lists:
        levels = {scores[item] for item in relevant if item in scores}
        competitors |= {item for item, score in scores.items() if score in levels}
    return competitors | (lists[0].keys() ^ lists[1].keys())


def _range(scores: Scores, item: str) -> tuple[int, int]:
    above = sum(score > scores[item] for score in scores.values())
    return above + 1, above + sum(score == scores[item] for score in scores.values())


@dataclass(frozen=True)
class LibraryScore:
    """One of the two programs: its score and number of units."""

    name: str
    title: str
    call: str
    entry: str
    value: float
    n: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConventionPair:
    """A convention in which the two differ: its values, and what they mean."""

    convention: str
    title: str
    one: Value
    other: Value
    one_says: str
    other_says: str

    @classmethod
    def of(cls, name: str, one: Conventions, other: Conventions) -> ConventionPair:
        """The convention of that name on either side."""
        convention = CONVENTIONS[name]
        descriptions = convention.describe(one[name]), convention.describe(other[name])
        return cls(name, convention.title, one[name], other[name], *descriptions)


@dataclass(frozen=True)
class ConventionEffect:
    """The effect of a convention on the score. ``share`` is its part of the difference; the parts add up.

    ``alone`` is the effect of the change on the first score by itself, and ``units`` counts those
    whose value it changes when applied first or last.
    """

    convention: ConventionPair
    share: float
    alone: float
    units: int


@dataclass(frozen=True)
class NoEffect:
    """A convention in which the two differ without any effect on this data, and why."""

    convention: ConventionPair
    reason: str


@dataclass(frozen=True)
class UnitChange:
    """A unit before and after, NaN where a side leaves it out; ``because`` names what moves it."""

    unit: str
    one: float
    other: float
    because: tuple[str, ...]


@dataclass(frozen=True)
class ScoreDifference:
    """The explanation of a difference: two scores, the contributing conventions, and the affected units."""

    metric: str
    one: LibraryScore
    other: LibraryScore
    changes: tuple[ConventionEffect, ...]
    idle: tuple[NoEffect, ...]
    units: tuple[UnitChange, ...]
    changed_units: int
    example: WorkedExample | None
    method: str

    @property
    def value(self) -> float:
        """The second score minus the first."""
        return self.other.value - self.one.value

    def __repr__(self) -> str:
        parts = ", ".join(f"{change.convention.convention} {change.share:+.4g}" for change in self.changes)
        sides = f"{self.one.name} {self.one.value:.4g}, {self.other.name} {self.other.value:.4g}"
        return f"<Difference {self.metric}: {sides}; {parts or 'no convention matters'}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; a unit that a side leaves out has NaN there."""
        content = asdict(self)
        for entry in (*content["changes"], *content["idle"]):
            entry |= entry.pop("convention")
        return {"metric": content.pop("metric"), "difference": self.value, **content}
