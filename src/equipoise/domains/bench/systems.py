"""The systems of a benchmark: models, variants of their vectors, hybrids, rerankers and baselines.

Models that differ only in what happens after the encoder (dimensions, storage, prompts) share one encoder, and every
text is encoded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from equipoise.errors import ParameterError, UndefinedError
from equipoise.models.backends.hosted import ApiEncoder
from equipoise.models.backends.python_object import from_object, object_name
from equipoise.models.dense import DenseRetriever
from equipoise.models.embedder import Embedder, embedder, open_cache
from equipoise.models.encoder import (
    EncodedBatch,
    Encoder,
    LocalEncoder,
    ModelCard,
    Role,
    Vectors,
    encode_with_token_counts,
)
from equipoise.models.fusion import ReciprocalRankFusion, SumFusion, WeightedSumFusion
from equipoise.models.inventory import weights_revision
from equipoise.models.lexical import FittedTfidf, TfidfRetriever
from equipoise.models.registry import ModelSpec, is_fusion, parse_fusion, parse_spec, spec_kind, spec_parts
from equipoise.models.rerank import RerankedRetriever, Reranker, reranker
from equipoise.models.retriever import LEXICAL, Retriever, resolve_models, retriever
from equipoise.progress import ignore_shares

if TYPE_CHECKING:
    from equipoise.domains.bench.base_data import BenchData
    from equipoise.models.vector_cache import VectorCache


RANDOM = "random"
RERANKED = " > "
POSTPROCESSING = ("dim", "dtype", "normalize", "query_prompt", "document_prompt", "geometry", "store")
"""Options of a spec that do not change the encoder."""
DEFAULT_DEPTH = 50
MEMOISED_TEXTS = 200_000
"""Vectors of more texts are not kept in memory."""


class RandomEncoder(LocalEncoder):
    """A vector of normal random numbers per text, seeded by the text: the random baseline."""

    cacheable = False
    symmetric = True
    dims = 64
    card = ModelCard("random vectors", RANDOM, dims=dims, origin="computed")
    identity = f"random normal 1 dims={dims}"

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """The same text has the same vector."""
        seeds = (int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") for text in texts)
        rows = [np.random.default_rng(seed).standard_normal(self.dims, dtype=np.float32) for seed in seeds]
        return EncodedBatch(np.array(rows, dtype=np.float32), None)


@dataclass
class EncoderUse:
    """The texts and seconds of an encoder by role. Cached texts are not counted."""

    texts: dict[Role, int] = field(default_factory=lambda: dict.fromkeys(Role, 0))
    seconds: dict[Role, float] = field(default_factory=lambda: dict.fromkeys(Role, 0.0))
    load_seconds: float = 0.0

    def since(self, earlier: EncoderUse) -> EncoderUse:
        """What was done after an earlier state."""
        return EncoderUse(
            {role: count - earlier.texts[role] for role, count in self.texts.items()},
            {role: seconds - earlier.seconds[role] for role, seconds in self.seconds.items()},
            self.load_seconds,
        )


class MeasuredEncoder(LocalEncoder):
    """An encoder that measures its time and, without a vector cache, keeps its vectors in memory."""

    def __init__(self, encoder: Encoder, *, memoise: bool, threads: int, model: Any = None) -> None:
        self.inner, self.threads = encoder, threads
        self._model = model  # the key of an object is its id, which must not be used again
        self.card, self.identity = encoder.card, encoder.identity
        self.block_texts, self.symmetric = encoder.block_texts, encoder.symmetric
        self.cacheable, self.normalizes, self.prompts = encoder.cacheable, encoder.normalizes, encoder.prompts
        self.use = EncoderUse()
        self._is_warm = not isinstance(model, str)  # an object is loaded
        self.rates: dict[str, dict[Role, float]] = {}
        """Texts per second by data set and role."""
        self._memory: dict[tuple[str, str], tuple[Vectors, int | None]] | None = {} if memoise else None

    @property
    def price(self) -> float | None:
        """The price of the encoder."""
        return self.inner.price

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """Vectors and lengths; texts that were encoded before come from memory."""
        if self._memory is None or len(self._memory) > MEMOISED_TEXTS:
            return self.measured(texts, role)
        memory, key = self._memory, "any" if self.symmetric else str(role)
        new = [text for text in dict.fromkeys(texts) if (key, text) not in memory]
        if new:
            batch = self.measured(new, role)
            for place, text in enumerate(new):
                memory[key, text] = batch.vectors[place], None if batch.counts is None else batch.counts[place]
        rows = [memory[key, text] for text in texts]
        counts = [count for _, count in rows if count is not None]
        vectors = np.array([vector for vector, _ in rows], dtype=np.float32)
        return EncodedBatch(vectors, counts if len(counts) == len(rows) else None)

    def measured(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """Encode now, and count texts and seconds."""
        self.warm_up(texts, role)
        start = perf_counter()
        batch = encode_with_token_counts(self.inner, texts, role)
        self.use.seconds[role] += perf_counter() - start
        self.use.texts[role] += len(texts)
        return batch

    def warm_up(self, texts: Sequence[str], role: Role) -> None:
        """Encode a first text before anything is timed: models are loaded when they are first used."""
        if self._is_warm or not texts or isinstance(self.inner, ApiEncoder):
            return
        self._is_warm = True
        start = perf_counter()
        with ignore_shares():
            self.inner.encode(list(texts[:1]), role)
        self.use.load_seconds += perf_counter() - start

    def token_counts(self, texts: Sequence[str]) -> list[int] | None:
        """Those of the encoder."""
        return self.inner.token_counts(texts)

    def close(self) -> None:
        """Close the encoder and release its vectors."""
        self.inner.close()
        if self._memory is not None:
            self._memory.clear()


@dataclass(frozen=True)
class SystemSpec:
    """One system as it was requested: a name, the model, and a reranker of its first hits.

    ``weight`` is that of the first part of a sum fusion; None for the plain sum. ``tune`` are the parameters that
    are selected by nested cross-validation.
    """

    name: str
    model: Any
    reranker: str | Any | None = None
    depth: int = DEFAULT_DEPTH
    baseline: bool = False
    weight: float | None = None
    tune: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of its spec; empty for a Python object."""
        return "" if _is_random(self.model) else spec_kind(self.model)

    @property
    def has_vectors(self) -> bool:
        """Whether it can embed a single text: not BM25, fusions and rerankers."""
        return self.reranker is None and self.kind not in ("bm25", "sum", "rrf")

    @property
    def repeatable(self) -> bool:
        """Whether its name identifies it, so that a stored run can be used again."""
        return isinstance(self.model, str) and isinstance(self.reranker, str | None)

    def applies_to(self, data: BenchData) -> bool:
        """Whether it can be evaluated on a data set."""
        return self.has_vectors or not data.needs_vectors

    def version(self) -> str:
        """The facts that a stored run depends on: the spec, and the hash or revision of the weights."""
        specs = spec_parts(self.model) if isinstance(self.model, str) else []
        if isinstance(self.reranker, str):  # a cross-encoder or the token encoder of MaxSim
            kind, _, name = self.reranker.partition(":")
            specs += [f"st:{name}"] if kind == "cross-encoder" else [name] if name and kind == "maxsim" else []
        revisions = [weights_revision(spec) for spec in specs if not _is_random(spec)]
        return "\n".join([self.name, f"{self.reranker} {self.depth} {self.tune}", *revisions])


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemVariants:
    """What is compared besides the models themselves; the fields are parameters of ``bench.compare``."""

    dims: Sequence[int] = ()
    dtypes: Sequence[str] = ()
    rerankers: Sequence[Any] = ()
    rerank_depth: int = DEFAULT_DEPTH
    tune: Sequence[str] = ()
    baselines: bool = True
    device: str | None = None


