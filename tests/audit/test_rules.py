"""Every rule flags violations only, and its bounds equal those of an exhaustive search."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from math import inf, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import digamma

from equipoise.audit.apply_rules import audit_table
from equipoise.audit.rank_rules import harmonic_number, max_mrr_given_median, mean_bounds
from equipoise.audit.relevance_rules import MAX_AP_CUTOFF, log_discount, max_ap_given_ndcg, max_recall
from equipoise.audit.table import PublishedMetric, PublishedValue, ValueRange
from equipoise.io.published.numbers import PrintedNumber


def codes(table: object, **options: object) -> list[str]:
    return [finding.code for finding in audit_table(table, **options).impossible]  # type: ignore[arg-type]


def notes(table: object, **options: object) -> list[str]:
    findings = audit_table(table, **options).findings  # type: ignore[arg-type]
    return [finding.message for finding in findings if finding.code == "EQ450"]


# ---- identities --------------------------------------------------------------------------------


def test_values_that_round_to_neighbours_are_equal() -> None:
    assert codes({"HR@1": "0.33", "P@1": "0.334"}) == []
    assert codes({"HR@1": "0.33", "P@1": "0.336"}) == ["EQ401"]


def test_two_names_of_one_metric_must_agree() -> None:
    assert codes({"Acc@1": 0.41, "HR@1": 0.41}) == []
    assert codes({"Acc@1": 0.41, "HR@1": 0.52}) == ["EQ401"]


def test_graded_ndcg_at_one_may_be_below_the_hit_rate() -> None:
    table = {"HR@1": "0.500", "nDCG@1": "0.400"}
    assert codes(table) == []
    assert codes(table, binary=True) == ["EQ401"]
    assert codes({"HR@1": "0.400", "nDCG@1": "0.500"}) == ["EQ406"]


def test_map_at_one_equals_one_of_two_denominators() -> None:
    table = {"HR@1": "0.50", "R@1": "0.20"}
    assert codes(table | {"MAP@1": "0.50"}) == []
    assert codes(table | {"MAP@1": "0.20"}) == []
    assert codes(table | {"MAP@1": "0.35"}) == ["EQ401"]


def test_with_one_relevant_item_recall_is_the_hit_rate() -> None:
    table = {"HR@5": "0.80", "R@5": "0.60", "P@5": "0.30", "MRR": "0.50", "MAP": "0.45"}
    assert codes(table) == []
    assert notes(table) == [], "the values imply several relevant items"
    assert codes(table, one_relevant=True) == ["EQ401"] * 3


# ---- cutoffs -----------------------------------------------------------------------------------


def test_decreasing_recall_is_impossible_or_a_note() -> None:
    decreasing = {"R@3": "0.61", "R@5": "0.58"}
    assert codes(decreasing | {"nDCG@5": "0.60"}) == ["EQ402"]
    assert [finding.code for finding in audit_table(decreasing).findings] == ["EQ450"]
    assert [item.code for item in audit_table(decreasing, one_relevant=True).impossible] == ["EQ402"]
    assert audit_table([decreasing | {"index": "HNSW", "QPS": 8123}]).findings == ()


@pytest.mark.parametrize("name", ["HR", "MRR", "MaxOntSim"])
def test_metrics_over_more_ranks_do_not_decrease(name: str) -> None:
    assert codes({f"{name}@3": "0.61", f"{name}@5": "0.61"}) == []
    assert codes({f"{name}@3": "0.61", f"{name}@5": "0.58"}) == ["EQ402"]


def test_mrr_at_10_is_not_above_mrr() -> None:
    assert codes({"MRR@10": "0.61", "MRR": "0.58"}) == ["EQ402"]


def test_precision_may_decrease_but_not_the_number_of_relevant_items() -> None:
    assert codes({"P@1": "0.60", "P@5": "0.12"}) == []
    assert codes({"P@1": "0.60", "P@5": "0.11"}) == ["EQ402"]
    assert codes({"P@1": "0.60", "P@2": "0.80"}) == []
    assert codes({"P@1": "0.60", "P@2": "0.82"}) == ["EQ402"]


def test_ndcg_and_capped_map_may_decrease() -> None:
    assert codes({"nDCG@1": "0.60", "nDCG@5": "0.40", "MAP@1": "0.60", "MAP@5": "0.30"}) == []
    assert codes({"MAP(norm=R)@5": "0.60", "MAP(norm=R)@10": "0.40"}) == ["EQ402"]


# ---- reciprocal ranks --------------------------------------------------------------------------


def hit_rate_value(k: int, value: float) -> PublishedValue:
    return PublishedValue(PublishedMetric("HR", k), f"HR@{k}", PrintedNumber("", value, 0.0), ValueRange(value, value))


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=4, unique=True).map(sorted),
    st.lists(st.floats(0, 1), min_size=4, max_size=4).map(sorted),
    st.sampled_from([inf, 1.0, 3.0, 10.0]),
    st.booleans(),
)
def test_bounds_from_hit_rates_equal_a_linear_programme(
    cutoffs: list[int], hit_rates: list[float], cutoff: float, logarithmic: bool
) -> None:
    def weight(rank: float) -> float:
        return log_discount(rank) if logarithmic else 1.0 / rank

    steps = [hit_rate_value(k, share) for k, share in zip(cutoffs, hit_rates, strict=False)]
    bounds = mean_bounds(steps, weight, cutoff)
    ranks = np.arange(1, 41)
    weights = np.append([weight(float(rank)) if rank <= cutoff else 0.0 for rank in ranks], 0.0)
    cutoff_rows = [np.append((ranks <= value.k).astype(float), 0.0) for value in steps]
    ones = np.ones(len(weights))
    constraints = {"A_eq": np.vstack([*cutoff_rows, ones]), "b_eq": [*(value.range.low for value in steps), 1.0]}
    maximum = -linprog(-weights, bounds=(0, 1), **constraints).fun
    minimum = linprog(weights, bounds=(0, 1), **constraints).fun
    assert bounds.high == pytest.approx(maximum, abs=1e-7)
    assert bounds.low == pytest.approx(minimum, abs=1e-7)


def test_mrr_is_bounded_by_hit_rates() -> None:
    table = {"HR@1": "0.300", "HR@5": "0.550"}
    # 0.3 + 0.25/5 = 0.35 at least, 0.3 + 0.25/2 + 0.45/6 = 0.5 at most
    assert codes(table | {"MRR": "0.349"}) == []
    assert codes(table | {"MRR": "0.348"}) == ["EQ403"]
    assert codes(table | {"MRR": "0.500"}) == []
    assert codes(table | {"MRR": "0.501"}) == ["EQ403"]
    assert codes(table | {"MRR@5": "0.427"}) == ["EQ403"]
    assert codes({"P@1": "0.70", "MRR": "0.60"}) == ["EQ403"]


def test_hit_rates_bound_the_mean_rank_of_one_relevant_item() -> None:
    table = {"HR@1": "0.50", "HR@10": "0.60", "MR": "4.0"}  # 0.5 + 0.1 x 2 + 0.4 x 11 = 5.1
    assert codes(table, one_relevant=True) == ["EQ403"]
    assert len(notes(table)) == 1
    assert codes(table | {"MR": "5.1"}, one_relevant=True) == []


def test_mrr_is_at_least_the_reciprocal_of_the_mean_rank() -> None:
    assert codes({"MR": "4.00", "MRR": "0.24"}, one_relevant=True) == ["EQ403"]
    assert codes({"MR": "4.00", "MRR": "0.25"}, one_relevant=True) == []


# ---- medians -----------------------------------------------------------------------------------


@pytest.mark.parametrize("median", [1, 1.5, 2, 3, 4.5])
def test_the_bound_of_the_median_rank_holds_for_all_ties(median: float) -> None:
    """Search all uniform groups of ranks whose mean is the median or higher."""
    groups = [range(a + 1, a + s + 1) for a in range(12) for s in range(1, 25) if a + (s + 1) / 2 >= median]
    max_reciprocal = max(np.mean([1 / rank for rank in group]) for group in groups)
    assert max_mrr_given_median(median) == pytest.approx(0.5 + max_reciprocal / 2)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12))
def test_integer_ranks_satisfy_the_bound_of_their_median(ranks: list[int]) -> None:
    table = {"MedianRank": float(np.median(ranks)), "MRR": float(np.mean([1 / rank for rank in ranks]))}
    assert codes(table | {"MR": float(np.mean(ranks))}, one_relevant=True, no_ties=True, n=len(ranks)) == []


def test_a_value_between_the_bounds_is_impossible_without_ties_only() -> None:
    table = {"Median Rank": "3.00", "MRR": "0.70"}  # 0.667 without ties, 0.728 with
    assert codes(table, one_relevant=True) == []
    assert codes(table, one_relevant=True, no_ties=True) == ["EQ404"]


def test_a_mean_rank_is_at_least_half_of_the_median() -> None:
    assert codes({"MR": "4.9", "MedianRank": "9"}) == []
    assert codes({"MR": "4.3", "MedianRank": "9"}) == ["EQ404"]


# ---- precision, recall, hits -------------------------------------------------------------------


@pytest.mark.parametrize(("k", "j"), [(1, 1), (3, 1), (3, 2), (4, 2), (4, 4)])
def test_the_bound_of_recall_given_precision_equals_an_exhaustive_search(k: int, j: int) -> None:
    """Search all pairs of units by their number of relevant items within j, within k and in total."""
    unit_values = [
        (n_at_k / k, n_at_j / relevant)
        for relevant in range(1, k + 3)
        for n_at_k in range(min(k, relevant) + 1)
        for n_at_j in range(min(j, n_at_k) + 1)
    ]
    max_recall_by_precision: dict[float, float] = {}
    for units in combinations_with_replacement(sorted(set(unit_values)), 2):
        precision, recall = np.mean(units, axis=0)
        assert recall <= max_recall(precision, k, j) + 1e-12
        max_recall_by_precision[precision] = max(max_recall_by_precision.get(precision, 0.0), recall)
    assert any(recall == pytest.approx(max_recall(p, k, j)) for p, recall in max_recall_by_precision.items())


def test_hit_rates_are_bounded_by_precision() -> None:
    assert codes({"P@5": "0.20", "HR@5": "0.20"}) == []
    assert codes({"P@5": "0.20", "HR@5": "0.18"}) == ["EQ405"]
    assert codes({"P@5": "0.12", "HR@5": "0.60"}) == []
    assert codes({"P@5": "0.12", "HR@5": "0.64"}) == ["EQ405"]
    assert codes({"R@5": "0.50", "HR@5": "0.40"}) == ["EQ405"]
    assert codes({"HR@5": "0.50", "MaxOntSim@5": "0.40"}) == ["EQ405"]
    assert codes({"R(capped)@5": "0.30", "P@5": "0.40"}) == ["EQ405"]


# ---- gains -------------------------------------------------------------------------------------


def ap_and_ndcg(relevant: int, ranks: tuple[int, ...], k: int) -> tuple[float, float]:
    n_ideal = min(k, relevant)
    average_precision = sum((index + 1) / rank for index, rank in enumerate(ranks)) / n_ideal
    ideal = sum(1 / log2(rank + 1) for rank in range(1, n_ideal + 1))
    return average_precision, sum(1 / log2(rank + 1) for rank in ranks) / ideal


@pytest.mark.parametrize("k", [2, 3, 6, 8])
def test_average_precision_is_bounded_by_ndcg_on_all_lists(k: int) -> None:
    max_ratio = 0.0
    for relevant in range(1, k + 2):
        for count in range(1, min(k, relevant) + 1):
            for ranks in combinations(range(1, k + 1), count):
                average, gain = ap_and_ndcg(relevant, ranks, k)
                assert average <= gain + 1e-12
                max_ratio = max(max_ratio, average / gain if ranks[0] > 1 else 0.0)
    assert max_ap_given_ndcg(k) == pytest.approx(max_ratio)


@pytest.mark.parametrize("k", [20, MAX_AP_CUTOFF])
def test_the_bound_of_average_precision_holds_at_large_depths(k: int) -> None:
    """Dynamic programming over ranks: the state is the number of relevant items so far."""
    for n_relevant in range(1, k + 1):
        ideal = sum(log_discount(rank) for rank in range(1, n_relevant + 1))
        for ratio, first in ((1.0, 1), (max_ap_given_ndcg(k), 2)):
            best_score = np.full(n_relevant + 1, -np.inf)
            best_score[0] = 0.0
            for rank in range(first, k + 1):
                contributions = np.arange(1, n_relevant + 1) / (n_relevant * rank) - ratio * log_discount(rank) / ideal
                best_score[1:] = np.maximum(best_score[1:], best_score[:-1] + contributions)
            assert best_score[1:].max() <= 1e-12


def test_ndcg_is_bounded_by_hit_rates_and_ranks() -> None:
    assert codes({"nDCG@10": "0.50", "HR@10": "0.45"}) == ["EQ406"]
    assert codes({"nDCG@10": "0.30", "HR@1": "0.40", "HR@10": "0.60"}, one_relevant=True) == ["EQ406"]
    assert codes({"nDCG@10": "0.30", "HR@1": "0.40", "HR@10": "0.60"}) == []
    assert codes({"nDCG@10": "0.30", "MRR@10": "0.40"}, one_relevant=True) == ["EQ406"]


# ---- granularity -------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(2, 4), st.data())
def test_every_fraction_of_n_is_possible(n: int, digits: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    assert codes({"HR@1": f"{hits / n:.{digits}f}"}, n=n, no_ties=True) == []
    assert codes({"HR@1": f"{100 * hits / n:.{digits}f}%"}, n=n, no_ties=True) == []


@given(st.integers(1, 40), st.integers(0, 1000))
def test_only_fractions_of_n_are_possible(n: int, thousandths: int) -> None:
    text = f"{thousandths / 1000:.3f}"
    possible = any(abs(hits / n - thousandths / 1000) <= 0.0005 + 1e-6 for hits in range(n + 1))
    assert (codes({"HR@1": text}, n=n, no_ties=True) == []) == possible


def test_precision_has_finer_steps() -> None:
    assert codes({"P@5": "0.333"}, n=3, no_ties=True) == []
    assert codes({"P@5": "0.350"}, n=3, no_ties=True) == ["EQ407"]


def test_with_possible_ties_granularity_is_a_note() -> None:
    assert codes({"HR@1": "0.333"}, n=10) == []
    assert notes({"HR@1": "0.333"}, n=10)[0].startswith("HR@1 0.333 cannot be a mean over 10 queries")
    assert notes([{"HR@1": "0.333", "ties": "expected", "n": 10}]) == []
    assert codes([{"HR@1": "0.333", "ties": "by_id", "n": 10}]) == ["EQ407"]


def test_means_over_seeds_have_no_steps() -> None:
    assert codes({"HR@1": "0.333 ± 0.012"}, n=10, no_ties=True) == []


# ---- F1 ----------------------------------------------------------------------------------------


def test_f1_is_at_most_the_harmonic_mean() -> None:
    assert codes({"precision": "0.50", "recall": "0.60", "f1": "0.55"}) == []
    assert codes({"precision": "0.50", "recall": "0.60", "f1": "0.57"}) == ["EQ408"]
    assert codes({"precision": "0.50", "recall": "0.60", "f1": "0.40"}) == []
    assert codes({"precision": "0.90", "recall": "0.80", "f1": "0.60"}) == ["EQ408"]
    micro = {"precision_micro": "0.50", "recall_micro": "0.60"}
    assert codes(micro | {"f1_micro": "0.50"}) == ["EQ408"]
    assert codes(micro | {"f1_macro": "0.70"}) == [], "macro and micro averages are different metrics"


def test_a_classification_report_is_read_by_its_averages() -> None:
    report = {
        "macro avg": {"precision": 0.5, "recall": 0.6, "f1-score": 0.81, "support": 30},
        "weighted avg": {"precision": 0.5, "recall": 0.6, "f1-score": 0.52, "support": 30},
        "accuracy": 0.6,
    }
    (issue,) = audit_table(report).impossible
    assert (issue.code, issue.subject) == ("EQ408", "macro avg")
    assert "F1(average=macro) 0.81" in issue.message


# ---- intervals, chance, bounds, units ----------------------------------------------------------


def test_an_interval_contains_its_estimate() -> None:
    assert codes({"MRR": "0.61 [0.58, 0.65]"}) == []
    assert codes({"MRR": "0.61 [0.63, 0.65]"}) == ["EQ409"]
    assert codes([{"MRR": 0.61, "MRR_lower": 0.63, "MRR_upper": 0.65}]) == ["EQ409"]


def test_an_interval_of_a_hit_rate_has_a_minimum_width() -> None:
    assert codes({"HR@1": "0.80 [0.71, 0.87]"}, n=100, no_ties=True) == []
    assert codes({"HR@1": "0.80 [0.79, 0.81]"}, n=100, no_ties=True) == ["EQ409"]
    assert codes({"HR@1": "0.80 [0.79, 0.81]"}, n=10_000, no_ties=True) == []
    assert codes({"HR@1": "1.00 [1.00, 1.00]"}, n=100, no_ties=True) == []


def test_random_scores_earn_the_chance_level() -> None:
    row = {
        "system": "random",
        "classes": 100,
        "Acc@1": "1.0%",
        "Acc@10": "10%",
        "MRR": "5.19%",
        "MR": "50.5",
    }
    assert codes([row]) == []
    assert codes([row | {"MRR": "21.7%"}], n=1_000) == ["EQ410"]
    assert codes([row | {"MR": "50"}]) == []
    assert codes([row | {"MR": "49.3"}], n=1_000_000) == ["EQ410"]
    assert "was not measured" in notes([row | {"MR": "49.3"}])[0]
    assert codes([row | {"system": "trained", "MRR": "21.7%"}]) == ["EQ403"]


@pytest.mark.parametrize("n", [1, 7, 9_999, 10_001, 10**9])
def test_harmonic_numbers_are_those_of_the_digamma_function(n: int) -> None:
    assert harmonic_number(n) == pytest.approx(digamma(n + 1) + np.euler_gamma, rel=1e-12)


def test_extreme_counts_and_ranks_terminate() -> None:
    audit_table([{"system": "random", "classes": 10**30, "MRR": "0.1", "nDCG": "0.2"}])
    audit_table({"MedianRank": "1e300", "MRR": "0.7"}, one_relevant=True)


def test_a_measured_random_run_may_deviate_from_chance() -> None:
    row = {"system": "random", "classes": 1000, "MRR": "0.012", "n": 50}
    assert codes([row]) == []
    assert codes([row | {"n": 100_000}]) == ["EQ410"]


@pytest.mark.parametrize(
    "table", [{"HR@1": "104%"}, {"MRR": "-0.1"}, {"mean_rank": "0.4"}, {"Spearman": "-1.2 %", "rho": "-120%"}]
)
def test_values_out_of_bounds_are_impossible(table: dict[str, str]) -> None:
    assert "EQ411" in codes(table)


def test_mixed_percentages_and_fractions_are_read_both_ways() -> None:
    audit = audit_table({"HR@1": 0.62, "HR@5": 58.0})
    assert [finding.code for finding in audit.findings] == ["EQ412"]
    assert audit.impossible == ()
    audit = audit_table({"HR@1": 0.9, "HR@3": 0.004, "HR@5": 58.0})
    assert "EQ402" in [item.code for item in audit.impossible], "0.9 % is above 0.004, and so is 0.9"


def test_a_sign_decides_the_unit() -> None:
    assert codes({"HR@1": "0.62%", "HR@5": "0.58"}) == []
    assert codes({"HR@1 (%)": "0.62", "HR@5 (%)": "0.58"}) == ["EQ402"]


# ---- blends ------------------------------------------------------------------------------------


def test_a_composite_score_is_the_weighted_sum_of_its_components() -> None:
    parts = {"relation_coherence": 0.40, "graph_density": 0.80, "clustering_coefficient": 0.10}
    assert codes(parts | {"knowledge_graph_score": 0.34}) == []
    assert codes(parts | {"knowledge_graph_score": 0.43}) == ["EQ416"], "the density is capped at 0.5"


def test_a_property_of_the_data_cannot_differ_between_systems() -> None:
    rows = [{"model": "a", "graph_density": 0.03}, {"model": "b", "graph_density": 0.07}]
    (issue,) = audit_table(rows).issues
    assert "impossible if they were measured on the same graph" in issue.message


# ---- the rows of a table -----------------------------------------------------------------------


def test_rows_of_the_same_name_are_checked_separately() -> None:
    rows = [{"model": "a", "HR@1": "0.62", "HR@5": high} for high in ("0.50", "0.70", "0.55")]
    assert codes(rows) == ["EQ402", "EQ402"]


def test_columns_of_other_data_sets_are_not_mixed() -> None:
    table = {"NQ HR@1": "0.60", "NQ HR@5": "0.70", "TREC HR@1": "0.30", "TREC HR@5": "0.20"}
    (issue,) = audit_table(table).impossible
    assert issue.subject == "TREC"


def test_chance_levels_satisfy_the_rules_of_expectations() -> None:
    assert codes([{"system": "chance", "HR@1": 0.30, "HR@5": 0.31, "MRR": 0.29}]) == []
    assert codes([{"system": "chance", "HR@1": "0.30", "HR@5": "0.28"}]) == ["EQ402"]
    assert codes([{"system": "Random", "HR@1": "0.30", "P@1": "0.20"}]) == ["EQ401"]


@pytest.mark.parametrize(("digits", "sign"), list(product((2, 3, 4), ("", "%"))))
def test_metrics_of_one_list_of_ranks_have_no_findings(digits: int, sign: str) -> None:
    ranks = [1, 1, 2, 3, 7, 12]
    scale = 100 if sign else 1
    fractions = {f"HR@{k}": sum(rank <= k for rank in ranks) / 6 for k in (1, 3, 10)} | {
        "MRR": sum(1 / rank for rank in ranks) / 6,
        "nDCG@10": sum(1 / log2(rank + 1) for rank in ranks if rank <= 10) / 6,
    }
    table = {name: f"{scale * fraction:.{digits}f}{sign}" for name, fraction in fractions.items()}
    rank_metrics = {"MR": f"{sum(ranks) / 6:.2f}", "MedianRank": "2.5"}
    assert audit_table(table | rank_metrics, n=6, one_relevant=True, no_ties=True).findings == ()


def test_text_in_a_column_of_counts_is_not_a_count() -> None:
    assert audit_table([{"model": "a", "labels": "all", "cases": "German", "MRR": 0.5}]).findings == ()


def test_fractions_with_a_unit_are_not_read_as_percent() -> None:
    estimate_fields = {"unit": "fraction", "better": "up", "interval": {}, "n": 9, "undefined": 0, "chance": 0.1}
    table = {"best_accuracy": 82.5, "estimates": [{"metric": "HR@1", "value": 0.5555555555555556} | estimate_fields]}
    audit = audit_table(table, no_ties=True)
    assert audit.findings == ()
    ranges = [str(row.values[0].range) for table in audit.tables for row in table.rows]
    assert ranges == ["0.8245 to 0.8255", "0.555556"]
