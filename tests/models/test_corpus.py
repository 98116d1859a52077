"""Embedding of texts to files: exact, atomic and resumable."""

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
from equipoise.models.corpus import RowKeys, embed_to_file
from equipoise.models.embedder import Embedder, embedder
from equipoise.models.vector_cache import VectorCache

TEXTS = [f"text {number}" for number in range(23)]


class RecordingModel:
    """Deterministic vectors; records the encoded texts, and fails at a given text."""

    def __init__(self, fail_at: str = "") -> None:
        self.encoded: list[str] = []
        self.fail_at = fail_at

    def encode(self, texts: list[str]) -> np.ndarray:
        if self.fail_at in texts:
            raise RuntimeError("the model failed")
        self.encoded += texts
        return np.stack([vector(text) for text in texts])


def vector(text: str) -> np.ndarray:
    seed = int.from_bytes(text.encode("utf-8", "surrogatepass")[:60], "little")
    return np.random.default_rng(seed).normal(size=6).astype(np.float32)


def vectors_of(texts: list[str]) -> np.ndarray:
    return np.stack([vector(text) for text in texts])


def embedder_of(model: RecordingModel, cache: VectorCache | None = None) -> Embedder:
    return embedder(model, identity="test", cache=cache, normalize=False)


def vectors_in(path: Path) -> np.ndarray:
    return read_matrix(f"{path}:vectors" if path.suffix == ".npz" else path)


def hidden_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


@pytest.mark.parametrize("name", ["v.npy", "v.npz"])
def test_rows_are_in_the_order_of_the_texts(tmp_path: Path, name: str) -> None:
    texts = [*TEXTS, TEXTS[3], TEXTS[3]]
    report = embed_to_file(iter(texts), embedder_of(RecordingModel()), tmp_path / name, batch=4)
    assert vectors_in(tmp_path / name).tobytes() == vectors_of(texts).tobytes()
    assert (report.texts, report.dims) == (25, 6)
    assert report.embedded + report.repeated == 25
    assert hidden_files(tmp_path) == []


def test_ids_are_stored_with_the_rows(tmp_path: Path) -> None:
    ids = [f"id-{number}" * (number % 3 + 1) for number in range(23)]
    embed_to_file(TEXTS, embedder_of(RecordingModel()), tmp_path / "v.npz", ids=iter(ids), batch=5)
    assert read_array(tmp_path / "v.npz:ids").tolist() == ids
    assert read_array(tmp_path / "v.npz:vectors").tobytes() == vectors_of(TEXTS).tobytes()
    embed_to_file(TEXTS, embedder_of(RecordingModel()), tmp_path / "v.npy", ids=ids)
    assert (tmp_path / "v.ids").read_text().splitlines() == ids


def test_files_are_models_with_texts_or_ids_as_keys(tmp_path: Path) -> None:
    ids = [f"d{number}" for number in range(23)]
    embed_to_file(TEXTS, embedder_of(RecordingModel()), tmp_path / "v.npz", ids=ids, batch=5)
    by_text = embedder(tmp_path / "v.npz", normalize=False)
    assert by_text.embed(TEXTS[5:1:-1]).tobytes() == vectors_of(TEXTS[5:1:-1]).tobytes()
    by_id = embedder(f"vectors:{tmp_path / 'v.npz'}", key="ids", normalize=False)
    assert by_id.embed(["d7"]).tobytes() == vectors_of(["text 7"]).tobytes()


@pytest.mark.parametrize("reason", ["repeated", "a NUL at the end"])
def test_row_numbers_replace_texts_that_cannot_be_keys(tmp_path: Path, reason: str) -> None:
    texts = [*TEXTS, TEXTS[3] if reason == "repeated" else "nul\0"]
    embed_to_file(texts, embedder_of(RecordingModel()), tmp_path / "v.npz", batch=5)
    with np.load(tmp_path / "v.npz") as archive:
        assert sorted(archive.files) == ["ids", "vectors"]
    file_model = embedder(tmp_path / "v.npz", normalize=False)
    assert file_model.embed(["1", "24"]).tobytes() == vectors_of([texts[0], texts[23]]).tobytes()


def test_long_texts_are_not_stored_as_keys() -> None:
    def key_names(length: int) -> list[str]:
        keys = RowKeys(has_ids=False, text_bytes=4 * 10 * 7)
        keys.add(["a" * length], [""])
        for number in range(9):
            keys.add([f"{number}"], [""])
        return [name for name, _ in keys.arrays()]

    assert key_names(7) == ["texts"]
    assert key_names(8) == ["ids"]


