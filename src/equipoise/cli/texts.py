"""The texts of a file, one at a time: counted and checked first, so that nothing fails half way."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from equipoise.data.tables import format_of, parse_table, read_table
from equipoise.data.text import BOM, STDIN, explain_unreadable, open_text, shown
from equipoise.errors import FormatError, InputError, did_you_mean

TEXT_COLUMNS = ("text", "content", "contents", "passage", "sentence", "body", "query")
ID_COLUMNS = ("id", "_id", "doc_id", "docid", "key")
_GZIP = b"\x1f\x8b"


class Item(NamedTuple):
    """One text, the id that its file gives it, and the line or row where it stands."""

    text: str
    id: str
    place: int


@dataclass(frozen=True, slots=True)
class TextSource:
    """A file of texts that is known to be readable to its end."""

    name: str
    count: int
    has_ids: bool
    blank: int
    """Blank texts, which are left out."""
    _items: Callable[[], Iterator[Item]]

    def items(self) -> Iterator[Item]:
        """All texts, read anew."""
        return (item for item in self._items() if item.text.strip())


def read_texts(
    path: str, *, column: str | None = None, id_column: str | None = None, skip_blank: bool = False
) -> TextSource:
    """Texts of a .txt file (one a line), or of a column of a JSONL, JSON, CSV, TSV or parquet file.

    Plain or gzipped; ``-`` is standard input, one text a line. Lines and JSONL are streamed, so that size is
    no matter. A blank text is an error, unless it is skipped or nothing but blank lines follow it.
    """
    form = format_of(path) if path != STDIN else None
    if form is None and (column or id_column):
        raise InputError(
            f"{shown(path)} has one text a line, and no columns", hint="name it .jsonl, .csv or .tsv"
        )
    if path == STDIN:
        lines = open_text(path).text.split("\n")
        return _checked(path, lambda: _numbered(lines), False, False, skip_blank)
    if form is None:
        return _checked(path, lambda: _numbered(_lines(path)), False, False, skip_blank)
    if form == "jsonl":
        first = _first_row(path)
        text, name = _columns(path, first, column, id_column)
        return _checked(path, lambda: _jsonl(path, text, name), name is not None, True, skip_blank)
    rows = read_table(path)
    text, name = _columns(path, rows.rows[0], column, id_column)
    items = [_item(path, row, place, text, name) for row, place in zip(rows.rows, rows.places, strict=True)]
    return _checked(path, lambda: iter(items), name is not None, True, skip_blank)


def _checked(
    path: str, items: Callable[[], Iterator[Item]], has_ids: bool, has_rows: bool, skip_blank: bool
) -> TextSource:
    """Read everything once: count, and find what cannot be."""
    count = blank = inner = first_blank = 0
    for item in items():
        if item.text.strip():
            count += 1
            inner = blank
        else:
            blank += 1
            first_blank = first_blank or item.place
    if not count:
        raise InputError(f"{shown(path)} has no texts in it", hint="check the step that writes it")
    # Blank lines at the end of a file are not meant as texts; blank rows of a table may be.
    excess = blank if has_rows else inner
    if excess and not skip_blank:
        place = f"{'row' if has_rows else 'line'} {first_blank}"
        raise InputError(
            f"{shown(path)} {place} is blank, where a text should be",
            hint="--skip-blank leaves such texts out; vectors and lines then no longer agree in number",
        )
    return TextSource(shown(path), count, has_ids, excess, items)


def _numbered(lines: Iterable[str]) -> Iterator[Item]:
    for number, line in enumerate(lines, start=1):
        yield Item(line.removesuffix("\r"), "", number)


def _lines(path: str) -> Iterator[str]:
    """The lines of a UTF-8 file, plain or gzipped, without their ends and without reading it whole."""
    try:
        with open(path, "rb") as raw:
            zipped = raw.read(2) == _GZIP
        with gzip.open(path, "rb") if zipped else open(path, "rb") as stream:
            first = stream.readline()
            if not first:
                open_text(path)
            yield _decoded(path, first.removeprefix(BOM))
            for line in stream:
                yield _decoded(path, line)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        open_text(path)  # says what is wrong with the archive
        raise
    except OSError as error:
        raise explain_unreadable(path, error) from error


def _decoded(path: str, line: bytes) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        open_text(path)  # says which byte of which line it is
    return text.removesuffix("\n")


def _jsonl(path: str, text: str, name: str | None) -> Iterator[Item]:
    for number, line in enumerate(_lines(path), start=1):
        if line.strip():
            yield _item(path, _object(path, line), number, text, name)


def _object(path: str, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
        json.dumps(row, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        parse_table(open_text(path), "jsonl")  # says which line is wrong, and how
        raise FormatError(f"{shown(path)} is not JSONL")
    return row


def _first_row(path: str) -> dict[str, Any]:
    for line in _lines(path):
        if line.strip():
            return _object(path, line)
    raise InputError(f"{shown(path)} is empty", hint="check that the step that writes it has finished")


def _columns(
    path: str, row: dict[str, Any], column: str | None, id_column: str | None
) -> tuple[str, str | None]:
    """The columns of the texts and of their ids: as asked for, or under the usual names."""
    known = [str(each) for each in row]
    for given in (column, id_column):
        if given is not None and given not in row:
            hint = did_you_mean(given, known) or f"there are: {', '.join(known)}"
            raise FormatError(f"{shown(path)} has no column {given}", hint=hint)
    text = column or _usual(row, TEXT_COLUMNS)
    if text is None:
        raise FormatError(
            f"{shown(path)} has no column of texts under a usual name; it has {', '.join(known)}",
            hint="say which it is: --column NAME",
        )
    return text, id_column or _usual(row, ID_COLUMNS)


def _usual(row: dict[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in row), None)


def _item(path: str, row: dict[str, Any], place: int, text: str, name: str | None) -> Item:
    value = row.get(text)
    if not isinstance(value, str):
        found = f"{type(value).__name__} in" if text in row else "no"
        raise FormatError(f"{shown(path)} line {place} has {found} column {text}, where a text should be")
    if name is not None and not isinstance(row.get(name), str | int):
        raise FormatError(f"{shown(path)} line {place} has no id in column {name}")
    return Item(value, "" if name is None else str(row[name]), place)
