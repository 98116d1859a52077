"""The vector cache returns stored vectors unchanged and never wrong ones."""

from __future__ import annotations

import os
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import NotFiniteError, ParameterError, ShapeError
from equipoise.models.vector_cache import VectorCache, parse_bytes
from equipoise.models.vector_cache_storage import TOKEN_COUNTS, block_nbytes, cache_keys, pack_block, unpack_block

MODEL, ROLE = "onnx:minilm#53aa5117", "document|"
ANY_TEXT = st.text(st.characters(codec=None))


def random_vectors(count: int, dims: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, dims)).astype(np.float32)


def numbered_texts(count: int) -> list[str]:
    return [f"text {number}" for number in range(count)]


@pytest.fixture
def cache(tmp_path: Path) -> VectorCache:
    vector_cache = VectorCache(tmp_path / "vectors.sqlite")
    yield vector_cache
    vector_cache.close()


def change_file(cache: VectorCache, statement: str, *values: object) -> None:
    """Change the database file directly."""
    cache.close()
    with sqlite3.connect(cache.path) as db:
        assert db.execute(statement, values).rowcount > 0
    db.close()


def test_stored_vectors_are_returned_unchanged(cache: VectorCache) -> None:
    texts, vectors = numbered_texts(5000), random_vectors(5000, 384)
    for start in range(0, 5000, 700):
        cache.put_many(MODEL, ROLE, texts[start : start + 700], vectors[start : start + 700])
    cache.close()
    reopened = VectorCache(cache.path)
    result = reopened.lookup(MODEL, ROLE, texts, 384)
    assert result.positions.tolist() == list(range(5000))
    assert result.vectors.tobytes() == vectors.tobytes()
    reopened.close()


def test_texts_are_found_in_any_order_and_among_unknown_texts(cache: VectorCache) -> None:
    texts, vectors = numbered_texts(300), random_vectors(300)
    cache.put_many(MODEL, ROLE, texts, vectors)
    requested_texts = ["unknown", texts[7], texts[299], texts[7], "", texts[0]]
    vectors_by_index = cache.get_many(MODEL, ROLE, requested_texts, 8)
    assert list(vectors_by_index) == [1, 2, 3, 5]
    for index, row in {1: 7, 2: 299, 3: 7, 5: 0}.items():
        assert vectors_by_index[index].tobytes() == vectors[row].tobytes()


