"""Safetensors as views of the file, compared with the library."""

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


def test_tensors_agree_with_the_library(tmp_path: Path):
    library.save_file(ARRAYS, tmp_path / "t.safetensors", metadata={"format": "np"})
    tensors, expected = (
        read_safetensors(tmp_path / "t.safetensors"),
        library.load_file(tmp_path / "t.safetensors"),
    )
    assert tensors.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(tensors[name], array)
        assert tensors[name].dtype == array.dtype


@pytest.mark.engines("torch")
def test_bfloat16_is_converted_to_float32(tmp_path: Path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    values = torch.tensor([1.0, -0.3333, 65280.0]).to(torch.bfloat16)
    save_file({"weights": values}, tmp_path / "t.safetensors")
    np.testing.assert_array_equal(read_safetensors(tmp_path / "t.safetensors")["weights"], values.float().numpy())


@pytest.mark.parametrize("n_bytes", [0, 3, 8, 40, -1])
def test_truncated_files_raise_format_error(tmp_path: Path, n_bytes):
    library.save_file(ARRAYS, tmp_path / "whole.safetensors")
    (tmp_path / "t.safetensors").write_bytes((tmp_path / "whole.safetensors").read_bytes()[:n_bytes])
    with pytest.raises(FormatError):
        read_safetensors(tmp_path / "t.safetensors")


@pytest.mark.parametrize(
    "header", [b"[]", b'{"a": 3}', b'{"a": {"dtype": "F99", "shape": [], "data_offsets": [0, 0]}}']
)
def test_invalid_headers_raise_format_error(tmp_path: Path, header):
    (tmp_path / "t.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(FormatError):
        read_safetensors(tmp_path / "t.safetensors")
