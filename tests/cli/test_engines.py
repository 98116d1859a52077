"""Where the work of a command runs, and what is said of it meanwhile."""

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
def nobody() -> str:
    """An address where nobody can be: whoever knocks there is told so."""
    return "127.0.0.1:1"


@pytest.fixture
def unwritable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache that can keep nothing, as on a full disk."""
    (folder / "full").write_text("a file where the folder should be")
    monkeypatch.setenv("EQUIPOISE_CACHE", str(folder / "full"))
    yield
    cache = VectorCache.default()
    assert cache is not None
    cache.close()


@pytest.mark.usefixtures("unwritable")
def test_vectors_that_could_not_be_kept_are_a_warning(eq: Run, folder: Path) -> None:
    obo(folder / "toy.obo")
    done = eq(*BUILD, "--model-name", "py:cluster_cells.Plain,identity=plain")
    assert done.exit_code == 0, done.output
    (warning,) = (line for line in done.stderr.splitlines() if line.startswith("warning: "))
    assert "vectors.sqlite" in warning


def test_a_device_beside_a_cluster_is_refused_before_anybody_is_looked_for(eq: Run, folder: Path, nobody: str) -> None:
    (folder / "tree.csv").write_text("id,parent\na,\nb,a\n")
    words = ["accounts", "evaluate", "--tree", "tree.csv", "--device", "cpu"]
    done = eq(*words, "--engine", "ray", "--address", nobody)
    assert done.exit_code == 2
    assert "error[E310]" in done.stderr
    assert "--device cpu" in done.stderr


def test_equal_errors_of_several_models_are_one_sentence(eq: Run, folder: Path) -> None:
    (folder / "document.md").write_text(document())
    (folder / "fixture.json").write_text(json.dumps(pairs(document())))
    (folder / "both_lack.py").write_text("import no_such_package\n")
    words = ["fair", "compare", "--doc", "document.md", "--qa", "fixture.json", "--tokenizer", "words"]
    words += ["--chunk-sizes", "16", "--overlaps", "0", "--top-ks", "1", "--models"]
    named = ["hash", "py:both_lack.one,dim=2", "py:both_lack.one,dim=3"]
    done = eq(*words, *named)
    assert done.stderr.count("no_such_package") == 1, done.stderr
    assert f"failed for the same reason: {named[1]}, {named[2]}" in done.stderr
    as_data = eq(*words, *named, "--json")
    assert [json.loads(line)["error"]["model"] for line in as_data.stderr.splitlines() if "{" in line] == named[1:]