@settings(max_examples=20)
@given(st.lists(ANY_TEXT, min_size=1, max_size=30), st.data())
def test_any_texts_including_lone_surrogates_are_stored(texts: list[str], data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        cache = VectorCache(Path(folder) / "v.sqlite")
        expected: dict[str, np.ndarray] = {}
        for seed in range(2):
            stored_texts = data.draw(st.lists(st.sampled_from(texts), min_size=1, max_size=20))
            rows = random_vectors(len(stored_texts), 3, seed)
            cache.put_many(MODEL, ROLE, stored_texts, rows)
            for text, row in zip(stored_texts, rows, strict=True):
                expected.setdefault(text, row)
        vectors_by_index = cache.get_many(MODEL, ROLE, texts)
        assert {index: row.tobytes() for index, row in vectors_by_index.items()} == {
            index: expected[text].tobytes() for index, text in enumerate(texts) if text in expected
        }
        cache.close()


@pytest.mark.parametrize(
    ("identity", "variant", "text"),
    [
        ("other", ROLE, "text 0"),
        (MODEL, "query|", "text 0"),
        (MODEL, ROLE, "text 0 "),
        (MODEL + ROLE, "", "text 0"),
    ],
)
def test_other_models_roles_and_texts_are_not_found(cache, identity: str, variant: str, text: str) -> None:
    cache.put_many(MODEL, ROLE, ["text 0"], random_vectors(1))
    assert cache.get_many(identity, variant, [text], 8) == {}
    assert cache.get_many(MODEL, ROLE, ["text 0"], 8)


def test_keys_depend_on_the_boundary_between_identity_and_variant() -> None:
    assert (cache_keys("ab", "c", ["x"]) != cache_keys("a", "bc", ["x"])).any()


def test_empty_requests_and_writes(cache: VectorCache) -> None:
    assert cache.get_many(MODEL, ROLE, [], 8) == {}
    assert cache.lookup(MODEL, ROLE, numbered_texts(3), 8).vectors.shape == (0, 8)
    cache.put_many(MODEL, ROLE, [], np.empty((0, 8), dtype=np.float32))
    assert cache.size().vectors == 0


def test_the_first_vector_of_a_text_is_kept(cache: VectorCache) -> None:
    first, second = random_vectors(2)
    cache.put_many(MODEL, ROLE, ["a", "a"], np.stack([first, second]))
    cache.put_many(MODEL, ROLE, ["a"], second[None])
    assert cache.get_many(MODEL, ROLE, ["a"], 8)[0].tobytes() == first.tobytes()
    assert cache.size().vectors == 1


def test_invalid_vectors_raise_errors(cache: VectorCache) -> None:
    for value in (np.nan, np.inf):
        with pytest.raises(NotFiniteError):
            cache.put_many(MODEL, ROLE, ["a"], np.array([[1, value]], dtype=np.float32))
    with pytest.raises(ShapeError, match="2 texts"):
        cache.put_many(MODEL, ROLE, ["a", "b"], random_vectors(1))
    with pytest.raises(ParameterError):
        VectorCache(cache.path, max_bytes=-1)


# -- damage --------------------------------------------------------------------------------------------


def flip_bit(offset: int) -> Callable[[bytes], bytes]:
    return lambda body: body[:offset] + bytes([body[offset] ^ 0x40]) + body[offset + 1 :]


@pytest.mark.parametrize("row", [0, 3, 9])
@pytest.mark.parametrize("field", ["digest", "checksum", "vector"])
def test_a_flipped_bit_invalidates_only_its_row(cache: VectorCache, row: int, field: str) -> None:
    texts, vectors = numbered_texts(10), random_vectors(10)
    cache.put_many(MODEL, ROLE, texts, vectors)
    offset = {"digest": 16 * row + 3, "checksum": 160 + 4 * row, "vector": 200 + 32 * row + 30}[field]
    body = pack_block(cache_keys(MODEL, ROLE, texts), vectors)
    change_file(cache, "UPDATE bodies SET body = ?", flip_bit(offset)(body))
    vectors_by_index = cache.get_many(MODEL, ROLE, texts, 8)
    assert sorted(set(range(10)) - set(vectors_by_index)) == [row]
    assert cache.damaged == 1
    cache.put_many(MODEL, ROLE, [texts[row]], vectors[row : row + 1])
    result = cache.lookup(MODEL, ROLE, texts, 8)
    assert result.vectors.tobytes() == vectors.tobytes()
    assert cache.damaged == 1


@pytest.mark.parametrize("length", [0, 1, 100, 519])
def test_truncated_blocks_are_ignored_and_rewritten(cache: VectorCache, length: int) -> None:
    texts, vectors = numbered_texts(10), random_vectors(10)
    cache.put_many(MODEL, ROLE, texts, vectors)
    body = pack_block(cache_keys(MODEL, ROLE, texts), vectors)
    assert len(body) == block_nbytes(10, 8) == 520
    change_file(cache, "UPDATE bodies SET body = ?", body[:length])
    assert cache.get_many(MODEL, ROLE, texts, 8) == {}
    assert cache.damaged == 10
    cache.put_many(MODEL, ROLE, texts, vectors)
    assert cache.lookup(MODEL, ROLE, texts, 8).vectors.tobytes() == vectors.tobytes()


def test_nan_with_a_valid_checksum_is_ignored(cache: VectorCache) -> None:
    texts, vectors = numbered_texts(4), random_vectors(4)
    cache.put_many(MODEL, ROLE, texts, vectors)
    vectors[2, 5] = np.nan
    change_file(cache, "UPDATE bodies SET body = ?", pack_block(cache_keys(MODEL, ROLE, texts), vectors))
    assert sorted(cache.get_many(MODEL, ROLE, texts, 8)) == [0, 1, 3]


def test_invalid_and_missing_bodies_are_ignored(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, numbered_texts(4), random_vectors(4))
    change_file(cache, "UPDATE bodies SET body = 'hello'")
    assert cache.get_many(MODEL, ROLE, numbered_texts(4), 8) == {}
    cache.put_many(MODEL, ROLE, numbered_texts(4), random_vectors(4))
    change_file(cache, "DELETE FROM bodies")
    assert cache.get_many(MODEL, ROLE, numbered_texts(4), 8) == {}
    assert cache.damaged == 8


def test_wrong_index_entries_give_no_vectors(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, numbered_texts(10), random_vectors(10))
    change_file(cache, "UPDATE entries SET slot = slot + 1")
    assert cache.get_many(MODEL, ROLE, numbered_texts(10), 8) == {}
    assert cache.damaged == 10


def test_vectors_of_another_dimension_are_ignored(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, numbered_texts(4), random_vectors(4, 8))
    assert cache.get_many(MODEL, ROLE, numbered_texts(4), 16) == {}
    cache.put_many(MODEL, ROLE, numbered_texts(4), random_vectors(4, 16))
    assert cache.lookup(MODEL, ROLE, numbered_texts(4), 16).vectors.shape == (4, 16)


def test_without_dims_the_most_frequent_dimension_is_used(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, ["other"], random_vectors(1, 4))
    cache.put_many(MODEL, ROLE, numbered_texts(5), random_vectors(5, 8))
    result = cache.lookup(MODEL, ROLE, ["other", *numbered_texts(5)])
    assert result.positions.tolist() == [1, 2, 3, 4, 5]
    assert result.vectors.shape == (5, 8)


@given(st.binary(max_size=200), st.integers(0, 5), st.integers(1, 4))
def test_random_bytes_are_never_valid_vectors(body: bytes, rows: int, dims: int) -> None:
    keys = cache_keys(MODEL, ROLE, numbered_texts(2))
    _, is_valid = unpack_block(body, rows, dims, np.array([0, 1]), keys)
    assert not is_valid.any()


# -- damaged files -------------------------------------------------------------------------------------


def random_bytes(path: Path) -> None:
    path.write_bytes(os.urandom(40_000))


def header_only(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: 16384 * 3])


