"""Many vectors into a store, some thousands at a time: what has arrived stays, whatever happens next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from equipoise.embed.stores.base import Store
from equipoise.errors import ParameterError, PartialError, StoreError

AT_ONCE = 5_000
"""Vectors that are sent together: what is lost at most when the store goes away."""

Block = tuple[int, Sequence[str], Any, Sequence[str] | None]
"""The row of the first vector, the ids, the vectors and, where there are any, the texts."""

Blocks = Callable[[int, int], Iterable[Block]]
"""The vectors from a row on, so many a block."""


def fill(
    store: Store,
    total: int,
    blocks: Blocks,
    watch: Callable[[int], None] | None = None,
    *,
    remedy: str = "give these vectors a collection of their own",
) -> int:
    """Put ``total`` vectors into a store, in their order, going on behind what it holds; how many were sent.

    Where some are missing further ahead, all are sent: an id that is there is replaced. A store that fails
    keeps what it has, and the error says so. ``remedy`` is the advice when it holds something else.
    """
    held = store.count()
    if held > total:
        raise ParameterError(f"{store.named} holds {held:,} vectors and there are {total:,}", hint=remedy)
    if held == total:
        return 0
    try:
        # The last block may have arrived in part, so it is sent again.
        sent = _send(store, blocks, held - held % AT_ONCE, watch)
        count = store.count()
        if count < total and sent < total:
            sent = _send(store, blocks, 0, watch)
            count = store.count()
    except StoreError as error:
        raise PartialError(
            f"{error.sentence}; the store was being filled",
            hint="what is stored stays: the same command goes on behind it once the store is back",
        ) from error
    if count != total:
        raise StoreError(
            f"{store.named} holds {count:,} vectors after {total:,} were put into it", hint=remedy
        )
    return sent


def _send(store: Store, blocks: Blocks, start: int, watch: Callable[[int], None] | None) -> int:
    """Everything from a row on; how many vectors that were."""
    sent = 0
    for first, ids, vectors, texts in blocks(start, AT_ONCE):
        if watch is not None:
            watch(first)
        store.add(ids, vectors, texts)
        sent += len(ids)
    return sent
