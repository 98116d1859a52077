"""``eq report``: one file, written completely or not at all."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Eq = Callable[..., Result]


@pytest.fixture
def results(eq: Eq, folder: Path) -> Path:
    """Three run directories below a folder."""
    for name in ("good", "middle", "bad"):
        arguments = ("score", f"{name}.trec", "--qrels", "truth.qrels", "-o", "results/runs")
        assert eq(*arguments).exit_code == 0
    return folder / "results"


def test_a_folder_of_runs_is_reported_on_one_page(eq: Eq, results: Path, folder: Path) -> None:
    result = eq("report", "results", "-o", "report.html", "--no-charts")
    assert result.exit_code == 0, result.stderr
    page = (folder / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert all(name in page for name in ("good", "middle", "bad"))
    assert result.stdout.strip() in page
    assert "wrote report.html" in result.stderr


def test_runs_can_be_renamed_and_the_metric_selected(eq: Eq, results: Path, folder: Path) -> None:
    arguments = ("report", "results/runs/good", "renamed=results/runs/bad", "--primary", "Acc@1", "--json")
    result = eq(*arguments, "--no-charts")
    assert result.exit_code == 0, result.stderr
    content = json.loads(result.stdout)
    assert sorted(content["systems"]) == ["good", "renamed"]
    assert "HR@1" in content["verdict"]
    assert "renamed" in (folder / "report.html").read_text()


def test_charts_are_written_as_files_with_the_option(eq: Eq, results: Path, folder: Path) -> None:
    result = eq("report", "results", "--charts", "results/visualizations")
    assert result.exit_code == 0, result.stderr
    assert "wrote the charts to results/visualizations" in result.stderr
    written = {path.name for path in (results / "visualizations").iterdir()}
    assert {"leaderboard.png", "leaderboard.svg", "differences.png", "wins.svg"} <= written
    assert {Path(name).stem for name in written if name.endswith(".png")} == {
        Path(name).stem for name in written if name.endswith(".svg")
    }
    assert 'data-chart="leaderboard"' in (folder / "report.html").read_text()


def test_the_same_run_named_twice_is_one_run(eq: Eq, results: Path) -> None:
    result = eq("report", "results/runs/good", "results/runs/../runs/good", "--json", "--no-charts")
    assert json.loads(result.stdout)["systems"] == ["good"]


def test_a_partial_run_is_reported_with_its_caution(eq: Eq, results: Path, folder: Path) -> None:
    file = results / "runs" / "bad" / "manifest.json"
    file.write_text(file.read_text().replace('"status": "complete"', '"status": "partial"'))
    result = eq("report", "results", "--no-charts")
    assert result.exit_code == 3
    assert "caution: the run of bad is partial" in result.stderr
    assert "Not complete:" in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "E310"),
        (("nowhere",), "E500"),
        (("truth.qrels",), "E500"),
        (("results", "-o", "results"), "E500"),
        (("results", "-o", "missing/report.html"), "E500"),
        (("results", "-o", "report.pdf"), "E310"),
        (("results", "--charts", "truth.qrels"), "E500"),
        (("renamed=results/runs",), "E310"),
        (("results", "--primary", "nDGC@10"), "E300"),
        (("good=results/runs/bad", "results/runs/good"), "E205"),
    ],
)
def test_bad_input_is_an_error_and_leaves_no_file(
    eq: Eq, results: Path, folder: Path, arguments: tuple[str, ...], code: str
) -> None:
    files_before = sorted(folder.iterdir())
    result = eq("report", *arguments)
    assert result.exit_code == 2
    assert f"error[{code}]" in result.stderr
    assert sorted(folder.iterdir()) == files_before


def test_runs_on_different_units_are_an_error_with_the_difference(eq: Eq, results: Path, folder: Path) -> None:
    (folder / "short.qrels").write_text("q00 0 d1 1\nq99 0 d1 1\n")
    eq("score", "good.trec", "--qrels", "short.qrels", "-o", "other")
    result = eq("report", "results/runs/bad", "other")
    assert result.exit_code == 2
    assert "were not measured on the same queries" in result.stderr
    assert "only in good: q99" in result.stderr
    assert not (folder / "report.html").exists()


def test_the_hints_for_folders_that_cannot_be_reported_together_work(eq: Eq, results: Path, folder: Path) -> None:
    def run_commands(hint: str) -> None:
        commands = [shlex.split(command) for command in hint.splitlines()[0].split("; ")]
        assert len(commands) == 2
        for command in commands:
            result = eq(*command[1:], *(["--no-charts"] if command[1] == "report" else []))
            assert result.exit_code == 0, result.stderr

    (folder / "other.qrels").write_text("".join(f"q{number:02} 0 d2 1\n" for number in range(12)))
    eq("score", "good.trec", "--qrels", "other.qrels", "-m", "HR@1", "-o", "other")
    for arguments in (("report", "results", "other"), ("export", "results", "other", "--to", "csv")):
        result = eq(*arguments)
        assert result.exit_code == 2
        assert "error[E208]" in result.stderr
        run_commands(result.stderr.split("use a command for each: ")[1])
    assert "eq report results " in eq("compare", "results", "other").stderr

    shutil.copytree(results, folder / "again")
    result = eq("report", "results", "again")
    assert result.exit_code == 2
    renamed = shlex.split(result.stderr.split("add other names: ")[1].splitlines()[0])
    assert eq("report", "results", "again", *renamed, "--no-charts").exit_code == 0


def test_an_error_does_not_change_an_existing_page(eq: Eq, results: Path, folder: Path) -> None:
    (folder / "report.html").write_text("the old page")
    assert eq("report", "nowhere").exit_code == 2
    assert (folder / "report.html").read_text() == "the old page"


def test_an_earlier_report_is_replaced_with_a_note_and_another_file_is_not(eq: Eq, results: Path, folder: Path) -> None:
    assert "replaced" not in eq("report", "results", "--no-charts").stderr
    assert "report.html is an earlier report, and is replaced" in eq("report", "results", "--no-charts").stderr
    (folder / "report.html").write_text("<p>my page</p>")
    assert "error[E500]" in eq("report", "results").stderr
    assert (folder / "report.html").read_text() == "<p>my page</p>"


def test_two_processes_write_the_same_bytes(
    results: Path, folder: Path, command: list[str], environment: dict[str, str]
) -> None:
    pages = []
    for seed in ("1", "2"):
        arguments = [*command, "report", "results", "-o", f"{seed}.html", "-q"]
        subprocess.run(arguments, env=environment | {"PYTHONHASHSEED": seed}, cwd=folder, check=True)
        pages.append((folder / f"{seed}.html").read_bytes())
    assert pages[0] == pages[1]
