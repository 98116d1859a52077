"""The is_a graph as arrays: levels, depths, and all ancestors of all terms at once.

Everything is computed level by level with whole arrays, so that an ontology of 20,000 terms takes
milliseconds. Several roots and several parents are normal; a cycle is an error that names its terms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from equipoise.io.arrays import segment_indices, segment_offsets
from equipoise.types import Ints

if TYPE_CHECKING:
    from equipoise.types import Bools, Ints

# Edges as arrays: the targets of every node, and traversals layer by layer.


@dataclass(frozen=True, eq=False, slots=True)
class Links:
    """The targets of each of n nodes: those of node i are ``targets[starts[i]:starts[i + 1]]``.

    >>> links = Links.of(3, np.array([[0, 2], [1, 2], [0, 1]]))
    >>> links[0].tolist(), links[2].tolist()
    ([2, 1], [])
    """

    starts: Ints
    targets: Ints

    @classmethod
    def of(cls, count: int, pairs: Ints) -> Links:
        """The links of (node, target) pairs; a node's targets keep the order of the pairs."""
        order = np.argsort(pairs[:, 0], kind="stable")
        counts = np.bincount(pairs[:, 0], minlength=count)
        return cls(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), pairs[order, 1])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, node: int) -> Ints:
        return self.targets[self.starts[node] : self.starts[node + 1]]

    @property
    def counts(self) -> Ints:
        """How many targets each node has."""
        return np.diff(self.starts)

    def gather(self, nodes: Ints) -> tuple[Ints, Ints]:
        """All targets of these nodes, and for each the index in ``nodes`` it belongs to."""
        starts = self.starts[nodes]
        return gather_slices(self.targets, starts, self.starts[nodes + 1] - starts)