def test_duplicate_ids_raise_duplicate_error(tmp_path: Path) -> None:
    with pytest.raises(DuplicateError, match="id 'x'"):
        embed_to_file(["a", "b", "c"], embedder_of(RecordingModel()), tmp_path / "v.npz", ids=["x", "y", "x"], batch=1)


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        embed_to_file(TEXTS, embedder_of(RecordingModel()), tmp_path / name, ids=TEXTS, batch=7)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@settings(max_examples=20)
@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=12), st.integers(1, 5))
def test_any_texts_and_batch_sizes(texts: list[str], batch: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        report = embed_to_file(texts, embedder_of(RecordingModel()), Path(folder) / "v.npy", batch=batch)
        assert np.load(Path(folder) / "v.npy").tobytes() == vectors_of(texts).tobytes()
        assert report.texts == len(texts)


# -- resuming ------------------------------------------------------------------------------------------


def run_with_failure(path: Path, fail_at: str = "text 13", texts: list[str] = TEXTS) -> None:
    with pytest.raises(RuntimeError):
        embed_to_file(texts, embedder_of(RecordingModel(fail_at=fail_at)), path, batch=4)


@pytest.mark.parametrize("name", ["v.npy", "v.npz"])
def test_failed_runs_resume(tmp_path: Path, name: str) -> None:
    run_with_failure(tmp_path / name)
    assert not (tmp_path / name).exists()
    model = RecordingModel()
    report = embed_to_file(TEXTS, embedder_of(model), tmp_path / name, batch=4)
    assert report.resumed == 12
    assert set(model.encoded) == set(TEXTS[12:])
    assert vectors_in(tmp_path / name).tobytes() == vectors_of(TEXTS).tobytes()
    assert hidden_files(tmp_path) == []


def test_changed_texts_are_embedded_again(tmp_path: Path) -> None:
    run_with_failure(tmp_path / "v.npy")
    changed_texts = [*TEXTS[:5], "changed", *TEXTS[6:]]
    model = RecordingModel()
    report = embed_to_file(changed_texts, embedder_of(model), tmp_path / "v.npy", batch=4)
    assert report.resumed == 4
    assert np.load(tmp_path / "v.npy").tobytes() == vectors_of(changed_texts).tobytes()


def test_a_second_failure_keeps_the_rows_of_both_runs(tmp_path: Path) -> None:
    run_with_failure(tmp_path / "v.npy", fail_at="text 6")
    run_with_failure(tmp_path / "v.npy", fail_at="text 18")
    report = embed_to_file(TEXTS, embedder_of(RecordingModel()), tmp_path / "v.npy", batch=4)
    assert report.resumed == 16
    assert np.load(tmp_path / "v.npy").tobytes() == vectors_of(TEXTS).tobytes()


def test_fewer_texts_than_before_give_fewer_rows(tmp_path: Path) -> None:
    run_with_failure(tmp_path / "v.npy", fail_at="text 20")
    embed_to_file(TEXTS[:8], embedder_of(RecordingModel()), tmp_path / "v.npy", batch=4)
    assert np.load(tmp_path / "v.npy").tobytes() == vectors_of(TEXTS[:8]).tobytes()


@pytest.mark.parametrize("change", ["model", "role", "batch"])
def test_another_model_role_or_batch_size_restarts(tmp_path: Path, change: str) -> None:
    run_with_failure(tmp_path / "v.npy")
    model = RecordingModel()
    other = embedder(model, identity="other" if change == "model" else "test", normalize=False)
    role, batch = ("query" if change == "role" else "document"), (5 if change == "batch" else 4)
    report = embed_to_file(TEXTS, other, tmp_path / "v.npy", batch=batch, role=role)
    assert report.resumed == 0
    assert len(model.encoded) == len(TEXTS)


def truncate_log(folder: Path) -> None:
    log = folder / ".v.npy.part.log"
    log.write_bytes(log.read_bytes()[:-9])


def overwrite_log(folder: Path) -> None:
    (folder / ".v.npy.part.log").write_bytes(os.urandom(300))


def flip_bit_of_row(folder: Path) -> None:
    rows_file = folder / ".v.npy.part"
    data = bytearray(rows_file.read_bytes())
    data[128 + 5 * 24] ^= 1
    rows_file.write_bytes(data)


def truncate_rows(folder: Path) -> None:
    rows_file = folder / ".v.npy.part"
    rows_file.write_bytes(rows_file.read_bytes()[: 128 + 9 * 24])


def delete_rows(folder: Path) -> None:
    (folder / ".v.npy.part").unlink()


@pytest.mark.parametrize(
    ("damage", "n_resumed"),
    [(truncate_log, 8), (overwrite_log, 0), (flip_bit_of_row, 4), (truncate_rows, 8), (delete_rows, 0)],
)
def test_damaged_rows_are_embedded_again(tmp_path: Path, damage, n_resumed: int) -> None:
    run_with_failure(tmp_path / "v.npy")
    damage(tmp_path)
    report = embed_to_file(TEXTS, embedder_of(RecordingModel()), tmp_path / "v.npy", batch=4)
    assert report.resumed == n_resumed
    assert np.load(tmp_path / "v.npy").tobytes() == vectors_of(TEXTS).tobytes()


def test_a_second_run_uses_the_cache(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "cache" / "vectors.sqlite")
    first = embed_to_file(TEXTS, embedder_of(RecordingModel(), cache), tmp_path / "v.npz", batch=4)
    assert str(first) == "embedded 23 of 23 texts"
    before = (tmp_path / "v.npz").read_bytes()
    model = RecordingModel()
    second = embed_to_file(TEXTS, embedder_of(model, cache), tmp_path / "v.npz", batch=4)
    assert str(second) == "embedded nothing, all 23 from the cache"
    assert model.encoded == []
    assert (tmp_path / "v.npz").read_bytes() == before
    cache.close()


PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_corpus_model import Model, TEXTS
from equipoise.models.vector_cache import VectorCache
from equipoise.models.corpus import embed_to_file
from equipoise.models.embedder import embedder

class SlowModel(Model):
    def encode(self, texts):
        time.sleep(0.02)
        print(len(self.encoded), flush=True)
        return super().encode(texts)

model = SlowModel()
report = embed_to_file(TEXTS, embedder(model, identity="test", normalize=False), sys.argv[2], batch=5)
print("encoded", len(model.encoded), report.resumed)
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
                self.encoded = []
            def encode(self, texts):
                self.encoded += texts
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
    output = process.communicate(timeout=60)[0]
    last_count = max([100, *(int(line) for line in output.split())])
    assert process.returncode == -signal.SIGKILL
    assert not target.exists()
    second_run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    _, n_encoded, n_resumed = second_run.stdout.splitlines()[-1].split()
    assert int(n_encoded) + int(n_resumed) == 500
    assert last_count - 5 <= int(n_resumed) <= last_count + 10
    numbers = read_array(f"{target}:vectors")[:, 1]
    assert numbers.tolist() == list(range(1, 501))
    assert hidden_files(target.parent) == []


# -- bad input -----------------------------------------------------------------------------------------


def test_no_texts_raise_input_error_and_leave_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        embed_to_file(iter([]), embedder_of(RecordingModel()), tmp_path / "v.npy")
    assert list(tmp_path.iterdir()) == []


def test_the_old_file_is_kept_until_the_new_one_is_complete(tmp_path: Path) -> None:
    (tmp_path / "v.npy").write_bytes(b"old")
    run_with_failure(tmp_path / "v.npy")
    assert (tmp_path / "v.npy").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("name", "error_type", "fragment"),
    [
        ("v.txt", ParameterError, "extension"),
        ("nowhere/v.npy", StoreError, "mkdir -p"),
        ("folder.npy", StoreError, "it is a folder"),
    ],
)
def test_invalid_targets_raise_errors_before_embedding(tmp_path, name, error_type, fragment) -> None:
    (tmp_path / "folder.npy").mkdir()
    model = RecordingModel()
    with pytest.raises(error_type) as error:
        embed_to_file(TEXTS, embedder_of(model), tmp_path / name)
    assert fragment in error.value.render()
    assert model.encoded == []


