"""The randomisation test of micro scores, compared with an enumeration of all swaps."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.evidence.pairs import Pairs
from equipoise.evidence.sets import Sets
from equipoise.metrics.sets import SetF1
from equipoise.report.pairwise import comparison_caption, other_metrics_caption
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import evaluate
from equipoise.stats.corpus_metrics import SwapTest

TERMS = [f"t{number}" for number in range(12)]


def corpus(documents: int, seed: int, skill: float) -> tuple[dict[str, Any], dict[str, Any]]:
    rng = np.random.default_rng([documents, 1])
    system_rng = np.random.default_rng([documents, seed])
    gold = {f"d{index}": set(rng.choice(TERMS, size=4, replace=False).tolist()) for index in range(documents)}
    predicted = {
        name: {term for term in TERMS if system_rng.random() < (skill if term in terms else 0.2)}
        for name, terms in gold.items()
    }
    return gold, predicted


def swap_test(first: Sets, second: Sets, n_permutations: int, clusters: Any = None) -> SwapTest:
    metric = SetF1()
    addends = [metric.addends(sets) for sets in (first, second)]
    return SwapTest.of(metric, addends, clusters, n_permutations, np.random.default_rng(0))


def enumerated_p(gold: Any, one: Any, other: Any, groups: list[list[str]]) -> float:
    """The share of all swaps of document groups with at least the observed difference."""

    def absolute_difference(swapped: set[str]) -> float:
        left, right = (
            {name: (b if name in swapped else a)[name] for name in gold} for a, b in ((one, other), (other, one))
        )
        return abs(SetF1().measure(Sets.of(gold, left)).value - SetF1().measure(Sets.of(gold, right)).value)

    observed = absolute_difference(set())
    differences = [
        absolute_difference(
            {name for group, is_swapped in zip(groups, pattern, strict=True) if is_swapped for name in group}
        )
        for pattern in product([False, True], repeat=len(groups))
    ]
    return float(np.mean([difference >= observed - 1e-12 for difference in differences]))


def test_p_is_the_share_of_all_swaps() -> None:
    gold, one = corpus(7, 1, 0.9)
    _, other = corpus(7, 2, 0.6)
    p = swap_test(Sets.of(gold, one), Sets.of(gold, other), 10_000).p(0, 1)
    assert p == pytest.approx(enumerated_p(gold, one, other, [[name] for name in gold]))


def test_documents_of_a_cluster_are_swapped_together() -> None:
    gold, one = corpus(8, 1, 0.9)
    _, other = corpus(8, 2, 0.6)
    clusters = np.array(["x", "x", "y", "y", "y", "z", "w", "w"], dtype=object)
    groups = [[f"d{index}" for index in np.flatnonzero(clusters == cluster)] for cluster in "xyzw"]
    p = swap_test(Sets.of(gold, one), Sets.of(gold, other), 10_000, clusters).p(0, 1)
    assert p == pytest.approx(enumerated_p(gold, one, other, groups))


def test_sampled_swaps_approximate_the_exact_p_and_p_is_never_zero() -> None:
    gold, one = corpus(11, 1, 0.7)
    _, other = corpus(11, 2, 0.6)
    first, second = Sets.of(gold, one), Sets.of(gold, other)
    exact, sampled = swap_test(first, second, 5_000).p(0, 1), swap_test(first, second, 2_000).p(0, 1)
    assert sampled == pytest.approx(exact, abs=0.05)
    assert swap_test(Sets.of(gold, gold), second, 500).p(0, 1) >= 2.0**-10
    assert swap_test(first, first, 500).p(0, 1) == 1.0


@pytest.mark.parametrize(("skill", "other_skill"), [(0.95, 0.5), (0.5, 0.9), (1.0, 0.6)])
def test_tiny_p_values_agree_with_the_enumeration(skill: float, other_skill: float) -> None:
    gold, one = corpus(16, 1, skill)
    _, other = corpus(16, 2, other_skill)
    first, second = Sets.of(gold, one), Sets.of(gold, other)
    exact, sampled = swap_test(first, second, 2**17).p(0, 1), swap_test(first, second, 300).p(0, 1)
    assert exact < 0.01
    assert sampled == pytest.approx(exact, rel=0.3)


def test_equal_systems_are_rarely_significantly_different() -> None:
    n_significant = 0
    for seed in range(0, 120, 2):
        gold, one = corpus(20, seed, 0.6)
        _, other = corpus(20, seed + 1, 0.6)
        n_significant += swap_test(Sets.of(gold, one), Sets.of(gold, other), 199).p(0, 1) <= 0.1
    # 60 tests at 10 %: more than 14 have a probability below 0.1 %.
    assert n_significant <= 14


def test_captions_name_the_test_of_each_metric() -> None:
    gold, one = corpus(20, 1, 0.9)
    _, other = corpus(20, 2, 0.5)
    systems = {"one": Sets.of(gold, one), "other": Sets.of(gold, other)}
    comparison = compare(systems, ["F1", "F1(average=macro)"], config=StatsConfig(n_permutations=300, n_resamples=100))
    assert {contrast.test for contrast in comparison.contrasts} == {"randomisation"}
    assert "Paired randomisation test" in comparison_caption(comparison)
    assert "300 permutations" in comparison_caption(comparison)
    t_comparison = compare(systems, ["F1", "F1(average=macro)"], config=StatsConfig(test="t", n_resamples=100))
    assert [contrast.test for contrast in t_comparison.contrasts] == ["paired bootstrap", "t"]
    assert (
        comparison_caption(t_comparison).count("Paired bootstrap, two-sided, seed 0; one pair on F1, so no correction.")
        == 1
    )
    assert "one pair on F1(average=macro), so no correction" in other_metrics_caption(
        t_comparison, ["F1(average=macro)"]
    )


FEW_RESAMPLES = StatsConfig(n_resamples=100)


def test_captions_of_correlations_do_not_mention_permutations() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=30)
    systems = {
        name: evaluate(
            Pairs.of(truth, truth + noise * rng.normal(size=30)), "Spearman", system=name, config=FEW_RESAMPLES
        )
        for name, noise in (("near", 0.1), ("far", 1.0))
    }
    comparison = compare(systems, "Spearman", config=FEW_RESAMPLES)
    assert comparison.n_permutations is None
    assert "n_permutations" not in comparison_caption(comparison)
    assert comparison.to_dict()["contrasts"][0]["test"] == "paired bootstrap"


def test_documents_that_are_undefined_for_one_system_are_left_out_for_all() -> None:
    gold, one = corpus(12, 1, 0.9)
    other = {**one, "d3": set()}
    systems = {"one": Sets.of(gold, one), "other": Sets.of(gold, other)}
    config = StatsConfig(n_permutations=100, n_resamples=100)
    comparison = compare(systems, "P(average=macro)", config=config)
    assert {estimates["P(average=macro)"].n for estimates in comparison.estimates.values()} == {11}
    assert comparison.scores["one"] == comparison.scores["other"]
    (finding,) = (finding for finding in comparison.findings if finding.code == "EQ208")
    assert finding.message == "missing values of P(average=macro): 1 of 12, so all systems are compared on 11 documents"
    rest = [name for name in gold if name != "d3"]
    evidence = Sets.of({name: gold[name] for name in rest}, {name: one[name] for name in rest})
    expected = evaluate(evidence, "P(average=macro)", config=config)["P(average=macro)"]
    assert comparison.estimates["one"]["P(average=macro)"].chance == expected.chance
    assert comparison.estimates["one"]["P(average=macro)"].interval.low == pytest.approx(
        expected.interval.low, abs=0.05
    )
    complete_comparison = compare(systems, "R(average=macro)", config=config)
    assert "EQ208" not in {finding.code for finding in complete_comparison.findings}
