"""Evaluation of one embedding of a tree: ranks of the targets, norms against depth, distances to the parents.

``reconstruct`` computes the evidence, ``reconstruction_result`` the metrics with their intervals, and
``evaluate_embedding`` all scores of one embedding. Intervals resample branches of the tree (``branch_clusters``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import DEFAULT_STATS, StatsConfig, Ties
from equipoise.domains.accounts.checks import with_findings
from equipoise.domains.accounts.shape import EmbeddingShape, TreeShape, embedding_shape, tree_shape
from equipoise.domains.accounts.trees.tree import PARENT, RELATIONS
from equipoise.errors import InputError, NotFiniteError, ShapeError, UndefinedError
from equipoise.evidence.base import to_numpy
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.ranking_among_points import ranking_among_points
from equipoise.evidence.space import Space
from equipoise.geometry.base import Geometry, PointArray, as_vectors
from equipoise.geometry.spaces import Poincare
from equipoise.geometry.spaces import geometry as geometry_of
from equipoise.metrics.parser import parse_metrics
from equipoise.metrics.ranking import AveragePrecision, MeanRank, MedianRank, ReciprocalRank
from equipoise.metrics.structure import NormDepthCorrelation
from equipoise.stats.bootstrap_mean import FEW_RESAMPLING_UNITS, mean_intervals
from equipoise.stats.estimate import estimate
from equipoise.stats.result import DATA
from equipoise.stats.seeds import MeanAndDeviation, mean_and_deviation
from equipoise.stats.slices import Slice, slice_estimates
from equipoise.stats.verdict import DISPLAY, UNIT_NOUN

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.domains.accounts.vectors import NodeVectors
    from equipoise.metrics.base import Metric
    from equipoise.stats.result import Estimate, Result
    from equipoise.stats.seeds import SeedSummary
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
        return origin_distances(self.geometry, self.space.vectors)

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

    @property
    def metrics(self) -> tuple[Metric[Any], ...]:
        """The metrics of its ranks."""
        return reconstruction_metrics(filtered=self.filtered, single_target=self.has_single_target)


def reconstruct(
    tree: Tree,
    vectors: Any,
    geometry: str | Geometry = "euclidean",
    *,
    relation: str = "parent",
    filtered: bool | None = None,
    device: Any = None,
) -> Reconstruction:
    """Rank the targets of every node among all other nodes, by distance.

    ``vectors`` has one row per node, in the order of the tree. Targets are the "parent", the "ancestors" (as in the
    published code of Poincare embeddings), or the "closure": ancestors and descendants. The node itself is not a
    candidate. ``filtered`` excludes the other targets from the ranks; by default ranks are raw for the parent and
    filtered otherwise. A ``device`` such as "cuda" ranks by matrix products, which round. Points outside their space
    are an error that names them.

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
    ids = list(tree.ids)
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


def origin_distances(space: Geometry, points: PointArray) -> Floats:
    """The distance of each point from the origin; in the Poincare ball that is not the norm."""
    return space.hyperbolic_norm(points) if isinstance(space, Poincare) else space.norm(points)


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


def reconstruction_metrics(*, filtered: bool, single_target: bool = False) -> tuple[Metric[Any], ...]:
    """The metrics of ranks: mean rank over edges and over nodes, median, MAP and MRR; the first is primary.

    Average precision and the reciprocal rank always use the full list, even if ranks are filtered. With a single target
    per node, the mean rank over nodes equals that over edges, and MRR equals MAP: they are left out.

    >>> [metric.name for metric in reconstruction_metrics(filtered=True)]
    ['MR(filtered)', 'MR(over=units,filtered)', 'MedianRank(filtered)', 'MAP', 'MRR']
    """
    if single_target:
        return (MeanRank(filtered=filtered), MedianRank(filtered=filtered), AveragePrecision())
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
    config: StatsConfig = DEFAULT_STATS,
) -> Result:
    """All metrics of a reconstruction in one result; its evidence is the ranking.

    Intervals resample clusters of nodes: the top-level branches,
    unless ``config.clusters`` has a label per node. Intervals of ranks are clipped to the possible ranks. The last
    metric is ``NormDepthCorrelation``: Spearman's correlation of the norm and the position between root and leaf.
    """
    options: dict[str, Any] = {
        "system": system,
        "config": config if config.clusters is not None else replace(config, clusters=reconstruction.branches),
        "settings": {
            "ties": str(Ties.EXPECTED),
            "relation": reconstruction.relation,
            "filtered": reconstruction.filtered,
            "geometry": reconstruction.geometry.name,
            "dim": dimension(reconstruction),
            UNIT_NOUN: "node",
            DISPLAY: {"system": "embedding", "cluster": "subtree"},
            DATA: {"tree": reconstruction.tree.fingerprint},
        },
    }
    ranks = estimate(reconstruction.ranking, reconstruction.metrics, **options)
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


