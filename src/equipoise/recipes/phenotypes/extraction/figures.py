"""The figures of an extraction: precision, recall and F1 by every average and mode, and the soft ones."""

from __future__ import annotations

from equipoise.metrics.overlap import Mode
from equipoise.metrics.sets import (
    AVERAGES,
    MODES,
    OverDocuments,
    SetF1,
    SetPrecision,
    SetRecall,
    SetScore,
)

KINDS: tuple[type[SetScore], ...] = (SetF1, SetPrecision, SetRecall)


def leading(averaging: OverDocuments, mode: Mode) -> tuple[SetScore, ...]:
    """The three figures that are asked for, F1 first.

    >>> [metric.name for metric in leading("macro", "id")][0]
    'F1(average=macro,mode=id)'
    """
    return tuple(kind(averaging, mode) for kind in KINDS)


def figures(averaging: OverDocuments, mode: Mode) -> tuple[SetScore, ...]:
    """Every figure, those that are asked for first; soft scores are of the leading mode.

    >>> len(figures("micro", "id"))
    36
    """
    averages = [averaging, *(each for each in AVERAGES if each != averaging)]
    modes = [mode, *(each for each in MODES if each != mode)]
    exact = [metric for of in modes for average in averages for metric in leading(average, of)]
    soft = [kind(average, mode, soft=True) for average in averages for kind in KINDS]
    return (*exact[:3], *soft[:3], *exact[3:], *soft[3:])
