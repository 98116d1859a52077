"""One way to cut the documents: the chunks of all of them, and where each comes from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.fair.answer_evidence import AnswerLocations
from equipoise.domains.fair.answer_matching import AnswerIndex, AnswerMatcher, AnswerParts
from equipoise.domains.fair.chunking import EmbeddingEvalWindows
from equipoise.models.chunking import Chunk, Chunker, chunker, markdown_sections
from equipoise.models.tokenizers import Cl100kTokenizer, Tokenizer, tokenizer_for

if TYPE_CHECKING:
    from equipoise.domains.fair.config import FairConfig
    from equipoise.domains.fair.dataset import QADataset
    from equipoise.io.documents import TextDocument
    from equipoise.types import Ints


@dataclass(frozen=True, slots=True)
class ChunkingParams:
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
class ChunkedDocuments:
    """The documents in chunks, one after the other; ``document`` says for each chunk which one it is of."""

    chunking: ChunkingParams
    chunks: tuple[Chunk, ...]
    document: tuple[int, ...]

    @property
    def texts(self) -> list[str]:
        """What is embedded."""
        return [chunk.text for chunk in self.chunks]


class DocumentChunker:
    """Cuts documents in many ways, and tokenises each of them once.

    ``as_source`` cuts fixed chunks as the source does, where tokens are its own: a border may fall inside a
    character, and white space at the ends stays, since some models tell "rye" from " rye".
    """

    def __init__(self, documents: Sequence[TextDocument], tokenizer: Any = None, *, as_source: bool = False) -> None:
        own = tokenizer_for(tokenizer)
        self.documents = documents
        self.tokenizer = _MemoisedTokenizer(own)
        self._windows: list[EmbeddingEvalWindows] = []
        if as_source and isinstance(own, Cl100kTokenizer):
            self._windows = [EmbeddingEvalWindows(document.text, own) for document in documents]

    def cut(self, chunking: ChunkingParams) -> ChunkedDocuments:
        """Every document cut in the same way; no chunk spans two of them."""
        if self._windows and chunking.chunker == "fixed":
            parts = [each.chunks(chunking.chunk_size, chunking.overlap) for each in self._windows]
        else:
            made = chunking.made(self.tokenizer)
            parts = [made.chunk(document.text) for document in self.documents]
        chunks = tuple(chunk for part in parts for chunk in part)
        return ChunkedDocuments(chunking, chunks, tuple(place for place, part in enumerate(parts) for _ in part))


class _MemoisedTokenizer(Tokenizer):
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


def chunk_locations(found: ChunkedDocuments, documents: Sequence[TextDocument]) -> list[str]:
    """Where each chunk stands, for people: the file where there are several, and the headings above it."""
    sections = [markdown_sections(document.text) for document in documents]
    starts = [[section.start for section in each] for each in sections]
    where = []
    for chunk, place in zip(found.chunks, found.document, strict=True):
        title = sections[place][bisect_right(starts[place], chunk.start) - 1].title
        name = documents[place].name if len(documents) > 1 else ""
        where.append(": ".join(filter(None, (name, chunk.section or title))))
    return where


# Every chunking of the documents, and which chunks hold which answers: worked out once for all models.


@dataclass(frozen=True)
class IndexedChunks:
    """The documents cut in one way, and which chunks hold which answers."""

    cut: ChunkedDocuments
    held: AnswerLocations


@dataclass(frozen=True)
class _IndexSlice(AnswerIndex):
    """The texts ``start`` to ``stop`` of a shelf, counted from 0."""

    whole: AnswerIndex
    start: int
    stop: int

    def holders(self, answer: str) -> Ints:
        """The positions of the texts that hold the answer."""
        return self.own(self.whole.holders(answer))

    def first_hit(self, answer: str, order: Sequence[int] | Ints) -> int | None:
        """How many texts, taken in this order, are needed."""
        return self.whole.first_hit(answer, np.asarray(order) + self.start)

    def parts(self, answer: str) -> AnswerParts | None:
        """What these texts may have of the answer together."""
        parts = self.whole.parts(answer)
        return None if parts is None else AnswerParts(parts.there[:, self.start : self.stop], parts.needed)

    def own(self, places: Ints) -> Ints:
        """Those places of the shelf that are here."""
        return places[slice(*np.searchsorted(places, [self.start, self.stop]))] - self.start


def index_chunks(
    material: QADataset, settings: FairConfig, matcher: AnswerMatcher
) -> dict[ChunkingParams, IndexedChunks]:
    """Every chunking that the grid and the baseline ask for, with the answers looked up in it.

    All chunks stand on one shelf, so that each answer is looked up once for all chunkings.
    """
    cutter = DocumentChunker(material.documents, settings.tokenizer, as_source=matcher.joins)
    cuts = [cutter.cut(each) for each in dict.fromkeys([*settings.chunkings, settings.baseline[0]])]
    whole = matcher.shelve([text for found in cuts for text in found.texts])
    holders = [whole.holders(question.answer) for question in material.questions]
    borders = np.cumsum([0, *(len(found.chunks) for found in cuts)]).tolist()
    shelved = {}
    for found, (start, stop) in zip(cuts, pairwise(borders), strict=True):
        board = _IndexSlice(whole, start, stop)
        held = AnswerLocations(matcher.joins, board, tuple(board.own(places) for places in holders))
        shelved[found.chunking] = IndexedChunks(found, held)
    return shelved
