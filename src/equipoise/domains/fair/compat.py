"""Whether retrieved chunks hold an answer, by the source's names; ``tasks.answers`` has the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from equipoise.domains.fair.embedding_eval_matcher import (
    MATCHERS,
    PASS_SCORE,
    EmbeddingEvalMatcher,
    answer_matcher,
)
from equipoise.domains.fair.questions import QuestionAnswer, check_questions
from equipoise.errors import DuplicateError, InputError, ParameterError, ShapeError, UnknownNameError
from equipoise.models.embedder import Embedder, embedder
from equipoise.models.registry import parse_spec
from equipoise.models.stores.base import check_collection
from equipoise.models.stores.memory import MemoryStore

if TYPE_CHECKING:
    from equipoise.domains.fair.answer_matching import AnswerMatcher
    from equipoise.models.encoder import Vectors
    from equipoise.types import Role

# A store of several collections in memory, with the calls that users of embedding-eval know.


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One vector that was found."""

    id: str
    score: float
    text: str | None = None


class InMemoryVectorStore:
    """Collections of vectors by name, searched exactly; no server and no further package.

    >>> store = InMemoryVectorStore()
    >>> store.connect()
    >>> store.create_collection("test", dimensions=2)
    >>> store.upsert("test", ["a", "b"], [[1.0, 0.0], [0.0, 1.0]], texts=["east", "north"])
    >>> store.search("test", [0.1, 0.9], top_k=1)[0].text
    'north'
    """

    def __init__(self) -> None:
        self._collections: dict[str, MemoryStore] = {}

    def connect(self) -> None:
        """Nothing: there is no server. It stands here for code that changes between stores."""

    def create_collection(self, name: str, dimensions: int, geometry: str = "cosine") -> None:
        """An empty collection under a new name."""
        dims, space = check_collection(MemoryStore, name, dimensions, geometry)
        if name in self._collections:
            raise DuplicateError(
                f"there is a collection {name!r} already", hint="choose another name, or upsert into this one"
            )
        self._collections[name] = MemoryStore(name, int(dims or 0), space)

    def upsert(self, name: str, ids: Sequence[str], embeddings: ArrayLike, texts: Sequence[str] | None = None) -> None:
        """Put vectors under ids; those that are there already are replaced."""
        self._collection(name).add(ids, embeddings, texts)

    def search(self, name: str, query_embedding: ArrayLike, top_k: int = 10) -> list[SearchResult]:
        """The nearest vectors of one query, best first, with their texts."""
        collection = self._collection(name)
        found = collection.search(np.asarray(query_embedding)[None, ...], top_k).pairs(0)
        texts = collection.texts([name for name, _ in found])
        return [SearchResult(name, score, text) for (name, score), text in zip(found, texts, strict=True)]

    def delete(self, name: str, ids: Sequence[str]) -> int:
        """Remove vectors by id; the number of those that were there."""
        return self._collection(name).delete(ids)

    def count(self, name: str) -> int:
        """The number of vectors of a collection."""
        return self._collection(name).count()

    def close(self) -> None:
        """Forget everything."""
        self._collections.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _collection(self, name: str) -> MemoryStore:
        if name not in self._collections:
            raise UnknownNameError.of(
                "collection",
                name,
                self._collections,
                more="create_collection(name, dimensions=...) makes one",
            )
        return self._collections[name]


# Embedding models by the names that users of embedding-eval know; everything in them is ``embed.model``.


class _EmbeddingEvalEmbedder(Embedder):
    """An embedder with the source's further names; vectors are rows of an array, not lists."""

    def __init__(self, spec: str, **options: object) -> None:
        made = embedder(parse_spec(spec).with_options(**options))
        super().__init__(made.encoder, made.spec, cache=made.cache)

    @property
    def model_name(self) -> str:
        """The name of the model at its makers'."""
        return self.spec.name

    @property
    def dimensions(self) -> int:
        """The length of the vectors."""
        return self.dims

    def embed_text(self, text: str) -> Vectors:
        """One text as one vector, with no prompt before it."""
        vector: Vectors = self.embed_texts([text])[0]
        return vector

    def embed_texts(self, texts: Sequence[str], input_type: Role | str | None = None) -> Vectors:
        """Texts as queries or documents; as neither, with no prompt before them, where nothing is said."""
        if input_type is not None:
            return self.embed(texts, input_type)
        bare = Embedder(self.encoder, self.spec.with_options(document_prompt=""), cache=self.cache)
        return bare.embed(texts)


