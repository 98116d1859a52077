"""Precision, recall and hits count the same relevant items, and there are only so many of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from equipoise.checks.audit.first_hits import known_hits
from equipoise.checks.audit.row import Figure, Row
from equipoise.checks.audit.span import SLACK, Span, digits
from equipoise.checks.audit.violation import Violation, accusing, widest
from equipoise.checks.base import Check
from equipoise.types import Severity


def miscounted(row: Row) -> Iterator[Violation]:
    """EQ405: precision, recall and hits that no number of relevant items gives."""
    yield from _recall_beside_precision(row)
    yield from _hits_beside_precision(row)
    yield from _at_most_the_hits(row)
    yield from _capped(row)


def most_recall(precision: float, k: int, j: int) -> float:
    """The largest R@j beside P@k, for j <= k.

    A unit with c relevant items among its first k has at least c in all, and at most j of them among its
    first j: its R@j is at most j/c, and never above 1. Between c = j and c = k the mean over units lies
    below the straight line from 1 to j/k.

    >>> round(most_recall(1.0, 10, 1), 6), most_recall(0.05, 10, 10), most_recall(0.3, 5, 5)
    (0.1, 0.5, 1.0)
    """
    found = k * precision
    return min(found, 1.0) if found <= j else 1.0 - (found - j) / k


def _recall_beside_precision(row: Row) -> Iterator[Violation]:
    for recall in row.series("R"):
        found = []
        for precision in row.series("P"):
            j, k = int(recall.k), int(precision.k)
            most = _most_recall_of(precision.span, k, j) if j <= k else 1.0
            if recall.span.low > most + SLACK:
                steps = (
                    f"{precision} means {precision.span * k} relevant items among the first {k}",
                    f"a unit with c of them has at least c relevant items, and its R@{j} is at most {j}/c",
                    precision.read,
                    recall.read,
                    f"on average R@{j} is at most {digits(most)}",
                )
                sentence = f"{recall} is too large beside {precision}: {digits(most, 4)} is the most"
                found.append((-most, Violation((recall, precision), sentence, steps)))
        if found:
            yield max(found, key=lambda pair: pair[0])[1]


def _most_recall_of(precision: Span, k: int, j: int) -> float:
    """The bound rises up to one item found and falls from j items on: its peak lies between."""
    ends = (precision.low, precision.high)
    peak = ends[0] * k <= j and ends[1] * k >= 1
    return 1.0 if peak else max(most_recall(end, k, j) for end in ends)


def _hits_beside_precision(row: Row) -> Iterator[Violation]:
    """P@k <= HR@k <= k P@k: a hit is at least one of k items and at most all of them."""
    few, many = [], []
    for precision, hits in product(row.series("P"), row.series("HR")):
        k, most = int(precision.k), precision.span * precision.k
        if k == hits.k == 1:
            continue
        if hits.k >= k:
            why = f"a unit without a hit adds 0 to P@{k}, and one with a hit adds 1 at most"
            few += _exceeds(precision, hits, why)
        if hits.k <= k and hits.span.above(most):
            steps = (
                f"every hit within {int(hits.k)} has a relevant item among the first {k}",
                precision.read,
                f"k P@k, the mean number of relevant items among the first {k}, is {most}",
                hits.read,
            )
            sentence = f"{hits} has more hits than {precision} has relevant items"
            many.append((hits.span.low - most.high, Violation((hits, precision), sentence, steps)))
    yield from widest(few)
    yield from widest(many)


def _at_most_the_hits(row: Row) -> Iterator[Violation]:
    """A unit without a hit earns nothing, and one with a hit 1 at most; MaxOntSim gives every hit 1."""
    found = []
    earning = [*row.series("R"), *row.series("MAP"), *row.series("MAP", norm="R"), *row.series("MRR")]
    for hits in known_hits(row):
        for part in earning:
            # At the first rank other laws hold precision, recall and reciprocal rank together.
            by_precision = hits.measure.symbol == "P" and part.measure.symbol == "R"
            told = hits.k == 1 and (part.measure.symbol == "MRR" or by_precision)
            if part.k <= hits.k and not told:
                found += _exceeds(
                    part, hits, f"a unit without a hit adds 0 to {part.measure}, others 1 at most"
                )
        for nearest in row.series("MaxOntSim"):
            if nearest.k >= hits.k:
                found += _exceeds(hits, nearest, "a unit with a hit has the similarity 1")
    yield from widest(found)


def _capped(row: Row) -> Iterator[Violation]:
    """P@k and R@k divide by more than min(R, k) does."""
    found = []
    for capped in row.series("R", capped="True"):
        k = int(capped.k)
        for other, whole in ((row.one("P", k), "k"), (row.one("R", k), "R")):
            if other and k > 1:
                found += _exceeds(other, capped, f"min(R, k) is no more than {whole}")
        hits = row.one("HR", k)
        if hits and k > 1:
            found += _exceeds(capped, hits, "a unit without a hit adds 0, others 1 at most")
    yield from widest(found)


def _exceeds(small: Figure, large: Figure, why: str) -> list[tuple[float, Violation]]:
    if not small.span.above(large.span):
        return []
    sentence = f"{small} is above {large}, and cannot be"
    gap = small.span.low - large.span.high
    return [(gap, Violation((small, large), sentence, (why, small.read, large.read, _by(gap))))]


def _by(gap: float) -> str:
    return f"it is above it by {Span(gap, gap)} at least"


CHECK = Check(
    code="EQ405",
    title="precision, recall and hits do not fit the number of relevant items",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(miscounted),
    why="""\
All three count relevant items among the first k: precision divides by k, recall by their number R, and a hit
asks for one of them. So P@k <= HR@k <= k P@k, and R@k <= HR@k. A high precision needs many relevant items,
and then a short list cannot have recalled much: P@10 = 1 means ten of them at least for every unit, so that
R@1 is at most 0.1.""",
    remedy="see what precision was divided by: by k, or by the number of items that were returned",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"Precision@10": "1.0000", "Recall@1": "0.1667"}).findings""",
)
