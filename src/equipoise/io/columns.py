"""Tables from files, data frames, Hugging Face datasets and records, with columns found by their usual names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from equipoise.errors import FormatError, InputError, UnknownNameError
from equipoise.io.tables import FORMATS, column_names, find_column, read_table, table_format
from equipoise.io.text import COMPRESSED_SUFFIXES, without_compression
from equipoise.types import require_extra

TRAIN, TEST = ("train", "training"), ("test", "testing", "eval", "validation", "valid", "dev")


@dataclass(frozen=True)
class ColumnTable:
    """Columns of equal length. ``name`` is the file or the type of the object."""

    name: str
    columns: Mapping[str, Sequence[Any]] = field(repr=False)
    line_numbers: Sequence[int] = field(default=(), repr=False)
    """The lines of the rows in a text file; empty for other sources."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def where(self, *rows: int) -> str:
        """``lines 1 and 2`` of a text file, or ``rows 1 and 2``."""
        numbers = [self.line_numbers[row] if self.line_numbers else row + 1 for row in rows]
        unit = "line" if self.line_numbers else "row"
        return f"{unit}{'s' if len(rows) > 1 else ''} {' and '.join(map(str, numbers))}"

    def find(self, role: str) -> str | None:
        """The column of a role by its usual names; None if there is none."""
        return find_column(self.columns, role)

    def column(self, role: str, chosen: str | None = None) -> str:
        """The column that was chosen, or the one of the role; an error lists the columns there are."""
        if chosen is not None:
            if chosen not in self.columns:
                raise UnknownNameError.of(
                    f"column of {self.name}", chosen, self.columns, more=f"it has {', '.join(self.columns)}"
                )
            return chosen
        match = self.find(role)
        if match is None:
            raise FormatError(
                f"{self.name} has no {role} column; it has {', '.join(self.columns) or 'no columns'}",
                hint=f"name one of them, or rename it to {column_names()[role][0]}",
            )
        return match

    def texts(self, column: str) -> list[str]:
        """A column as texts without white space at the ends; a missing value is the empty text."""
        return [as_text(value) for value in self.columns[column]]

    def joined(self, columns: Sequence[str]) -> list[str]:
        """The texts of several columns, joined by one space; empty parts are left out."""
        parts = [self.texts(column) for column in columns]
        return [" ".join(part for part in row if part) for row in zip(*parts, strict=True)]

    def lists(self, column: str) -> list[list[str]]:
        """A column of lists of texts; a single text is a list of one, a JSON list in a CSV cell is read."""
        return [_as_list(value) for value in self.columns[column]]

    def rows(self, keep: Sequence[bool]) -> ColumnTable:
        """The rows that are kept."""
        columns = {
            name: [value for value, is_kept in zip(values, keep, strict=True) if is_kept]
            for name, values in self.columns.items()
        }
        return ColumnTable(self.name, columns)

    def records(self, **roles: str) -> list[dict[str, Any]]:
        """One dict per row without missing values; ``roles`` names keys after the column of a role."""
        keys = {self.find(role): key for key, role in roles.items() if key not in self.columns}
        columns = {keys.get(name, name): values for name, values in self.columns.items()}
        rows = ({name: values[row] for name, values in columns.items()} for row in range(len(self)))
        return [
            {name: value for name, value in row.items() if as_text(value) or isinstance(value, str)} for row in rows
        ]

    def properties(self, used: Iterable[str]) -> list[dict[str, str | int | float | bool | None]]:
        """The columns that have no role, per row: the slices of the units."""
        names = [name for name in self.columns if name not in set(used) and _is_property(self.columns[name])]
        return [{name: _property(self.columns[name][row]) for name in names} for row in range(len(self))]


def as_text(value: Any) -> str:
    """A cell as text: missing values are empty, 3.0 is 3.

    >>> as_text(3.0), as_text(None), as_text(" a ")
    ('3', '', 'a')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():  # pandas reads integer ids with gaps as floats
        return str(int(value))
    return str(value).strip()


def as_number(value: Any) -> float | None:
    """A cell as a finite number; None for a missing or unreadable one."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def table_of(source: Any, *, name: str = "") -> ColumnTable:
    """The table of a file, a folder saved by ``datasets``, a frame, a dataset, or rows and columns in Python."""
    if isinstance(source, ColumnTable):
        return source
    if isinstance(source, str | PathLike):
        return _from_path(Path(source), name)
    label = name or type(source).__name__
    if is_frame(source) and not isinstance(source, Mapping):
        return _from_frame(label, source)
    if isinstance(source, Mapping):
        if source and all(hasattr(value, "features") for value in source.values()):
            return _from_hub(label, source)
        columns = {str(key): list(values) for key, values in source.items()}
        if len({len(values) for values in columns.values()}) > 1:
            raise FormatError(f"the columns of {label} differ in length", hint="give one value per row in each")
        return _checked(ColumnTable(label, columns))
    if isinstance(source, Iterable):
        rows = list(source)
        if all(isinstance(row, Mapping) for row in rows):
            return _from_rows(label, rows)
        if all(hasattr(row, "_asdict") for row in rows):  # named tuples of ir_measures and ir_datasets
            return _from_rows(label, [row._asdict() for row in rows])
    raise InputError(
        f"a {type(source).__name__} is not a table",
        hint="give a path, a pandas or polars frame, a pyarrow table, a datasets.Dataset, or a list of dicts",
    )


