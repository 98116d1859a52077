"""Confidence intervals that n units cannot give."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from equipoise.checks.audit.facts import Need
from equipoise.checks.audit.row import Figure, Row
from equipoise.checks.audit.span import SLACK, Span, digits
from equipoise.checks.audit.violation import Violation, accusing
from equipoise.checks.base import Check, counted
from equipoise.stats.interval import normal_critical
from equipoise.stats.numbers import percent
from equipoise.types import Severity

LENIENT = 0.8
"""Methods differ by less than this factor where the normal approximation, the narrowest, is any good."""
UNSAID_LEVEL = 0.8
"""The level that an interval without one is taken to have, so that nothing common looks too narrow."""


def impossible_intervals(row: Row) -> Iterator[Violation]:
    """EQ409: an interval beside its own figure, or narrower than n hits and misses allow."""
    if row.chance:
        return
    for figure in row.figures:
        if figure.ends is None:
            continue
        low, high = figure.ends
        least, most = figure.measure.bounds
        # A credible interval excludes a figure at the very end of the scale.
        below = low.above(figure.span) and figure.span.low > least + SLACK
        beyond = figure.span.above(high) and figure.span.high < most - SLACK
        if below or beyond or low.above(high):
            yield _beside(figure)
        elif figure.measure.symbol in ("HR", "Acc") and not row.averaged:
            yield from _too_narrow(row, figure, low, high)


def _beside(figure: Figure) -> Violation:
    return Violation(
        (figure,),
        f"{figure} lies outside of its own interval",
        (
            figure.read,
            f"the interval goes from {figure.ends_text}",
            "an interval holds the figure it is made for",
        ),
    )


def _too_narrow(row: Row, figure: Figure, low: Span, high: Span) -> Iterator[Violation]:
    n = row.units(figure)
    if n is None:
        return
    level = row.facts.level
    critical = normal_critical(level or UNSAID_LEVEL) * (LENIENT if level else 1.0)
    share = min(figure.span.low, 1.0 - figure.span.high)
    share = max(0.0, min(share, 0.5))
    half = critical * sqrt(share * (1.0 - share) / n)
    # The approximation may leave [0, 1], and is then cut there: only the part inside counts.
    middle = figure.span.low if figure.span.low < 0.5 else figure.span.high
    least = min(1.0, middle + half) - max(0.0, middle - half)
    if high.high - low.low < least - SLACK:
        said = f"at {percent(level)}" if level else f"even at {percent(UNSAID_LEVEL)}"
        yield Violation(
            (figure,),
            f"the interval of {figure} is {digits(high.high - low.low, 4)} wide, too narrow for "
            f"{counted(n, 'unit')}",
            (
                f"a share of {n} hits and misses varies by sqrt(p (1 - p) / n) from sample to sample",
                figure.read,
                f"the interval goes from {figure.ends_text}",
                f"it is {digits(high.high - low.low)} wide at most",
                f"{said} the narrowest method, the normal approximation, gives about {digits(least, 4)}",
            ),
            (Need.HITS,),
        )


CHECK = Check(
    code="EQ409",
    title="an interval that n cannot give",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(impossible_intervals),
    why="""\
An interval holds the figure it was made for. And for a share of n hits and misses its width is known: at 100
units and a share of 0.8, some 8 points to each side at 95 %. Much narrower ones were made from more units
than are said, from pooled folds or seeds counted as units, or are standard errors under another name.""",
    remedy="make the interval from the units themselves, one value each; eq score does",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"HR@1": "0.80 [0.85, 0.91]"}, n=100).findings""",
)
