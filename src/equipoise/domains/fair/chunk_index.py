"""Chunk the documents with every configuration of the grid, and locate the answers in the chunks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.fair.answer_evidence import AnswerLocations
from equipoise.domains.fair.answer_matching import AnswerIndex, AnswerMatcher, AnswerParts
from equipoise.domains.fair.passages import holders_within, locate_passages
from equipoise.models.chunking import Chunk, Chunker, chunker, markdown_sections
from equipoise.models.tokenizers import Cl100kTokenizer, Tokenizer, check_text, tokenizer_for, utf8_character_index

if TYPE_CHECKING:
    from equipoise.domains.fair.config import FairConfig
    from equipoise.domains.fair.dataset import QADataset
    from equipoise.io.documents import TextDocument
    from equipoise.types import Ints


@dataclass(frozen=True, slots=True)
class ChunkingParams:
    """A chunker and its sizes; the sentence chunker has no overlap."""

    chunker: str
    chunk_size: int
    overlap: int

    def build(self, tokenizer: Any = None) -> Chunker:
        """The chunker with these sizes."""
        sizes: dict[str, object] = {"chunk_size": self.chunk_size, "overlap": self.overlap}
        if self.chunker == "sentence":
            sizes = {"max_tokens": self.chunk_size}
        return chunker(self.chunker, tokenizer=tokenizer, **sizes)


@dataclass(frozen=True)
class ChunkedDocuments:
    """The chunks of all documents in order; ``document`` is the index of the document of each chunk."""

    chunking: ChunkingParams
    chunks: tuple[Chunk, ...]
    document: tuple[int, ...]

    @property
    def texts(self) -> list[str]:
        """The texts to embed."""
        return [chunk.text for chunk in self.chunks]


class DocumentChunker:
    """Chunks documents with several configurations and tokenises each document once.

    ``embedding_eval_tokens`` chunks like embedding-eval if its tokenizer is used: a boundary may be inside a
    character, and white space at the ends is kept, since some models embed "rye" and " rye" differently.
    """

    def __init__(
        self, documents: Sequence[TextDocument], tokenizer: Any = None, *, embedding_eval_tokens: bool = False
    ) -> None:
        resolved = tokenizer_for(tokenizer)
        self.documents = documents
        self.tokenizer = _MemoisedTokenizer(resolved)
        self._windows: list[EmbeddingEvalWindows] = []
        if embedding_eval_tokens and isinstance(resolved, Cl100kTokenizer):
            self._windows = [EmbeddingEvalWindows(document.text, resolved) for document in documents]

    def chunk(self, chunking: ChunkingParams) -> ChunkedDocuments:
        """The chunks of every document; no chunk spans two documents."""
        if self._windows and chunking.chunker == "fixed":
            parts = [windows.chunks(chunking.chunk_size, chunking.overlap) for windows in self._windows]
        else:
            chunker = chunking.build(self.tokenizer)
            parts = [chunker.chunk(document.text) for document in self.documents]
        chunks = tuple(chunk for part in parts for chunk in part)
        return ChunkedDocuments(chunking, chunks, tuple(index for index, part in enumerate(parts) for _ in part))


class _MemoisedTokenizer(Tokenizer):
    """A tokenizer that tokenises each document once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.name = tokenizer.name
        self._tokenizer = tokenizer
        self._known: dict[str, Ints] = {}

    def offsets(self, text: str) -> Ints:
        """The token offsets; memoised per text."""
        if text not in self._known:
            self._known[text] = self._tokenizer.offsets(text)
        return self._known[text]

    def count(self, text: str) -> int:
        """The number of tokens of a text."""
        return self._tokenizer.count(text)

    def _tokens(self, text: str) -> Ints:
        return self._tokenizer._tokens(text)


def chunk_locations(chunked: ChunkedDocuments, documents: Sequence[TextDocument]) -> list[str]:
    """A label per chunk: the file, if there are several, and the section title."""
    sections = [markdown_sections(document.text) for document in documents]
    starts = [[section.start for section in document_sections] for document_sections in sections]
    labels = []
    for chunk, index in zip(chunked.chunks, chunked.document, strict=True):
        title = sections[index][bisect_right(starts[index], chunk.start) - 1].title
        name = documents[index].name if len(documents) > 1 else ""
        labels.append(": ".join(filter(None, (name, chunk.section or title))))
    return labels


