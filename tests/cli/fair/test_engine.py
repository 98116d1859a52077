"""``eq fair compare --engine`` without an engine of that kind."""

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
    arguments = ["fair", "compare", "--doc", "document.md", "--qa", "fixture.json", "--models", "bm25:", "hash"]
    return lambda *options: eq(*arguments, *GRID, *options)


@pytest.fixture
def unused_address() -> str:
    """An address without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return "{}:{}".format(*server.getsockname())


def test_the_local_engine_is_the_default(fair: Run) -> None:
    local, default = (without_throughput(fair(*options, "-q").stdout) for options in (("--engine", "local"), ()))
    assert local == default


def without_throughput(table: str) -> str:
    """The table without the column of measured chunks per second, which is before the size of the index."""
    return re.sub(r"\s+[\d,.]+(?=\s+[\d.]+ kB)", "", table)


@pytest.mark.engines("ray")
@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_a_missing_cluster_is_an_error_with_exit_status_4(fair: Run, unused_address: str, scheme: str) -> None:
    pytest.importorskip("ray")
    result = fair("--engine", "ray", "--address", f"{scheme}{unused_address}")
    assert result.exit_code == 4
    assert f"{scheme}{unused_address}" in result.stderr
    assert "ray start --head" in result.stderr
    assert result.stdout == ""


def test_a_missing_extra_is_an_error_with_exit_status_4(fair: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    result = fair("--engine", "ray")
    assert result.exit_code == 4
    assert "this needs the package ray" in result.stderr
    assert install_command("ray") in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--engine", "rey"], "E300"),
        (["--address", "head:6379"], "E310"),
    ],
)
def test_invalid_options_are_errors_with_exit_status_2(fair: Run, arguments: list[str], code: str) -> None:
    result = fair(*arguments)
    assert result.exit_code == 2
    assert f"error[{code}]" in result.stderr


@pytest.mark.engines("ray")
def test_an_invalid_address_is_an_error_with_exit_status_2(fair: Run) -> None:
    pytest.importorskip("ray")
    result = fair("--engine", "ray", "--address", "head")
    assert result.exit_code == 2
    assert "'head'" in result.stderr
