"""Every check reports its problem and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equipoise.checks.base import ComparedResults, all_checks, check_by_code, run_checks
from equipoise.config import StatsConfig
from equipoise.errors import UnknownNameError
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.sets import Sets
from equipoise.models.retriever import retriever
from equipoise.models.stores import open_store
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import evaluate
from equipoise.stats.estimate import result_from_values
from equipoise.stats.formatting import about
from equipoise.types import Finding, Severity


def codes(findings: tuple[Finding, ...]) -> set[str]:
    return {finding.code for finding in findings}


def only_finding(code: str, findings: tuple[Finding, ...]) -> Finding:
    matches = [item for item in findings if item.code == code]
    assert len(matches) == 1, findings
    return matches[0]


def good_ranking(units: int = 40, candidates: int = 100) -> Ranking:
    """Ranks that are clearly above chance and clearly below the ceiling."""
    return Ranking.from_ranks([1 + index % 4 for index in range(units)], candidates=candidates)


def test_a_sound_result_has_no_findings() -> None:
    assert evaluate(good_ranking(), ["nDCG@10", "MRR", "HR@1"]).findings == ()


# ---- registry ---------------------------------------------------------------------------------


def test_codes_are_unique_and_in_order() -> None:
    registered_codes = [check.code for check in all_checks()]
    assert registered_codes == sorted(set(registered_codes))


@pytest.mark.parametrize("check", all_checks(), ids=lambda check: check.code)
def test_the_example_of_each_check_triggers_the_check(check) -> None:  # type: ignore[no-untyped-def]
    *lines, last = check.example.splitlines()
    scope: dict[str, object] = {}
    exec("\n".join(lines), scope)
    findings = eval(last, scope)
    finding = only_finding(check.code, findings)
    assert finding.severity == check.severity
    assert finding.hint
    assert finding.evidence


@pytest.mark.parametrize("check", all_checks(), ids=lambda check: check.code)
def test_each_check_has_an_explanation(check) -> None:  # type: ignore[no-untyped-def]
    assert check_by_code(check.code.lower()) is check
    assert len(check.why) > 100
    assert check.function.__doc__.startswith(check.code)


def test_an_unknown_code_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as error:
        check_by_code("EQ3001")
    assert error.value.code == "E300"
    assert "EQ301" in error.value.hint


# ---- units -----------------------------------------------------------------------------------


def test_missing_units_are_named_and_score_zero() -> None:
    qrels = {f"q{unit}": {"a": 1} for unit in range(8)}
    run = {unit: {"a": 1.0, "b": 0.5} for unit in list(qrels)[:1]}
    result = evaluate(Ranking.from_runs(qrels, run), "MRR")
    finding = only_finding("EQ101", result.findings)
    assert result["MRR"].value == 1 / 8
    assert finding.message.startswith("7 of 8 queries in the ground truth have no results and score 0: q1, q2")
    assert finding.message.endswith("and 2 more")
    assert finding.evidence == tuple(f"q{unit}" for unit in range(1, 8))


def test_a_run_without_any_relevant_item_is_an_issue() -> None:
    qrels = {f"q{i}": {f"D{i}": 1} for i in range(10)}
    run = {f"q{i}": {f"doc{i}": 0.9} for i in range(10)}
    finding = only_finding("EQ114", evaluate(Ranking.from_runs(qrels, run), "MRR").findings)
    assert finding.severity == Severity.ISSUE
    assert "none of the 10 relevant items was retrieved" in finding.message
    one_match = run | {"q3": {"D3": 0.5}}
    assert "EQ114" not in codes(evaluate(Ranking.from_runs(qrels, one_match), "MRR").findings)


def test_a_missing_unit_without_relevant_items_is_undefined_only() -> None:
    result = evaluate(Ranking.from_runs({"q1": {"a": 1}, "q2": {"b": 0}}, {"q1": {"a": 1.0}}), "MRR")
    assert {"EQ101", "EQ104"} & codes(result.findings) == {"EQ104"}


def test_documents_without_a_prediction_are_missing_units_too() -> None:
    sets = Sets.of({"d1": ["x"], "d2": ["y"]}, {"d1": ["x"], "d9": ["z"]})
    findings = evaluate(sets, "F1(average=micro)").findings
    assert only_finding("EQ101", findings).evidence == ("d2",)
    assert only_finding("EQ106", findings).evidence == ("d9",)


def test_long_lists_of_ids_are_cut() -> None:
    qrels = {f"q{unit}": {"a": 1} for unit in range(50)}
    finding = only_finding("EQ101", evaluate(Ranking.from_runs(qrels, {"q0": {"a": 1.0}}), "MRR").findings)
    assert finding.evidence[-1] == "and 29 more"
    assert len(finding.evidence) == 21


def test_undefined_units_are_reported_once_for_all_metrics() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"b": 0}, "q3": {}}
    run = {unit: {"a": 0.9, "b": 0.8} for unit in qrels}
    finding = only_finding("EQ104", evaluate(Ranking.from_runs(qrels, run), ["MRR", "HR@1"]).findings)
    assert finding.evidence == ("q2", "q3")
    assert "2 of 3 values of MRR, HR@1 are undefined (a unit without relevant items)" in finding.message


def test_documents_without_predictions_get_the_hint_to_lower_the_threshold() -> None:
    sets = Sets.of(
        {f"d{index}": ["x"] for index in range(9)}, {f"d{index}": ["x"] if index else [] for index in range(9)}
    )
    finding = only_finding("EQ104", evaluate(sets, "P(average=macro)").findings)
    assert "lower the threshold" in finding.hint


def test_sets_at_chance_level_get_no_hint_about_cutoffs() -> None:
    documents = [f"d{index}" for index in range(12)]
    sets = Sets.of({document: ["x"] for document in documents}, {document: ["x", "y"] for document in documents})
    finding = only_finding("EQ302", evaluate(sets, "F1").findings)
    assert "documents" in finding.hint
    assert "cutoff" not in finding.hint


def test_unknown_units_are_named() -> None:
    ranking = Ranking.from_runs({"q1": {"a": 1}}, {"q1": {"a": 1.0}, "q8": {"a": 1.0}, "q9": {"a": 1.0}})
    finding = only_finding("EQ106", evaluate(ranking, "MRR").findings)
    assert finding.evidence == ("q8", "q9")
    assert finding.message == "2 queries of the run are not in the ground truth, so they were not scored: q8, q9"


def test_one_unknown_unit_is_singular() -> None:
    ranking = Ranking.from_runs({"q1": {"a": 1}}, {"q1": {"a": 1.0}, "q9": {"a": 1.0}})
    finding = only_finding("EQ106", evaluate(ranking, "MRR").findings)
    assert finding.message == "1 query of the run is not in the ground truth, so it was not scored: q9"


def results_with_units(units: dict[str, list[object]]) -> ComparedResults:
    """Systems with these units; the model spec of a system is its name."""
    return ComparedResults(
        [
            result_from_values(name, ids, {"HR": [1.0] * len(ids)}, settings={"model": name})
            for name, ids in units.items()
        ]
    )


def test_unpaired_units_of_both_systems_are_listed() -> None:
    finding = only_finding("EQ204", run_checks(results_with_units({"a": ["q1", "q2"], "b": ["q2", "q3", "q4"]})))
    assert finding.subject == "a, b"
    assert finding.evidence == ("only in a: q1", "only in b: q3", "only in b: q4")


def test_the_same_units_in_another_order_are_paired() -> None:
    assert run_checks(results_with_units({"a": [1, 2], "b": [2, 1]})) == ()


# ---- candidates, ties, chance, ceiling -------------------------------------------------------


def truncated(corpus_size: int | None) -> Ranking:
    qrels = {f"q{unit}": {"a": 1, "z": 1} for unit in range(30)}
    run = {unit: {"b": 0.9, "a": 0.8, "c": 0.7} for unit in qrels}
    return Ranking.from_runs(qrels, run, corpus_size=corpus_size)


def test_truncated_lists_without_a_corpus_size_are_not_compared_with_chance() -> None:
    findings = evaluate(truncated(None), "MRR").findings
    assert "30 of 60 relevant items were not retrieved" in only_finding("EQ110", findings).message
    assert "EQ302" not in codes(findings)


def test_truncated_lists_of_a_known_corpus_have_no_findings() -> None:
    assert evaluate(truncated(1000), "MRR").findings == ()


def test_truncated_lists_of_a_small_known_corpus_are_compared_with_chance() -> None:
    assert codes(evaluate(truncated(5), "HR@3").findings) == {"EQ302", "EQ303"}


def test_complete_lists_need_no_corpus_size() -> None:
    ranking = Ranking.from_runs({"q1": {"a": 1}}, {"q1": {"a": 1.0, "b": 0.5}})
    assert "EQ110" not in codes(evaluate(ranking, "MRR").findings)


def tied_ranking(tied_units: int, units: int = 200) -> Ranking:
    scores = np.tile(np.arange(50, 0, -1.0), (units, 1))
    scores[:tied_units, 0] = scores[:tied_units, 1]
    return Ranking.from_scores(scores, np.tile([0, 1, 2, 3], units // 4))


def test_a_cutoff_beyond_the_candidates_is_reported_only_if_nothing_else_is_measured() -> None:
    """Every system has R@100 = 1 on 30 documents, whatever its quality."""
    scores = np.random.default_rng(0).random((40, 30))
    scores[np.arange(40), np.arange(40) % 30] += 0.6
    ranking = Ranking.from_scores(scores, np.arange(40) % 30)
    assert not codes(evaluate(ranking, ["MRR", "R@100"]).findings) & {"EQ302", "EQ303"}
    assert "EQ302" in codes(evaluate(ranking, "R@100").findings)


def test_ties_of_more_than_one_percent_are_reported_with_their_effect() -> None:
    ranking = tied_ranking(8)
    result = evaluate(ranking, ["MRR", "HR@1"])
    finding = only_finding("EQ301", result.findings)
    low = evaluate(ranking, "MRR", config=StatsConfig(ties="pessimistic"))["MRR"].value
    high = evaluate(ranking, "MRR", config=StatsConfig(ties="optimistic"))["MRR"].value
    assert finding.message.startswith("2 % of the relevant items tie")
    assert f"MRR is between {low:.3f} and {high:.3f}" in finding.message
    assert low < result["MRR"].value < high


def test_the_hint_for_ties_depends_on_whether_they_are_at_the_lowest_score() -> None:
    scores = np.tile(np.arange(20.0), (10, 1))
    relevant = np.full(10, 12)
    above, unmatched = scores.copy(), scores.copy()
    above[:4, 11] = above[:4, 12]
    unmatched[:4] = 0.0
    hints = [
        only_finding("EQ301", evaluate(Ranking.from_scores(table, relevant), "MRR").findings).hint
        for table in (above, unmatched)
    ]
    assert "share no word" not in hints[0]
    assert "share no word" in hints[1]


def test_far_codes_are_no_suggestions() -> None:
    with pytest.raises(UnknownNameError) as far:
        check_by_code("EQ999")
    assert far.value.hint == "eq ls checks lists all codes"
    with pytest.raises(UnknownNameError) as near:
        check_by_code("EQ3011")
    assert "EQ301" in near.value.hint


def test_ties_of_one_percent_are_not_reported() -> None:
    assert "EQ301" not in codes(evaluate(tied_ranking(4), "MRR").findings)


def test_ties_that_change_the_score_by_less_than_0_001_are_not_reported() -> None:
    """A third of the units have ties with one item, at ranks far below the top."""
    scores = np.tile(np.arange(500, 0, -1.0), (90, 1))
    scores[:30, 400] = scores[:30, 401]
    ranking = Ranking.from_scores(scores, np.array([400] * 30 + [3] * 60))
    low, high = (
        evaluate(ranking, "MRR", config=StatsConfig(ties=ties))["MRR"].value for ties in ("pessimistic", "optimistic")
    )
    assert 0 < high - low < 0.001
    assert "EQ301" not in codes(evaluate(ranking, "MRR").findings)
    assert "EQ301" in codes(evaluate(ranking, "MR").findings), "the mean rank differs by a third of a rank"


def test_ties_are_reported_for_every_tie_rule() -> None:
    assert "EQ301" in codes(evaluate(tied_ranking(8), "MRR", config=StatsConfig(ties="by_id")).findings)


def test_a_constant_scorer_is_not_above_chance_on_any_metric() -> None:
    ranking = Ranking.from_scores(np.zeros((50, 20)), np.arange(50) % 20)
    result = evaluate(ranking, ["MRR", "nDCG@10", "HR@1", "MR"])
    assert len(only_finding("EQ302", result.findings).evidence) == 4


@pytest.mark.parametrize(
    ("metrics", "advised"), [("HR@1", False), ("MRR", False), ("HR@3", True), (["HR@1", "nDCG@10"], True)]
)
def test_a_smaller_cutoff_is_suggested_only_if_one_exists(metrics: object, advised: bool) -> None:
    ranking = Ranking.from_scores(np.zeros((50, 20)), np.arange(50) % 20)
    finding = only_finding("EQ302", evaluate(ranking, metrics).findings)  # type: ignore[arg-type]
    assert ("a smaller cutoff" in finding.hint) == advised
    assert "more candidates or more data" in finding.hint


def test_distances_used_as_scores_are_worse_than_chance() -> None:
    ranking = Ranking.from_ranks([20, 19, 18, 20, 17] * 10, candidates=20)
    for metric in ("MRR", "MR"):
        finding = only_finding("EQ302", evaluate(ranking, metric).findings)
        assert "worse than the chance level" in finding.message
        assert "distances" in finding.hint


def test_the_chance_check_supports_metrics_where_lower_is_better() -> None:
    assert evaluate(good_ranking(), "MR").findings == ()


def test_there_is_no_chance_finding_without_a_chance_level() -> None:
    ranking = Ranking.from_ranks([1, 5, 10], candidates=10)
    assert "EQ302" not in codes(evaluate(ranking, "MRR", chance=False).findings)


def test_one_unit_has_no_interval_and_no_chance_finding() -> None:
    result = evaluate(Ranking.from_ranks([2], candidates=100), "MRR")
    assert not result["MRR"].interval.known
    assert result.findings == ()


def test_random_classes_are_not_above_chance() -> None:
    rng = np.random.default_rng(1)
    labels = Labels.of(rng.integers(0, 4, 200), rng.integers(0, 4, 200))
    assert "EQ302" in codes(evaluate(labels, "Acc").findings)
    assert "EQ302" not in codes(evaluate(Labels.of([0, 1, 2, 3] * 20, [0, 1, 2, 2] * 20), "Acc").findings)


@pytest.mark.parametrize(
    ("ranks", "metric", "full"),
    [
        ([1] * 99 + [2], "MRR", True),
        ([1] * 92 + [9] * 8, "HR@5", True),
        ([1] * 89 + [9] * 11, "HR@5", False),
        ([1] * 91 + [40] * 9, "MRR", True),
        ([1] * 99 + [2], "MR", True),
        ([1] * 85 + [4] * 15, "MR", False),
    ],
)
def test_a_metric_is_at_its_ceiling_near_the_bound_or_when_nearly_all_units_are(
    ranks: list[int], metric: str, full: bool
) -> None:
    findings = evaluate(Ranking.from_ranks(ranks, candidates=1000), metric).findings
    titles = [finding.title for finding in findings if finding.code == "EQ303"]
    assert titles == [f"{metric} near the best possible value"] * full


def test_metrics_at_their_ceiling_are_named_in_one_sentence() -> None:
    ranking = Ranking.from_ranks([1] * 99 + [4], candidates=1000)
    (one,) = [finding for finding in evaluate(ranking, "HR@1").findings if finding.code == "EQ303"]
    assert one.message == "HR@1 (0.990) is near its best possible value and cannot distinguish good systems"
    (two,) = [finding for finding in evaluate(ranking, ["HR@1", "HR@3"]).findings if finding.code == "EQ303"]
    assert two.message == (
        "HR@1 (0.990) and HR@3 (0.990) are near their best possible values and cannot distinguish good systems"
    )
    mostly = Ranking.from_ranks([1] * 95 + [40] * 5, candidates=1000)
    (share,) = [finding for finding in evaluate(mostly, "MR").findings if finding.code == "EQ303"]
    assert "95 % of the queries at the minimum) is near" in share.message


# ---- comparisons and points ------------------------------------------------------------------


def ranking_pair(units: int, better_on: int) -> dict[str, Ranking]:
    """Two systems; the first is better on ``better_on`` units and worse on a tenth of them."""
    first = np.full(units, 3)
    second = np.full(units, 3)
    second[:better_on] = 4
    first[-units // 10 :] = 4
    return {name: Ranking.from_ranks(ranks, candidates=50) for name, ranks in (("x", first), ("y", second))}


def test_a_difference_without_significance_reports_the_units_needed() -> None:
    comparison = compare(ranking_pair(units=40, better_on=8), "MRR")
    finding = only_finding("EQ304", comparison.findings)
    needed = comparison.contrast("x", "y").needed.value
    assert needed > 40
    assert finding.subject == "x, y"
    assert (
        f"about {about(needed)} queries would be needed to distinguish them with 80 % power (one test)"
        in finding.message
    )
    assert f"about {about(needed)} queries would be needed to distinguish x from y" in comparison.verdict().casefold()
    assert "unit" not in finding.message + "".join(finding.evidence), "the noun of the evidence is used, here queries"


def test_a_significant_difference_needs_no_more_units() -> None:
    comparison = compare(ranking_pair(units=40, better_on=30), "MRR")
    assert comparison.contrast("x", "y").winner() == "x"
    assert "EQ304" not in codes(comparison.findings)


def test_equal_systems_get_no_finding_about_more_units() -> None:
    ranking = good_ranking()
    assert "EQ304" not in codes(compare({"x": ranking, "y": ranking}, "MRR").findings)


def test_invalid_points_of_a_ranking_are_an_issue() -> None:
    sentence = "3 of 40 points lie outside the ball"
    finding = only_finding("EQ109", evaluate(replace(good_ranking(), invalid_points=sentence), "MRR").findings)
    assert finding.message == sentence
    assert "EQ109" not in codes(evaluate(good_ranking(), "MRR").findings)


def test_models_compared_with_a_lexical_system_have_no_findings() -> None:
    assert run_checks(results_with_units({name: ["q1"] for name in ["minilm", "use", "bm25:"]})) == ()
    assert run_checks(results_with_units({"minilm": ["q1"]})) == ()
    only_finding("EQ107", run_checks(results_with_units({name: ["q1"] for name in ["minilm", "sum:minilm+bm25:"]})))


def test_an_index_with_low_recall_is_reported_and_an_exact_one_is_not() -> None:
    pytest.importorskip("faiss")
    words = [f"{a}{b}" for a in "abcdefghij" for b in "klmnopqrst"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 6)) for _ in range(600)]
    rough = retriever("hash", store=open_store("faiss:hnsw", dims=256, neighbours=2, ef_construction=2, ef_search=1))
    fitted = rough.fit(texts)
    fitted.search(texts[:50], k=10)
    only_finding("EQ152", run_checks(fitted))
    exact = retriever("hash", store="faiss").fit(texts)
    exact.search(texts[:50], k=10)
    assert run_checks(exact) == ()


def test_a_mean_rank_dominated_by_few_units_is_reported() -> None:
    skewed = Ranking.from_ranks([1] * 59 + [180], candidates=203)
    assert "EQ307" in codes(evaluate(skewed, "MR").findings)
    only_finding("EQ307", evaluate(skewed, ["MR", "MR(over=units)"]).findings)  # equal with one target per query
    assert "EQ307" not in codes(evaluate(skewed, "MRR").findings), "a bounded metric has a largest possible value"
    assert "EQ307" not in codes(evaluate(Ranking.from_ranks([1, 2, 3] * 20, candidates=9), "MR").findings)


@pytest.mark.parametrize(("moved", "caveat"), [(0, False), (9, True), (10, False)])
def test_a_difference_that_depends_on_few_units_is_reported(moved: int, caveat: bool) -> None:
    first = Ranking.from_ranks([1] * 80, candidates=9)
    second = Ranking.from_ranks([1] * (80 - moved) + [2 + index % 4 for index in range(moved)], candidates=9)
    findings = compare({"first": first, "second": second}, "MRR").findings
    assert ("EQ308" in codes(findings)) == caveat
