"""Why two presets disagree: parts that add up, conventions that truly do nothing, units and examples."""

from __future__ import annotations

from itertools import permutations
from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import ParameterError, UndefinedError
from equipoise.metrics.parser import parse_metrics
from equipoise.reproduce.attribution import (
    MAX_EXACT_PLAYERS,
    attribute_difference,
    explain_difference,
    no_effect_reason,
    shapley_values,
)
from equipoise.reproduce.emulation import RunAndQrels, score_under
from equipoise.reproduce.presets import PRESETS, Conventions
from equipoise.reproduce.published import ALTERNATIVES
from library_figures import runs_and_qrels

FORMS = ("nDCG@3", "MAP@3", "MRR@3", "P@3")


def able(metric) -> list:
    found = []
    for preset in PRESETS.values():
        try:
            preset.rules(metric)
        except ParameterError:
            continue
        found.append(preset)
    return found


@settings(max_examples=25)
@given(runs_and_qrels(), st.data())
def test_the_parts_add_up_to_the_difference_of_the_two_figures(inputs, data) -> None:
    run, qrels = inputs
    metric = parse_metrics(data.draw(st.sampled_from(FORMS)))[0]
    one, other = (data.draw(st.sampled_from(able(metric))) for _ in range(2))
    found = attribute_difference(RunAndQrels.of(run, qrels), metric, one, other)
    fresh = RunAndQrels.of(run, qrels)
    assert found.one.value == score_under(fresh, metric, one.rules(metric)).value
    assert found.other.value == score_under(fresh, metric, other.rules(metric)).value
    assert sum(change.share for change in found.changes) == pytest.approx(found.value, abs=1e-12)
    back = attribute_difference(RunAndQrels.of(run, qrels), metric, other, one)
    there = {change.convention.convention: change.share for change in found.changes}
    for change in back.changes:
        assert change.share == pytest.approx(-there[change.convention.convention], abs=1e-12)


@settings(max_examples=40)
@given(runs_and_qrels(empty=False), st.data())
def test_a_convention_that_is_called_idle_changes_nothing_whatever_the_others_say(inputs, data) -> None:
    run, qrels = inputs
    simple = data.draw(st.sampled_from(["as drawn", "no ties", "positive", "binary", "answered", "retrieved"]))
    if simple == "no ties":
        run = {query: {item: 1.0 + n for n, item in enumerate(scores)} for query, scores in run.items()}
    elif simple == "positive":
        run = {query: {item: abs(each) + 1 for item, each in scores.items()} for query, scores in run.items()}
    elif simple == "binary":
        qrels = {query: {item: min(gain, 1) for item, gain in gains.items()} for query, gains in qrels.items()}
    elif simple == "answered":
        run = {**{query: {"d1": 0.5} for query in qrels}, **run}
    elif simple == "retrieved":
        run = {query: {"zz": 0.7} | dict.fromkeys(gains, 0.5) for query, gains in qrels.items()}
    metric = parse_metrics(data.draw(st.sampled_from(FORMS)))[0]
    state = Conventions(**{name: data.draw(st.sampled_from(values)) for name, values in ALTERNATIVES.items()})
    held = RunAndQrels.of(run, qrels)
    for name, values in ALTERNATIVES.items():
        for value in values:
            if no_effect_reason(name, (state[name], value), held, metric):
                before = score_under(held, metric, state).per_unit
                after = score_under(held, metric, state.with_values({name: value})).per_unit
                np.testing.assert_allclose(before, after, atol=1e-12)


def test_some_conventions_are_idle_on_plain_data_and_none_of_them_is_tried() -> None:
    run = {"q1": {"a": 0.9, "b": 0.4}, "q2": {"b": 0.8, "a": 0.2}}
    found = explain_difference(run, {"q1": {"a": 1}, "q2": {"a": 1}}, "MRR@3", one="trec_eval")
    assert found.changes == ()
    assert found.value == 0.0
    reasons = {each.convention.convention: each.reason for each in found.idle}
    assert reasons["ties"] == "no two scores of a query are equal"
    assert reasons["missing"] == "the run has every query of the qrels"


