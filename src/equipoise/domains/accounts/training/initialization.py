"""Points laid out along a tree: every child at the same distance from its parent, siblings spread around it.

The construction of Sala, De Sa, Gu and Re (2018): move the parent to the origin, place its children around it
with the direction of the grandparent left free, and move everything back. On the hyperboloid the move is a
Lorentz boost, and a whole layer is placed at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.accounts.training.manifolds import on_hyperboloid

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.types import Floats, Ints

NO_PARENT = -1


def spanning_tree_parents(tree: Tree) -> Ints:
    """One parent for each node, the first on a shortest path from a root; -1 for the roots."""
    parent = np.full(len(tree), NO_PARENT, dtype=np.int64)
    child, above = tree.edges[:, 0], tree.edges[:, 1]
    shortest = tree.depth[above] + 1.0 == tree.depth[child]
    # Written from the last edge to the first, so that the first one stays.
    parent[child[shortest][::-1]] = above[shortest][::-1]
    return parent


def constant_edge_layout(tree: Tree, dim: int, edge: float, rng: np.random.Generator, radius: float) -> Floats:
    """Hyperboloid points with every spanning edge of length ``edge``; a forest hangs from a free origin."""
    parent = spanning_tree_parents(tree)
    roots = tree.roots
    points = np.zeros((len(tree), dim + 1))
    points[:, 0] = 1.0
    if len(roots) > 1:
        points[roots] = _around(np.zeros(len(roots), dtype=np.int64), np.eye(1, dim + 1), None, edge, rng)
    for level in range(1, int(tree.depth.max(initial=0.0)) + 1):
        layer = np.flatnonzero(tree.depth == level)
        layer = layer[np.argsort(parent[layer], kind="stable")]
        above, at = np.unique(parent[layer], return_inverse=True)
        points[layer] = _around(at, points[above], _towards_parent(points, above, parent), edge, rng)
    return on_hyperboloid(points[:, 1:], math.sinh(radius))


def _towards_parent(points: Floats, nodes: Ints, parent: Ints) -> Floats:
    """Unit directions to the parent of each node, seen from the node at the origin; zero for a root."""
    origin = np.zeros_like(points[:1])
    origin[0, 0] = 1.0
    target = np.where((parent[nodes] == NO_PARENT)[:, None], origin, points[parent[nodes]])
    seen = lorentz_boost(points[nodes], target, back=True)[:, 1:]
    length = np.sqrt((seen * seen).sum(axis=1))
    return np.divide(seen, length[:, None], out=np.zeros_like(seen), where=length[:, None] > 1e-9)


def lorentz_boost(base: Floats, points: Floats, *, back: bool = False) -> Floats:
    """The points moved as the move of the origin to ``base`` does; ``back`` undoes that move."""
    sign = -1.0 if back else 1.0
    along = np.einsum("ij,ij->i", base[:, 1:], points[:, 1:])
    time = base[:, 0] * points[:, 0] + sign * along
    factor = sign * points[:, 0] + along / (1.0 + base[:, 0])
    return np.concatenate([time[:, None], points[:, 1:] + factor[:, None] * base[:, 1:]], axis=1)


def _around(at: Ints, centres: Floats, behind: Floats | None, edge: float, rng: np.random.Generator) -> Floats:
    """Points around their centres, ``at`` sorted; ``behind`` is the direction left free, zero for none."""
    dim = centres.shape[1] - 1
    free = np.zeros((len(centres), dim)) if behind is None else behind
    has_parent = np.asarray(free.any(axis=1))
    counts = np.bincount(at, minlength=len(centres))
    nth = np.arange(len(at)) - (np.cumsum(counts) - counts)[at]
    if dim == 2:
        turn = 2.0 * np.pi * (nth + has_parent[at]) / (counts + has_parent)[at]
        start = np.arctan2(free[at, 1], free[at, 0])
        directions = np.stack([np.cos(start + turn), np.sin(start + turn)], axis=1)
    else:
        directions = _spread(at, counts, free, dim, rng)
    tips = np.concatenate([np.full((len(at), 1), np.cosh(edge)), np.sinh(edge) * directions], axis=1)
    return lorentz_boost(centres[at], tips)


def _spread(at: Ints, counts: Ints, free: Floats, dim: int, rng: np.random.Generator) -> Floats:
    """Directions in other dimensions: random, then pushed away from the parent and from their mean."""
    directions = rng.standard_normal((len(at), dim))
    directions /= np.sqrt((directions * directions).sum(axis=1))[:, None]
    if dim == 1:
        return directions
    for _ in range(3):
        mean = np.stack([np.bincount(at, weights=directions[:, axis], minlength=len(counts)) for axis in range(dim)], 1)
        mean = (mean + free) / (counts + 1.0)[:, None]
        directions = directions - mean[at] - 0.5 * free[at] * np.maximum((directions * free[at]).sum(1), 0.0)[:, None]
        length = np.sqrt((directions * directions).sum(axis=1))
        directions /= np.maximum(length, 1e-9)[:, None]
    return directions


# The start of training: every node in the cone of its parent, as far out as its subtree is small.


def cone_initialization(tree: Tree, dim: int, rng: np.random.Generator, *, inner: float, outer: float) -> Floats:
    """Hyperboloid points: largest subtrees at radius ``inner``, leaves at ``outer``, a single root at 0."""
    count = len(tree)
    parent = spanning_tree_parents(tree)
    descendants = np.bincount(tree.closure()[:, 1], minlength=count)
    share = 1.0 - np.log1p(descendants) / max(np.log(count), 1.0)
    radius = inner + (outer - inner) * share
    directions = _unit(rng.standard_normal((count, dim)))
    if len(tree.roots) == 1:
        radius[tree.roots] = 0.0
    for level in range(1, int(tree.depth.max(initial=0.0)) + 1):
        layer = np.flatnonzero(tree.depth == level)
        layer = layer[(parent[layer] != NO_PARENT) & (radius[parent[layer]] > 0.0)]
        axis = directions[parent[layer]]
        away = directions[layer] - np.einsum("ij,ij->i", directions[layer], axis)[:, None] * axis
        angle = np.minimum(2.0 * np.arcsin(np.exp(-0.5 * radius[parent[layer]])), 0.5 * np.pi)[:, None]
        directions[layer] = _unit(np.cos(angle) * axis + np.sin(angle) * _unit(away))
    return np.concatenate([np.cosh(radius)[:, None], np.sinh(radius)[:, None] * directions], axis=1)


def _unit(rows: Floats) -> Floats:
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 1e-12)
