"""Precomputed vectors: every format, by text and by id, and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import (
    DuplicateError,
    EquipoiseError,
    FormatError,
    InputError,
    ParameterError,
    ShapeError,
)
from equipoise.models.embedder import embedder

KEYS = ["first text", "zweiter, mit Komma", "third"]
MATRIX = np.arange(6, dtype=np.float32).reshape(3, 2)


def save_npz(path: Path, **arrays) -> Path:
    np.savez(path / "v.npz", **arrays)
    return path / "v.npz"


@pytest.mark.parametrize("names", [("vectors", "texts"), ("embeddings", "ids"), ("arr_0", "arr_1")])
def test_npz_files_with_the_usual_array_names(tmp_path: Path, names):
    file = save_npz(tmp_path, **dict(zip(names, (MATRIX, np.array(KEYS)), strict=True)))
    model = embedder(str(file))
    np.testing.assert_array_equal(model.embed([KEYS[2], KEYS[0], KEYS[2]]), MATRIX[[2, 0, 2]])
    assert model.dims == 2


def test_npz_files_with_given_array_names(tmp_path: Path):
    file = save_npz(tmp_path, train=MATRIX, names=np.array([7, 8, 9]), other=MATRIX + 1)
    model = embedder(f"vectors:{file},column=train,key=names")
    np.testing.assert_array_equal(model.embed(["8"]), MATRIX[[1]])
    with pytest.raises(InputError):
        embedder(f"vectors:{file}")


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8])
def test_npy_files_have_their_keys_in_a_text_file(tmp_path: Path, dtype):
    np.save(tmp_path / "v.npy", MATRIX.astype(dtype))
    (tmp_path / "v.txt").write_text("\n".join(KEYS) + "\n", encoding="utf-8")
    np.testing.assert_array_equal(embedder(tmp_path / "v.npy").embed([KEYS[1]]), MATRIX[[1]])
    (tmp_path / "v.txt").rename(tmp_path / "keys.lst")
    model = embedder(f"vectors:{tmp_path / 'v.npy'},ids={tmp_path / 'keys.lst'}")
    np.testing.assert_array_equal(model.embed([KEYS[1]]), MATRIX[[1]])
    with pytest.raises(InputError):
        embedder(tmp_path / "v.npy")


@pytest.mark.parametrize(("key", "column"), [("text", "vector"), ("id", "embedding")])
def test_parquet_files_have_a_key_and_a_vector_column(tmp_path: Path, key, column):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({key: KEYS, column: MATRIX.tolist()}), tmp_path / "v.parquet")
    np.testing.assert_array_equal(embedder(tmp_path / "v.parquet").embed(KEYS), MATRIX)


def test_ragged_and_damaged_parquet_files_raise_errors(tmp_path: Path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"text": ["a", "b"], "vector": [[1.0], [1.0, 2.0]]}), tmp_path / "v.parquet")
    with pytest.raises(ShapeError):
        embedder(tmp_path / "v.parquet")
    (tmp_path / "v.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(FormatError):
        embedder(tmp_path / "v.parquet")


def test_texts_without_a_vector_raise_input_error(tmp_path: Path):
    model = embedder(save_npz(tmp_path, vectors=MATRIX, texts=np.array(KEYS)))
    with pytest.raises(InputError, match="'fourth'"):
        model.embed(["third", "fourth"])


@pytest.mark.parametrize(
    ("arrays", "error_type"),
    [
        ({"vectors": MATRIX, "texts": np.array(["a", "b"])}, ShapeError),
        ({"vectors": MATRIX, "texts": np.array(["a", "b", "a"])}, DuplicateError),
        ({"vectors": MATRIX[0], "texts": np.array(["a", "b"])}, ShapeError),
        ({"vectors": np.array(KEYS)[:, None], "texts": np.array(KEYS)}, FormatError),
    ],
)
def test_mismatched_arrays_raise_errors(tmp_path: Path, arrays, error_type):
    with pytest.raises(error_type):
        embedder(save_npz(tmp_path, **arrays))


def test_missing_damaged_and_other_files_raise_errors(tmp_path: Path):
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 and no more")
    for name, error_type in [
        ("no.npz", InputError),
        ("no.npy", InputError),
        ("no.parquet", EquipoiseError),
        ("bad.npz", FormatError),
    ]:
        with pytest.raises(error_type):
            embedder(tmp_path / name)
    with pytest.raises(ParameterError):
        embedder("vectors:v.csv")


def test_files_with_other_vectors_are_other_models(tmp_path: Path):
    first = embedder(save_npz(tmp_path, vectors=MATRIX, texts=np.array(KEYS))).fingerprint
    assert embedder(save_npz(tmp_path, vectors=MATRIX + 1, texts=np.array(KEYS))).fingerprint != first


def test_surrounding_white_space_is_ignored_unless_keys_differ_by_it(tmp_path: Path) -> None:
    keys = np.array(["What is it? ", "rye", "rye\n", "oats"])
    np.savez(tmp_path / "some.npz", vectors=np.eye(4, dtype=np.float32), texts=keys)
    model = embedder(f"vectors:{tmp_path / 'some.npz'}")
    rows = model.embed(["What is it?", "rye", "rye\n", " oats"]).argmax(axis=1)
    assert rows.tolist() == [0, 1, 2, 3]
    with pytest.raises(InputError):
        model.embed(["rye "])
