"""All numbers of one system, wherever they are in a file: in nested objects, in a row, or in an outline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from equipoise.data.published.markup import plain
from equipoise.data.published.printed import printed
from equipoise.data.published.record import Record, System
from equipoise.data.published.tree import NAMES, PASSED, is_figure, is_number

Path = tuple[str, ...]
_HEADING = re.compile(r"^#{1,6}\s+(?P<name>.*?)\s*#*$")
_OPENS = re.compile(r"^(?P<indent>\s*)(?:[-*+]\s+)?(?P<name>\S.*?)\s*:\s*$")
_PAIR = re.compile(r"^\s*(?:[-*+]\s+)?(?P<label>[^:=]*[^:=\s])\s*[:=]\s*(?P<value>[-+\u2212]?[\d.]\S*)\s*$")
_COMMAS = re.compile(r",\s+(?=[^\d\s])")


def of_records(records: Sequence[Record]) -> list[System]:
    """A system for every row of a table."""
    return [System(each.name, {(cell.label,): cell.text for cell in each.cells}) for each in records]


def of_tree(value: Any, name: str = "") -> list[System]:
    """The systems of a JSON value: objects with a name, objects of one shape side by side, or all of it."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [system for each in value if isinstance(each, Mapping) for system in of_tree(each)]
    if not isinstance(value, Mapping) or is_figure(value):
        return []
    own = next((str(value[each]) for each in NAMES if isinstance(value.get(each), str)), "")
    children = {str(key): each for key, each in value.items() if isinstance(each, Mapping)}
    if not own and not name and _side_by_side(value, children):
        return [system for key, each in children.items() for system in of_tree(each, key)]
    numbers = dict(_leaves(value))
    if numbers:
        return [System(own or name, numbers)]
    return [system for key, each in value.items() if key not in PASSED for system in of_tree(each)]


def _side_by_side(value: Mapping[Any, Any], children: Mapping[str, Any]) -> bool:
    """Whether the objects in an object have labels in common, as results of several systems have."""
    if len(children) < 2 or any(is_number(each) for each in value.values()):
        return False
    labels = [{path[-1] for path, _ in _leaves(each)} for each in children.values()]
    return bool(set.intersection(*labels))


def _leaves(value: Mapping[Any, Any], path: Path = ()) -> Iterator[tuple[Path, str]]:
    for key, inner in value.items():
        if key in PASSED:
            continue
        if is_number(inner):
            yield (*path, str(key)), str(inner)
        elif isinstance(inner, Mapping) and not is_figure(inner):
            yield from _leaves(inner, (*path, str(key)))


def of_outline(text: str) -> list[System]:
    """The systems of a text whose lines name a system and then, indented or under its heading, its numbers.

    >>> [each.name for each in of_outline("minilm:\\n  Graph Density: 0.03\\nmpnet:\\n  Graph Density: 0.03")]
    ['minilm', 'mpnet']
    """
    systems: dict[str, dict[Path, str]] = {}
    name, depth = "", -1
    for line in text.splitlines():
        heading, opens = _HEADING.match(line), _OPENS.match(line)
        indent = len(line) - len(line.lstrip())
        if heading:
            name, depth = plain(heading["name"]), -1
        elif opens:
            name, depth = plain(opens["name"]), indent
        elif line.strip() and indent <= depth:
            name = ""
        elif name:
            pairs = [_PAIR.match(part) for part in _COMMAS.split(plain_line(line))]
            for pair in pairs if all(pairs) else []:
                if pair is not None and printed(pair["value"]) is not None:
                    systems.setdefault(name, {}).setdefault((plain(pair["label"]),), pair["value"])
    return [System(name, numbers) for name, numbers in systems.items()]


def plain_line(line: str) -> str:
    """A line without its list mark and emphasis."""
    return plain(re.sub(r"^\s*[-*+]\s+", "", line))


def formulas_of(value: Any) -> list[str]:
    """The formulas of a JSON value: texts such as ``score = 0.4 * a + 0.6 * b``, or objects of them."""
    if isinstance(value, str):
        return [value] if "=" in value else []
    if isinstance(value, Mapping):
        stated = value.get("formulas")
        named = [f"{key} = {each}" for key, each in stated.items()] if isinstance(stated, Mapping) else []
        return named + [
            line for key, each in value.items() if key != "formulas" for line in formulas_of(each)
        ]
    if isinstance(value, Sequence):
        return [line for each in value for line in formulas_of(each)]
    return []
