"""Chunk the documents with every configuration of the grid, and locate the answers in the chunks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.domains.fair.answer_matching import AnswerIndex, AnswerMatcher, AnswerParts
from equipoise.domains.fair.questions import holders_within, locate_passages
from equipoise.evidence.ranking import Ranking, unanswerable_as_misses
from equipoise.evidence.segments import NOT_RETRIEVED
from equipoise.geometry.topk import top_columns
from equipoise.models.chunking import Chunk, Chunker, chunker, markdown_sections
from equipoise.models.tokenizers import Cl100kTokenizer, Tokenizer, check_text, tokenizer_for, utf8_character_index

if TYPE_CHECKING:
    from equipoise.domains.fair.config import FairConfig
    from equipoise.domains.fair.plan import QADataset
    from equipoise.domains.fair.questions import QuestionAnswer
    from equipoise.io.documents import TextDocument
    from equipoise.types import Floats, Ints


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
        """The number of texts, in this order, that contain the answer."""
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
        self._character_starts = utf8_character_index(self._data)

    def chunks(self, size: int, overlap: int) -> list[Chunk]:
        """Windows of ``size`` tokens, of which ``overlap`` are shared with the window before."""
        count = len(self._borders) - 1
        starts = range(0, max(count - overlap, min(count, 1)), size - overlap)
        return [self._chunk(first, min(first + size, count)) for first in starts]

    def _chunk(self, first: int, last: int) -> Chunk:
        left, right = self._borders[[first, last]].tolist()
        text = self._data[left:right].decode("utf-8", "replace")
        return Chunk(text, int(self._character_starts[left]) - 1, int(self._character_starts[right - 1]), last - first)


# Where a system ranks the chunks that contain the answers, and the accuracy of randomly drawn chunks.

# Chance level: the share of questions that randomly drawn chunks answer.

N_SAMPLES = 100_000
"""Random orders over all questions together. The standard error is at most 0.5 / sqrt(100,000) = 0.0016."""
MAX_SAMPLES = 4_000
"""Random orders per question. With fewer than 25 questions the standard error is at most 0.008 / sqrt(questions)."""


def chance_levels(
    holders: Sequence[Ints],
    parts: Sequence[Sequence[AnswerParts]],
    corpus: int,
    depth: int,
    rng: np.random.Generator,
) -> Floats:
    """The share of questions that k of ``corpus`` chunks answer, drawn at random: one value per k = 1, 2, ...

    ``holders`` are the chunks that answer a question alone; the probability of drawing one has a closed form.
    ``parts`` are those of each accepted answer, for matchers that join the retrieved chunks. Answers that only
    several chunks contain together are simulated, with a standard error of at most 0.0016. An answer that is complete
    only across the boundary of two adjacent chunks is ignored.

    >>> from equipoise.domains.fair.answer_matching import AnswerParts
    >>> rye, bread = [True, False, False], [False, True, False]
    >>> either, both = AnswerParts(np.array([rye, bread]), 1), AnswerParts(np.array([rye, bread]), 2)
    >>> rng, none = np.random.default_rng(0), np.array([], dtype=int)
    >>> chance_levels([np.array([0, 1])], [[either]], 3, 3, rng).round(2).tolist()
    [0.67, 1.0, 1.0]
    >>> chance_levels([none], [[both]], 3, 3, rng).round(1).tolist()  # both of two chunks out of three: probability 1/3
    [0.0, 0.3, 1.0]
    """
    single_chunk = _hit_probability(np.array([len(chunk_ids) for chunk_ids in holders]), corpus, depth)
    simulated = np.zeros(depth)
    orders = None
    for chunk_ids, answer_parts in zip(holders, parts, strict=True):
        scattered = [parts for parts in (part.scattered() for part in answer_parts) if parts is not None]
        if scattered:
            if orders is None:
                orders = _orders(corpus, depth, min(MAX_SAMPLES, -(-N_SAMPLES // len(holders))), rng)
            simulated += _only_together(scattered, chunk_ids, orders, rng.permutation(corpus))
    return single_chunk + simulated / len(holders)


def _hit_probability(counts: Ints, corpus: int, depth: int) -> Floats:
    """The probability that at least one holder is among k drawn chunks; the mean over the questions."""
    rank = np.arange(depth)
    missed = np.cumprod(np.maximum(corpus - counts[:, None] - rank, 0) / (corpus - rank), axis=1)
    return 1.0 - missed.mean(axis=0)


def _orders(corpus: int, depth: int, draws: int, rng: np.random.Generator) -> Ints:
    """The first chunks of random orders; shape (depth, draws)."""
    orders = rng.permuted(np.tile(np.arange(corpus), (draws, 1)), axis=1)
    return np.ascontiguousarray(orders[:, :depth].T)


def _only_together(answers: Sequence[AnswerParts], chunk_ids: Ints, orders: Ints, labels: Ints) -> Floats:
    """The probability that the first k chunks have enough parts of an answer, while no single one contains an answer.

    ``labels`` permutes the chunks, so that questions share no order and their errors are independent.
    """
    holds = np.zeros(len(labels), dtype=np.bool_)
    holds[chunk_ids] = True
    enough = np.zeros(orders.shape, dtype=np.bool_)
    for parts in answers:
        sets = np.packbits(parts.there[:, labels], axis=0)  # the parts that a chunk has, as bits
        gathered = np.bitwise_or.accumulate(sets.take(orders, axis=1), axis=1)
        enough |= np.bitwise_count(gathered).sum(axis=0, dtype=np.uint32) >= parts.needed
    single_chunk = np.logical_or.accumulate(holds[labels].take(orders), axis=0)
    shares: Floats = np.mean(enough & ~single_chunk, axis=1)
    return shares


Blocks = Iterable[tuple[slice, NDArray[Any]]]


class ScoresTexts(Protocol):
    """A system that has indexed the chunks, such as ``retriever(...).fit(texts)``."""

    def score_blocks(self, queries: Sequence[str]) -> Blocks:
        """Blocks of query rows with their scores for every chunk; higher is better."""


@dataclass(frozen=True)
class AnswerLocations:
    """Which chunks contain which answers. Shared by all systems that search these chunks."""

    joins: bool
    index: AnswerIndex
    holders: tuple[Ints, ...]
    _chance: dict[tuple[int, int], Floats] = field(default_factory=dict, init=False, repr=False)

    def chance(self, questions: Sequence[QuestionAnswer], corpus: int, depth: int, seed: int = 0) -> Floats:
        """The share of questions that k random chunks answer, k = 1 to ``depth``. Computed once."""
        if (depth, seed) not in self._chance:
            parts = [
                [part for part in map(self.index.parts, question.answers) if part is not None] for question in questions
            ]
            self._chance[depth, seed] = chance_levels(self.holders, parts, corpus, depth, np.random.default_rng(seed))
        return self._chance[depth, seed]


@dataclass(frozen=True)
class AnswerRanking:
    """Where a system ranks the chunks that contain the answers, and what it retrieves for every question.

    ``ranking`` has the question ids as units; its HR@k is the accuracy at top_k = k. ``order``, ``scores``
    and ``tokens`` have shape (questions, ranks): the chunk at the rank, its score, and the cumulative number
    of tokens. ``chance`` has one value per rank: the accuracy of as many randomly drawn chunks.
    ``reachable`` is the share of questions that can be answered at all.
    """

    ranking: Ranking
    order: Ints
    scores: Floats
    tokens: Ints
    chance: Floats
    holders: tuple[Ints, ...]
    reachable: float


def rank_answers(
    fitted: ScoresTexts,
    questions: Sequence[QuestionAnswer],
    chunks: Sequence[Chunk],
    locations: AnswerLocations,
    depth: int,
) -> AnswerRanking:
    """Rank the chunks for every question and find the ranks of those that contain the answer.

    The best ``depth`` chunks are kept (all if there are fewer); equal scores keep the order of the chunks. The
    ranking has full depth and ties count by expectation, so a system with constant scores reaches the chance
    level. A matcher that joins the retrieved chunks has no such ranking: the answer has the rank of the chunk
    that completes it, and an answer that is not complete within ``depth`` is a miss.

    A question whose answer is in no chunk is a miss with chance level 0.
    """
    top = _TopChunks(len(questions), min(depth, len(chunks)))
    blocks = top.record(fitted.score_blocks([question.question for question in questions]))
    ids = np.array([question.id for question in questions], dtype=object)
    if locations.joins:
        for _ in blocks:
            pass
        ranking = _ranking_of_hits(locations, questions, top.order, ids, len(chunks))
    else:
        ranking = unanswerable_as_misses(
            Ranking.from_blocks(blocks, locations.holders, units=len(questions), corpus=len(chunks), unit_ids=ids)
        )
    tokens = np.array([chunk.tokens for chunk in chunks], dtype=np.int64)
    return AnswerRanking(
        ranking,
        top.order,
        top.scores,
        np.cumsum(tokens[top.order], axis=1),
        locations.chance(questions, len(chunks), top.order.shape[1]),
        locations.holders,
        float(np.mean(ranking.depth > 0)),
    )


class _TopChunks:
    """The best chunks of every question, recorded while the score blocks are consumed."""

    def __init__(self, questions: int, depth: int) -> None:
        self.order: Ints = np.empty((questions, depth), dtype=np.int64)
        self.scores: Floats = np.empty((questions, depth))

    def record(self, blocks: Blocks) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield the same blocks after recording the best columns of each."""
        for rows, scores in blocks:
            self.order[rows], self.scores[rows] = top_columns(scores, self.order.shape[1])
            yield rows, scores


