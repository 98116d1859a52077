"""Verdicts on uninformative comparisons: all scores at the chance level or at the maximum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.stats.comparison import Comparison
from equipoise.stats.estimate import result_from_values
from equipoise.stats.pairing import compare_results
from equipoise.stats.verdict import why_uninformative
from equipoise.types import Finding, Severity


def reason_of(comparison: Comparison) -> str:
    return why_uninformative(comparison, comparison.words)


def comparison_of(shares: list[float], chance: float, *, units: int = 60) -> Comparison:
    """A comparison of systems with these hit rates; the hits of a system include those of lower rates."""
    results = [
        result_from_values(name, range(units), {"HR": np.arange(units) < round(share * units)}, chance={"HR": chance})
        for name, share in zip("abc", shares, strict=False)
    ]
    return compare_results(results, config=StatsConfig(n_permutations=99, n_resamples=50))


@pytest.mark.parametrize(
    ("shares", "chance"),
    [([1.0, 1.0], 1.0), ([1.0, 1.0], 0.1), ([0.5, 0.55], 0.5), ([0.2, 0.25, 0.3], 0.3)],
    ids=["chance is 1", "all at the maximum", "at chance", "below and at chance"],
)
def test_uninformative_comparisons_state_the_reason_and_a_remedy(shares: list[float], chance: float) -> None:
    comparison = comparison_of(shares, chance)
    assert "cannot compare" in reason_of(comparison)
    assert comparison.verdict() == reason_of(comparison)
    assert any(fragment in comparison.verdict() for fragment in ("harder", "more units"))


@pytest.mark.parametrize(("shares", "chance"), [([0.9, 0.7], 0.1), ([0.5, 0.95], 0.5), ([0.0, 0.1], 0.0)])
def test_informative_comparisons_have_no_reason(shares: list[float], chance: float) -> None:
    comparison = comparison_of(shares, chance)
    assert reason_of(comparison) == ""
    assert "cannot compare" not in comparison.verdict()


def test_unknown_chance_levels_are_ignored() -> None:
    assert reason_of(comparison_of([0.5, 0.5], float("nan"))) == ""


def test_significant_differences_below_chance_are_reported() -> None:
    comparison = comparison_of([0.1, 0.5], 0.5)
    assert comparison.leader == "b"
    assert "cannot compare" in comparison.verdict()
    assert "b is the best of 2 systems" in comparison.verdict()


def test_chance_levels_that_are_upper_bounds_are_ignored() -> None:
    comparison = comparison_of([0.5, 0.55], 0.5)
    finding = Finding("EQ110", Severity.NOTE, "a", "the number of candidates is unknown", "give it")
    assert reason_of(comparison)
    assert not reason_of(replace(comparison, findings=(*comparison.findings, finding)))
