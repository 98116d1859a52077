"""The relatives of points, nearest first, and how many others were counted before each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.evidence.placement import spans, starts_of
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.tally import Tally
from equipoise.geometry.base import Geometry
from equipoise.geometry.points import Points
from equipoise.geometry.screen import Screen
from equipoise.types import Bools, Floats, Ids, Ints

_SAMPLE = 512
_ROWS = 4096


@dataclass(frozen=True)
class Relatives:
    """The relatives of all points, one point after another, and the counts that grow as others are seen.

    ``excess`` rises within a point and stands for the distance of the relative. ``tied`` counts a relative
    itself until ``ranking`` takes it off.
    """

    screen: Screen
    counts: Ints
    starts: Ints
    relatives: Ints
    excess: Floats
    above: Ints
    tied: Ints
    before: Ints
    ids: Ids

    @classmethod
    def of(cls, points: Points, pairs: Ints, geometry: Geometry, ids: Ids) -> Relatives:
        """From (point, relative) positions in any order."""
        screen = Screen.of(points, geometry)
        excess = screen.excess(pairs[:, 0], pairs[:, 1])
        order = _nearest_first(pairs, excess)
        counts = np.bincount(pairs[:, 0], minlength=len(points))
        above, tied, before = (np.zeros(len(pairs), dtype=np.int64) for _ in range(3))
        relatives = pairs[order, 1]
        return cls(screen, counts, starts_of(counts), relatives, excess[order], above, tied, before, ids)

    @cached_property
    def asking(self) -> Ints:
        """The points that have relatives."""
        return np.flatnonzero(self.counts)

    @cached_property
    def limits(self) -> Floats:
        """The excess of the farthest relative of each point that has one."""
        return self.excess[self.starts[1:][self.asking] - 1]

    @cached_property
    def id_order(self) -> Ints:
        """The place of each id when they are in order."""
        place = np.empty(len(self.ids), dtype=np.int64)
        place[np.argsort(self.ids.astype(str), kind="stable")] = np.arange(len(self.ids))
        return place

    def left_by(self, screen: Screen, which: Bools | slice = slice(None)) -> Ints:
        """About how many others the limit of each asking point leaves, judged by an even sample of them."""
        asking, limits = self.asking[which], self.limits[which]
        step = -(-len(self.counts) // _SAMPLE)
        sample = screen.right[::step].T
        left = np.empty(len(asking), dtype=np.int64)
        for start in range(0, len(left), _ROWS):
            part = slice(start, start + _ROWS)
            scores = screen.asking(asking[part], limits[part]) @ sample
            left[part] = np.count_nonzero(scores >= 0.0, axis=1) * step
        return left

    def items_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """Where the relatives of some points stand in the columns, and whose they are: places in ``rows``."""
        counts = self.counts[rows]
        return spans(self.starts[:-1][rows], counts), np.repeat(np.arange(len(rows)), counts)

    def order_equals(self, tally: Tally, columns: Ints, owners: Ints, items: Ints) -> None:
        """Of those that tie with a relative, count the ones that an order by id puts first.

        The tally holds the excess of ``columns``, grouped as ``owners`` groups ``items``.
        """
        keys, _ = tally.places(owners, self.excess[items])
        groups, members = np.unique(keys, return_inverse=True)
        own = tally.own
        place = np.minimum(np.searchsorted(groups, own), len(groups) - 1)
        equal: Bools = groups[place] == own
        by_id = Tally.of(place[equal], -self.id_order[columns[equal]])
        self.before[items] += by_id.below(members, -self.id_order[self.relatives[items]])[0]

    def ranking(self) -> Ranking:
        """The counts as evidence; a relative ties with itself, which is no tie."""
        pool = np.full(len(self.counts), len(self.counts) - 1, dtype=np.int64)
        return Ranking.of_items(
            self.ids,
            self.counts,
            gain=np.ones(len(self.relatives)),
            above=self.above,
            tied=self.tied - 1,
            before=self.before,
            depth=pool,
            candidates=pool,
        )


def _nearest_first(pairs: Ints, excess: Floats) -> Ints:
    """The order by point, then excess, then relative."""
    order = np.argsort(excess)
    # Two halves of 16 bits: integers so short are sorted by counting.
    for shift in (0, 16):
        half = (pairs[:, 0] >> shift).astype(np.uint16)
        if shift == 0 or half.any():
            order = order[np.argsort(half[order], kind="stable")]
    ordered, far = pairs[order, 0], excess[order]
    if ((ordered[1:] == ordered[:-1]) & (far[1:] == far[:-1])).any():
        return np.lexsort((pairs[:, 1], excess, pairs[:, 0]))
    return order
