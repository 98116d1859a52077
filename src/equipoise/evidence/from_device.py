"""Rankings at full depth from vectors on a GPU: the scores are made and counted there, only counts travel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from equipoise.evidence.columns import unique_ids
from equipoise.evidence.counts_on_device import count_pairs
from equipoise.evidence.placement import starts_of
from equipoise.evidence.ranking import Ranking
from equipoise.geometry.base import Geometry
from equipoise.geometry.points import Points
from equipoise.types import Ints


def device_counts(
    search: Any, queries: Any, rows: Ints, counts: Ints, hidden: Ints, block_bytes: int | None = None
) -> tuple[Ints, Ints, Ints]:
    """For each relevant row: how many candidates of its unit are above, tied, and tied but first by id.

    ``rows`` are the relevant corpus rows, ``counts`` how many each unit has, ``hidden`` the row that is no
    candidate of it (-1: none).
    """
    from equipoise.geometry.device import positions

    starts = starts_of(counts)
    above, tied, before = (np.zeros(len(rows), dtype=np.int64) for _ in range(3))
    for part, scores in search.blocks(queries, block_bytes):
        own = counts[part]
        items = slice(int(starts[part.start]), int(starts[part.start]) + int(own.sum()))
        masked = np.flatnonzero(hidden[part] >= 0)
        scores[positions(masked, scores.device), positions(hidden[part][masked], scores.device)] = np.nan
        row = np.repeat(np.arange(len(own)), own)
        limit = scores[positions(row, scores.device), positions(rows[items], scores.device)]
        found, equal = count_pairs(scores, positions(row, scores.device), limit)
        above[items], tied[items] = found.cpu().numpy(), equal.cpu().numpy() - 1
        for item, first in _earlier(scores, row, rows[items], limit, np.flatnonzero(tied[items] > 0)):
            before[items.start + item] = first
    return above, tied, before


def ranking_from_points_on(
    device: Any, points: Points, pairs: Ints, geometry: Geometry, *, unit_ids: Any = None
) -> Ranking:
    """What ``ranking_from_points`` gives, from products on a device instead of the distances themselves.

    Relatives nearly as far as another point may change places with it: a product rounds, and distances that
    nearly agree are told apart only by the host.
    """
    from equipoise.geometry.device import DeviceSearch

    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    rows, counts = pairs[order, 1], np.bincount(pairs[:, 0], minlength=len(points))
    search, left = DeviceSearch.of(points, points, geometry, device, "full")
    above, tied, before = device_counts(search, left, rows, counts, np.arange(len(points)))
    pool = np.full(len(points), len(points) - 1, dtype=np.int64)
    return Ranking.of_items(
        unique_ids(unit_ids, len(points)),
        counts,
        gain=np.ones(len(rows)),
        above=above,
        tied=tied,
        before=before,
        depth=pool,
        candidates=pool,
    )


def _earlier(scores: Any, row: Ints, rows: Ints, limit: Any, items: Ints) -> Iterator[tuple[int, int]]:
    """Of tied items: how many others an order by id puts first."""
    for item in items.tolist():
        equal = (scores[int(row[item])] == limit[item]).nonzero()[:, 0].cpu().numpy().astype(str)
        yield item, int((equal > str(rows[item])).sum())
