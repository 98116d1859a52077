"""Any file with published figures, or a folder of them, as records."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.data.published import tree
from equipoise.data.published.delimited import delimited_grid
from equipoise.data.published.grid import Grid, numbered, records_of
from equipoise.data.published.latex import latex_grids
from equipoise.data.published.markdown import markdown_parts, text_parts
from equipoise.data.published.prose import said_in
from equipoise.data.published.record import Known, Published, Record, Said
from equipoise.data.published.system import formulas_of, of_outline, of_records, of_tree
from equipoise.data.tables import DELIMITERS
from equipoise.data.text import STDIN, PathLike, TextFile, open_text, shown
from equipoise.errors import EquipoiseError, FormatError, InputError

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
"""Files of a run directory that hold no figures of the whole."""


LONGEST_LINE = 5_000
"""Characters of a line of a published table that are read."""

Failed = Callable[[EquipoiseError], None]
"""What to do about a file of a folder that cannot be read."""


def read_published(
    source: PathLike | Mapping[Any, Any] | Sequence[Any], known: Known, failed: Failed | None = None
) -> list[Published]:
    """The figures of a file, of every file of a folder, or of values as JSON would hold them.

    ``known`` says whether a label names a figure. A file without any has no records. A file of a folder that
    cannot be read is an error, unless ``failed`` takes it: then the other files are read.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return list(_in_folder(path, known, failed)) if path.is_dir() else read_file(path, known)
    return _tables("the table", _with_digits(source), known)


def read_file(path: PathLike, known: Known) -> list[Published]:
    """The tables of one file, read as its suffix says."""
    name = Path(path).name.casefold().removesuffix(".gz")
    form = FORMATS.get(Path(name).suffix)
    if form is None and os.fspath(path) != STDIN and not Path(path).exists():
        open_text(path)
    if form is None and os.fspath(path) != STDIN:
        raise FormatError(
            f"{shown(path)} has a suffix that names no kind of table", hint=f"use one of {', '.join(FORMATS)}"
        )
    file = open_text(path)
    form = form or _looks_like(file)
    if form in ("json", "jsonl"):
        value = tree.json_tree(file) if form == "json" else tree.json_lines(file)
        return _tables(file.name, value, known)
    file = _shortened(file)
    grids, listed = _grids(file, form, known)
    said = said_in(file.text) if form in ("markdown", "text", "latex") else ()
    tables = [_table(grid, known, said) for grid in grids]
    alone = [Published(file.name, (record,)) for record in _saying(listed, said)]
    if form in ("markdown", "text"):
        lines = tuple(line for line in file.text.splitlines() if "=" in line)
        alone.append(Published(file.name, (), (), tuple(of_outline(file.text)), lines))
    return [*tables, *alone] or [Published(file.name, ())]


def _table(grid: Grid, known: Known, said: tuple[Said, ...]) -> Published:
    records = _saying(records_of(grid, known), said)
    return Published(grid.name, records, tuple(numbered(grid, known)), tuple(of_records(records)))


def _shortened(file: TextFile) -> TextFile:
    """The file without the ends of very long lines, on which the patterns of tables take quadratic time."""
    lines = file.text.split("\n")
    if max(map(len, lines)) <= LONGEST_LINE:
        return file
    return replace(file, data="\n".join(line[:LONGEST_LINE] for line in lines).encode())


def _saying(records: Sequence[Record], said: tuple[Said, ...]) -> tuple[Record, ...]:
    return tuple(replace(record, said=said) for record in records)


def _looks_like(file: TextFile) -> str:
    """The kind of a table that has no name: its first signs tell."""
    first = file.first_line
    if first.startswith(("{", "[")):
        return "jsonl" if first.startswith("{") and "\n{" in file.text else "json"
    if "\\begin{" in file.text:
        return "latex"
    if first.startswith(("#", "|", "- ", "* ")) or "|--" in file.text or "| --" in file.text:
        return "markdown"
    return "tsv" if "\t" in first else "csv" if "," in first or ";" in first else "text"


def _tables(name: str, value: Any, known: Known) -> list[Published]:
    """The tables of a value as JSON has it; all labels are told with the first."""
    tables = [Published(name, tuple(records)) for records in tree.tables_of(value, known)]
    first, *more = tables or [Published(name, ())]
    labels = tuple(tree.labels_of(value, known))
    return [
        replace(first, labels=labels, systems=tuple(of_tree(value)), formulas=tuple(formulas_of(value))),
        *more,
    ]


def _grids(file: TextFile, form: str, known: Known) -> tuple[list[Grid], list[Record]]:
    if form in DELIMITERS:
        return [delimited_grid(file, DELIMITERS[form])], []
    if form == "latex":
        return latex_grids(file), []
    return text_parts(file, known) if form == "text" else markdown_parts(file, known)


def _in_folder(folder: Path, known: Known, failed: Failed | None) -> Iterator[Published]:
    """Every table below a folder; of a run directory, its result alone."""
    found = False
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        names = [RESULT] if RESULT in files else sorted(files)
        for name in names:
            if Path(name).suffix.casefold() in FORMATS and name not in _BESIDE:
                found = True
                try:
                    yield from read_file(Path(at) / name, known)
                except EquipoiseError as error:
                    if failed is None:
                        raise
                    failed(error)
    if not found:
        raise InputError(
            f"there is no table in the folder {folder}", hint=f"tables end in {', '.join(FORMATS)}"
        )


def _with_digits(value: Any) -> Any:
    """Floats as text, with the digits that Python prints."""
    if isinstance(value, float):
        return tree.Digits(repr(value))
    if isinstance(value, Mapping):
        return {key: _with_digits(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_with_digits(each) for each in value]
    return value.item() if hasattr(value, "item") else value