def expand_systems(models: Any, variants: SystemVariants, data: Sequence[BenchData] = ()) -> list[SystemSpec]:
    """The models, their variants by dimensions and storage, each of these reranked or tuned, and the baselines.

    >>> variants = SystemVariants(dims=[64], dtypes=["int8"], baselines=False)
    >>> [system.name for system in expand_systems(["hash"], variants)]
    ['hash', 'hash,dim=64,dtype=int8']
    """
    named_models = models if isinstance(models, Mapping) else [each for each in _listed(models) if not _is_random(each)]
    systems: dict[str, SystemSpec] = {}
    for name, model in (named_models if isinstance(named_models, Mapping) else resolve_models(named_models)).items():
        for variant_name, variant in _variants(name, model, variants):
            systems[variant_name] = SystemSpec(variant_name, variant)
    for system in list(systems.values()):
        for each in variants.rerankers:
            name = f"{system.name}{RERANKED}{each if isinstance(each, str) else object_name(each)}"
            systems[name] = SystemSpec(name, system.model, each, variants.rerank_depth)
    systems |= {system.name: system for system in tuned_systems(list(systems.values()), variants.tune)}
    if variants.baselines:
        ranking = any(not each.needs_vectors for each in data)
        # ``bm25`` and ``bm25:`` are the same model.
        names = {name.rstrip(":") for name in systems}
        for spec in (*(["bm25"] if ranking else []), "tfidf", RANDOM):
            if spec.rstrip(":") not in names:
                systems[spec] = SystemSpec(spec, spec, baseline=True)
    return list(systems.values())


