"""The order in which the C++ library of GNU leaves equal scores; torch sorts and picks by it on a processor.

Up to sixteen items are sorted by insertion, which keeps equals in their order. Longer lists are split around
the median of three items first, and the exchanges carry equals past each other. The k best are picked by the
same splits, or from a heap where they are few. The result is a fixed order, on which the figures depend.
"""

from __future__ import annotations

from collections.abc import Sequence

SHORT, SHORTEST = 16, 3
"""Spans of up to so many items are left to insertion, when all are sorted and when some are picked."""
FEW = 64
"""Where every k-th item at most is wanted, one in so many, they come from a heap."""


def sorted_order(keys: Sequence[float]) -> list[int]:
    """The positions of the keys, smallest key first, equals as ``std::sort`` leaves them.

    >>> sorted_order([2.0, 1.0, 1.0])
    [1, 2, 0]
    """
    span = _Span(keys)
    span.sort(0, len(keys))
    return span.order


def picked_order(keys: Sequence[float], k: int) -> list[int]:
    """The positions of the ``k`` smallest keys in order, equals as ``torch.topk`` picks them on a processor.

    >>> picked_order([2.0, 1.0, 1.0], 1)
    [1]
    """
    span, size = _Span(keys), len(keys)
    if k * FEW <= size:
        span.heap_sort(0, k, size)
    elif k:
        span.select(0, k - 1, size)
        span.sort(0, k - 1)
    return span.order[:k]


class _Span:
    """Positions that are moved about; ``order`` is how they stand now."""

    def __init__(self, keys: Sequence[float]) -> None:
        self.keys = keys
        self.order = list(range(len(keys)))

    def sort(self, first: int, last: int) -> None:
        """``std::sort`` of a span."""
        self._split_all(first, last, _depth(last - first))
        # What the splits have left in place is out of order within short spans only, and insertion is stable.
        self.order[first:last] = sorted(self.order[first:last], key=self.keys.__getitem__)

    def select(self, first: int, nth: int, last: int) -> None:
        """``std::nth_element``: what belongs to the nth place stands there, smaller keys before it."""
        depth = _depth(last - first)
        while last - first > SHORTEST:
            if depth == 0:
                self._heap_select(first, nth + 1, last)
                self._exchange(first, nth)
                return
            depth -= 1
            cut = self._split(first, last)
            first, last = (cut, last) if cut <= nth else (first, cut)
        self.order[first:last] = sorted(self.order[first:last], key=self.keys.__getitem__)

    def heap_sort(self, first: int, middle: int, last: int) -> None:
        """``std::partial_sort``: the smallest keys of the span, in order, up to the middle."""
        self._heap_select(first, middle, last)
        for end in range(middle - 1, first, -1):
            self._pop(first, end, end)

    def _split_all(self, first: int, last: int, depth: int) -> None:
        while last - first > SHORT:
            if depth == 0:
                self.heap_sort(first, last, last)
                return
            depth -= 1
            cut = self._split(first, last)
            self._split_all(cut, last, depth)
            last = cut

    def _split(self, first: int, last: int) -> int:
        """Exchange items until the smaller ones stand first; where the larger ones begin."""
        middle = first + (last - first) // 2
        self._exchange(first, self._median(first + 1, middle, last - 1))
        pivot, left, right = self.keys[self.order[first]], first + 1, last
        while True:
            while self.keys[self.order[left]] < pivot:
                left += 1
            right -= 1
            while pivot < self.keys[self.order[right]]:
                right -= 1
            if left >= right:
                return left
            self._exchange(left, right)
            left += 1

    def _median(self, one: int, two: int, three: int) -> int:
        a, b, c = (self.keys[self.order[each]] for each in (one, two, three))
        if a < b:
            return two if b < c else three if a < c else one
        return one if a < c else three if b < c else two

    def _heap_select(self, first: int, middle: int, last: int) -> None:
        size = middle - first
        for parent in range((size - 2) // 2, -1, -1):
            self._sift(first, parent, size, self.order[first + parent])
        for at in range(middle, last):
            if self.keys[self.order[at]] < self.keys[self.order[first]]:
                self._pop(first, middle, at)

    def _pop(self, first: int, end: int, to: int) -> None:
        """The largest of the heap goes to a place, and what stood there into the heap."""
        item, self.order[to] = self.order[to], self.order[first]
        self._sift(first, 0, end - first, item)

    def _sift(self, first: int, hole: int, size: int, item: int) -> None:
        """Let the larger child rise into the hole down to the end, then let the item rise from there."""
        order, keys, top, child = self.order, self.keys, hole, hole
        while child < (size - 1) // 2:
            child = 2 * (child + 1)
            if keys[order[first + child]] < keys[order[first + child - 1]]:
                child -= 1
            order[first + hole], hole = order[first + child], child
        if size % 2 == 0 and child == (size - 2) // 2:
            child = 2 * child + 1
            order[first + hole], hole = order[first + child], child
        while hole > top and keys[order[first + (hole - 1) // 2]] < keys[item]:
            order[first + hole], hole = order[first + (hole - 1) // 2], (hole - 1) // 2
        order[first + hole] = item

    def _exchange(self, one: int, two: int) -> None:
        self.order[one], self.order[two] = self.order[two], self.order[one]


def _depth(size: int) -> int:
    """How many splits are tried before a heap takes over."""
    return 2 * (size.bit_length() - 1) if size else 0
