"""TREC runs (query Q0 doc rank score tag) and qrels (query iteration doc relevance)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from math import isfinite
from typing import Any

from equipoise.data.atomic import write_text
from equipoise.data.blocks import NotStreamableError
from equipoise.data.number import NotANumber, NotFinite, number
from equipoise.data.text import PathLike, TextFile, open_text, shown
from equipoise.errors import DuplicateError, FormatError, NotFiniteError, ParameterError

Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int | float]]

PIECE_BYTES = 8192
"""Read so much at a time: few enough lists live at once that the garbage collector never starts."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the columns of a TREC file are; ``value`` is the place of the score or relevance."""

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
RUN = Layout("run", _RUN_FIELDS, 4, frozenset({6}), float)
UNTAGGED_RUN = Layout("run", _RUN_FIELDS, 4, frozenset({5, 6}), float)
QRELS = Layout("qrels", ("query", "iteration", "doc", "relevance"), 3, frozenset({4}), int)


def read_run(path: PathLike, *, tag: str | None = None) -> Run:
    """The scores of a TREC run, by query and document.

    Fields are separated by spaces or tabs, blank lines are skipped, and the rank column is ignored:
    scores decide. With a ``tag``, lines that lack the last field are accepted.
    """
    return parse_run(open_text(path), tag=tag)


def read_qrels(path: PathLike) -> Qrels:
    """The relevance judgements of a TREC qrels file, by query and document."""
    return parse_qrels(open_text(path))


def parse_run(file: TextFile, *, tag: str | None = None) -> Run:
    """``read_run`` on a file that is already open."""
    layout = RUN if tag is None else UNTAGGED_RUN
    return _fast(file, layout) or _careful(file, layout)


def parse_qrels(file: TextFile) -> Qrels:
    """``read_qrels`` on a file that is already open."""
    return _fast(file, QRELS) or _careful(file, QRELS)


def stream_run(blocks: Iterable[bytes], *, tag: str | None = None) -> Iterator[tuple[str, dict[str, float]]]:
    """The lists of a TREC run, one after another, from blocks of whole lines: only one is in memory.

    A query whose lines are not contiguous comes more than once. Whatever ``parse_run`` would refuse, and a
    document that a list has twice, raises ``NotStreamableError``, at the latest at the end.
    """
    layout = RUN if tag is None else UNTAGGED_RUN
    current, scores, rows, distinct = None, dict[str, float](), 0, 0
    for queries, docs, values in _columns(blocks, layout):
        # Ids hold no blank, so all of a piece are decoded at once.
        names = b" ".join(docs).decode("utf-8").split(" ")
        start = 0
        for query, group in groupby(queries):
            stop = start + sum(1 for _ in group)
            if query != current:
                if current is not None:
                    distinct += len(scores)
                    yield current.decode("utf-8"), scores
                current, scores = query, {}
            scores.update(zip(names[start:stop], values[start:stop], strict=True))
            start = stop
        rows += start
    if current is None or distinct + len(scores) != rows:
        raise NotStreamableError("there is no line, or a list has a document twice")
    yield current.decode("utf-8"), scores


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
        raise ParameterError(f"there is nothing to write to {shown(path)}: no query has a document")
    write_text(path, "".join(lines))


class _Names(dict[bytes, str]):
    """One string for each id, however often it stands in the file."""

    def __missing__(self, key: bytes) -> str:
        name = self[key] = key.decode("utf-8")
        return name


def _fast(file: TextFile, layout: Layout) -> dict[str, dict[str, Any]] | None:
    """The table by columns, or None as soon as anything is unusual: then ``_careful`` decides."""
    table: dict[str, dict[str, Any]] = {}
    names = _Names()
    current, values_of, count = None, {}, 0
    try:
        for queries, docs, values in _columns([file.data], layout):
            count += len(values)
            for query, doc, value in zip(queries, map(names.__getitem__, docs), values, strict=True):
                if query != current:
                    current = query
                    values_of = table.setdefault(query.decode("utf-8"), {})
                values_of[doc] = value
    except NotStreamableError:
        return None
    return table if sum(map(len, table.values())) == count else None


