"""Readers and writers of runs and qrels: TREC, JSON, JSONL, CSV, TSV (also of BEIR) and parquet.

A TREC run line is ``query Q0 doc rank score tag``, a qrels line ``query iteration doc relevance``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from equipoise.errors import (
    DuplicateError,
    FormatError,
    InputError,
    NotFiniteError,
    ParameterError,
    did_you_mean,
)
from equipoise.io.atomic import write_text
from equipoise.io.tables import DELIMITERS, Table, parse_table, read_parquet, table_format, table_of_json
from equipoise.io.text import (
    NotStreamableError,
    NumberRangeError,
    NumberSyntaxError,
    PathLike,
    TextFile,
    display_path,
    line_blocks,
    open_text,
    parse_number,
)

Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int | float]]

CHUNK_BYTES = 8192
"""Read so much at a time: few enough lists live at once that the garbage collector never starts."""


@dataclass(frozen=True, slots=True)
class TrecLayout:
    """What the columns of a TREC file are; ``value`` is the column of the score or relevance."""

    kind: str
    fields: tuple[str, ...]
    value: int
    widths: frozenset[int]
    convert: Callable[[bytes], float]

    @property
    def value_name(self) -> str:
        """What the number is called."""
        return self.fields[self.value]


_RUN_FIELDS = ("query", "Q0", "doc", "rank", "score", "tag")
RUN = TrecLayout("run", _RUN_FIELDS, 4, frozenset({6}), float)
UNTAGGED_RUN = TrecLayout("run", _RUN_FIELDS, 4, frozenset({5, 6}), float)
QRELS = TrecLayout("qrels", ("query", "iteration", "doc", "relevance"), 3, frozenset({4}), int)


def read_trec_run(path: PathLike, *, tag: str | None = None) -> Run:
    """The scores of a TREC run, by query and document.

    Fields are separated by spaces or tabs, blank lines are skipped, and the rank column is ignored:
    scores decide. With a ``tag``, lines that lack the last field are accepted.
    """
    return parse_run(open_text(path), tag=tag)


def read_trec_qrels(path: PathLike) -> Qrels:
    """The relevance judgements of a TREC qrels file, by query and document."""
    return parse_qrels(open_text(path))


def parse_run(file: TextFile, *, tag: str | None = None) -> Run:
    """``read_trec_run`` on a file that is already open."""
    layout = RUN if tag is None else UNTAGGED_RUN
    return _parse_columns(file, layout) or _parse_line_by_line(file, layout)


def parse_qrels(file: TextFile) -> Qrels:
    """``read_trec_qrels`` on a file that is already open."""
    return _parse_columns(file, QRELS) or _parse_line_by_line(file, QRELS)


def write_run(path: PathLike, run: Mapping[str, Mapping[str, float]], tag: str) -> None:
    """Write a TREC run, each query's documents by falling score (equals by falling id, as trec_eval).

    A query without documents leaves no line.
    """
    lines = []
    for query, scores in run.items():
        ordered = sorted(scores.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)
        for rank, (doc, score) in enumerate(ordered, start=1):
            value = _writable_number(float(score), query, doc)
            lines.append(f"{_token(query)} Q0 {_token(doc)} {rank} {value} {_token(tag)}\n")
    _write(path, lines)


def write_qrels(path: PathLike, qrels: Mapping[str, Mapping[str, int | float]]) -> None:
    """Write TREC qrels in the order given; a query without judgements leaves no line."""
    lines = [
        f"{_token(query)} 0 {_token(doc)} {_writable_number(gain, query, doc)}\n"
        for query, gains in qrels.items()
        for doc, gain in gains.items()
    ]
    _write(path, lines)


def _write(path: PathLike, lines: list[str]) -> None:
    if not lines:
        raise ParameterError(f"there is nothing to write to {display_path(path)}: no query has a document")
    write_text(path, "".join(lines))


class _Names(dict[bytes, str]):
    """One string object per id, however often it occurs in the file."""

    def __missing__(self, key: bytes) -> str:
        name = self[key] = key.decode("utf-8")
        return name


def _parse_columns(file: TextFile, layout: TrecLayout) -> dict[str, dict[str, Any]] | None:
    """The table by columns, or None as soon as anything is unusual: then ``_parse_line_by_line`` decides."""
    table: dict[str, dict[str, Any]] = {}
    names = _Names()
    current, values_of, count = None, {}, 0
    try:
        for queries, docs, values in _columns(file.data, layout):
            count += len(values)
            for query, doc, value in zip(queries, map(names.__getitem__, docs), values, strict=True):
                if query != current:
                    current = query
                    values_of = table.setdefault(query.decode("utf-8"), {})
                values_of[doc] = value
    except NotStreamableError:
        return None
    return table if sum(map(len, table.values())) == count else None


def _columns(data: bytes, layout: TrecLayout) -> Iterator[tuple[tuple[bytes, ...], tuple[bytes, ...], list[float]]]:
    """Queries, documents and values of a few lines at a time, as long as nothing is unusual."""
    for part in _pieces(data):
        rows = list(filter(None, map(bytes.split, part.splitlines())))
        if not rows:
            continue
        if not layout.widths.issuperset(map(len, rows)):
            raise NotStreamableError("a line has another number of fields")
        columns = list(zip(*rows, strict=False))
        values = _values(columns[layout.value], layout)
        if values is None:
            raise NotStreamableError("a value is not a number")
        yield columns[0], columns[2], values


def _pieces(data: bytes) -> Iterator[bytes]:
    """Split the data at line ends into blocks of about ``CHUNK_BYTES``."""
    start = 0
    while start < len(data):
        stop = data.find(b"\n", start + CHUNK_BYTES) + 1 or len(data)
        yield data[start:stop]
        start = stop


def _values(column: tuple[bytes, ...], layout: TrecLayout) -> list[float] | None:
    try:
        values = list(map(layout.convert, column))
        clean = all(map(isfinite, values))
    except (ValueError, OverflowError):
        return None
    # Python reads 1_000 as a number; a file that says so is more likely to be damaged.
    return values if clean and b"_" not in b"".join(column) else None


def _parse_line_by_line(file: TextFile, layout: TrecLayout) -> dict[str, dict[str, Any]]:
    """The table line by line, stopping at the first line that is wrong, with all that is known of it."""
    table: dict[str, dict[str, Any]] = {}
    line_of: dict[tuple[str, str], int] = {}
    for line, content in enumerate(file.lines, start=1):
        fields = [field.decode("utf-8") for field in content.split()]
        if not fields:
            continue
        if len(fields) not in layout.widths:
            raise _wrong_width(file, line, len(fields), layout)
        query, doc = fields[0], fields[2]
        value = _checked_value(file, line, fields[layout.value], layout)
        first = line_of.setdefault((query, doc), line)
        if first != line:
            raise DuplicateError(
                f"{file.name} lines {first} and {line} both give document {doc} for query {query}",
                excerpt=file.excerpt(first, line),
                hint="keep one of them; were two files joined?",
            )
        table.setdefault(query, {})[doc] = value
    return table


def _checked_value(file: TextFile, line: int, field: str, layout: TrecLayout) -> int | float:
    try:
        value = parse_number(field)
    except NumberSyntaxError as error:
        raise file.error(
            FormatError,
            line,
            f"has the {layout.value_name} {field!r}, which is not a number",
            hint=f"the fields of TREC {layout.kind} lines are {' '.join(layout.fields)}",
        ) from error
    except NumberRangeError as error:
        raise file.error(
            NotFiniteError,
            line,
            f"has the {layout.value_name} {field}; it must be finite",
            hint="leave out what could not be scored",
        ) from error
    return float(value) if layout.convert is float else value


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

# Id columns first: in a table with "query_id" and "query", the column "query" is the text of the query.
QUERY_COLUMNS = ("query_id", "qid", "query", "topic", "unit")
DOC_COLUMNS = ("doc_id", "document_id", "corpus_id", "item_id", "docno", "pid", "doc", "document", "item")
SCORE_COLUMNS = ("score", "similarity", "sim", "relevance", "rel", "label")
GAIN_COLUMNS = ("relevance", "rel", "label", "gain", "grade", "score")
TREC_SUFFIXES = frozenset({".trec", ".run", ".qrels"})

_ID_RULE = "ids are strings or integers, and not empty"
_Complaint = Callable[[type[InputError], str, str], InputError]


@dataclass(frozen=True, slots=True)
class _Kind:
    """What differs between a run and qrels."""

    noun: str
    value: str
    columns: dict[str, tuple[str, ...]]
    parse_trec: Callable[[TextFile], dict[str, dict[str, Any]]]
    convert: Callable[[int | float], int | float]


def read_run(path: PathLike, *, tag: str | None = None) -> Run:
    """The scores of a run by query and document; the format follows from file extension and first line.

    TREC (``query Q0 doc rank score tag``); JSON ``{"q1": {"d1": 0.5}}`` or a list of rows; JSONL, CSV,
    TSV and parquet with columns for query, doc and score (``query_id``, ``corpus-id`` and other usual
    names are understood). With a ``tag``, TREC lines may lack theirs.
    """
    return _read(path, _run_kind(tag))


def trec_blocks(path: PathLike, *, qrels: bool = False) -> Iterator[bytes]:
    """The lines of a TREC run or of TREC qrels, some at a time, so that a file of any size takes little memory.

    Raises ``NotStreamableError`` if the file has another format; ``read_run`` or ``read_qrels`` then reads it, or
    reports the error.
    """
    blocks = line_blocks(path)
    start = next(blocks, b"")
    kind = _QRELS_KIND if qrels else _run_kind(None)
    if table_format(path) not in (None, "tsv") or _guess_format(TextFile("", start), kind)[0] != "trec":
        raise NotStreamableError(f"{path} is not a TREC file")
    yield start
    yield from blocks


def _run_kind(tag: str | None) -> _Kind:
    return _Kind(
        "run",
        "score",
        {"query": QUERY_COLUMNS, "doc": DOC_COLUMNS, "score": SCORE_COLUMNS},
        lambda file: parse_run(file, tag=tag),
        float,
    )


def read_qrels(path: PathLike) -> Qrels:
    """Relevance by query and document; formats as for ``read_run``, and BEIR's TSV.

    Judgements written as integers remain ints.
    """
    return _read(path, _QRELS_KIND)


_QRELS_KIND = _Kind(
    "qrels",
    "relevance",
    {"query": QUERY_COLUMNS, "doc": DOC_COLUMNS, "relevance": GAIN_COLUMNS},
    parse_qrels,
    lambda value: value,
)


def _read(path: PathLike, kind: _Kind) -> dict[str, dict[str, Any]]:
    form = table_format(path)
    if form == "parquet":
        return _from_rows(read_parquet(path), kind)
    file = open_text(path)
    why = "by its file extension"
    if form is None or form == "tsv":
        form, why = _guess_format(file, kind)
    expected = form == "trec" and Path(path).suffix.casefold() in TREC_SUFFIXES
    with _naming_format("" if expected else f"read as {'TREC' if form == 'trec' else form.upper()} {why}"):
        if form == "trec":
            return kind.parse_trec(file)
        if form == "json":
            return _from_json(file, kind)
        return _from_rows(parse_table(file, form), kind)


def _guess_format(file: TextFile, kind: _Kind) -> tuple[str, str]:
    """The format guessed from the first line, and the reason."""
    first = file.first_line
    if first.startswith("{") and first.endswith("}") and len(file.data.strip()) > len(first.encode("utf-8")):
        return "jsonl", "because line 1 is a complete object"
    if first.startswith(("{", "[")):
        return "json", f"because it opens with {first[0]}"
    for form, delimiter in DELIMITERS.items():
        header = [name.strip().strip('"') for name in first.split(delimiter)]
        if all(_column(header, names) is not None for names in kind.columns.values()):
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


def _from_json(file: TextFile, kind: _Kind) -> dict[str, dict[str, Any]]:
    from equipoise.io.json import parse_json

    value = parse_json(file)
    if isinstance(value, list):
        return _from_rows(table_of_json(file, value), kind)
    shape = f'a JSON {kind.noun} is {{"q1": {{"d1": 1}}}}, or a list of rows'
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
        table[query] = {doc: _value(value, kind, _at(file, query, doc)) for doc, value in values.items()}
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


def _at(file: TextFile, query: str, doc: str) -> _Complaint:
    """Complaints about one entry of a JSON run; the parser keeps no lines."""

    def complaint(error: type[InputError], fact: str, hint: str) -> InputError:
        return error(f"{file.name} query {query!r} document {doc!r} {fact}", hint=hint)

    return complaint


def _from_rows(rows: Table, kind: _Kind) -> dict[str, dict[str, Any]]:
    query_at, doc_at, value_at = (_find_column(rows, role, names, kind) for role, names in kind.columns.items())
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
        table.setdefault(query, {})[doc] = _value(row[value_at], kind, _row_complaint(rows, index))
    return table


def _row_complaint(rows: Table, index: int) -> _Complaint:
    return lambda error, fact, hint: rows.error(error, [index], fact, hint=hint)


def _find_column(rows: Table, role: str, names: tuple[str, ...], kind: _Kind) -> str:
    header = [str(name) for name in rows.rows[0]]
    column = _column(header, names)
    if column is None:
        near = did_you_mean(role, header) or f"there are: {', '.join(header)}"
        raise FormatError(
            f"{rows.name} has no column for the {role}; {kind.noun} rows need {', '.join(kind.columns)}",
            hint=f"{near} (understood: {', '.join(names)})",
        )
    return column


def _column(header: list[str], names: tuple[str, ...]) -> str | None:
    """The column that bears one of these names, in the order of the names; ``Query-ID`` is ``query_id``."""
    folded = {_fold_name(name): name for name in reversed(header)}
    return next((folded[_fold_name(name)] for name in names if _fold_name(name) in folded), None)


def _fold_name(name: str) -> str:
    return "".join(character for character in name.casefold() if character not in "-_ ")


def _id(value: Any, rows: Table, index: int, column: str) -> str:
    name = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    name = name.strip() if isinstance(name, str) else name
    if not _is_id(name):
        raise rows.error(FormatError, [index], f"has the {column} {value!r}", hint=_ID_RULE)
    return str(name)


def _is_id(value: object) -> bool:
    """Whether a value can be an id; NUL is rejected because numpy string arrays drop it."""
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _value(value: Any, kind: _Kind, complaint: _Complaint) -> int | float:
    try:
        return kind.convert(parse_number(value))
    except NumberSyntaxError as error:
        fact = f"has the {kind.value} {value!r}, which is not a number"
        raise complaint(FormatError, fact, "") from error
    except NumberRangeError as error:
        fact = f"has the {kind.value} {value!r}; it must be finite"
        raise complaint(NotFiniteError, fact, "leave out what could not be scored") from error
