"""Points laid out along a tree: every child at the same distance from its parent, siblings spread around it.

The construction of Sala, De Sa, Gu and Re (2018): move the parent to the origin, place its children around it
with the direction of the grandparent left free, and move everything back. On the hyperboloid the move is a
Lorentz boost, and a whole layer is placed at once.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise.hierarchy.riemann.spaces import on_hyperboloid
from equipoise.hierarchy.tree import Tree
from equipoise.types import Floats, Ints

UNSET = -1


def spanning_parents(tree: Tree) -> Ints:
    """One parent for each node, the first on a shortest path from a root; -1 for the roots."""
    parent = np.full(len(tree), UNSET, dtype=np.int64)
    child, above = tree.edges[:, 0], tree.edges[:, 1]
    shortest = tree.depth[above] + 1.0 == tree.depth[child]
    # Written from the last edge to the first, so that the first one stays.
    parent[child[shortest][::-1]] = above[shortest][::-1]
    return parent


def laid_out(tree: Tree, dim: int, edge: float, rng: np.random.Generator, radius: float) -> Floats:
    """Hyperboloid points with every spanning edge of length ``edge``; a forest hangs from a free origin."""
    parent = spanning_parents(tree)
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
    target = np.where((parent[nodes] == UNSET)[:, None], origin, points[parent[nodes]])
    seen = boosted(points[nodes], target, back=True)[:, 1:]
    length = np.sqrt((seen * seen).sum(axis=1))
    return np.divide(seen, length[:, None], out=np.zeros_like(seen), where=length[:, None] > 1e-9)


def boosted(base: Floats, points: Floats, *, back: bool = False) -> Floats:
    """The points moved as the move of the origin to ``base`` does; ``back`` undoes that move."""
    sign = -1.0 if back else 1.0
    along = np.einsum("ij,ij->i", base[:, 1:], points[:, 1:])
    time = base[:, 0] * points[:, 0] + sign * along
    factor = sign * points[:, 0] + along / (1.0 + base[:, 0])
    return np.concatenate([time[:, None], points[:, 1:] + factor[:, None] * base[:, 1:]], axis=1)


def _around(
    at: Ints, centres: Floats, behind: Floats | None, edge: float, rng: np.random.Generator
) -> Floats:
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
    return boosted(centres[at], tips)


def _spread(at: Ints, counts: Ints, free: Floats, dim: int, rng: np.random.Generator) -> Floats:
    """Directions in other dimensions: random, then pushed away from the parent and from their mean."""
    directions = rng.standard_normal((len(at), dim))
    directions /= np.sqrt((directions * directions).sum(axis=1))[:, None]
    if dim == 1:
        return directions
    for _ in range(3):
        mean = np.stack(
            [np.bincount(at, weights=directions[:, axis], minlength=len(counts)) for axis in range(dim)], 1
        )
        mean = (mean + free) / (counts + 1.0)[:, None]
        directions = (
            directions - mean[at] - 0.5 * free[at] * np.maximum((directions * free[at]).sum(1), 0.0)[:, None]
        )
        length = np.sqrt((directions * directions).sum(axis=1))
        directions /= np.maximum(length, 1e-9)[:, None]
    return directions