def holes(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[16384 : len(data)] = os.urandom(len(data) - 16384)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [random_bytes, header_only, truncated, holes])
def test_damaged_files_are_renamed_and_replaced(cache: VectorCache, damage) -> None:
    texts, vectors = numbered_texts(2000), random_vectors(2000, 64)
    cache.put_many(MODEL, ROLE, texts, vectors)
    cache.close()
    damage(cache.path)
    before = cache.path.read_bytes()
    vectors_by_index = cache.get_many(MODEL, ROLE, texts, 64)
    cache.put_many(MODEL, ROLE, texts, vectors)
    assert vectors_by_index == {}
    assert cache.working
    assert cache.lookup(MODEL, ROLE, texts, 64).vectors.tobytes() == vectors.tobytes()
    (renamed,) = cache.path.parent.glob("vectors.sqlite.damaged-*")
    assert renamed.read_bytes() == before
    (issue,) = cache.problems
    assert renamed.name in issue.message


def test_damage_to_an_open_file_is_detected(cache: VectorCache) -> None:
    texts, vectors = numbered_texts(2000), random_vectors(2000, 64)
    cache.put_many(MODEL, ROLE, texts, vectors)
    other = sqlite3.connect(cache.path)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    with open(cache.path, "r+b") as stream:
        stream.seek(100)
        stream.write(os.urandom(cache.path.stat().st_size - 100))
    for start in range(0, 2000, 500):
        for index, row in cache.get_many(MODEL, ROLE, texts[start : start + 500], 64).items():
            assert row.tobytes() == vectors[start + index].tobytes()
    cache.put_many(MODEL, ROLE, texts, vectors)
    assert cache.lookup(MODEL, ROLE, texts, 64).vectors.tobytes() == vectors.tobytes()


