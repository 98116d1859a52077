"""What a task needs of a model: texts in, vectors out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from equipoise.errors import NotFiniteError, ShapeError
from equipoise.evidence.columns import host
from equipoise.geometry.functions import cosine
from equipoise.types import Floats

Encode = Callable[[Sequence[str]], Any]
"""One row a text, in order; ``embedder("minilm").encode`` is one."""


def encoded(encode: Encode, texts: Sequence[str]) -> Floats:
    """The vectors of the texts in double precision, checked: one row a text, all of them finite."""
    vectors = np.asarray(host(encode(list(texts))), dtype=np.float64)
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


def remembered(encode: Encode, texts: Sequence[str]) -> Encode:
    """An encoder that embeds these texts in one go now, and any others when they are asked for.

    >>> said = []
    >>> encode = remembered(lambda texts: said.append(texts) or [[1.0]] * len(texts), ["a", "b"])
    >>> len(encode(["b", "a", "b"])), said
    (3, [['a', 'b']])
    """
    once = list(dict.fromkeys(texts))
    known = dict(zip(once, encoded(encode, once), strict=True)) if once else {}

    def lookup(asked: Sequence[str]) -> Floats:
        more = [text for text in dict.fromkeys(asked) if text not in known]
        if more:
            known.update(zip(more, encoded(encode, more), strict=True))
        return np.array([known[text] for text in asked])

    return lookup


def row_cosines(one: Floats, other: Floats) -> Floats:
    """The cosine of each row with the same row of the other; a vector without a direction has 0."""
    return np.asarray(1.0 - cosine(one, other))


def unit_rows(vectors: Floats) -> Floats:
    """Rows of length one; those without a direction stay zero.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
