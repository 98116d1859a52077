"""The torch back end: full softmax over all negatives on the hyperboloid, for a GPU.

The other back ends sample negatives, since all pairs take too long on a processor. A GPU computes all pairs of
80,000 nodes in a fraction of a second. Nodes are processed in random batches: the gradient noise leads to better
optima than the full gradient. Riemannian Adam moves the points, with one second moment per point, since single
coordinates have no meaning on the manifold. The loss is the softmax loss of ``objective`` with power 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.accounts.embedders import MAX_START_RADIUS, MIN_START_RADIUS, check_fit_arguments
from equipoise.domains.accounts.training.layouts import cone_initialization
from equipoise.domains.accounts.training.objective import PositivePairs, hyperboloid
from equipoise.domains.accounts.training.trainer import geometric_decay
from equipoise.domains.accounts.trees.tree import PARENT, Tree
from equipoise.domains.accounts.vectors import NodeVectors
from equipoise.errors import ParameterError
from equipoise.geometry.distances import hyperboloid_to_ball
from equipoise.geometry.gpu_search import free_bytes, torch_device

if TYPE_CHECKING:
    from equipoise.domains.accounts.training.trainer import Progress
    from equipoise.io.dag import Rows
    from equipoise.types import Floats

MEMORY_SHARE = 0.05
"""Share of the free memory for one matrix of a block; about ten of them exist at once."""

MAX_STEP = 1.0
_BETA1, _BETA2 = 0.9, 0.99
_MIN_COSH = 1.0 + 1e-12
_MAX_ENTRY = 1e100
"""Largest entry of a step, so that its square is finite."""


@dataclass(frozen=True)
class FullSoftmaxConfig:
    """The configuration of full-softmax training; the learning rate is the length of a step.

    The weight of the negatives of a node sums to ``initial_negative_weight`` in the first epoch and rises to their
    number. A small weight lets pairs with high ranks determine the coarse layout; the full weight orders the near
    ranks, but would keep all points near their initial positions.
    """

    epochs: int = 250
    learning_rate: float = 0.5
    final_learning_rate: float = 0.003
    temperature: float = 1.0
    n_batches: int = 128
    initial_negative_weight: float = 5.0
    max_radius: float = 17.0

    def learning_rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        # Steps are limited far below this; the products of longer ones would overflow.
        return min(geometric_decay(self.learning_rate, self.final_learning_rate, self._share(epoch)), 1e6)

    def negative_weight_at(self, epoch: int, nodes: int) -> float:
        """The weight of each negative in an epoch, counted from 0."""
        return geometric_decay(min(self.initial_negative_weight, nodes), nodes, self._share(epoch)) / nodes

    def _share(self, epoch: int) -> float:
        return epoch / max(1, self.epochs - 1)


def train_full_softmax(
    start: Floats,
    positives: Rows,
    config: FullSoftmaxConfig,
    *,
    device: Any = "cuda",
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Floats, list[float]]:
    """The trained points of the hyperboloid (time first), and the mean loss per pair of each epoch.

    ``positives`` are the lists of positives of all nodes.
    """
    device = torch_device(device)
    import torch

    points = torch.as_tensor(np.ascontiguousarray(start, dtype=np.float64), device=device)
    objective = _FullSoftmax.of(positives, len(start), device)
    adam = _RiemannianAdam(points)
    rng = np.random.default_rng(seed)
    history: list[float] = []
    for epoch in range(config.epochs):
        epoch_loss, weight = 0.0, config.negative_weight_at(epoch, len(start))
        order = torch.as_tensor(rng.permutation(len(start)), device=device)
        for nodes in order.tensor_split(min(config.n_batches, len(start))):
            gradient, loss = objective.gradient(adam.points, nodes, 1.0 / config.temperature, weight)
            adam.step(gradient, config.learning_rate_at(epoch), config.max_radius)
            epoch_loss += loss
        history.append(epoch_loss / max(1, len(objective.targets)))
        if progress is not None:
            progress(epoch + 1, config.epochs)
    return adam.points.cpu().numpy(), history


class _RiemannianAdam:
    """Riemannian Adam: the first moments are projected to the tangent spaces of the moved points."""

    def __init__(self, points: Any) -> None:
        self.points = points
        self.momentum = points * 0.0
        self.second_moment = points[:, 0] * 0.0
        self.steps = 0

    def step(self, gradient: Any, learning_rate: float, max_radius: float) -> None:
        """Move all points against the gradient."""
        self.steps += 1
        gradient = _project_to_tangent(self.points, gradient)
        square = _lorentz_product(gradient, gradient).clamp_min(0)
        self.second_moment = _BETA2 * self.second_moment + (1 - _BETA2) * square
        self.momentum = _BETA1 * _project_to_tangent(self.points, self.momentum) + (1 - _BETA1) * gradient
        scale = (self.second_moment / (1 - _BETA2**self.steps)).sqrt().clamp_min(1e-30)
        step = self.momentum / (1 - _BETA1**self.steps) / scale[:, None]
        self.points = _exp_map(self.points, -learning_rate * step, max_radius)


@dataclass(frozen=True)
class _FullSoftmax:
    """The positives of all nodes as flat lists, and the number of nodes per block."""

    targets: Any
    starts: Any
    counts: Any
    rows: int

    @classmethod
    def of(cls, positives: Rows, nodes: int, device: Any) -> _FullSoftmax:
        import torch

        counts = torch.as_tensor(np.asarray(positives.counts), device=device)
        targets = torch.as_tensor(np.asarray(positives.values), device=device)
        rows = max(1, int(MEMORY_SHARE * free_bytes(device)) // (8 * nodes))
        return cls(targets, torch.cumsum(counts, 0) - counts, counts, rows)

    def gradient(self, points: Any, nodes: Any, inverse_temperature: float, weight: float) -> tuple[Any, float]:
        """The derivative of the summed loss of these nodes by every point, and that loss.

        The softmax loss of ``objective`` with power 2 over all negatives. With squared distances the gradient of a pair
        grows with its distance.
        """
        import torch

        total, loss_sum = torch.zeros_like(points), torch.zeros((), dtype=points.dtype, device=points.device)
        mirrored = points.clone()
        mirrored[:, 1:] *= -1  # so that the matrix product is the negative Lorentz product
        for block in nodes.split(self.rows):
            row, positive_ids = self._positives(block)
            row_index = torch.arange(len(block), device=points.device)
            product = (points[block] @ mirrored.T).clamp_min_(_MIN_COSH)
            sinh = (product * product - 1).sqrt_()
            distance = (product + sinh).log_()
            logits = distance.square().mul_(-inverse_temperature)
            positive_logits = logits[row, positive_ids]
            logits[row, positive_ids] = -torch.inf
            logits[row_index, block] = -torch.inf
            log_sum = torch.logsumexp(logits, dim=1)
            log_negatives = log_sum + math.log(weight)
            p_negative = torch.sigmoid(log_negatives[row] - positive_logits)
            loss_sum += torch.nn.functional.softplus(log_negatives[row] - positive_logits).sum()
            p_negative_sums = torch.zeros(len(block), dtype=points.dtype, device=points.device)
            p_negative_sums.index_add_(0, row, p_negative)
            weights = torch.exp(logits - log_sum[:, None]).mul_(-p_negative_sums[:, None])
            weights[row, positive_ids] = p_negative
            weights.nan_to_num_(0.0)  # a node without negatives has no gradient
            weights.mul_(distance).div_(sinh)
            scaled = product.mul_(weights)
            node_gradient = scaled.sum(dim=1)[:, None] * points[block] - weights @ points
            total.index_add_(0, block, node_gradient)
            total += scaled.sum(dim=0)[:, None] * points - weights.T @ points[block]
        return total.mul_(2 * inverse_temperature), float(loss_sum)

    def _positives(self, block: Any) -> tuple[Any, Any]:
        """Row in the block and id of every positive of the block."""
        import torch

        counts = self.counts[block]
        row = torch.repeat_interleave(torch.arange(len(block), device=block.device), counts)
        position = torch.arange(len(row), device=block.device) - (torch.cumsum(counts, 0) - counts)[row]
        return row, self.targets[self.starts[block][row] + position]


def _lorentz_product(x: Any, y: Any) -> Any:
    """Lorentz inner product of rows."""
    return (x[:, 1:] * y[:, 1:]).sum(dim=1) - x[:, 0] * y[:, 0]


def _project_to_tangent(points: Any, vectors: Any) -> Any:
    """The part of ambient vectors that is tangent at the points."""
    return vectors + _lorentz_product(points, vectors)[:, None] * points


def _exp_map(points: Any, tangent: Any, max_radius: float) -> Any:
    """Exponential map with steps of at most ``MAX_STEP``; the time coordinate is recomputed, within the radius."""
    import torch

    tangent = tangent / (tangent.abs().amax(dim=1, keepdim=True) / _MAX_ENTRY).clamp_min(1.0)
    length = _lorentz_product(tangent, tangent).clamp_min(0).sqrt()
    limited = length.clamp_max(MAX_STEP)
    ratio = torch.where(length > 1e-12, torch.sinh(limited) / length.clamp_min(1e-12), torch.ones_like(length))
    space = (torch.cosh(limited)[:, None] * points + ratio[:, None] * tangent)[:, 1:]
    size = space.norm(dim=1)
    space = space * (np.sinh(max_radius) / size.clamp_min(1e-300)).clamp_max(1.0)[:, None]
    return torch.cat([(1 + (space * space).sum(dim=1)).sqrt()[:, None], space], dim=1)


DEVICE_EMBEDDERS = ("poincare", "lorentz")
"""Embedders that are trained on a device; all others are trained on the processor."""
REFINEMENT_SHARE = 5
"""One epoch in 5 is spent on refinement."""
DEVICE_OPTIONS = ("epochs", "learning_rate", "train_relation")


def fit_on_device(
    device: str,
    name: str,
    tree: Tree,
    dim: int,
    seed: int,
    *,
    options: Mapping[str, Any],
    progress: Callable[[int, int], None] | None = None,
) -> NodeVectors:
    """The points of a tree's nodes, trained on a device.

    ``options`` are ``epochs``, ``learning_rate`` (length of the first steps) and ``train_relation`` (the positives).
    """
    check_fit_arguments(tree, dim)
    config, relation = device_config(options), options.get("train_relation", PARENT)
    positives = PositivePairs.of(tree, relation)
    rng = np.random.default_rng(seed)
    start = cone_initialization(tree, dim, rng, min_radius=MIN_START_RADIUS, max_radius=MAX_START_RADIUS)
    epochs = config.epochs
    refinement_epochs = epochs // REFINEMENT_SHARE if len(positives) else 0
    config = replace(config, epochs=epochs - refinement_epochs)

    def report(done: int, _: int) -> None:
        if progress is not None:
            progress(done, epochs)

    points, history = train_full_softmax(
        start, positives.lists, config, device=torch_device(device), seed=seed, progress=report
    )
    if refinement_epochs:
        history += _refine(
            points, positives, refinement_epochs, rng, lambda done: report(epochs - refinement_epochs + done, epochs)
        )
    settings = {"embedder": name, "dim": dim, "seed": seed, **asdict(config), "device": device}
    settings |= {
        "epochs_run": len(history),
        "epochs": epochs,
        "refinement_epochs": refinement_epochs,
        "train_relation": relation,
    }
    vectors = hyperboloid_to_ball(points) if name == "poincare" else points
    return NodeVectors(tree.ids, tree.names, vectors, name, settings, tuple(history))


def _refine(
    points: Floats,
    positives: PositivePairs,
    epochs: int,
    rng: np.random.Generator,
    report: Callable[[int], None],
) -> list[float]:
    """Refine the points in place on the processor: few violating negatives are left at this stage."""
    from equipoise.domains.accounts.training.numba_refinement import HardNegativeRefinement

    refinement = HardNegativeRefinement(hyperboloid(), points, positives, rng)
    history = []
    for done in range(epochs):
        history.append(refinement.epoch(done, epochs) / len(positives))
        report(done + 1)
    return history


def device_config(options: Mapping[str, Any]) -> FullSoftmaxConfig:
    """The configuration for these options; an option that full-softmax training does not have is an error.

    >>> device_config({"learning_rate": 0.3, "epochs": 5}).epochs
    5
    """
    for option in options:
        if option not in DEVICE_OPTIONS:
            raise ParameterError(
                f"training on a device has no option {option}: every step uses all negatives",
                hint="leave out this option, or --device",
            )
    return FullSoftmaxConfig(**{name: value for name, value in options.items() if name != "train_relation"})
