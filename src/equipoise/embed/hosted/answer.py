"""Checking an answer: as many vectors as texts, in their order, of one length, all numbers; else an error."""

from __future__ import annotations

import base64
import binascii
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


def read_answer(items: Sequence[Any], texts: int, dims: int | None, tokens: int | None) -> Answer:
    """The rows of an answer in the order of the texts; raises ``Refused`` when anything is amiss.

    Each item has an ``embedding``, a list of numbers or base64 of little-endian float32, and an ``index``;
    where no item has one, they stand in order.
    """
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
    return Answer(vectors, tokens if isinstance(tokens, int) and tokens >= 0 else None)


def _order(indexes: Sequence[Any]) -> list[int]:
    """Where each item belongs."""
    if all(index is None for index in indexes):
        return list(range(len(indexes)))
    if sorted(index if isinstance(index, int) else -1 for index in indexes) != list(range(len(indexes))):
        raise _wrong(f"the indexes {', '.join(map(str, indexes[:5]))}..., which do not number the texts")
    return list(indexes)


def _row(embedding: Any) -> Vectors:
    try:
        if isinstance(embedding, str):
            return np.frombuffer(base64.b64decode(embedding, validate=True), dtype=_FLOAT)
        with np.errstate(over="ignore"):
            row = np.asarray(embedding, dtype=np.float64).astype(np.float32)
    except (TypeError, ValueError, binascii.Error):
        raise _wrong("something that is no vector") from None
    if row.ndim != 1:
        raise _wrong("something that is no vector")
    return row


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def _wrong(what: str) -> Refused:
    return Refused(Refusal(f"the server answered with {what}", wrong=True))
