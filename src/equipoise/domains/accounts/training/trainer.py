"""The stages of training: one descent in flat space and without numba, three stages in curved space with it.

In curved space the points first find their place at large: long steps, against few strangers that many nodes
share. Then each node also remembers its nearest strangers, and near ranks fall into order. Last they settle
against exactly the strangers that rank too high. The first stage alone leaves relatives a few places down,
the second alone freezes whole branches where they began, and the third needs both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from equipoise.domains.accounts.training import objective
from equipoise.domains.accounts.training.sampling import NegativePool, PositivePairs, empty_hard_negatives
from equipoise.domains.accounts.trees.tree import PARENT, RELATIONS
from equipoise.errors import ParameterError, did_you_mean
from equipoise.types import Floats, Ints, require_extra

if TYPE_CHECKING:
    from equipoise.domains.accounts.training.manifolds import Manifold

# How training goes: how long, how fast, against whom, and when it ends early.

NegativeSampling = Literal["uniform", "degree", "depth"]
BackendName = Literal["auto", "numba", "numpy"]
_COUNTS = {"epochs": 1, "strangers": 1, "memory": 1, "kin": 0, "chained": 0, "burn_in": 0, "patience": 0}
_AMOUNTS = ("rate", "last_rate", "sharpness")
_ALIASES = dict.fromkeys(
    ("negatives", "negative", "num_negatives", "n_negatives"),
    "negatives are called strangers: aim='degree' says how they are drawn, strangers=16 how many",
)


@dataclass(frozen=True, slots=True)
class TrainingConfig:
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
    aim: NegativeSampling = "uniform"
    patience: int = 60
    tolerance: float = 1e-3
    engine: BackendName = "auto"
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
        whole = last is None or (isinstance(last, int) and not isinstance(last, bool) and 0 <= last < self.epochs)
        _require(whole, "settle", last, f"a whole number of 0 or more, below the {self.epochs} epochs there are")
        if self.burn_in and self.burn_in >= self.epochs:
            raise ParameterError(
                f"burn_in is {self.burn_in}, and there are {self.epochs} epochs in all",
                hint="leave epochs after the burn-in: more epochs, or a shorter burn-in",
            )
        for name, choices in (
            ("aim", get_args(NegativeSampling)),
            ("engine", get_args(BackendName)),
            ("train_on", RELATIONS),
        ):
            value = getattr(self, name)
            _require(value in choices, name, repr(value), f"one of {', '.join(choices)}")

    @classmethod
    def of(cls, kind: str, defaults: dict[str, Any], options: dict[str, Any]) -> TrainingConfig:
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
        rate = geometric_decay(self.rate, self.last_rate, epoch / max(1, self.epochs - 1))
        # Steps are cut far below this; the squares of longer ones would overflow.
        return min(rate / 10.0 if epoch < self.burn_in else rate, 1e6)

    def is_over(self, history: list[float]) -> bool:
        """Whether the loss has stopped falling."""
        if not self.patience or len(history) < self.burn_in + 2 * self.patience:
            return False
        lately, before = history[-self.patience :], history[-2 * self.patience : -self.patience]
        return sum(lately) >= sum(before) * (1.0 - self.tolerance)


def geometric_decay(first: float, last: float, share: float) -> float:
    """The rate at a share of the way from the first to the last, along a geometric curve.

    >>> round(geometric_decay(1.0, 0.01, 0.5), 12)
    0.1
    """
    # As a sum of logarithms: the quotient of two extreme rates may leave the range of float64.
    return math.exp((1.0 - share) * math.log(first) + share * math.log(last))


def _require(holds: bool, name: str, value: object, what: str) -> None:
    if not holds:
        raise ParameterError(f"{name} is {value}", hint=f"{name} is {what}")


MAX_LOG_WEIGHT_RATIO = 8.0
"""Strangers that weigh less than exp(-MARGIN) of the farthest relative are not computed with."""
HARD_NEGATIVE_SHARE, REFINEMENT_SHARE = 5, 10
"""In curved space one epoch of so many is spent on near ranks, and one of so many on settling."""
COARSE_RATES = (3.5, 0.15)
"""First and last rate of the first stage, as multiples of the schedule's rate."""
HARD_NEGATIVE_RATES = (0.3, 0.5)
"""The second stage: the first rate as a multiple of the schedule's rate, the last of its last rate."""
REFINEMENT_RATES = (0.1, 0.4)
"""The last stage, likewise."""
SHARED_NEGATIVES_FACTOR = 3
"""So many times the strangers can be met, where many nodes share them."""
_SQUARED = 8.0
"""Sharpness of plain distances over that of squared ones: their slopes agree four apart."""
_SLOWEST, _FASTEST = 1e-300, 1e6


