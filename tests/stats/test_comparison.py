"""Comparisons: pairing by id, honest families, bands, and verdicts that read as they should."""

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
from equipoise.stats.intervals import Interval
from equipoise.stats.pairing import compare_results
from equipoise.stats.result import Estimate, Result
from equipoise.types import Direction

UP, DOWN = Direction.UP, Direction.DOWN
FAST = StatsConfig(n_permutations=999, n_resamples=300)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def result(system, per_unit, *, better=UP, ids=None, weights=None, clusters=None, evidence=None, corpus=None):
    """A result made of per-unit columns (a bare column is called m) and corpus-level figures."""
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


def shifted(shifts, *, n=60, noise=0.3, seed=0, **options):
    """Systems a, b, c, ... that share the difficulty of the units and differ by what is given."""
    draw = rng(seed)
    difficulty = draw.normal(size=n)
    return [
        result(chr(ord("a") + at), difficulty + shift + noise * draw.normal(size=n), **options)
        for at, shift in enumerate(shifts)
    ]


def test_one_system_is_no_comparison():
    with pytest.raises(ParameterError):
        compare_results(shifted([0.0]))


def test_two_results_of_one_name_are_refused():
    with pytest.raises(DuplicateError, match="'a'"):
        compare_results([result("a", [1.0, 0.0]), result("a", [0.0, 0.0])])


def test_unequal_unit_sets_are_refused_with_the_difference():
    one = result("one", np.zeros(9), ids=[f"q{at}" for at in range(9)])
    two = result("two", np.zeros(3), ids=["q1", "q2", "x"])
    with pytest.raises(PairingError, match=r"7 only.*1 only") as caught:
        compare_results([one, two])
    assert caught.value.excerpt == "only in one: q0, q3, q4, q5, q6 and 2 more\nonly in two: x"


def test_a_unit_that_stands_twice_is_named():
    with pytest.raises(DuplicateError, match="unit 'q1'"):
        compare_results([result("a", [1.0, 0.0], ids=["q1", "q1"]), result("b", [1.0, 0.0], ids=["q1", "q2"])])


def test_the_same_units_in_another_order_are_paired_by_id():
    first, second = shifted([0.0, 0.2])
    order = rng(1).permutation(60)
    turned = result("b", second.per_unit["m"][order], ids=order)
    straight, crossed = (compare_results([first, other], config=FAST) for other in (second, turned))
    assert straight.contrasts == crossed.contrasts
    assert (straight.scores, straight.ranks, straight.bands) == (crossed.scores, crossed.ranks, crossed.bands)


def test_a_contrast_agrees_with_scipy_and_with_counting():
    first, second = shifted([0.0, 0.1], n=150)
    comparison = compare_results([first, second], config=StatsConfig(test="t", n_resamples=4000))
    seen = comparison.contrast("a", "b")
    x, y = first.per_unit["m"], second.per_unit["m"]
    assert seen.difference == pytest.approx((x - y).mean())
    assert seen.p == pytest.approx(stats.ttest_rel(x, y).pvalue)
    assert (seen.wins, seen.ties, seen.losses) == ((x > y).sum(), 0, (x < y).sum())
    oracle = stats.bootstrap((x - y,), np.mean, n_resamples=4000, rng=rng(2)).confidence_interval
    assert (seen.interval.low, seen.interval.high) == pytest.approx(oracle, abs=0.01)
    assert seen.interval.method == "gaffke"


@pytest.mark.parametrize(
    ("differences", "reason"),
    [
        (np.zeros(9), "all values are equal"),
        (np.full(9, 0.1), "all values are equal"),
        (np.r_[0.5, np.full(8, nan)], "one unit"),
        (np.full(9, nan), "no defined value"),
    ],
)
def test_an_interval_that_nothing_supports_is_unknown_and_not_of_width_zero(differences, reason):
    pair = [result("a", differences + 0.3), result("b", np.full(9, 0.3))]
    assert compare_results(pair, config=FAST).contrast("a", "b").interval.reason == reason


