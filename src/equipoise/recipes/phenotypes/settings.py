"""What a benchmark is asked to do: the ways to see a term's texts, the judge, and how sure is sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from equipoise.errors import DuplicateError, ParameterError
from equipoise.ontology.index.aggregate import DEFAULT_STRATEGY, STRATEGIES, Weights, strategy_of
from equipoise.recipes.phenotypes.figures import CUTOFFS

DEFAULT_MODEL = "sum:use+tfidf:"
"""The best that works offline, in German as in English: a multilingual model and the terms' letters."""
DEFAULT_STRATEGIES = ("label_synonyms_max", "all_max", "label_only", "all_weighted")
DEFAULT_RERANKER = "maxsim:minilm"
RERANKED = 20
SINGLE, WEIGHTED = "single", "all_weighted"


@dataclass(frozen=True)
class Mode:
    """One way to see the texts of a term: all in one, or each for itself and then aggregated."""

    multi: bool = False
    strategy: str = DEFAULT_STRATEGY
    weights: Weights | None = None

    @property
    def name(self) -> str:
        """``single``, or the name of the strategy.

        >>> Mode().name, Mode(multi=True, strategy="all_max").name
        ('single', 'all_max')
        """
        return self.strategy if self.multi else SINGLE

    def checked(self) -> Mode:
        """The same mode, its strategy spelled as it is listed, once it is known to be one."""
        if not self.multi:
            return self
        strategy_of(self.strategy, self.weights)
        known = self.strategy.strip().casefold()
        return replace(self, strategy=known if known in STRATEGIES else self.strategy.strip())


@dataclass(frozen=True)
class Settings:
    """All that decides the figures, beside models, cases and ontology."""

    modes: tuple[Mode, ...] = (Mode(),)
    measure: str = "lin"
    reranker: Any = None
    rerank_depth: int = RERANKED
    device: str | None = None
    ks: tuple[int, ...] = CUTOFFS
    ties: str = "expected"
    level: float = 0.95
    resamples: int = 2000
    flips: int = 10_000
    seed: int = 0
    index_dir: str | None = None
    threads: int = 1
    skip_unknown: bool = False
    """Whether expected ids that lead to no term are left out, instead of refused."""
    sample: int = 0
    """How many labels the diagnosis looks up; 0 for none."""

    def checked(self) -> Settings:
        """The same settings, or a sentence about what cannot be."""
        modes = tuple(mode.checked() for mode in self.modes)
        names = [mode.name for mode in modes]
        if not names:
            raise ParameterError(
                "there is nothing to compare", hint="name a strategy, or leave --no-single out"
            )
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DuplicateError(f"the strategy {twice} is named twice", hint="name each once")
        if not self.ks or min(self.ks) < 1:
            raise ParameterError(
                f"the cutoffs are {list(self.ks)}", hint="give whole numbers from 1: 1, 3, 5, 10"
            )
        if self.rerank_depth < 1:
            raise ParameterError(f"{self.rerank_depth} terms cannot be reranked", hint="give 1 or more")
        return replace(self, modes=modes)


def modes_of(
    strategies: Sequence[str], *, single: bool = True, weights: Weights | None = None
) -> tuple[Mode, ...]:
    """The single-vector mode first, unless it is left out, then the strategies.

    >>> [mode.name for mode in modes_of(["all_max"])]
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
        Mode(True, each, weights if own else None) for each, own in zip(strategies, weighted, strict=True)
    )
    return ((Mode(),) if single else ()) + several
