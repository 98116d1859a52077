"""Texts into files: exact, whole or not at all, and resumable after any end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise
from equipoise.errors import DuplicateError, InputError, ParameterError, StoreError
from equipoise.io.arrays import read_array, read_matrix
from equipoise.models.cache import VectorCache
from equipoise.models.corpus import RowKeys, embed_to_file
from equipoise.models.embedder import Embedder, embedder

TEXTS = [f"text {number}" for number in range(23)]


class Model:
    """Deterministic vectors; counts what it was asked, and fails when told to."""

    def __init__(self, fail_at: str = "") -> None:
        self.asked: list[str] = []
        self.fail_at = fail_at

    def encode(self, texts: list[str]) -> np.ndarray:
        if self.fail_at in texts:
            raise RuntimeError("the model broke")
        self.asked += texts
        return np.stack([vector(text) for text in texts])


def vector(text: str) -> np.ndarray:
    seed = int.from_bytes(text.encode("utf-8", "surrogatepass")[:60], "little")
    return np.random.default_rng(seed).normal(size=6).astype(np.float32)


def rows(texts: list[str]) -> np.ndarray:
    return np.stack([vector(text) for text in texts])


def made(model: Model, cache: VectorCache | None = None) -> Embedder:
    return embedder(model, identity="test", cache=cache, normalize=False)


def vectors_in(path: Path) -> np.ndarray:
    return read_matrix(f"{path}:vectors" if path.suffix == ".npz" else path)


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


@pytest.mark.parametrize("name", ["v.npy", "v.npz"])
def test_rows_stand_in_the_order_of_the_texts(tmp_path: Path, name: str) -> None:
    texts = [*TEXTS, TEXTS[3], TEXTS[3]]
    report = embed_to_file(iter(texts), made(Model()), tmp_path / name, batch=4)
    assert vectors_in(tmp_path / name).tobytes() == rows(texts).tobytes()
    assert (report.texts, report.dims) == (25, 6)
    assert report.embedded + report.repeated == 25
    assert hidden(tmp_path) == []


def test_ids_travel_with_the_rows(tmp_path: Path) -> None:
    ids = [f"id-{number}" * (number % 3 + 1) for number in range(23)]
    embed_to_file(TEXTS, made(Model()), tmp_path / "v.npz", ids=iter(ids), batch=5)
    assert read_array(tmp_path / "v.npz:ids").tolist() == ids
    assert read_array(tmp_path / "v.npz:vectors").tobytes() == rows(TEXTS).tobytes()
    embed_to_file(TEXTS, made(Model()), tmp_path / "v.npy", ids=ids)
    assert (tmp_path / "v.ids").read_text().splitlines() == ids


def test_the_file_is_a_model_by_its_texts_and_by_its_ids(tmp_path: Path) -> None:
    ids = [f"d{number}" for number in range(23)]
    embed_to_file(TEXTS, made(Model()), tmp_path / "v.npz", ids=ids, batch=5)
    by_text = embedder(tmp_path / "v.npz", normalize=False)
    assert by_text.embed(TEXTS[5:1:-1]).tobytes() == rows(TEXTS[5:1:-1]).tobytes()
    by_id = embedder(f"vectors:{tmp_path / 'v.npz'}", key="ids", normalize=False)
    assert by_id.embed(["d7"]).tobytes() == rows(["text 7"]).tobytes()


@pytest.mark.parametrize("reason", ["repeated", "a NUL at the end"])
def test_texts_that_cannot_be_keys_give_way_to_the_numbers_of_the_rows(tmp_path: Path, reason: str) -> None:
    texts = [*TEXTS, TEXTS[3] if reason == "repeated" else "nul\0"]
    embed_to_file(texts, made(Model()), tmp_path / "v.npz", batch=5)
    with np.load(tmp_path / "v.npz") as archive:
        assert sorted(archive.files) == ["ids", "vectors"]
    again = embedder(tmp_path / "v.npz", normalize=False)
    assert again.embed(["1", "24"]).tobytes() == rows([texts[0], texts[23]]).tobytes()


def test_texts_are_let_go_once_they_would_take_too_much_room() -> None:
    def names(longest: int) -> list[str]:
        keys = RowKeys(has_ids=False, text_bytes=4 * 10 * 7)
        keys.add(["a" * longest], [""])
        for number in range(9):
            keys.add([f"{number}"], [""])
        return [name for name, _ in keys.arrays()]

    assert names(7) == ["texts"]
    assert names(8) == ["ids"]


def test_an_id_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DuplicateError, match="id 'x'"):
        embed_to_file(["a", "b", "c"], made(Model()), tmp_path / "v.npz", ids=["x", "y", "x"], batch=1)


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        embed_to_file(TEXTS, made(Model()), tmp_path / name, ids=TEXTS, batch=7)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@settings(max_examples=20)
@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=12), st.integers(1, 5))
def test_any_texts_in_any_batches(texts: list[str], batch: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        report = embed_to_file(texts, made(Model()), Path(folder) / "v.npy", batch=batch)
        assert np.load(Path(folder) / "v.npy").tobytes() == rows(texts).tobytes()
        assert report.texts == len(texts)


# -- going on ------------------------------------------------------------------------------------------


def failing(path: Path, at: str = "text 13", texts: list[str] = TEXTS) -> None:
    with pytest.raises(RuntimeError):
        embed_to_file(texts, made(Model(fail_at=at)), path, batch=4)


@pytest.mark.parametrize("name", ["v.npy", "v.npz"])
def test_a_failed_run_goes_on_where_it_was(tmp_path: Path, name: str) -> None:
    failing(tmp_path / name)
    assert not (tmp_path / name).exists()
    model = Model()
    report = embed_to_file(TEXTS, made(model), tmp_path / name, batch=4)
    assert report.resumed == 12
    assert set(model.asked) == set(TEXTS[12:])
    assert vectors_in(tmp_path / name).tobytes() == rows(TEXTS).tobytes()
    assert hidden(tmp_path) == []


def test_texts_that_changed_are_embedded_again(tmp_path: Path) -> None:
    failing(tmp_path / "v.npy")
    changed = [*TEXTS[:5], "changed", *TEXTS[6:]]
    model = Model()
    report = embed_to_file(changed, made(model), tmp_path / "v.npy", batch=4)
    assert report.resumed == 4
    assert np.load(tmp_path / "v.npy").tobytes() == rows(changed).tobytes()


def test_a_second_failure_keeps_what_both_have_done(tmp_path: Path) -> None:
    failing(tmp_path / "v.npy", at="text 6")
    failing(tmp_path / "v.npy", at="text 18")
    report = embed_to_file(TEXTS, made(Model()), tmp_path / "v.npy", batch=4)
    assert report.resumed == 16
    assert np.load(tmp_path / "v.npy").tobytes() == rows(TEXTS).tobytes()


def test_fewer_texts_than_before_leave_no_rows_behind(tmp_path: Path) -> None:
    failing(tmp_path / "v.npy", at="text 20")
    embed_to_file(TEXTS[:8], made(Model()), tmp_path / "v.npy", batch=4)
    assert np.load(tmp_path / "v.npy").tobytes() == rows(TEXTS[:8]).tobytes()


@pytest.mark.parametrize("change", ["model", "role", "batch"])
def test_another_model_role_or_batch_begins_anew(tmp_path: Path, change: str) -> None:
    failing(tmp_path / "v.npy")
    model = Model()
    other = embedder(model, identity="other" if change == "model" else "test", normalize=False)
    role, batch = ("query" if change == "role" else "document"), (5 if change == "batch" else 4)
    report = embed_to_file(TEXTS, other, tmp_path / "v.npy", batch=batch, role=role)
    assert report.resumed == 0
    assert len(model.asked) == len(TEXTS)


def torn_log(folder: Path) -> None:
    log = folder / ".v.npy.part.log"
    log.write_bytes(log.read_bytes()[:-9])


def garbled_log(folder: Path) -> None:
    (folder / ".v.npy.part.log").write_bytes(os.urandom(300))


def flipped_row(folder: Path) -> None:
    part = folder / ".v.npy.part"
    data = bytearray(part.read_bytes())
    data[128 + 5 * 24] ^= 1
    part.write_bytes(data)


def short_part(folder: Path) -> None:
    part = folder / ".v.npy.part"
    part.write_bytes(part.read_bytes()[: 128 + 9 * 24])


def no_part(folder: Path) -> None:
    (folder / ".v.npy.part").unlink()


@pytest.mark.parametrize(
    ("damage", "kept"), [(torn_log, 8), (garbled_log, 0), (flipped_row, 4), (short_part, 8), (no_part, 0)]
)
def test_what_is_damaged_is_embedded_again(tmp_path: Path, damage, kept: int) -> None:
    failing(tmp_path / "v.npy")
    damage(tmp_path)
    report = embed_to_file(TEXTS, made(Model()), tmp_path / "v.npy", batch=4)
    assert report.resumed == kept
    assert np.load(tmp_path / "v.npy").tobytes() == rows(TEXTS).tobytes()


def test_the_second_run_embeds_nothing_and_says_so(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "cache" / "vectors.sqlite")
    first = embed_to_file(TEXTS, made(Model(), cache), tmp_path / "v.npz", batch=4)
    assert str(first) == "embedded 23 of 23 texts"
    before = (tmp_path / "v.npz").read_bytes()
    model = Model()
    second = embed_to_file(TEXTS, made(model, cache), tmp_path / "v.npz", batch=4)
    assert str(second) == "embedded nothing, all 23 from the cache"
    assert model.asked == []
    assert (tmp_path / "v.npz").read_bytes() == before
    cache.close()


PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_corpus_model import Model, TEXTS
from equipoise.models.cache import VectorCache
from equipoise.models.corpus import embed_to_file
from equipoise.models.embedder import embedder

class Slow(Model):
    def encode(self, texts):
        time.sleep(0.02)
        print(len(self.asked), flush=True)
        return super().encode(texts)

model = Slow()
report = embed_to_file(TEXTS, embedder(model, identity="test", normalize=False), sys.argv[2], batch=5)
print("asked", len(model.asked), report.resumed)
"""


