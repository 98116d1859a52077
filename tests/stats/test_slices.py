"""Slices: estimates on subsets of the units, with n and interval."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.config import StatsConfig
from equipoise.errors import InputError, UndefinedError, UnknownNameError
from equipoise.evidence.pairs import Pairs
from equipoise.evidence.ranking import Ranking
from equipoise.runs.evaluate import evaluate
from equipoise.stats.estimate import result_from_values
from equipoise.stats.intervals import wilson_interval
from equipoise.stats.slices import MIN_UNITS, slice_estimates

NAN = float("nan")
LABELS = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, NAN]), st.sampled_from(["easy", "hard", None])),
    min_size=1,
    max_size=30,
).filter(lambda rows: any(label for _, label in rows))


@settings(max_examples=50)
@given(LABELS)
def test_slices_are_means_over_their_units_and_partition_all_units(rows: list[tuple[float, str | None]]) -> None:
    result = result_from_values("system", range(len(rows)), {"score": [value for value, _ in rows]})
    slices = slice_estimates(
        result, "score", {unit: {"confidence_level": label} for unit, (_, label) in enumerate(rows)}
    )
    for slice_estimate in slices:
        values = [value for value, label in rows if (label or "not given") == slice_estimate.value]
        defined = [value for value in values if value == value]
        assert (slice_estimate.estimate.n, slice_estimate.estimate.undefined) == (
            len(defined),
            len(values) - len(defined),
        )
        if defined:
            assert slice_estimate.estimate.value == pytest.approx(sum(defined) / len(defined))
        if len(defined) > 1:
            assert slice_estimate.estimate.interval == wilson_interval(sum(defined), len(defined))
    assert sum(slice_estimate.estimate.n + slice_estimate.estimate.undefined for slice_estimate in slices) == len(rows)


def test_slices_follow_the_order_of_the_units_and_their_values_the_number_of_units() -> None:
    result = result_from_values("system", ["a", "b", "c", "d"], {"score": [1, 0, 1, 1]})
    properties: dict[str, dict[str, Any]] = {
        "d": {"confidence_level": "easy", "kind": "date"},
        "c": {"confidence_level": 3},
        "a": {"confidence_level": None, "kind": "name"},
        "b": {"confidence_level": "hard"},
    }
    slices = slice_estimates(result, "score", properties)
    assert [(slice_estimate.name, slice_estimate.value) for slice_estimate in slices] == [
        ("confidence_level", "3"),
        ("confidence_level", "easy"),
        ("confidence_level", "hard"),
        ("confidence_level", "not given"),
        ("kind", "date"),
        ("kind", "name"),
        ("kind", "not given"),
    ]


def test_a_slice_of_all_units_equals_the_result() -> None:
    ranking = Ranking.from_ranks([1, 2, 5, 1, 3, 9, 1, 4, 2, 7, 6, 1] * 3, candidates=30)
    result = evaluate(ranking, ["HR@3", "MR(over=units)"], chance=False)
    properties = {unit: {"all": "yes"} for unit in result.unit_ids.tolist()}
    (hit_slice,) = slice_estimates(result, "Acc@3", properties)
    assert hit_slice.estimate.interval == result["HR@3"].interval
    assert np.isnan(hit_slice.estimate.chance)
    (rank_slice,) = slice_estimates(result, "MR(over=units)", properties)
    assert rank_slice.estimate.value == result["MR(over=units)"].value
    assert rank_slice.estimate.interval.method == result["MR(over=units)"].interval.method
    assert rank_slice.estimate.better == result["MR(over=units)"].better


def test_slices_use_the_weights_and_clusters_of_their_units() -> None:
    qrels = {f"q{unit}": {f"d{item}": 1 for item in range(1 + unit % 3)} for unit in range(24)}
    run = {unit: {f"d{item}": float((item * 7 + int(unit[1:])) % 11) for item in range(9)} for unit in qrels}
    clusters = {unit: int(unit[1:]) // 2 for unit in qrels}
    result = evaluate(Ranking.from_runs(qrels, run), "MR", config=StatsConfig(clusters=clusters), chance=False)
    first_half = [index for index, unit in enumerate(result.unit_ids) if int(unit[1:]) < 12]
    slice_estimate = slice_estimates(result, "MR", {unit: {"half": int(unit[1:]) < 12} for unit in qrels})[1]
    assert slice_estimate.value == "True"
    expected = np.average(result.per_unit["MR"][first_half], weights=result.weights["MR"][first_half])
    assert slice_estimate.estimate.value == pytest.approx(expected)
    assert slice_estimate.estimate.interval.known


def test_slices_do_not_depend_on_other_slices() -> None:
    values = np.random.default_rng(0).random(60)
    result = result_from_values("system", range(60), {"overlap": values})
    slices = slice_estimates(result, "overlap", {unit: {"odd": unit % 2} for unit in range(60)})
    more_slices = slice_estimates(result, "overlap", {unit: {"third": unit % 3, "odd": unit % 2} for unit in range(60)})
    assert [slice_estimate.estimate.interval for slice_estimate in slices] == [
        slice_estimate.estimate.interval for slice_estimate in more_slices[3:]
    ]
    assert slices[0].estimate.interval.method == "bca"


def test_slices_use_the_seed_and_the_resamples_of_the_result() -> None:
    values = np.random.default_rng(0).random(60)
    one_slice = {unit: {"all": "yes"} for unit in range(60)}
    intervals = [
        slice_estimates(
            result_from_values("system", range(60), {"overlap": values}, config=config), "overlap", one_slice
        )
        for config in (StatsConfig(), StatsConfig(seed=1), StatsConfig(n_resamples=500))
    ]
    assert len({part.estimate.interval for (part,) in intervals}) == 3


def test_slices_with_an_interval_above_a_third_are_marked_as_few() -> None:
    assert all(wilson_interval(0.8 * n, n).width > 1 / 3 for n in range(1, MIN_UNITS))
    assert wilson_interval(0.8 * (MIN_UNITS + 1), MIN_UNITS + 1).width < 1 / 3
    result = result_from_values("system", range(50), {"score": np.ones(50)})
    slices = slice_estimates(result, "score", {unit: {"part": unit < MIN_UNITS - 1} for unit in range(50)})
    assert [(slice_estimate.estimate.n, slice_estimate.few) for slice_estimate in slices] == [(31, False), (19, True)]


def test_units_without_properties_are_none_and_no_match_raises_input_error() -> None:
    result = result_from_values("system", [1, 2], {"score": [1, 0]})
    assert [slice_estimate.value for slice_estimate in slice_estimates(result, "score", {1: {"kind": "x"}})] == [
        "x",
        "not given",
    ]
    assert slice_estimates(result, "score", {}) == ()
    with pytest.raises(InputError, match="2 units"):
        slice_estimates(result, "score", {"1": {"kind": "x"}})


def test_corpus_level_metrics_have_no_slices() -> None:
    result = evaluate(Pairs.of([1.0, 2.0, 3.0, 5.0], [2.0, 1.0, 4.0, 6.0]), "Spearman", chance=False)
    with pytest.raises(UndefinedError):
        slice_estimates(result, "Spearman", {0: {"kind": "x"}})
    with pytest.raises(UnknownNameError):
        slice_estimates(result, "MRR", {0: {"kind": "x"}})


def test_slices_of_hits_averaged_over_splits_get_wilson_intervals() -> None:
    """A slice in which one unit is hit in 97 of 100 splits has an interval wider than 0.01."""
    units = [f"q{number}" for number in range(40)]
    values = np.array([1.0] * 19 + [0.97] + [0.5] * 20)
    whole = replace(wilson_interval(values.sum(), 40), method="wilson-bootstrap-errors")
    result = result_from_values("system", units, {"m": values}, intervals={"m": whole})
    kinds = {unit: {"half": "first" if index < 20 else "second"} for index, unit in enumerate(units)}
    first, second = slice_estimates(result, "m", kinds)
    assert first.estimate.interval.low == pytest.approx(wilson_interval(19.97, 20).low)
    assert first.estimate.interval.low < 0.9
    assert second.estimate.interval.width == pytest.approx(wilson_interval(10, 20).width)


def test_hours_and_weekdays_are_in_natural_order_with_none_last() -> None:
    result = result_from_values("system", list("abcdef"), {"score": [1, 0, 1, 1, 0, 1]})
    hours, days = ["18", "9", None, "7", "10", "18"], ["Sun", "Monday", "fri", "Tue", "Sat", "Wed"]
    properties = {unit: {"hour": hour, "day": day} for unit, hour, day in zip("abcdef", hours, days, strict=True)}
    name_value_pairs = [
        (slice_estimate.name, slice_estimate.value) for slice_estimate in slice_estimates(result, "score", properties)
    ]
    assert [value for name, value in name_value_pairs if name == "hour"] == ["7", "9", "10", "18", "not given"]
    assert [value for name, value in name_value_pairs if name == "day"] == ["Monday", "Tue", "Wed", "fri", "Sat", "Sun"]
