"""Every law accuses what breaks it, stops at what barely fits, and its bounds are those of slow search."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from math import inf, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import digamma

from equipoise.audit.audit import audit_table
from equipoise.audit.rank_rules import harmonic_number, max_mrr_given_median, mean_bounds
from equipoise.audit.relevance_rules import MAX_AP_CUTOFF, log_discount, max_ap_given_ndcg, max_recall
from equipoise.audit.table import PublishedMetric, PublishedValue, ValueRange
from equipoise.io.published.numbers import PrintedNumber


def codes(table: object, **options: object) -> list[str]:
    return [each.code for each in audit_table(table, **options).impossible]  # type: ignore[arg-type]


def notes(table: object, **options: object) -> list[str]:
    found = audit_table(table, **options).findings  # type: ignore[arg-type]
    return [each.message for each in found if each.code == "EQ450"]


# ---- identities --------------------------------------------------------------------------------


def test_figures_that_round_to_neighbours_are_equal() -> None:
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


def test_map_at_one_follows_either_denominator_and_no_third() -> None:
    table = {"HR@1": "0.50", "R@1": "0.20"}
    assert codes(table | {"MAP@1": "0.50"}) == []
    assert codes(table | {"MAP@1": "0.20"}) == []
    assert codes(table | {"MAP@1": "0.35"}) == ["EQ401"]


def test_one_relevant_item_makes_recall_the_hit_rate() -> None:
    table = {"HR@5": "0.80", "R@5": "0.60", "P@5": "0.30", "MRR": "0.50", "MAP": "0.45"}
    assert codes(table) == []
    assert notes(table) == [], "the figures themselves say that there are several relevant items"
    assert codes(table, one_relevant=True) == ["EQ401"] * 3


# ---- cutoffs -----------------------------------------------------------------------------------


def test_recall_that_falls_is_accused_where_items_are_judged_and_noted_elsewhere() -> None:
    fallen = {"R@3": "0.61", "R@5": "0.58"}
    assert codes(fallen | {"nDCG@5": "0.60"}) == ["EQ402"]
    assert [finding.code for finding in audit_table(fallen).findings] == ["EQ450"]
    assert [each.code for each in audit_table(fallen, one_relevant=True).impossible] == ["EQ402"]
    assert audit_table([fallen | {"index": "HNSW", "QPS": 8123}]).findings == ()


@pytest.mark.parametrize("name", ["HR", "MRR", "MaxOntSim"])
def test_what_counts_more_ranks_never_falls(name: str) -> None:
    assert codes({f"{name}@3": "0.61", f"{name}@5": "0.61"}) == []
    assert codes({f"{name}@3": "0.61", f"{name}@5": "0.58"}) == ["EQ402"]


def test_a_list_cut_at_ten_does_not_beat_the_whole_list() -> None:
    assert codes({"MRR@10": "0.61", "MRR": "0.58"}) == ["EQ402"]


def test_precision_may_fall_but_not_the_number_of_items_found() -> None:
    assert codes({"P@1": "0.60", "P@5": "0.12"}) == []
    assert codes({"P@1": "0.60", "P@5": "0.11"}) == ["EQ402"]
    assert codes({"P@1": "0.60", "P@2": "0.80"}) == []
    assert codes({"P@1": "0.60", "P@2": "0.82"}) == ["EQ402"]


def test_ndcg_and_capped_map_may_fall() -> None:
    assert codes({"nDCG@1": "0.60", "nDCG@5": "0.40", "MAP@1": "0.60", "MAP@5": "0.30"}) == []
    assert codes({"MAP(norm=R)@5": "0.60", "MAP(norm=R)@10": "0.40"}) == ["EQ402"]


# ---- reciprocal ranks --------------------------------------------------------------------------


def step(k: int, share: float) -> PublishedValue:
    return PublishedValue(PublishedMetric("HR", k), f"HR@{k}", PrintedNumber("", share, 0.0), ValueRange(share, share))


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=4, unique=True).map(sorted),
    st.lists(st.floats(0, 1), min_size=4, max_size=4).map(sorted),
    st.sampled_from([inf, 1.0, 3.0, 10.0]),
    st.booleans(),
)
def test_the_bounds_from_hit_rates_are_those_of_a_linear_programme(
    cutoffs: list[int], shares: list[float], cutoff: float, logarithmic: bool
) -> None:
    def weight(rank: float) -> float:
        return log_discount(rank) if logarithmic else 1.0 / rank

    steps = [step(k, share) for k, share in zip(cutoffs, shares, strict=False)]
    found = mean_bounds(steps, weight, cutoff)
    ranks = np.arange(1, 41)
    earned = np.append([weight(float(rank)) if rank <= cutoff else 0.0 for rank in ranks], 0.0)
    within = [np.append((ranks <= each.k).astype(float), 0.0) for each in steps]
    every = np.ones(len(earned))
    equal = {"A_eq": np.vstack([*within, every]), "b_eq": [*(each.range.low for each in steps), 1.0]}
    most = -linprog(-earned, bounds=(0, 1), **equal).fun
    least = linprog(earned, bounds=(0, 1), **equal).fun
    assert found.high == pytest.approx(most, abs=1e-7)
    assert found.low == pytest.approx(least, abs=1e-7)


def test_a_reciprocal_rank_lies_between_its_hit_rates() -> None:
    table = {"HR@1": "0.300", "HR@5": "0.550"}
    # 0.3 + 0.25/5 = 0.35 at least, 0.3 + 0.25/2 + 0.45/6 = 0.5 at most
    assert codes(table | {"MRR": "0.349"}) == []
    assert codes(table | {"MRR": "0.348"}) == ["EQ403"]
    assert codes(table | {"MRR": "0.500"}) == []
    assert codes(table | {"MRR": "0.501"}) == ["EQ403"]
    assert codes(table | {"MRR@5": "0.427"}) == ["EQ403"]
    assert codes({"P@1": "0.70", "MRR": "0.60"}) == ["EQ403"]


def test_hit_rates_bound_the_mean_rank_of_a_single_answer() -> None:
    table = {"HR@1": "0.50", "HR@10": "0.60", "MR": "4.0"}  # 0.5 + 0.1 x 2 + 0.4 x 11 = 5.1
    assert codes(table, one_relevant=True) == ["EQ403"]
    assert len(notes(table)) == 1
    assert codes(table | {"MR": "5.1"}, one_relevant=True) == []


def test_a_mean_of_reciprocals_is_no_less_than_the_reciprocal_of_the_mean() -> None:
    assert codes({"MR": "4.00", "MRR": "0.24"}, one_relevant=True) == ["EQ403"]
    assert codes({"MR": "4.00", "MRR": "0.25"}, one_relevant=True) == []


# ---- medians -----------------------------------------------------------------------------------


@pytest.mark.parametrize("median", [1, 1.5, 2, 3, 4.5])
def test_no_tie_earns_more_than_the_bound_of_the_median(median: float) -> None:
    """All uniform groups of ranks whose expectation is the median or worse."""
    groups = [range(a + 1, a + s + 1) for a in range(12) for s in range(1, 25) if a + (s + 1) / 2 >= median]
    best = max(np.mean([1 / rank for rank in group]) for group in groups)
    assert max_mrr_given_median(median) == pytest.approx(0.5 + best / 2)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12))
def test_whole_ranks_obey_the_bound_of_their_median(ranks: list[int]) -> None:
    table = {"MedianRank": float(np.median(ranks)), "MRR": float(np.mean([1 / rank for rank in ranks]))}
    assert codes(table | {"MR": float(np.mean(ranks))}, one_relevant=True, no_ties=True, n=len(ranks)) == []


def test_a_figure_between_the_bounds_needs_ties_to_be_excluded() -> None:
    table = {"Median Rank": "3.00", "MRR": "0.70"}  # 0.667 without ties, 0.728 with
    assert codes(table, one_relevant=True) == []
    assert codes(table, one_relevant=True, no_ties=True) == ["EQ404"]


def test_a_mean_rank_is_at_least_half_of_the_median() -> None:
    assert codes({"MR": "4.9", "MedianRank": "9"}) == []
    assert codes({"MR": "4.3", "MedianRank": "9"}) == ["EQ404"]


# ---- precision, recall, hits -------------------------------------------------------------------


@pytest.mark.parametrize(("k", "j"), [(1, 1), (3, 1), (3, 2), (4, 2), (4, 4)])
def test_the_bound_of_recall_beside_precision_is_that_of_all_small_tables(k: int, j: int) -> None:
    """Units by how many relevant items they have within j, within k and in all; two units at a time."""
    kinds = [
        (found_k / k, found_j / relevant)
        for relevant in range(1, k + 3)
        for found_k in range(min(k, relevant) + 1)
        for found_j in range(min(j, found_k) + 1)
    ]
    reached: dict[float, float] = {}
    for units in combinations_with_replacement(sorted(set(kinds)), 2):
        precision, recall = np.mean(units, axis=0)
        assert recall <= max_recall(precision, k, j) + 1e-12
        reached[precision] = max(reached.get(precision, 0.0), recall)
    assert any(recall == pytest.approx(max_recall(p, k, j)) for p, recall in reached.items())


def test_hits_lie_between_precision_and_the_items_found() -> None:
    assert codes({"P@5": "0.20", "HR@5": "0.20"}) == []
    assert codes({"P@5": "0.20", "HR@5": "0.18"}) == ["EQ405"]
    assert codes({"P@5": "0.12", "HR@5": "0.60"}) == []
    assert codes({"P@5": "0.12", "HR@5": "0.64"}) == ["EQ405"]
    assert codes({"R@5": "0.50", "HR@5": "0.40"}) == ["EQ405"]
    assert codes({"HR@5": "0.50", "MaxOntSim@5": "0.40"}) == ["EQ405"]
    assert codes({"R(capped)@5": "0.30", "P@5": "0.40"}) == ["EQ405"]


# ---- gains -------------------------------------------------------------------------------------


def ap_and_gain(relevant: int, ranks: tuple[int, ...], k: int) -> tuple[float, float]:
    most = min(k, relevant)
    average = sum((at + 1) / rank for at, rank in enumerate(ranks)) / most
    ideal = sum(1 / log2(rank + 1) for rank in range(1, most + 1))
    return average, sum(1 / log2(rank + 1) for rank in ranks) / ideal


@pytest.mark.parametrize("k", [2, 3, 6, 8])
def test_average_precision_is_bounded_by_gain_on_all_lists(k: int) -> None:
    largest = 0.0
    for relevant in range(1, k + 2):
        for count in range(1, min(k, relevant) + 1):
            for ranks in combinations(range(1, k + 1), count):
                average, gain = ap_and_gain(relevant, ranks, k)
                assert average <= gain + 1e-12
                largest = max(largest, average / gain if ranks[0] > 1 else 0.0)
    assert max_ap_given_ndcg(k) == pytest.approx(largest)


@pytest.mark.parametrize("k", [20, MAX_AP_CUTOFF])
def test_the_bound_holds_at_depths_that_no_enumeration_reaches(k: int) -> None:
    """Dynamic programming over ranks: the state is how many relevant items came before."""
    for most in range(1, k + 1):
        ideal = sum(log_discount(rank) for rank in range(1, most + 1))
        for share, first in ((1.0, 1), (max_ap_given_ndcg(k), 2)):
            best = np.full(most + 1, -np.inf)
            best[0] = 0.0
            for rank in range(first, k + 1):
                earned = np.arange(1, most + 1) / (most * rank) - share * log_discount(rank) / ideal
                best[1:] = np.maximum(best[1:], best[:-1] + earned)
            assert best[1:].max() <= 1e-12


def test_gain_is_bounded_by_hits_and_with_one_answer_by_ranks() -> None:
    assert codes({"nDCG@10": "0.50", "HR@10": "0.45"}) == ["EQ406"]
    assert codes({"nDCG@10": "0.30", "HR@1": "0.40", "HR@10": "0.60"}, one_relevant=True) == ["EQ406"]
    assert codes({"nDCG@10": "0.30", "HR@1": "0.40", "HR@10": "0.60"}) == []
    assert codes({"nDCG@10": "0.30", "MRR@10": "0.40"}, one_relevant=True) == ["EQ406"]


# ---- granularity -------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(2, 4), st.data())
def test_every_share_of_n_can_be_printed(n: int, digits: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    assert codes({"HR@1": f"{hits / n:.{digits}f}"}, n=n, no_ties=True) == []
    assert codes({"HR@1": f"{100 * hits / n:.{digits}f}%"}, n=n, no_ties=True) == []


@given(st.integers(1, 40), st.integers(0, 1000))
def test_exactly_the_printed_shares_of_n_pass(n: int, thousandths: int) -> None:
    text = f"{thousandths / 1000:.3f}"
    possible = any(abs(hits / n - thousandths / 1000) <= 0.0005 + 1e-6 for hits in range(n + 1))
    assert (codes({"HR@1": text}, n=n, no_ties=True) == []) == possible


def test_precision_comes_in_finer_steps() -> None:
    assert codes({"P@5": "0.333"}, n=3, no_ties=True) == []
    assert codes({"P@5": "0.350"}, n=3, no_ties=True) == ["EQ407"]


def test_ties_may_make_any_share_so_it_is_a_note_until_they_are_excluded() -> None:
    assert codes({"HR@1": "0.333"}, n=10) == []
    assert notes({"HR@1": "0.333"}, n=10)[0].startswith("HR@1 0.333 cannot be a mean over 10 units")
    assert notes([{"HR@1": "0.333", "ties": "expected", "n": 10}]) == []
    assert codes([{"HR@1": "0.333", "ties": "by_id", "n": 10}]) == ["EQ407"]


def test_means_over_seeds_have_no_steps() -> None:
    assert codes({"HR@1": "0.333 ± 0.012"}, n=10, no_ties=True) == []


# ---- F1 ----------------------------------------------------------------------------------------


def test_f1_is_the_harmonic_mean_or_less() -> None:
    assert codes({"precision": "0.50", "recall": "0.60", "f1": "0.55"}) == []
    assert codes({"precision": "0.50", "recall": "0.60", "f1": "0.57"}) == ["EQ408"]
    assert codes({"precision": "0.50", "recall": "0.60", "f1": "0.40"}) == []
    assert codes({"precision": "0.90", "recall": "0.80", "f1": "0.60"}) == ["EQ408"]
    micro = {"precision_micro": "0.50", "recall_micro": "0.60"}
    assert codes(micro | {"f1_micro": "0.50"}) == ["EQ408"]
    assert codes(micro | {"f1_macro": "0.70"}) == [], "another average is another figure"


def test_a_classification_report_is_read_by_its_averages() -> None:
    report = {
        "macro avg": {"precision": 0.5, "recall": 0.6, "f1-score": 0.81, "support": 30},
        "weighted avg": {"precision": 0.5, "recall": 0.6, "f1-score": 0.52, "support": 30},
        "accuracy": 0.6,
    }
    (accused,) = audit_table(report).impossible
    assert (accused.code, accused.subject) == ("EQ408", "macro avg")
    assert "F1(average=macro) 0.81" in accused.message


# ---- intervals, chance, bounds, units ----------------------------------------------------------


def test_an_interval_holds_its_own_figure() -> None:
    assert codes({"MRR": "0.61 [0.58, 0.65]"}) == []
    assert codes({"MRR": "0.61 [0.63, 0.65]"}) == ["EQ409"]
    assert codes([{"MRR": 0.61, "MRR_lower": 0.63, "MRR_upper": 0.65}]) == ["EQ409"]


def test_an_interval_of_hits_is_as_wide_as_n_demands() -> None:
    assert codes({"HR@1": "0.80 [0.71, 0.87]"}, n=100, no_ties=True) == []
    assert codes({"HR@1": "0.80 [0.79, 0.81]"}, n=100, no_ties=True) == ["EQ409"]
    assert codes({"HR@1": "0.80 [0.79, 0.81]"}, n=10_000, no_ties=True) == []
    assert codes({"HR@1": "1.00 [1.00, 1.00]"}, n=100, no_ties=True) == []


def test_luck_earns_what_its_definition_says() -> None:
    right = {
        "system": "random",
        "classes": 100,
        "Acc@1": "1.0%",
        "Acc@10": "10%",
        "MRR": "5.19%",
        "MR": "50.5",
    }
    assert codes([right]) == []
    assert codes([right | {"MRR": "21.7%"}], n=1_000) == ["EQ410"]
    assert codes([right | {"MR": "50"}]) == []
    assert codes([right | {"MR": "49.3"}], n=1_000_000) == ["EQ410"]
    assert "was not measured" in notes([right | {"MR": "49.3"}])[0]
    assert codes([right | {"system": "trained", "MRR": "21.7%"}]) == ["EQ403"]


@pytest.mark.parametrize("n", [1, 7, 9_999, 10_001, 10**9])
def test_harmonic_numbers_are_those_of_the_digamma_function(n: int) -> None:
    assert harmonic_number(n) == pytest.approx(digamma(n + 1) + np.euler_gamma, rel=1e-12)


def test_absurd_counts_and_ranks_end_in_time() -> None:
    audit_table([{"system": "random", "classes": 10**30, "MRR": "0.1", "nDCG": "0.2"}])
    audit_table({"MedianRank": "1e300", "MRR": "0.7"}, one_relevant=True)


def test_a_random_run_that_was_measured_may_be_lucky() -> None:
    row = {"system": "random", "classes": 1000, "MRR": "0.012", "n": 50}
    assert codes([row]) == []
    assert codes([row | {"n": 100_000}]) == ["EQ410"]


@pytest.mark.parametrize(
    "table", [{"HR@1": "104%"}, {"MRR": "-0.1"}, {"mean_rank": "0.4"}, {"Spearman": "-1.2 %", "rho": "-120%"}]
)
def test_figures_out_of_bounds_are_accused(table: dict[str, str]) -> None:
    assert "EQ411" in codes(table)


def test_percent_beside_fractions_are_read_both_ways() -> None:
    audit = audit_table({"HR@1": 0.62, "HR@5": 58.0})
    assert [finding.code for finding in audit.findings] == ["EQ412"]
    assert audit.impossible == ()
    audit = audit_table({"HR@1": 0.9, "HR@3": 0.004, "HR@5": 58.0})
    assert "EQ402" in [each.code for each in audit.impossible], "0.9 % is above 0.004, and 0.9 all the more"


def test_a_sign_decides_the_unit() -> None:
    assert codes({"HR@1": "0.62%", "HR@5": "0.58"}) == []
    assert codes({"HR@1 (%)": "0.62", "HR@5 (%)": "0.58"}) == ["EQ402"]


# ---- blends ------------------------------------------------------------------------------------


def test_a_blend_is_the_sum_of_its_parts() -> None:
    parts = {"relation_coherence": 0.40, "graph_density": 0.80, "clustering_coefficient": 0.10}
    assert codes(parts | {"knowledge_graph_score": 0.34}) == []
    assert codes(parts | {"knowledge_graph_score": 0.43}) == ["EQ416"], "the density counts 0.5 at most"


def test_a_property_of_the_data_cannot_differ_between_systems() -> None:
    rows = [{"model": "a", "graph_density": 0.03}, {"model": "b", "graph_density": 0.07}]
    (accused,) = audit_table(rows).issues
    assert "impossible if they were measured on the same graph" in accused.message


# ---- the rows of a table -----------------------------------------------------------------------


def test_rows_of_the_same_name_are_judged_one_by_one() -> None:
    rows = [{"model": "a", "HR@1": "0.62", "HR@5": high} for high in ("0.50", "0.70", "0.55")]
    assert codes(rows) == ["EQ402", "EQ402"]


def test_columns_of_other_data_sets_are_not_mixed() -> None:
    table = {"NQ HR@1": "0.60", "NQ HR@5": "0.70", "TREC HR@1": "0.30", "TREC HR@5": "0.20"}
    (accused,) = audit_table(table).impossible
    assert accused.subject == "TREC"


def test_a_row_of_chance_levels_obeys_what_expectations_obey() -> None:
    assert codes([{"system": "chance", "HR@1": 0.30, "HR@5": 0.31, "MRR": 0.29}]) == []
    assert codes([{"system": "chance", "HR@1": "0.30", "HR@5": "0.28"}]) == ["EQ402"]
    assert codes([{"system": "Random", "HR@1": "0.30", "P@1": "0.20"}]) == ["EQ401"]


@pytest.mark.parametrize(("digits", "sign"), list(product((2, 3, 4), ("", "%"))))
def test_figures_of_one_list_fit_each_other(digits: int, sign: str) -> None:
    ranks = [1, 1, 2, 3, 7, 12]
    scale = 100 if sign else 1
    shares = {f"HR@{k}": sum(rank <= k for rank in ranks) / 6 for k in (1, 3, 10)} | {
        "MRR": sum(1 / rank for rank in ranks) / 6,
        "nDCG@10": sum(1 / log2(rank + 1) for rank in ranks if rank <= 10) / 6,
    }
    table = {name: f"{scale * share:.{digits}f}{sign}" for name, share in shares.items()}
    ranked = {"MR": f"{sum(ranks) / 6:.2f}", "MedianRank": "2.5"}
    assert audit_table(table | ranked, n=6, one_relevant=True, no_ties=True).findings == ()


def test_words_in_a_column_that_counts_elsewhere_are_no_count() -> None:
    assert audit_table([{"model": "a", "labels": "all", "cases": "German", "MRR": 0.5}]).findings == ()


def test_fractions_of_ours_stand_beside_percent_of_others() -> None:
    own = {"unit": "fraction", "better": "up", "interval": {}, "n": 9, "undefined": 0, "chance": 0.1}
    table = {"best_accuracy": 82.5, "estimates": [{"metric": "HR@1", "value": 0.5555555555555556} | own]}
    audit = audit_table(table, no_ties=True)
    assert audit.findings == ()
    spans = [str(row.values[0].range) for table in audit.tables for row in table.rows]
    assert spans == ["0.8245 to 0.8255", "0.555556"]
