"""Any file with published scores, or a folder of such files, as records."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.errors import EquipoiseError, FormatError, InputError
from equipoise.io.published import json_tables
from equipoise.io.published.json_tables import (
    find_formulas,
    systems_from_json,
    systems_from_outline,
    systems_from_records,
)
from equipoise.io.published.markup_tables import read_latex, read_markdown, read_plain_text
from equipoise.io.published.numbers import PrintedNumber, parse_printed, strip_markup
from equipoise.io.published.tables import (
    Known,
    PublishedTable,
    RawTable,
    StatedFact,
    SystemRecord,
    TableCell,
    delimited_grid,
    numeric_labels,
    table_records,
)
from equipoise.io.tables import DELIMITERS
from equipoise.io.text import STDIN, PathLike, TextFile, display_path, open_text

# Facts about the scores that the text around a table states.

_PARENT = re.compile(
    r"(?:\brank(?:s|ing)?|\bretriev(?:e|es|ing))\s+(?:its|the|their)\s+(?:one |only |direct |true )?parent\b"
    r"|\bparent(?: \w+)? is (?:the only relevant|ranked|retrieved)",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"ancestor|transitive closure|all parents|several parents", re.IGNORECASE)
_OVER_RELEVANT = re.compile(
    r"\\?min\s*\\?[({]\s*k\s*,\s*\|?\s*(?:R|(?:num_|number of )?relevant\w*)\s*\|?\s*\\?[)}]", re.IGNORECASE
)
_LIKE = re.compile(r"\bScored like ([\w-]+)")
_PERCENT = re.compile(
    r"(?:\bin|\bas)\s+(?:percent|percentages?|\\?%)|\bpercentages\b|(?:×|\\times|\bx|\btimes)\s*100\b",
    re.IGNORECASE,
)
_BROAD = re.compile(r"\s+")


def stated_facts(text: str) -> tuple[StatedFact, ...]:
    """The facts that the text states.

    >>> stated_facts("For each account we rank its parent among all others.")
    (StatedFact(label='relation', text='parent', quote='rank its parent'),)
    """
    facts = []
    flat = _BROAD.sub(" ", text)
    if (match := _PARENT.search(flat)) and not _SEVERAL.search(flat):
        facts.append(StatedFact("relation", "parent", match[0]))
    if match := _OVER_RELEVANT.search(flat):
        facts.append(StatedFact("map_over", "relevant", match[0]))
    # A caption of this program; it escapes what Markdown or LaTeX would take for markup.
    if match := _LIKE.search(strip_markup(flat)):
        facts.append(StatedFact("like", match[1], match[0]))
    if match := _PERCENT.search(flat):
        facts.append(StatedFact("unit", "percent", match[0]))
    return tuple(facts)


FORMATS = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".tex": "latex",
}
RESULT = "result.json"
_BESIDE = ("manifest.json", "tuning.json", "cases.jsonl", "details.jsonl")
"""Files of a run directory without overall scores."""


LONGEST_LINE = 5_000
"""Characters of a line of a published table that are read."""

Failed = Callable[[EquipoiseError], None]
"""What to do about a file of a folder that cannot be read."""


def read_published(
    source: PathLike | Mapping[Any, Any] | Sequence[Any], is_metric: Known, failed: Failed | None = None
) -> list[PublishedTable]:
    """The scores in a file, in all files of a folder, or in parsed JSON values.

    ``is_metric`` tells whether a label names a metric. A file without metrics has no records. A file of a folder that
    cannot be read is an error, unless ``failed`` is given: it is called with the error, and the other files are read.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return list(_in_folder(path, is_metric, failed)) if path.is_dir() else read_file(path, is_metric)
    return _tables("the table", _with_digits(source), is_metric)


