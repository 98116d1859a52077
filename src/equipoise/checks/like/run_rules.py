"""Conventions about the run, each a function from lists of scores to lists of scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from equipoise.checks.like.quicksort import quicksort_order
from equipoise.checks.like.torch_order import PICK, SORT, torch_lists

Scores = Mapping[str, float]
Run = Mapping[str, Scores]


def without_own_id(run: Run) -> Run:
    """Every list without the document that is named like its query.

    >>> without_own_id({"q1": {"q1": 0.9, "d": 0.5}})
    {'q1': {'d': 0.5}}
    """
    return {
        query: {item: score for item, score in scores.items() if item != query} if query in scores else scores
        for query, scores in run.items()
    }


def in_float32(run: Run) -> Run:
    """The scores as 32 bits hold them.

    >>> in_float32({"q": {"a": 0.1, "b": 0.1 + 1e-12}})["q"]["b"] == in_float32({"q": {"a": 0.1}})["q"]["a"]
    True
    """
    return {query: dict(zip(scores, _cut(scores), strict=True)) for query, scores in run.items()}


def _cut(scores: Scores) -> list[float]:
    with np.errstate(over="ignore", under="ignore"):
        cut: list[float] = np.array(list(scores.values()), dtype=np.float64).astype(np.float32).tolist()
    return cut


def above_zero(run: Run) -> Run:
    """Every list without the items whose score is 0 or below.

    >>> above_zero({"q": {"a": 0.2, "b": -0.1}})
    {'q': {'a': 0.2}}
    """
    return {
        query: {item: score for item, score in scores.items() if score > 0} for query, scores in run.items()
    }


def is_tied(scores: Scores) -> bool:
    """Whether two items of a list have the same score."""
    return len(set(scores.values())) < len(scores)


def by_id_down(scores: Scores) -> list[str]:
    """Best score first, equals by id, descending: trec_eval."""
    return sorted(scores, key=lambda item: (scores[item], str(item)), reverse=True)


def by_id_up(scores: Scores) -> list[str]:
    """Best score first, equals by id, ascending: sentence-transformers."""
    return sorted(scores, key=lambda item: (-scores[item], str(item)))


def by_input(scores: Scores) -> list[str]:
    """Best score first, equals in the order in which they stand."""
    return sorted(scores, key=scores.__getitem__, reverse=True)


def by_quicksort(scores: Scores) -> list[str]:
    """Best score first, equals as numba's quicksort leaves them: a run of ranx when it is made."""
    return _quicksorted(scores, list(scores))


def by_quicksort_twice(scores: Scores) -> list[str]:
    """The same once more: a run of ranx after it was made comparable."""
    return _quicksorted(scores, by_quicksort(scores))


def _quicksorted(scores: Scores, items: list[str]) -> list[str]:
    return [items[place] for place in quicksort_order([-scores[item] for item in items])]


ORDERS: Mapping[str, Callable[[Scores], list[str]]] = {
    "id_down": by_id_down,
    "id_up": by_id_up,
    "input": by_input,
    "quicksort": by_quicksort,
    "quicksort twice": by_quicksort_twice,
}
"""The tie rules that put the equals of a list into one order without knowing the judgements."""


def lists_in_order(run: Run, ties: str, k: int | None = None) -> Mapping[str, list[str]]:
    """The items of every list, best first; a rule of torch may order those within the cutoff ``k`` alone."""
    if ties in (SORT, PICK):
        return torch_lists(run, ties, k)
    return {query: ORDERS[ties](scores) for query, scores in run.items()}


def in_one_order(run: Run, ties: str, k: int | None = None) -> Run:
    """The run without ties: where a list has some, its scores become places that say the order.

    >>> in_one_order({"q": {"a": 0.5, "b": 0.5}}, "id_down")
    {'q': {'b': -0.0, 'a': -1.0}}
    """
    tied = {query: scores for query, scores in run.items() if is_tied(scores)}
    # The order of torch depends on all lists, and that of the others on each list alone.
    lists = lists_in_order(run if tied and ties in (SORT, PICK) else tied, ties, k)
    return {
        query: {item: -float(place) for place, item in enumerate(lists[query])} if query in tied else scores
        for query, scores in run.items()
    }
