"""Selecting metrics of a stored result, including ones that were not computed at first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.errors import UnknownNameError
from equipoise.evidence.ranking import Ranking
from equipoise.runs.evaluate import evaluate, with_metrics

RANKING = Ranking.from_ranks(np.random.default_rng(0).integers(1, 30, 60), candidates=40)
OPTIONS = StatsConfig(clusters=[f"c{unit // 4}" for unit in range(60)], confidence_level=0.9, seed=3)


def test_existing_metrics_are_selected_in_the_requested_order() -> None:
    result = evaluate(RANKING, ["MRR", "HR@1", "MR"], config=OPTIONS)
    selected = with_metrics(result, ["MR", "rr"])
    assert selected.names == ("MR", "MRR")
    assert selected["MRR"] is result["MRR"]
    assert set(selected.per_unit) == {"MR", "MRR"}


def test_missing_metrics_are_computed_with_the_settings_of_the_result() -> None:
    result = evaluate(RANKING, ["MRR"], config=replace(OPTIONS, ties="pessimistic"))
    recomputed = evaluate(RANKING, ["MRR", "HR@3"], config=replace(OPTIONS, ties="pessimistic"))
    extended = with_metrics(result, ["HR@{3}"])
    assert extended.names == ("HR@3",)
    assert extended["HR@3"] == recomputed["HR@3"]
    assert extended.per_unit["HR@3"].tolist() == recomputed.per_unit["HR@3"].tolist()
    assert extended.findings == result.findings


def test_a_custom_metric_of_the_result_is_selected_by_name() -> None:
    result = evaluate(RANKING, ["MRR"], config=OPTIONS)
    renamed = replace(result, estimates={"custom": result["MRR"]}, per_unit={"custom": result.per_unit["MRR"]})
    assert with_metrics(renamed, ["custom"]).names == ("custom",)
    with pytest.raises(UnknownNameError):
        with_metrics(renamed, ["other"])


def test_without_evidence_a_missing_metric_is_an_error() -> None:
    result = replace(evaluate(RANKING, ["MRR"], config=OPTIONS), evidence=None)
    with pytest.raises(UnknownNameError, match="no metric of system is called 'HR@3'") as error:
        with_metrics(result, ["HR@3"])
    assert error.value.hint == "it has MRR"
