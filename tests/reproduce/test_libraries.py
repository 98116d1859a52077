"""Every preset against the library that it is named after."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings

from equipoise.config import StatsConfig
from equipoise.metrics.parser import parse_metrics
from equipoise.reproduce.emulation import RunAndQrels, score_under
from equipoise.reproduce.presets import PRESETS, TIES, Conventions
from library_figures import LIBRARIES, REAL, runs_and_qrels

CASES = [pytest.param(name, form, marks=REAL.get(name, ())) for name in LIBRARIES for form in PRESETS[name].calls]
CUTOFF = 3
TOLERANCE = {"torchmetrics": 2e-6}
"""torchmetrics adds up in 32 bits."""


def metric_of(form: str):
    return parse_metrics(form.replace("@k", f"@{CUTOFF}"))[0]


def ours(run, qrels, name: str, form: str, **changes) -> float:
    preset, metric = PRESETS[name], metric_of(form)
    return score_under(RunAndQrels.of(run, qrels), metric, preset.rules(metric).with_values(changes)).value


def on_the_edge_of_rounding(value: float) -> bool:
    """11/64 is 0.171875: its fifth digit is decided by the last bit of a sum, hence by its order."""
    return abs(value * 1e5 % 1 - 0.5) < 1e-9


@pytest.mark.parametrize(("name", "form"), CASES)
def test_a_preset_gives_what_its_library_gives(name: str, form: str) -> None:
    preset = PRESETS[name]
    # torch sorts with the C++ library of its platform, and the preset knows that of Linux.
    ruled = TIES not in preset.limitations or sys.platform == "linux"

    # Where a query has no relevant item, beir's own recall divides by zero.
    @settings(max_examples=20)
    @given(runs_and_qrels(tied=ruled, empty=form != "R(capped)@k"))
    def agrees(inputs) -> None:
        run, qrels = inputs
        theirs = LIBRARIES[name](run, qrels, form, CUTOFF)
        value = ours(run, qrels, name, form)
        if on_the_edge_of_rounding(ours(run, qrels, name, form, digits=None)):
            value = theirs if abs(value - theirs) < 2e-5 else value
        assert value == pytest.approx(theirs, abs=TOLERANCE.get(name, 1e-9), rel=0, nan_ok=True)

    agrees()


@REAL["torchmetrics"]
@pytest.mark.parametrize("form", ["MAP", "MRR@k", "MRR", "HR@k", "P@k", "R@k"])
def test_where_torch_promises_no_order_its_figure_lies_between_the_bounds(form: str) -> None:
    @settings(max_examples=20)
    @given(runs_and_qrels())
    def lies_between(inputs) -> None:
        run, qrels = inputs
        theirs = LIBRARIES["torchmetrics"](run, qrels, form, CUTOFF)
        low = ours(run, qrels, "torchmetrics", form, ties="pessimistic")
        high = ours(run, qrels, "torchmetrics", form, ties="optimistic")
        assert low - 2e-6 <= theirs <= high + 2e-6

    lies_between()


@REAL["ranx"]
def test_long_lists_of_few_scores_are_ordered_as_ranx_orders_them() -> None:
    rng = np.random.default_rng(5)
    for length in (15, 16, 17, 40, 150):
        items = [f"d{number}" for number in range(length)]
        run = {f"q{query}": dict(zip(items, rng.integers(0, 4, length) / 4.0, strict=True)) for query in range(12)}
        qrels = {query: {items[number]: 1 for number in rng.permutation(length)[:4]} for query in run}
        for more in ({}, {"extra": {"d0": 1.0}}):  # an extra query has to be removed, which sorts once more
            theirs = LIBRARIES["ranx"](run | more, qrels, "MRR", 0)
            assert ours(run | more, qrels, "ranx", "MRR") == pytest.approx(theirs, abs=1e-9)


@pytest.mark.engines("ranx")
def test_ranx_called_plainly_is_reproduced() -> None:
    ranx = pytest.importorskip("ranx")
    rng = np.random.default_rng(2)
    items = [f"d{number}" for number in range(40)]
    run = {f"q{query}": dict(zip(items, rng.integers(0, 3, 40) / 2.0, strict=True)) for query in range(30)}
    qrels = {query: {items[number]: 1 for number in rng.permutation(40)[:5]} for query in run}
    theirs = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), "ndcg@10")
    metric = parse_metrics("nDCG@10")[0]
    rules = PRESETS["ranx"].rules(metric)
    assert score_under(RunAndQrels.of(run, qrels), metric, rules).value == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("form", ["nDCG@k", "MAP", "MRR", "R@k"])
def test_a_query_with_only_negative_judgements_scores_nothing(form: str) -> None:
    qrels = {"q1": {"a": 1, "b": -1}, "q2": {"a": -1, "b": -2}}
    run = {"q1": {"b": 0.9, "a": 0.5}, "q2": {"a": 0.9, "c": 0.2}}
    theirs = LIBRARIES["trec_eval"](run, qrels, form, CUTOFF)
    assert ours(run, qrels, "trec_eval", form) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param("torchmetrics", "MAP", marks=REAL["torchmetrics"]),
        pytest.param("torchmetrics", "nDCG@k", marks=REAL["torchmetrics"]),
        ("sklearn", "MAP"),
    ],
)
def test_an_empty_list_is_left_out_where_a_library_never_sees_it(name: str, form: str) -> None:
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    run = {"q1": {"b": 0.9, "a": 0.5}, "q2": {}}
    theirs = LIBRARIES[name]({"q1": run["q1"]}, qrels, form, CUTOFF)
    assert ours(run, qrels, name, form) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.slow
def test_our_own_preset_is_what_evaluate_gives() -> None:
    from equipoise.evidence.ranking import Ranking
    from equipoise.runs.evaluate import evaluate

    @settings(max_examples=20)
    @given(runs_and_qrels())
    def agrees(inputs) -> None:
        run, qrels = inputs
        for form in PRESETS["equipoise"].calls:
            metric = metric_of(form)
            result = evaluate(Ranking.from_runs(qrels, run), metric, config=StatsConfig(n_resamples=1), chance=False)
            assert ours(run, qrels, "equipoise", form) == pytest.approx(
                result[metric.name].value, abs=1e-15, nan_ok=True
            )

    agrees()
    assert PRESETS["equipoise"].conventions == Conventions()


@REAL["torchmetrics"]
@pytest.mark.skipif(sys.platform != "linux", reason="another C++ library leaves equals in another order")
@pytest.mark.parametrize("form", ["HR@k", "R@k", "P@k", "MAP@k", "MAP", "MRR"])
def test_long_lists_of_few_scores_are_ordered_as_torch_orders_them(form: str) -> None:
    rng = np.random.default_rng(7)
    for length in (3, 16, 17, 40, 250):
        items = [f"d{number}" for number in range(length)]
        run = {f"q{query}": dict(zip(items, rng.integers(1, 4, length) / 4.0, strict=True)) for query in range(9)}
        qrels = {query: {items[number]: 1 for number in rng.permutation(length)[:3]} for query in run}
        theirs = LIBRARIES["torchmetrics"](run, qrels, form, CUTOFF)
        assert ours(run, qrels, "torchmetrics", form) == pytest.approx(theirs, abs=2e-6)


@REAL["torchmetrics"]
@pytest.mark.skipif(sys.platform != "linux", reason="another C++ library leaves equals in another order")
@pytest.mark.parametrize("rows", [32_767, 32_768])
def test_ties_are_ordered_as_torch_orders_them_where_it_changes_to_a_radix_sort(rows: int) -> None:
    rng = np.random.default_rng(rows)
    length, items = 300, [f"d{number}" for number in range(300)]
    sizes = [length] * (rows // length) + [rows % length]
    run = {
        f"q{query}": dict(zip(items[:size], (rng.integers(1, 4, size) / 4).tolist(), strict=True))
        for query, size in enumerate(sizes)
    }
    qrels = {query: {items[number]: 1 for number in rng.permutation(length)[:20]} for query in run}
    extra = {"unjudged": dict.fromkeys(items, 0.5)}  # rows that torchmetrics never sees do not count
    for form in ("HR@k", "MAP@k"):
        theirs = LIBRARIES["torchmetrics"](run, qrels, form, CUTOFF)
        assert ours(run | extra, qrels, "torchmetrics", form) == pytest.approx(theirs, abs=2e-6), form
