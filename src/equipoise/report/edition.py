"""All that the report of a fair comparison shows, put together by whoever compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from equipoise.stats.comparison import Comparison
from equipoise.stats.result import Estimate
from equipoise.stats.slices import Slice
from equipoise.tune.record import Tuning
from equipoise.types import Finding


@dataclass(frozen=True)
class Contender:
    """One model: its honest estimate, how it was tuned, and what a question costs."""

    name: str
    estimate: Estimate
    tuning: Tuning
    tokens: float | None = None
    slices: tuple[Slice, ...] = ()
    tied_questions: int = 0
    """How many questions have fractional hits, since tied scores leave the rank of the answer open."""

    @property
    def ceiling(self) -> float | None:
        """The share of questions that the best configuration could answer at all; None is unknown."""
        return self.tuning.trials[self.tuning.best].reachable


@dataclass(frozen=True)
class Edition:
    """All that the report of one comparison shows; without two models there is no comparison."""

    contenders: tuple[Contender, ...]
    comparison: Comparison | None = None
    mcnemar: Comparison | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    budget: float | None = None
    tokenizer: str = ""

    @property
    def folds(self) -> int:
        """The number of folds of a split; 0 where nothing is nested."""
        return self.contenders[0].tuning.fold_count

    @property
    def splits(self) -> int:
        """Over how many random splits into folds the scores are averaged."""
        return self.contenders[0].tuning.splits

    @property
    def nested(self) -> bool:
        """Whether the figures are of questions that had no say in the parameters."""
        return self.folds > 0

    @property
    def tried(self) -> int:
        """How many configurations each model was tried at."""
        return len(self.contenders[0].tuning.grid)

    @property
    def ceilings(self) -> dict[str, float]:
        """The models whose chunks cut answers, and the share of answers that they can find at best."""
        known = {each.name: each.ceiling for each in self.contenders if each.ceiling is not None}
        return {name: ceiling for name, ceiling in known.items() if ceiling < 1}

    @property
    def ranked(self) -> list[Contender]:
        """The models, best first."""
        if self.comparison is None:
            return list(self.contenders)
        by_name = {each.name: each for each in self.contenders}
        return [by_name[name] for name in self.comparison.order]
