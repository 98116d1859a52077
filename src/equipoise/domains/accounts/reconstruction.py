"""From a tree and a vector a node to evidence: ranks of the relatives, norms against depth, distances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import DEFAULT_STATS, StatsConfig, Ties
from equipoise.errors import InputError, NotFiniteError, ShapeError, UndefinedError
from equipoise.evidence.base import to_numpy, unique_ids
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.ranking_among_points import ranking_among_points
from equipoise.evidence.space import Space
from equipoise.geometry.base import Geometry, PointArray, as_vectors
from equipoise.geometry.spaces import Poincare
from equipoise.geometry.spaces import geometry as geometry_of
from equipoise.metrics.parser import parse_metrics
from equipoise.metrics.ranking import AveragePrecision, MeanRank, MedianRank, ReciprocalRank
from equipoise.metrics.structure import NormDepthCorrelation
from equipoise.stats.alignment import DATA
from equipoise.stats.estimate import estimate
from equipoise.stats.slices import Slice, slice_estimates
from equipoise.types import Floats, Ids, Ints

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.metrics.base import Metric
    from equipoise.stats.result import Estimate, Result

# Ranks and norms of points that rounding has moved: what it may have told apart is tied.

_REACH = 4.0
"""How many of the largest errors beyond the farthest relative others are still looked at."""


def ranking_with_rounding(
    points: PointArray, pairs: Ints, geometry: Geometry, moved: Floats, *, unit_ids: Any = None
) -> Ranking:
    """Where each point's relatives stand among all others, where each point may be ``moved`` so far.

    Neighbours in the order of distances are tied where they differ by no more than both may be off.

    >>> from equipoise.geometry.spaces import geometry
    >>> line = np.array([[0.0], [1.0], [-1.0 - 1e-12]])
    >>> ranking_with_rounding(line, np.array([[0, 2]]), geometry("euclidean"), np.full(3, 1e-9)).ranks
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
    group = tie_by_error(far[near], blur[near])
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


def tie_by_error(values: Floats, errors: Floats) -> Ints:
    """The group of each value, counted upwards: neighbours belong together within both of their errors.

    >>> tie_by_error(np.array([3.0, 1.0, 1.1]), np.array([0.1, 0.1, 0.1])).tolist()
    [1, 0, 0]
    """
    order = np.argsort(values, kind="stable")
    ordered, unsure = values[order], errors[order]
    opens = np.diff(ordered) > unsure[1:] + unsure[:-1]
    groups = np.empty(len(values), dtype=np.int64)
    groups[order] = np.concatenate([np.zeros(min(1, len(values)), dtype=np.int64), np.cumsum(opens)])
    return groups


