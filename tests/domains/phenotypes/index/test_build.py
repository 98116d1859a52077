"""The index on disk: atomic builds, checks of ontology and model, and no repeated embedding."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.domains.phenotypes.index.build import (
    build_index,
    build_index_with_report,
    default_index_folder,
    index_folder,
    missing_indexes,
    open_index,
    open_indexes,
)
from equipoise.domains.phenotypes.index.files import META, VECTORS, find_indexes, read_metadata, term_texts
from equipoise.domains.phenotypes.ontology import Ontology
from equipoise.errors import ParameterError, PartialError, StoreError
from equipoise.models.embedder import Embedder, embedder
from equipoise.models.encoder import Role

HASH = "hash,dim=32"


class CountingModel:
    """A model that records the embedded texts and can fail."""

    def __init__(self) -> None:
        self.embedded: list[str] = []
        self.fails = False

    def encode(self, texts: list[str]) -> np.ndarray:
        if self.fails:
            raise RuntimeError("out of memory")
        self.embedded += texts
        return np.array([[len(text), text.count("e") + 1.0, ord(text[0])] for text in texts])


@pytest.fixture
def counting() -> CountingModel:
    return CountingModel()


@pytest.fixture
def model(counting: CountingModel) -> Embedder:
    return embedder(counting, cache=False, identity="counting 1")


@pytest.mark.parametrize("multi_vector", [True, False])
def test_the_stored_vectors_are_those_of_the_texts(ontology: Ontology, tmp_path: Path, multi_vector: bool) -> None:
    built = build_index(ontology, HASH, tmp_path, multi_vector=multi_vector)
    opened = open_index(tmp_path, ontology, HASH, multi_vector)
    expected = embedder(HASH).embed(term_texts(ontology, multi_vector).texts, Role.DOCUMENT)
    assert np.array_equal(opened.vectors, expected)
    assert np.array_equal(built.vectors, expected)
    assert isinstance(opened.vectors, np.memmap)


def test_both_kinds_of_index_have_separate_folders(ontology: Ontology, tmp_path: Path) -> None:
    folders = {
        build_index(ontology, HASH, tmp_path, multi_vector=multi_vector).folder.name for multi_vector in (True, False)
    }
    assert folders == {"toy_hash_dim_32", "toy_hash_dim_32_multi"}
    assert [meta.kind for _, meta in find_indexes(tmp_path)] == ["single-vector", "multi-vector"]


def test_an_unchanged_index_is_not_embedded_and_not_written_again(
    ontology: Ontology, tmp_path: Path, model: Embedder, counting: CountingModel
) -> None:
    first = build_index_with_report(ontology, model, tmp_path, multi_vector=True)
    assert first.report.embedded == len(counting.embedded) == len(term_texts(ontology))
    modified_before = (first.index.folder / META).stat().st_mtime_ns
    repeated = build_index_with_report(ontology, model, tmp_path, multi_vector=True)
    assert (repeated.report.reused, repeated.report.embedded) == (first.report.texts, 0)
    assert len(counting.embedded) == first.report.embedded
    assert (first.index.folder / META).stat().st_mtime_ns == modified_before


def test_a_new_release_embeds_only_new_and_changed_texts(
    ontology: Ontology, next_release: Ontology, tmp_path: Path, model: Embedder, counting: CountingModel
) -> None:
    build_index(ontology, model, tmp_path, multi_vector=True)
    counting.embedded.clear()
    built = build_index_with_report(next_release, model, tmp_path, multi_vector=True)
    assert sorted(counting.embedded) == ["Sneezing", "Tussis"]
    assert built.report.embedded == 2
    assert built.report.reused == built.report.texts - 2
    expected = model.embed(term_texts(next_release).texts, Role.DOCUMENT)
    assert np.array_equal(built.index.vectors, expected)
    assert read_metadata(built.index.folder).release == "2025-06-01"


def test_a_release_with_the_same_texts_is_stored_and_embeds_nothing(
    ontology: Ontology, tmp_path: Path, model: Embedder, counting: CountingModel
) -> None:
    build_index(ontology, model, tmp_path, multi_vector=True)
    counting.embedded.clear()
    later = replace(ontology, release="2026-01-01")
    built = build_index_with_report(later, model, tmp_path, multi_vector=True)
    assert counting.embedded == []
    assert read_metadata(built.index.folder).release == "2026-01-01"


def test_removed_texts_cause_no_embedding_of_other_texts(
    ontology: Ontology, next_release: Ontology, tmp_path: Path, model: Embedder, counting: CountingModel
) -> None:
    merged = tmp_path / "all"
    build_index(next_release, model, merged, multi_vector=False)
    counting.embedded.clear()
    built = build_index_with_report(ontology, model, merged, multi_vector=False)
    assert counting.embedded == ["Cough | Coughing"]
    assert built.report.reused == 5


def test_an_index_of_another_release_is_an_error(ontology: Ontology, next_release: Ontology, tmp_path: Path) -> None:
    build_index(ontology, HASH, tmp_path, multi_vector=True)
    with pytest.raises(StoreError, match=r"2025-01-01.*2025-06-01"):
        open_index(tmp_path, next_release, HASH, True)


def test_an_index_of_another_model_with_the_same_name_is_an_error(
    ontology: Ontology, tmp_path: Path, counting: CountingModel
) -> None:
    build_index(ontology, embedder(counting, cache=False, identity="version 1"), tmp_path, multi_vector=True)
    other = embedder(counting, cache=False, identity="version 1")
    assert len(open_index(tmp_path, ontology, other, True)) == len(term_texts(ontology))
    path = next(iter(find_indexes(tmp_path)))[0]
    metadata = json.loads((path / META).read_text())
    (path / META).write_text(json.dumps({**metadata, "model": "0" * 64}))
    with pytest.raises(StoreError):
        open_index(tmp_path, ontology, other, True)


def test_a_missing_index_is_an_error_and_listed(ontology: Ontology, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="hash,dim=32"):
        open_index(tmp_path, ontology, HASH, True)
    missing = missing_indexes(tmp_path, ontology, f"sum:{HASH}+tfidf:", True)
    assert [model.card.spec for model in missing] == [HASH]
    build_index(ontology, f"sum:{HASH}+tfidf:", tmp_path, multi_vector=True)
    assert missing_indexes(tmp_path, ontology, f"sum:{HASH}+tfidf:", True) == []
    assert [index.meta.model_spec for index in open_indexes(tmp_path, ontology, f"rrf:{HASH}+bm25:", True)] == [HASH]
    assert open_indexes(tmp_path, ontology, "bm25:", True) == ()


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        (VECTORS, _truncate),
        (VECTORS, _flip),
        (VECTORS, Path.unlink),
        ("keys.npy", _truncate),
        ("keys.npy", Path.unlink),
        ("first.npy", _truncate),
        ("first.npy", lambda path: path.write_bytes(b"nonsense")),
        ("first.npy", lambda path: np.save(path, np.full(15, 99))),
        ("first.npy", lambda path: np.save(path, np.arange(3))),
        (META, _truncate),
        (META, Path.unlink),
        (META, lambda path: path.write_text("[]")),
        (META, lambda path: path.write_text('{"format": 2}')),
        (META, lambda path: path.write_text(path.read_text().replace('"dims": 32', '"dims": "x"'))),
        (META, lambda path: path.write_text(path.read_text().replace('"dims": 32', '"dims": 31'))),
        (META, lambda path: path.write_text(path.read_text().replace('"format": 2', '"format": 9'))),
    ],
)
def test_a_damaged_index_is_an_error_and_can_be_built_again(
    ontology: Ontology, tmp_path: Path, file: str, damage: object
) -> None:
    folder = build_index(ontology, HASH, tmp_path, multi_vector=True).folder
    damage(folder / file)  # type: ignore[operator]
    with pytest.raises(StoreError) as error:
        open_index(tmp_path, ontology, HASH, True)
    assert "build it again" in error.value.hint
    assert len(build_index(ontology, HASH, tmp_path, multi_vector=True)) == len(term_texts(ontology))
    assert len(open_index(tmp_path, ontology, HASH, True)) == len(term_texts(ontology))


@pytest.mark.parametrize("file", ["keys.npy", "first.npy"])
@pytest.mark.parametrize("content", [b"nonsense", b""])
def test_the_error_for_an_invalid_array_file_has_the_file_name(
    ontology: Ontology, tmp_path: Path, file: str, content: bytes
) -> None:
    folder = build_index(ontology, HASH, tmp_path, multi_vector=True).folder
    (folder / file).write_bytes(content)
    with pytest.raises(StoreError, match=f"{file}"):
        open_index(tmp_path, ontology, HASH, True)


def test_a_file_in_the_place_of_the_folder_is_an_error(ontology: Ontology, tmp_path: Path) -> None:
    (tmp_path / "indexes").write_text("")
    for function in (lambda folder: build_index(ontology, HASH, folder, multi_vector=True), find_indexes):
        with pytest.raises(StoreError, match="indexes"):
            function(tmp_path / "indexes")


def test_a_failed_build_keeps_the_old_index_and_leaves_no_files(
    ontology: Ontology, next_release: Ontology, tmp_path: Path, model: Embedder, counting: CountingModel
) -> None:
    folder = tmp_path / "indexes"
    build_index(ontology, model, folder, multi_vector=True)
    counting.fails = True
    with pytest.raises(Exception, match="out of memory"):
        build_index(next_release, model, folder, multi_vector=True)
    assert len(list(folder.iterdir())) == 1
    assert open_index(folder, ontology, model, True).meta.release == "2025-01-01"


def test_a_full_disk_keeps_the_old_index(
    ontology: Ontology, next_release: Ontology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "indexes"
    build_index(ontology, HASH, folder, multi_vector=True)

    def write_half(path: Path, array: np.ndarray) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("equipoise.domains.phenotypes.index.files.write_array", write_half)
    with pytest.raises(PartialError, match="toy_hash_dim_32_multi"):
        build_index(next_release, HASH, folder, multi_vector=True)
    monkeypatch.undo()
    assert len(list(folder.iterdir())) == 1
    assert open_index(folder, ontology, HASH, True).meta.release == "2025-01-01"


def test_lexical_systems_have_no_index(ontology: Ontology, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="bm25:"):
        build_index(ontology, "bm25:", tmp_path, multi_vector=True)
    with pytest.raises(ParameterError, match="2 dense"):
        build_index(ontology, "sum:hash+hash,dim=8", tmp_path, multi_vector=True)


def test_folders_are_named_after_ontology_model_and_kind(ontology: Ontology, tmp_path: Path) -> None:
    name = index_folder(tmp_path, ontology, "st:FremyCompany/BioLORD-2023-M", True).name
    assert name == "toy_st_fremycompany_biolord_2023_m_multi"
    names = [index_folder(tmp_path, ontology, "x/" * 80 + suffix, False).name for suffix in "ab"]
    assert names[0] != names[1]
    assert max(map(len, names)) < 100


def test_the_default_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_index_folder() == tmp_path / "equipoise" / "indexes"


def one_block(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """The first block, and then an interruption."""
    yield 0, function(items[0])
    raise KeyboardInterrupt


def test_an_interrupted_remote_build_continues_with_the_returned_blocks(
    ontology: Ontology, tmp_path: Path, model: Embedder, counting: CountingModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model.encoder, "block_texts", 6)
    with pytest.raises(KeyboardInterrupt):
        build_index_with_report(ontology, model, tmp_path / "remote", multi_vector=True, executor=one_block)
    assert find_indexes(tmp_path / "remote") == []
    built = build_index_with_report(
        ontology,
        model,
        tmp_path / "remote",
        multi_vector=True,
        executor=lambda function, items: enumerate(map(function, items)),
    )
    assert (built.report.from_cache, built.report.embedded) == (6, 11)
    assert [path.name for path in (tmp_path / "remote").iterdir()] == [built.index.folder.name]
    local_folder = build_index(ontology, model, tmp_path / "local", multi_vector=True).folder
    for file in local_folder.iterdir():
        assert file.read_bytes() == (built.index.folder / file.name).read_bytes()


def test_a_model_without_identity_leaves_no_partial_work(ontology: Ontology, tmp_path: Path) -> None:
    anonymous_model = embedder(CountingModel(), cache=False)
    with pytest.raises(KeyboardInterrupt):
        build_index_with_report(ontology, anonymous_model, tmp_path / "remote", multi_vector=True, executor=one_block)
    assert not (tmp_path / "remote").exists()
