"""Every check complains of what deserves it and is silent on what does not."""

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
from equipoise.types import Finding


def codes(findings: tuple[Finding, ...]) -> set[str]:
    return {finding.code for finding in findings}


def the(code: str, findings: tuple[Finding, ...]) -> Finding:
    found = [finding for finding in findings if finding.code == code]
    assert len(found) == 1, findings
    return found[0]


def good_ranking(units: int = 40, candidates: int = 100) -> Ranking:
    """Ranks that are clearly above chance and clearly below the ceiling."""
    return Ranking.from_ranks([1 + place % 4 for place in range(units)], candidates=candidates)


def test_a_sound_result_has_no_findings() -> None:
    assert evaluate(good_ranking(), ["nDCG@10", "MRR", "HR@1"]).findings == ()


# ---- the catalogue ---------------------------------------------------------------------------


def test_codes_are_unique_and_in_order() -> None:
    listed = [check.code for check in all_checks()]
    assert listed == sorted(set(listed))


@pytest.mark.parametrize("check", all_checks(), ids=lambda check: check.code)
def test_the_example_of_each_check_raises_it(check) -> None:  # type: ignore[no-untyped-def]
    *lines, last = check.example.splitlines()
    scope: dict[str, object] = {}
    exec("\n".join(lines), scope)
    findings = eval(last, scope)
    found = the(check.code, findings)
    assert found.severity == check.severity
    assert found.hint
    assert found.evidence


@pytest.mark.parametrize("check", all_checks(), ids=lambda check: check.code)
def test_each_check_explains_itself(check) -> None:  # type: ignore[no-untyped-def]
    assert check_by_code(check.code.lower()) is check
    assert len(check.why) > 100
    assert check.function.__doc__.startswith(check.code)


def test_an_unknown_code_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="no check is called 'EQ3001'") as caught:
        check_by_code("EQ3001")
    assert "EQ301" in caught.value.hint


# ---- units -----------------------------------------------------------------------------------


def test_missing_units_are_named_and_score_zero() -> None:
    qrels = {f"q{unit}": {"a": 1} for unit in range(8)}
    run = {unit: {"a": 1.0, "b": 0.5} for unit in list(qrels)[:1]}
    result = evaluate(Ranking.from_runs(qrels, run), "MRR")
    found = the("EQ101", result.findings)
    assert result["MRR"].value == 1 / 8
    assert found.message.startswith("7 of 8 ids of the ground truth have no result, so they score 0: q1, q2")
    assert found.message.endswith("and 2 more")
    assert found.evidence == tuple(f"q{unit}" for unit in range(1, 8))


def test_a_missing_unit_without_anything_to_find_is_only_undefined() -> None:
    result = evaluate(Ranking.from_runs({"q1": {"a": 1}, "q2": {"b": 0}}, {"q1": {"a": 1.0}}), "MRR")
    assert {"EQ101", "EQ104"} & codes(result.findings) == {"EQ104"}


def test_documents_without_a_prediction_are_missing_units_too() -> None:
    sets = Sets.of({"d1": ["x"], "d2": ["y"]}, {"d1": ["x"], "d9": ["z"]})
    findings = evaluate(sets, "F1(average=micro)").findings
    assert the("EQ101", findings).evidence == ("d2",)
    assert the("EQ106", findings).evidence == ("d9",)


def test_long_lists_of_ids_are_cut() -> None:
    qrels = {f"q{unit}": {"a": 1} for unit in range(50)}
    found = the("EQ101", evaluate(Ranking.from_runs(qrels, {"q0": {"a": 1.0}}), "MRR").findings)
    assert found.evidence[-1] == "and 29 more"
    assert len(found.evidence) == 21


def test_undefined_units_are_counted_once_for_all_metrics_that_miss_them() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"b": 0}, "q3": {}}
    run = {unit: {"a": 0.9, "b": 0.8} for unit in qrels}
    found = the("EQ104", evaluate(Ranking.from_runs(qrels, run), ["MRR", "HR@1"]).findings)
    assert found.evidence == ("q2", "q3")
    assert "2 of 3 values of MRR, HR@1 are undefined (a unit without relevant items)" in found.message


