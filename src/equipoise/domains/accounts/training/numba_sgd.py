"""Stochastic gradient descent compiled by numba: the kernels of one step, and an epoch built from them.

``sgd_epoch`` minimises the softmax loss of ``objective``: with distances in Euclidean space, with squared distances on
the hyperboloid, where those alone scored lower (see ``embedders``). Negatives are a sample that 64 chunks of positives
share, and for each node its hard negatives (the nearest so far), hard negatives of those, and nodes related to a random
ancestor (branch negatives): a uniform sample rarely contains the few nodes that rank too high.

A distance proxy is the cosh of the distance on the hyperboloid and the squared distance in Euclidean space. Both
increase with the distance and need no logarithm. Gradients are multiplied by the temperature, so that the learning
rate is the longest step that one pair can cause.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints

    RelatedLists = tuple[Ints, Ints, Ints, Ints]
    """``starts`` and ``targets`` of the ancestors of each node, then of its ancestors and descendants."""

F = TypeVar("F", bound=Callable[..., Any])
# Without fastmath: with it, code just compiled and code from the cache differ in the last digit.
compiled: Callable[[F], F] = cast(Any, numba.njit(cache=True))

NO_NODE = -1
MAX_STEP = 0.5
MIN_GRADIENT_WEIGHT = 1e-7
"""Pairs with a smaller gradient weight are skipped."""


@compiled
def distance_proxy(node_point: Floats, points: Floats, other: int, is_hyperbolic: bool) -> float:
    """cosh of the distance on the hyperboloid, squared distance in Euclidean space."""
    # Two sums, so that additions do not depend on each other.
    even, odd, last = 0.0, 0.0, len(node_point) - 1
    if is_hyperbolic:
        for i in range(1, last, 2):
            even += node_point[i] * points[other, i]
            odd += node_point[i + 1] * points[other, i + 1]
        if last % 2:
            even += node_point[last] * points[other, last]
        return max(node_point[0] * points[other, 0] - (even + odd), 1.0 + 1e-12)
    for i in range(0, last, 2):
        even += (node_point[i] - points[other, i]) ** 2
        odd += (node_point[i + 1] - points[other, i + 1]) ** 2
    if not last % 2:
        even += (node_point[last] - points[other, last]) ** 2
    return max(even + odd, 1e-24)


@compiled
def distance_from_proxy(proxy: float, is_hyperbolic: bool) -> tuple[float, float]:
    """The distance of a proxy, and 1 / length of the ambient vector between the points (1 / sinh if hyperbolic)."""
    if is_hyperbolic:
        sinh = math.sqrt(proxy * proxy - 1.0)
        return math.log(proxy + sinh), 1.0 / sinh
    distance = math.sqrt(proxy)
    return distance, 1.0 / distance


@compiled
def proxy_of_distance(distance: float, is_hyperbolic: bool) -> float:
    """The inverse of ``distance_from_proxy``, bounded so that it is finite."""
    return math.cosh(min(distance, 350.0)) if is_hyperbolic else min(distance, 1e150) ** 2


@compiled
def project_to_ball(points: Floats, other: int, square: float, is_hyperbolic: bool, max_norm: float) -> None:
    """Clip the norm of the space coordinates of a point to ``max_norm``, and recompute its time coordinate."""
    if square > max_norm * max_norm:
        shrink = max_norm / math.sqrt(square)
        for i in range(1 if is_hyperbolic else 0, points.shape[1]):
            points[other, i] *= shrink
        square = max_norm * max_norm
    if is_hyperbolic:
        points[other, 0] = math.sqrt(1.0 + square)


@compiled
def move_along_geodesic(
    points: Floats,
    other: int,
    node_point: Floats,
    step: float,
    proxy: float,
    inverse_length: float,
    is_hyperbolic: bool,
    max_norm: float,
) -> None:
    """Move a point by ``step`` along the geodesic away from ``node_point``; a negative step moves it closer."""
    step = min(max(step, -MAX_STEP), MAX_STEP)
    if is_hyperbolic:
        square = step * step
        # Series: steps are at most 0.5, and six digits suffice.
        cosh = 1.0 + square * (0.5 + square * (1.0 / 24.0 + square / 720.0))
        sinh = step * (1.0 + square * (1.0 / 6.0 + square / 120.0))
        scale, share = cosh + sinh * proxy * inverse_length, sinh * inverse_length
    else:
        scale, share = 1.0 + step * inverse_length, step * inverse_length
    square = 0.0
    for i in range(1 if is_hyperbolic else 0, len(node_point)):
        coordinate = scale * points[other, i] - share * node_point[i]
        points[other, i] = coordinate
        square += coordinate * coordinate
    project_to_ball(points, other, square, is_hyperbolic, max_norm)


@compiled
def riemannian_step(
    points: Floats,
    node: int,
    node_point: Floats,
    tangent: Floats,
    learning_rate: float,
    is_hyperbolic: bool,
    max_norm: float,
) -> None:
    """Move a node, which was at ``node_point``, against its summed gradient."""
    square = -tangent[0] * tangent[0] if is_hyperbolic else 0.0
    first = 1 if is_hyperbolic else 0
    for i in range(first, len(node_point)):
        square += tangent[i] * tangent[i]
    length = math.sqrt(max(square, 0.0))
    if length * learning_rate < 1e-12:
        return
    step = min(length * learning_rate, MAX_STEP)
    scale, share = 1.0, step / length
    if is_hyperbolic:
        scale, share = math.cosh(step), math.sinh(step) / length
    square = 0.0
    for i in range(first, len(node_point)):
        points[node, i] = scale * node_point[i] - share * tangent[i]
        square += points[node, i] * points[node, i]
    project_to_ball(points, node, square, is_hyperbolic, max_norm)


@compiled
def is_positive(targets: Ints, low: int, high: int, other: int) -> bool:
    """Whether an id is in the sorted run ``targets[low:high]`` (binary search)."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if targets[middle] < other:
            low = middle + 1
        else:
            high = middle
    return low < end and targets[low] == other