def gather_slices(flat: Ints, starts: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """The runs ``flat[start:start + size]`` one after the other; first, which run each value is of."""
    owners = np.repeat(np.arange(len(starts)), sizes)
    first = np.cumsum(sizes) - sizes
    return owners, flat[np.arange(len(owners)) + (starts - first)[owners]]


def longest_paths(links: Links, back: Links) -> Ints:
    """The longest path from each node along ``links``; -1 for nodes that run into a cycle.

    ``back`` is the same links reversed. A node is known one step after the last of its targets.
    """
    lengths = np.full(len(links), -1, dtype=np.int64)
    waiting = links.counts.copy()
    layer = np.flatnonzero(waiting == 0)
    steps = 0
    while len(layer):
        lengths[layer] = steps
        nodes, counts = np.unique(back.gather(layer)[1], return_counts=True)
        waiting[nodes] -= counts
        layer = nodes[waiting[nodes] == 0]
        steps += 1
    return lengths


def shortest_paths(links: Links, starts: Ints) -> Ints:
    """The fewest steps along ``links`` from any of ``starts`` to each node; -1 where none leads."""
    lengths = np.full(len(links), -1, dtype=np.int64)
    layer = starts
    steps = 0
    while len(layer):
        lengths[layer] = steps
        reached = np.unique(links.gather(layer)[1])
        layer = reached[lengths[reached] < 0]
        steps += 1
    return lengths


def reachable(links: Links, start: int) -> Ints:
    """The node itself and all it reaches, in order of position."""
    return np.flatnonzero(shortest_paths(links, np.array([start])) >= 0)


# The transitive closure of a hierarchy, and the transitive reduction.


def closure(count: int, edges: Ints) -> Ints:
    """All (descendant, ancestor) pairs of (child, parent) edges without a cycle, each once, in order.

    From the roots down, one layer at a time: the ancestors of a node are its parents and theirs.

    >>> closure(3, np.array([[0, 1], [1, 2]])).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    parents, children = Links.of(count, edges), Links.of(count, edges[:, ::-1])
    level = longest_paths(parents, children)
    by_level = Links.of(int(level.max(initial=-1)) + 1, np.column_stack([level, np.arange(count)]))
    starts, sizes = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    pairs = np.empty(max(16, 4 * len(edges)), dtype=np.int64)
    used = 0
    for depth in range(1, len(by_level)):
        layer = by_level[depth]
        owners, direct = parents.gather(layer)
        via, further = gather_slices(pairs, starts[direct], sizes[direct])
        keys = np.concatenate([owners * count + direct, owners[via] * count + further])
        owners, ancestors = np.divmod(np.unique(keys), count)
        pairs = _grown(pairs, used + len(ancestors))
        pairs[used : used + len(ancestors)] = ancestors
        sizes[layer] = np.bincount(owners, minlength=len(layer))
        starts[layer] = used + np.cumsum(sizes[layer]) - sizes[layer]
        used += len(ancestors)
    descendants, ancestors = gather_slices(pairs, starts, sizes)
    return np.column_stack([descendants, ancestors])


def transitive_reduction(count: int, pairs: Ints) -> tuple[Bools, Ints]:
    """Which of closed pairs are direct, and the pairs that are missing for them to be closed.

    A pair is direct if no third node is between its two nodes.

    >>> direct, missing = transitive_reduction(3, np.array([[0, 1], [0, 2], [1, 2]]))
    >>> direct.tolist(), missing.tolist()
    ([True, False, True], [])
    """
    ancestors = Links.of(count, pairs)
    via, further = ancestors.gather(pairs[:, 1])
    bridged = np.unique(pairs[via, 0] * count + further)
    keys = pairs[:, 0] * count + pairs[:, 1]
    absent = bridged[~np.isin(bridged, keys)]
    return ~np.isin(keys, bridged), np.column_stack(np.divmod(absent, count))


def _grown(array: Ints, size: int) -> Ints:
    """The same array with room for ``size`` values; doubling keeps the copying linear."""
    if size <= len(array):
        return array
    return np.concatenate([array, np.empty(max(size, 2 * len(array)) - len(array), dtype=np.int64)])


# Rows of unequal length in two arrays (CSR).


@dataclass(frozen=True, eq=False)
class Rows:
    """``values[starts[i]:starts[i + 1]]`` is row ``i``.

    >>> rows = Rows.of([[4, 5], [], [6]])
    >>> rows[0], rows.counts
    (array([4, 5]), array([2, 0, 1]))
    """

    starts: Ints
    values: Ints

    @classmethod
    def of(cls, lists: Iterable[Iterable[int]]) -> Rows:
        """From lists of numbers."""
        rows = [list(row) for row in lists]
        counts = np.array([len(row) for row in rows], dtype=np.int64)
        return cls(segment_offsets(counts), np.array([node for row in rows for node in row], dtype=np.int64))

    @classmethod
    def grouped(cls, owner: Ints, values: Ints, rows: int) -> Rows:
        """From pairs of a row and a value; each row is in ascending order."""
        order = np.lexsort((values, owner))
        return cls(segment_offsets(np.bincount(owner, minlength=rows)), values[order])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> Ints:
        return self.values[self.starts[row] : self.starts[row + 1]]

    @property
    def counts(self) -> Ints:
        """How long each row is."""
        return np.diff(self.starts)

    @property
    def owner(self) -> Ints:
        """The row of each value."""
        return np.repeat(np.arange(len(self)), self.counts)

    def slots(self, rows: Ints) -> Ints:
        """The indices in ``values`` of the values of these rows, one row after another."""
        first = self.starts[rows]
        return segment_indices(first, self.starts[rows + 1] - first)

    def reversed(self) -> Rows:
        """For each index that occurs as a value, the rows that contain it: children from parents."""
        return Rows.grouped(self.values, self.owner, len(self))


@dataclass(frozen=True, eq=False)
class AncestorTable:
    """The ancestors of every term, the term itself among them, and the steps up to each.

    ``rows`` is ascending within each term; ``steps`` is aligned with ``rows.values``: the length of the
    shortest upward path from the term to that ancestor, 0 for itself.
    """

    rows: Rows
    steps: Ints

    @cached_property
    def below(self) -> Ints:
        """How many terms have each term among their ancestors: its descendants and itself."""
        return np.bincount(self.rows.values, minlength=len(self.rows))


def topological_levels(parents: Rows) -> list[Ints] | None:
    """The terms by their longest path from a root, roots first; None when there is a cycle."""
    children = parents.reversed()
    waiting = parents.counts.copy()
    level = np.flatnonzero(waiting == 0)
    levels: list[Ints] = []
    while len(level):
        levels.append(level)
        reached, arrivals = np.unique(children.values[children.slots(level)], return_counts=True)
        waiting[reached] -= arrivals
        level = reached[waiting[reached] == 0]
    return levels if sum(len(level) for level in levels) == len(parents) else None


def depths(parents: Rows, by_level: list[Ints]) -> Ints:
    """The shortest path from a root to each term, in edges."""
    depth = np.zeros(len(parents), dtype=np.int64)
    for level in by_level[1:]:
        starts = segment_offsets(parents.counts[level])[:-1]
        depth[level] = np.minimum.reduceat(depth[parents.values[parents.slots(level)]], starts) + 1
    return depth


def lineage(parents: Rows, by_level: list[Ints]) -> AncestorTable:
    """All ancestors of all terms with the steps up to them."""
    size = len(parents)
    owner = ancestor = step = np.zeros(0, dtype=np.int64)
    start, length = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for level in by_level:
        # A term inherits the ancestors of its parents, one step farther, and adds itself.
        parent = parents.values[parents.slots(level)]
        child = np.repeat(level, parents.counts[level])
        inherited = segment_indices(start[parent], length[parent])
        node, above, steps = _nearest(
            np.concatenate([level, np.repeat(child, length[parent])]),
            np.concatenate([level, ancestor[inherited]]),
            np.concatenate([np.zeros_like(level), step[inherited] + 1]),
            size,
        )
        terms, first, counts = np.unique(node, return_index=True, return_counts=True)
        start[terms], length[terms] = len(owner) + first, counts
        owner, ancestor = np.concatenate([owner, node]), np.concatenate([ancestor, above])
        step = np.concatenate([step, steps])
    order = np.lexsort((ancestor, owner))
    return AncestorTable(Rows(segment_offsets(length), ancestor[order]), step[order])


def _nearest(owner: Ints, ancestor: Ints, step: Ints, size: int) -> tuple[Ints, Ints, Ints]:
    """Each pair of term and ancestor once, with the fewest steps."""
    key = owner * size + ancestor
    order = np.lexsort((step, key))
    first = np.ones(len(key), dtype=bool)
    first[1:] = np.diff(key[order]) != 0
    nearest = order[first]
    return owner[nearest], ancestor[nearest], step[nearest]
