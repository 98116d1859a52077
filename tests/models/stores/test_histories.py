"""Any sequence of changes agrees with a dict, and search agrees with a full sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from equipoise.models.stores import open_store

DIMS = 3
NAMES = st.sampled_from([f"n{number}" for number in range(8)] + ["Ü", "漢"])
# Integers have exact products, so equal scores are common and exactly equal.
POINTS = st.tuples(*[st.integers(-2, 2)] * DIMS)
ENTRIES = st.dictionaries(NAMES, st.tuples(POINTS, st.none() | st.text(max_size=3)), max_size=6)


class Histories(RuleBasedStateMachine):
    """A store and a dict with the same changes."""

    spec = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.store = open_store(self.spec, dims=DIMS, geometry="dot")
        self.model: dict[str, tuple[tuple[int, ...], str | None]] = {}

    @rule(entries=ENTRIES)
    def add(self, entries: dict[str, tuple[tuple[int, ...], str | None]]) -> None:
        self.store.add(list(entries), [point for point, _ in entries.values()])
        self.model.update({name: (point, None) for name, (point, _) in entries.items()})

    @rule(entries=ENTRIES)
    def add_with_texts(self, entries: dict[str, tuple[tuple[int, ...], str | None]]) -> None:
        texts = [text or "" for _, text in entries.values()]
        self.store.add(list(entries), [point for point, _ in entries.values()], texts)
        for (name, (point, _)), text in zip(entries.items(), texts, strict=True):
            self.model[name] = (point, text)

    @rule(names=st.lists(NAMES, max_size=4))
    def delete(self, names: list[str]) -> None:
        present = {name for name in names if name in self.model}
        assert self.store.delete(names) == len(present)
        for name in present:
            del self.model[name]

    @rule(query=POINTS, k=st.integers(1, 12))
    def search(self, query: tuple[int, ...], k: int) -> None:
        def product(name: str) -> int:
            return sum(a * b for a, b in zip(query, self.model[name][0], strict=True))

        expected = sorted((-product(name), name) for name in self.model)[:k]
        assert self.store.search([query], k).pairs(0) == [(name, -negative_score) for negative_score, name in expected]

    @invariant()
    def agrees_with_the_dict(self) -> None:
        assert self.store.count() == len(self.model)
        assert self.store.texts(list(self.model)) == [text for _, text in self.model.values()]


class FlatHistories(Histories):
    spec = "faiss"


class GraphHistories(Histories):
    spec = "faiss:hnsw"


SETTINGS = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestMemory = Histories.TestCase
TestMemory.settings = SETTINGS


@pytest.mark.parametrize("machine", [FlatHistories, GraphHistories])
def test_faiss_agrees_with_a_dict(machine: type[Histories]) -> None:
    pytest.importorskip("faiss")
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(machine, settings=settings(max_examples=15, stateful_step_count=15, deadline=None))


@given(
    st.integers(1, 40).flatmap(lambda rows: arrays(np.float32, (rows, 4), elements=st.floats(-4, 4, width=16))),
    arrays(np.float32, (3, 4), elements=st.floats(-4, 4, width=16)),
    st.integers(1, 45),
    st.sampled_from(["cosine", "dot", "euclidean"]),
)
@settings(deadline=None, max_examples=150)
def test_memory_equals_brute_force(rows: np.ndarray, queries: np.ndarray, k: int, geometry: str) -> None:
    with open_store("memory", dims=4, geometry=geometry) as store:
        names = [f"{number:02d}" for number in range(len(rows))]
        store.add(names, rows)
        hits = store.search(queries, k)
    query_points, points = queries.astype(np.float64)[:, None], rows.astype(np.float64)[None]
    scores = {
        "dot": (query_points * points).sum(-1),
        "euclidean": -((query_points - points) ** 2).sum(-1),
        "cosine": (query_points * points).sum(-1)
        / np.maximum(np.linalg.norm(query_points, axis=-1) * np.linalg.norm(points, axis=-1), 1e-30),
    }[geometry]
    best = np.sort(scores, axis=1)[:, ::-1][:, :k]
    np.testing.assert_allclose(hits.scores, best, rtol=1e-4, atol=1e-4)
    expected_of_ids = np.take_along_axis(scores, np.vectorize(names.index, otypes=[int])(hits.ids), axis=1)
    np.testing.assert_allclose(hits.scores, expected_of_ids, rtol=1e-4, atol=1e-4)