@compiled
def random_int(rng_state: NDArray[np.uint64], low: int, high: int) -> int:
    """A random integer of at least ``low`` and below ``high``, by splitmix64."""
    rng_state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = rng_state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return low + int(np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53 * (high - low))


@compiled
def in_row(values: Ints, node: int, other: int) -> bool:
    """Whether an id is in a row."""
    is_member = False
    for slot in range(values.shape[1]):
        is_member |= values[node, slot] == other
    return is_member


@compiled
def sample_candidate(
    rng_state: NDArray[np.uint64], of_branch: bool, node: int, hard_negatives: Ints, related_lists: RelatedLists
) -> int:
    """A node related to a random ancestor, or a hard negative of a hard negative; -1 if there is none."""
    if of_branch:
        up, ancestors, starts, related = related_lists
        begin, end = up[node], up[node + 1]
        if begin == end:
            return NO_NODE
        above = ancestors[random_int(rng_state, begin, end)]
        return int(related[random_int(rng_state, starts[above], starts[above + 1])])
    via = hard_negatives[node, random_int(rng_state, 0, hard_negatives.shape[1])]
    return NO_NODE if via < 0 else int(hard_negatives[via, random_int(rng_state, 0, hard_negatives.shape[1])])


@compiled
def collect_hard_negatives(
    rng_state: NDArray[np.uint64],
    node: int,
    node_point: Floats,
    points: Floats,
    is_hyperbolic: bool,
    max_proxy: float,
    counts: tuple[int, int, int],
    hard_negatives: Ints,
    positive_lists: tuple[Ints, Ints],
    related_lists: RelatedLists,
    shared_ids: Ints,
    shared_proxies: Floats,
    negative_ids: Ints,
    negative_proxies: Floats,
    queue_proxies: Floats,
    n_found: int,
) -> int:
    """Append negatives with a proxy of at most ``max_proxy``, and update the hard negatives of the node.

    ``negative_ids`` and ``negative_proxies`` have ``n_found`` entries on entry, the shared negatives. Returns the new
    number of entries.
    """
    size, farthest_slot, n_shared = hard_negatives.shape[1], 0, len(shared_ids)
    for slot in range(size):
        other = hard_negatives[node, slot]
        queue_proxies[slot] = 1e300 if other < 0 else distance_proxy(node_point, points, other, is_hyperbolic)
        if queue_proxies[slot] > queue_proxies[farthest_slot]:
            farthest_slot = slot
        if other >= 0 and queue_proxies[slot] <= max_proxy:
            negative_ids[n_found], negative_proxies[n_found] = other, queue_proxies[slot]
            n_found += 1
    for nth in range(n_shared + counts[1] + counts[2]):
        is_shared = nth < n_shared
        other = (
            shared_ids[nth]
            if is_shared
            else sample_candidate(rng_state, nth < n_shared + counts[1], node, hard_negatives, related_lists)
        )
        if other < 0 or other == node:
            continue
        candidate_proxy = shared_proxies[nth] if is_shared else distance_proxy(node_point, points, other, is_hyperbolic)
        if candidate_proxy >= queue_proxies[farthest_slot] and (is_shared or candidate_proxy > max_proxy):
            continue
        if is_positive(positive_lists[1], positive_lists[0][node], positive_lists[0][node + 1], other) or in_row(
            hard_negatives, node, other
        ):
            continue
        if candidate_proxy <= max_proxy and not is_shared:
            negative_ids[n_found], negative_proxies[n_found] = other, candidate_proxy
            n_found += 1
        if candidate_proxy < queue_proxies[farthest_slot]:
            hard_negatives[node, farthest_slot], queue_proxies[farthest_slot] = other, candidate_proxy
            for slot in range(size):
                if queue_proxies[slot] > queue_proxies[farthest_slot]:
                    farthest_slot = slot
    return n_found