@dataclass(frozen=True)
class TrainingProblem:
    """What a stage works on: it moves the points in place."""

    space: Manifold
    points: Floats
    relatives: PositivePairs
    pool: NegativePool
    schedule: TrainingConfig
    rng: np.random.Generator


@dataclass(frozen=True)
class TrainingStage:
    """So many epochs; ``epoch`` takes how many of them are done and returns the summed loss."""

    epochs: int
    epoch: Callable[[int], float]


def stages_of(work: TrainingProblem, engine: str) -> list[TrainingStage]:
    """The stages that a space is trained in by an engine."""
    if engine == "numpy":
        return [_by_numpy(work)]
    require_extra("numba", extra="fast")
    return _curved(work) if work.space.curved else _flat(work)


def _by_numpy(work: TrainingProblem) -> TrainingStage:
    memory = empty_hard_negatives(len(work.relatives), work.schedule.memory)
    pace = work.relatives.pace

    def epoch(done: int) -> float:
        rates = work.schedule.rate_at(done) * pace
        return objective.NumpyBackend(
            work.space, work.points, memory, work.relatives, work.pool, work.schedule, rates, work.rng
        )

    return TrainingStage(work.schedule.epochs, epoch)


def _flat(work: TrainingProblem) -> list[TrainingStage]:
    from equipoise.domains.accounts.training import numba_sgd

    schedule, relatives, space = work.schedule, work.relatives, work.space
    memory = empty_hard_negatives(len(relatives), schedule.memory)
    counts = (schedule.strangers, schedule.kin, schedule.chained)
    pool, links = _arrays(work)
    pace, margin = relatives.pace, MAX_LOG_WEIGHT_RATIO / schedule.sharpness

    def epoch(done: int) -> float:
        order = work.rng.permutation(len(relatives.pieces))
        return numba_sgd.epoch(
            work.points, space.reach, relatives.pieces, order, counts, memory, pool, links, relatives.family,
            pace, schedule.sharpness, schedule.rate_at(done), margin, _seed(work),
        )  # fmt: skip

    settle = schedule.settle or 0
    return [TrainingStage(schedule.epochs - settle, epoch), *_settling(work, settle)]


