"""One task on one model: its blend with the parts, the figures beside it, and how far it strays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan

from equipoise.errors import EquipoiseError
from equipoise.evidence.pairs import Pairs
from equipoise.evidence.space import Space
from equipoise.metrics.parse import parse
from equipoise.recipes.concepts.blends import Blend
from equipoise.recipes.concepts.luck import Luck
from equipoise.recipes.concepts.spread import Sampling, Spread, redrawn
from equipoise.stats.interval import Interval
from equipoise.stats.redrawn import DEGREES, DRAWS
from equipoise.stats.result import Estimate, Result
from equipoise.types import Direction

RESAMPLES = 200
"""Redraws of the units of a blend: its standard error is then known to 5 %."""

FIXED = "fixed by the data"
"""Why a part has no interval that no model can change."""


@dataclass(frozen=True)
class Observed:
    """What a task saw of a model.

    ``parts`` are those of the blend under the names of its source, ``beside`` the figures that judge without
    its faults. ``results`` are what can be stored and compared, each on evidence of its own; ``main`` names
    the one that the blend belongs to. ``chance`` is what the blend would be for a model that knows nothing,
    ``luck`` what shuffles say of the figures beside it, and ``others`` the blend with other seeds, where it
    depends on one.
    """

    blend: Blend
    parts: Mapping[str, Estimate]
    beside: Mapping[str, Estimate]
    results: Mapping[str, Result]
    main: str
    sampling: Sampling
    chance: Mapping[str, float]
    method: str = ""
    others: Sequence[float] = ()
    luck: Mapping[str, Luck] = field(default_factory=dict)
    space: Space | None = None
    pairs: Pairs | None = None


@dataclass(frozen=True)
class Measured:
    """An observed task with its score, and how far the score strays."""

    observed: Observed
    estimate: Estimate
    spread: Spread = field(repr=False)

    @property
    def blend(self) -> Blend:
        """The score that this is about."""
        return self.observed.blend

    @property
    def stored(self) -> Result:
        """What the blend belongs to: its parts with their intervals, and the blend before them."""
        main = self.observed.results[self.observed.main]
        parts = {each.metric: each for each in self.observed.parts.values()}
        own = {name: parts.get(name, each) for name, each in main.estimates.items()}
        if self.spread.reason:
            return replace(main, estimates={self.blend.name: self.estimate, **own})
        return replace(
            main,
            estimates={self.blend.name: self.estimate, **own},
            errors={self.blend.name: self.spread.errors},
            settings={
                **main.settings,
                DRAWS: f"{self.observed.sampling.told}, {len(self.spread.errors)}",
                DEGREES: self.spread.degrees,
            },
        )

    @property
    def lacking(self) -> str:
        """Why there is no score: the part that is not defined, and when that is so; empty where there is."""
        lost = [name for name, each in self.observed.parts.items() if isnan(each.value)]
        return f"{lost[0]} is{_undefined(self.observed.parts[lost[0]].metric)}" if lost else ""

    @property
    def value(self) -> float:
        """The score itself."""
        return self.estimate.value


def measure(
    observed: Observed, *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Measured:
    """The blend of the observed parts, with its interval and its chance level.

    Parts that are figures of a space get the intervals of the same redraws as the blend.
    """
    blend, sampling = observed.blend, observed.sampling
    value = blend.value({name: each.value for name, each in observed.parts.items()})
    spread, of_parts = redrawn(blend, sampling, resamples=resamples, seed=seed)
    estimate = Estimate(
        metric=blend.name,
        value=value,
        interval=_reach(observed, spread, value, level).clipped(blend.bounds),
        n=sampling.count,
        undefined=0,
        chance=blend.value(observed.chance),
        better=Direction.UP,
        unit="blend",
    )
    parts = dict(observed.parts)
    if sampling.shares or sampling.errors_of:
        for term in blend.terms:
            own = parts[term.part]
            reach = of_parts[term.part].interval(own.value, level)
            reach = Interval.unknown(FIXED, level=level) if term.fixed else reach
            parts[term.part] = replace(own, interval=reach)
    known = {each.metric: each for each in parts.values()}
    # A figure that stands beside the blend as well has one interval.
    beside = {name: known.get(each.metric, each) for name, each in observed.beside.items()}
    return Measured(replace(observed, parts=parts, beside=beside), estimate, spread)


def _reach(observed: Observed, spread: Spread, value: float, level: float) -> Interval:
    """The interval of the blend, or which part leaves it without one."""
    lost = [name for name, each in observed.parts.items() if isnan(each.value)]
    if lost:
        return Interval.unknown(f"{lost[0]} is undefined", level=level)
    return spread.interval(value, level)


def _undefined(metric: str) -> str:
    """When a figure is undefined, as its declaration says."""
    try:
        (known,) = parse(metric)
    except EquipoiseError:
        return ""
    return f" ({known.undefined})" if known.undefined else ""
