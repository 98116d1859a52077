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
AssertError = Callable[..., None]

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
    """The working folder with qrels, a good, a bad and a middle run."""
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
    """Run the command in this process."""

    def run(*arguments: str, **options: object) -> Result:
        return CliRunner().invoke(cli, list(arguments), prog_name="eq", **options)  # type: ignore[arg-type]

    return run


@pytest.fixture
def assert_error() -> AssertError:
    """Return a check for exit status 2, an error code, no standard output, and texts in the error message."""

    def check(result: Result, code: str, *expected_texts: str) -> None:
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith(f"error[{code}]"), result.stderr
        assert "Traceback" not in result.stderr
        for fragment in expected_texts:
            assert fragment in result.stderr, result.stderr

    return check


@pytest.fixture
@marked(pytest.mark.slow)
def environment() -> dict[str, str]:
    """Environment variables for a process that imports the package from the source tree."""
    variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    source = str(Path(equipoise.__file__).parents[1])
    return variables | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"}


@pytest.fixture
@marked(pytest.mark.slow)
def command() -> list[str]:
    """The command line that starts the program in a new process."""
    return [sys.executable, "-m", "equipoise"]
