"""The paired tests against scipy, brute force and the laws that they obey."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise.errors import NotFiniteError, ParameterError, ShapeError, UndefinedError, UnknownNameError
from equipoise.stats.bootstrap_mean import ResamplingUnits
from equipoise.stats.paired_tests import TESTS, mcnemar_test, paired_t_test, run_test, sign_flip_test, wilcoxon_test

ALTERNATIVES = ("two-sided", "greater", "less")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def brute_force(differences, alternative="two-sided"):
    """Every sign pattern, exact integers: differences are multiples of 1/8."""
    whole = [round(8 * difference) for difference in differences]
    seen = sum(whole)
    totals = [sum(turned) for turned in product(*((-each, each) for each in whole))]
    extreme = {
        "two-sided": lambda total: abs(total) >= abs(seen),
        "greater": lambda total: total >= seen,
        "less": lambda total: total <= seen,
    }[alternative]
    return sum(map(extreme, totals)) / len(totals)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_few_units_are_enumerated_exactly(alternative):
    table = rng(1).integers(-8, 9, size=(9, 12)) / 8
    p = sign_flip_test(table, alternative=alternative, rng=rng())
    assert p == pytest.approx([brute_force(column, alternative) for column in table.T], abs=1e-15)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=10), st.sampled_from(ALTERNATIVES))
def test_enumeration_counts_equal_totals_whatever_the_float_noise(whole, alternative):
    thirds = np.array(whole)[:, None] * 0.1  # 0.1 + 0.2 - 0.3 is not 0 in floating point
    p = sign_flip_test(thirds, alternative=alternative, rng=rng())
    assert p[0] == pytest.approx(brute_force(np.array(whole) / 8, alternative), abs=1e-15)


def test_exact_p_equals_scipys_permutation_test():
    differences = rng(2).normal(0.3, 1, size=11)
    for alternative in ALTERNATIVES:
        oracle = stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative=alternative
        )
        assert sign_flip_test(differences, alternative=alternative, rng=rng())[0] == pytest.approx(oracle.pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_drawn_p_agrees_with_scipys_within_monte_carlo_error(alternative):
    differences = rng(3).normal(0.12, 1, size=(150, 3))
    ours = sign_flip_test(differences, alternative=alternative, n_permutations=20_000, rng=rng())
    oracle = stats.permutation_test(
        (differences,),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        alternative=alternative,
        rng=rng(4),
    )
    # Two independent estimates: four standard errors of their difference.
    assert np.abs(ours - oracle.pvalue).max() < 4 * np.sqrt(2 * 0.25 / 20_000)


def test_drawn_p_on_binary_data_agrees_with_the_binomial_distribution():
    differences = np.r_[np.ones(60), -np.ones(40), np.zeros(100)]
    exact = stats.binomtest(60, 100).pvalue
    assert sign_flip_test(differences, n_permutations=40_000, rng=rng())[0] == pytest.approx(exact, abs=0.005)


def test_the_whole_range_of_binary_p_does_not_depend_on_the_scale_of_the_values():
    differences = np.r_[np.ones(30), -np.ones(18)]
    p = [
        sign_flip_test(differences * scale, n_permutations=2000, rng=rng())[0] for scale in (1.0, 0.1, 1 / 3, 1e-9, 7e7)
    ]
    assert len(set(p)) == 1


def test_p_is_never_zero_and_counts_the_pattern_seen():
    assert sign_flip_test(np.ones((500, 1)), n_permutations=999, rng=rng())[0] == 1 / 1000
    assert sign_flip_test(np.ones((5, 1)), n_permutations=999, rng=rng())[0] == 2 / 32


def test_the_same_seed_gives_the_same_p_and_neighbours_do_not_matter():
    table = rng(5).normal(0.05, 1, size=(300, 40))
    together = sign_flip_test(table, n_permutations=500, rng=rng(6))
    assert (together == sign_flip_test(table, n_permutations=500, rng=rng(6))).all()
    alone = [sign_flip_test(table[:, [column]], n_permutations=500, rng=rng(6))[0] for column in range(40)]
    assert (together == alone).all()


def test_blocks_of_units_and_flips_join_seamlessly():
    # More units than a block holds: p of a shifted column must match the normal limit.
    table = rng(7).normal(size=(9000, 1))
    table += 1.5 / np.sqrt(9000) - table.mean()
    expected = 2 * stats.norm.sf(1.5 / np.sqrt((table**2).mean()))
    assert sign_flip_test(table, n_permutations=4000, rng=rng())[0] == pytest.approx(expected, abs=0.02)


def test_undefined_units_are_left_out_column_by_column():
    table = rng(8).normal(0.4, 1, size=(10, 2))
    table[[1, 4], 0] = np.nan
    p = sign_flip_test(table, rng=rng())
    assert p[0] == sign_flip_test(np.delete(table[:, 0], [1, 4]), rng=rng())[0]
    assert p[1] == sign_flip_test(table[:, 1], rng=rng())[0]


def test_a_column_without_any_unit_has_no_p():
    nothing = np.full((6, 1), np.nan)
    for name in TESTS:
        assert np.isnan(run_test(name, nothing, rng=rng())[0])
        assert np.isnan(run_test(name, np.empty((0, 1)), rng=rng())[0])


def test_systems_that_never_differ_are_never_told_apart():
    for name in TESTS:
        assert run_test(name, np.zeros((30, 1)), rng=rng())[0] == 1.0


def test_clusters_turn_together():
    differences = rng(9).integers(-4, 5, size=24) / 8
    labels = np.array(list("aabbbccccddeeeefffgghhhh"))
    sums = [differences[labels == label].sum() for label in np.unique(labels)]
    assert sign_flip_test(differences, clusters=labels, rng=rng())[0] == pytest.approx(brute_force(sums))


def test_the_order_of_the_units_does_not_matter_to_clusters():
    differences, labels = rng(10).normal(size=(40, 3)), np.repeat(np.arange(10), 4)
    order = rng(11).permutation(40)
    straight = sign_flip_test(differences, clusters=labels, rng=rng())
    assert (straight == sign_flip_test(differences[order], clusters=labels[order], rng=rng())).all()


def test_weights_count_as_repeated_differences_that_turn_together():
    differences, weights = rng(12).integers(-8, 9, size=9) / 8, np.array([1, 2, 3, 1, 1, 2, 5, 1, 4])
    expected = brute_force(differences * weights)
    assert sign_flip_test(differences, weights=weights, rng=rng())[0] == pytest.approx(expected)


def test_a_margin_moves_the_null():
    differences = rng(13).normal(0.0, 0.1, size=(12, 2))
    moved = sign_flip_test(differences, margin=-0.2, alternative="greater", rng=rng())
    assert (moved == sign_flip_test(differences + 0.2, alternative="greater", rng=rng())).all()
    assert (moved < 0.01).all()
    t = paired_t_test(differences, margin=-0.2, alternative="greater")
    assert t == pytest.approx(stats.ttest_1samp(differences, -0.2, alternative="greater").pvalue)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_paired_t_is_scipys(alternative):
    a, b = rng(14).normal(size=(2, 25, 4))
    oracle = stats.ttest_rel(a, b, alternative=alternative)
    assert paired_t_test(a - b, alternative=alternative) == pytest.approx(oracle.pvalue, rel=1e-12)


def test_paired_t_with_undefined_units_is_scipys_on_the_rest():
    table = rng(15).normal(0.3, 1, size=(20, 3))
    table[3, 0] = table[5, 0] = table[7, 1] = np.nan
    oracle = stats.ttest_1samp(table, 0, nan_policy="omit").pvalue
    assert paired_t_test(table) == pytest.approx(np.asarray(oracle), rel=1e-12)


def test_paired_t_with_clusters_of_one_size_is_the_t_of_cluster_means():
    differences, labels = rng(16).normal(0.2, 1, size=(60, 2)), np.repeat(np.arange(15), 4)
    means = differences.reshape(15, 4, 2).mean(axis=1)
    assert paired_t_test(differences, clusters=labels) == pytest.approx(stats.ttest_1samp(means, 0).pvalue)


def test_paired_t_refuses_to_judge_without_a_spread():
    assert np.isnan(paired_t_test(np.full(10, 0.3))[0])
    assert np.isnan(paired_t_test(np.full(10, 0.1) * 3 - 0.1)[0])
    assert np.isnan(paired_t_test([0.3])[0])


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_wilcoxon_is_scipys_exact_test_without_ties(alternative):
    differences = rng(17).normal(0.4, 1, size=12)
    oracle = stats.wilcoxon(differences, alternative=alternative, method="exact")
    assert wilcoxon_test(differences, alternative=alternative, rng=rng())[0] == pytest.approx(oracle.pvalue)


def test_wilcoxon_with_ties_and_zeros_is_scipys_permutation():
    differences = np.array([0.1, 0.3 - 0.2, -0.1, 0.2, 0.2, 0.0, 0.3, -0.2, 0.4, 0.1])
    whole = np.round(differences * 10)
    oracle = stats.wilcoxon(whole[whole != 0], method=stats.PermutationMethod(n_resamples=np.inf))
    assert wilcoxon_test(differences, rng=rng())[0] == pytest.approx(oracle.pvalue)


def test_wilcoxon_of_many_units_agrees_with_the_normal_approximation():
    differences = rng(18).normal(0.12, 1, size=400)
    assert wilcoxon_test(differences, n_permutations=20_000, rng=rng())[0] == pytest.approx(
        stats.wilcoxon(differences).pvalue, abs=0.01
    )


@settings(max_examples=50)
@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from(ALTERNATIVES))
def test_mcnemar_is_the_binomial_test_of_the_units_that_differ(won, lost, alternative):
    differences = np.r_[np.ones(won), -np.ones(lost), np.zeros(7)]
    oracle = stats.binomtest(won, won + lost, alternative=alternative).pvalue if won + lost else 1.0
    assert mcnemar_test(differences, alternative=alternative)[0] == pytest.approx(oracle)


def test_mcnemar_equals_the_exact_randomisation_test_on_hits_and_misses():
    table = rng(19).integers(-1, 2, size=(12, 20)).astype(float)
    assert mcnemar_test(table) == pytest.approx(sign_flip_test(table, rng=rng()))


def test_mcnemar_refuses_graded_values():
    with pytest.raises(UndefinedError, match=r"0\.5"):
        mcnemar_test([[0.5], [1.0]])


def test_spread_is_the_familiar_standard_error():
    table = rng(20).normal(size=(30, 2))
    units = ResamplingUnits.of(table)
    assert units.standard_errors == pytest.approx(stats.sem(table))
    assert units.means == pytest.approx(table.mean(axis=0))


def test_spread_of_equal_units_in_clusters_does_not_shrink_with_copies():
    table = rng(21).normal(size=(12, 1))
    copied = np.repeat(table, 5, axis=0)
    clustered = ResamplingUnits.of(copied, clusters=np.repeat(np.arange(12), 5))
    assert clustered.standard_errors == pytest.approx(ResamplingUnits.of(table).standard_errors)


def test_tests_are_found_by_name_alias_and_offered_when_mistyped():
    differences = rng(22).normal(size=8)
    expected = sign_flip_test(differences, rng=rng())
    for name in ("randomisation", "sign-flip", "Permutation"):
        assert run_test(name, differences, rng=rng()) == expected
    with pytest.raises(UnknownNameError) as caught:
        run_test("wilcoxen", differences, rng=rng())
    assert caught.value.hint == "did you mean wilcoxon?"
    assert all(test.title and test.cite for test in TESTS.values())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mcnemar", {"clusters": np.zeros(4)}),
        ("mcnemar", {"margin": 0.1}),
        ("wilcoxon", {"weights": np.ones(4)}),
    ],
)
def test_a_test_refuses_what_it_would_have_to_ignore(name, options):
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
        (ParameterError, {"differences": [1.0], "n_permutations": 0}),
    ],
)
def test_bad_input_is_named(error, arguments):
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