def _is_random(model: Any) -> bool:
    return isinstance(model, str) and model == RANDOM


def _listed(models: Any) -> list[Any]:
    return [models] if isinstance(models, str) or not isinstance(models, Iterable) else list(models)


def _variants(name: str, model: Any, variants: SystemVariants) -> list[tuple[str, Any]]:
    """The model itself, then every combination of dimensions and storage; only models that embed have variants."""
    if not isinstance(model, str) or spec_kind(model) in (*LEXICAL, "sum", "rrf"):
        return [(name, model)]
    device = variants.device
    placed = f"{model},device={device}" if device is not None and spec_kind(model) == "st" else model
    named = [(name, placed)]
    for dim in variants.dims or (None,):
        for dtype in variants.dtypes or (None,):
            options = {"dim": dim, "dtype": None if dtype == "float32" else dtype}
            suffix = "".join(f",{key}={value}" for key, value in options.items() if value is not None)
            if suffix:
                named.append((f"{name}{suffix}", f"{placed}{suffix}"))
    return named


class OpenSystem:
    """A system that is loaded: a retriever, and vectors where it has them."""

    def __init__(self, spec: SystemSpec, retriever: Retriever) -> None:
        self.spec, self._retriever = spec, retriever

    @property
    def retriever(self) -> Retriever:
        """The system as a retriever."""
        return self._retriever

    @property
    def model(self) -> Embedder | None:
        """The model of a dense system; None for lexical systems and fusions."""
        retriever = self._retriever.base if isinstance(self._retriever, RerankedRetriever) else self._retriever
        return retriever.embedder if isinstance(retriever, DenseRetriever) else None

    def vectors(self, texts: Sequence[str], role: Role = Role.DOCUMENT) -> Any:
        """One row per text; a sparse matrix of unit rows for TF-IDF, fitted on these texts."""
        if self.model is not None and self.spec.has_vectors:
            return self.model.embed(texts, role)
        if isinstance(self._retriever, TfidfRetriever):
            fitted = self._retriever.fit(texts)
            assert isinstance(fitted, FittedTfidf)
            return fitted.document_matrix()
        raise UndefinedError(f"{self.spec.name} has no vectors", hint="use a model that embeds")


