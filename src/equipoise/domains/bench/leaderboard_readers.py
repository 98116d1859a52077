"""Read a table of models and data sets: wide or long, from a file, a data frame or Python values."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.bench.score_table import ScoreTable
from equipoise.errors import (
    DuplicateError,
    EquipoiseError,
    FormatError,
    InputError,
    NotFiniteError,
    ParameterError,
    UnknownNameError,
)
from equipoise.io.published.json_tables import ExactNumber, json_lines, json_tree
from equipoise.io.published.markup_tables import read_latex, read_markdown, read_plain_text
from equipoise.io.published.numbers import PrintedNumber, parse_printed, strip_markup
from equipoise.io.published.tables import RawTable, delimited_grid
from equipoise.io.tables import DELIMITERS, find_delimiter, read_parquet
from equipoise.io.text import PathLike, TextFile, display_path, open_text

if TYPE_CHECKING:
    from equipoise.runs.manifest import Manifest
    from equipoise.stats.result import Result


MODEL_COLUMNS = ("model", "model_name", "models", "system", "method", "run", "submission", "name", "embedding")
DATASET_COLUMNS = ("dataset", "data set", "data_set", "datasets", "task", "task_name", "tasks", "benchmark", "corpus")
SCORE_COLUMNS = ("score", "value", "main_score", "result")
UNIT_COLUMNS = ("unit", "unit_id", "query", "query_id", "qid", "question", "item", "instance", "instance_id", "example")
METRIC_COLUMN = "metric"
N_COLUMNS = ("n", "n_units", "support")
"""Columns with the number of units. In a wide table they are left out unless they are named as data sets."""
MISSING = frozenset({"", "-", "–", "—", "--", "n/a", "na", "nan", "none", "null", "?", "x", "tbd", "/"})
SUMMARY = re.compile(
    r"(?i)^(?:#|no\.?|id|index|overall|total|borda|(?:macro |micro )?(?:avg|average|mean)\b.*|rank\b.*|ranking|position"
    r"|(?:#|number of|active|total)? ?param(?:eter)?s?\b.*|model size.*|size\b.*|(?:embedding )?dim(?:ension)?s?\b.*"
    r"|max(?:imum)?[ _](?:tokens|length).*|memory.*|seq(?:uence)?[ _]len.*|year|date|released?.*|licen[sc]e|price"
    r"|cost|speed|latency|zero[- ]?shot|.*\baverage(?: \(.*\))?)$"
)
"""Columns that describe or summarise a model. They are left out unless they are named as data sets."""
ACCURACY = re.compile(r"(?i)\b(?:acc|accuracy|exact match|em|pass@1|hr@1|resolved|solved|solve rate)\b")
"""Names of scores that are a share of units answered correctly."""
_LINK = re.compile(r"\[([^\[\]]+)\]\([^()]*\)")
DOWN_ARROW = r"\W{0,20}?(?:↓|⬇|▼|\\downarrow|\(?lower is better)"
SUFFIXES = {
    **{".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".md": "markdown", ".markdown": "markdown", ".txt": "text"},
    **{
        ".tex": "latex",
        ".json": "json",
        ".jsonl": "jsonl",
        ".ndjson": "jsonl",
        ".parquet": "parquet",
        ".pq": "parquet",
    },
}

Source = Any
"""A path, a data frame, a mapping of models to scores, a sequence of rows, or a ``ScoreTable``."""


def read_scores(
    source: Source,
    *,
    datasets: Sequence[str] = (),
    models_in: str | None = None,
    metric: str | None = None,
    split: str | None = None,
    subsets: Sequence[str] = (),
) -> ScoreTable:
    """The scores of a file, a folder of MTEB results or of run directories, a data frame, or nested mappings.

    ``datasets`` are columns to read although their names look like summaries, such as "Average". The other options are
    those of ``leaderboard``.
    """
    if isinstance(source, ScoreTable):
        return source
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        return read_folder(Path(source), metric=metric, split=split, subsets=subsets)
    if split is not None or subsets:
        raise ParameterError(
            "splits and subsets are properties of MTEB results, and this is a table",
            hint="leave out --split and --subset, or name a folder of MTEB results",
        )
    grid, text = _grid(source)
    columns = _long_columns(grid.header)
    if metric is not None and "metric" not in (columns or {}):
        raise ParameterError(
            f"{grid.name} has no column {METRIC_COLUMN}, so no metric can be chosen", hint="leave out --metric"
        )
    if columns is not None:
        table = _from_long(grid, columns, metric)
    else:
        table = _from_wide(grid, datasets=datasets, models_in=models_in)
    lower = [name for name in table.datasets if re.search(re.escape(name) + DOWN_ARROW, text)]
    accuracy = [name for name in table.datasets if ACCURACY.search(name) or ACCURACY.search(metric or "")]
    return replace(table, lower=table.lower | set(lower), accuracy=table.accuracy | set(accuracy))


def _grid(source: Source) -> tuple[RawTable, str]:
    """The table of a source as text cells, and the text of the file where there is one."""
    if isinstance(source, str | os.PathLike):
        return _grid_of_file(source)
    if hasattr(source, "to_dicts"):
        return _grid_of_records("the data frame", source.to_dicts()), ""
    if hasattr(source, "to_dict") and hasattr(source, "reset_index"):
        named = source.index.name is not None or not all(isinstance(label, int) for label in source.index)
        frame = source.rename_axis(index=source.index.name or "model").reset_index() if named else source
        return _grid_of_records("the data frame", frame.to_dict("records")), ""
    return _grid_of_records("the table", _records("the table", source)), ""


def _grid_of_file(path: PathLike) -> tuple[RawTable, str]:
    suffix = Path(Path(path).name.casefold().removesuffix(".gz")).suffix
    form = SUFFIXES.get(suffix)
    if form == "parquet":
        table = read_parquet(path)
        return _grid_of_records(table.name, table.rows), ""
    file = open_text(path)
    if form is None:
        raise FormatError(
            f"{display_path(path)} does not have the file extension of a table",
            hint=f"use one of {', '.join(SUFFIXES)}",
        )
    if form in ("json", "jsonl"):
        value = json_tree(file) if form == "json" else json_lines(file)
        return _grid_of_records(file.name, _records(file.name, value)), file.text
    if form in DELIMITERS:
        return delimited_grid(file, find_delimiter(file, form)), file.text
    return _largest(file, _markup_tables(file, form)), file.text


def _markup_tables(file: TextFile, form: str) -> list[RawTable]:
    def no_metric(label: str) -> bool:
        return False

    if form == "latex":
        return read_latex(file)
    return (read_plain_text if form == "text" else read_markdown)(file, no_metric)[0]


def _largest(file: TextFile, tables: Sequence[RawTable]) -> RawTable:
    """The table with the most numbers."""
    if not tables:
        raise FormatError(f"{file.name} has no table", hint="a Markdown table has a line of dashes below its header")

    def n_numbers(table: RawTable) -> int:
        return sum(parse_printed(cell) is not None for row in table.rows for cell in row)

    return max(tables, key=n_numbers)


def _records(name: str, value: Any) -> list[Mapping[str, Any]]:
    """Rows from JSON values: a list of objects, or an object of objects by model."""
    if isinstance(value, Mapping) and value and all(isinstance(row, Mapping) for row in value.values()):
        return [{"model": model, **row} for model, row in value.items()]
    if isinstance(value, Mapping):
        lists = [rows for rows in value.values() if _is_records(rows)]
        if len(lists) == 1:
            return list(lists[0])
    if _is_records(value):
        return list(value)
    raise FormatError(
        f"{name} is neither a list of rows nor an object of models",
        hint='write {"model": {"data set": score}} or [{"model": ..., "data set": score}]',
    )


def _is_records(value: Any) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and bool(value) and all(isinstance(row, Mapping) for row in value)


def _grid_of_records(name: str, rows: Sequence[Mapping[str, Any]]) -> RawTable:
    if not rows:
        raise FormatError(f"{name} has no rows", hint="add one row per model")
    header = tuple(dict.fromkeys(str(key) for row in rows for key in row))
    cells = tuple(tuple(_text(row.get(key), f"{name}: {key}") for key in header) for row in rows)
    return RawTable(name, header, cells, tuple(f"row {number}" for number in range(1, len(rows) + 1)))


def _text(value: Any, where: str) -> str:
    """A cell as text, with the digits of its source."""
    if value is None:
        return ""
    if isinstance(value, float) and not isinstance(value, ExactNumber):
        return repr(float(value))
    if isinstance(value, Mapping | list):
        raise FormatError(
            f"{where} is a {type(value).__name__} instead of a number", hint="give one number per model and data set"
        )
    return str(value)


# Wide tables: one row per model and one column per data set, or the other way round.


def _from_wide(grid: RawTable, *, datasets: Sequence[str], models_in: str | None) -> ScoreTable:
    if models_in not in (None, "rows", "columns"):
        raise ParameterError(f"models_in={models_in!r} is not known", hint="choose rows or columns")
    _check_names(grid.name, "column", [head for head in grid.header if head])
    folded = [_folded(head) for head in grid.header]
    name_column = next((at for at, head in enumerate(folded) if head in MODEL_COLUMNS), None)
    dataset_column = next((at for at, head in enumerate(folded) if head in DATASET_COLUMNS), None)
    transposed = models_in == "columns" or (models_in is None and name_column is None and dataset_column is not None)
    if transposed:
        grid, name_column = _names_first(grid, dataset_column or 0).turned, 0
    grid = _names_first(grid, _first_text_column(grid) if name_column is None else name_column)
    unknown = [name for name in datasets if name not in grid.header[1:]]
    if unknown:
        raise UnknownNameError.of(
            "data set", unknown[0], grid.header[1:], more=f"the columns are {', '.join(grid.header[1:][:10])}"
        )
    return _scores_of(grid, datasets, transposed=transposed)


def _scores_of(grid: RawTable, datasets: Sequence[str], *, transposed: bool) -> ScoreTable:
    """The scores of a table whose first column has the names of the models.

    A row without a number is a description if the table was turned, and else a model without a score.
    """
    header = [_name(head) for head in grid.header]
    columns = [at for at in range(1, len(header)) if header[at] in datasets or _is_dataset(grid, at, header[at])]
    heads_left_out = [head for at, head in enumerate(header) if at and at not in columns and head]
    rows_left_out = []
    printed, unreadable, models, scores = {}, [], [], []
    for row in grid.rows:
        model = _name(row[0])
        cells = {header[at]: _number(row[at], f"{grid.name}: {model}, {header[at]}") for at in columns}
        numbers = {name: cell for name, cell in cells.items() if isinstance(cell, PrintedNumber)}
        if numbers and not (transposed and model.casefold() in N_COLUMNS):
            models.append(model)
            scores.append([numbers[name].value if name in numbers else np.nan for name in cells])
            printed.update({(model, name): number for name, number in numbers.items()})
        elif model:
            rows_left_out.append(model)
        if numbers or not transposed:
            texts = [(name, cell) for name, cell in cells.items() if isinstance(cell, str) and cell]
            unreadable += [f"{model}, {name}: {cell!r}" for name, cell in texts]
    if not scores:
        raise FormatError(
            f"{grid.name} has no column with a score of every model",
            hint="write one row per model and one column per data set, or name the columns with --datasets",
        )
    names = [header[at] for at in columns]
    _check_names(grid.name, "model", models)
    if not datasets:
        _check_not_metrics(grid.name, names)
    return ScoreTable(
        grid.name,
        tuple(models),
        tuple(names),
        np.array(scores),
        printed=printed,
        unreadable=tuple(unreadable),
        notes=_left_out(heads_left_out, rows_left_out, transposed=transposed),
    )


def _left_out(heads: Sequence[str], rows: Sequence[str], *, transposed: bool) -> tuple[str, ...]:
    """A note with the names of what is left out; the rows of a turned table are the columns of the file."""
    nouns = ("row", "column") if transposed else ("column", "model without scores")
    parts = []
    for noun, names in zip(nouns, (heads, rows), strict=True):
        plural = "models without scores" if noun.startswith("model") else f"{noun}s"
        if names:
            parts.append(f"{noun if len(names) == 1 else plural} {join_names(names)}")
    return (f"left out: {'; '.join(parts)}",) if parts else ()


def _check_not_metrics(source: str, names: Sequence[str]) -> None:
    """Several metrics of one data set are not several data sets: their mean and their bootstrap have no meaning."""
    symbols = [re.sub(r"[^\w)@.=-]+$", "", name) for name in names]  # without arrows
    if len(names) > 1 and all(map(_is_metric, symbols)):
        raise InputError(
            f"{source}: the columns are metrics ({join_names(names)}) and not data sets; an order over data sets "
            "needs one metric on several of them",
            hint=f"check such a table with eq audit, or name the columns to read: --datasets {shlex.quote(names[0])}",
        )


def _is_metric(name: str) -> bool:
    from equipoise.metrics.parser import builtin, matching_metrics

    try:
        return bool(matching_metrics(name, builtin()))
    except EquipoiseError:  # a metric with parameters that it does not have
        return True


def _is_dataset(grid: RawTable, column: int, name: str) -> bool:
    """Whether a column has scores: its name is no summary and no number of units, and most cells are numbers."""
    cells = [row[column] for row in grid.rows if _folded(row[column]) not in MISSING]
    numbers = sum(parse_printed(cell) is not None for cell in cells)
    is_other = SUMMARY.match(name) or name.casefold() in N_COLUMNS
    return bool(name) and not is_other and numbers > 0 and 2 * numbers >= len(cells)


def _number(text: str, where: str) -> PrintedNumber | str:
    """The number of a cell, or the text of a cell that is no number; empty if the cell is missing."""
    if _folded(text) in MISSING:
        return ""
    if _folded(text).lstrip("+-") in ("inf", "infinity", "∞"):
        raise NotFiniteError(f"{where} is infinite", hint="leave the cell empty if there is no score")
    return parse_printed(text) or text


def _names_first(grid: RawTable, column: int) -> RawTable:
    """The table with this column first."""
    if column == 0:
        return grid

    def moved(row: tuple[str, ...]) -> tuple[str, ...]:
        return (row[column], *row[:column], *row[column + 1 :])

    return replace(grid, header=moved(grid.header), rows=tuple(map(moved, grid.rows)))


def _first_text_column(grid: RawTable) -> int:
    """The first column that is not numeric."""
    for at in range(len(grid.header)):
        if any(row[at] and parse_printed(row[at]) is None for row in grid.rows):
            return at
    return 0


def _check_names(source: str, kind: str, names: Sequence[str]) -> None:
    if "" in names:
        raise FormatError(f"{source}: {kind} {names.index('') + 1} has no name", hint=f"give every {kind} a name")
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DuplicateError(f"{source} has the {kind} {repeated!r} twice", hint="keep one of them, or rename it")


def _folded(text: str) -> str:
    return _name(text).casefold()


def _name(text: str) -> str:
    """The name in a cell, without emphasis and without the address of a Markdown link.

    >>> _name("**[MiniLM](https://example.org)**")
    'MiniLM'
    """
    return _LINK.sub(r"\1", strip_markup(text)).strip()


# Long tables: one row per model, data set and possibly unit.


def _long_columns(header: Sequence[str]) -> dict[str, int] | None:
    """The columns of a long table by role; None if it is no long table."""
    folded = [_folded(head) for head in header]

    def find(names: Iterable[str]) -> int | None:
        return next((folded.index(name) for name in names if name in folded), None)

    roles = {
        "model": find(MODEL_COLUMNS),
        "dataset": find(DATASET_COLUMNS),
        "score": find(SCORE_COLUMNS),
        "unit": find(UNIT_COLUMNS),
        "metric": find((METRIC_COLUMN,)),
        "n": find(N_COLUMNS),
    }
    if any(roles[role] is None for role in ("model", "dataset", "score")):
        return None
    return {role: column for role, column in roles.items() if column is not None}


def _from_long(grid: RawTable, columns: Mapping[str, int], metric: str | None) -> ScoreTable:
    rows = _rows_of_metric(grid, columns, metric)
    cells: dict[tuple[str, str], dict[str, PrintedNumber]] = {}
    sizes: dict[str, int] = {}
    unreadable = []
    for row, place in rows:
        model, dataset = (_name(row[columns[role]]) for role in ("model", "dataset"))
        if not model or not dataset:
            raise FormatError(f"{grid.name} {place} has no name of a model or data set", hint="fill the empty cell")
        unit = row[columns["unit"]] if "unit" in columns else ""
        number = _number(row[columns["score"]], f"{grid.name} {place}")
        if isinstance(number, str):
            unreadable += [f"{place}: {number!r}"] if number else []
            continue
        of_cell = cells.setdefault((model, dataset), {})
        if unit in of_cell:
            what = f"unit {unit} of {model} on {dataset}" if unit else f"the score of {model} on {dataset}"
            raise DuplicateError(
                f"{grid.name} {place} gives {what} again",
                hint="keep one row per model and data set, or add a column with the unit",
            )
        of_cell[unit] = number
        if "n" in columns and (size := parse_printed(row[columns["n"]])) is not None:
            sizes[dataset] = int(size.value)
    if not cells:
        raise FormatError(f"{grid.name} has no score", hint="the column of scores has no number")
    values = {key: {unit: number.value for unit, number in units.items()} for key, units in cells.items()}
    table = ScoreTable.from_units(grid.name, values)
    printed = {} if "unit" in columns else {key: units[""] for key, units in cells.items()}
    return replace(table, printed=printed, n_units=table.n_units or sizes, unreadable=tuple(unreadable))


def _rows_of_metric(
    grid: RawTable, columns: Mapping[str, int], metric: str | None
) -> list[tuple[tuple[str, ...], str]]:
    """The rows of one metric, each with its place in the file."""
    rows = list(zip(grid.rows, grid.positions, strict=True))
    if "metric" not in columns:
        return rows
    metrics = list(dict.fromkeys(row[columns["metric"]] for row in grid.rows))
    if metric is None and len(metrics) > 1:
        raise ParameterError(
            f"{grid.name} has {len(metrics)} metrics: {join_names(metrics)}",
            hint=f"choose one with --metric, such as {metrics[0]}",
        )
    if metric is not None and metric not in metrics:
        raise UnknownNameError.of("metric", metric, metrics, more=f"the table has {', '.join(metrics[:10])}")
    return [(row, place) for row, place in rows if metric is None or row[columns["metric"]] == metric]


MODEL_META = "model_meta.json"
DEFAULT_SPLIT = "test"
MTEB_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class TaskScores:
    """The scores of one result file by split and subset."""

    model: str
    revision: str
    task: str
    scores: Mapping[str, Mapping[str, float]]


def read_folder(folder: Path, *, metric: str | None, split: str | None, subsets: Sequence[str]) -> ScoreTable:
    """The scores of a folder: run directories if there are any, else results of MTEB."""
    from equipoise.runs.run_folder import runs_below

    if runs := runs_below(folder):
        if split is not None or subsets:
            raise ParameterError(
                f"{folder} holds run directories, which have no splits or subsets",
                hint="leave out --split and --subset",
            )
        return _read_runs(folder, runs, metric)
    if metric is not None:
        raise ParameterError(f"{folder} holds results of MTEB, whose score is main_score", hint="leave out --metric")
    return _read_mteb(folder, split, subsets)


# Results of MTEB.


def _read_mteb(folder: Path, split: str | None, subsets: Sequence[str]) -> ScoreTable:
    results: list[TaskScores] = []
    problems: list[str] = []
    for path in _json_files(folder):
        try:
            results.append(_task_scores(path, folder))
        except InputError as error:
            problems.append(error.message)
    if not results:
        reason = f": {problems[0]}" if problems else ""
        raise InputError(
            f"{folder} holds no results of MTEB and no run directory{reason}",
            hint="results of MTEB are MODEL/REVISION/TASK.json; runs are written by eq score -o",
        )
    results, notes = _one_revision(results)
    cells, more_notes = _cells(results, split, subsets)
    if not cells:
        known = sorted({name for result in results for name in result.scores})
        raise UnknownNameError.of("split", split or "", known, more=f"the splits are {', '.join(known)}")
    table = ScoreTable.from_units(str(folder), {key: {"": score} for key, score in cells.items()})
    return replace(table, unreadable=tuple(problems), notes=(*notes, *more_notes))


def _json_files(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place) / name for name in sorted(files) if name.endswith(MTEB_SUFFIX) and name != MODEL_META)


def _task_scores(path: Path, folder: Path) -> TaskScores:
    """One result file; an error says what is wrong with it."""
    # NaN is allowed: MTEB writes it for a score that could not be computed.
    file = open_text(path)
    try:
        content = json.loads(file.text)
        scores = {
            str(split): {str(entry.get("hf_subset", "default")): _score(entry) for entry in entries}
            for split, entries in content["scores"].items()
        }
        task = str(content["task_name"])
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a result of MTEB: it has no task_name, scores and main_score") from error
    model, revision = _model_of(path, folder)
    return TaskScores(model, revision, task, scores)


def _score(entry: Mapping[str, Any]) -> float:
    score = entry["main_score"]
    return float("nan") if score is None else float(score)


def _model_of(path: Path, folder: Path) -> tuple[str, str]:
    """The name of the model and its revision, from ``model_meta.json`` or the folders above the file."""
    parts = (folder.absolute().name, *path.relative_to(folder).parts)
    meta = path.parent / MODEL_META
    revision = parts[-2]
    if meta.is_file():
        try:
            content = json.loads(open_text(meta).text)
            return str(content["name"]), str(content.get("revision") or revision)
        except (InputError, ValueError, KeyError, TypeError, AttributeError):
            pass  # the folder names are enough
    model, revision = (parts[-3], revision) if len(parts) > 3 else (parts[-2], "")
    return model.replace("__", "/", 1), revision


def _one_revision(results: Sequence[TaskScores]) -> tuple[list[TaskScores], list[str]]:
    """The results of one revision per model: the one with the most tasks."""
    tasks: dict[str, dict[str, int]] = {}
    for result in results:
        revisions = tasks.setdefault(result.model, {})
        revisions[result.revision] = revisions.get(result.revision, 0) + 1
    best_revision = {
        model: max(revisions, key=lambda name: (revisions[name], name)) for model, revisions in tasks.items()
    }
    several = [f"{model} ({best_revision[model]})" for model, revisions in tasks.items() if len(revisions) > 1]
    notes = [f"of models with several revisions the one with the most tasks is used: {join_names(several)}"]
    return [result for result in results if best_revision[result.model] == result.revision], notes if several else []


def _cells(
    results: Sequence[TaskScores], split: str | None, subsets: Sequence[str]
) -> tuple[dict[tuple[str, str], float], list[str]]:
    """The score of each model on each task, over the subsets that all models with the task share."""
    by_task: dict[str, dict[str, dict[str, float]]] = {}
    for result in results:
        name = split or (DEFAULT_SPLIT if DEFAULT_SPLIT in result.scores else min(result.scores, default=""))
        scores = {
            subset: score
            for subset, score in result.scores.get(name, {}).items()
            if isfinite(score) and (not subsets or subset in subsets)
        }
        of_task = by_task.setdefault(result.task, {})
        if result.model in of_task:
            raise DuplicateError(
                f"{result.model} has two results of {result.task}", hint="keep one file per model and task"
            )
        if scores:
            of_task[result.model] = scores
    cells, reduced = {}, []
    for task, of_task in by_task.items():
        if not of_task:
            continue
        shared = set.intersection(*(set(scores) for scores in of_task.values()))
        if any(len(scores) > len(shared) for scores in of_task.values()):
            reduced.append(task)
        for model, scores in of_task.items():
            if shared:
                cells[model, task] = fmean(scores[subset] for subset in sorted(shared))
    notes = []
    if reduced:
        tasks = pluralize(len(reduced), "task")
        notes.append(f"{tasks} with different subsets per model use the shared subsets: {join_names(reduced)}")
    return cells, notes


# Run directories: one system on one data set each.


def _read_runs(folder: Path, runs: Sequence[Path], metric: str | None) -> ScoreTable:
    from equipoise.runs.run_folder import load_run
    from equipoise.types import Direction

    cells: dict[tuple[str, str], dict[str, float]] = {}
    metrics: dict[str, str] = {}
    lower: set[str] = set()
    problems: list[str] = []
    tuned: dict[str, None] = {}
    for path in runs:
        try:
            run = load_run(path, evidence=False)
        except EquipoiseError as error:
            problems.append(error.message)
            continue
        result = run.result
        dataset = _dataset_name(run.manifest) or path.parent.name
        name = metric or metrics.setdefault(dataset, result.names[0])
        if name not in result.estimates:
            raise UnknownNameError.of(
                "metric", name, result.estimates, more=f"{path} has {', '.join(result.estimates) or 'none'}"
            )
        if (result.system, dataset) in cells:
            raise DuplicateError(
                f"{folder} has two runs of {result.system} on {dataset}", hint="name a folder with one run of each"
            )
        cells[result.system, dataset] = _unit_scores(result, name)
        tuned |= {result.system: None} if name in result.errors else {}
        lower |= {dataset} if result.estimates[name].better == Direction.DOWN else set()
    cells = {key: scores for key, scores in cells.items() if scores}
    if not cells:
        reason = problems[0] if problems else "no run has a score"
        raise InputError(f"{folder} has no readable run directory: {reason}", hint="run the command again")
    notes = [f"metrics: {', '.join(f'{dataset} {name}' for dataset, name in metrics.items())}"] if metrics else []
    table = ScoreTable.from_units(str(folder), cells)
    return replace(
        table,
        lower=frozenset(lower),
        unreadable=tuple(problems),
        notes=(*table.notes, *notes),
        runs=True,
        tuned=tuple(tuned),
    )


def _dataset_name(manifest: Manifest) -> str:
    """The name that ``eq bench`` gave the data set, or the names of its files."""
    named = manifest.parameters.get("dataset")
    return str(named) if named else " + ".join(Path(source).name for source in manifest.datasets)


def _unit_scores(result: Result, metric: str) -> dict[str, float]:
    """The defined scores by unit; the score under ``""`` if the metric has no per-unit values."""
    if metric not in result.per_unit:
        value = result.estimates[metric].value
        return {"": value} if isfinite(value) else {}
    pairs = zip(result.unit_ids.tolist(), result.per_unit[metric].tolist(), strict=True)
    return {str(unit): value for unit, value in pairs if isfinite(value)}
