"""Large arrays of archives are views of the file; small and compressed ones are read as ever."""

from __future__ import annotations

import json

import numpy as np
import pytest

from equipoise.errors import FormatError
from equipoise.io import arrays
from equipoise.io.arrays import memmap_npz_member, memmap_safetensor, read_array

MATRIX = np.arange(12.0).reshape(3, 4)


@pytest.fixture
def large(monkeypatch):
    """Every array counts as large."""
    monkeypatch.setattr(arrays, "_LARGE", 0)


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i8", "i4", "i1", "u1", "?", "U3"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_stored_member_is_mapped_where_it_lies(tmp_path, large, kind, order):
    path = tmp_path / "v.npz"
    array = np.asarray(MATRIX.astype(kind), order=order)
    np.savez(path, other=MATRIX + 1, chosen=array)
    found = read_array(f"{path}:chosen")
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("array", [np.zeros((0, 3)), np.array(3.0)])
def test_members_of_odd_shapes_come_back_too(tmp_path, large, array):
    np.savez(tmp_path / "v.npz", array)
    np.testing.assert_array_equal(read_array(tmp_path / "v.npz"), array)


def test_small_and_compressed_members_are_not_mapped(tmp_path, large):
    np.savez_compressed(tmp_path / "c.npz", MATRIX)
    np.savez(tmp_path / "v.npz", MATRIX)
    assert memmap_npz_member(tmp_path / "c.npz", "arr_0") is None
    assert memmap_npz_member(tmp_path / "v.npz", "arr_0", least=1 << 20) is None
    np.testing.assert_array_equal(read_array(tmp_path / "c.npz"), MATRIX)


def test_python_objects_in_an_archive_are_still_refused(tmp_path, large):
    np.savez(tmp_path / "v.npz", np.array([{}, None], dtype=object))
    with pytest.raises(FormatError):
        read_array(tmp_path / "v.npz")


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "?"])
def test_a_tensor_is_mapped_where_it_lies(tmp_path, large, kind):
    save = pytest.importorskip("safetensors.numpy").save_file
    save({"other": MATRIX, "chosen": MATRIX.astype(kind)}, tmp_path / "v.safetensors")
    found = read_array(f"{tmp_path}/v.safetensors:chosen")
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, MATRIX.astype(kind))
    assert memmap_safetensor(tmp_path / "v.safetensors", "chosen", least=1 << 20) is None


def test_a_tensor_whose_shape_does_not_fit_is_refused(tmp_path):
    header = json.dumps({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}).encode()
    path = tmp_path / "v.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ValueError, match="shape"):
        memmap_safetensor(path, "a")
