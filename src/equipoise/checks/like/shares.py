"""Who brought how much of a change: Shapley's values over the orders in which things can be changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import factorial

import numpy as np

MOST_EXACT = 8
"""Up to so many things all their subsets are measured; above, this many orders are drawn."""
DRAWN_ORDERS = 60

Worth = Callable[[frozenset[str]], float]


def shares(names: Sequence[str], worth: Worth, *, seed: int = 0) -> dict[str, float]:
    """What each name adds to ``worth`` on average over the orders in which they can be added.

    The shares sum to ``worth`` of all names minus ``worth`` of none, and a name that never changes anything
    has 0. Up to ``MOST_EXACT`` names the average is over all orders, beyond over some that are drawn.

    >>> shares(["a", "b"], lambda chosen: float(len(chosen) == 2))
    {'a': 0.5, 'b': 0.5}
    """
    if is_exact(names):
        return {name: _exact(name, names, worth) for name in names}
    rng = np.random.default_rng(seed)
    total = dict.fromkeys(names, 0.0)
    for _ in range(DRAWN_ORDERS):
        order = [names[place] for place in rng.permutation(len(names))]
        for place, name in enumerate(order):
            before = frozenset(order[:place])
            total[name] += worth(before | {name}) - worth(before)
    return {name: value / DRAWN_ORDERS for name, value in total.items()}


def is_exact(names: Sequence[str]) -> bool:
    """Whether so few names are averaged over all their orders."""
    return len(names) <= MOST_EXACT


def _exact(name: str, names: Sequence[str], worth: Worth) -> float:
    others = [each for each in names if each != name]
    every = factorial(len(names))
    share = 0.0
    for before in _subsets(others):
        orders = factorial(len(before)) * factorial(len(others) - len(before))
        share += orders / every * (worth(before | {name}) - worth(before))
    return share


def _subsets(names: Sequence[str]) -> Iterator[frozenset[str]]:
    for size in range(len(names) + 1):
        yield from map(frozenset, combinations(names, size))
