"""Every check of tuning reports its problem and nothing else."""

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
    """A tuning record for two chunk sizes and three depths, with two folds of nested cross-validation."""
    points = parameter_grid(chunk_size=[256, 512], top_k=[5, 10, 20])
    trials = tuple(Trial(point, value(**point), cost=100.0) for point in points)
    best = max(range(len(trials)), key=lambda index: trials[index].value)
    selection = FoldSelection(trials[best].params, trials[best].value, 0.6, 50)
    return TuningRecord(
        "accuracy",
        trials,
        best,
        0,
        trials[best].value,
        0.6,
        (selection, selection),
        cost_unit="tokens",
        budget=budget,
    )


def findings_with_code(subject: object, code: str) -> list[Finding]:
    return [finding for finding in run_checks(subject) if finding.code == code]


def rising_score(chunk_size: int, top_k: int) -> float:
    return 0.5 + top_k / 100 + (chunk_size == 512) / 10


def test_an_optimistic_best_trial_is_reported_with_the_gap() -> None:
    (finding,) = findings_with_code(TunedSystem("minilm", tuning(rising_score), nested=False), "EQ201")
    assert finding.subject == "minilm"
    assert finding.message.startswith("accuracy 0.8000 is the best of 6 trials, selected and scored on the same data")
    assert finding.evidence[1] == "the held-out score (nested cross-validation) is 0.6000, -0.2000"


def test_defaults_that_no_trial_exceeds_are_compared_with_the_trials() -> None:
    record = tuning(rising_score)
    defaults = Trial({"chunk_size": 1024, "top_k": 20}, 0.9)
    record = replace(record, trials=(*record.trials, defaults), tried=6, best=6, baseline=6, optimistic=0.9)
    (finding,) = findings_with_code(TunedSystem("minilm", record, nested=False), "EQ201")
    assert "is the best of 6 trials and the defaults, selected" in finding.message


def test_a_tuning_without_folds_is_reported_without_a_gap() -> None:
    record = replace(tuning(rising_score), folds=(), nested=NAN)
    (finding,) = findings_with_code(TunedSystem.of("minilm", record), "EQ201")
    assert len(finding.evidence) == 1


def test_a_nested_score_is_not_reported_as_optimistic() -> None:
    assert findings_with_code(TunedSystem.of("minilm", tuning(rising_score)), "EQ201") == []


def test_a_single_trial_has_no_findings() -> None:
    record = tuning(rising_score)
    single_trial = replace(record, trials=record.trials[:1], best=0, folds=(), nested=NAN)
    assert run_checks(TunedSystem.of("minilm", single_trial)) == ()


def test_a_depth_whose_score_never_falls_is_reported_with_its_scores() -> None:
    (finding,) = findings_with_code(TunedSystem.of("minilm", tuning(rising_score)), "EQ202")
    assert "top_k was tuned over 5, 10, 20 without a budget" in finding.message
    assert finding.evidence[0] == "top_k 5: 0.5500, 10: 0.6000, 20: 0.7000 (chunk_size 256)"
    assert len(finding.evidence) == 2


def test_the_order_of_the_trials_does_not_change_the_finding() -> None:
    record = tuning(rising_score)
    reversed_record = replace(record, trials=record.trials[::-1], best=0)
    (finding,) = findings_with_code(TunedSystem.of("minilm", reversed_record), "EQ202")
    assert finding.evidence[1] == "top_k 5: 0.5500, 10: 0.6000, 20: 0.7000 (chunk_size 256)"


def test_a_depth_tuned_with_a_budget_is_not_reported() -> None:
    assert findings_with_code(TunedSystem.of("minilm", tuning(rising_score, budget=2000)), "EQ202") == []


