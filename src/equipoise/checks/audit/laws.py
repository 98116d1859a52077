"""All laws of the audit, each with the check that gives it a code."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.audit import (
    averages,
    best_of,
    bounds,
    chance,
    f1,
    first_hits,
    gains,
    granularity,
    identities,
    intervals,
    median,
    monotone,
    parts,
    relevant_items,
    units,
)
from equipoise.checks.audit.facts import DECLARE
from equipoise.checks.audit.row import Row, Table
from equipoise.checks.audit.violation import Law, Violation, complaint, denied, undeclared
from equipoise.checks.base import Check, Complaint
from equipoise.types import Severity

LAWS: tuple[tuple[Check, Law], ...] = (
    (identities.CHECK, identities.unequal),
    (monotone.CHECK, monotone.falling),
    (first_hits.CHECK, first_hits.impossible_reciprocals),
    (median.CHECK, median.beyond_median),
    (relevant_items.CHECK, relevant_items.miscounted),
    (gains.CHECK, gains.impossible_gains),
    (granularity.CHECK, granularity.between_steps),
    (f1.CHECK, f1.not_harmonic),
    (intervals.CHECK, intervals.impossible_intervals),
    (chance.CHECK, chance.wrong_chance),
    (bounds.CHECK, bounds.out_of_bounds),
    (units.CHECK, units.mixed_units),
    (best_of.CHECK, best_of.chosen_on_same_units),
    (averages.CHECK, averages.wrong_averages),
)
MISLEADING = frozenset(
    check.code for check in (best_of.CHECK, parts.CONSTANT, parts.REVERSED, parts.COLLAPSE)
)
"""What these find can be, and does not mean what it seems to."""
BY_LUCK_TOO = (identities.CHECK, monotone.CHECK, chance.CHECK, bounds.CHECK)
"""The laws for a row of chance levels: expectations, which may rest on shuffles of their own each."""


def violated(check: Check, law: Law, thing: Row | Table) -> Iterator[Violation]:
    """What a law finds, unless it cannot be applied."""
    if not isinstance(thing, check.applies_to):
        return
    if isinstance(thing, Row) and thing.chance and check not in BY_LUCK_TOO:
        return
    for violation in law(thing):
        if not denied(thing, violation):
            yield violation


def conditional(row: Row) -> Iterator[Complaint]:
    """EQ450: figures that contradict each other under an assumption that nobody has declared."""
    for check, law in LAWS:
        for violation in violated(check, law, row):
            found = condition(row, check, violation)
            if found is not None:
                yield found


def condition(thing: Row | Table, check: Check, violation: Violation) -> Complaint | None:
    """The note for a violation whose needs are not declared; None where they are, or it is quiet."""
    lacking = undeclared(thing, violation)
    if not lacking or violation.quiet or (isinstance(thing, Row) and thing.own):
        return None
    options = " ".join(DECLARE[need] for need in lacking if need in DECLARE)
    seen = complaint(thing, violation)
    return seen._replace(
        sentence=f"{violation.sentence}. That cannot be if {' and '.join(lacking)} ({check.code}); "
        "otherwise it may be true",
        remedy=f"if it holds, say so with {options}, and the audit counts it" if options else seen.remedy,
    )


CONDITIONAL = Check(
    code="EQ450",
    title="figures that contradict each other under an assumption",
    severity=Severity.NOTE,
    applies_to=Row,
    function=conditional,
    why="""\
Some laws hold only where every unit has one relevant item, where items are relevant without grades, where
no figure was averaged over tied scores, or where average precision was divided by the relevant items and not
by those found. A table seldom says so. Without it the figures may be right, and
nothing is called impossible; with it they cannot be. The sentence names the assumption and the law, and an
option or a column of the table declares it.""",
    remedy="find out whether the assumption holds, and declare it",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"Median Rank": "3.00", "MAP (%)": "93.45"}).findings""",
)
CHECKS: tuple[Check, ...] = (*(check for check, _ in (*LAWS, *parts.LAWS)), CONDITIONAL)
