"""A layout of deep trees in two dimensions, in which long paths turn instead of leading straight outwards.

In the growing-edge layout the radius of a node is nearly the sum of the edges above it. A tree of 100 levels then
needs a radius beyond 30, where float64 cannot represent points of the disk. Here the tree is split into heavy paths:
each path continues at the child that needs the largest width and descends slowly, so that it needs little radius. All
other children are placed below their parent, and few of these edges are above any node.

The layout is computed in the upper half-plane, with the distance ``d`` given by
``cosh(d) - 1 = ((x - x')^2 + (y - y')^2) / (2 y y')``. The depth of a point is ``-log(y)``. Lengths along x are in
units of the height of a node, which makes the problem of a subtree independent of its position.

Conditions under which the parent is the nearest node, with b as the length of an edge:

- The edges below a node are longer than its own edge.
- Next to a child at distance b a share ``exp(-b / 2)`` of the parent's height is free of siblings.
- The first step of a path descends by the difference between its edges and the edge above it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.accounts.training.layouts import (
    SubtreeShapes,
    growing_edge_layout,
    growing_edges_fit,
    spanning_children,
)

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.types import Floats, Ints

GROWTH = 0.01
"""The difference between an edge and the edge above it."""
GAP = 1.05
"""Factor of the space between siblings."""
MAX_HALF_ZONE = 1.0
"""Light children are placed within this distance of their parent's x."""
USED_SHARE = 0.85
"""The share of a zone that is planned; the rest is for children that are not in the middle of it."""
MARGIN = 0.05
"""Descent of the first step of a path beyond the necessary one."""
HALF_WIDTH = 1.5
"""The layout extends from -HALF_WIDTH to HALF_WIDTH, seen from the origin at height 1."""
MAX_ROOT_EDGE = 3.0
"""Edges of the path of the root are not longer, so that the radius is left to the nodes below."""
ROOT_SHARE = 0.75
"""The path of the root is planned for this share of the radius, since positions are more exact near the origin."""
_SLOPES: Floats = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 1.1, 1.5, 2.0, 3.0])[:, None]
"""Descent per step of a path; one is chosen for each path."""
_GRID: Floats = np.geomspace(0.02, 40.0, 300)
"""Edges, and the radius left below a node, at which plans are tabulated."""
_INFEASIBLE = 1e3


