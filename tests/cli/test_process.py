"""Tests that need a separate process: start, pipes, signals, terminals and shells."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

HEAVY_MODULES = ("numpy", "scipy", "rich", "torch", "sklearn", "equipoise.types", "equipoise.cli.score")


def test_help_loads_no_heavy_module(environment) -> None:
    code = (
        "import sys\n"
        "from equipoise.cli.main import cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print([name for name in {HEAVY_MODULES!r} if name in sys.modules], file=sys.stderr)"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert completed.stderr == "[]\n"
    assert "Usage: eq" in completed.stdout


def test_the_command_works_from_end_to_end(folder: Path, command, environment) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=False)

    runs = ("good.trec", "bad.trec", "--qrels", "truth.qrels")
    scored = run("score", *runs, "-m", "MRR", "-o", "results", "--json")
    assert scored.returncode == 0
    assert json.loads(scored.stdout)["written"] == ["results/good", "results/bad"]
    compared = run("compare", "results/good", "results/bad", "--json")
    assert compared.returncode == 0
    assert json.loads(compared.stdout)["leader"] == "good"
    assert compared.stderr == ""
    missing = run("compare", "results/good", "results/nothing")
    assert missing.returncode == 2
    assert missing.stderr.startswith("error[E200]: there is no file results/nothing")


@pytest.mark.parametrize("arguments", [("ls", "metrics"), ("ls", "metrics", "--json"), ("--help",)])
def test_a_closed_pipe_exits_with_141_without_an_error(arguments, command, environment) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stdout:
        completed = subprocess.run(
            [*command, *arguments], env=environment, stdout=stdout, stderr=subprocess.PIPE, check=False
        )
    assert completed.stderr == b""
    assert completed.returncode == 141


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_an_interrupt_exits_with_130_and_leaves_no_files(folder: Path, command, environment) -> None:
    os.mkfifo("slow.trec")
    arguments = ("score", "good.trec", "slow.trec", "--qrels", "truth.qrels", "--seed", "1")
    process = subprocess.Popen([*command, *arguments], env=environment, stderr=subprocess.PIPE, text=True)
    with open("slow.trec", "w") as pipe:  # blocks until the command has opened it for reading
        pipe.write("q00 Q0 d1 1 0.5 tag\n")
        pipe.flush()
        # One signal may be too early: it does not interrupt a read that has not started.
        # A second one during the shutdown would kill the process, so wait before repeating it.
        for _ in range(10):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
                break
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert stderr.strip() == "interrupted"
    assert sorted(path.name for path in folder.iterdir()) == [
        "bad.trec",
        "good.trec",
        "middle.trec",
        "slow.trec",
        "truth.qrels",
    ]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_run_can_be_read_from_process_substitution(folder: Path, command, environment) -> None:
    shell_code = f"{' '.join(command)} score piped=<(cat good.trec) --qrels truth.qrels -m MRR -o results"
    completed = subprocess.run(["bash", "-c", shell_code], env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    manifest = json.loads((folder / "results" / "piped" / "manifest.json").read_text())
    assert list(manifest["inputs"].values()) == [None]


def on_terminal(command_line: list[str], environment: dict[str, str], stream: str = "stdout") -> str:
    """The output on one stream, connected to a terminal of 80 columns; the other stream is dropped."""
    reader, writer = pty.openpty()
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: writer}
    process = subprocess.Popen(command_line, env=environment, **streams)
    os.close(writer)
    output = b""
    while True:
        try:
            output += os.read(reader, 65536)
        except OSError:
            break
        if process.poll() is not None and not output:
            break
    process.wait(timeout=30)
    os.close(reader)
    return output.decode()


@pytest.mark.parametrize(
    ("arguments", "last_step", "count"),
    [
        (
            ("places", "score", "--logits", "logits.npy", "--targets", "y.npy", "-o", "results"),
            "writing the run",
            "1/2",
        ),
        (("places", "compare", "a=one", "a=two", "b=two", "b=one"), "comparing", "4/5"),
        (("accounts", "misfiled", "tree.csv"), "comparing names", "3/3"),
    ],
)
def test_long_steps_have_a_bar_with_a_count(arguments, last_step, count, folder: Path, command, environment) -> None:
    rng = np.random.default_rng(0)
    for folder_name in (".", "one", "two"):
        Path(folder_name).mkdir(exist_ok=True)
        np.save(Path(folder_name) / "logits.npy", rng.normal(size=(60, 5)))
        np.save(Path(folder_name) / ("y.npy" if folder_name == "." else "targets.npy"), np.arange(60) % 5)
    Path("tree.csv").write_text("id,parent,name\n1,,Cash\n2,,Taxes\n11,1,Petty cash\n21,2,Income tax\n22,2,Sales tax\n")
    variables = environment | {"TERM": "xterm-256color", "COLUMNS": "160"}
    terminal_output = on_terminal([*command, *arguments], variables, "stderr")
    # Short steps may not be drawn; the last one always is.
    assert last_step in terminal_output
    assert count in terminal_output


def test_colours_are_used_on_terminals_without_no_color(folder: Path, command, environment) -> None:
    command_line = [*command, "ls", "checks"]
    variables = environment | {"TERM": "xterm-256color", "COLUMNS": "80"}
    assert "\x1b[1m" in on_terminal(command_line, variables)
    assert "\x1b" not in on_terminal(command_line, variables | {"NO_COLOR": "1"})
    assert "\x1b" not in subprocess.run(command_line, env=variables, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_metrics(folder: Path, command, environment) -> None:
    script = folder / "eq"
    script.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
    script.chmod(0o755)
    shell_code = (
        "source <(eq completion bash) && complete -p eq"
        " && COMP_WORDS=(eq score -m nD) COMP_CWORD=3 && _eq_completion eq && echo ${COMPREPLY[@]}"
    )
    variables = environment | {"PATH": f"{folder}:{environment['PATH']}"}
    completed = subprocess.run(["bash", "-c", shell_code], env=variables, capture_output=True, text=True, check=False)
    assert completed.stderr == ""
    assert "_eq_completion eq" in completed.stdout
    assert "nDCG@10" in completed.stdout.split()


def test_an_interrupt_during_imports_exits_with_130(environment) -> None:
    code = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'click':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from equipoise.__main__ import main\n"
        "main()\n"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 130
    assert completed.stderr == "interrupted\n"


@pytest.mark.parametrize(
    ("command", "thread_variables", "threads"),
    [("fair", {}, "1"), ("fair", {"OMP_NUM_THREADS": "3"}, "None"), ("compare", {}, "None")],
)
def test_commands_with_small_matrix_products_use_one_thread_by_default(
    environment, command: str, thread_variables: dict[str, str], threads: str
) -> None:
    code = (
        "import os, sys\n"
        f"sys.argv = ['eq', '{command}', '--help']\n"
        "from equipoise.__main__ import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    sys.stderr.write(str(os.environ.get('OPENBLAS_NUM_THREADS')))\n"
    )
    clean = {name: value for name, value in environment.items() if not name.endswith("_NUM_THREADS")}
    completed = subprocess.run(
        [sys.executable, "-c", code], env={**clean, **thread_variables}, capture_output=True, text=True, check=True
    )
    assert completed.stderr == threads
