"""The training loop: one stage after the other, each until its loss stops falling."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from equipoise.hierarchy.riemann.relatives import Relatives
from equipoise.hierarchy.riemann.schedule import Schedule
from equipoise.hierarchy.riemann.spaces import Space
from equipoise.hierarchy.riemann.stages import Work, stages_of
from equipoise.hierarchy.riemann.strangers import Pool
from equipoise.types import Floats

Progress = Callable[[int, int], None]
"""Takes the epochs that are done and the epochs there are at most."""


def train(
    space: Space,
    points: Floats,
    relatives: Relatives,
    pool: Pool,
    schedule: Schedule,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> list[float]:
    """Move the points in place; returns the mean loss of a pair in each epoch, of whichever stage it was."""
    history: list[float] = []
    if not len(relatives.pieces):
        return history
    work = Work(space, points, relatives, pool, schedule, rng)
    for stage in stages_of(work, engine_of(schedule)):
        begun = len(history)
        for done in range(stage.epochs):
            history.append(stage.epoch(done) / len(relatives.keys))
            if progress is not None:
                progress(len(history), schedule.epochs)
            if schedule.is_over(history[begun:]):
                break
    return history


def engine_of(schedule: Schedule) -> str:
    """The engine that a schedule runs on here."""
    if schedule.engine == "auto":
        return "numba" if find_spec("numba") else "numpy"
    return schedule.engine
