"""Sentences whose entities are marked, each with a type and, if people like, its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.data.field.entries import Entries, shown
from equipoise.data.field.problem import Rule
from equipoise.data.field.records import Entity, Sentence

EXAMPLE = '{"text": "...", "entities": [{"text": "...", "label": "...", "start": 0, "end": 5}]}'


def sentences_in(entries: Entries) -> tuple[Sentence, ...]:
    """The sentences with their entities; an entity that does not stand where it should is reported."""
    made: list[Sentence] = []
    first_of: dict[str, int] = {}
    for place in range(len(entries)):
        value = entries.record(place, EXAMPLE)
        text = None if value is None else entries.text(place, value, "text")
        if value is None or text is None:
            continue
        first = first_of.setdefault(text, place)
        if first != place:
            entries.report(Rule.REPEATED, [first, place], "have the same text", "keep one of them")
            continue
        # Offsets count from the text as it was given, white space and all.
        made.append(Sentence(str(value["text"]), _entities(entries, place, value)))
    if not any(problem.fatal for problem in entries.problems):
        types = {entity.label for sentence in made for entity in sentence.entities}
        why = "types can only be told apart where there are two"
        entries.too_few(2, "type of entity", len(types), why, nouns="types of entities")
    return tuple(made)


def _entities(entries: Entries, place: int, value: Mapping[str, Any]) -> tuple[Entity, ...]:
    given = value.get("entities")
    if "entities" not in value:
        entries.missing(place, value, "entities")
        return ()
    if not isinstance(given, list | tuple):
        entries.report(Rule.ENTRY, [place], f"has {shown(given)} as its entities", f"write {EXAMPLE}")
        return ()
    made: list[Entity] = []
    for nth, each in enumerate(given, start=1):
        entity = _entity(entries, place, nth, each)
        if entity is None:
            continue
        if entity in made and entity.start is not None:
            entries.report(Rule.REPEATED, [place], f"marks {entity.text!r} twice", "keep one of them")
            continue
        made.append(entity)
        _check_place(entries, place, entity, str(value["text"]))
    return tuple(made)


def _entity(entries: Entries, place: int, nth: int, value: Any) -> Entity | None:
    if not isinstance(value, Mapping):
        fact = f"has {shown(value)} as entity {nth}"
        entries.report(Rule.ENTRY, [place], fact, f"write {EXAMPLE}")
        return None
    text = entries.text(place, value, "text", f"text for entity {nth}")
    label = entries.text(place, value, "label", f"label for entity {nth}")
    ends = [value.get(key) for key in ("start", "end")]
    for key, end in zip(("start", "end"), ends, strict=True):
        if end is not None and (isinstance(end, bool) or not isinstance(end, int)):
            fact = f"has {shown(end)} as the {key} of entity {nth}"
            entries.report(Rule.ENTRY, [place], fact, "write the number of characters before it")
            return None
    if (ends[0] is None) != (ends[1] is None):
        fact = f"gives entity {nth} one of start and end"
        entries.report(Rule.ENTRY, [place], fact, "give both, or none")
        return None
    return None if text is None or label is None else Entity(text, label, *ends)


def _check_place(entries: Entries, place: int, entity: Entity, text: str) -> None:
    stands = text.find(entity.text)
    hint = "write it as the text does"
    if stands >= 0:
        hint = f"it stands at {stands} to {stands + len(entity.text)}"
    if entity.start is None or entity.end is None:
        if stands < 0:
            fact = f"marks {entity.text!r}, which is not in the text"
            entries.report(Rule.OFFSETS, [place], fact, hint)
        return
    found = text[entity.start : entity.end] if 0 <= entity.start <= entity.end else ""
    if found != entity.text:
        fact = f"marks {entity.text!r} at {entity.start} to {entity.end}, where {found!r} stands"
        entries.report(Rule.OFFSETS, [place], fact, hint)
