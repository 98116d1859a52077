"""Between which values a figure must lie when accuracies are known: this proves in which unit it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import log2
from typing import NamedTuple

Earned = Callable[[int], float]
"""What the right place earns at a rank; it never grows with the rank."""
SINGLE = 2.0**-22
"""Shares that are nearer are equal: the arithmetic of a percentage in float32 rounds so much at most."""


class Reach(NamedTuple):
    """All values from ``low`` to ``high``."""

    low: float
    high: float

    def meets(self, other: Reach, slack: float = SINGLE) -> bool:
        """Whether the two have a value in common, at single precision."""
        return self.low <= other.high + slack and other.low <= self.high + slack


Curve = Mapping[int, Reach]
"""Accuracies by cutoff."""

ANY = Reach(0.0, 1.0)


def of_accuracy(curve: Curve, k: int) -> Reach:
    """Accuracy never falls as k grows.

    >>> of_accuracy({1: Reach(0.2, 0.2), 10: Reach(0.6, 0.6)}, 5)
    Reach(low=0.2, high=0.6)
    """
    below = [reach.low for cutoff, reach in curve.items() if cutoff <= k]
    above = [reach.high for cutoff, reach in curve.items() if cutoff >= k]
    return Reach(max(below, default=0.0), min(above, default=1.0))


def of_earnings(curve: Curve, earned: Earned) -> Reach:
    """The mean of what ranks earn: a hit within k and not before earns at least what rank k does.

    >>> reach = of_earnings({1: Reach(0.5, 0.5), 3: Reach(1.0, 1.0)}, reciprocal)
    >>> round(reach.low, 4), round(reach.high, 4)
    (0.6667, 0.75)
    """
    known = sorted(curve)
    low = sum(
        curve[k].low * (earned(k) - (earned(later) if later else 0.0)) for k, later in pairwise([*known, 0])
    )
    high = sum(curve[k].high * (earned(before + 1) - earned(k + 1)) for before, k in pairwise([0, *known]))
    return Reach(low, high + earned((known[-1] if known else 0) + 1))


def reciprocal(rank: int) -> float:
    """MRR."""
    return 1.0 / rank


def discount(cutoff: int) -> Earned:
    """nDCG with one right place."""
    return lambda rank: 1.0 / log2(rank + 1) if rank <= cutoff else 0.0


def of_weighted_f1(curve: Curve) -> Reach:
    """F1 weighted by the units of each class lies between 2a²/(1 + a) and 2a/(1 + a), a being Acc@1.

    The upper end is precise predictions only: 2R/(1 + R) of each class's recall R, which is concave. The
    lower end is one class that is always predicted: with t hits among p predictions a class adds at least
    2t²/(t + p) units, which is convex, and all t and all p have known sums.
    """
    accuracy = of_accuracy(curve, 1)
    return Reach(2 * accuracy.low**2 / (1 + accuracy.low), 2 * accuracy.high / (1 + accuracy.high))
