"""Arrays from files, and errors of invalid files."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import FormatError, InputError, MissingExtraError, ShapeError, UnknownNameError
from equipoise.io.arrays import array_names, read_array, read_matrix

MATRIX = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def npz(tmp_path):
    np.savez(tmp_path / "v.npz", train=MATRIX, test=MATRIX + 1)
    return tmp_path / "v.npz"


@pytest.fixture
def safetensors(tmp_path):
    pytest.importorskip("safetensors.numpy").save_file(
        {"train": MATRIX, "test": MATRIX + 1}, tmp_path / "v.safetensors"
    )
    return tmp_path / "v.safetensors"


def test_an_npy_file_is_mapped_and_read_only(tmp_path):
    np.save(tmp_path / "v.npy", MATRIX)
    array = read_array(tmp_path / "v.npy")
    assert isinstance(array, np.memmap)
    assert not array.flags.writeable
    np.testing.assert_array_equal(array, MATRIX)


@pytest.mark.parametrize("array", [np.zeros((0, 3)), np.array(3.0), np.asfortranarray(MATRIX), np.array(["a", "bc"])])
def test_arrays_of_every_shape_are_read(tmp_path, array):
    np.save(tmp_path / "v.npy", array)
    np.testing.assert_array_equal(read_array(tmp_path / "v.npy"), array)


def test_single_arrays_need_no_name(tmp_path):
    np.savez_compressed(tmp_path / "one.npz", MATRIX)
    np.testing.assert_array_equal(read_array(tmp_path / "one.npz"), MATRIX)
    np.testing.assert_array_equal(read_array(f"{tmp_path}/one.npz:arr_0"), MATRIX)


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_several_arrays_are_selected_by_name(kind, request):
    path = request.getfixturevalue(kind)
    np.testing.assert_array_equal(read_array(f"{path}:test"), MATRIX + 1)
    with pytest.raises(InputError, match="2 arrays: test, train") as error:
        read_array(path)
    assert error.value.hint.endswith(":test")
    with pytest.raises(UnknownNameError, match="'tran'") as name_error:
        read_array(f"{path}:tran")
    assert "train" in name_error.value.hint


def test_existing_files_with_a_colon_take_precedence(npz):
    path = npz.with_name("v.npz:test")
    np.savez(npz.with_name("other.npz"), MATRIX + 5)
    npz.with_name("other.npz").rename(path)
    with pytest.raises(FormatError) as error:
        read_array(path)
    assert error.value.code == "E204"


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_object_arrays_raise_format_error(tmp_path, suffix):
    save = np.save if suffix == "npy" else np.savez
    save(tmp_path / f"v.{suffix}", np.array([{}, None], dtype=object))
    with pytest.raises(FormatError) as error:
        read_array(tmp_path / f"v.{suffix}")
    assert "dtype=str" in error.value.hint


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_pickles_raise_format_error(tmp_path, suffix):
    (tmp_path / f"v.{suffix}").write_bytes(pickle.dumps(MATRIX))
    with pytest.raises(FormatError):
        read_array(tmp_path / f"v.{suffix}")


def test_truncated_files_raise_format_error(tmp_path, npz, safetensors):
    np.save(tmp_path / "v.npy", MATRIX)
    for path in (tmp_path / "v.npy", npz, safetensors):
        data = path.read_bytes()
        for length in (len(data) - 1, len(data) // 2, 9, 3):
            path.write_bytes(data[:length])
            with pytest.raises(FormatError):
                read_array(path)


def test_files_with_the_wrong_suffix_raise_format_error_with_a_hint(tmp_path, npz):
    np.save(tmp_path / "v.npy", MATRIX)
    (tmp_path / "v.npy").rename(tmp_path / "w.npz")
    npz.rename(tmp_path / "w.npy")
    for name, suffix in (("w.npz", ".npy"), ("w.npy", ".npz")):
        with pytest.raises(FormatError) as error:
            read_array(tmp_path / name)
        assert f"begins like a {suffix} file" in error.value.hint


def test_missing_empty_and_unknown_files_raise_errors(tmp_path):
    (tmp_path / "empty.npy").touch()
    with pytest.raises(InputError):
        read_array(tmp_path / "empty.npy")
    with pytest.raises(InputError) as error:
        read_array(tmp_path / "emty.npy")
    assert error.value.hint == "did you mean empty.npy?"
    with pytest.raises(InputError):
        read_array(f"{tmp_path}/none.npz:train")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(InputError):
        read_array(tmp_path / "folder.npy")
    with pytest.raises(FormatError):
        read_array(tmp_path / "v.h5")


def test_wrong_dimensions_raise_shape_error(tmp_path):
    np.save(tmp_path / "v.npy", MATRIX)
    assert read_array(tmp_path / "v.npy", ndim=2).shape == (2, 3)
    with pytest.raises(ShapeError, match=r"\(2, 3\); 1 dimension"):
        read_array(tmp_path / "v.npy", ndim=1)


@pytest.mark.parametrize(
    ("array", "error_type"),
    [
        (np.ones(3), ShapeError),
        (np.ones((0, 3)), ShapeError),
        (np.array([["a"]]), FormatError),
        (1j * MATRIX, FormatError),
    ],
)
def test_a_matrix_is_two_dimensions_of_real_numbers(tmp_path, array, error_type):
    np.save(tmp_path / "v.npy", array)
    with pytest.raises(error_type):
        read_matrix(tmp_path / "v.npy")


def test_missing_safetensors_raises_missing_extra_error(safetensors, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "safetensors", None)
    with pytest.raises(MissingExtraError):
        read_array(safetensors)


def test_the_arrays_of_a_file_are_listed_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", b=np.ones(2), a=np.zeros(3))
    np.save(tmp_path / "one.npy", np.ones(2))
    assert array_names(tmp_path / "two.npz") == ["a", "b"]
    assert array_names(f"{tmp_path / 'two.npz'}:a") == ["a", "b"]
    assert array_names(tmp_path / "one.npy") == []
    (tmp_path / "cut.npz").write_bytes((tmp_path / "two.npz").read_bytes()[:40])
    with pytest.raises(FormatError, match=r"cut\.npz"):
        array_names(tmp_path / "cut.npz")


@pytest.mark.engines("torch")
@pytest.mark.parametrize("zip_format", [True, False])
def test_tensors_of_a_pt_file_are_read_by_name_and_batches_are_joined(tmp_path, zip_format):
    torch = pytest.importorskip("torch")

    def save(content, name):
        torch.save(content, tmp_path / name, _use_new_zipfile_serialization=zip_format)
        return tmp_path / name

    tensor = torch.from_numpy(MATRIX.copy())
    assert (read_array(save(tensor, "one.pt")) == MATRIX).all()
    path = save({"logits": [tensor[:1], tensor[1:]], "y": torch.arange(len(MATRIX))}, "two.pth")
    assert array_names(path) == ["logits", "y"]
    assert (read_array(f"{path}:logits") == MATRIX).all()
    assert read_array(f"{path}:y").tolist() == list(range(len(MATRIX)))
    bfloat16_path = save(torch.tensor([1.5, 2.0], dtype=torch.bfloat16), "half.pt")
    assert read_array(bfloat16_path).tolist() == [1.5, 2.0]


@pytest.mark.engines("torch")
def test_pt_files_with_code_or_without_tensors_raise_format_error(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save(print, tmp_path / "code.pt")
    torch.save({"model": "a name"}, tmp_path / "text.pt")
    (tmp_path / "bytes.pt").write_bytes(b"not a tensor")
    for name in ("code.pt", "text.pt", "bytes.pt"):
        with pytest.raises(FormatError):
            read_array(tmp_path / name)
