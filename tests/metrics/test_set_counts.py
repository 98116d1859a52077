"""Counts that sets keep: a part of the documents scores the same with them as without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.evidence.sets import Sets
from equipoise.metrics.sets import SetF1, SetPrecision, SetRecall

ENTRIES = st.sets(st.tuples(st.sampled_from("abcde"), st.sampled_from(["affirmed", "negated"])), max_size=6)


def alike(gold: Any, found: Any) -> Any:
    return np.array([[1 / (1 + abs(ord(a) - ord(b))) for b in found] for a in gold])


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(ENTRIES, ENTRIES), min_size=1, max_size=5), st.data())
def test_documents_taken_after_scoring_score_as_documents_taken_before(
    pairs: list[tuple[set[Any], set[Any]]], data: st.DataObject
) -> None:
    gold = {f"d{place}": truth for place, (truth, _) in enumerate(pairs)}
    found = {f"d{place}": answer for place, (_, answer) in enumerate(pairs)}
    index = np.array(data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1, max_size=8)))
    warm = Sets.of(gold, found).with_credit(alike)
    metrics = [
        kind(average, mode, soft=soft)
        for kind in (SetF1, SetPrecision, SetRecall)
        for average in ("micro", "macro", "weighted")
        for mode in ("strict", "present", "id")
        for soft in (False, True)
    ]
    for metric in metrics:
        metric.measure(warm)
    cold = Sets.of(gold, found).with_credit(alike).take(index)
    for metric in metrics:
        kept, fresh = metric.measure(warm.take(index)).value, metric.measure(cold).value
        assert kept == pytest.approx(fresh, nan_ok=True)


def test_shuffled_sets_are_counted_anew() -> None:
    sets = Sets.of({"a": ["x"], "b": ["y"]}, {"a": ["x"], "b": ["y"]})
    assert SetF1().measure(sets).value == 1.0
    values = {SetF1().measure(sets.shuffled(np.random.default_rng(seed))).value for seed in range(8)}
    assert values == {0.0, 1.0}
