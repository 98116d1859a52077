"""The paired tests, compared with scipy, with full enumeration and with their mathematical properties."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise.config import StatsConfig
from equipoise.errors import NotFiniteError, ParameterError, ShapeError, UndefinedError, UnknownNameError
from equipoise.stats.bootstrap_mean import ResamplingUnits
from equipoise.stats.paired_tests import TESTS, mcnemar_test, paired_t_test, run_test, sign_flip_test, wilcoxon_test

ALTERNATIVES = ("two-sided", "greater", "less")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def enumerated_p(differences, alternative="two-sided"):
    """Every sign pattern, exact integers: differences are multiples of 1/8."""
    integers = [round(8 * difference) for difference in differences]
    observed = sum(integers)
    totals = [sum(signed) for signed in product(*((-value, value) for value in integers))]
    extreme = {
        "two-sided": lambda total: abs(total) >= abs(observed),
        "greater": lambda total: total >= observed,
        "less": lambda total: total <= observed,
    }[alternative]
    return sum(map(extreme, totals)) / len(totals)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_few_units_are_enumerated_exactly(alternative):
    table = rng(1).integers(-8, 9, size=(9, 12)) / 8
    p = sign_flip_test(table, alternative=alternative, rng=rng())
    assert p == pytest.approx([enumerated_p(column, alternative) for column in table.T], abs=1e-15)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=10), st.sampled_from(ALTERNATIVES))
def test_enumeration_ignores_rounding_errors_of_totals(integers, alternative):
    differences = np.array(integers)[:, None] * 0.1  # 0.1 + 0.2 - 0.3 is not 0 in floating point
    p = sign_flip_test(differences, alternative=alternative, rng=rng())
    assert p[0] == pytest.approx(enumerated_p(np.array(integers) / 8, alternative), abs=1e-15)


def test_exact_p_equals_the_permutation_test_of_scipy():
    differences = rng(2).normal(0.3, 1, size=11)
    for alternative in ALTERNATIVES:
        expected = stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative=alternative
        )
        assert sign_flip_test(differences, alternative=alternative, rng=rng())[0] == pytest.approx(expected.pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_sampled_p_agrees_with_scipy_within_monte_carlo_error(alternative):
    differences = rng(3).normal(0.12, 1, size=(150, 3))
    p = sign_flip_test(differences, alternative=alternative, n_permutations=20_000, rng=rng())
    expected = stats.permutation_test(
        (differences,),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        alternative=alternative,
        rng=rng(4),
    )
    # Two independent estimates: four standard errors of their difference.
    assert np.abs(p - expected.pvalue).max() < 4 * np.sqrt(2 * 0.25 / 20_000)


def test_sampled_p_of_binary_data_agrees_with_the_binomial_test():
    differences = np.r_[np.ones(60), -np.ones(40), np.zeros(100)]
    exact = stats.binomtest(60, 100).pvalue
    assert sign_flip_test(differences, n_permutations=40_000, rng=rng())[0] == pytest.approx(exact, abs=0.005)


def test_p_of_binary_differences_does_not_depend_on_the_scale():
    differences = np.r_[np.ones(30), -np.ones(18)]
    p = [
        sign_flip_test(differences * scale, n_permutations=2000, rng=rng())[0] for scale in (1.0, 0.1, 1 / 3, 1e-9, 7e7)
    ]
    assert len(set(p)) == 1


def test_p_is_never_below_that_of_the_observed_pattern():
    assert 2.0**-499 <= sign_flip_test(np.ones((500, 1)), n_permutations=999, rng=rng())[0] < 1.1 * 2.0**-499
    assert sign_flip_test(np.ones((5000, 1)), n_permutations=999, rng=rng())[0] > 0
    assert sign_flip_test(np.ones((5, 1)), n_permutations=999, rng=rng())[0] == 2 / 32


@pytest.mark.parametrize("scale", [1.0, 0.1, 1 / 3])
def test_tiny_p_values_of_binary_data_agree_with_the_binomial_test(scale):
    counts = [(30, 5), (60, 10), (80, 10), (25, 2), (18, 0), (200, 0), (150, 50)]
    table = np.column_stack(
        [np.r_[np.ones(wins), -np.ones(losses), np.zeros(200 - wins - losses)] for wins, losses in counts]
    )
    for alternative in ("two-sided", "greater"):
        exact = [stats.binomtest(wins, wins + losses, alternative=alternative).pvalue for wins, losses in counts]
        p = sign_flip_test(scale * table, alternative=alternative, rng=rng())
        assert np.log(p) == pytest.approx(np.log(exact), abs=0.25)
        assert sign_flip_test(
            -scale * table, alternative=alternative.replace("greater", "less"), rng=rng()
        ) == pytest.approx(p)


def test_tiny_p_values_of_graded_data_agree_with_the_exact_distribution():
    table = rng(30).integers(-3, 8, size=(60, 5))
    exact = []
    for column in table.T:  # the distribution of the total by convolution
        probabilities = np.ones(1)
        for value in np.abs(column):
            probabilities = np.convolve(probabilities, np.r_[0.5, np.zeros(2 * value - 1), 0.5] if value else [1.0])
        exact.append(2 * probabilities[-((np.abs(column).sum() - column.sum()) // 2) * 2 - 1 :].sum())
    p = sign_flip_test(table / 8, rng=rng())
    assert max(exact) < 1e-3
    assert np.log(p) == pytest.approx(np.log(exact), abs=0.25)


@settings(max_examples=30)
@given(st.integers(14, 60), st.integers(0, 2**32 - 1))
def test_importance_sampling_has_the_exact_p_of_equal_differences(n, seed):
    p = sign_flip_test(np.full((n, 1), 0.3), n_permutations=200, rng=rng(seed))[0]
    assert 2.0 ** (1 - n) <= p < 1.2 * 2.0 ** (1 - n)


def test_p_depends_on_the_seed_and_not_on_other_columns():
    table = rng(5).normal(0.05, 1, size=(300, 40))
    joint = sign_flip_test(table, n_permutations=500, rng=rng(6))
    assert (joint == sign_flip_test(table, n_permutations=500, rng=rng(6))).all()
    separate = [sign_flip_test(table[:, [column]], n_permutations=500, rng=rng(6))[0] for column in range(40)]
    assert (joint == separate).all()


def test_p_over_several_blocks_agrees_with_the_normal_limit():
    # More units than a block holds: p of a shifted column must match the normal limit.
    table = rng(7).normal(size=(9000, 1))
    table += 1.5 / np.sqrt(9000) - table.mean()
    expected = 2 * stats.norm.sf(1.5 / np.sqrt((table**2).mean()))
    assert sign_flip_test(table, n_permutations=4000, rng=rng())[0] == pytest.approx(expected, abs=0.02)


def test_undefined_units_are_excluded_per_column():
    table = rng(8).normal(0.4, 1, size=(10, 2))
    table[[1, 4], 0] = np.nan
    p = sign_flip_test(table, rng=rng())
    assert p[0] == sign_flip_test(np.delete(table[:, 0], [1, 4]), rng=rng())[0]
    assert p[1] == sign_flip_test(table[:, 1], rng=rng())[0]


def test_columns_without_a_defined_unit_have_no_p():
    undefined = np.full((6, 1), np.nan)
    for name in TESTS:
        assert np.isnan(run_test(name, undefined, rng=rng())[0])
        assert np.isnan(run_test(name, np.empty((0, 1)), rng=rng())[0])


def test_equal_systems_have_p_of_one():
    for name in TESTS:
        assert run_test(name, np.zeros((30, 1)), rng=rng())[0] == 1.0


def test_differences_of_a_cluster_change_sign_together():
    differences = rng(9).integers(-4, 5, size=24) / 8
    labels = np.array(list("aabbbccccddeeeefffgghhhh"))
    sums = [differences[labels == label].sum() for label in np.unique(labels)]
    assert sign_flip_test(differences, clusters=labels, rng=rng())[0] == pytest.approx(enumerated_p(sums))


def test_p_with_clusters_does_not_depend_on_the_order_of_units():
    differences, labels = rng(10).normal(size=(40, 3)), np.repeat(np.arange(10), 4)
    order = rng(11).permutation(40)
    p = sign_flip_test(differences, clusters=labels, rng=rng())
    assert (p == sign_flip_test(differences[order], clusters=labels[order], rng=rng())).all()


def test_weights_count_as_repeated_differences():
    differences, weights = rng(12).integers(-8, 9, size=9) / 8, np.array([1, 2, 3, 1, 1, 2, 5, 1, 4])
    expected = enumerated_p(differences * weights)
    assert sign_flip_test(differences, weights=weights, rng=rng())[0] == pytest.approx(expected)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_paired_t_agrees_with_scipy(alternative):
    a, b = rng(14).normal(size=(2, 25, 4))
    expected = stats.ttest_rel(a, b, alternative=alternative)
    assert paired_t_test(a - b, alternative=alternative) == pytest.approx(expected.pvalue, rel=1e-12)


def test_paired_t_excludes_undefined_units():
    table = rng(15).normal(0.3, 1, size=(20, 3))
    table[3, 0] = table[5, 0] = table[7, 1] = np.nan
    expected = stats.ttest_1samp(table, 0, nan_policy="omit").pvalue
    assert paired_t_test(table) == pytest.approx(np.asarray(expected), rel=1e-12)


def test_paired_t_with_equal_clusters_is_the_t_test_of_cluster_means():
    differences, labels = rng(16).normal(0.2, 1, size=(60, 2)), np.repeat(np.arange(15), 4)
    means = differences.reshape(15, 4, 2).mean(axis=1)
    assert paired_t_test(differences, clusters=labels) == pytest.approx(stats.ttest_1samp(means, 0).pvalue)


def test_paired_t_of_equal_differences_is_nan():
    assert np.isnan(paired_t_test(np.full(10, 0.3))[0])
    assert np.isnan(paired_t_test(np.full(10, 0.1) * 3 - 0.1)[0])
    assert np.isnan(paired_t_test([0.3])[0])


def test_wilcoxon_without_ties_agrees_with_the_exact_test_of_scipy():
    differences = rng(17).normal(0.4, 1, size=12)
    expected = stats.wilcoxon(differences, method="exact")
    assert wilcoxon_test(differences, rng=rng())[0] == pytest.approx(expected.pvalue)


def test_wilcoxon_with_ties_and_zeros_agrees_with_the_permutation_test_of_scipy():
    differences = np.array([0.1, 0.3 - 0.2, -0.1, 0.2, 0.2, 0.0, 0.3, -0.2, 0.4, 0.1])
    integers = np.round(differences * 10)
    expected = stats.wilcoxon(integers[integers != 0], method=stats.PermutationMethod(n_resamples=np.inf))
    assert wilcoxon_test(differences, rng=rng())[0] == pytest.approx(expected.pvalue)


def test_wilcoxon_of_many_units_agrees_with_the_normal_approximation():
    differences = rng(18).normal(0.12, 1, size=400)
    assert wilcoxon_test(differences, n_permutations=20_000, rng=rng())[0] == pytest.approx(
        stats.wilcoxon(differences).pvalue, abs=0.01
    )


@settings(max_examples=50)
@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_test_of_discordant_units(n_wins, n_losses):
    differences = np.r_[np.ones(n_wins), -np.ones(n_losses), np.zeros(7)]
    expected = stats.binomtest(n_wins, n_wins + n_losses).pvalue if n_wins + n_losses else 1.0
    assert mcnemar_test(differences)[0] == pytest.approx(expected)


def test_mcnemar_equals_the_exact_randomisation_test_on_hits_and_misses():
    table = rng(19).integers(-1, 2, size=(12, 20)).astype(float)
    assert mcnemar_test(table) == pytest.approx(sign_flip_test(table, rng=rng()))


def test_mcnemar_of_graded_values_raises_undefined_error():
    with pytest.raises(UndefinedError, match=r"0\.5"):
        mcnemar_test([[0.5], [1.0]])


def test_standard_errors_agree_with_scipy():
    table = rng(20).normal(size=(30, 2))
    units = ResamplingUnits.of(table)
    assert units.standard_errors == pytest.approx(stats.sem(table))
    assert units.means == pytest.approx(table.mean(axis=0))


def test_standard_errors_of_copied_units_in_clusters_do_not_shrink():
    table = rng(21).normal(size=(12, 1))
    copied = np.repeat(table, 5, axis=0)
    clustered = ResamplingUnits.of(copied, clusters=np.repeat(np.arange(12), 5))
    assert clustered.standard_errors == pytest.approx(ResamplingUnits.of(table).standard_errors)


def test_tests_are_found_by_name_or_alias_and_suggested_when_misspelled():
    differences = rng(22).normal(size=8)
    expected = sign_flip_test(differences, rng=rng())
    for name in ("randomisation", "sign-flip", "Permutation"):
        assert run_test(name, differences, rng=rng()) == expected
        assert StatsConfig(test=name).test == "randomisation"
    with pytest.raises(UnknownNameError) as error:
        run_test("wilcoxen", differences, rng=rng())
    assert error.value.hint == "did you mean wilcoxon?"
    assert all(test.title and test.cite for test in TESTS.values())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mcnemar", {"clusters": np.zeros(4)}),
        ("wilcoxon", {"weights": np.ones(4)}),
    ],
)
def test_unsupported_options_raise_undefined_error(name, options):
    with pytest.raises(UndefinedError):
        run_test(name, np.zeros(4), rng=rng(), **options)


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (NotFiniteError, {"differences": [1.0, np.inf]}),
        (ShapeError, {"differences": np.zeros((2, 2, 2))}),
        (ShapeError, {"differences": [1.0, 2.0], "clusters": np.array([1])}),
        (ShapeError, {"differences": [1.0, 2.0], "weights": [1.0, 2.0, 3.0]}),
        (ParameterError, {"differences": [1.0, 2.0], "weights": [1.0, -2.0]}),
        (UnknownNameError, {"differences": [1.0], "alternative": "grater"}),
    ],
)
def test_bad_input_raises_errors(error, arguments):
    with pytest.raises(error):
        sign_flip_test(**arguments, rng=rng())


def test_the_p_value_does_not_depend_on_the_order_of_systems_or_units() -> None:
    rng = np.random.default_rng(3)
    differences = rng.normal(0.2, 1.0, (40, 1))
    p = {
        float(sign_flip_test(sign * differences[order], n_permutations=999, rng=np.random.default_rng(0))[0])
        for sign in (1.0, -1.0)
        for order in (slice(None), rng.permutation(40))
    }
    assert len(p) == 1