class SystemPool:
    """Opens systems; encoders are shared between systems and closed when no later system needs them.

    A pool that is sent to another process is empty there, and all jobs of the run in that process share it.
    """

    def __init__(
        self, *, cache: VectorCache | Path | str | bool | None = None, threads: int = 1, run_id: str = ""
    ) -> None:
        self._cache, self.threads = cache, threads
        self._run_id = run_id or uuid4().hex
        self._encoders: dict[str, MeasuredEncoder] = {}
        self._opened: OpenSystem | None = None
        self._failures: dict[str, Exception] = {}
        self._rerankers: dict[Any, Reranker] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _pool_of_this_process, (self._run_id, self._cache, self.threads)

    def open(self, spec: SystemSpec) -> OpenSystem:
        """The system, loaded; one that cannot be loaded is not tried again on the next data set."""
        if self._opened is not None and self._opened.spec is spec:
            return self._opened
        if spec.name in self._failures:
            raise self._failures[spec.name]
        self._opened = None
        try:
            base = self._retriever(spec.model, spec.weight)
            if spec.reranker is not None:
                base = RerankedRetriever(base, self.reranker(spec.reranker), depth=spec.depth)
        except Exception as error:
            self._failures[spec.name] = error
            raise
        self._opened = OpenSystem(spec, base)
        return self._opened

    def reranker(self, spec: Any) -> Reranker:
        """The reranker, loaded once."""
        key = spec if isinstance(spec, str) else id(spec)
        if key not in self._rerankers:
            self._rerankers[key] = reranker(spec)
        return self._rerankers[key]

    def encoder_of(self, system: OpenSystem) -> MeasuredEncoder | None:
        """The shared encoder of a dense system."""
        encoder = None if system.model is None else system.model.encoder
        return encoder if isinstance(encoder, MeasuredEncoder) else None

    def keep_only(self, systems: Iterable[SystemSpec]) -> None:
        """Close the encoders that none of these systems needs."""
        needed = {key for system in systems for key in encoder_keys(system.model)}
        for key in [key for key in self._encoders if key not in needed]:
            self._encoders.pop(key).close()

    def _retriever(self, model: Any, weight: float | None = None) -> Retriever:
        if isinstance(model, Retriever):
            return model
        if isinstance(model, str) and is_fusion(model):
            kind, options, parts = parse_fusion(model)
            systems = [self._retriever(part) for part in parts]
            if kind == "sum":
                return SumFusion(systems) if weight is None else WeightedSumFusion(systems, weight)
            return ReciprocalRankFusion(systems, **{name: float(value) for name, value in options.items()})
        if isinstance(model, str) and not _is_random(model) and spec_kind(model) in LEXICAL:
            return retriever(model)
        return self._dense(model)

    def _dense(self, model: Any) -> DenseRetriever:
        spec = ModelSpec("py", RANDOM) if _is_random(model) else parse_spec(model) if isinstance(model, str) else None
        options = {} if spec is None else dict(spec.options)
        key = encoder_keys(model)[0]
        if key not in self._encoders:
            self._encoders[key] = self._load(model, spec)
        model_spec = None if spec is None else spec.without(["geometry", "store"])
        encoder = self._encoders[key]
        shared = Embedder(encoder, model_spec, cache=open_cache(self._cache) if encoder.cacheable else None)
        return DenseRetriever(
            shared, options.get("geometry", "cosine"), store=options.get("store"), threads=self.threads
        )

    def _load(self, model: Any, spec: ModelSpec | None) -> MeasuredEncoder:
        start = perf_counter()
        if _is_random(model):
            encoder: Encoder = RandomEncoder()
        elif spec is None:
            encoder = model.encoder if isinstance(model, Embedder) else from_object(model)
        else:
            encoder = embedder(spec.without(POSTPROCESSING), cache=False, threads=self.threads).encoder
        memoise = open_cache(self._cache) is None or not encoder.cacheable
        measured = MeasuredEncoder(encoder, memoise=memoise, threads=self.threads, model=model)
        measured.use.load_seconds = perf_counter() - start
        return measured


_POOLS: dict[str, SystemPool] = {}
"""The pool of the current run in a worker process, by run id."""


def _pool_of_this_process(run_id: str, cache: Any, threads: int) -> SystemPool:
    if run_id not in _POOLS:
        for pool in _POOLS.values():
            pool.keep_only(())
        _POOLS.clear()
        _POOLS[run_id] = SystemPool(cache=cache, threads=threads, run_id=run_id)
    return _POOLS[run_id]


def encoder_keys(model: Any) -> list[str]:
    """The keys of the encoders of a model: one, several in a fusion, or none."""
    if not isinstance(model, str):
        return [f"object {id(model)}"]
    if _is_random(model):
        return [RANDOM]
    if is_fusion(model):
        return [key for part in spec_parts(model) for key in encoder_keys(part)]
    if spec_kind(model) in LEXICAL:
        return []
    return [str(parse_spec(model).without(POSTPROCESSING))]


TUNABLE = ("fusion", "depth")
"""What ``--tune`` accepts: the weight of a ``sum:`` fusion of two systems, and the depth of a reranker."""


TUNED = " (tuned)"


def tuned_systems(systems: Sequence[SystemSpec], tune: Sequence[str]) -> list[SystemSpec]:
    """A tuned variant of each system that has a parameter to tune."""
    for name in tune:
        if name not in TUNABLE:
            raise ParameterError(f"{name!r} cannot be tuned", hint=f"choose {', '.join(TUNABLE)}")
    tuned = []
    for system in systems:
        tunable = tuple(name for name in TUNABLE if name in tune and _applies(name, system))
        if tunable:
            tuned.append(replace(system, name=f"{system.name}{TUNED}", tune=tunable))
    missing = [name for name in tune if not any(name in system.tune for system in tuned)]
    if missing:
        needs = {"fusion": "a fusion of two systems (--models sum:a+b)", "depth": "a reranker (--rerankers SPEC)"}
        raise ParameterError(
            f"no system has a parameter {missing[0]} to tune", hint=f"tuning {missing[0]} needs {needs[missing[0]]}"
        )
    return tuned


def _applies(name: str, system: SystemSpec) -> bool:
    if name == "depth":
        return system.reranker is not None
    if not (isinstance(system.model, str) and is_fusion(system.model)):
        return False
    kind, _, parts = parse_fusion(system.model)
    return kind == "sum" and len(parts) == 2
