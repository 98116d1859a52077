"""How much of the exact answer an approximate index finds, so that its loss is not blamed on the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from equipoise.embed.stores.base import Hits, Store
from equipoise.errors import PairingError, ParameterError
from equipoise.geometry import Neighbours
from equipoise.types import Floats

_ROUNDING = 32 * float(np.finfo(np.float32).eps)


@dataclass(frozen=True, slots=True)
class RecallReport:
    """The share of the k nearest that a store returned, a value a query."""

    k: int
    per_query: Floats

    @property
    def recall(self) -> float:
        """The mean over the queries; NaN without any."""
        return float(self.per_query.mean()) if len(self.per_query) else float("nan")

    @property
    def worst(self) -> float:
        """The least over the queries; NaN without any."""
        return float(self.per_query.min()) if len(self.per_query) else float("nan")

    @property
    def complete(self) -> int:
        """The number of queries for which nothing was missed."""
        return int((self.per_query == 1.0).sum())

    def __str__(self) -> str:
        queries = len(self.per_query)
        return f"index recall@{self.k} {self.recall:.4f} over {queries} queries, {self.complete} complete"


def index_recall(
    store: Store, queries: ArrayLike, exact: Neighbours, k: int, *, ids: Sequence[str] | None = None
) -> RecallReport:
    """Recall@k of a store against exact search over the same vectors.

    ``exact`` holds the k nearest rows of the corpus or more, as ``geometry.nearest`` gives them; ``ids`` are
    the ids of these rows in the store, the row numbers as strings when left out. Where several vectors tie
    for the last place any of them is right: a hit counts when it is among the exact ones or scores as high as
    the last of them, up to the rounding of float32.
    """
    width = min(k, store.count())
    if len(exact) != len(np.asarray(queries)):
        raise PairingError(
            f"there are {len(np.asarray(queries))} queries and exact answers to {len(exact)}",
            hint="search exactly for the same queries",
        )
    if exact.indices.shape[1] < width:
        raise ParameterError(
            f"the exact search is {exact.indices.shape[1]} deep, too little for recall@{k}",
            hint=f"search exactly with k={k} or more",
        )
    return RecallReport(k, recalls(store.search(queries, k), exact, width, ids=ids))


def recalls(hits: Hits, exact: Neighbours, width: int, *, ids: Sequence[str] | None = None) -> Floats:
    """For each query the share of its ``width`` nearest among the hits; NaN where there is nothing to find.

    ``ids`` and ties are those of ``index_recall``.
    """
    names = None if ids is None else np.asarray(ids, dtype=object)
    values = np.full(len(exact), np.nan)
    for row in range(len(exact) if width else 0):
        places, last = exact.indices[row, :width], float(exact.scores[row, width - 1])
        right = set(map(str, places.tolist()) if names is None else names[places].tolist())
        slack = _ROUNDING * float(np.abs(exact.scores[row, :width]).max())
        found = sum(name in right or score >= last - slack for name, score in hits.pairs(row))
        values[row] = min(found, width) / width
    return values