@compiled
def softmax_gradient(
    positive_distances: Floats,
    negative_distances: Floats,
    inverse_temperature: float,
    positive_gradient: Floats,
    negative_gradient: Floats,
) -> float:
    """Fill in the derivatives by the distances, times the temperature; returns the summed loss.

    See ``objective``. ``negative_gradient`` is without its minus sign.
    """
    nearest = negative_distances.min()
    negative_sum = 0.0
    for j in range(len(negative_distances)):
        negative_gradient[j] = math.exp(-inverse_temperature * (negative_distances[j] - nearest))
        negative_sum += negative_gradient[j]
    loss, shares = 0.0, 0.0
    for j in range(len(positive_distances)):
        weight = math.exp(min(-inverse_temperature * (positive_distances[j] - nearest), 500.0))
        total = weight + negative_sum
        loss += math.log(total) + max(inverse_temperature * (positive_distances[j] - nearest), -500.0)
        positive_gradient[j] = negative_sum / total
        shares += 1.0 / total
    for j in range(len(negative_distances)):
        negative_gradient[j] *= shares
    return loss


@compiled
def apply_pair_gradients(
    points: Floats,
    other_ids: Ints,
    node_point: Floats,
    sign: float,
    weights: Floats,
    proxies: Floats,
    inverse_lengths: Floats,
    tangent: Floats,
    learning_rate: float,
    learning_rate_scale: Floats,
    is_hyperbolic: bool,
    max_norm: float,
) -> None:
    """Move other points along their geodesics (sign 1: away from the node); adds their gradients to ``tangent``."""
    for j in range(len(other_ids)):
        if weights[j] < MIN_GRADIENT_WEIGHT:
            continue
        other = other_ids[j]
        factor = proxies[j] if is_hyperbolic else 1.0
        share = -sign * weights[j] * inverse_lengths[j]
        for i in range(len(node_point)):
            tangent[i] += share * (factor * node_point[i] - points[other, i])
        step = sign * learning_rate * learning_rate_scale[other] * weights[j]
        move_along_geodesic(points, other, node_point, step, proxies[j], inverse_lengths[j], is_hyperbolic, max_norm)


