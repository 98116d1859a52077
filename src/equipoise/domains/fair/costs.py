"""The costs of a model: throughput, memory and price; and the cheapest of several models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import floor, inf, log2
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.models.backends.hosted import ApiEncoder
from equipoise.models.dense import DenseRetriever
from equipoise.models.embedder import weights_bytes
from equipoise.models.encoder import Role
from equipoise.models.registry import BY_ALIAS, parse_spec
from equipoise.models.rerank import RERANKERS, FusionReranker, MemoisedReranker, RetrieverReranker, parse_reranker
from equipoise.models.vector_cache import VectorCache

if TYPE_CHECKING:
    from equipoise.models.embedder import Embedder, EmbedStats
    from equipoise.models.rerank import Reranker
    from equipoise.models.retriever import Retriever

MIN_TIMED_TEXTS = 8
"""Fewer embedded texts give no reliable throughput."""

PRECOMPUTED = "vectors"
"""The kind of models whose vectors are in a file."""
_RATE = "texts_per_second"
RATE_SECONDS = 30 * 24 * 3600
"""How long a throughput is used if all vectors come from the cache: measuring again loads the model, which can take
longer than the rest of a cached run."""


@dataclass(frozen=True, slots=True)
class ModelCosts:
    """The costs of a model with its best configuration; None is unknown.

    ``documents_per_second`` is the rate of embedding or indexing chunks on this machine, ``index_bytes`` the size of
    all vectors or of the lexical index, ``model_bytes`` the size of the weights, ``price`` US dollars for a million
    chunks (0 for local models), and ``rerank_seconds`` the time of the reranker per question (0 without one).
    A reranker adds to the weights, not to ``documents_per_second``.
    """

    documents_per_second: float | None = None
    index_bytes: float | None = None
    model_bytes: float | None = None
    price: float | None = None
    rerank_seconds: float | None = 0.0

    @property
    def memory(self) -> float | None:
        """The size of the weights and the index; None if one of them is unknown."""
        return _sum([self.index_bytes, self.model_bytes])

    @property
    def order(self) -> tuple[float, ...]:
        """Sort key: price, then time of the reranker, then time per chunk, then memory; unknown is last.

        Times are powers of two, so that the order does not depend on the load of the machine. Systems without
        weights take no time worth comparing.
        """
        rate = self.documents_per_second
        seconds = 0.0 if self.model_bytes == 0.0 else None if not rate else 1 / rate
        rerank = None if self.rerank_seconds is None else _power_of_two(self.rerank_seconds)
        values = (self.price, rerank, None if seconds is None else _power_of_two(seconds), self.memory)
        return tuple(inf if value is None else value for value in values)

    @classmethod
    def of_costs(cls, costs: Mapping[str, float | None]) -> ModelCosts:
        """The costs that a manifest records."""
        return cls(**{item.name: costs.get(item.name) for item in fields(cls)})

    def to_costs(self) -> dict[str, float | None]:
        """The costs as a manifest records them."""
        return asdict(self)


UNKNOWN_COSTS = ModelCosts()


def measure_costs(
    system: Retriever,
    texts: Sequence[str],
    tokens: int,
    reports: Mapping[str, EmbedStats],
    rerank_seconds: float | None = 0.0,
    rerank_bytes: float | None = 0.0,
) -> ModelCosts:
    """The costs of a system on the chunks of its best configuration.

    ``tokens`` are those of all chunks; ``reports`` are those of the embedding calls, by the fingerprint of the model;
    ``rerank_bytes`` is the size of the weights of the reranker.
    """
    seconds_per_chunk: list[float | None] = []
    index_bytes: list[float | None] = []
    model_bytes: list[float | None] = []
    prices: list[float | None] = []
    for part in _leaves(system):
        if isinstance(part, DenseRetriever):
            model = part.embedder
            rate = _throughput(model, texts, reports.get(model.fingerprint))
            seconds_per_chunk.append(None if rate is None else 1 / rate)
            size = part.card.bytes_per_vector
            index_bytes.append(None if size is None else size * len(texts))
            model_bytes.append(None if model.spec.kind == PRECOMPUTED else weights_bytes(model.spec))
            prices.append(_price(model, tokens / len(texts)))
        else:
            start = perf_counter()
            fitted = part.fit(texts)
            seconds_per_chunk.append((perf_counter() - start) / len(texts))
            index_bytes.append(float(array_bytes(fitted)))
            model_bytes.append(0.0)
            prices.append(0.0)
    seconds = _sum(seconds_per_chunk)
    return ModelCosts(
        1 / seconds if seconds else None,
        _sum(index_bytes),
        _sum([*model_bytes, rerank_bytes]),
        _sum(prices),
        rerank_seconds,
    )


def rerank_seconds(reranker: Reranker, depth: int, observed: float) -> float | None:
    """The time of a reranker per question; None if all scores are from a cache and no time was measured before.

    ``observed`` is the time of a search; it counts only for rerankers whose scores are not memoised.
    """
    parts = reranker.parts if isinstance(reranker, FusionReranker) else (reranker,)
    memoised = [part for part in parts if isinstance(part, MemoisedReranker)]
    if not memoised:
        return observed
    seconds = _sum([part.seconds_per_pair for part in memoised])
    return None if seconds is None else depth * seconds


def rerank_bytes(reranker: Reranker) -> float | None:
    """The size of the weights of a reranker; None if unknown."""
    if isinstance(reranker, FusionReranker):
        return _sum([rerank_bytes(part) for part in reranker.parts])
    if isinstance(reranker, RetrieverReranker):
        leaves = list(_leaves(reranker.system))
        return _sum([weights_bytes(leaf.embedder.spec) if isinstance(leaf, DenseRetriever) else 0.0 for leaf in leaves])
    kind = reranker.card.spec.partition(":")[0]
    if kind not in RERANKERS:
        return None  # an object
    name = parse_reranker(reranker.card.spec).name or "minilm"
    alias = next((known.alias for known in BY_ALIAS.values() if name in (known.alias, known.hub)), None)
    return weights_bytes(parse_spec(alias or f"st:{name}"))


def cheapest(costs: Mapping[str, ModelCosts]) -> str | None:
    """The model with the lowest costs; None if the costs of one that might be cheaper are unknown.

    >>> lexical, dense = ModelCosts(900.0, 10.0, 0.0, 0.0), ModelCosts(20.0, 10.0, 90.0, 0.0)
    >>> cheapest({"minilm": dense, "bm25:": lexical}), cheapest({"minilm": dense, "use": ModelCosts(price=0.0)})
    ('bm25:', None)
    """
    ranked = sorted(costs, key=lambda name: costs[name].order)
    if not ranked:
        return None
    lowest, *others = (costs[name].order for name in ranked)
    for other in others:
        # An unknown cost is sorted last. It matters only if all costs before it are equal.
        if inf in next((pair for pair in zip(lowest, other, strict=True) if pair[0] != pair[1] or inf in pair), ()):
            return None
    return ranked[0]


def _power_of_two(seconds: float) -> float:
    """The next smaller power of two; 0 for no time."""
    return 2.0 ** floor(log2(seconds)) if seconds > 0.0 else 0.0


def _leaves(system: Retriever) -> Iterator[Retriever]:
    parts = getattr(system, "parts", None)
    if parts is None:
        yield system
    else:
        for part in parts:
            yield from _leaves(part)


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum; None if one of the values is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _price(model: Embedder, tokens_per_chunk: float) -> float | None:
    """US dollars for a million chunks: 0 for a local model, None for a service without a known price."""
    price = model.encoder.price
    return None if price is None else float(price * tokens_per_chunk)


def array_bytes(value: Any, depth: int = 4) -> int:
    """The size of all arrays in the attributes of an object."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if depth == 0 or isinstance(value, str | bytes | int | float | type(None)):
        return 0
    if isinstance(value, Mapping):
        return sum(len(key) for key in value if isinstance(key, str)) + sum(
            array_bytes(part, depth - 1) for part in value.values()
        )
    if isinstance(value, list | tuple):
        return sum(array_bytes(part, depth - 1) for part in value if not isinstance(part, str))
    names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
    return sum(array_bytes(getattr(value, name, None), depth - 1) for name in names)