def test_databases_of_other_programs_are_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE diary (day TEXT)")
    db.close()
    before = path.read_bytes()
    cache = VectorCache(path)
    cache.put_many(MODEL, ROLE, ["a"], random_vectors(1))
    assert not cache.working
    assert "another program" in cache.problems[0].message
    assert path.read_bytes() == before


def test_files_of_a_later_format_are_not_changed(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, ["a"], random_vectors(1))
    cache.close()
    db = sqlite3.connect(cache.path)
    db.execute("PRAGMA user_version = 2")
    db.close()
    assert cache.get_many(MODEL, ROLE, ["a"], 8) == {}
    assert "format 2" in cache.problems[0].message


def test_folders_that_cannot_be_created_disable_the_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = VectorCache(tmp_path / "file" / "deeper" / "vectors.sqlite")
    for _ in range(3):
        cache.put_many(MODEL, ROLE, ["a"], random_vectors(1))
        assert cache.get_many(MODEL, ROLE, ["a"], 8) == {}
    assert not cache.working
    assert len(cache.problems) == 1
    assert cache.size().vectors == 0
    assert cache.prune() == 0


# -- bounds --------------------------------------------------------------------------------------------


def test_the_size_limit_removes_the_least_recently_used_vectors(tmp_path: Path) -> None:
    now = [1000.0]
    cache = VectorCache(tmp_path / "v.sqlite", max_bytes=3_000_000, clock=lambda: now[0])
    batches = [[f"{batch}:{number}" for number in range(300)] for batch in range(12)]
    for number, batch in enumerate(batches):
        now[0] += 100
        cache.put_many(MODEL, ROLE, batch, random_vectors(300, 384, number))
        now[0] += 100
        assert len(cache.get_many(MODEL, ROLE, batches[0], 384)) == 300
        assert cache.size().bytes <= 3_000_000
    assert cache.path.stat().st_size <= 3_500_000
    n_found = [len(cache.get_many(MODEL, ROLE, batch, 384)) for batch in batches]
    assert n_found[0] == 300
    assert n_found[-1] == 300
    assert n_found[1] == 0
    assert n_found[1:] == sorted(n_found[1:])
    cache.close()


