"""Published scores and the conventions that give them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import ParameterError
from equipoise.metrics.parser import parse_metrics
from equipoise.reproduce.emulation import RunAndQrels, score_under
from equipoise.reproduce.presets import PRESETS
from equipoise.reproduce.published import ReportedScore, explain_published
from library_metrics import runs_and_qrels


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("0.4123", 0.41225, 0.41235),
        ("41.23", 0.41225, 0.41235),
        ("41%", 0.405, 0.415),
        ("1", 0.5, 1.0),
        ("0", 0.0, 0.5),
        ("0.50", 0.495, 0.505),
    ],
)
def test_a_reported_score_has_the_range_of_its_rounding(text: str, low: float, high: float) -> None:
    reported = ReportedScore.of(text)
    assert (reported.low, reported.high) == pytest.approx((low, high))


@given(st.floats(0, 1), st.integers(1, 8))
def test_a_value_is_within_the_range_of_its_rounding(value: float, digits: int) -> None:
    reported = ReportedScore.of(f"{value:.{digits}f}")
    assert reported.holds(value)
    assert not reported.holds(value + 1.01 * 10.0**-digits)


@pytest.mark.parametrize("text", ["abc", "-0.1", "101", "nan", "inf", ""])
def test_an_invalid_score_is_an_error(text: str) -> None:
    with pytest.raises(ParameterError):
        ReportedScore.of(text)


@pytest.mark.slow
@settings(max_examples=10)
@given(runs_and_qrels(), st.sampled_from(sorted(PRESETS)), st.sampled_from(["mteb", "equipoise"]))
def test_the_preset_of_a_published_score_is_found(inputs, name: str, base: str) -> None:
    run, qrels = inputs
    value = score_under(
        RunAndQrels.of(run, qrels),
        parse_metrics("nDCG@3")[0],
        PRESETS[name].rules(parse_metrics("nDCG@3")[0]),
    ).value
    explanation = explain_published(run, qrels, f"{value:.6f}", "nDCG@3", like=base)
    assert name in [match.preset for match in explanation.matches if not match.changes]


RUN = {"q1": {"a": 0.5, "b": 0.5, "c": 0.1}, "q2": {"b": 0.5, "a": 0.2}}
QRELS = {"q1": {"b": 2, "c": 1}, "q2": {"a": 1}, "q3": {"a": 1}}


def test_one_changed_convention_is_found_without_redundant_pairs() -> None:
    metric = parse_metrics("nDCG@3")[0]
    rules = PRESETS["trec_eval"].rules(metric).with_values({"gain": "exp"})
    value = score_under(RunAndQrels.of(RUN, QRELS), metric, rules).value
    explanation = explain_published(RUN, QRELS, f"{value:.5f}", "nDCG@3", like="trec_eval")
    changes = [match.changes for match in explanation.matches]
    assert (("gain", "exp"),) in changes
    assert not any(len(change) > 1 and ("gain", "exp") in change for change in changes)
    assert explanation.matches[changes.index((("gain", "exp"),))].says == ["the gain is 2^grade - 1"]


def test_two_changed_conventions_are_found() -> None:
    metric = parse_metrics("nDCG@3")[0]
    two = {"gain": "exp", "missing": "zero"}
    value = score_under(RunAndQrels.of(RUN, QRELS), metric, PRESETS["mteb"].rules(metric).with_values(two)).value
    explanation = explain_published(RUN, QRELS, f"{value:.5f}", "nDCG@3", like="mteb")
    assert any(dict(match.changes) == two for match in explanation.matches)


def test_a_score_without_a_match_has_the_nearest_value() -> None:
    explanation = explain_published(RUN, QRELS, "0.999", "nDCG@3", like="ranx")
    assert explanation.matches == ()
    assert explanation.nearest.value < 0.999
    assert explanation.tried >= explanation.figures > 1


def test_presets_without_the_metric_are_listed_with_the_reason() -> None:
    explanation = explain_published(RUN, QRELS, "0.5", "MRR", like="ranx")
    assert explanation.skipped["mteb"] == "mteb has no MRR"
    with pytest.raises(ParameterError, match=r"sklearn.*MRR"):
        explain_published(RUN, QRELS, "0.5", "MRR", like="sklearn")


def test_a_relevance_threshold_is_found() -> None:
    """As ``trec_eval -l 2`` and ``RR(rel=2)`` of ir_measures score."""
    run = {"q1": {"a": 0.9, "b": 0.5, "c": 0.1}, "q2": {"a": 0.9, "d": 0.8, "b": 0.5}}
    qrels = {"q1": {"a": 1, "c": 2}, "q2": {"d": 1, "b": 3}}
    explanation = explain_published(run, qrels, f"{1 / 3:.4f}", "MRR")
    assert (("min_grade", 2),) in [match.changes for match in explanation.matches]


@given(st.integers(1, 30), st.integers(0, 10**6))
def test_any_depth_of_the_lists_is_found(depth: int, seed: int) -> None:
    import numpy as np

    rng = np.random.default_rng(seed)
    run = {f"q{i}": {f"d{j}": float(s) for j, s in enumerate(rng.permutation(40))} for i in range(5)}
    qrels = {f"q{i}": {f"d{j}": 1 for j in rng.choice(40, 12, replace=False)} for i in range(5)}
    truncated = {
        query: dict(sorted(scores.items(), key=lambda pair: -pair[1])[:depth]) for query, scores in run.items()
    }
    metric = parse_metrics("MAP")[0]
    value = score_under(RunAndQrels.of(truncated, qrels), metric, PRESETS["trec_eval"].rules(metric)).value
    explanation = explain_published(run, qrels, f"{value:.8f}", "MAP", like="trec_eval")
    depths = [dict(match.changes).get("depth") for match in explanation.matches if len(match.changes) == 1]
    equal_depths = {d for d in range(1, 41) if _map_at(run, qrels, d) == pytest.approx(value, abs=1e-8)}
    assert depth in equal_depths
    assert set(depths) & equal_depths


def _map_at(run, qrels, depth: int) -> float:
    """Average precision of lists truncated after ``depth`` items, divided by R."""
    total = 0.0
    for query, scores in run.items():
        ranked = sorted(scores, key=lambda item: -scores[item])[:depth]
        hits = [rank for rank, item in enumerate(ranked, 1) if item in qrels[query]]
        total += sum(count / rank for count, rank in enumerate(hits, 1)) / len(qrels[query])
    return total / len(run)