def static_layout(tree: Tree, dim: int, radius: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Polar coordinates of the best layout that needs no training: growing edges, or turning paths if these do not fit.

    In two dimensions at radius 30, MAP of the parent with turning paths, and with growing edges that are shortened to
    fit: random recursive trees of 5,000 nodes 0.9997 and 0.990, 2,000 nodes on 196 levels 0.9997 and 0.61, caterpillars
    of 500 levels 1 and 0.03.
    """
    if dim > 2 or growing_edges_fit(tree, radius):
        return growing_edge_layout(tree, dim, radius, rng)
    return turning_layout(tree, radius)


def turning_layout(tree: Tree, radius: float) -> tuple[Floats, Floats]:
    """Polar coordinates of the layout: distance from the origin, (n_nodes,), and direction, (n_nodes, 2)."""
    planner = _PathPlanner(tree)
    available = max(radius - 1.0, 0.5)
    for _ in range(6):
        radii, angles = _to_polar(*_Placement(planner, available).coordinates())
        excess = float(radii.max(initial=0.0)) - radius
        if excess <= 0.02:
            break
        available = max(available - excess, 0.5)
    return np.minimum(radii, radius), np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _to_polar(x: Floats, depth: Floats) -> tuple[Floats, Floats]:
    """Distances from the point above the middle, and angles."""
    middle, half = 0.5 * (x.max() + x.min()), 0.5 * (x.max() - x.min())
    scale = max(half / HALF_WIDTH, 1e-300) if half > 0.0 else math.exp(-float(depth.min()))
    x, y = (x - middle) / scale, np.exp(-depth) / scale
    radii = 2.0 * np.arcsinh(np.sqrt((x * x + (1.0 - y) ** 2) / (4.0 * y)))
    return radii, np.arctan2(-2.0 * x, x * x + y * y - 1.0)


def _step(edge: Floats | float, descent: Floats | float) -> Floats:
    """The difference in x of two points at distance ``edge``, the second of which is lower by ``descent``."""
    ratio = np.exp(-np.asarray(descent))
    return np.sqrt(np.maximum(2.0 * ratio * (np.cosh(edge) - 1.0) - (1.0 - ratio) ** 2, 0.0))


def _half_zone(edge: Floats | float, slope: Floats | float) -> Floats:
    """Half the width in which the light children of a node on a path are placed: as far as the next node is farther."""
    ratio, step = np.exp(-np.asarray(slope)), _step(edge, slope)
    # The smaller solution x of x^2 + 1 = ((step - x)^2 + ratio^2) / ratio, for points far below.
    product = np.maximum(step * step - ratio * (1.0 - ratio), 0.0)
    root = np.sqrt(np.maximum(step * step - (1.0 - ratio) * product, 0.0))
    return np.minimum(MAX_HALF_ZONE, product / np.maximum(step + root, 1e-300))


@dataclass(frozen=True, eq=False)
class _PathOptions:
    """The heavy path of a subtree as a function of the radius that is left to it (``_GRID``).

    ``needed`` is the depth below its first node, (n_slopes, n_grid) by the edges of the path. ``edges`` are the longest
    that fit, (n_slopes, n_grid) by the radius left, ``slope`` the number of the best slope and ``path_width`` the
    width that the subtree then needs. ``steps`` is the sum of the heights at the steps of the path, (n_slopes, 1).
    """

    heavy_child: int
    steps: Floats
    needed: Floats
    edges: Floats
    slope: Ints
    path_width: Floats

    @property
    def is_leaf(self) -> bool:
        """Whether there is no path."""
        return self.heavy_child < 0

    def chosen_edges(self) -> Floats:
        """The edges at the best slope, (n_grid,)."""
        return np.asarray(self.edges[self.slope, np.arange(len(_GRID))])

    def at(self, available: float) -> tuple[float, int]:
        """Edge and number of the slope for the radius that is left."""
        slope = int(self.slope[max(int(np.searchsorted(_GRID, available, side="right")) - 1, 0)])
        return float(np.interp(available, _GRID, self.edges[slope])), slope


class _PathPlanner:
    """Chooses heavy paths, their edges and slopes, bottom-up over the distinct shapes of subtrees."""

    def __init__(self, tree: Tree) -> None:
        self.tree, self.shapes, self.children = tree, SubtreeShapes.of(tree), spanning_children(tree)
        self.options: list[_PathOptions] = []
        for children in self.shapes.children:
            self.options.append(self._options(children))

    def _options(self, children: dict[int, int]) -> _PathOptions:
        n_slopes = len(_SLOPES)
        if not children:
            zeros, slope = np.zeros((n_slopes, len(_GRID))), np.zeros(len(_GRID), dtype=np.int64)
            return _PathOptions(-1, np.zeros((n_slopes, 1)), zeros, zeros + _GRID, slope, GAP * np.exp(-0.5 * _GRID))
        heavy = max(children, key=lambda shape: (*self._size(shape), shape))
        light = {shape: count - (shape == heavy) for shape, count in children.items() if count > (shape == heavy)}
        steps = 1.0 + np.exp(-_SLOPES) * self.options[heavy].steps
        needed = np.maximum(self._needed_by(light), _SLOPES + self.options[heavy].needed)
        # The longest edge with ``edge + needed(edge)`` within the radius that is left.
        extents = np.minimum.accumulate((_GRID + MARGIN + needed)[:, ::-1], axis=1)[:, ::-1]
        extents += 1e-9 * np.arange(len(_GRID))
        edges = np.array([np.interp(_GRID, row, _GRID, left=0.0) for row in extents])
        gap, width = path_room(edges, _SLOPES, self.options[heavy].steps)
        width_needed = np.where(edges > np.maximum(_SLOPES, _GRID[1]), gap + width, _INFEASIBLE)
        slope = np.argmin(width_needed, axis=0)
        return _PathOptions(heavy, steps, needed, edges, slope, width_needed[slope, np.arange(len(_GRID))])

    def _size(self, shape: int) -> tuple[float, float]:
        """The smallest depth of a subtree, then the number of steps."""
        return float((_GRID + self.options[shape].needed).min()), float(self.options[shape].steps[0, 0])

    def _needed_by(self, light: dict[int, int]) -> Floats:
        """The depth that light children need below a node, (n_slopes, n_grid) by the edges of its path."""
        if not light:
            return np.zeros((len(_SLOPES), len(_GRID)))
        width_needed, largest_gap, shortest = np.zeros(len(_GRID)), np.zeros(len(_GRID)), np.full(len(_GRID), np.inf)
        for shape, count in light.items():
            option = self.options[shape]
            edges = option.chosen_edges()
            width_needed += count * option.path_width
            largest_gap = np.maximum(largest_gap, GAP * np.exp(-0.5 * edges))
            shortest = np.minimum(shortest, np.where(option.path_width < _INFEASIBLE, edges, 0.0))
        width_needed = np.minimum.accumulate(width_needed + largest_gap)
        zones = 2.0 * USED_SHARE * _half_zone(_GRID, _SLOPES)
        for_room = np.interp(-zones, -width_needed, _GRID, right=_INFEASIBLE)
        ascending = np.maximum.accumulate(shortest) + 1e-9 * np.arange(len(_GRID))
        for_growth = np.interp(_GRID + 2.0 * GROWTH, ascending, _GRID, right=_INFEASIBLE)
        return np.maximum(for_room, for_growth)


def path_room(edge: Floats, slope: Floats, later_steps: Floats) -> tuple[Floats, Floats]:
    """The gap to the next sibling, and the width of a path below it, in units of the parent's height."""
    above = np.maximum(edge - GROWTH, 1e-3)
    first = np.maximum(slope, GROWTH + MARGIN)
    width = _half_zone(edge, slope) + _step(edge, first) + np.exp(-first) * _step(edge, slope) * later_steps
    return GAP * np.exp(-0.5 * above), np.exp(-above) * width


@dataclass(frozen=True)
class _Path:
    """A heavy path to be placed: its first node, the edges of its steps, and the edge above it."""

    node: int
    x: float
    depth: float
    side: float
    edge: float
    slope: int
    edge_above: float


@dataclass(frozen=True)
class _LightChild:
    """A child that is placed below its parent: ``above`` is its own edge, ``edge`` that of its path."""

    node: int
    above: float
    edge: float
    slope: int
    gap: float
    width: float
    half_zone: float


class _Placement:
    """Positions of all nodes, path by path from the root."""

    def __init__(self, planner: _PathPlanner, available: float) -> None:
        self.planner, self.available = planner, available
        # One more node above the roots.
        self.n_nodes = len(planner.tree)
        self.x, self.depth = np.zeros(self.n_nodes + 1), np.zeros(self.n_nodes + 1)
        self.pending: list[_Path] = []

    def coordinates(self) -> tuple[Floats, Floats]:
        """x and depth of each node."""
        self.pending.append(self._root_path())
        while self.pending:
            self._place_path(self.pending.pop())
        return self.x[:-1], self.depth[:-1]

    def _root_path(self) -> _Path:
        roots = self.planner.tree.roots
        node = int(roots[0]) if len(roots) == 1 else self.n_nodes
        option = self._option(node)
        width = _step(_GRID, _SLOPES) * option.steps
        top = np.log(np.maximum(1.0, width / (2.0 * HALF_WIDTH)))
        needed = np.where(_GRID > _SLOPES, top + option.needed, np.inf)
        fits = needed <= max(ROOT_SHARE * self.available, float(needed.min()))
        preference = np.where(fits, np.minimum(_GRID, MAX_ROOT_EDGE) + 0.5 * _SLOPES, -1.0)
        slope, column = (int(index) for index in np.unravel_index(np.argmax(preference), preference.shape))
        return _Path(node, 0.0, float(top[slope, column]), 1.0, float(_GRID[column]), slope, 0.0)

    def _option(self, node: int) -> _PathOptions:
        shapes = self.planner.shapes
        return self.planner.options[len(shapes.children) - 1 if node == self.n_nodes else int(shapes.of_node[node])]

    def _place_path(self, path: _Path) -> None:
        slope = float(_SLOPES[path.slope, 0])
        growth = min(GROWTH, 0.1 / max(1.0, float(self._option(path.node).steps[0, 0])))
        node, x, depth, edge, edge_above = path.node, path.x, path.depth, path.edge, path.edge_above
        while True:
            self.x[node], self.depth[node] = x, depth
            is_top = node == self.n_nodes
            children = self.planner.tree.roots if is_top else self.planner.children[node]
            if not len(children):
                return
            shapes = self.planner.shapes.of_node[children]
            heavy = int(np.flatnonzero(shapes == self._option(node).heavy_child)[0])
            self._place_light(node, np.delete(children, heavy), float(_half_zone(edge, slope)), edge_above, path.side)
            # Below another node, the first step is lower than the second child of the node above would be.
            is_first = node == path.node and path.edge_above > 0.0
            descent = max(slope, max(edge - edge_above, 0.0) + MARGIN) if is_first else slope
            x += path.side * float(_step(edge, descent)) * math.exp(-depth)
            depth += descent
            node, edge_above, edge = int(children[heavy]), edge, edge + growth

    def _place_light(self, node: int, children: Ints, half_zone: float, edge_above: float, side: float) -> None:
        """The light children of a node: the one with the largest width in the middle, the others on both sides."""
        if not len(children):
            return
        available = max(self.available - float(self.depth[node]), MARGIN)
        light = [self._light_child(int(child), available, edge_above) for child in children]
        light.sort(key=lambda child: (-(child.gap + child.width), child.node))
        first, *others = light
        # Children are on the side away from the path; how far each side is occupied.
        sides = [-side]
        offsets = [0.0]
        occupied = {-side: first.gap + first.width, side: first.gap}
        for child in others:
            on = min(occupied, key=lambda key: (occupied[key], -key))
            offsets.append(on * (occupied[on] + child.half_zone))
            occupied[on] += child.gap + child.width * (1.0 + occupied[on] ** 2)
            sides.append(on)
        scale = half_zone / max(occupied.values())
        for child, on, offset in zip(light, sides, offsets, strict=True):
            shift = offset * scale
            descent = _descent(child.above, shift)
            x = float(self.x[node]) + shift * math.exp(-float(self.depth[node]))
            depth = float(self.depth[node]) + descent
            self.pending.append(_Path(child.node, x, depth, on, child.edge, child.slope, child.above))

    def _light_child(self, node: int, available: float, edge_above: float) -> _LightChild:
        option = self._option(node)
        edge, slope = option.at(available)
        above = max(edge if option.is_leaf else edge - GROWTH, edge_above + 0.5 * GROWTH)
        edge = max(edge, above + 0.5 * GROWTH)
        if option.is_leaf:
            return _LightChild(node, above, edge, slope, GAP * math.exp(-0.5 * above), 0.0, 0.0)
        later_steps = self.planner.options[option.heavy_child].steps[slope]
        gap, width = path_room(np.array([edge]), _SLOPES[slope], later_steps)
        half_zone = math.exp(-above) * float(_half_zone(edge, float(_SLOPES[slope, 0])))
        return _LightChild(node, above, edge, slope, float(gap[0]), float(width[0]), half_zone)


def _descent(edge: float, shift: float) -> float:
    """How far below its parent a child at this distance is, shifted along x in units of the parent's height."""
    # The smaller solution of ratio^2 - 2 ratio cosh(edge) + 1 + shift^2 = 0.
    discriminant = math.cosh(edge) ** 2 - 1.0 - shift * shift
    ratio = (1.0 + shift * shift) / (math.cosh(edge) + math.sqrt(max(discriminant, 0.0)))
    return max(-math.log(ratio), 0.0)