@pytest.mark.parametrize(
    "value",
    [lambda chunk_size, top_k: 0.9 - top_k / 100, lambda **params: 0.7, lambda **params: NAN],
    ids=["falling", "flat", "undefined"],
)
def test_a_depth_whose_score_falls_or_is_constant_is_not_reported(value: Callable[..., float]) -> None:
    assert findings_with_code(TunedSystem.of("minilm", tuning(value)), "EQ202") == []


def test_one_falling_score_among_all_combinations_is_enough() -> None:
    def score(chunk_size: int, top_k: int) -> float:
        return 0.1 if (chunk_size, top_k) == (512, 20) else rising_score(chunk_size, top_k)

    assert findings_with_code(TunedSystem.of("minilm", tuning(score)), "EQ202") == []


def test_a_depth_that_was_not_tuned_is_not_reported() -> None:
    trials = tuple(Trial({"chunk_size": size, "top_k": 5}, size / 1000) for size in (256, 512))
    record = replace(tuning(), trials=trials, best=1)
    assert findings_with_code(TunedSystem.of("minilm", record), "EQ202") == []


def test_other_parameters_can_be_declared_as_depths() -> None:
    trials = tuple(Trial({"probes": probes}, probes / 10) for probes in (1, 4, 8))
    record = replace(tuning(), trials=trials, best=2)
    assert findings_with_code(TunedSystem.of("index", record), "EQ202") == []
    assert len(findings_with_code(TunedSystem("index", record, nested=True, depths=["probes"]), "EQ202")) == 1


def results_with_settings(settings: dict[str, dict[str, Any]]) -> ComparedResults:
    """Results of systems with these settings."""
    return ComparedResults(
        [
            result_from_values(name, ["q1"], {"HR": [1]}, settings=system_settings)
            for name, system_settings in settings.items()
        ]
    )


def results_with_trials(**trials: int) -> ComparedResults:
    return results_with_settings({name: {"configurations": count} for name, count in trials.items()})


def test_unequal_numbers_of_trials_are_listed() -> None:
    (finding,) = run_checks(results_with_trials(minilm=6, use=6, bm25=1))
    assert finding.code == "EQ203"
    assert finding.message.startswith("minilm got 6 trials and bm25 got 1,")
    assert finding.evidence == (
        "minilm: 6 trials, budget none",
        "use: 6 trials, budget none",
        "bm25: 1 trial, budget none",
    )


def test_equal_numbers_of_trials_have_no_findings() -> None:
    assert run_checks(results_with_trials(minilm=6, bm25=6)) == ()


def tuned_result(system: str, **settings: Any) -> Result:
    """A result with the settings of its tuning."""
    grid = {"chunk_size": [256, 512], "top_k": settings.pop("top_k", [5])}
    recorded_settings = {"configurations": 2, "grid": grid, "folds": 5, "tokenizer": "words", **settings}
    return result_from_values(system, ["q1", "q2"], {"accuracy": [1, 0]}, settings=recorded_settings)


def test_results_with_equal_tuning_have_no_findings_at_any_cost() -> None:
    results = [tuned_result("minilm", retrieved_tokens=2500.0), tuned_result("bm25:", retrieved_tokens=500.0)]
    assert run_checks(ComparedResults(results)) == ()


@pytest.mark.parametrize(
    ("settings", "expected_text"),
    [
        ({"configurations": 27}, "bm25: got 27 trials and minilm got 2"),
        ({"top_k": [5, 15]}, "(top_k 5 against 5/15)"),
        ({"budget": 800}, "(budget none against 800)"),
        ({"folds": 1}, "(folds 5 against 1)"),
        ({"tokenizer": "cl100k"}, "(tokenizer words against cl100k)"),
    ],
)
def test_every_difference_in_tuning_settings_is_reported(settings: dict[str, Any], expected_text: str) -> None:
    results = [
        tuned_result("minilm", retrieved_tokens=180.2),
        tuned_result("bm25:", retrieved_tokens=7443.4, **settings),
    ]
    (finding,) = run_checks(ComparedResults(results))
    assert (finding.code, finding.subject) == ("EQ203", "minilm, bm25:")
    assert expected_text in finding.message
    assert finding.message.endswith("bm25: uses 7,443 tokens on average and minilm 180")
    assert finding.evidence[0].startswith("minilm: 2 trials, chunk_size 256/512, top_k 5, budget none")


