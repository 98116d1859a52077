"""The pytest plugin in real pytest processes, and the GitHub Action run as a script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).parents[1]
TEST = """
from equipoise import Ranking

def test_search(equipoise_gate):
    equipoise_gate(Ranking.from_ranks({ranks}, candidates=20), "MRR", require=[{require!r}], margin=0.01)
"""
GOOD, BAD = [1, 2, 1, 1, 3, 1, 2, 1, 1, 1] * 4, [9, 7, 8, 1, 9, 6, 7, 8, 5, 9] * 4

pytestmark = pytest.mark.slow


def run_pytest(folder: Path, ranks: list[int], *options: str, require: str = "MRR>=0.1") -> tuple[int, str]:
    (folder / "test_search.py").write_text(TEST.format(ranks=ranks, require=require))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "equipoise.pytest_plugin",
        *options,
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    completed = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return completed.returncode, completed.stdout + completed.stderr


def test_a_baseline_is_written_and_a_loss_fails(tmp_path: Path) -> None:
    assert run_pytest(tmp_path, GOOD, "--eq-baseline", "base")[0] == 1  # there is no baseline yet
    assert run_pytest(tmp_path, GOOD, "--eq-baseline", "base", "--eq-update-baseline")[0] == 0
    assert run_pytest(tmp_path, GOOD, "--eq-baseline", "base")[0] == 0
    status, text = run_pytest(tmp_path, BAD, "--eq-baseline", "base")
    assert status == 1
    assert "FAIL" in text
    assert "Traceback" not in text


def test_tests_of_one_name_in_two_files_have_two_baselines(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(TEST.format(ranks=BAD, require="MRR>=0.1"))
    for update in (["--eq-update-baseline"], []):
        status, text = run_pytest(tmp_path, GOOD, "--eq-baseline", "base", *update)
        assert status == 0, text


def test_two_baselines_of_one_name_fail(tmp_path: Path) -> None:
    twice = TEST + TEST.splitlines()[-1]
    (tmp_path / "test_twice.py").write_text(twice.format(ranks=GOOD, require="MRR>=0.1"))
    status, text = run_pytest(tmp_path, GOOD, "--eq-baseline", "base", "--eq-update-baseline")
    assert status == 1
    assert "two baselines are called test_twice.py_test_search" in text


def test_requirements_need_no_baseline(tmp_path: Path) -> None:
    assert run_pytest(tmp_path, GOOD, require="MRR>=0.5")[0] == 0
    assert run_pytest(tmp_path, GOOD, require="MRR>=0.99")[0] == 1
    assert run_pytest(tmp_path, GOOD, "--eq-update-baseline")[0] != 0


def action_script() -> tuple[str, dict[str, str]]:
    """The script of the step that gates, and the defaults of its inputs."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = [step for step in action["runs"]["steps"] if step["name"] == "Gate"]
    defaults = {name: str(entry.get("default", "")) for name, entry in action["inputs"].items()}
    environment = {
        variable: defaults[text.removeprefix("${{ inputs.").removesuffix(" }}")]
        for variable, text in step["env"].items()
    }
    assert "${{" not in step["run"]  # inputs reach the script as variables only
    return step["run"], environment


def test_the_action_gates_a_run_and_writes_the_summary(tmp_path: Path) -> None:
    script, environment = action_script()
    (tmp_path / "truth.qrels").write_text("".join(f"q{unit} 0 d1 1\n" for unit in range(12)))
    for name, rank in (("good", 1), ("bad", 4)):
        lines = [
            f"q{unit} Q0 {'d1' if position == rank else f'x{position}'} {position} {1 / position} t\n"
            for unit in range(12)
            for position in range(1, 6)
        ]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    command = tmp_path / "bin" / "eq"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m equipoise "$@"\n')
    command.chmod(0o755)
    common = {
        **os.environ,
        **environment,
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "EQ_QRELS": "truth.qrels",
        "GITHUB_STEP_SUMMARY": "summary.md",
    }
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]

    def gate(**inputs: str) -> int:
        completed = subprocess.run(bash, cwd=tmp_path, env=common | inputs, capture_output=True, text=True, check=False)
        assert "Traceback" not in completed.stderr
        return completed.returncode

    assert gate(EQ_RUN="good.trec", EQ_REQUIRE="nDCG@10>=0.9") == 0
    (tmp_path / "equipoise-results" / "candidate").rename(tmp_path / "baseline")
    assert gate(EQ_RUN="bad.trec", EQ_BASELINE="baseline") == 1
    summary = (tmp_path / "summary.md").read_text()
    assert "nDCG@10" in summary
    assert "FAIL" in summary
    assert (tmp_path / "equipoise-report.html").stat().st_size > 1000
    suite = ElementTree.parse(tmp_path / "equipoise-junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
