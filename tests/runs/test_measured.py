"""A stored result answers for metrics that it was not asked for at first."""

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


def test_metrics_that_it_has_stay_as_they_are_in_the_order_asked() -> None:
    result = evaluate(RANKING, ["MRR", "HR@1", "MR"], config=OPTIONS)
    chosen = with_metrics(result, ["MR", "rr"])
    assert chosen.names == ("MR", "MRR")
    assert chosen["MRR"] is result["MRR"]
    assert set(chosen.per_unit) == {"MR", "MRR"}


def test_metrics_that_it_lacks_are_scored_as_the_others_were() -> None:
    result = evaluate(RANKING, ["MRR"], config=replace(OPTIONS, ties="pessimistic"))
    fresh = evaluate(RANKING, ["MRR", "HR@3"], config=replace(OPTIONS, ties="pessimistic"))
    again = with_metrics(result, ["HR@{3}"])
    assert again.names == ("HR@3",)
    assert again["HR@3"] == fresh["HR@3"]
    assert again.per_unit["HR@3"].tolist() == fresh.per_unit["HR@3"].tolist()
    assert again.findings == result.findings


def test_a_name_that_only_the_result_knows_stands_for_itself() -> None:
    result = evaluate(RANKING, ["MRR"], config=OPTIONS)
    named = replace(result, estimates={"my own": result["MRR"]}, per_unit={"my own": result.per_unit["MRR"]})
    assert with_metrics(named, ["my own"]).names == ("my own",)
    with pytest.raises(UnknownNameError):
        with_metrics(named, ["yours"])


def test_without_evidence_it_says_what_it_has() -> None:
    result = replace(evaluate(RANKING, ["MRR"], config=OPTIONS), evidence=None)
    with pytest.raises(UnknownNameError, match="no metric of system is called 'HR@3'") as refused:
        with_metrics(result, ["HR@3"])
    assert refused.value.hint == "it has MRR"
