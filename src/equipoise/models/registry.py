"""The model registry: the spec grammar ``kind:name,option=value``, all kinds of models, aliases, and the loader."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.errors import (
    FormatError,
    InputError,
    ParameterError,
    UnknownNameError,
    UntrustedError,
    check_options,
    did_you_mean,
)
from equipoise.io.text import PathLike, display_path
from equipoise.progress import activity
from equipoise.redaction import note_options

if TYPE_CHECKING:
    from equipoise.models.encoder import Encoder

# Kinds of models: description, module and requirements.


@dataclass(frozen=True, slots=True)
class ModelKind:
    """One kind of model: ``load(spec) -> Encoder`` in ``module``; ``module`` is empty for lexical systems."""

    kind: str
    title: str
    module: str
    extra: str
    offline: bool
    """Whether it works without a network and a key once the weights are there."""
    runs_code: bool = False
    """Whether its name is code to be imported."""


MODEL_KINDS: dict[str, ModelKind] = {
    kind.kind: kind
    for kind in (
        ModelKind("st", "sentence-transformers, a hub name or a folder", "sentence_transformers", "st", True),
        ModelKind("onnx", "a folder with model.onnx and tokenizer.json", "onnx", "local", True),
        ModelKind("static", "token vectors averaged: model2vec folders, WordLlama", "static", "local", True),
        ModelKind("use", "USE-multilingual v3, 16 languages", "universal_sentence_encoder", "local", True),
        ModelKind("openai", "the OpenAI protocol, any base_url", "openai", "openai", False),
        ModelKind("ollama", "a model of an Ollama server", "openai", "openai", False),
        ModelKind("vllm", "a model of a vLLM server", "openai", "openai", False),
        ModelKind("tei", "a text-embeddings-inference server", "openai", "openai", False),
        ModelKind("infinity", "a model of an Infinity server", "openai", "openai", False),
        ModelKind("litellm", "any provider that litellm knows", "litellm", "litellm", False),
        ModelKind("cohere", "Cohere, through litellm", "litellm", "litellm", False),
        ModelKind("voyage", "Voyage, through litellm", "litellm", "litellm", False),
        ModelKind("vectors", "precomputed vectors: npy, npz, parquet", "precomputed", "", True),
        ModelKind("py", "any importable object with encode or embed", "python_object", "", True, True),
        ModelKind("hash", "hashed words: minimum baseline", "hashing", "", True),
        ModelKind("tfidf", "character n-grams, TF-IDF", "", "lexical", True),
        ModelKind("bm25", "BM25", "", "lexical", True),
        ModelKind("sum", "sum of the scores of two or more systems", "", "", True),
        ModelKind("rrf", "reciprocal rank fusion of systems", "", "", True),
    )
}


# Known models of the hub: alias, prompts, dimensions, window, license.


@dataclass(frozen=True, slots=True)
class HubModel:
    """The facts that the authors of a hub model publish; the prompts precede each query and document."""

    alias: str
    hub: str
    dims: int
    max_tokens: int
    licence: str
    query_prompt: str = ""
    document_prompt: str = ""


_BGE_QUERY = "Represent this sentence for searching relevant passages: "

HUB_MODELS = (
    HubModel("bge-base", "BAAI/bge-base-en-v1.5", 768, 512, "MIT", _BGE_QUERY),
    HubModel("bge-small", "BAAI/bge-small-en-v1.5", 384, 512, "MIT", _BGE_QUERY),
    HubModel("e5-base", "intfloat/e5-base-v2", 768, 512, "MIT", "query: ", "passage: "),
    HubModel("minilm", "sentence-transformers/all-MiniLM-L6-v2", 384, 256, "Apache-2.0"),
    HubModel("mpnet", "sentence-transformers/all-mpnet-base-v2", 768, 384, "Apache-2.0"),
)

BY_HUB_NAME = {model.hub: model for model in HUB_MODELS}
BY_ALIAS = {model.alias: model for model in HUB_MODELS}

ALIASES: dict[str, tuple[str, str]] = {
    **{model.alias: ("st", model.hub) for model in HUB_MODELS},
    "minilm": ("onnx", "minilm"),
    "minilm-int8": ("onnx", "minilm-int8"),
    "wordllama": ("static", "wordllama"),
    "use": ("use", ""),
    "bm25": ("bm25", ""),
    "tfidf": ("tfidf", ""),
    "hash": ("hash", ""),
}
"""Aliases without a kind, and the kind and name that they represent."""


KINDS = tuple(MODEL_KINDS)
"""Every kind a spec may begin with."""

_OPTION = re.compile(r",(?=[A-Za-z_][A-Za-z0-9_]*=)")
_KIND = re.compile(r"([A-Za-z][A-Za-z0-9_-]+):(.*)", re.DOTALL)
_VECTOR_FILES = (".npy", ".npz", ".parquet")
_MODEL2VEC_KEYS = {"max_length", "normalize", "embedding_dtype"}
_COUNTS = (
    "attempts", "batch", "batch_tokens", "dim", "dimensions", "dims", "max_tokens", "parallel", "processes",
    "threads",
)  # fmt: skip
_FLAGS = ("normalize", "trust_remote_code", "truncate")
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A parsed model spec: the kind of engine, the name, and options.

    ``st:BAAI/bge-base-en-v1.5,dim=256`` has kind ``st``, name ``BAAI/bge-base-en-v1.5`` and one option. The
    name may contain further colons. ``text`` is the original text; ``str(spec)`` is the canonical form.

    >>> str(ModelSpec("st", "a/b", {"dim": "256"}))
    'st:a/b,dim=256'
    """

    kind: str
    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        options = "".join(f",{key}={_written(self.options[key])}" for key in sorted(self.options))
        is_alias = not self.name and ALIASES.get(self.kind) == (self.kind, "")
        return f"{self.kind}{'' if is_alias else ':'}{_written(self.name)}{options}"

    def with_options(self, **options: object) -> ModelSpec:
        """The same model with further options; an option that is None is unchanged."""
        plain_options = {key: _plain(value) for key, value in options.items() if value is not None}
        return ModelSpec(self.kind, self.name, {**self.options, **plain_options}, self.text)

    def without(self, names: Container[str]) -> ModelSpec:
        """The same model without the options of these names."""
        options = {key: value for key, value in self.options.items() if key not in names}
        return ModelSpec(self.kind, self.name, options, self.text)

    def flag(self, option: str, default: bool) -> bool:
        """A yes-or-no option."""
        value = self.options.get(option)
        if value is None:
            return default
        if value.casefold() not in _YES + _NO:
            raise ParameterError(f"{option} is {value!r} in {self}", hint=f"write {option}=true or {option}=false")
        return value.casefold() in _YES

    def count(self, option: str) -> int | None:
        """An integer of at least 1; None if the option was not given."""
        value = self.options.get(option)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit() and int(value) > 0):
            raise ParameterError(f"{option} is {value!r} in {self}", hint=f"{option} must be an integer above 0")
        return int(value)

    def check_values(self) -> None:
        """Raise an error for an option value that cannot be read, before an engine is imported to use it."""
        for option in self.options:
            if option in _COUNTS:
                self.count(option)
            elif option in _FLAGS:
                self.flag(option, False)
            elif option == "device":
                from equipoise.geometry.gpu_search import check_device_name

                check_device_name(self.options[option])


