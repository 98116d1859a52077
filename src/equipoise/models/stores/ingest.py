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
"""Vectors that are sent together: what is lost at most when the store goes away."""

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
    hint: str = "give these vectors a collection of their own",
) -> int:
    """Put ``total`` vectors into a store, in their order, going on behind what it holds; how many were sent.

    Where some are missing further ahead, all are sent: an id that is there is replaced. A store that fails
    keeps what it has, and the error says so. ``hint`` is the advice when it holds something else.
    """
    held = store.count()
    if held > total:
        raise ParameterError(f"{store.named} holds {held:,} vectors and there are {total:,}", hint=hint)
    if held == total:
        return 0
    try:
        # The last block may have arrived in part, so it is sent again.
        sent = _send(store, blocks, held - held % BATCH_ROWS, watch)
        count = store.count()
        if count < total and sent < total:
            sent = _send(store, blocks, 0, watch)
            count = store.count()
    except StoreError as error:
        raise PartialError(
            f"{error.message}; the store was being filled",
            hint="what is stored stays: the same command goes on behind it once the store is back",
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

    Vectors that are not there yet are no fault, unless the store is as full as it should be.
    """
    held = store.count()
    if not held or held > total:
        return
    rows = np.unique(np.linspace(0, held - 1, N_SAMPLED_ROWS).astype(np.int64))
    found = store.vectors([str(row) for row in rows.tolist()])
    there = ~np.isnan(found).any(axis=1)
    if held == total and not there.all():
        raise ParameterError(f"{store.named} holds {held:,} vectors, and none with the id {rows[~there][0]}", hint=hint)
    with np.errstate(over="ignore"):  # what no store could take is refused when it is sent
        own = take(rows).astype(np.float32)
    own = unit_rows(own) if store.geometry == "cosine" else own
    apart = np.linalg.norm(found.astype(np.float64) - own, axis=1)
    size = np.linalg.norm(own.astype(np.float64), axis=1)
    others = np.flatnonzero(there & (apart > _ROUNDING * size))
    if len(others):
        raise ParameterError(
            f"{store.named} holds other vectors: {len(others):,} of the {int(there.sum()):,} that were "
            f"looked at are not those of the corpus, beginning with the id {rows[others[0]]}",
            hint=hint,
        )
