"""Manifolds that training runs on, and initial points on them.

Hyperbolic training runs on the hyperboloid, time coordinate first, for both the Lorentz and the Poincare model:
the models are isometric, and the exponential map is exact and cheap there (Nickel and Kiela 2018).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.types import Floats, Ints

MAX_STEP = 0.5
"""Upper limit of the length of one step, for any learning rate."""


class Manifold(Protocol):
    """The operations that training needs. Points are rows of an array."""

    is_hyperbolic: ClassVar[bool]
    max_norm: float
    """Largest norm of the coordinates (on the hyperboloid: without time)."""

    def distance_and_gradient(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Distances d(x, y), and their gradients by x: unit tangent vectors at x that point away from y."""
        ...

    def exp_map(self, x: Floats, tangent: Floats) -> Floats:
        """Exponential map at x of these tangent vectors; steps are limited to ``MAX_STEP``, norms to ``max_norm``."""
        ...


class EuclideanManifold:
    """Euclidean space; ``radius`` is a bound far outside the range of useful points."""

    is_hyperbolic: ClassVar[bool] = False

    def __init__(self, radius: float = 1e6) -> None:
        self.max_norm = radius

    def distance_and_gradient(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Euclidean distances; the gradient of two equal points is 0."""
        difference = x - y
        length = np.sqrt(np.einsum("...i,...i->...", difference, difference))
        return length, difference / np.maximum(length, 1e-12)[..., None]

    def exp_map(self, x: Floats, tangent: Floats) -> Floats:
        """Vector addition."""
        moved_points = x + _limit_steps(tangent, _norms(tangent))
        return _clip_norms(moved_points, self.max_norm)


class Hyperboloid:
    """Hyperbolic space of curvature -1; ``radius`` limits the distance from the origin.

    At radius 17 the time coordinate is 1e7, and the inner product of two points still has seven digits.
    """

    is_hyperbolic: ClassVar[bool] = True

    def __init__(self, radius: float = 17.0) -> None:
        self.max_norm = math.sinh(radius)

    def distance_and_gradient(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """arcosh of the negative Lorentz product; distances below 1e-6 are set to 1e-6."""
        product = x[..., 0] * y[..., 0] - np.einsum("...i,...i->...", x[..., 1:], y[..., 1:])
        product = np.maximum(product, 1.0 + 1e-12)
        sinh = np.sqrt(product * product - 1.0)
        return np.log(product + sinh), (product[..., None] * x - y) / sinh[..., None]

    def exp_map(self, x: Floats, tangent: Floats) -> Floats:
        """Move along the geodesic; the time coordinate is recomputed, so that errors do not accumulate."""
        square = np.einsum("...i,...i->...", tangent[..., 1:], tangent[..., 1:]) - tangent[..., 0] ** 2
        length = np.sqrt(np.maximum(square, 0.0))
        step = _limit_steps(tangent, length)
        length = np.minimum(length, MAX_STEP)
        ratio = np.where(length > 1e-8, np.sinh(length) / np.maximum(length, 1e-8), 1.0)
        return on_hyperboloid((np.cosh(length)[:, None] * x + ratio[:, None] * step)[:, 1:], self.max_norm)


def on_hyperboloid(coordinates: Floats, max_norm: float) -> Floats:
    """Points with these space coordinates, (n, dim) -> (n, dim + 1); norms are clipped to ``max_norm``."""
    coordinates = _clip_norms(coordinates, max_norm)
    time = np.sqrt(1.0 + np.einsum("...i,...i->...", coordinates, coordinates))
    return np.concatenate([time[:, None], coordinates], axis=1)


def _clip_norms(rows: Floats, max_norm: float) -> Floats:
    return rows * (max_norm / np.maximum(_norms(rows), max_norm))[:, None]


def _norms(rows: Floats) -> Floats:
    return np.sqrt(np.einsum("...i,...i->...", rows, rows))


def _limit_steps(tangent: Floats, length: Floats) -> Floats:
    return tangent * (MAX_STEP / np.maximum(length, MAX_STEP))[..., None]


# ``constant_edge_layout`` is the construction of Sala, De Sa, Gu and Re (2018): move the parent to the origin, place
# its children around it except in the direction of the grandparent, and move everything back. On the hyperboloid the
# move is a Lorentz boost, and a whole layer is placed at once. ``cone_initialization`` is the start of training: each
# node in the cone of its parent, at a radius that decreases with the size of its subtree.

NO_PARENT = -1


def spanning_tree_parents(tree: Tree) -> Ints:
    """One parent per node, the first on a shortest path from a root; -1 for roots."""
    parent = np.full(len(tree), NO_PARENT, dtype=np.int64)
    child, parents = tree.edges[:, 0], tree.edges[:, 1]
    shortest = tree.depth[parents] + 1.0 == tree.depth[child]
    # Assigned from the last edge to the first, so that the first one remains.
    parent[child[shortest][::-1]] = parents[shortest][::-1]
    return parent


def constant_edge_layout(tree: Tree, dim: int, edge: float, rng: np.random.Generator, radius: float) -> Floats:
    """Hyperboloid points with all spanning edges of length ``edge``; several roots are placed around the origin."""
    parent = spanning_tree_parents(tree)
    roots = tree.roots
    points = np.zeros((len(tree), dim + 1))
    points[:, 0] = 1.0
    if len(roots) > 1:
        points[roots] = _place_children(np.zeros(len(roots), dtype=np.int64), np.eye(1, dim + 1), None, edge, rng)
    for depth_level in range(1, int(tree.depth.max(initial=0.0)) + 1):
        layer = np.flatnonzero(tree.depth == depth_level)
        layer = layer[np.argsort(parent[layer], kind="stable")]
        parents, parent_index = np.unique(parent[layer], return_inverse=True)
        points[layer] = _place_children(
            parent_index, points[parents], _towards_parent(points, parents, parent), edge, rng
        )
    return on_hyperboloid(points[:, 1:], math.sinh(radius))


def _towards_parent(points: Floats, nodes: Ints, parent: Ints) -> Floats:
    """Unit directions to the parent of each node, after the node was moved to the origin; zero for a root."""
    origin = np.zeros_like(points[:1])
    origin[0, 0] = 1.0
    target = np.where((parent[nodes] == NO_PARENT)[:, None], origin, points[parent[nodes]])
    relative = lorentz_boost(points[nodes], target, inverse=True)[:, 1:]
    length = np.sqrt((relative * relative).sum(axis=1))
    return np.divide(relative, length[:, None], out=np.zeros_like(relative), where=length[:, None] > 1e-9)


def lorentz_boost(base: Floats, points: Floats, *, inverse: bool = False) -> Floats:
    """The boost that moves the origin to ``base``, applied to the points; ``inverse`` moves ``base`` to the origin."""
    sign = -1.0 if inverse else 1.0
    space_product = np.einsum("ij,ij->i", base[:, 1:], points[:, 1:])
    time = base[:, 0] * points[:, 0] + sign * space_product
    factor = sign * points[:, 0] + space_product / (1.0 + base[:, 0])
    return np.concatenate([time[:, None], points[:, 1:] + factor[:, None] * base[:, 1:]], axis=1)


def _place_children(
    parent_index: Ints, centres: Floats, parent_directions: Floats | None, edge: float, rng: np.random.Generator
) -> Floats:
    """Points around their parents (``parent_index`` is sorted); the direction of the grandparent is left free."""
    dim = centres.shape[1] - 1
    if parent_directions is None:
        parent_directions = np.zeros((len(centres), dim))
    has_parent = np.asarray(parent_directions.any(axis=1))
    counts = np.bincount(parent_index, minlength=len(centres))
    nth = np.arange(len(parent_index)) - (np.cumsum(counts) - counts)[parent_index]
    if dim == 2:
        turn = 2.0 * np.pi * (nth + has_parent[parent_index]) / (counts + has_parent)[parent_index]
        start = np.arctan2(parent_directions[parent_index, 1], parent_directions[parent_index, 0])
        directions = np.stack([np.cos(start + turn), np.sin(start + turn)], axis=1)
    else:
        directions = _spread_directions(parent_index, counts, parent_directions, dim, rng)
    targets = np.concatenate([np.full((len(parent_index), 1), np.cosh(edge)), np.sinh(edge) * directions], axis=1)
    return lorentz_boost(centres[parent_index], targets)


def _spread_directions(
    parent_index: Ints, counts: Ints, parent_directions: Floats, dim: int, rng: np.random.Generator
) -> Floats:
    """Random directions for dimensions other than 2, moved away from the parent and from their mean."""
    directions = rng.standard_normal((len(parent_index), dim))
    directions /= np.sqrt((directions * directions).sum(axis=1))[:, None]
    if dim == 1:
        return directions
    for _ in range(3):
        mean = np.stack(
            [np.bincount(parent_index, weights=directions[:, axis], minlength=len(counts)) for axis in range(dim)], 1
        )
        mean = (mean + parent_directions) / (counts + 1.0)[:, None]
        towards = parent_directions[parent_index]
        directions = (
            directions - mean[parent_index] - 0.5 * towards * np.maximum((directions * towards).sum(1), 0.0)[:, None]
        )
        length = np.sqrt((directions * directions).sum(axis=1))
        directions /= np.maximum(length, 1e-9)[:, None]
    return directions


def cone_initialization(
    tree: Tree, dim: int, rng: np.random.Generator, *, min_radius: float, max_radius: float
) -> Floats:
    """Hyperboloid points: large subtrees at ``min_radius``, leaves at ``max_radius``, a single root at 0."""
    count = len(tree)
    parent = spanning_tree_parents(tree)
    descendants = np.bincount(tree.closure()[:, 1], minlength=count)
    fraction = 1.0 - np.log1p(descendants) / max(np.log(count), 1.0)
    radius = min_radius + (max_radius - min_radius) * fraction
    directions = _unit(rng.standard_normal((count, dim)))
    if len(tree.roots) == 1:
        radius[tree.roots] = 0.0
    for depth_level in range(1, int(tree.depth.max(initial=0.0)) + 1):
        layer = np.flatnonzero(tree.depth == depth_level)
        layer = layer[(parent[layer] != NO_PARENT) & (radius[parent[layer]] > 0.0)]
        axis = directions[parent[layer]]
        orthogonal = directions[layer] - np.einsum("ij,ij->i", directions[layer], axis)[:, None] * axis
        angle = np.minimum(2.0 * np.arcsin(np.exp(-0.5 * radius[parent[layer]])), 0.5 * np.pi)[:, None]
        directions[layer] = _unit(np.cos(angle) * axis + np.sin(angle) * _unit(orthogonal))
    return np.concatenate([np.cosh(radius)[:, None], np.sinh(radius)[:, None] * directions], axis=1)


def _unit(rows: Floats) -> Floats:
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 1e-12)