def parse_spec(text: str) -> ModelSpec:
    """Read a model's name: an alias, a path, or ``kind:name,option=value,...``.

    A name or value in double quotes is read as a JSON string, so that it may hold anything.

    >>> parse_spec("openai:text-embedding-3-small,dim=256").options
    {'dim': '256'}
    >>> parse_spec("bge-base")
    ModelSpec(kind='st', name='BAAI/bge-base-en-v1.5', options={}, text='bge-base')
    """
    note_options(text)
    if not text.strip():
        raise InputError("the name of the model is empty", hint="eq ls models lists what works here")
    head, options = _split_options(text.strip("\r\n"))
    kind, name = _kind_and_name(head)
    return ModelSpec(kind, name, options, text)


def as_path(name: str) -> Path:
    """A name as a path; ``~`` is the home folder if there is one."""
    return Path(os.path.expanduser(name))


def _split_options(text: str) -> tuple[str, dict[str, str]]:
    """The part before the options, and the options; a comma inside quotes separates nothing."""
    parts: list[str] = []
    for part in _OPTION.split(text):
        if parts and _quote_is_open(parts[-1]):
            parts[-1] += "," + part
        else:
            parts.append(part)
    options: dict[str, str] = {}
    for part in parts[1:]:
        key, _, value = part.partition("=")
        if key in options:
            raise ParameterError(f"the option {key} is given twice in {text!r}", hint="keep one of them")
        options[key] = _read(value, text)
    return parts[0], options


