"""The functions evaluate and compare."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.errors import DuplicateError, InputError, PairingError, ParameterError, UnknownNameError
from equipoise.evidence.labels import Labels
from equipoise.evidence.pairs import Pairs
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.sets import Sets
from equipoise.evidence.space import Space
from equipoise.metrics.base import BaseMetric
from equipoise.metrics.parser import builtin
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import at_confidence_level, evaluate
from equipoise.stats.comparison import Comparison
from equipoise.stats.estimate import estimate

QRELS = {f"q{unit}": {"a": 1, "b": 2} for unit in range(12)}


def tied_run(seed: int) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    return {unit: dict(zip("abcdefgh", rng.integers(0, 3, 8).tolist(), strict=True)) for unit in QRELS}


def ranking(seed: int = 0) -> Ranking:
    return Ranking.from_runs(QRELS, tied_run(seed))


class FirstHit(BaseMetric):
    """Whether the first item is relevant."""

    def __init__(self) -> None:
        super().__init__(name="first_hit")

    def calculate(self, results: Ranking) -> np.ndarray:
        return (results.best_ranks == 1).astype(float)


# ---- evaluate --------------------------------------------------------------------------------


def test_evaluate_accepts_aliases_and_estimates_each_metric_once() -> None:
    result = evaluate(ranking(), ["ndcg@10", "HR@{1,3}", "Acc@1"], system="bm25")
    assert result.system == "bm25"
    assert result.names == ("nDCG@10", "HR@1", "HR@3")


@pytest.mark.parametrize("ties", ["expected", "by_id", "optimistic", "pessimistic"])
def test_ties_are_resolved_before_metrics_are_computed(ties: str) -> None:
    evidence = ranking()
    result = evaluate(evidence, "MRR", config=StatsConfig(ties=ties))
    expected = [metric.measure(evidence.ordered(ties)).value for metric in builtin_metrics("MRR")]
    assert result["MRR"].value == expected[0]
    assert result.settings["ties"] == ties


def builtin_metrics(name: str):  # type: ignore[no-untyped-def]
    from equipoise.metrics.parser import parse_metrics

    return parse_metrics(name)


def test_the_result_has_the_unchanged_evidence() -> None:
    evidence = ranking()
    assert evidence.has_ties
    assert evaluate(evidence, "MRR", config=StatsConfig(ties="by_id")).evidence is evidence


def test_the_same_seed_gives_the_same_result() -> None:
    first, second = (evaluate(ranking(), ["MRR", "MedianRank"], config=StatsConfig(seed=3)) for _ in range(2))
    assert first.estimates == second.estimates


def test_clusters_may_be_named_by_unit() -> None:
    evidence = ranking()
    clusters = {unit: f"c{index // 3}" for index, unit in enumerate(QRELS)}
    by_name = evaluate(evidence, "MRR", config=StatsConfig(clusters=clusters))
    by_order = evaluate(evidence, "MRR", config=StatsConfig(clusters=list(clusters.values())))
    assert by_name.estimates == by_order.estimates
    assert by_name.estimates != evaluate(evidence, "MRR").estimates


def test_a_unit_without_a_cluster_is_an_error_with_its_name() -> None:
    with pytest.raises(InputError, match="11 of 12 ids have no cluster, q1 is the first"):
        evaluate(ranking(), "MRR", config=StatsConfig(clusters={"q0": "c"}))


def test_custom_metrics_are_evaluated_like_built_in_ones() -> None:
    catalogue = builtin().plus([FirstHit()], source="a test")
    result = evaluate(ranking(), ["first_hit", "MRR"], catalogue=catalogue)
    assert result["first_hit"].value == result.per_unit["first_hit"].mean()
    assert evaluate(ranking(), FirstHit()).names == ("first_hit",)


@pytest.mark.parametrize(
    ("evidence", "first"),
    [
        (ranking(), "nDCG@10"),
        (Labels.of([0, 1, 1], [0, 1, 0]), "Acc"),
        (Pairs.of([0.1, 0.2, 0.5], [0.2, 0.1, 0.6]), "Spearman"),
        (Sets.of({"d": ["x"], "e": ["y"]}, {"d": ["x"], "e": ["x"]}), "F1"),
    ],
)
def test_there_are_default_metrics_per_kind_of_evidence(evidence: object, first: str) -> None:
    assert evaluate(evidence).names[0] == first  # type: ignore[arg-type]


def test_a_space_has_no_default_metrics() -> None:
    with pytest.raises(ParameterError, match="space"):
        evaluate(Space.of([[1.0, 0.0], [0.0, 1.0]]))


def test_evidence_of_another_kind_is_an_error() -> None:
    with pytest.raises(InputError, match="dict"):
        evaluate({"q": {"a": 1}}, "MRR")  # type: ignore[arg-type]
    with pytest.raises(ParameterError) as error:
        evaluate(Labels.of([0], [0]), "MRR")
    assert error.value.code == "E310"


def test_an_unknown_tie_policy_gets_a_suggestion() -> None:
    with pytest.raises(ParameterError) as error:
        evaluate(ranking(), "MRR", config=StatsConfig(ties="by-id"))
    assert error.value.hint == "did you mean by_id?"


# ---- compare ---------------------------------------------------------------------------------


def test_evidence_is_scored_and_compared() -> None:
    comparison = compare({"x": ranking(0), "y": ranking(1)}, "HR@{1,3}", primary="hit_rate@3")
    assert isinstance(comparison, Comparison)
    assert comparison.primary == "HR@3"
    assert comparison.metrics == ("HR@1", "HR@3")


def test_rankings_have_default_metrics_and_the_first_is_primary() -> None:
    comparison = compare({"x": ranking(0), "y": ranking(1)})
    assert comparison.metrics == ("nDCG@10", "MRR", "HR@1", "HR@10")
    assert comparison.primary == "nDCG@10"


def test_a_primary_metric_that_was_not_listed_is_added() -> None:
    assert "MRR" in compare({"x": ranking(0), "y": ranking(1)}, "HR@1", primary="MRR").metrics


def test_several_primary_metrics_are_an_error() -> None:
    with pytest.raises(ParameterError) as error:
        compare({"x": ranking(0), "y": ranking(1)}, primary="HR@{1,3}")
    assert error.value.code == "E310"


def test_results_are_compared_on_common_metrics() -> None:
    results = [
        evaluate(ranking(0), ["MRR", "HR@1"], system="x"),
        evaluate(ranking(1), ["HR@3", "MRR"], system="y"),
    ]
    assert compare(results).metrics == ("MRR",)


def test_evidence_and_its_result_give_the_same_comparison() -> None:
    evidence = {"x": ranking(0), "y": ranking(1)}
    results = {name: evaluate(ranking_evidence, ["MRR", "HR@1"]) for name, ranking_evidence in evidence.items()}
    direct = compare(evidence, ["MRR", "HR@1"])
    assert compare(results).to_dict() == direct.to_dict()
    assert compare(results, ["MRR", "HR@1"]).to_dict() == direct.to_dict()


def test_a_result_that_lacks_a_metric_is_scored_again_from_its_evidence() -> None:
    results = {
        name: evaluate(ranking(seed), "MRR", config=StatsConfig(ties="by_id")) for name, seed in (("x", 0), ("y", 1))
    }
    from_results = compare(results, "nDCG@5", config=StatsConfig(ties="by_id"))
    direct = compare({"x": ranking(0), "y": ranking(1)}, "nDCG@5", config=StatsConfig(ties="by_id"))
    assert from_results.to_dict() == direct.to_dict()


def test_a_result_without_evidence_cannot_be_scored_again() -> None:
    without_evidence = [replace(evaluate(ranking(seed), "MRR", system=f"s{seed}"), evidence=None) for seed in (0, 1)]
    assert compare(without_evidence).primary == "MRR"
    with pytest.raises(ParameterError):
        compare(without_evidence, "nDCG@5")


def test_a_custom_metric_of_the_results_is_compared_by_name() -> None:
    results = [estimate(ranking(seed), [FirstHit()], system=f"s{seed}") for seed in (0, 1)]
    assert compare(results, "first_hit").primary == "first_hit"
    with pytest.raises(UnknownNameError):
        compare(results, "second_hit")


def test_clusters_of_results_are_used_in_the_comparison() -> None:
    clusters = {unit: f"c{index // 3}" for index, unit in enumerate(QRELS)}
    results = {"x": evaluate(ranking(0), "MRR"), "y": evaluate(ranking(1), "MRR")}
    assert compare(results, config=StatsConfig(clusters=clusters)).clusters == 4
    with_clusters = {
        name: evaluate(result.evidence, "MRR", config=StatsConfig(clusters=clusters))
        for name, result in results.items()
    }
    assert compare(with_clusters, "HR@1").clusters == 4


@pytest.mark.slow
def test_corpus_metrics_are_resampled_with_the_tie_rule_of_the_result() -> None:
    complete = {name: ranking(seed) for name, seed in (("x", 0), ("y", 1))}
    results = {
        name: evaluate(evidence, "MedianRank", config=StatsConfig(ties="pessimistic"))
        for name, evidence in complete.items()
    }
    through_results = compare(results)
    ordered = {name: evidence.ordered("pessimistic") for name, evidence in complete.items()}
    direct = compare(ordered, "MedianRank")
    assert through_results.contrast("x", "y").interval == direct.contrast("x", "y").interval


def test_intervals_of_stored_results_follow_the_confidence_level_of_the_comparison() -> None:
    metrics = ["nDCG@10", "HR@1", "MedianRank"]
    rng = np.random.default_rng(5)
    evidence = {name: Ranking.from_ranks(rng.integers(1, 30, 60), candidates=40) for name in "ab"}
    narrow = StatsConfig(confidence_level=0.8)
    stored = {name: evaluate(ranking, metrics, system=name) for name, ranking in evidence.items()}
    recomputed = {name: evaluate(ranking, metrics, system=name, config=narrow) for name, ranking in evidence.items()}
    comparison = compare(stored, config=narrow)
    for name, result in recomputed.items():
        assert comparison.estimates[name] == dict(result.estimates)
    without_evidence = {name: replace(result, evidence=None) for name, result in stored.items()}
    estimates = compare(without_evidence, config=narrow).estimates["a"]
    assert [estimates[name].interval.confidence_level for name in metrics] == [0.8, 0.8, 0.95]
    assert estimates["nDCG@10"] == recomputed["a"]["nDCG@10"]


def test_the_intervals_of_one_stored_result_can_follow_another_confidence_level() -> None:
    scored = evaluate(ranking(), ["MRR", "HR@3"])
    narrow = StatsConfig(confidence_level=0.8)
    assert (
        at_confidence_level(scored, narrow).estimates == evaluate(ranking(), ["MRR", "HR@3"], config=narrow).estimates
    )
    assert at_confidence_level(scored, StatsConfig()) is scored


def test_systems_scored_with_different_tie_rules_are_an_error() -> None:
    results = {"x": evaluate(ranking(0), "MRR", config=StatsConfig(ties="by_id")), "y": evaluate(ranking(1), "MRR")}
    with pytest.raises(ParameterError, match="x was scored with ties=by_id and y with ties=expected"):
        compare(results)


def test_unpaired_units_are_an_error() -> None:
    other = Ranking.from_runs({"q0": {"a": 1}, "q99": {"a": 1}}, {"q0": {"a": 1.0}})
    with pytest.raises(PairingError) as error:
        compare({"x": ranking(), "y": other}, "MRR")
    assert error.value.code == "E208"


def test_units_in_another_order_are_paired_by_id() -> None:
    reversed_ranking = ranking(1).take(np.arange(len(QRELS))[::-1])
    same_order, reversed_order = (
        compare({"x": ranking(0), "y": second}, "MRR") for second in (ranking(1), reversed_ranking)
    )
    assert same_order.contrast("x", "y").difference == pytest.approx(reversed_order.contrast("x", "y").difference)
    assert same_order.contrast("x", "y").wins == reversed_order.contrast("x", "y").wins


def test_a_comparison_has_the_findings_of_its_systems() -> None:
    comparison = compare({"x": ranking(0), "y": ranking(1)}, "MRR")
    subjects = {(finding.code, finding.subject) for finding in comparison.findings}
    assert {("EQ301", "x"), ("EQ301", "y"), ("EQ304", "x, y")} <= subjects
    content = comparison.to_dict()
    assert [finding["code"] for finding in content["findings"]] == [item.code for item in comparison.findings]
    assert content["primary"] == "MRR"


def test_invalid_systems_are_errors() -> None:
    with pytest.raises(ParameterError) as error:
        compare({"x": ranking()})
    assert error.value.code == "E310"
    with pytest.raises(DuplicateError, match="two results are called 'system'"):
        compare([evaluate(ranking(), "MRR")] * 2)
    with pytest.raises(InputError, match="the system y is a dict"):
        compare({"x": ranking(), "y": {}})  # type: ignore[dict-item]
    with pytest.raises(ParameterError) as error:
        compare({"x": ranking(), "y": Labels.of([0], [0])}, "Acc@1")
    assert error.value.code == "E310"
    with pytest.raises(ParameterError) as error:
        compare([evaluate(ranking(), "MRR", system="x"), evaluate(ranking(), "HR@1", system="y")])
    assert error.value.code == "E310"


def test_a_comparison_prints_as_one_line() -> None:
    comparison = compare({"x": ranking(0), "y": ranking(1)}, "MRR")
    assert repr(comparison).startswith("Comparison of 2 systems on 12 queries by MRR")


def test_estimates_are_found_by_every_alias_of_the_metric() -> None:
    result = evaluate(Ranking.from_ranks([1, 2, 3], candidates=5), ["HR@1", "MRR"])
    assert result["Acc@1"] is result["HR@1"]
    assert result["rr"] is result["MRR"]
