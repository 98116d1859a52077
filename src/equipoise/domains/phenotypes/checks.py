"""Checks of expected terms (EQ120) and of gold assertions (EQ140)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from equipoise.checks.base import Observation, declared_checks, evidence_names, pluralize
from equipoise.stats.formatting import format_count, format_value

# The limits were chosen on two known errors. On 151 sample cases with one random id each, the ranks of the default
# model detect 113 and 122 in two samples, and report 1 of the correct ids. A wrong term that shares words with the
# text is not detected. MANY was reduced from 0.25, because a weak system reported 30 of 211 correct terms.
MAX_RANK_FRACTION = 0.2
"""An implausible term ranks below this share of all terms for every system."""
MAX_SIMILARITY = 0.5
"""The top terms of all systems are less similar than this to an implausible term."""
MIN_TERMS = 1000
"""With fewer terms than this a low rank is no evidence."""
MANY, FEW = 0.05, 2
"""Where more than this share of the terms, and more than these few, are far, the systems are weak, and none
is suspicious."""

MAX_LISTED = 4
"""Terms that the message names; the evidence has all of them."""


@dataclass(frozen=True, slots=True)
class ExpectedTerm:
    """An expected term of a case, its best rank by any system, and its similarity to the nearest top term.

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
    """The expected terms of all cases with their ranks by these systems, and the number of candidates."""

    terms: Sequence[ExpectedTerm]
    systems: Sequence[str]
    candidates: int


def implausible_terms(expected: ExpectedTerms) -> Iterator[Observation]:
    """EQ120: expected terms that are far from everything that any system finds."""
    limit = MAX_RANK_FRACTION * expected.candidates
    implausible = [
        term for term in expected.terms if limit < term.rank < float("inf") and term.nearest < MAX_SIMILARITY
    ]
    if not implausible or expected.candidates < MIN_TERMS or len(implausible) > max(FEW, MANY * len(expected.terms)):
        return
    first = implausible[0]
    others = "".join(f", {term.id} ({term.label}) in {term.case}" for term in implausible[1:MAX_LISTED])
    yield Observation(
        f"case {first.case}",
        f"{format_count(len(implausible))} of {pluralize(len(expected.terms), 'expected term')} may be wrong: "
        f"{'every system ranks' if len(expected.systems) > 1 else 'the system ranks'} at least "
        f"{format_count(int(limit))} terms above {first.id} ({first.label}) for {first.text!r}, such as {first.found}"
        + (f"; also {others[2:]}" if others else ""),
        evidence_names([_evidence_line(term) for term in implausible]),
    )


def _evidence_line(term: ExpectedTerm) -> str:
    return (
        f"{term.case}: {term.text!r} expects {term.id} ({term.label}); best rank {format_count(round(term.rank))}; "
        f"first term {term.found}; largest similarity to a top term {format_value(term.nearest, 2)}"
    )


@dataclass(frozen=True, slots=True)
class GoldAssertions:
    """The number of gold entries per assertion in a corpus, and whether assertions are ``scored``."""

    corpus: str
    counts: Mapping[str, int]
    scored: bool = False

    @classmethod
    def of(cls, corpus: str, assertions: Iterable[str], *, scored: bool = False) -> Self:
        """Counted from the assertions of all entries."""
        return cls(corpus, Counter(assertions), scored)


def single_assertion(gold: GoldAssertions) -> Iterator[Observation]:
    """EQ140: every gold entry has the same assertion, so assertion detection can only lower the scores."""
    if len(gold.counts) != 1:
        return
    assertion, entries = next(iter(gold.counts.items()))
    subject = "the only gold term is" if entries == 1 else f"all {format_count(entries)} gold terms are"
    yield Observation(
        gold.corpus,
        f"{subject} {assertion}, so these documents cannot show whether assertions are detected"
        + ("; scores with assertions favour a system that does not detect them" if gold.scored else ""),
        (f"{assertion}: {entries}",),
    )


CHECKS = declared_checks(
    "equipoise.domains.phenotypes",
    {
        "EQ120": (ExpectedTerms, implausible_terms),
        "EQ140": (GoldAssertions, single_assertion),
    },
)
