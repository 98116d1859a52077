"""Refinement: the last stage of training, compiled by numba.

Each node is trained against exactly those negatives that rank before one of its positives, or nearly do. They are
searched among all nodes every ``REFRESH_EVERY`` epochs. The loss is the hinge of ``objective``; Riemannian Adam with
one second moment per point moves the points. Distance proxies are those of ``numba_sgd``.
"""

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
from equipoise.domains.accounts.training.objective import chunk_rows
from equipoise.domains.accounts.training.trainer import geometric_decay

if TYPE_CHECKING:
    from equipoise.domains.accounts.training.objective import Manifold, PositivePairs
    from equipoise.types import Bools, Floats, Ints

Int32s = NDArray[np.int32]

MAX_STEP = 1.0
PRODUCTS_PER_SCAN = 64
"""Block size of the scan for small products: most blocks have none below the limit."""
_BETA1, _BETA2 = 0.9, 0.99


class AdamState(NamedTuple):
    """Moments of Riemannian Adam for every point, and the gradient of the current batch."""

    gradient: Floats
    momentum: Floats
    second_moment: Floats
    last_step: Ints
    """The step that updated the point last; moments decay with the steps since then."""
    n_updates: Ints
    touched: Bools


def new_adam_state(points: Floats) -> AdamState:
    """The state before the first step."""
    count = len(points)
    zero = np.zeros(count, dtype=np.int64)
    return AdamState(
        np.zeros_like(points), np.zeros_like(points), np.zeros(count), zero, zero.copy(), zero.astype(bool)
    )


@compiled
def search_limits(points: Floats, is_hyperbolic: bool, starts: Ints, targets: Ints, margin: float) -> Floats:
    """The proxy of the farthest positive of each node plus the margin, (n_nodes,); -1 without positives."""
    limits = np.full(len(points), -1.0)
    for node in range(len(points)):
        if starts[node] == starts[node + 1]:
            continue
        proxy = 0.0
        for at in range(starts[node], starts[node + 1]):
            proxy = max(proxy, distance_proxy(points[node], points, targets[at], is_hyperbolic))
        limits[node] = add_margin(proxy, margin, is_hyperbolic)
    return limits


@compiled
def add_margin(proxy: float, margin: float, is_hyperbolic: bool) -> float:
    """The proxy at which the squared distance is larger by the margin."""
    if not is_hyperbolic:
        return proxy + margin
    distance, _ = distance_from_proxy(proxy, True)
    return math.cosh(math.sqrt(distance * distance + margin))


@compiled
def violating_in_rows(
    product: Floats,
    first: int,
    limits: Floats,
    starts: Ints,
    targets: Ints,
    max_kept: int,
    seed: int,
    excluded: Bools,
    counts: Ints,
) -> tuple[Int32s, Floats]:
    """Negatives of the nodes of these rows within their limits, and the multiplicity of each, row after row.

    ``excluded`` is a work array and is all false on return; ``counts`` receives the number of negatives per node.
    """
    rng_state = np.full(1, seed, dtype=np.uint64)
    width = product.shape[1]
    candidates, proxies = np.empty(width, np.int32), np.empty(width, product.dtype)
    ids, multiplicity = np.empty(1024, np.int32), np.empty(1024)
    end = 0
    for row in range(product.shape[0]):
        node = first + row
        if limits[node] < 0.0:
            continue
        for at in range(starts[node], starts[node + 1]):
            excluded[targets[at]] = True
        excluded[node] = True
        n_found = below_limit(product[row], limits[node], excluded, candidates)
        for at in range(starts[node], starts[node + 1]):
            excluded[targets[at]] = False
        excluded[node] = False
        n_kept = min(n_found, max_kept)
        while end + n_kept > len(ids):
            ids, multiplicity = np.concatenate((ids, ids)), np.concatenate((multiplicity, multiplicity))
        if n_found <= max_kept:
            ids[end : end + n_kept] = candidates[:n_kept]
            multiplicity[end : end + n_kept] = 1.0
        else:
            for k in range(n_found):
                proxies[k] = product[row, candidates[k]]
            subsample(
                rng_state,
                candidates[:n_found],
                proxies[:n_found],
                ids[end : end + n_kept],
                multiplicity[end : end + n_kept],
            )
        counts[node] = n_kept
        end += n_kept
    return ids[:end].copy(), multiplicity[:end].copy()


