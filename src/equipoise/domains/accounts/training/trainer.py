"""Training of tree embeddings: the configuration, the stages, and the loop over epochs.

In Euclidean space one stage of stochastic gradient descent runs. On the hyperboloid there are three: a coarse stage
with long steps and few negatives that many nodes share; a stage that adds the hard negatives of each node; and
refinement against exactly the negatives that rank too high. The first stage alone leaves positives at ranks slightly
above 1, the second alone keeps whole branches near their initial positions, and refinement needs both. The losses are
stated in ``objective``; the kernels are compiled by numba.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from equipoise.domains.accounts.training.objective import Manifold, PositivePairs
from equipoise.domains.accounts.trees.tree import PARENT, RELATIONS
from equipoise.errors import ParameterError, did_you_mean
from equipoise.progress import activity
from equipoise.types import Floats, require_extra

_MIN_COUNTS = {
    "epochs": 1,
    "n_negatives": 1,
    "n_hard_negatives": 1,
    "n_branch_negatives": 0,
    "n_neighbor_negatives": 0,
    "patience": 0,
    "refinement_epochs": 0,
    "restarts": 1,
}
_OPTIONAL = ("refinement_epochs", "restarts")
_POSITIVE = ("learning_rate", "final_learning_rate", "temperature")


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """The configuration of one training run.

    On the hyperboloid the stages share the epochs. There distances are squared at eight times the temperature, learning
    rates are multiples of those given, and patience counts within a stage.

    Parameters
    ----------
    epochs
        Passes over all pairs of a node and a positive.
    learning_rate
        Longest step that one pair can cause at the start; it decays geometrically.
    final_learning_rate
        The learning rate at the end.
    temperature
        Temperature of the softmax.
    n_negatives
        Random negatives: 64 chunks of positives share three times this number.
    n_branch_negatives
        Negatives from the ancestors and descendants of a random ancestor.
    n_neighbor_negatives
        Negatives among the hard negatives of the hard negatives of a node.
    n_hard_negatives
        Hard negatives: the nearest negatives of each node that were sampled so far.
    patience
        Training stops before ``epochs`` if the mean loss of the last ``patience`` epochs is not lower, by the fraction
        ``tol``, than that of as many epochs before; 0 disables early stopping.
    tol
        See ``patience``.
    refinement_epochs
        Number of last epochs that are spent on refinement; None is a tenth of all epochs on the hyperboloid and 0 in
        Euclidean space.
    train_relation
        The positives of a node: ``parent``, ``ancestors``, or ``closure`` (ancestors and descendants).
    restarts
        Training runs from different starts, of which the one with the lowest loss is kept; None is ``default_restarts``
        of the number of pairs.
    """

    epochs: int = 1000
    learning_rate: float = 1.0
    final_learning_rate: float = 0.01
    temperature: float = 1.0 / 8.0
    n_negatives: int = 16
    n_branch_negatives: int = 8
    n_neighbor_negatives: int = 8
    n_hard_negatives: int = 16
    patience: int = 60
    tol: float = 1e-3
    refinement_epochs: int | None = None
    train_relation: str = PARENT
    restarts: int | None = None

    def __post_init__(self) -> None:
        for name, least in _MIN_COUNTS.items():
            value = getattr(self, name)
            is_valid = isinstance(value, int) and not isinstance(value, bool) and value >= least
            _require(is_valid or (value is None and name in _OPTIONAL), name, value, f"an integer of {least} or more")
        for name in _POSITIVE:
            value = getattr(self, name)
            _require(value > 0.0 and math.isfinite(value), name, value, "a finite number above 0")
        _require(self.temperature >= 1e-9, "temperature", self.temperature, "at least 1e-9")
        _require(self.tol >= 0.0, "tol", self.tol, "a number of 0 or more")
        refinement = self.refinement_epochs or 0
        _require(refinement < self.epochs, "refinement_epochs", refinement, f"below the {self.epochs} epochs")
        is_known = self.train_relation in RELATIONS
        _require(is_known, "train_relation", repr(self.train_relation), f"one of {', '.join(RELATIONS)}")

    @classmethod
    def of(cls, kind: str, defaults: dict[str, Any], options: dict[str, Any]) -> TrainingConfig:
        """The defaults of an embedder with some options replaced; an unknown option is an error."""
        names = [field.name for field in fields(cls)]
        for option in options:
            if option not in names:
                raise ParameterError(
                    f"the {kind} embedder has no option {option!r}",
                    hint=did_you_mean(option, names) or f"the options are {', '.join(names)}",
                )
        return cls(**{**defaults, **options})

    def should_stop(self, history: list[float]) -> bool:
        """Whether the loss no longer decreases (early stopping)."""
        if not self.patience or len(history) < 2 * self.patience:
            return False
        recent, before = history[-self.patience :], history[-2 * self.patience : -self.patience]
        return sum(recent) >= sum(before) * (1.0 - self.tol)


def default_restarts(n_pairs: int) -> int:
    """Training runs per embedding: as many as take a few seconds on a tree with this many pairs.

    >>> [default_restarts(n_pairs) for n_pairs in (200, 50_000, 600_000)]
    [8, 2, 1]
    """
    return 8 if n_pairs <= 5_000 else 4 if n_pairs <= 20_000 else 2 if n_pairs <= 100_000 else 1


def geometric_decay(first: float, last: float, fraction: float) -> float:
    """The value at a fraction of the way from the first to the last, along a geometric curve.

    >>> round(geometric_decay(1.0, 0.01, 0.5), 12)
    0.1
    """
    # As a sum of logarithms: the quotient of two extreme rates may overflow.
    return math.exp((1.0 - fraction) * math.log(first) + fraction * math.log(last))


def _require(condition: bool, name: str, value: object, requirement: str) -> None:
    if not condition:
        raise ParameterError(f"{name} is {value}", hint=f"{name} is {requirement}")


MAX_LOG_WEIGHT_RATIO = 8.0
"""Negatives with a weight below exp(-MAX_LOG_WEIGHT_RATIO) of the farthest positive are skipped."""
HARD_NEGATIVE_SHARE, REFINEMENT_SHARE = 5, 10
"""On the hyperboloid one epoch in 5 is spent on hard negatives, and one in 10 on refinement."""
REFINE_ONLY_SHARE = 3
"""A run that only refines a layout takes one epoch in 3."""
COARSE_RATES = (3.5, 0.15)
"""First and last learning rate of the coarse stage, as multiples of ``learning_rate``."""
HARD_NEGATIVE_RATES = (0.3, 0.5)
"""Hard negatives: the first as a multiple of ``learning_rate``, the last of ``final_learning_rate``."""
REFINEMENT_RATES = (0.1, 0.4)
"""Refinement: the same multiples."""
SHARED_NEGATIVES_FACTOR = 3
"""The shared sample has this many times ``n_negatives`` nodes."""
_SQUARED = 8.0
"""Temperature of squared distances over that of distances: their slopes are equal at distance 4."""
_MIN_RATE, _MAX_RATE = 1e-300, 1e6


@dataclass(frozen=True)
class TrainingProblem:
    """The inputs of a stage; the points, (n_nodes, n_coordinates), are updated in place."""

    manifold: Manifold
    points: Floats
    positives: PositivePairs
    config: TrainingConfig
    rng: np.random.Generator


@dataclass(frozen=True)
class TrainingStage:
    """``epoch`` takes the number of finished epochs of the stage and returns the summed loss."""

    epochs: int
    epoch: Callable[[int], float]


def training_stages(problem: TrainingProblem, refine_only: bool = False) -> list[TrainingStage]:
    """The stages of a problem; ``refine_only`` keeps close to the initial points."""
    config, is_hyperbolic = problem.config, problem.manifold.is_hyperbolic
    # Clipped, so that their multiples are finite and above 0.
    rate, final = (min(max(rate, _MIN_RATE), _MAX_RATE) for rate in (config.learning_rate, config.final_learning_rate))
    refinement_rates = (REFINEMENT_RATES[0] * rate, REFINEMENT_RATES[1] * final)
    if refine_only:
        return [_refinement_stage(problem, max(1, config.epochs // REFINE_ONLY_SHARE), refinement_rates)]
    refinement_epochs = config.refinement_epochs
    if refinement_epochs is None:
        refinement_epochs = config.epochs // REFINEMENT_SHARE if is_hyperbolic else 0
    run_epoch = _sgd_epoch(problem)

    def sgd_stage(epochs: int, first: float, last: float, use_hard_negatives: bool) -> TrainingStage:
        return TrainingStage(
            epochs,
            lambda done: run_epoch(geometric_decay(first, last, done / max(1, epochs - 1)), use_hard_negatives),
        )

    if is_hyperbolic:
        hard_epochs = min(config.epochs // HARD_NEGATIVE_SHARE, config.epochs - refinement_epochs - 1)
        coarse_epochs = config.epochs - hard_epochs - refinement_epochs
        stages = [
            sgd_stage(coarse_epochs, COARSE_RATES[0] * rate, COARSE_RATES[1] * rate, False),
            sgd_stage(hard_epochs, HARD_NEGATIVE_RATES[0] * rate, HARD_NEGATIVE_RATES[1] * final, True),
        ]
    else:
        stages = [sgd_stage(config.epochs - refinement_epochs, rate, final, True)]
    if refinement_epochs:
        stages.append(_refinement_stage(problem, refinement_epochs, refinement_rates))
    return stages


def _refinement_stage(problem: TrainingProblem, epochs: int, rates: tuple[float, float]) -> TrainingStage:
    from equipoise.domains.accounts.training.numba_refinement import HardNegativeRefinement

    refinement = HardNegativeRefinement(problem.manifold, problem.points, problem.positives, problem.rng, rates)
    return TrainingStage(epochs, lambda done: refinement.epoch(done, epochs))


def _sgd_epoch(problem: TrainingProblem) -> Callable[[float, bool], float]:
    """A function that runs one epoch at a learning rate, with or without hard negatives."""
    from equipoise.domains.accounts.training import numba_sgd

    config, positives, manifold = problem.config, problem.positives, problem.manifold
    hard_negatives = np.full((len(positives.lists), config.n_hard_negatives), numba_sgd.NO_NODE, dtype=np.int64)
    counts = (SHARED_NEGATIVES_FACTOR * config.n_negatives, config.n_branch_negatives, config.n_neighbor_negatives)
    positive_lists = positives.lists.starts, positives.lists.values
    up, related = positives.ancestors, positives.related
    related_lists = up.starts, up.values, related.starts, related.values
    learning_rate_scale = positives.learning_rate_scale
    temperature = config.temperature * (_SQUARED if manifold.is_hyperbolic else 1.0)

    def epoch(learning_rate: float, use_hard_negatives: bool) -> float:
        order = problem.rng.permutation(len(positives.chunks))
        return numba_sgd.sgd_epoch(
            problem.points, manifold.is_hyperbolic, manifold.max_norm, positives.chunks, order, counts,
            use_hard_negatives, hard_negatives, positive_lists, related_lists, learning_rate_scale,
            max(1.0 / temperature, _MIN_RATE), learning_rate, MAX_LOG_WEIGHT_RATIO,
            int(problem.rng.integers(1 << 32)),
        )  # fmt: skip

    return epoch


Progress = Callable[[int, int], None]
"""Takes the number of finished epochs and the maximum number of epochs."""


_compiled: set[tuple[bool, bool, int]] = set()
"""The stages whose kernels were compiled in this process: their first epoch takes seconds longer."""


def train(problem: TrainingProblem, progress: Progress | None = None, *, refine_only: bool = False) -> list[float]:
    """Move the points in place; returns the mean loss per pair of each epoch, over all stages."""
    history: list[float] = []
    if not len(problem.positives):
        return history
    require_extra("numba", extra="accounts")
    for number, stage in enumerate(training_stages(problem, refine_only)):
        stage_start = len(history)
        kernels = (problem.manifold.is_hyperbolic, refine_only, number)
        for done in range(stage.epochs):
            with nullcontext() if kernels in _compiled else activity("compiling"):
                history.append(stage.epoch(done) / len(problem.positives))
            _compiled.add(kernels)
            if progress is not None:
                progress(len(history), problem.config.epochs)
            if problem.config.should_stop(history[stage_start:]):
                break
    return history
