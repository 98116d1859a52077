"""Semantic similarity: cosines of text pairs compared with human scores, and the encoder interface of the tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError, NotFiniteError, ShapeError
from equipoise.evidence.base import to_numpy
from equipoise.evidence.pairs import Pairs
from equipoise.geometry.distances import cosine

if TYPE_CHECKING:
    from equipoise.domains.concepts.concept_set import ConceptPair
    from equipoise.types import Floats

Encode = Callable[[Sequence[str]], Any]
"""One row a text, in order; ``embedder("minilm").encode`` is one."""


def encode_checked(encode: Encode, texts: Sequence[str]) -> Floats:
    """The vectors of the texts in double precision, checked: one row a text, all of them finite."""
    vectors = np.asarray(to_numpy(encode(list(texts))), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.shape[1] == 0:
        raise ShapeError(
            f"the model gave an array of shape {vectors.shape} for {len(texts)} texts",
            hint="its encode must return one row a text",
        )
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        raise NotFiniteError(
            f"the model gave {texts[int(np.argmax(bad))]!r} a vector with NaN or infinity "
            f"({int(bad.sum())} such in all)",
            hint="embed these texts again or leave them out",
        )
    return vectors


def memoized_encoder(encode: Encode, texts: Sequence[str]) -> Encode:
    """An encoder that embeds these texts in one go now, and any others when they are asked for.

    >>> said = []
    >>> encode = memoized_encoder(lambda texts: said.append(texts) or [[1.0]] * len(texts), ["a", "b"])
    >>> len(encode(["b", "a", "b"])), said
    (3, [['a', 'b']])
    """
    once = list(dict.fromkeys(texts))
    known = dict(zip(once, encode_checked(encode, once), strict=True)) if once else {}

    def lookup(asked: Sequence[str]) -> Floats:
        more = [text for text in dict.fromkeys(asked) if text not in known]
        if more:
            known.update(zip(more, encode_checked(encode, more), strict=True))
        return np.array([known[text] for text in asked])

    return lookup


def paired_cosine(one: Floats, other: Floats) -> Floats:
    """The cosine of each row with the same row of the other; a vector without a direction has 0."""
    return np.asarray(1.0 - cosine(one, other))


def unit_rows(vectors: Floats) -> Floats:
    """Rows of length one; those without a direction stay zero.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def similarity(encode: Encode, pairs: Sequence[ConceptPair]) -> Pairs:
    """The cosine of each pair's vectors, and the similarity that is expected; a unit is a pair.

    A text without a direction (a zero vector) is as far from everything as can be told: its cosine is 0.

    >>> from equipoise.domains.concepts.concept_set import ConceptPair
    >>> vectors = {"rye": [1.0, 0.0], "wheat": [0.6, 0.8]}
    >>> found = similarity(lambda texts: [vectors[text] for text in texts], [ConceptPair("rye", "wheat", 0.7)])
    >>> found.predicted.round(6).tolist(), found.expected.tolist()
    ([0.6], [0.7])
    """
    if not pairs:
        raise InputError("there are no pairs to compare", hint="a field has them in pairs.json")
    vectors = encode_checked(encode, [text for pair in pairs for text in (pair.first, pair.second)])
    return Pairs.of(
        paired_cosine(vectors[::2], vectors[1::2]),
        [pair.expected for pair in pairs],
        unit_ids=[pair.id for pair in pairs],
    )


def row_cosines(one: Any, other: Any) -> Floats:
    """The cosine of each row with the same row of the other, for arrays or sparse matrices of unit rows.

    >>> row_cosines(np.eye(2), np.array([[0.6, 0.8], [0.0, 0.0]])).round(6).tolist()
    [0.6, 0.0]
    """
    if isinstance(one, np.ndarray):
        return paired_cosine(one.astype(np.float64), np.asarray(other, dtype=np.float64))
    return np.asarray(one.multiply(other).sum(axis=1), dtype=np.float64).ravel()
