"""The planned number of units gives the stated power."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from studies.power_calibration import PowerRow, planned_power, true_contrasts

from equipoise.checks.base import run_checks
from equipoise.config import StatsConfig
from equipoise.stats.comparison import Comparison
from equipoise.stats.formatting import about
from equipoise.stats.intervals import Interval
from equipoise.stats.pairing import compare_results
from equipoise.stats.power import PowerEstimate, smallest_p, units_needed, units_to_show_best, with_power
from equipoise.stats.result import Estimate, Result
from equipoise.types import Direction, Floats

SYSTEMS = "abcde"


@pytest.fixture(scope="module")
def pilot() -> Floats:
    """Scores of five systems on 90 units: skewed, with a common difficulty."""
    rng = np.random.default_rng(5)
    latent = rng.normal(size=(90, 1)) + rng.normal(size=(90, 5)) + np.array([0.45, 0.2, 0.1, 0.05, -0.6])
    return np.asarray(1.0 / (1.0 + np.exp(-latent)))


@pytest.fixture(scope="module")
def comparison(pilot: Floats) -> Comparison:
    return compare_results(results_of(pilot), config=StatsConfig(n_permutations=499, n_resamples=50))


def results_of(scores: Floats, names: Iterable[str] = SYSTEMS) -> list[Result]:
    ids = np.arange(len(scores))
    return [
        Result(
            name,
            ids,
            {"m": Estimate("m", float(column.mean()), Interval.unknown(""), len(ids), 0, 0.0, Direction.UP)},
            {"m": column},
        )
        for name, column in zip(names, scores.T, strict=False)
    ]


def holm_rejections(p: Floats, alpha: float = 0.05) -> set[int]:
    """Indices rejected by Holm's step-down procedure; it stops at the first p above its threshold."""
    rejected: set[int] = set()
    for step, index in enumerate(np.argsort(p).tolist()):
        if not p[index] < alpha / (len(p) - step):
            break
        rejected.add(index)
    return rejected


def share_significant(pilot: Floats, n: int, needed: set[tuple[int, int]], simulations: int = 400) -> float:
    """Share of samples of n units from the pilot scores in which all given pairs are significant."""
    pairs = list(combinations(range(5), 2))
    pair_indices = {pairs.index(pair) for pair in needed}
    rng = np.random.default_rng(7)
    n_significant = 0
    for _ in range(simulations):
        sample = pilot[rng.integers(0, len(pilot), n)]
        p = ttest_1samp(np.column_stack([sample[:, i] - sample[:, j] for i, j in pairs]), 0.0).pvalue
        n_significant += pair_indices <= holm_rejections(p)
    return n_significant / simulations


def test_units_needed_for_a_pair_give_80_percent_power(pilot: Floats, comparison: Comparison) -> None:
    assert comparison.order[:2] == ("a", "b")
    contrast = comparison.contrast("a", "b")
    assert contrast.needed.value > units_needed(contrast.difference, contrast.sd or 0.0).value, (
        "more than a single test"
    )
    assert share_significant(pilot, int(contrast.needed.value), {(0, 1)}) == pytest.approx(0.8, abs=0.06)


def test_units_needed_for_the_best_system_give_80_percent_power(pilot: Floats, comparison: Comparison) -> None:
    needed = int(comparison.needed_for_best.value)
    assert share_significant(pilot, needed, {(0, other) for other in range(1, 5)}) == pytest.approx(0.8, abs=0.06)


def test_verdict_and_finding_state_the_same_numbers(comparison: Comparison) -> None:
    finding = next(finding for finding in run_checks(comparison) if finding.code == "EQ304")
    pair, best = comparison.contrast("a", "b").needed.value, comparison.needed_for_best.value
    for text in (comparison.verdict(), finding.message):
        assert "with 80 % power (Holm correction for 10 pairs)" in text
        assert about(pair) in text
        is_best = "to show that a is significantly better than every other system"
        assert about(best) == about(pair) or f", and about {about(best)} {is_best}" in text


@pytest.mark.parametrize("correction", ["holm", "bh", "none"])
def test_a_single_pair_needs_the_units_of_a_single_test(correction: str) -> None:
    pair = replace(true_contrasts((0.3, 0.0), "holm")[0], n=40)
    planned = with_power([pair], correction, 0.05)[0]
    assert planned.needed == units_needed(pair.difference, pair.sd or 0.0)
    assert units_to_show_best([planned], "0", correction, 0.05) == planned.needed


def test_more_systems_need_more_units_for_the_same_difference() -> None:
    counts = [true_contrasts((0.3, *[0.0] * others), "holm")[0].needed.value for others in (1, 3, 9)]
    assert counts == sorted(counts)
    assert counts[-1] > 1.4 * counts[0]


def test_unknown_differences_from_the_leader_give_no_number_of_units() -> None:
    pairs = true_contrasts((0.3, 0.2, 0.0), "holm")
    pairs[1] = replace(pairs[1], needed=PowerEstimate.unknown("no evidence"))
    assert units_to_show_best(pairs, "0", "holm", 0.05).reason == "no evidence"


