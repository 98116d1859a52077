"""What a score is called: poor, moderate, good or excellent, as far as its interval tells."""

from __future__ import annotations

from bisect import bisect_right
from math import isnan

from equipoise.stats.interval import Interval

LIMITS = (0.3, 0.5, 0.7)
WORDS = ("poor", "moderate", "good", "excellent")


def reading(score: float, interval: Interval | None = None) -> str:
    """The word for a score; the words of both ends where its interval reaches over a limit.

    A limit belongs to the better side. A score below 0 is poor.

    >>> reading(0.5), reading(0.52, Interval(0.44, 0.6)), reading(-0.1)
    ('good', 'moderate to good', 'poor')
    """
    if isnan(score):
        return "n/a"
    ends = (interval.low, interval.high) if interval is not None and interval.known else (score, score)
    low, high = (WORDS[bisect_right(LIMITS, end)] for end in ends)
    return low if low == high else f"{low} to {high}"