def test_prune_removes_the_oldest_vectors_and_frees_space(tmp_path: Path) -> None:
    now = [0.0]
    cache = VectorCache(tmp_path / "v.sqlite", clock=lambda: now[0])
    for number in range(4):
        now[0] += 1000
        cache.put_many(MODEL, f"variant {number}", numbered_texts(500), random_vectors(500, 256))
    size_before = cache.size()
    assert size_before.vectors == 2000
    assert [space.vectors for space in size_before.spaces] == [500] * 4
    n_dropped = cache.prune(size_before.bytes // 2)
    size_after = cache.size()
    assert n_dropped == 2000 - size_after.vectors > 0
    assert size_after.bytes <= size_before.bytes // 2
    assert cache.path.stat().st_size <= size_before.bytes // 2
    assert {space.variant for space in size_after.spaces} <= {"variant 2", "variant 3"}
    assert cache.prune(0) == size_after.vectors
    assert cache.size().vectors == 0
    assert cache.size().spaces == ()
    cache.close()


def bytes_on_disk(cache: VectorCache) -> int:
    return sum(
        path.stat().st_size for path in cache.path.parent.glob(f"{cache.path.name}*") if path.suffix != ".sqlite-shm"
    )


def test_token_counts_of_texts_are_not_counted_as_vectors(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "v.sqlite")
    cache.put_many(MODEL, 'any ""', numbered_texts(30), random_vectors(30, 8))
    cache.put_many(MODEL, f'any ""{TOKEN_COUNTS}', numbered_texts(20), random_vectors(20, 1))
    size = cache.size()
    assert (size.vectors, size.token_counts) == (30, 20)
    assert sorted((space.vectors, space.token_counts) for space in size.spaces) == [(0, 20), (30, 0)]
    cache.close()


@pytest.mark.parametrize("max_bytes", [500_000, 3_000_000])
def test_file_and_log_stay_within_the_size_limit(tmp_path: Path, max_bytes: int) -> None:
    cache = VectorCache(tmp_path / "v.sqlite", max_bytes=max_bytes)
    for start in range(0, 4000, 250):
        texts = [f"text {number}" for number in range(start, start + 250)]
        cache.put_many(MODEL, ROLE, texts, random_vectors(250, 512, start))
        assert bytes_on_disk(cache) <= max_bytes
    size = cache.size()
    assert size.file_bytes == bytes_on_disk(cache)
    assert size.vectors * 512 * 4 > max_bytes / 3
    assert len(cache.get_many(MODEL, ROLE, texts[-20:], 512)) == 20
    cache.close()
    assert cache.path.stat().st_size <= max_bytes


def test_models_are_listed_by_name(cache: VectorCache) -> None:
    cache.note_name(MODEL, "all-MiniLM-L6-v2")
    cache.put_many(MODEL, ROLE, numbered_texts(3), random_vectors(3))
    cache.put_many("other", ROLE, numbered_texts(1), random_vectors(1))
    cache.close()
    spaces = VectorCache(cache.path).size().spaces
    assert [(space.identity, space.name) for space in spaces] == [(MODEL, "all-MiniLM-L6-v2"), ("other", "")]


def test_files_without_model_names_are_migrated(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, numbered_texts(3), random_vectors(3))
    cache.close()
    with sqlite3.connect(cache.path) as db:
        db.execute("DROP TABLE names")
    db.close()
    assert [space.name for space in cache.size().spaces] == [""]
    cache.note_name(MODEL, "model")
    cache.put_many(MODEL, ROLE, ["new"], random_vectors(1))
    assert [space.name for space in cache.size().spaces] == ["model"]


# -- places and limits ---------------------------------------------------------------------------------


def test_the_default_cache_is_shared_and_can_be_disabled(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path))
    shared = VectorCache.default()
    assert shared is not None
    assert shared is VectorCache.default()
    assert shared.path == tmp_path / "vectors.sqlite"
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path / "other"))
    assert VectorCache.default() is not shared
    monkeypatch.setenv("EQUIPOISE_CACHE", "off")
    assert VectorCache.default() is None
    assert VectorCache().path.parent.name == "equipoise"


def test_environment_variables_set_the_path_and_the_size(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path))
    assert VectorCache().path == tmp_path / "vectors.sqlite"
    monkeypatch.delenv("EQUIPOISE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert VectorCache().path == tmp_path / "xdg" / "equipoise" / "vectors.sqlite"
    monkeypatch.setenv("EQUIPOISE_CACHE_BYTES", "5GB")
    assert VectorCache().max_bytes == 5_000_000_000


@pytest.mark.parametrize("text", ["", "many", "5 parsecs", "-3GB", "1.2.3"])
def test_invalid_sizes_raise_parameter_error(text: str) -> None:
    with pytest.raises(ParameterError):
        parse_bytes(text)


def test_caches_are_pickled_as_their_path(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, ["a"], random_vectors(1))
    unpickled = pickle.loads(pickle.dumps(cache))
    assert unpickled.path == cache.path
    assert len(unpickled.get_many(MODEL, ROLE, ["a"], 8)) == 1
    unpickled.close()
