"""The planned number of units is enough for the decision that the verdict reports."""

from __future__ import annotations

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
from equipoise.stats.power import PowerEstimate, units_needed, units_to_show_best, with_power
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
    return compare_results(results(pilot), config=StatsConfig(n_permutations=499, n_resamples=50))


def results(scores: Floats) -> list[Result]:
    ids = np.arange(len(scores))
    return [
        Result(
            name,
            ids,
            {"m": Estimate("m", float(column.mean()), Interval.unknown(""), len(ids), 0, 0.0, Direction.UP)},
            {"m": column},
        )
        for name, column in zip(SYSTEMS, scores.T, strict=False)
    ]


def holm_rejections(p: Floats, alpha: float = 0.05) -> set[int]:
    """Holm's procedure as its definition reads: stop at the first p that is too large."""
    rejected: set[int] = set()
    for step, at in enumerate(np.argsort(p).tolist()):
        if not p[at] < alpha / (len(p) - step):
            break
        rejected.add(at)
    return rejected


def rate(pilot: Floats, n: int, needed: set[tuple[int, int]], simulations: int = 400) -> float:
    """How often samples of n units, with the pilot as population, make all these pairs significant."""
    pairs = list(combinations(range(5), 2))
    wanted = {pairs.index(pair) for pair in needed}
    rng = np.random.default_rng(7)
    shown = 0
    for _ in range(simulations):
        sample = pilot[rng.integers(0, len(pilot), n)]
        p = ttest_1samp(np.column_stack([sample[:, i] - sample[:, j] for i, j in pairs]), 0.0).pvalue
        shown += wanted <= holm_rejections(p)
    return shown / simulations


def test_the_units_stated_separate_the_pair_in_80_percent_of_simulations(pilot: Floats, comparison: Comparison) -> None:
    assert comparison.order[:2] == ("a", "b")
    seen = comparison.contrast("a", "b")
    assert seen.needed.value > units_needed(seen.difference, seen.sd or 0.0).value, "more than a single test"
    assert rate(pilot, int(seen.needed.value), {(0, 1)}) == pytest.approx(0.8, abs=0.06)


def test_the_units_stated_show_the_best_in_80_percent_of_simulations(pilot: Floats, comparison: Comparison) -> None:
    needed = int(comparison.needed_for_best.value)
    assert rate(pilot, needed, {(0, other) for other in range(1, 5)}) == pytest.approx(0.8, abs=0.06)


def test_verdict_and_finding_state_the_same_numbers_with_power_and_adjustment(comparison: Comparison) -> None:
    finding = next(finding for finding in run_checks(comparison) if finding.code == "EQ304")
    pair, best = comparison.contrast("a", "b").needed.value, comparison.needed_for_best.value
    for text in (comparison.verdict(), finding.message):
        assert "with 80 % power (Holm over 10 pairs)" in text
        assert about(pair) in text
        assert about(best) == about(pair) or f"about {about(best)} would show a to be best" in text


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


def test_no_number_of_units_is_stated_where_a_difference_from_the_leader_is_unknown() -> None:
    pairs = true_contrasts((0.3, 0.2, 0.0), "holm")
    pairs[1] = replace(pairs[1], needed=PowerEstimate.unknown("no evidence"))
    assert units_to_show_best(pairs, "0", "holm", 0.05).reason == "no evidence"


def test_a_small_run_of_the_calibration_keeps_its_tolerance() -> None:
    rows = planned_power(150, np.random.default_rng(2), systems=["one system ahead"], tests=["t"], corrections=["holm"])
    assert {row.decision for row in rows} == {"separate two", "show the best"}
    assert all(row.kept for row in rows)


def test_a_plan_for_one_unadjusted_test_would_be_seen_as_broken() -> None:
    assert not PowerRow("x", "separate two", "t", "holm", 100, 500, 0.59).kept
