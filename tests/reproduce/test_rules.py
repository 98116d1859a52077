"""The single conventions, each against slow and obviously right code."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import InputError, NotFiniteError
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics
from equipoise.reproduce.emulation import RunAndQrels, average_precision_at_thresholds, score_under
from equipoise.reproduce.presets import Conventions
from equipoise.reproduce.tie_orders import (
    binarize_gains,
    drop_nonpositive,
    drop_self_matches,
    quicksort_order,
    retrieved_only,
    to_float32,
    truncate_gains,
    without_ties,
)


@pytest.mark.slow
@settings(max_examples=80)
@given(st.lists(st.integers(0, 5), max_size=120))
def test_equals_stand_as_numbas_quicksort_leaves_them(keys: list[int]) -> None:
    sort = pytest.importorskip("numba.misc.quicksort").make_py_quicksort(is_argsort=True)
    numbers = np.array(keys, dtype=np.float64)
    assert quicksort_order(numbers.tolist()) == list(sort.run_quicksort(numbers))


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=30))
def test_short_lists_keep_the_order_of_equals(keys: list[float]) -> None:
    order = quicksort_order(keys)
    assert sorted(order) == list(range(len(keys)))
    assert [keys[place] for place in order] == sorted(keys)
    if len(keys) <= 15:
        assert order == sorted(range(len(keys)), key=keys.__getitem__)


def average_precision(relevant: list[bool], k: int) -> float:
    """Over the hits within k, from a list of what is relevant."""
    found = [sum(relevant[: place + 1]) / (place + 1) for place in range(min(k, len(relevant))) if relevant[place]]
    return float(np.mean(found)) if found else 0.0


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from([1.0, 2.0, 3.0]), st.booleans()), min_size=1, max_size=6),
    st.integers(1, 7),
    st.integers(0, 2),
)
def test_precision_over_hits_is_the_mean_over_all_orders_of_equals(items, k: int, lost: int) -> None:
    run = {"q": {f"d{place}": score for place, (score, _) in enumerate(items)}}
    truth = {"q": {f"d{place}": int(good) for place, (_, good) in enumerate(items)}}
    truth["q"] |= {f"lost{place}": 1 for place in range(lost)}
    orders = [
        [good for _, good in order]
        for order in permutations(items)
        if all(one[0] >= other[0] for one, other in pairwise(order))
    ]
    expected = float(np.mean([average_precision(order, k) for order in orders]))
    metric = parse_metrics(f"MAP@{k}")[0]
    conventions = Conventions(norm="hits", empty="zero")
    assert score_under(RunAndQrels.of(run, truth), metric, conventions).value == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([1.0, 2.0, 3.0]), st.booleans()), min_size=1, max_size=12))
def test_equals_as_one_threshold_give_sklearns_average_precision(items) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    if not any(good for _, good in items):
        return
    ranking = Ranking.from_runs(
        {"q": {f"d{place}": int(good) for place, (_, good) in enumerate(items)}},
        {"q": {f"d{place}": score for place, (score, _) in enumerate(items)}},
    )
    scores, good = zip(*items, strict=True)
    expected = metrics.average_precision_score(good, scores)
    assert average_precision_at_thresholds(ranking, over_hits=True)[0] == pytest.approx(expected, abs=1e-12)


def test_rules_leave_what_they_are_given_as_it_is() -> None:
    run, truth = {"q": {"q": 0.1, "a": -1.0, "b": 0.1}}, {"q": {"a": 1.5, "b": 0.5, "z": 1}}
    for rule in (drop_self_matches, to_float32, drop_nonpositive, lambda each: without_ties(each, "id_up")):
        rule(run)
    for rule in (truncate_gains, binarize_gains, lambda each: retrieved_only(each, run)):
        rule(truth)
    assert run == {"q": {"q": 0.1, "a": -1.0, "b": 0.1}}
    assert truth == {"q": {"a": 1.5, "b": 0.5, "z": 1}}


@pytest.mark.parametrize(("ties", "first"), [("id_down", "c"), ("id_up", "a"), ("input", "b"), ("quicksort", "b")])
def test_each_order_of_equals_has_its_own_first(ties: str, first: str) -> None:
    run = without_ties({"q": {"b": 0.5, "c": 0.5, "a": 0.5}}, ties)
    assert max(run["q"], key=run["q"].__getitem__) == first
    assert len(set(run["q"].values())) == 3


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from([1.0, 2.0, 3.0]), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 9),
)
def test_a_cut_list_scores_as_if_the_rest_had_not_been_retrieved(items, depth: int) -> None:
    run = {"q": {f"d{place}": score for place, (score, _) in enumerate(items)}}
    truth = {"q": {f"d{place}": int(good) for place, (_, good) in enumerate(items)} | {"lost": 1}}
    ordered = without_ties(run, "input")["q"] if len(set(run["q"].values())) < len(items) else run["q"]
    kept = {"q": dict(sorted(ordered.items(), key=lambda pair: -pair[1])[:depth])}
    for name in ("nDCG", "MAP", "MRR", "R@20"):
        metric = parse_metrics(name)[0]
        cut = score_under(RunAndQrels.of(run, truth), metric, Conventions(ties="input", depth=depth)).value
        assert cut == pytest.approx(score_under(RunAndQrels.of(kept, truth), metric, Conventions()).value)


def test_a_cut_through_equals_is_an_expectation() -> None:
    inputs = RunAndQrels.of({"q": {"a": 0.5, "b": 0.5}}, {"q": {"a": 1}})
    assert score_under(inputs, parse_metrics("MRR")[0], Conventions(depth=1)).value == 0.5


def test_a_run_that_shares_no_query_with_the_truth_is_refused() -> None:
    with pytest.raises(InputError):
        RunAndQrels.of({"q1": {"a": 1.0}}, {"1": {"a": 1}})


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(NotFiniteError, match="nan"):
        RunAndQrels.of({"q": {"a": float("nan")}}, {"q": {"a": 1}})
