"""Counting within groups: how many numbers of a group lie below a limit, and how many equal it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.types import Ints

Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers that belong to groups, ready to be counted.

    ``ordered`` are all numbers in order, and ``order`` says where they stood. The key of a number is its
    group and then the place of the first one that equals it: ``in_order`` of the numbers, ``keys`` in order
    themselves.
    """

    order: Ints
    ordered: Numbers
    in_order: Ints
    keys: Ints

    @classmethod
    def of(cls, groups: Ints, numbers: Numbers) -> Tally:
        """Two sorts of the whole; no group is looked at by itself.

        >>> Tally.of(np.array([0, 1, 0]), np.array([2.0, 9.0, 3.0])).below(np.array([0]), np.array([3.0]))
        (array([1]), array([1]))
        """
        order = np.argsort(numbers)
        ordered = numbers[order]
        opens = np.ones(len(ordered), dtype=np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=opens[1:])
        first = np.maximum.accumulate(np.where(opens, np.arange(len(ordered)), 0))
        in_order = groups[order] * (len(ordered) + 1) + first
        return cls(order, ordered, in_order, np.sort(in_order))

    @property
    def own(self) -> Ints:
        """The key of each number, as they were given."""
        own = np.empty_like(self.in_order)
        own[self.order] = self.in_order
        return own

    def below(self, groups: Ints, limits: Numbers) -> tuple[Ints, Ints]:
        """For each limit: how many numbers of its group lie below it, and how many equal it."""
        keys, known = self.places(groups, limits)
        start = np.searchsorted(self.keys, groups * (len(self.ordered) + 1))
        left = np.searchsorted(self.keys, keys)
        equal = np.where(known, np.searchsorted(self.keys, keys, side="right") - left, 0)
        return left - start, equal

    def places(self, groups: Ints, limits: Numbers) -> tuple[Ints, NDArray[np.bool_]]:
        """The key that a number in this group would have, and whether the number occurs at all."""
        place = np.searchsorted(self.ordered, limits)
        known = np.zeros(len(limits), dtype=np.bool_)
        inside = place < len(self.ordered)
        known[inside] = self.ordered[place[inside]] == limits[inside]
        return groups * (len(self.ordered) + 1) + place, known