CHUNKS_PER_SHARED_SAMPLE = 64
"""Consecutive chunks that share one sample of negatives."""
REFERENCE_DISTANCE = 5.0
"""Distance of a pair whose step has the length of the learning rate (squared distances in the softmax)."""
_MIN_COSH = 1.0 + 1e-12


@compiled
def sgd_epoch(
    points: Floats,
    is_hyperbolic: bool,
    max_norm: float,
    chunks: Ints,
    order: Ints,
    counts: tuple[int, int, int],
    use_hard_negatives: bool,
    hard_negatives: Ints,
    positive_lists: tuple[Ints, Ints],
    related_lists: RelatedLists,
    learning_rate_scale: Floats,
    inverse_temperature: float,
    learning_rate: float,
    max_log_weight_ratio: float,
    seed: int,
) -> float:
    """One epoch over the chunks in this order; moves the points and returns the summed loss.

    ``counts`` are the numbers of shared, branch and neighbour negatives. On the hyperboloid distances enter the softmax
    squared, and gradients are multiplied by ``temperature / (2 * REFERENCE_DISTANCE)``. Negatives with a weight below
    ``exp(-max_log_weight_ratio)`` of the farthest positive are skipped. With ``use_hard_negatives`` the hard negatives
    of each node are used and updated too.
    """
    rng_state = np.full(1, seed, dtype=np.uint64)
    width, max_positives = points.shape[1], int((chunks[:, 2] - chunks[:, 1]).max())
    max_negatives = hard_negatives.shape[1] + counts[0] + counts[1] + counts[2]
    node_point, tangent = np.empty(width), np.empty(width)
    pos_proxies, pos_distances = np.empty(max_positives), np.empty(max_positives)
    pos_inverse, pos_weights = np.empty(max_positives), np.empty(max_positives)
    neg_proxies, neg_distances = np.empty(max_negatives), np.empty(max_negatives)
    neg_inverse, neg_weights = np.empty(max_negatives), np.empty(max_negatives)
    negative_ids, queue_proxies = np.empty(max_negatives, np.int64), np.empty(hard_negatives.shape[1])
    shared_ids, shared_index = np.empty(counts[0], np.int64), np.empty(counts[0], np.int64)
    shared_proxies, copies = np.empty(counts[0]), np.empty((width, counts[0]))
    n_shared, loss = 0, 0.0
    for nth in range(len(order)):
        node, begin, end = chunks[order[nth]]
        if nth % CHUNKS_PER_SHARED_SAMPLE == 0:
            n_shared = sample_shared_negatives(rng_state, points, shared_ids, copies)
        m = end - begin
        node_point[:], tangent[:] = points[node], 0.0
        for j in range(m):
            pos_proxies[j] = distance_proxy(node_point, points, positive_lists[1][begin + j], is_hyperbolic)
            pos_distances[j], pos_inverse[j] = distance_from_proxy(pos_proxies[j], is_hyperbolic)
        farthest, margin = pos_distances[:m].max(), max_log_weight_ratio / inverse_temperature
        limit = math.sqrt(farthest * farthest + margin) if is_hyperbolic else farthest + margin
        max_proxy = proxy_of_distance(limit, is_hyperbolic)
        distance_proxies(node_point, copies, is_hyperbolic, shared_proxies[:n_shared])
        k = n_used = filter_shared_negatives(
            node, shared_ids[:n_shared], shared_proxies, max_proxy, positive_lists, hard_negatives, use_hard_negatives,
            negative_ids, neg_proxies, shared_index, is_hyperbolic,
        )  # fmt: skip
        if use_hard_negatives:
            k = collect_hard_negatives(
                rng_state, node, node_point, points, is_hyperbolic, max_proxy, counts, hard_negatives, positive_lists,
                related_lists, shared_ids[:n_shared], shared_proxies, negative_ids, neg_proxies, queue_proxies, k,
            )  # fmt: skip
        if k == 0:
            continue
        for j in range(k):
            neg_distances[j], neg_inverse[j] = distance_from_proxy(neg_proxies[j], is_hyperbolic)
        power = 2.0 if is_hyperbolic else 1.0
        loss += softmax_gradient(
            pos_distances[:m] ** power, neg_distances[:k] ** power, inverse_temperature, pos_weights, neg_weights
        )
        if is_hyperbolic:
            pos_weights[:m] *= pos_distances[:m] / REFERENCE_DISTANCE
            neg_weights[:k] *= neg_distances[:k] / REFERENCE_DISTANCE
        apply_pair_gradients(
            points, positive_lists[1][begin:end], node_point, -1.0, pos_weights, pos_proxies, pos_inverse, tangent,
            learning_rate, learning_rate_scale, is_hyperbolic, max_norm,
        )  # fmt: skip
        apply_pair_gradients(
            points, negative_ids[:k], node_point, 1.0, neg_weights, neg_proxies, neg_inverse, tangent,
            learning_rate, learning_rate_scale, is_hyperbolic, max_norm,
        )  # fmt: skip
        riemannian_step(
            points, node, node_point, tangent, learning_rate * learning_rate_scale[node], is_hyperbolic, max_norm
        )
        for j in range(n_used):
            if neg_weights[j] >= MIN_GRADIENT_WEIGHT:
                copies[:, shared_index[j]] = points[negative_ids[j]]
    return loss


