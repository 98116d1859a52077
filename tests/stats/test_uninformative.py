"""A verdict says so where a setup cannot compare: at the chance level, and at the ceiling."""

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


def compared(shares: list[float], chance: float, *, units: int = 60) -> Comparison:
    """Systems that hit these shares of the units, the same ones as far as possible."""
    results = [
        result_from_values(name, range(units), {"HR": np.arange(units) < round(share * units)}, chance={"HR": chance})
        for name, share in zip("abc", shares, strict=False)
    ]
    return compare_results(results, config=StatsConfig(n_permutations=99, n_resamples=50))


@pytest.mark.parametrize(
    ("shares", "chance"),
    [([1.0, 1.0], 1.0), ([1.0, 1.0], 0.1), ([0.5, 0.55], 0.5), ([0.2, 0.25, 0.3], 0.3)],
    ids=["chance is 1", "all at the ceiling", "at chance", "below and at chance"],
)
def test_what_cannot_compare_says_so_first_and_what_to_change(shares: list[float], chance: float) -> None:
    comparison = compared(shares, chance)
    assert "cannot compare" in reason_of(comparison)
    assert comparison.verdict() == reason_of(comparison)
    assert any(word in comparison.verdict() for word in ("harder", "more units"))


@pytest.mark.parametrize(("shares", "chance"), [([0.9, 0.7], 0.1), ([0.5, 0.95], 0.5), ([0.0, 0.1], 0.0)])
def test_a_setup_that_can_compare_has_no_such_sentence(shares: list[float], chance: float) -> None:
    comparison = compared(shares, chance)
    assert reason_of(comparison) == ""
    assert "cannot compare" not in comparison.verdict()


def test_an_unknown_chance_level_is_held_against_no_system() -> None:
    assert reason_of(compared([0.5, 0.5], float("nan"))) == ""


def test_a_significant_difference_below_chance_is_still_told() -> None:
    comparison = compared([0.1, 0.5], 0.5)
    assert comparison.leader == "b"
    assert "cannot compare" in comparison.verdict()
    assert "b is the best of 2 systems" in comparison.verdict()


def test_a_chance_level_that_is_only_a_bound_decides_nothing() -> None:
    comparison = compared([0.5, 0.55], 0.5)
    bound = Finding("EQ110", Severity.NOTE, "a", "the number of candidates is unknown", "give it")
    assert reason_of(comparison)
    assert not reason_of(replace(comparison, findings=(*comparison.findings, bound)))
