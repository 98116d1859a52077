"""Large arrays of archives are memory-mapped; small and compressed ones are read."""

from __future__ import annotations

import json

import numpy as np
import pytest

from equipoise.errors import FormatError
from equipoise.io import arrays
from equipoise.io.arrays import memmap_npz_member, memmap_safetensor, read_array

MATRIX = np.arange(12.0).reshape(3, 4)


@pytest.fixture
def no_size_limit(monkeypatch):
    """Map arrays of any size."""
    monkeypatch.setattr(arrays, "_LARGE", 0)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i1", "u1", "?", "U3"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_stored_members_are_memory_mapped(tmp_path, no_size_limit, dtype, order):
    path = tmp_path / "v.npz"
    array = np.asarray(MATRIX.astype(dtype), order=order)
    np.savez(path, other=MATRIX + 1, chosen=array)
    mapped = read_array(f"{path}:chosen")
    assert isinstance(mapped, np.memmap)
    assert not mapped.flags.writeable
    np.testing.assert_array_equal(mapped, array)


@pytest.mark.parametrize("array", [np.zeros((0, 3)), np.array(3.0)])
def test_empty_and_scalar_members_are_read(tmp_path, no_size_limit, array):
    np.savez(tmp_path / "v.npz", array)
    np.testing.assert_array_equal(read_array(tmp_path / "v.npz"), array)


def test_small_and_compressed_members_are_not_mapped(tmp_path, no_size_limit):
    np.savez_compressed(tmp_path / "c.npz", MATRIX)
    np.savez(tmp_path / "v.npz", MATRIX)
    assert memmap_npz_member(tmp_path / "c.npz", "arr_0") is None
    assert memmap_npz_member(tmp_path / "v.npz", "arr_0", least=1 << 20) is None
    np.testing.assert_array_equal(read_array(tmp_path / "c.npz"), MATRIX)


def test_object_arrays_in_an_archive_raise_format_error(tmp_path, no_size_limit):
    np.savez(tmp_path / "v.npz", np.array([{}, None], dtype=object))
    with pytest.raises(FormatError):
        read_array(tmp_path / "v.npz")


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "?"])
def test_tensors_are_memory_mapped(tmp_path, no_size_limit, dtype):
    save = pytest.importorskip("safetensors.numpy").save_file
    save({"other": MATRIX, "chosen": MATRIX.astype(dtype)}, tmp_path / "v.safetensors")
    mapped = read_array(f"{tmp_path}/v.safetensors:chosen")
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(mapped, MATRIX.astype(dtype))
    assert memmap_safetensor(tmp_path / "v.safetensors", "chosen", least=1 << 20) is None


def test_tensors_with_a_wrong_shape_raise_value_error(tmp_path):
    header = json.dumps({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}).encode()
    path = tmp_path / "v.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ValueError, match="shape"):
        memmap_safetensor(path, "a")
