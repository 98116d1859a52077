"""One embedding of a tree, judged: ranks, precision, norms against depths, and distances to the parents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from equipoise.checks.hierarchy import examined
from equipoise.hierarchy.embedded import Embedded
from equipoise.hierarchy.embedders.combinatorial import Combinatorial, moved_by_rounding
from equipoise.hierarchy.tree import Tree
from equipoise.metrics.space import NormDepth
from equipoise.recipes.accounts.branches import Branches, resampled_branches
from equipoise.stats.result import Estimate, Result
from equipoise.stats.seeds import SeedSummary
from equipoise.stats.slices import Slice
from equipoise.tasks.reconstruct import (
    Spread,
    reconstruct,
    reconstruction_metrics,
    reconstruction_result,
    reconstruction_slices,
    spread,
)
from equipoise.types import Floats

SPEARMAN = NormDepth().name
NO_RELATIVES = "EQ104"
"""Said of units without an answer: here these are nodes without relatives, and the report counts them."""


@dataclass(frozen=True)
class Sure:
    """How sure is sure: level, resampling and the seed of it."""

    level: float = 0.95
    resamples: int = 2000
    seed: int = 0


@dataclass(frozen=True)
class Judged:
    """What one embedding scores, beside the vectors themselves.

    ``radii`` are distances from the origin in the space itself; norms are those of the coordinates.
    ``over_seeds`` holds mean and spread of a figure where the embedder was trained with several seeds; the
    result is that of the first.
    """

    result: Result
    embedded: Embedded = field(repr=False)
    norms: Spread
    radii: Spread
    parent_distances: Spread
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
            "slices": [
                {"name": each.name, "value": each.value, **each.estimate.to_dict()} for each in self.slices
            ],
        }


def judge(
    tree: Tree,
    embedded: Embedded,
    *,
    system: str = "system",
    relation: str = "parent",
    filtered: bool | None = None,
    branches: Branches | None = None,
    sure: Sure | None = None,
    device: str | None = None,
) -> Judged:
    """Rank the relatives of every node by the distances of the vectors, and measure the ranks.

    ``branches`` are resampled whole; left alone they are those of ``resampled_branches``. A ``device`` such
    as "cuda" ranks there, by products, which round. In the combinatorial construction many distances are
    equal but for rounding, so those within its error are tied.
    """
    sure = sure or Sure()
    clusters = (branches or resampled_branches(tree)).of_nodes
    found = reconstruct(
        tree,
        embedded.vectors,
        embedded.geometry,
        relation=relation,
        filtered=filtered,
        device=device,
        moved=_moved(embedded),
    )
    options: dict[str, Any] = {"level": sure.level, "resamples": sure.resamples, "seed": sure.seed}
    result = reconstruction_result(found, system=system, clusters=clusters, **options)
    result = examined(result, found, reconstruction_metrics(filtered=found.filtered))
    told = tuple(each for each in result.findings if each.code != NO_RELATIVES)
    where = {} if device is None else {"device": device}
    result = replace(result, findings=told, settings={**result.settings, **where})
    return Judged(
        result=result,
        embedded=embedded,
        norms=spread(found.norms, clusters=clusters, **options),
        radii=spread(found.radii, clusters=clusters, **options),
        parent_distances=spread(found.parent_distances, clusters=clusters[found.tree.edges[:, 0]], **options),
        slices=reconstruction_slices(found, result, seed=sure.seed),
        single=found.single,
    )


def _moved(embedded: Embedded) -> Floats | None:
    """How far rounding may have moved the points of a construction in which equals are meant to be equal."""
    built = embedded.settings.get("embedder") == Combinatorial.name
    return moved_by_rounding(embedded.vectors) if built else None
