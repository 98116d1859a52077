"""An interval around the best of several configurations, made on the units that chose it."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.audit.row import Figure, Row
from equipoise.checks.audit.span import Span
from equipoise.checks.audit.violation import Violation, accusing
from equipoise.checks.base import Check
from equipoise.stats.interval import wilson
from equipoise.types import Severity


def chosen_on_same_units(row: Row) -> Iterator[Violation]:
    """EQ413: the interval of a figure that is the best of several configurations."""
    trials = row.facts.trials
    if row.facts.nested or row.own or (trials is not None and trials < 2):
        return
    if trials is None and not row.chosen:
        return
    several = "several" if trials is None else str(trials)
    for figure in row.figures:
        if figure.ends is not None and figure.measure.symbol in ("HR", "Acc"):
            yield Violation(
                (figure,),
                f"the interval of {figure} is that of one configuration, and this is the best of {several}",
                (
                    figure.read,
                    f"the interval goes from {figure.ends_text}",
                    *_as_wilson(row, figure),
                    f"it allows for the luck of one; the best of {several} has the luck of the luckiest",
                    "so the true accuracy lies below such an interval more often than its level says",
                ),
            )


def _as_wilson(row: Row, figure: Figure) -> tuple[str, ...]:
    """Whether the ends are those of Wilson's interval for one fixed configuration."""
    n = row.units(figure)
    if n is None or figure.ends is None:
        return ()
    share = min(max((figure.span.low + figure.span.high) / 2, 0.0), 1.0)
    reach = wilson(share * n, n, row.facts.level or 0.95)
    ends = (Span(reach.low, reach.low), Span(reach.high, reach.high))
    near = all(
        not end.apart(Span(seen.low - 0.005, seen.high + 0.005))
        for end, seen in zip(ends, figure.ends, strict=True)
    )
    return (f"it is Wilson's interval of one share of {n} units",) if near else ()


CHECK = Check(
    code="EQ413",
    title="an interval around the best of several configurations",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(chosen_on_same_units),
    why="""\
Wilson's interval, like any other, is made for a configuration that was fixed before the units were seen. The
best of 27 on the same questions was chosen for its luck as well as for its worth, and its interval covers the
truth in three cases of four instead of nineteen of twenty. The figure itself is optimistic by several points.
Nested tuning gives an honest one: what is scored on a question was chosen without it.""",
    remedy="report the nested figure (eq fair compare), or choose on some units and report on others",
    example="""\
from equipoise.checks.audit import audit_table
audit_table([{"model": "bge-base", "best_accuracy": 94.4, "ci_lower": 88.3, "ci_upper": 97.4,
              "configurations_tested": 27}]).findings""".replace("\n              ", " "),
)
