"""Single conventions, compared with slow reference implementations."""

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
def test_equal_keys_are_sorted_as_in_the_quicksort_of_numba(keys: list[int]) -> None:
    sort = pytest.importorskip("numba.misc.quicksort").make_py_quicksort(is_argsort=True)
    numbers = np.array(keys, dtype=np.float64)
    assert quicksort_order(numbers.tolist()) == list(sort.run_quicksort(numbers))


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=30))
def test_short_lists_are_sorted_stably(keys: list[float]) -> None:
    order = quicksort_order(keys)
    assert sorted(order) == list(range(len(keys)))
    assert [keys[index] for index in order] == sorted(keys)
    if len(keys) <= 15:
        assert order == sorted(range(len(keys)), key=keys.__getitem__)


def average_precision(relevant: list[bool], k: int) -> float:
    """Mean precision over the hits within k, from a list of relevance labels."""
    precisions = [sum(relevant[: index + 1]) / (index + 1) for index in range(min(k, len(relevant))) if relevant[index]]
    return float(np.mean(precisions)) if precisions else 0.0


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from([1.0, 2.0, 3.0]), st.booleans()), min_size=1, max_size=6),
    st.integers(1, 7),
    st.integers(0, 2),
)
def test_average_precision_over_hits_is_the_mean_over_tie_orders(items, k: int, n_missing: int) -> None:
    run = {"q": {f"d{index}": score for index, (score, _) in enumerate(items)}}
    truth = {"q": {f"d{index}": int(is_relevant) for index, (_, is_relevant) in enumerate(items)}}
    truth["q"] |= {f"lost{index}": 1 for index in range(n_missing)}
    orders = [
        [is_relevant for _, is_relevant in order]
        for order in permutations(items)
        if all(first[0] >= second[0] for first, second in pairwise(order))
    ]
    expected = float(np.mean([average_precision(order, k) for order in orders]))
    metric = parse_metrics(f"MAP@{k}")[0]
    conventions = Conventions(norm="hits", empty="zero")
    assert score_under(RunAndQrels.of(run, truth), metric, conventions).value == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([1.0, 2.0, 3.0]), st.booleans()), min_size=1, max_size=12))
def test_ties_as_one_threshold_equal_sklearn(items) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    if not any(is_relevant for _, is_relevant in items):
        return
    ranking = Ranking.from_runs(
        {"q": {f"d{index}": int(is_relevant) for index, (_, is_relevant) in enumerate(items)}},
        {"q": {f"d{index}": score for index, (score, _) in enumerate(items)}},
    )
    scores, is_relevant = zip(*items, strict=True)
    expected = metrics.average_precision_score(is_relevant, scores)
    assert average_precision_at_thresholds(ranking, over_hits=True)[0] == pytest.approx(expected, abs=1e-12)


def test_rules_do_not_change_their_inputs() -> None:
    run, truth = {"q": {"q": 0.1, "a": -1.0, "b": 0.1}}, {"q": {"a": 1.5, "b": 0.5, "z": 1}}
    for rule in (drop_self_matches, to_float32, drop_nonpositive, lambda data: without_ties(data, "id_up")):
        rule(run)
    for rule in (truncate_gains, binarize_gains, lambda data: retrieved_only(data, run)):
        rule(truth)
    assert run == {"q": {"q": 0.1, "a": -1.0, "b": 0.1}}
    assert truth == {"q": {"a": 1.5, "b": 0.5, "z": 1}}


@pytest.mark.parametrize(("ties", "first"), [("id_down", "c"), ("id_up", "a"), ("input", "b"), ("quicksort", "b")])
def test_each_tie_order_has_a_first_item(ties: str, first: str) -> None:
    run = without_ties({"q": {"b": 0.5, "c": 0.5, "a": 0.5}}, ties)
    assert max(run["q"], key=run["q"].__getitem__) == first
    assert len(set(run["q"].values())) == 3


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from([1.0, 2.0, 3.0]), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 9),
)
def test_a_depth_limit_equals_truncated_lists(items, depth: int) -> None:
    run = {"q": {f"d{index}": score for index, (score, _) in enumerate(items)}}
    truth = {"q": {f"d{index}": int(is_relevant) for index, (_, is_relevant) in enumerate(items)} | {"lost": 1}}
    ordered = without_ties(run, "input")["q"] if len(set(run["q"].values())) < len(items) else run["q"]
    truncated = {"q": dict(sorted(ordered.items(), key=lambda pair: -pair[1])[:depth])}
    for name in ("nDCG", "MAP", "MRR", "R@20"):
        metric = parse_metrics(name)[0]
        value = score_under(RunAndQrels.of(run, truth), metric, Conventions(ties="input", depth=depth)).value
        assert value == pytest.approx(score_under(RunAndQrels.of(truncated, truth), metric, Conventions()).value)


def test_a_depth_limit_within_ties_is_an_expectation() -> None:
    inputs = RunAndQrels.of({"q": {"a": 0.5, "b": 0.5}}, {"q": {"a": 1}})
    assert score_under(inputs, parse_metrics("MRR")[0], Conventions(depth=1)).value == 0.5


def test_a_run_without_a_common_query_is_an_error() -> None:
    with pytest.raises(InputError):
        RunAndQrels.of({"q1": {"a": 1.0}}, {"1": {"a": 1}})


def test_a_nan_score_is_an_error() -> None:
    with pytest.raises(NotFiniteError, match="nan"):
        RunAndQrels.of({"q": {"a": float("nan")}}, {"q": {"a": 1}})