@compiled
def below_limit(proxies: Floats, limit: float, excluded: Bools, candidates: Int32s) -> int:
    """Fill ``candidates`` with the ids at or below the limit that are not excluded; returns their number."""
    n_found = 0
    for begin in range(0, len(proxies), PRODUCTS_PER_SCAN):
        end = min(begin + PRODUCTS_PER_SCAN, len(proxies))
        below = np.int32(0)
        for other in range(begin, end):
            below += np.int32(proxies[other] <= limit)
        if below:
            for other in range(begin, end):
                if proxies[other] <= limit and not excluded[other]:
                    candidates[n_found] = other
                    n_found += 1
    return n_found


@compiled
def subsample(
    rng_state: NDArray[np.uint64], candidates: Int32s, proxies: Floats, ids: Int32s, multiplicity: Floats
) -> None:
    """Keep the nearest for half of the slots, and sample the rest from the others; overwrites ``candidates``."""
    half = len(ids) // 2
    edge = np.partition(proxies, half)[half]
    n_kept, n_others = 0, 0
    for k in range(len(candidates)):
        if proxies[k] < edge and n_kept < half:
            ids[n_kept], multiplicity[n_kept] = candidates[k], 1.0
            n_kept += 1
        else:
            candidates[n_others] = candidates[k]
            n_others += 1
    n_sampled = len(ids) - n_kept
    for k in range(n_sampled):
        index = random_int(rng_state, k, n_others)
        candidates[k], candidates[index] = candidates[index], candidates[k]
        ids[n_kept + k], multiplicity[n_kept + k] = candidates[k], n_others / n_sampled


@compiled
def hinge_gradient(
    points: Floats,
    is_hyperbolic: bool,
    chunks: Ints,
    targets: Ints,
    starts: Ints,
    ids: Int32s,
    multiplicity: Floats,
    margin: float,
    damping: float,
    state: AdamState,
) -> tuple[Ints, float]:
    """Accumulate the gradient of these chunks; returns the updated points and the summed hinge.

    See ``objective``. The gradient of a pair with a hinge h has the weight ``1 / (1 + damping h / margin)``.
    """
    max_positives, max_negatives = int((chunks[:, 2] - chunks[:, 1]).max()), int((starts[1:] - starts[:-1]).max())
    # Squared distances (of positives: plus the margin), their derivatives by the proxy, and gradient weights.
    positive_squares, positive_slopes = np.empty(max_positives), np.empty(max_positives)
    positive_weights, hinge = np.empty(max_positives), np.empty(max_positives)
    negative_squares, negative_slopes = np.empty(max_negatives), np.empty(max_negatives)
    negative_weights = np.empty(max_negatives)
    negative_ids, multiplicities = np.empty(max_negatives, np.int64), np.empty(max_negatives)
    touched, n_touched, loss = np.empty(len(points), np.int64), 0, 0.0
    for chunk in range(len(chunks)):
        node, begin, end = chunks[chunk]
        m, k, farthest = end - begin, 0, 0.0
        for j in range(m):
            proxy = distance_proxy(points[node], points, targets[begin + j], is_hyperbolic)
            farthest = max(farthest, proxy)
            positive_squares[j], positive_slopes[j] = squared_distance(proxy, is_hyperbolic)
            positive_squares[j] += margin
            positive_weights[j], hinge[j] = 0.0, 0.0
        max_proxy = add_margin(farthest, margin, is_hyperbolic)
        for at in range(starts[node], starts[node + 1]):
            proxy = distance_proxy(points[node], points, ids[at], is_hyperbolic)
            if proxy < max_proxy:
                negative_squares[k], negative_slopes[k] = squared_distance(proxy, is_hyperbolic)
                negative_ids[k], multiplicities[k], negative_weights[k] = ids[at], multiplicity[at], 0.0
                k += 1
        for w in range(k):
            for j in range(m):
                excess = max(positive_squares[j] - negative_squares[w], 0.0)
                hinge[j] += multiplicities[w] * excess
                positive_weights[j] += multiplicities[w] if excess > 0.0 else 0.0
        for j in range(m):
            loss += hinge[j]
            pair_weight = 1.0 / (1.0 + damping * hinge[j] / margin)
            positive_weights[j] *= pair_weight
            for w in range(k):
                negative_weights[w] += pair_weight if positive_squares[j] > negative_squares[w] else 0.0
        for j in range(m):
            if positive_weights[j] > 0.0:
                coefficient = positive_weights[j] * positive_slopes[j]
                n_touched = accumulate_gradient(
                    points, is_hyperbolic, node, targets[begin + j], coefficient, state, touched, n_touched
                )
        for w in range(k):
            if negative_weights[w] > 0.0:
                coefficient = -negative_weights[w] * multiplicities[w] * negative_slopes[w]
                n_touched = accumulate_gradient(
                    points, is_hyperbolic, node, negative_ids[w], coefficient, state, touched, n_touched
                )
    return touched[:n_touched], loss


