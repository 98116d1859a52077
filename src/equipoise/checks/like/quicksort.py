"""The order in which numba's quicksort leaves equal scores; ranx ranks by it.

Up to fifteen items are sorted by insertion, which keeps equals in their order. Longer lists are split around
the median of the first, middle and last item, and the exchanges of the split carry equals past each other.
The result is a fixed order all the same, and what ranx prints depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence

SHORT = 15
"""Spans of up to this many items are sorted by insertion."""


def quicksort_order(keys: Sequence[float]) -> list[int]:
    """The positions of the keys, smallest key first, equals as the algorithm leaves them.

    >>> quicksort_order([2.0, 1.0, 1.0])
    [1, 2, 0]
    """
    order = list(range(len(keys)))
    open_spans = [(0, len(keys) - 1)]
    while open_spans:
        low, high = open_spans.pop()
        if high - low < SHORT:
            # Sorting by insertion is stable, as Python's own sort is.
            order[low : high + 1] = sorted(order[low : high + 1], key=keys.__getitem__)
            continue
        middle = _split(keys, order, low, high)
        open_spans += [(low, middle - 1), (middle + 1, high)]
    return order


def _split(keys: Sequence[float], order: list[int], low: int, high: int) -> int:
    """Exchange items until the smaller ones stand before the pivot; where the pivot came to stand."""
    middle = (low + high) // 2
    for first, second in ((low, middle), (middle, high), (low, middle)):
        if keys[order[second]] < keys[order[first]]:
            _exchange(order, first, second)
    pivot = keys[order[middle]]
    _exchange(order, middle, high)
    left, right = low, high - 1
    while True:
        while left < high and keys[order[left]] < pivot:
            left += 1
        while right >= low and pivot < keys[order[right]]:
            right -= 1
        if left >= right:
            break
        _exchange(order, left, right)
        left, right = left + 1, right - 1
    _exchange(order, left, high)
    return left


def _exchange(order: list[int], first: int, second: int) -> None:
    order[first], order[second] = order[second], order[first]
