"""Concepts that belong together: clusters as lists, or a table with a text and its label a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.data.field.entries import Entries, shown
from equipoise.data.field.problem import Rule
from equipoise.data.field.records import Cluster

LABELLED = ("text", "concept", "sentence")
LABELS = ("label", "theme", "class", "category", "cluster")
"""The columns of a classification table: a text, and what it belongs to."""
EXAMPLE = '{"cluster_id": 0, "theme": "...", "concepts": ["...", "..."]}'


def clusters_in(entries: Entries) -> tuple[Cluster, ...]:
    """The clusters, each with its own name, and each concept in one of them."""
    rows = [value for value in entries.values if isinstance(value, Mapping)]
    table = bool(rows) and not any("concepts" in row for row in rows) and label_keys(rows[0]) is not None
    found = _labelled(entries) if table else _listed(entries)
    _report_repeats(entries, found)
    made: dict[str, list[str]] = {}
    for _, name, concept in found:
        made.setdefault(name, []).append(concept)
    count = len(made) if table else len(entries)
    entries.too_few(2, "cluster", count, "clusters can only be told apart where there are two")
    return tuple(Cluster(name, tuple(concepts)) for name, concepts in made.items())


def label_keys(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """The columns of a text and its label, where a row has both."""
    text = next((key for key in LABELLED if key in row), None)
    label = next((key for key in LABELS if key in row), None)
    return (text, label) if text and label else None


def _labelled(entries: Entries) -> list[tuple[int, str, str]]:
    """The place, cluster and concept of each row of a classification table."""
    found = []
    keys = label_keys(next(value for value in entries.values if isinstance(value, Mapping)))
    assert keys is not None
    for place in range(len(entries)):
        value = entries.record(place, '{"text": "...", "label": "..."}')
        if value is None:
            continue
        given = {**value, keys[1]: _name(value.get(keys[1]))} if keys[1] in value else value
        text, label = entries.text(place, value, keys[0]), entries.text(place, given, keys[1])
        if text is not None and label is not None:
            found.append((place, label, text))
    return found


def _listed(entries: Entries) -> list[tuple[int, str, str]]:
    """The place, cluster and concept of each concept in the lists."""
    found = []
    first_of: dict[str, int] = {}
    for place in range(len(entries)):
        value = entries.record(place, EXAMPLE)
        name = None if value is None else _cluster_name(entries, place, value)
        if value is None or name is None:
            continue
        first = first_of.setdefault(name, place)
        if first != place:
            entries.report(Rule.REPEATED, [first, place], f"are both called {name}", "rename one of them")
            continue
        found += [(place, name, concept) for concept in _concepts(entries, place, value)]
    return found


def _cluster_name(entries: Entries, place: int, value: Mapping[str, Any]) -> str | None:
    if "theme" in value:
        return entries.text(place, value, "theme")
    if value.get("cluster_id") is None:
        entries.missing(place, value, "theme", "theme and no cluster_id")
        return None
    return f"cluster {value['cluster_id']}"


def _concepts(entries: Entries, place: int, value: Mapping[str, Any]) -> Sequence[str]:
    if "concepts" not in value:
        entries.missing(place, value, "concepts")
        return ()
    given = value["concepts"]
    if not isinstance(given, list | tuple):
        entries.report(Rule.ENTRY, [place], f"has {shown(given)} as its concepts", f"write {EXAMPLE}")
        return ()
    if not given:
        entries.report(Rule.ENTRY, [place], "has no concepts", "write them, or leave the cluster out")
    texts = [entries.text(place, {"concept": each}, "concept") for each in given]
    return [text for text in texts if text is not None]


def _name(label: Any) -> Any:
    """Labels that are numbers are names all the same."""
    return str(label) if isinstance(label, int) and not isinstance(label, bool) else label


def _report_repeats(entries: Entries, found: Sequence[tuple[int, str, str]]) -> None:
    first_of: dict[str, tuple[int, str]] = {}
    for place, name, concept in found:
        seen = first_of.get(concept.casefold())
        if seen is None:
            first_of[concept.casefold()] = (place, name)
            continue
        first, other = seen
        where = f"in {name} twice" if other == name else f"in {other} and in {name}"
        places, verb = ([place], "has") if first == place else ([first, place], "have")
        hint = "a concept has one true cluster; keep one of them"
        entries.report(Rule.REPEATED, places, f"{verb} {concept!r} {where}", hint)
