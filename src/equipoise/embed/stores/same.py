"""Whether a collection that is there already holds the vectors that it is taken for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from equipoise.embed.encoder import Vectors
from equipoise.embed.stores.base import Store, unit_rows
from equipoise.errors import ParameterError
from equipoise.types import Ints

LOOKED_AT = 256
"""Vectors that are fetched and compared, evenly spread over those that should be there."""

_ROUNDING = 1e-5


def refuse_other_vectors(store: Store, total: int, take: Callable[[Ints], Vectors], *, remedy: str) -> None:
    """Compare some of what a store holds with the vectors by row; the id of a row is its number.

    Vectors that are not there yet are no fault, unless the store is as full as it should be.
    """
    held = store.count()
    if not held or held > total:
        return
    rows = np.unique(np.linspace(0, held - 1, LOOKED_AT).astype(np.int64))
    found = store.vectors([str(row) for row in rows.tolist()])
    there = ~np.isnan(found).any(axis=1)
    if held == total and not there.all():
        raise ParameterError(
            f"{store.named} holds {held:,} vectors, and none with the id {rows[~there][0]}", hint=remedy
        )
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
            hint=remedy,
        )
