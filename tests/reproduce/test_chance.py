"""The chance level of a preset equals the mean of random scores."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from equipoise.metrics.parser import parse_metrics
from equipoise.reproduce.emulation import RunAndQrels, score_under
from equipoise.reproduce.presets import PRESETS
from equipoise.reproduce.score import chance_level_under

CORPUS, LENGTH, QUERIES = 61, 20, 500
CASES = [(name, form) for name in ("torchmetrics", "sklearn") for form in PRESETS[name].calls]
CASES += [("trec_eval", "HR@k"), ("ranx", "nDCG@k")]


@cache
def random_lists(graded: bool) -> RunAndQrels:
    """20 of 61 documents in random order; one to six of the 61 are relevant."""
    rng = np.random.default_rng(3)
    run, truth = {}, {}
    for query in range(QUERIES):
        retrieved, relevant = rng.permutation(CORPUS)[:LENGTH], rng.permutation(CORPUS)[: 1 + query % 6]
        grades = rng.integers(1, 4, len(relevant)) if graded else np.ones(len(relevant), dtype=int)
        run[f"q{query}"] = dict(zip(map(str, retrieved), rng.random(LENGTH).tolist(), strict=True))
        truth[f"q{query}"] = dict(zip(map(str, relevant), grades.tolist(), strict=True))
    return RunAndQrels.of(run, truth, corpus_size=CORPUS)


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize(("name", "metric_form"), CASES)
def test_random_lists_earn_the_chance_level(name: str, metric_form: str, graded: bool) -> None:
    inputs, metric = random_lists(graded), parse_metrics(metric_form.replace("@k", "@5"))[0]
    rules = PRESETS[name].rules(metric)
    result = score_under(inputs, metric, rules)
    error = float(np.std(result.per_unit)) / np.sqrt(QUERIES)
    assert chance_level_under(inputs, metric, rules) == pytest.approx(result.value, abs=4 * error)


def test_complete_lists_have_an_exact_chance_level() -> None:
    truth = {"q": {"a": 3, "b": 1}}
    inputs = RunAndQrels.of({"q": dict.fromkeys("abcd", 0.5)}, truth, corpus_size=4)
    metric = parse_metrics("HR@1")[0]
    assert chance_level_under(inputs, metric, PRESETS["torchmetrics"].rules(metric)) == pytest.approx(0.5)


def test_excluded_queries_do_not_count() -> None:
    truth = {"q": {"a": 1}, "missing": {"a": 1}, "void": {"a": 1}}
    run = {"q": {"a": 0.9, "b": 0.1}, "void": {}}
    metric = parse_metrics("HR@1")[0]
    rules = PRESETS["torchmetrics"].rules(metric)
    chance_level = chance_level_under(RunAndQrels.of(run, truth, corpus_size=2), metric, rules)
    assert chance_level == pytest.approx(0.5)