def test_a_wrong_number_of_ids_raises_input_error(tmp_path: Path) -> None:
    for ids in (TEXTS[:-1], [*TEXTS, "more"]):
        with pytest.raises(InputError) as error:
            embed_to_file(TEXTS, embedder_of(RecordingModel()), tmp_path / "v.npz", ids=ids)
        assert error.value.code == "E200"
    with pytest.raises(InputError):
        embed_to_file(["a"], embedder_of(RecordingModel()), tmp_path / "v.npz", ids=["two\nlines"])


def test_a_second_writer_of_a_file_raises_store_error(tmp_path: Path) -> None:
    def texts_with_second_writer() -> Iterator[str]:
        yield from TEXTS[:8]
        with pytest.raises(StoreError):
            embed_to_file(TEXTS, embedder_of(RecordingModel()), tmp_path / "v.npy")
        yield from TEXTS[8:]

    embed_to_file(texts_with_second_writer(), embedder_of(RecordingModel()), tmp_path / "v.npy", batch=4)
    assert np.load(tmp_path / "v.npy").tobytes() == vectors_of(TEXTS).tobytes()


def test_progress_counts_all_texts(tmp_path: Path) -> None:
    progress_values: list[int] = []
    texts = [*TEXTS, *TEXTS]
    embed_to_file(texts, embedder_of(RecordingModel()), tmp_path / "v.npy", batch=10, progress=progress_values.append)
    assert progress_values == sorted(progress_values)
    assert progress_values[-1] == len(texts)


def test_errors_of_empty_texts_give_the_index_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"text 5.*0\)"):
        embed_to_file(iter(["a", "b", "c", "d", "e", " "]), embedder("hash"), tmp_path / "v.npy", batch=4)
