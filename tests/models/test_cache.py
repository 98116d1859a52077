"""The cache of vectors: what was put comes back byte for byte, and nothing else ever does."""

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
from equipoise.models.cache import VectorCache, parse_bytes
from equipoise.models.cache_storage import block_nbytes, cache_keys, pack_block, unpack_block

MODEL, ROLE = "onnx:minilm#53aa5117", "document|"
ANY_TEXT = st.text(st.characters(codec=None))


def vectors_for(count: int, dims: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, dims)).astype(np.float32)


def names(count: int) -> list[str]:
    return [f"text {number}" for number in range(count)]


@pytest.fixture
def cache(tmp_path: Path) -> VectorCache:
    made = VectorCache(tmp_path / "vectors.sqlite")
    yield made
    made.close()


def changed(cache: VectorCache, statement: str, *values: object) -> None:
    """Tamper with the file behind the cache's back."""
    cache.close()
    with sqlite3.connect(cache.path) as db:
        assert db.execute(statement, values).rowcount > 0
    db.close()


def test_what_was_put_comes_back_byte_for_byte(cache: VectorCache) -> None:
    texts, vectors = names(5000), vectors_for(5000, 384)
    for start in range(0, 5000, 700):
        cache.put_many(MODEL, ROLE, texts[start : start + 700], vectors[start : start + 700])
    cache.close()
    again = VectorCache(cache.path)
    found = again.lookup(MODEL, ROLE, texts, 384)
    assert found.positions.tolist() == list(range(5000))
    assert found.vectors.tobytes() == vectors.tobytes()
    again.close()


def test_texts_are_found_in_any_order_repeated_and_among_strangers(cache: VectorCache) -> None:
    texts, vectors = names(300), vectors_for(300)
    cache.put_many(MODEL, ROLE, texts, vectors)
    asked = ["stranger", texts[7], texts[299], texts[7], "", texts[0]]
    got = cache.get_many(MODEL, ROLE, asked, 8)
    assert list(got) == [1, 2, 3, 5]
    for index, row in {1: 7, 2: 299, 3: 7, 5: 0}.items():
        assert got[index].tobytes() == vectors[row].tobytes()


