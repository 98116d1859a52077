"""The training loop: epochs at a falling rate, by numba where it is installed, else by numpy."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from equipoise.hierarchy.riemann import batches
from equipoise.hierarchy.riemann.relatives import Relatives
from equipoise.hierarchy.riemann.schedule import Schedule
from equipoise.hierarchy.riemann.spaces import Space
from equipoise.hierarchy.riemann.strangers import Pool, no_memory
from equipoise.types import Floats, need

Progress = Callable[[int, int], None]
"""Takes the epochs that are done and the epochs there are at most."""

Epoch = Callable[[float], float]
"""One epoch at a rate, which returns the summed loss."""

MARGIN = 8.0
"""Strangers that weigh less than exp(-MARGIN) of the farthest relative are not computed with."""


def train(
    space: Space,
    points: Floats,
    relatives: Relatives,
    pool: Pool,
    schedule: Schedule,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> list[float]:
    """Move the points in place; returns the mean loss of a pair in each epoch."""
    history: list[float] = []
    if not len(relatives.pieces):
        return history
    make = _by_numba if engine_of(schedule) == "numba" else _by_numpy
    epoch = make(space, points, relatives, pool, schedule, rng)
    for done in range(schedule.epochs):
        history.append(epoch(schedule.rate_at(done)) / len(relatives.keys))
        if progress is not None:
            progress(done + 1, schedule.epochs)
        if schedule.is_over(history):
            break
    return history


def engine_of(schedule: Schedule) -> str:
    """The engine that a schedule runs on here."""
    if schedule.engine == "auto":
        return "numba" if find_spec("numba") else "numpy"
    return schedule.engine


def _by_numpy(
    space: Space,
    points: Floats,
    relatives: Relatives,
    pool: Pool,
    schedule: Schedule,
    rng: np.random.Generator,
) -> Epoch:
    memory = no_memory(len(relatives), schedule.memory)
    pace = relatives.pace
    return lambda rate: batches.epoch(space, points, memory, relatives, pool, schedule, rate * pace, rng)


def _by_numba(
    space: Space,
    points: Floats,
    relatives: Relatives,
    pool: Pool,
    schedule: Schedule,
    rng: np.random.Generator,
) -> Epoch:
    need("numba", extra="fast")
    from equipoise.hierarchy.riemann import compiled

    memory = no_memory(len(relatives), schedule.memory)
    counts = (schedule.strangers, schedule.kin, schedule.chained)
    drawing = (pool.members, pool.low, pool.high)
    links = (relatives.links.starts, relatives.links.targets)
    ancestors = (relatives.ancestors.starts, relatives.ancestors.targets)

    pace, margin = relatives.pace, MARGIN / schedule.sharpness

    def epoch(rate: float) -> float:
        order = rng.permutation(len(relatives.pieces))
        return compiled.epoch(
            points, space.curved, space.reach, relatives.pieces, order, counts, memory, drawing, links,
            ancestors, pace, schedule.sharpness, rate, margin, int(rng.integers(1 << 32)),
        )  # fmt: skip

    return epoch