def _quote_is_open(part: str) -> bool:
    """Whether a quoted name or value starts in this part and does not end in it."""
    start = re.match(r'(?:[A-Za-z][A-Za-z0-9_-]+[:=])?"', part)
    if start is None:
        return False
    body = re.sub(r"\\.", "", part[start.end() :], flags=re.DOTALL)
    return not body.endswith('"')


def _kind_and_name(head: str) -> tuple[str, str]:
    if head in ALIASES:
        return ALIASES[head]
    if _looks_like_path(head):
        path = as_path(head)
        return _kind_of_path(path), str(path)
    match = _KIND.fullmatch(head)
    if match is None:
        return _bare_hub_name(head)
    kind, name = match.group(1).casefold(), _read(match.group(2), head)
    if kind not in KINDS:
        raise UnknownNameError.of("kind of model", kind, KINDS, more=f"the kinds are {', '.join(KINDS)}")
    if kind == "st" and name in BY_ALIAS:
        return kind, BY_ALIAS[name].hub
    return kind, name


def _bare_hub_name(head: str) -> tuple[str, str]:
    if head in BY_HUB_NAME:
        return "st", head
    raise UnknownNameError(f"no model is called {head!r}", hint=_similar_models(head))


def _similar_models(head: str) -> str:
    """The hint for a model that does not exist: how its spec is written, or the nearest name.

    >>> _similar_models("openai/text-embedding-3-small"), _similar_models("all-MiniLM-L6-v2")
    ('write openai:text-embedding-3-small', 'write minilm')
    """
    provider, _, name = head.casefold().partition("/")
    if provider in ALIASES:
        return f"write {provider}"
    if provider in KINDS:
        return f"write {provider}:{name or 'NAME'}"
    if provider.startswith("text-embedding-"):
        return f"write openai:{head}"
    for model in HUB_MODELS:
        if provider == model.hub.rpartition("/")[2].casefold():
            return f"write {model.alias}"
    near = did_you_mean(head, [*ALIASES, *BY_HUB_NAME], cutoff=0.7)
    return near or (f"st:{head} loads it from the hub" if name else "eq ls models lists what works here")


def _looks_like_path(head: str) -> bool:
    if head.startswith(("/", "./", "../", "~", ".\\", "..\\")) or head in (".", "..") or head[1:3] == ":\\":
        return True
    if _KIND.fullmatch(head) or "\0" in head:
        return False
    return head.endswith(_VECTOR_FILES) or (("/" in head or "\\" in head) and os.path.isdir(head))


def _kind_of_path(path: Path) -> str:
    """The kind of model of a file or folder, by its content."""
    if path.suffix.casefold() in _VECTOR_FILES:
        return "vectors"
    try:
        exists = path.exists()
    except OSError:  # longer than a name may be
        exists = False
    if not exists:
        raise InputError(f"there is no model at {path}", hint="check the path")
    if not path.is_dir():
        raise InputError(f"{path} is not a model", hint="name its folder, or an .npy, .npz or .parquet file of vectors")
    if (path / "model.onnx").exists() or (path / "onnx" / "model.onnx").exists():
        return "onnx"
    if (path / "modules.json").exists() or (path / "config.json").exists():
        return "static" if _is_static(path) else "st"
    raise InputError(
        f"{path} holds no model: no model.onnx, modules.json or config.json",
        hint="name the folder that the model was saved to",
    )


def _is_static(path: Path) -> bool:
    """Whether a folder was saved by model2vec, which does not record it since version 0.10.

    sentence-transformers saves static models too, and reads them differently: its file is the criterion.
    """
    config = _json(path / "config.json")
    if isinstance(config, dict) and (config.get("model_type") == "model2vec" or config.keys() >= _MODEL2VEC_KEYS):
        return True
    modules = _json(path / "modules.json")
    kinds = (
        [str(module.get("type", "")) for module in modules if isinstance(module, dict)]
        if isinstance(modules, list)
        else []
    )
    is_table = any(kind.endswith("StaticEmbedding") for kind in kinds)
    return is_table and not (path / "config_sentence_transformers.json").exists()


def _json(path: Path) -> object:
    try:
        content: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content


