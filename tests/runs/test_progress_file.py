"""Progress files exist while a run is active and are removed at its end."""

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
from equipoise.runs.progress_file import RESUME_NOTE, ActiveRun, find_active_runs, report_progress
from equipoise.runs.run_folder import save_run


def test_each_step_is_reported_and_the_file_is_removed(tmp_path: Path) -> None:
    steps: list[str] = []
    with report_progress(tmp_path / "new", "a comparison", 3, step=steps.append) as step:
        (initial,) = find_active_runs(tmp_path)
        assert (initial.what, initial.step, initial.done, initial.total) == ("a comparison", "", 0, 3)
        for index, text in enumerate(("one", "two")):
            step(text)
            (active_run,) = find_active_runs(tmp_path)
            assert (active_run.folder, active_run.step, active_run.done, active_run.alive) == (
                tmp_path / "new",
                text,
                index,
                True,
            )
    assert steps == ["one", "two"]
    assert list((tmp_path / "new").iterdir()) == []


def test_an_error_removes_the_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), report_progress(tmp_path, "a comparison"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_command_leaves_its_progress_until_the_next_one(tmp_path: Path) -> None:
    def interrupt(text: str) -> None:
        if text == "two":
            raise KeyboardInterrupt

    def work() -> None:
        with report_progress(tmp_path, "a comparison", 3, step=interrupt) as step:
            step("one")
            step("two")

    with pytest.raises(KeyboardInterrupt) as error:
        work()
    assert error.value.__notes__ == [RESUME_NOTE]
    (interrupted,) = find_active_runs(tmp_path)
    assert (interrupted.step, interrupted.done, interrupted.total, interrupted.alive) == ("two", 1, 3, False)
    with report_progress(tmp_path, "a comparison"):
        assert [run.alive for run in find_active_runs(tmp_path)] == [True]
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_steps_are_reported_to_the_callback_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    steps: list[str] = []
    with report_progress(None, "a comparison", step=steps.append) as step:
        step("one")
    assert steps == ["one"]
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_does_not_stop_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    steps: list[str] = []
    with report_progress(tmp_path / "file", "a comparison", step=steps.append) as step:
        step("one")
    assert steps == ["one"]


def test_secrets_of_the_command_are_not_written(tmp_path: Path) -> None:
    with report_progress(tmp_path, "a comparison", command=["eq", "--api-key", "abc"]):
        (active_run,) = find_active_runs(tmp_path)
    assert active_run.command == ("eq", "--api-key", "***")


def run_and_exit(folder: Path) -> None:
    """Run a process that exits in the middle of its work."""
    code = (
        "import os, sys\n"
        "from equipoise.runs.progress_file import report_progress\n"
        f"with report_progress({str(folder)!r}, 'a comparison', 2) as step:\n"
        "    step('one')\n"
        "    os._exit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False)


@pytest.mark.slow
def test_stopped_and_active_runs_are_distinguished(tmp_path: Path) -> None:
    run_and_exit(tmp_path)
    (stopped_run,) = find_active_runs(tmp_path)
    assert (stopped_run.step, stopped_run.alive) == ("one", False)
    with report_progress(tmp_path, "another"):
        assert [(active_run.what, active_run.alive) for active_run in find_active_runs(tmp_path)] == [("another", True)]
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_being_written_is_active(tmp_path: Path) -> None:
    result = evaluate(Ranking.from_ranks([1, 2], candidates=9), "MRR", system="bm25")
    finished_run = save_run(tmp_path / "whole", result, manifest=Manifest("bm25"))
    with atomic_directory(tmp_path / "runs" / "bm25.v1") as part:
        (active_run,) = find_active_runs(tmp_path)
        assert active_run == ActiveRun(tmp_path / "runs" / "bm25.v1", "writing bm25.v1")
        (part / "manifest.json").write_bytes((finished_run / "manifest.json").read_bytes())
        (active_run,) = find_active_runs(tmp_path)
        assert active_run.what == "writing the run of bm25"
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
def test_invalid_progress_files_are_tolerated(tmp_path: Path, content: str) -> None:
    (tmp_path / f".progress.00000000-{os.getpid()}-00000000.json").write_text(content)
    (tmp_path / ".something.part").mkdir()
    for active_run in find_active_runs(tmp_path):
        assert (active_run.what, active_run.done, active_run.total, active_run.command) == ("x", 0, 0, ())


def test_symlinks_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "outside.json").write_text(json.dumps({"what": "x"}))
    (tmp_path / ".progress.0-0-0.json").symlink_to(tmp_path / "outside.json")
    (tmp_path / "round").symlink_to(tmp_path)
    assert find_active_runs(tmp_path) == []
