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


def fill(
    store: Store,
    total: int,
    blocks: Callable[[int, int], Iterable[Block]],
    watch: Callable[[int], None] | None = None,
) -> None:
    """Put ``total`` vectors into a store, in their order, going on behind what it holds of them.

    ``blocks(row, size)`` gives them from a row on, so many a block. A store that fails keeps what it has, and
    the error says so.
    """
    held = store.count()
    if held > total:
        raise ParameterError(
            f"{store!r} holds {held:,} vectors and there are {total:,}",
            hint="give these vectors a collection of their own",
        )
    try:
        # The last block may have arrived in part, so it is sent again; an id that is there is replaced.
        for first, ids, vectors, texts in blocks(held - held % AT_ONCE, AT_ONCE) if held < total else ():
            if watch is not None:
                watch(first)
            store.add(ids, vectors, texts)
        count = store.count()
    except StoreError as error:
        raise PartialError(
            f"{error.sentence}; the store was being filled",
            hint="what is stored stays: the same command goes on behind it once the store is back",
        ) from error
    if count != total:
        raise StoreError(
            f"{store!r} holds {count:,} vectors after {total:,} were put into it",
            hint="give these vectors a collection of their own",
        )
