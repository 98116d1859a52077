"""The randomisation test of micro scores, against swaps that are made one by one."""

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
    own = np.random.default_rng([documents, seed])
    gold = {f"d{at}": set(rng.choice(TERMS, size=4, replace=False).tolist()) for at in range(documents)}
    found = {
        name: {term for term in TERMS if own.random() < (skill if term in truth else 0.2)}
        for name, truth in gold.items()
    }
    return gold, found


def swaps(first: Sets, second: Sets, n_permutations: int, clusters: Any = None) -> SwapTest:
    metric = SetF1()
    addends = [metric.addends(each) for each in (first, second)]
    return SwapTest.of(metric, addends, clusters, n_permutations, np.random.default_rng(0))


def by_hand(gold: Any, one: Any, other: Any, groups: list[list[str]]) -> float:
    """The share of all swaps of groups of documents that set the two at least as far apart."""

    def apart(swapped: set[str]) -> float:
        ours, theirs = (
            {name: (b if name in swapped else a)[name] for name in gold} for a, b in ((one, other), (other, one))
        )
        return abs(SetF1().measure(Sets.of(gold, ours)).value - SetF1().measure(Sets.of(gold, theirs)).value)

    seen = apart(set())
    chosen = [
        apart({name for group, turned in zip(groups, turns, strict=True) if turned for name in group})
        for turns in product([False, True], repeat=len(groups))
    ]
    return float(np.mean([each >= seen - 1e-12 for each in chosen]))


def test_p_is_the_share_of_all_swaps() -> None:
    gold, one = corpus(7, 1, 0.9)
    _, other = corpus(7, 2, 0.6)
    p = swaps(Sets.of(gold, one), Sets.of(gold, other), 10_000).p(0, 1)
    assert p == pytest.approx(by_hand(gold, one, other, [[name] for name in gold]))


def test_documents_of_a_cluster_are_swapped_together() -> None:
    gold, one = corpus(8, 1, 0.9)
    _, other = corpus(8, 2, 0.6)
    clusters = np.array(["x", "x", "y", "y", "y", "z", "w", "w"], dtype=object)
    groups = [[f"d{at}" for at in np.flatnonzero(clusters == each)] for each in "xyzw"]
    p = swaps(Sets.of(gold, one), Sets.of(gold, other), 10_000, clusters).p(0, 1)
    assert p == pytest.approx(by_hand(gold, one, other, groups))


def test_drawn_swaps_come_near_to_all_of_them_and_p_is_never_0() -> None:
    gold, one = corpus(11, 1, 0.7)
    _, other = corpus(11, 2, 0.6)
    first, second = Sets.of(gold, one), Sets.of(gold, other)
    exact, drawn = swaps(first, second, 5_000).p(0, 1), swaps(first, second, 2_000).p(0, 1)
    assert drawn == pytest.approx(exact, abs=0.05)
    assert swaps(Sets.of(gold, gold), second, 500).p(0, 1) >= 1 / 501
    assert swaps(first, first, 500).p(0, 1) == 1.0


def test_equal_systems_are_seldom_told_apart() -> None:
    below = 0
    for seed in range(0, 120, 2):
        gold, one = corpus(20, seed, 0.6)
        _, other = corpus(20, seed + 1, 0.6)
        below += swaps(Sets.of(gold, one), Sets.of(gold, other), 199).p(0, 1) <= 0.1
    # 60 tests at 10 %: more than 14 have a probability below 0.1 %.
    assert below <= 14


def test_a_comparison_says_which_test_was_made_of_each_metric() -> None:
    gold, one = corpus(20, 1, 0.9)
    _, other = corpus(20, 2, 0.5)
    systems = {"one": Sets.of(gold, one), "other": Sets.of(gold, other)}
    found = compare(systems, ["F1", "F1(average=macro)"], config=StatsConfig(n_permutations=300, n_resamples=100))
    assert {contrast.test for contrast in found.contrasts} == {"randomisation"}
    assert "Paired randomisation test" in comparison_caption(found)
    assert "300 permutations" in comparison_caption(found)
    by_t = compare(systems, ["F1", "F1(average=macro)"], config=StatsConfig(test="t", n_resamples=100))
    assert [contrast.test for contrast in by_t.contrasts] == ["paired bootstrap", "t"]
    assert comparison_caption(by_t).count("Paired bootstrap, two-sided") == 1
    assert "one pair on F1(average=macro), so no correction" in other_metrics_caption(by_t, ["F1(average=macro)"])


FEW = StatsConfig(n_resamples=100)


def test_a_correlation_is_not_said_to_be_tested_by_flips() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=30)
    systems = {
        name: evaluate(Pairs.of(truth, truth + noise * rng.normal(size=30)), "Spearman", system=name, config=FEW)
        for name, noise in (("near", 0.1), ("far", 1.0))
    }
    found = compare(systems, "Spearman", config=FEW)
    assert found.n_permutations is None
    assert "n_permutations" not in comparison_caption(found)
    assert found.to_dict()["contrasts"][0]["test"] == "paired bootstrap"


def test_differences_over_fewer_documents_than_the_estimates_are_told() -> None:
    gold, one = corpus(12, 1, 0.9)
    other = {**one, "d3": set()}
    systems = {"one": Sets.of(gold, one), "other": Sets.of(gold, other)}
    found = compare(systems, "P(average=macro)", config=StatsConfig(n_permutations=100, n_resamples=100))
    assert "where both systems have a value" in comparison_caption(found)
    assert "P(average=macro) (11 documents)" in comparison_caption(found)
    whole = compare(systems, "R(average=macro)", config=StatsConfig(n_permutations=100, n_resamples=100))
    assert "both systems" not in comparison_caption(whole)
