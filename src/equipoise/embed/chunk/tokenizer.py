"""Which tokenizer belongs to a model: its own tokenizer.json where there is one, else the default."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from equipoise.embed.chunk.tokens import Cl100k, Tokenizer, TokenizerFile, Words, default_tokenizer
from equipoise.embed.local.packaged import PACKAGES
from equipoise.embed.spec import Spec, parse_spec
from equipoise.errors import InputError, MissingExtraError

__all__ = ["Tokenizer", "tokenizer_for"]

_BY_NAME: dict[str, type[Cl100k] | type[Words]] = {"cl100k": Cl100k, "words": Words}

_MINILM = ("minilm", "model/tokenizer.json")
_IN_PACKAGES: dict[tuple[str, str], tuple[str, str]] = {
    ("onnx", "minilm"): _MINILM,
    ("onnx", "minilm-int8"): _MINILM,
    ("st", "sentence-transformers/all-MiniLM-L6-v2"): _MINILM,
    ("static", "wordllama"): ("wordllama", "tokenizers/l2_supercat_tokenizer_config.json"),
}
"""Models whose tokenizer comes inside a package: which of the packaged ones, and the file in it."""


def tokenizer_for(model: object = None) -> Tokenizer:
    """The tokenizer of a model that is given as a spec, a folder, a ``tokenizer.json``, or an object.

    ``cl100k`` and ``words`` name the two that belong to no model. A model without a ``tokenizer.json`` here
    gets the default: cl100k where its package is installed, words where not. ``name`` says what was chosen.

    >>> tokenizer_for("words").name
    'words'
    """
    if model is None:
        return default_tokenizer()
    if isinstance(model, Tokenizer):
        return model
    if isinstance(model, Path):
        return _of_path(model)
    if isinstance(model, str):
        return _of_text(model)
    if isinstance(model, Spec):
        return _of_spec(model)
    spec = getattr(getattr(model, "card", None), "spec", "")
    return _of_text(spec) if isinstance(spec, str) and spec else default_tokenizer()


def _of_text(text: str) -> Tokenizer:
    if text in _BY_NAME:
        return _BY_NAME[text]()
    path = Path(text).expanduser()
    if path.suffix == ".json" or (path / "tokenizer.json").is_file():
        return _of_path(path)
    return _of_spec(parse_spec(text))


def _of_path(path: Path) -> Tokenizer:
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        raise InputError(
            f"there is no tokenizer.json at {path}",
            hint="name the file, or the folder of a model that holds one",
        )
    return TokenizerFile(file)


def _of_spec(spec: Spec) -> Tokenizer:
    file = _in_package(spec) or _in_folder(spec) or _in_hub_cache(spec)
    if file is None:
        return default_tokenizer()
    try:
        return TokenizerFile(file, label=spec.name.rpartition("/")[2])
    except MissingExtraError:
        return default_tokenizer()


def _in_package(spec: Spec) -> Path | None:
    model, inside = _IN_PACKAGES.get((spec.kind, spec.name), ("", ""))
    found = find_spec(PACKAGES[model].module) if model else None
    if found is None or not found.submodule_search_locations:
        return None
    file = Path(found.submodule_search_locations[0]) / inside
    return file if file.is_file() else None


def _in_folder(spec: Spec) -> Path | None:
    file = Path(spec.name) / "tokenizer.json" if spec.name and spec.kind in ("st", "onnx", "static") else None
    return file if file is not None and file.is_file() else None


def _in_hub_cache(spec: Spec) -> Path | None:
    """The file of a model that was downloaded before; nothing is fetched."""
    if (
        spec.kind not in ("st", "onnx", "static")
        or spec.name.count("/") != 1
        or not find_spec("huggingface_hub")
    ):
        return None
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(spec.name, "tokenizer.json")
    except ValueError:
        return None
    return Path(found) if isinstance(found, str) else None
