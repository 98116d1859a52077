"""Runs and qrels in whatever form they come: TREC, JSON, JSONL, CSV, TSV (also BEIR's), parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from equipoise.data import trec
from equipoise.data.blocks import NotStreamableError, line_blocks
from equipoise.data.jsontext import parse_json
from equipoise.data.number import NotANumber, NotFinite, number
from equipoise.data.tables import DELIMITERS, Table, format_of, parse_table, read_parquet, table_of_json
from equipoise.data.text import PathLike, TextFile, open_text
from equipoise.data.trec import Qrels, Run
from equipoise.errors import DuplicateError, FormatError, InputError, NotFiniteError, did_you_mean

# Ids come before plain names: a column "query" beside a "query_id" holds the text of the query.
QUERY_COLUMNS = ("query_id", "qid", "query", "topic", "unit")
DOC_COLUMNS = ("doc_id", "document_id", "corpus_id", "item_id", "docno", "pid", "doc", "document", "item")
SCORE_COLUMNS = ("score", "similarity", "sim", "relevance", "rel", "label")
GAIN_COLUMNS = ("relevance", "rel", "label", "gain", "grade", "score")
TREC_SUFFIXES = frozenset({".trec", ".run", ".qrels"})

_ID_RULE = "ids are strings or whole numbers, and not empty"
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
    """The scores of a run by query and document; the format follows from suffix and first line.

    TREC (``query Q0 doc rank score tag``); JSON ``{"q1": {"d1": 0.5}}`` or a list of rows; JSONL, CSV,
    TSV and parquet with columns for query, doc and score (``query_id``, ``corpus-id`` and other usual
    names are understood). With a ``tag``, TREC lines may lack theirs.
    """
    return _read(path, _run_kind(tag))


def stream_run(path: PathLike, *, tag: str | None = None) -> Iterator[tuple[str, dict[str, float]]]:
    """The lists of a TREC run file one after another, so that a file of any size takes little memory.

    A query whose lines are not contiguous comes more than once. Raises ``NotStreamableError`` where the file
    has another format or anything in it is unusual; ``read_run`` then reads it, or says what is wrong.
    """
    blocks = line_blocks(path)
    start = next(blocks, b"")
    if format_of(path) not in (None, "tsv") or _guessed(TextFile("", start), _run_kind(tag))[0] != "trec":
        raise NotStreamableError(f"{path} is no TREC run")
    return trec.stream_run(chain([start], blocks), tag=tag)


def _run_kind(tag: str | None) -> _Kind:
    return _Kind(
        "run",
        "score",
        {"query": QUERY_COLUMNS, "doc": DOC_COLUMNS, "score": SCORE_COLUMNS},
        lambda file: trec.parse_run(file, tag=tag),
        float,
    )


def read_qrels(path: PathLike) -> Qrels:
    """Relevance by query and document; formats as for ``read_run``, and BEIR's TSV.

    Judgements written as whole numbers stay ints.
    """
    kind = _Kind(
        "qrels",
        "relevance",
        {"query": QUERY_COLUMNS, "doc": DOC_COLUMNS, "relevance": GAIN_COLUMNS},
        trec.parse_qrels,
        lambda value: value,
    )
    return _read(path, kind)


def _read(path: PathLike, kind: _Kind) -> dict[str, dict[str, Any]]:
    form = format_of(path)
    if form == "parquet":
        return _from_rows(read_parquet(path), kind)
    file = open_text(path)
    why = "by its suffix"
    if form is None or form == "tsv":
        form, why = _guessed(file, kind)
    expected = form == "trec" and Path(path).suffix.casefold() in TREC_SUFFIXES
    with _naming_format("" if expected else f"read as {'TREC' if form == 'trec' else form.upper()} {why}"):
        if form == "trec":
            return kind.parse_trec(file)
        if form == "json":
            return _from_json(file, kind)
        return _from_rows(parse_table(file, form), kind)


def _guessed(file: TextFile, kind: _Kind) -> tuple[str, str]:
    """The format that the first line speaks for, and why."""
    first = file.first_line
    if first.startswith("{") and first.endswith("}") and len(file.data.strip()) > len(first.encode("utf-8")):
        return "jsonl", "because line 1 is an object of its own"
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
    value = parse_json(file)
    if isinstance(value, list):
        return _from_rows(table_of_json(file, value), kind)
    shape = f'a JSON {kind.noun} is {{"q1": {{"d1": 1}}}}, or a list of rows'
    if not isinstance(value, dict) or not value:
        raise FormatError(f"{file.name} holds no queries", hint=shape)
    table: dict[str, dict[str, Any]] = {}
    for query, values in value.items():
        if not isinstance(values, dict):
            raise FormatError(f"{file.name} has no object of documents for query {query!r}", hint=shape)
        for name in (query, *values):
            if not _is_id(name):
                raise FormatError(f"{file.name} has the id {name!r} in query {query!r}", hint=_ID_RULE)
        table[query] = {doc: _value(each, kind, _at(file, query, doc)) for doc, each in values.items()}
    return table


def _at(file: TextFile, query: str, doc: str) -> _Complaint:
    """Complaints about one entry of a JSON run; the parser keeps no lines."""

    def complaint(error: type[InputError], fact: str, hint: str) -> InputError:
        return error(f"{file.name} query {query!r} document {doc!r} {fact}", hint=hint)

    return complaint


def _from_rows(rows: Table, kind: _Kind) -> dict[str, dict[str, Any]]:
    query_at, doc_at, value_at = (_required(rows, role, names, kind) for role, names in kind.columns.items())
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
        table.setdefault(query, {})[doc] = _value(row[value_at], kind, _of(rows, index))
    return table


def _of(rows: Table, index: int) -> _Complaint:
    return lambda error, fact, hint: rows.error(error, [index], fact, hint=hint)


def _required(rows: Table, role: str, names: tuple[str, ...], kind: _Kind) -> str:
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
    folded = {_folded(name): name for name in reversed(header)}
    return next((folded[_folded(name)] for name in names if _folded(name) in folded), None)


def _folded(name: str) -> str:
    return "".join(each for each in name.casefold() if each not in "-_ ")


def _id(value: Any, rows: Table, index: int, column: str) -> str:
    name = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    name = name.strip() if isinstance(name, str) else name
    if not _is_id(name):
        raise rows.error(FormatError, [index], f"has the {column} {value!r}", hint=_ID_RULE)
    return str(name)


def _is_id(value: object) -> bool:
    """NUL is refused because arrays of strings drop it."""
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _value(value: Any, kind: _Kind, complaint: _Complaint) -> int | float:
    try:
        return kind.convert(number(value))
    except NotANumber as error:
        fact = f"has the {kind.value} {value!r}, which is no number"
        raise complaint(FormatError, fact, "") from error
    except NotFinite as error:
        fact = f"has the {kind.value} {value!r}; it must be finite"
        raise complaint(NotFiniteError, fact, "leave out what could not be scored") from error