def test_documents_without_predictions_call_for_a_lower_threshold_and_not_for_judgements() -> None:
    sets = Sets.of({f"d{at}": ["x"] for at in range(9)}, {f"d{at}": ["x"] if at else [] for at in range(9)})
    found = the("EQ104", evaluate(sets, "P(average=macro)").findings)
    assert "lower the threshold" in found.hint


def test_sets_at_the_level_of_chance_are_not_advised_about_cutoffs() -> None:
    documents = [f"d{at}" for at in range(12)]
    sets = Sets.of({each: ["x"] for each in documents}, {each: ["x", "y"] for each in documents})
    found = the("EQ302", evaluate(sets, "F1").findings)
    assert "documents" in found.hint
    assert "cutoff" not in found.hint


def test_unknown_units_are_named() -> None:
    ranking = Ranking.from_runs({"q1": {"a": 1}}, {"q1": {"a": 1.0}, "q8": {"a": 1.0}, "q9": {"a": 1.0}})
    found = the("EQ106", evaluate(ranking, "MRR").findings)
    assert found.evidence == ("q8", "q9")
    assert found.message.startswith("2 ids of the run are not in the ground truth")


def measured(units: dict[str, list[object]]) -> ComparedResults:
    """Systems with these units; each has the spec of its name."""
    return ComparedResults(
        [
            result_from_values(name, ids, {"HR": [1.0] * len(ids)}, settings={"model": name})
            for name, ids in units.items()
        ]
    )


def test_unpaired_units_are_listed_from_both_sides() -> None:
    found = the("EQ204", run_checks(measured({"a": ["q1", "q2"], "b": ["q2", "q3", "q4"]})))
    assert found.subject == "a, b"
    assert found.evidence == ("only in a: q1", "only in b: q3", "only in b: q4")


def test_the_same_units_in_another_order_are_paired() -> None:
    assert run_checks(measured({"a": [1, 2], "b": [2, 1]})) == ()


# ---- candidates, ties, chance, ceiling -------------------------------------------------------


def truncated(corpus_size: int | None) -> Ranking:
    qrels = {f"q{unit}": {"a": 1, "z": 1} for unit in range(30)}
    run = {unit: {"b": 0.9, "a": 0.8, "c": 0.7} for unit in qrels}
    return Ranking.from_runs(qrels, run, corpus_size=corpus_size)


def test_truncated_lists_without_a_corpus_size_are_noted_and_not_held_against_chance() -> None:
    findings = evaluate(truncated(None), "MRR").findings
    assert "30 of 60 relevant items were not retrieved" in the("EQ110", findings).message
    assert "EQ302" not in codes(findings)


def test_truncated_lists_of_a_known_corpus_are_fine() -> None:
    assert evaluate(truncated(1000), "MRR").findings == ()


def test_truncated_lists_of_a_small_known_corpus_are_held_against_chance() -> None:
    assert codes(evaluate(truncated(5), "HR@3").findings) == {"EQ302", "EQ303"}


def test_complete_lists_need_no_corpus_size() -> None:
    ranking = Ranking.from_runs({"q1": {"a": 1}}, {"q1": {"a": 1.0, "b": 0.5}})
    assert "EQ110" not in codes(evaluate(ranking, "MRR").findings)


