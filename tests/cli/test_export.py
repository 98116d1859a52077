"""``eq export`` from the command line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from equipoise.io.run_files import read_run as read_trec
from equipoise.runs.run_folder import load_run, save_run
from equipoise.runs.unit_table import RetrievedItem, UnitContent


@pytest.fixture
def results(eq, folder: Path) -> Path:
    """Run directories of three systems, one with special characters in its name."""
    (folder / "R&D|50%.trec").write_text((folder / "middle.trec").read_text())
    runs = [f"{name}.trec" for name in ("good", "R&D|50%", "bad")]
    result = eq(
        "score",
        *runs,
        "--qrels",
        "truth.qrels",
        "--corpus-size",
        "5",
        "-m",
        "MRR",
        "-m",
        "MR",
        "-o",
        "results",
    )
    assert result.exit_code == 0, result.stderr
    return folder / "results"


def make_partial(run: Path) -> None:
    path = run / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "partial", "reason": "interrupted"}))


def test_a_folder_of_runs_is_exported_as_one_table(eq, results: Path) -> None:
    result = eq("export", "results", "--to", "latex")
    assert result.exit_code == 0, result.stderr
    assert r"R\&D\textbar{}50\% &" in result.stdout
    assert result.stdout.rstrip().endswith(r"\end{table}")
    assert result.stderr == ""


def test_run_directories_named_one_by_one_are_compared(eq, results: Path) -> None:
    result = eq("export", "results/bad", "results/good", "--to", "md", "--primary", "MR")
    rows = [line.split("|")[1].strip() for line in result.stdout.splitlines() if line.startswith("| ")]
    assert rows == ["system", ":--", "good", "bad", "*chance*"]
    assert "ordered by MR" in result.stdout


def test_one_run_has_no_tie_bands(eq, results: Path) -> None:
    result = eq("export", "results/good", "--to", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(row["system"], row["metric"], row["band"]) for row in rows] == [
        ("good", "MRR", ""),
        ("good", "MR", ""),
    ]


def test_json_equals_the_output_of_compare(eq, results: Path) -> None:
    compared = eq("compare", "results/good", "results/bad", "--json").stdout
    assert '"E310"' in eq("export", "results/good", "--to", "csv", "--json").stderr
    for option in (("--to", "json"), ("--json",)):
        assert eq("export", "results/good", "results/bad", *option).stdout == compared


def test_there_is_one_row_per_unit(eq, results: Path) -> None:
    result = eq("export", "results", "--to", "csv", "--units", "-m", "MRR")
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert rows[0] == ["system", "unit", "MRR"]
    assert len(rows) == 1 + 3 * 12
    assert ["good", "q11", "0.5"] in rows


def test_a_metric_that_was_not_stored_is_scored_from_the_evidence(eq, results: Path) -> None:
    for arguments in (("results/good",), ("results",)):
        result = eq("export", *arguments, "--to", "csv", "-m", "HR@{1,3}")
        rows = list(csv.DictReader(io.StringIO(result.stdout)))
        assert {row["metric"] for row in rows} == {"HR@1", "HR@3"}
        assert next(row["value"] for row in rows if row["system"] == "good") == str(11 / 12)


def test_a_test_and_a_correction_are_selected_by_name(eq, results: Path) -> None:
    arguments = ("--to", "latex", "--primary", "HR@1", "-m", "HR@1", "--test", "mcnemar", "--correction", "bh")
    printed = eq("export", "results", *arguments).stdout
    assert "McNemar's exact test, two-sided, seed 0; Benjamini-Hochberg correction for 3 pairs on HR@1" in printed


@pytest.mark.parametrize("format_name", ["latex", "md", "csv", "json", "card"])
def test_a_partial_run_is_reported_with_exit_status_3(eq, results: Path, format_name: str) -> None:
    make_partial(results / "bad")
    for arguments in (("results",), ("results/bad",)):
        result = eq("export", *arguments, "--to", format_name)
        assert result.exit_code == 3
        assert "caution: the run of bad is partial: interrupted" in result.stderr
        assert "partial" in result.stdout
        assert "caution" not in eq("export", *arguments, "--to", format_name, "-q").stderr


def test_a_file_has_the_output_and_standard_output_is_empty(eq, results: Path, folder: Path) -> None:
    result = eq("export", "results", "--to", "card", "-o", "card.yaml")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "wrote card.yaml\n")
    assert (folder / "card.yaml").read_text() == eq("export", "results", "--to", "card").stdout


def test_stored_retrieved_lists_are_exported_as_a_trec_run(eq, results: Path, folder: Path) -> None:
    run = load_run(results / "good")
    details = {"q00": UnitContent("?", retrieved=(RetrievedItem("d1", "text", 0.75), RetrievedItem("d2", "text", 0.5)))}
    save_run(results / "good", run.result, manifest=run.manifest, details=details)
    assert eq("export", "results/good", "--to", "trec", "-o", "again.trec").exit_code == 0
    assert read_trec(folder / "again.trec") == {"q00": {"d1": 0.75, "d2": 0.5}}
    assert "one by one" in eq("export", "results", "--to", "trec").stderr
    without_lists = eq("export", "results/bad", "--to", "trec")
    assert without_lists.exit_code == 2
    assert "does not contain the retrieved lists" in without_lists.stderr


def test_sources_are_listed_for_a_bibliography(eq, results: Path) -> None:
    printed = eq("export", "results", "--to", "bibtex").stdout
    assert printed.count("@inproceedings{voorhees1999,") == 1
    assert "@article{holm1979," in printed


@pytest.mark.parametrize(
    ("arguments", "code", "hint"),
    [
        (("--to", "latex"), "E310", "eq export results/"),
        (("results", "--to", "latx"), "E300", "did you mean latex?"),
        (("results", "--to", "md", "--units"), "E310", "--to csv --units"),
        (("nowhere", "--to", "md"), "E500", "check the path"),
        (("good.trec", "--to", "md"), "E500", "eq score good.trec --qrels"),
        (("results", "--to", "md", "-m", "MRR,nDCG@10"), "E300", "repeat -m"),
        (("results", "--to", "md", "-m", "nDCG@10,MRR"), "E310", "repeat -m"),
        (("results", "--to", "md", "-m", "MRRR"), "E300", "did you mean MRR or"),
        (("results", "--to", "md", "-o", "no/such/folder.md"), "E500", "mkdir -p no/such"),
        (("results",), "E310", "choose a format: latex, md"),
        (("results", "--to", "md", "-o", "table.csv"), "E310", "write -o table.md, or --to csv"),
        (("results", "--to", "trec", "-o", "page.html"), "E310", "write -o page.trec"),
    ],
)
def test_invalid_arguments_are_errors_with_hints(
    eq, results: Path, arguments: tuple[str, ...], code: str, hint: str
) -> None:
    result = eq("export", *arguments)
    assert result.exit_code == 2
    assert f"error[{code}]" in result.stderr
    assert hint in result.stderr


@pytest.mark.parametrize("format_name", ["latex", "md", "csv", "json", "card", "bibtex"])
def test_an_export_replaces_only_an_earlier_export(eq, results: Path, folder: Path, format_name: str) -> None:
    command = ("export", "results", "--to", format_name, "-o", "out.txt")
    assert [eq(*command).exit_code, eq(*command, "--primary", "MRR").exit_code] == [0, 0]
    (folder / "out.txt").write_text("query,positive\nq,p\n")
    assert "E500" in eq(*command).stderr
    assert (folder / "out.txt").read_text() == "query,positive\nq,p\n"


def test_runs_on_different_units_are_an_error_with_the_difference(eq, results: Path, folder: Path) -> None:
    (folder / "other.qrels").write_text("q0 0 d1 1\nx 0 d1 1\n")
    (folder / "other.trec").write_text("q0 Q0 d1 1 0.5 t\nx Q0 d1 1 0.5 t\n")
    eq("score", "other.trec", "--qrels", "other.qrels", "-m", "MRR", "-o", "results")
    result = eq("export", "results", "--to", "latex")
    assert result.exit_code == 2
    assert "error[E208]" in result.stderr
