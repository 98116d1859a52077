"""What only a process of its own can show: start, pipes, signals, terminals and shells."""

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

HEAVY = ("numpy", "scipy", "rich", "torch", "sklearn", "equipoise.types", "equipoise.cli.score")


def test_help_loads_nothing_heavy(environment) -> None:
    code = (
        "import sys\n"
        "from equipoise.cli.main import cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert "Usage: eq" in done.stdout


def test_the_command_works_from_end_to_end(folder: Path, command, environment) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *words], env=environment, capture_output=True, text=True, check=False)

    runs = ("good.trec", "bad.trec", "--qrels", "truth.qrels")
    scored = run("score", *runs, "-m", "MRR", "-o", "results", "--json")
    assert scored.returncode == 0
    assert json.loads(scored.stdout)["written"] == ["results/good", "results/bad"]
    compared = run("compare", "results/good", "results/bad", "--json")
    assert compared.returncode == 0
    assert json.loads(compared.stdout)["leader"] == "good"
    assert compared.stderr == ""
    refused = run("compare", "results/good", "results/nothing")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error[E200]: there is no file results/nothing")


@pytest.mark.parametrize("words", [("ls", "metrics"), ("ls", "metrics", "--json"), ("--help",)])
def test_a_reader_that_leaves_is_no_error(words, command, environment) -> None:
    end, start = os.pipe()
    os.close(end)
    with os.fdopen(start, "wb") as closed:
        done = subprocess.run([*command, *words], env=environment, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_an_interrupt_ends_with_130_and_leaves_nothing(folder: Path, command, environment) -> None:
    os.mkfifo("slow.trec")
    words = ("score", "good.trec", "slow.trec", "--qrels", "truth.qrels", "--seed", "1")
    process = subprocess.Popen([*command, *words], env=environment, stderr=subprocess.PIPE, text=True)
    with open("slow.trec", "w") as slow:  # returns once the command has opened it to read
        slow.write("q00 Q0 d1 1 0.5 tag\n")
        slow.flush()
        # Once may come too early: a signal that arrives just before a read begins does not end it.
        # A second one while the command ends would kill it, so a busy machine gets time to end.
        for _ in range(10):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
                break
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said.strip() == "interrupted"
    assert sorted(path.name for path in folder.iterdir()) == [
        "bad.trec",
        "good.trec",
        "middle.trec",
        "slow.trec",
        "truth.qrels",
    ]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_run_may_come_out_of_another_command(folder: Path, command, environment) -> None:
    typed = f"{' '.join(command)} score piped=<(cat good.trec) --qrels truth.qrels -m MRR -o results"
    done = subprocess.run(["bash", "-c", typed], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((folder / "results" / "piped" / "manifest.json").read_text())
    assert list(manifest["inputs"].values()) == [None]


def on_terminal(words: list[str], environment: dict[str, str], stream: str = "stdout") -> str:
    """What a terminal of 80 columns receives on one stream; the other is dropped."""
    reader, writer = pty.openpty()
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: writer}
    process = subprocess.Popen(words, env=environment, **streams)
    os.close(writer)
    received = b""
    while True:
        try:
            received += os.read(reader, 65536)
        except OSError:
            break
        if process.poll() is not None and not received:
            break
    process.wait(timeout=30)
    os.close(reader)
    return received.decode()


@pytest.mark.parametrize(
    ("words", "last"),
    [
        (("places", "score", "--logits", "logits.npy", "--targets", "y.npy", "-o", "results"), "writing the run"),
        (("places", "compare", "a=one", "a=two", "b=two", "b=one"), "comparing"),
        (("accounts", "misfiled", "tree.csv"), "comparing names"),
    ],
)
def test_long_steps_have_a_bar_with_the_remaining_time(words, last, folder: Path, command, environment) -> None:
    rng = np.random.default_rng(0)
    for place in (".", "one", "two"):
        Path(place).mkdir(exist_ok=True)
        np.save(Path(place) / "logits.npy", rng.normal(size=(60, 5)))
        np.save(Path(place) / ("y.npy" if place == "." else "targets.npy"), np.arange(60) % 5)
    Path("tree.csv").write_text("id,parent,name\n1,,Cash\n2,,Taxes\n11,1,Petty cash\n21,2,Income tax\n22,2,Sales tax\n")
    wide = environment | {"TERM": "xterm-256color", "COLUMNS": "160"}
    shown = on_terminal([*command, *words], wide, "stderr")
    # Steps that end before the bar is drawn again are not seen; the last one is always drawn.
    assert last in shown
    assert "remaining" in shown


def test_colours_are_for_terminals_that_want_them(folder: Path, command, environment) -> None:
    words = [*command, "ls", "checks"]
    there = environment | {"TERM": "xterm-256color", "COLUMNS": "80"}
    assert "\x1b[1m" in on_terminal(words, there)
    assert "\x1b" not in on_terminal(words, there | {"NO_COLOR": "1"})
    assert "\x1b" not in subprocess.run(words, env=there, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_metrics(folder: Path, command, environment) -> None:
    script = folder / "eq"
    script.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
    script.chmod(0o755)
    typed = (
        "source <(eq completion bash) && complete -p eq"
        " && COMP_WORDS=(eq score -m nD) COMP_CWORD=3 && _eq_completion eq && echo ${COMPREPLY[@]}"
    )
    there = environment | {"PATH": f"{folder}:{environment['PATH']}"}
    done = subprocess.run(["bash", "-c", typed], env=there, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "_eq_completion eq" in done.stdout
    assert "nDCG@10" in done.stdout.split()


def test_an_interrupt_during_the_first_imports_ends_with_130(environment) -> None:
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
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "interrupted\n"


@pytest.mark.parametrize(
    ("command", "given", "threads"),
    [("fair", {}, "1"), ("fair", {"OMP_NUM_THREADS": "3"}, "None"), ("compare", {}, "None")],
)
def test_commands_with_small_products_use_one_thread_unless_told_otherwise(
    environment, command: str, given: dict[str, str], threads: str
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
    done = subprocess.run(
        [sys.executable, "-c", code], env={**clean, **given}, capture_output=True, text=True, check=True
    )
    assert done.stderr == threads
