"""Devices, engines and models of a command: warnings and errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from equipoise.models.cache import VectorCache
from fair_sample import document, pairs
from toy_ontology import obo

Run = Callable[..., Result]
BUILD = ("phenotypes", "index", "build", "--ontology", "toy.obo", "--index-dir", "indexes")


@pytest.fixture
def unused_address() -> str:
    """An address that refuses connections."""
    return "127.0.0.1:1"


@pytest.fixture
def unwritable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache that cannot be written, as on a full disk."""
    (folder / "full").write_text("a file where the folder should be")
    monkeypatch.setenv("EQUIPOISE_CACHE", str(folder / "full"))
    yield
    cache = VectorCache.default()
    assert cache is not None
    cache.close()


@pytest.mark.usefixtures("unwritable")
def test_vectors_that_cannot_be_cached_are_a_warning(eq: Run, folder: Path) -> None:
    obo(folder / "toy.obo")
    result = eq(*BUILD, "--model-name", "py:cluster_cells.Plain,identity=plain")
    assert result.exit_code == 0, result.output
    (warning,) = (line for line in result.stderr.splitlines() if line.startswith("warning: "))
    assert "vectors.sqlite" in warning


def test_a_device_with_a_cluster_is_an_error_before_connecting(eq: Run, folder: Path, unused_address: str) -> None:
    (folder / "tree.csv").write_text("id,parent\na,\nb,a\n")
    arguments = ["accounts", "evaluate", "--tree", "tree.csv", "--device", "cpu"]
    result = eq(*arguments, "--engine", "ray", "--address", unused_address)
    assert result.exit_code == 2
    assert "error[E310]" in result.stderr
    assert "--device cpu" in result.stderr


def test_equal_errors_of_several_models_are_reported_once(eq: Run, folder: Path) -> None:
    (folder / "document.md").write_text(document())
    (folder / "fixture.json").write_text(json.dumps(pairs(document())))
    (folder / "missing_import.py").write_text("import no_such_package\n")
    arguments = ["fair", "compare", "--doc", "document.md", "--qa", "fixture.json", "--tokenizer", "words"]
    arguments += ["--chunk-sizes", "16", "--overlaps", "0", "--top-ks", "1", "--models"]
    models = ["hash", "py:missing_import.one,dim=2", "py:missing_import.one,dim=3"]
    result = eq(*arguments, *models)
    assert result.stderr.count("no_such_package") == 1, result.stderr
    assert f"{models[1]}, {models[2]}: error[" in result.stderr
    json_result = eq(*arguments, *models, "--json")
    assert [json.loads(line)["error"]["model"] for line in json_result.stderr.splitlines() if "{" in line] == models[1:]
