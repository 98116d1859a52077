"""Slices are the same figure on some of the units, with their own n and interval."""

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
def test_slices_are_means_over_their_units_and_add_up(rows: list[tuple[float, str | None]]) -> None:
    result = result_from_values("mine", range(len(rows)), {"score": [value for value, _ in rows]})
    found = slice_estimates(
        result, "score", {unit: {"confidence_level": label} for unit, (_, label) in enumerate(rows)}
    )
    for part in found:
        own = [value for value, label in rows if (label or "none") == part.value]
        known = [value for value in own if value == value]
        assert (part.estimate.n, part.estimate.undefined) == (len(known), len(own) - len(known))
        if known:
            assert part.estimate.value == pytest.approx(sum(known) / len(known))
        if len(known) > 1:
            assert part.estimate.interval == wilson_interval(sum(known), len(known))
    assert sum(part.estimate.n + part.estimate.undefined for part in found) == len(rows)


def test_properties_and_values_come_in_the_order_the_units_bring_them_up() -> None:
    result = result_from_values("mine", ["a", "b", "c", "d"], {"score": [1, 0, 1, 1]})
    properties: dict[str, dict[str, Any]] = {
        "d": {"confidence_level": "easy", "kind": "date"},
        "c": {"confidence_level": 3},
        "a": {"confidence_level": None, "kind": "name"},
        "b": {"confidence_level": "hard"},
    }
    found = slice_estimates(result, "score", properties)
    assert [(part.name, part.value) for part in found] == [
        ("confidence_level", "hard"),
        ("confidence_level", "3"),
        ("confidence_level", "easy"),
        ("confidence_level", "none"),
        ("kind", "name"),
        ("kind", "date"),
        ("kind", "none"),
    ]


def test_a_slice_of_all_units_is_the_result_itself() -> None:
    ranking = Ranking.from_ranks([1, 2, 5, 1, 3, 9, 1, 4, 2, 7, 6, 1] * 3, candidates=30)
    result = evaluate(ranking, ["HR@3", "MR(over=units)"], chance=False)
    slices = {unit: {"all": "yes"} for unit in result.unit_ids.tolist()}
    (hits,) = slice_estimates(result, "Acc@3", slices)
    assert hits.estimate.interval == result["HR@3"].interval
    assert np.isnan(hits.estimate.chance)
    (ranks,) = slice_estimates(result, "MR(over=units)", slices)
    assert ranks.estimate.value == result["MR(over=units)"].value
    assert ranks.estimate.interval.method == result["MR(over=units)"].interval.method
    assert ranks.estimate.better == result["MR(over=units)"].better


def test_weights_and_clusters_are_those_of_the_slice() -> None:
    qrels = {f"q{unit}": {f"d{item}": 1 for item in range(1 + unit % 3)} for unit in range(24)}
    run = {unit: {f"d{item}": float((item * 7 + int(unit[1:])) % 11) for item in range(9)} for unit in qrels}
    clusters = {unit: int(unit[1:]) // 2 for unit in qrels}
    result = evaluate(Ranking.from_runs(qrels, run), "MR", config=StatsConfig(clusters=clusters), chance=False)
    early = [place for place, unit in enumerate(result.unit_ids) if int(unit[1:]) < 12]
    part = slice_estimates(result, "MR", {unit: {"half": int(unit[1:]) < 12} for unit in qrels})[0]
    assert part.value == "True"
    expected = np.average(result.per_unit["MR"][early], weights=result.weights["MR"][early])
    assert part.estimate.value == pytest.approx(expected)
    assert part.estimate.interval.known


def test_a_slice_does_not_depend_on_which_others_there_are() -> None:
    values = np.random.default_rng(0).random(60)
    result = result_from_values("mine", range(60), {"overlap": values})
    one = slice_estimates(result, "overlap", {unit: {"odd": unit % 2} for unit in range(60)})
    more = slice_estimates(result, "overlap", {unit: {"third": unit % 3, "odd": unit % 2} for unit in range(60)})
    assert [part.estimate.interval for part in one] == [part.estimate.interval for part in more[3:]]
    assert one[0].estimate.interval.method == "bca"


def test_few_is_where_the_interval_spans_more_than_a_third() -> None:
    assert all(wilson_interval(0.8 * n, n).width > 1 / 3 for n in range(1, MIN_UNITS))
    assert wilson_interval(0.8 * (MIN_UNITS + 1), MIN_UNITS + 1).width < 1 / 3
    result = result_from_values("mine", range(50), {"score": np.ones(50)})
    found = slice_estimates(result, "score", {unit: {"part": unit < MIN_UNITS - 1} for unit in range(50)})
    assert [(part.estimate.n, part.few) for part in found] == [(19, True), (31, False)]


def test_units_that_nothing_is_known_of_are_none_and_no_match_at_all_is_refused() -> None:
    result = result_from_values("mine", [1, 2], {"score": [1, 0]})
    assert [part.value for part in slice_estimates(result, "score", {1: {"kind": "x"}})] == ["x", "none"]
    assert slice_estimates(result, "score", {}) == ()
    with pytest.raises(InputError, match="2 units"):
        slice_estimates(result, "score", {"1": {"kind": "x"}})


def test_a_figure_that_is_no_mean_over_units_has_no_slices() -> None:
    result = evaluate(Pairs.of([1.0, 2.0, 3.0, 5.0], [2.0, 1.0, 4.0, 6.0]), "Spearman", chance=False)
    with pytest.raises(UndefinedError):
        slice_estimates(result, "Spearman", {0: {"kind": "x"}})
    with pytest.raises(UnknownNameError):
        slice_estimates(result, "MRR", {0: {"kind": "x"}})


def test_hits_averaged_over_splits_get_wilson_s_interval_as_the_whole_has() -> None:
    """A slice in which one unit is hit in 97 of 100 splits is not known to within a hundredth."""
    units = [f"q{number}" for number in range(40)]
    values = np.array([1.0] * 19 + [0.97] + [0.5] * 20)
    whole = replace(wilson_interval(values.sum(), 40), method="wilson-bootstrap-errors")
    result = result_from_values("mine", units, {"m": values}, intervals={"m": whole})
    kinds = {unit: {"half": "first" if place < 20 else "second"} for place, unit in enumerate(units)}
    first, second = slice_estimates(result, "m", kinds)
    assert first.estimate.interval.low == pytest.approx(wilson_interval(19.97, 20).low)
    assert first.estimate.interval.low < 0.9
    assert second.estimate.interval.width == pytest.approx(wilson_interval(10, 20).width)


def test_hours_and_weekdays_are_in_their_natural_order_and_units_without_one_are_last() -> None:
    result = result_from_values("mine", list("abcdef"), {"score": [1, 0, 1, 1, 0, 1]})
    hours, days = ["18", "9", None, "7", "10", "18"], ["Sun", "Monday", "fri", "Tue", "Sat", "Wed"]
    properties = {unit: {"hour": hour, "day": day} for unit, hour, day in zip("abcdef", hours, days, strict=True)}
    found = [(part.name, part.value) for part in slice_estimates(result, "score", properties)]
    assert [value for name, value in found if name == "hour"] == ["7", "9", "10", "18", "none"]
    assert [value for name, value in found if name == "day"] == ["Monday", "Tue", "Wed", "fri", "Sat", "Sun"]
