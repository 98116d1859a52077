"""Slow ranking metrics, implemented from their definitions: the reference for the fast implementations.

A unit is a list of (score, gain or None) candidates; ``None`` marks a non-relevant one. Ties are resolved
by enumerating every order of the candidates that is consistent with the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product
from math import log2
from statistics import mean

Order = list[float | None]


def orders(scores: list[float], gains: list[float | None]) -> Iterator[Order]:
    """Every order of the candidates in which scores do not increase."""
    levels = sorted(set(scores), reverse=True)
    groups = [[gains[i] for i, score in enumerate(scores) if score == level] for level in levels]
    for arrangement in product(*(permutations(group) for group in groups)):
        yield [gain for group in arrangement for gain in group]


def expected(metric: Callable[[Order], float], scores: list[float], gains: list[float | None]) -> float:
    """The mean of a metric over all orders of tied candidates."""
    return mean(metric(order) for order in orders(scores, gains))


def extremes(metric: Callable[[Order], float], scores: list[float], gains: list[float | None]) -> tuple[float, float]:
    """The smallest and the largest value of a metric over all orders of tied candidates."""
    values = [metric(order) for order in orders(scores, gains)]
    return min(values), max(values)


def ranks(order: Order) -> list[int]:
    """The ranks of the relevant candidates."""
    return [rank for rank, gain in enumerate(order, 1) if gain is not None]


def reciprocal_rank(order: Order, missing_gains: list[float], k: int | None) -> float:
    """One over the first relevant rank within k."""
    for rank in ranks(order):
        return 1 / rank if k is None or rank <= k else 0.0
    return 0.0


def hit(order: Order, missing_gains: list[float], k: int) -> float:
    """1 if a relevant candidate is within the top k."""
    return float(any(rank <= k for rank in ranks(order)))


def f1(order: Order, missing_gains: list[float], k: int) -> float:
    """The harmonic mean of precision and recall within k; 0 if both are 0."""
    p, r = precision(order, missing_gains, k), recall(order, missing_gains, k)
    return 2 * p * r / (p + r) if p + r else 0.0


def r_precision(order: Order, missing_gains: list[float], k: int | None) -> float:
    """The fraction of the first R candidates that is relevant."""
    return precision(order, missing_gains, len(ranks(order)) + len(missing_gains))


def rank_biased_precision(order: Order, missing_gains: list[float], k: int | None) -> float:
    """0.2 times the sum of 0.8 to the rank - 1."""
    return 0.2 * sum(0.8 ** (rank - 1) for rank in ranks(order) if k is None or rank <= k)


def expected_reciprocal_rank(order: Order, missing_gains: list[float], k: int | None) -> float:
    """The cascade model: the user stops at a rank with probability (2^gain - 1) / 16."""
    continue_probability, total = 1.0, 0.0
    for rank, gain in enumerate(order[:k], 1):
        stop_probability = 0.0 if gain is None else (2**gain - 1) / 16
        total += continue_probability * stop_probability / rank
        continue_probability *= 1 - stop_probability
    return total


def precision(order: Order, missing_gains: list[float], k: int) -> float:
    """The fraction of the first k candidates that is relevant."""
    return sum(rank <= k for rank in ranks(order)) / k


def recall(order: Order, missing_gains: list[float], k: int) -> float:
    """The fraction of the relevant items within the top k."""
    return sum(rank <= k for rank in ranks(order)) / (len(ranks(order)) + len(missing_gains))


def average_precision(order: Order, missing_gains: list[float], k: int | None) -> float:
    """The mean of the precisions at the relevant ranks within k, over min(k, R)."""
    n_relevant = len(ranks(order)) + len(missing_gains)
    total = sum(precision(order, missing_gains, rank) for rank in ranks(order) if k is None or rank <= k)
    return total / (n_relevant if k is None else min(k, n_relevant))


def discounted_gain(order: Order, missing_gains: list[float], k: int | None) -> float:
    """Discounted cumulative gain divided by that of the ideal order."""
    gains = [gain or 0.0 for gain in order]
    ideal = sorted([*gains, *missing_gains], reverse=True)
    return _discounted(gains[:k]) / _discounted(ideal[:k])


def mean_rank(order: Order, missing_gains: list[float], k: None) -> float:
    """The mean of the relevant ranks."""
    return mean(ranks(order))


def _discounted(gains: list[float]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, 1))
