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
SETTLING = (0.1, 0.4)
"""The last stage, likewise."""
SHARED = 3
"""So many times the strangers can be met, where many nodes share them."""
_SQUARED = 8.0
"""Sharpness of plain distances over that of squared ones: their slopes agree four apart."""
_SLOWEST, _FASTEST = 1e-300, 1e6


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
    return _curved(work) if work.space.curved else _flat(work)


def _by_numpy(work: Work) -> Stage:
    memory = no_memory(len(work.relatives), work.schedule.memory)
    pace = work.relatives.pace

    def epoch(done: int) -> float:
        rates = work.schedule.rate_at(done) * pace
        return batches.epoch(
            work.space, work.points, memory, work.relatives, work.pool, work.schedule, rates, work.rng
        )

    return Stage(work.schedule.epochs, epoch)


def _flat(work: Work) -> list[Stage]:
    from equipoise.hierarchy.riemann import compiled

    schedule, relatives, space = work.schedule, work.relatives, work.space
    memory = no_memory(len(relatives), schedule.memory)
    counts = (schedule.strangers, schedule.kin, schedule.chained)
    pool, links = _arrays(work)
    pace, margin = relatives.pace, MARGIN / schedule.sharpness

    def epoch(done: int) -> float:
        order = work.rng.permutation(len(relatives.pieces))
        return compiled.epoch(
            work.points, space.reach, relatives.pieces, order, counts, memory, pool, links, relatives.family,
            pace, schedule.sharpness, schedule.rate_at(done), margin, _seed(work),
        )  # fmt: skip

    settle = schedule.settle or 0
    return [Stage(schedule.epochs - settle, epoch), *_settling(work, settle)]


def _curved(work: Work) -> list[Stage]:
    schedule = work.schedule
    settle = schedule.epochs // SETTLE if schedule.settle is None else schedule.settle
    near = min(schedule.epochs // NEAR, schedule.epochs - settle - 1)
    at_large = schedule.epochs - near - settle
    rate, last_rate = _rates(schedule)
    crowd = _crowd(work)

    def first(done: int) -> float:
        now = falling(AT_LARGE[0] * rate, AT_LARGE[1] * rate, done / max(1, at_large - 1))
        return crowd(now / 10.0 if done < schedule.burn_in else now, False)

    def second(done: int) -> float:
        now = falling(NEARBY[0] * rate, NEARBY[1] * last_rate, done / max(1, near - 1))
        return crowd(now / 10.0 if at_large + done < schedule.burn_in else now, True)

    return [Stage(at_large, first), Stage(near, second), *_settling(work, settle)]


def _settling(work: Work, epochs: int) -> list[Stage]:
    """The stage that ends training, if it has any epochs."""
    from equipoise.hierarchy.riemann.settle import Settling

    if not epochs:
        return []
    rate, last_rate = _rates(work.schedule)
    rates = (SETTLING[0] * rate, SETTLING[1] * last_rate)
    settling = Settling(work.space, work.points, work.relatives, work.rng, rates)
    return [Stage(epochs, lambda done: settling.epoch(done, epochs))]


def _rates(schedule: Schedule) -> tuple[float, float]:
    """First and last rate, where their multiples still are numbers above 0."""
    first, last = (min(max(rate, _SLOWEST), _FASTEST) for rate in (schedule.rate, schedule.last_rate))
    return first, last


def _crowd(work: Work) -> Callable[[float, bool], float]:
    """An epoch against shared strangers, at a rate, with or without those that a node remembers."""
    from equipoise.hierarchy.riemann import crowd_compiled

    schedule, relatives = work.schedule, work.relatives
    memory = no_memory(len(relatives), schedule.memory)
    counts = (SHARED * schedule.strangers, schedule.kin, schedule.chained)
    pool, links = _arrays(work)
    pace, sharpness = relatives.pace, max(schedule.sharpness / _SQUARED, _SLOWEST)

    def epoch(rate: float, remembers: bool) -> float:
        order = _in_runs(work, crowd_compiled.RUN)
        return crowd_compiled.epoch(
            work.points, work.space.reach, relatives.pieces, order, counts, remembers, memory, pool, links,
            relatives.family, pace, sharpness, rate, MARGIN, _seed(work),
        )  # fmt: skip

    return epoch


def _in_runs(work: Work, run: int) -> Ints:
    """The pieces in random order; for strangers of a node's depth, pieces of one depth in each run."""
    pieces = work.relatives.pieces
    order = work.rng.permutation(len(pieces))
    if work.schedule.aim != "depth":
        return order
    order = order[np.argsort(work.pool.low[pieces[order, 0]], kind="stable")]
    whole = len(order) // run * run
    runs = order[:whole].reshape(-1, run)
    return np.concatenate([work.rng.permutation(runs).ravel(), order[whole:]])


def _arrays(work: Work) -> tuple[tuple[Ints, Ints, Ints], tuple[Ints, Ints]]:
    """Pool and relatives as compiled code takes them."""
    pool, relatives = work.pool, work.relatives
    return (pool.members, pool.low, pool.high), (relatives.links.starts, relatives.links.targets)


def _seed(work: Work) -> int:
    return int(work.rng.integers(1 << 32))
