"""One way to cut the documents: the chunks of all of them, and where each comes from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.data.documents import Document
from equipoise.embed.chunk.chunkers import Chunk, Chunker, chunker
from equipoise.embed.chunk.layout import Layout
from equipoise.embed.chunk.sections import markdown_sections
from equipoise.embed.chunk.tokenizer import Tokenizer, tokenizer_for
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

    ``keep_space`` leaves the white space at the ends of fixed chunks, as the source does: some models
    tell "rye" from " rye", so that its figures are met only with it.
    """

    def __init__(
        self, documents: Sequence[Document], tokenizer: Any = None, *, keep_space: bool = False
    ) -> None:
        self.documents = documents
        self.tokenizer = _Remembering(tokenizer_for(tokenizer))
        self._layouts = (
            [Layout(document.text, self.tokenizer) for document in documents] if keep_space else []
        )

    def cut(self, chunking: Chunking) -> Cut:
        """Every document cut in the same way; no chunk spans two of them."""
        texts = [document.text for document in self.documents]
        if self._layouts and chunking.chunker == "fixed":
            laid_out = zip(texts, self._layouts, strict=True)
            parts = [_windows(text, layout, chunking) for text, layout in laid_out]
        else:
            made = chunking.made(self.tokenizer)
            parts = [made.chunk(text) for text in texts]
        chunks = tuple(chunk for part in parts for chunk in part)
        return Cut(chunking, chunks, tuple(place for place, part in enumerate(parts) for _ in part))


def _windows(text: str, layout: Layout, chunking: Chunking) -> list[Chunk]:
    """Windows of tokens as they stand."""
    return [
        Chunk(text[start:end], start, end, layout.tokens(start, end, limit=end))
        for start, end in layout.spans(0, len(text), chunking.chunk_size, chunking.overlap)
    ]


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