def tied_ranking(tied_units: int, units: int = 200) -> Ranking:
    scores = np.tile(np.arange(50, 0, -1.0), (units, 1))
    scores[:tied_units, 0] = scores[:tied_units, 1]
    return Ranking.from_scores(scores, np.tile([0, 1, 2, 3], units // 4))


def test_a_cutoff_beyond_the_candidates_is_reported_only_if_nothing_else_is_measured() -> None:
    """Every system has R@100 = 1 on 30 documents: that is a property of the data, not of the system."""
    scores = np.random.default_rng(0).random((40, 30))
    scores[np.arange(40), np.arange(40) % 30] += 0.6
    ranking = Ranking.from_scores(scores, np.arange(40) % 30)
    assert not codes(evaluate(ranking, ["MRR", "R@100"]).findings) & {"EQ302", "EQ303"}
    assert "EQ302" in codes(evaluate(ranking, "R@100").findings)


def test_ties_of_more_than_one_percent_are_reported_with_their_reach() -> None:
    ranking = tied_ranking(8)
    result = evaluate(ranking, ["MRR", "HR@1"])
    found = the("EQ301", result.findings)
    low = evaluate(ranking, "MRR", config=StatsConfig(ties="pessimistic"))["MRR"].value
    high = evaluate(ranking, "MRR", config=StatsConfig(ties="optimistic"))["MRR"].value
    assert found.message.startswith("2 % of the relevant items tie")
    assert f"MRR is between {low:.4f} and {high:.4f}" in found.message
    assert low < result["MRR"].value < high


def test_ties_of_one_percent_are_not_reported() -> None:
    assert "EQ301" not in codes(evaluate(tied_ranking(4), "MRR").findings)


def test_ties_that_move_the_figure_by_less_than_a_thousandth_are_not_reported() -> None:
    """A third of the units tie with one item, far down the list or hardly at all."""
    scores = np.tile(np.arange(500, 0, -1.0), (90, 1))
    scores[:30, 400] = scores[:30, 401]
    ranking = Ranking.from_scores(scores, np.array([400] * 30 + [3] * 60))
    low, high = (
        evaluate(ranking, "MRR", config=StatsConfig(ties=rule))["MRR"].value for rule in ("pessimistic", "optimistic")
    )
    assert 0 < high - low < 0.001
    assert "EQ301" not in codes(evaluate(ranking, "MRR").findings)
    assert "EQ301" in codes(evaluate(ranking, "MR").findings), "a third of a rank is not nothing"


def test_ties_are_reported_whatever_order_they_were_put_in() -> None:
    assert "EQ301" in codes(evaluate(tied_ranking(8), "MRR", config=StatsConfig(ties="by_id")).findings)


def test_a_constant_scorer_is_not_above_chance_on_any_metric() -> None:
    ranking = Ranking.from_scores(np.zeros((50, 20)), np.arange(50) % 20)
    result = evaluate(ranking, ["MRR", "nDCG@10", "HR@1", "MR"])
    assert len(the("EQ302", result.findings).evidence) == 4


@pytest.mark.parametrize(
    ("metrics", "advised"), [("HR@1", False), ("MRR", False), ("HR@3", True), (["HR@1", "nDCG@10"], True)]
)
def test_a_smaller_cutoff_is_advised_only_where_there_is_one(metrics: object, advised: bool) -> None:
    ranking = Ranking.from_scores(np.zeros((50, 20)), np.arange(50) % 20)
    found = the("EQ302", evaluate(ranking, metrics).findings)  # type: ignore[arg-type]
    assert ("a smaller cutoff" in found.hint) == advised
    assert "more candidates or more data" in found.hint


def test_distances_taken_for_scores_are_called_worse_than_chance() -> None:
    ranking = Ranking.from_ranks([20, 19, 18, 20, 17] * 10, candidates=20)
    for metric in ("MRR", "MR"):
        found = the("EQ302", evaluate(ranking, metric).findings)
        assert "worse than chance" in found.message
        assert "distances" in found.hint


def test_lower_is_better_is_understood_by_the_chance_check() -> None:
    assert evaluate(good_ranking(), "MR").findings == ()


def test_a_skipped_chance_level_is_not_compared_with() -> None:
    ranking = Ranking.from_ranks([1, 5, 10], candidates=10)
    assert "EQ302" not in codes(evaluate(ranking, "MRR", chance=False).findings)


def test_one_unit_above_chance_has_no_interval_and_is_not_held_against_it() -> None:
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
    assert ("EQ303" in codes(findings)) == full


# ---- comparisons and points ------------------------------------------------------------------


def pair(units: int, better_on: int) -> dict[str, Ranking]:
    """Two systems; the first is better on some units and worse on one in ten."""
    first = np.full(units, 3)
    second = np.full(units, 3)
    second[:better_on] = 4
    first[-units // 10 :] = 4
    return {name: Ranking.from_ranks(ranks, candidates=50) for name, ranks in (("x", first), ("y", second))}


def test_a_difference_that_the_units_cannot_show_asks_for_more_units() -> None:
    comparison = compare(pair(units=40, better_on=8), "MRR")
    found = the("EQ304", comparison.findings)
    needed = comparison.contrast("x", "y").needed.value
    assert needed > 40
    assert found.subject == "x, y"
    assert (
        f"about {about(needed)} queries would be needed to distinguish them with 80 % power (one test)" in found.message
    )
    assert f"about {about(needed)} queries would be needed to distinguish x from y" in comparison.verdict().casefold()
    assert "unit" not in found.message + "".join(found.evidence), "trees have nodes"


def test_a_difference_that_is_shown_asks_for_nothing() -> None:
    comparison = compare(pair(units=40, better_on=30), "MRR")
    assert comparison.contrast("x", "y").winner() == "x"
    assert "EQ304" not in codes(comparison.findings)


def test_equal_systems_are_not_told_to_get_more_units() -> None:
    ranking = good_ranking()
    assert "EQ304" not in codes(compare({"x": ranking, "y": ranking}, "MRR").findings)


def test_invalid_points_of_a_ranking_are_an_issue() -> None:
    sentence = "3 of 40 points lie outside the ball"
    found = the("EQ109", evaluate(replace(good_ranking(), invalid_points=sentence), "MRR").findings)
    assert found.message == sentence
    assert "EQ109" not in codes(evaluate(good_ranking(), "MRR").findings)


def test_models_beside_a_lexical_system_raise_no_complaint() -> None:
    assert run_checks(measured({name: ["q1"] for name in ["minilm", "use", "bm25:"]})) == ()
    assert run_checks(measured({"minilm": ["q1"]})) == ()
    the("EQ107", run_checks(measured({name: ["q1"] for name in ["minilm", "sum:minilm+bm25:"]})))


def test_an_index_of_little_effort_is_found_out_and_an_exact_one_is_not() -> None:
    pytest.importorskip("faiss")
    words = [f"{a}{b}" for a in "abcdefghij" for b in "klmnopqrst"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 6)) for _ in range(600)]
    rough = retriever("hash", store=open_store("faiss:hnsw", dims=256, neighbours=2, ef_construction=2, ef_search=1))
    fitted = rough.fit(texts)
    fitted.search(texts[:50], k=10)
    the("EQ152", run_checks(fitted))
    exact = retriever("hash", store="faiss").fit(texts)
    exact.search(texts[:50], k=10)
    assert run_checks(exact) == ()


def test_a_mean_rank_that_few_units_decide_has_a_caveat_beside_its_interval() -> None:
    skewed = Ranking.from_ranks([1] * 59 + [180], candidates=203)
    assert "EQ307" in codes(evaluate(skewed, "MR").findings)
    assert "EQ307" not in codes(evaluate(skewed, "MRR").findings), "bounds tell how large a value can be"
    assert "EQ307" not in codes(evaluate(Ranking.from_ranks([1, 2, 3] * 20, candidates=9), "MR").findings)


@pytest.mark.parametrize(("moved", "caveat"), [(0, False), (9, True), (10, False)])
def test_a_difference_that_few_units_show_has_a_caveat_beside_its_interval(moved: int, caveat: bool) -> None:
    first = Ranking.from_ranks([1] * 80, candidates=9)
    second = Ranking.from_ranks([1] * (80 - moved) + [2 + at % 4 for at in range(moved)], candidates=9)
    found = compare({"first": first, "second": second}, "MRR").findings
    assert ("EQ308" in codes(found)) == caveat
