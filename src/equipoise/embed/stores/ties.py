"""Equal scores in the order of their ids, also where the list is cut."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

import numpy as np

from equipoise.types import Floats, Ids, Ints

Search = Callable[[Ints, int], tuple[Ids, Floats]]
"""The best of some queries to a depth: ids and scores, a row a query, best first, ties in any order."""


def settled(search: Search, queries: int, k: int, total: int) -> tuple[Ids, Floats]:
    """The best k of every query out of ``total``, equal scores by id.

    An engine cuts a tie at random. So one more than k is asked for, and more again for those queries whose
    k-th score still goes on at the end of the list.
    """
    depth = min(k + 1, total)
    rows = np.arange(queries)
    ids, scores = search(rows, depth)
    best_ids, best_scores = _ordered(ids, scores, k)
    while depth < total:
        rows = rows[(scores[:, -1] == scores[:, k - 1]) & (scores[:, -1] > -np.inf)]
        if not len(rows):
            break
        depth = min(4 * depth, total)
        ids, scores = search(rows, depth)
        best_ids[rows], best_scores[rows] = _ordered(ids, scores, k)
    return best_ids, best_scores


def _ordered(ids: Ids, scores: Floats, k: int) -> tuple[Ids, Floats]:
    """The first k columns by falling score, then by id."""
    ids, scores = ids.copy(), scores.copy()
    for row in np.flatnonzero((scores[:, 1:] >= scores[:, :-1]).any(axis=1)):
        held = int((scores[row] > -np.inf).sum())
        pairs = zip((-scores[row, :held]).tolist(), ids[row, :held].tolist(), strict=True)
        order = [at for at, _ in sorted(enumerate(pairs), key=itemgetter(1))]
        ids[row, :held], scores[row, :held] = ids[row, order], scores[row, order]
    return ids[:, :k], scores[:, :k]
