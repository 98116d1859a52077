"""Trees that are written into account codes: the parent of ``102-0001-003`` is ``102-0001``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from equipoise.data.tables import format_of
from equipoise.data.text import PathLike, open_text, shown
from equipoise.errors import FormatError, InputError, ParameterError
from equipoise.hierarchy.sources import columns
from equipoise.hierarchy.sources.table import cell, opened
from equipoise.hierarchy.tree import Tree
from equipoise.hierarchy.wellformed import Node

Path = tuple[str, ...]

MISSING = ("skip", "add", "refuse")
_PART = re.compile(r"[^\W_]+")


def from_codes(
    codes: Iterable[Node],
    *,
    widths: Sequence[int] | None = None,
    missing: str = "skip",
    source: str = "codes",
) -> Tree:
    """The tree of codes, each a code or (code, name), by their parts.

    The parts stand between separators (``102-0001-003``, ``1.2.3``), or have fixed ``widths``:
    ``widths=(1, 1, 2)`` reads 1120 as 1, 1, 20. Parts of zeros at the end only fill up, so 1000 is above
    1100 and 102-0000 is 102. Where the code directly above is not listed, ``missing`` decides: ``skip``
    takes the next one above, ``add`` makes it, ``refuse`` is an error.

    >>> tree = from_codes(["102", "102-0001", "102-0001-003"])
    >>> tree.named_edges()
    [('102-0001', '102'), ('102-0001-003', '102-0001')]
    >>> from_codes(["1000", "1100", "1120"], widths=(1, 1, 2)).named_edges()
    [('1100', '1000'), ('1120', '1100')]
    """
    if missing not in MISSING:
        raise ParameterError(f"missing is {missing!r}", hint=f"it may be {', '.join(MISSING)}")
    nodes = [(node, node) if isinstance(node, str) else node for node in codes]
    paths: dict[Path, str] = {}
    for code, _ in nodes:
        path = _path(code, widths, source)
        if paths.setdefault(path, code) != code:
            raise InputError(
                f"{source}: the codes {paths[path]} and {code} name the same place",
                hint="parts of zeros at the end only fill up; keep one of the two",
            )
    listed = len(paths)
    if missing == "add":
        for path, code in list(paths.items()):
            for size in range(1, len(path)):
                paths.setdefault(path[:size], _spelled(code, size, widths))
    edges = []
    for path, code in paths.items():
        above = next((path[:size] for size in range(len(path) - 1, 0, -1) if path[:size] in paths), ())
        if missing == "refuse" and len(above) != len(path) - 1:
            raise InputError(
                f"{source}: the code directly above {code} is not listed",
                hint="add it, or take missing='skip' or missing='add'",
            )
        if above:
            edges.append((code, paths[above]))
    return Tree.of([*nodes, *list(paths.values())[listed:]], edges, source=source)


def read_codes(path: PathLike, *, widths: Sequence[int] | None = None, missing: str = "skip") -> Tree:
    """The tree of a table with a column of codes, and perhaps of names, or of a text with a code a line."""
    if format_of(path) is None:
        lines = [line.decode("utf-8").strip() for line in open_text(path).lines]
        return from_codes(
            (line for line in lines if line), widths=widths, missing=missing, source=shown(path)
        )
    table = opened(path)
    key, name = (columns.guess(known, table.rows[0]) for known in (columns.ID, columns.NAME))
    if key is None:
        raise FormatError(
            f"{table.name} has no column of codes: it has {', '.join(map(str, table.rows[0]))}",
            hint="call it code",
        )
    nodes = [(cell(row[key]), cell(row.get(name)) if name else "") for row in table.require(key).rows]
    return from_codes(nodes, widths=widths, missing=missing, source=table.name)


def _path(code: str, widths: Sequence[int] | None, source: str) -> Path:
    """The parts of a code, without parts of zeros at its end; the first part always stays."""
    parts = _cut(code, widths, source) if widths else _PART.findall(code)
    if not parts:
        raise InputError(f"{source}: the code {code!r} has no letters or digits", hint="drop it")
    while len(parts) > 1 and not parts[-1].strip("0"):
        parts.pop()
    return tuple(parts)


def _cut(code: str, widths: Sequence[int], source: str) -> list[str]:
    ends = [sum(widths[: place + 1]) for place in range(len(widths))]
    if any(width < 1 for width in widths):
        raise ParameterError(f"the widths are {list(widths)}", hint="a part has one character at least")
    if len(code) not in ends:
        raise InputError(
            f"{source}: the code {code} has {len(code)} characters, not {' or '.join(map(str, ends))}",
            hint="give the widths of all parts, from the left",
        )
    return [code[end - width : end] for end, width in zip(ends, widths, strict=True) if end <= len(code)]


def _spelled(code: str, size: int, widths: Sequence[int] | None) -> str:
    """The code of a group that was added: the beginning of a code below it, up to so many parts."""
    if widths:
        return code[: sum(widths[:size])]
    ends = [match.end() for match in _PART.finditer(code)]
    return code[: ends[size - 1]]