# Throughput of embedding models on this machine.


def _throughput(model: Embedder, texts: Sequence[str], report: EmbedStats | None) -> float | None:
    """Texts per second on this machine: the highest that was measured, because other programs only lower it.

    Unknown for precomputed vectors: reading them says nothing about the model that computed them.

    If the vectors came from the cache and the last measurement is a month old, a few texts are embedded again. A
    service would bill them, so its throughput is only known from earlier runs.
    """
    if model.spec.kind == PRECOMPUTED:
        return None
    cache = VectorCache.default()
    stored = (cache.read_measurement(model.fingerprint) if cache is not None else None) or {}
    if report is not None and report.embedded >= max(MIN_TIMED_TEXTS, report.from_cache) and report.seconds > 0:
        rate = report.embedded / report.seconds
    else:
        if isinstance(model.encoder, ApiEncoder) or cache is None or len(texts) < MIN_TIMED_TEXTS:
            return stored.get(_RATE)
        if cache.read_measurement(model.fingerprint, max_age=RATE_SECONDS):
            return stored.get(_RATE)
        sample = [model.prompts[Role.DOCUMENT] + text for text in texts[:MIN_TIMED_TEXTS]]
        model.encoder.encode(sample[:1], Role.DOCUMENT)  # loads the model
        start = perf_counter()
        model.encoder.encode(sample, Role.DOCUMENT)
        rate = len(sample) / (perf_counter() - start)
    rate = max(rate, stored.get(_RATE, 0.0))
    if cache is not None:
        cache.write_measurement(model.fingerprint, {_RATE: rate})
    return rate
