"""Rankings of points among themselves: where the relatives of each stand, nearest first.

The farthest relative of a point limits what can matter to it. Where that limit leaves few others, a screen of
matrix products finds them and their distances are compared; where it leaves many, as it does for a poor
embedding, they are counted by buckets. Either way ranks are those of the distance itself, not of a product
that rounds, and nothing is sorted but what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.evidence.buckets import sure_counts
from equipoise.evidence.columns import unique_ids
from equipoise.evidence.placement import spans, starts_of
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.tally import Tally
from equipoise.geometry.base import Geometry
from equipoise.geometry.near import near_pairs
from equipoise.geometry.points import Points
from equipoise.geometry.screen import Screen
from equipoise.types import Bools, Floats, Ids, Ints

WIDE = 2048
"""A point whose limit leaves more others than this is counted by buckets; looking at fewer is faster."""

_SAMPLE = 512
_ROWS = 4096
_WHOLE_ROWS = 16


def ranking_from_points(
    points: Points, pairs: Ints, geometry: Geometry, *, unit_ids: Any = None, wide: int = WIDE
) -> Ranking:
    """Where each point's relatives stand among all other points, by distance; exact, of full depth.

    ``pairs`` are (point, relative) positions, each once. A point is no candidate of its own. ``wide`` decides
    how, never what.

    >>> from equipoise.geometry import geometry
    >>> line = np.array([[0.0], [1.0], [3.0]])
    >>> ranking_from_points(line, np.array([[0, 2], [2, 1]]), geometry("euclidean")).ranks
    array([2., 1.])
    """
    search = _Search.of(points, pairs, geometry, unique_ids(unit_ids, len(points)))
    coarse = search.screen.single()
    left = search.left_by(search.screen)
    whole = left > wide
    enough = np.zeros_like(whole) if coarse is None else (search.left_by(coarse) <= left) & ~whole
    for screen, rows in ((coarse, enough), (search.screen, ~enough & ~whole)):
        for part in _parts(search.asking[rows], _ROWS):
            search.look_near(part, screen or search.screen)
    for part in _parts(search.asking[whole], _WHOLE_ROWS):
        search.look_everywhere(part)
    return search.ranking()


def _parts(rows: Ints, size: int) -> list[Ints]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


@dataclass(frozen=True)
class _Search:
    """The relatives of all points, one point after another, and the counts that grow as chunks are seen."""

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
    def of(cls, points: Points, pairs: Ints, geometry: Geometry, ids: Ids) -> _Search:
        screen = Screen.of(points, geometry)
        ordered = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
        counts = np.bincount(ordered[:, 0], minlength=len(points))
        above, tied, before = (np.zeros(len(ordered), dtype=np.int64) for _ in range(3))
        excess = screen.excess(ordered[:, 0], ordered[:, 1])
        return cls(screen, counts, starts_of(counts), ordered[:, 1], excess, above, tied, before, ids)

    @cached_property
    def asking(self) -> Ints:
        """The points that have relatives."""
        return np.flatnonzero(self.counts)

    @cached_property
    def limits(self) -> Floats:
        """The excess of the farthest relative of each point that has one."""
        return np.maximum.reduceat(self.excess, self.starts[:-1][self.asking])

    @cached_property
    def id_order(self) -> Ints:
        """The place of each id when they are in order."""
        place = np.empty(len(self.ids), dtype=np.int64)
        place[np.argsort(self.ids.astype(str), kind="stable")] = np.arange(len(self.ids))
        return place

    def left_by(self, screen: Screen) -> Ints:
        """About how many others the limit of each asking point leaves, judged by an even sample of them."""
        step = -(-len(self.counts) // _SAMPLE)
        sample = screen.right[::step].T
        left = np.empty(len(self.asking), dtype=np.int64)
        for start in range(0, len(left), _ROWS):
            part = slice(start, start + _ROWS)
            scores = screen.asking(self.asking[part], self.limits[part]) @ sample
            left[part] = np.count_nonzero(scores >= 0.0, axis=1) * step
        return left

    def look_near(self, rows: Ints, screen: Screen) -> None:
        """Count what a screen leaves of the others."""
        limits = self.limits[np.searchsorted(self.asking, rows)]
        for places, columns in near_pairs(screen, rows, limits):
            self._count(rows, places, columns)

    def look_everywhere(self, rows: Ints) -> None:
        """Count most of the others by their buckets, and look at the rest."""
        scores = self.screen.asking(rows, np.zeros(len(rows))) @ self.screen.right.T
        np.negative(scores, out=scores)
        places, columns = [], []
        for place, row in enumerate(rows.tolist()):
            scores[place, row] = scores[place].max()
            own = slice(self.starts[row], self.starts[row + 1])
            slack = 2.0 * float(self.screen.slack[row]) * self.screen.reach
            limits = self.screen.raised(self.excess[own])
            sure, unsure = sure_counts(
                scores[place], limits, slack + float((limits - self.excess[own]).max())
            )
            self.above[own] += sure
            places.append(np.full(len(unsure), place))
            columns.append(unsure)
        self._count(rows, np.concatenate(places), np.concatenate(columns))

    def _count(self, rows: Ints, places: Ints, columns: Ints) -> None:
        """Add some of the others to the counts, by their distances; none of them may come twice."""
        others = rows[places] != columns
        places, columns = places[others], columns[others]
        tally = Tally.of(places, self.screen.excess(rows[places], columns))
        counts = self.counts[rows]
        items = spans(self.starts[:-1][rows], counts)
        owners = np.repeat(np.arange(len(rows)), counts)
        below, equal = tally.below(owners, self.excess[items])
        self.above[items] += below
        self.tied[items] += equal
        shared = equal > 1
        if shared.any():
            self._order_equals(tally, columns, owners[shared], items[shared])

    def _order_equals(self, tally: Tally, columns: Ints, owners: Ints, items: Ints) -> None:
        """Of those that tie with a relative, count the ones that an order by id puts first."""
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
