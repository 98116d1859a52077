"""Simulated mobility has realistic statistics and is reproducible."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.domains.places.baselines import majority, markov, most_frequent_per_user
from equipoise.domains.places.demo import simulate_mobility
from equipoise.errors import ParameterError
from equipoise.metrics.parser import parse_metrics


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first, repeated, other = (simulate_mobility(8, 7, 40, seed=seed) for seed in (1, 1, 2))
    assert first.places.tobytes() == repeated.places.tobytes()
    assert first.users.tolist() == repeated.users.tolist()
    assert first.places.tolist() != other.places.tolist()


def test_a_user_does_not_depend_on_the_number_of_users() -> None:
    few, many = simulate_mobility(2, 10, 40), simulate_mobility(9, 10, 40)
    for user in few.names.tolist():
        assert few.places[few.users == user].tolist() == many.places[many.users == user].tolist()


def test_consecutive_places_differ_and_hours_are_below_24() -> None:
    history = simulate_mobility(10, 28, 60)
    assert (history.places != history.previous).all()
    assert history.hours is not None
    assert history.hours.min() >= 0
    assert history.hours.max() <= 23


def test_most_visits_are_to_the_two_top_places_of_a_user_and_place_counts_have_a_heavy_tail() -> None:
    history = simulate_mobility(60, 28, 300)
    shares = []
    for user in history.names.tolist():
        place_counts = np.sort(np.bincount(history.places[history.users == user]))[::-1]
        shares.append(place_counts[:2].sum() / place_counts.sum())
    assert np.mean(shares) > 0.4  # home and work, or home and the favourite
    counts = np.sort(history.counts)[::-1]
    assert counts[:30].sum() > 0.5 * counts.sum()  # a tenth of the places has most of the visits
    assert (counts == 0).any()  # and some are never seen at all


def test_more_information_about_a_user_improves_the_hit_rate() -> None:
    train, cases = simulate_mobility(30, 28, 200, seed=5).split()
    (hit_rate,) = parse_metrics("HR@1")
    rankings = (
        majority(train.counts, cases.targets),
        most_frequent_per_user(train, cases.users, cases.targets),
        markov(train, cases.users, cases.previous, cases.targets),
    )
    majority_score, user_score, markov_score = (hit_rate.measure(ranking).value for ranking in rankings)
    assert 1 / 200 < majority_score < user_score < markov_score < 1


@pytest.mark.parametrize("arguments", [{"users": 0}, {"days": 0}, {"places": 9}])
def test_too_small_arguments_are_errors(arguments: dict[str, int]) -> None:
    with pytest.raises(ParameterError):
        simulate_mobility(**arguments)