def test_missing_tuning_settings_are_not_reported() -> None:
    without_settings = result_from_values("bm25:", ["q1", "q2"], {"accuracy": [1, 0]})
    assert run_checks(ComparedResults([tuned_result("minilm"), without_settings])) == ()


def test_a_baseline_outside_the_grid_is_not_a_trial() -> None:
    record = tuning(rising_score)
    baseline = Trial({"chunk_size": 512, "top_k": 40}, 0.99, cost=100.0)
    with_baseline = replace(record, trials=(*record.trials, baseline), baseline=6, tried=6)
    (finding,) = findings_with_code(TunedSystem.of("minilm", with_baseline), "EQ202")
    assert "top_k was tuned over 5, 10, 20 without" in finding.message
    baseline_only = replace(record, trials=(record.trials[0], record.trials[1]), best=0, baseline=1, tried=1, folds=())
    assert run_checks(TunedSystem.of("minilm", baseline_only)) == ()
    assert len(with_baseline.grid) == 6


def test_only_trials_within_the_budget_are_counted() -> None:
    record = tuning(rising_score, budget=50)
    cheap = [replace(trial, cost=10.0) for trial in record.trials[:2]]
    affordable = replace(record, trials=(*cheap, *record.trials[2:]), best=1, optimistic=0.6, folds=(), nested=NAN)
    (finding,) = findings_with_code(TunedSystem.of("minilm", affordable), "EQ201")
    assert "is the best of 2 trials" in finding.message


def test_the_message_of_a_single_trial_omits_held_out() -> None:
    (finding,) = findings_with_code(
        TunedSystem.of("minilm", replace(tuning(rising_score), metric="held-out accuracy")), "EQ202"
    )
    assert "; accuracy never falls" in finding.message


def results_with_truncation(**truncated: int | None) -> ComparedResults:
    """Systems with a window of 256 tokens and 200 texts, with the number of truncated texts per system."""
    return results_with_settings(
        {name: {"window": {"tokens": 256, "texts": 200, "truncated": count}} for name, count in truncated.items()}
    )


def test_unequal_truncation_is_reported() -> None:
    (finding,) = run_checks(results_with_truncation(minilm=190, bm25=0, use=20))
    assert finding.code == "EQ205"
    assert finding.message == ("minilm truncates 95 % of the texts to 256 tokens, and bm25 truncates none")
    assert finding.evidence[2] == "use: 10 % of the texts truncated"


@pytest.mark.parametrize(
    "truncation",
    [
        results_with_truncation(a=0, b=0),
        results_with_truncation(a=100, b=100),
        results_with_truncation(a=100, b=None),
        results_with_truncation(a=2, b=0),
    ],
    ids=["all whole", "alike", "unknown", "a hundredth"],
)
def test_equal_or_unknown_truncation_has_no_findings(truncation: ComparedResults) -> None:
    assert run_checks(truncation) == ()


def test_unequal_truncation_is_reported_from_stored_results() -> None:
    """Comparing stored runs gives the findings of the first comparison."""
    truncated = {"model": "minilm", "window": {"tokens": 128, "texts": 100, "truncated": 40}}
    untruncated = {"model": "use", "window": {"tokens": None, "texts": 100, "truncated": 0}}
    results = [
        result_from_values(name, ["q1", "q2", "q3"], {"HR": [1, 0, 1]}, settings=settings)
        for name, settings in (("short", truncated), ("whole", untruncated))
    ]
    codes = [finding.code for finding in compare(results).findings]
    assert codes.count("EQ205") == 1
    assert codes.count("EQ107") == 1
