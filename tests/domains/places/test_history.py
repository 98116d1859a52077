"""Visits in the order of time, and which of them are held out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.places.visits import NO_PREVIOUS_PLACE, VisitHistory
from equipoise.errors import InputError, ParameterError, ShapeError

visits = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=2, max_size=60)


def history_of(pairs: list[tuple[int, int]]) -> VisitHistory:
    users, places = zip(*pairs, strict=True)
    return VisitHistory.of(np.array(users), np.array(places), classes=7)


@given(visits)
def test_the_previous_place_is_the_last_place_of_the_same_user(pairs: list[tuple[int, int]]) -> None:
    last_place: dict[int, int] = {}
    expected = []
    for user, place in pairs:
        expected.append(last_place.get(user, NO_PREVIOUS_PLACE))
        last_place[user] = place
    assert history_of(pairs).previous.tolist() == expected


@given(visits, st.sampled_from([0.1, 0.2, 0.5, 0.9]))
def test_each_visit_is_in_the_training_or_the_test_part_and_the_last_ones_are_in_the_test_part(
    pairs: list[tuple[int, int]], share: float
) -> None:
    history = history_of(pairs)
    if max(np.bincount(history.user_codes)) < 2:
        return
    train, cases = history.split(share)
    assert len(train) + len(cases) == len(history)
    for user in history.names.tolist():
        places, train_places = history.places[history.users == user], train.places[train.users == user]
        test_places = cases.targets[cases.users == user]
        assert np.concatenate([train_places, test_places]).tolist() == places.tolist()
        assert len(train_places) >= 1
    assert len(set(cases.unit_ids.tolist())) == len(cases)


def test_a_fifth_of_ten_visits_is_two() -> None:
    _, cases = VisitHistory.of(["a"] * 10, np.arange(10)).split(0.2)
    assert cases.targets.tolist() == [8, 9]
    assert cases.previous.tolist() == [7, 8]
    assert cases.unit_ids.tolist() == ["a-9", "a-10"]


def test_hours_and_users_are_split_with_the_visits() -> None:
    history = VisitHistory.of(["b", "a", "b", "a"], [0, 1, 2, 0], hours=[8, 9, 10, 11])
    train, cases = history.split(0.5)
    assert cases.hours is not None
    assert train.hours is not None
    assert (cases.users.tolist(), cases.hours.tolist(), train.hours.tolist()) == (
        ["b", "a"],
        [10, 11],
        [8, 9],
    )


def test_bad_visits_are_errors() -> None:
    with pytest.raises(InputError):
        VisitHistory.of([], np.array([], dtype=int))
    with pytest.raises(InputError, match=r"0 .*5"):
        VisitHistory.of(["a", "b"], [0, 5], classes=5)
    with pytest.raises(InputError):
        VisitHistory.of(["a"], ["home"])
    with pytest.raises(ShapeError, match=r"1 users.*2 places"):
        VisitHistory.of(["a"], [0, 1])
    with pytest.raises(ParameterError, match=r"1\.5"):
        VisitHistory.of(["a", "a"], [0, 1]).split(1.5)
    with pytest.raises(InputError):
        VisitHistory.of(["a", "b"], [0, 1]).split()