@given(st.lists(st.floats(-1, 1), min_size=16, max_size=16))
def test_shares_are_the_mean_over_all_orders(table: list[float]) -> None:
    names = ["a", "b", "c", "d"]

    def worth(chosen: frozenset[str]) -> float:
        return table[sum(1 << names.index(name) for name in chosen)]

    slow = dict.fromkeys(names, 0.0)
    orders = list(permutations(names))
    for order in orders:
        for place, name in enumerate(order):
            slow[name] += (worth(frozenset(order[: place + 1])) - worth(frozenset(order[:place]))) / len(orders)
    assert shapley_values(names, worth) == pytest.approx(slow, abs=1e-12)


def test_many_names_are_averaged_over_drawn_orders_and_still_add_up() -> None:
    names = [f"n{number}" for number in range(MAX_EXACT_PLAYERS + 2)]
    found = shapley_values(names, lambda chosen: float(len(chosen) ** 2))
    assert sum(found.values()) == pytest.approx(len(names) ** 2)


def test_the_units_where_it_happens_are_named_with_their_values() -> None:
    run = {"tied": {"a": 0.5, "b": 0.5}, "plain": {"a": 0.9, "b": 0.1}}
    qrels = {"tied": {"a": 1}, "plain": {"a": 1}, "gone": {"a": 1}}
    found = explain_difference(run, qrels, "MRR", one="trec_eval", other="equipoise")
    units = {unit.unit: unit for unit in found.units}
    assert set(units) == {"tied", "gone"}
    assert (units["tied"].one, units["tied"].other) == (0.5, 0.75)
    assert units["tied"].because == ("equal scores",)
    assert isnan(units["gone"].one)
    assert units["gone"].other == 0.0
    assert units["gone"].because == ("queries of the qrels that the run misses",)
    shares_of = {change.convention.convention: change.share for change in found.changes}
    # Two paths: 0.75 -> 0.875 -> 0.58333 and 0.75 -> 0.5 -> 0.58333.
    assert shares_of["ties"] == pytest.approx((0.125 + 0.25 / 3) / 2)
    assert shares_of["missing"] == pytest.approx(-(0.25 + 0.875 / 3) / 2)


def test_the_example_shows_a_unit_item_by_item() -> None:
    run = {"q": {"x": 0.9, "a": 0.5, "b": 0.5, "c": 0.5, "y": 0.3, "z": 0.3}}
    found = explain_difference(run, {"q": {"b": 1, "lost": 2}}, "MRR", one="trec_eval", other="equipoise")
    assert found.example is not None
    rows = {row.item: (row.score, row.gain, row.one, row.other) for row in found.example.rows}
    assert rows == {
        "c": (0.5, 0, (2, 2), (2, 4)),
        "b": (0.5, 1, (3, 3), (2, 4)),
        "a": (0.5, 0, (4, 4), (2, 4)),
        "lost": (None, 2, None, None),
    }
    assert [row.item for row in found.example.rows] == ["c", "b", "a", "lost"]


def test_a_preset_agrees_with_itself() -> None:
    found = explain_difference({"q": {"a": 0.5, "b": 0.5}}, {"q": {"a": 1}}, one="mteb", other="mteb")
    assert (found.value, found.changes, found.units, found.example) == (0.0, (), (), None)


def test_several_metrics_at_once_are_refused() -> None:
    with pytest.raises(ParameterError, match="names 2 metrics"):
        explain_difference({"q": {"a": 1.0}}, {"q": {"a": 1}}, "HR@{1,3}", one="ranx")


def test_a_side_on_which_no_query_is_left_is_undefined() -> None:
    with pytest.raises(UndefinedError):
        explain_difference({"q": {"a": 1.0}}, {"q": {"a": 0}}, "MRR", one="ranx")


def test_the_answer_can_be_written_as_plain_values() -> None:
    found = explain_difference({"q": {"a": 0.5, "b": 0.5}}, {"q": {"a": 1}}, "MRR", one="trec_eval")
    written = found.to_dict()
    assert written["difference"] == 0.25
    assert written["changes"][0]["convention"] == "ties"
    assert written["changes"][0]["one_says"] == "equal scores are ordered by document id, descending"
