"""Trees in JSON: objects inside the ``children`` of others, or a flat list of records with parents."""

from __future__ import annotations

from typing import Any

from equipoise.data.graph import Edge
from equipoise.data.jsontext import parse_json
from equipoise.data.tables import table_of_json
from equipoise.data.text import PathLike, TextFile, open_text
from equipoise.errors import FormatError
from equipoise.hierarchy.sources import columns
from equipoise.hierarchy.sources.table import cell, tree_of_table
from equipoise.hierarchy.tree import Tree

CHILDREN = "children"
SEPARATOR = " / "
_EXAMPLE = '{"id": "1", "name": "Assets", "children": [...]}'


def read_json(path: PathLike) -> Tree:
    """The tree of a JSON file: nested objects with ``children``, or records with ``id`` and ``parent``.

    A nested object without an id is known by the names on the way to it: ``Assets / Cash``.
    """
    file = open_text(path)
    return tree_of_json(file, parse_json(file))


def tree_of_json(file: TextFile, value: Any) -> Tree:
    """The same from a value that was parsed already."""
    tops = [value] if isinstance(value, dict) else value
    if isinstance(tops, list) and any(isinstance(each, dict) and CHILDREN in each for each in tops):
        return _nested(file.name, tops)
    if isinstance(value, dict):
        raise FormatError(
            f"{file.name} is one JSON object without {CHILDREN!r}; no tree is in it",
            hint=f'write {_EXAMPLE}, or a list of {{"id": ..., "parent": ...}}',
        )
    return tree_of_table(table_of_json(file, value), None, None, None)


def _nested(source: str, tops: list[Any]) -> Tree:
    nodes: list[tuple[str, str]] = []
    edges: list[Edge] = []
    waiting: list[tuple[Any, str | None]] = [(top, None) for top in reversed(tops)]
    while waiting:
        value, parent = waiting.pop()
        key, name = _identity(source, value, parent)
        nodes.append((key, name))
        if parent is not None:
            edges.append((key, parent))
        waiting.extend((child, key) for child in reversed(_children(source, value, key)))
    return Tree.of(nodes, edges, source=source)


def _identity(source: str, value: Any, parent: str | None) -> tuple[str, str]:
    """The id and the name of a nested object."""
    where = f"below {parent!r}" if parent is not None else "at the top"
    if not isinstance(value, dict):
        raise FormatError(
            f"{source} has {value!r} {where}, which is no JSON object", hint=f"write {_EXAMPLE}"
        )
    held = [columns.guess(known, value) for known in (columns.ID, columns.NAME)]
    key, name = (cell(value[column]) if column else "" for column in held)
    if not key and not name:
        raise FormatError(
            f"{source} has an object {where} with neither id nor name", hint=f"write {_EXAMPLE}"
        )
    return key or (name if parent is None else f"{parent}{SEPARATOR}{name}"), name


def _children(source: str, value: dict[str, Any], key: str) -> list[Any]:
    children = value.get(CHILDREN) or []
    if not isinstance(children, list):
        raise FormatError(f"{source}: the children of {key!r} are no list", hint=f"write {_EXAMPLE}")
    return children
