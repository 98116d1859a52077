"""The costs of a system: load time, texts per second, query latency, dimensions, bytes and price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import nan
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.geometry.topk import top_columns
from equipoise.models.dense import SHARDED_TEXTS
from equipoise.models.encoder import Role, l2_normalize
from equipoise.models.vector_cache import MEASUREMENT_SECONDS

if TYPE_CHECKING:
    from equipoise.domains.bench.base_data import BenchData
    from equipoise.domains.bench.systems import EncoderUse, MeasuredEncoder, OpenSystem

MIN_TEXTS = 64
"""From this number of encoded texts on, the rate of the run is used; otherwise a sample is encoded."""
SAMPLE_SECONDS = 1.0
"""A sample ends after this time."""
LATENCY_QUERIES = 20
_TIMES = ("load_seconds", "documents_per_second", "queries_per_second", "latency_p50", "latency_p95")


@dataclass(frozen=True, slots=True)
class SystemCost:
    """Measured and derived costs; NaN is unknown or does not apply.

    ``documents_per_second`` and ``queries_per_second`` are rates of the encoder (or of indexing and scoring for a
    lexical system) without cached texts. ``latency_p50`` and ``latency_p95`` are seconds for one query, encoding and
    exact search. ``price`` is in US dollars per million documents.
    """

    load_seconds: float = nan
    documents_per_second: float = nan
    queries_per_second: float = nan
    latency_p50: float = nan
    latency_p95: float = nan
    dims: float = nan
    bytes_per_vector: float = nan
    index_bytes: float = nan
    price: float = nan

    @property
    def seconds_per_document(self) -> float:
        """The time to embed a document."""
        return 1 / self.documents_per_second if self.documents_per_second else nan

    def to_dict(self) -> dict[str, float | None]:
        """Plain values; unknown ones are None."""
        return {name: None if value != value else float(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> SystemCost:
        """The inverse of ``to_dict``; names that are not known here are ignored."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: nan if value is None else float(value) for name, value in content.items() if name in known})


def dense_cost(
    system: OpenSystem, encoder: MeasuredEncoder, used: EncoderUse, data: BenchData, price: float | None
) -> SystemCost:
    """The cost of a model; ``used`` is what its encoder did on this data set."""
    model = system.model
    assert model is not None
    measured = _stored_times(system, encoder, used, data)
    if measured is None:
        measured = _measured_times(system, encoder, used, data)
        if model.cache is not None:
            model.cache.write_measurement(_times_key(system, encoder, data), measured)
    documents = data.texts[1]
    stored = model.card.bytes_per_vector or nan
    return SystemCost(
        **measured,
        dims=float(model.dims),
        bytes_per_vector=stored,
        index_bytes=stored * len(documents),
        price=_price(encoder, documents, encoder.price if price is None else price),
    )


def _stored_times(
    system: OpenSystem, encoder: MeasuredEncoder, used: EncoderUse, data: BenchData
) -> dict[str, float] | None:
    """The times of an earlier run if all vectors came from the cache: nothing is embedded to measure them again."""
    cache = None if system.model is None else system.model.cache
    if cache is None or any(used.texts.values()) or data.fingerprint in encoder.rates:
        return None
    stored = cache.read_measurement(_times_key(system, encoder, data), max_age=MEASUREMENT_SECONDS)
    return stored if stored is not None and set(stored) == set(_TIMES) else None


def _times_key(system: OpenSystem, encoder: MeasuredEncoder, data: BenchData) -> str:
    assert system.model is not None
    return f"bench {system.model.fingerprint} {system.spec.model} threads={encoder.threads} {data.fingerprint}"