class SentenceTransformerEmbedding(_EmbeddingEvalEmbedder):
    """A model of sentence-transformers, by its short name, its name on the hub, or its folder.

    The vectors have length one; with ``normalize_embeddings=False`` they are as the model makes them.
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

    @property
    def max_seq_length(self) -> int | None:
        """How many tokens the model reads of a text."""
        return self.card.max_tokens


class OpenAIEmbedding(_EmbeddingEvalEmbedder):
    """A model at OpenAI, or at the server that OPENAI_BASE_URL names."""

    def __init__(
        self, model: str = "text-embedding-3-small", dimensions: int | None = None, api_key: str | None = None
    ) -> None:
        if api_key is not None:
            raise ParameterError(
                "a key was given, and keys are read from the environment only",
                hint="export OPENAI_API_KEY=...",
            )
        super().__init__(f"openai:{model}", dimensions=dimensions)

    @property
    def model_name(self) -> str:
        """The name of the model, with the service before it."""
        return f"openai:{self.spec.name}"


@dataclass(frozen=True, slots=True)
class EvaluationScore:
    """The score of one question, and why; it is true where the question counts as answered."""

    score: float
    explanation: str
    retrieved_chunks: tuple[str, ...] = field(default=(), repr=False)
    qa_pair_id: str = ""

    def __bool__(self) -> bool:
        return self.score >= PASS_SCORE


class BinaryEvaluator:
    """Says whether the chunks that were retrieved hold the expected answer.

    ``answer_matcher="words"`` looks for the answer inside one chunk, on the borders of words, and scores 1 or 0.
    ``answer_matcher="source"`` is the source's own rule: the chunks are read as one text, borders do not count, and
    ``partial_match_threshold`` of the answer's words are enough, which then are the score. Unless they are
    given, ``fuzzy_word_match`` and ``normalize_currency`` are off for the one and on for the other.

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
        self.matcher = _rule(
            matcher,
            case_sensitive=case_sensitive,
            normalize_whitespace=normalize_whitespace,
            partial_match_threshold=partial_match_threshold,
            fuzzy_word_match=matcher == "source" if fuzzy_word_match is None else fuzzy_word_match,
            normalize_currency=matcher == "source" if normalize_currency is None else normalize_currency,
        )

    def evaluate(self, question: str, expected_answer: str, retrieved_chunks: Sequence[str]) -> EvaluationScore:
        """The score of one question; only the answer and the chunks decide it."""
        chunks = _chunks(retrieved_chunks)
        if not isinstance(expected_answer, str) or not expected_answer.strip():
            raise InputError("the expected answer is empty or no text", hint="give the words that answer it")
        if not chunks:
            return EvaluationScore(0.0, "nothing was retrieved")
        if isinstance(self.matcher, EmbeddingEvalMatcher):
            score = self.matcher.score(expected_answer, chunks)
        else:
            score = 0.0 if self.matcher.first_hit(expected_answer, chunks) is None else 1.0
        return EvaluationScore(score, self._explained(score, expected_answer, chunks), chunks)

    def evaluate_batch(
        self,
        qa_pairs: Iterable[Mapping[str, Any] | QuestionAnswer],
        retrieved_chunks_list: Sequence[Sequence[str]],
    ) -> list[EvaluationScore]:
        """The scores of many questions, each with its own chunks."""
        asked = check_questions(qa_pairs)
        if len(asked) != len(retrieved_chunks_list):
            raise ShapeError(
                f"there are {len(asked)} questions and {len(retrieved_chunks_list)} lists of chunks",
                hint="give one list a question",
            )
        return [
            replace(self.evaluate(each.question, each.answer, chunks), qa_pair_id=each.id)
            for each, chunks in zip(asked, retrieved_chunks_list, strict=True)
        ]

    def _explained(self, score: float, answer: str, chunks: Sequence[str]) -> str:
        if score == 0.0:
            return f"none of the {len(chunks)} chunks holds the answer"
        if score < 1.0:
            return f"the chunks have {score:.0%} of the answer's words"
        return f"the answer is in the first {self.matcher.first_hit(answer, chunks)} of {len(chunks)} chunks"


def _rule(name: str, **source: Any) -> AnswerMatcher:
    """The rule of this name from the source's options."""
    if name not in MATCHERS:
        raise UnknownNameError.of("matcher", str(name), MATCHERS, more=f"known: {', '.join(MATCHERS)}")
    if name == "source":
        return answer_matcher(name, **source)
    return answer_matcher(
        name,
        fold_case=not source["case_sensitive"],
        collapse_spaces=source["normalize_whitespace"],
        threshold=source["partial_match_threshold"],
        fuzzy=source["fuzzy_word_match"],
        currency=source["normalize_currency"],
    )


def _chunks(chunks: Any) -> tuple[str, ...]:
    if isinstance(chunks, str) or not isinstance(chunks, Iterable):
        raise InputError(f"the retrieved chunks are a {type(chunks).__name__}, not a list", hint="give a list of texts")
    texts = tuple(chunks)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"retrieved chunk {place + 1} is a {type(text).__name__}, not a text")
    return texts
