"""``eq fair compare --engine``: what is told where there is no engine of that kind."""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from equipoise.types import install_command
from fair_sample import document, pairs

Run = Callable[..., Result]
GRID = ["--chunk-sizes", "16", "--overlaps", "0", "--top-ks", "1", "2", "--tokenizer", "words"]


@pytest.fixture
def fair(eq: Run, folder: Path) -> Run:
    """The comparison of two models."""
    (folder / "document.md").write_text(document())
    (folder / "fixture.json").write_text(json.dumps(pairs(document())))
    words = ["fair", "compare", "--doc", "document.md", "--qa", "fixture.json", "--models", "bm25:", "hash"]
    return lambda *more: eq(*words, *GRID, *more)


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return "{}:{}".format(*server.getsockname())


def test_the_local_engine_is_the_default(fair: Run) -> None:
    local, default = (without_throughput(fair(*words, "-q").stdout) for words in (("--engine", "local"), ()))
    assert local == default


def without_throughput(table: str) -> str:
    """The table without the column of measured chunks per second, which is before the size of the index."""
    return re.sub(r"\s+[\d,.]+(?=\s+[\d.]+ kB)", "", table)


@pytest.mark.engines("ray")
@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_no_cluster_at_the_address_is_a_sentence_and_exit_code_4(fair: Run, nobody: str, scheme: str) -> None:
    pytest.importorskip("ray")
    done = fair("--engine", "ray", "--address", f"{scheme}{nobody}")
    assert done.exit_code == 4
    assert f"{scheme}{nobody}" in done.stderr
    assert "ray start --head" in done.stderr
    assert done.stdout == ""


def test_a_missing_extra_is_a_sentence_and_exit_code_4(fair: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = fair("--engine", "ray")
    assert done.exit_code == 4
    assert "this needs the package ray" in done.stderr
    assert install_command("ray") in done.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--engine", "rey"], "E300"),
        (["--address", "head:6379"], "E310"),
    ],
)
def test_a_mistake_is_a_sentence_and_exit_code_2(fair: Run, words: list[str], code: str) -> None:
    done = fair(*words)
    assert done.exit_code == 2
    assert f"error[{code}]" in done.stderr


@pytest.mark.engines("ray")
def test_an_address_that_is_none_is_bad_input(fair: Run) -> None:
    pytest.importorskip("ray")
    done = fair("--engine", "ray", "--address", "head")
    assert done.exit_code == 2
    assert "'head'" in done.stderr
