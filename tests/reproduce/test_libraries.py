"""Every preset gives the values of its library."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings

from equipoise.config import StatsConfig
from equipoise.metrics.parser import parse_metrics
from equipoise.reproduce.emulation import RunAndQrels, score_under
from equipoise.reproduce.presets import PRESETS, TIES, Conventions
from library_metrics import LIBRARIES, REAL, runs_and_qrels

CASES = [pytest.param(name, form, marks=REAL.get(name, ())) for name in LIBRARIES for form in PRESETS[name].calls]
CUTOFF = 3
TOLERANCE = {"torchmetrics": 2e-6}
"""torchmetrics computes sums in float32."""


def metric_of(metric_form: str):
    return parse_metrics(metric_form.replace("@k", f"@{CUTOFF}"))[0]


def preset_value(run, qrels, name: str, metric_form: str, **changes) -> float:
    preset, metric = PRESETS[name], metric_of(metric_form)
    return score_under(RunAndQrels.of(run, qrels), metric, preset.rules(metric).with_values(changes)).value


def is_rounding_tie(value: float) -> bool:
    """Whether rounding to 5 digits depends on the last bit, as for 11/64 = 0.171875."""
    return abs(value * 1e5 % 1 - 0.5) < 1e-9


@pytest.mark.parametrize(("name", "metric_form"), CASES)
def test_a_preset_equals_its_library(name: str, metric_form: str) -> None:
    preset = PRESETS[name]
    # torch sorts with the C++ library of its platform, and the preset implements the one of Linux.
    has_tie_rule = TIES not in preset.limitations or sys.platform == "linux"

    # The capped recall of beir divides by zero for a query without relevant items.
    @settings(max_examples=20)
    @given(runs_and_qrels(tied=has_tie_rule, empty=metric_form != "R(capped)@k"))
    def agrees(inputs) -> None:
        run, qrels = inputs
        expected = LIBRARIES[name](run, qrels, metric_form, CUTOFF)
        value = preset_value(run, qrels, name, metric_form)
        if is_rounding_tie(preset_value(run, qrels, name, metric_form, digits=None)):
            value = expected if abs(value - expected) < 2e-5 else value
        assert value == pytest.approx(expected, abs=TOLERANCE.get(name, 1e-9), rel=0, nan_ok=True)

    agrees()


@REAL["torchmetrics"]
@pytest.mark.parametrize("metric_form", ["MAP", "MRR@k", "MRR", "HR@k", "P@k", "R@k"])
def test_without_a_tie_rule_the_value_of_torch_is_within_the_bounds(metric_form: str) -> None:
    @settings(max_examples=20)
    @given(runs_and_qrels())
    def lies_between(inputs) -> None:
        run, qrels = inputs
        expected = LIBRARIES["torchmetrics"](run, qrels, metric_form, CUTOFF)
        low = preset_value(run, qrels, "torchmetrics", metric_form, ties="pessimistic")
        high = preset_value(run, qrels, "torchmetrics", metric_form, ties="optimistic")
        assert low - 2e-6 <= expected <= high + 2e-6

    lies_between()


@REAL["ranx"]
def test_ties_in_long_lists_are_ordered_as_in_ranx() -> None:
    rng = np.random.default_rng(5)
    for length in (15, 16, 17, 40, 150):
        items = [f"d{number}" for number in range(length)]
        run = {f"q{query}": dict(zip(items, rng.integers(0, 4, length) / 4.0, strict=True)) for query in range(12)}
        qrels = {query: {items[number]: 1 for number in rng.permutation(length)[:4]} for query in run}
        for extra_run in ({}, {"extra": {"d0": 1.0}}):  # ranx removes an extra query, which sorts again
            expected = LIBRARIES["ranx"](run | extra_run, qrels, "MRR", 0)
            assert preset_value(run | extra_run, qrels, "ranx", "MRR") == pytest.approx(expected, abs=1e-9)


@pytest.mark.engines("ranx")
def test_ranx_with_default_arguments_is_reproduced() -> None:
    ranx = pytest.importorskip("ranx")
    rng = np.random.default_rng(2)
    items = [f"d{number}" for number in range(40)]
    run = {f"q{query}": dict(zip(items, rng.integers(0, 3, 40) / 2.0, strict=True)) for query in range(30)}
    qrels = {query: {items[number]: 1 for number in rng.permutation(40)[:5]} for query in run}
    expected = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), "ndcg@10")
    metric = parse_metrics("nDCG@10")[0]
    rules = PRESETS["ranx"].rules(metric)
    assert score_under(RunAndQrels.of(run, qrels), metric, rules).value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("metric_form", ["nDCG@k", "MAP", "MRR", "R@k"])
def test_a_query_with_negative_judgements_only_equals_trec_eval(metric_form: str) -> None:
    qrels = {"q1": {"a": 1, "b": -1}, "q2": {"a": -1, "b": -2}}
    run = {"q1": {"b": 0.9, "a": 0.5}, "q2": {"a": 0.9, "c": 0.2}}
    expected = LIBRARIES["trec_eval"](run, qrels, metric_form, CUTOFF)
    assert preset_value(run, qrels, "trec_eval", metric_form) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "metric_form"),
    [
        pytest.param("torchmetrics", "MAP", marks=REAL["torchmetrics"]),
        pytest.param("torchmetrics", "nDCG@k", marks=REAL["torchmetrics"]),
        ("sklearn", "MAP"),
    ],
)
def test_an_empty_list_is_excluded_like_in_the_library(name: str, metric_form: str) -> None:
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    run = {"q1": {"b": 0.9, "a": 0.5}, "q2": {}}
    expected = LIBRARIES[name]({"q1": run["q1"]}, qrels, metric_form, CUTOFF)
    assert preset_value(run, qrels, name, metric_form) == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_the_preset_equipoise_equals_evaluate() -> None:
    from equipoise.evidence.ranking import Ranking
    from equipoise.runs.evaluate import evaluate

    @settings(max_examples=20)
    @given(runs_and_qrels())
    def agrees(inputs) -> None:
        run, qrels = inputs
        for metric_form in PRESETS["equipoise"].calls:
            metric = metric_of(metric_form)
            result = evaluate(Ranking.from_runs(qrels, run), metric, config=StatsConfig(n_resamples=1), chance=False)
            assert preset_value(run, qrels, "equipoise", metric_form) == pytest.approx(
                result[metric.name].value, abs=1e-15, nan_ok=True
            )

    agrees()
    assert PRESETS["equipoise"].conventions == Conventions()


@REAL["torchmetrics"]
@pytest.mark.skipif(sys.platform != "linux", reason="another C++ library leaves equals in another order")
@pytest.mark.parametrize("metric_form", ["HR@k", "R@k", "P@k", "MAP@k", "MAP", "MRR"])
def test_ties_in_long_lists_are_ordered_as_in_torch(metric_form: str) -> None:
    rng = np.random.default_rng(7)
    for length in (3, 16, 17, 40, 250):
        items = [f"d{number}" for number in range(length)]
        run = {f"q{query}": dict(zip(items, rng.integers(1, 4, length) / 4.0, strict=True)) for query in range(9)}
        qrels = {query: {items[number]: 1 for number in rng.permutation(length)[:3]} for query in run}
        expected = LIBRARIES["torchmetrics"](run, qrels, metric_form, CUTOFF)
        assert preset_value(run, qrels, "torchmetrics", metric_form) == pytest.approx(expected, abs=2e-6)


@REAL["torchmetrics"]
@pytest.mark.skipif(sys.platform != "linux", reason="another C++ library leaves equals in another order")
@pytest.mark.parametrize("rows", [32_767, 32_768])
def test_ties_are_ordered_as_in_torch_at_the_switch_to_radix_sort(rows: int) -> None:
    rng = np.random.default_rng(rows)
    length, items = 300, [f"d{number}" for number in range(300)]
    sizes = [length] * (rows // length) + [rows % length]
    run = {
        f"q{query}": dict(zip(items[:size], (rng.integers(1, 4, size) / 4).tolist(), strict=True))
        for query, size in enumerate(sizes)
    }
    qrels = {query: {items[number]: 1 for number in rng.permutation(length)[:20]} for query in run}
    unjudged = {"unjudged": dict.fromkeys(items, 0.5)}  # unjudged rows are not passed to torchmetrics
    for metric_form in ("HR@k", "MAP@k"):
        expected = LIBRARIES["torchmetrics"](run, qrels, metric_form, CUTOFF)
        assert preset_value(run | unjudged, qrels, "torchmetrics", metric_form) == pytest.approx(expected, abs=2e-6), (
            metric_form
        )
