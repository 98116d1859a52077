"""``eq gate``, run as continuous integration runs it."""

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
    """Write a run directory of known ranks; whatever is not said is as usual."""

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


GOOD = [1, 1, 2, 1, 1, 3, 1, 1, 2, 1, 1, 1, 1, 2, 1, 1, 1, 4, 1, 1]
WORSE = [rank + 2 for rank in GOOD]


def test_a_minimum_is_compared_with_the_point_estimate(eq, stored: Stored) -> None:
    run = stored("dense", GOOD)
    passed = eq("gate", run, "--require", "MRR>=0.80", "--require", "MR<=2")
    assert passed.exit_code == 0, passed.stdout
    assert "pass  MRR is 0.8" in passed.stdout
    assert "at least 0.80" in passed.stdout
    failed = eq("gate", run, "--require", "MRR>=0.9", "--require", "MR<=2")
    assert failed.exit_code == 1
    assert [line[:4] for line in failed.stdout.splitlines()] == ["FAIL", "pass"]
    assert "not at least 0.9" in failed.stdout


def test_confident_compares_the_end_of_the_interval(eq, stored: Stored) -> None:
    run = stored("dense", GOOD)
    assert eq("gate", run, "--require", "MRR>=0.80").exit_code == 0
    done = eq("gate", run, "--require", "MRR>=0.80", "--confident")
    assert done.exit_code == 1
    assert "the lower end of its 95 % interval" in done.stdout
    assert "the upper end" in eq("gate", run, "--require", "MR<=9", "--confident").stdout


def test_another_level_makes_another_interval(eq, stored: Stored) -> None:
    run = stored("dense", GOOD)
    ends = [
        json.loads(
            eq("gate", run, "--require", "HR@1>=0", "--confident", "--confidence-level", level, "--json").stdout
        )["verdicts"][0]
        for level in ("0.95", "0.8")
    ]
    assert ends[0]["bound"] < ends[1]["bound"]
    bare = stored("bare", GOOD, evidence=False)
    done = eq("gate", bare, "--require", "HR@1>=0", "--confident", "--confidence-level", "0.8")
    assert done.exit_code == 1
    assert "only one at 95 % is stored" in done.stdout


def test_a_metric_that_was_not_stored_is_scored_from_the_evidence(eq, stored: Stored) -> None:
    done = eq("gate", stored("dense", GOOD, "MRR"), "--require", "Acc@3 >= 90%")
    assert done.exit_code == 0, done.stderr
    assert "HR@3 is 0.9" in done.stdout


def test_a_figure_is_shown_with_enough_digits_to_see_the_side_it_lies_on(eq, stored: Stored) -> None:
    run = stored("dense", [1] * 1999 + [2])
    done = eq("gate", run, "--require", "MRR>=0.9998")
    assert done.exit_code == 1
    assert "MRR is 0.99975, not at least 0.9998" in done.stdout


# ---- baselines ---------------------------------------------------------------------------------


def test_only_a_significant_loss_closes_the_gate(eq, stored: Stored) -> None:
    base = stored("base", GOOD)
    slightly = stored("slightly", [2, *GOOD[1:]])
    clearly = stored("clearly", WORSE)
    done = eq("gate", slightly, "--no-worse-than", base)
    assert done.exit_code == 0, done.stdout
    assert "; no significant loss" in done.stdout
    done = eq("gate", clearly, "--no-worse-than", base)
    assert done.exit_code == 1
    assert "; a significant loss (p <0.001, 20 queries)" in done.stdout
    assert eq("gate", base, "--no-worse-than", clearly).exit_code == 0


def test_a_loss_within_the_margin_is_borne(eq, stored: Stored) -> None:
    base, worse = stored("base", [2] * 120), stored("worse", [3] * 112 + [4, 2] * 4)
    assert eq("gate", worse, "--no-worse-than", base).exit_code == 1
    assert eq("gate", worse, "--no-worse-than", base, "--margin", "0.1").exit_code == 1
    done = eq("gate", worse, "--no-worse-than", base, "--margin", "0.2")
    assert done.exit_code == 0, done.stdout
    assert "no significant loss beyond the margin of 0.2" in done.stdout


