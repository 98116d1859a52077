"""Cached counts of sets: subsets of documents have the same scores with and without the cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.evidence.sets import Sets
from equipoise.metrics.sets import SetF1, SetPrecision, SetRecall

ENTRIES = st.sets(st.tuples(st.sampled_from("abcde"), st.sampled_from(["affirmed", "negated"])), max_size=6)


def term_similarity(gold: Any, predicted: Any) -> Any:
    return np.array([[1 / (1 + abs(ord(a) - ord(b))) for b in predicted] for a in gold])


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(ENTRIES, ENTRIES), min_size=1, max_size=5), st.data())
def test_subsets_taken_before_and_after_scoring_have_equal_scores(
    pairs: list[tuple[set[Any], set[Any]]], data: st.DataObject
) -> None:
    gold = {f"d{index}": gold_set for index, (gold_set, _) in enumerate(pairs)}
    predicted = {f"d{index}": predicted_set for index, (_, predicted_set) in enumerate(pairs)}
    indices = np.array(data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1, max_size=8)))
    scored_sets = Sets.of(gold, predicted).with_credit(term_similarity)
    metrics = [
        kind(average, mode, soft=soft)
        for kind in (SetF1, SetPrecision, SetRecall)
        for average in ("micro", "macro", "weighted")
        for mode in ("strict", "present", "id")
        for soft in (False, True)
    ]
    for metric in metrics:
        metric.measure(scored_sets)
    subset = Sets.of(gold, predicted).with_credit(term_similarity).take(indices)
    for metric in metrics:
        after, before = metric.measure(scored_sets.take(indices)).value, metric.measure(subset).value
        assert after == pytest.approx(before, nan_ok=True)


def test_shuffled_sets_are_recounted() -> None:
    sets = Sets.of({"a": ["x"], "b": ["y"]}, {"a": ["x"], "b": ["y"]})
    assert SetF1().measure(sets).value == 1.0
    values = {SetF1().measure(sets.shuffled(np.random.default_rng(seed))).value for seed in range(8)}
    assert values == {0.0, 1.0}
