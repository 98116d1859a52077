"""Reconstruction of a tree from one vector per node: ranks of the targets, norms against depth, parent distances.

``reconstruct`` computes the evidence, ``reconstruction_result`` the metrics with their intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import DEFAULT_STATS, StatsConfig, Ties
from equipoise.errors import InputError, NotFiniteError, ParameterError, ShapeError, UndefinedError
from equipoise.evidence.base import to_numpy
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.ranking_among_points import ranking_among_points
from equipoise.evidence.space import Space
from equipoise.geometry.base import Geometry, PointArray, as_vectors
from equipoise.geometry.spaces import Poincare
from equipoise.geometry.spaces import geometry as geometry_named
from equipoise.geometry.spaces import geometry as geometry_of
from equipoise.metrics.parser import parse_metrics
from equipoise.metrics.ranking import AveragePrecision, ReciprocalRank
from equipoise.metrics.ranking_more import MeanRank, MedianRank
from equipoise.metrics.structure import NormDepthCorrelation
from equipoise.stats.estimate import estimate
from equipoise.stats.result import DATA
from equipoise.stats.slices import Slice, slice_estimates

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.domains.accounts.vectors import NodeVectors
    from equipoise.metrics.base import Metric
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Floats, Ids, Ints

_N_NAMED = 5


@dataclass(frozen=True)
class Reconstruction:
    """The evidence of the vectors of a tree; a unit is a node.

    ``ranking`` has the ranks of the targets of each node among all other nodes; ``filtered`` states whether metrics
    exclude the other targets from the ranks (``MR(filtered)``). A node without targets has no rank.
    ``space`` has the norms of the geometry and the normalised ranks of the tree. ``parent_distances`` has one value per
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
        """Norm of each node in its geometry."""
        return self.space.radii

    @property
    def origin_distances(self) -> Floats:
        """Distance of each node from the origin in its geometry: in the ball all norms are close to 1."""
        if isinstance(self.geometry, Poincare):
            return self.geometry.hyperbolic_norm(self.space.vectors)
        return self.norms

    @property
    def depth(self) -> Ints:
        """Edges on the shortest path from a root to each node."""
        return self.tree.depth.astype(np.int64)

    @property
    def branches(self) -> Ids:
        """The top-level branch of each node: the clusters of resampling."""
        return np.array(self.tree.branches, dtype=object)

    @property
    def has_single_target(self) -> bool:
        """Whether no node has more than one target: then average precision is the reciprocal rank."""
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
) -> Reconstruction:
    """Rank the targets of every node among all other nodes, by distance.

    Parameters
    ----------
    tree : the tree
    vectors : one row per node, in the order of the tree
    relation : the targets: "parent", "ancestors" (as in the published code of Poincare embeddings), or "closure":
        ancestors and descendants. The node itself is not a candidate.
    filtered : exclude the other targets from the ranks; by default raw for the parent and filtered otherwise
    device : such as "cuda": rank there by matrix products, which round

    Points outside their space are an error that names them.

    >>> from equipoise.domains.accounts.trees.tree import Tree
    >>> tree = Tree.from_edges([("cash", "assets"), ("bank", "assets")])
    >>> reconstruction = reconstruct(tree, [[1.0], [0.0], [-2.0]])
    >>> reconstruction.ranking.ranks, reconstruction.filtered
    (array([1., 1.]), False)
    """
    space = geometry_of(geometry)
    points = as_vectors(to_numpy(vectors), "the vectors")
    if len(points) != len(tree):
        raise ShapeError(
            f"there are {len(points)} vectors for the {len(tree)} nodes of {tree.source}",
            hint="give one row per node, in the order of the tree's ids",
        )
    check_has_edges(tree)
    pairs = tree.pairs(relation)
    invalid_points = check_points(space, points, tree)
    ids = list(tree.ids) if unit_ids is None else unit_ids
    ranking = _ranking(points, pairs, space, ids, device)
    return Reconstruction(
        tree=tree,
        geometry=space,
        ranking=replace(ranking, invalid_points=invalid_points),
        space=Space.of(points, depth=tree.normalised_rank, norms=space.norm(points), unit_ids=ids),
        parent_distances=space.distance(points[tree.edges[:, 0]], points[tree.edges[:, 1]]),
        relation=relation,
        filtered=relation != "parent" if filtered is None else filtered,
    )


def _ranking(points: PointArray, pairs: Ints, space: Geometry, ids: Any, device: Any) -> Ranking:
    """The ranking by distances, or by matrix products on a device."""
    if device is None:
        return ranking_among_points(points, pairs, space, unit_ids=ids)
    from equipoise.evidence.ranking_from_vectors import ranking_from_points_on

    return ranking_from_points_on(device, points, pairs, space, unit_ids=ids)


def check_has_edges(tree: Tree) -> None:
    """Raise an error for a tree without edges, which has no targets."""
    if not len(tree.edges):
        raise UndefinedError(
            f"{tree.source} has no edges, so there are no targets to rank", hint="the tree needs parents"
        )


