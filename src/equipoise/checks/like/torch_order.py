"""Where torchmetrics puts equal scores: the rows of all queries are sorted together, then every list."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.checks.like.introsort import picked_order, sorted_order

SORT, PICK = "torch_sort", "torch_topk"
"""Metrics that sort a list with ``torch.argsort``, and those that pick its best with ``torch.topk``."""

RADIX_ROWS = 32_768
"""From this many integers on, ``torch.sort`` uses a radix sort, which is stable (GRAIN_SIZE in ATen's
SortingKernel.cpp). Floats, and so the scores of a list, are sorted by ``std::sort`` at any length. Neither
depends on the number of threads (measured with torch 2.13 on x86-64 under Linux, 1 and 2 threads, up to
70,000 rows)."""

Run = Mapping[str, Mapping[str, float]]


def torch_lists(run: Run, rule: str, k: int | None) -> dict[str, list[str]]:
    """Every list, best score first. Of what is picked the first ``k`` stand in order, and the rest follows.

    >>> torch_lists({"q": {"a": 0.5, "b": 0.9, "c": 0.5}}, PICK, 2)
    {'q': ['b', 'a', 'c']}
    """
    found = {}
    for query, items in _grouped(run).items():
        keys = [-run[query][item] for item in items]
        last = len(items) if k is None else min(k, len(items))
        order = picked_order(keys, last) if rule == PICK else sorted_order(keys)
        behind = sorted(set(range(len(items))) - set(order), key=keys.__getitem__)
        found[query] = [items[place] for place in (*order, *behind)]
    return found


def _grouped(run: Run) -> dict[str, list[str]]:
    """The items of each query as sorting all rows by query leaves them."""
    if sum(map(len, run.values())) >= RADIX_ROWS:
        return {query: list(items) for query, items in run.items()}
    rows = [(number, query, item) for number, query in enumerate(run) for item in run[query]]
    lists: dict[str, list[str]] = {query: [] for query in run}
    for place in sorted_order([number for number, _, _ in rows]):
        _, query, item = rows[place]
        lists[query].append(item)
    return lists
