"""Differences of nested scores whose bootstrap errors include the choice of configuration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equipoise.runs.compare import compare
from equipoise.stats.estimate import result_from_values
from equipoise.stats.result import Result
from equipoise.stats.tuning_uncertainty import ERROR_DF, RESAMPLE_ID, bootstrap_difference

UNITS = [f"q{number}" for number in range(60)]


def results_of(scale: float, resample_ids: tuple[str, str] = ("same", "same")) -> list[Result]:
    """Results of two systems; the first has 12 more hits, and the bootstrap errors have the given scale."""
    rng = np.random.default_rng(1)
    shared, independent = rng.normal(0, scale, 1000), rng.normal(0, scale / 10, 1000)
    values = {"a": [1] * 40 + [0] * 20, "b": [1] * 28 + [0] * 32}
    errors = {"a": shared, "b": shared + independent}
    return [
        result_from_values(
            name,
            UNITS,
            {"nested": values[name]},
            errors={"nested": errors[name]},
            settings={RESAMPLE_ID: key},
        )
        for name, key in zip("ab", resample_ids, strict=True)
    ]


def test_small_errors_keep_the_p_of_the_test() -> None:
    without_errors = compare([replace(result, errors={}) for result in results_of(0.01)], "nested")
    with_errors = compare(results_of(0.01), "nested")
    assert with_errors.contrasts[0].p == without_errors.contrasts[0].p
    assert with_errors.bands["a"] != with_errors.bands["b"]


def test_large_errors_raise_p_and_widen_the_interval() -> None:
    comparison = compare(results_of(3.0), "nested")
    assert comparison.contrasts[0].p > 0.05
    assert comparison.bands["a"] == comparison.bands["b"]
    assert comparison.contrasts[0].interval.low < 0 < comparison.contrasts[0].interval.high


def test_the_interval_of_a_difference_of_shares_is_at_most_1_wide_on_each_side() -> None:
    interval = compare(results_of(30.0), "nested").contrasts[0].interval
    assert (interval.low, interval.high) == (-1.0, 1.0)
    beyond = [replace(result, per_unit={"nested": 2 * result.per_unit["nested"]}) for result in results_of(30.0)]
    assert compare(beyond, "nested").contrasts[0].interval.high > 1.0


def test_errors_of_different_resamples_are_not_paired() -> None:
    paired = compare(results_of(0.5), "nested").contrasts[0]
    unpaired = compare(results_of(0.5, ("one", "other")), "nested").contrasts[0]
    assert unpaired.interval.width > 3 * paired.interval.width
    assert unpaired.p > paired.p


def test_different_numbers_of_resamples_are_not_paired() -> None:
    """The first of 1,000 resamples differs from the first of 900, even with the same resample id."""
    one, other = results_of(0.5)
    fewer = replace(other, errors={"nested": other.errors["nested"][:900]})
    assert compare([one, fewer], "nested").contrasts[0].interval.width > 3 * (
        compare([one, other], "nested").contrasts[0].interval.width
    )


def test_the_family_mentions_the_bootstrap() -> None:
    assert "bootstrap" in compare(results_of(0.1), "nested").family
    assert "bootstrap" not in compare([replace(result, errors={}) for result in results_of(0.1)], "nested").family


def test_p_is_the_share_of_errors_as_large_and_never_zero() -> None:
    errors = np.linspace(-1, 1, 201)
    _, p = bootstrap_difference(0.5, errors, 1e9)
    assert p == pytest.approx((np.sum(np.abs(errors) >= 0.5 - 1e-9) + 1) / 202)


def test_a_p_smaller_than_the_resolution_of_the_errors_is_that_of_the_t_test() -> None:
    from scipy.stats import ttest_1samp

    rng = np.random.default_rng(4)
    differences = rng.normal(1.0, 1.0, size=40)
    errors = rng.choice(differences, (500, 40)).mean(axis=1) - differences.mean()
    _, p = bootstrap_difference(float(differences.mean()), errors, 39)
    expected = ttest_1samp(differences, 0.0).pvalue
    assert 0 < expected < 1e-5
    assert np.log(p) == pytest.approx(np.log(expected), abs=2.0)


@pytest.mark.parametrize("units", [10, 30, 100])
def test_p_of_few_units_agrees_with_the_t_test_without_a_choice(units: int) -> None:
    """With nothing to choose, bootstrap errors are those of a mean, and Student's p is known."""
    from scipy.stats import ttest_1samp

    rng = np.random.default_rng(units)
    differences = rng.normal(size=units)
    differences += 2.0 * differences.std(ddof=1) / np.sqrt(units) - differences.mean()
    bootstrap_errors = rng.choice(differences, (20_000, units)).mean(axis=1) - differences.mean()
    _, p = bootstrap_difference(float(differences.mean()), bootstrap_errors, units - 1)
    assert p == pytest.approx(ttest_1samp(differences, 0.0).pvalue, abs=0.01)


def test_larger_errors_need_more_units() -> None:
    without_errors = compare([replace(result, errors={}) for result in results_of(3.0)], "nested").contrasts[0]
    with_errors = compare(results_of(3.0), "nested").contrasts[0]
    assert with_errors.needed.value > without_errors.needed.value
    assert with_errors.detectable.value > without_errors.detectable.value


def test_large_errors_widen_rank_intervals() -> None:
    without_errors = compare([replace(result, errors={}) for result in results_of(3.0)], "nested")
    with_errors = compare(results_of(3.0), "nested")
    assert without_errors.ranks == {"a": (1, 1), "b": (2, 2)}
    assert with_errors.ranks == {"a": (1, 2), "b": (1, 2)}


def test_scores_without_units_are_compared_by_their_errors() -> None:
    def results_without_units(spread: float) -> list[Result]:
        return [replace(result, per_unit={}) for result in results_of(spread)]

    (contrast,) = compare(results_without_units(0.01), "nested").contrasts
    assert contrast.reason == ""
    assert 0 < contrast.p < 1 / 1001
    assert contrast.interval.method == "bootstrap-errors"
    (wide_contrast,) = compare(results_without_units(5.0), "nested").contrasts
    assert wide_contrast.p > 0.3
    (contrast_without_errors,) = compare(
        [replace(blend, errors={}) for blend in results_without_units(0.01)], "nested"
    ).contrasts
    assert np.isnan(contrast_without_errors.p)
    assert contrast_without_errors.reason


def test_few_resamples_with_known_degrees_of_freedom_use_the_t_distribution() -> None:
    """The smallest share of 200 resamples is 1 / 201, and Holm's correction over 15 pairs gives p above 0.05."""
    from scipy.stats import t

    errors = np.random.default_rng(3).normal(0, 0.02, 200)
    results = [
        result_from_values(name, UNITS, {"nested": values}, settings={RESAMPLE_ID: "same", ERROR_DF: 40.0})
        for name, values in (("a", [1] * 40 + [0] * 20), ("b", [1] * 28 + [0] * 32))
    ]
    results = [
        replace(result, per_unit={}, errors={"nested": own_errors})
        for result, own_errors in zip(results, (errors, errors * 0), strict=True)
    ]
    (contrast,) = compare(results, "nested").contrasts
    assert contrast.p == pytest.approx(2 * t.sf(0.2 / errors.std(ddof=1), 40))
    assert contrast.p < 1 / 201
    assert contrast.interval.high - 0.2 == pytest.approx(t.ppf(0.975, 40) * errors.std(ddof=1))
