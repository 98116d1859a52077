"""Stores by spec, and errors of invalid specs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from equipoise.errors import MissingExtraError, ParameterError, StoreError, UnknownNameError
from equipoise.models.stores import open_store
from equipoise.types import install_command


def test_unknown_stores_raise_errors_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as error:
        open_store("pgvektor:postgresql://host/db", dims=2)
    assert error.value.hint == "did you mean pgvector?"


@pytest.mark.parametrize(
    ("spec", "module", "extra"),
    [
        ("faiss", "faiss", "faiss"),
        ("chroma:folder", "chromadb", "chroma"),
        ("pgvector:postgresql://127.0.0.1:1/db", "psycopg", "pgvector"),
        ("qdrant:http://127.0.0.1:1", "qdrant_client", "qdrant"),
    ],
)
def test_missing_packages_raise_missing_extra_error_with_the_command(
    spec: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in list(sys.modules):
        if name.partition(".")[0] == module:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as error:
        open_store(spec, dims=2)
    assert error.value.hint == install_command(extra)
    assert error.value.exit_code == 4


@pytest.mark.parametrize(
    ("spec", "settings", "fragment"),
    [
        ("memory", {}, "starts empty and needs its dimensions"),
        ("memory:x", {"dims": 2}, "takes nothing after the colon"),
        ("memory", {"dims": 0}, "dims is 0"),
        ("memory", {"dims": 2, "geometry": "poincare"}, "have no poincare geometry"),
        ("memory", {"dims": 2, "collection": "a\nb"}, "cannot name a collection"),
        ("memory", {"dims": 2, "index": "hnsw"}, "the memory store has no option 'index'"),
        ("chroma", {"dims": 2}, "needs to know where it is"),
        ("chroma:x", {"dims": 2, "collection": "a b"}, "cannot name a collection of a chroma store"),
        ("pgvector:", {"dims": 2}, "needs to know where it is"),
        ("pgvector:host=localhost", {"dims": 2}, "begins with postgresql://"),
        ("qdrant:localhost", {"dims": 2}, "is not the address of a Qdrant server"),
        ("qdrant:http://127.0.0.1:1", {"dims": 2, "timeout": 0}, "timeout is 0"),
        ("redis:localhost:6379", {"dims": 2}, "is not the address of a Redis server"),
        ("redis://127.0.0.1:1", {"dims": 2, "geometry": "dot"}, "have no dot geometry"),
    ],
)
def test_invalid_specs_raise_parameter_error(spec: str, settings: dict[str, Any], fragment: str) -> None:
    with pytest.raises(ParameterError, match=fragment):
        open_store(spec, **settings)


def test_unknown_indexes_raise_errors_with_a_suggestion() -> None:
    for spec, options, suggestion in (
        ("faiss:hnws", {}, "hnsw"),
        ("faiss:flatt", {}, "flat"),
        ("duckdb::memory:", {"index": "hnws"}, "hnsw"),
    ):
        with pytest.raises(UnknownNameError) as error:
            open_store(spec, dims=2, **options)
        assert error.value.hint == f"did you mean {suggestion}?"


def test_unknown_options_raise_errors_with_a_suggestion() -> None:
    with pytest.raises(ParameterError) as error:
        open_store("faiss:hnsw", dims=2, ef_serch=5)
    assert error.value.hint == "did you mean ef_search?"


def test_only_exact_stores_are_marked_exact() -> None:
    assert open_store("memory", dims=2).exact
    pytest.importorskip("faiss")
    assert open_store("faiss", dims=2).exact
    assert not open_store("faiss:hnsw", dims=2).exact


@pytest.mark.engines("qdrant_client")
def test_unreachable_qdrant_servers_raise_store_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("qdrant_client")
    monkeypatch.delenv("QDRANT_API_KEY", raising=False)
    with pytest.raises(StoreError, match=r"http://127\.0\.0\.1:9"):
        open_store("qdrant:http://127.0.0.1:9", dims=2, timeout=3)


@pytest.mark.engines("redis")
def test_errors_of_unreachable_redis_servers_hide_the_password() -> None:
    with pytest.raises(StoreError, match=r"redis://me@127\.0\.0\.1:9") as error:
        open_store("redis://me:hunter2@127.0.0.1:9/0", dims=2, timeout=3)
    assert "hunter2" not in str(error.value)


@pytest.mark.engines("chromadb")
def test_folders_that_cannot_be_created_raise_store_error(tmp_path: Path) -> None:
    pytest.importorskip("chromadb")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError):
        open_store(f"chroma:{tmp_path / 'file'}", dims=2)
