"""The loops of settling, compiled by numba: who is near, the gradient of a batch, and Adam's step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.domains.accounts.training.numba_sgd import (
    compiled,
    distance_from_proxy,
    distance_proxy,
    project_to_ball,
    random_int,
)
from equipoise.domains.accounts.training.trainer import geometric_decay

if TYPE_CHECKING:
    from equipoise.domains.accounts.training.manifolds import Manifold
    from equipoise.domains.accounts.training.sampling import PositivePairs
    from equipoise.types import Bools, Floats, Ints

Short = NDArray[np.int32]

LONGEST_STEP = 1.0
CHUNK = 64
"""Products are looked at this many at a time: most chunks hold nobody near."""
_FIRST, _SECOND = 0.9, 0.99


class AdamState(NamedTuple):
    """What Adam keeps of every point, and the gradient of the batch at hand."""

    gradient: Floats
    momentum: Floats
    square: Floats
    last: Ints
    """The step that touched the point last; moments fade with the steps since."""
    times: Ints
    touched: Bools


def new_adam_state(points: Floats) -> AdamState:
    """Nothing moved yet."""
    count = len(points)
    zero = np.zeros(count, dtype=np.int64)
    return AdamState(
        np.zeros_like(points), np.zeros_like(points), np.zeros(count), zero, zero.copy(), zero.astype(bool)
    )


@compiled
def search_limits(points: Floats, curved: bool, starts: Ints, targets: Ints, margin: float) -> Floats:
    """For each node the separation of its farthest relative, farther by the margin; below 0 for none."""
    found = np.full(len(points), -1.0)
    for x in range(len(points)):
        if starts[x] == starts[x + 1]:
            continue
        apart = 0.0
        for at in range(starts[x], starts[x + 1]):
            apart = max(apart, distance_proxy(points[x], points, targets[at], curved))
        found[x] = add_margin(apart, margin, curved)
    return found


@compiled
def add_margin(apart: float, margin: float, curved: bool) -> float:
    """The separation at which the squared distance is larger by the margin."""
    if not curved:
        return apart + margin
    distance, _ = distance_from_proxy(apart, True)
    return math.cosh(math.sqrt(distance * distance + margin))


@compiled
def violating_in_rows(
    product: Floats,
    first: int,
    limit: Floats,
    starts: Ints,
    targets: Ints,
    most: int,
    seed: int,
    known: Bools,
    counts: Ints,
) -> tuple[Short, Floats]:
    """The strangers of the rows' nodes within their limits and how many each stands for, row after row.

    ``known`` is work space and left all false; ``counts`` takes how many each node has.
    """
    state = np.full(1, seed, dtype=np.uint64)
    width = product.shape[1]
    here, apart = np.empty(width, np.int32), np.empty(width, product.dtype)
    who, weight = np.empty(1024, np.int32), np.empty(1024)
    end = 0
    for row in range(product.shape[0]):
        x = first + row
        if limit[x] < 0.0:
            continue
        for at in range(starts[x], starts[x + 1]):
            known[targets[at]] = True
        known[x] = True
        found = below_limit(product[row], limit[x], known, here)
        for at in range(starts[x], starts[x + 1]):
            known[targets[at]] = False
        known[x] = False
        kept = min(found, most)
        while end + kept > len(who):
            who, weight = np.concatenate((who, who)), np.concatenate((weight, weight))
        if found <= most:
            who[end : end + kept] = here[:kept]
            weight[end : end + kept] = 1.0
        else:
            for k in range(found):
                apart[k] = product[row, here[k]]
            subsample(state, here[:found], apart[:found], who[end : end + kept], weight[end : end + kept])
        counts[x] = kept
        end += kept
    return who[:end].copy(), weight[:end].copy()


@compiled
def below_limit(apart: Floats, limit: float, known: Bools, here: Short) -> int:
    """Fill ``here`` with the places below the limit that are not known; returns their number."""
    found = 0
    for begin in range(0, len(apart), CHUNK):
        end = min(begin + CHUNK, len(apart))
        below = np.int32(0)
        for y in range(begin, end):
            below += np.int32(apart[y] <= limit)
        if below:
            for y in range(begin, end):
                if apart[y] <= limit and not known[y]:
                    here[found] = y
                    found += 1
    return found


@compiled
def subsample(state: NDArray[np.uint64], here: Short, apart: Floats, who: Short, weight: Floats) -> None:
    """Keep the nearest for half of the room, and draw from the others for the rest; spoils ``here``."""
    half = len(who) // 2
    edge = np.partition(apart, half)[half]
    kept, others = 0, 0
    for k in range(len(here)):
        if apart[k] < edge and kept < half:
            who[kept], weight[kept] = here[k], 1.0
            kept += 1
        else:
            here[others] = here[k]
            others += 1
    room = len(who) - kept
    for k in range(room):
        pick = random_int(state, k, others)
        here[k], here[pick] = here[pick], here[k]
        who[kept + k], weight[kept + k] = here[k], others / room


@compiled
def hinge_gradient(
    points: Floats,
    curved: bool,
    pieces: Ints,
    targets: Ints,
    starts: Ints,
    who: Short,
    weight: Floats,
    margin: float,
    damping: float,
    state: AdamState,
) -> tuple[Ints, float]:
    """Add up the gradient of these pieces; returns the points it touches and the loss.

    A pair behind n strangers counts as ``1 / (1 + damping n)`` of one.
    """
    most, crowd = int((pieces[:, 2] - pieces[:, 1]).max()), int((starts[1:] - starts[:-1]).max())
    near, near_slope, ahead, depth = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    far, far_slope, force = np.empty(crowd), np.empty(crowd), np.empty(crowd)
    others, stands_for = np.empty(crowd, np.int64), np.empty(crowd)
    touched, moving, loss = np.empty(len(points), np.int64), 0, 0.0
    for piece in range(len(pieces)):
        x, begin, end = pieces[piece]
        m, k, farthest = end - begin, 0, 0.0
        for j in range(m):
            apart = distance_proxy(points[x], points, targets[begin + j], curved)
            farthest = max(farthest, apart)
            near[j], near_slope[j] = squared_distance(apart, curved)
            near[j] += margin
            ahead[j], depth[j] = 0.0, 0.0
        limit = add_margin(farthest, margin, curved)
        for at in range(starts[x], starts[x + 1]):
            apart = distance_proxy(points[x], points, who[at], curved)
            if apart < limit:
                far[k], far_slope[k] = squared_distance(apart, curved)
                others[k], stands_for[k], force[k] = who[at], weight[at], 0.0
                k += 1
        for w in range(k):
            for j in range(m):
                excess = max(near[j] - far[w], 0.0)
                depth[j] += stands_for[w] * excess
                ahead[j] += stands_for[w] if excess > 0.0 else 0.0
        for j in range(m):
            loss += depth[j]
            depth[j] = 1.0 / (1.0 + damping * depth[j] / margin)
            ahead[j] *= depth[j]
            for w in range(k):
                force[w] += depth[j] if near[j] > far[w] else 0.0
        for j in range(m):
            if ahead[j] > 0.0:
                moving = accumulate_gradient(
                    points, curved, x, targets[begin + j], ahead[j] * near_slope[j], state, touched, moving
                )
        for w in range(k):
            if force[w] > 0.0:
                share = -force[w] * stands_for[w] * far_slope[w]
                moving = accumulate_gradient(points, curved, x, others[w], share, state, touched, moving)
    return touched[:moving], loss


@compiled
def squared_distance(apart: float, curved: bool) -> tuple[float, float]:
    """The squared distance of a separation, and its derivative by the separation."""
    if not curved:
        return apart, 1.0
    distance, inverse = distance_from_proxy(apart, True)
    return distance * distance, 2.0 * distance * inverse


@compiled
def accumulate_gradient(
    points: Floats, curved: bool, x: int, y: int, share: float, state: AdamState, touched: Ints, moving: int
) -> int:
    """Add the gradient of ``share`` times the separation of two points; returns how many points move."""
    for node in (x, y):
        if not state.touched[node]:
            state.touched[node] = True
            touched[moving] = node
            moving += 1
    for i in range(points.shape[1]):
        if curved:
            state.gradient[x, i] -= share * points[y, i]
            state.gradient[y, i] -= share * points[x, i]
        else:
            pull = 2.0 * share * (points[x, i] - points[y, i])
            state.gradient[x, i] += pull
            state.gradient[y, i] -= pull
    return moving


@compiled
def adam_step(
    points: Floats, curved: bool, reach: float, state: AdamState, touched: Ints, steps: int, rate: float
) -> None:
    """Move what the batch touched, by Adam; its gradient is spent."""
    for y in touched:
        state.touched[y] = False
        slope, carried = state.gradient[y], state.momentum[y]
        project_to_tangent(points[y], slope, curved)
        project_to_tangent(points[y], carried, curved)
        since = steps - state.last[y]
        state.last[y] = steps
        state.times[y] += 1
        length, faded = 0.0, _FIRST**since
        for i in range(len(slope)):
            length += -slope[i] * slope[i] if curved and i == 0 else slope[i] * slope[i]
            carried[i] = faded * carried[i] + (1.0 - _FIRST) * slope[i]
            slope[i] = 0.0
        state.square[y] = _SECOND**since * state.square[y] + (1.0 - _SECOND) * max(length, 0.0)
        scale = math.sqrt(state.square[y] / (1.0 - _SECOND ** state.times[y]))
        if scale > 0.0:
            exp_map_step(points, y, carried, rate / (1.0 - _FIRST ** state.times[y]) / scale, curved, reach)


@compiled
def project_to_tangent(point: Floats, vector: Floats, curved: bool) -> None:
    """Keep of an ambient vector what is tangent at the point."""
    if not curved:
        return
    product = -point[0] * vector[0]
    for i in range(1, len(point)):
        product += point[i] * vector[i]
    for i in range(len(point)):
        vector[i] += product * point[i]


@compiled
def exp_map_step(points: Floats, y: int, tangent: Floats, rate: float, curved: bool, reach: float) -> None:
    """Move a point against a tangent, no farther than the longest step and not out of its space."""
    square = -tangent[0] * tangent[0] if curved else tangent[0] * tangent[0]
    for i in range(1, len(tangent)):
        square += tangent[i] * tangent[i]
    length = math.sqrt(max(square, 0.0))
    if length * rate < 1e-14:
        return
    distance = min(length * rate, LONGEST_STEP)
    keep = math.cosh(distance) if curved else 1.0
    share = (math.sinh(distance) if curved else distance) / length
    square = 0.0
    for i in range(1 if curved else 0, len(tangent)):
        points[y, i] = keep * points[y, i] - share * tangent[i]
        square += points[y, i] * points[y, i]
    project_to_ball(points, y, square, curved, reach)


# The end of training: every node against exactly those strangers that rank before one of its relatives.

MARGIN = 2.0
"""By how much the square of a stranger's distance should exceed a relative's."""
REFRESH_SLACK = 2.0
"""Strangers beyond the margin by this much are kept too, since points move until the next look."""
MAX_NEGATIVES_PER_NODE = 1024
"""Strangers kept for a node: the nearest half of them, and of the others a sample that stands for all."""
REFRESH_EVERY = 8
"""Epochs between two looks at all pairs."""
RATES = (0.1, 0.004)
"""First and last length of steps in the space."""
POSITIVES_PER_CHUNK = 64
"""Relatives of one node at a time; more of them would all see the same sample of strangers."""
DAMPING = 5.0
"""A pair behind one in so many of all nodes weighs half: some nodes have parents too far apart to please."""
_ROWS = 64
_BATCHES, _PIECES = 128, 64


@dataclass(frozen=True, slots=True)
class ViolatingNegatives:
    """Whom each node is to be told from: those of node i are ``who[starts[i]:starts[i + 1]]``.

    ``weight`` is how many strangers each of them stands for.
    """

    starts: Ints
    who: Short
    weight: Floats


class HardNegativeRefinement:
    """One run: the points, which are moved in place, and the moments of Adam."""

    def __init__(
        self,
        space: Manifold,
        points: Floats,
        relatives: PositivePairs,
        rng: np.random.Generator,
        rates: tuple[float, float] = RATES,
    ) -> None:
        self.space, self.points, self.rng, self.rates = space, points, rng, rates
        self.links = relatives.links
        self.pieces = relatives.cut(POSITIVES_PER_CHUNK)
        self.batches = int(np.clip(len(self.pieces) // _PIECES, 1, _BATCHES))
        self.state = new_adam_state(points)
        self.steps = 0
        self.strangers = ViolatingNegatives(np.zeros(len(points) + 1, np.int64), np.empty(0, np.int32), np.empty(0))

    def epoch(self, done: int, epochs: int) -> float:
        """One walk over all pieces, at the rate that this share of the way asks for; returns the loss."""
        if done % REFRESH_EVERY == 0:
            self.strangers = find_violating_negatives(
                self.space, self.points, self.links.starts, self.links.targets, self.rng
            )
        rate = geometric_decay(*self.rates, done / max(1, epochs - 1))
        order = self.rng.permutation(len(self.pieces))
        loss = 0.0
        for batch in np.array_split(order, self.batches):
            self.steps += 1
            near, far = self.links.targets, self.strangers
            touched, lost = hinge_gradient(
                self.points, self.space.curved, self.pieces[batch], near, far.starts, far.who, far.weight,
                MARGIN, DAMPING / len(self.points), self.state,
            )  # fmt: skip
            adam_step(self.points, self.space.curved, self.space.reach, self.state, touched, self.steps, rate)
            loss += lost
        return loss


def find_violating_negatives(
    space: Manifold, points: Floats, starts: Ints, targets: Ints, rng: np.random.Generator
) -> ViolatingNegatives:
    """The strangers of each node that rank before its farthest relative, or would soon."""
    left, right = _factors(points, space.curved)
    # In the type of the products, since comparing two types converts every one of them.
    limits = search_limits(points, space.curved, starts, targets, MARGIN + REFRESH_SLACK).astype(left.dtype)
    found: list[tuple[Short, Floats]] = []
    counts = np.zeros(len(points), dtype=np.int64)
    known = np.zeros(len(points), dtype=np.bool_)
    product = np.empty((_ROWS, len(points)), dtype=left.dtype)
    for begin in range(0, len(points), _ROWS):
        rows = left[begin : begin + _ROWS]
        block = np.matmul(rows, right, out=product[: len(rows)])
        seed = int(rng.integers(1 << 32))
        found.append(
            violating_in_rows(block, begin, limits, starts, targets, MAX_NEGATIVES_PER_NODE, seed, known, counts)
        )
    who, weight = (np.concatenate(each) for each in zip(*found, strict=True))
    return ViolatingNegatives(np.concatenate([[0], np.cumsum(counts)]), who, weight)


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
