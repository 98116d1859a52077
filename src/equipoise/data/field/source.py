"""Finding the parts of a field: files in a folder, lists in a file, by their names or by their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from equipoise.data.field.clusters import label_keys
from equipoise.data.field.entries import Entries
from equipoise.data.field.pairs import TEXTS
from equipoise.data.jsontext import parse_json, parse_lines
from equipoise.data.tables import FORMATS, format_of, read_table
from equipoise.data.text import explain_unreadable, open_text, shown
from equipoise.errors import DuplicateError, FormatError, InputError, did_you_mean

PART_OF = {
    "pairs": "pairs",
    "clusters": "clusters",
    "entities": "sentences",
    "sentences": "sentences",
    "relations": "relations",
    "triples": "relations",
    "concepts": "concepts",
}
"""The part that a file, or a list in a file, of this name is."""
_OWN_KEYS = ("theme", "cluster_id", "text", "subject")
"""An object with one of these is an entry, not a file of lists."""


def files_in(folder: Path) -> tuple[dict[str, Path], tuple[str, ...]]:
    """The file of each part, and the names of other data files, which are not read."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise explain_unreadable(folder, error) from error
    data = [name for name in names if format_of(name) is not None]
    found: dict[str, Path] = {}
    for name in data:
        part = PART_OF.get(name.partition(".")[0].casefold())
        if part is None:
            continue
        if part in found:
            raise DuplicateError(
                f"{shown(folder)} holds its {part} twice, in {found[part].name} and in {name}",
                hint="keep one of them",
            )
        found[part] = folder / name
    if not found:
        raise InputError(f"{shown(folder)} holds no part of a field", hint=_hint(names))
    return found, tuple(name for name in data if folder / name not in found.values())


def _hint(names: list[str]) -> str:
    expected = [f"{part}.json" for part in ("pairs", "clusters", "entities", "relations", "concepts")]
    near = [did_you_mean(name, expected) for name in names]
    return next(filter(None, near), f"name its files {', '.join(expected)}; any of them will do")


def entries_of(path: Path, part: str | None = None) -> Iterator[tuple[str, Entries]]:
    """The parts that a file holds: the one that its folder or its name says, or those its keys tell of."""
    form = format_of(path)
    if form is None:
        raise FormatError(
            f"{shown(path)} cannot be read as part of a field: its suffix names no table format",
            hint=f"use one of {', '.join(FORMATS)}",
        )
    named = part or PART_OF.get(path.name.partition(".")[0].casefold())
    if form == "json":
        yield from _from_json(path, named)
        return
    if form == "jsonl":
        file = open_text(path)
        numbered = parse_lines(file)
        entries = Entries(file.name, [value for _, value in numbered], [line for line, _ in numbered], file)
    else:
        table = read_table(path)
        entries = Entries(table.name, table.rows, table.places, table.file)
    yield named or part_of(entries), entries


def _from_json(path: Path, named: str | None) -> Iterator[tuple[str, Entries]]:
    file = open_text(path)
    value = parse_json(file)
    lists = _lists(value)
    if lists:
        for key, each in lists.items():
            if named in (None, PART_OF[key]) or len(lists) > 1:
                yield PART_OF[key], Entries(f"{file.name} {key}" if len(lists) > 1 else file.name, each)
            else:
                raise FormatError(
                    f"{file.name} holds {key}, where its name says {named}", hint="rename the file"
                )
        return
    if isinstance(value, Mapping) and any(key in value for key in _OWN_KEYS):
        value = [value]
    if not isinstance(value, list):
        raise FormatError(
            f"{file.name} is JSON, but no list of entries", hint='write [{...}, ...] or {"relations": [...]}'
        )
    entries = Entries(file.name, _joined(value))
    yield named or part_of(entries), entries


def _lists(value: Any) -> dict[str, list[Any]]:
    """The lists of an object that holds parts of a field, by their key."""
    if not isinstance(value, Mapping) or any(key in value for key in _OWN_KEYS):
        return {}
    return {key: _joined(each) for key, each in value.items() if key in PART_OF and isinstance(each, list)}


def _joined(values: list[Any]) -> list[Any]:
    """The entries, where they may stand in several objects with a list of relations each."""
    if not values or not all(isinstance(each, Mapping) and list(each) == ["relations"] for each in values):
        return values
    return [relation for each in values for relation in _as_list(each["relations"])]


def _as_list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else [value]


def part_of(entries: Entries) -> str:
    """The part that the keys of the first entry tell of."""
    if not len(entries):
        raise FormatError(f"{entries.name} is empty", hint="write its entries, or leave the file out")
    first = entries.values[0]
    if isinstance(first, str):
        return "concepts"
    keys = first if isinstance(first, Mapping) else {}
    if any(key in keys for pair in TEXTS for key in pair):
        return "pairs"
    for key, part in (("concepts", "clusters"), ("entities", "sentences"), ("subject", "relations")):
        if key in keys:
            return part
    if label_keys(keys) is not None:
        return "clusters"
    if "concept" in keys:
        return "concepts"
    raise FormatError(
        f"{entries.name} is no part of a field: its first entry has "
        f"{'the keys ' + ', '.join(map(str, keys)) if keys else 'no keys'}",
        hint="pairs have concept_1 and concept_2, clusters concepts, sentences entities, relations a subject",
    )