@pytest.mark.parametrize("n", [50, 400])
def test_intervals_of_sparse_differences_cover_what_they_should(n):
    draw, systems = rng(13), 500
    moved = draw.random((n, systems)) < 0.3
    signs = np.where(draw.random((n, systems)) < 0.6, 1.0, -1.0)
    columns = {f"m{at}": column for at, column in enumerate((moved * signs * draw.exponential(size=moved.shape)).T)}
    pair = [result("a", columns), result("b", {name: np.zeros(n) for name in columns})]
    comparison = compare_results(pair, config=StatsConfig(n_permutations=10, n_resamples=2000))
    covered = np.mean([contrast.interval.covers(0.3 * 0.2) for contrast in comparison.contrasts])
    assert 0.93 <= covered <= 0.99


def test_a_contrast_reads_the_same_from_both_sides():
    seen = compare_results(shifted([0.0, 0.4]), config=FAST).contrast("a", "b")
    turned = seen.reversed()
    assert turned.difference == -seen.difference
    assert turned.interval.low == -seen.interval.high
    assert (turned.wins, turned.losses) == (seen.losses, seen.wins)
    assert turned.reversed() == seen


def test_wins_follow_the_direction_of_the_metric():
    pair = [
        result("a", [1.0, 2.0, 3.0, 0.3], better=DOWN),
        result("b", [2.0, 2.0, 9.0, 0.1 * 3], better=DOWN),
    ]
    seen = compare_results(pair, config=FAST).contrast("a", "b")
    assert (seen.wins, seen.ties, seen.losses) == (2, 2, 0)


def test_a_metric_that_happens_to_be_won_or_tied_everywhere_is_no_share_of_hits():
    a, b = np.zeros(50), np.zeros(50)
    a[:3] = 1.0
    seen = compare_results([result("a", a), result("b", b)], config=FAST).contrast("a", "b")
    assert seen.p > 0.05
    assert seen.interval.low < 0 < seen.interval.high


def test_the_family_is_all_pairs_of_the_metric():
    comparison = compare_results(shifted([0.0, 0.08, 0.16]), config=FAST)
    assert comparison.family == "Holm over the 3 pairs on m"
    p = sorted(contrast.p for contrast in comparison.contrasts)
    adjusted = sorted(contrast.adjusted for contrast in comparison.contrasts)
    assert adjusted[0] == pytest.approx(min(1.0, 3 * p[0]))
    assert compare_results(shifted([0.0, 1.0]), config=FAST).family == "one pair on m, so no correction"


def test_every_metric_has_a_family_of_its_own():
    draw = rng(3)
    three = [result(name, {"m": draw.normal(size=20), "k": draw.normal(size=20)}) for name in "abc"]
    comparison = compare_results(three, config=replace(FAST, correction="bh"))
    assert comparison.families == {
        "m": "Benjamini-Hochberg over the 3 pairs on m",
        "k": "Benjamini-Hochberg over the 3 pairs on k",
    }
    alone = compare_results(three, metrics=["k"], config=replace(FAST, correction="bh"))
    for pair in ("ab", "ac", "bc"):
        assert alone.contrast(*pair) == comparison.contrast(*pair, "k")


def test_leader_bands_and_ranks_of_clearly_separate_systems():
    comparison = compare_results(shifted([0.0, 2.0, 1.0]), config=FAST)
    assert comparison.leader == "b"
    assert comparison.order == ("b", "c", "a")
    assert comparison.bands == {"a": ("c",), "b": ("a",), "c": ("b",)}
    assert comparison.ranks == {"a": (3, 3), "b": (1, 1), "c": (2, 2)}
    turned = compare_results(shifted([0.0, 2.0, 1.0], better=DOWN), config=FAST)
    assert turned.leader == "a"
    assert turned.bands == {"a": ("a",), "b": ("c",), "c": ("b",)}


def test_a_unit_undefined_in_either_system_is_left_out_and_counted():
    a, b = np.arange(10.0), np.arange(10.0) / 2
    a[1], b[7] = nan, nan
    comparison = compare_results([result("a", a), result("b", b)], config=FAST)
    seen = comparison.contrast("a", "b")
    assert (seen.n, seen.undefined) == (8, 2)
    assert seen.difference == pytest.approx(np.nanmean(a - b))
    # The scores behind the order are on those eight units as well.
    assert comparison.scores["a"] - comparison.scores["b"] == pytest.approx(seen.difference)


