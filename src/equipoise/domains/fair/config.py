"""The configuration of a fair comparison: grid, baseline, matcher, folds and token budget."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from equipoise.config import StatsConfig
from equipoise.domains.fair.answer_matching import answer_matcher as matcher_of
from equipoise.domains.fair.chunk_index import ChunkingParams
from equipoise.errors import ParameterError, UnknownNameError, did_you_mean
from equipoise.models.chunking import CHUNKERS
from equipoise.models.tokenizers import tokenizer_for
from equipoise.tuning.grid import NESTED, Params, overlap_fits, parameter_grid

ACCURACY = "accuracy"
METRIC = f"{NESTED}{ACCURACY}"
"""The share of held-out questions answered (nested cross-validation)."""
OPTIMISTIC = f"optimistic {ACCURACY}"
"""The same with the best parameters on the questions that selected them, without cross-validation."""
CHUNK_SIZES = (256, 384, 512)
OVERLAPS = (25, 50, 100)
TOP_KS = (5, 10, 15)
RERANK_DEPTHS = (10, 20)
"""The numbers of chunks that rerankers reorder; part of the grid of reranked models."""
BASELINE = {"chunk_size": 512, "overlap": 50, "top_k": 10}
"""The untuned configuration that tuning is compared with."""

MAX_RETRIEVED_SHARE = 0.1
"""The default grid retrieves no more than this share of a document, which keeps the chance level low."""
MIN_CHUNK_SIZE, CHUNK_STEP = 32, 8

REPEATS = 100
"""The score of one split depends on the split. With 100 splits the verdict hardly depends on the seed."""

FAIR_STATS = StatsConfig(n_resamples=4_000)
"""With 4,000 resamples the relative error of the standard error of a difference is 1 %, and of p below 0.05 a tenth."""

UNANSWERABLE_POLICIES = ("refuse", "zero", "skip")
"""What to do with a question whose answer is not in the document."""


@dataclass(frozen=True)
class FairConfig:
    """The settings of a comparison, without its models, document and questions.

    ``run_fair_comparison`` takes them as arguments and describes them; ``FairComparison.plan`` has them.

    Attributes
    ----------
    chunk_sizes, overlaps, top_ks, chunkers
        The grid of configurations. With a budget, every number of chunks up to the largest of ``top_ks`` is tried.
    rerank_depths
        How many of the first chunks a reranker reorders.
    baseline
        The chunking and the number of chunks of the untuned baseline.
    matcher
        The rule by which a chunk contains an answer: ``words`` or ``source``.
    budget
        Maximum of the tokens retrieved per question on average.
    folds, repeats
        Folds of the nested cross-validation, and number of random splits into folds. With one fold the best
        configuration is scored on the questions that selected it.
    stats
        Options of intervals and tests.
    unanswerable
        Policy for questions whose answer is not in the document: ``refuse``, ``zero`` or ``skip``.
    allow_drafts
        Whether draft questions are compared; otherwise they are an error.
    tokenizer
        Counts tokens; None for the default.
    defaults
        Which of chunk_sizes, overlaps, top_ks and baseline are defaults, which are fitted to the document.
    """

    chunk_sizes: tuple[int, ...] = CHUNK_SIZES
    overlaps: tuple[int, ...] = OVERLAPS
    top_ks: tuple[int, ...] = TOP_KS
    chunkers: tuple[str, ...] = ("fixed",)
    rerank_depths: tuple[int, ...] = RERANK_DEPTHS
    baseline: tuple[ChunkingParams, int] = (ChunkingParams("fixed", 512, 50), 10)
    matcher: str = "words"
    budget: float | None = None
    folds: int = 5
    repeats: int = REPEATS
    stats: StatsConfig = FAIR_STATS
    unanswerable: str = "refuse"
    allow_drafts: bool = False
    tokenizer: Any = None
    defaults: frozenset[str] = frozenset()

    @property
    def chunkings(self) -> tuple[ChunkingParams, ...]:
        """Every chunking of the grid, in order."""
        chunkings: list[ChunkingParams] = []
        for name in self.chunkers:
            overlaps = self.overlaps if "overlap" in _fields(name) else (0,)
            axes = {"chunk_size": self.chunk_sizes, "overlap": overlaps}
            points = parameter_grid(valid=overlap_fits, **axes)
            chunkings += [ChunkingParams(name, **point) for point in points]  # type: ignore[arg-type]
        return tuple(chunkings)

    @property
    def seed(self) -> int:
        """The seed of the splits and of the statistics."""
        return self.stats.seed

    @property
    def nested(self) -> bool:
        """Whether scores come from nested cross-validation."""
        return self.folds > 1

    @property
    def metric(self) -> str:
        """The name of the metric of a model."""
        return METRIC if self.nested else OPTIMISTIC

    @property
    def joins(self) -> bool:
        """Whether the matcher joins the retrieved chunks, so that boundaries split no answer."""
        return matcher_of(self.matcher).joins

    @property
    def tokenizer_name(self) -> str:
        """The tokenizer that defines tokens in chunk sizes, overlaps, budgets and costs."""
        return tokenizer_for(self.tokenizer).name

    @property
    def axes(self) -> dict[str, tuple[str, ...] | tuple[int, ...]]:
        """The values of each parameter in the grid."""
        return {
            "chunker": self.chunkers,
            "chunk_size": self.chunk_sizes,
            "overlap": self.overlaps,
            "top_k": self.top_ks,
        }

    @property
    def depth(self) -> int:
        """The number of chunks that a search must return for every configuration."""
        return max(*self.top_ks, self.baseline[1])

    @property
    def top_k_axis(self) -> tuple[int, ...]:
        """The top_k axis of the grid."""
        return self.top_ks if self.budget is None else tuple(range(1, max(self.top_ks) + 1))

    def params(self, chunking: ChunkingParams, top_k: int, rerank_depth: int | None = None) -> dict[str, Any]:
        """A configuration as results name it; the chunker is included if there are several."""
        chunker_param = (
            {} if self.chunkers == ("fixed",) and chunking.chunker == "fixed" else {"chunker": chunking.chunker}
        )
        rerank_param = {} if rerank_depth is None else {"rerank_depth": rerank_depth}
        sizes = {"chunk_size": chunking.chunk_size, "overlap": chunking.overlap, "top_k": top_k}
        return chunker_param | sizes | rerank_param

    @property
    def fingerprint(self) -> str:
        """A digest of everything that determines the scores of a model, except the texts and the model."""
        inputs = {
            "chunkings": [repr(chunking) for chunking in self.chunkings],
            "top_ks": self.top_ks,
            "baseline": repr(self.baseline),
            "matcher": self.matcher,
            "budget": self.budget,
            "folds": self.folds,
            "repeats": self.repeats,
            "seed": self.seed,
            "confidence_level": self.stats.confidence_level,
            "n_resamples": self.stats.n_resamples,
            "tokenizer": self.tokenizer_name,
            "unanswerable": self.unanswerable,
            "defaults": sorted(self.defaults),
        }
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def checked_settings(
    *,
    chunk_sizes: Iterable[int] | None = None,
    overlaps: Iterable[int] | None = None,
    top_ks: Iterable[int] | None = None,
    chunkers: Iterable[str] = ("fixed",),
    rerank_depths: Iterable[int] | None = None,
    baseline_params: Mapping[str, Any] | None = None,
    budget: float | None = None,
    folds: int | None = 5,
    repeats: int = REPEATS,
    unanswerable: str = "refuse",
    stats: StatsConfig | None = None,
    seed: int = FAIR_STATS.seed,
    test: str = FAIR_STATS.test,
    **others: Any,
) -> FairConfig:
    """The validated configuration; an invalid value raises an error that names it.

    ``stats`` are all options of the statistics; ``seed`` and ``test`` are used without it.

    >>> checked_settings(chunk_sizes=[64, 32], overlaps=[32]).chunkings
    (ChunkingParams(chunker='fixed', chunk_size=64, overlap=32),)
    """
    if unanswerable not in UNANSWERABLE_POLICIES:
        hint = did_you_mean(unanswerable, UNANSWERABLE_POLICIES) or f"choose {', '.join(UNANSWERABLE_POLICIES)}"
        raise ParameterError(
            f"unanswerable={unanswerable!r} is not a known policy for unanswerable questions", hint=hint
        )
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int | float) or not budget > 0):
        raise ParameterError(f"the budget is {budget!r} tokens; it must be positive", hint="pass a positive number")
    config = FairConfig(
        chunk_sizes=_validate_ints("chunk_sizes", chunk_sizes, CHUNK_SIZES, 1),
        overlaps=_validate_ints("overlaps", overlaps, OVERLAPS, 0),
        top_ks=_validate_ints("top_ks", top_ks, TOP_KS, 1),
        chunkers=_chunkers(chunkers),
        rerank_depths=_validate_ints("rerank_depths", rerank_depths, RERANK_DEPTHS, 1),
        baseline=_baseline(baseline_params),
        defaults=frozenset(
            name
            for name, values in (
                ("chunk_sizes", chunk_sizes),
                ("overlaps", overlaps),
                ("top_ks", top_ks),
                ("baseline", baseline_params),
            )
            if values is None
        ),
        budget=budget,
        folds=1 if folds is None else _validate_int("folds", folds, 1),
        repeats=_validate_int("repeats", repeats, 1),
        unanswerable=unanswerable,
        stats=stats or replace(FAIR_STATS, seed=seed, test=test),
        **others,
    )
    _ = config.chunkings  # a grid without a valid point raises now, not after the first model
    return config


def fitted_settings(settings: FairConfig, tokens: int) -> FairConfig:
    """The configuration with defaults fitted to a document of this many tokens; explicit values stay.

    The defaults suit documents of which they retrieve about a tenth at most. For shorter documents chunk sizes,
    overlaps and top_k shrink by the same factor. The matcher ``source`` keeps the defaults unchanged.

    >>> fitted = fitted_settings(checked_settings(overlaps=[0]), 10_000)
    >>> fitted.chunk_sizes, fitted.overlaps, fitted.top_ks
    ((96, 136, 184), (0,), (2, 4, 5))
    """
    scale = sqrt(min(1.0, MAX_RETRIEVED_SHARE * tokens / (max(CHUNK_SIZES) * max(TOP_KS))))
    if scale == 1.0 or settings.joins:
        return settings

    def chunk_size(size: int) -> int:
        return max(MIN_CHUNK_SIZE, CHUNK_STEP * round(size * scale / CHUNK_STEP))

    def depth(k: int) -> int:
        return max(1, round(k * scale))

    chunking, top_k = settings.baseline
    size, overlap = chunk_size(chunking.chunk_size), round(chunking.overlap * scale)
    fitted = {
        "chunk_sizes": tuple(dict.fromkeys(map(chunk_size, CHUNK_SIZES))),
        "overlaps": tuple(dict.fromkeys(round(value * scale) for value in OVERLAPS)),
        "top_ks": tuple(dict.fromkeys(map(depth, TOP_KS))),
        "baseline": (replace(chunking, chunk_size=size, overlap=overlap), depth(top_k)),
    }
    return replace(settings, **{name: fitted[name] for name in settings.defaults})  # type: ignore[arg-type]


def _baseline(params: Mapping[str, Any] | None) -> tuple[ChunkingParams, int]:
    baseline_params: Params = {**BASELINE, **(params or {})}
    names = (*BASELINE, "chunker")
    for name in baseline_params:
        if name not in names:
            hint = did_you_mean(name, names) or f"it has {', '.join(names)}"
            raise ParameterError(f"the baseline has no parameter {name!r}", hint=hint)
    (name,) = _chunkers([baseline_params.get("chunker", "fixed")])
    size, overlap = (
        _validate_int("chunk_size", baseline_params["chunk_size"], 1),
        _validate_int("overlap", baseline_params["overlap"], 0),
    )
    (point,) = parameter_grid(valid=overlap_fits, chunk_size=[size], overlap=[overlap])
    return ChunkingParams(name, **point), _validate_int("top_k", baseline_params["top_k"], 1)  # type: ignore[arg-type]


def _chunkers(names: Iterable[Any]) -> tuple[str, ...]:
    selected = (names,) if isinstance(names, str) else tuple(names)
    for name in selected:
        if name not in CHUNKERS:
            raise UnknownNameError.of("chunker", str(name), CHUNKERS, more=f"known: {', '.join(CHUNKERS)}")
    if not selected:
        raise ParameterError("no chunker was specified", hint=f"known: {', '.join(CHUNKERS)}")
    return tuple(dict.fromkeys(selected))


def _fields(chunker: str) -> tuple[str, ...]:
    return tuple(CHUNKERS[chunker].__dataclass_fields__)


def _validate_ints(
    name: str, requested: Iterable[Any] | None, default: tuple[int, ...], minimum: int
) -> tuple[int, ...]:
    if requested is None:
        return default
    if isinstance(requested, str | bytes | Mapping) or not isinstance(requested, Iterable):
        raise ParameterError(f"{name} is {requested!r}, not a list", hint=f"write {name}={list(default)}")
    values = tuple(_validate_int(name, value, minimum) for value in requested)
    if not values:
        raise ParameterError(f"{name} is an empty list", hint=f"omit it for the default {list(default)}")
    return tuple(dict.fromkeys(values))


def _validate_int(name: str, value: Any, minimum: int) -> int:
    try:
        number = value.__index__()
    except AttributeError:
        number = None
    if number is None or isinstance(value, bool) or number < minimum:
        raise ParameterError(f"{name} has {value!r}; it must be an integer of {minimum} or more")
    return int(number)
