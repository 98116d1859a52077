"""The Markov model gives the probabilities of Witten-Bell smoothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.places.demo import MarkovModel
from equipoise.domains.places.visits import PredictionCases, VisitHistory

CLASSES = 5
visits = st.lists(st.tuples(st.integers(0, 2), st.integers(0, CLASSES - 1)), min_size=1, max_size=30)


def reference_probabilities(pairs: list[tuple[int, int]], user: int, previous: int) -> list[float]:
    """Witten-Bell smoothing with dictionaries, from the least to the most specific counts."""
    total_counts, all_moves, user_counts, user_moves = (Counter[Any]() for _ in range(4))
    last_place: dict[int, int] = {}
    for visitor, place in pairs:
        total_counts[place] += 1
        user_counts[visitor, place] += 1
        if visitor in last_place:
            all_moves[last_place[visitor], place] += 1
            user_moves[visitor, last_place[visitor], place] += 1
        last_place[visitor] = place
    probabilities = [(total_counts[place] + 1) / (len(pairs) + CLASSES) for place in range(CLASSES)]
    for counts in (
        [all_moves[previous, place] for place in range(CLASSES)],
        [user_counts[user, place] for place in range(CLASSES)],
        [user_moves[user, previous, place] for place in range(CLASSES)],
    ):
        n, n_distinct = sum(counts), sum(count > 0 for count in counts)
        if n:
            probabilities = [
                (c + n_distinct * p) / (n + n_distinct) for c, p in zip(counts, probabilities, strict=True)
            ]
    return probabilities


@given(visits, st.integers(0, 3), st.integers(-1, CLASSES - 1))
def test_probabilities_equal_witten_bell_smoothing(pairs: list[tuple[int, int]], user: int, previous: int) -> None:
    users, places = zip(*pairs, strict=True)
    model = MarkovModel(VisitHistory.of(np.array(users), np.array(places), classes=CLASSES))
    case = PredictionCases(np.array([0]), np.array([user]), np.array([previous]), np.array([0]))
    probabilities = model.probabilities(case)
    assert probabilities[0].tolist() == pytest.approx(reference_probabilities(pairs, user, previous), rel=1e-12)
    assert probabilities.sum() == pytest.approx(1.0)
    assert np.exp(model.logits(case)) == pytest.approx(probabilities, rel=1e-5)
    assert model.logits(case).dtype == np.float32
