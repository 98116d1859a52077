"""From a tree and a vector a node to evidence: ranks of the relatives, norms against depth, distances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise.errors import InputError, NotFiniteError, ShapeError, UndefinedError
from equipoise.evidence.columns import host
from equipoise.evidence.from_points import ranking_from_points
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.space import Space
from equipoise.geometry import Geometry, as_points
from equipoise.geometry import geometry as geometry_of
from equipoise.geometry.points import Points
from equipoise.geometry.spaces import Poincare
from equipoise.hierarchy.tree import Tree
from equipoise.tasks.reconstruct.rounding import ranking_of_moved, tied_norms
from equipoise.types import Floats, Ids, Ints

_NAMED = 5


@dataclass(frozen=True)
class Reconstruction:
    """What the vectors of a tree say of it; a unit is a node.

    ``ranking`` holds where the relatives of each node stand among all other nodes, every one of them in the
    list; ``filtered`` says whether ranks are to be read without the other relatives, which is the metric's
    business (``MR(filtered)``). A node without relatives has no rank: a root has no parent. ``space`` holds
    the norms of the geometry beside the normalised ranks of the tree. ``parent_distances`` has one number an
    edge.
    """

    tree: Tree
    geometry: Geometry
    ranking: Ranking
    space: Space
    parent_distances: Floats
    relation: str
    filtered: bool

    def __len__(self) -> int:
        return len(self.tree)

    @property
    def norms(self) -> Floats:
        """How far out each node lies, in its geometry."""
        return self.space.radii

    @property
    def radii(self) -> Floats:
        """How far each node lies from the origin as its space measures: in the ball all norms end near 1."""
        if isinstance(self.geometry, Poincare):
            return self.geometry.hyperbolic_norm(self.space.vectors)
        return self.norms

    @property
    def depth(self) -> Ints:
        """Edges from a root down to each node, by the shortest way."""
        return self.tree.depth.astype(np.int64)

    @property
    def branches(self) -> Ids:
        """The top-level branch of each node: nodes of one branch are resampled together."""
        return np.array(self.tree.branches, dtype=object)

    @property
    def single(self) -> bool:
        """Whether no node has more than one relative: then average precision is the reciprocal rank."""
        return bool(self.ranking.counts.max(initial=0) <= 1)


def reconstruct(
    tree: Tree,
    vectors: Any,
    geometry: str | Geometry = "euclidean",
    *,
    relation: str = "parent",
    filtered: bool | None = None,
    unit_ids: Any = None,
    device: Any = None,
    moved: Floats | None = None,
) -> Reconstruction:
    """Rank the relatives of every node among all other nodes, by distance.

    ``vectors`` has one row a node, in the order of the tree. ``relation`` is the parent, all ancestors (as
    the public code of Poincare embeddings has it), or the closure: ancestors and descendants. The node itself
    is no candidate. ``filtered`` drops the other relatives from above a relative; left alone it is raw for
    the parent and filtered for the others. Points outside their space are refused by name; nothing is moved.
    A ``device`` such as "cuda" ranks there, by products, which round. ``moved`` says of each point how far
    rounding may have moved it: distances and norms that differ by less are tied, and are ranked here.

    >>> tree = Tree.from_edges([("cash", "assets"), ("bank", "assets")])
    >>> found = reconstruct(tree, [[1.0], [0.0], [-2.0]])
    >>> found.ranking.ranks, found.filtered
    (array([1., 1.]), False)
    """
    space = geometry_of(geometry)
    points = as_points(host(vectors), "the vectors")
    if len(points) != len(tree):
        raise ShapeError(
            f"there are {len(points)} vectors for the {len(tree)} nodes of {tree.source}",
            hint="give one row a node, in the order of the tree's ids",
        )
    refuse_edgeless(tree)
    pairs = tree.pairs(relation)
    complaints = checked_points(space, points, tree)
    ids = list(tree.ids) if unit_ids is None else unit_ids
    ranking = _ranked(points, pairs, space, ids, device, moved)
    norms = space.norm(points) if moved is None else tied_norms(space.norm(points), space, moved)
    return Reconstruction(
        tree=tree,
        geometry=space,
        ranking=replace(ranking, invalid_points=complaints),
        space=Space.of(points, depth=tree.normalised_rank, norms=norms, unit_ids=ids),
        parent_distances=space.distance(points[tree.edges[:, 0]], points[tree.edges[:, 1]]),
        relation=relation,
        filtered=relation != "parent" if filtered is None else filtered,
    )


def _ranked(
    points: Points, pairs: Ints, space: Geometry, ids: Any, device: Any, moved: Floats | None
) -> Ranking:
    """The relatives among all others: by distances, by products on a device, or within rounding."""
    if moved is not None:
        return ranking_of_moved(points, pairs, space, moved, unit_ids=ids)
    if device is None:
        return ranking_from_points(points, pairs, space, unit_ids=ids)
    from equipoise.evidence.from_device import ranking_from_points_on

    return ranking_from_points_on(device, points, pairs, space, unit_ids=ids)


def refuse_edgeless(tree: Tree) -> None:
    """A tree in which nobody has a parent has no relatives to find; worth asking before any training."""
    if not len(tree.edges):
        raise UndefinedError(
            f"{tree.source} has no edge, so there is nothing to find", hint="say who is whose parent"
        )


def checked_points(space: Geometry, points: Any, tree: Tree) -> str:
    """What is odd about points that can be ranked all the same; those that cannot are refused by name."""
    validity = space.check(points)
    for fault in validity.faults:
        if fault.fatal:
            named = ", ".join(tree.ids[row] for row in fault.rows[:_NAMED].tolist())
            more = ", ..." if len(fault.rows) > _NAMED else ""
            raise (InputError if fault.finite else NotFiniteError)(
                f"{len(fault.rows)} of the {len(tree)} points of {tree.source} {fault.predicate}: "
                f"{named}{more}",
                hint=fault.remedy,
            )
    return "" if validity.ok else str(validity)
