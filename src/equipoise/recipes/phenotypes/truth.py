"""Cases against an ontology: the live term behind every expected id, and what was followed to get there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from equipoise.checks.base import counted, listed
from equipoise.data.cases import Case
from equipoise.errors import UnknownNameError
from equipoise.ontology.ids import Resolved
from equipoise.ontology.ontology import Ontology
from equipoise.types import Ids, Ints

_NAMED = 5
"""So many unknown ids are explained; all are named."""
MOST_PARTS = 30
"""A property with more values than this tells no parts of the cases apart; a description has one a case."""


@dataclass(frozen=True, eq=False)
class Truth:
    """The cases, and for each the places of the terms that should be found, every term once.

    ``moved`` are the ids that were followed to another term, by case. ``merged`` counts ids that mean a term
    which the same case has already; ``unknown`` are ids that lead nowhere and were left out.
    """

    cases: tuple[Case, ...]
    ontology: Ontology
    expected: tuple[Ints, ...]
    moved: tuple[tuple[str, Resolved], ...] = ()
    merged: int = 0
    unknown: tuple[str, ...] = ()
    properties: dict[str, dict[str, object]] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        """What is asked, in the order of the cases."""
        return [case.text for case in self.cases]

    @property
    def unit_ids(self) -> Ids:
        """The ids of the cases."""
        ids = np.empty(len(self.cases), dtype=object)
        ids[:] = [case.id for case in self.cases]
        return ids

    @property
    def scored(self) -> int:
        """How many cases have an expected term; the others cannot be scored."""
        return sum(len(terms) > 0 for terms in self.expected)

    @property
    def fingerprint(self) -> str:
        """Equal for equal texts with equal expected terms under equal ids."""
        said = [
            [case.id, case.text, sorted(self.ontology.ids[term] for term in terms)]
            for case, terms in zip(self.cases, self.expected, strict=True)
        ]
        return sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know of the cases, each a sentence without its full stop."""
        told = []
        if self.moved:
            case, first = self.moved[0]
            told.append(
                f"{_counted(len(self.moved), 'is', 'are')} alternative or replaced and followed to the live "
                f"term, such as {first.id} to {self.ontology.ids[first.term]} in {case}"
            )
        if self.merged:
            told.append(f"{_counted(self.merged, 'means', 'mean')} a term that the same case has already")
        if self.unknown:
            lost = _counted(len(self.unknown), "is", "are")
            told.append(f"{lost} left out, leading to no live term: {listed(self.unknown)}")
        empty = len(self.cases) - self.scored
        if empty:
            told.append(f"{counted(empty, 'case')} without an expected term cannot be scored")
        return tuple(told)


def truth_of(cases: Sequence[Case], ontology: Ontology, *, skip_unknown: bool = False) -> Truth:
    """Resolve every expected id; ids that lead nowhere are an error that names them all, or are left out."""
    unknown = _unknown(cases, ontology)
    if unknown and not skip_unknown:
        raise _refused(unknown, ontology)
    expected, moved, merged = [], [], 0
    for case in cases:
        found = [ontology.resolve(name) for name in case.expected if name not in unknown]
        terms = list(dict.fromkeys(each.term for each in found))
        merged += len(found) - len(terms)
        moved += [(case.id, each) for each in found if each.how != "live"]
        expected.append(np.array(terms, dtype=np.int64))
    return Truth(
        tuple(cases), ontology, tuple(expected), tuple(moved), merged, tuple(unknown), _properties(cases)
    )


def _unknown(cases: Sequence[Case], ontology: Ontology) -> dict[str, tuple[str, UnknownNameError]]:
    """The ids that lead nowhere, each with the first case that names it and what is wrong."""
    first_case: dict[str, str] = {}
    for case in cases:
        for name in case.expected:
            first_case.setdefault(name, case.id)
    return {name: (first_case[name], error) for name, error in ontology.book.unknown(first_case).items()}


def _refused(unknown: dict[str, tuple[str, UnknownNameError]], ontology: Ontology) -> UnknownNameError:
    lines = [
        f"case {case}: {error.sentence}" + (f"; {error.hint}" if error.hint else "")
        for case, error in list(unknown.values())[:_NAMED]
    ]
    more = list(unknown)[_NAMED:]
    count, verb = counted(len(unknown), "expected id"), "leads" if len(unknown) == 1 else "lead"
    return UnknownNameError(
        f"{count} {verb} to no live term of {ontology.title}",
        excerpt="\n".join([*lines, *([f"and {len(more)} more: {', '.join(more)}"] if more else [])]),
        hint="correct the ids, or leave them out with --skip-unknown (skip_unknown=True)",
    )


def _properties(cases: Sequence[Case]) -> dict[str, dict[str, object]]:
    """The properties that tell parts of the cases apart: several values, and fewer than the cases."""
    own = {case.id: case.properties | {"expected terms": _size(len(case.expected))} for case in cases}
    names = dict.fromkeys(name for each in own.values() for name in each)
    telling = []
    for name in names:
        values = {str(each.get(name)) for each in own.values()}
        if 1 < len(values) <= min(MOST_PARTS, max(2, len(cases) // 2)):
            telling.append(name)
    return {case: {name: each[name] for name in telling if name in each} for case, each in own.items()}


def _size(terms: int) -> str:
    return "1" if terms == 1 else "2 and more" if terms else "none"


def _counted(ids: int, one: str, several: str) -> str:
    return f"{counted(ids, 'expected id')} {one if ids == 1 else several}"
