"""Write many vectors into a store in batches, resume after a failure, and verify existing vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import ParameterError, PartialError, StoreError
from equipoise.models.stores.base import VectorStore, unit_rows

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors
    from equipoise.types import Ints

BATCH_ROWS = 5_000
"""Vectors per request: the maximum that is lost when the connection fails."""

Block = tuple[int, Sequence[str], Any, Sequence[str] | None]
"""The row of the first vector, the ids, the vectors and, where there are any, the texts."""

Blocks = Callable[[int, int], Iterable[Block]]
"""The vectors from a row on, so many a block."""


def ingest(
    store: VectorStore,
    total: int,
    blocks: Blocks,
    watch: Callable[[int], None] | None = None,
    *,
    hint: str = "use a separate collection for these vectors",
) -> int:
    """Put ``total`` vectors into a store, in their order, after those it already has; returns the number sent.

    Where some are missing further ahead, all are sent: an id that is there is replaced. A store that fails
    keeps its vectors, and the error reports it. ``hint`` is for a store with other vectors.
    """
    n_stored = store.count()
    if n_stored > total:
        raise ParameterError(f"{store.named} holds {n_stored:,} vectors and there are {total:,}", hint=hint)
    if n_stored == total:
        return 0
    try:
        # The last block may have arrived in part, so it is sent again.
        sent = _send(store, blocks, n_stored - n_stored % BATCH_ROWS, watch)
        count = store.count()
        if count < total and sent < total:
            sent = _send(store, blocks, 0, watch)
            count = store.count()
    except StoreError as error:
        raise PartialError(
            f"{error.message}; the store was being filled",
            hint="stored vectors are kept: the same command resumes once the store is reachable",
        ) from error
    if count != total:
        raise StoreError(f"{store.named} holds {count:,} vectors after {total:,} were put into it", hint=hint)
    return sent


def _send(store: VectorStore, blocks: Blocks, start: int, watch: Callable[[int], None] | None) -> int:
    """Everything from a row on; how many vectors that were."""
    sent = 0
    for first, ids, vectors, texts in blocks(start, BATCH_ROWS):
        if watch is not None:
            watch(first)
        store.add(ids, vectors, texts)
        sent += len(ids)
    return sent


# Verify that an existing collection has the expected vectors.

N_SAMPLED_ROWS = 256
"""Vectors that are fetched and compared, evenly spread over those that should be there."""

_ROUNDING = 1e-5


def check_same_vectors(store: VectorStore, total: int, take: Callable[[Ints], Vectors], *, hint: str) -> None:
    """Compare some of what a store holds with the vectors by row; the id of a row is its number.

    Missing vectors are not an error, unless the store has as many vectors as expected.
    """
    n_stored = store.count()
    if not n_stored or n_stored > total:
        return
    rows = np.unique(np.linspace(0, n_stored - 1, N_SAMPLED_ROWS).astype(np.int64))
    stored = store.vectors([str(row) for row in rows.tolist()])
    is_stored = ~np.isnan(stored).any(axis=1)
    if n_stored == total and not is_stored.all():
        raise ParameterError(
            f"{store.named} holds {n_stored:,} vectors, and none with the id {rows[~is_stored][0]}", hint=hint
        )
    with np.errstate(over="ignore"):  # overflow is an error when the vectors are sent
        expected = take(rows).astype(np.float32)
    expected = unit_rows(expected) if store.geometry == "cosine" else expected
    distances = np.linalg.norm(stored.astype(np.float64) - expected, axis=1)
    size = np.linalg.norm(expected.astype(np.float64), axis=1)
    others = np.flatnonzero(is_stored & (distances > _ROUNDING * size))
    if len(others):
        raise ParameterError(
            f"{store.named} holds other vectors: {len(others):,} of the {int(is_stored.sum()):,} that were "
            f"looked at are not those of the corpus, beginning with the id {rows[others[0]]}",
            hint=hint,
        )
