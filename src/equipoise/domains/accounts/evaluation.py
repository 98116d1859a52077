"""One embedding of a tree, judged: ranks, precision, norms against depths, and distances to the parents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.accounts.checks import with_findings
from equipoise.domains.accounts.embedders import CombinatorialEmbedder, rounding_error_bound
from equipoise.domains.accounts.reconstruction import (
    reconstruct,
    reconstruction_metrics,
    reconstruction_result,
    reconstruction_slices,
)
from equipoise.metrics.structure import NormDepthCorrelation
from equipoise.stats.estimate import MeanAndDeviation, mean_and_deviation
from equipoise.stats.mean_intervals import FEW_RESAMPLING_UNITS

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.domains.accounts.vectors import NodeVectors
    from equipoise.stats.result import Estimate, Result
    from equipoise.stats.seeds import SeedSummary
    from equipoise.stats.slices import Slice
    from equipoise.types import Floats, Ids, Ints

# Branches of a tree that are resampled whole: those at the top, or further down where these are too few.


@dataclass(frozen=True)
class BranchClusters:
    """The branch of each node, by the id of its top, and how many levels of branches stand above these."""

    of_nodes: Ids
    level: int

    def __len__(self) -> int:
        return len(set(self.of_nodes.tolist()))

    @property
    def description(self) -> str:
        """What a caption says of them."""
        told = f"Whole branches are resampled: {len(self)}"
        if not self.level:
            return f"{told} at the top."
        levels = "one level" if self.level == 1 else f"{self.level} levels"
        return f"{told} of them, {levels} below the top, since those at the top are too few for any test."


def branch_clusters(tree: Tree) -> BranchClusters:
    """The top-level branches; below ten of them, those of the first level that has as many.

    With five branches no pattern of signs is rarer than one in sixteen, so that not even a random embedding
    could be told from a perfect one. A chart of accounts rarely has more at its top. A node above the level
    is a branch of its own. Where no level has ten, the top-level branches stay.

    >>> from equipoise.domains.accounts.trees.tree import Tree
    >>> groups = [f"{top}{group}" for top in "abc" for group in range(5)]
    >>> chart = [(group, group[0]) for group in groups] + [(f"{group}.1", group) for group in groups]
    >>> found = branch_clusters(Tree.from_edges(chart))
    >>> len(found), found.level
    (18, 1)
    """
    tops = np.array(tree.branches, dtype=object)
    found = BranchClusters(tops, 0)
    if len(found) >= FEW_RESAMPLING_UNITS:
        return found
    first = {tree.positions[key] for key in found.of_nodes.tolist()}
    # Leaves alone would make every node a branch, which is no clustering at all.
    for level in range(1, int(tree.depth.max(initial=0.0))):
        below = [_ancestor(node, level, tree.first_parents, first) for node in range(len(tree))]
        ids = np.array([tree.ids[each] for each in below], dtype=object)
        if len(set(below)) >= FEW_RESAMPLING_UNITS:
            return BranchClusters(ids, level)
    return found


def _ancestor(node: int, level: int, above: Ints, tops: set[int]) -> int:
    """The node on the way up that stands this many levels below the top of its branch."""
    way = [node]
    while way[-1] not in tops and above[way[-1]] >= 0:
        way.append(int(above[way[-1]]))
    return way[max(0, len(way) - 1 - level)]


SPEARMAN = NormDepthCorrelation().name
NO_RELATIVES = "EQ104"
"""Said of units without an answer: here these are nodes without relatives, and the report counts them."""


@dataclass(frozen=True)
class EmbeddingEvaluation:
    """What one embedding scores, beside the vectors themselves.

    ``radii`` are distances from the origin in the space itself; norms are those of the coordinates.
    ``over_seeds`` holds mean and spread of a figure where the embedder was trained with several seeds; the
    result is that of the first.
    """

    result: Result
    embedded: NodeVectors = field(repr=False)
    norms: MeanAndDeviation
    radii: MeanAndDeviation
    parent_distances: MeanAndDeviation
    slices: tuple[Slice, ...] = ()
    over_seeds: Mapping[str, SeedSummary] = field(default_factory=dict)
    single: bool = False

    @property
    def system(self) -> str:
        """What it is called."""
        return self.result.system

    @property
    def dim(self) -> int:
        """The dimension of the space."""
        return self.embedded.dim

    @property
    def geometry(self) -> str:
        """Which space it is."""
        return str(self.result.settings["geometry"])

    @property
    def relation(self) -> str:
        """Whom each node ranks."""
        return str(self.result.settings["relation"])

    @property
    def train_on(self) -> str | None:
        """Whom training drew near to each node; None where it was not trained here."""
        return self.embedded.settings.get("train_on")

    @property
    def mean_rank(self) -> Estimate:
        """The mean rank of the relatives, over edges."""
        return self._figure(0)

    @property
    def macro_mean_rank(self) -> Estimate:
        """The same, every node counted alike."""
        return self._figure(1)

    @property
    def median_rank(self) -> Estimate:
        """The median rank, over edges."""
        return self._figure(2)

    @property
    def map(self) -> Estimate:
        """Mean average precision, over nodes."""
        return self._figure(3)

    @property
    def spearman(self) -> Estimate:
        """Spearman's correlation of norm and place in the tree."""
        return self.result.estimates[SPEARMAN]

    def _figure(self, place: int) -> Estimate:
        filtered = bool(self.result.settings["filtered"])
        return self.result.estimates[reconstruction_metrics(filtered=filtered)[place].name]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            **self.result.to_dict(),
            "geometry": self.geometry,
            "dim": self.dim,
            "train_on": self.train_on,
            "norms": self.norms.to_dict(),
            "radii": self.radii.to_dict(),
            "parent_distances": self.parent_distances.to_dict(),
            "slices": [{"name": each.name, "value": each.value, **each.estimate.to_dict()} for each in self.slices],
        }


