"""Ranking metrics, compared with direct implementations and with their mathematical properties."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from equipoise.config import StatsConfig
from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.ranking import Ranking
from equipoise.metrics import ranking as common_metrics
from equipoise.metrics import ranking_trec_eval
from equipoise.metrics.parser import parse_metrics
from equipoise.stats.estimate import estimate

REFERENCE_METRICS = {
    "MRR": reference.reciprocal_rank,
    "HR": reference.hit,
    "P": reference.precision,
    "R": reference.recall,
    "MAP": reference.average_precision,
    "nDCG": reference.discounted_gain,
    "MR": reference.mean_rank,
    "F1": reference.f1,
    "Rprec": reference.r_precision,
    "RBP": reference.rank_biased_precision,
    "ERR": reference.expected_reciprocal_rank,
}
BOUNDED_METRICS = [
    "MRR",
    "MAP",
    "nDCG",
    "Rprec",
    "RBP",
    "ERR",
    *(f"{name}@{k}" for name in ("MRR", "HR", "P", "R", "MAP", "nDCG", "F1", "RBP", "ERR") for k in (1, 2, 3, 10)),
]


@st.composite
def tied_unit(draw, allow_not_retrieved=True):
    """A few candidates with many equal scores, some relevant, and relevant items that were not retrieved."""
    size = draw(st.integers(1, 6))
    scores = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=size, max_size=size))
    gains = draw(st.lists(st.sampled_from([None, 1.0, 2.0, 3.0]), min_size=size, max_size=size))
    not_retrieved = draw(st.lists(st.sampled_from([1.0, 3.0]), max_size=2 if allow_not_retrieved else 0))
    if not not_retrieved and not any(gains):
        gains[draw(st.integers(0, size - 1))] = 1.0
    return scores, gains, not_retrieved


def ranking_of(scores, gains, not_retrieved) -> Ranking:
    run = {f"d{i}": score for i, score in enumerate(scores)}
    judgements = {f"d{i}": gain for i, gain in enumerate(gains) if gain is not None}
    judgements |= {f"missing{i}": gain for i, gain in enumerate(not_retrieved)}
    return Ranking.from_runs({"q": judgements}, {"q": run})


def value(metric: str, ranking: Ranking) -> float:
    return parse_metrics(metric)[0].measure(ranking).value


@given(tied_unit(), st.sampled_from(BOUNDED_METRICS))
def test_tied_scores_earn_the_mean_over_all_orders(unit, metric):
    scores, gains, not_retrieved = unit
    (parsed,) = parse_metrics(metric)
    expected = reference.expected(
        lambda order: REFERENCE_METRICS[parsed.symbol](order, not_retrieved, getattr(parsed, "k", None)), scores, gains
    )
    assert value(metric, ranking_of(*unit)) == pytest.approx(expected, abs=1e-12)


@given(tied_unit(allow_not_retrieved=False))
def test_mean_rank_of_tied_scores_is_the_mean_over_all_orders(unit):
    scores, gains, _ = unit
    expected = reference.expected(lambda order: reference.mean_rank(order, [], None), scores, gains)
    assert value("MR(over=units)", ranking_of(*unit)) == pytest.approx(expected, abs=1e-12)


@given(tied_unit(), st.sampled_from(BOUNDED_METRICS))
def test_optimistic_and_pessimistic_orders_are_the_bounds_over_all_orders(unit, metric):
    scores, gains, not_retrieved = unit
    (parsed,) = parse_metrics(metric)
    low, high = reference.extremes(
        lambda order: REFERENCE_METRICS[parsed.symbol](order, not_retrieved, getattr(parsed, "k", None)), scores, gains
    )
    ranking = ranking_of(*unit)
    assert value(metric, ranking.ordered("optimistic")) == pytest.approx(high, abs=1e-12)
    assert value(metric, ranking.ordered("pessimistic")) == pytest.approx(low, abs=1e-12)


@given(tied_unit(), st.sampled_from(BOUNDED_METRICS))
def test_a_constant_scorer_earns_the_chance_level(unit, metric):
    scores, gains, _ = unit
    if not any(gains):
        return
    ranking = ranking_of([0.0] * len(scores), gains, [])
    chance = parse_metrics(metric)[0].chance(ranking, np.random.default_rng(0))
    assert value(metric, ranking) == pytest.approx(chance, abs=1e-12)


@cache
def ranking_and_shuffles() -> tuple[Ranking, list[Ranking]]:
    """A ranking of 100 units and 400 shuffles of it, for all metrics."""
    rng = np.random.default_rng(1)
    gains = [[3.0, 1.0, 1.0], [2.0, 0.0, 0.0]] * 50
    ranking = Ranking.from_lists(np.tile(np.arange(12), (100, 1)), np.tile([0, 5, 9], (100, 1)), gains=np.array(gains))
    return ranking, [ranking.shuffled(rng) for _ in range(400)]


@pytest.mark.parametrize("metric", [*BOUNDED_METRICS, "MR", "MR(over=units)", "nDCG(gain=exp)@3", "R(capped)@2"])
def test_the_exact_chance_level_is_the_mean_over_shuffled_evidence(metric):
    ranking, shuffles = ranking_and_shuffles()
    (parsed,) = parse_metrics(metric)
    values = [parsed.measure(shuffle).value for shuffle in shuffles]
    error = np.std(values) / np.sqrt(len(values))
    assert parsed.chance(ranking, np.random.default_rng(0)) == pytest.approx(np.mean(values), abs=4 * error)


def test_chance_of_truncated_lists_is_the_mean_over_shuffled_lists():
    rng = np.random.default_rng(2)
    ranking = Ranking.from_lists([[1, 2, 3]] * 200, [[1, 77]] * 200, corpus_size=10)
    shuffles = [ranking.shuffled(rng) for _ in range(300)]
    for metric in ("R@5", "MRR", "nDCG@5", "HR@2", "MAP@5"):
        (parsed,) = parse_metrics(metric)
        shuffled = [parsed.measure(shuffle).value for shuffle in shuffles]
        error = np.std(shuffled) / np.sqrt(len(shuffled))
        assert parsed.chance(ranking, rng) == pytest.approx(np.mean(shuffled), abs=4 * error)


@given(st.integers(1, 400))
def test_chance_mrr_of_n_candidates_is_the_nth_harmonic_number_over_n(n):
    ranking = Ranking.from_ranks([1], candidates=n)
    (mrr,) = parse_metrics("MRR")
    (accuracy,) = parse_metrics("Acc@1")
    rng = np.random.default_rng(0)
    assert mrr.chance(ranking, rng) == pytest.approx(sum(1 / r for r in range(1, n + 1)) / n, rel=1e-12)
    assert accuracy.chance(ranking, rng) == pytest.approx(1 / n, rel=1e-12)


def test_chance_mrr_of_1187_candidates_is_0_645_percent():
    chance = parse_metrics("MRR")[0].chance(Ranking.from_ranks([1], candidates=1187), np.random.default_rng(0))
    assert round(100 * chance, 3) == 0.645


@st.composite
def untied_rankings(draw):
    """Several units with distinct scores."""
    units = draw(st.integers(1, 5))
    lists, relevant = [], []
    for _ in range(units):
        depth = draw(st.integers(0, 12))
        lists.append(draw(st.permutations(range(depth))))
        relevant.append(draw(st.lists(st.integers(0, 15), min_size=1, max_size=6, unique=True)))
    return Ranking.from_lists(lists, relevant)


@given(untied_rankings())
def test_p_hr_mrr_and_ndcg_at_1_agree(ranking):
    precision = value("P@1", ranking)
    for metric in ("HR@1", "MRR@1", "nDCG@1"):
        assert value(metric, ranking) == pytest.approx(precision, abs=1e-12)


@given(untied_rankings(), st.integers(1, 12))
def test_hit_rate_and_recall_do_not_decrease_with_the_cutoff(ranking, k):
    for metric in ("HR", "R"):
        assert (
            parse_metrics(f"{metric}@{k}")[0].per_unit(ranking)
            <= parse_metrics(f"{metric}@{k + 1}")[0].per_unit(ranking)
        ).all()


@given(untied_rankings())
def test_hit_rate_at_1_does_not_exceed_the_reciprocal_rank(ranking):
    assert (parse_metrics("HR@1")[0].per_unit(ranking) <= parse_metrics("MRR")[0].per_unit(ranking)).all()


@given(st.lists(st.integers(1, 50), min_size=1), st.integers(1, 50))
def test_map_is_mrr_and_ndcg_is_the_discount_for_one_relevant_item(ranks, k):
    ranking = Ranking.from_ranks(ranks, candidates=50)
    np.testing.assert_allclose(
        parse_metrics(f"MAP@{k}")[0].per_unit(ranking), parse_metrics(f"MRR@{k}")[0].per_unit(ranking)
    )
    discount = [1 / np.log2(rank + 1) if rank <= k else 0.0 for rank in ranks]
    np.testing.assert_allclose(parse_metrics(f"nDCG@{k}")[0].per_unit(ranking), discount)


@given(untied_rankings(), st.integers(1, 12))
@settings(max_examples=50)
def test_every_metric_stays_within_its_declared_bounds(ranking, k):
    for kind in (*common_metrics.METRICS, *ranking_trec_eval.METRICS):
        if kind.symbol in ("MR", "MedianRank", "MaxOntSim"):  # MaxOntSim needs similarities of retrieved items
            continue
        metric = kind(k=k) if "k" in kind.__dataclass_fields__ else kind()
        low, high = metric.bounds
        values = metric.per_unit(ranking)
        values = values[~np.isnan(values)]  # Judged is undefined where nothing was retrieved
        assert ((values >= low) & (values <= high + 1e-12)).all(), metric


@given(tied_unit(), st.sampled_from(BOUNDED_METRICS), st.randoms())
def test_expected_values_do_not_depend_on_input_order_or_ids(unit, metric, random):
    scores, gains, not_retrieved = unit
    order = list(range(len(scores)))
    random.shuffle(order)
    permuted = ranking_of([scores[i] for i in order], [gains[i] for i in order], not_retrieved)
    assert value(metric, permuted) == pytest.approx(value(metric, ranking_of(*unit)), abs=1e-12)


def test_units_without_relevant_items_are_excluded_from_the_mean():
    ranking = Ranking.from_runs({"a": {"x": 1}, "b": {"x": 0}}, {"a": {"x": 1.0}, "b": {"x": 1.0}})
    for metric in BOUNDED_METRICS:
        values = parse_metrics(metric)[0].per_unit(ranking)
        assert not np.isnan(values[0])
        assert np.isnan(values[1])
        assert value(metric, ranking) == values[0]


def test_units_missing_from_the_run_score_zero():
    ranking = Ranking.from_runs({"a": {"x": 1}, "b": {"x": 1}}, {"a": {"x": 1.0}})
    for metric in BOUNDED_METRICS:
        assert parse_metrics(metric)[0].per_unit(ranking)[1] == 0.0


def test_medians_and_means_exclude_the_same_units():
    scores = np.array([[0.9, 0.5, 0.1], [0.2, 0.3, 0.4]])
    ranking = Ranking.from_scores(scores, [[0], []])
    result = estimate(
        ranking, parse_metrics(["MR", "MedianRank", "MedianRank(over=units)"]), config=StatsConfig(n_resamples=20)
    )
    assert {(metric_estimate.n, metric_estimate.undefined) for metric_estimate in result.estimates.values()} == {(1, 1)}


def test_mean_and_median_rank_of_truncated_lists_raise_undefined_error():
    ranking = Ranking.from_lists([[1, 2]], [[7]])
    for metric in ("MR", "MedianRank", "MedianRank(over=units)"):
        with pytest.raises(UndefinedError):
            value(metric, ranking)


def test_filtered_ranks_ignore_the_other_relevant_items():
    ranking = Ranking.from_lists([[1, 2, 3, 4, 5]], [[1, 2, 5]])
    assert value("MR", ranking) == pytest.approx((1 + 2 + 5) / 3)
    assert value("MR(filtered)", ranking) == pytest.approx((1 + 1 + 3) / 3)
    assert value("MedianRank(filtered)", ranking) == 1


def test_filtered_ranks_exclude_tied_relevant_items():
    run = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.5, "e": 2.0}
    ranking = Ranking.from_runs({"q": {"a": 1, "b": 1, "e": 1}}, {"q": run})
    filtered = ranking.with_filtered_ranks()
    np.testing.assert_array_equal(filtered.above, [0, 0, 0])
    np.testing.assert_array_equal(filtered.tied, [0, 1, 1])
    with pytest.raises(UndefinedError, match="filtered"):
        value("nDCG@3", filtered)


def test_published_example_values():
    assert value("MRR", Ranking.from_ranks([2, 1, 5], candidates=9)) == pytest.approx(0.567, abs=5e-4)
    assert value("nDCG@10", Ranking.from_ranks([1, 3, 7, 15], candidates=20)) == pytest.approx(0.458, abs=5e-4)
    ranking = Ranking.from_lists([[1, 2, 3, 4, 5]], [[1, 4, 5]])
    assert value("AP@5", ranking) == pytest.approx(0.7)
    assert value("P@5", ranking) == pytest.approx(0.6)


def test_chance_mean_rank_is_half_the_candidates():
    ranking = Ranking.from_ranks([1] * 10, candidates=199)
    assert parse_metrics("MR")[0].chance(ranking, np.random.default_rng(0)) == 100.0


def test_max_similarity_is_one_for_a_hit_and_the_best_near_item_otherwise():
    relevant = Ranking.from_lists([[1, 2, 3], [4, 5, 6]], [[3], [9]])
    near = Ranking.from_lists([[1, 2, 3], [4, 5, 6]], [[1, 2], [5, 6]], gains=[[0.2, 0.6], [0.3, 0.8]])
    ranking = relevant.with_near(near)
    np.testing.assert_allclose(parse_metrics("MaxOntSim@1")[0].per_unit(ranking), [0.2, 0.0])
    np.testing.assert_allclose(parse_metrics("MaxOntSim@2")[0].per_unit(ranking), [0.6, 0.3])
    np.testing.assert_allclose(parse_metrics("MaxOntSim@3")[0].per_unit(ranking), [1.0, 0.8])


@given(tied_unit(), st.integers(1, 6))
def test_max_similarity_of_tied_scores_is_the_mean_over_all_orders(unit, k):
    scores, gains, _ = unit
    similarities = [None if gain is None else gain / 4 for gain in gains]
    run = {"q": {f"d{i}": score for i, score in enumerate(scores)}}
    near = Ranking.from_runs({"q": {f"d{i}": s for i, s in enumerate(similarities) if s is not None and i}}, run)
    ranking = Ranking.from_runs({"q": {"d0": 1}}, run).with_near(near)
    values = [1.0, *similarities[1:]]
    expected = reference.expected(lambda order: max([g or 0.0 for g in order[:k]]), scores, values)
    assert value(f"MaxOntSim@{k}", ranking) == pytest.approx(expected, abs=1e-12)


def test_cutoffs_beyond_every_list_change_nothing():
    ranking = Ranking.from_lists([[1, 2, 3]], [[3, 9]])
    assert value("nDCG@2000000000", ranking) == value("nDCG", ranking)
    with pytest.raises(ParameterError):
        parse_metrics("nDCG@100000000000000000000000")