@dataclass(frozen=True)
class IndexedChunks:
    """The chunks of one chunking, and which of them contain which answers."""

    chunked: ChunkedDocuments
    locations: AnswerLocations


@dataclass(frozen=True)
class _IndexSlice(AnswerIndex):
    """The texts ``start`` to ``stop`` of a larger index, numbered from 0."""

    whole: AnswerIndex
    start: int
    stop: int

    def holders(self, answer: str) -> Ints:
        """The positions of the texts that contain the answer."""
        return self.select(self.whole.holders(answer))

    def first_hit(self, answer: str, order: Sequence[int] | Ints) -> int | None:
        """How many texts, in this order, are needed."""
        return self.whole.first_hit(answer, np.asarray(order) + self.start)

    def parts(self, answer: str) -> AnswerParts | None:
        """The parts of the answer in these texts."""
        parts = self.whole.parts(answer)
        return None if parts is None else AnswerParts(parts.there[:, self.start : self.stop], parts.needed)

    def select(self, positions: Ints) -> Ints:
        """The positions within this slice, relative to its start."""
        return positions[slice(*np.searchsorted(positions, [self.start, self.stop]))] - self.start


def index_chunks(
    dataset: QADataset, settings: FairConfig, matcher: AnswerMatcher
) -> dict[ChunkingParams, IndexedChunks]:
    """Every chunking of the grid and the baseline, with the chunks that contain each answer.

    One index contains the chunks of all chunkings, so each answer is searched once. The answer of a question with
    passages counts only inside these.
    """
    texts = [document.text for document in dataset.documents]
    passages = locate_passages(dataset.questions, texts, matcher)
    chunker = DocumentChunker(dataset.documents, settings.tokenizer, embedding_eval_tokens=matcher.joins)
    chunkings = [chunker.chunk(params) for params in dict.fromkeys([*settings.chunkings, settings.baseline[0]])]
    index = matcher.build_index([text for chunked in chunkings for text in chunked.texts])
    holders = [index.holders_of_any(question.answers) for question in dataset.questions]
    borders = np.cumsum([0, *(len(chunked.chunks) for chunked in chunkings)]).tolist()
    indexed_chunks = {}
    for chunked, (start, stop) in zip(chunkings, pairwise(borders), strict=True):
        index_slice = _IndexSlice(index, start, stop)
        selected = [index_slice.select(positions) for positions in holders]
        for at, question in enumerate(dataset.questions):
            if question.passages:
                spans = passages[question.id]
                selected[at] = holders_within(
                    question, spans, selected[at], chunked.chunks, chunked.document, texts, matcher
                )
        indexed_chunks[chunked.chunking] = IndexedChunks(
            chunked, AnswerLocations(matcher.joins, index_slice, tuple(selected))
        )
    return indexed_chunks


class EmbeddingEvalWindows:
    r"""The tokens of one document, split at any token; white space at the ends is kept.

    A boundary may be inside a character that consists of several tokens. Its remains on either side are
    decoded as U+FFFD; the offsets of the chunk then include the whole character.

    >>> [chunk.text for chunk in EmbeddingEvalWindows("soba 麺, ramen", Cl100kTokenizer()).chunks(5, 1)]
    ['soba 麺', '\ufffd, ramen']
    """

    def __init__(self, document: str, tokenizer: Cl100kTokenizer) -> None:
        self._data = check_text(document, "the document").encode()
        self._borders = tokenizer.byte_borders(document)
        self._begun = utf8_character_index(self._data)

    def chunks(self, size: int, overlap: int) -> list[Chunk]:
        """Windows of ``size`` tokens, of which ``overlap`` are shared with the window before."""
        count = len(self._borders) - 1
        starts = range(0, max(count - overlap, min(count, 1)), size - overlap)
        return [self._chunk(first, min(first + size, count)) for first in starts]

    def _chunk(self, first: int, last: int) -> Chunk:
        left, right = self._borders[[first, last]].tolist()
        text = self._data[left:right].decode("utf-8", "replace")
        return Chunk(text, int(self._begun[left]) - 1, int(self._begun[right - 1]), last - first)
