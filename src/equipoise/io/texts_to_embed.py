"""The texts of a file, one at a time: counted and checked first, so that errors appear before the work begins."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from equipoise.errors import DuplicateError, FormatError, InputError, did_you_mean
from equipoise.io.dataset import title_and_text
from equipoise.io.json import parse_json
from equipoise.io.tables import find_column, parse_table, read_table, table_format, table_of_json
from equipoise.io.text import BOM, PREFIX_BYTES, STDIN, display_path, open_compressed, open_text, read_error


class TextItem(NamedTuple):
    """One text, its id in the file, and its line or row."""

    text: str
    id: str
    line: int


@dataclass(frozen=True, slots=True)
class TextSource:
    """A file of texts that is known to be readable to its end."""

    name: str
    count: int
    has_ids: bool
    blank: int
    """Blank texts, which are left out."""
    _items: Callable[[], Iterator[TextItem]]

    def items(self) -> Iterator[TextItem]:
        """All texts, read again on each call."""
        return (item for item in self._items() if item.text.strip())


def read_texts(
    path: str, *, column: str | None = None, id_column: str | None = None, skip_blank: bool = False
) -> TextSource:
    """Texts of a .txt file (one per line), or of a column of a JSONL, JSON, CSV, TSV or parquet file.

    JSON may also be a list of texts. Documents in BEIR's layout, with an ``_id`` and a ``text``, are taken
    with their title, as runs take them, unless a column is named. Plain or gzipped; ``-`` is standard input,
    one text per line. Lines and JSONL are streamed, so files of any size can be read. A blank text is an error, unless
    it is skipped or only blank lines follow it.
    """
    form = table_format(path) if path != STDIN else None
    if form is None:
        _check_no_columns(path, "one text per line", column or id_column)
        lines = open_text(path).text.split("\n") if path == STDIN else None
        return _check_texts(path, lambda: _number_lines(lines or _lines(path)), False, False, skip_blank)
    if form == "jsonl":
        reader = _reader(path, _first_row(path), column, id_column)
        return _check_texts(path, lambda: _jsonl(path, reader), reader.id is not None, True, skip_blank)
    if form == "json":
        file = open_text(path)
        value = parse_json(file)
        if value and isinstance(value, list) and all(isinstance(text, str) for text in value):
            _check_no_columns(path, "a list of texts", column or id_column)
            return _check_texts(path, lambda: _number_lines(value), False, True, skip_blank)
        rows = table_of_json(file, value)
    else:
        rows = read_table(path)
    reader = _reader(path, rows.rows[0], column, id_column)
    items = [reader.item(row, line) for row, line in zip(rows.rows, rows.line_numbers, strict=True)]
    return _check_texts(path, lambda: iter(items), reader.id is not None, True, skip_blank)


def _check_no_columns(path: str, content: str, column: str | None) -> None:
    if column:
        raise InputError(f"{display_path(path)} has {content}, but no columns", hint="name it .jsonl, .csv or .tsv")


def _check_texts(
    path: str, items: Callable[[], Iterator[TextItem]], has_ids: bool, has_rows: bool, skip_blank: bool
) -> TextSource:
    """Read everything once: count the texts, and raise errors."""
    count = blank = inner = first_blank = 0
    first_line: dict[str, int] = {}
    for item in items():
        if item.text.strip():
            count += 1
            inner = blank
            if has_ids and first_line.setdefault(item.id, item.line) != item.line:
                raise DuplicateError(
                    f"{display_path(path)} lines {first_line[item.id]} and {item.line} both have the id {item.id[:60]}",
                    hint="keep one of them, or name another column: --id-column NAME",
                )
        else:
            blank += 1
            first_blank = first_blank or item.line
    if not count:
        raise InputError(f"{display_path(path)} has no texts in it", hint="check the step that writes it")
    # Blank lines at the end of a file are not texts; blank rows of a table may be.
    excess = blank if has_rows else inner
    if excess and not skip_blank:
        position = f"{'row' if has_rows else 'line'} {first_blank}"
        raise InputError(
            f"{display_path(path)} {position} is blank, but a text was expected",
            hint="--skip-blank skips such texts; the number of vectors then differs from the number of texts",
        )
    return TextSource(display_path(path), count, has_ids, excess, items)


def _number_lines(lines: Iterable[str]) -> Iterator[TextItem]:
    for number, line in enumerate(lines, start=1):
        yield TextItem(line.removesuffix("\r"), "", number)


def _lines(path: str) -> Iterator[str]:
    """The lines of a UTF-8 file, plain or compressed, without their ends read as a stream."""
    try:
        with open(path, "rb") as raw:
            start = raw.read(PREFIX_BYTES)
        with open(path, "rb") as file:
            stream = open_compressed(display_path(path), file, os.fstat(file.fileno()).st_size, start) or file
            first = stream.readline()
            if not first:
                open_text(path)
            yield _decode_line(path, first.removeprefix(BOM))
            for line in stream:
                yield _decode_line(path, line)
    except OSError as error:
        raise read_error(path, error) from error


def _decode_line(path: str, line: bytes) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        open_text(path)  # raises with the byte and the line
    return text.removesuffix("\n")


def _jsonl(path: str, reader: _RowReader) -> Iterator[TextItem]:
    for number, line in enumerate(_lines(path), start=1):
        if line.strip():
            yield reader.item(_object(path, line), number)


def _object(path: str, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
        json.dumps(row, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        parse_table(open_text(path), "jsonl")  # raises with the line and the reason
        raise FormatError(f"{display_path(path)} is not JSONL")
    return row


def _first_row(path: str) -> dict[str, Any]:
    for line in _lines(path):
        if line.strip():
            return _object(path, line)
    raise InputError(f"{display_path(path)} is empty", hint="check that the step that writes it has finished")


@dataclass(frozen=True, slots=True)
class _RowReader:
    """The columns that make a text, and whether a title precedes it."""

    path: str
    text: str
    id: str | None
    titles: bool

    def item(self, row: dict[str, Any], line: int) -> TextItem:
        text = self._string(row, line, self.text)
        if self.titles and row.get("title"):
            text = title_and_text(self._string(row, line, "title"), text)
        if self.id is None:
            return TextItem(text, "", line)
        if not isinstance(row.get(self.id), str | int):
            raise FormatError(f"{display_path(self.path)} line {line} has no id in column {self.id}")
        return TextItem(text, str(row[self.id]), line)

    def _string(self, row: dict[str, Any], line: int, column: str) -> str:
        value = row.get(column)
        if not isinstance(value, str):
            actual = f"{type(value).__name__} in" if column in row else "no"
            raise FormatError(
                f"{display_path(self.path)} line {line} has {actual} column {column}, but a text was expected"
            )
        return value


def _reader(path: str, row: dict[str, Any], column: str | None, id_column: str | None) -> _RowReader:
    """The columns of the texts and of their ids: as requested, or under the usual names."""
    columns = [str(name) for name in row]
    for requested in (column, id_column):
        if requested is not None and requested not in row:
            hint = did_you_mean(requested, columns) or f"there are: {', '.join(columns)}"
            raise FormatError(f"{display_path(path)} has no column {requested}", hint=hint)
    text = column or find_column(columns, "text")
    if text is None:
        raise FormatError(
            f"{display_path(path)} has no column of texts under a usual name; it has {', '.join(columns)}",
            hint="say which it is: --column NAME",
        )
    of_beir = column is None and "_id" in row and text == "text"
    return _RowReader(path, text, id_column or find_column(columns, "id"), of_beir)
