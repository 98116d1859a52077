"""Reranking: a slower model reorders the first hits of a retriever."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from equipoise.errors import InputError, NotFiniteError, ParameterError, ShapeError, UnknownNameError, did_you_mean
from equipoise.geometry.search import Neighbors
from equipoise.geometry.topk import top_columns
from equipoise.models.analyzer import check_nonempty_texts
from equipoise.models.encoder import ModelCard
from equipoise.models.fusion import RRF_K, reciprocal_ranks
from equipoise.models.registry import BY_ALIAS, ModelSpec, check_nameless, number_option, parse_spec, split_parts
from equipoise.models.retriever import Blocks, FittedRetriever, Retriever, ScoreScale, content_fingerprint, retriever
from equipoise.models.vector_cache import MEASUREMENT_SECONDS
from equipoise.progress import portion

if TYPE_CHECKING:
    from equipoise.geometry.base import PointArray
    from equipoise.models.vector_cache import VectorCache
    from equipoise.types import Floats, Ints


class Reranker(ABC):
    """Scores documents for a query by reading them; higher is better. Only the order of one query counts.

    A subclass defines ``score``, or ``score_many`` where it can batch.
    """

    pairwise: bool = False
    """Whether the score of a document is independent of the other documents, so that it can be stored."""

    @property
    @abstractmethod
    def card(self) -> ModelCard:
        """Its name, its spec and other metadata."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Equal only if the scores are equal."""

    def score(self, query: str, documents: Sequence[str]) -> Floats:
        """One score per document."""
        return self.score_many([query], [documents])[0]

    def score_many(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> list[Floats]:
        """The same for many queries, each with its documents."""
        return [self.score(query, candidates) for query, candidates in zip(queries, documents, strict=True)]


class RerankerFromSpec(Protocol):
    """A class of rerankers that can be made from a spec."""

    def from_spec(self, spec: ModelSpec) -> Reranker:
        """The reranker that the spec names."""


RERANKERS: dict[str, tuple[str, str]] = {
    "cross-encoder": ("backends.rerankers", "CrossEncoderReranker"),
    "maxsim": ("backends.rerankers", "MaxSimReranker"),
    "fusion": ("rerank", "FusionReranker"),
}
"""Kinds of rerankers: module and class of each."""


def reranker(spec: str | Reranker | Any, **options: object) -> Reranker:
    """Load a reranker by its spec: ``cross-encoder:FOLDER``, ``maxsim:minilm``, ``fusion:maxsim:+bm25:``.

    Parameters
    ----------
    spec
        A spec, a reranker, or a ``CrossEncoder`` object of sentence-transformers.
    options
        Options of the spec, such as ``device="cuda"``.

    Returns
    -------
    Reranker
        Scores texts against a query: ``reranker.score(query, texts)``.

    Examples
    --------
    >>> reranker("fusion:bm25:+tfidf:").score("red fox", ["a blue whale", "a red fox"]).argmax()
    np.int64(1)
    """
    if isinstance(spec, Reranker):
        return spec
    if not isinstance(spec, str):
        from equipoise.models.backends.rerankers import CrossEncoderReranker

        return CrossEncoderReranker.of_model(spec)
    parsed = parse_reranker(spec)
    module, name = RERANKERS[parsed.kind]
    maker: RerankerFromSpec = getattr(import_module(f"equipoise.models.{module}"), name)
    return maker.from_spec(parsed.with_options(**options))


def parse_reranker(text: str) -> ModelSpec:
    """The kind, name and options of a reranker; nothing is loaded.

    >>> parse_reranker("maxsim:minilm,max_tokens=128").options
    {'max_tokens': '128'}
    """
    kind, _, rest = text.strip().partition(":")
    if kind.casefold() not in RERANKERS:
        raise UnknownNameError.of("kind of reranker", kind, RERANKERS, more=f"the kinds are {', '.join(RERANKERS)}")
    if kind.casefold() == "fusion":
        return ModelSpec("fusion", rest)
    # Names and options of rerankers have the syntax of those of models.
    read = parse_spec(f"st:{rest}")
    is_other = read.name not in BY_ALIAS and not Path(read.name).exists()
    if kind.casefold() == "maxsim" and is_other and did_you_mean(read.name, BY_ALIAS):
        raise UnknownNameError.of("model", read.name, BY_ALIAS)  # a typo, not a name on the hub
    return ModelSpec(kind.casefold(), read.name, read.options, text)


def rerank(
    hits: Neighbors,
    reranker: Reranker,
    *,
    queries: Sequence[str],
    documents: Sequence[str],
    depth: int | None = None,
) -> Neighbors:
    """The hits with the first ``depth`` (default: all) in the order of the reranker's scores.

    Hits beyond ``depth`` follow unchanged. Scores of retriever and reranker have no common scale, so the returned
    scores only define the order: minus the number of strictly better hits, equal for ties.
    """
    _require(hits, queries, documents, depth)
    depth = hits.indices.shape[1] if depth is None else min(depth, hits.indices.shape[1])
    candidates = [[documents[index] for index in row.tolist()] for row in hits.indices[:, :depth]]
    values = hits.scores.astype(np.float64)
    for row, scores in enumerate(reranker.score_many(queries, candidates)):
        values[row, :depth] = _check_scores(scores, depth, reranker, queries[row])
    stage = np.broadcast_to((np.arange(values.shape[1]) >= depth).astype(np.int64), values.shape)
    return _order_by_stage(hits.indices, stage, values)


def reranked_scores(
    scores: PointArray,
    reranker: Reranker,
    *,
    queries: Sequence[str],
    documents: Sequence[str],
    depth: int,
) -> PointArray:
    """Scores of all documents after the first ``depth`` were reranked.

    Reranked documents score above 0 by their new order, all others 0 or less by their old one.
    """
    block: PointArray = scores.astype(np.float64)
    columns, best = top_columns(block, min(depth, block.shape[1]))
    reranked = rerank(Neighbors(columns, best), reranker, queries=queries, documents=documents)
    block -= block.max(axis=1, keepdims=True)
    np.put_along_axis(block, reranked.indices, reranked.scores + columns.shape[1], axis=1)
    return block


def _order_by_stage(indices: Ints, stage: Ints, values: Floats) -> Neighbors:
    """Sort by stage, then by descending value, then by row; the scores only define the order."""
    order = np.lexsort((indices, -values, stage), axis=1)
    stage, values = np.take_along_axis(stage, order, 1), np.take_along_axis(values, order, 1)
    is_new = np.ones(order.shape, dtype=bool)
    is_new[:, 1:] = (stage[:, 1:] != stage[:, :-1]) | (values[:, 1:] != values[:, :-1])
    better = np.maximum.accumulate(np.where(is_new, np.arange(order.shape[1]), 0), axis=1)
    return Neighbors(np.take_along_axis(indices, order, 1), 0.0 - better)


class RerankedRetriever(Retriever):
    """A retriever whose first ``depth`` hits are reordered by a reranker."""

    scale = ScoreScale.ORDER

    def __init__(self, base: Retriever, reranker: Reranker, *, depth: int = 50) -> None:
        if depth < 1:
            raise ParameterError(f"depth is {depth}; it must be 1 or more")
        self.base, self.reranker, self.depth = base, reranker, depth

    @property
    def card(self) -> ModelCard:
        """The base's card, with the reranker named."""
        base, reranker = self.base.card, self.reranker.card
        return replace(
            base,
            name=f"{base.name}, reranked by {reranker.name}",
            spec=f"{base.spec} > {reranker.spec}",
            note=f"first {self.depth} reranked",
        )

    @property
    def fingerprint(self) -> str:
        """Combines both fingerprints and the depth."""
        return content_fingerprint(
            "reranked 1", f"depth={self.depth}", self.base.fingerprint, self.reranker.fingerprint
        )

    def fit(self, documents: Iterable[str]) -> FittedRerankedRetriever:
        """Fit the base, and keep the documents for the reranker."""
        texts = check_nonempty_texts(documents, "documents")
        return FittedRerankedRetriever(self, self.base.fit(texts), texts)


class FittedRerankedRetriever(FittedRetriever):
    """The fitted base and the documents that the reranker reads."""

    def __init__(self, system: RerankedRetriever, base: FittedRetriever, documents: Sequence[str]) -> None:
        self.documents = len(base)
        self.bytes_per_score = base.bytes_per_score + 8
        self._base = base
        self._options: dict[str, Any] = {"reranker": system.reranker, "documents": documents}
        self._depth = system.depth

    def search(self, queries: Iterable[str], k: int) -> Neighbors:
        """The first k after the first ``depth`` were reranked."""
        queries = self.require(queries, k)
        hits = self._base.search(queries, min(max(k, self._depth), self.documents))
        self.index_recall = self._base.index_recall
        reranked = rerank(hits, queries=queries, depth=self._depth, **self._options)
        return Neighbors(reranked.indices[:, :k], reranked.scores[:, :k])

    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        """Reranked documents score above 0 by their new order, all others 0 or less by their old one."""
        for part, scores in self._base.row_blocks(queries, rows):
            with portion(part.start / len(queries), part.stop / len(queries)):
                reranked = reranked_scores(scores, queries=queries[part], depth=self._depth, **self._options)
            yield part, reranked


def _require(hits: Neighbors, queries: Sequence[str], documents: Sequence[str], depth: int | None) -> None:
    if len(hits) != len(queries):
        raise ShapeError(f"the number of queries is {len(queries)}, but there are hits for {len(hits)}")
    if depth is not None and depth < 1:
        raise ParameterError(f"depth is {depth}; it must be 1 or more")
    if hits.indices.size and not 0 <= hits.indices.min() <= hits.indices.max() < len(documents):
        raise InputError(
            f"a hit is document {hits.indices.max()}, but there are {len(documents)} documents",
            hint="pass the documents that were searched",
        )


def _check_scores(scores: Floats, count: int, reranker: Reranker, query: str) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (count,):
        raise ShapeError(f"{reranker.card.name} gave scores of shape {values.shape} for {count} documents")
    if not np.isfinite(values).all():
        raise NotFiniteError(
            f"{reranker.card.name} gave NaN or infinity for the query {query[:60]!r}",
            hint="check its documents: they may be empty",
        )
    return values


class RetrieverReranker(Reranker):
    """A retriever as a reranker, fitted on the candidates of each query, so words common to all have a low weight."""

    def __init__(self, system: Retriever) -> None:
        self.system = system

    @property
    def card(self) -> ModelCard:
        """The retriever's card."""
        return self.system.card

    @property
    def fingerprint(self) -> str:
        """The retriever's fingerprint, marked as a reranker."""
        return content_fingerprint("candidates 1", self.system.fingerprint)

    def score(self, query: str, documents: Sequence[str]) -> Floats:
        """The retriever's scores over these documents alone."""
        if not documents:
            return np.empty(0)
        ((_, scores),) = self.system.fit(documents).score_blocks([query])
        return scores[0].astype(np.float64)


class FusionReranker(Reranker):
    """The sum of ``1 / (k + rank)`` over the parts; equal scores share the expectation over their orders."""

    def __init__(self, parts: Sequence[Reranker], *, k: float = RRF_K) -> None:
        if len(parts) < 2:
            raise ParameterError(f"fusion: has {len(parts)} parts", hint="fuse two rerankers or more")
        if not 0.0 <= k < np.inf:
            raise ParameterError(f"k is {k} in fusion:", hint="k is a number of 0 or more; 60 is usual")
        self._parts, self._k = tuple(parts), float(k)

    @classmethod
    def from_spec(cls, spec: ModelSpec) -> FusionReranker:
        """From ``fusion:maxsim:+bm25:``: each part is a reranker, or any retriever."""
        check_nameless(ModelSpec(spec.kind, "", spec.options), ("k",))
        if not spec.name:
            raise ParameterError(
                "'fusion' names no rerankers", hint="write fusion:a+b, such as fusion:maxsim:minilm+bm25:"
            )
        return cls([_part(part) for part in split_parts(spec.name, "fusion:a+b")], k=number_option(spec, "k", RRF_K))

    @property
    def parts(self) -> tuple[Reranker, ...]:
        """The rerankers whose ranks are fused."""
        return self._parts

    def with_parts(self, change: Callable[[Reranker], Reranker]) -> FusionReranker:
        """The same fusion of changed parts."""
        return FusionReranker([change(part) for part in self._parts], k=self._k)

    @property
    def card(self) -> ModelCard:
        """The parts by name."""
        cards = [part.card for part in self._parts]
        return ModelCard(
            " + ".join(card.name for card in cards),
            "fusion:" + "+".join(card.spec for card in cards),
            note=f"reciprocal rank fusion of the candidates, k = {self._k:g}",
        )

    @property
    def fingerprint(self) -> str:
        """Combines the fingerprints of the parts."""
        return content_fingerprint(f"fusion 1 k={self._k!r}", *(part.fingerprint for part in self._parts))

    def score_many(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> list[Floats]:
        """Each part scores all queries in its batches."""
        totals = [np.zeros(len(candidates)) for candidates in documents]
        for part in self._parts:
            for total, scores in zip(totals, part.score_many(queries, documents), strict=True):
                if len(total):
                    total += reciprocal_ranks(np.asarray(scores)[None, :], self._k)[0]
        return totals


class MemoisedReranker(Reranker):
    """A pairwise reranker that scores each document for a query once; with a cache, once for all runs.

    The first query with new documents is scored separately, to measure the time per pair.
    """

    pairwise = True

    def __init__(self, inner: Reranker, cache: VectorCache | None = None) -> None:
        self._inner, self._cache = inner, cache
        self._scores: dict[tuple[str, str], float] = {}

    @property
    def card(self) -> ModelCard:
        """The card of the reranker."""
        return self._inner.card

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the reranker."""
        return self._inner.fingerprint

    def score_many(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> list[Floats]:
        """Stored scores, and new ones for the documents that were not scored for the query before."""
        missing = self._missing(queries, documents)
        if self._cache is not None and any(missing):
            self._read(self._cache, queries, missing)
            missing = self._missing(queries, documents)
        if any(missing):
            new = self._measure(queries, missing)
            rest = [
                [text for text in texts if (query, text) not in new]
                for query, texts in zip(queries, missing, strict=True)
            ]
            new |= self._new_scores(queries, rest)
            self._scores |= new
            if self._cache is not None:
                self._write(self._cache, new)
        return [
            np.array([self._scores[query, text] for text in texts], dtype=np.float64)
            for query, texts in zip(queries, documents, strict=True)
        ]

    def _new_scores(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> dict[tuple[str, str], float]:
        return {
            (query, text): score
            for query, texts, scores in zip(queries, documents, self._inner.score_many(queries, documents), strict=True)
            for text, score in zip(texts, scores.tolist(), strict=True)
        }

    @property
    def seconds_per_pair(self) -> float | None:
        """The shortest measured time for a document of one query on this machine; None without a measurement."""
        stored = self._cache.read_measurement(self._measurement_key) if self._cache is not None else None
        return (stored or {}).get(_SECONDS_PER_PAIR, _MEASURED.get(self._inner))

    @property
    def _measurement_key(self) -> str:
        return f"{_SECONDS_PER_PAIR} {self.fingerprint}"

    def _measure(self, queries: Sequence[str], missing: Sequence[Sequence[str]]) -> dict[tuple[str, str], float]:
        """The scores of one query, timed; none if the time is known. The first document only loads the model."""
        query, texts = max(zip(queries, missing, strict=True), key=lambda pair: len(pair[1]))
        fresh = self._cache is not None and self._cache.read_measurement(
            self._measurement_key, max_age=MEASUREMENT_SECONDS
        )
        if len(texts) < 2 or fresh or (self._cache is None and self._inner in _MEASURED):
            return {}
        scores = self._new_scores([query], [texts[:1]])
        start = perf_counter()
        scores |= self._new_scores([query], [texts[1:]])
        seconds = (perf_counter() - start) / (len(texts) - 1)
        _MEASURED[self._inner] = seconds = min(seconds, self.seconds_per_pair or seconds)
        if self._cache is not None:
            self._cache.write_measurement(self._measurement_key, {_SECONDS_PER_PAIR: seconds})
        return scores

    def _missing(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> list[list[str]]:
        return [
            [text for text in dict.fromkeys(texts) if (query, text) not in self._scores]
            for query, texts in zip(queries, documents, strict=True)
        ]

    def _read(self, cache: VectorCache, queries: Sequence[str], missing: Sequence[Sequence[str]]) -> None:
        pairs = [(query, text) for query, texts in zip(queries, missing, strict=True) for text in texts]
        hits = cache.lookup(self.fingerprint, RERANKED, [_pair_text(*pair) for pair in pairs], SCORE_PARTS)
        for position, score in zip(hits.positions.tolist(), hits.vectors.astype(np.float64).sum(axis=1), strict=True):
            self._scores[pairs[position]] = float(score)

    def _write(self, cache: VectorCache, scores: Mapping[tuple[str, str], float]) -> None:
        residual = np.array(list(scores.values()))
        if np.isfinite(residual).all():
            parts = []
            for _ in range(SCORE_PARTS):
                parts.append(residual.astype(np.float32))
                residual = residual - parts[-1]
            cache.note_name(self.fingerprint, self.card.name)
            texts = [_pair_text(*pair) for pair in scores]
            cache.put_many(self.fingerprint, RERANKED, texts, np.stack(parts, axis=1))


_SECONDS_PER_PAIR = "seconds_per_pair"
_MEASURED: WeakKeyDictionary[Reranker, float] = WeakKeyDictionary()
"""The time per pair of rerankers without a cache."""

RERANKED = "reranked"
"""The variant of cached scores: a pair of texts takes the place of a text, and a score that of a vector."""
SCORE_PARTS = 3
"""A score is cached as the sum of three 32-bit numbers, which together have the 53 bits of a 64-bit number."""


def _pair_text(query: str, document: str) -> str:
    return f"{len(query)} {query}{document}"


def memoise_reranker(model: Reranker, cache: VectorCache | None = None) -> Reranker:
    """A reranker with the same scores that reads each pair of query and document once, if that is possible."""
    if model.pairwise:
        # A model given as an object has no lasting fingerprint.
        return MemoisedReranker(model, None if model.card.origin == "object" else cache)
    if isinstance(model, FusionReranker):
        return model.with_parts(lambda part: memoise_reranker(part, cache))
    return model


def _part(text: str) -> Reranker:
    kind = text.partition(":")[0].casefold()
    if kind == "fusion":
        raise ParameterError("fusions cannot be nested", hint="name all rerankers in one fusion")
    return reranker(text) if kind in RERANKERS else RetrieverReranker(retriever(text))