def norms_with_ties(norms: Floats, geometry: Geometry, moved: Floats) -> Floats:
    """The norms, each group of those that rounding may have told apart at its mean."""
    # In the ball the norm grows by (1 - norm^2) / 2 for each unit of distance.
    errors = moved * (1.0 - norms * norms) / 2.0 if isinstance(geometry, Poincare) else moved
    groups = tie_by_error(norms, errors)
    means: Floats = np.bincount(groups, weights=norms) / np.bincount(groups)
    return means[groups]


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

    >>> from equipoise.domains.accounts.trees.tree import Tree
    >>> tree = Tree.from_edges([("cash", "assets"), ("bank", "assets")])
    >>> found = reconstruct(tree, [[1.0], [0.0], [-2.0]])
    >>> found.ranking.ranks, found.filtered
    (array([1., 1.]), False)
    """
    space = geometry_of(geometry)
    points = as_vectors(to_numpy(vectors), "the vectors")
    if len(points) != len(tree):
        raise ShapeError(
            f"there are {len(points)} vectors for the {len(tree)} nodes of {tree.source}",
            hint="give one row a node, in the order of the tree's ids",
        )
    check_has_edges(tree)
    pairs = tree.pairs(relation)
    complaints = check_points(space, points, tree)
    ids = list(tree.ids) if unit_ids is None else unit_ids
    ranking = _ranked(points, pairs, space, ids, device, moved)
    norms = space.norm(points) if moved is None else norms_with_ties(space.norm(points), space, moved)
    return Reconstruction(
        tree=tree,
        geometry=space,
        ranking=replace(ranking, invalid_points=complaints),
        space=Space.of(points, depth=tree.normalised_rank, norms=norms, unit_ids=ids),
        parent_distances=space.distance(points[tree.edges[:, 0]], points[tree.edges[:, 1]]),
        relation=relation,
        filtered=relation != "parent" if filtered is None else filtered,
    )


def _ranked(points: PointArray, pairs: Ints, space: Geometry, ids: Any, device: Any, moved: Floats | None) -> Ranking:
    """The relatives among all others: by distances, by products on a device, or within rounding."""
    if moved is not None:
        return ranking_with_rounding(points, pairs, space, moved, unit_ids=ids)
    if device is None:
        return ranking_among_points(points, pairs, space, unit_ids=ids)
    from equipoise.evidence.ranking_from_vectors import ranking_from_points_on

    return ranking_from_points_on(device, points, pairs, space, unit_ids=ids)


def check_has_edges(tree: Tree) -> None:
    """A tree in which nobody has a parent has no relatives to find; worth asking before any training."""
    if not len(tree.edges):
        raise UndefinedError(f"{tree.source} has no edge, so there is nothing to find", hint="say who is whose parent")


def check_points(space: Geometry, points: Any, tree: Tree) -> str:
    """What is odd about points that can be ranked all the same; those that cannot are refused by name."""
    validity = space.check(points)
    for fault in validity.faults:
        if fault.fatal:
            named = ", ".join(tree.ids[row] for row in fault.rows[:_NAMED].tolist())
            more = ", ..." if len(fault.rows) > _NAMED else ""
            raise (InputError if fault.finite else NotFiniteError)(
                f"{len(fault.rows)} of the {len(tree)} points of {tree.source} {fault.predicate}: {named}{more}",
                hint=fault.hint,
            )
    return "" if validity.ok else str(validity)


# From a reconstruction to a result: ranks over edges and over nodes, precision, and norm against depth.


def reconstruction_metrics(*, filtered: bool) -> tuple[Metric[Any], ...]:
    """What is measured of ranks: mean rank over edges and over nodes, median, MAP and MRR, the first primary.

    Average precision and the reciprocal rank are those of the whole list, whether ranks are filtered or not.

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
    found: Reconstruction,
    *,
    system: str = "system",
    metrics: Any = None,
    config: StatsConfig = DEFAULT_STATS,
    chance: bool = True,
) -> Result:
    """All figures of a reconstruction in one result, whose evidence is the ranking.

    ``metrics`` replaces the usual ranking metrics. Intervals resample the nodes, those of one cluster
    together: the top-level branches, unless ``config.clusters`` has one id per node. No interval of a rank
    reaches beyond the last one. ``NormDepthCorrelation``, Spearman's correlation of norm and normalised rank, comes
    last.
    """
    options: dict[str, Any] = {
        "system": system,
        "config": config if config.clusters is not None else replace(config, clusters=found.branches),
        "chance": chance,
        "settings": {
            "ties": str(Ties.EXPECTED),
            "relation": found.relation,
            "filtered": found.filtered,
            "geometry": found.geometry.name,
            "dim": dimension(found),
            DATA: {"tree": found.tree.fingerprint},
        },
    }
    chosen = reconstruction_metrics(filtered=found.filtered) if metrics is None else parse_metrics(metrics)
    ranks = estimate(found.ranking, chosen, **options)
    depth = estimate(found.space, [NormDepthCorrelation()], **options)
    return replace(ranks, estimates={**_within(ranks.estimates, len(found) - 1), **depth.estimates})


def _within(estimates: Mapping[str, Estimate], candidates: int) -> dict[str, Estimate]:
    """The same, no interval of a rank reaching beyond the last one: few branches would allow anything."""
    return {
        name: replace(each, interval=each.interval.clipped((1.0, float(candidates))))
        if each.unit == MeanRank.unit
        else each
        for name, each in estimates.items()
    }


def dimension(found: Reconstruction) -> int:
    """The dimension of the space: a Lorentz point has one coordinate more."""
    return int(found.space.vectors.shape[1]) - (found.geometry.name == "lorentz")


def reconstruction_slices(
    found: Reconstruction, result: Result, metric: str | None = None, *, seed: int = 0
) -> tuple[Slice, ...]:
    """A metric (the primary one unless named) at each depth and in each top-level branch.

    Depths come from the root down, branches in the order of the tree.
    """
    units = zip(result.unit_ids.tolist(), found.depth.tolist(), found.tree.branches, strict=True)
    known = {unit: {"depth": depth, "branch": branch} for unit, depth, branch in units}
    slices = slice_estimates(result, metric or result.names[0], known, seed=seed)
    by_depth = [each for each in slices if each.name == "depth"]
    return (
        *sorted(by_depth, key=lambda each: int(each.value)),
        *(each for each in slices if each.name == "branch"),
    )