def test_weights_make_the_difference_the_one_of_the_weighted_means():
    a, b, weights = rng(4).normal(size=12), rng(5).normal(size=12), np.arange(1.0, 13.0)
    pair = [result("a", a, weights={"m": weights}), result("b", b, weights={"m": weights})]
    comparison = compare_results(pair, config=FAST)
    expected = np.average(a, weights=weights) - np.average(b, weights=weights)
    assert comparison.contrast("a", "b").difference == pytest.approx(expected)
    assert comparison.scores["a"] == pytest.approx(np.average(a, weights=weights))
    other = result("b", b, weights={"m": weights[::-1]})
    with pytest.raises(PairingError):
        compare_results([pair[0], other], config=FAST)


def test_clusters_widen_interval_and_p():
    a, b = rng(6).normal(0.35, 1, size=12), np.zeros(12)
    copies, labels = 6, np.repeat(np.arange(12), 6)
    plain, clustered = (
        compare_results(
            [
                result("a", np.repeat(a, copies), clusters=given),
                result("b", np.repeat(b, copies), clusters=given),
            ],
            config=FAST,
        )
        for given in (None, labels)
    )
    once = compare_results([result("a", a), result("b", b)], config=FAST).contrast("a", "b")
    assert clustered.clusters == 12
    assert clustered.contrast("a", "b").p == pytest.approx(once.p)
    assert clustered.contrast("a", "b").interval.width > 2 * plain.contrast("a", "b").interval.width
    assert clustered.contrast("a", "b").detectable.value == pytest.approx(once.detectable.value)
    assert clustered.contrast("a", "b").needed.value == pytest.approx(copies * once.needed.value, abs=copies)


def test_clusters_that_disagree_are_refused():
    with pytest.raises(PairingError):
        compare_results(
            [
                result("a", np.zeros(3), clusters=np.array([1, 1, 2])),
                result("b", np.zeros(3), clusters=np.array([1, 2, 2])),
            ]
        )


def test_a_test_that_the_primary_cannot_take_is_refused_and_elsewhere_leaves_a_gap():
    draw = rng(7)
    pair = [result(name, {"hit": draw.integers(0, 2, size=30), "graded": draw.normal(size=30)}) for name in "ab"]
    with pytest.raises(UndefinedError):
        compare_results(pair, primary="graded", config=replace(FAST, test="mcnemar"))
    comparison = compare_results(pair, config=replace(FAST, test="mcnemar"))
    assert comparison.contrast("a", "b").p > 0
    gap = comparison.contrast("a", "b", "graded")
    assert isnan(gap.p)
    assert gap.reason == "McNemar's exact test needs hits and misses"
    assert gap.interval.known


def test_unknown_names_get_an_offer():
    pair = shifted([0.0, 1.0])
    with pytest.raises(UnknownNameError, match="nDCG"):
        compare_results(pair, metrics=["nDCG"])
    for bad in ({"test": "tee"}, {"correction": "holms"}):
        with pytest.raises(UnknownNameError):
            compare_results(pair, config=StatsConfig(**bad))
    comparison = compare_results(pair, config=FAST)
    with pytest.raises(UnknownNameError, match="system"):
        comparison.contrast("a", "z")
    with pytest.raises(ParameterError, match="itself"):
        comparison.contrast("a", "a")
    with pytest.raises(ParameterError, match="confidence_level"):
        compare_results(pair, config=StatsConfig(confidence_level=95))


def similarity_results(quality, *, n=80, seed=8, shuffle=False):
    """Systems whose predictions correlate with the truth as well as is asked."""
    draw = rng(seed)
    truth = draw.normal(size=n)
    results = []
    for name, noise in quality.items():
        evidence = Pairs.of(truth + noise * draw.normal(size=n), truth)
        if shuffle and results:
            evidence = evidence.take(draw.permutation(n))
        value = Spearman().measure(evidence).value
        results.append(result(name, {}, evidence=evidence, corpus={"Spearman": value}, ids=evidence.unit_ids))
    return results


def test_a_corpus_level_metric_is_compared_through_its_evidence():
    metrics = {"Spearman": Spearman()}
    results = similarity_results({"good": 0.3, "fair": 0.31, "poor": 3.0})
    comparison = compare_results(results, metric_objects=metrics, config=StatsConfig(n_resamples=400))
    assert comparison.leader == "good"
    close, far = comparison.contrast("good", "fair"), comparison.contrast("good", "poor")
    assert close.adjusted > 0.05 > far.adjusted >= 2 / 401
    assert far.interval.low > 0
    assert far.interval.method == "paired bootstrap"
    assert comparison.bands == {"good": ("a",), "fair": ("a",), "poor": ("b",)}
    assert comparison.ranks["poor"] == (3, 3)