@settings(max_examples=20)
@given(st.lists(ANY_TEXT, min_size=1, max_size=30), st.data())
def test_any_texts_even_half_surrogates_come_back(texts: list[str], data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        cache = VectorCache(Path(folder) / "v.sqlite")
        oracle: dict[str, np.ndarray] = {}
        for seed in range(2):
            chosen = data.draw(st.lists(st.sampled_from(texts), min_size=1, max_size=20))
            rows = vectors_for(len(chosen), 3, seed)
            cache.put_many(MODEL, ROLE, chosen, rows)
            for text, row in zip(chosen, rows, strict=True):
                oracle.setdefault(text, row)
        got = cache.get_many(MODEL, ROLE, texts)
        assert {index: row.tobytes() for index, row in got.items()} == {
            index: oracle[text].tobytes() for index, text in enumerate(texts) if text in oracle
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
def test_another_model_role_or_text_finds_nothing(cache, identity: str, variant: str, text: str) -> None:
    cache.put_many(MODEL, ROLE, ["text 0"], vectors_for(1))
    assert cache.get_many(identity, variant, [text], 8) == {}
    assert cache.get_many(MODEL, ROLE, ["text 0"], 8)


def test_the_boundary_between_identity_and_variant_counts() -> None:
    assert (cache_keys("ab", "c", ["x"]) != cache_keys("a", "bc", ["x"])).any()


def test_nothing_in_nothing_out(cache: VectorCache) -> None:
    assert cache.get_many(MODEL, ROLE, [], 8) == {}
    assert cache.lookup(MODEL, ROLE, names(3), 8).vectors.shape == (0, 8)
    cache.put_many(MODEL, ROLE, [], np.empty((0, 8), dtype=np.float32))
    assert cache.size().vectors == 0


def test_the_first_vector_of_a_text_stays(cache: VectorCache) -> None:
    first, second = vectors_for(2)
    cache.put_many(MODEL, ROLE, ["a", "a"], np.stack([first, second]))
    cache.put_many(MODEL, ROLE, ["a"], second[None])
    assert cache.get_many(MODEL, ROLE, ["a"], 8)[0].tobytes() == first.tobytes()
    assert cache.size().vectors == 1


def test_vectors_that_no_model_may_give_are_refused(cache: VectorCache) -> None:
    for bad in (np.nan, np.inf):
        with pytest.raises(NotFiniteError):
            cache.put_many(MODEL, ROLE, ["a"], np.array([[1, bad]], dtype=np.float32))
    with pytest.raises(ShapeError, match="2 texts"):
        cache.put_many(MODEL, ROLE, ["a", "b"], vectors_for(1))
    with pytest.raises(ParameterError):
        VectorCache(cache.path, max_bytes=-1)


# -- damage --------------------------------------------------------------------------------------------


def flipped(place: int) -> Callable[[bytes], bytes]:
    return lambda body: body[:place] + bytes([body[place] ^ 0x40]) + body[place + 1 :]


@pytest.mark.parametrize("row", [0, 3, 9])
@pytest.mark.parametrize("part", ["digest", "checksum", "vector"])
def test_a_flipped_bit_costs_that_row_only(cache: VectorCache, row: int, part: str) -> None:
    texts, vectors = names(10), vectors_for(10)
    cache.put_many(MODEL, ROLE, texts, vectors)
    place = {"digest": 16 * row + 3, "checksum": 160 + 4 * row, "vector": 200 + 32 * row + 30}[part]
    body = pack_block(cache_keys(MODEL, ROLE, texts), vectors)
    changed(cache, "UPDATE bodies SET body = ?", flipped(place)(body))
    got = cache.get_many(MODEL, ROLE, texts, 8)
    assert sorted(set(range(10)) - set(got)) == [row]
    assert cache.damaged == 1
    cache.put_many(MODEL, ROLE, [texts[row]], vectors[row : row + 1])
    healed = cache.lookup(MODEL, ROLE, texts, 8)
    assert healed.vectors.tobytes() == vectors.tobytes()
    assert cache.damaged == 1


@pytest.mark.parametrize("cut", [0, 1, 100, 519])
def test_a_truncated_block_counts_as_absent_and_is_written_again(cache: VectorCache, cut: int) -> None:
    texts, vectors = names(10), vectors_for(10)
    cache.put_many(MODEL, ROLE, texts, vectors)
    body = pack_block(cache_keys(MODEL, ROLE, texts), vectors)
    assert len(body) == block_nbytes(10, 8) == 520
    changed(cache, "UPDATE bodies SET body = ?", body[:cut])
    assert cache.get_many(MODEL, ROLE, texts, 8) == {}
    assert cache.damaged == 10
    cache.put_many(MODEL, ROLE, texts, vectors)
    assert cache.lookup(MODEL, ROLE, texts, 8).vectors.tobytes() == vectors.tobytes()


def test_a_nan_with_a_right_checksum_is_still_no_vector(cache: VectorCache) -> None:
    texts, vectors = names(4), vectors_for(4)
    cache.put_many(MODEL, ROLE, texts, vectors)
    vectors[2, 5] = np.nan
    changed(cache, "UPDATE bodies SET body = ?", pack_block(cache_keys(MODEL, ROLE, texts), vectors))
    assert sorted(cache.get_many(MODEL, ROLE, texts, 8)) == [0, 1, 3]


def test_a_body_that_is_text_or_gone_counts_as_absent(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, names(4), vectors_for(4))
    changed(cache, "UPDATE bodies SET body = 'hello'")
    assert cache.get_many(MODEL, ROLE, names(4), 8) == {}
    cache.put_many(MODEL, ROLE, names(4), vectors_for(4))
    changed(cache, "DELETE FROM bodies")
    assert cache.get_many(MODEL, ROLE, names(4), 8) == {}
    assert cache.damaged == 8


def test_an_index_that_points_elsewhere_gives_no_wrong_vector(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, names(10), vectors_for(10))
    changed(cache, "UPDATE entries SET slot = slot + 1")
    assert cache.get_many(MODEL, ROLE, names(10), 8) == {}
    assert cache.damaged == 10


def test_vectors_of_another_length_are_not_taken(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, names(4), vectors_for(4, 8))
    assert cache.get_many(MODEL, ROLE, names(4), 16) == {}
    cache.put_many(MODEL, ROLE, names(4), vectors_for(4, 16))
    assert cache.lookup(MODEL, ROLE, names(4), 16).vectors.shape == (4, 16)


def test_without_a_known_length_the_majority_decides(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, ["odd"], vectors_for(1, 4))
    cache.put_many(MODEL, ROLE, names(5), vectors_for(5, 8))
    found = cache.lookup(MODEL, ROLE, ["odd", *names(5)])
    assert found.positions.tolist() == [1, 2, 3, 4, 5]
    assert found.vectors.shape == (5, 8)


@given(st.binary(max_size=200), st.integers(0, 5), st.integers(1, 4))
def test_no_bytes_whatever_are_taken_for_a_vector(body: bytes, rows: int, dims: int) -> None:
    keys = cache_keys(MODEL, ROLE, names(2))
    _, sound = unpack_block(body, rows, dims, np.array([0, 1]), keys)
    assert not sound.any()


# -- damaged files -------------------------------------------------------------------------------------


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(40_000))


def header_only(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: 16384 * 3])


