"""Word documents as text, by python-docx: headings as Markdown, tables row by row, all in their order."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any
from zipfile import ZipFile

from equipoise.data.expand import check_archive
from equipoise.data.text import PathLike, read_bytes, shown
from equipoise.errors import EquipoiseError, FormatError
from equipoise.types import need

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_DEEPEST = 6
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_UNSEEN = frozenset({"del", "moveFrom", "Fallback", "pPr", "rPr"})
"""Deleted text, and the second copy of a text box that is kept for old programs."""


def docx_text(path: PathLike) -> str:
    """The text of the body: paragraphs parted by blank lines, headings as ``#``, the cells of a row by ``|``.

    Inserted text and text boxes count, deleted text does not. Headers, footers, notes and comments are left
    out.
    """
    engine = need("docx", extra="documents")
    data, name = read_bytes(path), shown(path)
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            check_archive(name, archive, len(data))
        document = engine.Document(io.BytesIO(data))
        return "\n\n".join(_blocks(document.element.body, _heading_levels(document)))
    except EquipoiseError:
        raise
    except Exception as error:  # a damaged archive fails in zip, XML or the package's parts
        raise FormatError(
            f"{name} is no Word document that can be read: {error or type(error).__name__}",
            hint="open it in a word processor and save it again as .docx",
        ) from error


def _heading_levels(document: Any) -> dict[str, int]:
    """The heading level of each paragraph style that is one, or is based on one; by style id."""
    levels: dict[str, int] = {}
    for style in document.styles:
        base, seen = style, set()
        while base is not None and base.style_id not in seen:
            seen.add(base.style_id)
            name = base.name or ""
            found = _HEADING.match(name)
            if found or name == "Title":
                levels[style.style_id] = min(int(found[1]) if found else 1, _DEEPEST)
                break
            base = getattr(base, "base_style", None)
    return levels


def _blocks(parent: Any, levels: dict[str, int]) -> Iterator[str]:
    """The paragraphs and tables of a body; what wraps some of them (content controls) is looked into."""
    for child in parent:
        kind = _tag(child)
        if kind == "p":
            text = "".join(_inline(child)).strip()
            level = levels.get(_style_of(child), 0)
            if text:
                yield f"{'#' * level} {' '.join(text.split())}" if level else text
        elif kind == "tbl":
            rows = [row for row in _rows(child) if row.replace("|", "").strip()]
            if rows:
                yield "\n".join(rows)
        elif kind not in _UNSEEN:
            yield from _blocks(child, levels)


def _rows(table: Any) -> Iterator[str]:
    for row in _nearest(table, "tr"):
        cells = ["".join(_cell(cell)).split() for cell in _nearest(row, "tc")]
        yield " | ".join(" ".join(words) for words in cells)


def _cell(cell: Any) -> Iterator[str]:
    """All text of a cell, that of tables within it too."""
    for paragraph in _nearest(cell, "p"):
        yield from _inline(paragraph)
        yield " "


def _nearest(parent: Any, kind: str) -> Iterator[Any]:
    """The elements of a kind below another, without those inside one of them."""
    for child in parent:
        if _tag(child) == kind:
            yield child
        elif _tag(child) not in _UNSEEN:
            yield from _nearest(child, kind)


def _inline(parent: Any) -> Iterator[str]:
    """The text of a paragraph, piece by piece."""
    for child in parent:
        kind = _tag(child)
        if kind == "t":
            yield child.text or ""
        elif kind in _BREAKS:
            yield _BREAKS[kind]
        elif kind == "txbxContent":
            yield "\n"
            for paragraph in _nearest(child, "p"):
                yield from _inline(paragraph)
                yield "\n"
        elif kind not in _UNSEEN:
            yield from _inline(child)


def _style_of(paragraph: Any) -> str:
    style = paragraph.style  # the style id; None where the paragraph names no style
    return style or ""


def _tag(element: Any) -> str:
    """The name of an element without its namespace; empty for comments."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
