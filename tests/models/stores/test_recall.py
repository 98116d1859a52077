"""Recall of an index, compared with exact search, with ties at the cutoff."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.errors import PairingError, ParameterError
from equipoise.geometry.search import nearest_neighbors
from equipoise.models.stores import open_store
from equipoise.models.stores.recall import index_recall

ROWS = np.array([[4.0, 0.0], [3.0, 0.0], [2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [1.0, 0.0]])
QUERY = np.array([[1.0, 0.0]])


def store_with_rows(rows: list[int], names: str = "012345"):  # type: ignore[no-untyped-def]
    """A store with some of the rows, as an index that misses the others."""
    store = open_store("memory", dims=2, geometry="dot")
    store.add([names[row] for row in rows], ROWS[rows])
    return store


@pytest.mark.parametrize(
    ("rows", "expected"),
    [([0, 1, 2, 3, 4, 5], 1.0), ([0, 1, 4, 5], 1.0), ([1, 4, 5, 2], 1.0), ([0, 5, 1], 2 / 3)],
)
def test_hits_tied_with_the_last_exact_neighbour_count(rows: list[int], expected: float) -> None:
    exact = nearest_neighbors(QUERY, ROWS, 3, geometry="dot")
    report = index_recall(store_with_rows(rows), QUERY, exact, 3)
    assert report.recall == pytest.approx(expected)


def test_ids_name_the_rows_of_the_exact_search() -> None:
    exact = nearest_neighbors(QUERY, ROWS, 2, geometry="dot")
    report = index_recall(store_with_rows([0, 5], names="abcdef"), QUERY, exact, 2, ids=list("abcdef"))
    assert report.per_query.tolist() == [0.5]
    assert (report.complete, report.worst) == (0, 0.5)
    assert str(report) == "index recall@2 0.5000 over 1 queries, 0 complete"


def test_scores_equal_up_to_rounding_tie() -> None:
    exact = nearest_neighbors(QUERY, [[1.0, 0.0], [0.5, 0.0]], 1, geometry="dot")
    for score, expected in ((1.0 - 1e-7, 1.0), (1.0 - 1e-4, 0.0)):
        store = open_store("memory", dims=2, geometry="dot")
        store.add(["other"], [[score, 0.0]])
        assert index_recall(store, QUERY, exact, 1).recall == expected


def test_scores_of_a_small_scale_do_not_tie() -> None:
    rows = 1e-4 * ROWS
    store = open_store("memory", dims=2, geometry="dot")
    store.add(["5", "1"], rows[[5, 1]])
    assert index_recall(store, 1e-4 * QUERY, nearest_neighbors(1e-4 * QUERY, rows, 2, geometry="dot"), 2).recall == 0.5


def test_recall_of_a_graph_index_increases_with_the_search_effort() -> None:
    pytest.importorskip("faiss")
    rng = np.random.default_rng(0)
    rows, queries = rng.normal(size=(4000, 24)), rng.normal(size=(50, 24))
    exact = nearest_neighbors(queries, rows, 10)
    recalls = []
    for effort in (1, 2000):
        with open_store("faiss:hnsw", dims=24, neighbours=8, ef_construction=16, ef_search=effort) as store:
            store.add([str(number) for number in range(len(rows))], rows)
            recalls.append(index_recall(store, queries, exact, 10).recall)
    assert recalls[0] < 0.9 < 0.99 < recalls[1]


def test_exact_stores_have_recall_one() -> None:
    rng = np.random.default_rng(1)
    rows, queries = rng.normal(size=(500, 8)), rng.normal(size=(20, 8))
    exact = nearest_neighbors(queries, rows, 20)
    with open_store("memory", dims=8) as store:
        store.add([str(number) for number in range(len(rows))], rows)
        assert index_recall(store, queries, exact, 20).per_query.tolist() == [1.0] * 20


def test_mismatched_exact_searches_raise_errors() -> None:
    exact = nearest_neighbors(QUERY, ROWS, 2, geometry="dot")
    with pytest.raises(ParameterError, match=r"2.*recall@3"):
        index_recall(store_with_rows([0, 1, 2]), QUERY, exact, 3)
    with pytest.raises(PairingError, match=r"2 queries.*1"):
        index_recall(store_with_rows([0, 1, 2]), [[1, 0], [0, 1]], exact, 2)


def test_no_queries_have_no_recall() -> None:
    report = index_recall(
        store_with_rows([0]), np.empty((0, 2)), nearest_neighbors(np.empty((0, 2)), ROWS, 1, geometry="dot"), 1
    )
    assert np.isnan(report.recall)
