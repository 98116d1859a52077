"""Chance levels of sets, compared with all assignments of predictions to documents."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.evidence.sets import Sets
from equipoise.metrics.sets import SetF1, SetPrecision, SetRecall, random_assignments

KINDS = (SetF1, SetPrecision, SetRecall)
ENTRIES = st.sets(st.tuples(st.sampled_from("abcd"), st.sampled_from(["affirmed", "negated"])), max_size=5)
DOCUMENTS = st.lists(st.tuples(ENTRIES, ENTRIES), min_size=1, max_size=4)


def term_similarity(gold: Any, predicted: Any) -> Any:
    return np.array([[1 / (1 + abs(ord(a) - ord(b))) for b in predicted] for a in gold])


def sets_of(pairs: Any) -> Sets:
    gold, predicted = ({f"d{index}": pair[side] for index, pair in enumerate(pairs)} for side in (0, 1))
    return Sets.of(gold, predicted).with_credit(term_similarity)


def all_assignments(pairs: Any) -> list[Sets]:
    """The sets under every assignment of the predictions to the documents."""
    return [
        sets_of([(gold, predicted_set) for (gold, _), predicted_set in zip(pairs, order, strict=True)])
        for order in permutations([predicted_set for _, predicted_set in pairs])
    ]


def mean_over_assignments(metric: Any, assignments: list[Sets]) -> float:
    values = [metric.measure(sets).value for sets in assignments]
    return float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")


@settings(max_examples=15, deadline=None)
@given(DOCUMENTS)
def test_micro_chance_is_the_mean_over_all_assignments(pairs: Any) -> None:
    sets, assignments = sets_of(pairs), all_assignments(pairs)
    for kind in KINDS:
        for mode in ("strict", "present", "id"):
            for soft in (False, True):
                metric = kind("micro", mode, soft=soft)
                chance = metric.chance(sets, np.random.default_rng(0))
                assert chance == pytest.approx(mean_over_assignments(metric, assignments), nan_ok=True)


@settings(max_examples=15, deadline=None)
@given(DOCUMENTS)
def test_macro_chance_is_the_mean_over_all_assignments(pairs: Any) -> None:
    sets, assignments = sets_of(pairs), all_assignments(pairs)
    for metric in (SetPrecision("macro", "id"), SetRecall("macro", "id"), SetRecall("macro", "id", True)):
        chance = metric.chance(sets, np.random.default_rng(0))
        assert chance == pytest.approx(mean_over_assignments(metric, assignments), nan_ok=True)


@settings(max_examples=15, deadline=None)
@given(DOCUMENTS)
def test_soft_scores_never_have_a_lower_chance_level(pairs: Any) -> None:
    sets = sets_of(pairs)
    for kind in KINDS:
        for average in ("micro", "macro", "weighted"):
            exact, soft = (
                kind(average, "id", is_soft).chance(sets, np.random.default_rng(5)) for is_soft in (False, True)
            )
            assert not soft < exact - 1e-12


@pytest.mark.parametrize("documents", [1, 7, 141, 400])
def test_every_assignment_is_a_permutation(documents: int) -> None:
    orders = random_assignments(documents, np.random.default_rng(1))
    assert (np.sort(orders, axis=1) == np.arange(documents)).all()


def test_n_assignments_contain_every_pair_once() -> None:
    orders = random_assignments(141, np.random.default_rng(1))[:141]
    assert len({(document, assigned) for order in orders.tolist() for document, assigned in enumerate(order)}) == 141**2


def test_set_metrics_share_their_assignments() -> None:
    assert len({kind(average, mode).chance_stream for kind in KINDS
                for average in ("micro", "macro") for mode in ("id", "strict")}) == 1  # fmt: skip
