"""``eq leaderboard`` from the command line."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

TABLE = "model,x,y,z,Average\na,71.5,60.0,50.5,60.7\nb,70.25,61.0,49.0,60.1\nc,30.0,20.0,,25.0\n"


@pytest.fixture
def table(folder: Path) -> str:
    (folder / "table.csv").write_text(TABLE)
    return "table.csv"


def test_the_output_starts_with_the_verdict_and_is_short(eq, table: str) -> None:
    result = eq("leaderboard", table)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Inconclusive: ")
    assert "could rank first on 2 of 3 data sets" in lines[0]
    assert len(lines) <= 12
    assert "Missing scores: 1 of 9 cells (c)." in result.stdout
    assert "EQ420" in eq("leaderboard", table, "-v").stdout


def test_verbose_shows_adjacent_ranks_data_sets_and_findings(eq, table: str) -> None:
    result = eq("leaderboard", table, "-v", "--missing", "models")
    assert result.exit_code == 0, result.stderr
    for text in ("Adjacent ranks", "Order without one data set", "EQ424"):
        assert text in result.stdout


def test_json_and_exports_go_to_standard_output(eq, table: str) -> None:
    data = json.loads(eq("leaderboard", table, "--json").stdout)
    assert [row["model"] for row in data["leaderboard"]] == ["a", "b", "c"]
    assert data == json.loads(eq("leaderboard", table, "--to", "json").stdout)
    assert "| rank | model |" in eq("leaderboard", table, "--to", "md").stdout
    assert r"\begin{tabular}" in eq("leaderboard", table, "--to", "latex").stdout
    rows = list(csv.DictReader(io.StringIO(eq("leaderboard", table, "--to", "csv").stdout)))
    assert [float(row["mean"]) for row in rows] == [row["mean"] for row in data["leaderboard"]]
    assert [int(row["rank_high"]) for row in rows] == [row["rank_high"] for row in data["leaderboard"]]


def test_the_number_of_data_sets_that_would_decide_is_shown(eq, folder: Path) -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(60, 5, 12)
    rows = {"a": scores + 1, "b": scores + rng.normal(0, 3, 12), "c": scores - 20 + rng.normal(0, 3, 12)}
    lines = [",".join([name, *(f"{score:.1f}" for score in row)]) for name, row in rows.items()]
    header = ",".join(["model", *(f"d{column}" for column in range(12))])
    (folder / "scores.csv").write_text("\n".join([header, *lines]))
    output = eq("leaderboard", "scores.csv").stdout
    assert re.search(r"About \d\d+ data sets would be needed to distinguish a from b \(80 % power\)", output)
    statuses = [line.split("]")[1].split()[0] for line in output.splitlines() if line.startswith(("1-2", "3"))]
    assert statuses[1:] == ["tied", "worse"]


def test_equal_models_have_no_order_and_error_rates_point_to_lower(eq, folder: Path) -> None:
    (folder / "equal.csv").write_text("model,A,B,C\nx,0.9,0.8,0.7\ny,0.9,0.8,0.7\n")
    assert "stays first" not in eq("leaderboard", "equal.csv").stdout
    (folder / "errors.csv").write_text("model,WER1,WER2\ngood,0.1,0.12\nbad,0.5,0.42\n")
    assert "--lower WER1" in eq("leaderboard", "errors.csv").stdout


def test_a_folder_gets_results_and_a_page(eq, folder: Path, table: str) -> None:
    result = eq("leaderboard", table, "-o", "out")
    assert result.exit_code == 0, result.stderr
    assert {path.name for path in (folder / "out").iterdir()} == {"results.json", "report.html"}
    assert json.loads((folder / "out" / "results.json").read_text())["resample"] == "datasets"


def test_eq_report_takes_the_folder_of_a_leaderboard(eq, folder: Path, table: str) -> None:
    assert eq("leaderboard", table, "-o", "out").exit_code == 0
    assert eq("report", "out", "-o", "page.html").exit_code == 0
    assert (folder / "page.html").read_text() == (folder / "out" / "report.html").read_text()
    assert eq("report", "out", "-o", "page.html", "--title", "Models").exit_code == 0
    assert "<title>Models" in (folder / "page.html").read_text()


def test_several_names_follow_an_option(eq, table: str) -> None:
    result = eq("leaderboard", table, "--models", "a", "b", "--datasets", "x", "y", "--json")
    data = json.loads(result.stdout)
    assert [row["model"] for row in data["leaderboard"]] == ["a", "b"]
    assert [entry["name"] for entry in data["datasets"]] == ["x", "y"]


def test_per_unit_scores_can_be_resampled(eq, folder: Path) -> None:
    rows = [
        f"{model},{dataset},{unit},{(unit * step) % 7}"
        for model, step in (("a", 2), ("b", 3))
        for dataset in "xy"
        for unit in range(20)
    ]
    (folder / "units.csv").write_text("\n".join(["model,dataset,unit,score", *rows]) + "\n")
    data = json.loads(eq("leaderboard", "units.csv", "--resample", "units", "--json").stdout)
    assert data["resample"] == "units"
    assert [entry["n_units"] for entry in data["datasets"]] == [20, 20]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "E310"),
        (("none.csv",), "E200"),
        (("table.csv", "--missing", "error"), "E208"),
        (("table.csv", "--aggregate", "median"), "E300"),
        (("table.csv", "--lower", "w"), "E300"),
        (("table.csv", "--split", "test"), "E310"),
        (("table.csv", "--metric", "nDCG@10"), "E310"),
        (("table.csv", "--to", "word"), "E300"),
    ],
)
def test_errors_have_a_code_and_no_traceback(eq, table: str, arguments: tuple[str, ...], code: str) -> None:
    result = eq("leaderboard", *arguments)
    assert result.exit_code == 2
    assert f"error[{code}]" in result.stderr
    assert "hint:" in result.stderr
    assert "Traceback" not in result.stderr


def test_findings_can_fail_the_command(eq, table: str) -> None:
    assert eq("leaderboard", table, "--fail-on", "note").exit_code == 1
    assert eq("leaderboard", table, "--fail-on", "issue").exit_code == 0
