"""The value of one unit written out: which terms are added, and what their sum is divided by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isnan, log2
from typing import Any

from equipoise.checks.like.conventions import Conventions
from equipoise.checks.like.material import Material
from equipoise.metrics.base import Metric
from equipoise.stats.numbers import count, figure, ranks

PLACES = 4
MOST_TERMS = 6

Places = Mapping[str, tuple[int, int]]
_TIED = {
    "expected": "averaged over all orders of equal scores",
    "optimistic": "in the best order of equal scores",
    "pessimistic": "in the worst order of equal scores",
}


def arithmetic(
    material: Material, unit: str, metric: Metric[Any], rules: Conventions, places: Places, value: float
) -> str:
    """How a unit comes to its value under conventions, in one line.

    ``places`` are the ranks that its items can have.

    >>> from equipoise.metrics.parse import parse
    >>> material = Material.of({"q": {"a": 0.9, "b": 0.1}}, {"q": {"a": 1, "c": 1}})
    >>> where = {"a": (1, 1), "b": (2, 2)}
    >>> arithmetic(material, "q", parse("MAP@5")[0], Conventions(norm="hits"), where, 1.0)
    '1/1 over 1 found -> 1.0000'
    """
    if isnan(value):
        return f"left out: {_why_left_out(material, unit, rules)}"
    gains = {item: gain for item, gain in material.judged(rules)[unit].items() if gain > 0}
    if unit not in material.run or not gains:
        return f"scores {figure(value, PLACES)}: {_why_nothing(material, unit)}"
    cutoff = getattr(metric, "k", None) or inf
    found = {item: places[item] for item in gains if item in places and places[item][0] <= cutoff}
    tied = [place for place in found.values() if place[0] != place[1]]
    if tied and rules.ties in _TIED:
        where = ", ".join(ranks(*place) for place in _that_matter(metric, found)[:MOST_TERMS])
        terms = f"relevant at rank {where}, {_TIED[rules.ties]}"
    elif metric.symbol == "MAP" and rules.ties == "threshold":
        terms = f"precision at the end of each group of equals, {_denominator(metric, rules, gains, found)}"
    else:
        order = sorted(found, key=lambda item: found[item])
        terms = _terms(metric, rules, [found[item][0] for item in order], gains, order)
    return f"{terms} -> {figure(value, PLACES)}"


def _that_matter(metric: Metric[Any], found: Places) -> list[tuple[int, int]]:
    """All places, or those alone that the best relevant item can have."""
    nearest = min(last for _, last in found.values())
    only_best = metric.symbol in ("MRR", "HR")
    return sorted(place for place in found.values() if not only_best or place[0] <= nearest)


def _why_left_out(material: Material, unit: str, rules: Conventions) -> str:
    if unit not in material.run:
        return "the run misses it"
    listed = len(material.seen(rules).get(unit, ()))
    if listed < rules.fewest:
        return f"its list has {count(listed)} of the {count(rules.fewest)} items that are needed"
    return "it has no relevant item"


def _why_nothing(material: Material, unit: str) -> str:
    if unit not in material.run:
        return "the run misses it"
    known = any(gain > 0 for gain in material.truth[unit].values())
    return "none of its relevant items counts here" if known else "it has no relevant item"


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
        return _discounted(rules, at, gains, order, k)
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
        over = f"min(k, R) = {least}" if getattr(metric, "capped", False) else f"R = {len(gains)}"
        return f"{len(at)} relevant {within}, over {over}"
    precisions = [f"{place}/{rank}" for place, rank in enumerate(at, start=1)]
    return f"{_sum(precisions)} {_denominator(metric, rules, gains, at)}"


def _denominator(metric: Metric[Any], rules: Conventions, gains: Mapping[str, float], found: Any) -> str:
    k = getattr(metric, "k", None)
    if rules.norm == "hits":
        return f"over {len(found)} found"
    if rules.norm == "R" or k is None:
        return f"over R = {len(gains)}"
    return f"over min({k}, {len(gains)}) = {min(k, len(gains))}"


def _discounted(
    rules: Conventions, at: Sequence[int], gains: Mapping[str, float], order: Sequence[str], k: int | None
) -> str:
    """Discounted gain over the ideal one."""

    def gain(grade: float) -> float:
        return 2.0**grade - 1.0 if rules.gain == "exp" else float(grade)

    summed = sum(gain(gains[item]) / log2(rank + 1) for item, rank in zip(order, at, strict=True))
    best = sorted(map(gain, gains.values()), reverse=True)[:k]
    ideal = sum(each / log2(rank + 1) for rank, each in enumerate(best, start=1))
    terms = [f"{gain(gains[item]):g}/log2({rank + 1})" for item, rank in zip(order, at, strict=True)]
    first = f"{_sum(terms)} = {figure(summed, PLACES)}" if terms else figure(0.0, PLACES)
    items = "item" if len(best) == 1 else "items"
    return f"{first} over the ideal of {count(len(best))} {items}, {figure(ideal, PLACES)}"


def _sum(terms: Sequence[str]) -> str:
    """Terms with plus signs, in brackets where they are several; long sums lose their middle."""
    if len(terms) > MOST_TERMS:
        terms = [*terms[: MOST_TERMS - 1], "...", terms[-1]]
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"
