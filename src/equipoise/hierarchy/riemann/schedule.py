"""How training goes: how long, how fast, against whom, and when it ends early."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from equipoise.errors import ParameterError, did_you_mean
from equipoise.hierarchy.tree import PARENT, RELATIONS

Aim = Literal["uniform", "degree", "depth"]
Engine = Literal["auto", "numba", "numpy"]
_COUNTS = {"epochs": 1, "strangers": 1, "memory": 1, "kin": 0, "chained": 0, "burn_in": 0, "patience": 0}
_AMOUNTS = ("rate", "last_rate", "sharpness")
_ALIASES = dict.fromkeys(
    ("negatives", "negative", "num_negatives", "n_negatives"),
    "negatives are called strangers: aim='degree' says how they are drawn, strangers=16 how many",
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The settings of one training run.

    An epoch visits every pair of a node and a relative once. Relatives are those of a relation of the tree:
    the parent, the ancestors, or with the closure ancestors and descendants; all others are strangers. The
    rate, the longest step that one pair can cause, falls from ``rate`` to ``last_rate`` along a geometric
    curve; the first ``burn_in`` epochs run at a tenth of it. A piece of work sees ``strangers`` nodes drawn
    at large by ``aim`` (all alike, by their number of kin to the power of 3/4, or of the node's own depth),
    ``kin`` ancestors and descendants of an ancestor, the ``memory`` nearest strangers the node has met, and
    ``chained`` that those have met. ``sharpness`` is the factor of the distance in the exponent of the loss.
    Training ends before ``epochs`` once the mean loss of the last ``patience`` epochs is not below that of as
    many before by ``tolerance`` (a share); a patience of 0 never ends it. The engine ``auto`` is numba where
    it is installed.

    In curved space numba trains in stages, which share the epochs: see ``stages``. There many nodes share
    three times the strangers; the distance is squared, at an eighth of the sharpness; rates are multiples of
    these; and patience counts within a stage. The last ``settle`` epochs let the points settle: a tenth of
    all in curved space and none in flat space, unless a number is given. numpy has no such stage.
    """

    epochs: int = 300
    rate: float = 1.0
    last_rate: float = 0.01
    burn_in: int = 0
    sharpness: float = 8.0
    strangers: int = 16
    kin: int = 8
    chained: int = 8
    memory: int = 16
    aim: Aim = "uniform"
    patience: int = 60
    tolerance: float = 1e-3
    engine: Engine = "auto"
    settle: int | None = None
    train_on: str = PARENT

    def __post_init__(self) -> None:
        for name, least in _COUNTS.items():
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            _require(whole, name, value, f"a whole number of {least} or more")
        for name in _AMOUNTS:
            value = getattr(self, name)
            _require(value > 0.0 and math.isfinite(value), name, value, "a finite number above 0")
        _require(self.sharpness <= 1e9, "sharpness", self.sharpness, "1e9 at most")
        _require(self.tolerance >= 0.0, "tolerance", self.tolerance, "a share of 0 or more")
        last = self.settle
        whole = last is None or (
            isinstance(last, int) and not isinstance(last, bool) and 0 <= last < self.epochs
        )
        _require(
            whole, "settle", last, f"a whole number of 0 or more, below the {self.epochs} epochs there are"
        )
        if self.burn_in and self.burn_in >= self.epochs:
            raise ParameterError(
                f"burn_in is {self.burn_in}, and there are {self.epochs} epochs in all",
                hint="leave epochs after the burn-in: more epochs, or a shorter burn-in",
            )
        for name, choices in (
            ("aim", get_args(Aim)),
            ("engine", get_args(Engine)),
            ("train_on", RELATIONS),
        ):
            value = getattr(self, name)
            _require(value in choices, name, repr(value), f"one of {', '.join(choices)}")

    @classmethod
    def of(cls, kind: str, defaults: dict[str, Any], options: dict[str, Any]) -> Schedule:
        """The schedule of an embedder with some of its settings replaced; an unknown one is named."""
        known = [each.name for each in fields(cls)]
        for option in options:
            if option not in known:
                hint = _ALIASES.get(option) or did_you_mean(option, known)
                raise ParameterError(
                    f"the {kind} embedder has no option {option!r}",
                    hint=hint or f"the options are {', '.join(known)}",
                )
        return cls(**{**defaults, **options})

    def rate_at(self, epoch: int) -> float:
        """The rate of an epoch, counted from 0."""
        rate = falling(self.rate, self.last_rate, epoch / max(1, self.epochs - 1))
        # Steps are cut far below this; the squares of longer ones would overflow.
        return min(rate / 10.0 if epoch < self.burn_in else rate, 1e6)

    def is_over(self, history: list[float]) -> bool:
        """Whether the loss has stopped falling."""
        if not self.patience or len(history) < self.burn_in + 2 * self.patience:
            return False
        lately, before = history[-self.patience :], history[-2 * self.patience : -self.patience]
        return sum(lately) >= sum(before) * (1.0 - self.tolerance)


def falling(first: float, last: float, share: float) -> float:
    """The rate at a share of the way from the first to the last, along a geometric curve.

    >>> round(falling(1.0, 0.01, 0.5), 12)
    0.1
    """
    # As a sum of logarithms: the quotient of two extreme rates may leave the range of float64.
    return math.exp((1.0 - share) * math.log(first) + share * math.log(last))


def _require(holds: bool, name: str, value: object, what: str) -> None:
    if not holds:
        raise ParameterError(f"{name} is {value}", hint=f"{name} is {what}")
