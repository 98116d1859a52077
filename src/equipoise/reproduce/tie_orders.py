"""The order of equal scores in the C++ library of GNU, which torch's sort and top-k use on a CPU.

Up to sixteen items are sorted by insertion, which keeps equals in their order. Longer lists are split around
the median of three items first, and the exchanges reorder equal items. The k best are picked by the
same splits, or from a heap where they are few. The result is a fixed order, on which the scores depend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import trunc
from typing import Any

import numpy as np

SHORT, SHORTEST = 16, 3
"""Spans of up to this many items are sorted by insertion, in a full sort and in a selection."""
FEW = 64
"""A heap selects the best k if k is at most one in this many items."""


def std_sort_order(keys: Sequence[float]) -> list[int]:
    """The positions of the keys, smallest key first, equals as ``std::sort`` leaves them."""
    span = _Span(keys)
    span.sort(0, len(keys))
    return span.order


def torch_topk_order(keys: Sequence[float], k: int) -> list[int]:
    """The positions of the ``k`` smallest keys in order, equals as ``torch.topk`` picks them on a processor."""
    span, size = _Span(keys), len(keys)
    if k * FEW <= size:
        span.heap_sort(0, k, size)
    elif k:
        span.select(0, k - 1, size)
        span.sort(0, k - 1)
    return span.order[:k]


class _Span:
    """Positions being sorted; ``order`` is their current order."""

    def __init__(self, keys: Sequence[float]) -> None:
        self.keys = keys
        self.order = list(range(len(keys)))

    def sort(self, first: int, last: int) -> None:
        """``std::sort`` of a span."""
        self._split_all(first, last, _depth(last - first))
        # After the splits only short spans are unsorted, and insertion sort is stable.
        self.order[first:last] = sorted(self.order[first:last], key=self.keys.__getitem__)

    def select(self, first: int, nth: int, last: int) -> None:
        """``std::nth_element``: the nth key is at its sorted position, with smaller keys before it."""
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
        """Swap items until the smaller ones are first; returns the start of the larger ones."""
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
        a, b, c = (self.keys[self.order[position]] for position in (one, two, three))
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
        """Move the largest item of the heap to a position, and the item there into the heap."""
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
    """Number of splits before heap sort is used."""
    return 2 * (size.bit_length() - 1) if size else 0


# numba's quicksort, which ranx uses.

QUICKSORT_SHORT = 15
"""Spans of up to this many items are sorted by insertion."""


def quicksort_order(keys: Sequence[float]) -> list[int]:
    """The positions of the keys, smallest key first, equals as the algorithm leaves them."""
    order = list(range(len(keys)))
    open_spans = [(0, len(keys) - 1)]
    while open_spans:
        low, high = open_spans.pop()
        if high - low < QUICKSORT_SHORT:
            # Sorting by insertion is stable, as Python's sort is.
            order[low : high + 1] = sorted(order[low : high + 1], key=keys.__getitem__)
            continue
        middle = _split(keys, order, low, high)
        open_spans += [(low, middle - 1), (middle + 1, high)]
    return order


def _split(keys: Sequence[float], order: list[int], low: int, high: int) -> int:
    """Swap items until the smaller ones are before the pivot; returns the position of the pivot."""
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


# torchmetrics sorts the rows of all queries together, then every list.

SORT, PICK = "torch_sort", "torch_topk"
"""Metrics that sort a list with ``torch.argsort``, and those that pick its best with ``torch.topk``."""

RADIX_ROWS = 32_768
"""From this many integers on, ``torch.sort`` uses a radix sort, which is stable (GRAIN_SIZE in ATen's
SortingKernel.cpp). Floats, and so the scores of a list, are sorted by ``std::sort`` at any length. Neither
depends on the number of threads (measured with torch 2.13 on x86-64 under Linux, 1 and 2 threads, up to
70,000 rows)."""

TorchOrderRun = Mapping[str, Mapping[str, float]]


def torch_order(run: TorchOrderRun, rule: str, k: int | None) -> dict[str, list[str]]:
    """Every list, best score first: the first ``k`` items are sorted, and the others follow.

    >>> torch_order({"q": {"a": 0.5, "b": 0.9, "c": 0.5}}, PICK, 2)
    {'q': ['b', 'a', 'c']}
    """
    order_by_query = {}
    for query, items in _group_by_query(run).items():
        keys = [-run[query][item] for item in items]
        last = len(items) if k is None else min(k, len(items))
        order = torch_topk_order(keys, last) if rule == PICK else std_sort_order(keys)
        unsorted = sorted(set(range(len(items))) - set(order), key=keys.__getitem__)
        order_by_query[query] = [items[position] for position in (*order, *unsorted)]
    return order_by_query


def _group_by_query(run: TorchOrderRun) -> dict[str, list[str]]:
    """The items of each query as sorting all rows by query leaves them."""
    if sum(map(len, run.values())) >= RADIX_ROWS:
        return {query: list(items) for query, items in run.items()}
    rows = [(number, query, item) for number, query in enumerate(run) for item in run[query]]
    lists: dict[str, list[str]] = {query: [] for query in run}
    for position in std_sort_order([number for number, _, _ in rows]):
        _, query, item = rows[position]
        lists[query].append(item)
    return lists


# Conventions on the run: functions from score lists to score lists.

Scores = Mapping[str, float]
Run = Mapping[str, Scores]


def drop_self_matches(run: Run) -> Run:
    """Every list without the document that is named like its query."""
    return {
        query: {item: score for item, score in scores.items() if item != query} if query in scores else scores
        for query, scores in run.items()
    }


def to_float32(run: Run) -> Run:
    """The scores as 32 bits hold them."""
    with np.errstate(over="ignore", under="ignore"):
        return {
            query: dict(zip(scores, np.array(list(scores.values()), dtype=np.float32).tolist(), strict=True))
            for query, scores in run.items()
        }


def drop_nonpositive(run: Run) -> Run:
    """Every list without the items whose score is 0 or below."""
    return {query: {item: score for item, score in scores.items() if score > 0} for query, scores in run.items()}


def is_tied(scores: Scores) -> bool:
    """Whether two items of a list have the same score."""
    return len(set(scores.values())) < len(scores)


def _quicksort_items(scores: Scores, items: Sequence[str]) -> list[str]:
    return [items[position] for position in quicksort_order([-scores[item] for item in items])]


ORDERS: Mapping[str, Callable[[Scores], list[str]]] = {
    # trec_eval
    "id_down": lambda scores: sorted(scores, key=lambda item: (scores[item], str(item)), reverse=True),
    # sentence-transformers
    "id_up": lambda scores: sorted(scores, key=lambda item: (-scores[item], str(item))),
    "input": lambda scores: sorted(scores, key=scores.__getitem__, reverse=True),
    # A run of ranx when it is made, and after it was made comparable.
    "quicksort": lambda scores: _quicksort_items(scores, list(scores)),
    "quicksort twice": lambda scores: _quicksort_items(scores, _quicksort_items(scores, list(scores))),
}
"""The tie rules that order a list, best score first, without using the qrels."""


def without_ties(run: Run, ties: str, k: int | None = None) -> Run:
    """The run without ties: scores of lists with ties are replaced by negative positions.

    A rule of torch may order the items within the cutoff ``k`` alone.
    """
    tied = {query: scores for query, scores in run.items() if is_tied(scores)}
    if tied and ties in (SORT, PICK):
        lists = torch_order(run, ties, k)  # depends on all lists
    else:
        lists = {query: ORDERS[ties](scores) for query, scores in tied.items()}
    return {
        query: {item: -float(position) for position, item in enumerate(lists[query])} if query in tied else scores
        for query, scores in run.items()
    }


# Conventions on the ground truth: functions from qrels to qrels.

Gains = Mapping[str, float]
Truth = Mapping[str, Gains]


def truncate_gains(truth: Truth) -> Truth:
    """The gains truncated to integers, so that 0.5 becomes 0."""
    return {query: {item: trunc(gain) for item, gain in gains.items()} for query, gains in truth.items()}


def binarize_gains(truth: Truth) -> Truth:
    """Every gain above 0 as 1."""
    return {query: {item: int(gain > 0) for item, gain in gains.items()} for query, gains in truth.items()}


def drop_lower_grades(truth: Truth, min_grade: int) -> Truth:
    """Gains below ``min_grade`` as 0.

    >>> drop_lower_grades({"q": {"a": 3, "b": 1}}, 2)
    {'q': {'a': 3, 'b': 0}}
    """
    return {
        query: {item: gain if gain >= min_grade else 0 for item, gain in gains.items()}
        for query, gains in truth.items()
    }


def retrieved_only(truth: Truth, run: Run) -> Truth:
    """The gains of retrieved items only."""
    empty: Mapping[str, Any] = {}
    return {
        query: {item: gain for item, gain in gains.items() if item in run.get(query, empty)}
        for query, gains in truth.items()
    }
