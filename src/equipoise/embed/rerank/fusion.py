"""A reranker out of several: the reciprocal ranks that they give the candidates of a query are added."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.embed.card import Card
from equipoise.embed.fusion import RRF_K, reciprocal_ranks, split_parts
from equipoise.embed.options import number_option, refuse_unknown_options
from equipoise.embed.rerank.rerank import RERANKERS, Reranker, reranker
from equipoise.embed.retriever import Retriever, fingerprint_of, retriever
from equipoise.embed.spec import Spec
from equipoise.errors import ParameterError
from equipoise.types import Floats


class CandidateRetriever(Reranker):
    """A retriever as a judge: fitted on the candidates of each query, so words common to all weigh little."""

    def __init__(self, system: Retriever) -> None:
        self._system = system

    @property
    def card(self) -> Card:
        """The retriever's own."""
        return self._system.card

    @property
    def fingerprint(self) -> str:
        """The retriever's own, as a judge."""
        return fingerprint_of("candidates 1", self._system.fingerprint)

    def score(self, query: str, documents: Sequence[str]) -> Floats:
        """The retriever's scores over these documents alone."""
        if not documents:
            return np.empty(0)
        ((_, scores),) = self._system.fit(documents).score_blocks([query])
        return scores[0].astype(np.float64)


class FusionReranker(Reranker):
    """The sum of ``1 / (k + rank)`` over the parts; equal scores share the expectation over their orders."""

    def __init__(self, parts: Sequence[Reranker], *, k: float = RRF_K) -> None:
        if len(parts) < 2:
            raise ParameterError(f"fusion: has {len(parts)} parts", hint="fuse two judges or more")
        if not 0.0 <= k < np.inf:
            raise ParameterError(f"k is {k} in fusion:", hint="k is a number of 0 or more; 60 is usual")
        self._parts, self._k = tuple(parts), float(k)

    @classmethod
    def from_spec(cls, spec: Spec) -> FusionReranker:
        """From ``fusion:maxsim:+bm25:``: each part is a reranker, or any retriever."""
        refuse_unknown_options(Spec(spec.kind, "", spec.options), ("k",))
        return cls([_part(part) for part in split_parts(spec.name)], k=number_option(spec, "k", RRF_K))

    @property
    def card(self) -> Card:
        """The parts by name."""
        cards = [part.card for part in self._parts]
        return Card(
            " + ".join(card.name for card in cards),
            "fusion:" + "+".join(card.spec for card in cards),
            note=f"reciprocal rank fusion of the candidates, k = {self._k:g}",
        )

    @property
    def fingerprint(self) -> str:
        """Made of the fingerprints of the parts."""
        return fingerprint_of(f"fusion 1 k={self._k!r}", *(part.fingerprint for part in self._parts))

    def score(self, query: str, documents: Sequence[str]) -> Floats:
        """One query at a time."""
        return self.score_many([query], [documents])[0]

    def score_many(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> list[Floats]:
        """Each part judges all queries in its own batches."""
        totals = [np.zeros(len(own)) for own in documents]
        for part in self._parts:
            for total, scores in zip(totals, part.score_many(queries, documents), strict=True):
                if len(total):
                    total += reciprocal_ranks(np.asarray(scores)[None, :], self._k)[0]
        return totals


def _part(text: str) -> Reranker:
    kind = text.partition(":")[0].casefold()
    if kind == "fusion":
        raise ParameterError("fusions cannot be nested", hint="name all judges in one fusion")
    return reranker(text) if kind in RERANKERS else CandidateRetriever(retriever(text))
