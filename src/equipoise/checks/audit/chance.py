"""What a scorer that knows nothing earns is known exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil, floor, inf, log, log2, sqrt
from typing import NamedTuple

from equipoise.checks.audit.facts import Need
from equipoise.checks.audit.harmonic import harmonic_number
from equipoise.checks.audit.row import Figure, Row
from equipoise.checks.audit.span import SLACK, Span, digits
from equipoise.checks.audit.violation import Violation, accusing
from equipoise.checks.base import Check
from equipoise.types import Severity

LUCK = 1e-9
"""A random run that was measured may be this unlikely and still passes."""
LARGEST = 10**6


def wrong_chance(row: Row) -> Iterator[Violation]:
    """EQ410: a random baseline whose figure is not what luck gives."""
    pool = _pool(row) if row.chance else None
    if pool is None or pool.most > LARGEST:
        return
    for figure in row.figures:
        earned = _earned(figure)
        if earned is not None and figure is not pool.source:
            yield from _off(row, figure, pool, earned)


class Pool(NamedTuple):
    """Among how many items the right answer is ranked; ``source`` is the figure that tells, if one does."""

    least: int
    most: int
    needs: tuple[Need, ...]
    source: Figure | None = None

    def __str__(self) -> str:
        return f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"


def _pool(row: Row) -> Pool | None:
    """The number of classes, of candidates, or what a random accuracy of 1/n says of it."""
    if row.facts.classes:
        return Pool(row.facts.classes, row.facts.classes, ())
    needs = (Need.ONE_RELEVANT,)
    if row.facts.candidates:
        return Pool(row.facts.candidates, row.facts.candidates, needs)
    first = row.one("HR", 1) or row.one("Acc")
    if first is None or first.span.low <= 0 or row.units(first) is not None:
        return None
    least, most = ceil(1 / first.span.high - SLACK), floor(1 / first.span.low + SLACK)
    return Pool(least, most, needs, first) if least <= most else None


class Earned(NamedTuple):
    """What luck earns among n items, in words and as a function of n; ``most`` a unit can earn among n."""

    words: str
    mean: Callable[[int], float]
    most: Callable[[int], float] = lambda n: 1.0


def _earned(figure: Figure) -> Earned | None:
    """The mean of what the right answer earns over all ranks from 1 to n."""
    symbol, k = figure.measure.symbol, figure.k
    if figure.measure.parameters:
        return None
    if symbol == "MRR":
        words = "the mean of 1, 1/2, ... 1/n, which is H_n / n" if k == inf else f"H_{int(k)} / n"
        return Earned(words, lambda n: harmonic_number(min(k, n)) / n)
    if symbol in ("HR", "Acc"):
        hits = k if symbol == "HR" else 1
        return Earned(f"{int(hits)} / n", lambda n: min(hits, n) / n)
    if symbol == "nDCG":
        return Earned("the mean of 1 / log2(rank + 1)", lambda n: _discounts(int(min(k, n))) / n)
    if symbol == "MR":
        return Earned("(n + 1) / 2", lambda n: (n + 1) / 2, float)
    return None


def _discounts(last: int) -> float:
    return sum(1.0 / log2(rank + 1) for rank in range(1, last + 1))


def _off(row: Row, figure: Figure, pool: Pool, earned: Earned) -> Iterator[Violation]:
    ends = sorted(earned.mean(size) for size in (pool.least, pool.most))
    n = row.units(figure)
    luck = 0.0 if n is None else _luck(ends[1], earned.most(pool.most), n)
    if not Span(ends[0] - luck, ends[1] + luck).apart(figure.span):
        return
    expected = Span(ends[0], ends[1])
    told = (f"{pool.source.read}; it is 1/n, so n is {pool}",) if pool.source else ()
    yield Violation(
        (figure,),
        f"{figure} is not what a scorer that knows nothing earns among {pool}: {expected}",
        (
            *told,
            f"the right answer has each of n ranks equally often, so {figure.measure} is {earned.words}",
            f"for n = {pool} that is {expected}",
            *((f"on {n} units luck may move it by {digits(luck, 4)} at most",) if n else ()),
            figure.read,
        ),
        pool.needs,
    )


def _luck(mean: float, most: float, n: int) -> float:
    """How far a mean over n units may be off by luck (Bernstein); the variance is at most most x mean."""
    odds = log(2 / LUCK)
    return sqrt(2 * most * mean * odds / n) + most * odds / (3 * n)


CHECK = Check(
    code="EQ410",
    title="a chance level that luck does not give",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(wrong_chance),
    why="""\
A scorer that knows nothing puts the right answer at each of n ranks equally often. Its accuracy is 1/n, its
HR@k is k/n, its mean rank (n + 1)/2, and its MRR the mean of 1, 1/2, ... 1/n, which is H_n/n: 0.65 % for
1,187 classes. One over the logarithm of n, which some tables give, is larger by far, and makes a system that
has learnt something look worse than luck.""",
    remedy="take H_n/n for MRR and 1/n for accuracy; if it was measured, say on how many units",
    example="""\
from equipoise.checks.audit import audit_table
audit_table([{"system": "random", "classes": 1187, "MRR": "14%"}]).findings""",
)
