"""A result of per-unit values compares and is stored like one that was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from equipoise.config import StatsConfig
from equipoise.errors import (
    DuplicateError,
    EquipoiseError,
    InputError,
    NotFiniteError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from equipoise.evidence.ranking import Ranking
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import load_run, save_run
from equipoise.stats.estimate import result_from_values
from equipoise.stats.intervals import Interval
from equipoise.stats.result import Result
from equipoise.types import Direction

UNITS = [f"q{unit}" for unit in range(60)]
NAN = float("nan")


def from_values(
    units: list[str], values: dict[str, Any], config: dict[str, Any] | None = None, **options: Any
) -> Result:
    return result_from_values("mine", units, values, config=StatsConfig(**(config or {})), **options)


def binary(system: str, seed: int, metric: str = "accuracy", share: float = 0.7, **options: Any) -> Result:
    values = np.random.default_rng(seed).random(60) < share
    return result_from_values(system, UNITS, {metric: values}, **options)


def test_hits_and_misses_get_wilson_s_interval() -> None:
    result = binary("mine", 0)
    theirs = binomtest(int(result.per_unit["Acc"].sum()), 60).proportion_ci(method="wilson")
    assert result["accuracy"].interval.method == "wilson"
    assert (result["accuracy"].interval.low, result["accuracy"].interval.high) == pytest.approx(tuple(theirs))


def test_it_is_the_result_that_the_evidence_gives() -> None:
    ranking = Ranking.from_ranks([1, 2, 5, 1, 3, 9, 1, 4, 2, 7, 6, 1], candidates=30)
    measured = evaluate(ranking, ["MRR", "HR@3"], chance=False)
    tabled = result_from_values("system", measured.unit_ids, measured.per_unit)
    for name in measured.names:
        assert tabled[name].value == measured[name].value
        assert tabled[name].interval == measured[name].interval
        assert (tabled[name].n, tabled[name].undefined) == (12, 0)


@pytest.mark.parametrize("metric", ["accuracy", "held-out accuracy", "HR@5", "my score"])
def test_results_compare_under_any_name(metric: str) -> None:
    one, other = binary("one", 1, metric), binary("other", 2, metric)
    seen = compare({"one": one, "other": other}, metric).contrast("one", "other")
    assert seen.difference == pytest.approx(one[metric].value - other[metric].value)
    assert compare([one, other]).contrast("one", "other") == seen


def test_the_exact_mcnemar_test_works_by_name() -> None:
    one, other = binary("one", 1, "held-out accuracy", 0.8), binary("other", 2, "held-out accuracy", 0.6)
    seen = compare([one, other], config=StatsConfig(test="mcnemar")).contrasts[0]
    difference = one.per_unit["held-out accuracy"] - other.per_unit["held-out accuracy"]
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    assert (seen.wins, seen.losses) == (wins, losses)
    assert seen.p == pytest.approx(binomtest(wins, wins + losses).pvalue)


def test_it_survives_a_run_directory(tmp_path: Path) -> None:
    reach = Interval(0.6, 0.8, 0.95, "wilson-nested")
    clusters = [f"a{unit // 2}" for unit in range(60)]
    made = binary(
        "mine", 3, "held-out accuracy", chance={"held-out accuracy": 0.1}, config=StatsConfig(clusters=clusters)
    )
    again = binary(
        "other", 4, "held-out accuracy", intervals={"held-out accuracy": reach}, config=StatsConfig(clusters=clusters)
    )
    for result in (made, again):
        save_run(tmp_path / result.system, result, manifest=Manifest.start(system=result.system))
    back = [load_run(tmp_path / name).result for name in ("mine", "other")]
    assert back[0]["held-out accuracy"] == made["held-out accuracy"]
    assert back[1]["held-out accuracy"].interval == reach
    assert compare(back).contrasts == compare([made, again]).contrasts


def test_undefined_units_are_counted_and_left_out() -> None:
    result = result_from_values("mine", ["a", "b", "c"], {"accuracy": [1, NAN, 0]})
    assert (result["accuracy"].value, result["accuracy"].n, result["accuracy"].undefined) == (0.5, 2, 1)


def test_chance_is_unknown_unless_it_is_given() -> None:
    assert np.isnan(binary("mine", 0)["accuracy"].chance)
    assert binary("mine", 0, chance={"accuracy": 0.25})["accuracy"].chance == 0.25


def test_clusters_widen_the_interval_of_values_that_repeat() -> None:
    values = np.repeat([1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1], 4)
    alone = result_from_values("mine", UNITS, {"accuracy": values})
    together = result_from_values(
        "mine", UNITS, {"accuracy": values}, config=StatsConfig(clusters=np.repeat(np.arange(15), 4))
    )
    assert together["accuracy"].interval.width > 1.7 * alone["accuracy"].interval.width
    assert together["accuracy"].interval.method == "wilson-effective"


def test_a_metric_of_other_bounds_keeps_its_name_direction_and_unit() -> None:
    result = result_from_values(
        "mine",
        UNITS,
        {"rank": np.arange(1, 61)},
        bounds=(1, float("inf")),
        better=Direction.DOWN,
        unit="rank",
    )
    assert (result["rank"].better, result["rank"].unit) == (Direction.DOWN, "rank")
    assert result["rank"].value == 30.5
    assert result["rank"].interval.method == "gaffke"


def test_a_known_name_with_other_bounds_is_another_metric() -> None:
    assert result_from_values("mine", ["a", "b"], {"accuracy": [30, 60]}, bounds=(0, 100)).names == ("accuracy",)


def test_the_same_seed_gives_the_same_interval() -> None:
    values = {"overlap": np.random.default_rng(0).random(60)}
    first, same = (result_from_values("mine", UNITS, values, config=StatsConfig(seed=3)) for _ in range(2))
    other = result_from_values("mine", UNITS, values, config=StatsConfig(seed=4))
    assert first["overlap"].interval == same["overlap"].interval
    assert first["overlap"].interval != other["overlap"].interval


@pytest.mark.parametrize(
    ("units", "values", "options", "error"),
    [
        ([], {"m": []}, {}, InputError),
        (["a", "a"], {"m": [1, 0]}, {}, DuplicateError),
        (["a", "b"], {}, {}, ParameterError),
        (["a", "b"], {"m": [1]}, {}, ShapeError),
        (["a", "b"], {"m": [80, 90]}, {}, InputError),
        (["a", "b"], {"m": ["x", "y"]}, {}, InputError),
        (["a", "b"], {"m": [1, float("inf")]}, {"bounds": (0, float("inf"))}, NotFiniteError),
        (["a", "b"], {"Acc": [1, 0], "accuracy": [1, 0]}, {}, DuplicateError),
        (["a", "b"], {"m": [1, 0]}, {"chance": {"n": 0.5}}, UnknownNameError),
        (["a", "b"], {"m": [1, 0]}, {"config": {"clusters": ["x"]}}, ShapeError),
        (["a", "b"], {"m": [1, 0]}, {"config": {"confidence_level": 95}}, ParameterError),
    ],
)
def test_values_that_fit_nothing_are_refused_with_a_hint(
    units: list[str], values: dict[str, Any], options: dict[str, Any], error: type[EquipoiseError]
) -> None:
    with pytest.raises(error) as caught:
        from_values(units, values, **options)
    assert caught.value.hint


def test_percent_is_refused_and_the_unit_named() -> None:
    with pytest.raises(InputError, match=r"90.*0.*1") as caught:
        result_from_values("mine", ["a", "b"], {"m": [1, 90]})
    assert "not percent" in caught.value.hint
