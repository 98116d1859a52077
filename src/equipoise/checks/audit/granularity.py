"""Means that n units cannot give: a share of 200 units is a multiple of 1/200."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor

from equipoise.checks.audit.facts import Need
from equipoise.checks.audit.row import Figure, Row
from equipoise.checks.audit.span import SLACK, digits
from equipoise.checks.audit.violation import Violation, accusing
from equipoise.checks.base import Check, counted
from equipoise.types import Severity

ONE, HITS = (Need.ONE_RELEVANT,), (Need.HITS,)
LARGEST = 10**8
"""Beyond so many steps rounding to double precision would decide."""


def between_steps(row: Row) -> Iterator[Violation]:
    """EQ407: a figure that lies between two neighbouring values that n units can give."""
    if row.chance or row.averaged:
        return
    for figure in row.figures:
        n = row.units(figure)
        parts = _parts(figure)
        if n is not None and parts is not None:
            yield from _missed(figure, n, *parts)


def _parts(figure: Figure) -> tuple[int, str, tuple[Need, ...]] | None:
    """How many steps a unit adds between 0 and 1, what a step is, and what must hold for that."""
    measure = figure.measure
    if measure.symbol in ("HR", "Acc") and not measure.parameters:
        return 1, "a unit is a hit or a miss", HITS
    if measure.symbol == "P" and measure.k is not None:
        return measure.k, f"a unit has a whole number of relevant items among its first {measure.k}", HITS
    if measure.symbol == "R" and measure.k is not None and not measure.parameters:
        return 1, "a unit's one relevant item is found or not", (*ONE, Need.HITS)
    if measure.symbol == "MR" and not measure.parameters:
        return 2, "a rank is a whole number, or a half where it is averaged over ties", ONE
    return None


def _missed(figure: Figure, n: int, parts: int, why: str, needs: tuple[Need, ...]) -> Iterator[Violation]:
    steps = n * parts
    if steps > LARGEST or figure.span.high < 0:
        return
    first = ceil(figure.span.low * steps - SLACK * steps)
    if first <= figure.span.high * steps + SLACK * steps:
        return
    below, above = floor(figure.span.low * steps), floor(figure.span.low * steps) + 1
    unit = f"{n}" if parts == 1 else f"({n} x {parts})"
    yield Violation(
        (figure,),
        f"{figure} is no mean over {counted(n, 'unit')}: the nearest are {digits(below / steps)} and "
        f"{digits(above / steps)}",
        (
            f"{why}, so the mean over {n} units is a multiple of 1/{unit}",
            figure.read,
            f"{below}/{steps} = {digits(below / steps)} and {above}/{steps} = {digits(above / steps)} "
            "would both be printed differently",
        ),
        needs,
    )


CHECK = Check(
    code="EQ407",
    title="a value that n units cannot give",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(between_steps),
    why="""\
If every unit is a hit or a miss, a hit rate over n units is a whole number of hits over n. With 70 units
there is nothing between 50/70 and 51/70. Precision at k over n units comes in steps of 1/(nk). A printed
figure that lies between two steps was computed on another number of units, with other weights, or not at all.
The idea is that of the GRIM test (Brown and Heathers 2017). Averages over tied scores need not obey it, so it
accuses only where these are excluded.""",
    remedy="find out on how many units the figure rests, and whether some were left out or weighted",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"HR@1": "0.333"}, n=200, no_ties=True).findings""",
)