def check_points(space: Geometry, points: Any, tree: Tree) -> str:
    """Warnings about points that can be ranked; invalid points are an error that names them."""
    validity = space.check(points)
    for fault in validity.faults:
        if fault.fatal:
            node_ids = ", ".join(tree.ids[row] for row in fault.rows[:_N_NAMED].tolist())
            more = ", ..." if len(fault.rows) > _N_NAMED else ""
            raise (InputError if fault.finite else NotFiniteError)(
                f"{len(fault.rows)} of the {len(tree)} points of {tree.source} {fault.predicate}: {node_ids}{more}",
                hint=fault.hint,
            )
    return "" if validity.ok else str(validity)


def reconstruction_metrics(*, filtered: bool) -> tuple[Metric[Any], ...]:
    """The metrics of ranks: mean rank over edges and over nodes, median, MAP and MRR; the first is primary.

    Average precision and the reciprocal rank always use the full list, even if ranks are filtered.

    >>> [metric.name for metric in reconstruction_metrics(filtered=True)]
    ['MR(filtered)', 'MR(over=units,filtered)', 'MedianRank(filtered)', 'MAP', 'MRR']
    """
    return (
        MeanRank(filtered=filtered),
        MeanRank(over="units", filtered=filtered),
        MedianRank(filtered=filtered),
        AveragePrecision(),
        ReciprocalRank(),
    )


def reconstruction_result(
    reconstruction: Reconstruction,
    *,
    system: str = "system",
    metrics: Any = None,
    config: StatsConfig = DEFAULT_STATS,
    chance: bool = True,
) -> Result:
    """All metrics of a reconstruction in one result; its evidence is the ranking.

    ``metrics`` replaces the default ranking metrics. Intervals resample clusters of nodes: the top-level branches,
    unless ``config.clusters`` has a label per node. Intervals of ranks are clipped to the possible ranks. The last
    metric is ``NormDepthCorrelation``: Spearman's correlation of norm and normalised rank.
    """
    options: dict[str, Any] = {
        "system": system,
        "config": config if config.clusters is not None else replace(config, clusters=reconstruction.branches),
        "chance": chance,
        "settings": {
            "ties": str(Ties.EXPECTED),
            "relation": reconstruction.relation,
            "filtered": reconstruction.filtered,
            "geometry": reconstruction.geometry.name,
            "dim": dimension(reconstruction),
            DATA: {"tree": reconstruction.tree.fingerprint},
        },
    }
    chosen = reconstruction_metrics(filtered=reconstruction.filtered) if metrics is None else parse_metrics(metrics)
    ranks = estimate(reconstruction.ranking, chosen, **options)
    depth = estimate(reconstruction.space, [NormDepthCorrelation()], **options)
    return replace(
        ranks, estimates={**_clip_rank_intervals(ranks.estimates, len(reconstruction) - 1), **depth.estimates}
    )


def _clip_rank_intervals(estimates: Mapping[str, Estimate], candidates: int) -> dict[str, Estimate]:
    """Clip intervals of ranks to the possible ranks: few branches give very wide intervals."""
    return {
        name: replace(value, interval=value.interval.clipped((1.0, float(candidates))))
        if value.unit == MeanRank.unit
        else value
        for name, value in estimates.items()
    }


def dimension(reconstruction: Reconstruction) -> int:
    """The dimension of the space: a Lorentz point has one more coordinate."""
    return int(reconstruction.space.vectors.shape[1]) - (reconstruction.geometry.name == "lorentz")


def reconstruction_slices(
    reconstruction: Reconstruction, result: Result, metric: str | None = None, *, seed: int = 0
) -> tuple[Slice, ...]:
    """A metric (by default the primary one) at each depth and in each top-level branch.

    Depths are in ascending order, branches in the order of the tree.
    """
    units = zip(result.unit_ids.tolist(), reconstruction.depth.tolist(), reconstruction.tree.branches, strict=True)
    unit_attributes = {unit: {"depth": depth, "branch": branch} for unit, depth, branch in units}
    slices = slice_estimates(result, metric or result.names[0], unit_attributes, seed=seed)
    by_depth = [part for part in slices if part.name == "depth"]
    return (
        *sorted(by_depth, key=lambda part: int(part.value)),
        *(part for part in slices if part.name == "branch"),
    )


# The neighbourhood of a node: its nearest nodes, its ancestors by norm, and nodes that are nearer than its parent.

N_VOTES = 5
"""Nearest nodes whose parents are counted for a suggestion."""
MAX_NODES = 6000
"""Larger trees are not searched for displaced nodes: that needs all distances."""
OWN_CHILD, SIBLING, SAME_BRANCH, MISFILED = "own child", "sibling", "same branch", "likely misfiled"
"""What a node is to the one that it displaces as nearest node of an account, and what that suggests."""


