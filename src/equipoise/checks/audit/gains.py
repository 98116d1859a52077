"""nDCG beside hits, reciprocal ranks and average precision."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

from equipoise.checks.audit.facts import Need
from equipoise.checks.audit.first_hits import hit_steps, known_hits, outside
from equipoise.checks.audit.harmonic import harmonic_number
from equipoise.checks.audit.row import Figure, Row
from equipoise.checks.audit.span import SLACK, digits
from equipoise.checks.audit.violation import Violation, accusing, widest
from equipoise.checks.base import Check
from equipoise.types import Severity

ONE, BINARY = (Need.ONE_RELEVANT,), (Need.BINARY,)
DEEPEST = 100
"""Up to here AP@k never exceeds nDCG@k without grades, by exact search over all lists; at 200 it can."""


def discount(rank: float) -> float:
    """What an item at this rank adds to the discounted gain."""
    return 1.0 / log2(rank + 1.0)


def impossible_gains(row: Row) -> Iterator[Violation]:
    """EQ406: an nDCG that hits, reciprocal ranks or average precision do not allow."""
    gains = [*row.series("nDCG", cut=False), *row.series("nDCG", cut=False, gain="exp")]
    yield from _above_the_hits(row, gains)
    for gain in gains:
        yield from outside(gain, hit_steps(row), discount, ONE)
        yield from _below_reciprocal(row, gain)
    for gain in row.series("nDCG"):
        yield from _beside_average_precision(row, gain)


def _above_the_hits(row: Row, gains: list[Figure]) -> Iterator[Violation]:
    found = []
    for gain in gains:
        for hits in known_hits(row):
            if hits.k >= gain.k and gain.span.above(hits.span):
                why = f"a unit without a hit adds 0 to {gain.measure}, and one with a hit adds 1 at most"
                sentence = f"{gain} is above {hits}, the share of units that add anything to it"
                gap = gain.span.low - hits.span.high
                found.append((gap, Violation((gain, hits), sentence, (why, gain.read, hits.read))))
    yield from widest(found)


def _below_reciprocal(row: Row, gain: Figure) -> Iterator[Violation]:
    reciprocal = row.one("MRR", gain.measure.k)
    if reciprocal and reciprocal.span.above(gain.span):
        why = "at every rank r, 1/r is at most 1/log2(r + 1)"
        sentence = f"{gain} is below {reciprocal}, and discounts less"
        steps = (why, gain.read, reciprocal.read)
        yield Violation(
            (gain, reciprocal), sentence, steps, ONE, remedy="if one of them is cut, say at which rank"
        )


def most_of_gain(k: int) -> float:
    """The largest share of its nDCG@k that a unit without a relevant item at rank 1 earns as AP@k.

    It is reached by relevant items at all ranks from 2 to k.

    >>> round(most_of_gain(2), 4), round(most_of_gain(10), 4)
    (0.7925, 0.9433)
    """
    ideal = sum(discount(rank) for rank in range(1, k))
    return (k - harmonic_number(k)) / (k - 1) * ideal / (ideal + discount(k) - 1.0)


def _beside_average_precision(row: Row, gain: Figure) -> Iterator[Violation]:
    """AP@k <= nDCG@k, and clearly less for a unit whose first item is not relevant."""
    k = int(gain.k)
    average = row.one("MAP", k) or row.one("MAP", k, norm="R")
    if average is None or not 1 < k <= DEEPEST:
        return
    first = row.one("HR", 1) or row.one("P", 1)
    share = most_of_gain(k)
    top = 1.0 if first is None else first.span.high
    most = share * gain.span.high + (1.0 - share) * min(top, gain.span.high)
    if average.span.low <= most + SLACK:
        return
    equal = not average.span.apart(gain.span)
    sentence = (
        f"{average} is {'as large as' if equal else 'too large beside'} {gain}: "
        f"{digits(most, 4)} is the most" + (f" beside {first}" if first else "")
    )
    steps = (
        f"without grades AP@{k}, divided by min(k, R) or by R, is never above nDCG@{k}",
        f"a unit whose first item is not relevant earns at most {digits(share, 4)} of its nDCG@{k} as AP@{k}",
        *((f"only {first} of the units have a relevant first item",) if first else ()),
        gain.read,
        average.read,
        f"so MAP@{k} is at most {digits(most)}",
    )
    figures = (average, gain, *((first,) if first else ()))
    sure = bool(average.measure.parameters) or row.own
    yield Violation(figures, sentence, steps, BINARY if sure else (*BINARY, Need.OVER_RELEVANT))


CHECK = Check(
    code="EQ406",
    title="nDCG does not fit hits, ranks or precision",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(impossible_gains),
    why="""\
A unit without a hit within k has no gain within k, so nDCG@k is at most HR@k, with or without grades. With
one relevant item at rank r it is 1/log2(r + 1) and the hit rates bound it from both sides, as they bound MRR.
Without grades average precision is below nDCG wherever an irrelevant item stands first. Both can only be
equal at a cutoff above 1 if every unit is perfect or a total miss there, which the hit rates would show.""",
    remedy="see whether one column was copied from the other, and whether grades were used for one of them",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"HR@10": 0.40, "nDCG@10": 0.52}).findings""",
)
