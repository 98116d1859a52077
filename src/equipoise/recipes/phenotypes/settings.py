"""What a benchmark is asked to do: the ways to see a term's texts, the judge, and how sure is sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.errors import DuplicateError, ParameterError
from equipoise.ontology.index.aggregate import DEFAULT_STRATEGY, Weights, strategy_of
from equipoise.recipes.phenotypes.figures import CUTOFFS

DEFAULT_MODEL = "sum:use+tfidf:"
"""The best that works offline, in German as in English: a multilingual model and the terms' letters."""
DEFAULT_STRATEGIES = ("label_synonyms_max", "all_max", "label_only", "all_weighted")
DEFAULT_RERANKER = "maxsim:minilm"
RERANKED = 20
SINGLE = "single"


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
        """The same mode, once its strategy is known to be one."""
        if self.multi:
            strategy_of(self.strategy, self.weights)
        return self


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
        names = [mode.checked().name for mode in self.modes]
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
        return self


def modes_of(
    strategies: Sequence[str], *, single: bool = True, weights: Weights | None = None
) -> tuple[Mode, ...]:
    """The single-vector mode first, unless it is left out, then the strategies.

    >>> [mode.name for mode in modes_of(["all_max"])]
    ['single', 'all_max']
    """
    several = tuple(
        Mode(True, each.strip(), weights if each.strip() == "all_weighted" else None) for each in strategies
    )
    return ((Mode(),) if single else ()) + several
