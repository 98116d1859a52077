"""``eq compare`` from the command line."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

COMPARE = ("compare", "bad.trec", "good.trec", "middle.trec", "--qrels", "truth.qrels", "--corpus-size", "5")


@pytest.fixture
def stored(eq, folder: Path) -> Path:
    """Run directories of the three systems."""
    runs = [f"{name}.trec" for name in ("good", "middle", "bad")]
    assert eq("score", *runs, "--qrels", "truth.qrels", "-m", "MRR", "-o", "results").exit_code == 0
    return folder / "results"


def test_the_report_has_verdict_table_chance_level_and_findings(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = eq(*COMPARE, "--primary", "HR@1")
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "Inconclusive: good has the highest HR@1 on 12 queries (0.92), but middle is not\n"
        "significantly worse.\n"
        "\n"
        "rank  system  HR@1  95 % interval  vs. best\n"
        "───────────────────────────────────────────\n"
        "1-2   good    0.92   [0.65, 0.99]\n"
    )
    rows = {line.split()[1]: line.split() for line in result.stdout.splitlines()[5:8]}
    assert [rows[name][-1] for name in ("middle", "bad")] == ["tied", "worse"]
    assert "A random baseline scores 0.20.\n" in result.stdout
    assert "\n! EQ302  bad: HR@1 0.00" in result.stdout
    assert "unit" not in result.stdout
    assert len(result.stdout.splitlines()) <= 17


def test_verbose_adds_the_full_table_and_the_methods(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = eq(*COMPARE, "--primary", "HR@1", "-v").stdout
    table_lines = printed.split("HR@1, best first\n\n")[1].splitlines()
    assert table_lines[0] == "band  system  HR@1  95 % interval  diff. from best  adj. p  win/tie/loss  rank"
    rows = {line.split()[1]: line for line in table_lines[2:5]}
    assert list(rows) == ["good", "middle", "bad"]
    assert "0.92   [0.65, 0.99]             best" in rows["good"]
    # All 4 differences have the same sign: p = 2 / 2^4, and Holm does not change the largest p.
    assert "0.12         0/8/4" in rows["middle"]
    assert rows["middle"].startswith("a ")
    assert rows["bad"].startswith("b ")
    for text in (
        "Paired randomisation test, two-sided, 10,000 permutations, seed 0; Holm correction for 3 pairs on HR@1",
        "(not shown: diff. interval; widen the terminal or use --json)",
        "Intervals of differences (Gaffke) are not adjusted for the 3 pairs,",
        "so an interval can exclude 0 although the adjusted p is above 0.05.",
        "! issue EQ302  bad: HR@1 0.00",
    ):
        assert text in " ".join(printed.split("\n")), text


def test_quiet_prints_the_decision_and_the_table_only(eq) -> None:
    decision, blank, *table = eq(*COMPARE, "--primary", "HR@1", "-q").stdout.splitlines()
    assert eq(*COMPARE, "--primary", "HR@1").stdout.startswith(f"{decision}\n")
    assert (blank, len(table)) == ("", 5)


def test_verbose_shows_every_pair(eq) -> None:
    printed = eq(*COMPARE, "--primary", "HR@1", "-v").stdout
    assert "Every pair" in printed
    assert printed.split("Every pair")[1].count("HR@1  ") == 3


def test_other_metrics_follow_in_the_same_order(eq) -> None:
    _decision, _, header, _, *rows = eq(*COMPARE, "--primary", "HR@1", "-m", "MRR", "-q").stdout.splitlines()
    assert header.split()[-1] == "MRR"
    assert [row.split()[1] for row in rows] == ["good", "middle", "bad"]
    details = (
        eq(*COMPARE, "--primary", "HR@1", "-m", "MRR", "-v").stdout.split("Other metrics\n\n")[1].splitlines()[2:5]
    )
    assert details[0].split()[:2] == ["MRR", "good"]
    assert [line.split()[0] for line in details[1:]] == ["middle", "bad"]


def test_json_contains_verdict_contrasts_and_findings(eq) -> None:
    result = eq(*COMPARE, "--primary", "HR@1", "--json")
    data = json.loads(result.stdout, parse_constant=pytest.fail)
    assert data["order"] == ["good", "middle", "bad"]
    assert len(data["contrasts"]) == 3
    assert data["verdict"].startswith("Inconclusive: good has the highest HR@1 on 12 queries")
    assert "EQ302" in [finding["code"] for finding in data["findings"]]
    assert data["cautions"] == []


def test_run_directories_are_compared_without_qrels(eq, stored: Path) -> None:
    result = eq("compare", "results/good", "results/bad", "--primary", "MRR", "--json")
    assert json.loads(result.stdout)["leader"] == "good"


def test_stored_runs_are_named_by_system_and_not_by_folder(eq, stored: Path) -> None:
    (stored / "good").rename(stored / "7")
    content = json.loads(eq("compare", "results/7", "renamed=results/middle", "--json").stdout)
    assert content["systems"] == ["good", "renamed"]


def test_two_runs_of_one_system_are_named_by_their_folders(eq, stored: Path) -> None:
    shutil.copytree(stored / "good", stored / "older")
    content = json.loads(eq("compare", "results/good", "results/older", "results/bad", "--json").stdout)
    assert content["systems"] == ["good", "older", "bad"]


def test_stored_runs_and_files_give_the_same_scores(eq, stored: Path) -> None:
    from_files = eq("compare", "good.trec", "bad.trec", "--qrels", "truth.qrels", "--primary", "MRR", "-q")
    assert eq("compare", "results/good", "results/bad", "--primary", "MRR", "-q").stdout == from_files.stdout


def test_a_metric_that_was_not_stored_is_scored_from_the_evidence(eq, stored: Path) -> None:
    result = eq("compare", "results/good", "results/bad", "--primary", "HR@3", "--json")
    assert json.loads(result.stdout)["primary"] == "HR@3"


def test_a_partial_run_is_reported_with_exit_status_3(eq, stored: Path) -> None:
    path = stored / "bad" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"status": "partial", "reason": "interrupted"}))
    result = eq("compare", "results/good", "results/bad", "--primary", "MRR")
    assert result.exit_code == 3
    assert "caution: the run of bad is partial: interrupted" in result.stderr
    named = eq("compare", f"old={stored / 'bad'}", str(stored / "good"))
    assert "caution: the run of old is partial: interrupted" in named.stderr
    verbose = eq("compare", "results/good", "results/bad", "--primary", "MRR", "-v")
    assert "! issue EQ206  bad: the run is partial: interrupted" in verbose.stdout
    for arguments in ((), ("-q",), ("--primary", "HR@3", "-q")):  # the last one is scored again
        printed = eq("compare", "results/good", "results/bad", *arguments).stdout.splitlines()
        assert any(re.match(r"[12-]+ +bad\* ", line) for line in printed), printed
        assert "* bad: the run is partial: interrupted" in printed


def test_tests_and_corrections_are_selected_by_name(eq) -> None:
    printed = eq(*COMPARE, "--primary", "HR@1", "--test", "mcnemar", "--correction", "bh", "-v").stdout
    assert "McNemar's exact test, two-sided, seed 0; Benjamini-Hochberg correction for 3 pairs" in printed
    assert "  p  " in eq(*COMPARE, "--primary", "HR@1", "--correction", "none", "-v").stdout


def test_runs_are_compared_by_the_test_and_correction_that_they_record(eq) -> None:
    files = ("good.trec", "middle.trec", "bad.trec", "--qrels", "truth.qrels", "-m", "HR@1")
    eq("score", *files, "--test", "mcnemar", "--correction", "bh", "-o", "results")
    runs = ("results/good", "results/middle", "results/bad", "-v")
    printed = eq("compare", *runs).stdout
    assert "McNemar's exact test, two-sided, seed 0; Benjamini-Hochberg correction for 3 pairs" in printed
    assert "Paired t test, two-sided, seed 0; Benjamini-Hochberg" in eq("compare", *runs, "--test", "t").stdout


def test_one_system_is_not_a_comparison(eq) -> None:
    result = eq("compare", "good.trec", "--qrels", "truth.qrels")
    assert result.exit_code == 2
    assert "needs at least two systems" in result.stderr


def test_a_folder_without_runs_is_not_a_system(eq, assert_error, folder: Path) -> None:
    (folder / "empty").mkdir()
    assert_error(eq("compare", "empty"), "E500", "eq score -o FOLDER writes one")


def test_runs_on_different_units_are_an_error_with_the_difference(eq, folder: Path) -> None:
    for name, unit in (("a", "q1"), ("b", "q2")):
        (folder / f"{name}.qrels").write_text(f"q0 0 d 1\n{unit} 0 d 1\n")
        (folder / f"{name}.trec").write_text(f"q0 Q0 d 1 0.5 t\n{unit} Q0 d 1 0.5 t\n")
        eq("score", f"{name}.trec", "--qrels", f"{name}.qrels", "-m", "MRR", "-o", "results")
    result = eq("compare", "results/a", "results/b")
    assert result.exit_code == 2
    assert "error[E208]" in result.stderr
    assert "only in a: q1" in result.stderr
    assert "only in b: q2" in result.stderr


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 200])
def test_no_table_is_wider_than_the_terminal(eq, monkeypatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    printed = eq(*COMPARE, "--primary", "nDCG@10", "-m", "MRR", "-q").stdout
    assert max(map(len, printed.splitlines())) <= width


def test_a_pipe_gets_every_column_and_one_line_per_sentence(eq) -> None:
    printed = eq(*COMPARE, "--primary", "HR@1", "-v").stdout
    assert "\x1b" not in printed
    assert "win/tie/loss  rank" in printed
    methods = [line for line in printed.splitlines() if line.startswith("Systems that share")]
    assert any(". Intervals of differences (" in line for line in methods)


def test_other_metrics_state_the_reference_system_and_the_family_of_tests(eq) -> None:
    printed = eq(*COMPARE, "--primary", "HR@1", "-m", "MRR", "-m", "HR@3", "-v").stdout
    assert printed.count("diff. from best") == 2
    assert (
        "Differences are from good, the best system on HR@1. Each metric is a separate family of tests: "
        "Holm correction for 3 pairs on each metric."
    ) in printed


def test_without_a_corpus_size_the_chance_level_is_a_bound(eq) -> None:
    arguments = COMPARE[: COMPARE.index("--corpus-size")]
    truncated = ("compare", "cut.trec", *arguments[2:])
    lines = Path("bad.trec").read_text().splitlines(keepends=True)
    Path("cut.trec").write_text("".join(line for line in lines if " 5 0.2" not in line))
    assert re.search(r"A random baseline scores at most 0\.\d+; --corpus-size", eq(*truncated).stdout)
    printed = eq(*truncated, "--primary", "HR@1", "-m", "MRR", "-v").stdout
    assert re.search(r"Chance level of HR@1: <= 0\.\d+\. With <= or >= it is only a bound", printed)
    assert printed.count("it is only a bound") == 1
    assert re.search(r"^ +cut +.* <= 0\.\d+$", printed, re.MULTILINE)
    assert "only a bound" not in eq(*truncated, "--primary", "HR@1", "--corpus-size", "5").stdout


def test_the_effect_of_ties_is_reported_on_the_primary_metric(eq, folder: Path) -> None:
    tied = (folder / "middle.trec").read_text().replace(" 0.500 ", " 1.000 ")
    (folder / "tied.trec").write_text(tied)
    runs = ("tied.trec", "good.trec", "--qrels", "truth.qrels")
    printed = eq("compare", *runs, "-m", "HR@3", "--primary", "HR@1", "-v").stdout
    assert re.search(r"EQ301 .*scores, HR@1 is between 0\.\d+ and 0\.\d+$", printed, re.MULTILINE)
    stored = runs[:2]
    assert eq("score", *stored, *runs[2:], "-m", "HR@{3,1}", "-o", "results").exit_code == 0
    printed = eq("compare", "results/tied", "results/good", "--primary", "HR@1", "-v").stdout
    assert "scores, HR@1 is between" in printed
    assert "scores HR@3" not in printed
    assert "EQ301" not in eq("compare", *runs, "--primary", "HR@5").stdout, "no order of tied items changes HR@5"
    assert eq("score", *stored, *runs[2:], "-m", "HR@{1,3}", "-o", "again").exit_code == 0
    assert "EQ301" not in eq("compare", "again/tied", "again/good", "--primary", "HR@3").stdout


def test_estimates_have_the_same_shape_in_score_and_compare(eq) -> None:
    size = ("--corpus-size", "5", "-m", "MRR", "--json")
    scored = json.loads(eq("score", "good.trec", "--qrels", "truth.qrels", *size).stdout)
    compared = json.loads(eq(*COMPARE, "-m", "MRR", "--json").stdout)
    assert compared["estimates"]["good"]["MRR"] == scored["results"][0]["estimates"][0]


def test_n_permutations_is_at_least_one(eq) -> None:
    assert json.loads(eq(*COMPARE, "--n-permutations", "99", "--json").stdout)["n_permutations"] == 99
    assert "0 is not in the range" in eq(*COMPARE, "--n-permutations", "0").stderr


def test_a_folder_that_is_no_run_directory_is_an_error(eq, folder: Path) -> None:
    (folder / "empty").mkdir()
    result = eq("compare", "empty", "good.trec", "--qrels", "truth.qrels")
    assert result.exit_code == 2
    assert "empty is not a run directory" in result.stderr
    assert "hint: eq score -o FOLDER writes one" in result.stderr


def test_a_folder_with_runs_on_several_data_sets_names_the_folder_of_one(eq, assert_error, stored: Path) -> None:
    shutil.copytree(stored, stored.parent / "suite" / "first")
    shutil.copytree(stored, stored.parent / "suite" / "second")
    assert_error(eq("compare", "suite"), "E310", "suite/first")


def test_a_folder_of_runs_is_all_its_runs(eq, stored: Path) -> None:
    from_folder = eq("compare", "results", "--primary", "MRR", "-q").stdout
    assert from_folder == eq("compare", *sorted(map(str, stored.iterdir())), "--primary", "MRR", "-q").stdout


def test_metrics_of_ranks_and_of_classes_are_not_mixed(eq, folder: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("one", "two"):
        np.save(folder / f"{name}.npy", rng.normal(size=(20, 3)))
    np.save(folder / "y.npy", rng.integers(0, 3, 20))
    arguments = ("compare", "one.npy", "two.npy", "--targets", "y.npy", "--primary", "Acc@1", "-m", "F1")
    result = eq(*arguments)
    assert result.exit_code == 2
    assert "F1 measures predicted classes and Acc@1 measures ranks" in result.stderr
    assert "one with -m F1, one with -m Acc@1" in result.stderr
    assert eq(*arguments[:-1], "MRR").exit_code == 0
    assert eq(*arguments[:-3], "Acc", "-m", "F1").exit_code == 0


def test_tables_of_scores_per_unit_are_compared_without_judgements(eq, folder: Path) -> None:
    for name, scores in (("before", [0.1, 0.2, 0.4, 0.3, 0.5, 0.2]), ("after", [0.6, 0.7, 0.8, 0.7, 0.9, 0.8])):
        rows = "".join(f"question {unit},{score}\n" for unit, score in enumerate(scores))
        (folder / f"{name}.csv").write_text(f"user_input,faithfulness\n{rows}")
    result = json.loads(eq("compare", "before.csv", "after.csv", "--json").stdout)
    assert (result["leader"], result["primary"], result["n"]) == ("after", "faithfulness", 6)
    scored = json.loads(eq("score", "before.csv", "--json").stdout)["results"][0]
    assert scored["estimates"][0]["value"] == pytest.approx(1.7 / 6)


def test_aliases_of_tests_are_accepted(eq) -> None:
    by_alias = eq(*COMPARE, "--test", "ttest", "--json")
    assert by_alias.exit_code == 0, by_alias.stderr
    assert by_alias.stdout == eq(*COMPARE, "--test", "t", "--json").stdout


def test_a_sample_that_is_too_small_for_the_test_is_stated(eq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    queries = [f"q{number}" for number in range(5)]
    Path("truth.qrels").write_text("".join(f"{query} 0 a 1\n" for query in queries))
    for name, items in (("good", "abcd"), ("bad", "bcda")):
        lines = [
            f"{query} Q0 {item} {rank} {9 - rank} x\n" for query in queries for rank, item in enumerate(items, start=1)
        ]
        Path(f"{name}.trec").write_text("".join(lines))
    result = eq("compare", "good.trec", "bad.trec", "--qrels", "truth.qrels", "-m", "MRR", "--corpus-size", "50")
    assert "too few for the test of good against bad: it cannot give a p value below 0.06" in " ".join(
        result.stdout.split()
    )