def holes(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[16384 : len(data)] = os.urandom(len(data) - 16384)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [garbage, header_only, truncated, holes])
def test_a_damaged_file_is_moved_aside_and_a_new_one_begun(cache: VectorCache, damage) -> None:
    texts, vectors = names(2000), vectors_for(2000, 64)
    cache.put_many(MODEL, ROLE, texts, vectors)
    cache.close()
    damage(cache.path)
    before = cache.path.read_bytes()
    got = cache.get_many(MODEL, ROLE, texts, 64)
    cache.put_many(MODEL, ROLE, texts, vectors)
    assert got == {}
    assert cache.working
    assert cache.lookup(MODEL, ROLE, texts, 64).vectors.tobytes() == vectors.tobytes()
    (aside,) = cache.path.parent.glob("vectors.sqlite.damaged-*")
    assert aside.read_bytes() == before
    (trouble,) = cache.problems
    assert aside.name in trouble.message


def test_damage_while_the_file_is_open_is_survived(cache: VectorCache) -> None:
    texts, vectors = names(2000), vectors_for(2000, 64)
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


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE diary (day TEXT)")
    db.close()
    before = path.read_bytes()
    cache = VectorCache(path)
    cache.put_many(MODEL, ROLE, ["a"], vectors_for(1))
    assert not cache.working
    assert "another program" in cache.problems[0].message
    assert path.read_bytes() == before


def test_a_file_of_a_later_format_is_left_alone(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, ["a"], vectors_for(1))
    cache.close()
    db = sqlite3.connect(cache.path)
    db.execute("PRAGMA user_version = 2")
    db.close()
    assert cache.get_many(MODEL, ROLE, ["a"], 8) == {}
    assert "format 2" in cache.problems[0].message


def test_a_folder_that_cannot_be_made_is_one_finding_and_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = VectorCache(tmp_path / "file" / "deeper" / "vectors.sqlite")
    for _ in range(3):
        cache.put_many(MODEL, ROLE, ["a"], vectors_for(1))
        assert cache.get_many(MODEL, ROLE, ["a"], 8) == {}
    assert not cache.working
    assert len(cache.problems) == 1
    assert cache.size().vectors == 0
    assert cache.prune() == 0


# -- bounds --------------------------------------------------------------------------------------------


def test_the_file_stays_within_its_bound_and_the_least_used_goes_first(tmp_path: Path) -> None:
    now = [1000.0]
    cache = VectorCache(tmp_path / "v.sqlite", max_bytes=3_000_000, clock=lambda: now[0])
    batches = [[f"{batch}:{number}" for number in range(300)] for batch in range(12)]
    for number, batch in enumerate(batches):
        now[0] += 100
        cache.put_many(MODEL, ROLE, batch, vectors_for(300, 384, number))
        now[0] += 100
        assert len(cache.get_many(MODEL, ROLE, batches[0], 384)) == 300
        assert cache.size().bytes <= 3_000_000
    assert cache.path.stat().st_size <= 3_500_000
    kept = [len(cache.get_many(MODEL, ROLE, batch, 384)) for batch in batches]
    assert kept[0] == 300
    assert kept[-1] == 300
    assert kept[1] == 0
    assert kept[1:] == sorted(kept[1:])
    cache.close()


