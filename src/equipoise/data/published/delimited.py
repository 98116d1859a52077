"""CSV and TSV, also with semicolons."""

from __future__ import annotations

from equipoise.data.published.grid import Grid
from equipoise.data.tables import records
from equipoise.data.text import TextFile
from equipoise.errors import FormatError


def delimited_grid(file: TextFile, delimiter: str) -> Grid:
    """The one table of the file; a header with semicolons and no comma is split at those."""
    first = file.first_line
    if delimiter == "," and "," not in first and ";" in first:
        delimiter = ";"
    lines = [(f"line {number}", fields) for number, fields in records(file, delimiter)]
    if len(lines) < 2:
        raise FormatError(f"{file.name} has a header and no rows")
    return Grid.of(file.name, lines, strict=True)
