"""Training on a GPU: every node against all strangers at once, in the memory that is free.

On the host strangers are drawn, since a look at all of them takes too long. A GPU looks at all pairs of
80,000 nodes in a fraction of a second. Nodes come in random batches, since the noise of them finds better
places than the exact gradient of all. Riemannian Adam moves the points, with one second moment a point, since
coordinates have no meaning of their own here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.accounts.embedders import INNER, OUTER, check_fit_arguments
from equipoise.domains.accounts.training.initialization import cone_initialization
from equipoise.domains.accounts.training.manifolds import Hyperboloid
from equipoise.domains.accounts.training.sampling import PositivePairs
from equipoise.domains.accounts.training.trainer import geometric_decay
from equipoise.domains.accounts.trees.tree import PARENT, Tree
from equipoise.domains.accounts.vectors import NodeVectors
from equipoise.errors import ParameterError
from equipoise.geometry.distances import hyperboloid_to_ball
from equipoise.geometry.gpu_search import free_bytes, torch_device

if TYPE_CHECKING:
    from equipoise.domains.accounts.training.trainer import Progress
    from equipoise.io.dag import Links
    from equipoise.types import Floats

MEMORY_SHARE = 0.05
"""Of the free memory that one matrix of a block may take; about ten of them live at once."""

LONGEST_STEP = 1.0
_FIRST, _SECOND = 0.9, 0.99
_NEAREST = 1.0 + 1e-12
_LARGEST = 1e100
"""Of the entries of a step, whose square must be a number too."""


@dataclass(frozen=True)
class WholeSchedule:
    """How long and how fast; the rate is a length in the space and falls along a geometric curve.

    All strangers of a node together weigh as ``crowd`` of them would at first, and in full at last. With a
    small crowd the pairs that rank far down set the large shape; counted in full, near ranks fall into order,
    but near neighbours would hold everything where it began.
    """

    epochs: int = 250
    rate: float = 0.5
    last_rate: float = 0.003
    sharpness: float = 1.0
    batches: int = 128
    crowd: float = 5.0
    radius: float = 17.0

    def rate_at(self, epoch: int) -> float:
        """The rate of an epoch, counted from 0."""
        # Steps are cut far below this; the products of longer ones would overflow.
        return min(geometric_decay(self.rate, self.last_rate, self._share(epoch)), 1e6)

    def weight_at(self, epoch: int, nodes: int) -> float:
        """What each stranger weighs in an epoch, counted from 0."""
        return geometric_decay(min(self.crowd, nodes), nodes, self._share(epoch)) / nodes

    def _share(self, epoch: int) -> float:
        return epoch / max(1, self.epochs - 1)


def train_whole(
    start: Floats,
    relatives: Links,
    schedule: WholeSchedule,
    *,
    device: Any = "cuda",
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Floats, list[float]]:
    """The trained points of the hyperboloid (time first), and the mean loss of a pair in each epoch.

    ``relatives`` are the nodes that belong near each node.
    """
    where = torch_device(device)
    import torch

    points = torch.as_tensor(np.ascontiguousarray(start, dtype=np.float64), device=where)
    work = _FullSoftmax.of(relatives, len(start), where)
    adam = _RiemannianAdam(points)
    rng = np.random.default_rng(seed)
    history: list[float] = []
    for epoch in range(schedule.epochs):
        lost, weight = 0.0, schedule.weight_at(epoch, len(start))
        order = torch.as_tensor(rng.permutation(len(start)), device=where)
        for nodes in order.tensor_split(min(schedule.batches, len(start))):
            gradient, loss = work.gradient(adam.points, nodes, schedule.sharpness, weight)
            adam.step(gradient, schedule.rate_at(epoch), schedule.radius)
            lost += loss
        history.append(lost / max(1, len(work.targets)))
        if progress is not None:
            progress(epoch + 1, schedule.epochs)
    return adam.points.cpu().numpy(), history


class _RiemannianAdam:
    """Riemannian Adam: moments are carried along by projecting them where the points have gone."""

    def __init__(self, points: Any) -> None:
        self.points = points
        self.momentum = points * 0.0
        self.square = points[:, 0] * 0.0
        self.steps = 0

    def step(self, gradient: Any, rate: float, radius: float) -> None:
        """Move all points against the gradient."""
        self.steps += 1
        gradient = _tangent(self.points, gradient)
        self.square = _SECOND * self.square + (1 - _SECOND) * _dot(gradient, gradient).clamp_min(0)
        self.momentum = _FIRST * _tangent(self.points, self.momentum) + (1 - _FIRST) * gradient
        scale = (self.square / (1 - _SECOND**self.steps)).sqrt().clamp_min(1e-30)
        step = self.momentum / (1 - _FIRST**self.steps) / scale[:, None]
        self.points = _moved(self.points, -rate * step, radius)


@dataclass(frozen=True)
class _FullSoftmax:
    """The relatives of all nodes, one node after another, and how many nodes are looked at in one go."""

    targets: Any
    starts: Any
    counts: Any
    rows: int

    @classmethod
    def of(cls, relatives: Links, nodes: int, where: Any) -> _FullSoftmax:
        import torch

        counts = torch.as_tensor(np.asarray(relatives.counts), device=where)
        targets = torch.as_tensor(np.asarray(relatives.targets), device=where)
        rows = max(1, int(MEMORY_SHARE * free_bytes(where)) // (8 * nodes))
        return cls(targets, torch.cumsum(counts, 0) - counts, counts, rows)

    def gradient(self, points: Any, nodes: Any, sharpness: float, weight: float) -> tuple[Any, float]:
        """The derivative of the loss of these nodes, summed, by every point, and that sum.

        The loss of a node and its relative is ``-log(e(u,v) / (e(u,v) + weight * sum of e(u,w)))`` over all
        strangers w, with ``e(u,v) = exp(-sharpness d(u,v)^2)``: squares, since a pair far apart then pulls
        harder than one at hand.
        """
        import torch

        total, found = torch.zeros_like(points), torch.zeros((), dtype=points.dtype, device=points.device)
        mirrored = points.clone()
        mirrored[:, 1:] *= -1  # so that a plain product is minus Lorentz's
        for block in nodes.split(self.rows):
            row, near = self._relatives(block)
            own = torch.arange(len(block), device=points.device)
            product = (points[block] @ mirrored.T).clamp_min_(_NEAREST)
            sine = (product * product - 1).sqrt_()
            distance = (product + sine).log_()
            score = distance.square().mul_(-sharpness)
            wanted = score[row, near]
            score[row, near] = -torch.inf
            score[own, block] = -torch.inf
            crowd = torch.logsumexp(score, dim=1)
            all_weigh = crowd + math.log(weight)
            doubt = torch.sigmoid(all_weigh[row] - wanted)
            found += torch.nn.functional.softplus(all_weigh[row] - wanted).sum()
            doubts = torch.zeros(len(block), dtype=points.dtype, device=points.device)
            doubts.index_add_(0, row, doubt)
            pull = torch.exp(score - crowd[:, None]).mul_(-doubts[:, None])
            pull[row, near] = doubt
            pull.nan_to_num_(0.0)  # a node without strangers has nothing to be told from
            pull.mul_(distance).div_(sine)
            turn = product.mul_(pull)
            here = turn.sum(dim=1)[:, None] * points[block] - pull @ points
            total.index_add_(0, block, here)
            total += turn.sum(dim=0)[:, None] * points - pull.T @ points[block]
        return total.mul_(2 * sharpness), float(found)

    def _relatives(self, block: Any) -> tuple[Any, Any]:
        """Which row of the block has which relative."""
        import torch

        counts = self.counts[block]
        row = torch.repeat_interleave(torch.arange(len(block), device=block.device), counts)
        nth = torch.arange(len(row), device=block.device) - (torch.cumsum(counts, 0) - counts)[row]
        return row, self.targets[self.starts[block][row] + nth]


def _dot(x: Any, y: Any) -> Any:
    """Lorentz's inner product of rows."""
    return (x[:, 1:] * y[:, 1:]).sum(dim=1) - x[:, 0] * y[:, 0]


