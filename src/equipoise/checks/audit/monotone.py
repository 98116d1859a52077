"""Figures that can only grow with the cutoff: whoever looks further down sees no less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import isinf

from equipoise.checks.audit.facts import Need
from equipoise.checks.audit.row import Figure, Row
from equipoise.checks.audit.span import SLACK, digits
from equipoise.checks.audit.violation import Violation, accusing, widest
from equipoise.checks.base import Check
from equipoise.types import Severity

_WHY = {
    "HR": "a unit with a relevant item among the first {j} has one among the first {k}",
    "R": "the relevant items among the first {j} are among the first {k}, and R stays the same",
    "MRR": "a reciprocal rank that counts within {j} counts within {k}",
    "MaxOntSim": "the nearest of the first {j} terms is among the first {k}",
    "MAP": "every precision that is summed within {j} is summed within {k}, and R stays the same",
}

_JUDGED = ("HR", "MRR", "nDCG", "MAP", "P")
"""Where one of these stands alongside, recall is over relevant items, and not over nearest neighbours."""
_CAPPED = "see whether the columns were swapped; recall over min(R, k) may fall, and is spelled R(capped)@k"


def falling(row: Row) -> Iterator[Violation]:
    """EQ402: a figure that falls as the cutoff grows, and cannot."""
    for symbol in ("HR", "MaxOntSim"):
        yield from _never_falls(row.series(symbol), _WHY[symbol])
    judged = any(each.measure.symbol in _JUDGED for each in row.figures)
    fixed = judged and Need.FIXED_RELEVANT not in row.denied
    yield from _never_falls(row.series("R"), _WHY["R"], () if fixed else (Need.FIXED_RELEVANT,))
    yield from _never_falls(row.series("MRR", cut=False), _WHY["MRR"])
    whole = row.one("MAP")
    yield from _never_falls([*row.series("MAP", norm="R"), *([whole] if whole else [])], _WHY["MAP"])
    yield from _precision(row.series("P"))


def _never_falls(series: Sequence[Figure], why: str, needs: tuple[Need, ...] = ()) -> Iterator[Violation]:
    found = []
    for first, second in combinations(series, 2):
        if first.k < second.k and first.span.above(second.span):
            steps = (why.format(j=_rank(first.k), k=_rank(second.k)), first.read, second.read)
            gap = first.span.low - second.span.high
            sentence = f"{first} is above {second}, and a larger cutoff cannot lower it"
            remedy = _CAPPED if first.measure.symbol == "R" else ""
            found.append((gap, Violation((first, second), sentence, steps, needs, remedy=remedy)))
    yield from widest(found)


def _precision(series: Sequence[Figure]) -> Iterator[Violation]:
    """P@k may fall, but k P@k counts relevant items: it never falls, and grows by 1 a rank at most."""
    found = []
    for first, second in combinations(series, 2):
        j, k = int(first.k), int(second.k)
        before, after = first.span * j, second.span * k
        lost, gained = before.low - after.high, after.low - before.high - (k - j)
        if max(lost, gained) <= SLACK:
            continue
        counts = f"that makes {before} relevant items among the first {j} and {after} among the first {k}"
        steps = ("k P@k counts the relevant items among the first k", first.read, second.read, counts)
        if lost > SLACK:
            sentence = f"{first} finds more relevant items than {second}"
            found.append((lost, Violation((first, second), sentence, steps)))
        else:
            sentence = f"{second} needs more relevant items than there are ranks after {first}"
            more = f"{digits(after.low - before.high)} more at least, on {k - j} further ranks"
            found.append((gained, Violation((first, second), sentence, (*steps, more))))
    yield from widest(found)


def _rank(k: float) -> str:
    return "the whole list" if isinf(k) else str(int(k))


CHECK = Check(
    code="EQ402",
    title="a figure falls where it can only grow",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(falling),
    why="""\
What is among the first 5 is among the first 10. So hit rate, recall, MRR@k and MaxOntSim never fall as the
cutoff grows. Precision may, since it is divided by k, but k times P@k counts the relevant items found: it
never falls, and a further rank adds one at most. nDCG and MAP with the denominator min(k, R) may move either
way and are not judged by this.""",
    remedy="see whether the columns were swapped, or come from different runs or units",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"HR@1": 0.62, "HR@5": 0.58}).findings""",
)
