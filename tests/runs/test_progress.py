"""Work under way leaves a file while it goes on, and none behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from equipoise.evidence.ranking import Ranking
from equipoise.io.atomic import atomic_directory
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest
from equipoise.runs.progress import ActiveRun, find_active_runs, report_progress
from equipoise.runs.run_folder import save_run


def test_each_step_is_told_and_the_end_leaves_nothing(tmp_path: Path) -> None:
    heard: list[str] = []
    with report_progress(tmp_path / "new", "a comparison", 3, step=heard.append) as step:
        (begun,) = find_active_runs(tmp_path)
        assert (begun.what, begun.step, begun.done, begun.total) == ("a comparison", "", 0, 3)
        for place, text in enumerate(("one", "two")):
            step(text)
            (now,) = find_active_runs(tmp_path)
            assert (now.folder, now.step, now.done, now.alive) == (tmp_path / "new", text, place, True)
    assert heard == ["one", "two"]
    assert list((tmp_path / "new").iterdir()) == []


def test_an_error_leaves_no_file_either(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), report_progress(tmp_path, "a comparison"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_only_the_listener_hears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    heard: list[str] = []
    with report_progress(None, "a comparison", step=heard.append) as step:
        step("one")
    assert heard == ["one"]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_does_not_stop_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    heard: list[str] = []
    with report_progress(tmp_path / "file", "a comparison", step=heard.append) as step:
        step("one")
    assert heard == ["one"]


def test_secrets_of_the_command_are_not_written(tmp_path: Path) -> None:
    with report_progress(tmp_path, "a comparison", command=["eq", "--api-key", "abc"]):
        (now,) = find_active_runs(tmp_path)
    assert now.command == ("eq", "--api-key", "***")


def killed_in(folder: Path) -> None:
    """A process that dies in the middle of its work."""
    code = (
        "import os, sys\n"
        "from equipoise.runs.progress import report_progress\n"
        f"with report_progress({str(folder)!r}, 'a comparison', 2) as step:\n"
        "    step('one')\n"
        "    os._exit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False)


@pytest.mark.slow
def test_a_writer_that_died_is_told_from_one_that_is_busy(tmp_path: Path) -> None:
    killed_in(tmp_path)
    (left,) = find_active_runs(tmp_path)
    assert (left.step, left.alive) == ("one", False)
    with report_progress(tmp_path, "another"):
        assert [(each.what, each.alive) for each in find_active_runs(tmp_path)] == [("another", True)]
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_being_written_is_under_way(tmp_path: Path) -> None:
    result = evaluate(Ranking.from_ranks([1, 2], candidates=9), "MRR", system="bm25")
    whole = save_run(tmp_path / "whole", result, manifest=Manifest("bm25"))
    with atomic_directory(tmp_path / "runs" / "bm25.v1") as part:
        (now,) = find_active_runs(tmp_path)
        assert now == ActiveRun(tmp_path / "runs" / "bm25.v1", "writing bm25.v1")
        (part / "manifest.json").write_bytes((whole / "manifest.json").read_bytes())
        (now,) = find_active_runs(tmp_path)
        assert now.what == "writing the run of bm25"
    assert find_active_runs(tmp_path) == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"what": 3}',
        '{"what": "x", "done": "three", "total": -1, "command": 5}',
        "9" * 200_000,
    ],
)
def test_a_file_of_another_kind_does_no_harm(tmp_path: Path, content: str) -> None:
    (tmp_path / f".progress.00000000-{os.getpid()}-00000000.json").write_text(content)
    (tmp_path / ".something.part").mkdir()
    for each in find_active_runs(tmp_path):
        assert (each.what, each.done, each.total, each.command) == ("x", 0, 0, ())


def test_links_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json").write_text(json.dumps({"what": "x"}))
    (tmp_path / ".progress.0-0-0.json").symlink_to(tmp_path / "elsewhere.json")
    (tmp_path / "round").symlink_to(tmp_path)
    assert find_active_runs(tmp_path) == []