def _tangent(points: Any, vectors: Any) -> Any:
    """The part of ambient vectors that is tangent at the points."""
    return vectors + _dot(points, vectors)[:, None] * points


def _moved(points: Any, tangent: Any, radius: float) -> Any:
    """Along the geodesics, no farther than the longest step; time is computed anew, inside the radius."""
    import torch

    tangent = tangent / (tangent.abs().amax(dim=1, keepdim=True) / _LARGEST).clamp_min(1.0)
    length = _dot(tangent, tangent).clamp_min(0).sqrt()
    short = length.clamp_max(LONGEST_STEP)
    ratio = torch.where(length > 1e-12, torch.sinh(short) / length.clamp_min(1e-12), torch.ones_like(length))
    space = (torch.cosh(short)[:, None] * points + ratio[:, None] * tangent)[:, 1:]
    size = space.norm(dim=1)
    space = space * (np.sinh(radius) / size.clamp_min(1e-300)).clamp_max(1.0)[:, None]
    return torch.cat([(1 + (space * space).sum(dim=1)).sqrt()[:, None], space], dim=1)


# A tree trained on a device, every node against all strangers at once; hyperbolic spaces alone.

THERE = ("poincare", "lorentz")
"""Embedders that are trained on a device; all others stay on the processor."""
SETTLE = 5
"""One epoch of so many is spent on settling, where numba is installed."""
_TAKEN = ("epochs", "rate", "train_on")
_TYPED = {"aim": "aim (--negatives)", "burn_in": "burn_in (--burn-in)"}