def is_frame(source: Any) -> bool:
    """Whether the object is a table of pandas, polars, pyarrow, datasets or any library that exports Arrow data."""
    if isinstance(source, str | PathLike | type):
        return False
    return any(hasattr(source, name) for name in ("__arrow_c_stream__", "column_names", "collect_schema")) or (
        hasattr(source, "to_dict") and (hasattr(source, "columns") or hasattr(source, "to_frame"))
    )


def _from_frame(name: str, frame: Any) -> ColumnTable:
    if hasattr(frame, "column_names") and hasattr(frame, "features"):  # datasets.Dataset
        return _from_hub(name, frame)
    if hasattr(frame, "to_frame"):  # a pandas.Series, such as scores with an index of queries and documents
        frame = frame.to_frame()
    if hasattr(frame, "collect"):  # polars.LazyFrame
        frame = frame.collect()
    if hasattr(frame, "to_pydict"):  # pyarrow
        columns = frame.to_pydict()
    elif hasattr(frame, "to_dicts") and hasattr(frame, "to_dict"):  # polars
        columns = frame.to_dict(as_series=False)
    elif hasattr(frame, "to_dict"):  # pandas; named levels of the index are columns
        named = [level for level in frame.index.names if level is not None]
        columns = (frame.reset_index(named) if named else frame).to_dict("list")
    else:  # such as a relation of DuckDB
        columns = require_extra("pyarrow", extra="parquet").table(frame).to_pydict()
    return _checked(ColumnTable(name, {str(key): list(values) for key, values in columns.items()}))


def table_file(folder: Path, stem: str) -> Path | None:
    """The file of this stem in a folder, in any table format; None if there is none."""
    return next((file for file in tables_in(folder) if stem_of(file) == stem), None)


_OTHER_FORMATS = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save a sheet of the workbook as CSV UTF-8"),
    **dict.fromkeys((".zip", ".7z", ".tar", ".tgz"), "unpack it, and name the table inside"),
}
"""Hints for files that are often named instead of a table."""


def tables_in(folder: Path) -> list[Path]:
    """The table files of a folder, sorted by name."""
    return sorted(file for file in folder.iterdir() if file.is_file() and table_format(file) is not None)


def stem_of(path: Path) -> str:
    """The name of a table file without its suffixes, in lower case.

    >>> stem_of(Path("data/Corpus.jsonl.gz"))
    'corpus'
    """
    name = without_compression(path.name)
    return name.removesuffix(Path(name).suffix)


def is_saved_dataset(folder: Path) -> bool:
    """Whether a folder was written by ``save_to_disk`` of the package datasets."""
    return any((folder / name).is_file() for name in ("dataset_dict.json", "dataset_info.json", "state.json"))


def split_tables(folder: Path) -> list[Path]:
    """The tables of a folder that are named after splits, such as train.csv and test.csv."""
    return [file for file in tables_in(folder) if stem_of(file) in TRAIN + TEST]


def query_columns(
    table: ColumnTable, text: Sequence[str]
) -> tuple[list[str], list[list[str]], list[list[str]], dict[str, list[str]]]:
    """Queries, positives, negatives, and the columns of each of these; numbered columns count as lists.

    ``text`` names the columns of the query, the positive and, if there are three, the negative.
    """
    if text:
        chosen = [table.column("text", text_name) for text_name in text]
        if not 2 <= len(chosen) <= 3:
            raise InputError(f"{len(chosen)} text columns were named", hint="--text QUERY POSITIVE [NEGATIVE]")
        columns = {"query": chosen[:1], "positive": chosen[1:2], "negative": chosen[2:]}
        lists = [_merged_lists(table, columns[role]) for role in ("positive", "negative")]
        return table.texts(chosen[0]), lists[0], lists[1], columns
    query = table.column("query")
    columns = {"query": [query]}
    for role in ("positive", "negative"):
        main = table.find(role)
        main = None if main == query else main
        numbered = [
            name
            for name in table.columns
            if name.casefold().rstrip("_-0123456789 ") in (role, role[:3]) and name != main
        ]
        columns[role] = [*([main] if main else []), *numbered]
    if not columns["positive"]:
        table.column("positive")  # raises with the columns there are
    positives, negatives = (_merged_lists(table, columns[role]) for role in ("positive", "negative"))
    return table.texts(query), positives, negatives, columns