@compiled
def sample_shared_negatives(rng_state: NDArray[np.uint64], points: Floats, shared_ids: Ints, copies: Floats) -> int:
    """Sample negatives for the next chunks without replacement; copy their points: (n_coordinates, n_shared).

    Returns their number. A repeated negative would be moved twice from the same position, which diverges in small
    trees.
    """
    n_shared = 0
    for _ in range(len(shared_ids)):
        other = random_int(rng_state, 0, len(points))
        if (shared_ids[:n_shared] == other).any():
            continue
        shared_ids[n_shared] = other
        copies[:, n_shared] = points[other]
        n_shared += 1
    return n_shared


@compiled
def filter_shared_negatives(
    node: int,
    shared_ids: Ints,
    shared_proxies: Floats,
    max_proxy: float,
    positive_lists: tuple[Ints, Ints],
    hard_negatives: Ints,
    use_hard_negatives: bool,
    negative_ids: Ints,
    negative_proxies: Floats,
    shared_index: Ints,
    is_hyperbolic: bool,
) -> int:
    """Select the shared negatives of a node within ``max_proxy`` that are neither positives nor hard negatives.

    Fills in their ids, proxies and indices in the shared sample; returns their number.
    """
    n_found = 0
    for i in range(len(shared_ids)):
        other = shared_ids[i]
        if (
            shared_proxies[i] > max_proxy
            or other == node
            or (use_hard_negatives and in_row(hard_negatives, node, other))
        ):
            continue
        if not is_positive(positive_lists[1], positive_lists[0][node], positive_lists[0][node + 1], other):
            negative_ids[n_found], shared_index[n_found] = other, i
            negative_proxies[n_found] = max(shared_proxies[i], _MIN_COSH if is_hyperbolic else 1e-24)
            n_found += 1
    return n_found


@compiled
def distance_proxies(node_point: Floats, copies: Floats, is_hyperbolic: bool, proxies: Floats) -> None:
    """The distance proxies from the node to each of the copied points."""
    if not is_hyperbolic:
        proxies[:] = 0.0
        for i in range(len(node_point)):
            for k in range(len(proxies)):
                proxies[k] += (node_point[i] - copies[i, k]) ** 2
        return
    for k in range(len(proxies)):
        proxies[k] = node_point[0] * copies[0, k]
    for i in range(1, len(node_point)):
        for k in range(len(proxies)):
            proxies[k] -= node_point[i] * copies[i, k]