def _ranking_of_hits(
    locations: AnswerLocations, questions: Sequence[QuestionAnswer], order: Ints, ids: NDArray[Any], corpus: int
) -> Ranking:
    """The rank at which the joined chunks contain each answer.

    Further chunks that contain an answer alone are represented as items that were not retrieved, which hit
    rates ignore. The chance level of this ranking is not valid, because randomly drawn chunks are joined too.
    """
    answers = (question.answers for question in questions)
    hits = [locations.index.first_hit_of_any(accepted, row) for accepted, row in zip(answers, order, strict=True)]
    least = np.array([hit is not None for hit in hits], dtype=np.int64)
    counts = np.maximum([len(holders) for holders in locations.holders], least)
    above = np.full(int(counts.sum()), NOT_RETRIEVED, dtype=np.int64)
    is_hit = least > 0
    above[(np.cumsum(counts) - counts)[is_hit]] = [hit - 1 for hit in hits if hit is not None]
    pool = np.full(len(counts), corpus, dtype=np.int64)
    return unanswerable_as_misses(
        Ranking.of_items(
            ids,
            counts,
            gain=np.ones(len(above)),
            above=above,
            tied=np.zeros_like(above),
            depth=np.full_like(pool, order.shape[1]),
            candidates=pool,
        )
    )