def _curved(work: TrainingProblem) -> list[TrainingStage]:
    schedule = work.schedule
    settle = schedule.epochs // REFINEMENT_SHARE if schedule.settle is None else schedule.settle
    near = min(schedule.epochs // HARD_NEGATIVE_SHARE, schedule.epochs - settle - 1)
    at_large = schedule.epochs - near - settle
    rate, last_rate = _rates(schedule)
    crowd = _crowd(work)

    def first(done: int) -> float:
        now = geometric_decay(COARSE_RATES[0] * rate, COARSE_RATES[1] * rate, done / max(1, at_large - 1))
        return crowd(now / 10.0 if done < schedule.burn_in else now, False)

    def second(done: int) -> float:
        now = geometric_decay(
            HARD_NEGATIVE_RATES[0] * rate, HARD_NEGATIVE_RATES[1] * last_rate, done / max(1, near - 1)
        )
        return crowd(now / 10.0 if at_large + done < schedule.burn_in else now, True)

    return [TrainingStage(at_large, first), TrainingStage(near, second), *_settling(work, settle)]


def _settling(work: TrainingProblem, epochs: int) -> list[TrainingStage]:
    """The stage that ends training, if it has any epochs."""
    from equipoise.domains.accounts.training.numba_refinement import HardNegativeRefinement

    if not epochs:
        return []
    rate, last_rate = _rates(work.schedule)
    rates = (REFINEMENT_RATES[0] * rate, REFINEMENT_RATES[1] * last_rate)
    settling = HardNegativeRefinement(work.space, work.points, work.relatives, work.rng, rates)
    return [TrainingStage(epochs, lambda done: settling.epoch(done, epochs))]


def _rates(schedule: TrainingConfig) -> tuple[float, float]:
    """First and last rate, where their multiples still are numbers above 0."""
    first, last = (min(max(rate, _SLOWEST), _FASTEST) for rate in (schedule.rate, schedule.last_rate))
    return first, last


def _crowd(work: TrainingProblem) -> Callable[[float, bool], float]:
    """An epoch against shared strangers, at a rate, with or without those that a node remembers."""
    from equipoise.domains.accounts.training import numba_sgd

    schedule, relatives = work.schedule, work.relatives
    memory = empty_hard_negatives(len(relatives), schedule.memory)
    counts = (SHARED_NEGATIVES_FACTOR * schedule.strangers, schedule.kin, schedule.chained)
    pool, links = _arrays(work)
    pace, sharpness = relatives.pace, max(schedule.sharpness / _SQUARED, _SLOWEST)

    def epoch(rate: float, remembers: bool) -> float:
        order = _in_runs(work, numba_sgd.CHUNKS_PER_SHARED_SAMPLE)
        return numba_sgd.crowd_compiled_epoch(
            work.points, work.space.reach, relatives.pieces, order, counts, remembers, memory, pool, links,
            relatives.family, pace, sharpness, rate, MAX_LOG_WEIGHT_RATIO, _seed(work),
        )  # fmt: skip

    return epoch


def _in_runs(work: TrainingProblem, run: int) -> Ints:
    """The pieces in random order; for strangers of a node's depth, pieces of one depth in each run."""
    pieces = work.relatives.pieces
    order = work.rng.permutation(len(pieces))
    if work.schedule.aim != "depth":
        return order
    order = order[np.argsort(work.pool.low[pieces[order, 0]], kind="stable")]
    whole = len(order) // run * run
    runs = order[:whole].reshape(-1, run)
    return np.concatenate([work.rng.permutation(runs).ravel(), order[whole:]])


def _arrays(work: TrainingProblem) -> tuple[tuple[Ints, Ints, Ints], tuple[Ints, Ints]]:
    """Pool and relatives as compiled code takes them."""
    pool, relatives = work.pool, work.relatives
    return (pool.members, pool.low, pool.high), (relatives.links.starts, relatives.links.targets)


def _seed(work: TrainingProblem) -> int:
    return int(work.rng.integers(1 << 32))


# The training loop: one stage after the other, each until its loss stops falling.

Progress = Callable[[int, int], None]
"""Takes the epochs that are done and the epochs there are at most."""


def train(
    space: Manifold,
    points: Floats,
    relatives: PositivePairs,
    pool: NegativePool,
    schedule: TrainingConfig,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> list[float]:
    """Move the points in place; returns the mean loss of a pair in each epoch, of whichever stage it was."""
    history: list[float] = []
    if not len(relatives.pieces):
        return history
    work = TrainingProblem(space, points, relatives, pool, schedule, rng)
    for stage in stages_of(work, select_backend(schedule)):
        begun = len(history)
        for done in range(stage.epochs):
            history.append(stage.epoch(done) / len(relatives.keys))
            if progress is not None:
                progress(len(history), schedule.epochs)
            if schedule.is_over(history[begun:]):
                break
    return history


def select_backend(schedule: TrainingConfig) -> str:
    """The engine that a schedule runs on here."""
    if schedule.engine == "auto":
        return "numba" if find_spec("numba") else "numpy"
    return schedule.engine