def _read(value: str, text: str) -> str:
    """A name or value: as written, or a JSON string if it begins with a quote."""
    if not value.startswith('"'):
        return value
    try:
        read = json.loads(value)
    except ValueError:
        raise ParameterError(f"the quoted part {value} of {text!r} does not end", hint='write it as "..."') from None
    return str(read)


def _written(value: str) -> str:
    """The inverse of ``_read``: quoted only if necessary."""
    return json.dumps(value) if value.startswith('"') or _OPTION.search(value) or "\n" in value else value


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# Fusions: two or more specs in one.

FUSIONS = ("sum", "rrf")
_PARTS = re.compile(r'(?:[^+"]|"(?:[^"\\]|\\.)*"|")+', re.DOTALL)
_FUSION = re.compile(r"\s*(sum|rrf)((?:,[^:,=]*=[^:,]*)*):(.*)", re.DOTALL | re.IGNORECASE)


def spec_kind(system: object) -> str:
    """The kind of a spec; empty for other objects."""
    if isinstance(system, str):
        # The parts of a fusion are specs: only its prefix is parsed here.
        return spec_prefix(system) if is_fusion(system) else parse_spec(system).kind
    return system.kind if isinstance(system, ModelSpec) else ""


def is_fusion(text: str) -> bool:
    """Whether a spec fuses others.

    >>> is_fusion("rrf,k=20:use+bm25:"), is_fusion("bm25:")
    (True, False)
    """
    return spec_prefix(text) in FUSIONS


def spec_prefix(text: str) -> str:
    """What is before the first colon or comma of a spec: its kind, or an alias."""
    return text.strip().partition(":")[0].partition(",")[0].casefold()


def parse_fusion(text: str) -> tuple[str, dict[str, str], list[str]]:
    """Kind, options and parts of a fusion spec.

    >>> parse_fusion('rrf,k=20:minilm,dim=128+bm25:+st:"a+b"')
    ('rrf', {'k': '20'}, ['minilm,dim=128', 'bm25:', 'st:"a+b"'])
    """
    match = _FUSION.fullmatch(text)
    if match is None:
        raise ParameterError(f"{text!r} names no systems to fuse", hint="write sum:a+b or rrf,k=60:a+b")
    options = dict(option.split("=", 1) for option in match[2].split(",") if option)
    parts = split_parts(match[3])
    for part in parts:
        if is_fusion(part):
            raise ParameterError(
                f"{text!r} has the fusion {part!r} for a part; fusions cannot be nested",
                hint="name all systems in one fusion: sum:a+b+c",
            )
    return match[1].casefold(), options, parts


def split_parts(text: str, example: str = "a+b") -> list[str]:
    """The parts between plus signs; a plus sign in double quotes is part of a name. ``example`` is for the hint."""
    parts = [part.strip() for part in _PARTS.findall(text)]
    if len(parts) < 2 or not all(parts) or len(re.sub(_PARTS, "", text)) != len(parts) - 1:
        raise ParameterError(
            f"{text!r} is not a list of two or more systems", hint=f"put one plus sign between systems: {example}"
        )
    return parts


def spec_parts(text: str) -> list[str]:
    """The systems in a spec: the parts of a fusion, or the spec itself.

    >>> spec_parts("sum:minilm+bm25:"), spec_parts("minilm")
    (['minilm', 'bm25:'], ['minilm'])
    """
    return parse_fusion(text)[2] if is_fusion(text) else [text]


# Specs that come from files must not run code or use credentials, because the file may come from another person. Code
# that reads a spec from a tuning, a manifest, an index or a cache passes it through ``spec_from_file``. A spec that the
# user typed, or that a program passes in Python, is trusted.

_LOCAL_STORES = ("memory", "faiss")
"""Stores in memory, which open no file and no connection."""


def spec_from_file(text: object, file: PathLike, *, trust: bool = False) -> str:
    """The spec of a model that a file names, if it runs no code and uses no credentials.

    ``trust`` allows code, servers and stores. Even then the file must not choose which environment variable is sent
    as a key.

    >>> spec_from_file("sum:use+tfidf:", "tuned.json")
    'sum:use+tfidf:'
    """
    if not isinstance(text, str):
        raise FormatError(
            f"{display_path(file)} names a model by {text!r}, which is not a string", hint="write it again"
        )
    for part in spec_parts(text):
        _check_trusted(parse_spec(part), file, trust)
    return text


