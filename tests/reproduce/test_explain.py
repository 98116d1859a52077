"""Differences of two presets: additive contributions, conventions without effect, units and examples."""

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
from library_metrics import runs_and_qrels

FORMS = ("nDCG@3", "MAP@3", "MRR@3", "P@3")


def presets_with(metric) -> list:
    presets = []
    for preset in PRESETS.values():
        try:
            preset.rules(metric)
        except ParameterError:
            continue
        presets.append(preset)
    return presets


@settings(max_examples=25)
@given(runs_and_qrels(), st.data())
def test_contributions_add_up_to_the_difference(inputs, data) -> None:
    run, qrels = inputs
    metric = parse_metrics(data.draw(st.sampled_from(FORMS)))[0]
    one, other = (data.draw(st.sampled_from(presets_with(metric))) for _ in range(2))
    difference = attribute_difference(RunAndQrels.of(run, qrels), metric, one, other)
    inputs_copy = RunAndQrels.of(run, qrels)
    assert difference.one.value == score_under(inputs_copy, metric, one.rules(metric)).value
    assert difference.other.value == score_under(inputs_copy, metric, other.rules(metric)).value
    assert sum(change.share for change in difference.changes) == pytest.approx(difference.value, abs=1e-12)
    reverse = attribute_difference(RunAndQrels.of(run, qrels), metric, other, one)
    share_by_convention = {change.convention.convention: change.share for change in difference.changes}
    for change in reverse.changes:
        assert change.share == pytest.approx(-share_by_convention[change.convention.convention], abs=1e-12)


@settings(max_examples=40)
@given(runs_and_qrels(empty=False), st.data())
def test_a_convention_without_effect_changes_nothing(inputs, data) -> None:
    run, qrels = inputs
    data_kind = data.draw(st.sampled_from(["as drawn", "no ties", "positive", "binary", "answered", "retrieved"]))
    if data_kind == "no ties":
        run = {query: {item: 1.0 + n for n, item in enumerate(scores)} for query, scores in run.items()}
    elif data_kind == "positive":
        run = {query: {item: abs(score) + 1 for item, score in scores.items()} for query, scores in run.items()}
    elif data_kind == "binary":
        qrels = {query: {item: min(gain, 1) for item, gain in gains.items()} for query, gains in qrels.items()}
    elif data_kind == "answered":
        run = {**{query: {"d1": 0.5} for query in qrels}, **run}
    elif data_kind == "retrieved":
        run = {query: {"zz": 0.7} | dict.fromkeys(gains, 0.5) for query, gains in qrels.items()}
    metric = parse_metrics(data.draw(st.sampled_from(FORMS)))[0]
    state = Conventions(**{name: data.draw(st.sampled_from(values)) for name, values in ALTERNATIVES.items()})
    run_and_qrels = RunAndQrels.of(run, qrels)
    for name, values in ALTERNATIVES.items():
        for value in values:
            if no_effect_reason(name, (state[name], value), run_and_qrels, metric):
                before = score_under(run_and_qrels, metric, state).per_unit
                after = score_under(run_and_qrels, metric, state.with_values({name: value})).per_unit
                np.testing.assert_allclose(before, after, atol=1e-12)


def test_conventions_without_effect_have_reasons() -> None:
    run = {"q1": {"a": 0.9, "b": 0.4}, "q2": {"b": 0.8, "a": 0.2}}
    explanation = explain_difference(run, {"q1": {"a": 1}, "q2": {"a": 1}}, "MRR@3", one="trec_eval")
    assert explanation.changes == ()
    assert explanation.value == 0.0
    reasons = {convention.convention.convention: convention.reason for convention in explanation.idle}
    assert reasons["ties"] == "no two scores of a query are equal"
    assert reasons["missing"] == "the run has every query of the qrels"