def read_file(path: PathLike, is_metric: Known) -> list[PublishedTable]:
    """The tables of one file, read according to its file extension."""
    name = Path(path).name.casefold().removesuffix(".gz")
    form = FORMATS.get(Path(name).suffix)
    if form is None and os.fspath(path) != STDIN and not Path(path).exists():
        open_text(path)
    if form is None and os.fspath(path) != STDIN:
        raise FormatError(
            f"{display_path(path)} does not have the file extension of a table",
            hint=f"use one of {', '.join(FORMATS)}",
        )
    file = open_text(path)
    form = form or _looks_like(file)
    if form in ("json", "jsonl"):
        value = json_tables.json_tree(file) if form == "json" else json_tables.json_lines(file)
        return _tables(file.name, value, is_metric)
    file = _truncate_long_lines(file)
    grids, listed = _grids(file, form, is_metric)
    facts = stated_facts(file.text) if form in ("markdown", "text", "latex") else ()
    tables = [_table(grid, is_metric, facts) for grid in grids]
    single_tables = [PublishedTable(file.name, (record,)) for record in _with_facts(listed, facts)]
    if form in ("markdown", "text"):
        lines = tuple(line for line in file.text.splitlines() if "=" in line)
        single_tables.append(PublishedTable(file.name, (), (), tuple(systems_from_outline(file.text)), lines))
    return [*tables, *single_tables] or [PublishedTable(file.name, ())]


def _table(grid: RawTable, is_metric: Known, facts: tuple[StatedFact, ...]) -> PublishedTable:
    records = _with_facts(table_records(grid, is_metric), facts)
    return PublishedTable(
        grid.name, records, tuple(numeric_labels(grid, is_metric)), tuple(systems_from_records(records))
    )


def _truncate_long_lines(file: TextFile) -> TextFile:
    """The file without the ends of very long lines, on which the patterns of tables take quadratic time."""
    lines = file.text.split("\n")
    if max(map(len, lines)) <= LONGEST_LINE:
        return file
    return replace(file, data="\n".join(line[:LONGEST_LINE] for line in lines).encode())


def _with_facts(records: Sequence[SystemRecord], facts: tuple[StatedFact, ...]) -> tuple[SystemRecord, ...]:
    return tuple(replace(record, stated=facts) for record in records)


def _looks_like(file: TextFile) -> str:
    """The kind of a table without a file name, guessed from its first characters."""
    first = file.first_line
    if first.startswith(("{", "[")):
        return "jsonl" if first.startswith("{") and "\n{" in file.text else "json"
    if "\\begin{" in file.text:
        return "latex"
    if first.startswith(("#", "|", "- ", "* ")) or "|--" in file.text or "| --" in file.text:
        return "markdown"
    return "tsv" if "\t" in first else "csv" if "," in first or ";" in first else "text"


def _tables(name: str, value: Any, is_metric: Known) -> list[PublishedTable]:
    """The tables of a JSON value; the first table carries all labels."""
    tables = [PublishedTable(name, tuple(records)) for records in json_tables.records_from_json(value, is_metric)]
    first, *more = tables or [PublishedTable(name, ())]
    labels = tuple(json_tables.number_labels(value, is_metric))
    return [
        replace(first, labels=labels, systems=tuple(systems_from_json(value)), formulas=tuple(find_formulas(value))),
        *more,
    ]


def _grids(file: TextFile, form: str, is_metric: Known) -> tuple[list[RawTable], list[SystemRecord]]:
    if form in DELIMITERS:
        return [delimited_grid(file, DELIMITERS[form])], []
    if form == "latex":
        return read_latex(file), []
    return read_plain_text(file, is_metric) if form == "text" else read_markdown(file, is_metric)


def _in_folder(folder: Path, is_metric: Known, failed: Failed | None) -> Iterator[PublishedTable]:
    """Every table below a folder; of a run directory, its result alone."""
    any_table = False
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        names = [RESULT] if RESULT in files else sorted(files)
        for name in names:
            if Path(name).suffix.casefold() in FORMATS and name not in _BESIDE:
                any_table = True
                try:
                    yield from read_file(Path(at) / name, is_metric)
                except EquipoiseError as error:
                    if failed is None:
                        raise
                    failed(error)
    if not any_table:
        raise InputError(f"there is no table in the folder {folder}", hint=f"tables end in {', '.join(FORMATS)}")


def _with_digits(value: Any) -> Any:
    """Floats as text, with the digits that Python prints."""
    if isinstance(value, float):
        return json_tables.ExactNumber(repr(value))
    if isinstance(value, Mapping):
        return {key: _with_digits(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_with_digits(item) for item in value]
    return value.item() if hasattr(value, "item") else value


__all__ = ["PrintedNumber", "PublishedTable", "SystemRecord", "TableCell", "parse_printed", "read_published"]
