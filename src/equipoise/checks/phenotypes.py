"""A check of expected terms: those that nothing any system finds comes near to may be wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from equipoise.checks.base import Check, Complaint, counted, kept
from equipoise.stats.numbers import count, figure
from equipoise.types import Severity

FAR = 100
"""Every system puts an implausible term below this rank."""
UNLIKE = 0.3
"""The largest similarity of an implausible term to anything that a system puts first."""


@dataclass(frozen=True, slots=True)
class ExpectedTerm:
    """A term that a case expects, its best rank by any system, and the nearest of what they put first.

    ``nearest`` is the largest similarity in the ontology; ``found`` what most systems put first.
    """

    case: str
    text: str
    id: str
    label: str
    rank: float
    nearest: float
    found: str


@dataclass(frozen=True, slots=True)
class ExpectedTerms:
    """The expected terms of all cases, seen by these systems among so many terms."""

    terms: Sequence[ExpectedTerm]
    systems: Sequence[str]
    candidates: int


def implausible_terms(expected: ExpectedTerms) -> Iterator[Complaint]:
    """EQ120: expected terms that are far from everything that any system finds."""
    if expected.candidates < 10 * FAR:
        return  # among few terms, a low rank says little
    wrong = [each for each in expected.terms if each.rank > FAR and each.nearest < UNLIKE]
    if not wrong:
        return
    first = wrong[0]
    systems = counted(len(expected.systems), "system")
    yield Complaint(
        f"case {first.case}",
        f"of {counted(len(expected.terms), 'expected term')}, {count(len(wrong))} may be wrong: "
        f"{systems} put {'it' if len(wrong) == 1 else 'them'} far down and nothing alike first, such as "
        f"{first.id} ({first.label}) for {first.text!r}",
        kept([_line(each) for each in wrong]),
    )


def _line(term: ExpectedTerm) -> str:
    return (
        f"{term.case}: {term.text!r} expects {term.id} ({term.label}); best rank {count(round(term.rank))}, "
        f"similarity {figure(term.nearest, 2)}, found {term.found}"
        if term.rank < float("inf")
        else f"{term.case}: {term.text!r} expects {term.id} ({term.label}), which was not retrieved"
    )


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ120",
        title="expected terms that look wrong",
        severity=Severity.TIP,
        applies_to=ExpectedTerms,
        function=implausible_terms,
        why="""\
A case with a wrong expected term punishes the system that answers it well. Nobody can tell from scores alone
that a term is wrong: a text may be hard. But a term that every system puts far down, while nothing that any
of them puts first is even related to it in the ontology, is more often a slip of a digit in its id than a
hard case. It deserves a look by someone who knows the field; the figures are not changed.""",
        remedy="look at these cases; correct the ids, or leave them as they are where they are right",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.phenotypes import ExpectedTerm, ExpectedTerms
from equipoise.types import Severity
term = ExpectedTerm("c4", "Down syndrome", "HP:0000598", "Abnormality of the ear", 4100.0, 0.1, "Obesity")
examine(ExpectedTerms([term], ["use", "tfidf:"], candidates=19034))""",
    ),
)