@dataclass(frozen=True)
class Neighbor:
    """A node and its distance."""

    id: str
    name: str
    distance: float


@dataclass(frozen=True)
class DisplacedNode:
    """A node whose nearest node is not a parent.

    ``kind`` is what the nearest node is: an own child, a sibling, or another node of the same top-level branch. If it
    is in another branch, or if most of the nearest nodes are below another parent, the node is likely misfiled, and
    ``suggestion`` is the id of that parent.
    """

    id: str
    name: str
    parent: str
    nearest: str
    parent_distance: float
    nearest_distance: float
    parent_rank: int
    kind: str
    suggestion: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def nearest_nodes(tree: Tree, vectors: NodeVectors, node: str, k: int = 10) -> list[Neighbor]:
    """The nearest nodes of a node.

    Parameters
    ----------
    tree
        The tree.
    vectors
        One vector per node, in the order of the tree.
    node
        The id of the node.
    k
        The number of nodes.

    Returns
    -------
    list of Neighbor
        The nearest first; ties are in the order of the tree.

    Examples
    --------
    >>> nearest_nodes(tree, embed(tree, dim=5), "1000", k=3)  # doctest: +SKIP
    """
    if k < 1:
        raise ParameterError(f"k is {k}", hint="k is 1 or more")
    position = tree.position(node)
    distances = _distances(vectors, position)
    order = np.argsort(distances, kind="stable")[: min(k, len(tree) - 1)]
    return [Neighbor(tree.ids[other], tree.names[other], float(distances[other])) for other in order.tolist()]


def ancestors_by_norm(tree: Tree, vectors: NodeVectors, node: str) -> list[Neighbor]:
    """Ancestors of a node as the embedding alone suggests them.

    From each node to the nearest node with a smaller norm, until no norm is smaller: in a good hyperbolic embedding
    these are the parent, its parent, and so on up to a root.
    """
    norms = geometry_named(vectors.geometry).norm(vectors.vectors)
    position = tree.position(node)
    path: list[Neighbor] = []
    while True:
        distances = np.where(norms < norms[position], _distances(vectors, position), np.inf)
        above = int(distances.argmin())
        if not np.isfinite(distances[above]):
            return path
        path.append(Neighbor(tree.ids[above], tree.names[above], float(distances[above])))
        position = above


def _distances(vectors: NodeVectors, position: int) -> Floats:
    """Distances of all nodes to one node, that of the node itself infinite."""
    points = vectors.vectors
    distances = geometry_named(vectors.geometry).distance(points[position], points)
    distances[position] = np.inf
    return np.asarray(distances)


def displaced_nodes(tree: Tree, vectors: NodeVectors) -> tuple[DisplacedNode, ...]:
    """The nodes whose nearest node is not a parent, the worst ranks of the parent first; none for a large tree."""
    if len(tree) > MAX_NODES:
        return ()
    branches = tree.branches
    displaced = []
    for position in range(len(tree)):
        parents = tree.parents(position)
        if not len(parents):
            continue
        distances = _distances(vectors, position)
        parent = int(parents[distances[parents].argmin()])
        nearer = np.flatnonzero(distances < distances[parent])
        if not len(nearer):
            continue
        order = nearer[np.argsort(distances[nearer], kind="stable")]
        nearest = int(order[0])
        suggestion = _other_parent(tree, position, distances)
        if nearest in tree.children(position):
            kind, suggestion = OWN_CHILD, None
        elif suggestion is not None:
            kind = MISFILED
        elif np.isin(tree.parents(nearest), parents).any():
            kind = SIBLING
        else:
            kind = SAME_BRANCH if branches[nearest] == branches[position] else MISFILED
            suggestion = _first_parent(tree, nearest) if kind == MISFILED else None
        displaced.append(
            DisplacedNode(
                tree.ids[position],
                tree.names[position],
                tree.ids[parent],
                tree.ids[nearest],
                float(distances[parent]),
                float(distances[nearest]),
                len(nearer) + 1,
                kind,
                suggestion,
            )
        )
    return tuple(sorted(displaced, key=lambda item: -item.parent_rank))


def _other_parent(tree: Tree, position: int, distances: Floats) -> str | None:
    """The parent of most of the nearest nodes, if it is not a parent of the node."""
    nearest = np.argsort(distances, kind="stable")[:N_VOTES].tolist()
    votes = Counter(int(parent) for node in nearest for parent in tree.parents(node).tolist())
    if not votes:
        return None
    parent, count = votes.most_common(1)[0]
    is_other = parent != position and parent not in tree.parents(position)
    return tree.ids[parent] if is_other and 2 * count > N_VOTES else None


def _first_parent(tree: Tree, position: int) -> str:
    """The parent of a node, or the node itself if it is a root."""
    parent = int(tree.first_parents[position])
    return tree.ids[parent if parent >= 0 else position]
