"""Training of tree embeddings: the configuration, the stages of each back end, and the loop over epochs.

numpy, and numba in Euclidean space, run one stage of stochastic gradient descent. On the hyperboloid numba runs three
stages: a coarse stage with long steps and few negatives that many nodes share; a stage that adds the hard negatives
of each node; and refinement against exactly the negatives that rank too high. The first stage alone leaves positives
at ranks slightly above 1, the second alone keeps whole branches near their initial positions, and refinement needs
both. The losses are stated in ``objective``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
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

NegativeSampling = Literal["uniform", "degree", "depth"]
BackendName = Literal["auto", "numba", "numpy"]
_MIN_COUNTS = {
    "epochs": 1,
    "n_negatives": 1,
    "n_hard_negatives": 1,
    "n_branch_negatives": 0,
    "n_neighbor_negatives": 0,
    "burn_in_epochs": 0,
    "patience": 0,
}
_POSITIVE = ("learning_rate", "final_learning_rate", "temperature")
_ALIAS_HINTS = dict.fromkeys(
    ("negatives", "negative", "num_negatives"),
    "n_negatives=16 is the number of negatives, negative_sampling='degree' how they are sampled",
)


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """The configuration of one training run.

    On the hyperboloid numba trains in stages that share the epochs. There the sample is three times as large and shared
    by many nodes, distances are squared at eight times the temperature, learning rates are multiples of those given,
    and patience counts within a stage.

    Parameters
    ----------
    epochs
        Passes over all pairs of a node and a positive.
    learning_rate
        Longest step that one pair can cause at the start; it decays geometrically.
    final_learning_rate
        The learning rate at the end.
    burn_in_epochs
        Number of first epochs that run at a tenth of the learning rate.
    temperature
        Temperature of the softmax.
    n_negatives
        Negatives sampled from the pool per chunk of positives.
    n_branch_negatives
        Negatives from the ancestors and descendants of a random ancestor.
    n_neighbor_negatives
        Negatives from the hard negatives of hard negatives.
    n_hard_negatives
        Nearest negatives kept per node.
    negative_sampling
        How the pool is sampled: ``uniform``, ``degree`` (degree^0.75) or ``depth`` (nodes of equal depth).
    patience
        Training stops before ``epochs`` if the mean loss of the last ``patience`` epochs is not lower, by the fraction
        ``tol``, than that of as many epochs before; 0 disables early stopping.
    tol
        See ``patience``.
    backend
        ``auto`` is numba if it is installed, else numpy.
    refinement_epochs
        Number of last epochs that are spent on refinement; None is a tenth of all epochs on the hyperboloid and 0 in
        Euclidean space. numpy has no refinement.
    train_relation
        The positives of a node: ``parent``, ``ancestors``, or ``closure`` (ancestors and descendants).
    restarts
        Training runs from different starts, of which the one with the lowest loss is kept; None is ``default_restarts``
        of the number of pairs.
    """

    epochs: int = 300
    learning_rate: float = 1.0
    final_learning_rate: float = 0.01
    burn_in_epochs: int = 0
    temperature: float = 1.0 / 8.0
    n_negatives: int = 16
    n_branch_negatives: int = 8
    n_neighbor_negatives: int = 8
    n_hard_negatives: int = 16
    negative_sampling: NegativeSampling = "uniform"
    patience: int = 60
    tol: float = 1e-3
    backend: BackendName = "auto"
    refinement_epochs: int | None = None
    train_relation: str = PARENT
    restarts: int | None = None

    def __post_init__(self) -> None:
        for name, least in _MIN_COUNTS.items():
            value = getattr(self, name)
            is_valid = isinstance(value, int) and not isinstance(value, bool) and value >= least
            _require(is_valid, name, value, f"an integer of {least} or more")
        for name in _POSITIVE:
            value = getattr(self, name)
            _require(value > 0.0 and math.isfinite(value), name, value, "a finite number above 0")
        _require(self.temperature >= 1e-9, "temperature", self.temperature, "at least 1e-9")
        _require(self.tol >= 0.0, "tol", self.tol, "a number of 0 or more")
        refinement = self.refinement_epochs
        is_valid = refinement is None or (
            isinstance(refinement, int) and not isinstance(refinement, bool) and 0 <= refinement < self.epochs
        )
        _require(is_valid, "refinement_epochs", refinement, f"an integer of 0 or more, below the {self.epochs} epochs")
        restarts = self.restarts
        is_valid = restarts is None or (isinstance(restarts, int) and not isinstance(restarts, bool) and restarts >= 1)
        _require(is_valid, "restarts", restarts, "an integer of 1 or more")
        if self.burn_in_epochs and self.burn_in_epochs >= self.epochs:
            raise ParameterError(
                f"burn_in_epochs is {self.burn_in_epochs}, and there are only {self.epochs} epochs",
                hint="use more epochs, or fewer burn-in epochs",
            )
        for name, choices in (
            ("negative_sampling", get_args(NegativeSampling)),
            ("backend", get_args(BackendName)),
            ("train_relation", RELATIONS),
        ):
            value = getattr(self, name)
            _require(value in choices, name, repr(value), f"one of {', '.join(choices)}")

    @classmethod
    def of(cls, kind: str, defaults: dict[str, Any], options: dict[str, Any]) -> TrainingConfig:
        """The defaults of an embedder with some options replaced; an unknown option is an error."""
        names = [field.name for field in fields(cls)]
        for option in options:
            if option not in names:
                hint = _ALIAS_HINTS.get(option) or did_you_mean(option, names)
                raise ParameterError(
                    f"the {kind} embedder has no option {option!r}",
                    hint=hint or f"the options are {', '.join(names)}",
                )
        return cls(**{**defaults, **options})

    @property
    def inverse_temperature(self) -> float:
        """The factor of the distances in the softmax."""
        return 1.0 / self.temperature

    def learning_rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        learning_rate = geometric_decay(self.learning_rate, self.final_learning_rate, epoch / max(1, self.epochs - 1))
        # Steps are limited far below this; the squares of longer ones would overflow.
        return min(learning_rate / 10.0 if epoch < self.burn_in_epochs else learning_rate, 1e6)

    def should_stop(self, history: list[float]) -> bool:
        """Whether the loss no longer decreases (early stopping)."""
        if not self.patience or len(history) < self.burn_in_epochs + 2 * self.patience:
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
    pool: NegativePool
    config: TrainingConfig
    rng: np.random.Generator


@dataclass(frozen=True)
class TrainingStage:
    """``epoch`` takes the number of finished epochs of the stage and returns the summed loss."""

    epochs: int
    epoch: Callable[[int], float]


def training_stages(problem: TrainingProblem, backend: str, refine_only: bool = False) -> list[TrainingStage]:
    """The stages of a problem with a back end; ``refine_only`` keeps close to the initial points."""
    if backend == "numpy":
        config = problem.config
        if refine_only:
            config = replace(config, epochs=_refine_only_epochs(config), learning_rate=config.final_learning_rate)
        return [_numpy_stage(replace(problem, config=config))]
    require_extra("numba", extra="fast")
    if refine_only:
        return _refinement_stages(problem, _refine_only_epochs(problem.config))
    return _hyperbolic_stages(problem) if problem.manifold.is_hyperbolic else _euclidean_stages(problem)


def _refine_only_epochs(config: TrainingConfig) -> int:
    return max(1, config.epochs // REFINE_ONLY_SHARE)


def _numpy_stage(problem: TrainingProblem) -> TrainingStage:
    hard_negatives = empty_hard_negatives(len(problem.positives), problem.config.n_hard_negatives)
    learning_rate_scale = problem.positives.learning_rate_scale

    def epoch(done: int) -> float:
        rates = problem.config.learning_rate_at(done) * learning_rate_scale
        return objective.numpy_epoch(
            problem.manifold,
            problem.points,
            hard_negatives,
            problem.positives,
            problem.pool,
            problem.config,
            rates,
            problem.rng,
        )

    return TrainingStage(problem.config.epochs, epoch)


def _euclidean_stages(problem: TrainingProblem) -> list[TrainingStage]:
    from equipoise.domains.accounts.training import numba_sgd

    config, positives, manifold = problem.config, problem.positives, problem.manifold
    hard_negatives = empty_hard_negatives(len(positives), config.n_hard_negatives)
    counts = (config.n_negatives, config.n_branch_negatives, config.n_neighbor_negatives)
    pool, positive_lists = _kernel_arrays(problem)
    learning_rate_scale, margin = positives.learning_rate_scale, MAX_LOG_WEIGHT_RATIO / config.inverse_temperature

    def epoch(done: int) -> float:
        order = problem.rng.permutation(len(positives.chunks))
        return numba_sgd.sgd_epoch(
            problem.points, manifold.max_norm, positives.chunks, order, counts, hard_negatives, pool, positive_lists,
            positives.related_lists, learning_rate_scale, config.inverse_temperature, config.learning_rate_at(done),
            margin, _kernel_seed(problem),
        )  # fmt: skip

    refinement_epochs = config.refinement_epochs or 0
    return [TrainingStage(config.epochs - refinement_epochs, epoch), *_refinement_stages(problem, refinement_epochs)]


def _hyperbolic_stages(problem: TrainingProblem) -> list[TrainingStage]:
    config = problem.config
    refinement_epochs = (
        config.epochs // REFINEMENT_SHARE if config.refinement_epochs is None else config.refinement_epochs
    )
    hard_epochs = min(config.epochs // HARD_NEGATIVE_SHARE, config.epochs - refinement_epochs - 1)
    coarse_epochs = config.epochs - hard_epochs - refinement_epochs
    learning_rate, final_learning_rate = _clipped_learning_rates(config)
    run_epoch = _shared_negatives_epoch(problem)

    def coarse_epoch(done: int) -> float:
        current_rate = geometric_decay(
            COARSE_RATES[0] * learning_rate, COARSE_RATES[1] * learning_rate, done / max(1, coarse_epochs - 1)
        )
        return run_epoch(current_rate / 10.0 if done < config.burn_in_epochs else current_rate, False)

    def hard_epoch(done: int) -> float:
        current_rate = geometric_decay(
            HARD_NEGATIVE_RATES[0] * learning_rate,
            HARD_NEGATIVE_RATES[1] * final_learning_rate,
            done / max(1, hard_epochs - 1),
        )
        return run_epoch(current_rate / 10.0 if coarse_epochs + done < config.burn_in_epochs else current_rate, True)

    return [
        TrainingStage(coarse_epochs, coarse_epoch),
        TrainingStage(hard_epochs, hard_epoch),
        *_refinement_stages(problem, refinement_epochs),
    ]


def _refinement_stages(problem: TrainingProblem, epochs: int) -> list[TrainingStage]:
    """The refinement stage, if it has any epochs."""
    from equipoise.domains.accounts.training.numba_refinement import HardNegativeRefinement

    if not epochs:
        return []
    learning_rate, final_learning_rate = _clipped_learning_rates(problem.config)
    rates = (REFINEMENT_RATES[0] * learning_rate, REFINEMENT_RATES[1] * final_learning_rate)
    refinement = HardNegativeRefinement(problem.manifold, problem.points, problem.positives, problem.rng, rates)
    return [TrainingStage(epochs, lambda done: refinement.epoch(done, epochs))]


def _clipped_learning_rates(config: TrainingConfig) -> tuple[float, float]:
    """First and final learning rate, clipped so that their multiples are finite and above 0."""
    first, last = (min(max(rate, _MIN_RATE), _MAX_RATE) for rate in (config.learning_rate, config.final_learning_rate))
    return first, last


def _shared_negatives_epoch(problem: TrainingProblem) -> Callable[[float, bool], float]:
    """A function that runs an epoch with shared negatives at a learning rate, with or without hard negatives."""
    from equipoise.domains.accounts.training import numba_sgd

    config, positives = problem.config, problem.positives
    hard_negatives = empty_hard_negatives(len(positives), config.n_hard_negatives)
    counts = (SHARED_NEGATIVES_FACTOR * config.n_negatives, config.n_branch_negatives, config.n_neighbor_negatives)
    pool, positive_lists = _kernel_arrays(problem)
    learning_rate_scale = positives.learning_rate_scale
    inverse_temperature = max(config.inverse_temperature / _SQUARED, _MIN_RATE)

    def epoch(learning_rate: float, use_hard_negatives: bool) -> float:
        order = shuffled_chunks(problem, numba_sgd.CHUNKS_PER_SHARED_SAMPLE)
        return numba_sgd.shared_negatives_epoch(
            problem.points, problem.manifold.max_norm, positives.chunks, order, counts, use_hard_negatives,
            hard_negatives, pool, positive_lists, positives.related_lists, learning_rate_scale, inverse_temperature,
            learning_rate, MAX_LOG_WEIGHT_RATIO, _kernel_seed(problem),
        )  # fmt: skip

    return epoch


def shuffled_chunks(problem: TrainingProblem, run_length: int) -> Ints:
    """The chunks in random order; with sampling by depth, chunks of equal depth in each run."""
    chunks = problem.positives.chunks
    order = problem.rng.permutation(len(chunks))
    if problem.config.negative_sampling != "depth":
        return order
    order = order[np.argsort(problem.pool.low[chunks[order, 0]], kind="stable")]
    n_in_runs = len(order) // run_length * run_length
    runs = order[:n_in_runs].reshape(-1, run_length)
    return np.concatenate([problem.rng.permutation(runs).ravel(), order[n_in_runs:]])


def _kernel_arrays(problem: TrainingProblem) -> tuple[tuple[Ints, Ints, Ints], tuple[Ints, Ints]]:
    """Pool and positives as the compiled functions take them."""
    pool, positives = problem.pool, problem.positives
    return (pool.members, pool.low, pool.high), (positives.lists.starts, positives.lists.targets)


def _kernel_seed(problem: TrainingProblem) -> int:
    return int(problem.rng.integers(1 << 32))


Progress = Callable[[int, int], None]
"""Takes the number of finished epochs and the maximum number of epochs."""


def train(
    manifold: Manifold,
    points: Floats,
    positives: PositivePairs,
    pool: NegativePool,
    config: TrainingConfig,
    rng: np.random.Generator,
    progress: Progress | None = None,
    *,
    refine_only: bool = False,
) -> list[float]:
    """Move the points in place; returns the mean loss per pair of each epoch, over all stages."""
    history: list[float] = []
    if not len(positives.chunks):
        return history
    problem = TrainingProblem(manifold, points, positives, pool, config, rng)
    for stage in training_stages(problem, select_backend(config), refine_only):
        stage_start = len(history)
        for done in range(stage.epochs):
            history.append(stage.epoch(done) / len(positives.keys))
            if progress is not None:
                progress(len(history), config.epochs)
            if config.should_stop(history[stage_start:]):
                break
    return history


def select_backend(config: TrainingConfig) -> str:
    """The back end of a configuration on this machine."""
    if config.backend == "auto":
        return "numba" if find_spec("numba") else "numpy"
    return config.backend