@compiled
def squared_distance(proxy: float, is_hyperbolic: bool) -> tuple[float, float]:
    """The squared distance of a proxy, and its derivative by the proxy."""
    if not is_hyperbolic:
        return proxy, 1.0
    distance, inverse = distance_from_proxy(proxy, True)
    return distance * distance, 2.0 * distance * inverse


@compiled
def accumulate_gradient(
    points: Floats,
    is_hyperbolic: bool,
    node: int,
    other: int,
    coefficient: float,
    state: AdamState,
    touched: Ints,
    n_touched: int,
) -> int:
    """Add the gradient of ``coefficient`` times the proxy of two points; returns the number of updated points."""
    for moving in (node, other):
        if not state.touched[moving]:
            state.touched[moving] = True
            touched[n_touched] = moving
            n_touched += 1
    for i in range(points.shape[1]):
        if is_hyperbolic:
            state.gradient[node, i] -= coefficient * points[other, i]
            state.gradient[other, i] -= coefficient * points[node, i]
        else:
            difference = 2.0 * coefficient * (points[node, i] - points[other, i])
            state.gradient[node, i] += difference
            state.gradient[other, i] -= difference
    return n_touched


@compiled
def adam_step(
    points: Floats,
    is_hyperbolic: bool,
    max_norm: float,
    state: AdamState,
    touched: Ints,
    steps: int,
    learning_rate: float,
) -> None:
    """Move the points of the batch by Adam, and reset their gradients."""
    for node in touched:
        state.touched[node] = False
        gradient, momentum = state.gradient[node], state.momentum[node]
        project_to_tangent(points[node], gradient, is_hyperbolic)
        project_to_tangent(points[node], momentum, is_hyperbolic)
        elapsed = steps - state.last_step[node]
        state.last_step[node] = steps
        state.n_updates[node] += 1
        length, decay = squared_length(points[node], gradient, is_hyperbolic), _BETA1**elapsed
        for i in range(len(gradient)):
            momentum[i] = decay * momentum[i] + (1.0 - _BETA1) * gradient[i]
            gradient[i] = 0.0
        state.second_moment[node] = _BETA2**elapsed * state.second_moment[node] + (1.0 - _BETA2) * length
        scale = math.sqrt(state.second_moment[node] / (1.0 - _BETA2 ** state.n_updates[node]))
        if scale > 0.0:
            corrected_rate = learning_rate / (1.0 - _BETA1 ** state.n_updates[node]) / scale
            exp_map_step(points, node, momentum, corrected_rate, is_hyperbolic, max_norm)


