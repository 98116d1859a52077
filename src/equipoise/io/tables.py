"""Rows of JSONL, JSON, CSV, TSV and parquet files, each with its position in the file; rows as data frames."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equipoise.errors import DuplicateError, FormatError, InputError, UnknownNameError, did_you_mean
from equipoise.io.text import PathLike, TextFile, check_size, display_path, open_text, read_error, without_compression
from equipoise.types import packaged_toml, require_extra

TableRow = dict[str, Any]

DELIMITERS = {"csv": ",", "tsv": "\t"}
LONGEST_FIELD = 1 << 30
"""Characters of a CSV field; the csv module stops at 131,072, and documents are longer."""
_DECIMAL_COMMA = re.compile(r"\s*-?[0-9]+,[0-9]+\s*")
FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows and their positions: line numbers in a text file, row numbers in other files."""

    name: str
    rows: list[TableRow] = field(repr=False)
    line_numbers: Sequence[int] = field(repr=False)
    file: TextFile | None = None

    def where(self, *indexes: int) -> str:
        """``line 3`` or ``rows 1 and 2``: the position of these rows in the file."""
        unit = "row" if self.file is None else "line"
        numbers = [str(self.line_numbers[index]) for index in indexes]
        return f"{unit}{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)}"

    def error(self, kind: type[InputError], indexes: Sequence[int], fact: str, *, hint: str = "") -> InputError:
        """An error about these rows, with their lines as the excerpt if there are any."""
        excerpt = "" if self.file is None else self.file.excerpt(*(self.line_numbers[index] for index in indexes))
        return kind(f"{self.name} {self.where(*indexes)} {fact}", hint=hint, excerpt=excerpt)

    def require(self, *columns: str) -> Table:
        """The same table; an error if a row lacks one of these columns."""
        for index, row in enumerate(self.rows):
            for column in columns:
                if column not in row:
                    raise self.missing(index, column)
        return self

    def filled(self, column: str) -> Table:
        """The same table; an error if a row has no value in this column."""
        for index, row in enumerate(self.require(column).rows):
            if row[column] is None or row[column] != row[column] or not str(row[column]).strip():
                raise self.error(
                    InputError, [index], f"has no value in the column {column}", hint="add the value, or remove the row"
                )
        return self

    def missing(self, index: int, column: str) -> InputError:
        """The error for a row that lacks a column: with the nearest name, or all names there are."""
        columns = [str(column) for column in self.rows[index]]
        hint = did_you_mean(column, columns) or f"there are: {', '.join(columns)}"
        return self.error(FormatError, [index], f"has no column {column}", hint=hint)


def column_names() -> dict[str, list[str]]:
    """The usual column names of each role, most frequent first."""
    return packaged_toml("equipoise.io", "column_names.toml")


def find_column(header: Iterable[str], role: str) -> str | None:
    """The column of a role by its usual names; None if there is none. ``Query-ID`` is ``query_id``.

    >>> find_column(["Query-ID", "text"], "query_id")
    'Query-ID'
    """
    folded = {_folded(name): name for name in reversed(list(header))}
    return next((folded[_folded(name)] for name in column_names()[role] if _folded(name) in folded), None)


def named_columns(header: Iterable[str], role: str) -> list[str]:
    """All columns with a usual name of a role."""
    usual = set(map(_folded, column_names()[role]))
    return [name for name in header if _folded(name) in usual]


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name.casefold())


def read_rows(path: PathLike, *, columns: Iterable[str] = ()) -> list[TableRow]:
    """The rows of a .jsonl, .json, .csv, .tsv or .parquet file (text also gzipped), as dicts.

    JSON holds a list of objects; CSV and TSV open with a header, and their values remain strings.
    Every row must have the ``columns``.
    """
    return read_table(path).require(*columns).rows


def read_table(path: PathLike) -> Table:
    """``read_rows`` with the position of every row."""
    form = table_format(path)
    if form is None:
        raise FormatError(
            f"{display_path(path)} does not have the file extension of a table",
            hint=f"use one of {', '.join(FORMATS)}",
        )
    return read_parquet(path) if form == "parquet" else parse_table(open_text(path), form)


def table_format(path: PathLike) -> str | None:
    """The table format of a file extension, before that of a compression if there is one.

    >>> table_format("runs/bm25.tsv.gz"), table_format("runs/bm25.trec")
    ('tsv', None)
    """
    return FORMATS.get(Path(without_compression(Path(path).name)).suffix)


def find_delimiter(file: TextFile, form: str | None) -> str:
    """The delimiter of a CSV or TSV file: that of its file extension, or the one that its first line contains.

    A CSV without a comma in its first line is read by its tabs or semicolons, which spreadsheets write where
    the comma is the decimal mark. Other files are split at tabs, if the first line has any.
    """
    candidates = {"csv": (",", "\t", ";", "|")}.get(form or "", ("\t", ",", ";"))
    first = file.first_line
    return next((delimiter for delimiter in candidates if delimiter in first), DELIMITERS.get(form or "", ","))