def reconstruction_slices(reconstruction: Reconstruction, result: Result) -> tuple[Slice, ...]:
    """The primary metric at each depth and in each top-level branch.

    Depths are in ascending order, branches in the order of the tree.
    """
    units = zip(result.unit_ids.tolist(), reconstruction.depth.tolist(), reconstruction.tree.branches, strict=True)
    unit_attributes = {unit: {"depth": depth, "branch": branch} for unit, depth, branch in units}
    slices = slice_estimates(result, result.names[0], unit_attributes)
    by_depth = [part for part in slices if part.name == "depth"]
    return (
        *sorted(by_depth, key=lambda part: int(part.value)),
        *(part for part in slices if part.name == "branch"),
    )


@dataclass(frozen=True)
class BranchClusters:
    """The branch of each node, by the id of its top node, and the number of levels above these branches."""

    labels: Ids
    level: int

    def __len__(self) -> int:
        return len(set(self.labels.tolist()))

    @property
    def caption(self) -> str:
        """The resampling, for a caption."""
        too_few = " There are too few subtrees at the top for the tests." if self.level else ""
        return f"{len(self)} whole subtrees are resampled. {self.definition}{too_few}"

    @property
    def definition(self) -> str:
        """What a subtree is, as a sentence."""
        if not self.level:
            return "A subtree is a node at the top, or directly below a single root, with its descendants."
        levels = "one level" if self.level == 1 else f"{self.level} levels"
        return f"A subtree is a node {levels} below the top with its descendants, or a single node above that level."


MIN_BRANCHES = 20
"""With 20 branches the smallest p value, 2 / 2^20, is significant also among hundreds of pairs."""


def branch_clusters(tree: Tree) -> BranchClusters:
    """The top-level branches; if there are fewer than ``MIN_BRANCHES``, those of the first level with that number.

    With ten branches no pattern of signs has a probability below 2 / 1,024. After the correction for the 28 pairs of
    eight embeddings, not even the difference between a random and a perfect embedding would be significant. A chart of
    accounts rarely has more branches at its top. A node above the level is its own branch. If no level has enough
    branches, the level with the most is used, or the top if that is fewer than ten.

    >>> from equipoise.domains.accounts.trees.tree import Tree
    >>> groups = [f"{top}{group}" for top in "abc" for group in range(6)]
    >>> chart = [(group, group[0]) for group in groups] + [(f"{group}.1", group) for group in groups]
    >>> clusters = branch_clusters(Tree.from_edges(chart))
    >>> len(clusters), clusters.level
    (21, 1)
    """
    best = BranchClusters(np.array(tree.branches, dtype=object), 0)
    roots = {tree.positions[key] for key in best.labels.tolist()}
    # The last level is excluded: it would make every node a branch, which is not a clustering.
    for level in range(1, int(tree.depth.max(initial=0.0))):
        if len(best) >= MIN_BRANCHES:
            break
        labels = np.array([tree.ids[node] for node in _branch_nodes(tree, roots, level)], dtype=object)
        lower = BranchClusters(labels, level)
        if len(lower) >= FEW_RESAMPLING_UNITS:
            best = max(best, lower, key=len)
    return best


def _branch_nodes(tree: Tree, roots: set[int], level: int) -> list[int]:
    """The ancestor of each node that is this many levels below the top of its branch, or the node itself."""
    branch_nodes, below = list(range(len(tree))), [0] * len(tree)
    for node in np.argsort(tree.depth, kind="stable").tolist():
        parent = int(tree.first_parents[node])
        if node in roots or parent < 0:
            continue
        below[node] = below[parent] + 1
        if below[node] > level:
            branch_nodes[node] = branch_nodes[parent]
    return branch_nodes


SPEARMAN = NormDepthCorrelation().name
CONSTRUCTED = "combinatorial"
NO_TARGETS = "EQ104"
"""Finding about units without an answer: here nodes without targets, which the report counts."""


@dataclass(frozen=True)
class RelationScores:
    """Mean rank and MAP of one relation, without intervals; ranks are filtered if a node has several targets."""

    mean_rank: float
    map: float


MAX_NODES_OF_OTHER_RELATIONS = 6000
"""Larger trees are evaluated on the requested relation only: ranking all ancestors takes minutes there."""


