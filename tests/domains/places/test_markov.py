"""The Markov model gives probabilities, and those of Witten and Bell."""

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


def slowly(pairs: list[tuple[int, int]], user: int, before: int) -> list[float]:
    """From the broadest source to the most telling, with dictionaries."""
    everybody, moves, own, own_moves = (Counter[Any]() for _ in range(4))
    last: dict[int, int] = {}
    for who, place in pairs:
        everybody[place] += 1
        own[who, place] += 1
        if who in last:
            moves[last[who], place] += 1
            own_moves[who, last[who], place] += 1
        last[who] = place
    likely = [(everybody[place] + 1) / (len(pairs) + CLASSES) for place in range(CLASSES)]
    for counts in (
        [moves[before, place] for place in range(CLASSES)],
        [own[user, place] for place in range(CLASSES)],
        [own_moves[user, before, place] for place in range(CLASSES)],
    ):
        n, different = sum(counts), sum(count > 0 for count in counts)
        if n:
            likely = [(c + different * p) / (n + different) for c, p in zip(counts, likely, strict=True)]
    return likely


@given(visits, st.integers(0, 3), st.integers(-1, CLASSES - 1))
def test_every_source_hands_on_its_share(pairs: list[tuple[int, int]], user: int, before: int) -> None:
    users, places = zip(*pairs, strict=True)
    model = MarkovModel(VisitHistory.of(np.array(users), np.array(places), classes=CLASSES))
    case = PredictionCases(np.array([0]), np.array([user]), np.array([before]), np.array([0]))
    found = model.probabilities(case)
    assert found[0].tolist() == pytest.approx(slowly(pairs, user, before), rel=1e-12)
    assert found.sum() == pytest.approx(1.0)
    assert np.exp(model.logits(case)) == pytest.approx(found, rel=1e-5)
    assert model.logits(case).dtype == np.float32
