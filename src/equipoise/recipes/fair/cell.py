"""One model of a comparison as a cell: what it is, and the pure function that measures it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from equipoise.embed.elsewhere import Spread
from equipoise.recipes.fair.engine import Step
from equipoise.recipes.fair.models import loaded
from equipoise.recipes.fair.outcome import Outcome, outcome
from equipoise.recipes.fair.plan import Plan
from equipoise.recipes.fair.store import input_key


@dataclass(frozen=True)
class Cell:
    """A model and how it is loaded; ``kept`` is the key of the run that lies in its place, where one does."""

    name: str
    model: Any
    cache: Any = None
    threads: int = 1
    kept: str = ""


@dataclass(frozen=True)
class Measured:
    """What a model showed, and the key of all that decided it."""

    key: str
    outcome: Outcome


def measure(cell: Cell, plan: Plan, step: Step, over: Spread | None = None) -> Measured | None:
    """Tune and measure the model; None where what is kept of it is of the same inputs.

    Only where a model can be loaded is it known which one it is, so that this is found out here. ``over``
    embeds blocks of its texts elsewhere.
    """
    step(f"{cell.name}: loading")
    with loaded(cell.model, cache=cell.cache, threads=cell.threads) as system:
        key = input_key(plan, cell.name, system.fingerprint)
        return None if key == cell.kept else Measured(key, outcome(cell.name, system, plan, step, over))