@compiled
def project_to_tangent(point: Floats, vector: Floats, is_hyperbolic: bool) -> None:
    """Project an ambient vector to the tangent space of the point, in place."""
    if not is_hyperbolic:
        return
    product = -point[0] * vector[0]
    for i in range(1, len(point)):
        product += point[i] * vector[i]
    for i in range(len(point)):
        vector[i] += product * point[i]


@compiled
def squared_length(point: Floats, tangent: Floats, is_hyperbolic: bool) -> float:
    """The squared length of a tangent vector of a point.

    On the hyperboloid the difference of squares loses all digits far from the origin. There the space coordinates are
    split into the part along the point, of length ``radial``, which is shortened by the time coordinate, and the rest.
    """
    first = 1 if is_hyperbolic else 0
    radial, norm = 0.0, 0.0
    if is_hyperbolic:
        for i in range(first, len(point)):
            radial += point[i] * tangent[i]
            norm += point[i] * point[i]
        norm = math.sqrt(norm)
        radial = radial / norm if norm > 0.0 else 0.0
    square = (radial / point[0]) ** 2 if is_hyperbolic else 0.0
    for i in range(first, len(point)):
        across = tangent[i] - (radial * point[i] / norm if norm > 0.0 else 0.0)
        square += across * across
    return square


@compiled
def exp_map_step(
    points: Floats, node: int, tangent: Floats, learning_rate: float, is_hyperbolic: bool, max_norm: float
) -> None:
    """Move a point against a tangent vector; the step is limited to ``MAX_STEP``, the norm to ``max_norm``."""
    length = math.sqrt(squared_length(points[node], tangent, is_hyperbolic))
    if length * learning_rate < 1e-14:
        return
    distance = min(length * learning_rate, MAX_STEP)
    scale = math.cosh(distance) if is_hyperbolic else 1.0
    coefficient = (math.sinh(distance) if is_hyperbolic else distance) / length
    square = 0.0
    for i in range(1 if is_hyperbolic else 0, len(tangent)):
        points[node, i] = scale * points[node, i] - coefficient * tangent[i]
        square += points[node, i] * points[node, i]
    project_to_ball(points, node, square, is_hyperbolic, max_norm)


MARGIN = 2.0
"""The squared distance of a negative should exceed that of a positive by this much."""
REFRESH_SLACK = 2.0
"""Negatives beyond the margin by this much are kept too, since points move until the next search."""
MAX_NEGATIVES_PER_NODE = 1024
"""Negatives kept per node: the nearest half, and a weighted sample of the others."""
REFRESH_EVERY = 8
"""Epochs between two searches over all pairs."""
LEARNING_RATES = (0.1, 0.004)
"""First and last length of a step."""
POSITIVES_PER_CHUNK = 64
"""Positives of one node per chunk; they share one sample of negatives."""
DAMPING = 5.0
"""The damping is DAMPING / n_nodes: some nodes have parents that are too far apart to satisfy all pairs."""
_ROWS_PER_BLOCK = 64
_MAX_BATCHES, _MIN_CHUNKS_PER_BATCH = 128, 64


@dataclass(frozen=True, slots=True)
class ViolatingNegatives:
    """The negatives of node i are ``ids[starts[i]:starts[i + 1]]``.

    ``multiplicity`` is the number of negatives that each of them represents (1 unless subsampled).
    """

    starts: Ints
    ids: Int32s
    multiplicity: Floats