def _merged_lists(table: ColumnTable, columns: Sequence[str]) -> list[list[str]]:
    """The texts of several columns, per row."""
    parts = [table.lists(column) for column in columns]
    return [[text for part in parts for text in part[row]] for row in range(len(table))]


def _from_path(path: Path, name: str) -> ColumnTable:
    label = name or path.name
    if path.is_dir():
        if is_saved_dataset(path):
            return _from_hub(label, require_extra("datasets", extra="parquet").load_from_disk(str(path)))
        parts = split_tables(path)
        if parts:
            return _stacked(label, {stem_of(part): table_of(part) for part in parts})
        tables = tables_in(path)
        raise FormatError(
            f"{path} is a folder with {len(tables)} tables, not one data set"
            if tables
            else f"{path} is a folder without tables",
            hint=f"name one of them, such as {tables[0]}" if tables else "eq bench ls lists the formats",
        )
    if path.exists() and table_format(path) is None:
        raise FormatError(
            f"{path} does not have the file extension of a table format",
            hint=_OTHER_FORMATS.get(
                path.suffix.casefold(),
                f"use one of {', '.join(FORMATS)}, plain or with {', '.join(COMPRESSED_SUFFIXES)}",
            ),
        )
    table = read_table(path)
    lines = () if table.file is None else table.line_numbers
    return replace(_from_rows(label, table.rows), line_numbers=lines)


def _from_rows(name: str, rows: Sequence[Mapping[str, Any]]) -> ColumnTable:
    names = dict.fromkeys(str(key) for row in rows for key in row)
    return _checked(ColumnTable(name, {key: [row.get(key) for row in rows] for key in names}))


def _from_hub(name: str, dataset: Any) -> ColumnTable:
    """A ``datasets.Dataset``, or a ``DatasetDict`` whose splits become a column. Class codes become names."""
    if isinstance(dataset, Mapping):
        return _stacked(name, {str(split): _from_hub(f"{name} {split}", part) for split, part in dataset.items()})
    columns = {str(key): list(dataset[key]) for key in dataset.column_names}
    for key, feature in dataset.features.items():
        if hasattr(feature, "int2str"):
            columns[key] = [value if value is None or value < 0 else feature.int2str(value) for value in columns[key]]
    return _checked(ColumnTable(name, columns))


def _stacked(name: str, parts: Mapping[str, ColumnTable]) -> ColumnTable:
    """The rows of all parts, with a column ``split``."""
    names = list(dict.fromkeys(key for part in parts.values() for key in part.columns if key != "split"))
    columns = {
        key: [value for part in parts.values() for value in part.columns.get(key, [None] * len(part))] for key in names
    }
    return ColumnTable(name, {**columns, "split": [split for split, part in parts.items() for _ in range(len(part))]})


def _checked(table: ColumnTable) -> ColumnTable:
    if not len(table):
        raise FormatError(f"{table.name} has no rows", hint="add a row for every unit")
    return table


def _as_list(value: Any) -> list[str]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        import json

        try:
            value = json.loads(value)
        except ValueError:
            return [value.strip()]
    if isinstance(value, Mapping):  # MTEB writes passages as {"docid": ..., "text": ...}
        value = value.get("text", "")
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [text for item in value for text in _as_list(item)]
    text = as_text(value)
    return [text] if text else []


_LONGEST_PROPERTY = 60
_MOST_VALUES = 50


def _is_property(values: Sequence[Any]) -> bool:
    """Whether a column can be a slice: few distinct short values, not one per row."""
    distinct = {str(value) for value in values}
    most = min(_MOST_VALUES, max(2, len(values) // 2))
    return 1 < len(distinct) <= most and all(len(value) <= _LONGEST_PROPERTY for value in distinct)


def _property(value: Any) -> str | int | float | bool | None:
    if isinstance(value, bool | int | str) or value is None:
        return value
    number = as_number(value)
    return number if number is not None else None if as_text(value) == "" else as_text(value)