@pytest.mark.slow
def test_a_killed_process_loses_at_most_one_batch(tmp_path: Path) -> None:
    module = tmp_path / "code"
    module.mkdir()
    (module / "test_corpus_model.py").write_text(
        textwrap.dedent("""
        import numpy as np
        TEXTS = [f"text {number}" for number in range(500)]
        class Model:
            def __init__(self):
                self.asked = []
            def encode(self, texts):
                self.asked += texts
                return np.array([[len(text), int(text.split()[1]) + 1] for text in texts], dtype=np.float32)
        """)
    )
    source = str(Path(equipoise.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    target = tmp_path / "out" / "v.npz"
    target.parent.mkdir()
    command = [sys.executable, "-c", PROGRAM, str(module), str(target)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 100:
            break
    process.send_signal(signal.SIGKILL)
    said = process.communicate(timeout=60)[0]
    begun = max([100, *(int(line) for line in said.split())])
    assert process.returncode == -signal.SIGKILL
    assert not target.exists()
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    _, asked, resumed = again.stdout.splitlines()[-1].split()
    assert int(asked) + int(resumed) == 500
    assert begun - 5 <= int(resumed) <= begun + 10
    numbers = read_array(f"{target}:vectors")[:, 1]
    assert numbers.tolist() == list(range(1, 501))
    assert hidden(target.parent) == []


# -- bad input -----------------------------------------------------------------------------------------


def test_no_texts_leave_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        embed_to_file(iter([]), made(Model()), tmp_path / "v.npy")
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    (tmp_path / "v.npy").write_bytes(b"old")
    failing(tmp_path / "v.npy")
    assert (tmp_path / "v.npy").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("v.txt", ParameterError, "extension"),
        ("nowhere/v.npy", StoreError, "mkdir -p"),
        ("folder.npy", StoreError, "it is a folder"),
    ],
)
def test_a_place_that_cannot_be_is_refused_before_anything_is_embedded(tmp_path, name, kind, words) -> None:
    (tmp_path / "folder.npy").mkdir()
    model = Model()
    with pytest.raises(kind) as caught:
        embed_to_file(TEXTS, made(model), tmp_path / name)
    assert words in caught.value.render()
    assert model.asked == []


def test_more_ids_than_texts_or_fewer_is_an_error(tmp_path: Path) -> None:
    for ids in (TEXTS[:-1], [*TEXTS, "more"]):
        with pytest.raises(InputError, match="more"):
            embed_to_file(TEXTS, made(Model()), tmp_path / "v.npz", ids=ids)
    with pytest.raises(InputError):
        embed_to_file(["a"], made(Model()), tmp_path / "v.npz", ids=["two\nlines"])


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    def interrupted() -> Iterator[str]:
        yield from TEXTS[:8]
        with pytest.raises(StoreError):
            embed_to_file(TEXTS, made(Model()), tmp_path / "v.npy")
        yield from TEXTS[8:]

    embed_to_file(interrupted(), made(Model()), tmp_path / "v.npy", batch=4)
    assert np.load(tmp_path / "v.npy").tobytes() == rows(TEXTS).tobytes()


def test_progress_counts_texts_and_ends_at_all(tmp_path: Path) -> None:
    seen: list[int] = []
    texts = [*TEXTS, *TEXTS]
    embed_to_file(texts, made(Model()), tmp_path / "v.npy", batch=10, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == len(texts)


def test_an_empty_text_is_counted_in_the_file_and_not_in_its_batch(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"text 5.*0\)"):
        embed_to_file(iter(["a", "b", "c", "d", "e", " "]), embedder("hash"), tmp_path / "v.npy", batch=4)
