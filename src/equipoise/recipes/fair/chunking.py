"""One way to cut the documents: the chunks of all of them, and where each comes from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.data.documents import Document
from equipoise.embed.chunk.chunkers import Chunk, Chunker, chunker
from equipoise.embed.chunk.sections import markdown_sections
from equipoise.embed.chunk.token_windows import TokenWindows
from equipoise.embed.chunk.tokenizer import Tokenizer, tokenizer_for
from equipoise.embed.chunk.tokens import Cl100k
from equipoise.types import Ints


@dataclass(frozen=True, slots=True)
class Chunking:
    """A chunker and its sizes; sentences are cut without overlap."""

    chunker: str
    chunk_size: int
    overlap: int

    def made(self, tokenizer: Any = None) -> Chunker:
        """The chunker itself."""
        sizes: dict[str, object] = {"chunk_size": self.chunk_size, "overlap": self.overlap}
        if self.chunker == "sentence":
            sizes = {"max_tokens": self.chunk_size}
        return chunker(self.chunker, tokenizer=tokenizer, **sizes)


@dataclass(frozen=True)
class Cut:
    """The documents in chunks, one after the other; ``document`` says for each chunk which one it is of."""

    chunking: Chunking
    chunks: tuple[Chunk, ...]
    document: tuple[int, ...]

    @property
    def texts(self) -> list[str]:
        """What is embedded."""
        return [chunk.text for chunk in self.chunks]


class Cutter:
    """Cuts documents in many ways, and tokenises each of them once.

    ``as_source`` cuts fixed chunks as the source does, where tokens are its own: a border may fall inside a
    character, and white space at the ends stays, since some models tell "rye" from " rye".
    """

    def __init__(
        self, documents: Sequence[Document], tokenizer: Any = None, *, as_source: bool = False
    ) -> None:
        own = tokenizer_for(tokenizer)
        self.documents = documents
        self.tokenizer = _Remembering(own)
        self._windows: list[TokenWindows] = []
        if as_source and isinstance(own, Cl100k):
            self._windows = [TokenWindows(document.text, own) for document in documents]

    def cut(self, chunking: Chunking) -> Cut:
        """Every document cut in the same way; no chunk spans two of them."""
        if self._windows and chunking.chunker == "fixed":
            parts = [each.chunks(chunking.chunk_size, chunking.overlap) for each in self._windows]
        else:
            made = chunking.made(self.tokenizer)
            parts = [made.chunk(document.text) for document in self.documents]
        chunks = tuple(chunk for part in parts for chunk in part)
        return Cut(chunking, chunks, tuple(place for place, part in enumerate(parts) for _ in part))


class _Remembering(Tokenizer):
    """A tokenizer that tokenises each document once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.name = tokenizer.name
        self._tokenizer = tokenizer
        self._known: dict[str, Ints] = {}

    def offsets(self, text: str) -> Ints:
        """The tokens, from memory where the text was seen before."""
        if text not in self._known:
            self._known[text] = self._tokenizer.offsets(text)
        return self._known[text]

    def count(self, text: str) -> int:
        """The number of tokens of a text."""
        return self._tokenizer.count(text)

    def _tokens(self, text: str) -> Ints:
        return self._tokenizer._tokens(text)


def places(found: Cut, documents: Sequence[Document]) -> list[str]:
    """Where each chunk stands, for people: the file where there are several, and the headings above it."""
    sections = [markdown_sections(document.text) for document in documents]
    starts = [[section.start for section in each] for each in sections]
    where = []
    for chunk, place in zip(found.chunks, found.document, strict=True):
        title = sections[place][bisect_right(starts[place], chunk.start) - 1].title
        name = documents[place].name if len(documents) > 1 else ""
        where.append(": ".join(filter(None, (name, chunk.section or title))))
    return where
