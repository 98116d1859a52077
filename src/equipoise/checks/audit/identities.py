"""Figures that are one and the same number under two names."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.audit.facts import Need
from equipoise.checks.audit.measure import Measure
from equipoise.checks.audit.row import Figure, Row
from equipoise.checks.audit.span import Span
from equipoise.checks.audit.violation import Violation, accusing
from equipoise.checks.base import Check
from equipoise.types import Severity

ONE, BINARY = (Need.ONE_RELEVANT,), (Need.BINARY,)


def unequal(row: Row) -> Iterator[Violation]:
    """EQ401: two figures that must be the same number, and are not."""
    yield from _one_metric_twice(row)
    yield from _at_the_first_rank(row)
    yield from _map_at_one(row)
    yield from _with_one_relevant(row)


def _one_metric_twice(row: Row) -> Iterator[Violation]:
    seen: dict[Measure, Figure] = {}
    for each in row.figures:
        first = seen.setdefault(each.measure, each)
        if first is not each:
            yield from _differ(first, each, f"{first.label} and {each.label} both name {each.measure}")


def _at_the_first_rank(row: Row) -> Iterator[Violation]:
    hits = [row.one("HR", 1), row.one("P", 1), row.one("MRR", 1), row.one("R", 1, capped="True")]
    known = [each for each in hits if each is not None]
    why = "of one retrieved item either it is relevant, and all of them are 1, or it is not, and all are 0"
    for other in known[1:]:
        yield from _differ(known[0], other, why)
    if known:
        for gain in (row.one("nDCG", 1), row.one("nDCG", 1, gain="exp")):
            if gain is not None:
                grades = "without grades the gain of the first item over the ideal one is 1 or 0"
                yield from _differ(known[0], gain, grades, BINARY, quiet=True)


def _map_at_one(row: Row) -> Iterator[Violation]:
    """AP@1 is P@1 over min(1, R) relevant items, or R@1 over all of them: libraries differ."""
    hits, recall = row.one("HR", 1) or row.one("P", 1), row.one("R", 1)
    average, by_all = row.one("MAP", 1), row.one("MAP", 1, norm="R")
    if by_all and recall:
        yield from _differ(by_all, recall, "over all R relevant items AP@1 is what R@1 is")
    if average and hits and recall and average.span.apart(hits.span) and average.span.apart(recall.span):
        yield Violation(
            (average, hits, recall),
            f"{average} is neither {hits} nor {recall}",
            (
                "AP@1 is 0 unless the first item is relevant",
                "if it is, AP@1 is 1 where the sum is divided by min(k, R), which makes it P@1 = HR@1",
                "and 1/R where it is divided by R, which makes it R@1; no library has a third way",
                *(each.read for each in (average, hits, recall)),
            ),
        )


def _with_one_relevant(row: Row) -> Iterator[Violation]:
    for hits in row.series("HR"):
        k = int(hits.k)
        for recall in (row.one("R", k), row.one("R", k, capped="True")):
            if recall:
                yield from _differ(recall, hits, "the one relevant item is found or not", ONE, quiet=True)
        precision = row.one("P", k)
        if precision and k > 1 and (precision.span * k).apart(hits.span):
            yield Violation(
                (precision, hits),
                f"{precision} is not {hits} divided by {k}",
                (
                    f"of the {k} items one at most is relevant, so precision is HR@{k} / {k}",
                    precision.read,
                    hits.read,
                    f"HR@{k} / {k} is {hits.span * (1 / k)}",
                ),
                ONE,
                quiet=True,
            )
    for average in row.series("MAP", cut=False):
        reciprocal = row.one("MRR", average.measure.k)
        if reciprocal:
            why = "with one relevant item average precision is one over its rank"
            yield from _differ(average, reciprocal, why, ONE, quiet=True)


def _differ(
    first: Figure, second: Figure, why: str, needs: tuple[Need, ...] = (), *, quiet: bool = False
) -> Iterator[Violation]:
    if first.span.apart(second.span):
        yield Violation(
            (first, second),
            f"{first} and {second} must be equal",
            (why, first.read, second.read, _gap(first.span, second.span)),
            needs,
            quiet,
        )


def _gap(first: Span, second: Span) -> str:
    high, low = (first, second) if first.low > second.high else (second, first)
    return f"no value is in both: the one is at least {Span(high.low, high.low)}, the other at most " + (
        f"{Span(low.high, low.high)}"
    )


CHECK = Check(
    code="EQ401",
    title="figures that must be equal, and are not",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(unequal),
    why="""\
At the first rank precision, hit rate and reciprocal rank are the same number: the item is relevant or it is
not. With one relevant item a unit recall is the hit rate at every cutoff, precision its k-th part, and MAP
is MRR. Without grades nDCG@1 is P@1 as well. Where two such figures differ, at least one of them is not what
its name says. The comparison allows for all values that would be printed alike.""",
    remedy="compute both from the same ranks; one of them is not what its name says",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"HR@1": "0.3333", "P@1": "1.0000"}).findings""",
)