def _measured_times(
    system: OpenSystem, encoder: MeasuredEncoder, used: EncoderUse, data: BenchData
) -> dict[str, float]:
    queries, documents = data.texts
    # Systems that share an encoder have the same rates: they are measured once per data set.
    if data.fingerprint not in encoder.rates:
        encoder.rates[data.fingerprint] = {
            role: _rate(encoder, used, role, texts) for role, texts in zip(Role, (queries, documents), strict=True)
        }
    rates = encoder.rates[data.fingerprint]
    # The vectors of a large corpus are in files: the latency of a search in memory is unknown.
    in_memory = len(documents) < SHARDED_TEXTS
    latencies = _latencies(system, encoder, queries or documents, documents if queries else ()) if in_memory else [nan]
    times = (
        encoder.use.load_seconds,
        rates[Role.DOCUMENT],
        rates[Role.QUERY],
        float(np.percentile(latencies, 50)),
        float(np.percentile(latencies, 95)),
    )
    return dict(zip(_TIMES, times, strict=True))


def retriever_cost(system: OpenSystem, data: BenchData) -> SystemCost:
    """The cost of a lexical system, a fusion or a reranked system: fit once, then search one query at a time."""
    queries, documents = data.texts
    sample = list(queries or documents)[:LATENCY_QUERIES]
    start = perf_counter()
    fitted = system.retriever.fit(list(documents))
    fit_seconds = perf_counter() - start
    k = min(10, len(documents))
    latencies = []
    for query in sample:
        start = perf_counter()
        fitted.search([query], k)
        latencies.append(perf_counter() - start)
        if sum(latencies) > SAMPLE_SECONDS:
            break
    lexical = not hasattr(system.retriever, "parts") and system.spec.reranker is None
    return SystemCost(
        documents_per_second=len(documents) / fit_seconds if lexical else nan,
        queries_per_second=len(latencies) / sum(latencies) if queries and lexical else nan,
        latency_p50=float(np.percentile(latencies, 50)),
        latency_p95=float(np.percentile(latencies, 95)),
        price=0.0 if lexical else nan,
        bytes_per_vector=system.retriever.card.bytes_per_vector or nan,
    )


def _price(encoder: MeasuredEncoder, documents: Sequence[str], per_million_tokens: float | None) -> float:
    """US dollars per million documents: 0 for a local model, NaN for a service without a known price."""
    if not per_million_tokens:
        return nan if per_million_tokens is None else 0.0
    return per_million_tokens * _tokens_per_text(encoder, documents)


def _rate(encoder: MeasuredEncoder, used: EncoderUse, role: Role, texts: Sequence[str]) -> float:
    """Texts per second; a sample of evenly spaced texts is encoded if the run encoded too few."""
    if not texts:
        return nan
    if used.texts[role] >= min(MIN_TEXTS, len(set(texts))):
        return used.texts[role] / max(used.seconds[role], 1e-9)
    sample = [texts[int(place)] for place in np.unique(np.linspace(0, len(texts) - 1, MIN_TEXTS).astype(np.int64))]
    encoder.warm_up(sample, role)
    done, seconds = 0, 0.0
    for first in range(0, len(sample), 16):
        block = sample[first : first + 16]
        start = perf_counter()
        encoder.inner.encode(block, role)
        seconds += perf_counter() - start
        done += len(block)
        if seconds > SAMPLE_SECONDS:
            break
    return done / max(seconds, 1e-9)


def _latencies(
    system: OpenSystem, encoder: MeasuredEncoder, queries: Sequence[str], documents: Sequence[str]
) -> list[float]:
    """Seconds per query: encoding alone, or encoding and exact search over the documents."""
    model = system.model
    assert model is not None
    # An index holds valid unit vectors: nothing is checked or normalised again for every query.
    vectors = l2_normalize(model.embed(documents)) if len(documents) else None
    latencies: list[float] = []
    for query in queries[:LATENCY_QUERIES]:
        start = perf_counter()
        vector = model.finish(encoder.inner.encode([model.prompts[Role.QUERY] + query], Role.QUERY))
        if vectors is not None:
            top_columns(vector @ vectors.T, min(10, len(vectors)))
        latencies.append(perf_counter() - start)
        if sum(latencies) > SAMPLE_SECONDS:
            break
    return latencies


def _tokens_per_text(encoder: MeasuredEncoder, texts: Sequence[str]) -> float:
    """The mean number of tokens; four characters per token where the model does not count them."""
    sample = list(texts[:200])
    counts = encoder.token_counts(sample)
    return float(np.mean(counts if counts is not None else [len(text) / 4 for text in sample]))