def evaluate_embedding(
    tree: Tree,
    embedded: NodeVectors,
    *,
    system: str = "system",
    relation: str = "parent",
    filtered: bool | None = None,
    branches: BranchClusters | None = None,
    config: StatsConfig = DEFAULT_STATS,
    device: str | None = None,
) -> EmbeddingEvaluation:
    """Rank the relatives of every node by the distances of the vectors, and measure the ranks.

    ``branches`` are resampled whole; left alone they are those of ``branch_clusters``. A ``device`` such
    as "cuda" ranks there, by products, which round. In the combinatorial construction many distances are
    equal but for rounding, so those within its error are tied.
    """
    clusters = (branches or branch_clusters(tree)).of_nodes
    found = reconstruct(
        tree,
        embedded.vectors,
        embedded.geometry,
        relation=relation,
        filtered=filtered,
        device=device,
        moved=_moved(embedded),
    )
    result = reconstruction_result(found, system=system, config=replace(config, clusters=clusters))
    result = with_findings(result, found, reconstruction_metrics(filtered=found.filtered))
    told = tuple(each for each in result.findings if each.code != NO_RELATIVES)
    where = {} if device is None else {"device": device}
    result = replace(result, findings=told, settings={**result.settings, **where})
    return EmbeddingEvaluation(
        result=result,
        embedded=embedded,
        norms=mean_and_deviation(found.norms, clusters=clusters, config=config),
        radii=mean_and_deviation(found.radii, clusters=clusters, config=config),
        parent_distances=mean_and_deviation(
            found.parent_distances, clusters=clusters[found.tree.edges[:, 0]], config=config
        ),
        slices=reconstruction_slices(found, result, seed=config.seed),
        single=found.single,
    )


def _moved(embedded: NodeVectors) -> Floats | None:
    """How far rounding may have moved the points of a construction in which equals are meant to be equal."""
    built = embedded.settings.get("embedder") == CombinatorialEmbedder.name
    return rounding_error_bound(embedded.vectors) if built else None
