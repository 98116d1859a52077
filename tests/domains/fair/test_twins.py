"""Nearly equal answers are in one group."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.config import StatsConfig
from equipoise.domains.fair.config import FairConfig
from equipoise.domains.fair.grid_search import answer_splits
from equipoise.domains.fair.plan import answer_groups, qa_dataset


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Weber", "Jonas Weber"),
        ("65%", "65 %"),
        ("the Duke of Sussex", "Duke of Sussex"),
        ("observing the transit of Venus", "observed the transit of Venus"),
        ("Inter gravissimas", "INTER  GRAVISSIMAS"),
    ],
)
def test_nearly_equal_answers_are_in_one_group(first: str, second: str) -> None:
    assert answer_groups([[first], ["something else"], [second]]) == [0, 1, 0]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1871", "on the 3rd of May 1871"),
        ("12 March 1871", "13 March 1871"),
        ("65%", "165%"),
        ("rye", "wheat"),
        ("?", "!"),
    ],
)
def test_answers_with_little_in_common_are_in_different_groups(first: str, second: str) -> None:
    assert answer_groups([[first], [second]]) == [0, 1]


def test_groups_are_transitive() -> None:
    assert answer_groups([["Weber of Ulm"], ["Jonas Weber of Ulm"], ["Jonas Weber"]]) == [0, 0, 0]


def test_one_common_accepted_answer_joins_a_group() -> None:
    assert answer_groups([["1871", "in May 1871"], ["rye"], ["wheat", "in May 1871"]]) == [0, 1, 0]


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=4).map(" ".join)


@given(st.lists(WORDS, max_size=7), st.randoms(use_true_random=False))
def test_groups_do_not_depend_on_the_order(answers: list[str], random: object) -> None:
    order = list(range(len(answers)))
    random.shuffle(order)  # type: ignore[attr-defined]
    original, shuffled = (
        answer_groups([[answer] for answer in answers]),
        answer_groups([[answers[index]] for index in order]),
    )
    for first, second in combinations(range(len(order)), 2):
        same = original[order[first]] == original[order[second]]
        assert (shuffled[first] == shuffled[second]) == same


def test_nearly_equal_answers_are_in_the_same_fold() -> None:
    names = ["Weber", "Jonas Weber", "Ada", "Ada Lovelace", "Kepler", "Johannes Kepler", "rye", "wheat"]
    dataset = qa_dataset("Some text.", [{"question": f"Who {name}?", "answer": name} for name in names])
    for seed in range(20):
        splits = answer_splits(dataset, FairConfig(folds=3, repeats=2, stats=StatsConfig(seed=seed)))
        assert len(splits) == 2
        for split in splits:
            fold_of = np.empty(len(names), dtype=int)
            for fold, (_, test) in enumerate(split):
                fold_of[test] = fold
            assert (fold_of[[0, 2, 4]] == fold_of[[1, 3, 5]]).all()
