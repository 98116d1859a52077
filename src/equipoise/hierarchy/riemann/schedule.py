"""How training goes: how long, how fast, against how many strangers, and when it ends early."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from equipoise.errors import ParameterError, did_you_mean

Aim = Literal["uniform", "degree", "depth"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The settings of one training run.

    An epoch visits every pair of a node and a relative once. The rate falls from ``rate`` to ``last_rate``
    along a geometric curve; the first ``burn_in`` epochs run at a tenth of it. Each piece of work sees
    ``strangers`` nodes, drawn by ``aim``: all alike, by their number of relatives to the power of 3/4, or more
    often from the node's own depth. Training ends before ``epochs`` once the loss has not fallen by
    ``tolerance`` (a share) in ``patience`` epochs; a patience of 0 never ends it.
    """

    epochs: int = 300
    rate: float = 0.3
    last_rate: float = 0.01
    burn_in: int = 0
    strangers: int = 50
    aim: Aim = "uniform"
    sharpness: float = 1.0
    batch: int = 128
    patience: int = 30
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        for name in ("epochs", "strangers", "batch"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "a whole number of 1 or more")
        for name in ("burn_in", "patience"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "a whole number of 0 or more")
        for name in ("rate", "last_rate", "sharpness"):
            value = getattr(self, name)
            _require(value > 0.0 and math.isfinite(value), name, value, "a finite number above 0")
        _require(self.tolerance >= 0.0, "tolerance", self.tolerance, "a share of 0 or more")
        _require(self.aim in get_args(Aim), "aim", self.aim, f"one of {', '.join(get_args(Aim))}")

    @classmethod
    def of(cls, kind: str, defaults: dict[str, Any], options: dict[str, Any]) -> Schedule:
        """The schedule of an embedder with some of its settings replaced; an unknown one is named."""
        known = [each.name for each in fields(cls)]
        for option in options:
            if option not in known:
                hint = did_you_mean(option, known) or f"the options are {', '.join(known)}"
                raise ParameterError(f"the {kind} embedder has no option {option!r}", hint=hint)
        return cls(**{**defaults, **options})

    def rate_at(self, epoch: int) -> float:
        """The rate of an epoch, counted from 0."""
        share = epoch / max(1, self.epochs - 1)
        rate = self.rate * (self.last_rate / self.rate) ** share
        return rate / 10.0 if epoch < self.burn_in else rate

    def is_over(self, history: list[float]) -> bool:
        """Whether the loss has stopped falling."""
        if not self.patience or len(history) <= self.burn_in + self.patience:
            return False
        before = min(history[self.burn_in : -self.patience])
        return min(history[-self.patience :]) > before * (1.0 - self.tolerance)


def _require(holds: bool, name: str, value: object, what: str) -> None:
    if not holds:
        raise ParameterError(f"{name} is {value}", hint=f"{name} is {what}")
