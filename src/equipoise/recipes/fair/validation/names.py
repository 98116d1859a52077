"""Categories and difficulties that nobody knows: most are typing errors, and they move the shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from equipoise.data.fixture import CATEGORIES, DIFFICULTIES, Question
from equipoise.errors import did_you_mean


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A category or difficulty that is none of the usual ones, how many questions have it, and what to do."""

    kind: str
    name: str
    count: int
    suggestion: str


def unknown_names(questions: Sequence[Question]) -> list[UnknownName]:
    """Names of categories and difficulties that are not known, in the order of their first use.

    >>> unknown_names([Question("q1", "Where?", "here", category="multihop")])[0].suggestion
    'did you mean multi_hop?'
    """
    return [
        *_unknown("category", questions, CATEGORIES),
        *_unknown("difficulty", questions, DIFFICULTIES),
    ]


def _unknown(kind: str, questions: Sequence[Question], known: Iterable[str]) -> list[UnknownName]:
    usual = list(known)
    names = (each.kinds[kind] for each in questions if kind in each.kinds)
    return [
        UnknownName(kind, name, count, did_you_mean(name, usual) or f"the usual ones are {', '.join(usual)}")
        for name, count in Counter(names).items()
        if name not in usual
    ]
