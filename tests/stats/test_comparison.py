"""Comparisons: pairing by id, correction families, bands and verdicts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import isnan, nan

import numpy as np
import pytest
from scipy import stats

from equipoise.config import StatsConfig
from equipoise.errors import DuplicateError, PairingError, ParameterError, UndefinedError, UnknownNameError
from equipoise.evidence.pairs import Pairs
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.space import Space
from equipoise.metrics.intrinsic import MeanCosine
from equipoise.metrics.pairs import Spearman
from equipoise.metrics.parser import parse_metrics
from equipoise.stats.formatting import about
from equipoise.stats.intervals import Interval
from equipoise.stats.multiple_comparisons import adjust
from equipoise.stats.pairing import compare_results
from equipoise.stats.power import units_needed
from equipoise.stats.result import Estimate, Result
from equipoise.types import Direction

UP, DOWN = Direction.UP, Direction.DOWN
FAST_CONFIG = StatsConfig(n_permutations=999, n_resamples=300)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def result(system, per_unit, *, better=UP, ids=None, weights=None, clusters=None, evidence=None, corpus=None):
    """A result of per-unit columns (a single column is the metric m) and corpus-level values."""
    columns = per_unit if isinstance(per_unit, dict) else {"m": per_unit}
    columns = {name: np.asarray(column, dtype=float) for name, column in columns.items()}
    n = len(next(iter(columns.values()))) if columns else len(evidence)
    ids = np.arange(n) if ids is None else np.asarray(ids)
    means = {name: nan if np.isnan(column).all() else float(np.nanmean(column)) for name, column in columns.items()}
    estimates = {
        name: Estimate(name, value, Interval(0.0, 1.0), n, 0, 0.0, better)
        for name, value in {**means, **(corpus or {})}.items()
    }
    return Result(system, ids, estimates, columns, weights or {}, clusters, evidence)


def shifted_results(shifts, *, n=60, noise=0.3, seed=0, **options):
    """Results of systems a, b, c, ... with common unit difficulties and the given shifts."""
    generator = rng(seed)
    difficulty = generator.normal(size=n)
    return [
        result(chr(ord("a") + index), difficulty + shift + noise * generator.normal(size=n), **options)
        for index, shift in enumerate(shifts)
    ]


def test_a_single_system_raises_parameter_error():
    with pytest.raises(ParameterError):
        compare_results(shifted_results([0.0]))


def test_duplicate_system_names_raise_duplicate_error():
    with pytest.raises(DuplicateError, match="'a'"):
        compare_results([result("a", [1.0, 0.0]), result("a", [0.0, 0.0])])


def test_unequal_unit_sets_raise_pairing_error_with_the_difference():
    one = result("one", np.zeros(9), ids=[f"q{index}" for index in range(9)])
    two = result("two", np.zeros(3), ids=["q1", "q2", "x"])
    with pytest.raises(PairingError, match=r"7 only.*1 only") as error:
        compare_results([one, two])
    assert error.value.excerpt == "only in one: q0, q3, q4, q5, q6 and 2 more\nonly in two: x"


def test_the_hint_on_unequal_units_of_score_tables_is_not_about_runs():
    tables = [result("one", [1.0, 0.0], ids=["q1", "q2"]), result("two", [1.0, 0.0], ids=["q1", "q3"])]
    runs = [replace(table, evidence=Ranking.from_ranks([1, 2], candidates=9)) for table in tables]
    hints = []
    for systems in (tables, runs):
        with pytest.raises(PairingError) as error:
            compare_results(systems)
        hints.append(error.value.hint)
    assert "table" in hints[0]
    assert "run" in hints[1]


def test_duplicate_unit_ids_raise_duplicate_error():
    with pytest.raises(DuplicateError, match="unit 'q1'"):
        compare_results([result("a", [1.0, 0.0], ids=["q1", "q1"]), result("b", [1.0, 0.0], ids=["q1", "q2"])])


def test_the_same_units_in_another_order_are_paired_by_id():
    first, second = shifted_results([0.0, 0.2])
    order = rng(1).permutation(60)
    reordered = result("b", second.per_unit["m"][order], ids=order)
    comparison, reordered_comparison = (
        compare_results([first, other], config=FAST_CONFIG) for other in (second, reordered)
    )
    assert comparison.contrasts == reordered_comparison.contrasts
    assert (comparison.scores, comparison.ranks, comparison.bands) == (
        reordered_comparison.scores,
        reordered_comparison.ranks,
        reordered_comparison.bands,
    )


def test_contrasts_agree_with_scipy():
    first, second = shifted_results([0.0, 0.1], n=150)
    comparison = compare_results([first, second], config=StatsConfig(test="t", n_resamples=4000))
    contrast = comparison.contrast("a", "b")
    x, y = first.per_unit["m"], second.per_unit["m"]
    assert contrast.difference == pytest.approx((x - y).mean())
    assert contrast.p == pytest.approx(stats.ttest_rel(x, y).pvalue)
    assert (contrast.wins, contrast.ties, contrast.losses) == ((x > y).sum(), 0, (x < y).sum())
    expected = stats.bootstrap((x - y,), np.mean, n_resamples=4000, rng=rng(2)).confidence_interval
    assert (contrast.interval.low, contrast.interval.high) == pytest.approx(
        stats.ttest_rel(x, y).confidence_interval(), rel=1e-9
    )
    default = compare_results([first, second], config=StatsConfig(n_resamples=4000)).contrast("a", "b")
    assert (default.interval.low, default.interval.high) == pytest.approx(expected, abs=0.01)
    assert default.interval.method == "gaffke"


@pytest.mark.parametrize(
    ("differences", "reason"),
    [
        (np.zeros(9), "all values are equal"),
        (np.full(9, 0.1), "all values are equal"),
        (np.r_[0.5, np.full(8, nan)], "one value"),
        (np.full(9, nan), "no defined value"),
    ],
)
def test_unsupported_intervals_are_unknown(differences, reason):
    pair = [result("a", differences + 0.3), result("b", np.full(9, 0.3))]
    assert compare_results(pair, config=FAST_CONFIG).contrast("a", "b").interval.reason == reason


@pytest.mark.parametrize("n", [50, 400])
def test_intervals_of_sparse_differences_have_their_coverage(n):
    generator, systems = rng(13), 500
    is_non_zero = generator.random((n, systems)) < 0.3
    signs = np.where(generator.random((n, systems)) < 0.6, 1.0, -1.0)
    columns = {
        f"m{index}": column
        for index, column in enumerate((is_non_zero * signs * generator.exponential(size=is_non_zero.shape)).T)
    }
    pair = [result("a", columns), result("b", {name: np.zeros(n) for name in columns})]
    comparison = compare_results(pair, config=StatsConfig(n_permutations=10, n_resamples=2000))
    covered = np.mean([contrast.interval.covers(0.3 * 0.2) for contrast in comparison.contrasts])
    assert 0.93 <= covered <= 0.99


def test_reversed_contrasts_change_signs():
    contrast = compare_results(shifted_results([0.0, 0.4]), config=FAST_CONFIG).contrast("a", "b")
    reversed_contrast = contrast.reversed()
    assert reversed_contrast.difference == -contrast.difference
    assert reversed_contrast.interval.low == -contrast.interval.high
    assert (reversed_contrast.wins, reversed_contrast.losses) == (contrast.losses, contrast.wins)
    assert reversed_contrast.reversed() == contrast


def test_a_reversed_contrast_of_equal_systems_has_no_negative_zero():
    (contrast,) = compare_results(shifted_results([0.0, 0.0], noise=0.0), config=FAST_CONFIG).contrasts
    reversed_contrast = replace(contrast, interval=Interval(0.0, 0.0)).reversed()
    numbers = (reversed_contrast.difference, reversed_contrast.interval.low, reversed_contrast.interval.high)
    assert [str(number) for number in numbers] == ["0.0"] * 3


def test_wins_follow_the_direction_of_the_metric():
    pair = [
        result("a", [1.0, 2.0, 3.0, 0.3], better=DOWN),
        result("b", [2.0, 2.0, 9.0, 0.1 * 3], better=DOWN),
    ]
    contrast = compare_results(pair, config=FAST_CONFIG).contrast("a", "b")
    assert (contrast.wins, contrast.ties, contrast.losses) == (2, 2, 0)


def test_three_wins_and_47_ties_are_not_significant():
    a, b = np.zeros(50), np.zeros(50)
    a[:3] = 1.0
    contrast = compare_results([result("a", a), result("b", b)], config=FAST_CONFIG).contrast("a", "b")
    assert contrast.p > 0.05
    assert contrast.interval.low < 0 < contrast.interval.high


def test_the_family_is_all_pairs_of_the_metric():
    comparison = compare_results(shifted_results([0.0, 0.08, 0.16]), config=FAST_CONFIG)
    assert comparison.family == "Holm correction for 3 pairs on m"
    p = sorted(contrast.p for contrast in comparison.contrasts)
    adjusted = sorted(contrast.adjusted for contrast in comparison.contrasts)
    assert adjusted[0] == pytest.approx(min(1.0, 3 * p[0]))
    assert compare_results(shifted_results([0.0, 1.0]), config=FAST_CONFIG).family == "one pair on m, so no correction"


def test_every_metric_is_corrected_separately():
    generator = rng(3)
    results = [result(name, {"m": generator.normal(size=20), "k": generator.normal(size=20)}) for name in "abc"]
    comparison = compare_results(results, config=replace(FAST_CONFIG, correction="bh"))
    assert comparison.families == {
        "m": "Benjamini-Hochberg correction for 3 pairs on m",
        "k": "Benjamini-Hochberg correction for 3 pairs on k",
    }
    one_metric = compare_results(results, metrics=["k"], config=replace(FAST_CONFIG, correction="bh"))
    for pair in ("ab", "ac", "bc"):
        assert one_metric.contrast(*pair) == comparison.contrast(*pair, "k")


def test_leader_bands_and_ranks_of_clearly_separate_systems():
    comparison = compare_results(shifted_results([0.0, 2.0, 1.0]), config=FAST_CONFIG)
    assert comparison.leader == "b"
    assert comparison.order == ("b", "c", "a")
    assert comparison.bands == {"a": ("c",), "b": ("a",), "c": ("b",)}
    assert comparison.ranks == {"a": (3, 3), "b": (1, 1), "c": (2, 2)}
    lower_is_better = compare_results(shifted_results([0.0, 2.0, 1.0], better=DOWN), config=FAST_CONFIG)
    assert lower_is_better.leader == "a"
    assert lower_is_better.bands == {"a": ("a",), "b": ("c",), "c": ("b",)}


def test_a_system_that_is_tied_only_by_the_correction_could_not_be_best():
    compared = compare_results(shifted_results([0.13, *[0.1] * 8, 0.0]), config=FAST_CONFIG)
    assert {"a", "j"} <= {compared.leader, *compared.tied_with_leader}
    assert not compared.contrast(compared.leader, "j").interval.covers(0.0)
    assert compared.could_be_best[0] == compared.leader
    assert "j" not in compared.could_be_best
    assert {"b", "c"} <= set(compared.could_be_best)


def test_units_undefined_in_either_system_are_excluded_and_counted():
    a, b = np.arange(10.0), np.arange(10.0) / 2
    a[1], b[7] = nan, nan
    comparison = compare_results([result("a", a), result("b", b)], config=FAST_CONFIG)
    contrast = comparison.contrast("a", "b")
    assert (contrast.n, contrast.undefined) == (8, 2)
    assert contrast.difference == pytest.approx(np.nanmean(a - b))
    # The scores of the systems use the same eight units.
    assert comparison.scores["a"] - comparison.scores["b"] == pytest.approx(contrast.difference)


def test_weighted_differences_are_differences_of_weighted_means():
    a, b, weights = rng(4).normal(size=12), rng(5).normal(size=12), np.arange(1.0, 13.0)
    pair = [result("a", a, weights={"m": weights}), result("b", b, weights={"m": weights})]
    comparison = compare_results(pair, config=FAST_CONFIG)
    expected = np.average(a, weights=weights) - np.average(b, weights=weights)
    assert comparison.contrast("a", "b").difference == pytest.approx(expected)
    assert comparison.scores["a"] == pytest.approx(np.average(a, weights=weights))
    other_weights = result("b", b, weights={"m": weights[::-1]})
    with pytest.raises(PairingError):
        compare_results([pair[0], other_weights], config=FAST_CONFIG)


def test_clusters_widen_interval_and_p():
    a, b = rng(6).normal(0.35, 1, size=12), np.zeros(12)
    n_copies, labels = 6, np.repeat(np.arange(12), 6)
    unclustered, clustered = (
        compare_results(
            [
                result("a", np.repeat(a, n_copies), clusters=clusters),
                result("b", np.repeat(b, n_copies), clusters=clusters),
            ],
            config=FAST_CONFIG,
        )
        for clusters in (None, labels)
    )
    original = compare_results([result("a", a), result("b", b)], config=FAST_CONFIG).contrast("a", "b")
    assert clustered.clusters == 12
    assert clustered.contrast("a", "b").p == pytest.approx(original.p)
    assert clustered.contrast("a", "b").interval.width > 2 * unclustered.contrast("a", "b").interval.width
    assert clustered.contrast("a", "b").detectable.value == pytest.approx(original.detectable.value)
    assert clustered.contrast("a", "b").needed.value == pytest.approx(n_copies * original.needed.value, abs=n_copies)


def test_clusters_without_values_are_not_counted_and_change_nothing():
    a, b, labels = rng(6).normal(0.35, 1, size=24), np.zeros(24), np.repeat(np.arange(8), 3)
    n_empty = 5

    def compared(n_empty):
        gaps, more = np.full(n_empty, nan), np.arange(100, 100 + n_empty)
        clusters = np.concatenate([labels, more])
        pair = [result(name, np.concatenate([x, gaps]), clusters=clusters) for name, x in (("a", a), ("b", b))]
        return compare_results(pair, config=FAST_CONFIG)

    without, with_empty = compared(0), compared(n_empty)
    assert without.clusters == with_empty.clusters == 8
    expected, contrast = without.contrast("a", "b"), with_empty.contrast("a", "b")
    assert contrast.p == expected.p
    assert contrast.units_per_block == expected.units_per_block
    assert (contrast.interval.low, contrast.interval.high) == pytest.approx(
        (expected.interval.low, expected.interval.high), rel=0.05
    )


def test_different_clusters_raise_pairing_error():
    with pytest.raises(PairingError):
        compare_results(
            [
                result("a", np.zeros(3), clusters=np.array([1, 1, 2])),
                result("b", np.zeros(3), clusters=np.array([1, 2, 2])),
            ]
        )


def test_unsupported_tests_raise_for_the_primary_metric_and_have_a_reason_elsewhere():
    generator = rng(7)
    pair = [
        result(name, {"hit": generator.integers(0, 2, size=30), "graded": generator.normal(size=30)}) for name in "ab"
    ]
    with pytest.raises(UndefinedError):
        compare_results(pair, primary="graded", config=replace(FAST_CONFIG, test="mcnemar"))
    comparison = compare_results(pair, config=replace(FAST_CONFIG, test="mcnemar"))
    assert comparison.contrast("a", "b").p > 0
    contrast = comparison.contrast("a", "b", "graded")
    assert isnan(contrast.p)
    assert contrast.reason == "McNemar's exact test needs hits and misses"
    assert contrast.interval.known


def test_unknown_names_raise_unknown_name_error():
    pair = shifted_results([0.0, 1.0])
    with pytest.raises(UnknownNameError, match="nDCG"):
        compare_results(pair, metrics=["nDCG"])
    for options in ({"test": "tee"}, {"correction": "holms"}):
        with pytest.raises(UnknownNameError):
            compare_results(pair, config=StatsConfig(**options))
    comparison = compare_results(pair, config=FAST_CONFIG)
    with pytest.raises(UnknownNameError, match="system"):
        comparison.contrast("a", "z")
    with pytest.raises(ParameterError) as error:
        comparison.contrast("a", "a")
    assert error.value.code == "E310"
    with pytest.raises(ParameterError, match="confidence_level"):
        compare_results(pair, config=StatsConfig(confidence_level=95))


def similarity_results(noise_of_systems, *, n=80, seed=8, shuffle=False):
    """Results of systems whose predictions are the truth with noise of the given standard deviations."""
    generator = rng(seed)
    truth = generator.normal(size=n)
    results = []
    for name, noise in noise_of_systems.items():
        evidence = Pairs.of(truth + noise * generator.normal(size=n), truth)
        if shuffle and results:
            evidence = evidence.take(generator.permutation(n))
        value = Spearman().measure(evidence).value
        results.append(result(name, {}, evidence=evidence, corpus={"Spearman": value}, ids=evidence.unit_ids))
    return results


def test_corpus_level_metrics_are_compared_on_resampled_evidence():
    metrics = {"Spearman": Spearman()}
    results = similarity_results({"good": 0.3, "fair": 0.31, "poor": 3.0})
    comparison = compare_results(results, metric_objects=metrics, config=StatsConfig(n_resamples=400))
    assert comparison.leader == "good"
    close_contrast, far_contrast = comparison.contrast("good", "fair"), comparison.contrast("good", "poor")
    assert close_contrast.adjusted > 0.05 > far_contrast.adjusted > 0
    assert far_contrast.interval.low > 0
    assert far_contrast.interval.method == "paired bootstrap"
    assert comparison.bands == {"good": ("a",), "fair": ("a",), "poor": ("b",)}
    assert comparison.ranks["poor"] == (3, 3)


def test_corpus_level_evidence_is_paired_by_id():
    metrics = {"Spearman": Spearman()}
    contrast, shuffled_contrast = (
        compare_results(
            similarity_results({"a": 0.3, "b": 0.5}, shuffle=shuffle),
            metric_objects=metrics,
            config=StatsConfig(n_resamples=200),
        ).contrast("a", "b")
        for shuffle in (False, True)
    )
    assert contrast.interval == shuffled_contrast.interval


@pytest.mark.slow
def test_the_corpus_bootstrap_agrees_with_the_paired_bootstrap_of_scipy():
    results = similarity_results({"a": 0.5, "b": 0.9})
    contrast = compare_results(results, metric_objects={"Spearman": Spearman()}).contrast("a", "b")

    def difference(x, y, z):
        return stats.spearmanr(x, z).statistic - stats.spearmanr(y, z).statistic

    columns = (results[0].evidence.predicted, results[1].evidence.predicted, results[0].evidence.expected)
    expected = stats.bootstrap(
        columns, difference, paired=True, vectorized=False, method="percentile", n_resamples=1000, rng=rng(9)
    ).confidence_interval
    assert (contrast.interval.low, contrast.interval.high) == pytest.approx(expected, abs=0.03)


def test_corpus_level_metrics_without_evidence_are_not_tested():
    comparison = compare_results(similarity_results({"a": 0.3, "b": 3.0}), config=FAST_CONFIG)
    contrast = comparison.contrast("a", "b")
    assert isnan(contrast.p)
    assert contrast.difference > 0
    assert comparison.bands == {"a": (), "b": ()}
    assert comparison.tied_with_leader == ()
    assert list(comparison.untested) == ["b"]
    assert "no difference was tested" in comparison.verdict()


def test_spaces_are_subsampled_without_replacement():
    generator = rng(10)
    points = generator.normal(size=(60, 5))
    results = []
    for name, centre in (("near", 0.0), ("far", 3.0)):
        space = Space.of(points + centre)
        value = MeanCosine().measure(space).value
        results.append(result(name, {}, evidence=space, corpus={"MeanCosine": value}, ids=space.unit_ids, better=DOWN))
    comparison = compare_results(
        results, metric_objects={"MeanCosine": MeanCosine()}, config=StatsConfig(n_resamples=100)
    )
    assert comparison.contrast("near", "far").interval.method == "subsample"
    assert comparison.leader == "near"
    assert comparison.contrast("near", "far").p < 0.001
    assert comparison.ranks == {"near": (1, 1), "far": (2, 2)}


def test_the_same_seed_gives_the_same_bytes():
    results = shifted_results([0.0, 0.05, 0.1])
    first, second, other = (
        json.dumps(compare_results(results, config=replace(FAST_CONFIG, seed=seed)).to_dict()) for seed in (1, 1, 2)
    )
    assert first == second != other


def test_comparisons_without_values_serialise_to_strict_json():
    results = [result(name, np.full(4, nan)) for name in "ab"]
    comparison = compare_results(results, config=FAST_CONFIG)
    report = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert report["leader"] is None
    assert report["contrasts"][0]["p"] is None
    assert report["contrasts"][0]["reason"] == "no value is defined for both"
    assert comparison.verdict() == "Inconclusive: no system has a value of m on these 4 units."


def test_html_tables_escape_system_names():
    pair = [result("<b>&", [1.0, 0.0, 1.0]), result("plain", [0.0, 0.0, 1.0])]
    html = compare_results(pair, config=FAST_CONFIG)._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;&amp;" in html
    assert "\n" not in repr(compare_results(pair, config=FAST_CONFIG))


def verdict_of(results, **options):
    return compare_results(results, config=replace(FAST_CONFIG, **options)).verdict()


def test_verdict_of_a_significantly_best_system():
    verdict = verdict_of(shifted_results([0.0, 1.0]))
    assert verdict.startswith(
        "b is the best of 2 systems on 60 units: its m is 1.06, significantly higher than that of a "
        "(by 0.95, 95 % interval [0.83, 1.08], p < 0.001). "
    )
    assert "95 % interval [0.83, 1.08], p < 0.001). 60 units can detect differences of about" in verdict


def test_a_significant_difference_whose_interval_includes_0_is_called_borderline():
    comparison = compare_results(shifted_results([0.0, 1.0]), config=FAST_CONFIG)
    pair = replace(comparison.contrast("b", "a"), interval=Interval(-0.01, 0.22), p=0.049, adjusted=0.049)
    borderline = replace(comparison, contrasts=(pair,)).verdict()
    assert "(by 0.95, 95 % interval [-0.01, 0.22], p = 0.049). The interval includes 0:" in borderline
    assert "includes 0" not in comparison.verdict()


def test_p_is_called_adjusted_only_with_several_pairs():
    shifts = [0.0, 1.0, 2.0]
    assert "adjusted p < " in verdict_of(shifted_results(shifts))
    assert "adjusted p < " not in verdict_of(shifted_results(shifts), correction="none")
    assert "adjusted p < " not in verdict_of(shifted_results(shifts[:2]))


def test_detectable_difference_of_the_first_two_has_two_digits():
    generator = rng(4)
    base = generator.normal(size=60)
    noisy = base - 5.0 + 4.0 * generator.normal(size=60)
    verdict = verdict_of(
        [result("a", base + 1.0), result("b", base + 0.1 * generator.normal(size=60)), result("c", noisy)]
    )
    match = re.search(r"can detect differences of about ([\d.]+) or more between the first two", verdict)
    assert match is not None, verdict
    assert 0.01 < float(match.group(1)) < 0.1
    assert len(match.group(1).lstrip("0.")) == 2


def test_verdicts_use_the_given_name_of_units():
    comparison = compare_results(shifted_results([0.0, 0.05]), config=FAST_CONFIG)
    assert "on 60 nodes" in comparison.verdict("node")
    assert "unit" not in comparison.verdict("node")


def test_verdict_of_a_tie_states_the_units_needed():
    comparison = compare_results(shifted_results([0.0, 0.05], seed=10), config=FAST_CONFIG)
    verdict, contrast = comparison.verdict(), comparison.contrast(*comparison.order)
    first, second = comparison.order
    assert verdict.startswith(f"Inconclusive: {first} has the highest m on 60 units (")
    assert f"but {second} is not significantly worse. " in verdict
    assert f"would be needed to distinguish {first} from {second} with 80 % power (one test)" in verdict
    assert f"if the observed difference, {abs(contrast.difference):.2f}, is the true one." in verdict
    assert contrast.needed == units_needed(contrast.difference, contrast.sd)
    assert f"About {about(contrast.needed.value)} units would be needed" in verdict


def test_verdict_of_a_tie_does_not_state_unrealistic_numbers_of_units():
    verdict = verdict_of(shifted_results([0.0, 0.05]))
    assert "No realistic number of units would distinguish b from a (more than 20 times as many)." in verdict


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ([0.0, 0.01, 0.02], "but neither "),
        ([0.0, 0.01, 0.02, 0.03], "but none of the other 3 systems is significantly worse: "),
        ([0.0, 0.03, 0.02, -9.0], "but 2 of the other 3 systems are not significantly worse: "),
    ],
)
def test_verdict_of_a_tie_with_all_others(means, expected):
    assert expected in verdict_of(shifted_results(means))


def test_verdict_names_the_direction_of_lower_is_better():
    verdict = verdict_of(shifted_results([0.0, 0.05], better=DOWN))
    assert "a has the lowest (best) m" in verdict


def test_verdict_of_a_leader_with_tied_followers():
    verdict = verdict_of(shifted_results([0.0, 0.02, 2.0]))
    assert verdict.startswith("c is the best of 3 systems")
    assert "b and a are not significantly different: about " in verdict or "a and b are not sig" in verdict


def test_verdict_of_equal_systems():
    scores = rng(11).normal(size=20)
    verdict = verdict_of([result("a", scores), result("b", scores), result("c", scores - 3)])
    assert "a and b share the best m on 20 units" in verdict
    assert "c" not in verdict.split("share")[1].split("(")[0]
    assert "The scores of a and b are equal on every unit." in verdict


def test_verdict_of_twenty_systems_is_short():
    verdict = verdict_of(shifted_results([0.002 * index for index in range(19)] + [-5.0]))
    assert " and 1" in verdict
    assert verdict.count(". ") == 1
    assert len(verdict) < 500


def test_systems_without_a_score_are_named_but_not_ranked():
    pair = [*shifted_results([0.0, 1.0]), result("void", np.full(60, nan))]
    comparison = compare_results(pair, config=FAST_CONFIG)
    assert comparison.order[-1] == "void"
    assert comparison.bands["void"] == ()
    assert " void could not be scored." in comparison.verdict()
    verdict = verdict_of([result("a", [0.5, 0.1]), result("void", [nan, nan])])
    assert verdict == ("a is the only system with a value of m (0.30). void could not be scored.")


def test_differences_not_significant_after_correction_state_the_units_needed():
    generator = rng(12)
    base = generator.normal(size=40)
    results = [result("best", base + 0.6 + generator.normal(size=40) * 0.9)]
    results += [result(f"s{index}", base + generator.normal(size=40) * 0.9) for index in range(5)]
    comparison = compare_results(results, config=FAST_CONFIG)
    contrast = comparison.contrast("best", "s4")
    assert contrast.p < 0.05 < contrast.adjusted
    assert contrast.needed.value > contrast.n
    assert (
        "would be needed to distinguish best from s4 with 80 % power (Holm correction for 15 pairs)"
        in comparison.verdict()
    )


def test_intervals_of_differences_are_clipped_to_the_range_of_the_metric():
    metric = parse_metrics(["MRR"], evidence=Ranking)[0]
    values = {"a": [1.0, 0.1], "b": [0.2, 0.9]}
    results = [result(name, {"MRR": column}) for name, column in values.items()]
    unbounded = [result(name, {"MRR": 10 * np.array(column)}) for name, column in values.items()]
    wide, known, of_values = (
        compare_results(systems, metric_objects=metrics).contrasts[0]
        for systems, metrics in ((unbounded, {}), (results, {"MRR": metric}), (results, {}))
    )
    assert wide.interval.low < -10 < 10 < wide.interval.high
    assert (known.interval.low, known.interval.high) == (-1.0, 1.0)
    assert of_values == known
    assert isnan(known.detectable.value)


@pytest.mark.parametrize("options", [{"n_permutations": 0}, {"n_resamples": 0}, {"seed": -1}])
def test_invalid_numbers_raise_parameter_error_for_every_test(options):
    results = [result(name, {"MRR": [0.0, 1.0, 1.0]}) for name in "ab"]
    for test in ("t", "mcnemar", "randomisation"):
        with pytest.raises(ParameterError):
            compare_results(results, config=StatsConfig(test=test, **options))


@pytest.mark.parametrize("n_systems", [33, 40])
def test_clear_differences_between_many_systems_are_significant(n_systems):
    """The smallest p of 10,000 permutations, times 528 pairs, is 0.053."""
    hits = (rng(1).random((200, n_systems)) < 0.3).astype(float)
    hits[:, 0], hits[:, -1] = 1.0, 0.0
    results = [result(f"s{index:02}", column) for index, column in enumerate(hits.T)]
    comparison = compare_results(results, config=StatsConfig(n_resamples=40))
    pairs = len(comparison.contrasts)
    assert comparison.leader == "s00"
    assert comparison.tied_with_leader == ()
    assert comparison.ranks["s00"] == (1, 1)
    assert comparison.ranks[f"s{n_systems - 1:02}"] == (n_systems, n_systems)
    exact = [
        stats.binomtest(contrast.wins, contrast.wins + contrast.losses).pvalue
        if contrast.wins + contrast.losses
        else 1.0
        for contrast in comparison.contrasts
    ]
    for p, contrast in zip(exact, comparison.contrasts, strict=True):
        if p < 1e-3:
            assert np.log(contrast.p) == pytest.approx(np.log(p), abs=0.4)
    # The decisions are those of the exact test, except at the limit itself.
    adjusted = adjust(exact)
    clear = (adjusted < 0.03) | (adjusted > 0.08)
    winners = np.array([contrast.winner() is not None for contrast in comparison.contrasts])
    assert clear.sum() > 0.95 * pairs
    assert (winners == (adjusted < 0.05))[clear].all()


def test_p_does_not_depend_on_the_other_systems():
    results = shifted_results([0.0, 1.0, 0.3, 0.2])
    pair = compare_results(results[:2], config=FAST_CONFIG).contrast("a", "b")
    assert compare_results(results, config=FAST_CONFIG).contrast("a", "b").p == pair.p


@pytest.mark.parametrize("shift", [0.1, 0.2, 0.3])
def test_the_t_interval_excludes_0_if_and_only_if_the_t_test_is_significant(shift):
    for seed in range(20):
        contrast = compare_results(
            shifted_results([0.0, shift], n=12, noise=0.3, seed=seed), config=StatsConfig(test="t", n_resamples=40)
        ).contrast("a", "b")
        assert contrast.interval.covers(0.0) == (contrast.winner() is None)


def test_correlations_of_many_systems_can_be_significant():
    """The smallest p of 1,000 resamples, times 66 pairs, is 0.13."""
    results = similarity_results({f"s{index:02}": 0.05 if index == 0 else 2.0 + index for index in range(12)}, n=60)
    comparison = compare_results(results, metric_objects={"Spearman": Spearman()}, config=StatsConfig(n_resamples=1000))
    assert comparison.leader == "s00"
    assert comparison.tied_with_leader == ()


@pytest.mark.slow
def test_small_bootstrap_p_values_of_equal_systems_are_rare():
    n_small, trials = 0, 300
    for seed in range(trials):
        results = similarity_results({"a": 1.0, "b": 1.0}, n=50, seed=seed)
        (contrast,) = compare_results(
            results, metric_objects={"Spearman": Spearman()}, config=StatsConfig(n_resamples=400)
        ).contrasts
        n_small += contrast.p < 0.01
    # At a rate of 1 %, 10 and more of 300 have a probability below 0.1 %.
    assert n_small < 10
