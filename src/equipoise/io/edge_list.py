"""Edge lists of trees and graphs: one ``child, parent`` pair per line, several parents allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from equipoise.errors import DuplicateError, FormatError, InputError
from equipoise.io.tables import find_delimiter, records, table_format
from equipoise.io.text import PathLike, TextFile, open_text

# Header detection: whether the first line names the columns, and which one is the parent.

Roles = tuple[str, str]

_KNOWN = {
    **dict.fromkeys(("child", "child_id", "node", "id", "source", "id1"), "child"),
    **dict.fromkeys(("parent", "parent_id", "target", "id2"), "parent"),
}
_ABOVE = {"parent", "parents", "above", "ancestor", "belongs", "super", "broader", "hypernym", "target"}
_BELOW = {"child", "below", "descendant", "sub", "narrower", "hyponym", "source", "account", "id", "code"}
_PLAIN = {"node", "guid", "uuid", "key", "number", "no", "nr", "name", "item", "term", "category", "group"}
_FILLERS = {"of", "to", "in", "the", "is", "a"}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+")


def standard_header_roles(fields: list[str]) -> Roles | None:
    """The roles of two columns that bear the usual names; None where they do not.

    >>> standard_header_roles(["Parent", "id"]), standard_header_roles(["till", "cash"])
    (('parent', 'child'), None)
    """
    roles = tuple(_KNOWN.get(field.strip().casefold(), "") for field in fields)
    return (roles[0], roles[1]) if sorted(roles) == ["child", "parent"] else None


def guess_header_roles(fields: list[str], others: Iterable[str]) -> Roles | None:
    """The same where two cells are made of words that name columns, and occur nowhere else in the file.

    >>> guess_header_roles(["child_account", "ParentAccount"], ["b", "a"])
    ('child', 'parent')
    >>> guess_header_roles(["Bank account", "Asset account"], ["b", "a"])
    >>> guess_header_roles(["account", "belongs_to"], ["account", "a"])
    """
    cells = [field.strip() for field in fields]
    rest = set(others)
    if len(cells) != 2 or cells[0] == cells[1] or not rest or not rest.isdisjoint(cells):
        return None
    words = [{word.casefold() for word in _WORD.findall(cell)} - _FILLERS for cell in cells]
    if not all(word and word <= _ABOVE | _BELOW | _PLAIN for word in words):
        return None
    if not (words[0] | words[1]) & (_ABOVE | _BELOW):
        return None
    upside_down = bool(words[0] & _ABOVE) and not words[1] & _ABOVE
    return ("parent", "child") if upside_down else ("child", "parent")


Edge = tuple[str, str]

_WEIGHT = "weight"
"""A third column of many closure files; weights do not change the edges."""


def edges(path: PathLike) -> list[Edge]:
    """The (child, parent) edges of a CSV or TSV file with two columns, in the order of the file.

    A first line that names the columns is a header, and then decides their order; it may name a third
    column ``weight``, which is ignored. Unknown names are a header if they look like
    column names and occur nowhere else. An edge given twice and a cycle are errors; forests and several
    parents are not.
    """
    file = open_text(path)
    lines = records(file, find_delimiter(file, table_format(path)))
    if not lines:
        raise InputError(f"{file.name} holds no edges", hint="an edge is two ids: child, parent")
    columns, weighted = _header(lines)
    edges: dict[Edge, int] = {}
    for line, fields in lines[1:] if columns else lines:
        left, right = _pair(file, line, fields[:-1] if weighted else fields)
        edge = (right, left) if columns == ("parent", "child") else (left, right)
        first = edges.setdefault(edge, line)
        if first != line:
            raise DuplicateError(
                f"{file.name} lines {first} and {line} give the same edge {edge[0]} -> {edge[1]}",
                excerpt=file.excerpt(first, line),
                hint="keep one of them",
            )
    _check_acyclic(file, edges)
    return list(edges)


def _pair(file: TextFile, line: int, fields: list[str]) -> tuple[str, str]:
    cleaned = [field.strip() for field in fields]
    if len(cleaned) != 2 or not all(cleaned):
        raise file.error(
            FormatError,
            line,
            "is not an edge; an edge is two ids: child, parent",
            hint="a root needs no line",
        )
    return cleaned[0], cleaned[1]


def _header(lines: list[tuple[int, list[str]]]) -> tuple[Roles | None, bool]:
    """What a first line calls its two ids, and whether a weight follows; None when it is an edge."""
    fields = lines[0][1]
    weighted = len(fields) == 3 and fields[2].strip().casefold() == _WEIGHT
    ids = fields[:2] if weighted else fields
    roles = standard_header_roles(ids) or guess_header_roles(
        ids, (cell.strip() for _, row in lines[1:] for cell in row)
    )
    return (roles, weighted) if roles else (None, False)


def _check_acyclic(file: TextFile, line_of: dict[Edge, int]) -> None:
    cycle = find_cycle(line_of)
    if not cycle:
        return
    lines = [line_of[edge] for edge in zip(cycle, [*cycle[1:], cycle[0]], strict=True)]
    raise InputError(
        f"{file.name} has a cycle: {' -> '.join([*cycle, cycle[0]])}",
        excerpt=file.excerpt(*lines[:5]),
        hint="an ancestor cannot be its own descendant; remove one of these edges",
    )


def find_cycle(pairs: Iterable[Edge]) -> list[str]:
    """The nodes of one cycle, each followed by its parent, or nothing when there is none.

    >>> find_cycle([("a", "b"), ("b", "c"), ("c", "b")])
    ['b', 'c']
    """
    parents: dict[str, list[str]] = {}
    for child, parent in pairs:
        parents.setdefault(child, []).append(parent)
    finished: set[str] = set()
    for start in parents:
        trail: dict[str, None] = {}
        stack = [(start, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                trail.pop(node)
                finished.add(node)
            elif node in trail:
                nodes = list(trail)
                return nodes[nodes.index(node) :]
            elif node not in finished:
                trail[node] = None
                stack.append((node, True))
                stack.extend((parent, False) for parent in parents.get(node, ()))
    return []