def test_corpus_level_evidence_is_paired_by_id_too():
    metrics = {"Spearman": Spearman()}
    straight, crossed = (
        compare_results(
            similarity_results({"a": 0.3, "b": 0.5}, shuffle=shuffle),
            metric_objects=metrics,
            config=StatsConfig(n_resamples=200),
        ).contrast("a", "b")
        for shuffle in (False, True)
    )
    assert straight.interval == crossed.interval


@pytest.mark.slow
def test_the_corpus_bootstrap_agrees_with_scipys_paired_one():
    results = similarity_results({"a": 0.5, "b": 0.9})
    seen = compare_results(results, metric_objects={"Spearman": Spearman()}).contrast("a", "b")

    def difference(x, y, z):
        return stats.spearmanr(x, z).statistic - stats.spearmanr(y, z).statistic

    columns = (results[0].evidence.predicted, results[1].evidence.predicted, results[0].evidence.expected)
    oracle = stats.bootstrap(
        columns, difference, paired=True, vectorized=False, method="percentile", n_resamples=1000, rng=rng(9)
    ).confidence_interval
    assert (seen.interval.low, seen.interval.high) == pytest.approx(oracle, abs=0.03)


def test_a_corpus_level_metric_without_its_evidence_is_listed_and_not_tested():
    comparison = compare_results(similarity_results({"a": 0.3, "b": 3.0}), config=FAST)
    seen = comparison.contrast("a", "b")
    assert isnan(seen.p)
    assert seen.difference > 0
    assert comparison.bands == {"a": ("a",), "b": ("a",)}
    assert comparison.verdict().endswith("There is no test of a against b: a corpus-level metric without its evidence.")


def test_spaces_are_halved_and_never_repeat_a_point():
    draw = rng(10)
    points = draw.normal(size=(60, 5))
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


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_ones():
    results = shifted([0.0, 0.05, 0.1])
    first, again, other = (
        json.dumps(compare_results(results, config=replace(FAST, seed=seed)).to_dict()) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_everything_is_plain_json_even_when_nothing_is_known():
    nothing = [result(name, np.full(4, nan)) for name in "ab"]
    comparison = compare_results(nothing, config=FAST)
    plain = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert plain["leader"] is None
    assert plain["contrasts"][0]["p"] is None
    assert plain["contrasts"][0]["reason"] == "no unit is defined for both"
    assert comparison.verdict() == "Not decided: no system has a value of m on these 4 units."


def test_tables_escape_the_names_that_people_choose():
    pair = [result("<b>&", [1.0, 0.0, 1.0]), result("plain", [0.0, 0.0, 1.0])]
    html = compare_results(pair, config=FAST)._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;&amp;" in html
    assert "\n" not in repr(compare_results(pair, config=FAST))


def verdict(results, **options):
    return compare_results(results, config=replace(FAST, **options)).verdict()


def test_a_clear_winner_is_named_with_how_sure_that_is():
    said = verdict(shifted([0.0, 1.0]))
    assert said.startswith(
        "b is the best of 2 systems on 60 units: its m is 1.06, significantly higher than that of a "
        "(by 0.95, 95 % interval [0.83, 1.08], adjusted p 0.001). "
    )
    assert "All pairs are significantly different; 60 units can show" in said


def test_what_can_be_shown_is_that_of_the_leading_pair_in_two_digits():
    draw = rng(4)
    base = draw.normal(size=60)
    noisy = base - 5.0 + 4.0 * draw.normal(size=60)
    said = verdict([result("a", base + 1.0), result("b", base + 0.1 * draw.normal(size=60)), result("c", noisy)])
    shown = re.search(r"can show differences of about ([\d.]+) or more between the first two", said)
    assert shown is not None, said
    assert 0.01 < float(shown.group(1)) < 0.1
    assert len(shown.group(1).lstrip("0.")) == 2


def test_units_have_the_name_of_what_they_are():
    comparison = compare_results(shifted([0.0, 0.05]), config=FAST)
    assert "on 60 nodes" in comparison.verdict("node")
    assert "unit" not in comparison.verdict("node")


def test_a_tie_is_called_one_and_says_how_many_units_would_decide_it():
    said = verdict(shifted([0.0, 0.05]))
    seen = compare_results(shifted([0.0, 0.05]), config=FAST).contrast("b", "a")
    assert said.startswith("Not decided: b has the highest m on 60 units (")
    assert "but a is not significantly worse. " in said
    assert "would be needed to distinguish b from a with 80 % power (one test)" in said
    assert f"if the observed difference, {abs(seen.difference):.3f}, is the true one." in said
    assert seen.needed.value == pytest.approx(97_000, abs=500)
    assert "About 97,000 units would be needed to distinguish b from a" in said


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ([0.0, 0.01, 0.02], "but neither of the other two is significantly worse: "),
        ([0.0, 0.01, 0.02, 0.03], "but none of the other 3 systems is significantly worse: "),
        ([0.0, 0.03, 0.02, -9.0], "but 2 of the other 3 systems are not significantly worse: "),
    ],
)
def test_a_tie_with_all_others_is_said_as_such(means, expected):
    assert expected in verdict(shifted(means))