def _check_trusted(spec: ModelSpec, file: PathLike, trust: bool) -> None:
    typed = f"if you trust it, name the model yourself: {spec}"
    if "key_env" in spec.options:
        raise UntrustedError(
            f"{display_path(file)} names the variable {spec.options['key_env']} to be sent as a key",
            hint=typed,
        )
    warning = "" if trust else _risk(spec)
    if warning:
        raise UntrustedError(
            f"{display_path(file)} names the model {spec}, which {warning}", hint=f"{typed}, or add --trust"
        )


def _risk(spec: ModelSpec) -> str:
    """What opening the spec does besides reading data; empty if nothing."""
    kind = MODEL_KINDS[spec.kind]
    if kind.runs_code or spec.options.get("trust_remote_code", "false").casefold() != "false":
        return "runs code"
    if not kind.offline or "base_url" in spec.options:
        return "sends texts and a key to a server"
    if spec.options.get("store", "memory").partition(":")[0] not in _LOCAL_STORES:
        return "opens a store"
    return ""


# Options of a spec as numbers and choices.


def check_nameless(spec: ModelSpec, allowed: Sequence[str]) -> None:
    """Raise an error for a name or an unknown option, which would otherwise have no effect."""
    if spec.name:
        raise ParameterError(
            f"{spec.kind}: has no models, and {spec.name!r} follows it",
            hint=f"write options after a comma: {spec.kind}:,{allowed[0]}=...",
        )
    check_options(f"{spec.kind}:", spec.options, allowed)


def check_spec_options(spec: ModelSpec) -> None:
    """Raise ``ParameterError`` for an option that the adapter of the spec does not have; nothing is loaded."""
    if not spec.options:
        return
    module = MODEL_KINDS[spec.kind].module
    if not module:
        from equipoise.models.lexical import BM25_OPTIONS, TFIDF_OPTIONS

        lexical = {"bm25": BM25_OPTIONS, "tfidf": TFIDF_OPTIONS}
        if spec.kind in lexical:
            check_options(spec.text or str(spec), spec.options, lexical[spec.kind])
        return
    own = getattr(import_module(f"equipoise.models.backends.{module}"), "OPTIONS", None)
    if own is not None:
        check_options(spec.text or str(spec), spec.options, (*SHARED_OPTIONS, *own))


def number_option(spec: ModelSpec, option: str, default: float) -> float:
    """A finite number; the default where the option was not given."""
    value = spec.options.get(option)
    if value is None:
        return default
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(f"{option} is {value!r} in {spec}", hint=f"{option} is a number")
    return number


# Load the encoder of a spec.


SHARED_OPTIONS = (
    "dim", "dtype", "normalize", "query_prompt", "document_prompt", "threads", "processes",
)  # fmt: skip
"""Options that every encoder has, since the Embedder and not the adapter handles them."""


def no_vectors_error(name: str) -> ParameterError:
    """The error for a system that ranks texts, where a model that embeds them is needed."""
    return ParameterError(
        f"{name} ranks documents and has no vectors",
        hint=f"use a model that embeds, such as minilm; in Python, retriever({name!r}) ranks texts",
    )


def load_encoder(spec: ModelSpec) -> Encoder:
    """Load the model that a spec names, through its adapter's ``load(spec)``.

    An adapter lists its own options in ``OPTIONS``; any other is an error with a suggestion.
    """
    kind = MODEL_KINDS[spec.kind]
    if not kind.module:
        raise no_vectors_error(spec.text or str(spec))
    with activity(f"loading {_label(spec)}"):
        return _load(spec, kind)


def _label(spec: ModelSpec) -> str:
    """The alias of a model, or its kind and name.

    >>> _label(ModelSpec("onnx", "minilm", {"threads": "2"})), _label(ModelSpec("vectors", "a.npz"))
    ('minilm', 'vectors:a.npz')
    """
    aliases = {model: alias for alias, model in ALIASES.items()}
    return aliases.get((spec.kind, spec.name)) or str(ModelSpec(spec.kind, spec.name))


def _load(spec: ModelSpec, kind: ModelKind) -> Encoder:
    module = import_module(f"equipoise.models.backends.{kind.module}")
    module_options = getattr(module, "OPTIONS", None)
    if module_options is not None:
        check_options(f"{spec.kind}:", spec.options, (*SHARED_OPTIONS, *module_options))
        spec.check_values()
    encoder: Encoder = module.load(spec)
    return encoder
