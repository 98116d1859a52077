"""The presets as data: complete, frozen, and truthful about what a library would not take."""

from __future__ import annotations

import warnings
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.metrics.parser import parse_metrics
from equipoise.reproduce.emulation import RunAndQrels
from equipoise.reproduce.presets import (
    CONVENTIONS,
    PRESETS,
    Conventions,
    differences_from_default,
    get_preset,
    metric_form,
)
from equipoise.reproduce.score import limitation_notes
from library_figures import LIBRARIES, REAL

NDCG, MRR, MAP = parse_metrics(["nDCG@3", "MRR@3", "MAP@3"])


def test_every_convention_has_words_for_every_value_that_a_preset_uses() -> None:
    assert list(CONVENTIONS) == [field.name for field in fields(Conventions)]
    for preset in PRESETS.values():
        for form in preset.calls:
            rules = preset.rules(parse_metrics(form.replace("@k", "@3"))[0])
            for name in rules:
                assert CONVENTIONS[name].describe(rules[name])


def test_a_preset_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        PRESETS["ranx"].conventions.ties = "expected"  # type: ignore[misc]


def test_the_issue_names_every_preset() -> None:
    asked = {"trec_eval", "ranx", "mteb", "beir", "sentence-transformers", "torchmetrics", "sklearn"}
    assert set(PRESETS) == asked | {"equipoise"} == set(LIBRARIES) | {"equipoise"}
    assert all(preset.version for name, preset in PRESETS.items() if name != "equipoise")


def test_a_preset_with_a_typo_gets_a_did_you_mean() -> None:
    with pytest.raises(UnknownNameError) as error:
        get_preset("sentence-transformer")
    assert error.value.hint == "did you mean sentence-transformers?"


def test_what_a_library_does_not_have_is_refused_with_a_reason() -> None:
    with pytest.raises(ParameterError) as error:
        PRESETS["sklearn"].rules(MAP)
    assert error.value.message == "sklearn has no MAP@3"
    assert "no cutoff" in error.value.hint
    with pytest.raises(ParameterError, match="has no MR"):
        PRESETS["equipoise"].rules(parse_metrics("MR")[0])
    with pytest.raises(ParameterError, match="MAP\\(norm=R\\)"):
        PRESETS["mteb"].rules(parse_metrics("MAP(norm=R)@3")[0])


def test_our_own_metrics_may_say_how_they_are_measured() -> None:
    assert PRESETS["equipoise"].rules(parse_metrics("MAP(norm=R)@3")[0]).norm == "R"
    assert PRESETS["equipoise"].rules(parse_metrics("nDCG(gain=exp)@3")[0]).gain == "exp"


def test_a_library_may_treat_one_metric_unlike_the_others() -> None:
    beir = PRESETS["beir"]
    assert (beir.rules(NDCG).missing, beir.rules(MRR).missing) == ("left_out", "zero")
    assert (beir.rules(NDCG).ties, beir.rules(MRR).ties) == ("id_down", "input")
    assert metric_form(MRR) in beir.exceptions


def test_only_what_departs_from_our_own_conventions_is_told() -> None:
    assert differences_from_default(Conventions(), NDCG) == []
    told = differences_from_default(replace(Conventions(), norm="R", scores="float32"), NDCG)
    assert told == ["scores are rounded to 32 bits, which can create ties"]


RUN = {"q1": {"a": 0.9, "b": 0.5}, "stray": {"a": 0.3}}
QRELS = {"q1": {"a": 1, "b": 0}}


@pytest.mark.parametrize("name", [pytest.param(name, marks=REAL[name]) for name in ("mteb", "beir")])
def test_stray_queries_stop_the_library_as_its_note_says(name: str) -> None:
    said = limitation_notes(PRESETS[name], [MRR], RunAndQrels.of(RUN, QRELS))
    assert any("KeyError" in note for note in said)
    pytest.importorskip(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "mteb":
            from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores

            with pytest.raises(KeyError):
                calculate_retrieval_scores(RUN, QRELS, [3])
        else:
            from beir.retrieval.evaluation import EvaluateRetrieval

            with pytest.raises(KeyError):
                EvaluateRetrieval.evaluate_custom(QRELS, RUN, [3], "mrr")


@REAL["beir"]
def test_beir_takes_stray_queries_where_pytrec_eval_measures() -> None:
    assert limitation_notes(PRESETS["beir"], [NDCG], RunAndQrels.of(RUN, QRELS)) == []
    assert LIBRARIES["beir"](RUN, QRELS, "nDCG@k", 3) == 1.0


def test_fractions_stop_pytrec_eval_as_the_note_says() -> None:
    qrels = {"q1": {"a": 0.5, "b": 2}}
    assert any(
        "TypeError" in note for note in limitation_notes(PRESETS["trec_eval"], [NDCG], RunAndQrels.of(RUN, qrels))
    )
    with pytest.raises(TypeError):
        LIBRARIES["trec_eval"](RUN, qrels, "nDCG@k", 3)  # type: ignore[arg-type]


def test_negative_judgements_stop_sklearn_as_the_note_says() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    said = limitation_notes(PRESETS["sklearn"], [NDCG], RunAndQrels.of(RUN, {"q1": {"a": 1, "b": -1}}))
    assert any("rejects negative" in note for note in said)
    with pytest.raises(ValueError, match="negative"):
        metrics.ndcg_score([[1, -1]], [[0.9, 0.5]])


@REAL["beir"]
def test_a_query_without_relevant_items_stops_beir_as_the_note_says() -> None:
    capped = parse_metrics("R(capped)@3")[0]
    qrels = {"q1": {"a": 1}, "q2": {"a": 0}}
    run = {"q1": {"a": 0.9}, "q2": {"a": 0.9}}
    (note,) = limitation_notes(PRESETS["beir"], [capped, NDCG], RunAndQrels.of(run, qrels))
    assert "ZeroDivisionError" in note
    assert limitation_notes(PRESETS["beir"], [capped], RunAndQrels.of({"q1": run["q1"]}, {"q1": qrels["q1"]})) == []
    with pytest.raises(ZeroDivisionError):
        LIBRARIES["beir"](run, qrels, "R(capped)@k", 3)


@pytest.mark.engines("ranx")
def test_runs_with_other_queries_stop_ranx_as_the_note_says() -> None:
    ranx = pytest.importorskip("ranx")
    (note,) = limitation_notes(PRESETS["ranx"], [NDCG], RunAndQrels.of(RUN, QRELS))
    assert "AssertionError" in note
    with pytest.raises(AssertionError):
        ranx.evaluate(ranx.Qrels(QRELS), ranx.Run(RUN), "mrr")
    assert limitation_notes(PRESETS["ranx"], [NDCG], RunAndQrels.of({"q1": RUN["q1"]}, QRELS)) == []


def test_where_torch_has_no_rule_the_note_gives_the_range() -> None:
    inputs = RunAndQrels.of({"q": {"a": 0.5, "b": 0.5}}, {"q": {"a": 1}})
    (note,) = limitation_notes(PRESETS["torchmetrics"], [MRR], inputs)
    assert note.endswith("any order gives between 0.5000 and 1.0000")
    assert limitation_notes(PRESETS["torchmetrics"], [NDCG], inputs) == []
    assert limitation_notes(PRESETS["torchmetrics"], [MRR], RunAndQrels.of(RUN, QRELS)) == []