class HardNegativeRefinement:
    """Refinement of one set of points, in place, with the state of Adam."""

    def __init__(
        self,
        manifold: Manifold,
        points: Floats,
        positives: PositivePairs,
        rng: np.random.Generator,
        learning_rates: tuple[float, float] = LEARNING_RATES,
    ) -> None:
        self.manifold, self.points, self.rng, self.learning_rates = manifold, points, rng, learning_rates
        self.lists = positives.lists
        self.chunks = chunk_rows(positives.lists, POSITIVES_PER_CHUNK)
        self.batches = int(np.clip(len(self.chunks) // _MIN_CHUNKS_PER_BATCH, 1, _MAX_BATCHES))
        self.state = new_adam_state(points)
        self.steps = 0
        self.negatives = ViolatingNegatives(np.zeros(len(points) + 1, np.int64), np.empty(0, np.int32), np.empty(0))

    def epoch(self, done: int, epochs: int) -> float:
        """One epoch over all chunks at the learning rate of epoch ``done`` of ``epochs``; returns the loss."""
        if done % REFRESH_EVERY == 0:
            self.negatives = find_violating_negatives(
                self.manifold, self.points, self.lists.starts, self.lists.values, self.rng
            )
        learning_rate = geometric_decay(*self.learning_rates, done / max(1, epochs - 1))
        order = self.rng.permutation(len(self.chunks))
        loss = 0.0
        for batch in np.array_split(order, self.batches):
            self.steps += 1
            negatives = self.negatives
            touched, batch_loss = hinge_gradient(
                self.points, self.manifold.is_hyperbolic, self.chunks[batch], self.lists.values,
                negatives.starts, negatives.ids, negatives.multiplicity, MARGIN, DAMPING / len(self.points), self.state,
            )  # fmt: skip
            adam_step(
                self.points,
                self.manifold.is_hyperbolic,
                self.manifold.max_norm,
                self.state,
                touched,
                self.steps,
                learning_rate,
            )
            loss += batch_loss
        return loss


def find_violating_negatives(
    manifold: Manifold, points: Floats, starts: Ints, targets: Ints, rng: np.random.Generator
) -> ViolatingNegatives:
    """The negatives of each node that rank before its farthest positive, within the margin and the slack."""
    left, right = _factors(points, manifold.is_hyperbolic)
    # In the type of the products: a comparison of two types would convert every product.
    limits = search_limits(points, manifold.is_hyperbolic, starts, targets, MARGIN + REFRESH_SLACK).astype(left.dtype)
    blocks: list[tuple[Int32s, Floats]] = []
    counts = np.zeros(len(points), dtype=np.int64)
    excluded = np.zeros(len(points), dtype=np.bool_)
    product = np.empty((_ROWS_PER_BLOCK, len(points)), dtype=left.dtype)
    for begin in range(0, len(points), _ROWS_PER_BLOCK):
        rows = left[begin : begin + _ROWS_PER_BLOCK]
        block = np.matmul(rows, right, out=product[: len(rows)])
        seed = int(rng.integers(1 << 32))
        blocks.append(
            violating_in_rows(block, begin, limits, starts, targets, MAX_NEGATIVES_PER_NODE, seed, excluded, counts)
        )
    ids, multiplicity = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    return ViolatingNegatives(np.concatenate([[0], np.cumsum(counts)]), ids, multiplicity)


def _factors(points: Floats, is_hyperbolic: bool) -> tuple[Floats, Floats]:
    """Two matrices whose product is the matrix of distance proxies of all points.

    In float32 unless the points are so far from the origin that seven digits do not suffice.
    """
    if is_hyperbolic:
        left, right = points, points * np.where(np.arange(points.shape[1]) == 0, 1.0, -1.0)
    else:
        square = np.einsum("ij,ij->i", points, points)[:, None]
        one = np.ones_like(square)
        left = np.concatenate([square, one, -2.0 * points], axis=1)
        right = np.concatenate([one, square, points], axis=1)
    size = np.einsum("ij,ij->i", left, left).max(initial=0.0)
    dtype = np.float32 if size < 1e6 else np.float64
    return left.astype(dtype), np.ascontiguousarray(right.T.astype(dtype))
