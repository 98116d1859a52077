"""``maxsim:``: late interaction. Every token of the query looks for its nearest token in the document.

Khattab and Zaharia, SIGIR 2020, over the token vectors of any sentence-transformers model; no weights of its
own, so it works offline with the packaged MiniLM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from equipoise.embed.card import Card
from equipoise.embed.encoder import Vectors
from equipoise.embed.quantise import unit
from equipoise.embed.rerank.rerank import Reranker
from equipoise.embed.retriever import fingerprint_of
from equipoise.embed.spec import Spec
from equipoise.types import Floats

_CHARACTERS_AT_ONCE = 1 << 21
"""Documents whose token vectors are held at a time: some 500,000 tokens, under a GB for 384 dimensions."""


class TokenEncoder(Protocol):
    """What late interaction needs of a model: a vector for each token of a text, without special tokens."""

    card: Card
    identity: str

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        """One array (tokens, dims) a text."""


class MaxSim(Reranker):
    """The mean over the query's tokens of the largest cosine with a token of the document; in [-1, 1]."""

    def __init__(self, encoder: TokenEncoder) -> None:
        self._encoder = encoder

    @classmethod
    def from_spec(cls, spec: Spec) -> MaxSim:
        """From ``maxsim:``, which takes MiniLM, or ``maxsim:NAME``."""
        from equipoise.embed.rerank.token_vectors import load_token_encoder

        return cls(load_token_encoder(spec))

    @property
    def card(self) -> Card:
        """What is known of the model."""
        facts = self._encoder.card.to_dict()
        return Card(**{**facts, "name": f"MaxSim of {facts['name']}", "note": "late interaction of tokens"})

    @property
    def fingerprint(self) -> str:
        """The model's identity."""
        return fingerprint_of("maxsim 1", self._encoder.identity)

    def score(self, query: str, documents: Sequence[str]) -> Floats:
        """One query at a time."""
        return self.score_many([query], [documents])[0]

    def score_many(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> list[Floats]:
        """Each distinct document of a group of queries is embedded once."""
        asked = _units(self._encoder, list(dict.fromkeys(queries)))
        scores: list[Floats] = []
        for group in _groups(documents):
            known = _units(
                self._encoder, list(dict.fromkeys(text for own in documents[group] for text in own))
            )
            for query, own in zip(queries[group], documents[group], strict=True):
                scores.append(_max_sims(asked[query], [known[text] for text in own]))
        return scores


def _max_sims(query: Vectors, documents: Sequence[Vectors]) -> Floats:
    """One product with the tokens of all documents, then the maximum over those of each."""
    if not documents:
        return np.empty(0)
    lengths = np.array([len(document) for document in documents])
    if len(query) == 0:
        return np.zeros(len(documents))
    # A document without tokens borrows a zero vector: its cosine with anything is 0.
    filled = [
        document if len(document) else np.zeros((1, query.shape[1]), np.float32) for document in documents
    ]
    starts = np.cumsum(np.maximum(lengths, 1)) - np.maximum(lengths, 1)
    cosines = query @ np.concatenate(filled).T
    largest: Any = np.maximum.reduceat(cosines, starts, axis=1)
    return largest.mean(axis=0, dtype=np.float64)


def _units(encoder: TokenEncoder, texts: list[str]) -> dict[str, Vectors]:
    return (
        {text: unit(own) for text, own in zip(texts, encoder.token_vectors(texts), strict=True)}
        if texts
        else {}
    )


def _groups(documents: Sequence[Sequence[str]]) -> Iterator[slice]:
    """Slices of queries whose documents together are not too long to hold."""
    start = characters = 0
    for place, own in enumerate(documents):
        size = sum(map(len, own))
        if place > start and characters + size > _CHARACTERS_AT_ONCE:
            yield slice(start, place)
            start, characters = place, 0
        characters += size
    yield slice(start, len(documents))
