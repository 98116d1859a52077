"""``eq view`` in a separate process."""

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

StartProcess = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(folder: Path, command, environment) -> StartProcess:
    """Start the command without a browser."""

    @contextmanager
    def run_process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [*command, "view", *arguments, "--no-browser"],
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

    return run_process  # type: ignore[return-value]


def fetch(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as response:
        return response.read().decode()


@pytest.fixture
def results(eq) -> str:
    """A folder with two runs."""
    runs = ("good.trec", "bad.trec", "--qrels", "truth.qrels")
    assert eq("score", *runs, "-m", "MRR", "-o", "results").exit_code == 0
    return "results"


def test_the_address_is_printed_and_an_interrupt_stops_the_server(results: str, start: StartProcess) -> None:
    with start() as process:  # the default folder is results
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        rows = json.loads(fetch(f"{address}runs.json"))["runs"]
        assert sorted(row["system"] for row in rows) == ["bad", "good"]
        assert "good" in fetch(f"{address}report?run=good&run=bad")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
        assert process.returncode == 130
        assert stdout == ""
        assert stderr.splitlines()[1:] == ["interrupted"]


def test_json_output_has_the_address(results: str, start: StartProcess) -> None:
    with start(results, "--json", "-q") as process:
        lines = []
        while not lines or lines[-1] != "}\n":
            lines.append(process.stdout.readline())
        content = json.loads("".join(lines))
        assert content["results"] == "results"
        assert "good" in fetch(content["url"])
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130


def test_other_host_names_are_rejected_by_the_process(results: str, start: StartProcess) -> None:
    with start(results) as process:
        address = process.stdout.readline().strip()
        request = urllib.request.Request(address, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(request, timeout=60)
        assert error.value.code == 421
        error.value.close()


def test_an_occupied_port_is_an_error(folder: Path, eq) -> None:
    (folder / "results").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = eq("view", "results", "--no-browser", "--port", str(port))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error[E310]: port {port} ")
    assert "--port 0" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nowhere",), "E500"),
        (("good.trec",), "E500"),
        (("results", "--port", "70000"), "E100"),
    ],
)
def test_bad_input_is_an_error(eq, arguments: tuple[str, ...], code: str) -> None:
    result = eq("view", *arguments, "--no-browser")
    assert result.exit_code == 2
    assert f"error[{code}]" in result.stderr
    assert "hint:" in result.stderr


def test_a_missing_engine_is_an_error_with_its_extra(folder: Path, eq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    result = eq("view", "--no-browser")
    assert result.exit_code == 4
    assert install_command("view") in result.stderr


def test_help_loads_no_heavy_module(command, environment) -> None:
    code = (
        "import sys\n"
        "from equipoise.cli.main import cli\n"
        "try:\n    cli.main(['view', '--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print([name for name in ('starlette', 'uvicorn', 'numpy') if name in sys.modules], file=sys.stderr)"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "--no-browser" in completed.stdout
    assert "starlette" not in completed.stderr
    assert "uvicorn" not in completed.stderr
