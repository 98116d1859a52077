"""Relations: who does what to whom, and concepts that stand alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple

from equipoise.data.field.entries import Entries
from equipoise.data.field.problem import Rule
from equipoise.data.field.records import Relation

EXAMPLE = '{"subject": "...", "predicate": "...", "object": "..."}'
KEYS = ("subject", "predicate", "object")


def relations_in(entries: Entries) -> tuple[Relation, ...]:
    """The relations, none of them twice, none of a thing with itself."""
    made: list[Relation] = []
    first_of: dict[tuple[str, ...], int] = {}
    for place in range(len(entries)):
        value = entries.record(place, EXAMPLE)
        if value is None:
            continue
        texts = [entries.text(place, value, key) for key in KEYS]
        if None in texts:
            continue
        relation = Relation(*(str(text) for text in texts))
        if relation.subject.casefold() == relation.object.casefold():
            fact = f"relates {relation.subject!r} to itself"
            entries.report(Rule.ENTRY, [place], fact, "a thing is always like itself; leave it out")
            continue
        first = first_of.setdefault(astuple(relation), place)
        if first != place:
            entries.report(Rule.REPEATED, [first, place], "are the same relation", "keep one of them")
            continue
        made.append(relation)
    entries.too_few(2, "relation", len(entries), "an object can only be looked for among several entities")
    return tuple(made)


def concepts_in(entries: Entries) -> tuple[str, ...]:
    """Texts, or entries with a ``concept`` or a ``text``; none of them twice."""
    made: list[str] = []
    first_of: dict[str, int] = {}
    for place, value in enumerate(entries.values):
        given = value if isinstance(value, Mapping) else {"concept": value}
        concept = entries.text(place, given, "text" if "text" in given else "concept")
        if concept is None:
            continue
        first = first_of.setdefault(concept.casefold(), place)
        if first != place:
            entries.report(Rule.REPEATED, [first, place], f"are both {concept!r}", "keep one of them")
            continue
        made.append(concept)
    entries.too_few(2, "concept", len(entries), "one concept has no others to differ from")
    return tuple(made)
