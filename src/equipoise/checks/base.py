"""What a check is: a suspicion with a code, a function that looks, and the words for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, NamedTuple

from equipoise.types import Finding, Severity

SHOWN = 5
KEPT = 20


class Complaint(NamedTuple):
    """What a function of a check has seen; the check adds code, severity and, where none is given, remedy."""

    subject: str
    sentence: str
    evidence: tuple[str, ...] = ()
    remedy: str = ""


@dataclass(frozen=True)
class Check:
    """One suspicion: what it looks at, when it complains, why that matters, and what to do.

    ``function`` gets a thing of the type ``applies_to`` and yields a complaint for everything it dislikes.
    ``example`` is Python whose last line has findings with this code.
    """

    code: str
    title: str
    severity: Severity
    applies_to: type | UnionType
    function: Callable[[Any], Iterator[Complaint]]
    why: str
    remedy: str
    example: str

    def findings(self, thing: object) -> Iterator[Finding]:
        """The complaints about a thing; none about a thing of another type."""
        if not isinstance(thing, self.applies_to):
            return
        for seen in self.function(thing):
            yield Finding(
                code=self.code,
                severity=self.severity,
                subject=seen.subject,
                sentence=seen.sentence,
                remedy=seen.remedy or self.remedy,
                evidence=seen.evidence,
            )


def listed(names: Sequence[object]) -> str:
    """The first few names, and how many more there are.

    >>> listed(["q1", "q2", "q3", "q4", "q5", "q6", "q7"])
    'q1, q2, q3, q4, q5 and 2 more'
    """
    shown = ", ".join(str(name) for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def kept(names: Sequence[object]) -> tuple[str, ...]:
    """Names as evidence of a finding: enough to go and look, not a second copy of the data."""
    rest = len(names) - KEPT
    return (*(str(name) for name in names[:KEPT]), *((f"and {rest} more",) if rest > 0 else ()))


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number and its noun: ``1 unit``, ``3 units``; ``plural`` where an s does not make it.

    >>> counted(2, "entry", "entries")
    '2 entries'
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
