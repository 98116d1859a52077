"""``eq gate`` from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import permutation_test

from equipoise.config import StatsConfig
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import save_run
from stored_runs import rewrite

Stored = Callable[..., str]


@pytest.fixture
def stored(folder: Path) -> Stored:
    """Write a run directory with given ranks and default settings."""

    def store(
        name: str,
        ranks: list[int],
        *metrics: str,
        ties: str = "expected",
        status: str = "complete",
        truth: str = "",
        evidence: bool = True,
        units: list[str] | None = None,
    ) -> str:
        ids = units or [f"q{unit}" for unit in range(len(ranks))]
        ranking = Ranking.from_ranks(ranks, candidates=50, unit_ids=ids)
        result = evaluate(
            ranking, metrics or ("MRR", "MR", "HR@1"), system=name, config=StatsConfig(ties=ties, n_resamples=200)
        )
        datasets = {"truth.qrels": truth} if truth else {}
        manifest = Manifest(name, datasets=datasets).finish(status, reason="" if status == "complete" else "stopped")
        result = result if evidence else replace(result, evidence=None)
        save_run(folder / name, result, manifest=manifest)
        return name

    return store


GOOD_RANKS = [1, 1, 2, 1, 1, 3, 1, 1, 2, 1, 1, 1, 1, 2, 1, 1, 1, 4, 1, 1]
WORSE_RANKS = [rank + 2 for rank in GOOD_RANKS]


def test_a_minimum_is_compared_with_the_point_estimate(eq, stored: Stored) -> None:
    run = stored("dense", GOOD_RANKS)
    passed = eq("gate", run, "--require", "MRR>=0.80", "--require", "MR<=2")
    assert passed.exit_code == 0, passed.stdout
    assert "pass  MRR is 0.8" in passed.stdout
    assert "at least 0.80" in passed.stdout
    below_minimum = eq("gate", run, "--require", "MRR>=0.9", "--require", "MR<=2")
    assert below_minimum.exit_code == 1
    assert [line[:4] for line in below_minimum.stdout.splitlines()] == ["FAIL", "pass"]
    assert "below 0.9" in below_minimum.stdout


def test_confident_compares_the_bound_of_the_interval(eq, stored: Stored) -> None:
    run = stored("dense", GOOD_RANKS)
    assert eq("gate", run, "--require", "MRR>=0.80").exit_code == 0
    result = eq("gate", run, "--require", "MRR>=0.80", "--confident")
    assert result.exit_code == 1
    assert "the lower end of its 95 % interval" in result.stdout
    assert "the upper end" in eq("gate", run, "--require", "MR<=9", "--confident").stdout


def test_the_confidence_level_changes_the_bound(eq, stored: Stored) -> None:
    run = stored("dense", GOOD_RANKS)
    verdicts = [
        json.loads(
            eq("gate", run, "--require", "HR@1>=0", "--confident", "--confidence-level", level, "--json").stdout
        )["verdicts"][0]
        for level in ("0.95", "0.8")
    ]
    assert verdicts[0]["bound"] < verdicts[1]["bound"]
    without_evidence = stored("bare", GOOD_RANKS, evidence=False)
    result = eq("gate", without_evidence, "--require", "HR@1>=0", "--confident", "--confidence-level", "0.8")
    assert result.exit_code == 1
    assert "only one at 95 % is stored" in result.stdout


def test_a_metric_that_was_not_stored_is_scored_from_the_evidence(eq, stored: Stored) -> None:
    result = eq("gate", stored("dense", GOOD_RANKS, "MRR"), "--require", "Acc@3 >= 90%")
    assert result.exit_code == 0, result.stderr
    assert "HR@3 is 0.9" in result.stdout


def test_a_value_near_the_minimum_is_shown_with_more_digits(eq, stored: Stored) -> None:
    run = stored("dense", [1] * 1999 + [2])
    result = eq("gate", run, "--require", "MRR>=0.9998")
    assert result.exit_code == 1
    assert "MRR is 0.99975, below 0.9998" in result.stdout


# ---- baselines ---------------------------------------------------------------------------------


def test_only_a_significant_loss_fails(eq, stored: Stored) -> None:
    base = stored("base", GOOD_RANKS)
    slightly = stored("slightly", [2, *GOOD_RANKS[1:]])
    clearly = stored("clearly", WORSE_RANKS)
    result = eq("gate", slightly, "--no-worse-than", base)
    assert result.exit_code == 0, result.stdout
    assert "; no significant loss" in result.stdout
    result = eq("gate", clearly, "--no-worse-than", base)
    assert result.exit_code == 1
    assert "; a significant loss (p < 0.001, 20 queries)" in result.stdout
    assert eq("gate", base, "--no-worse-than", clearly).exit_code == 0


def test_a_loss_within_the_margin_passes(eq, stored: Stored) -> None:
    base, worse = stored("base", [2] * 120), stored("worse", [3] * 112 + [4, 2] * 4)
    assert eq("gate", worse, "--no-worse-than", base).exit_code == 1
    assert eq("gate", worse, "--no-worse-than", base, "--margin", "0.1").exit_code == 1
    result = eq("gate", worse, "--no-worse-than", base, "--margin", "0.2")
    assert result.exit_code == 0, result.stdout
    assert "no significant loss beyond the margin of 0.2" in result.stdout


def test_losses_depend_on_the_direction_of_the_metric(eq, stored: Stored) -> None:
    base, worse = stored("base", GOOD_RANKS), stored("worse", WORSE_RANKS)
    result = eq("gate", worse, "--no-worse-than", base, "-m", "MR")
    assert result.exit_code == 1
    assert "MR is 3.4000, up 2.0000 from 1.4000 (lower is better)" in result.stdout
    assert eq("gate", base, "--no-worse-than", worse, "-m", "MR").exit_code == 0


def test_p_equals_a_one_sided_paired_randomisation_test(eq, stored: Stored) -> None:
    run_ranks, baseline_ranks = [1, 3, 2, 2, 5, 1, 4, 2], [1, 2, 2, 1, 3, 2, 2, 1]
    run, base = stored("run", run_ranks), stored("base", baseline_ranks)
    content = json.loads(eq("gate", run, "--no-worse-than", base, "-m", "MRR", "--json").stdout)
    differences = 1 / np.array(run_ranks) - 1 / np.array(baseline_ranks)
    oracle = permutation_test(
        (differences,), np.mean, permutation_type="samples", alternative="less", n_resamples=np.inf
    )
    assert content["verdicts"][0]["p"] == pytest.approx(oracle.pvalue)


def test_units_are_paired_by_id_and_not_by_position(eq, stored: Stored) -> None:
    base = stored("base", GOOD_RANKS)
    ids = [f"q{unit}" for unit in range(len(GOOD_RANKS))]
    reversed_run = stored("turned", GOOD_RANKS[::-1], units=ids[::-1])
    result = eq("gate", reversed_run, "--no-worse-than", base)
    assert result.exit_code == 0
    assert "unchanged" in result.stdout


def test_p_values_of_several_metrics_are_adjusted(eq, stored: Stored) -> None:
    base, worse = stored("base", GOOD_RANKS), stored("worse", WORSE_RANKS)
    two_metrics = json.loads(eq("gate", worse, "--no-worse-than", base, "-m", "MRR", "-m", "HR@1", "--json").stdout)
    one_metric = json.loads(eq("gate", worse, "--no-worse-than", base, "-m", "MRR", "--json").stdout)
    assert two_metrics["verdicts"][0]["p"] == pytest.approx(2 * one_metric["verdicts"][0]["p"])
    assert "adjusted for 2 metrics" in two_metrics["verdicts"][0]["message"]
    assert "adjusted" not in one_metric["verdicts"][0]["message"]
    uncorrected = eq(
        "gate", worse, "--no-worse-than", base, "-m", "MRR", "-m", "HR@1", "--correction", "none", "--json"
    )
    assert json.loads(uncorrected.stdout)["verdicts"][0] == one_metric["verdicts"][0]


def test_the_help_states_the_test_and_its_assumptions(eq) -> None:
    help_text = " ".join(eq("gate", "--help").stdout.split())
    for term in ("one-sided", "Holm", "Student's t", "Gaffke", "bootstrap interval"):
        assert term in help_text


def test_a_metric_that_is_no_mean_is_compared_by_its_interval(eq, folder: Path) -> None:
    rng = np.random.default_rng(0)
    true_labels = [f"c{label}" for label in rng.integers(0, 3, 120)]
    for name, share in (("base", 0.9), ("worse", 0.4), ("alike", 0.9)):
        predicted_labels = [label if rng.random() < share else "c0" for label in true_labels]
        result = evaluate(
            Labels.of(true_labels, predicted_labels),
            "F1(average=macro)",
            system=name,
            config=StatsConfig(n_resamples=200),
        )
        save_run(folder / name, result, manifest=Manifest(name).finish())
    worse = eq("gate", "worse", "--no-worse-than", "base")
    assert worse.exit_code == 1
    assert "(upper 95 % confidence limit of the gain: -" in worse.stdout
    gate_result = eq("gate", "alike", "--no-worse-than", "base", "--margin", "0.1")
    assert gate_result.exit_code == 0, gate_result.stdout


@pytest.mark.slow
def test_a_run_passes_against_itself_on_the_median_rank(eq, stored: Stored) -> None:
    ranks = [3] * 150 + [1, 9] * 25
    same, better = (
        stored("same", ranks, "MedianRank"),
        stored("better", [2] * 150 + [1, 9] * 25, "MedianRank"),
    )
    result = eq("gate", same, "--no-worse-than", same)
    assert result.exit_code == 0, result.stdout
    assert "unchanged; no significant loss (every resample gives the same difference" in result.stdout
    assert eq("gate", better, "--no-worse-than", same).exit_code == 0
    assert eq("gate", same, "--no-worse-than", better).exit_code == 1


# ---- failures -----------------------------------------------------------------------------------


def assert_failure(result: object, expected_text: str) -> None:
    assert result.exit_code == 1, result.stdout + result.stderr  # type: ignore[attr-defined]
    assert result.stdout.startswith("FAIL")  # type: ignore[attr-defined]
    assert expected_text in result.stdout  # type: ignore[attr-defined]


def test_missing_units_fail(eq, stored: Stored) -> None:
    base, short = stored("base", GOOD_RANKS), stored("short", GOOD_RANKS[:-2])
    assert_failure(eq("gate", short, "--no-worse-than", base), "were not measured on the same queries")


def test_unanswered_units_fail_unless_allowed(eq, folder: Path) -> None:
    qrels = {f"q{unit}": {"a": 1} for unit in range(30)}
    for name, n_answered in (("base", 30), ("hole", 29)):
        run = {f"q{unit}": {"a": 1.0, "b": 0.5} for unit in range(n_answered)}
        ranking = Ranking.from_runs(qrels, run, corpus_size=9)
        save_run(folder / name, evaluate(ranking, "MRR", system=name), manifest=Manifest(name).finish())
    assert_failure(eq("gate", "hole", "--require", "MRR>=0.1"), "the run lacks queries of the ground truth")
    assert_failure(eq("gate", "base", "--no-worse-than", "hole"), "the baseline lacks queries of the ground truth")
    assert eq("gate", "hole", "--require", "MRR>=0.1", "--allow-missing").exit_code == 0


def test_a_score_that_contradicts_the_evidence_fails(eq, stored: Stored, folder: Path) -> None:
    path = folder / stored("base", WORSE_RANKS) / "result.json"
    content = json.loads(path.read_text())
    content["estimates"][0]["value"] = 0.99
    rewrite(path, json.dumps(content))
    assert_failure(eq("gate", "base", "--require", "MRR>=0.9"), "the evidence of the run gives")


@pytest.mark.parametrize("mode", ["matcher", "budget", "folds", "padding"])
def test_a_setting_of_only_one_run_fails(eq, stored: Stored, folder: Path, mode: str) -> None:
    base, other = stored("base", GOOD_RANKS), stored("other", GOOD_RANKS)
    path = folder / other / "result.json"
    content = json.loads(path.read_text())
    rewrite(path, json.dumps(content | {"settings": {**content["settings"], mode: 3}}))
    assert_failure(eq("gate", other, "--no-worse-than", base), "3 here, none in the baseline")


def test_different_tie_rules_fail(eq, stored: Stored) -> None:
    base, other = stored("base", GOOD_RANKS), stored("other", GOOD_RANKS, ties="by_id")
    assert_failure(eq("gate", other, "--no-worse-than", base), "ties by_id here, expected in the baseline")


def test_different_presets_fail(eq, stored: Stored, folder: Path) -> None:
    base, other = stored("base", GOOD_RANKS), stored("other", GOOD_RANKS)
    path = folder / other / "result.json"
    content = json.loads(path.read_text())
    rewrite(path, json.dumps(content | {"settings": {**content["settings"], "like": "ranx"}}))
    assert_failure(
        eq("gate", other, "--no-worse-than", base), "the conventions of ranx here, equipoise in the baseline"
    )


def test_different_qrels_fail(eq, stored: Stored) -> None:
    base, other = stored("base", GOOD_RANKS, truth="aa"), stored("other", GOOD_RANKS, truth="bb")
    assert_failure(eq("gate", other, "--no-worse-than", base), "scored on different data")


def test_different_qrels_are_reported_before_other_differences(eq, stored: Stored, folder: Path) -> None:
    base, other = stored("base", GOOD_RANKS, truth="aa"), stored("other", GOOD_RANKS, truth="bb")
    path = folder / other / "result.json"
    content = json.loads(path.read_text())
    rewrite(path, json.dumps(content | {"settings": {**content["settings"], "like": "ranx"}}))
    assert_failure(eq("gate", other, "--no-worse-than", base), "scored on different data")


def test_different_metric_parameters_fail(eq, stored: Stored) -> None:
    base = stored("base", GOOD_RANKS, "MAP(norm=R)@10", evidence=False)
    other = stored("other", GOOD_RANKS, "MAP@10")
    assert_failure(eq("gate", other, "--no-worse-than", base), "the baseline cannot be compared")


def test_a_partial_run_fails(eq, stored: Stored) -> None:
    base, part = stored("base", GOOD_RANKS), stored("part", GOOD_RANKS, status="partial")
    assert_failure(eq("gate", part, "--require", "MRR>=0.1"), "the run of part is partial: stopped")
    assert_failure(eq("gate", base, "--no-worse-than", part), "the baseline cannot be used")


def test_an_undefined_score_fails(eq, folder: Path, stored: Stored) -> None:
    ranking = Ranking.from_runs({"q0": {}, "q1": {}}, {"q0": {"a": 1.0}, "q1": {"a": 1.0}})
    save_run(folder / "void", evaluate(ranking, "MRR", system="void"), manifest=Manifest("void").finish())
    assert_failure(eq("gate", "void", "--require", "MRR>=0"), "MRR has no value")
    assert_failure(eq("gate", "void", "--no-worse-than", "void"), "MRR cannot be compared")


def test_a_unit_defined_in_one_run_only_fails(eq, folder: Path) -> None:
    run = {f"q{unit}": {"a": 1.0, "b": 0.5} for unit in range(9)}
    for name, empty in (("base", ()), ("hole", ("q3",))):
        qrels = {unit: {} if unit in empty else {"a": 1} for unit in run}
        result = evaluate(Ranking.from_runs(qrels, run), "MRR", system=name)
        save_run(folder / name, result, manifest=Manifest(name).finish())
    assert_failure(eq("gate", "hole", "--no-worse-than", "base"), "1 query has a value in one run only")


@pytest.mark.parametrize(
    "options", [["-m", "MRR"], ["-m", "MRR", "--margin", "0.01", "--test", "bounds"], ["-m", "MR"]]
)
def test_a_loss_on_too_few_units_for_the_test_fails(options: list[str], eq, stored: Stored) -> None:
    base, worse = stored("base", [1] * 4), stored("worse", [50, 49, 48, 47])
    assert_failure(eq("gate", worse, "--no-worse-than", base, *options), "4 values cannot give a p below 0.06")
    for run, other in ((base, worse), (base, base), (worse, worse)):
        assert eq("gate", run, "--no-worse-than", other, *options).exit_code == 0


def test_a_second_metric_does_not_hide_a_failure_of_the_first(eq, stored: Stored) -> None:
    base, worse = stored("base", [1] * 5), stored("worse", [50, 49, 48, 47, 46])
    assert_failure(eq("gate", worse, "--no-worse-than", base, "-m", "MRR"), "a significant loss (p = 0.031, 5 queries)")
    assert_failure(eq("gate", worse, "--no-worse-than", base, "-m", "MRR", "-m", "MR"), "cannot be tested")


def test_equal_losses_without_variance_fail_beyond_the_margin(eq, stored: Stored) -> None:
    base, worse = stored("base", [1] * 30), stored("worse", [4] * 30)
    arguments = ("gate", worse, "--no-worse-than", base, "-m", "MR", "--margin")
    assert_failure(eq(*arguments, "1"), "30 values without variation")
    assert eq(*arguments, "3").exit_code == 0


# ---- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--require", "nDGC@10>=0.5"], "E300"),
        (["--require", "MRR"], "E310"),
        (["--require", "MRR>0.5"], "E310"),
        (["--require", "MRR>=high"], "E310"),
        (["--require", "MRR<=0.5"], "E310"),
        (["--require", "MR>=5"], "E310"),
        (["--require", "MRR>=60"], "E310"),
        (["--require", "HR@{1,3}>=0.5"], "E310"),
        ([], "E310"),
        (["--margin", "0.1", "--require", "MRR>=0.5"], "E310"),
        (["--no-worse-than", "nowhere"], "E500"),
        (["--no-worse-than", "dense", "--margin", "-1"], "E310"),
        (["--no-worse-than", "dense", "--margin", "1.5"], "E310"),
        (["--no-worse-than", "dense", "--margin", "1.5", "-m", "Acc@1"], "E310"),
        (["--no-worse-than", "wide", "--margin", "1.5", "--require", "MRR>=0"], "E310"),
        (["--no-worse-than", "dense", "--margin", "0.1", "--test", "randomisation"], "E310"),
        (["--require", "MRR>=0.5", "--confidence-level", "95"], "E310"),
        (["--no-worse-than", "dense", "--n-permutations", "10", "--test", "bounds"], "E310"),
        (["--no-worse-than", "dense", "--confidence-level", "0.99999", "--test", "bounds"], "E310"),
        (["--no-worse-than", "dense", "-m", "MRR", "-m", "MR", "--n-permutations", "39", "--test", "bounds"], "E310"),
    ],
)
def test_invalid_options_are_errors(arguments: list[str], code: str, eq, stored: Stored) -> None:
    stored("dense", GOOD_RANKS)
    stored("wide", GOOD_RANKS, "MR", "MRR")
    result = eq("gate", "wide" if "wide" in arguments else "dense", *arguments)
    assert result.exit_code == 2, result.stdout
    assert f"error[{code}]" in result.stderr


def test_equals_signs_in_metric_parameters_are_not_comparisons(eq, stored: Stored) -> None:
    result = eq("gate", stored("dense", GOOD_RANKS), "--require", "MAP(norm=R)@10>=0.5")
    assert result.exit_code == 0, result.stderr
    assert "MAP(norm=R)@10 is 0.8" in result.stdout


def test_the_checks_are_written_as_junit(eq, folder: Path) -> None:
    from xml.etree import ElementTree

    assert eq("score", "good.trec", "bad.trec", "--qrels", "truth.qrels", "-m", "MRR", "-o", "results").exit_code == 0
    requirements = ("--require", "MRR>=0.5", "--junit", "gate.xml")
    for name, failures in (("good", "0"), ("bad", "1")):
        assert eq("gate", f"results/{name}", *requirements).exit_code == int(failures)
        suite = ElementTree.parse(folder / "gate.xml").getroot()[0]
        assert (suite.get("tests"), suite.get("failures")) == ("1", failures)