def _columns(
    blocks: Iterable[bytes], layout: Layout
) -> Iterator[tuple[tuple[bytes, ...], tuple[bytes, ...], list[float]]]:
    """Queries, documents and values of a few lines at a time, as long as nothing is unusual."""
    for block in blocks:
        for piece in _pieces(block):
            rows = list(filter(None, map(bytes.split, piece.splitlines())))
            if not rows:
                continue
            if not layout.widths.issuperset(map(len, rows)):
                raise NotStreamableError("a line has another number of fields")
            columns = list(zip(*rows, strict=False))
            values = _values(columns[layout.value], layout)
            if values is None:
                raise NotStreamableError("a value is no number")
            yield columns[0], columns[2], values


def _pieces(data: bytes) -> Iterator[bytes]:
    """The data cut after line ends, about ``PIECE_BYTES`` each."""
    start = 0
    while start < len(data):
        stop = data.find(b"\n", start + PIECE_BYTES) + 1 or len(data)
        yield data[start:stop]
        start = stop


def _values(column: tuple[bytes, ...], layout: Layout) -> list[float] | None:
    try:
        values = list(map(layout.convert, column))
        clean = all(map(isfinite, values))
    except (ValueError, OverflowError):
        return None
    # Python reads 1_000 as a number; a file that says so is more likely to be damaged.
    return values if clean and b"_" not in b"".join(column) else None


def _careful(file: TextFile, layout: Layout) -> dict[str, dict[str, Any]]:
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


def _checked_value(file: TextFile, line: int, field: str, layout: Layout) -> int | float:
    try:
        value = number(field)
    except NotANumber as error:
        raise file.error(
            FormatError,
            line,
            f"has the {layout.value_name} {field!r}, which is no number",
            hint=f"the fields of TREC {layout.kind} lines are {' '.join(layout.fields)}",
        ) from error
    except NotFinite as error:
        raise file.error(
            NotFiniteError,
            line,
            f"has the {layout.value_name} {field}; it must be finite",
            hint="leave out what could not be scored",
        ) from error
    return float(value) if layout.convert is float else value


def _wrong_width(file: TextFile, line: int, count: int, layout: Layout) -> Exception:
    needed = len(layout.fields)
    subject = "TREC qrels need" if layout is QRELS else "a TREC run needs"
    fact = f"has {count} field{'s' if count != 1 else ''}; {subject} {needed} ({' '.join(layout.fields)})"
    if layout is RUN and count == 5:
        hint = "the last field is the run tag; --run-tag NAME accepts untagged lines"
    elif layout is not QRELS and count == 4:
        hint = "4 fields make qrels; were the run and the qrels swapped?"
    elif layout is QRELS and count == 6:
        hint = "6 fields make a run; were the run and the qrels swapped?"
    elif count > needed:
        hint = "ids may not hold spaces"
    else:
        hint = "was the line cut off?"
    return file.error(FormatError, line, fact, hint=hint)


def _token(name: str) -> str:
    """An id that a TREC file can hold: not empty, without white space, NUL or byte order mark."""
    encoded = name.encode("utf-8", "surrogatepass")
    if encoded.split() != [encoded]:
        raise ParameterError(
            f"the id {name!r} cannot stand in a TREC file: ids there hold no white space and are not empty",
            hint="write JSONL instead, or rename it",
        )
    if "\0" in name or "\ufeff" in name:
        raise ParameterError(f"the id {name!r} holds an invisible character", hint="rename it")
    return name


def _writable_number(value: float, query: str, doc: str) -> str:
    try:
        return repr(number(value))
    except ValueError as error:
        raise NotFiniteError(f"document {doc} of query {query} has the score {value!r}") from error