def test_the_direction_of_the_metric_decides_what_a_loss_is(eq, stored: Stored) -> None:
    base, worse = stored("base", GOOD), stored("worse", WORSE)
    done = eq("gate", worse, "--no-worse-than", base, "-m", "MR")
    assert done.exit_code == 1
    assert "MR is 3.4000, up 2.0000 from 1.4000 (lower is better)" in done.stdout
    assert eq("gate", base, "--no-worse-than", worse, "-m", "MR").exit_code == 0


def test_p_is_that_of_a_one_sided_paired_randomisation_test(eq, stored: Stored) -> None:
    ours, theirs = [1, 3, 2, 2, 5, 1, 4, 2], [1, 2, 2, 1, 3, 2, 2, 1]
    run, base = stored("run", ours), stored("base", theirs)
    done = json.loads(eq("gate", run, "--no-worse-than", base, "-m", "MRR", "--json").stdout)
    gains = 1 / np.array(ours) - 1 / np.array(theirs)
    oracle = permutation_test((gains,), np.mean, permutation_type="samples", alternative="less", n_resamples=np.inf)
    assert done["verdicts"][0]["p"] == pytest.approx(oracle.pvalue)


def test_units_are_paired_by_id_and_not_by_place(eq, stored: Stored) -> None:
    base = stored("base", GOOD)
    ids = [f"q{unit}" for unit in range(len(GOOD))]
    turned = stored("turned", GOOD[::-1], units=ids[::-1])
    done = eq("gate", turned, "--no-worse-than", base)
    assert done.exit_code == 0
    assert "unchanged" in done.stdout


def test_several_metrics_are_one_family(eq, stored: Stored) -> None:
    base, worse = stored("base", GOOD), stored("worse", WORSE)
    done = json.loads(eq("gate", worse, "--no-worse-than", base, "-m", "MRR", "-m", "HR@1", "--json").stdout)
    alone = json.loads(eq("gate", worse, "--no-worse-than", base, "-m", "MRR", "--json").stdout)
    assert done["verdicts"][0]["p"] == pytest.approx(2 * alone["verdicts"][0]["p"])
    assert "adjusted for 2 metrics" in done["verdicts"][0]["message"]
    assert "adjusted" not in alone["verdicts"][0]["message"]
    each = eq("gate", worse, "--no-worse-than", base, "-m", "MRR", "-m", "HR@1", "--correction", "none", "--json")
    assert json.loads(each.stdout)["verdicts"][0] == alone["verdicts"][0]


def test_the_help_says_what_is_tested_and_what_is_assumed(eq) -> None:
    said = " ".join(eq("gate", "--help").stdout.split())
    for term in ("one-sided", "Holm", "Student's t", "Gaffke", "bootstrap interval"):
        assert term in said


def test_a_figure_that_is_no_mean_over_units_is_compared_by_its_interval(eq, folder: Path) -> None:
    rng = np.random.default_rng(0)
    true = [f"c{each}" for each in rng.integers(0, 3, 120)]
    for name, share in (("base", 0.9), ("worse", 0.4), ("alike", 0.9)):
        said = [each if rng.random() < share else "c0" for each in true]
        result = evaluate(Labels.of(true, said), "F1(average=macro)", system=name, config=StatsConfig(n_resamples=200))
        save_run(folder / name, result, manifest=Manifest(name).finish())
    assert eq("gate", "worse", "--no-worse-than", "base").exit_code == 1
    done = eq("gate", "alike", "--no-worse-than", "base", "--margin", "0.1")
    assert done.exit_code == 0, done.stdout


@pytest.mark.slow
def test_a_run_passes_against_itself_whatever_kind_the_figure_is(eq, stored: Stored) -> None:
    ranks = [3] * 150 + [1, 9] * 25
    same, better = (
        stored("same", ranks, "MedianRank"),
        stored("better", [2] * 150 + [1, 9] * 25, "MedianRank"),
    )
    done = eq("gate", same, "--no-worse-than", same)
    assert done.exit_code == 0, done.stdout
    assert "unchanged; no significant loss (every resample gives the same difference" in done.stdout
    assert eq("gate", better, "--no-worse-than", same).exit_code == 0
    assert eq("gate", same, "--no-worse-than", better).exit_code == 1


