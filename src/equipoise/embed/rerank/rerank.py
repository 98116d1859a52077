"""Second stage: a slower judge puts the first hits of a retriever into another order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Protocol

import numpy as np

from equipoise.embed.card import Card
from equipoise.embed.lexical.leading import leading_columns
from equipoise.embed.lexical.words import require_texts
from equipoise.embed.retriever import Blocks, Fitted, Retriever, Scale, fingerprint_of
from equipoise.embed.spec import Spec, parse_spec
from equipoise.errors import InputError, NotFiniteError, ParameterError, ShapeError, UnknownNameError
from equipoise.geometry import Neighbours, Points
from equipoise.types import Floats, Ints


class Reranker(ABC):
    """Scores documents for a query by reading them; higher is better. Only the order of one query counts."""

    @property
    @abstractmethod
    def card(self) -> Card:
        """Its name, its spec and what is known of it."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Equal only where the scores are equal."""

    @abstractmethod
    def score(self, query: str, documents: Sequence[str]) -> Floats:
        """One number a document."""

    def score_many(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> list[Floats]:
        """The same for many queries with documents of their own; engines that batch do better than this."""
        return [self.score(query, own) for query, own in zip(queries, documents, strict=True)]


class FromSpec(Protocol):
    """A class of rerankers that can be made from a spec."""

    def from_spec(self, spec: Spec) -> Reranker:
        """The reranker that the spec names."""


RERANKERS: dict[str, tuple[str, str]] = {
    "cross-encoder": ("cross_encoder", "CrossEncoderReranker"),
    "maxsim": ("maxsim", "MaxSim"),
    "fusion": ("fusion", "FusionReranker"),
}
"""Kinds of rerankers: module and class of each."""


def reranker(spec: str | Reranker, **options: object) -> Reranker:
    """The reranker that a spec names: ``cross-encoder:FOLDER``, ``maxsim:minilm``, ``fusion:maxsim:+bm25:``.

    >>> reranker("fusion:bm25:+tfidf:").score("red fox", ["a blue whale", "a red fox"]).argmax()
    np.int64(1)
    """
    if isinstance(spec, Reranker):
        return spec
    kind, _, rest = spec.strip().partition(":")
    if kind.casefold() not in RERANKERS:
        raise UnknownNameError.of(
            "kind of reranker", kind, RERANKERS, more=f"the kinds are {', '.join(RERANKERS)}"
        )
    module, name = RERANKERS[kind.casefold()]
    maker: FromSpec = getattr(import_module(f"equipoise.embed.rerank.{module}"), name)
    if kind.casefold() == "fusion":
        return maker.from_spec(Spec("fusion", rest).with_options(**options))
    # Names and options of rerankers are written as those of models.
    read = parse_spec(f"st:{rest}")
    return maker.from_spec(Spec(kind.casefold(), read.name, read.options, spec).with_options(**options))


def rerank(
    hits: Neighbours,
    judge: Reranker,
    *,
    queries: Sequence[str],
    documents: Sequence[str],
    depth: int | None = None,
    protect: float | None = None,
) -> Neighbours:
    """The hits with the first ``depth`` (all where it is None) in the order of the reranker's scores.

    ``protect``: hits whose own score is above it keep their order, before all that are reranked. Hits beyond
    ``depth`` follow as they were. Scores of two judges have no common scale, so the scores that come back
    only order: minus the number of hits that stand strictly better, equal for equals.
    """
    _require(hits, queries, documents, depth)
    depth = hits.indices.shape[1] if depth is None else min(depth, hits.indices.shape[1])
    stage = np.full(hits.indices.shape, 2)
    stage[:, :depth] = 1
    if protect is not None:
        stage[hits.scores > protect] = 0
    judged = [row[own == 1] for row, own in zip(hits.indices, stage, strict=True)]
    verdicts = judge.score_many(queries, [[documents[place] for place in own.tolist()] for own in judged])
    values = hits.scores.astype(np.float64)
    for row, (own, verdict) in enumerate(zip(stage, verdicts, strict=True)):
        values[row, own == 1] = _checked(verdict, int((own == 1).sum()), judge, queries[row])
    return _ordered(hits.indices, stage, values)


def reranked_scores(
    scores: Points,
    judge: Reranker,
    *,
    queries: Sequence[str],
    documents: Sequence[str],
    depth: int,
    protect: float | None = None,
) -> Points:
    """Scores of all documents after the first ``depth`` were judged.

    Judged ones score above 0 by their new order, all others 0 or less by their old one.
    """
    block: Points = scores.astype(np.float64)
    columns, best = leading_columns(block, min(depth, block.shape[1]))
    judged = rerank(Neighbours(columns, best), judge, queries=queries, documents=documents, protect=protect)
    block -= block.max(axis=1, keepdims=True)
    np.put_along_axis(block, judged.indices, judged.scores + columns.shape[1], axis=1)
    return block


def _ordered(indices: Ints, stage: Ints, values: Floats) -> Neighbours:
    """Stages one after another, in each the best value first, equal values by row; scores that only order."""
    order = np.lexsort((indices, -values, stage), axis=1)
    stage, values = np.take_along_axis(stage, order, 1), np.take_along_axis(values, order, 1)
    fresh = np.ones(order.shape, dtype=bool)
    fresh[:, 1:] = (stage[:, 1:] != stage[:, :-1]) | (values[:, 1:] != values[:, :-1])
    better = np.maximum.accumulate(np.where(fresh, np.arange(order.shape[1]), 0), axis=1)
    return Neighbours(np.take_along_axis(indices, order, 1), 0.0 - better)


class Reranked(Retriever):
    """A retriever whose first ``depth`` hits are put into the order of a reranker."""

    def __init__(
        self, base: Retriever, judge: Reranker, *, depth: int = 50, protect: float | None = None
    ) -> None:
        if depth < 1:
            raise ParameterError(f"depth is {depth}; it must be 1 or more")
        self.base, self.judge, self.depth, self.protect = base, judge, depth, protect

    @property
    def card(self) -> Card:
        """The base's card, with the judge named."""
        base, judge = self.base.card, self.judge.card
        guard = "" if self.protect is None else f", above {self.protect:g} protected"
        facts = base.to_dict() | {
            "name": f"{base.name}, reranked by {judge.name}",
            "spec": f"{base.spec} > {judge.spec}",
            "note": f"first {self.depth} reranked{guard}",
        }
        return Card(**facts)

    @property
    def fingerprint(self) -> str:
        """Made of both parts, the depth and the protection."""
        shape = f"depth={self.depth} protect={self.protect!r}"
        return fingerprint_of("reranked 1", shape, self.base.fingerprint, self.judge.fingerprint)

    @property
    def scale(self) -> Scale:
        """Only the order counts."""
        return Scale.ORDER

    def fit(self, documents: Iterable[str]) -> FittedReranked:
        """Fit the base, and keep the documents for the judge."""
        texts = require_texts(documents, "documents")
        return FittedReranked(self, self.base.fit(texts), texts)


class FittedReranked(Fitted):
    """The fitted base and the documents that the judge reads."""

    def __init__(self, system: Reranked, base: Fitted, documents: Sequence[str]) -> None:
        self.documents = len(base)
        self.bytes_a_score = base.bytes_a_score + 8
        self._system, self._base, self._texts = system, base, documents

    def search(self, queries: Iterable[str], k: int) -> Neighbours:
        """The first k after the first ``depth`` were judged."""
        queries = self.require(queries, k)
        found = self._base.search(queries, min(max(k, self._system.depth), self.documents))
        self.index_recall = self._base.index_recall
        judged = self._judged(found, queries)
        return Neighbours(judged.indices[:, :k], judged.scores[:, :k])

    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        """Judged documents score above 0 by their new order, all others 0 or less by their old one."""
        for part, scores in self._base.row_blocks(queries, rows):
            yield (
                part,
                reranked_scores(
                    scores,
                    self._system.judge,
                    queries=queries[part],
                    documents=self._texts,
                    depth=self._system.depth,
                    protect=self._system.protect,
                ),
            )

    def _judged(self, found: Neighbours, queries: Sequence[str]) -> Neighbours:
        return rerank(
            found,
            self._system.judge,
            queries=queries,
            documents=self._texts,
            depth=self._system.depth,
            protect=self._system.protect,
        )


def _require(hits: Neighbours, queries: Sequence[str], documents: Sequence[str], depth: int | None) -> None:
    if len(hits) != len(queries):
        raise ShapeError(f"there are hits for {len(hits)} queries and {len(queries)} queries")
    if depth is not None and depth < 1:
        raise ParameterError(f"depth is {depth}; it must be 1 or more")
    if hits.indices.size and not 0 <= hits.indices.min() <= hits.indices.max() < len(documents):
        raise InputError(
            f"a hit is document {hits.indices.max()} and there are {len(documents)} documents",
            hint="give the documents that the hits were found in",
        )


def _checked(verdict: Floats, count: int, judge: Reranker, query: str) -> Floats:
    found = np.asarray(verdict, dtype=np.float64)
    if found.shape != (count,):
        raise ShapeError(f"{judge.card.name} gave scores of shape {found.shape} for {count} documents")
    if not np.isfinite(found).all():
        raise NotFiniteError(
            f"{judge.card.name} gave NaN or infinity for the query {query[:60]!r}",
            hint="look at its documents: they may be empty",
        )
    return found
