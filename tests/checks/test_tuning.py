"""The checks of tuning complain of what deserves it and are silent on what does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from equipoise.checks.base import ComparedResults, run_checks
from equipoise.checks.models import TunedSystem
from equipoise.runs.compare import compare
from equipoise.stats.estimate import result_from_values
from equipoise.stats.result import Result
from equipoise.tuning.grid import FoldSelection, Trial, TuningRecord, parameter_grid
from equipoise.types import Finding

NAN = float("nan")


def tuning(value: Callable[..., float] = lambda **params: 0.7, *, budget: float | None = None) -> TuningRecord:
    """A tuning over two chunk sizes and three depths, nested in two folds."""
    points = parameter_grid(chunk_size=[256, 512], top_k=[5, 10, 20])
    trials = tuple(Trial(point, value(**point), cost=100.0) for point in points)
    best = max(range(len(trials)), key=lambda place: trials[place].value)
    chosen = FoldSelection(trials[best].params, trials[best].value, 0.6, 50)
    return TuningRecord(
        "accuracy",
        trials,
        best,
        0,
        trials[best].value,
        0.6,
        (chosen, chosen),
        cost_unit="tokens",
        budget=budget,
    )


def found(thing: object, code: str) -> list[Finding]:
    return [finding for finding in run_checks(thing) if finding.code == code]


def rising(chunk_size: int, top_k: int) -> float:
    return 0.5 + top_k / 100 + (chunk_size == 512) / 10


def test_the_best_trial_reported_on_its_own_units_is_named_with_the_gap() -> None:
    (finding,) = found(TunedSystem("minilm", tuning(rising), nested=False), "EQ201")
    assert finding.subject == "minilm"
    assert finding.message.startswith("accuracy 0.8000 is the best of 6 trials, selected and scored on the same data")
    assert finding.evidence[1] == "the held-out score (nested cross-validation) is 0.6000, -0.2000"


def test_a_tuning_without_folds_can_only_report_its_best_trial() -> None:
    seen = replace(tuning(rising), folds=(), nested=NAN)
    (finding,) = found(TunedSystem.of("minilm", seen), "EQ201")
    assert len(finding.evidence) == 1


def test_a_nested_figure_is_free_of_that() -> None:
    assert found(TunedSystem.of("minilm", tuning(rising)), "EQ201") == []


def test_a_single_trial_is_no_choice() -> None:
    seen = tuning(rising)
    alone = replace(seen, trials=seen.trials[:1], best=0, folds=(), nested=NAN)
    assert run_checks(TunedSystem.of("minilm", alone)) == ()


def test_a_depth_that_can_only_help_is_named_with_its_ladder() -> None:
    (finding,) = found(TunedSystem.of("minilm", tuning(rising)), "EQ202")
    assert "top_k was tuned over 5, 10, 20 without a budget" in finding.message
    assert finding.evidence[0] == "top_k 5: 0.5500, 10: 0.6000, 20: 0.7000 (chunk_size 256)"
    assert len(finding.evidence) == 2


def test_trials_in_any_order_show_the_same_ladder() -> None:
    seen = tuning(rising)
    turned = replace(seen, trials=seen.trials[::-1], best=0)
    (finding,) = found(TunedSystem.of("minilm", turned), "EQ202")
    assert finding.evidence[1] == "top_k 5: 0.5500, 10: 0.6000, 20: 0.7000 (chunk_size 256)"


def test_a_budget_gives_the_depth_a_price() -> None:
    assert found(TunedSystem.of("minilm", tuning(rising, budget=2000)), "EQ202") == []


@pytest.mark.parametrize(
    "value",
    [lambda chunk_size, top_k: 0.9 - top_k / 100, lambda **params: 0.7, lambda **params: NAN],
    ids=["falling", "flat", "undefined"],
)
def test_a_depth_that_does_not_only_help_is_a_choice(value: Callable[..., float]) -> None:
    assert found(TunedSystem.of("minilm", tuning(value)), "EQ202") == []


def test_one_fall_among_all_combinations_makes_it_a_choice() -> None:
    def once(chunk_size: int, top_k: int) -> float:
        return 0.1 if (chunk_size, top_k) == (512, 20) else rising(chunk_size, top_k)

    assert found(TunedSystem.of("minilm", tuning(once)), "EQ202") == []


def test_a_depth_that_was_not_tuned_is_not_named() -> None:
    trials = tuple(Trial({"chunk_size": size, "top_k": 5}, size / 1000) for size in (256, 512))
    seen = replace(tuning(), trials=trials, best=1)
    assert found(TunedSystem.of("minilm", seen), "EQ202") == []


def test_other_parameters_that_can_only_help_can_be_named() -> None:
    trials = tuple(Trial({"probes": probes}, probes / 10) for probes in (1, 4, 8))
    seen = replace(tuning(), trials=trials, best=2)
    assert found(TunedSystem.of("index", seen), "EQ202") == []
    assert len(found(TunedSystem("index", seen, nested=True, depths=["probes"]), "EQ202")) == 1


def compared(settings: dict[str, dict[str, Any]]) -> ComparedResults:
    """Results of systems with these settings."""
    return ComparedResults(
        [result_from_values(name, ["q1"], {"HR": [1]}, settings=recorded) for name, recorded in settings.items()]
    )


def with_trials(**trials: int) -> ComparedResults:
    return compared({name: {"configurations": count} for name, count in trials.items()})


def test_unequal_numbers_of_trials_are_listed() -> None:
    (finding,) = run_checks(with_trials(minilm=6, use=6, bm25=1))
    assert finding.code == "EQ203"
    assert finding.message.startswith("minilm got 6 trials and bm25 got 1,")
    assert finding.evidence == (
        "minilm: 6 trials, budget none",
        "use: 6 trials, budget none",
        "bm25: 1 trial, budget none",
    )


def test_equal_numbers_of_trials_are_fair() -> None:
    assert run_checks(with_trials(minilm=6, bm25=6)) == ()


def told(system: str, **settings: Any) -> Result:
    """A result that says how it was tuned."""
    grid = {"chunk_size": [256, 512], "top_k": settings.pop("top_k", [5])}
    terms = {"configurations": 2, "grid": grid, "folds": 5, "tokenizer": "words", **settings}
    return result_from_values(system, ["q1", "q2"], {"accuracy": [1, 0]}, settings=terms)


def test_results_that_were_tuned_alike_are_fair_whatever_they_spend() -> None:
    alike = [told("minilm", retrieved_tokens=2500.0), told("bm25:", retrieved_tokens=500.0)]
    assert run_checks(ComparedResults(alike)) == ()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"configurations": 27}, "bm25: got 27 trials and minilm got 2"),
        ({"top_k": [5, 15]}, "(top_k 5 against 5/15)"),
        ({"budget": 800}, "(budget none against 800)"),
        ({"folds": 1}, "(folds 5 against 1)"),
        ({"tokenizer": "cl100k"}, "(tokenizer words against cl100k)"),
    ],
)
def test_every_term_of_a_tuning_counts(settings: dict[str, Any], said: str) -> None:
    spent = [told("minilm", retrieved_tokens=180.2), told("bm25:", retrieved_tokens=7443.4, **settings)]
    (finding,) = run_checks(ComparedResults(spent))
    assert (finding.code, finding.subject) == ("EQ203", "minilm, bm25:")
    assert said in finding.message
    assert finding.message.endswith("bm25: uses 7,443 tokens on average and minilm 180")
    assert finding.evidence[0].startswith("minilm: 2 trials, chunk_size 256/512, top_k 5, budget none")


def test_what_a_result_does_not_say_is_not_held_against_it() -> None:
    silent = result_from_values("bm25:", ["q1", "q2"], {"accuracy": [1, 0]})
    assert run_checks(ComparedResults([told("minilm"), silent])) == ()


def test_a_baseline_that_could_not_be_chosen_is_no_trial() -> None:
    seen = tuning(rising)
    baseline = Trial({"chunk_size": 512, "top_k": 40}, 0.99, cost=100.0)
    beside = replace(seen, trials=(*seen.trials, baseline), baseline=6, tried=6)
    (finding,) = found(TunedSystem.of("minilm", beside), "EQ202")
    assert "top_k was tuned over 5, 10, 20 without" in finding.message
    lone = replace(seen, trials=(seen.trials[0], seen.trials[1]), best=0, baseline=1, tried=1, folds=())
    assert run_checks(TunedSystem.of("minilm", lone)) == ()
    assert len(beside.grid) == 6


def test_the_best_within_a_budget_is_the_best_of_what_it_affords() -> None:
    seen = tuning(rising, budget=50)
    cheap = [replace(trial, cost=10.0) for trial in seen.trials[:2]]
    few = replace(seen, trials=(*cheap, *seen.trials[2:]), best=1, optimistic=0.6, folds=(), nested=NAN)
    (finding,) = found(TunedSystem.of("minilm", few), "EQ201")
    assert "is the best of 2 trials" in finding.message


def test_single_trials_are_not_called_nested() -> None:
    (finding,) = found(TunedSystem.of("minilm", replace(tuning(rising), metric="held-out accuracy")), "EQ202")
    assert "and accuracy never falls" in finding.message


def windows(**truncated: int | None) -> ComparedResults:
    """Systems that read 256 tokens of each of 200 texts, and how many of them they truncated."""
    return compared(
        {name: {"window": {"tokens": 256, "texts": 200, "truncated": count}} for name, count in truncated.items()}
    )


def test_a_model_that_reads_half_of_what_another_reads_is_named() -> None:
    (finding,) = run_checks(windows(minilm=190, bm25=0, use=20))
    assert finding.code == "EQ205"
    assert finding.message == ("minilm truncates 95 % of the texts to 256 tokens, and bm25 truncates none")
    assert finding.evidence[2] == "use: 10 % of the texts truncated"


@pytest.mark.parametrize(
    "truncation",
    [windows(a=0, b=0), windows(a=100, b=100), windows(a=100, b=None), windows(a=2, b=0)],
    ids=["all whole", "alike", "unknown", "a hundredth"],
)
def test_texts_that_are_read_alike_are_fair(truncation: ComparedResults) -> None:
    assert run_checks(truncation) == ()


def test_unequal_truncation_is_found_from_results_alone() -> None:
    """Whoever compares stored runs is told what the first comparison was told."""
    short = {"model": "minilm", "window": {"tokens": 128, "texts": 100, "truncated": 40}}
    whole = {"model": "use", "window": {"tokens": None, "texts": 100, "truncated": 0}}
    results = [
        result_from_values(name, ["q1", "q2", "q3"], {"HR": [1, 0, 1]}, settings=settings)
        for name, settings in (("short", short), ("whole", whole))
    ]
    codes = [finding.code for finding in compare(results).findings]
    assert codes.count("EQ205") == 1
    assert codes.count("EQ107") == 1
