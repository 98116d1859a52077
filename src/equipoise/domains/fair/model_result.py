"""The costs and the tuning result of one model, with the fields of embedding-eval and further ones.

Accuracies are in percent here and only here, as in embedding-eval; ``tuning`` and ``result`` hold fractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import floor, inf, isnan, log2
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.models.backends.hosted import ApiEncoder
from equipoise.models.cache import MEASUREMENT_SECONDS, VectorCache
from equipoise.models.dense import DenseRetriever
from equipoise.models.embedder import weights_bytes
from equipoise.stats.intervals import Interval, wilson_interval
from equipoise.tuning.grid import NESTED, Trial, TuningRecord
from equipoise.types import Role

if TYPE_CHECKING:
    from equipoise.errors import EquipoiseError
    from equipoise.models.embedder import Embedder, EmbedStats
    from equipoise.models.retriever import Retriever
    from equipoise.stats.result import Estimate, Result


# What a model costs: throughput, memory and price, and the cheapest of several models.

MIN_TIMED_TEXTS = 8
"""Fewer embedded texts give no reliable throughput."""

_RATE = "texts_per_second"


@dataclass(frozen=True, slots=True)
class ModelCosts:
    """The costs of a model with its best configuration; None is unknown.

    ``chunks_per_second`` is the rate of embedding or indexing chunks on this machine, ``index_bytes`` the size of
    all vectors or of the lexical index, ``model_bytes`` the size of the weights, ``price`` US dollars for a million
    chunks (0 for local models), and ``rerank_seconds`` the time of the reranker per question (0 without one).
    """

    chunks_per_second: float | None = None
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
        rate = self.chunks_per_second
        seconds = 0.0 if self.model_bytes == 0.0 else None if not rate else 1 / rate
        rerank = None if self.rerank_seconds is None else _power_of_two(self.rerank_seconds)
        values = (self.price, rerank, None if seconds is None else _power_of_two(seconds), self.memory)
        return tuple(inf if value is None else value for value in values)

    @classmethod
    def of_costs(cls, costs: Mapping[str, float | None]) -> ModelCosts:
        """The costs that a manifest records."""
        return cls(**{item.name: costs.get(_RECORDED[item.name]) for item in fields(cls)})

    def to_costs(self) -> dict[str, float | None]:
        """The costs as a manifest records them, by the standard names."""
        return {_RECORDED[item.name]: getattr(self, item.name) for item in fields(self)}


UNKNOWN_COSTS = ModelCosts()

_RECORDED = {
    "chunks_per_second": "documents_per_second",
    "index_bytes": "index_bytes",
    "model_bytes": "model_bytes",
    "price": "price",
    "rerank_seconds": "rerank_seconds",
}


def measure_costs(
    system: Retriever, texts: Sequence[str], tokens: int, reports: Mapping[str, EmbedStats], rerank_seconds: float
) -> ModelCosts:
    """The costs of a system on the chunks of its best configuration.

    ``tokens`` are those of all chunks; ``reports`` are those of the embedding calls, by the fingerprint of the model.
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
            model_bytes.append(weights_bytes(model.spec))
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
        1 / seconds if seconds else None, _sum(index_bytes), _sum(model_bytes), _sum(prices), rerank_seconds
    )


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
    if not isinstance(model.encoder, ApiEncoder):
        return 0.0
    price = model.encoder.usage.price
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

    If the vectors came from the cache and the last measurement is an hour old, a few texts are embedded again. A
    service would bill them, so its throughput is only known from earlier runs.
    """
    cache = VectorCache.default()
    stored = (cache.read_measurement(model.fingerprint) if cache is not None else None) or {}
    if report is not None and report.embedded >= max(MIN_TIMED_TEXTS, report.from_cache) and report.seconds > 0:
        rate = report.embedded / report.seconds
    else:
        if isinstance(model.encoder, ApiEncoder) or cache is None or len(texts) < MIN_TIMED_TEXTS:
            return stored.get(_RATE)
        if cache.read_measurement(model.fingerprint, max_age=MEASUREMENT_SECONDS):
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


# The tuning result of one model.

ACCURACY = "accuracy"
METRIC = f"{NESTED}{ACCURACY}"
"""The share of held-out questions answered (nested cross-validation)."""

OPTIMISTIC = f"optimistic {ACCURACY}"
"""The same with the best parameters on the questions that selected them, without cross-validation."""

EMBEDDING_EVAL_KEYS = (
    "model_spec",
    "model_name",
    "dimensions",
    "best_accuracy",
    "best_params",
    "baseline_accuracy",
    "improvement_pct",
    "ci_lower",
    "ci_upper",
    "configurations_tested",
    "optimization_time_seconds",
)
"""The keys that embedding-eval writes to a results file."""


@dataclass(frozen=True)
class ModelProfile:
    """Properties of a model other than its scores; None is unknown or not applicable."""

    spec: str
    name: str
    dimensions: int | None = None
    bytes_per_vector: float | None = None
    window: int | None = None
    """The maximum number of tokens that the model reads of a chunk; the minimum over several models."""
    chunks: int = 0
    """The number of chunks of the best configuration."""
    truncated_chunks: int | None = None
    """How many of these chunks the model truncates."""
    costs: ModelCosts = UNKNOWN_COSTS
    tied_questions: int = 0
    """How many questions have fractional hits because of tied scores."""
    retrieved_tokens: float | None = None
    """Tokens that the best configuration retrieves per question, on average."""
    seconds: float = 0.0
    cached_texts: int = 0
    """How many texts were read from the cache; the seconds do not include their embedding."""
    configurations: int = 0

    @property
    def truncated_share(self) -> float | None:
        """The share of the chunks of the best configuration that the model truncates."""
        return None if self.truncated_chunks is None or not self.chunks else self.truncated_chunks / self.chunks


@dataclass(frozen=True)
class OptimizationResult:
    """The tuning of one model. Accuracies, intervals and differences are in percent.

    ``best_accuracy`` with its interval is optimistic: the best of all configurations on the questions that
    selected it. ``nested_accuracy`` is the held-out accuracy; without folds it is NaN. Tied scores give
    fractional hits, so the number of passed questions is rounded.
    """

    model_spec: str
    model_name: str
    dimensions: int | None

    best_accuracy: float
    best_params: dict[str, Any]
    best_passed: int
    total_questions: int

    baseline_accuracy: float
    baseline_passed: int

    improvement_pct: float = 0.0
    ci_lower: float = 0.0
    ci_upper: float = 0.0

    optimization_time_seconds: float = 0.0
    configurations_tested: int = 0
    all_results: list[dict[str, Any]] = field(default_factory=list, repr=False)

    nested_accuracy: float = float("nan")
    nested_ci_lower: float = float("nan")
    nested_ci_upper: float = float("nan")
    chance: float = float("nan")
    retrieved_tokens: float | None = None
    truncated_share: float | None = None
    costs: ModelCosts = UNKNOWN_COSTS
    tuning: TuningRecord = field(kw_only=True, repr=False)
    result: Result = field(kw_only=True, repr=False)

    @property
    def gap(self) -> float:
        """By how many percentage points the optimistic accuracy exceeds the held-out accuracy."""
        return self.best_accuracy - self.nested_accuracy

    def to_embedding_eval(self) -> dict[str, Any]:
        """Only the keys that embedding-eval writes."""
        return {name: getattr(self, name) for name in EMBEDDING_EVAL_KEYS}

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values: accuracies in percent, then the gap, the tuning and the result."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        plain |= {
            "gap": self.gap,
            "costs": self.costs.to_costs(),
            "tuning": self.tuning.to_dict(),
            "result": self.result.to_dict(),
        }
        return {name: None if isinstance(value, float) and isnan(value) else value for name, value in plain.items()}


@dataclass(frozen=True)
class FailedModel:
    """A model that failed, at its position among the results; reading a result field raises its error.

    >>> from equipoise.errors import InputError
    >>> failed = FailedModel("minilm", InputError("there is no such file"))
    >>> failed
    <FailedModel minilm: there is no such file>
    >>> failed.best_accuracy
    Traceback (most recent call last):
    equipoise.errors.InputError: there is no such file
    """

    model_spec: str
    error: EquipoiseError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in OptimizationResult.__dataclass_fields__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        raise self.error

    def __repr__(self) -> str:
        return f"<FailedModel {self.model_spec}: {self.error.message}>"


def optimization_result(profile: ModelProfile, tuning: TuningRecord, result: Result) -> OptimizationResult:
    """The result of one model from its tuning record."""
    total = len(result.unit_ids)
    best = tuning.trials[tuning.best]
    baseline = tuning.trials[tuning.baseline] if tuning.baseline is not None else best
    (estimate,) = result.estimates.values()
    interval = wilson_interval(best.value * total, total, estimate.interval.confidence_level)
    held_out = estimate if estimate.metric == METRIC else _undefined_estimate(estimate)
    return OptimizationResult(
        model_spec=profile.spec,
        model_name=profile.name,
        dimensions=profile.dimensions,
        best_accuracy=best.value * 100,
        best_params=dict(best.params),
        best_passed=n_passed(best, total),
        total_questions=total,
        baseline_accuracy=baseline.value * 100,
        baseline_passed=n_passed(baseline, total),
        improvement_pct=best.value * 100 - baseline.value * 100,
        ci_lower=interval.low * 100,
        ci_upper=interval.high * 100,
        optimization_time_seconds=profile.seconds,
        configurations_tested=profile.configurations,
        all_results=[_row(trial, total) for trial in tuning.trials[: profile.configurations]],
        nested_accuracy=held_out.value * 100,
        nested_ci_lower=held_out.interval.low * 100,
        nested_ci_upper=held_out.interval.high * 100,
        chance=estimate.chance * 100,
        retrieved_tokens=profile.retrieved_tokens,
        truncated_share=profile.truncated_share,
        costs=profile.costs,
        tuning=tuning,
        result=result,
    )


def _undefined_estimate(estimate: Estimate) -> Estimate:
    """An undefined estimate, for a run without nested cross-validation."""
    return replace(estimate, value=float("nan"), interval=Interval.unknown("no folds"))


def n_passed(trial: Trial, total: int) -> int:
    """How many questions a trial answers."""
    return round(trial.value * total)


def _row(trial: Trial, total: int) -> dict[str, Any]:
    """A configuration as embedding-eval lists it, with its chance level and its cost."""
    return {
        **trial.params,
        "passed": n_passed(trial, total),
        "total": total,
        "accuracy": trial.value * 100,
        "chance": None if trial.chance is None else trial.chance * 100,
        "tokens": trial.cost,
        "reachable": None if trial.reachable is None else trial.reachable * 100,
    }
