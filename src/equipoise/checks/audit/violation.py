"""What a law of arithmetic finds: figures that cannot stand together, and the steps that show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

from equipoise.checks.audit.facts import Need
from equipoise.checks.audit.row import Figure, Row, Table
from equipoise.checks.audit.scored import Compared
from equipoise.checks.base import Complaint


@dataclass(frozen=True)
class Violation:
    """Figures that contradict each other if all ``needs`` hold; ``steps`` derive it.

    A ``quiet`` one is kept to itself while a need is not declared: it says that the need does not hold
    rather than that the figures are wrong.
    """

    figures: tuple[Figure, ...]
    sentence: str
    steps: tuple[str, ...]
    needs: tuple[Need, ...] = ()
    quiet: bool = False
    remedy: str = ""
    subject: str = ""
    """Of what in a table it speaks; empty for the thing that the law looked at."""

    @property
    def key(self) -> tuple[str, ...]:
        """What it is about: two readings of a table that violate the same are the same complaint."""
        return tuple(str(each.measure) for each in self.figures) or (self.sentence,)

    @property
    def one_cutoff(self) -> bool:
        """Whether all figures have the same cutoff: such a contradiction is the plainest."""
        return len({each.measure.k for each in self.figures}) == 1


Law = Callable[[Any], Iterator[Violation]]
"""A law looks at a row or at a whole table."""


def undeclared(thing: Row | Table | Compared, violation: Violation) -> list[Need]:
    """The needs of a violation that nobody declared."""
    assumed = thing.facts.assumed if isinstance(thing, Row) else frozenset()
    return [need for need in violation.needs if need not in assumed]


def denied(thing: Row | Table | Compared, violation: Violation) -> bool:
    """Whether a need of the violation is known not to hold, so that there is nothing to say."""
    return isinstance(thing, Row) and bool(set(violation.needs) & thing.denied - thing.facts.assumed)


def complaint(thing: Row | Table | Compared, violation: Violation) -> Complaint:
    """The violation as a check says it."""
    told = thing.facts.told if isinstance(thing, Row) else {}
    held = [
        f"given that {need}" + (f', as the text says: "{told[need]}"' if need in told else "")
        for need in violation.needs
    ]
    name = violation.subject or thing.name or "the table"
    return Complaint(name, violation.sentence, (*held, *violation.steps), violation.remedy)


def accusing(law: Law) -> Callable[[Any], Iterator[Complaint]]:
    """The function of a check: the violations of a law whose needs are all declared."""

    @wraps(law)
    def complaints(thing: Row | Table | Compared) -> Iterator[Complaint]:
        for violation in law(thing):
            if not undeclared(thing, violation) and not denied(thing, violation):
                yield complaint(thing, violation)

    return complaints


def widest(violations: list[tuple[float, Violation]]) -> Iterator[Violation]:
    """Of several violations of one kind the one with the widest gap; the others say the same."""
    if violations:
        yield max(violations, key=lambda pair: (pair[1].one_cutoff, pair[0]))[1]
