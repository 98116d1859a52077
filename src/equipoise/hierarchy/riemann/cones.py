"""The start of training: every node in the cone of its parent, as far out as its subtree is small.

In hyperbolic space a leaf u far out is nearer to w than to the origin exactly when the angle between them is
below ``2 arcsin(exp(-r(w)/2))``: a point w at radius r(w) is the tip of a cone, and holds what lies in it. So
children lie within the cone of their parent, and a node with half as many descendants lies one step farther
out. Most ancestors then rank first before any training, where points at the tree's own distances would put
every sibling before the grandparents.
"""

from __future__ import annotations

import numpy as np

from equipoise.hierarchy.riemann.layout import UNSET, spanning_parents
from equipoise.hierarchy.tree import Tree
from equipoise.types import Floats


def in_cones(tree: Tree, dim: int, rng: np.random.Generator, *, inner: float, outer: float) -> Floats:
    """Hyperboloid points: largest subtrees at radius ``inner``, leaves at ``outer``, a single root at 0."""
    count = len(tree)
    parent = spanning_parents(tree)
    descendants = np.bincount(tree.closure()[:, 1], minlength=count)
    share = 1.0 - np.log1p(descendants) / max(np.log(count), 1.0)
    radius = inner + (outer - inner) * share
    directions = _unit(rng.standard_normal((count, dim)))
    if len(tree.roots) == 1:
        radius[tree.roots] = 0.0
    for level in range(1, int(tree.depth.max(initial=0.0)) + 1):
        layer = np.flatnonzero(tree.depth == level)
        layer = layer[(parent[layer] != UNSET) & (radius[parent[layer]] > 0.0)]
        axis = directions[parent[layer]]
        away = directions[layer] - np.einsum("ij,ij->i", directions[layer], axis)[:, None] * axis
        angle = np.minimum(2.0 * np.arcsin(np.exp(-0.5 * radius[parent[layer]])), 0.5 * np.pi)[:, None]
        directions[layer] = _unit(np.cos(angle) * axis + np.sin(angle) * _unit(away))
    return np.concatenate([np.cosh(radius)[:, None], np.sinh(radius)[:, None] * directions], axis=1)


def _unit(rows: Floats) -> Floats:
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 1e-12)