def other_relation_scores(tree: Tree, vectors: NodeVectors, relation: str) -> dict[str, RelationScores]:
    """The scores of the relations other than the requested one; none for a large tree."""
    if len(tree) > MAX_NODES_OF_OTHER_RELATIONS:
        return {}
    scores = {}
    for other in RELATIONS:
        if other != relation:
            reconstruction = reconstruct(tree, vectors.vectors, vectors.geometry, relation=other)
            mean_rank, _, _, average_precision, _ = reconstruction_metrics(filtered=reconstruction.filtered)
            values = [metric.measure(reconstruction.ranking).value for metric in (mean_rank, average_precision)]
            scores[other] = RelationScores(*values)
    return scores


def mean_over_seeds(results: Sequence[Result], config: StatsConfig) -> Result:
    """One result for several seeds of an embedder: the scores of each node are averaged.

    Intervals are those of the averaged scores. A score that is not a mean over nodes, such as a correlation, is the
    mean over the seeds, and so are the ends of its interval.
    """
    first = results[0]
    per_unit = {name: np.mean([result.per_unit[name] for result in results], axis=0) for name in first.per_unit}
    metrics = {name: parse_metrics(name)[0] for name in per_unit}
    ones = np.ones(len(first.unit_ids))
    evidence = first.evidence
    assert evidence is not None
    intervals = mean_intervals(
        np.column_stack(list(per_unit.values())),
        weights=np.column_stack([first.weights.get(name, ones) for name in per_unit]),
        clusters=first.clusters,
        bounds=[metric.bounds for metric in metrics.values()],
        limits=[metric.bounds_on(evidence) for metric in metrics.values()],
        config=config,
        rng=config.rng(0),
    )
    known = dict(zip(per_unit, intervals, strict=True))
    estimates = {}
    for name, first_estimate in first.estimates.items():
        values = [result.estimates[name] for result in results]
        interval = known.get(name)
        if interval is None:
            low, high = (float(np.mean([getattr(value.interval, end) for value in values])) for end in ("low", "high"))
            interval = replace(first_estimate.interval, low=low, high=high)
        estimates[name] = replace(
            first_estimate, value=float(np.mean([value.value for value in values])), interval=interval
        )
    findings = tuple(dict.fromkeys(finding for result in results for finding in result.findings))
    return replace(first, estimates=estimates, per_unit=per_unit, findings=findings)


@dataclass(frozen=True)
class EmbeddingEvaluation:
    """The scores of one embedding, and its vectors.

    ``origin_distances`` are distances from the origin in the geometry; ``norms`` are norms of the coordinates.
    If the embedder was trained with several seeds, ``seed_summaries`` has mean and standard deviation per metric, the
    result has the means over seeds (``mean_over_seeds``), and the vectors are those of the first seed.
    ``other_relations`` has MR and MAP of the relations that were not requested.
    """

    result: Result
    vectors: NodeVectors = field(repr=False)
    norms: MeanAndDeviation
    origin_distances: MeanAndDeviation
    parent_distances: MeanAndDeviation
    slices: tuple[Slice, ...] = ()
    seed_summaries: Mapping[str, SeedSummary] = field(default_factory=dict)
    other_relations: Mapping[str, RelationScores] = field(default_factory=dict)
    shape: EmbeddingShape | None = None
    tree_shape: TreeShape | None = None
    has_single_target: bool = False

    @property
    def system(self) -> str:
        """Name of the embedding."""
        return self.result.system

    @property
    def dim(self) -> int:
        """The dimension of the space."""
        return self.vectors.dim

    @property
    def geometry(self) -> str:
        """Name of the geometry."""
        return str(self.result.settings["geometry"])

    @property
    def relation(self) -> str:
        """The related nodes that are the ranking targets."""
        return str(self.result.settings["relation"])

    @property
    def is_filtered(self) -> bool:
        """Whether the other targets of a node are left out of its ranks."""
        return bool(self.result.settings["filtered"])

    @property
    def n_displaced(self) -> int:
        """The number of nodes with a target that is not the nearest node; 0 unless parents are ranked."""
        if self.relation != PARENT:
            return 0
        return int(np.count_nonzero(self._best_ranks < 1.0 - 1e-9))

    @property
    def _best_ranks(self) -> Floats:
        """One over the rank of the nearest target of each node: MRR, or with a single target MAP."""
        return self.result.per_unit["MAP" if self.has_single_target else "MRR"]

    @property
    def train_relation(self) -> str | None:
        """The related nodes that were the positives of training; None if it was not trained here."""
        return self.vectors.settings.get("train_relation")

    @property
    def mean_rank(self) -> Estimate:
        """The mean rank of the targets, over edges."""
        return self._estimate(0)

    @property
    def macro_mean_rank(self) -> Estimate:
        """The mean over nodes of their mean ranks."""
        return self._estimate(0 if self.has_single_target else 1)

    @property
    def median_rank(self) -> Estimate:
        """The median rank, over edges."""
        return self._estimate(2)

    @property
    def map(self) -> Estimate:
        """Mean average precision, over nodes."""
        return self._estimate(3)

    @property
    def spearman(self) -> Estimate:
        """Spearman's correlation of norm and normalised depth."""
        return self.result.estimates[SPEARMAN]

    def _estimate(self, index: int) -> Estimate:
        return self.result.estimates[reconstruction_metrics(filtered=self.is_filtered)[index].name]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            **self.result.to_dict(),
            "geometry": self.geometry,
            "dim": self.dim,
            "train_relation": self.train_relation,
            "norms": self.norms.to_dict(),
            "origin_distances": self.origin_distances.to_dict(),
            "parent_distances": self.parent_distances.to_dict(),
            "other_relations": {relation: asdict(scores) for relation, scores in self.other_relations.items()},
            "shape": None if self.shape is None else asdict(self.shape),
            "slices": [{"name": part.name, "slice": part.value, **part.estimate.to_dict()} for part in self.slices],
            "seeds": {
                name: {"mean": summary.mean, "sd": summary.deviation, "values": list(summary.values)}
                for name, summary in self.seed_summaries.items()
            },
        }