def parse_table(file: TextFile, form: str) -> Table:
    """The rows of a text file that is already open."""
    from equipoise.io.json import parse_json, parse_lines

    if form == "json":
        return table_of_json(file, parse_json(file))
    numbered = parse_lines(file) if form == "jsonl" else _parse_delimited(file, find_delimiter(file, form))
    table = Table(file.name, [row for _, row in numbered], [line for line, _ in numbered], file)
    for index, row in enumerate(table.rows):
        if not isinstance(row, dict):
            raise table.error(FormatError, [index], "is not a JSON object", hint='write {"column": value, ...}')
    if not table.rows:
        raise FormatError(
            f"{file.name} has a header and no rows", hint="add a row for every item, or name another file"
        )
    return table


def records(file: TextFile, delimiter: str) -> list[tuple[int, list[str]]]:
    """The fields of every CSV record that is not blank, with the number of its first line."""
    import csv

    rows = []
    limit = csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader(io.StringIO(file.text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for fields in reader:
            if any(cell.strip() for cell in fields):
                rows.append((line, fields))
            line = reader.line_num + 1
    except csv.Error as error:
        raise file.error(
            FormatError,
            min(line, len(file.lines)),
            f"is not well-formed: {error}",
            hint='a quote inside a quoted field is written ""',
        ) from error
    finally:
        csv.field_size_limit(limit)
    return rows


def _parse_delimited(file: TextFile, delimiter: str) -> list[tuple[int, TableRow]]:
    (first, names), *body = records(file, delimiter) or [(1, [])]
    header = [name.strip() for name in names]
    for name in header:
        if header.count(name) > 1:
            raise file.error(DuplicateError, first, f"has two columns called {name!r}", hint="rename one of them")
    for line, fields in body:
        if len(fields) != len(header):
            raise file.error(
                FormatError,
                line,
                f"has {len(fields)} field{'s' if len(fields) != 1 else ''}; "
                f"the header has {len(header)} ({', '.join(header)})",
                hint="a field that holds the separator must be written in double quotes",
            )
    if delimiter == ";":  # spreadsheets write semicolons where the comma is the decimal mark
        body = [
            (line, [cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in fields])
            for line, fields in body
        ]
    return [(line, dict(zip(header, fields, strict=True))) for line, fields in body]


def table_of_json(file: TextFile, value: Any) -> Table:
    """The table that a parsed JSON value is, if it is a list of objects."""
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise FormatError(f"{file.name} is JSON, but not a list of objects", hint='write [{"column": value}, ...]')
    if not value:
        raise FormatError(f"{file.name} is an empty list", hint='write [{"column": value}, ...]')
    return Table(file.name, value, range(1, len(value) + 1))


def check_parquet(path: PathLike) -> None:
    """Raise an error for a parquet file that would expand beyond the limit."""
    stated = require_extra("pyarrow.parquet", extra="parquet").read_metadata(path)
    cells = stated.num_rows * stated.num_columns  # a run of one value takes no space
    encoded = sum(stated.row_group(group).total_byte_size for group in range(stated.num_row_groups))
    check_size(display_path(path), max(cells, encoded), Path(path).stat().st_size)


def read_parquet(path: PathLike) -> Table:
    """The rows of a parquet file; needs pyarrow."""
    try:
        with open(path, "rb") as stream:
            stream.read(1)
    except (OSError, ValueError) as error:
        raise read_error(path, error) from error
    engine = require_extra("pyarrow.parquet", extra="parquet", needed_by=display_path(path))
    try:
        check_parquet(path)
        rows: list[TableRow] = engine.read_table(path).to_pylist()
    except (OSError, ValueError, require_extra("pyarrow", extra="parquet").ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FormatError(
            f"{display_path(path)} is not a readable parquet file: {reason}", hint="write it again"
        ) from error
    if not rows:
        raise FormatError(f"{display_path(path)} has no rows")
    return Table(display_path(path), rows, range(1, len(rows) + 1))


FRAME_LIBRARIES = ("pandas", "polars", "pyarrow")


def rows_to_frame(rows: Sequence[TableRow], library: str = "pandas") -> Any:
    """Rows as a frame of pandas or polars, or as a table of pyarrow; all rows have the same columns.

    >>> rows_to_frame([{"metric": "MRR", "value": 0.5}], "pandas").shape
    (1, 2)
    """
    if library not in FRAME_LIBRARIES:
        raise UnknownNameError.of("data frame library", library, FRAME_LIBRARIES)
    module = require_extra(library, extra="accounts" if library == "pandas" else "parquet")
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}
    if library == "pyarrow":
        return module.table(columns)
    return module.DataFrame(columns)