def test_pruning_drops_the_oldest_and_gives_the_bytes_back(tmp_path: Path) -> None:
    now = [0.0]
    cache = VectorCache(tmp_path / "v.sqlite", clock=lambda: now[0])
    for number in range(4):
        now[0] += 1000
        cache.put_many(MODEL, f"variant {number}", names(500), vectors_for(500, 256))
    before = cache.size()
    assert before.vectors == 2000
    assert [space.vectors for space in before.spaces] == [500] * 4
    dropped = cache.prune(before.bytes // 2)
    after = cache.size()
    assert dropped == 2000 - after.vectors > 0
    assert after.bytes <= before.bytes // 2
    assert cache.path.stat().st_size <= before.bytes // 2
    assert {space.variant for space in after.spaces} <= {"variant 2", "variant 3"}
    assert cache.prune(0) == after.vectors
    assert cache.size().vectors == 0
    assert cache.size().spaces == ()
    cache.close()


def on_disk(cache: VectorCache) -> int:
    return sum(
        path.stat().st_size for path in cache.path.parent.glob(f"{cache.path.name}*") if path.suffix != ".sqlite-shm"
    )


@pytest.mark.parametrize("bound", [500_000, 3_000_000])
def test_file_and_log_on_the_disk_stay_within_the_bound_and_vectors_stay(tmp_path: Path, bound: int) -> None:
    cache = VectorCache(tmp_path / "v.sqlite", max_bytes=bound)
    for start in range(0, 4000, 250):
        texts = [f"text {number}" for number in range(start, start + 250)]
        cache.put_many(MODEL, ROLE, texts, vectors_for(250, 512, start))
        assert on_disk(cache) <= bound
    size = cache.size()
    assert size.file_bytes == on_disk(cache)
    assert size.vectors * 512 * 4 > bound / 3
    assert len(cache.get_many(MODEL, ROLE, texts[-20:], 512)) == 20
    cache.close()
    assert cache.path.stat().st_size <= bound


def test_models_are_listed_by_the_names_that_people_know(cache: VectorCache) -> None:
    cache.note_name(MODEL, "all-MiniLM-L6-v2")
    cache.put_many(MODEL, ROLE, names(3), vectors_for(3))
    cache.put_many("other", ROLE, names(1), vectors_for(1))
    cache.close()
    spaces = VectorCache(cache.path).size().spaces
    assert [(space.identity, space.name) for space in spaces] == [(MODEL, "all-MiniLM-L6-v2"), ("other", "")]


def test_a_file_that_was_begun_without_names_takes_them(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, names(3), vectors_for(3))
    cache.close()
    with sqlite3.connect(cache.path) as db:
        db.execute("DROP TABLE names")
    db.close()
    assert [space.name for space in cache.size().spaces] == [""]
    cache.note_name(MODEL, "mine")
    cache.put_many(MODEL, ROLE, ["new"], vectors_for(1))
    assert [space.name for space in cache.size().spaces] == ["mine"]


# -- places and limits ---------------------------------------------------------------------------------


def test_the_default_cache_is_shared_and_can_be_switched_off(monkeypatch, tmp_path: Path) -> None:
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


def test_the_file_lies_where_the_environment_says(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path))
    assert VectorCache().path == tmp_path / "vectors.sqlite"
    monkeypatch.delenv("EQUIPOISE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert VectorCache().path == tmp_path / "xdg" / "equipoise" / "vectors.sqlite"
    monkeypatch.setenv("EQUIPOISE_CACHE_BYTES", "5GB")
    assert VectorCache().max_bytes == 5_000_000_000


@pytest.mark.parametrize("text", ["", "many", "5 parsecs", "-3GB", "1.2.3"])
def test_nonsense_is_no_amount_of_bytes(text: str) -> None:
    with pytest.raises(ParameterError):
        parse_bytes(text)


def test_a_cache_crosses_process_borders_as_its_path(cache: VectorCache) -> None:
    cache.put_many(MODEL, ROLE, ["a"], vectors_for(1))
    other = pickle.loads(pickle.dumps(cache))
    assert other.path == cache.path
    assert len(other.get_many(MODEL, ROLE, ["a"], 8)) == 1
    other.close()
