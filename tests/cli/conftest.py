"""A folder with small files, and the command run inside it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import equipoise
from equipoise.cli.main import cli
from marked import marked

Eq = Callable[..., Result]
Failed = Callable[..., None]

UNITS = 12
TRUTH = "".join(f"q{unit:02} 0 d1 1\n" for unit in range(UNITS))


def run_file(ranks: list[int]) -> str:
    """A run of five documents per query, with the relevant document d1 at these ranks."""
    lines = []
    for unit, rank in enumerate(ranks):
        others = iter(["d2", "d3", "d4", "d5"])
        names = ["d1" if position == rank else next(others) for position in range(1, 6)]
        for position, name in enumerate(names, start=1):
            lines.append(f"q{unit:02} Q0 {name} {position} {1 / position:.3f} tag\n")
    return "".join(lines)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a truth, a good run, a bad run and one in between."""
    (tmp_path / "truth.qrels").write_text(TRUTH)
    (tmp_path / "good.trec").write_text(run_file([1] * 11 + [2]))
    (tmp_path / "middle.trec").write_text(run_file([1, 1, 1, 2, 2, 2, 3, 1, 1, 1, 1, 2]))
    (tmp_path / "bad.trec").write_text(run_file([5, 4, 3, 5, 4, 3, 5, 4, 3, 5, 4, 2]))
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def eq(folder: Path) -> Eq:
    """The command, run in this process."""

    def run(*words: str, **options: object) -> Result:
        return CliRunner().invoke(cli, list(words), prog_name="eq", **options)  # type: ignore[arg-type]

    return run


@pytest.fixture
def failed() -> Failed:
    """Checks that a command failed with a code, exit status 2 and no output, and that the error names something."""

    def check(done: Result, code: str, *named: str) -> None:
        assert done.exit_code == 2, done.output
        assert done.stdout == ""
        assert done.stderr.startswith(f"error[{code}]"), done.stderr
        assert "Traceback" not in done.stderr
        for fragment in named:
            assert fragment in done.stderr, done.stderr

    return check


@pytest.fixture
@marked(pytest.mark.slow)
def environment() -> dict[str, str]:
    """What a process needs to find the package, whether it is installed or not."""
    plain = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    source = str(Path(equipoise.__file__).parents[1])
    return plain | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"}


@pytest.fixture
@marked(pytest.mark.slow)
def command() -> list[str]:
    """The words that start the command in a process of its own."""
    return [sys.executable, "-m", "equipoise"]
