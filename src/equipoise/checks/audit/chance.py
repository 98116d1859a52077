"""What a scorer that knows nothing earns is known exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil, floor, inf, log, log2, pi, sqrt
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
MARGIN = 5.0
"""How much further off a figure must be where only the figures themselves tell how many units there were."""


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
    needs = (Need.ONE_RELEVANT,)
    if row.facts.classes:
        several = Need.ONE_RELEVANT in row.denied
        return Pool(row.facts.classes, row.facts.classes, needs if several else ())
    if row.facts.candidates:
        return Pool(row.facts.candidates, row.facts.candidates, needs)
    first = _first(row)
    if first is None or first.span.low <= 0 or row.units(first) is not None:
        return None
    least, most = ceil(1 / first.span.high - SLACK), floor(1 / first.span.low + SLACK)
    return Pool(least, most, needs, first) if least <= most else None


def _first(row: Row) -> Figure | None:
    return row.one("HR", 1) or row.one("Acc")


class Earned(NamedTuple):
    """What luck earns among n items: in words, the mean, the mean of squares and the most, given n."""

    words: str
    mean: Callable[[int], float]
    square: Callable[[int], float]
    most: Callable[[int], float] = lambda n: 1.0


def _earned(figure: Figure) -> Earned | None:
    """The mean of what the right answer earns over all ranks from 1 to n."""
    symbol, k = figure.measure.symbol, figure.k
    if figure.measure.parameters:
        return None
    if symbol == "MRR":
        words = "the mean of 1, 1/2, ... 1/n, which is H_n / n" if k == inf else f"H_{int(k)} / n"
        return Earned(words, lambda n: harmonic_number(min(k, n)) / n, lambda n: _SQUARES / n)
    if symbol in ("HR", "Acc"):
        hits = k if symbol == "HR" else 1
        return Earned(f"{int(hits)} / n", lambda n: min(hits, n) / n, lambda n: min(hits, n) / n)
    if symbol == "nDCG":
        return Earned("the mean of 1 / log2(rank + 1)", *[lambda n: _discounts(int(min(k, n))) / n] * 2)
    if symbol == "MR":
        return Earned("(n + 1) / 2", lambda n: (n + 1) / 2, lambda n: (n + 1) * (2 * n + 1) / 6, float)
    return None


_SQUARES = pi**2 / 6
"""The sum of 1, 1/4, 1/9 ...; no list of reciprocal ranks has more."""


def _discounts(last: int) -> float:
    return sum(1.0 / log2(rank + 1) for rank in range(1, last + 1))


def _off(row: Row, figure: Figure, pool: Pool, earned: Earned) -> Iterator[Violation]:
    ends = sorted(earned.mean(size) for size in (pool.least, pool.most))
    expected = Span(ends[0], ends[1])
    if not expected.apart(figure.span):
        return
    n, luck = _measured(row, figure, pool, earned)
    measured = not Span(ends[0] - luck, ends[1] + luck).apart(figure.span)
    if measured and row.units(figure) is not None:
        return
    told = (f"{pool.source.read}; it is 1/n, so n is {pool}",) if pool.source else ()
    moved = (f"on {n} units luck may move it by {digits(luck, 4)} at most",) if not measured else ()
    yield Violation(
        (figure,),
        f"{figure} is not what a scorer that knows nothing earns among {pool}: {expected}",
        (
            *told,
            f"the right answer has each of n ranks equally often, so {figure.measure} is {earned.words}",
            f"for n = {pool} that is {expected}",
            *moved,
            figure.read,
        ),
        (*_needs(figure, pool, expected), *((Need.EXPECTED,) if measured else ())),
        remedy="if it was measured, say on how many units, with --n or a column n" if measured else "",
    )


def _needs(figure: Figure, pool: Pool, expected: Span) -> tuple[Need, ...]:
    """Several relevant items make no difference where a random accuracy is known and a figure is above.

    By luck the first k ranks hold a relevant item at most k times as often as the first one does.
    """
    bounded = pool.source is not None and figure.measure.symbol in ("HR", "MRR")
    return () if bounded and figure.span.above(expected) else pool.needs


def _measured(row: Row, figure: Figure, pool: Pool, earned: Earned) -> tuple[int, float]:
    """On how many units a random run was measured, at least, and how far luck moves it there."""
    units = row.units(figure)
    n = units
    if n is None:
        # A share above 0 is one hit of n at least.
        shares = [
            each.span.high for each in row.figures if each.measure.symbol in _HITS and each.span.low > 0
        ]
        n = max(1, *(floor(1 / share + SLACK) for share in shares)) if shares else 1
    sizes = (pool.least, pool.most)
    square, most = max(map(earned.square, sizes)), max(map(earned.most, sizes))
    luck = _luck(square, most, n)
    return n, luck if units is not None else MARGIN * luck


_HITS = ("HR", "Acc")


def _luck(square: float, most: float, n: int) -> float:
    """How far a mean over n units may be off by luck (Bernstein); the variance is below the mean square."""
    odds = log(2 / LUCK)
    return sqrt(2 * square * odds / n) + most * odds / (3 * n)


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
audit_table([{"system": "random", "classes": 1187, "Acc@1": "0.08%", "MRR": "14%"}]).findings""",
)
