"""Results of given per-unit values are compared and stored as evaluated results."""

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


def result_of(units: list[str], values: dict[str, Any], config: dict[str, Any] | None = None, **options: Any) -> Result:
    return result_from_values("baseline", units, values, config=StatsConfig(**(config or {})), **options)


def binary_result(system: str, seed: int, metric: str = "accuracy", share: float = 0.7, **options: Any) -> Result:
    values = np.random.default_rng(seed).random(60) < share
    return result_from_values(system, UNITS, {metric: values}, **options)


def test_binary_values_get_the_wilson_interval() -> None:
    result = binary_result("baseline", 0)
    expected = binomtest(int(result.per_unit["Acc"].sum()), 60).proportion_ci(method="wilson")
    assert result["accuracy"].interval.method == "wilson"
    assert (result["accuracy"].interval.low, result["accuracy"].interval.high) == pytest.approx(tuple(expected))


def test_given_values_give_the_result_of_the_evidence() -> None:
    ranking = Ranking.from_ranks([1, 2, 5, 1, 3, 9, 1, 4, 2, 7, 6, 1], candidates=30)
    evaluated = evaluate(ranking, ["MRR", "HR@3"], chance=False)
    from_values = result_from_values("system", evaluated.unit_ids, evaluated.per_unit)
    for name in evaluated.names:
        assert from_values[name].value == evaluated[name].value
        assert from_values[name].interval == evaluated[name].interval
        assert (from_values[name].n, from_values[name].undefined) == (12, 0)


@pytest.mark.parametrize("metric", ["accuracy", "held-out accuracy", "HR@5", "my score"])
def test_results_compare_under_any_name(metric: str) -> None:
    one, other = binary_result("one", 1, metric), binary_result("other", 2, metric)
    contrast = compare({"one": one, "other": other}, metric).contrast("one", "other")
    assert contrast.difference == pytest.approx(one[metric].value - other[metric].value)
    assert compare([one, other]).contrast("one", "other") == contrast


def test_mcnemar_is_selected_by_name() -> None:
    one, other = binary_result("one", 1, "held-out accuracy", 0.8), binary_result("other", 2, "held-out accuracy", 0.6)
    contrast = compare([one, other], config=StatsConfig(test="mcnemar")).contrasts[0]
    difference = one.per_unit["held-out accuracy"] - other.per_unit["held-out accuracy"]
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    assert (contrast.wins, contrast.losses) == (wins, losses)
    assert contrast.p == pytest.approx(binomtest(wins, wins + losses).pvalue)


def test_results_load_unchanged_from_a_run_directory(tmp_path: Path) -> None:
    interval = Interval(0.6, 0.8, 0.95, "wilson-nested")
    clusters = [f"a{unit // 2}" for unit in range(60)]
    first = binary_result(
        "baseline", 3, "held-out accuracy", chance={"held-out accuracy": 0.1}, config=StatsConfig(clusters=clusters)
    )
    second = binary_result(
        "other",
        4,
        "held-out accuracy",
        intervals={"held-out accuracy": interval},
        config=StatsConfig(clusters=clusters),
    )
    for result in (first, second):
        save_run(tmp_path / result.system, result, manifest=Manifest.start(system=result.system))
    loaded = [load_run(tmp_path / name).result for name in ("baseline", "other")]
    assert loaded[0]["held-out accuracy"] == first["held-out accuracy"]
    assert loaded[1]["held-out accuracy"].interval == interval
    assert compare(loaded).contrasts == compare([first, second]).contrasts


def test_undefined_units_are_counted_and_excluded() -> None:
    result = result_from_values("baseline", ["a", "b", "c"], {"accuracy": [1, NAN, 0]})
    assert (result["accuracy"].value, result["accuracy"].n, result["accuracy"].undefined) == (0.5, 2, 1)


def test_chance_is_nan_unless_given() -> None:
    assert np.isnan(binary_result("baseline", 0)["accuracy"].chance)
    assert binary_result("baseline", 0, chance={"accuracy": 0.25})["accuracy"].chance == 0.25


def test_clusters_widen_the_interval_of_repeated_values() -> None:
    values = np.repeat([1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1], 4)
    unclustered = result_from_values("baseline", UNITS, {"accuracy": values})
    clustered = result_from_values(
        "baseline", UNITS, {"accuracy": values}, config=StatsConfig(clusters=np.repeat(np.arange(15), 4))
    )
    assert clustered["accuracy"].interval.width > 1.7 * unclustered["accuracy"].interval.width
    assert clustered["accuracy"].interval.method == "wilson-effective"


def test_metrics_with_other_bounds_keep_name_direction_and_unit() -> None:
    result = result_from_values(
        "baseline",
        UNITS,
        {"rank": np.arange(1, 61)},
        bounds=(1, float("inf")),
        better=Direction.DOWN,
        unit="rank",
    )
    assert (result["rank"].better, result["rank"].unit) == (Direction.DOWN, "rank")
    assert result["rank"].value == 30.5
    assert result["rank"].interval.method == "gaffke"


def test_known_names_with_other_bounds_are_other_metrics() -> None:
    assert result_from_values("baseline", ["a", "b"], {"accuracy": [30, 60]}, bounds=(0, 100)).names == ("accuracy",)


def test_the_same_seed_gives_the_same_interval() -> None:
    values = {"overlap": np.random.default_rng(0).random(60)}
    first, same = (result_from_values("baseline", UNITS, values, config=StatsConfig(seed=3)) for _ in range(2))
    other = result_from_values("baseline", UNITS, values, config=StatsConfig(seed=4))
    assert first["overlap"].interval == same["overlap"].interval
    assert first["overlap"].interval != other["overlap"].interval


@pytest.mark.parametrize(
    ("units", "values", "options", "error_type"),
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
def test_invalid_values_raise_errors_with_a_hint(
    units: list[str], values: dict[str, Any], options: dict[str, Any], error_type: type[EquipoiseError]
) -> None:
    with pytest.raises(error_type) as error:
        result_of(units, values, **options)
    assert error.value.hint


def test_percentages_raise_input_error_with_a_hint() -> None:
    with pytest.raises(InputError, match=r"90.*0.*1") as error:
        result_from_values("baseline", ["a", "b"], {"m": [1, 90]})
    assert "not percent" in error.value.hint
