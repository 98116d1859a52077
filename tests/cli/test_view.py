"""The command that shows results in a browser, as a process of its own."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from equipoise.types import install_command

Started = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(folder: Path, command, environment) -> Started:
    """Starts the command, without a browser."""

    @contextmanager
    def started(*words: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [*command, "view", *words, "--no-browser"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    return started  # type: ignore[return-value]


def fetched(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read().decode()


@pytest.fixture
def results(eq) -> str:
    """A folder with two runs."""
    runs = ("good.trec", "bad.trec", "--qrels", "truth.qrels")
    assert eq("score", *runs, "-m", "MRR", "-o", "results").exit_code == 0
    return "results"


def test_it_prints_where_it_is_and_an_interrupt_ends_it(results: str, start: Started) -> None:
    with start() as process:  # the folder results is what it shows unless told otherwise
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        rows = json.loads(fetched(f"{address}runs.json"))["runs"]
        assert sorted(row["system"] for row in rows) == ["bad", "good"]
        assert "good" in fetched(f"{address}report?run=good&run=bad")
        process.send_signal(signal.SIGINT)
        said, noted = process.communicate(timeout=30)
        assert process.returncode == 130
        assert said == ""
        assert noted.splitlines()[1:] == ["interrupted"]


def test_as_data_it_says_the_same(results: str, start: Started) -> None:
    with start(results, "--json", "-q") as process:
        lines = []
        while not lines or lines[-1] != "}\n":
            lines.append(process.stdout.readline())
        told = json.loads("".join(lines))
        assert told["results"] == "results"
        assert "good" in fetched(told["url"])
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130


def test_another_name_is_refused_by_the_process_too(results: str, start: Started) -> None:
    with start(results) as process:
        address = process.stdout.readline().strip()
        request = urllib.request.Request(address, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)
        assert refused.value.code == 421
        refused.value.close()


def test_a_port_that_is_taken_is_a_sentence(folder: Path, eq) -> None:
    (folder / "results").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = eq("view", "results", "--no-browser", "--port", str(port))
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error[E310]: port {port} ")
    assert "--port 0" in done.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("nowhere",), "E500"),
        (("good.trec",), "E500"),
        (("results", "--port", "70000"), "E100"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(eq, words: tuple[str, ...], code: str) -> None:
    done = eq("view", *words, "--no-browser")
    assert done.exit_code == 2
    assert f"error[{code}]" in done.stderr
    assert "hint:" in done.stderr


def test_a_missing_engine_is_named_with_its_extra(folder: Path, eq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    done = eq("view", "--no-browser")
    assert done.exit_code == 4
    assert install_command("view") in done.stderr


def test_help_starts_nothing_heavy(command, environment) -> None:
    code = (
        "import sys\n"
        "from equipoise.cli.main import cli\n"
        "try:\n    cli.main(['view', '--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print([name for name in ('starlette', 'uvicorn', 'numpy') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "--no-browser" in done.stdout
    assert "starlette" not in done.stderr
    assert "uvicorn" not in done.stderr
