"""Who hangs from whom, as arrays: the targets of every node, and walks over whole layers at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.types import Ints


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
        """All targets of these nodes, and for each the place in ``nodes`` it came from."""
        starts = self.starts[nodes]
        return runs(self.targets, starts, self.starts[nodes + 1] - starts)


def runs(flat: Ints, starts: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """The runs ``flat[start:start + size]`` one after the other; first, which run each value is of."""
    owners = np.repeat(np.arange(len(starts)), sizes)
    first = np.cumsum(sizes) - sizes
    return owners, flat[np.arange(len(owners)) + (starts - first)[owners]]


def longest_paths(links: Links, back: Links) -> Ints:
    """The longest path from each node along ``links``; -1 for nodes that run into a cycle.

    ``back`` is the same links reversed. A node is known one step after the last of its targets.
    """
    found = np.full(len(links), -1, dtype=np.int64)
    waiting = links.counts.copy()
    layer = np.flatnonzero(waiting == 0)
    steps = 0
    while len(layer):
        found[layer] = steps
        nodes, counts = np.unique(back.gather(layer)[1], return_counts=True)
        waiting[nodes] -= counts
        layer = nodes[waiting[nodes] == 0]
        steps += 1
    return found


def shortest_paths(links: Links, starts: Ints) -> Ints:
    """The fewest steps along ``links`` from any of ``starts`` to each node; -1 where none leads."""
    found = np.full(len(links), -1, dtype=np.int64)
    layer = starts
    steps = 0
    while len(layer):
        found[layer] = steps
        reached = np.unique(links.gather(layer)[1])
        layer = reached[found[reached] < 0]
        steps += 1
    return found


def reachable(links: Links, start: int) -> Ints:
    """The node itself and all it reaches, in order of position."""
    return np.flatnonzero(shortest_paths(links, np.array([start])) >= 0)
