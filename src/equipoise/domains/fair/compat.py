"""Classes with the names and calls of embedding-eval: vector store, embedding models, evaluator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.domains.fair.answer_matching import (
    PASS_SCORE,
    EmbeddingEvalMatcher,
    answer_matcher,
    matcher_name,
)
from equipoise.errors import DuplicateError, InputError, ParameterError, ShapeError, UnknownNameError
from equipoise.models.embedder import Embedder, embedder
from equipoise.models.registry import parse_spec
from equipoise.models.stores.base import check_collection
from equipoise.models.stores.memory import MemoryStore
from equipoise.stats.formatting import format_percent

if TYPE_CHECKING:
    from equipoise.domains.fair.answer_matching import AnswerMatcher


class SearchResult(dict[str, Any]):
    """One search hit: a dict with ``id``, ``score``, ``text`` and ``metadata``, which are attributes too.

    >>> hit = SearchResult(id="a", score=0.5, text="rye", metadata={})
    >>> hit["text"] == hit.text == "rye"
    True
    """

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"a search hit has no {name}")
        return self[name]


class InMemoryVectorStore:
    """Named collections of vectors in memory with exact search.

    >>> store = InMemoryVectorStore()
    >>> store.connect()
    >>> store.create_collection("test", dimensions=2)
    True
    >>> store.upsert("test", ["a", "b"], [[1.0, 0.0], [0.0, 1.0]], texts=["east", "north"])
    2
    >>> store.search("test", [0.1, 0.9], top_k=1)[0]["text"]
    'north'
    """

    def __init__(self) -> None:
        self._collections: dict[str, MemoryStore] = {}
        self._metadata: dict[str, dict[str, Mapping[str, Any]]] = {}

    def connect(self) -> None:
        """Does nothing: there is no server. For compatibility with other stores."""

    def create_collection(self, name: str, dimensions: int, distance_metric: str = "cosine") -> bool:
        """Create an empty collection; the distance is ``cosine``, ``dot`` or ``euclidean``."""
        dims, space = check_collection(MemoryStore, name, dimensions, distance_metric)
        if name in self._collections:
            raise DuplicateError(
                f"the collection {name!r} already exists", hint="choose another name, or upsert into this one"
            )
        self._collections[name] = MemoryStore(name, int(dims or 0), space)
        self._metadata[name] = {}
        return True

    def upsert(
        self,
        name: str,
        ids: Sequence[str],
        embeddings: ArrayLike,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        texts: Sequence[str] | None = None,
    ) -> int:
        """Add vectors by id, and return how many; existing ids are replaced."""
        if metadata is not None and len(metadata) != len(ids):
            raise ShapeError(
                f"there are {len(ids)} ids and {len(metadata)} dicts of metadata", hint="pass one per id, or texts=..."
            )
        self._collection(name).add(ids, embeddings, texts)
        self._metadata[name].update(zip(ids, metadata or [{}] * len(ids), strict=True))
        return len(ids)

    def search(self, name: str, query_embedding: ArrayLike, top_k: int = 10) -> list[SearchResult]:
        """The nearest vectors of one query, best first, with their texts and metadata."""
        collection, metadata = self._collection(name), self._metadata[name]
        hits = collection.search(np.asarray(query_embedding)[None, ...], top_k).pairs(0)
        texts = collection.texts([row for row, _ in hits])
        return [
            SearchResult(id=row, score=score, text=text, metadata=metadata[row])
            for (row, score), text in zip(hits, texts, strict=True)
        ]

    def _collection(self, name: str) -> MemoryStore:
        if name not in self._collections:
            raise UnknownNameError.of(
                "collection",
                name,
                self._collections,
                more="create_collection(name, dimensions=...) makes one",
            )
        return self._collections[name]


class _EmbeddingEvalEmbedder(Embedder):
    """An embedder by the name of its model, with its options as parameters."""

    def __init__(self, spec: str, **options: object) -> None:
        model = embedder(parse_spec(spec).with_options(**options))
        super().__init__(model.encoder, model.spec, cache=model.cache)

    @property
    def dimensions(self) -> int:
        """The length of the vectors."""
        return self.dims


class SentenceTransformerEmbedding(_EmbeddingEvalEmbedder):
    """A model of sentence-transformers, by alias, hub name or folder.

    The vectors have unit length; ``normalize_embeddings=False`` returns them unchanged.
    """

    def __init__(
        self,
        model: str = "bge-base",
        device: str | None = None,
        normalize_embeddings: bool = True,
        trust_remote_code: bool = False,
    ) -> None:
        super().__init__(
            f"st:{model}",
            device=device,
            normalize=normalize_embeddings or None,
            trust_remote_code=trust_remote_code or None,
        )


class OpenAIEmbedding(_EmbeddingEvalEmbedder):
    """A model at OpenAI, or at the server that OPENAI_BASE_URL names."""

    def __init__(
        self, model: str = "text-embedding-3-small", dimensions: int | None = None, api_key: str | None = None
    ) -> None:
        if api_key is not None:
            raise ParameterError(
                "api_key was passed, but keys are read from the environment only",
                hint="export OPENAI_API_KEY=...",
            )
        super().__init__(f"openai:{model}", dimensions=dimensions)


@dataclass(frozen=True, slots=True)
class EvaluationScore:
    """The score of one question with an explanation. ``bool(score)`` is whether the question counts as answered."""

    score: float
    explanation: str
    retrieved_chunks: tuple[str, ...] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        return self.score >= PASS_SCORE


class BinaryEvaluator:
    """Whether the retrieved chunks contain the expected answer.

    Parameters
    ----------
    case_sensitive
        Whether upper and lower case are different.
    normalize_whitespace
        Whether all white space is equal.
    partial_match_threshold
        Minimum share of the answer's words, for ``fuzzy_word_match``.
    fuzzy_word_match
        Whether a part of the answer's words is enough. The score is then 1 with the matcher ``words``, and the share of
        the words with ``embedding-eval``. By default False for ``words`` and True for ``embedding-eval``.
    normalize_currency
        Whether ``$5`` also matches ``$ 5`` and ``5``. By default False for ``words``, True for ``embedding-eval``.
    matcher
        ``words`` searches the whole words of the answer within one chunk and scores 1 or 0. ``embedding-eval`` is the
        rule of that package: the chunks are joined, and word boundaries are ignored.

    >>> evaluator = BinaryEvaluator()
    >>> evaluator.evaluate("What is the capital?", "Paris", ["Paris is its capital."]).score
    1.0
    >>> bool(evaluator.evaluate("How much?", "65%", ["It rose by 165%."]))
    False
    """

    def __init__(
        self,
        case_sensitive: bool = False,
        normalize_whitespace: bool = True,
        partial_match_threshold: float = 0.8,
        fuzzy_word_match: bool | None = None,
        normalize_currency: bool | None = None,
        *,
        matcher: str = "words",
    ) -> None:
        name = matcher_name(matcher)
        is_lenient = name == EmbeddingEvalMatcher.kind
        self.matcher = _matcher(
            name,
            case_sensitive=case_sensitive,
            normalize_whitespace=normalize_whitespace,
            partial_match_threshold=partial_match_threshold,
            fuzzy_word_match=is_lenient if fuzzy_word_match is None else fuzzy_word_match,
            normalize_currency=is_lenient if normalize_currency is None else normalize_currency,
        )

    def evaluate(
        self, question: str, expected_answer: str | Sequence[str], retrieved_chunks: Sequence[Any]
    ) -> EvaluationScore:
        """The score of one question; only the answer and the chunks decide it.

        ``expected_answer`` is the answer or a list of accepted ones, of which the best counts. A retrieved chunk is
        a text, a chunk of a chunker, or a result of ``InMemoryVectorStore.search``.
        """
        chunks = _chunks(retrieved_chunks)
        answers = [expected_answer] if isinstance(expected_answer, str) else expected_answer
        is_list = isinstance(answers, list | tuple) and len(answers) > 0
        if not is_list or not all(isinstance(answer, str) and answer.strip() for answer in answers):
            raise InputError("the expected answer is empty or not a text", hint="pass the text of the answer")
        if not chunks:
            return EvaluationScore(0.0, "nothing was retrieved")
        score, answer = max(((self._score(answer, chunks), answer) for answer in answers), key=lambda pair: pair[0])
        return EvaluationScore(score, self._explained(score, answer, chunks), chunks)

    def _score(self, answer: str, chunks: Sequence[str]) -> float:
        if isinstance(self.matcher, EmbeddingEvalMatcher):
            return self.matcher.score(answer, chunks)
        return 0.0 if self.matcher.first_hit(answer, chunks) is None else 1.0

    def _explained(self, score: float, answer: str, chunks: Sequence[str]) -> str:
        if score == 0.0:
            return f"none of the {len(chunks)} chunks contains the answer"
        if score < 1.0:
            return f"the chunks have {format_percent(round(score, 2))} of the answer's words"
        return f"the answer is in the first {self.matcher.first_hit(answer, chunks)} of {len(chunks)} chunks"


def _matcher(name: str, **options: Any) -> AnswerMatcher:
    """The matcher with this name from the options of embedding-eval."""
    if name == EmbeddingEvalMatcher.kind:
        return answer_matcher(name, **options)
    return answer_matcher(
        name,
        fold_case=not options["case_sensitive"],
        collapse_spaces=options["normalize_whitespace"],
        threshold=options["partial_match_threshold"],
        fuzzy=options["fuzzy_word_match"],
        currency=options["normalize_currency"],
    )


def _chunks(chunks: Any) -> tuple[str, ...]:
    if isinstance(chunks, str) or not isinstance(chunks, Iterable):
        raise InputError(f"the retrieved chunks are a {type(chunks).__name__}, not a list", hint="pass a list of texts")
    texts: tuple[Any, ...] = tuple(getattr(chunk, "text", chunk) for chunk in chunks)
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise InputError(
                f"retrieved chunk {number} is a {type(text).__name__}, not a text",
                hint="pass texts, chunks of a chunker, or results of a store with texts",
            )
    return texts
