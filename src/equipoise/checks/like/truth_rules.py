"""Conventions about the truth, each a function from judgements to judgements."""

from __future__ import annotations

from collections.abc import Mapping
from math import trunc
from typing import Any

from equipoise.checks.like.run_rules import Run

Gains = Mapping[str, float]
Truth = Mapping[str, Gains]


def whole(truth: Truth) -> Truth:
    """The judgements cut to whole numbers, so that one half is nothing.

    >>> whole({"q": {"a": 0.5, "b": 2}})
    {'q': {'a': 0, 'b': 2}}
    """
    return {query: {item: trunc(gain) for item, gain in gains.items()} for query, gains in truth.items()}


def binary(truth: Truth) -> Truth:
    """Every judgement above 0 as 1.

    >>> binary({"q": {"a": 3, "b": 0}})
    {'q': {'a': 1, 'b': 0}}
    """
    return {query: {item: int(gain > 0) for item, gain in gains.items()} for query, gains in truth.items()}


def only_retrieved(truth: Truth, run: Run) -> Truth:
    """The judgements of those items alone that the run holds.

    >>> only_retrieved({"q": {"a": 1, "b": 1}}, {"q": {"a": 0.5}})
    {'q': {'a': 1}}
    """
    nothing: Mapping[str, Any] = {}
    return {
        query: {item: gain for item, gain in gains.items() if item in run.get(query, nothing)}
        for query, gains in truth.items()
    }
