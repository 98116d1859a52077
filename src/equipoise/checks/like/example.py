"""One unit item by item: where each document stands under one set of conventions and under another."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from equipoise.checks.like.arithmetic import arithmetic
from equipoise.checks.like.conventions import Conventions
from equipoise.checks.like.material import Material
from equipoise.checks.like.run_rules import Scores
from equipoise.metrics.base import Metric

SHOWN = 10

Place = tuple[int, int] | None
"""The first and the last rank that an item can have; None where it is not in the list."""


@dataclass(frozen=True)
class ItemRow:
    """A document of the unit: its score and judgement, and its place on either side."""

    item: str
    score: float | None
    gain: float
    one: Place
    other: Place


@dataclass(frozen=True)
class Example:
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


def worked_unit(
    material: Material,
    unit: str,
    metric: Metric[Any],
    values: tuple[float, float],
    sides: tuple[Conventions, Conventions],
) -> Example:
    """The relevant documents of a unit and those that change places with them, as the first side ranks."""
    scores, gains = material.run.get(unit, {}), material.truth[unit]
    cutoff = getattr(metric, "k", None)
    one, other = (places(material, unit, side, cutoff) for side in sides)
    relevant = [item for item, gain in gains.items() if gain > 0]
    rivals = _rivals(material, unit, relevant, sides)
    rows = [
        ItemRow(str(item), scores.get(item), gains.get(item, 0), one.get(item), other.get(item))
        for item in dict.fromkeys([*scores, *relevant])
        if item in relevant or (item in rivals and one.get(item) != other.get(item))
    ]
    rows.sort(key=lambda row: row.one or row.other or (len(scores) + 1, 0))
    first, second = (
        arithmetic(material, unit, metric, side, where, value)
        for side, where, value in zip(sides, (one, other), values, strict=True)
    )
    return Example(str(unit), *values, tuple(rows[:SHOWN]), max(0, len(rows) - SHOWN), (first, second))


def places(
    material: Material, unit: str, conventions: Conventions, k: int | None = None
) -> dict[str, tuple[int, int]]:
    """The ranks that each item of a list can have; equals share a range where nothing puts them in order.

    >>> material = Material.of({"q": {"a": 0.5, "b": 0.5, "c": 0.1}}, {"q": {"a": 1}})
    >>> places(material, "q", Conventions())
    {'a': (1, 2), 'b': (1, 2), 'c': (3, 3)}
    """
    scores: Scores = material.ranked(conventions, k).get(unit, {})
    found = {item: _range(scores, item) for item in sorted(scores, key=scores.__getitem__, reverse=True)}
    if conventions.ties == "threshold":
        found = {item: (last, last) for item, (_, last) in found.items()}
    deepest = conventions.depth or len(scores)
    return {item: place for item, place in found.items() if place[0] <= deepest}


def _rivals(
    material: Material, unit: str, relevant: list[str], sides: tuple[Conventions, Conventions]
) -> set[str]:
    """What has the score of a relevant item on either side, or is in the list of one side only."""
    found: set[str] = set()
    lists = [material.seen(side).get(unit, {}) for side in sides]
    for scores in lists:
        levels = {scores[item] for item in relevant if item in scores}
        found |= {item for item, score in scores.items() if score in levels}
    return found | (lists[0].keys() ^ lists[1].keys())


def _range(scores: Scores, item: str) -> tuple[int, int]:
    above = sum(score > scores[item] for score in scores.values())
    return above + 1, above + sum(score == scores[item] for score in scores.values())