@given(st.lists(st.floats(-1, 1), min_size=16, max_size=16))
def test_shapley_values_equal_the_mean_over_all_orders(table: list[float]) -> None:
    names = ["a", "b", "c", "d"]

    def value(coalition: frozenset[str]) -> float:
        return table[sum(1 << names.index(name) for name in coalition)]

    expected = dict.fromkeys(names, 0.0)
    orders = list(permutations(names))
    for order in orders:
        for position, name in enumerate(order):
            expected[name] += (value(frozenset(order[: position + 1])) - value(frozenset(order[:position]))) / len(
                orders
            )
    assert shapley_values(names, value) == pytest.approx(expected, abs=1e-12)


def test_sampled_shapley_values_add_up() -> None:
    names = [f"n{number}" for number in range(MAX_EXACT_PLAYERS + 2)]
    shares = shapley_values(names, lambda coalition: float(len(coalition) ** 2))
    assert sum(shares.values()) == pytest.approx(len(names) ** 2)


def test_units_with_differences_are_listed_with_their_values() -> None:
    run = {"tied": {"a": 0.5, "b": 0.5}, "plain": {"a": 0.9, "b": 0.1}}
    qrels = {"tied": {"a": 1}, "plain": {"a": 1}, "gone": {"a": 1}}
    explanation = explain_difference(run, qrels, "MRR", one="trec_eval", other="equipoise")
    units = {unit.unit: unit for unit in explanation.units}
    assert set(units) == {"tied", "gone"}
    assert (units["tied"].one, units["tied"].other) == (0.5, 0.75)
    assert units["tied"].because == ("equal scores",)
    assert isnan(units["gone"].one)
    assert units["gone"].other == 0.0
    assert units["gone"].because == ("queries of the qrels that the run misses",)
    shares_of = {change.convention.convention: change.share for change in explanation.changes}
    # Two paths: 0.75 -> 0.875 -> 0.58333 and 0.75 -> 0.5 -> 0.58333.
    assert shares_of["ties"] == pytest.approx((0.125 + 0.25 / 3) / 2)
    assert shares_of["missing"] == pytest.approx(-(0.25 + 0.875 / 3) / 2)


def test_the_example_shows_the_items_of_a_unit() -> None:
    run = {"q": {"x": 0.9, "a": 0.5, "b": 0.5, "c": 0.5, "y": 0.3, "z": 0.3}}
    explanation = explain_difference(run, {"q": {"b": 1, "lost": 2}}, "MRR", one="trec_eval", other="equipoise")
    assert explanation.example is not None
    rows = {row.item: (row.score, row.gain, row.one, row.other) for row in explanation.example.rows}
    assert rows == {
        "c": (0.5, 0, (2, 2), (2, 4)),
        "b": (0.5, 1, (3, 3), (2, 4)),
        "a": (0.5, 0, (4, 4), (2, 4)),
        "lost": (None, 2, None, None),
    }
    assert [row.item for row in explanation.example.rows] == ["c", "b", "a", "lost"]


def test_a_preset_equals_itself() -> None:
    explanation = explain_difference({"q": {"a": 0.5, "b": 0.5}}, {"q": {"a": 1}}, one="mteb", other="mteb")
    assert (explanation.value, explanation.changes, explanation.units, explanation.example) == (0.0, (), (), None)


def test_several_metrics_at_once_are_an_error() -> None:
    with pytest.raises(ParameterError) as error:
        explain_difference({"q": {"a": 1.0}}, {"q": {"a": 1}}, "HR@{1,3}", one="ranx")
    assert error.value.code == "E310"


def test_a_side_without_queries_is_undefined() -> None:
    with pytest.raises(UndefinedError):
        explain_difference({"q": {"a": 1.0}}, {"q": {"a": 0}}, "MRR", one="ranx")


def test_the_explanation_is_serialisable() -> None:
    explanation = explain_difference({"q": {"a": 0.5, "b": 0.5}}, {"q": {"a": 1}}, "MRR", one="trec_eval")
    written = explanation.to_dict()
    assert written["difference"] == 0.25
    assert written["changes"][0]["convention"] == "ties"
    assert written["changes"][0]["one_says"] == "equal scores are ordered by document id, descending"
