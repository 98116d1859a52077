"""The best k of each query among all that has come by so far."""

from __future__ import annotations

import numpy as np

from equipoise.types import Floats, Ints

_LEAST_WAITING = 1 << 13


class Leaders:
    """Exact scores and corpus rows, k a query; equal scores stand in the order of their rows.

    What arrives waits until there is enough of it to sort at once, so ``last`` may lag behind: it lets a
    little more in than need be, and nothing less.
    """

    def __init__(self, queries: int, k: int) -> None:
        self.k = k
        self.rows = np.full((queries, k), -1, dtype=np.int64)
        self.scores = np.full((queries, k), -np.inf)
        self._waiting: list[tuple[Ints, Ints, Floats]] = []
        self._count = 0

    @property
    def last(self) -> Floats:
        """The k-th score of each query; minus infinity for one that has fewer."""
        return self.scores[:, -1]

    def offer(self, queries: Ints, rows: Ints, scores: Floats) -> None:
        """Entries that may be among the best."""
        self._waiting.append((queries, rows, scores))
        self._count += len(queries)
        if self._count >= max(self.rows.size // 4, _LEAST_WAITING):
            self.settle()

    def settle(self) -> None:
        """Sort what waits in among the best."""
        if not self._count:
            return
        held, column = np.nonzero(self.rows >= 0)
        parts = [(held, self.rows[held, column], self.scores[held, column]), *self._waiting]
        queries, rows, scores = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.lexsort((rows, -scores, queries))
        queries = queries[order]
        place = np.arange(len(queries)) - np.searchsorted(queries, queries)
        best = order[place < self.k]
        queries, place = queries[place < self.k], place[place < self.k]
        self.rows[queries, place], self.scores[queries, place] = rows[best], scores[best]
        self._waiting, self._count = [], 0
