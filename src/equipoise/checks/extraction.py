"""A check of annotated documents: can they show whether assertions are told apart?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from equipoise.checks.base import Check, Complaint
from equipoise.stats.numbers import count
from equipoise.types import Severity


@dataclass(frozen=True, slots=True)
class AssertedGold:
    """How many gold entries of a corpus have each assertion, and whether assertions are ``scored``."""

    corpus: str
    counts: Mapping[str, int]
    scored: bool = False

    @classmethod
    def of(cls, corpus: str, assertions: Iterable[str], *, scored: bool = False) -> Self:
        """Counted from the assertions of all entries."""
        return cls(corpus, Counter(assertions), scored)


def one_assertion(gold: AssertedGold) -> Iterator[Complaint]:
    """EQ140: every gold entry has the same assertion, so detecting assertions can only cost."""
    if len(gold.counts) != 1:
        return
    assertion, entries = next(iter(gold.counts.items()))
    which = "the only gold entry is" if entries == 1 else f"all {count(entries)} gold entries are"
    yield Complaint(
        gold.corpus,
        f"{which} {assertion}, so these documents cannot show whether assertions are detected"
        + ("; the strict figures reward whoever never looks" if gold.scored else ""),
        (f"{assertion}: {entries}",),
    )


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ140",
        title="one assertion in all the gold",
        severity=Severity.TIP,
        applies_to=AssertedGold,
        function=one_assertion,
        why="""\
A corpus in which every term is affirmed has no negated finding to recognise. A system that calls
everything affirmed is right throughout there, and one that reads "no fever" correctly is punished when the
annotators left negated findings out. Figures with assertions on such a corpus say nothing about reading
negation, family history or doubt.""",
        remedy="read the id-only figures here, and measure assertions on documents that have several kinds",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.extraction import AssertedGold
examine(AssertedGold.of("corpus/", ["affirmed"] * 392, scored=True))""",
    ),
)
