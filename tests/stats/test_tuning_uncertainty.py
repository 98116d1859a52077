"""Differences of figures whose units depend on each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equipoise.runs.compare import compare
from equipoise.stats.estimate import result_from_values
from equipoise.stats.result import Result
from equipoise.stats.tuning_uncertainty import ERROR_DF, RESAMPLE_ID, bootstrap_difference

UNITS = [f"q{number}" for number in range(60)]


def results(spread: float, draws: tuple[str, str] = ("same", "same")) -> list[Result]:
    """Two systems that differ on 12 units, to the favour of the first; their errors as wide as asked."""
    rng = np.random.default_rng(1)
    shared, own = rng.normal(0, spread, 1000), rng.normal(0, spread / 10, 1000)
    values = {"a": [1] * 40 + [0] * 20, "b": [1] * 28 + [0] * 32}
    errors = {"a": shared, "b": shared + own}
    return [
        result_from_values(
            name,
            UNITS,
            {"nested": values[name]},
            errors={"nested": errors[name]},
            settings={RESAMPLE_ID: key},
        )
        for name, key in zip("ab", draws, strict=True)
    ]


def test_small_errors_leave_the_verdict_to_the_test() -> None:
    plain = compare([replace(result, errors={}) for result in results(0.01)], "nested")
    judged = compare(results(0.01), "nested")
    fewest = 1 / 1001  # what a thousand bootstrap errors can say at most
    assert judged.contrasts[0].p == pytest.approx(max(plain.contrasts[0].p, fewest))
    assert judged.bands["a"] != judged.bands["b"]


def test_large_errors_overrule_the_test() -> None:
    judged = compare(results(3.0), "nested")
    assert judged.contrasts[0].p > 0.05
    assert judged.bands["a"] == judged.bands["b"]
    assert judged.contrasts[0].interval.low < 0 < judged.contrasts[0].interval.high


def test_errors_of_other_draws_do_not_pair_and_are_wider() -> None:
    paired = compare(results(0.5), "nested").contrasts[0]
    apart = compare(results(0.5, ("one", "other")), "nested").contrasts[0]
    assert apart.interval.width > 3 * paired.interval.width
    assert apart.p > paired.p


def test_as_many_draws_of_another_number_do_not_pair() -> None:
    """The first of 1,000 draws is not the first of 10,000, whatever their name says."""
    one, other = results(0.5)
    fewer = replace(other, errors={"nested": other.errors["nested"][:900]})
    assert compare([one, fewer], "nested").contrasts[0].interval.width > 3 * (
        compare([one, other], "nested").contrasts[0].interval.width
    )


def test_the_caption_says_that_choices_were_resampled() -> None:
    assert "bootstrap" in compare(results(0.1), "nested").family
    assert "bootstrap" not in compare([replace(result, errors={}) for result in results(0.1)], "nested").family


def test_p_is_the_share_of_errors_as_large_and_never_zero() -> None:
    errors = np.linspace(-1, 1, 201)
    _, p = bootstrap_difference(0.5, errors, 1e9)
    assert p == pytest.approx((np.sum(np.abs(errors) >= 0.5 - 1e-9) + 1) / 202)
    assert bootstrap_difference(5.0, errors, 20)[1] == pytest.approx(1 / 202)


@pytest.mark.parametrize("units", [10, 30, 100])
def test_p_from_few_units_is_that_of_student_s_test_where_nothing_is_chosen(units: int) -> None:
    """With nothing to choose, bootstrap errors are those of a mean, and Student's p is known."""
    from scipy.stats import ttest_1samp

    rng = np.random.default_rng(units)
    differences = rng.normal(size=units)
    differences += 2.0 * differences.std(ddof=1) / np.sqrt(units) - differences.mean()
    drawn = rng.choice(differences, (20_000, units)).mean(axis=1) - differences.mean()
    _, p = bootstrap_difference(float(differences.mean()), drawn, units - 1)
    assert p == pytest.approx(ttest_1samp(differences, 0.0).pvalue, abs=0.01)


def test_wider_errors_ask_for_more_units() -> None:
    plain = compare([replace(result, errors={}) for result in results(3.0)], "nested").contrasts[0]
    judged = compare(results(3.0), "nested").contrasts[0]
    assert judged.needed.value > plain.needed.value
    assert judged.detectable.value > plain.detectable.value


def test_ranks_are_as_uncertain_as_the_bootstrap_scores() -> None:
    plain = compare([replace(result, errors={}) for result in results(3.0)], "nested")
    judged = compare(results(3.0), "nested")
    assert plain.ranks == {"a": (1, 1), "b": (2, 2)}
    assert judged.ranks == {"a": (1, 2), "b": (1, 2)}


def test_a_figure_without_units_is_compared_by_its_errors_alone() -> None:
    def blends(spread: float) -> list[Result]:
        return [replace(result, per_unit={}) for result in results(spread)]

    (seen,) = compare(blends(0.01), "nested").contrasts
    assert seen.reason == ""
    assert seen.p == pytest.approx(1 / 1001)
    assert seen.interval.method == "bootstrap-errors"
    (unsure,) = compare(blends(5.0), "nested").contrasts
    assert unsure.p > 0.3
    (untold,) = compare([replace(blend, errors={}) for blend in blends(0.01)], "nested").contrasts
    assert np.isnan(untold.p)
    assert untold.reason


def test_few_redraws_with_known_degrees_give_student_s_p_and_not_a_share() -> None:
    """Of 200 redraws no share is below 1 / 201, which Holm over 15 pairs lifts above 0.05."""
    from scipy.stats import t

    errors = np.random.default_rng(3).normal(0, 0.02, 200)
    pair = [
        result_from_values(name, UNITS, {"nested": values}, settings={RESAMPLE_ID: "same", ERROR_DF: 40.0})
        for name, values in (("a", [1] * 40 + [0] * 20), ("b", [1] * 28 + [0] * 32))
    ]
    pair = [
        replace(each, per_unit={}, errors={"nested": own}) for each, own in zip(pair, (errors, errors * 0), strict=True)
    ]
    (seen,) = compare(pair, "nested").contrasts
    assert seen.p == pytest.approx(2 * t.sf(0.2 / errors.std(ddof=1), 40))
    assert seen.p < 1 / 201
    assert seen.interval.high - 0.2 == pytest.approx(t.ppf(0.975, 40) * errors.std(ddof=1))
