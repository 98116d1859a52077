"""Documents cut into chunks, stage by stage, with exact offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from equipoise.embed.model import Embedder
from equipoise.tasks.extract.cut.base import Cutter, Source
from equipoise.tasks.extract.cut.named import cutters
from equipoise.tasks.extract.document import Document, documents_of

DEFAULT_CHUNKERS: tuple[str, ...] = ("paragraph", "sentence", "punctuation", "conjunction", "cue")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document, which stands at place ``document``: ``text`` is its characters start to end."""

    document: int
    start: int
    end: int
    text: str


def chunked(
    documents: Iterable[Document] | Mapping[str, str],
    chunkers: Sequence[str | Cutter] = DEFAULT_CHUNKERS,
    *,
    embedder: Embedder | None = None,
) -> tuple[Chunk, ...]:
    """The chunks of all documents, in order: each chunker cuts the pieces of the one before it.

    ``semantic`` embeds with ``embedder``. White space and marks at the ends belong to no chunk.

    >>> chunks = chunked({"a": "No fever, but cough. Tall."}, ["sentence", "punctuation", "conjunction"])
    >>> [(chunk.start, chunk.text) for chunk in chunks]
    [(0, 'No fever'), (14, 'cough'), (21, 'Tall')]
    """
    listed = documents_of(documents)
    pieces = [(place, 0, len(document.text)) for place, document in enumerate(listed)]
    for stage in cutters(chunkers, embedder):
        cut = stage.cut(
            [Source(listed[place].text[start:end], listed[place].spoken) for place, start, end in pieces]
        )
        pieces = [
            (place, start + first, start + last)
            for (place, start, _), spans in zip(pieces, cut, strict=True)
            for first, last in spans
        ]
    return tuple(Chunk(place, start, end, listed[place].text[start:end]) for place, start, end in pieces)