def test_lower_is_better_is_said():
    said = verdict(shifted([0.0, 0.05], better=DOWN))
    assert "a has the lowest (best) m" in said


def test_a_leader_with_a_tie_behind_it():
    said = verdict(shifted([0.0, 0.02, 2.0]))
    assert said.startswith("c is the best of 3 systems")
    assert "b and a are not significantly different: about " in said or "a and b are not sig" in said


def test_equal_systems_share_the_best_score():
    same = rng(11).normal(size=20)
    said = verdict([result("a", same), result("b", same), result("c", same - 3)])
    assert "a and b share the best m on 20 units" in said
    assert "c" not in said.split("share")[1].split("(")[0]
    assert "The scores of a and b are equal on every unit." in said


def test_twenty_systems_are_summed_up():
    said = verdict(shifted([0.01 * at for at in range(19)] + [-5.0]))
    assert " and 1" in said
    assert said.count(". ") == 1
    assert len(said) < 500


def test_a_system_without_a_score_is_named_and_not_ranked():
    pair = [*shifted([0.0, 1.0]), result("void", np.full(60, nan))]
    comparison = compare_results(pair, config=FAST)
    assert comparison.order[-1] == "void"
    assert comparison.bands["void"] == ()
    assert " void could not be scored." in comparison.verdict()
    lonely = verdict([result("a", [0.5, 0.1]), result("void", [nan, nan])])
    assert lonely == ("a is the only system with a value of m (0.30). void could not be scored.")


def test_a_difference_that_only_the_correction_hides_is_explained():
    draw = rng(12)
    base = draw.normal(size=40)
    many = [result("best", base + 0.6 + draw.normal(size=40) * 0.9)]
    many += [result(f"s{at}", base + draw.normal(size=40) * 0.9) for at in range(5)]
    comparison = compare_results(many, config=FAST)
    nearest = comparison.contrast("best", "s4")
    assert nearest.p < 0.05 < nearest.adjusted
    assert nearest.needed.value > nearest.n
    assert "would be needed to distinguish best from s4 with 80 % power (Holm over 15 pairs)" in comparison.verdict()


def test_a_difference_stays_within_reach_of_the_metric():
    metric = parse_metrics(["MRR"], evidence=Ranking)[0]
    results = [result(name, {"MRR": values}) for name, values in (("a", [1.0, 0.1]), ("b", [0.2, 0.9]))]
    free = compare_results(results).contrasts[0].interval
    clipped = compare_results(results, metric_objects={"MRR": metric}).contrasts[0].interval
    assert free.low < -1 < 1 < free.high
    assert (clipped.low, clipped.high) == (-1.0, 1.0)


@pytest.mark.parametrize("options", [{"n_permutations": 0}, {"n_resamples": 0}, {"seed": -1}])
def test_numbers_that_make_no_sense_are_refused_whatever_the_test(options):
    results = [result(name, {"MRR": [0.0, 1.0, 1.0]}) for name in "ab"]
    for test in ("t", "mcnemar", "randomisation"):
        with pytest.raises(ParameterError):
            compare_results(results, config=StatsConfig(test=test, **options))
