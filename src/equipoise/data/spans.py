"""Documents with marked spans: JSONL with ``id``, ``text`` and ``spans`` of character offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from equipoise.data.tables import Table, parse_table
from equipoise.data.text import PathLike, open_text
from equipoise.errors import DuplicateError, FormatError


@dataclass(frozen=True, slots=True)
class Span:
    """Characters ``start`` to ``end`` (exclusive) of a text, and what they were marked as."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class Document:
    """A text and its spans."""

    id: str
    text: str
    spans: tuple[Span, ...]

    def surface(self, span: Span) -> str:
        """The words that a span marks."""
        return self.text[span.start : span.end]


def read_spans(path: PathLike) -> list[Document]:
    """Documents from JSONL: ``{"id": "d1", "text": "...", "spans": [{"start": 0, "end": 5, "label": "x"}]}``.

    Offsets count characters from 0, the end is exclusive and lies within the text. A span that also
    carries its ``text`` must agree with its offsets.
    """
    table = parse_table(open_text(path), "jsonl").require("id", "text", "spans")
    documents: list[Document] = []
    index_of: dict[str, int] = {}
    for index, row in enumerate(table.rows):
        name, text, spans = row["id"], row["text"], row["spans"]
        if not isinstance(name, str) or not name or not isinstance(text, str) or not isinstance(spans, list):
            raise table.error(FormatError, [index], "needs a string id, a string text and a list of spans")
        first = index_of.setdefault(name, index)
        if first != index:
            raise table.error(DuplicateError, [first, index], f"both have the id {name}", hint="rename one")
        documents.append(Document(name, text, tuple(_span(table, index, text, each) for each in spans)))
    return documents


def _span(table: Table, index: int, text: str, value: Any) -> Span:
    if not isinstance(value, dict):
        raise table.error(FormatError, [index], "has a span that is no object")
    start, end, label = value.get("start"), value.get("end"), value.get("label", "")
    if type(start) is not int or type(end) is not int or not isinstance(label, str):
        raise table.error(
            FormatError, [index], "has a span without whole numbers start and end", hint="a label is a string"
        )
    if not 0 <= start < end <= len(text):
        raise table.error(
            FormatError,
            [index],
            f"has a span from {start} to {end} in a text of {len(text)} characters",
            hint="offsets count characters from 0, and the end is exclusive",
        )
    surface = value.get("text", text[start:end])
    if surface != text[start:end]:
        bytes_fit = text.encode("utf-8")[start:end] == str(surface).encode("utf-8")
        raise table.error(
            FormatError,
            [index],
            f"has a span from {start} to {end} that reads {text[start:end]!r}, not {surface!r}",
            hint="the offsets fit the UTF-8 bytes; they must count characters" if bytes_fit else "",
        )
    return Span(start, end, label)
