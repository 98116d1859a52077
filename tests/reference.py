"""Ranking metrics written slowly, straight from their definitions: the oracle of the fast ones.

A unit is a list of (score, gain or None) candidates; ``None`` marks what is not relevant. Ties are settled
by trying every order of the candidates and keeping those that respect the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product
from math import log2
from statistics import mean

Order = list[float | None]


def orders(scores: list[float], gains: list[float | None]) -> Iterator[Order]:
    """Every order of the candidates in which no one stands before a better one."""
    levels = sorted(set(scores), reverse=True)
    groups = [[gains[i] for i, score in enumerate(scores) if score == level] for level in levels]
    for arrangement in product(*(permutations(group) for group in groups)):
        yield [gain for group in arrangement for gain in group]


def expected(figure: Callable[[Order], float], scores: list[float], gains: list[float | None]) -> float:
    """The mean of a figure over all orders of equal scores."""
    return mean(figure(order) for order in orders(scores, gains))


def extremes(figure: Callable[[Order], float], scores: list[float], gains: list[float | None]) -> tuple[float, float]:
    """The smallest and the largest value of a figure over all orders of equal scores."""
    values = [figure(order) for order in orders(scores, gains)]
    return min(values), max(values)


def ranks(order: Order) -> list[int]:
    """The ranks of the relevant candidates."""
    return [place for place, gain in enumerate(order, 1) if gain is not None]


def reciprocal_rank(order: Order, lost: list[float], k: int | None) -> float:
    """One over the first relevant rank within k."""
    for rank in ranks(order):
        return 1 / rank if k is None or rank <= k else 0.0
    return 0.0


def hit(order: Order, lost: list[float], k: int) -> float:
    """1 if a relevant candidate stands within k."""
    return float(any(rank <= k for rank in ranks(order)))


def f1(order: Order, lost: list[float], k: int) -> float:
    """The harmonic mean of precision and recall within k; 0 if both are 0."""
    p, r = precision(order, lost, k), recall(order, lost, k)
    return 2 * p * r / (p + r) if p + r else 0.0


def r_precision(order: Order, lost: list[float], k: int | None) -> float:
    """The share of the first R places that is relevant."""
    return precision(order, lost, len(ranks(order)) + len(lost))


def rank_biased_precision(order: Order, lost: list[float], k: int | None) -> float:
    """0.2 times the sum of 0.8 to the rank - 1."""
    return 0.2 * sum(0.8 ** (rank - 1) for rank in ranks(order) if k is None or rank <= k)


def expected_reciprocal_rank(order: Order, lost: list[float], k: int | None) -> float:
    """The cascade: at every rank the reader stops with (2^gain - 1) / 16."""
    going_on, total = 1.0, 0.0
    for rank, gain in enumerate(order[:k], 1):
        stop = 0.0 if gain is None else (2**gain - 1) / 16
        total += going_on * stop / rank
        going_on *= 1 - stop
    return total


def precision(order: Order, lost: list[float], k: int) -> float:
    """The share of the first k places that is relevant."""
    return sum(rank <= k for rank in ranks(order)) / k


def recall(order: Order, lost: list[float], k: int) -> float:
    """The share of the relevant items that stands within k."""
    return sum(rank <= k for rank in ranks(order)) / (len(ranks(order)) + len(lost))


def average_precision(order: Order, lost: list[float], k: int | None) -> float:
    """The mean of the precisions at the relevant ranks within k, over min(k, R)."""
    relevant = len(ranks(order)) + len(lost)
    total = sum(precision(order, lost, rank) for rank in ranks(order) if k is None or rank <= k)
    return total / (relevant if k is None else min(k, relevant))


def discounted_gain(order: Order, lost: list[float], k: int | None) -> float:
    """Discounted gain over that of the ideal order."""
    gains = [gain or 0.0 for gain in order]
    ideal = sorted([*gains, *lost], reverse=True)
    return _discounted(gains[:k]) / _discounted(ideal[:k])


def mean_rank(order: Order, lost: list[float], k: None) -> float:
    """The mean of the relevant ranks."""
    return mean(ranks(order))


def _discounted(gains: list[float]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, 1))
