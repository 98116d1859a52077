"""The worked example shows the terms and the denominator."""

from __future__ import annotations

import re
from math import log2

import pytest
from hypothesis import given, settings

from equipoise.metrics.parser import parse_metrics
from equipoise.reproduce.attribution import explain_difference
from equipoise.reproduce.difference import rank_ranges, write_formula
from equipoise.reproduce.emulation import RunAndQrels, score_under
from equipoise.reproduce.presets import Conventions
from library_metrics import runs_and_qrels

RUN = {"q": {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6}}
QRELS = {"q": {"a": 2, "c": 1, "x": 1, "y": 3}}


def formula_text(name: str, run=RUN, qrels=QRELS, **rules) -> str:
    inputs, metric = RunAndQrels.of(run, qrels), parse_metrics(name)[0]
    conventions = Conventions(**rules)
    value = score_under(inputs, metric, conventions).per_unit[0]
    return write_formula(inputs, "q", metric, conventions, rank_ranges(inputs, "q", conventions), value)


@pytest.mark.parametrize(
    ("name", "rules", "text"),
    [
        ("MRR", {}, "1/1 -> 1.0000"),
        ("HR@1", {}, "a relevant item at rank 1, within 1 -> 1.0000"),
        ("P@3", {}, "2 relevant within 3, over k = 3 -> 0.6667"),
        ("R@3", {}, "2 relevant within 3, over R = 4 -> 0.5000"),
        ("R(capped)@3", {}, "2 relevant within 3, over min(k, R) = 3 -> 0.6667"),
        ("MAP@3", {}, "(1/1 + 2/3) over min(3, 4) = 3 -> 0.5556"),
        ("MAP@3", {"norm": "R"}, "(1/1 + 2/3) over R = 4 -> 0.4167"),
        ("MAP@3", {"norm": "hits"}, "(1/1 + 2/3) over 2 found -> 0.8333"),
        ("MAP@3", {"unretrieved": "unseen"}, "(1/1 + 2/3) over min(3, 2) = 2 -> 0.8333"),
        (
            "nDCG@3",
            {},
            "(2/log2(2) + 1/log2(4)) = 2.5000 over the ideal of 3 items, "
            f"{3 + 2 / log2(3) + 1 / 2:.4f} -> {2.5 / (3.5 + 2 / log2(3)):.4f}",
        ),
        (
            "nDCG@1",
            {"gain": "exp"},
            "3/log2(2) = 3.0000 over the ideal of 1 item, 7.0000 -> 0.4286",
        ),
        ("HR@2", {"grades": "binary"}, "a relevant item at rank 1, within 2 -> 1.0000"),
    ],
)
def test_the_terms_and_the_denominator_are_shown(name: str, rules: dict[str, str], text: str) -> None:
    assert formula_text(name, **rules) == text


def test_the_order_of_tied_scores_is_stated() -> None:
    run = {"q": {"a": 0.5, "b": 0.5, "c": 0.1}}
    assert formula_text("MRR", run, {"q": {"a": 1, "c": 1}}) == (
        "relevant at rank 1-2, averaged over all orders of equal scores -> 0.7500"
    )
    assert formula_text("MRR", run, {"q": {"a": 1}}, ties="pessimistic").endswith(
        "worst order of equal scores -> 0.5000"
    )
    assert formula_text("MRR", run, {"q": {"a": 1}}, ties="id_down") == "1/2 -> 0.5000"


def test_a_unit_without_a_value_has_a_reason() -> None:
    other_run = {"p": {"a": 0.5}}
    qrels = {"q": {"a": 1}, "p": {"a": 1}}
    assert formula_text("MRR", other_run, qrels) == "scores 0.0000: the run misses it"
    assert formula_text("MRR", other_run, qrels, missing="left_out") == "left out: the run misses it"
    assert formula_text("MRR", RUN, {"q": {"a": 0}}) == "left out: it has no relevant item"
    assert formula_text("MRR", RUN, {"q": {"a": 0}}, empty="zero") == "scores 0.0000: it has no relevant item"
    unseen = {"unretrieved": "unseen", "empty": "zero"}
    assert (
        formula_text("MRR", RUN, {"q": {"x": 1}}, **unseen) == "scores 0.0000: none of its relevant items counts here"
    )
    assert formula_text("MRR", {"q": {"a": 0.5}}, {"q": {"a": 1}}, fewest=2) == (
        "left out: its list has 1 of the 2 items that are needed"
    )
    assert formula_text("HR@1", RUN, {"q": {"d": 1}}) == "no relevant item within 1 -> 0.0000"


@settings(max_examples=15)
@given(runs_and_qrels(tied=False))
def test_the_shown_terms_give_the_value(inputs) -> None:
    run, qrels = inputs
    for name, preset in (("nDCG@3", "trec_eval"), ("MAP@3", "ranx"), ("MAP@3", "torchmetrics")):
        example = explain_difference(run, qrels, name, one=preset).example
        for text, value in zip(example.sums, (example.one, example.other), strict=True) if example else ():
            if match := re.fullmatch(r"(?:.*= )?([\d.]+) over the ideal of \d+ items?, ([\d.]+) -> .*", text):
                assert float(match[1]) / float(match[2]) == pytest.approx(value, abs=1e-3)
            elif match := re.fullmatch(r"(\(?[\d/ +]+\)?) over (?:.*= )?(\d+)(?: found)? -> .*", text):
                terms = [fraction.split("/") for fraction in match[1].strip("()").split(" + ")]
                assert sum(int(a) / int(b) for a, b in terms) / int(match[2]) == pytest.approx(value)
            else:
                assert text.startswith(("left out", "scores 0", "no relevant item"))
