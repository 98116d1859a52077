"""Rankings of points among themselves: where the relatives of each stand, nearest first.

The farthest relative of a point limits what can matter to it. Where that limit leaves few others, a screen of
matrix products finds them and their distances are compared; where it leaves many, as it does for a poor
embedding, they are counted by buckets. Either way ranks are those of the distance itself, not of a product
that rounds, and nothing is sorted but what is left. Compiled kernels do the same in less time, where numba is
installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.evidence.buckets import sure_counts
from equipoise.evidence.columns import unique_ids
from equipoise.evidence.counts_of_points import count_compiled, use_compiled
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.relatives import Relatives
from equipoise.evidence.tally import Tally
from equipoise.geometry.base import Geometry
from equipoise.geometry.near import near_pairs
from equipoise.geometry.points import Points
from equipoise.geometry.screen import Screen
from equipoise.types import Ints

WIDE = 2048
"""A point whose limit leaves more others than this is counted by buckets; looking at fewer is faster."""

_ROWS = 4096
_WHOLE_ROWS = 16


def ranking_from_points(
    points: Points,
    pairs: Ints,
    geometry: Geometry,
    *,
    unit_ids: Any = None,
    wide: int = WIDE,
    compiled: bool | None = None,
) -> Ranking:
    """Where each point's relatives stand among all other points, by distance; exact, of full depth.

    ``pairs`` are (point, relative) positions, each once. A point is no candidate of its own. ``wide`` and
    ``compiled`` decide how, never what; left alone, numba counts many points where it is installed.

    >>> from equipoise.geometry import geometry
    >>> line = np.array([[0.0], [1.0], [3.0]])
    >>> ranking_from_points(line, np.array([[0, 2], [2, 1]]), geometry("euclidean")).ranks
    array([2., 1.])
    """
    relatives = Relatives.of(points, pairs, geometry, unique_ids(unit_ids, len(points)))
    if use_compiled(len(points), compiled):
        count_compiled(relatives, wide)
    else:
        _count_plainly(relatives, wide)
    return relatives.ranking()


def _count_plainly(relatives: Relatives, wide: int) -> None:
    """Fill in the counts by numpy alone."""
    fine, coarse = relatives.screen, relatives.screen.single()
    left = relatives.left_by(fine)
    whole = left > wide
    enough = np.zeros_like(whole) if coarse is None else (relatives.left_by(coarse) <= left) & ~whole
    for screen, rows in ((coarse, enough), (fine, ~enough & ~whole)):
        for part in _parts(relatives.asking[rows], _ROWS):
            _look_near(relatives, part, screen or fine)
    for part in _parts(relatives.asking[whole], _WHOLE_ROWS):
        _look_everywhere(relatives, part)


def _parts(rows: Ints, size: int) -> list[Ints]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _look_near(relatives: Relatives, rows: Ints, screen: Screen) -> None:
    """Count what a screen leaves of the others."""
    limits = relatives.limits[np.searchsorted(relatives.asking, rows)]
    for places, columns in near_pairs(screen, rows, limits):
        _count(relatives, rows, places, columns)


def _look_everywhere(relatives: Relatives, rows: Ints) -> None:
    """Count most of the others by their buckets, and look at the rest."""
    screen = relatives.screen
    scores = screen.asking(rows, np.zeros(len(rows))) @ screen.right.T
    np.negative(scores, out=scores)
    places, columns = [], []
    for place, row in enumerate(rows.tolist()):
        scores[place, row] = scores[place].max()
        own = slice(relatives.starts[row], relatives.starts[row + 1])
        slack = 2.0 * float(screen.slack[row]) * screen.reach
        limits = screen.raised(relatives.excess[own])
        sure, unsure = sure_counts(
            scores[place], limits, slack + float((limits - relatives.excess[own]).max())
        )
        relatives.above[own] += sure
        places.append(np.full(len(unsure), place))
        columns.append(unsure)
    _count(relatives, rows, np.concatenate(places), np.concatenate(columns))


def _count(relatives: Relatives, rows: Ints, places: Ints, columns: Ints) -> None:
    """Add some of the others to the counts, by their distances; none of them may come twice."""
    others = rows[places] != columns
    places, columns = places[others], columns[others]
    tally = Tally.of(places, relatives.screen.excess(rows[places], columns))
    items, owners = relatives.items_of(rows)
    below, equal = tally.below(owners, relatives.excess[items])
    relatives.above[items] += below
    relatives.tied[items] += equal
    shared = equal > 1
    if shared.any():
        relatives.order_equals(tally, columns, owners[shared], items[shared])
