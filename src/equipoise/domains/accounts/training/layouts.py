"""Positions of a tree's nodes that are computed without training: the growing-edge layout and the cone initialization.

``growing_edge_layout`` follows the construction of Sala, De Sa, Gu and Re (2018): the children of a node are placed
around it, except in the direction of its own parent. Their edges have equal lengths, so that the parent and the
children of a node are equally near. Here every edge is longer than the one above it, and the parent is the nearest
node. In two dimensions the lengths are as short as the number of children allows.

``cone_initialization`` is the random start of training: each node in the cone of its parent, at a radius that
decreases with the size of its subtree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.types import Floats, Ints

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree


NO_PARENT = -1
GROWTH_AND_SLACK = (
    (1.2, 1.2), (1.1, 1.2), (1.05, 1.1), (1.02, 1.05), (1.01, 1.0),
    (1.005, 0.9), (1.005, 0.8), (1.005, 0.7), (1.005, 0.6), (1.005, 0.5), (1.005, 0.4),
)  # fmt: skip
"""Ratio of an edge to the one above, and factor of the angles between siblings. The first pair that fits is used.

Factors below 1 let some siblings be nearer than the parent. On random recursive trees of 5,000 nodes and 20 levels that
gives MAP 0.99; shortening all edges of a wider layout until it fits gives 0.88.
"""
FILLED_SHARE = 0.93
"""A layout fits if it needs at most this share of the radius; longer edges separate siblings better."""
MIN_BACKWARD_ANGLE = np.pi / 3.0
"""Children keep this angle to the direction of their grandparent, so that subtrees do not overlap."""
SPATIAL_GROWTH, MAX_TOTAL_GROWTH = 1.1, 4.0
"""More than two dimensions: growth per level, and the most that the last edge is longer than the first."""
SPATIAL_EDGE = 3.0
"""Mean length of the edges that a tree needs in more than two dimensions."""
_EDGE_GRID: Floats = np.geomspace(0.05, 96.0, 160)
"""Edge lengths at which the extent of a subtree is tabulated."""


def growing_edge_layout(
    tree: Tree, dim: int, radius: float, rng: np.random.Generator, *, max_stretch: float = math.inf
) -> tuple[Floats, Floats]:
    """Polar coordinates of a layout in which each node is nearer to its parent than to its children.

    A node with several parents uses the first on a shortest path from a root (``Tree.first_parents``). All edges are
    scaled so that the farthest node is at ``radius``, but by at most ``max_stretch``, so that a small tree remains
    below it; ``rng`` gives directions in more than two dimensions. Returns the distance of each node from the origin,
    (n_nodes,), and its direction, (n_nodes, dim). A single root is at the origin; several roots are around it.
    """
    if dim > 2:
        lengths, directions_of = _edges_by_level(tree, radius, max_stretch), _spread(rng, dim)
        return _positions(tree, lengths, directions_of)
    edges = _fitting_edges(tree, radius)
    radii, directions = _positions(tree, edges.lengths, edges.directions)
    radius = min(radius, max_stretch * float(radii.max(initial=0.0)))
    for _ in range(8):
        largest = float(radii.max(initial=0.0))
        if largest == 0.0 or abs(largest / radius - 1.0) < 1e-3:
            break
        # The radius is almost proportional to the edges.
        edges = edges.scaled(radius / largest)
        radii, directions = _positions(tree, edges.lengths, edges.directions)
    # All leaves at the rim: longer edges of leaves bring nothing nearer, and norms then increase with depth.
    lengths = edges.lengths.copy()
    lengths[tree.leaves] += np.maximum(radius - radii[tree.leaves], 0.0)
    radii, directions = _positions(tree, lengths, edges.directions)
    return np.minimum(radii, radius), directions


def growing_edges_fit(tree: Tree, radius: float) -> bool:
    """Whether in two dimensions the edges that separate all siblings are within the radius."""
    growth, slack = min(pair for pair in GROWTH_AND_SLACK if pair[1] >= 1.0)
    return _EdgePlanner(tree, SubtreeShapes.of(tree), growth, slack).extent() <= FILLED_SHARE * radius


def to_ball(radii: Floats, directions: Floats) -> Floats:
    """Points of the Poincare ball at these distances from the origin."""
    return np.tanh(0.5 * radii)[:, None] * directions


def to_hyperboloid(radii: Floats, directions: Floats) -> Floats:
    """Points of the hyperboloid at these distances from the origin, time first."""
    return np.concatenate([np.cosh(radii)[:, None], np.sinh(radii)[:, None] * directions], axis=1)


# Two dimensions. The neighbours of a node at the distance e of its parent must be seen from the parent at an angle of
# at least arccos(tanh(e / 2)): then no sibling, at the same distance or farther out, is nearer than the parent. A node
# with many children therefore needs long edges, and since edges grow, so do all nodes below it. ``_EdgePlanner``
# finds the edges with the smallest radius in all. Polar coordinates keep their digits where coordinates of the
# hyperboloid do not: at radius 27 the inner product of two of these has an error of 1e7.


@dataclass(frozen=True, eq=False)
class _PlanarEdges:
    """The edge to the parent of each node, or to the origin for one of several roots.

    ``offsets`` are the angles at the parent between the edge and the continuation of the parent's own edge.
    """

    lengths: Floats
    offsets: Floats

    def scaled(self, factor: float) -> _PlanarEdges:
        """All edges longer by this factor."""
        return _PlanarEdges(self.lengths * factor, self.offsets)

    def directions(self, nodes: Ints, parent_index: Ints, forward: Floats) -> Floats:
        """The direction of each node at its parent, given the continuation of the parent's own edge."""
        # The roots have no edge above them; the first direction is arbitrary.
        start = np.arctan2(forward[parent_index, 1], forward[parent_index, 0])
        angles = start + self.offsets[nodes]
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def sibling_angle(edges: Floats) -> Floats:
    """The least angle between an edge and those of siblings that are not shorter.

    The distance between the two ends is then at least the longer edge:
    ``cosh(b) = cosh(a) cosh(b) - sinh(a) sinh(b) cos(angle)`` with b towards infinity.
    """
    return np.asarray(2.0 * np.arctan(np.exp(-0.5 * edges)))


