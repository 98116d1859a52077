"""The base classes of metrics: a name with parameters, declared properties, and a function of evidence.

``BaseMetric`` is that of custom metrics, which need only a name and a function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cache, cached_property
from math import isnan, nan
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import EquipoiseError, ParameterError, UndefinedError
from equipoise.evidence.base import Evidence
from equipoise.types import Direction, Floats

E = TypeVar("E", bound=Evidence)

UP, DOWN = Direction.UP, Direction.DOWN
N_CHANCE_SHUFFLES = 20
LARGEST_CUTOFF = 2**31 - 1


@cache
def parameter_types(metric: type[Any]) -> dict[str, Any]:
    """The types of the parameters of a metric class. Resolving the annotations takes longer than most metrics."""
    return get_type_hints(metric)


@dataclass(frozen=True, slots=True)
class MetricValue:
    """The value of a metric on one evidence object.

    If the value is a mean over units, ``per_unit`` holds the unit values (NaN if undefined) and ``weights`` their
    weights (None: equal). A corpus-level value such as a correlation has no unit values; ``undefined`` is the number
    of units it leaves out.
    """

    value: float
    per_unit: Floats | None = None
    weights: Floats | None = None
    undefined: int = 0

    @classmethod
    def mean(cls, per_unit: Floats, weights: Floats | None = None) -> MetricValue:
        """The weighted mean over the defined units; NaN when none is defined."""
        defined = ~np.isnan(per_unit)
        share = None if weights is None else weights[defined]
        if not defined.any() or (share is not None and not share.any()):
            return cls(nan, per_unit, weights)
        return cls(float(np.average(per_unit[defined], weights=share)), per_unit, weights)


class Metric(ABC, Generic[E]):
    """A metric: its name, bounds, direction, chance level and reference are declared in one class.

    Subclasses are frozen dataclasses whose fields are the parameters; a field ``k`` is the cutoff. The name is
    built from them, and the parser reads the same name back.
    """

    symbol: ClassVar[str]
    title: ClassVar[str]
    evidence: ClassVar[type[Evidence]]
    aliases: ClassVar[tuple[str, ...]] = ()
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    better: ClassVar[Direction] = UP
    unit: ClassVar[str] = "fraction"
    needs_cutoff: ClassVar[bool] = False
    formula: ClassVar[str] = ""
    undefined: ClassVar[str] = "a unit without relevant items"
    undefined_hint: ClassVar[str] = ""
    """What to do about undefined units, if the judgements are not the cause."""
    cite: ClassVar[str] = ""

    needs_distinct_units: ClassVar[bool] = False
    """Whether repeated units distort the value, so that its interval comes from subsamples without replacement."""

    @cached_property
    def name(self) -> str:
        """The canonical name, for example ``MAP(norm=R)@10``."""
        parameters = []
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.name != "k" and value != field.default:
                parameters.append(field.name if value is True else f"{field.name}={value}")
        cutoff = getattr(self, "k", None)
        inner = f"({','.join(parameters)})" if parameters else ""
        return f"{self.symbol}{inner}{'' if cutoff is None else f'@{cutoff}'}"

    def __str__(self) -> str:
        return self.name

    def __post_init__(self) -> None:
        for name, kind in parameter_types(type(self)).items():
            if get_origin(kind) is Literal and getattr(self, name) not in get_args(kind):
                raise ParameterError(
                    f"{self.symbol} has no {name} {getattr(self, name)!r}",
                    hint=f"it is one of {', '.join(map(str, get_args(kind)))}",
                )
        cutoff = getattr(self, "k", None)
        if cutoff is None and self.needs_cutoff:
            raise ParameterError(f"{self.symbol} needs a cutoff", hint=f"write {self.symbol}@10")
        if cutoff is not None and cutoff < 1:
            raise ParameterError(f"{self.symbol}@{cutoff} has a cutoff below 1", hint="a cutoff counts ranks from 1")
        if cutoff is not None and cutoff > LARGEST_CUTOFF:
            raise ParameterError(
                f"{self.symbol}@{cutoff} has a cutoff beyond any list", hint=f"write {self.symbol}@1000"
            )

    @abstractmethod
    def measure(self, evidence: E) -> MetricValue:
        """The value, with the unit values if it is a mean over units."""

    def why_no_interval(self, evidence: E) -> str:
        """Why resamples of this evidence show no spread of the value; empty if they do."""
        return ""

    def bounds_on(self, evidence: E) -> tuple[float, float]:
        """The range of possible values on this evidence; ``bounds`` unless the evidence narrows it."""
        return self.bounds

    @property
    def chance_stream(self) -> str:
        """The name of the random stream of the chance level; metrics of one stream use the same shuffles."""
        return self.name

    def chance(self, evidence: E, rng: np.random.Generator) -> float:
        """The chance level: the mean value over shuffled evidence."""
        return float(np.mean([self.measure(evidence.shuffled(rng)).value for _ in range(N_CHANCE_SHUFFLES)]))


class UnitMetric(Metric[E]):
    """A metric that is a mean over units."""

    @abstractmethod
    def per_unit(self, evidence: E) -> Floats:
        """One number per unit; NaN if undefined."""

    def weights(self, evidence: E) -> Floats | None:
        """The weight of each unit; None for equal weights."""
        return None

    def measure(self, evidence: E) -> MetricValue:
        """The mean of ``per_unit``."""
        return MetricValue.mean(self.per_unit(evidence), self.weights(evidence))


class CorpusMetric(Metric[E]):
    """A metric of all units together that is not a mean over units, such as a correlation."""

    zero_by_chance: ClassVar[bool] = False
    """Whether the mean over all permutations is exactly 0."""

    @abstractmethod
    def value(self, evidence: E) -> float:
        """The value; NaN if it is undefined."""

    def measure(self, evidence: E) -> MetricValue:
        """The value alone."""
        return MetricValue(self.value(evidence))

    def chance(self, evidence: E, rng: np.random.Generator) -> float:
        """The mean value over shuffled evidence; 0 where that is the mean over all permutations."""
        if self.zero_by_chance:
            return nan if isnan(self.value(evidence)) else 0.0
        return super().chance(evidence, rng)


class BaseMetric(Metric[Any]):
    """Base class of custom metrics: a name and ``calculate``.

    ``calculate(evidence)`` returns one number per unit (NaN where it is undefined), which gets paired tests like any
    built-in metric, or a single number for all units. The name may also be a class attribute.

    >>> class Steep(BaseMetric):
    ...     def __init__(self):
    ...         super().__init__(name="steep")
    ...     def calculate(self, results):
    ...         return 1 / results.best_ranks**2
    """

    symbol: str  # type: ignore[misc]
    title: str  # type: ignore[misc]
    evidence: type[Evidence]  # type: ignore[misc]

    def __init__(
        self,
        name: str = "",
        *,
        better: str = "up",
        bounds: tuple[float, float] = (float("-inf"), float("inf")),
        title: str = "",
        evidence: type[Evidence] | None = None,
    ) -> None:
        from equipoise.evidence.ranking import Ranking

        class_name = getattr(type(self), "name", None)
        self.symbol = name or (class_name if isinstance(class_name, str) else type(self).__name__)
        self.title = title or (type(self).__doc__ or self.symbol).strip().splitlines()[0]
        self.better = Direction(better)  # type: ignore[misc]
        self.bounds = bounds  # type: ignore[misc]
        self.evidence = evidence or Ranking

    @cached_property
    def name(self) -> str:
        """The name it was given."""
        return self.symbol

    def calculate(self, results: Any) -> ArrayLike:
        """One number per unit, or one number: to be written by the subclass."""
        raise UndefinedError(f"the metric {self.name} does not implement calculate")

    def measure(self, evidence: Any) -> MetricValue:
        """Run ``calculate`` and check that it returned one number, or one per unit."""
        try:
            answer = np.asarray(self.calculate(evidence), dtype=np.float64)
        except EquipoiseError:
            raise
        except Exception as error:  # a metric of the user may raise anything
            raise UndefinedError(
                f"the metric {self.name} failed: {type(error).__name__}: {error}", hint="fix its calculate method"
            ) from error
        if answer.ndim == 0:
            return MetricValue(float(answer))
        if answer.shape != (len(evidence),):
            raise UndefinedError(
                f"the metric {self.name} returned an array of shape {answer.shape} for {len(evidence)} units",
                hint="return one number, or one per unit in the order of unit_ids",
            )
        return MetricValue.mean(answer)
