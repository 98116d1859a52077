"""The is_a graph as arrays: levels, depths, and all ancestors of all terms at once.

Everything is computed level by level with whole arrays, so that an ontology of 20,000 terms takes
milliseconds. Several roots and several parents are normal; a cycle is refused with its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.evidence.placement import spans, starts_of
from equipoise.ontology.rows import Rows
from equipoise.types import Ints


@dataclass(frozen=True, eq=False)
class Lineage:
    """The ancestors of every term, the term itself among them, and the steps up to each.

    ``rows`` is ascending within each term; ``steps`` stands beside ``rows.values``: the length of the
    shortest upward path from the term to that ancestor, 0 for itself.
    """

    rows: Rows
    steps: Ints

    @cached_property
    def below(self) -> Ints:
        """How many terms have each term among their ancestors: its descendants and itself."""
        return np.bincount(self.rows.values, minlength=len(self.rows))


def levels(parents: Rows) -> list[Ints] | None:
    """The terms by their longest path from a root, roots first; None when there is a cycle."""
    children = parents.reversed()
    waiting = parents.counts.copy()
    level = np.flatnonzero(waiting == 0)
    found: list[Ints] = []
    while len(level):
        found.append(level)
        reached, arrivals = np.unique(children.values[children.slots(level)], return_counts=True)
        waiting[reached] -= arrivals
        level = reached[waiting[reached] == 0]
    return found if sum(len(each) for each in found) == len(parents) else None


def depths(parents: Rows, by_level: list[Ints]) -> Ints:
    """The shortest path from a root to each term, in edges."""
    depth = np.zeros(len(parents), dtype=np.int64)
    for level in by_level[1:]:
        starts = starts_of(parents.counts[level])[:-1]
        depth[level] = np.minimum.reduceat(depth[parents.values[parents.slots(level)]], starts) + 1
    return depth


def lineage(parents: Rows, by_level: list[Ints]) -> Lineage:
    """All ancestors of all terms with the steps up to them."""
    size = len(parents)
    owner = ancestor = step = np.zeros(0, dtype=np.int64)
    start, length = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for level in by_level:
        # A term inherits the ancestors of its parents, one step farther, and adds itself.
        parent = parents.values[parents.slots(level)]
        child = np.repeat(level, parents.counts[level])
        known = spans(start[parent], length[parent])
        own, above, steps = _nearest(
            np.concatenate([level, np.repeat(child, length[parent])]),
            np.concatenate([level, ancestor[known]]),
            np.concatenate([np.zeros_like(level), step[known] + 1]),
            size,
        )
        terms, first, counts = np.unique(own, return_index=True, return_counts=True)
        start[terms], length[terms] = len(owner) + first, counts
        owner, ancestor = np.concatenate([owner, own]), np.concatenate([ancestor, above])
        step = np.concatenate([step, steps])
    order = np.lexsort((ancestor, owner))
    return Lineage(Rows(starts_of(length), ancestor[order]), step[order])


def _nearest(owner: Ints, ancestor: Ints, step: Ints, size: int) -> tuple[Ints, Ints, Ints]:
    """Each pair of term and ancestor once, with the fewest steps."""
    key = owner * size + ancestor
    order = np.lexsort((step, key))
    first = np.ones(len(key), dtype=bool)
    first[1:] = np.diff(key[order]) != 0
    kept = order[first]
    return owner[kept], ancestor[kept], step[kept]