def _fitting_edges(tree: Tree, radius: float) -> _PlanarEdges:
    """The edges of the first option that is within the radius, or those of the last one, scaled to it."""
    shapes = SubtreeShapes.of(tree)
    low, high = 0, len(GROWTH_AND_SLACK) - 1
    while low < high:
        middle = (low + high) // 2
        if _EdgePlanner(tree, shapes, *GROWTH_AND_SLACK[middle]).extent() <= FILLED_SHARE * radius:
            high = middle
        else:
            low = middle + 1
    planner = _EdgePlanner(tree, shapes, *GROWTH_AND_SLACK[low])
    return planner.edges().scaled(min(1.0, radius / max(planner.extent(), 1e-300)))


@dataclass(frozen=True, eq=False)
class SubtreeShapes:
    """Equal subtrees have one shape: ``of_node`` is its number, ``children`` the shapes below it with their counts.

    Numbers ascend from the leaves, whose shape is 0; the last one is that of all roots together.
    """

    of_node: Ints
    children: tuple[dict[int, int], ...]

    @classmethod
    def of(cls, tree: Tree) -> SubtreeShapes:
        """The shapes of all subtrees."""
        down, of_node = spanning_children(tree), np.zeros(len(tree), dtype=np.int64)
        known: dict[tuple[int, ...], int] = {(): 0}
        for nodes in reversed(_nodes_by_level(tree)):
            for node in nodes.tolist():
                key = tuple(sorted(of_node[down[node]].tolist()))
                of_node[node] = known.setdefault(key, len(known))
        keys = [*known, tuple(of_node[tree.roots].tolist())]
        return cls(of_node, tuple(dict(Counter(key)) for key in keys))


