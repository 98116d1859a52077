"""Model specs in untrusted files: nothing is imported, and no key is sent."""

from __future__ import annotations

import json
import pickle
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import embedding_server as server
from equipoise.domains.phenotypes.index.build import build_index
from equipoise.domains.phenotypes.ontology import load_ontology
from equipoise.models.embedder import embedder
from equipoise.models.vector_cache import VectorCache

OBO = """format-version: 1.2
ontology: signs

[Term]
id: T:01
name: Sign

[Term]
id: T:02
name: Small head
is_a: T:01
"""
MALICIOUS_MODULE = """
from pathlib import Path
Path("imported").touch()
import numpy as np
class Model:
    def encode(self, texts):
        return np.ones((len(texts), 4))
"""
CODE = "py:evil.Model"
RUN = ("phenotypes", "extraction", "run", "corpus", "--ontology", "signs.obo", "--no-bootstrap-ci")


@pytest.fixture(autouse=True)
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI-K7MDENG")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delitem(sys.modules, "evil", raising=False)
    (folder / "signs.obo").write_text(OBO)
    (folder / "evil.py").write_text(MALICIOUS_MODULE)
    annotations = folder / "corpus" / "annotations"
    annotations.mkdir(parents=True)
    for name, text in (("a", "A small head."), ("b", "Has a small head today.")):
        gold = [{"hpo_id": "T:02", "assertion_status": "affirmed"}]
        content = {"doc_id": name, "full_text": text, "annotations": gold, "language": "en"}
        (annotations / f"{name}.json").write_text(json.dumps(content))


@pytest.fixture
def tuned(eq, folder: Path) -> Any:
    """Return a function that changes the model entry of a stored tuning."""
    arguments = ("--ontology", "signs.obo", "--model", "tfidf:", "--n-trials", "2", "--n-folds", "1", "-o", "tuned")
    result = eq("phenotypes", "extraction", "tune", "corpus", *arguments)
    assert result.exit_code == 0, result.stderr
    file = folder / "tuned" / "extraction_tuning.json"
    content = json.loads(file.read_text())

    def write(**changes: Any) -> None:
        content["models"][0] |= changes
        file.write_text(json.dumps(content))

    return write


def error_code(result: Any) -> str:
    return str(json.loads(result.stderr.splitlines()[-1])["error"]["code"])


@pytest.mark.parametrize("spec", [CODE, f"sum:tfidf:+{CODE}"])
def test_a_stored_tuning_imports_no_code(eq, tuned, spec: str) -> None:
    tuned(model=spec)
    result = eq(*RUN, "--tuned-parameters", "tuned", "--json")
    assert (result.exit_code, error_code(result)) == (2, "E320")
    assert not Path("imported").exists()


@pytest.mark.parametrize("arguments", [("--model", CODE), ("--trust",)])
def test_a_stored_tuning_imports_code_with_the_consent_of_the_user(eq, tuned, arguments: tuple[str, ...]) -> None:
    tuned(model=CODE)
    result = eq(*RUN, "--tuned-parameters", "tuned", *arguments)
    assert result.exit_code == 0, result.stderr
    assert Path("imported").exists()


@pytest.mark.parametrize("options", [(), ("--trust",)])
def test_a_stored_tuning_cannot_select_the_key_variable(eq, tuned, options: tuple[str, ...]) -> None:
    with server.serving() as service:
        tuned(model=f"openai:m,base_url={service.url},key_env=AWS_SECRET_ACCESS_KEY")
        result = eq(*RUN, "--tuned-parameters", "tuned", "--json", *options)
        assert (result.exit_code, error_code(result)) == (2, "E320")
        assert not service.requests


def test_a_stored_tuning_sets_parameters_only(eq, tuned, folder: Path) -> None:
    tuned(best={"num_results": 1, "chunk_threshold": 0.1, "index_dir": "other_folder", "threads": 10**9})
    result = eq(*RUN, "--tuned-parameters", "tuned", "--json")
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    "change",
    [{"best": None}, {"best": {"num_results": "x"}}, {"tuning": []}, {"tuning": None}, {"model": 3}],
    ids=str,
)
def test_an_invalid_tuning_is_an_error(eq, tuned, change: dict[str, Any]) -> None:
    tuned(**change)
    result = eq(*RUN, "--tuned-parameters", "tuned", "--json")
    assert (result.exit_code, error_code(result)) == (2, "E204")


def test_a_tuning_without_models_is_an_error(eq, tuned, folder: Path) -> None:
    file = folder / "tuned" / "extraction_tuning.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"models": []}))
    result = eq(*RUN, "--tuned-parameters", "tuned", "--json")
    assert (result.exit_code, error_code(result)) == (2, "E204")


def test_reading_a_run_directory_does_not_load_its_model(eq, folder: Path) -> None:
    eq("score", "good.trec", "--qrels", "truth.qrels", "-m", "MRR", "-o", "runs")
    (run,) = [path.parent for path in (folder / "runs").rglob("manifest.json")]
    for name in ("manifest.json", "result.json"):
        content = json.loads((run / name).read_text())
        content["system"] = CODE
        if name == "manifest.json":
            content["parameters"] = {"model": CODE, "store": "qdrant:http://127.0.0.1:1", "reranker": CODE}
            content["command"] = ["eq", "embed", "--model", CODE]
        (run / name).write_text(json.dumps(content))
    for arguments in (("report", "runs", "-o", "page.html"), ("export", str(run)), ("gate", str(run), "MRR>=0")):
        eq(*arguments)
    assert not Path("imported").exists()


def test_reading_an_index_does_not_load_its_model(eq, folder: Path) -> None:
    ontology = load_ontology("signs.obo")
    built = build_index(ontology, "hash,dim=8", folder / "indexes", multi_vector=True, cache=False)
    meta = built.folder / "meta.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"model_spec": CODE, "model_name": CODE}))
    arguments = ("--ontology", "signs.obo", "--index-dir", "indexes")
    assert CODE in eq("phenotypes", "index", "list", "--index-dir", "indexes").stdout
    eq("phenotypes", "query", "head", "--model-name", "hash,dim=8", "--multi-vector", *arguments)
    assert not Path("imported").exists()


def test_reading_a_cache_does_not_load_its_models(eq, folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", str(folder / "cache"))
    with VectorCache() as cache:
        cache.put_many("identity", "any", ["a"], embedder("hash", dim=4, cache=False).embed(["a"]))
    with closing(sqlite3.connect(folder / "cache" / "vectors.sqlite")) as db, db:
        db.execute("INSERT INTO names VALUES ('identity', ?)", (CODE,))
        db.execute("UPDATE spaces SET identity = identity")
    assert eq("cache").exit_code in (0, 2)
    eq("cache", "size")
    assert not Path("imported").exists()


def test_pickled_vectors_are_not_loaded(eq, folder: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (Path("imported"),))

    (folder / "vectors.npy").write_bytes(pickle.dumps(Bomb()))
    (folder / "vectors.ids").write_text("a\n")
    (folder / "texts.txt").write_text("a\n")
    result = eq("embed", "texts.txt", "--model", "vectors:vectors.npy", "-o", "out.npz", "--no-cache", "--json")
    assert result.exit_code == 2
    assert not Path("imported").exists()
