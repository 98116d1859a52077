"""Chance levels of sets, against every way there is to deal the predictions to the documents."""

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


def alike(gold: Any, found: Any) -> Any:
    return np.array([[1 / (1 + abs(ord(a) - ord(b))) for b in found] for a in gold])


def sets_of(pairs: Any) -> Sets:
    gold, found = ({f"d{at}": pair[side] for at, pair in enumerate(pairs)} for side in (0, 1))
    return Sets.of(gold, found).with_credit(alike)


def all_deals(pairs: Any) -> list[Sets]:
    """The sets under every assignment of the predictions to the documents."""
    return [
        sets_of([(gold, given) for (gold, _), given in zip(pairs, order, strict=True)])
        for order in permutations([answer for _, answer in pairs])
    ]


def mean_over(metric: Any, deals: list[Sets]) -> float:
    values = [metric.measure(sets).value for sets in deals]
    return float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")


@settings(max_examples=15, deadline=None)
@given(DOCUMENTS)
def test_micro_chance_is_the_mean_over_all_deals(pairs: Any) -> None:
    sets, deals = sets_of(pairs), all_deals(pairs)
    for kind in KINDS:
        for mode in ("strict", "present", "id"):
            for soft in (False, True):
                metric = kind("micro", mode, soft=soft)
                chance = metric.chance(sets, np.random.default_rng(0))
                assert chance == pytest.approx(mean_over(metric, deals), nan_ok=True)


@settings(max_examples=15, deadline=None)
@given(DOCUMENTS)
def test_macro_precision_and_recall_by_chance_are_the_means_over_all_deals(pairs: Any) -> None:
    sets, deals = sets_of(pairs), all_deals(pairs)
    for metric in (SetPrecision("macro", "id"), SetRecall("macro", "id"), SetRecall("macro", "id", True)):
        chance = metric.chance(sets, np.random.default_rng(0))
        assert chance == pytest.approx(mean_over(metric, deals), nan_ok=True)


@settings(max_examples=15, deadline=None)
@given(DOCUMENTS)
def test_near_misses_never_lower_a_chance_level(pairs: Any) -> None:
    sets = sets_of(pairs)
    for kind in KINDS:
        for average in ("micro", "macro", "weighted"):
            exact, soft = (kind(average, "id", each).chance(sets, np.random.default_rng(5)) for each in (False, True))
            assert not soft < exact - 1e-12


@pytest.mark.parametrize("documents", [1, 7, 141, 400])
def test_every_deal_gives_every_document_one_set(documents: int) -> None:
    orders = random_assignments(documents, np.random.default_rng(1))
    assert (np.sort(orders, axis=1) == np.arange(documents)).all()


def test_a_round_of_deals_makes_every_pair_once() -> None:
    orders = random_assignments(141, np.random.default_rng(1))[:141]
    assert len({(place, each) for order in orders.tolist() for place, each in enumerate(order)}) == 141**2


def test_scores_of_sets_share_their_deals() -> None:
    assert len({kind(average, mode).chance_stream for kind in KINDS
                for average in ("micro", "macro") for mode in ("id", "strict")}) == 1  # fmt: skip