def test_planned_power_is_within_its_tolerance() -> None:
    rows = planned_power(150, np.random.default_rng(2), systems=["one system ahead"], tests=["t"], corrections=["holm"])
    assert {row.decision for row in rows} == {"separate two", "show the best"}
    assert all(row.kept for row in rows)


def test_power_below_the_tolerance_is_reported() -> None:
    assert not PowerRow("x", "separate two", "t", "holm", 100, 500, 0.59).kept


def few_units(n_units: int, n_systems: int) -> Comparison:
    """Systems whose scores differ by about the same amount on every unit."""
    noise = np.random.default_rng(n_units).normal(0.0, 0.02, (n_units, n_systems))
    scores = 0.9 - 0.8 * np.arange(n_systems) / n_systems + noise
    results = results_of(scores, [f"s{at:02}" for at in range(n_systems)])
    return compare_results(results, config=StatsConfig(n_permutations=50_000, n_resamples=50))


@pytest.mark.parametrize(("n_systems", "enough"), [(2, 6), (3, 7), (5, 9), (12, 12)])
def test_planned_units_respect_the_smallest_p_of_the_test(n_systems: int, enough: int) -> None:
    n_pairs = n_systems * (n_systems - 1) // 2
    assert 2.0 ** (1 - enough) < 0.05 / n_pairs <= 2.0 ** (2 - enough)
    too_few, sufficient = few_units(enough - 1, n_systems), few_units(enough, n_systems)
    assert {pair.needed.value for pair in too_few.contrasts} == {enough}
    assert not any(pair.detectable.known for pair in too_few.contrasts)
    assert all(map(too_few.is_undecidable, too_few.contrasts))
    assert "are too few for the test of s00 against s01" in too_few.verdict()
    assert f"and about {enough} would be needed" in too_few.verdict()
    assert not too_few.any_significant
    assert len(sufficient.undecided) == 0
    assert all(pair.detectable.known for pair in sufficient.contrasts)


def test_units_on_which_systems_are_equal_do_not_count() -> None:
    scores = np.zeros((40, 2))
    scores[:4, 0] = 1.0
    comparison = compare_results(results_of(scores), config=StatsConfig(n_resamples=50))
    contrast = comparison.contrast("a", "b")
    assert smallest_p(contrast) == contrast.p == 0.125
    assert contrast.needed.value >= 60  # a tenth of the units differs, and six must
    assert contrast.detectable.known  # 40 units can show a difference on all of them


def test_students_t_has_no_smallest_p() -> None:
    scores = np.array([[0.9, 0.1], [0.8, 0.1], [0.9, 0.2]])
    comparison = compare_results(results_of(scores), config=StatsConfig(test="t", n_resamples=50))
    assert smallest_p(comparison.contrast("a", "b")) == 0.0
    assert comparison.leader == "a"
    assert comparison.tied_with_leader == ()


@pytest.mark.parametrize("correction", ["holm", "bh", "none"])
def test_undecidable_pairs_are_those_that_no_scores_could_decide(correction: str) -> None:
    for n_units in range(3, 9):
        scores = np.linspace(0.9, 0.1, 4) * np.linspace(0.5, 1.0, n_units)[:, np.newaxis]
        comparison = compare_results(results_of(scores), config=StatsConfig(correction=correction, n_resamples=50))
        # Every system is better than the next on all units, so every p is the smallest possible one.
        for contrast in comparison.contrasts:
            assert contrast.adjusted == pytest.approx(comparison.smallest_adjusted(contrast))
            assert comparison.is_undecidable(contrast) == (contrast.winner() is None)


def test_the_finding_counts_all_pairs_without_a_significant_difference() -> None:
    rng = np.random.default_rng(3)
    scores = np.clip(rng.normal([0.6, 0.55, 0.5, 0.4], 0.2, (5, 4)), 0.0, 1.0)
    comparison = compare_results(results_of(scores), config=StatsConfig(n_resamples=50))
    assert len(comparison.undecided) == 6
    finding = next(finding for finding in run_checks(comparison) if finding.code == "EQ304")
    assert "; 5 other pairs are not significantly different either" in finding.message
    planned = [pair for pair in comparison.undecided if pair.n < pair.needed.value <= 20 * pair.n]
    assert len(finding.evidence) == len(planned)


def test_unrealistic_numbers_of_units_are_not_reported() -> None:
    rng = np.random.default_rng(0)
    first = rng.random(50)
    scores = np.column_stack([first, first + rng.normal(0.0, 0.1, 50)])
    scores[:, 1] += first.mean() - scores[:, 1].mean() - 0.001
    comparison = compare_results(results_of(scores), config=StatsConfig(n_resamples=50))
    assert comparison.contrast("a", "b").needed.value > 20 * 50
    assert "No realistic number of units would distinguish a from b" in comparison.verdict()
    assert "EQ304" not in {finding.code for finding in run_checks(comparison)}
