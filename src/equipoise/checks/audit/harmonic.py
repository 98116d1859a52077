"""Harmonic numbers: the sum of 1, 1/2, ... 1/n."""

from __future__ import annotations

from math import log

EXACT = 10_000
_EULER = 0.5772156649015329


def harmonic_number(n: float) -> float:
    """H_n, summed up to 10,000 and by Euler and Maclaurin's formula beyond, which is exact to 1e-17 there.

    >>> harmonic_number(3), round(harmonic_number(1187) / 1187, 6)
    (1.8333333333333333, 0.006451)
    """
    if n <= EXACT:
        return sum(1.0 / rank for rank in range(1, int(n) + 1))
    return log(n) + _EULER + 1.0 / (2.0 * n) - 1.0 / (12.0 * n * n)
