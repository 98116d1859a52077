"""Which tokenizer belongs to a model: its own, and no other in its place."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from equipoise.embed.chunk.tokens import Cl100k, Tokenizer, TokenizerFile, Words, default_tokenizer
from equipoise.embed.local.packaged import PACKAGES, install_hint
from equipoise.embed.spec import Spec, parse_spec
from equipoise.errors import EquipoiseError, InputError, MissingExtraError, ParameterError

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

_WITH_FILES = ("st", "onnx", "static")
_OPENAI_CL100K = ("text-embedding-3-", "text-embedding-ada-002")


def tokenizer_for(model: object = None) -> Tokenizer:
    """The tokenizer of a model that is given as a spec, a folder, a ``tokenizer.json``, or an object.

    ``cl100k`` and ``words`` name two that need no model. Without a model it is cl100k where its package is
    installed and words where not; ``name`` says which. What was named is taken or refused, never replaced:
    chunks would have other sizes than those asked for.

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
    if not isinstance(spec, str) or not spec:
        raise _without_tokenizer(f"an object of type {type(model).__name__}")
    return _of_text(spec)


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
    if spec.kind == "openai" and spec.name.startswith(_OPENAI_CL100K):
        return Cl100k()
    file = _in_package(spec) or _in_folder(spec) or _in_hub_cache(spec)
    if file is None:
        raise _absent(spec)
    return TokenizerFile(file, label=spec.name.rpartition("/")[2])


def _absent(spec: Spec) -> EquipoiseError:
    """Why the tokenizer of a model is not to be had."""
    if (spec.kind, spec.name) in _IN_PACKAGES:
        return MissingExtraError(
            f"the tokenizer of {spec} comes in a package that is not installed",
            hint=install_hint(spec.name if spec.name in PACKAGES else "minilm"),
        )
    if spec.kind in _WITH_FILES and spec.name.count("/") == 1 and not Path(spec.name).is_dir():
        return MissingExtraError(
            f"the tokenizer of {spec} is not on this machine",
            hint="embed a text with the model first, which downloads it; or name cl100k or words",
        )
    return _without_tokenizer(str(spec))


def _without_tokenizer(subject: str) -> ParameterError:
    return ParameterError(
        f"{subject} has no tokenizer that texts could be cut by",
        hint="name cl100k or words, or a model with a tokenizer.json",
    )


def _in_package(spec: Spec) -> Path | None:
    model, inside = _IN_PACKAGES.get((spec.kind, spec.name), ("", ""))
    found = find_spec(PACKAGES[model].module) if model else None
    if found is None or not found.submodule_search_locations:
        return None
    file = Path(found.submodule_search_locations[0]) / inside
    return file if file.is_file() else None


def _in_folder(spec: Spec) -> Path | None:
    file = Path(spec.name) / "tokenizer.json" if spec.name and spec.kind in _WITH_FILES else None
    return file if file is not None and file.is_file() else None


def _in_hub_cache(spec: Spec) -> Path | None:
    """The file of a model that was downloaded before; nothing is fetched."""
    if spec.kind not in _WITH_FILES or spec.name.count("/") != 1 or not find_spec("huggingface_hub"):
        return None
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(spec.name, "tokenizer.json")
    except ValueError:
        return None
    return Path(found) if isinstance(found, str) else None
