"""What a benchmark is asked to do: the ways to see a term's texts, the judge, and how sure is sure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from equipoise.domains.phenotypes.index.aggregation import (
    DEFAULT_STRATEGY,
    STRATEGIES,
    Weights,
    parse_strategy,
)
from equipoise.errors import DuplicateError, ParameterError
from equipoise.geometry.gpu_search import torch_device
from equipoise.metrics.parser import parse_metrics
from equipoise.models.retriever import is_fusion, spec_kind

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric

# What is measured of a system that finds terms, and in which order it is shown.

CUTOFFS = (1, 3, 5, 10)
"""How many of the first terms are looked at."""
PRIMARY = "MRR"
_AT_K = ("HR", "nDCG", "R", "P", "MAP", "MaxOntSim")


def benchmark_metrics(ks: Iterable[int] = CUTOFFS) -> list[Metric[Any]]:
    """MRR, and every other metric of the field at each cutoff.

    >>> [metric.name for metric in benchmark_metrics([1, 3])][:5]
    ['MRR', 'HR@1', 'HR@3', 'nDCG@1', 'nDCG@3']
    """
    cutoffs = ",".join(map(str, ks))
    return list(parse_metrics([PRIMARY, *(f"{symbol}@{{{cutoffs}}}" for symbol in _AT_K)]))


DEFAULT_MODEL = "sum:use+tfidf:"
"""The best that works offline, in German as in English: a multilingual model and the terms' letters."""
DEFAULT_STRATEGIES = ("label_synonyms_max", "all_max", "label_only", "all_weighted")
DEFAULT_RERANKER = "maxsim:minilm"
DEFAULT_RERANK_DEPTH = 20
SINGLE, WEIGHTED = "single", "all_weighted"


@dataclass(frozen=True)
class TermRepresentation:
    """One way to see the texts of a term: all in one, or each for itself and then aggregated."""

    multi: bool = False
    strategy: str = DEFAULT_STRATEGY
    weights: Weights | None = None

    @property
    def name(self) -> str:
        """``single``, or the name of the strategy.

        >>> TermRepresentation().name, TermRepresentation(multi=True, strategy="all_max").name
        ('single', 'all_max')
        """
        return self.strategy if self.multi else SINGLE

    def checked(self) -> TermRepresentation:
        """The same mode, its strategy spelled as it is listed, once it is known to be one."""
        if not self.multi:
            return self
        parse_strategy(self.strategy, self.weights)
        known = self.strategy.strip().casefold()
        return replace(self, strategy=known if known in STRATEGIES else self.strategy.strip())


@dataclass(frozen=True)
class BenchmarkConfig:
    """All that decides the figures, beside models, cases and ontology."""

    modes: tuple[TermRepresentation, ...] = (TermRepresentation(),)
    measure: str = "lin"
    reranker: Any = None
    rerank_depth: int = DEFAULT_RERANK_DEPTH
    device: str | None = None
    ks: tuple[int, ...] = CUTOFFS
    ties: str = "expected"
    confidence_level: float = 0.95
    n_resamples: int = 2000
    n_permutations: int = 10_000
    seed: int = 0
    index_dir: str | None = None
    threads: int = 1
    skip_unknown: bool = False
    """Whether expected ids that lead to no term are left out, instead of refused."""
    sample: int = 0
    """How many labels the diagnosis looks up; 0 for none."""

    def checked(self) -> BenchmarkConfig:
        """The same settings, or a sentence about what cannot be."""
        modes = tuple(mode.checked() for mode in self.modes)
        names = [mode.name for mode in modes]
        if not names:
            raise ParameterError("there is nothing to compare", hint="name a strategy, or leave --no-single out")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DuplicateError(f"the strategy {twice} is named twice", hint="name each once")
        if not self.ks or min(self.ks) < 1:
            raise ParameterError(f"the cutoffs are {list(self.ks)}", hint="give whole numbers from 1: 1, 3, 5, 10")
        if self.rerank_depth < 1:
            raise ParameterError(f"{self.rerank_depth} terms cannot be reranked", hint="give 1 or more")
        return replace(self, modes=modes)


def term_representations(
    strategies: Sequence[str], *, single: bool = True, weights: Weights | None = None
) -> tuple[TermRepresentation, ...]:
    """The single-vector mode first, unless it is left out, then the strategies.

    >>> [mode.name for mode in term_representations(["all_max"])]
    ['single', 'all_max']
    """
    if not strategies:
        raise ParameterError(
            "no strategy is named, so there is nothing to compare with one vector a term",
            hint=f"name some: {', '.join(DEFAULT_STRATEGIES)}",
        )
    weighted = [each.strip().casefold() == WEIGHTED for each in strategies]
    if weights is not None and not any(weighted):
        raise ParameterError(f"weights are for {WEIGHTED}, which is not compared", hint=f"add {WEIGHTED}")
    several = tuple(
        TermRepresentation(True, each, weights if own else None) for each, own in zip(strategies, weighted, strict=True)
    )
    return ((TermRepresentation(),) if single else ()) + several


# The device that was asked for: whether it is there, and whether anything would run on it.

ON_DEVICE = ("st",)
"""The kinds of models that a device can be chosen for."""
JUDGE_ON_DEVICE = "cross-encoder"
"""The kind of judges that a device can be chosen for."""


def supports_device(model: Any) -> bool:
    """Whether a model can be put on a device: a spec of the right kind, named by itself.

    >>> supports_device("st:BAAI/bge-base-en-v1.5"), supports_device("minilm"), supports_device("sum:use+tfidf:")
    (True, False, False)
    """
    return isinstance(model, str) and not is_fusion(model) and spec_kind(model) in ON_DEVICE


def reranker_supports_device(reranker: Any) -> bool:
    """Whether a judge can be put on a device.

    >>> reranker_supports_device("cross-encoder:folder"), reranker_supports_device(True), reranker_supports_device(None)
    (True, False, False)
    """
    return isinstance(reranker, str) and reranker.startswith(JUDGE_ON_DEVICE)


def check_device_is_used(device: str | None, models: Iterable[Any], reranker: Any) -> None:
    """Refuse a device that is not there, and a GPU that nothing would run on."""
    if device is None:
        return
    where = torch_device(device)
    if where.type == "cpu" or reranker_supports_device(reranker) or any(map(supports_device, models)):
        return
    raise ParameterError(
        "none of these models runs on a GPU",
        hint="a device is for models of the kind st:, by themselves, and for a judge of the kind "
        f"{JUDGE_ON_DEVICE}:; leave --gpu and --device out",
    )