class _EdgePlanner:
    """Finds edges that grow from each node to its children, with the smallest extent of every subtree.

    Bottom-up, ``reach[shape]`` tabulates the distance from the parent of a node to its farthest descendant as a
    function of the node's edge. If the subtrees of siblings may extend up to some distance, each takes the longest edge
    that keeps within it and so needs the smallest angle; the least distance for which the angles fit is the solution.
    Top-down, the edges and directions follow.
    """

    def __init__(self, tree: Tree, shapes: SubtreeShapes, growth: float, slack: float) -> None:
        self.tree, self.shapes, self.growth, self.slack = tree, shapes, growth, slack
        self.reach: list[Floats] = []
        for children in shapes.children[:-1]:
            self.reach.append(self._reach(children))

    def extent(self) -> float:
        """The distance from the origin to the farthest node, at most."""
        children = self.shapes.children[-1]
        if self._has_one_root:
            children = self.shapes.children[next(iter(children))]
        return float(self._extent(children, np.array([2.0 * np.pi]))[0]) if children else 0.0

    def edges(self) -> _PlanarEdges:
        """The shortest edges and their directions."""
        lengths, offsets = np.zeros(len(self.tree)), np.zeros(len(self.tree))
        if not self._has_one_root:
            self._place(self.tree.roots, 2.0 * np.pi, 0.0, lengths, offsets)
        for node, children in _inner_nodes(self.tree):
            is_root = self.tree.first_parents[node] == NO_PARENT
            at_origin = is_root and self._has_one_root
            angle = 2.0 * np.pi if at_origin else float(self._free_angle(lengths[node]))
            self._place(children, angle, 0.0 if is_root else self.growth * lengths[node], lengths, offsets)
        return _PlanarEdges(lengths, offsets)

    @property
    def _has_one_root(self) -> bool:
        return len(self.tree.roots) == 1

    def _reach(self, children: dict[int, int]) -> Floats:
        if not children:
            return _EDGE_GRID
        farthest = np.max([self.reach[shape] for shape in children], axis=0)
        extents = np.maximum(
            self._extent(children, self._free_angle(_EDGE_GRID)),
            np.interp(self.growth * _EDGE_GRID, _EDGE_GRID, farthest),
        )
        # Strictly increasing, so that it can be inverted.
        return np.maximum.accumulate(_EDGE_GRID + extents) + 1e-9 * np.arange(len(_EDGE_GRID))

    def _backward_angle(self, edges: Floats) -> Floats:
        """The angle on both sides of the parent's direction that is left free of children."""
        return np.maximum(MIN_BACKWARD_ANGLE, self.slack * sibling_angle(edges))

    def _free_angle(self, edges: Floats) -> Floats:
        """The angle at a node that is left for its children."""
        return 2.0 * np.pi - 2.0 * self._backward_angle(edges)

    def _subtree_angle(self, shape: int, edges: Floats) -> Floats:
        """The angle that a subtree needs at the parent of its top node, for each edge."""
        wedges = sibling_angle(edges)
        if self.shapes.children[shape]:
            # All descendants are in two ideal triangles, on both sides of the edge: exp(-edge) = tan(A/2) tan(C/2).
            halves = 2.0 * np.arctan(np.exp(-edges) / np.tan(0.5 * self._backward_angle(edges)))
            wedges = np.maximum(wedges, 2.0 * halves)
        return self.slack * wedges

    def _extent(self, children: dict[int, int], angles: Floats) -> Floats:
        """The least extent at which the children fit into each angle."""
        wedges = [self._subtree_angle(shape, self._longest_edges(shape, _EDGE_GRID)) for shape in children]
        needed = _total_angle(np.array(wedges), np.array(list(children.values())))
        least = max(self.reach[shape][0] for shape in children)
        return np.maximum(np.interp(-angles, np.maximum.accumulate(-needed), _EDGE_GRID), least)

    def _longest_edges(self, shape: int, extents: Floats) -> Floats:
        """The edges with which a subtree extends to ``extents``."""
        return np.interp(extents, self.reach[shape], _EDGE_GRID)

    def _place(self, nodes: Ints, angle: float, least: float, lengths: Floats, offsets: Floats) -> None:
        """Set the edges and directions of the children of one node."""
        shapes = self.shapes.of_node[nodes]
        children = dict(Counter(shapes.tolist()))
        extent = self._extent(children, np.array([angle]))
        length_of = {shape: np.maximum(self._longest_edges(shape, extent), least) for shape in children}
        wedge_of = {shape: float(self._subtree_angle(shape, length)[0]) for shape, length in length_of.items()}
        lengths[nodes] = [float(length_of[shape][0]) for shape in shapes.tolist()]
        wedges = np.array([wedge_of[shape] for shape in shapes.tolist()])
        order = np.argsort(-wedges, kind="stable")
        total = float(_total_angle(wedges[:, None], np.ones(len(nodes)))[0])
        gaps = wedges[order[:-1]] * (angle / max(total, 1e-300))
        offsets[nodes[order]] = np.concatenate([[0.0], np.cumsum(gaps)]) - 0.5 * gaps.sum()


def _total_angle(wedges: Floats, counts: Floats | Ints) -> Floats:
    """The angle that siblings need, (n_shapes, n) -> (n,).

    In descending order of their wedges the gap between two siblings is the larger of their wedges. The gap between the
    last and the first is the largest one.
    """
    return np.asarray(counts @ wedges - wedges.min(axis=0) + wedges.max(axis=0))


def _inner_nodes(tree: Tree) -> Iterator[tuple[int, Ints]]:
    """Each node with children, parents first, and its children in the spanning tree."""
    down = spanning_children(tree)
    for nodes in _nodes_by_level(tree):
        for node in nodes.tolist():
            if len(down[node]):
                yield node, down[node]


def spanning_children(tree: Tree) -> list[Ints]:
    """The children of each node in the spanning tree of ``Tree.first_parents``, in the order of nodes."""
    order = np.argsort(tree.first_parents, kind="stable")
    parents = tree.first_parents[order]
    starts = np.searchsorted(parents, np.arange(len(tree) + 1))
    return [order[starts[node] : starts[node + 1]] for node in range(len(tree))]


