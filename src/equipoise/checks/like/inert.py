"""Conventions that cannot change a figure on this data, whatever the others say: they need not be tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from equipoise.checks.like.conventions import Value
from equipoise.checks.like.material import Material
from equipoise.checks.like.run_rules import in_float32, is_tied
from equipoise.metrics.base import Metric


def why_inert(name: str, values: tuple[Value, Value], material: Material, metric: Metric[Any]) -> str:
    """Why a change between two values of a convention can do nothing here; empty where it might.

    >>> from equipoise.metrics.parse import parse
    >>> material = Material.of({"q": {"a": 0.5, "b": 0.2}}, {"q": {"a": 1}})
    >>> why_inert("ties", ("expected", "id_up"), material, parse("MRR")[0])
    'no two scores of a query are equal'
    """
    return _REASONS[name](material, metric, values) if name in _REASONS else ""


def _ties(material: Material, metric: Metric[Any], values: tuple[Value, Value]) -> str:
    # Ties in 64 bits stay ties in 32; looking at 32 covers both.
    free = not any(map(is_tied, in_float32(material.run).values()))
    return "no two scores of a query are equal" if free else ""


def _scores(material: Material, metric: Metric[Any], values: tuple[Value, Value]) -> str:
    for scores in material.run.values():
        wide = np.array(list(scores.values()), dtype=np.float64)
        with np.errstate(over="ignore", under="ignore"):
            narrow = wide.astype(np.float32)
        if len(np.unique(narrow)) < len(np.unique(wide)) or ((narrow > 0) != (wide > 0)).any():
            return ""
    return "32 bits tell all scores of a query apart that 64 bits do"


def _missing(material: Material, metric: Metric[Any], values: tuple[Value, Value]) -> str:
    return "the run answers every judged query" if material.answered.all() else ""


def _empty(material: Material, metric: Metric[Any], values: tuple[Value, Value]) -> str:
    for query, gains in material.truth.items():
        listed = material.run.get(query, {})
        if not any(gain >= 1 and item in listed and item != query for item, gain in gains.items()):
            return ""
    return "every query has a relevant item in its list"


def _own_id(material: Material, metric: Metric[Any], values: tuple[Value, Value]) -> str:
    named = any(query in scores for query, scores in material.run.items())
    return "" if named else "no document has the id of its query"


def _unretrieved(material: Material, metric: Metric[Any], values: tuple[Value, Value]) -> str:
    for query, gains in material.truth.items():
        listed = material.run.get(query, {})
        if any(gain > 0 and (item not in listed or item == query) for item, gain in gains.items()):
            return ""
    return "every relevant item was retrieved"


def _nonpositive(material: Material, metric: Metric[Any], values: tuple[Value, Value]) -> str:
    lowest = min(
        (score for scores in in_float32(material.run).values() for score in scores.values()), default=1
    )
    return "all scores are above 0" if lowest > 0 else ""


def _grades(material: Material, metric: Metric[Any], values: tuple[Value, Value]) -> str:
    gains = {gain for judged in material.truth.values() for gain in judged.values() if gain > 0}
    if gains <= {1}:
        return "all judgements are 0 or 1"
    if metric.symbol != "nDCG" and min(gains) >= 1:
        return "the metric asks only what is relevant, and all grades above 0 are at least 1"
    if set(values) == {"kept", "whole"} and all(gain == int(gain) for gain in gains):
        return "all judgements are whole numbers"
    return ""


def _gain(material: Material, metric: Metric[Any], values: tuple[Value, Value]) -> str:
    gains = {gain for judged in material.truth.values() for gain in judged.values() if gain > 0}
    return "all judgements are 0 or 1" if gains <= {1} else ""


def _norm(material: Material, metric: Metric[Any], values: tuple[Value, Value]) -> str:
    if set(values) != {"min", "R"}:
        return ""
    cutoff = getattr(metric, "k", None)
    most = max(sum(gain > 0 for gain in gains.values()) for gains in material.truth.values())
    if cutoff is None:
        return "without a cutoff min(k, R) is R"
    return "no query has more than k relevant items" if most <= cutoff else ""


def _depth(material: Material, metric: Metric[Any], values: tuple[Value, Value]) -> str:
    cutoff = getattr(metric, "k", None)
    if cutoff is not None and all(each is None or each >= cutoff for each in values):
        return "the metric looks no deeper than its cutoff"
    longest = max(map(len, material.run.values()))
    return "no list is longer" if all(each is None or each >= longest for each in values) else ""  # type: ignore[operator]


def _fewest(material: Material, metric: Metric[Any], values: tuple[Value, Value]) -> str:
    shortest = min(
        len(scores) - (query in scores)  # a document named like its query may be dropped
        for query, scores in material.run.items()
    )
    return "no list is that short" if all(shortest >= each for each in values) else ""  # type: ignore[operator]


_REASONS: Mapping[str, Callable[[Material, Metric[Any], tuple[Value, Value]], str]] = {
    "ties": _ties,
    "scores": _scores,
    "missing": _missing,
    "empty": _empty,
    "own_id": _own_id,
    "unretrieved": _unretrieved,
    "nonpositive": _nonpositive,
    "grades": _grades,
    "gain": _gain,
    "norm": _norm,
    "depth": _depth,
    "fewest": _fewest,
}
