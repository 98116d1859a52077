"""F1 beside precision and recall: their harmonic mean, or less where units were averaged."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.audit.row import Figure, Row
from equipoise.checks.audit.span import SLACK, Span, digits
from equipoise.checks.audit.violation import Violation, accusing
from equipoise.checks.base import Check
from equipoise.types import Severity


def harmonic(first: float, second: float) -> float:
    """The harmonic mean; 0 where either is 0.

    >>> harmonic(0.5, 1.0)
    0.6666666666666666
    """
    return 2 * first * second / (first + second) if first > 0 and second > 0 else 0.0


def not_harmonic(row: Row) -> Iterator[Violation]:
    """EQ408: an F1 that precision and recall do not allow."""
    if row.chance:
        return
    for f1 in (each for each in row.figures if each.measure.symbol == "F1"):
        parameters = dict(f1.measure.parameters)
        precision, recall = (row.one(symbol, None, **parameters) for symbol in ("P", "R"))
        if precision and recall:
            yield from _impossible(f1, precision, recall, pooled=_pooled(row, parameters))


def _pooled(row: Row, parameters: dict[str, str]) -> bool:
    return parameters.get("average") == "micro" and not row.averaged


def _impossible(f1: Figure, precision: Figure, recall: Figure, *, pooled: bool) -> Iterator[Violation]:
    p, r = precision.span, recall.span
    mean = Span(harmonic(max(p.low, 0.0), max(r.low, 0.0)), harmonic(p.high, r.high))
    reads = (precision.read, recall.read, f1.read)
    named = f"{precision} and {recall}"
    if f1.span.above(mean):
        yield Violation(
            (f1, precision, recall),
            f"{f1} is above the harmonic mean of {named}, {digits(mean.high, 4)}",
            (
                "F1 is the harmonic mean of precision and recall, class by class or document by document",
                "a mean of such means is at most the harmonic mean of the averages, since it is concave",
                *reads,
                f"the harmonic mean is at most {digits(mean.high)}",
            ),
        )
    elif pooled and mean.above(f1.span):
        yield Violation(
            (f1, precision, recall),
            f"{f1} is below the harmonic mean of {named}, {digits(mean.low, 4)}, which it must be",
            (
                "a micro average pools all counts, so F1 = 2 P R / (P + R) exactly",
                *reads,
                f"2 P R / (P + R) is at least {digits(mean.low)}",
            ),
        )
    elif (least := p.low + r.low - 1.0) > f1.span.high + SLACK:
        yield Violation(
            (f1, precision, recall),
            f"{f1} is too small beside {named}: {digits(least, 4)} is the least",
            (
                "for each class or document F1 = 2 P R / (P + R) is at least P R, since P + R is at most 2",
                "and the mean of P R is at least the mean of P plus the mean of R minus 1",
                *reads,
                f"that is at least {digits(least)}",
            ),
        )


CHECK = Check(
    code="EQ408",
    title="F1 does not follow from precision and recall",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(not_harmonic),
    why="""\
Where counts are pooled (micro), F1 is the harmonic mean of precision and recall exactly. Where classes or
documents are averaged (macro, weighted), it is the mean of their harmonic means. That is at most the harmonic
mean of the averages, and at least their sum less 1. So an F1 above the harmonic mean of the precision and the
recall beside it cannot be, whatever the average, as long as it is the same for all three.""",
    remedy="average precision, recall and F1 in the same way, over the same classes or documents",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"precision": 0.50, "recall": 0.60, "f1": 0.62}).findings""",
)
