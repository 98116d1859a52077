"""The end of training: every node against exactly those strangers that rank before one of its relatives.

The descent meets strangers by chance and never sees most of them. Here a product of all points with all
points names, every few epochs, the strangers that each node has nearer than its farthest relative, and until
the next look only those push. The loss of a node u and its relative v is the sum over the strangers w of
``max(0, d(u,v)^2 + MARGIN - d(u,w)^2)``: a bound of the number that rank before v, which mean rank adds up.
The logarithm of the softmax stops caring how far down a pair has fallen; this does not.

Riemannian Adam moves the points, with one second moment a point. A point that a batch does not touch stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.hierarchy.riemann import settle_compiled as kernels
from equipoise.hierarchy.riemann.relatives import Relatives
from equipoise.hierarchy.riemann.schedule import falling
from equipoise.hierarchy.riemann.spaces import Space
from equipoise.types import Floats, Ints

MARGIN = 2.0
"""By how much the square of a stranger's distance should exceed a relative's."""
SLACK = 2.0
"""Strangers beyond the margin by this much are kept too, since points move until the next look."""
MOST = 1024
"""Strangers kept for a node: the nearest half of them, and of the others a sample that stands for all."""
LOOK = 8
"""Epochs between two looks at all pairs."""
RATES = (0.1, 0.004)
"""First and last length of steps in the space."""
PIECE = 64
"""Relatives of one node at a time; more of them would all see the same sample of strangers."""
CROWD = 5.0
"""A pair behind one in so many of all nodes weighs half: some nodes have parents too far apart to please."""
_ROWS = 64
_BATCHES, _PIECES = 128, 64


@dataclass(frozen=True, slots=True)
class Strangers:
    """Whom each node is to be told from: those of node i are ``who[starts[i]:starts[i + 1]]``.

    ``weight`` is how many strangers each of them stands for.
    """

    starts: Ints
    who: kernels.Short
    weight: Floats


class Settling:
    """One run: the points, which are moved in place, and the moments of Adam."""

    def __init__(
        self,
        space: Space,
        points: Floats,
        relatives: Relatives,
        rng: np.random.Generator,
        rates: tuple[float, float] = RATES,
    ) -> None:
        self.space, self.points, self.rng, self.rates = space, points, rng, rates
        self.links = relatives.links
        self.pieces = relatives.cut(PIECE)
        self.batches = int(np.clip(len(self.pieces) // _PIECES, 1, _BATCHES))
        self.state = kernels.new_state(points)
        self.steps = 0
        self.strangers = Strangers(np.zeros(len(points) + 1, np.int64), np.empty(0, np.int32), np.empty(0))

    def epoch(self, done: int, epochs: int) -> float:
        """One walk over all pieces, at the rate that this share of the way asks for; returns the loss."""
        if done % LOOK == 0:
            self.strangers = within_reach(
                self.space, self.points, self.links.starts, self.links.targets, self.rng
            )
        rate = falling(*self.rates, done / max(1, epochs - 1))
        order = self.rng.permutation(len(self.pieces))
        loss = 0.0
        for batch in np.array_split(order, self.batches):
            self.steps += 1
            near, far = self.links.targets, self.strangers
            touched, lost = kernels.gradient(
                self.points, self.space.curved, self.pieces[batch], near, far.starts, far.who, far.weight,
                MARGIN, CROWD / len(self.points), self.state,
            )  # fmt: skip
            kernels.step(
                self.points, self.space.curved, self.space.reach, self.state, touched, self.steps, rate
            )
            loss += lost
        return loss


def within_reach(
    space: Space, points: Floats, starts: Ints, targets: Ints, rng: np.random.Generator
) -> Strangers:
    """The strangers of each node that rank before its farthest relative, or would soon."""
    left, right = _factors(points, space.curved)
    # In the type of the products, since comparing two types converts every one of them.
    limits = kernels.limits(points, space.curved, starts, targets, MARGIN + SLACK).astype(left.dtype)
    found: list[tuple[kernels.Short, Floats]] = []
    counts = np.zeros(len(points), dtype=np.int64)
    known = np.zeros(len(points), dtype=np.bool_)
    product = np.empty((_ROWS, len(points)), dtype=left.dtype)
    for begin in range(0, len(points), _ROWS):
        rows = left[begin : begin + _ROWS]
        block = np.matmul(rows, right, out=product[: len(rows)])
        seed = int(rng.integers(1 << 32))
        found.append(kernels.near_ones(block, begin, limits, starts, targets, MOST, seed, known, counts))
    who, weight = (np.concatenate(each) for each in zip(*found, strict=True))
    return Strangers(np.concatenate([[0], np.cumsum(counts)]), who, weight)


def _factors(points: Floats, curved: bool) -> tuple[Floats, Floats]:
    """Two matrices whose product is the separation of all points: cosh of the distance, or its square.

    In float32 unless the points lie so far out that seven digits could not tell their distances.
    """
    if curved:
        left, right = points, points * np.where(np.arange(points.shape[1]) == 0, 1.0, -1.0)
    else:
        square = np.einsum("ij,ij->i", points, points)[:, None]
        one = np.ones_like(square)
        left = np.concatenate([square, one, -2.0 * points], axis=1)
        right = np.concatenate([one, square, points], axis=1)
    size = np.einsum("ij,ij->i", left, left).max(initial=0.0)
    kind = np.float32 if size < 1e6 else np.float64
    return left.astype(kind), np.ascontiguousarray(right.T.astype(kind))
