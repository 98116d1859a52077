"""What is measured of a system that finds terms, and in which order it is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from equipoise.metrics.base import Metric
from equipoise.metrics.parse import parse

CUTOFFS = (1, 3, 5, 10)
"""How many of the first terms are looked at."""
PRIMARY = "MRR"
_AT_K = ("HR", "nDCG", "R", "P", "MAP", "MaxOntSim")


def figures(ks: Iterable[int] = CUTOFFS) -> list[Metric[Any]]:
    """MRR, and every other metric of the field at each cutoff.

    >>> [metric.name for metric in figures([1, 3])][:5]
    ['MRR', 'HR@1', 'HR@3', 'nDCG@1', 'nDCG@3']
    """
    cutoffs = ",".join(map(str, ks))
    return list(parse([PRIMARY, *(f"{symbol}@{{{cutoffs}}}" for symbol in _AT_K)]))
