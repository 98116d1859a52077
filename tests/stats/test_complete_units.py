"""Missing scores: order, ranks, letters and differences of a comparison are about the same units."""

from __future__ import annotations

from itertools import combinations
from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.checks.base import run_checks
from equipoise.config import StatsConfig
from equipoise.stats.comparison import Comparison
from equipoise.stats.estimate import result_from_values
from equipoise.stats.pairing import compare_results
from equipoise.stats.result import Result
from equipoise.stats.tuning_uncertainty import interval_from_errors
from equipoise.types import Direction, Floats

nan = float("nan")
CONFIG = StatsConfig(n_permutations=300, n_resamples=60)


def results_of(table: Floats, better: Direction = Direction.UP) -> list[Result]:
    ids = [f"q{row}" for row in range(len(table))]
    return [
        result_from_values(f"s{at}", ids, {"score": column}, better=better, config=CONFIG)
        for at, column in enumerate(table.T)
    ]


def code_of(comparison: Comparison) -> list[str]:
    return [finding.code for finding in run_checks(comparison)]


@settings(max_examples=60)
@given(st.data())
def test_order_ranks_letters_and_differences_agree(data: st.DataObject) -> None:
    n_units, n_systems = data.draw(st.integers(2, 40)), data.draw(st.integers(2, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    skill = rng.uniform(0.1, 0.9, n_systems)
    table = (rng.random((n_units, n_systems)) < skill).astype(float)
    if data.draw(st.booleans()):
        table *= rng.random(table.shape)
    gaps = data.draw(st.sampled_from([0.0, 0.03, 0.3]))
    table[rng.random(table.shape) < gaps] = nan
    table[rng.random(n_units) < gaps] = nan  # undefined for all systems
    better = data.draw(st.sampled_from(list(Direction)))
    comparison = compare_results(results_of(table, better), config=CONFIG)

    scored = ~np.isnan(table).all(axis=0)
    complete = ~np.isnan(table[:, scored]).any(axis=1)
    if not complete.any() or not scored.any():
        assert comparison.leader is None
        return
    for at, name in enumerate(comparison.systems):
        expected = table[complete, at].mean() if scored[at] else nan
        assert comparison.scores[name] == pytest.approx(expected, nan_ok=True)
        assert comparison.estimates[name]["score"].value == pytest.approx(expected, nan_ok=True)
        assert comparison.estimates[name]["score"].n == (complete.sum() if scored[at] else 0)
    sign = 1.0 if better == Direction.UP else -1.0
    ordered = [sign * comparison.scores[name] for name in comparison.scored]
    assert ordered == sorted(ordered, reverse=True)
    n_better, n_worse = (dict.fromkeys(comparison.systems, 0) for _ in range(2))
    for a, b in combinations(comparison.scored, 2):
        contrast = comparison.contrast(a, b)
        assert contrast.n == complete.sum()
        assert contrast.difference == pytest.approx(comparison.scores[a] - comparison.scores[b])
        winner = contrast.winner(CONFIG.alpha)
        assert winner in (None, a)  # the first is ahead in the order
        share_letter = bool(set(comparison.bands[a]) & set(comparison.bands[b]))
        assert share_letter == (winner is None)
        assert ((a, b) in [(pair.a, pair.b) for pair in comparison.undecided]) == (winner is None)
        n_worse[a] += winner == a
        n_better[b] += winner == a
        if a == comparison.leader:
            assert (b in comparison.tied_with_leader) == (winner is None)
    for name in comparison.systems:
        assert comparison.ranks[name] == (1 + n_better[name], len(comparison.systems) - n_worse[name])
    assert comparison.ranks[comparison.leader or ""][0] == 1
    n_gaps = np.isnan(table[~np.isnan(table).all(axis=1)][:, scored]).sum()
    assert ("EQ208" in code_of(comparison)) == (n_gaps > 0)


def test_a_system_with_few_scores_does_not_reverse_the_order_of_the_others() -> None:
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.random(100) < 0.74, rng.random(100) < 0.43, np.full(100, nan)]).astype(float)
    table[:5, 0], table[:5, 1], table[:5, 2] = 0.0, 1.0, [1.0, 1.0, 1.0, 1.0, 0.0]
    comparison = compare_results(results_of(table), config=CONFIG)
    assert comparison.scores == {"s0": 0.0, "s1": 1.0, "s2": 0.8}
    assert comparison.estimates["s0"]["score"].interval.method == "wilson"
    (finding,) = (finding for finding in run_checks(comparison) if finding.code == "EQ208")
    assert finding.subject == "s2"
    assert finding.message == "missing values of score: 95 of 100, so all systems are compared on 5 units"


def test_every_metric_has_its_own_units() -> None:
    ids = ["q1", "q2", "q3", "q4"]
    a = result_from_values("a", ids, {"x": [1, 0, 1, 1], "y": [1, nan, nan, 0]})
    b = result_from_values("b", ids, {"x": [0, 0, 1, 1], "y": [1, 1, 1, 1]})
    comparison = compare_results([a, b], config=CONFIG)
    assert (comparison.contrast("a", "b", "x").n, comparison.contrast("a", "b", "y").n) == (4, 2)
    assert comparison.estimates["b"]["y"].n == 2
    assert comparison.missing == {"y": {"a": 2}}


def test_systems_without_a_common_unit_are_not_compared() -> None:
    comparison = compare_results(results_of(np.array([[1.0, nan], [nan, 0.0], [0.0, nan]])), config=CONFIG)
    assert comparison.leader is None
    assert "no unit in common" in comparison.verdict()
    assert "EQ208" in code_of(comparison)


def test_units_that_are_undefined_for_all_systems_restrict_nothing() -> None:
    table = np.array([[1.0, 0.0], [nan, nan], [0.0, 1.0]])
    results = results_of(table)
    comparison = compare_results(results, config=CONFIG)
    assert comparison.estimates["s0"]["score"] is results[0].estimates["score"]
    assert comparison.missing == {}


def test_bootstrap_errors_grow_with_the_root_of_the_units_that_are_left_out() -> None:
    rng = np.random.default_rng(1)
    values, errors, ids = rng.random(100), 0.02 * rng.normal(size=400), [f"q{row}" for row in range(100)]
    tuned = result_from_values("tuned", ids, {"score": values}, errors={"score": errors})
    partial = np.where(np.arange(100) < 25, rng.random(100), nan)
    comparison = compare_results([tuned, result_from_values("partial", ids, {"score": partial})], config=CONFIG)
    estimate = comparison.estimates["tuned"]["score"]
    expected = interval_from_errors(float(values[:25].mean()), values[:25], 2 * errors, (0.0, 1.0))
    assert not isnan(estimate.value)
    assert estimate.interval == expected
