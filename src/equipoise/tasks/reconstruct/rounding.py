"""Ranks and norms of points that rounding has moved: what it may have told apart is tied."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.evidence.columns import unique_ids
from equipoise.evidence.ranking import Ranking
from equipoise.geometry.base import Geometry
from equipoise.geometry.points import Points
from equipoise.geometry.spaces import Poincare
from equipoise.types import Floats, Ints

_REACH = 4.0
"""How many of the largest errors beyond the farthest relative others are still looked at."""


def ranking_of_moved(
    points: Points, pairs: Ints, geometry: Geometry, moved: Floats, *, unit_ids: Any = None
) -> Ranking:
    """Where each point's relatives stand among all others, where each point may be ``moved`` so far.

    Neighbours in the order of distances are tied where they differ by no more than both may be off.

    >>> from equipoise.geometry import geometry
    >>> line = np.array([[0.0], [1.0], [-1.0 - 1e-12]])
    >>> ranking_of_moved(line, np.array([[0, 2]]), geometry("euclidean"), np.full(3, 1e-9)).ranks
    array([1.5])
    """
    ids = unique_ids(unit_ids, len(points))
    by_id = np.empty(len(points), dtype=np.int64)
    by_id[np.argsort(ids.astype(str), kind="stable")] = np.arange(len(points))
    counts = np.bincount(pairs[:, 0], minlength=len(points))
    relatives = np.split(pairs[np.argsort(pairs[:, 0], kind="stable"), 1], np.cumsum(counts)[:-1])
    items = np.concatenate(
        [
            _places(geometry.distance(points[node], points), node, relatives[node], moved, by_id)
            for node in np.flatnonzero(counts).tolist()
        ],
        axis=1,
    )
    pool = np.full(len(points), len(points) - 1, dtype=np.int64)
    return Ranking.of_items(
        ids,
        counts,
        gain=np.ones(len(pairs)),
        above=items[0],
        tied=items[1],
        before=items[2],
        depth=pool,
        candidates=pool,
    )


def _places(far: Floats, node: int, relatives: Ints, moved: Floats, by_id: Ints) -> Ints:
    """For each relative of a node: how many lie before it, tie with it, and of these come first by id."""
    blur = moved + moved[node]
    reach = far[relatives].max() + _REACH * blur.max()
    near = np.flatnonzero(far <= reach)
    near = near[near != node]
    group = tied_groups(far[near], blur[near])
    sizes = np.bincount(group)
    # By group, and in it by id backwards: the order in which equals are put where one is asked for.
    order = np.lexsort((-by_id[near], group))
    place = np.empty(len(far), dtype=np.int64)
    place[near[order]] = np.arange(len(near))
    of_node = np.empty(len(far), dtype=np.int64)
    of_node[near] = group
    own = of_node[relatives]
    above = (np.cumsum(sizes) - sizes)[own]
    return np.stack([above, sizes[own] - 1, place[relatives] - above])


def tied_groups(values: Floats, errors: Floats) -> Ints:
    """The group of each value, counted upwards: neighbours belong together within both of their errors.

    >>> tied_groups(np.array([3.0, 1.0, 1.1]), np.array([0.1, 0.1, 0.1])).tolist()
    [1, 0, 0]
    """
    order = np.argsort(values, kind="stable")
    ordered, unsure = values[order], errors[order]
    opens = np.diff(ordered) > unsure[1:] + unsure[:-1]
    groups = np.empty(len(values), dtype=np.int64)
    groups[order] = np.concatenate([np.zeros(min(1, len(values)), dtype=np.int64), np.cumsum(opens)])
    return groups


def tied_norms(norms: Floats, geometry: Geometry, moved: Floats) -> Floats:
    """The norms, each group of those that rounding may have told apart at its mean."""
    # In the ball the norm grows by (1 - norm^2) / 2 for each unit of distance.
    errors = moved * (1.0 - norms * norms) / 2.0 if isinstance(geometry, Poincare) else moved
    groups = tied_groups(norms, errors)
    means: Floats = np.bincount(groups, weights=norms) / np.bincount(groups)
    return means[groups]