def _nodes_by_level(tree: Tree) -> list[Ints]:
    """The nodes at each depth, roots first."""
    order = np.argsort(tree.depth, kind="stable")
    counts = np.bincount(tree.depth.astype(np.int64), minlength=1)
    return np.split(order, np.cumsum(counts)[:-1])


Directions = Callable[[Ints, Ints, Floats], Floats]
"""(nodes, index of each node's parent among the parents, continuation of each parent's edge) -> unit vectors."""


def _positions(tree: Tree, lengths: Floats, directions_of: Directions) -> tuple[Floats, Floats]:
    """Polar coordinates of all nodes, level by level, by the hyperbolic laws of cosines.

    A tangent vector at a node is transported to the origin along the radius, so that it is a vector of the same ``dim``
    coordinates. ``towards_parent`` is the direction of each node's parent.
    """
    radii = np.zeros(len(tree))
    for depth, nodes in enumerate(_nodes_by_level(tree)):
        nodes = nodes[np.argsort(tree.first_parents[nodes], kind="stable")]
        length = lengths[nodes]
        if depth == 0:
            index = np.zeros(len(nodes), dtype=np.int64)
            outward = directions_of(nodes, index, np.zeros((1, 2)))
            axes = np.zeros((len(tree), outward.shape[1]))
            towards_parent = np.zeros_like(axes)
            radii[nodes] = length
            axes[nodes], towards_parent[nodes] = outward * (length > 0.0)[:, None], -outward * (length > 0.0)[:, None]
            continue
        parents, index = np.unique(tree.first_parents[nodes], return_inverse=True)
        direction = directions_of(nodes, index, -towards_parent[parents])
        axis, radius = axes[parents][index], radii[parents][index]
        out = np.einsum("ij,ij->i", direction, axis)
        sideways = direction - out[:, None] * axis
        sine = np.sqrt(np.einsum("ij,ij->i", sideways, sideways))
        sideways = np.divide(sideways, sine[:, None], out=np.zeros_like(sideways), where=sine[:, None] > 0.0)
        # 1 + out without cancellation: sums of positive terms keep their digits at any radius.
        versine = np.where(out > 0.0, 1.0 + out, sine * sine / (1.0 - np.minimum(out, 0.0)))
        sinh_length, sinh_radius = np.sinh(length), np.sinh(radius)
        cosh_minus_one = 2.0 * np.sinh(0.5 * (radius - length)) ** 2 + sinh_radius * sinh_length * versine
        radii[nodes] = 2.0 * np.arcsinh(np.sqrt(0.5 * cosh_minus_one))
        turn_angle = np.arctan2(sinh_length * sine, np.sinh(radius - length) + np.cosh(radius) * sinh_length * versine)
        reverse = np.arctan2(sinh_radius * sine, np.sinh(length - radius) + np.cosh(length) * sinh_radius * versine)
        cos_swing, sin_swing = np.cos(turn_angle)[:, None], np.sin(turn_angle)[:, None]
        axes[nodes] = _unit(cos_swing * axis + sin_swing * sideways)
        tangent = sin_swing * axis - cos_swing * sideways
        towards_parent[nodes] = np.sin(reverse)[:, None] * tangent - np.cos(reverse)[:, None] * axes[nodes]
    return radii, axes


# More dimensions: edges grow by one factor per level, and siblings are spread at random.


def _edges_by_level(tree: Tree, radius: float, max_stretch: float) -> Floats:
    """Edges that grow with depth and add up to the radius; the edge of a single root is 0."""
    has_several_roots = len(tree.roots) > 1
    levels = int(tree.depth.max(initial=0.0)) + has_several_roots
    growth = min(SPATIAL_GROWTH, MAX_TOTAL_GROWTH ** (1.0 / max(1, levels)))
    lengths = growth ** np.arange(levels)
    lengths *= min(radius, max_stretch * SPATIAL_EDGE * levels) / max(lengths.sum(), 1e-300)
    by_depth = lengths if has_several_roots else np.concatenate([[0.0], lengths])
    edges = np.asarray(by_depth[tree.depth.astype(np.int64)])
    # All leaves at the rim, as in two dimensions.
    edges[tree.leaves] += by_depth.sum() - np.cumsum(by_depth)[tree.depth[tree.leaves].astype(np.int64)]
    return edges


def _spread(rng: np.random.Generator, dim: int) -> Directions:
    """Random directions of siblings, away from the parent and from each other."""

    def directions(nodes: Ints, parent_index: Ints, forward: Floats) -> Floats:
        backward = -forward if forward.shape[1] == dim else np.zeros((len(forward), dim))
        counts = np.bincount(parent_index, minlength=len(forward))
        return _spread_directions(parent_index, counts, backward, dim, rng)

    return directions


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
    parent = tree.first_parents
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