def evaluate_embedding(
    tree: Tree,
    vectors: NodeVectors,
    *,
    system: str = "system",
    relation: str = "parent",
    filtered: bool | None = None,
    branches: BranchClusters | None = None,
    config: StatsConfig = DEFAULT_STATS,
    device: str | None = None,
) -> EmbeddingEvaluation:
    """Rank the targets of every node by distance, and compute the metrics.

    Parameters
    ----------
    tree
        The tree.
    vectors
        One vector per node.
    system
        The name of the embedding in the result.
    relation
        The ranking targets of a node: ``parent``, ``ancestors``, or ``closure`` (ancestors and descendants).
    filtered
        Whether the other targets of a node are left out of its ranks. By default they are for relations with several
        targets.
    branches
        The clusters of the bootstrap; by default those of ``branch_clusters``.
    config
        Confidence level, resamples, seed and ties.
    device
        Where distances are computed, such as ``cuda``. Matrix products there have rounding errors, so that the
        combinatorial construction is ranked on the processor.

    Returns
    -------
    EmbeddingEvaluation
        Ranking metrics, and the correlation of norm and position.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.accounts import NodeVectors, Tree
    >>> tree = Tree.from_edges([("cash", "assets"), ("bank", "assets")])
    >>> points = {"assets": [0.0, 0.0], "cash": [1.0, 0.0], "bank": [0.0, 2.0]}
    >>> rows = np.array([points[node] for node in tree.ids])
    >>> evaluation = evaluate_embedding(tree, NodeVectors(tree.ids, tree.names, rows, "euclidean"))
    >>> evaluation.result["MR"].value
    1.0
    """
    clusters = (branches or branch_clusters(tree)).labels
    if vectors.settings.get("embedder") == CONSTRUCTED:
        # Its points are so far out that matrix products lose their digits.
        device = None
    reconstruction = reconstruct(
        tree,
        vectors.vectors,
        vectors.geometry,
        relation=relation,
        filtered=filtered,
        device=device,
    )
    result = reconstruction_result(reconstruction, system=system, config=replace(config, clusters=clusters))
    result = with_findings(result, reconstruction, reconstruction.metrics)
    findings = tuple(finding for finding in result.findings if finding.code != NO_TARGETS)
    device_setting = {} if device is None else {"device": device}
    result = replace(result, findings=findings, settings={**result.settings, **device_setting})
    return EmbeddingEvaluation(
        result=result,
        vectors=vectors,
        norms=mean_and_deviation(reconstruction.norms, clusters=clusters, config=config),
        origin_distances=mean_and_deviation(reconstruction.origin_distances, clusters=clusters, config=config),
        parent_distances=mean_and_deviation(
            reconstruction.parent_distances, clusters=clusters[reconstruction.tree.edges[:, 0]], config=config
        ),
        slices=reconstruction_slices(reconstruction, result),
        has_single_target=reconstruction.has_single_target,
        other_relations=other_relation_scores(tree, vectors, relation),
        shape=embedding_shape(tree, vectors),
        tree_shape=tree_shape(tree),
    )
