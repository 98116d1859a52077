"""Checking an answer: as many vectors as texts, in their order, of one length, all numbers; else an error."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.embed.encoder import Vectors
from equipoise.embed.hosted.retry import Refusal, Refused

_FLOAT = np.dtype("<f4")


@dataclass(frozen=True, slots=True)
class Answer:
    """The vectors of one request, and the tokens that it was billed for where the server says."""

    vectors: Vectors
    tokens: int | None


def read_answer(items: Any, texts: int, dims: int | None, tokens: int | None) -> Answer:
    """The rows of an answer in the order of the texts; raises ``Refused`` when anything is amiss.

    Each item has an ``embedding``, a list of numbers or base64 of little-endian float32, and an ``index``;
    where no item has one, they stand in order.
    """
    if not isinstance(items, list | tuple):
        raise _wrong("something that is no list of vectors")
    if len(items) != texts:
        raise _wrong(f"{len(items)} vectors for {texts} texts")
    rows = [_row(_field(item, "embedding")) for item in items]
    order = _order([_field(item, "index") for item in items])
    lengths = {len(row) for row in rows} | ({dims} if dims is not None else set())
    if len(lengths) != 1 or lengths == {0}:
        found = " and ".join(str(length) for length in sorted(lengths))
        raise _wrong(f"vectors of {found} dimensions, where all must be alike")
    vectors = np.empty((texts, len(rows[0])), dtype=np.float32)
    for place, row in zip(order, rows, strict=True):
        vectors[place] = row
    if not np.isfinite(vectors).all():
        raise _wrong("a vector with NaN or infinity")
    if not vectors.any(axis=1).all():
        raise _wrong("a vector of zeros")
    return Answer(vectors, tokens if type(tokens) is int and tokens >= 0 else None)


def _order(indexes: Sequence[Any]) -> list[int]:
    """The row of each item: every number from 0 once. ``True`` is an int in Python, but no index."""
    if all(index is None for index in indexes):
        return list(range(len(indexes)))
    if not all(type(index) is int for index in indexes) or sorted(indexes) != list(range(len(indexes))):
        raise _wrong(f"the indexes {', '.join(map(repr, indexes[:5]))}..., which do not number the texts")
    return list(indexes)


def _row(embedding: Any) -> Vectors:
    try:
        if isinstance(embedding, str):
            return np.frombuffer(base64.b64decode(embedding, validate=True), dtype=_FLOAT)
        # Without a dtype numpy tells what was sent: with one, "1" and true would become 1.0.
        found = np.asarray(embedding)
        if found.ndim != 1 or found.dtype.kind not in "iuf" or _has_bool(embedding):
            raise _wrong("something that is no vector")
        with np.errstate(over="ignore"):
            return found.astype(np.float32)
    except (TypeError, ValueError, OverflowError):
        raise _wrong("something that is no vector") from None


def _has_bool(embedding: Any) -> bool:
    """Whether a boolean is among numbers, where numpy takes it for 0 or 1."""
    return not isinstance(embedding, np.ndarray) and any(isinstance(value, bool) for value in embedding)


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def _wrong(what: str) -> Refused:
    return Refused(Refusal(f"the server answered with {what}", wrong=True))
