"""The presets: complete, immutable, and with notes on inputs that a library rejects."""

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
from library_metrics import LIBRARIES, REAL

NDCG, MRR, MAP = parse_metrics(["nDCG@3", "MRR@3", "MAP@3"])


def test_every_convention_of_a_preset_has_a_description() -> None:
    assert list(CONVENTIONS) == [field.name for field in fields(Conventions)]
    for preset in PRESETS.values():
        for form in preset.calls:
            rules = preset.rules(parse_metrics(form.replace("@k", "@3"))[0])
            for name in rules:
                assert CONVENTIONS[name].describe(rules[name])


def test_presets_are_immutable() -> None:
    with pytest.raises(FrozenInstanceError):
        PRESETS["ranx"].conventions.ties = "expected"  # type: ignore[misc]


def test_there_is_a_preset_per_library() -> None:
    libraries = {"trec_eval", "ranx", "mteb", "beir", "sentence-transformers", "torchmetrics", "sklearn"}
    assert set(PRESETS) == libraries | {"equipoise"} == set(LIBRARIES) | {"equipoise"}
    assert all(preset.version for name, preset in PRESETS.items() if name != "equipoise")


def test_a_misspelt_preset_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as error:
        get_preset("sentence-transformer")
    assert error.value.hint == "did you mean sentence-transformers?"


def test_an_unsupported_metric_is_an_error_with_a_reason() -> None:
    with pytest.raises(ParameterError) as error:
        PRESETS["sklearn"].rules(MAP)
    assert error.value.message == "sklearn has no MAP@3"
    assert "no cutoff" in error.value.hint
    with pytest.raises(ParameterError, match="has no MR"):
        PRESETS["equipoise"].rules(parse_metrics("MR")[0])
    with pytest.raises(ParameterError, match="MAP\\(norm=R\\)"):
        PRESETS["mteb"].rules(parse_metrics("MAP(norm=R)@3")[0])


def test_parameters_of_metrics_set_conventions() -> None:
    assert PRESETS["equipoise"].rules(parse_metrics("MAP(norm=R)@3")[0]).norm == "R"
    assert PRESETS["equipoise"].rules(parse_metrics("nDCG(gain=exp)@3")[0]).gain == "exp"


def test_a_preset_may_have_exceptions_per_metric() -> None:
    beir = PRESETS["beir"]
    assert (beir.rules(NDCG).missing, beir.rules(MRR).missing) == ("left_out", "zero")
    assert (beir.rules(NDCG).ties, beir.rules(MRR).ties) == ("id_down", "input")
    assert metric_form(MRR) in beir.exceptions


def test_only_differences_from_the_default_conventions_are_listed() -> None:
    assert differences_from_default(Conventions(), NDCG) == []
    descriptions = differences_from_default(replace(Conventions(), norm="R", scores="float32"), NDCG)
    assert descriptions == ["scores are rounded to 32 bits, which can create ties"]


RUN = {"q1": {"a": 0.9, "b": 0.5}, "stray": {"a": 0.3}}
QRELS = {"q1": {"a": 1, "b": 0}}


@pytest.mark.parametrize("name", [pytest.param(name, marks=REAL[name]) for name in ("mteb", "beir")])
def test_extra_queries_raise_the_error_of_the_note(name: str) -> None:
    notes = limitation_notes(PRESETS[name], [MRR], RunAndQrels.of(RUN, QRELS))
    assert any("KeyError" in note for note in notes)
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
def test_beir_accepts_extra_queries_for_metrics_of_pytrec_eval() -> None:
    assert limitation_notes(PRESETS["beir"], [NDCG], RunAndQrels.of(RUN, QRELS)) == []
    assert LIBRARIES["beir"](RUN, QRELS, "nDCG@k", 3) == 1.0


def test_fractional_grades_raise_the_error_of_the_note() -> None:
    qrels = {"q1": {"a": 0.5, "b": 2}}
    assert any(
        "TypeError" in note for note in limitation_notes(PRESETS["trec_eval"], [NDCG], RunAndQrels.of(RUN, qrels))
    )
    with pytest.raises(TypeError):
        LIBRARIES["trec_eval"](RUN, qrels, "nDCG@k", 3)  # type: ignore[arg-type]


def test_negative_judgements_raise_the_error_of_the_note() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    notes = limitation_notes(PRESETS["sklearn"], [NDCG], RunAndQrels.of(RUN, {"q1": {"a": 1, "b": -1}}))
    assert any("rejects negative" in note for note in notes)
    with pytest.raises(ValueError, match="negative"):
        metrics.ndcg_score([[1, -1]], [[0.9, 0.5]])


@REAL["beir"]
def test_a_query_without_relevant_items_raises_the_error_of_the_note() -> None:
    capped = parse_metrics("R(capped)@3")[0]
    qrels = {"q1": {"a": 1}, "q2": {"a": 0}}
    run = {"q1": {"a": 0.9}, "q2": {"a": 0.9}}
    (note,) = limitation_notes(PRESETS["beir"], [capped, NDCG], RunAndQrels.of(run, qrels))
    assert "ZeroDivisionError" in note
    assert limitation_notes(PRESETS["beir"], [capped], RunAndQrels.of({"q1": run["q1"]}, {"q1": qrels["q1"]})) == []
    with pytest.raises(ZeroDivisionError):
        LIBRARIES["beir"](run, qrels, "R(capped)@k", 3)


@pytest.mark.engines("ranx")
def test_other_queries_raise_the_error_of_the_note() -> None:
    ranx = pytest.importorskip("ranx")
    (note,) = limitation_notes(PRESETS["ranx"], [NDCG], RunAndQrels.of(RUN, QRELS))
    assert "AssertionError" in note
    with pytest.raises(AssertionError):
        ranx.evaluate(ranx.Qrels(QRELS), ranx.Run(RUN), "mrr")
    assert limitation_notes(PRESETS["ranx"], [NDCG], RunAndQrels.of({"q1": RUN["q1"]}, QRELS)) == []


def test_without_a_tie_rule_the_note_gives_the_range() -> None:
    inputs = RunAndQrels.of({"q": {"a": 0.5, "b": 0.5}}, {"q": {"a": 1}})
    (note,) = limitation_notes(PRESETS["torchmetrics"], [MRR], inputs)
    assert note.endswith("any order gives between 0.5000 and 1.0000")
    assert limitation_notes(PRESETS["torchmetrics"], [NDCG], inputs) == []
    assert limitation_notes(PRESETS["torchmetrics"], [MRR], RunAndQrels.of(RUN, QRELS)) == []
