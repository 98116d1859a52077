"""Scoring with the preset of a library: its value, intervals, and protection against invalid comparisons."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.errors import ParameterError
from equipoise.evidence.ranking import Ranking
from equipoise.reproduce.score import score_like
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import evaluate

RUN = {
    "q1": {"a": 0.5, "b": 0.5, "c": 0.1},
    "q2": {"b": 0.9, "a": 0.2},
    "q3": {"c": 0.3, "a": 0.1},
    "extra": {"a": 1.0},
}
QRELS = {"q1": {"b": 2, "c": 1}, "q2": {"a": 1}, "q3": {"b": 0}, "q4": {"a": 1}}


def test_the_value_equals_the_library_and_the_interval_contains_it() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    library_values = pytrec_eval.RelevanceEvaluator(QRELS, {"ndcg_cut.2"}).evaluate(RUN)
    result = score_like(RUN, QRELS, "nDCG@2", like="trec_eval", system="bm25")
    estimate = result["nDCG@2"]
    assert estimate.value == pytest.approx(
        np.mean([values["ndcg_cut_2"] for values in library_values.values()]), abs=1e-12
    )
    assert (estimate.n, estimate.undefined) == (3, 1)
    assert estimate.interval.low <= estimate.value <= estimate.interval.high
    assert 0 < estimate.chance < 1
    per_unit = dict(zip(result.unit_ids.tolist(), result.per_unit["nDCG@2"].tolist(), strict=True))
    assert per_unit["q1"] == pytest.approx(library_values["q1"]["ndcg_cut_2"])
    assert np.isnan(per_unit["q4"])


def test_only_the_mean_is_rounded() -> None:
    result = score_like(RUN, QRELS, "nDCG@2", like="mteb")
    exact = score_like(RUN, QRELS, "nDCG@2", like="trec_eval")
    assert result["nDCG@2"].value == round(exact["nDCG@2"].value, 5) != exact["nDCG@2"].value
    np.testing.assert_array_equal(result.per_unit["nDCG@2"], exact.per_unit["nDCG@2"])


def test_settings_contain_the_preset_and_its_conventions() -> None:
    settings = score_like(RUN, QRELS, ["nDCG@2", "MRR@2"], like="beir").settings
    assert (settings["like"], settings["like_version"]) == ("beir", "2.2.0")
    assert settings["conventions"]["nDCG@2"]["missing"] == "left_out"
    assert settings["conventions"]["MRR@2"]["missing"] == "zero"
    assert any("KeyError" in note for note in settings["notes"])


def test_results_of_different_presets_are_not_comparable() -> None:
    default = evaluate(Ranking.from_runs(QRELS, RUN), "nDCG@2", system="default")
    mteb = score_like(RUN, QRELS, "nDCG@2", like="mteb", system="mteb")
    ranx = score_like(RUN, QRELS, "nDCG@2", like="ranx", system="ranx")
    for pair in ((default, mteb), (mteb, ranx)):
        with pytest.raises(ParameterError, match="ties=") as error:
            compare(pair, "nDCG@2")
    assert error.value.hint == "score both with --like mteb"


def test_results_of_one_preset_are_comparable() -> None:
    better = {query: dict.fromkeys(gains, 1.0) for query, gains in QRELS.items()}
    results = [score_like(run, QRELS, "nDCG@2", like="ranx", system=name) for name, run in (("a", RUN), ("b", better))]
    assert compare(results, "nDCG@2").leader == "b"


def test_only_library_independent_findings_are_reported() -> None:
    codes = {finding.code for finding in score_like(RUN, QRELS, "nDCG@2", like="mteb").findings}
    assert "EQ106" in codes
    assert not codes & {"EQ101", "EQ104"}


def test_tie_findings_are_reported_for_the_default_preset_only() -> None:
    run = {f"q{unit}": {"a": 0.5, "b": 0.5, "c": 0.1} for unit in range(20)}
    qrels = {query: {"a": 1, "z": 1} for query in run}
    codes = {
        like: {finding.code for finding in score_like(run, qrels, "MAP", like=like).findings}
        for like in ("equipoise", "torchmetrics", "trec_eval")
    }
    assert "EQ301" in codes["equipoise"]
    assert "EQ301" not in codes["torchmetrics"] | codes["trec_eval"]


def test_whole_clusters_are_resampled() -> None:
    clusters = {"q1": "x", "q2": "x", "q3": "y", "q4": "y"}
    result = score_like(RUN, QRELS, "nDCG@2", like="ranx", config=StatsConfig(clusters=clusters))
    assert result.clusters is not None
    assert result.clusters.tolist() == ["x", "x", "y", "y"]
    assert result.to_dict()["clusters"] == 2


def test_the_preset_equipoise_equals_evaluate() -> None:
    default = evaluate(Ranking.from_runs(QRELS, RUN), ["nDCG@2", "MRR"])
    like = score_like(RUN, QRELS, ["nDCG@2", "MRR"], like="equipoise")
    for name in ("nDCG@2", "MRR"):
        assert like[name].value == pytest.approx(default[name].value)
        assert like[name].chance == pytest.approx(default[name].chance)
        assert (like[name].n, like[name].undefined) == (default[name].n, default[name].undefined)