# ---- closed doors ------------------------------------------------------------------------------


def closed(done: object, sentence: str) -> None:
    assert done.exit_code == 1, done.stdout + done.stderr  # type: ignore[attr-defined]
    assert done.stdout.startswith("FAIL")  # type: ignore[attr-defined]
    assert sentence in done.stdout  # type: ignore[attr-defined]


def test_missing_units_close_the_gate(eq, stored: Stored) -> None:
    base, short = stored("base", GOOD), stored("short", GOOD[:-2])
    closed(eq("gate", short, "--no-worse-than", base), "were not measured on the same units")


def test_units_that_a_run_never_answered_close_the_gate_unless_they_are_allowed(eq, folder: Path) -> None:
    qrels = {f"q{unit}": {"a": 1} for unit in range(30)}
    for name, answered in (("base", 30), ("hole", 29)):
        run = {f"q{unit}": {"a": 1.0, "b": 0.5} for unit in range(answered)}
        ranking = Ranking.from_runs(qrels, run, corpus_size=9)
        save_run(folder / name, evaluate(ranking, "MRR", system=name), manifest=Manifest(name).finish())
    closed(eq("gate", "hole", "--require", "MRR>=0.1"), "the run lacks units of the ground truth")
    closed(eq("gate", "base", "--no-worse-than", "hole"), "the baseline lacks units of the ground truth")
    assert eq("gate", "hole", "--require", "MRR>=0.1", "--allow-missing").exit_code == 0


def test_a_figure_that_its_evidence_does_not_give_closes_the_gate(eq, stored: Stored, folder: Path) -> None:
    path = folder / stored("base", WORSE) / "result.json"
    content = json.loads(path.read_text())
    content["estimates"][0]["value"] = 0.99
    rewrite(path, json.dumps(content))
    closed(eq("gate", "base", "--require", "MRR>=0.9"), "the evidence of the run gives")


@pytest.mark.parametrize("mode", ["matcher", "budget", "folds", "padding"])
def test_a_mode_that_only_one_run_knows_closes_the_gate(eq, stored: Stored, folder: Path, mode: str) -> None:
    base, other = stored("base", GOOD), stored("other", GOOD)
    path = folder / other / "result.json"
    content = json.loads(path.read_text())
    rewrite(path, json.dumps(content | {"settings": {**content["settings"], mode: 3}}))
    closed(eq("gate", other, "--no-worse-than", base), "3 here, none in the baseline")


def test_other_ties_close_the_gate(eq, stored: Stored) -> None:
    base, other = stored("base", GOOD), stored("other", GOOD, ties="by_id")
    closed(eq("gate", other, "--no-worse-than", base), "ties by_id here, expected in the baseline")


def test_another_preset_closes_the_gate(eq, stored: Stored, folder: Path) -> None:
    base, other = stored("base", GOOD), stored("other", GOOD)
    path = folder / other / "result.json"
    content = json.loads(path.read_text())
    rewrite(path, json.dumps(content | {"settings": {**content["settings"], "like": "ranx"}}))
    closed(eq("gate", other, "--no-worse-than", base), "the conventions of ranx here, equipoise in the baseline")


def test_another_truth_closes_the_gate(eq, stored: Stored) -> None:
    base, other = stored("base", GOOD, truth="aa"), stored("other", GOOD, truth="bb")
    closed(eq("gate", other, "--no-worse-than", base), "scored on different data")


def test_other_parameters_of_a_metric_close_the_gate(eq, stored: Stored) -> None:
    base = stored("base", GOOD, "MAP(norm=R)@10", evidence=False)
    other = stored("other", GOOD, "MAP@10")
    closed(eq("gate", other, "--no-worse-than", base), "the baseline cannot be compared")


def test_a_partial_run_closes_the_gate(eq, stored: Stored) -> None:
    base, part = stored("base", GOOD), stored("part", GOOD, status="partial")
    closed(eq("gate", part, "--require", "MRR>=0.1"), "the run of part is partial: stopped")
    closed(eq("gate", base, "--no-worse-than", part), "the baseline cannot be used")


