"""What a report on concept scores shows: every model on every score, the claims, and what to use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from typing import Any

from equipoise.errors import UnknownNameError
from equipoise.stats.contrast import Contrast
from equipoise.stats.result import Estimate
from equipoise.types import Finding

ByModel = Mapping[str, Estimate]


@dataclass(frozen=True)
class Standing:
    """All models on one score.

    ``terms`` are what the score adds up, as it enters; ``parts`` are the figures behind them, and ``beside``
    what judges without its faults; each by name and then by model. ``letters`` are tie bands: two models
    share one exactly when the data cannot tell them apart. ``units`` are what the score rests on, ``drawn``
    says how they were drawn again for the intervals, ``luck`` what the chance level is made of, ``family``
    what p was corrected for. ``readings`` say how the words of the source were read where they leave a
    choice. ``truth`` names the figure beside that is held against the truth: ``chance_p`` has the p of "no
    better than shuffled" by figure and model, ``truth_contrasts`` every pair of models on it.
    """

    score: str
    title: str
    formula: str
    estimates: ByModel
    contrasts: tuple[Contrast, ...] = field(repr=False)
    letters: Mapping[str, tuple[str, ...]]
    order: tuple[str, ...]
    drawn: str
    units: str = ""
    luck: str = ""
    family: str = ""
    method: str = ""
    readings: tuple[str, ...] = ()
    truth: str = ""
    chance_p: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False)
    truth_contrasts: tuple[Contrast, ...] = field(default=(), repr=False)
    terms: Mapping[str, ByModel] = field(default_factory=dict, repr=False)
    parts: Mapping[str, ByModel] = field(default_factory=dict, repr=False)
    beside: Mapping[str, ByModel] = field(default_factory=dict, repr=False)

    @property
    def leader(self) -> str | None:
        """The model with the highest score; None where no model has one."""
        return next((name for name in self.order if self.letters[name]), None)

    @property
    def tied_with_leader(self) -> tuple[str, ...]:
        """The models that cannot be told from the leader, best first."""
        if self.leader is None:
            return ()
        mine = set(self.letters[self.leader])
        return tuple(name for name in self.order if name != self.leader and mine & set(self.letters[name]))

    @property
    def scored(self) -> tuple[str, ...]:
        """The models that have this score, best first."""
        return tuple(name for name in self.order if self.letters[name])

    def above_chance(self, figure: str, model: str) -> bool:
        """Whether a figure beside is shown to be better than luck: by shuffles, else by its interval."""
        own = self.beside[figure][model]
        if figure in self.chance_p:
            return self.chance_p[figure].get(model, nan) < 1 - own.interval.level
        return own.interval.known and own.interval.low > own.chance

    def beaten(self, model: str) -> tuple[str, ...]:
        """The models whose figure against the truth is shown to be better than that of this one."""
        return tuple(
            each.a
            for seen in self.truth_contrasts
            for each in (seen, seen.reversed())
            if each.b == model and each.difference > 0 and each.adjusted < 1 - each.interval.level
        )

    def contrast(self, a: str, b: str) -> Contrast:
        """Model ``a`` minus model ``b``."""
        for each in self.contrasts:
            if {each.a, each.b} == {a, b} and a != b:
                return each if each.a == a else each.reversed()
        raise UnknownNameError.of("pair of models", f"{a}, {b}", (f"{c.a}, {c.b}" for c in self.contrasts))


@dataclass(frozen=True, slots=True)
class Advice:
    """What to use for a kind of work: the models that may be best, and the sentence that says so.

    ``caution`` is what a figure says that is held against the truth, where that is another thing.
    """

    use: str
    score: str
    models: tuple[str, ...]
    sentence: str
    caution: str = ""

    @property
    def text(self) -> str:
        """The sentence with its caution."""
        return f"{self.sentence}; {self.caution}" if self.caution else self.sentence

    @property
    def settled(self) -> bool:
        """Whether the data separate one model from all others."""
        return len(self.models) == 1


@dataclass(frozen=True, slots=True)
class Winning:
    """In what share of all weightings a model comes first: with the scores as they are, and redrawn."""

    model: str
    share: float
    redrawn: float


@dataclass(frozen=True)
class ConceptEdition:
    """The whole of it; ``composite`` is None where not all of its scores are there, and ``notes`` say why."""

    name: str
    models: tuple[str, ...]
    standings: tuple[Standing, ...]
    composite: Standing | None
    advice: tuple[Advice, ...]
    winning: tuple[Winning, ...]
    readings: Mapping[str, Mapping[str, str]]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def all_standings(self) -> tuple[Standing, ...]:
        """The scores and, where there is one, the composite after them."""
        return self.standings if self.composite is None else (*self.standings, self.composite)
