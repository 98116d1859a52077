"""Readers and writers of runs and qrels: TREC, JSON, JSONL, CSV, TSV (also of BEIR) and parquet.

A TREC run line is ``query Q0 doc rank score tag``, a qrels line ``query iteration doc relevance``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from equipoise.errors import DuplicateError, FormatError, InputError, NotFiniteError, ParameterError, did_you_mean
from equipoise.io.atomic import write_text
from equipoise.io.tables import (
    DELIMITERS,
    Table,
    column_names,
    find_column,
    parse_table,
    read_parquet,
    table_format,
    table_of_json,
)
from equipoise.io.text import (
    NotStreamableError,
    NumberRangeError,
    PathLike,
    TextFile,
    display_path,
    line_blocks,
    open_text,
    parse_number,
)

Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int | float]]


@dataclass(frozen=True, slots=True)
class TrecLayout:
    """The columns of a TREC file; ``value`` is that of the score or relevance.

    ``role`` is the role of that column in a table with a header.
    """

    kind: str
    fields: tuple[str, ...]
    value: int
    widths: frozenset[int]
    convert: Callable[[bytes], float]
    role: str

    @property
    def value_name(self) -> str:
        """The name of the number."""
        return self.fields[self.value]

    @property
    def roles(self) -> dict[str, str]:
        """The roles of the columns of a table, by what messages call them."""
        return {"query": "query_id", "doc": "doc_id", self.value_name: self.role}


_RUN_FIELDS = ("query", "Q0", "doc", "rank", "score", "tag")
RUN = TrecLayout("run", _RUN_FIELDS, 4, frozenset({6}), float, "run_score")
UNTAGGED_RUN = replace(RUN, widths=frozenset({5, 6}))
QRELS = TrecLayout("qrels", ("query", "iteration", "doc", "relevance"), 3, frozenset({4}), int, "gain")


def write_run(path: PathLike, run: Mapping[str, Mapping[str, float]], tag: str) -> None:
    """Write a TREC run, each query's documents by descending score, ties by descending id as in trec_eval.

    A query without documents has no lines.
    """
    lines = []
    for query, scores in run.items():
        ordered = sorted(scores.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)
        for rank, (doc, score) in enumerate(ordered, start=1):
            value = _writable_number(float(score), query, doc)
            lines.append(f"{_token(query)} Q0 {_token(doc)} {rank} {value} {_token(tag)}\n")
    if not lines:
        raise ParameterError(f"there is nothing to write to {display_path(path)}: no query has a document")
    write_text(path, "".join(lines))


def parse_trec(file: TextFile, layout: TrecLayout) -> dict[str, dict[str, Any]]:
    """The values by query and document; the first wrong line is an error."""
    table: dict[str, dict[str, Any]] = {}
    names: dict[bytes, str] = {}  # one string per id, however often it occurs
    for number, line in enumerate(file.lines, start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) not in layout.widths:
            raise _wrong_width(file, number, len(fields), layout)
        query, doc = (names.get(field) or names.setdefault(field, field.decode("utf-8")) for field in fields[0:3:2])
        value = _parse_value(file, number, fields[layout.value], layout)
        values = table.setdefault(query, {})
        if doc in values:
            pairs = (other.split()[0:3:2] for other in file.lines)
            first = next(at for at, pair in enumerate(pairs, start=1) if pair == fields[0:3:2])
            raise DuplicateError(
                f"{file.name} lines {first} and {number} both give document {doc} for query {query}",
                excerpt=file.excerpt(first, number),
                hint="keep one of them; were two files joined?",
            )
        values[doc] = value
    return table


def _parse_value(file: TextFile, line: int, field: bytes, layout: TrecLayout) -> int | float:
    try:
        value = layout.convert(field)
        # Python reads 1_000 as a number; a file that says so is more likely to be damaged.
        if isfinite(value) and b"_" not in field:
            return value
    except (ValueError, OverflowError):
        pass
    usual_hint = f"the fields of TREC {layout.kind} lines are {' '.join(layout.fields)}"
    text = field.decode("utf-8")
    return _value(text, layout, lambda error, fact, hint: file.error(error, line, fact, hint=hint or usual_hint))


def _wrong_width(file: TextFile, line: int, count: int, layout: TrecLayout) -> Exception:
    needed = len(layout.fields)
    subject = "TREC qrels need" if layout is QRELS else "a TREC run needs"
    fact = f"has {count} field{'s' if count != 1 else ''}; {subject} {needed} ({' '.join(layout.fields)})"
    if layout is RUN and count == 5:
        hint = "the last field is the run tag; --run-tag NAME accepts untagged lines"
    elif layout is not QRELS and count == 4:
        hint = "4 fields make qrels; were the run and the qrels swapped?"
    elif layout is QRELS and count == 6:
        hint = "6 fields make a run; were the run and the qrels swapped?"
    elif layout is QRELS and count == 3:
        hint = "3 fields need the header query-id, corpus-id, score, all separated by tabs"
    elif count > needed:
        hint = "ids may not hold spaces"
    else:
        hint = "was the line truncated?"
    return file.error(FormatError, line, fact, hint=hint)


def _token(name: str) -> str:
    """An id that a TREC file can hold: not empty, without white space, NUL or byte order mark."""
    encoded = name.encode("utf-8", "surrogatepass")
    if encoded.split() != [encoded]:
        raise ParameterError(
            f"the id {name!r} cannot be written to a TREC file: ids contain no white space and are not empty",
            hint="write JSONL instead, or rename it",
        )
    if "\0" in name or "\ufeff" in name:
        raise ParameterError(f"the id {name!r} holds an invisible character", hint="rename it")
    return name


def _writable_number(value: float, query: str, doc: str) -> str:
    try:
        return repr(parse_number(value))
    except ValueError as error:
        raise NotFiniteError(f"document {doc} of query {query} has the score {value!r}") from error


# Runs and qrels in any supported format.

QUERY_COLUMNS = ("query_id", "qid", "query", "topic", "unit")
TREC_SUFFIXES = frozenset({".trec", ".run", ".qrels"})

_ID_RULE = "ids are strings or integers, and not empty"
_RaiseError = Callable[[type[InputError], str, str], InputError]


def read_run(path: PathLike, *, tag: str | None = None) -> Run:
    """The scores of a run by query and document; the format follows from file extension and first line.

    TREC (``query Q0 doc rank score tag``); JSON ``{"q1": {"d1": 0.5}}`` or a list of rows; JSONL, CSV,
    TSV and parquet with columns for query, doc and score (``query_id``, ``corpus-id`` and other usual
    names are understood). With a ``tag``, TREC lines may lack theirs.
    """
    return _read(path, RUN if tag is None else UNTAGGED_RUN)


def trec_blocks(path: PathLike, *, qrels: bool = False) -> Iterator[bytes]:
    """The lines of a TREC run or of TREC qrels, some at a time, so that a file of any size takes little memory.

    Raises ``NotStreamableError`` where the file has another format; ``read_run`` or ``read_qrels`` then reads it, or
    reports the error.
    """
    blocks = line_blocks(path)
    start = next(blocks, b"")
    if (
        table_format(path) not in (None, "tsv")
        or _guess_format(TextFile("", start), QRELS if qrels else RUN)[0] != "trec"
    ):
        raise NotStreamableError(f"{path} is not a TREC file")
    yield start
    yield from blocks


def read_qrels(path: PathLike) -> Qrels:
    """Relevance by query and document; formats as for ``read_run``, and BEIR's TSV.

    Judgements written as integers remain ints.
    """
    return _read(path, QRELS)


def _read(path: PathLike, layout: TrecLayout) -> dict[str, dict[str, Any]]:
    form = table_format(path)
    if form == "parquet":
        return _from_rows(read_parquet(path), layout)
    file = open_text(path)
    why = "by its file extension"
    if form is None or form == "tsv":
        form, why = _guess_format(file, layout)
    expected = form == "trec" and Path(path).suffix.casefold() in TREC_SUFFIXES
    with _naming_format("" if expected else f"read as {'TREC' if form == 'trec' else form.upper()} {why}"):
        if form == "trec":
            return parse_trec(file, layout)
        if form == "json":
            return _from_json(file, layout)
        return _from_rows(parse_table(file, form), layout)


def _guess_format(file: TextFile, layout: TrecLayout) -> tuple[str, str]:
    """The format guessed from the first line, and the reason."""
    first = file.first_line
    if first.startswith("{") and first.endswith("}") and len(file.data.strip()) > len(first.encode("utf-8")):
        return "jsonl", "because line 1 is a complete object"
    if first.startswith(("{", "[")):
        return "json", f"because it opens with {first[0]}"
    for form, delimiter in DELIMITERS.items():
        header = [name.strip().strip('"') for name in first.split(delimiter)]
        if len(header) > 2 and all(find_column(header, role) is not None for role in layout.roles.values()):
            return form, "because line 1 is a header"
    return "trec", "because line 1 is neither a header nor JSON"


@contextmanager
def _naming_format(assumed: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        if assumed:
            error.hint = f"{error.hint}; it was {assumed}" if error.hint else f"it was {assumed}"
        raise


def _from_json(file: TextFile, layout: TrecLayout) -> dict[str, dict[str, Any]]:
    from equipoise.io.json import parse_json

    value = parse_json(file)
    if isinstance(value, list):
        return _from_rows(table_of_json(file, value), layout)
    shape = f'a JSON {layout.kind} is {{"q1": {{"d1": 1}}}}, or a list of rows'
    if not isinstance(value, dict) or not value:
        raise FormatError(f"{file.name} holds no queries", hint=shape)
    if "task_name" in value and "scores" in value:
        raise FormatError(
            f"{file.name} has the scores of a task of mteb, without its queries",
            hint="eq leaderboard FOLDER reads these files; mteb.evaluate(prediction_folder=...) writes runs",
        )
    if _MTEB_META in value:
        value = _mteb_predictions(file, value)
    table: dict[str, dict[str, Any]] = {}
    for query, values in value.items():
        if not isinstance(values, dict):
            raise FormatError(f"{file.name} has no object of documents for query {query!r}", hint=shape)
        for name in (query, *values):
            if not _is_id(name):
                raise FormatError(f"{file.name} has the id {name!r} in query {query!r}", hint=_ID_RULE)
        table[query] = {doc: _value(value, layout, _at(file, query, doc)) for doc, value in values.items()}
    return table


_MTEB_META = "mteb_model_meta"
_MTEB_SPLITS = ("test", "validation", "dev", "train")


def _mteb_predictions(file: TextFile, value: dict[str, Any]) -> dict[str, Any]:
    """The lists in a prediction file of mteb, ``{subset: {split: {query: {document: score}}}}``.

    The split is test, or the only one. Several subsets are an error, because they have other documents.
    """
    subsets = {name: splits for name, splits in value.items() if name != _MTEB_META}
    if len(subsets) != 1:
        raise FormatError(
            f"{file.name} has the predictions of {len(subsets)} subsets: {', '.join(list(subsets)[:5])}",
            hint="write one file per subset, and score each with its own judgements",
        )
    splits = next(iter(subsets.values()))
    split = (
        next((name for name in (*_MTEB_SPLITS, *splits) if name in splits), None) if isinstance(splits, dict) else None
    )
    lists = None if split is None else splits[split]
    if not isinstance(lists, dict) or not lists:
        raise FormatError(
            f"{file.name} has predictions of another task than retrieval",
            hint="only ranked lists of documents can be scored here",
        )
    return lists


def _at(file: TextFile, query: str, doc: str) -> _RaiseError:
    """The errors for an entry of a JSON run, by ids: the parser keeps no line numbers."""

    def complaint(error: type[InputError], fact: str, hint: str) -> InputError:
        return error(f"{file.name} query {query!r} document {doc!r} {fact}", hint=hint)

    return complaint


def _from_rows(rows: Table, layout: TrecLayout) -> dict[str, dict[str, Any]]:
    query_at, doc_at, value_at = (_require_column(rows, name, layout) for name in layout.roles)
    table: dict[str, dict[str, Any]] = {}
    index_of: dict[tuple[str, str], int] = {}
    shared: dict[str, str] = {}
    for index, row in enumerate(rows.rows):
        for column in (query_at, doc_at, value_at):
            if column not in row:
                raise rows.missing(index, column)
        query, doc = (_id(row[column], rows, index, column) for column in (query_at, doc_at))
        query, doc = shared.setdefault(query, query), shared.setdefault(doc, doc)
        first = index_of.setdefault((query, doc), index)
        if first != index:
            raise rows.error(
                DuplicateError,
                [first, index],
                f"both give document {doc} for query {query}",
                hint="keep one of them; were two files joined?",
            )
        table.setdefault(query, {})[doc] = _value(row[value_at], layout, _row_error(rows, index))
    return table


def _row_error(rows: Table, index: int) -> _RaiseError:
    return lambda error, fact, hint: rows.error(error, [index], fact, hint=hint)


def _require_column(rows: Table, name: str, layout: TrecLayout) -> str:
    header, role = [str(column) for column in rows.rows[0]], layout.roles[name]
    column = find_column(header, role)
    if column is None:
        near = did_you_mean(name, header) or f"there are: {', '.join(header)}"
        raise FormatError(
            f"{rows.name} has no column for the {name}; {layout.kind} rows need {', '.join(layout.roles)}",
            hint=f"{near} (understood: {', '.join(column_names()[role])})",
        )
    return column


def _id(value: Any, rows: Table, index: int, column: str) -> str:
    name = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    name = name.strip() if isinstance(name, str) else name
    if not _is_id(name):
        raise rows.error(FormatError, [index], f"has the {column} {value!r}", hint=_ID_RULE)
    return str(name)


def _is_id(value: object) -> bool:
    """Whether a value can be an id; NUL is rejected because numpy string arrays drop it."""
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _value(value: Any, layout: TrecLayout, complaint: _RaiseError) -> int | float:
    try:
        number = parse_number(value)
        return number if layout is QRELS else float(number)
    except NumberRangeError as error:
        fact = f"has the {layout.value_name} {value!r}; it must be finite"
        raise complaint(NotFiniteError, fact, "leave out what could not be scored") from error
    except ValueError as error:
        fact = f"has the {layout.value_name} {value!r}, which is not a number"
        raise complaint(FormatError, fact, "") from error
