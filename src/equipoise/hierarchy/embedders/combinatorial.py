"""The combinatorial construction of Sala, De Sa, Gu and Re (2018): no training, every edge equally long."""

from __future__ import annotations

import math

import numpy as np

from equipoise.errors import ParameterError
from equipoise.geometry import functions
from equipoise.geometry.functions import hyperboloid_to_ball
from equipoise.hierarchy.embedded import Embedded
from equipoise.hierarchy.embedders.base import checked
from equipoise.hierarchy.riemann.layout import laid_out
from equipoise.hierarchy.riemann.train import Progress
from equipoise.hierarchy.tree import Tree
from equipoise.types import Floats

FARTHEST = 30.0
"""How far from the origin float64 still tells points of the ball apart: 1 - |x| is 2e-13 there."""

ROUNDED = 4.0
"""How many units in the last place a point may be off. Edges came out wrong by 0.8 of the sum of both ends at
most on charts, stars, paths and binary trees of 2 to 50 dimensions, and by 2.9 on WordNet's mammals."""


def moved_by_rounding(points: Floats) -> Floats:
    """How far float64 may have moved each point of the ball from where the construction puts it.

    A coordinate near the rim is rounded by eps, and the metric stretches that by e^radius.

    >>> moved_by_rounding(np.array([[0.0, 0.0], [0.0, 1.0 - 1e-9]])).round(9).tolist()
    [0.0, 1.776e-06]
    """
    norm = functions.norm(points)
    stretch: Floats = (1.0 + norm) / (1.0 - norm)
    return ROUNDED * np.finfo(np.float64).eps * stretch


class Combinatorial:
    """Children around their parent at one distance: the longer it is, the nearer to distances in the tree.

    ``edge`` is that distance; without it, the longest that keeps the deepest node within float64's reach. A
    node with several parents hangs from the first on a shortest path from a root, and
    ``settings["edges_left_out"]`` counts the others. In two dimensions siblings stand at equal angles; in
    more, they are spread at random.
    """

    name = "combinatorial"
    geometry = "poincare"

    def __init__(self, edge: float | None = None) -> None:
        if edge is not None and not (edge > 0.0 and math.isfinite(edge)):
            raise ParameterError(f"edge is {edge}", hint="it is a length above 0")
        self.edge = edge

    def fit(self, tree: Tree, dim: int, seed: int = 0, *, progress: Progress | None = None) -> Embedded:
        """The points of the tree's nodes; see ``TreeEmbedder``."""
        checked(tree, dim, least=2)
        levels = int(tree.depth.max(initial=0.0)) + (len(tree.roots) > 1)
        longest = FARTHEST / max(1, levels)
        edge = self.edge or longest
        if edge > longest * (1.0 + 1e-9):
            raise ParameterError(
                f"edges of {edge:g} put the deepest of {levels} levels {edge * levels:g} from the origin, "
                f"and float64 tells points of the ball apart up to {FARTHEST:g}",
                hint=f"edges of {longest:.4g} are the longest for {tree.source}",
            )
        points = laid_out(tree, dim, edge, np.random.default_rng(seed), FARTHEST)
        if progress is not None:
            progress(1, 1)
        left_out = len(tree.edges) - (len(tree) - len(tree.roots))
        settings = {"embedder": self.name, "dim": dim, "seed": seed, "edge": edge, "edges_left_out": left_out}
        return Embedded(tree.ids, tree.names, hyperboloid_to_ball(points), self.geometry, settings)