def test_a_figure_without_a_value_closes_the_gate(eq, folder: Path, stored: Stored) -> None:
    ranking = Ranking.from_runs({"q0": {}, "q1": {}}, {"q0": {"a": 1.0}, "q1": {"a": 1.0}})
    save_run(folder / "void", evaluate(ranking, "MRR", system="void"), manifest=Manifest("void").finish())
    closed(eq("gate", "void", "--require", "MRR>=0"), "MRR has no value")
    closed(eq("gate", "void", "--no-worse-than", "void"), "MRR cannot be compared")


def test_a_unit_with_a_value_in_one_run_only_closes_the_gate(eq, folder: Path) -> None:
    run = {f"q{unit}": {"a": 1.0, "b": 0.5} for unit in range(9)}
    for name, empty in (("base", ()), ("hole", ("q3",))):
        qrels = {unit: {} if unit in empty else {"a": 1} for unit in run}
        result = evaluate(Ranking.from_runs(qrels, run), "MRR", system=name)
        save_run(folder / name, result, manifest=Manifest(name).finish())
    closed(eq("gate", "hole", "--no-worse-than", "base"), "1 query has a value in one run only")


@pytest.mark.parametrize(
    "options", [["-m", "MRR"], ["-m", "MRR", "--margin", "0.01", "--test", "bounds"], ["-m", "MR"]]
)
def test_a_loss_on_too_few_units_to_judge_closes_the_gate(options: list[str], eq, stored: Stored) -> None:
    base, worse = stored("base", [1] * 4), stored("worse", [50, 49, 48, 47])
    closed(eq("gate", worse, "--no-worse-than", base, *options), "4 units cannot give a p below 0.06")
    for run, other in ((base, worse), (base, base), (worse, worse)):
        assert eq("gate", run, "--no-worse-than", other, *options).exit_code == 0


def test_a_second_metric_does_not_open_a_gate_that_the_first_closes(eq, stored: Stored) -> None:
    base, worse = stored("base", [1] * 5), stored("worse", [50, 49, 48, 47, 46])
    closed(eq("gate", worse, "--no-worse-than", base, "-m", "MRR"), "a significant loss (p 0.031, 5 queries)")
    closed(eq("gate", worse, "--no-worse-than", base, "-m", "MRR", "-m", "MR"), "cannot be tested")


def test_equal_losses_beyond_the_margin_close_the_gate_where_nothing_tells_their_spread(eq, stored: Stored) -> None:
    base, worse = stored("base", [1] * 30), stored("worse", [4] * 30)
    words = ("gate", worse, "--no-worse-than", base, "-m", "MR", "--margin")
    closed(eq(*words, "1"), "30 units without variation")
    assert eq(*words, "3").exit_code == 0


# ---- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
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
        (["--require", "MRR>=0.5", "--confidence-level", "95"], "E310"),
        (["--no-worse-than", "dense", "--n-permutations", "10"], "E310"),
        (["--no-worse-than", "dense", "--confidence-level", "0.99999"], "E310"),
        (["--no-worse-than", "dense", "-m", "MRR", "-m", "MR", "--n-permutations", "39"], "E310"),
    ],
)
def test_what_cannot_be_asked_is_refused(words: list[str], code: str, eq, stored: Stored) -> None:
    stored("dense", GOOD)
    done = eq("gate", "dense", *words)
    assert done.exit_code == 2, done.stdout
    assert f"error[{code}]" in done.stderr


def test_parameters_of_a_metric_are_no_comparison(eq, stored: Stored) -> None:
    done = eq("gate", stored("dense", GOOD), "--require", "MAP(norm=R)@10>=0.5")
    assert done.exit_code == 0, done.stderr
    assert "MAP(norm=R)@10 is 0.8" in done.stdout


def test_the_checks_are_written_as_junit(eq, folder: Path) -> None:
    from xml.etree import ElementTree

    assert eq("score", "good.trec", "bad.trec", "--qrels", "truth.qrels", "-m", "MRR", "-o", "results").exit_code == 0
    requirements = ("--require", "MRR>=0.5", "--junit", "gate.xml")
    for name, failures in (("good", "0"), ("bad", "1")):
        assert eq("gate", f"results/{name}", *requirements).exit_code == int(failures)
        suite = ElementTree.parse(folder / "gate.xml").getroot()[0]
        assert (suite.get("tests"), suite.get("failures")) == ("1", failures)
