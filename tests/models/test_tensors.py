"""Safetensors as views of the file, against the library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import FormatError
from equipoise.models.backends.model_files import read_safetensors

library = pytest.importorskip("safetensors.numpy")

ARRAYS = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
    "half": np.array([0.5, -2.0], np.float16),
    "double": np.array([[1e300]]),
    "numbers": np.array([1, -2, 3], np.int64),
    "scalar": np.array(7, np.int32),
    "empty": np.empty((0, 4), np.float32),
    "bytes": np.array([0, 255], np.uint8),
}


def test_every_tensor_is_the_librarys(tmp_path: Path):
    library.save_file(ARRAYS, tmp_path / "t.safetensors", metadata={"format": "np"})
    found, wanted = (
        read_safetensors(tmp_path / "t.safetensors"),
        library.load_file(tmp_path / "t.safetensors"),
    )
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


@pytest.mark.engines("torch")
def test_bfloat16_is_the_float32_that_it_stands_for(tmp_path: Path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    values = torch.tensor([1.0, -0.3333, 65280.0]).to(torch.bfloat16)
    save_file({"weights": values}, tmp_path / "t.safetensors")
    np.testing.assert_array_equal(read_safetensors(tmp_path / "t.safetensors")["weights"], values.float().numpy())


@pytest.mark.parametrize("keep", [0, 3, 8, 40, -1])
def test_a_file_that_was_cut_off_is_a_sentence(tmp_path: Path, keep):
    library.save_file(ARRAYS, tmp_path / "whole.safetensors")
    (tmp_path / "t.safetensors").write_bytes((tmp_path / "whole.safetensors").read_bytes()[:keep])
    with pytest.raises(FormatError):
        read_safetensors(tmp_path / "t.safetensors")


@pytest.mark.parametrize(
    "header", [b"[]", b'{"a": 3}', b'{"a": {"dtype": "F99", "shape": [], "data_offsets": [0, 0]}}']
)
def test_a_strange_header_is_a_sentence(tmp_path: Path, header):
    (tmp_path / "t.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(FormatError):
        read_safetensors(tmp_path / "t.safetensors")
