"""The configuration of a fair comparison: grid, baseline, matcher, folds and token budget."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from equipoise.config import StatsConfig
from equipoise.domains.fair.answer_matching import MATCHERS, matcher_name
from equipoise.domains.fair.chunk_index import ChunkingParams
from equipoise.errors import ParameterError, UnknownNameError, did_you_mean
from equipoise.models.chunking import CHUNKERS
from equipoise.models.tokenizers import tokenizer_for
from equipoise.tuning.grid import NESTED, overlap_fits, parameter_grid

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
BUDGET_CHUNKS = 4
"""With a token budget, at least this many of the largest chunks of the default grid fit."""

REPEATS = 100
"""The score of one split depends on the split. With 100 splits the verdict hardly depends on the seed."""

FAIR_STATS = StatsConfig(n_resamples=4_000)
"""With 4,000 resamples the relative error of the standard error of a difference is 1 %, and of p below 0.05 a tenth."""

_SIZES = (
    ("chunk_sizes", CHUNK_SIZES, 1),
    ("overlaps", OVERLAPS, 0),
    ("top_ks", TOP_KS, 1),
    ("rerank_depths", RERANK_DEPTHS, 1),
)
"""The lists of sizes, with their defaults and the minimum of a value."""
_FITTED = ("chunk_sizes", "overlaps", "top_ks", "baseline_params")
"""The settings whose defaults are fitted to the document."""

UNANSWERABLE_POLICIES = ("refuse", "zero", "skip")
"""What to do with a question whose answer is not in the document."""


@dataclass(frozen=True, kw_only=True)
class FairConfig:
    """The settings of a comparison, without its models, document and questions. An invalid value is an error.

    The grid is chunkers x chunk_sizes x overlaps x top_ks. Chunk sizes, overlaps, top_ks and a baseline that are None
    have defaults, which are reduced for short documents, except with the matcher ``embedding-eval``.

    Parameters
    ----------
    chunk_sizes
        Chunk sizes in tokens. Default: 256, 384 and 512.
    overlaps
        Overlaps of consecutive chunks in tokens. Default: 25, 50 and 100.
    top_ks
        Numbers of retrieved chunks. Default: 5, 10 and 15. With a budget, every number up to the largest one is
        tried, by default every number that fits the budget.
    chunkers
        ``fixed``, ``sentence`` or ``section``; several are part of the grid.
    rerank_depths
        How many of the first chunks a reranker reorders; part of the grid of reranked models. Default: 10 and 20.
    baseline_params
        Parameters of the untuned baseline: ``chunk_size`` and ``overlap`` in tokens, ``top_k`` and ``chunker``. What
        is missing is 512, 50, 10 and ``fixed``.
    matcher
        The rule by which a chunk contains an answer: ``words``, or ``embedding-eval`` for the rule of that package.
    budget
        Maximum of the tokens retrieved per question on average; configurations above it are not eligible. None: no
        maximum.
    folds
        Folds of the nested cross-validation. With 1, the best configuration is scored on the questions that
        selected it, which is a finding (EQ201).
    repeats
        Number of random splits into folds; the score of a question is its mean over the splits.
    unanswerable
        Policy for questions whose answer is not in the document: ``refuse``, ``zero`` or ``skip``.
    allow_drafts
        Whether questions that are marked as drafts are compared, with the finding EQ116; otherwise they are an error.
    tokenizer
        Counts tokens: ``cl100k``, ``words``, the tokenizer of a model, or a tokenizer object. None: ``cl100k`` if it
        is installed, else ``words``.
    stats
        Options of intervals and tests, by default with 4,000 resamples; their seed is also that of the splits. The
        test ``mcnemar`` needs one split or one fold; its exact p value is reported in any case.

    Examples
    --------
    >>> FairConfig(chunk_sizes=[64, 32], overlaps=[32], budget=800).chunkings
    (ChunkingParams(chunker='fixed', chunk_size=64, overlap=32),)
    """

    chunk_sizes: Sequence[int] | None = None
    overlaps: Sequence[int] | None = None
    top_ks: Sequence[int] | None = None
    chunkers: Sequence[str] = ("fixed",)
    rerank_depths: Sequence[int] | None = None
    baseline_params: Mapping[str, Any] | None = None
    matcher: str = "words"
    budget: float | None = None
    folds: int = 5
    repeats: int = REPEATS
    unanswerable: str = "refuse"
    allow_drafts: bool = False
    tokenizer: object = None
    stats: StatsConfig = FAIR_STATS

    def __post_init__(self) -> None:
        if self.unanswerable not in UNANSWERABLE_POLICIES:
            choices = ", ".join(UNANSWERABLE_POLICIES)
            raise ParameterError(
                f"unanswerable={self.unanswerable!r} is not a known policy for unanswerable questions",
                hint=did_you_mean(self.unanswerable, UNANSWERABLE_POLICIES) or f"choose {choices}",
            )
        budget = self.budget
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int | float) or not budget > 0):
            raise ParameterError(f"the budget is {budget!r} tokens; it must be positive", hint="pass a positive number")
        for name, default, minimum in _SIZES:
            if (values := getattr(self, name)) is not None:
                object.__setattr__(self, name, _validate_ints(name, values, default, minimum))
        for name in ("folds", "repeats"):
            object.__setattr__(self, name, _validate_int(name, getattr(self, name), 1))
        object.__setattr__(self, "chunkers", _chunkers(self.chunkers))
        object.__setattr__(self, "matcher", matcher_name(self.matcher))
        # An invalid baseline and a grid without a valid point raise now, not after the first model.
        _ = self.baseline, self.chunkings

    @property
    def chunkings(self) -> tuple[ChunkingParams, ...]:
        """Every chunking of the grid, in order."""
        chunkings: list[ChunkingParams] = []
        for name in self.chunkers:
            overlaps = self.axes["overlap"] if "overlap" in CHUNKERS[name].__dataclass_fields__ else (0,)
            axes = {"chunk_size": self.axes["chunk_size"], "overlap": overlaps}
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
        return MATCHERS[self.matcher].joins

    @property
    def tokenizer_name(self) -> str:
        """The tokenizer that defines tokens in chunk sizes, overlaps, budgets and costs."""
        return tokenizer_for(self.tokenizer).name

    @property
    def axes(self) -> dict[str, Sequence[Any]]:
        """The values of each parameter in the grid."""
        return {
            "chunker": self.chunkers,
            "chunk_size": self.chunk_sizes or CHUNK_SIZES,
            "overlap": self.overlaps or OVERLAPS,
            "top_k": self.top_ks or TOP_KS,
        }

    @property
    def rerank_depth_axis(self) -> Sequence[int]:
        """The rerank_depth axis of the grid of reranked models."""
        return self.rerank_depths or RERANK_DEPTHS

    @property
    def max_top_k(self) -> int:
        """The largest number of chunks in the grid."""
        return max(self.axes["top_k"])

    @property
    def top_k_axis(self) -> Sequence[int]:
        """The top_k axis of the grid."""
        return self.axes["top_k"] if self.budget is None else range(1, self.max_top_k + 1)

    @property
    def depth(self) -> int:
        """The number of chunks that a search must return for every configuration."""
        return max(self.max_top_k, self.baseline[1])

    @property
    def baseline(self) -> tuple[ChunkingParams, int]:
        """The chunking and the number of chunks of the untuned baseline."""
        return _baseline(self.baseline_params)

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
            "top_ks": self.axes["top_k"],
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
            "defaults": sorted(name.removesuffix("_params") for name in _FITTED if getattr(self, name) is None),
        }
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def fitted_settings(settings: FairConfig, tokens: int) -> FairConfig:
    """The configuration with defaults fitted to a document of this many tokens and to the budget; explicit values stay.

    The defaults suit documents of which they retrieve about a tenth at most. For shorter documents chunk sizes,
    overlaps and top_k shrink by the same factor. With a budget, the largest chunks are small enough that several of
    them fit, and every top_k is tried for which the smallest chunks fit. The matcher
    ``embedding-eval`` keeps the defaults unchanged.

    >>> fitted = fitted_settings(FairConfig(overlaps=[0]), 10_000)
    >>> fitted.chunk_sizes, fitted.overlaps, fitted.top_ks
    ((96, 136, 184), (0,), (2, 4, 5))
    >>> fitted = fitted_settings(FairConfig(budget=2_000), 10_000)
    >>> fitted.chunk_sizes, fitted.overlaps, fitted.max_top_k
    ((96, 136, 184), (9, 18, 36), 20)
    """
    budget = settings.budget
    scale = sqrt(min(1.0, MAX_RETRIEVED_SHARE * tokens / (max(CHUNK_SIZES) * max(TOP_KS))))
    if budget is not None:
        scale = min(scale, budget / (BUDGET_CHUNKS * max(CHUNK_SIZES)))
    if settings.joins or (scale == 1.0 and budget is None):
        return settings

    def chunk_size(size: int) -> int:
        return max(MIN_CHUNK_SIZE, CHUNK_STEP * round(size * scale / CHUNK_STEP))

    def top_k(k: int, size: int) -> int:
        return max(1, round(k * scale) if budget is None else int(min(budget, tokens) // size))

    sizes = [chunk_size(size) for size in CHUNK_SIZES]
    smallest = min(settings.chunk_sizes or sizes)
    fitted: dict[str, Any] = {
        "chunk_sizes": sizes,
        "overlaps": [round(overlap * scale) for overlap in OVERLAPS],
        "top_ks": list(dict.fromkeys(top_k(k, smallest) for k in TOP_KS)),
        "baseline_params": {
            "chunk_size": chunk_size(BASELINE["chunk_size"]),
            "overlap": round(BASELINE["overlap"] * scale),
            "top_k": top_k(BASELINE["top_k"], chunk_size(BASELINE["chunk_size"])),
        },
    }
    return replace(settings, **{name: values for name, values in fitted.items() if getattr(settings, name) is None})


def _baseline(requested: Mapping[str, Any] | None) -> tuple[ChunkingParams, int]:
    params = {**BASELINE, **(requested or {})}
    names = (*BASELINE, "chunker")
    for name in params:
        if name not in names:
            hint = did_you_mean(name, names) or f"it has {', '.join(names)}"
            raise ParameterError(f"the baseline has no parameter {name!r}", hint=hint)
    (chunker,) = _chunkers([params.get("chunker", "fixed")])
    size = _validate_int("chunk_size", params["chunk_size"], 1)
    overlap = _validate_int("overlap", params["overlap"], 0)
    (point,) = parameter_grid(valid=overlap_fits, chunk_size=[size], overlap=[overlap])
    return ChunkingParams(chunker, **point), _validate_int("top_k", params["top_k"], 1)  # type: ignore[arg-type]


def _chunkers(names: Iterable[Any]) -> tuple[str, ...]:
    selected = (names,) if isinstance(names, str) else tuple(names)
    for name in selected:
        if name not in CHUNKERS:
            raise UnknownNameError.of("chunker", str(name), CHUNKERS, more=f"known: {', '.join(CHUNKERS)}")
    if not selected:
        raise ParameterError("no chunker was specified", hint=f"known: {', '.join(CHUNKERS)}")
    return tuple(dict.fromkeys(selected))


def _validate_ints(name: str, requested: Any, default: tuple[int, ...], minimum: int) -> tuple[int, ...]:
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