def fitted_on(
    device: str,
    name: str,
    tree: Tree,
    dim: int,
    seed: int,
    *,
    options: Mapping[str, Any],
    progress: Callable[[int, int], None] | None = None,
) -> NodeVectors:
    """The points of a tree's nodes.

    ``options`` are ``epochs``, ``rate`` (the length of first steps) and ``train_on`` (who is drawn near).
    """
    check_fit_arguments(tree, dim)
    schedule, relation = whole_schedule(options), options.get("train_on", PARENT)
    relatives = PositivePairs.of(tree, relation)
    rng = np.random.default_rng(seed)
    start = cone_initialization(tree, dim, rng, inner=INNER, outer=OUTER)
    epochs = schedule.epochs
    last = epochs // SETTLE if find_spec("numba") and len(relatives.pieces) else 0
    schedule = replace(schedule, epochs=epochs - last)

    def told(done: int, _: int) -> None:
        if progress is not None:
            progress(done, epochs)

    points, history = train_whole(
        start, relatives.links, schedule, device=torch_device(device), seed=seed, progress=told
    )
    if last:
        history += _settled(points, relatives, last, rng, lambda done: told(epochs - last + done, epochs))
    settings = {"embedder": name, "dim": dim, "seed": seed, **asdict(schedule), "device": device}
    settings |= {"epochs_run": len(history), "epochs": epochs, "epochs_settled": last, "train_on": relation}
    vectors = hyperboloid_to_ball(points) if name == "poincare" else points
    return NodeVectors(tree.ids, tree.names, vectors, name, settings, tuple(history))


def _settled(
    points: Floats,
    relatives: PositivePairs,
    epochs: int,
    rng: np.random.Generator,
    told: Callable[[int], None],
) -> list[float]:
    """Let the points settle, in place and on the processor: few strangers are left to be seen by then."""
    from equipoise.domains.accounts.training.numba_refinement import HardNegativeRefinement

    settling = HardNegativeRefinement(Hyperboloid(), points, relatives, rng)
    history = []
    for done in range(epochs):
        history.append(settling.epoch(done, epochs) / len(relatives.keys))
        told(done + 1)
    return history


def whole_schedule(options: Mapping[str, Any]) -> WholeSchedule:
    """The schedule of these options; what only the processor knows is refused.

    >>> whole_schedule({"rate": 0.3, "epochs": 5}).epochs
    5
    """
    for option in options:
        if option not in _TAKEN:
            said = _TYPED.get(option, option)
            raise ParameterError(
                f"training on a device takes no {said}: it sees all strangers at every step",
                hint="leave it out, or leave --device out",
            )
    return WholeSchedule(**{name: value for name, value in options.items() if name != "train_on"})
