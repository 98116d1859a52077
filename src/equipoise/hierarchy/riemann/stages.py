"""The stages of training: one descent in flat space and without numba, three stages in curved space with it.

In curved space the points first find their place at large: long steps, against few strangers that many nodes
share. Then each node also remembers its nearest strangers, and near ranks fall into order. Last they settle
against exactly the strangers that rank too high. The first stage alone leaves relatives a few places down,
the second alone freezes whole branches where they began, and the third needs both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise.hierarchy.riemann import batches
from equipoise.hierarchy.riemann.relatives import Relatives
from equipoise.hierarchy.riemann.schedule import Schedule, falling
from equipoise.hierarchy.riemann.spaces import Space
from equipoise.hierarchy.riemann.strangers import Pool, no_memory
from equipoise.types import Floats, Ints, need

MARGIN = 8.0
"""Strangers that weigh less than exp(-MARGIN) of the farthest relative are not computed with."""
NEAR, SETTLE = 5, 10
"""In curved space one epoch of so many is spent on near ranks, and one of so many on settling."""
AT_LARGE = (3.5, 0.15)
"""First and last rate of the first stage, as multiples of the schedule's rate."""
NEARBY = (0.3, 0.5)
"""The second stage: the first rate as a multiple of the schedule's rate, the last of its last rate."""
SHARED = 3
"""So many times the strangers can be met, where many nodes share them."""
_SQUARED = 8.0
"""Sharpness of plain distances over that of squared ones: their slopes agree four apart."""
_FASTEST = 1e6


@dataclass(frozen=True)
class Work:
    """What a stage works on: it moves the points in place."""

    space: Space
    points: Floats
    relatives: Relatives
    pool: Pool
    schedule: Schedule
    rng: np.random.Generator


@dataclass(frozen=True)
class Stage:
    """So many epochs; ``epoch`` takes how many of them are done and returns the summed loss."""

    epochs: int
    epoch: Callable[[int], float]


def stages_of(work: Work, engine: str) -> list[Stage]:
    """The stages that a space is trained in by an engine."""
    if engine == "numpy":
        return [_by_numpy(work)]
    need("numba", extra="fast")
    return _curved(work) if work.space.curved else [_flat(work)]


def _by_numpy(work: Work) -> Stage:
    memory = no_memory(len(work.relatives), work.schedule.memory)
    pace = work.relatives.pace

    def epoch(done: int) -> float:
        rates = work.schedule.rate_at(done) * pace
        return batches.epoch(
            work.space, work.points, memory, work.relatives, work.pool, work.schedule, rates, work.rng
        )

    return Stage(work.schedule.epochs, epoch)


def _flat(work: Work) -> Stage:
    from equipoise.hierarchy.riemann import compiled

    schedule, relatives, space = work.schedule, work.relatives, work.space
    memory = no_memory(len(relatives), schedule.memory)
    counts = (schedule.strangers, schedule.kin, schedule.chained)
    pool, links, ancestors = _arrays(work)
    pace, margin = relatives.pace, MARGIN / schedule.sharpness

    def epoch(done: int) -> float:
        order = work.rng.permutation(len(relatives.pieces))
        return compiled.epoch(
            work.points, space.reach, relatives.pieces, order, counts, memory, pool, links, ancestors, pace,
            schedule.sharpness, schedule.rate_at(done), margin, _seed(work),
        )  # fmt: skip

    return Stage(schedule.epochs, epoch)


def _curved(work: Work) -> list[Stage]:
    from equipoise.hierarchy.riemann.settle import Settling

    schedule = work.schedule
    near, settle = schedule.epochs // NEAR, schedule.epochs // SETTLE
    at_large = schedule.epochs - near - settle
    rate, last_rate = min(schedule.rate, _FASTEST), min(schedule.last_rate, _FASTEST)
    crowd = _crowd(work)

    def first(done: int) -> float:
        now = falling(AT_LARGE[0] * rate, AT_LARGE[1] * rate, done / max(1, at_large - 1))
        return crowd(now / 10.0 if done < schedule.burn_in else now, False)

    def second(done: int) -> float:
        return crowd(falling(NEARBY[0] * rate, NEARBY[1] * last_rate, done / max(1, near - 1)), True)

    settling = Settling(work.space, work.points, work.relatives, work.rng)
    third = Stage(settle, lambda done: settling.epoch(done, settle))
    return [Stage(at_large, first), Stage(near, second), third]


def _crowd(work: Work) -> Callable[[float, bool], float]:
    """An epoch against shared strangers, at a rate, with or without those that a node remembers."""
    from equipoise.hierarchy.riemann import crowd_compiled

    schedule, relatives = work.schedule, work.relatives
    memory = no_memory(len(relatives), schedule.memory)
    counts = (SHARED * schedule.strangers, schedule.kin, schedule.chained)
    pool, links, ancestors = _arrays(work)
    pace = relatives.pace

    def epoch(rate: float, remembers: bool) -> float:
        order = work.rng.permutation(len(relatives.pieces))
        return crowd_compiled.epoch(
            work.points, work.space.reach, relatives.pieces, order, counts, remembers, memory, pool, links,
            ancestors, pace, schedule.sharpness / _SQUARED, rate, MARGIN, _seed(work),
        )  # fmt: skip

    return epoch


def _arrays(work: Work) -> tuple[tuple[Ints, Ints, Ints], tuple[Ints, Ints], tuple[Ints, Ints]]:
    """Pool, relatives and ancestors as compiled code takes them."""
    pool, relatives = work.pool, work.relatives
    return (
        (pool.members, pool.low, pool.high),
        (relatives.links.starts, relatives.links.targets),
        (relatives.ancestors.starts, relatives.ancestors.targets),
    )


def _seed(work: Work) -> int:
    return int(work.rng.integers(1 << 32))
