"""``eq report``: one file, written whole or not at all."""

from __future__ import annotations

import json
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
        words = ("score", f"{name}.trec", "--qrels", "truth.qrels", "-o", "results/runs")
        assert eq(*words).exit_code == 0
    return folder / "results"


def test_a_folder_of_runs_becomes_one_page(eq: Eq, results: Path, folder: Path) -> None:
    done = eq("report", "results", "-o", "report.html", "--no-charts")
    assert done.exit_code == 0, done.stderr
    page = (folder / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert all(name in page for name in ("good", "middle", "bad"))
    assert done.stdout.strip() in page
    assert "wrote report.html" in done.stderr


def test_runs_can_be_named_and_a_metric_chosen(eq: Eq, results: Path, folder: Path) -> None:
    words = ("report", "results/runs/good", "ours=results/runs/bad", "--primary", "Acc@1", "--json")
    done = eq(*words, "--no-charts")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert sorted(told["systems"]) == ["good", "ours"]
    assert "HR@1" in told["verdict"]
    assert "ours" in (folder / "report.html").read_text()


def test_the_charts_are_written_as_files_when_asked(eq: Eq, results: Path, folder: Path) -> None:
    done = eq("report", "results", "--charts", "results/visualizations")
    assert done.exit_code == 0, done.stderr
    assert "wrote the charts to results/visualizations" in done.stderr
    written = {path.name for path in (results / "visualizations").iterdir()}
    assert {"leaderboard.png", "leaderboard.svg", "differences.png", "wins.svg"} <= written
    assert {Path(name).stem for name in written if name.endswith(".png")} == {
        Path(name).stem for name in written if name.endswith(".svg")
    }
    assert 'data-chart="leaderboard"' in (folder / "report.html").read_text()


def test_the_same_run_named_twice_is_one_run(eq: Eq, results: Path) -> None:
    done = eq("report", "results/runs/good", "results/runs/../runs/good", "--json", "--no-charts")
    assert json.loads(done.stdout)["systems"] == ["good"]


def test_a_partial_run_is_reported_with_its_caution(eq: Eq, results: Path, folder: Path) -> None:
    file = results / "runs" / "bad" / "manifest.json"
    file.write_text(file.read_text().replace('"status": "complete"', '"status": "partial"'))
    done = eq("report", "results", "--no-charts")
    assert done.exit_code == 3
    assert "caution: the run of bad is partial" in done.stderr
    assert "Not complete:" in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "E310"),
        (("nowhere",), "E500"),
        (("truth.qrels",), "E500"),
        (("results", "-o", "results"), "E500"),
        (("results", "-o", "missing/report.html"), "E500"),
        (("results", "--charts", "truth.qrels"), "E500"),
        (("ours=results/runs",), "E310"),
        (("results", "--primary", "nDGC@10"), "E300"),
        (("good=results/runs/bad", "results/runs/good"), "E205"),
    ],
)
def test_a_mistake_gets_a_sentence_and_leaves_no_file(
    eq: Eq, results: Path, folder: Path, words: tuple[str, ...], code: str
) -> None:
    before = sorted(folder.iterdir())
    done = eq("report", *words)
    assert done.exit_code == 2
    assert f"error[{code}]" in done.stderr
    assert sorted(folder.iterdir()) == before


def test_runs_over_different_units_are_refused_with_the_difference(eq: Eq, results: Path, folder: Path) -> None:
    (folder / "short.qrels").write_text("q00 0 d1 1\nq99 0 d1 1\n")
    eq("score", "good.trec", "--qrels", "short.qrels", "-o", "other")
    done = eq("report", "results/runs/bad", "other")
    assert done.exit_code == 2
    assert "were not measured on the same units" in done.stderr
    assert "only in good: q99" in done.stderr
    assert not (folder / "report.html").exists()


def test_a_page_that_stood_there_is_left_alone_by_a_mistake(eq: Eq, results: Path, folder: Path) -> None:
    (folder / "report.html").write_text("the old page")
    assert eq("report", "nowhere").exit_code == 2
    assert (folder / "report.html").read_text() == "the old page"


def test_two_processes_write_the_same_bytes(
    results: Path, folder: Path, command: list[str], environment: dict[str, str]
) -> None:
    pages = []
    for seed in ("1", "2"):
        words = [*command, "report", "results", "-o", f"{seed}.html", "-q"]
        subprocess.run(words, env=environment | {"PYTHONHASHSEED": seed}, cwd=folder, check=True)
        pages.append((folder / f"{seed}.html").read_bytes())
    assert pages[0] == pages[1]
