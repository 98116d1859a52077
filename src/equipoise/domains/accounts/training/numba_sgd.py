"""Steps of training compiled by numba, and an epoch of flat space: one piece at a time, and no batch.

The epochs of curved space, in ``crowd_compiled`` and ``settle_compiled``, take the same steps; a flag tells
the spaces apart. In curved space the separation of two points is the cosh of their distance, in flat space
its square; both order points as the distance does and need no logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from equipoise.domains.accounts.training.sampling import Family
    from equipoise.types import Floats, Ints

F = TypeVar("F", bound=Callable[..., Any])
# Without fastmath: with it, code just compiled and code from the cache differ in the last digit.
compiled: Callable[[F], F] = cast(Any, numba.njit(cache=True))

LONGEST_STEP = 0.5
NEGLIGIBLE = 1e-7
"""A pull below this share moves nobody."""


@compiled
def distance_proxy(u: Floats, points: Floats, y: int, curved: bool) -> float:
    """The cosh of the distance in curved space, its square in flat space."""
    # Two sums, so that one addition need not wait for the other.
    even, odd, last = 0.0, 0.0, len(u) - 1
    if curved:
        for i in range(1, last, 2):
            even += u[i] * points[y, i]
            odd += u[i + 1] * points[y, i + 1]
        if last % 2:
            even += u[last] * points[y, last]
        return max(u[0] * points[y, 0] - (even + odd), 1.0 + 1e-12)
    for i in range(0, last, 2):
        even += (u[i] - points[y, i]) ** 2
        odd += (u[i + 1] - points[y, i + 1]) ** 2
    if not last % 2:
        even += (u[last] - points[y, last]) ** 2
    return max(even + odd, 1e-24)


@compiled
def distance_from_proxy(apart: float, curved: bool) -> tuple[float, float]:
    """The distance of a separation, and one over the length of ``factor * u - y`` (its sinh when curved)."""
    if curved:
        sine = math.sqrt(apart * apart - 1.0)
        return math.log(apart + sine), 1.0 / sine
    distance = math.sqrt(apart)
    return distance, 1.0 / distance


@compiled
def project_to_ball(points: Floats, y: int, square: float, curved: bool, reach: float) -> None:
    """Bring a point back inside the reach (a length of space coordinates), and set its time coordinate."""
    if square > reach * reach:
        shrink = reach / math.sqrt(square)
        for i in range(1 if curved else 0, points.shape[1]):
            points[y, i] *= shrink
        square = reach * reach
    if curved:
        points[y, 0] = math.sqrt(1.0 + square)


@compiled
def move_along_geodesic(
    points: Floats, y: int, u: Floats, step: float, apart: float, inverse: float, curved: bool, reach: float
) -> None:
    """Move y by ``step`` along the geodesic away from u; a negative step leads towards it."""
    step = min(max(step, -LONGEST_STEP), LONGEST_STEP)
    if curved:
        square = step * step
        # Series: steps are short, and six digits of a step are more than it deserves.
        cosh = 1.0 + square * (0.5 + square * (1.0 / 24.0 + square / 720.0))
        sinh = step * (1.0 + square * (1.0 / 6.0 + square / 120.0))
        keep, share = cosh + sinh * apart * inverse, sinh * inverse
    else:
        keep, share = 1.0 + step * inverse, step * inverse
    square = 0.0
    for i in range(1 if curved else 0, len(u)):
        moved = keep * points[y, i] - share * u[i]
        points[y, i] = moved
        square += moved * moved
    project_to_ball(points, y, square, curved, reach)


@compiled
def riemannian_step(
    points: Floats, x: int, u: Floats, tangent: Floats, rate: float, curved: bool, reach: float
) -> None:
    """Move x, which was at u, against a summed gradient."""
    square = -tangent[0] * tangent[0] if curved else 0.0
    first = 1 if curved else 0
    for i in range(first, len(u)):
        square += tangent[i] * tangent[i]
    length = math.sqrt(max(square, 0.0))
    if length * rate < 1e-12:
        return
    step = min(length * rate, LONGEST_STEP)
    keep, share = 1.0, step / length
    if curved:
        keep, share = math.cosh(step), math.sinh(step) / length
    square = 0.0
    for i in range(first, len(u)):
        points[x, i] = keep * u[i] - share * tangent[i]
        square += points[x, i] * points[x, i]
    project_to_ball(points, x, square, curved, reach)


@compiled
def is_positive(targets: Ints, low: int, high: int, y: int) -> bool:
    """Whether y stands in a sorted run."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if targets[middle] < y:
            low = middle + 1
        else:
            high = middle
    return low < end and targets[low] == y


@compiled
def random_int(state: NDArray[np.uint64], low: int, high: int) -> int:
    """A whole number of at least ``low`` and below ``high``, by splitmix64."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return low + int(np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53 * (high - low))


@compiled
def in_row(values: Ints, x: int, y: int) -> bool:
    """Whether y stands in row x."""
    found = False
    for slot in range(values.shape[1]):
        found |= values[x, slot] == y
    return found


@compiled
def sample_candidate(
    state: NDArray[np.uint64],
    nth: int,
    x: int,
    counts: tuple[int, int, int],
    memory: Ints,
    pool: tuple[Ints, Ints, Ints],
    family: Family,
) -> int:
    """The nth new candidate of x: at large, kin, or remembered by the remembered; -1 for nobody."""
    members, low, high = pool
    if nth < counts[0]:
        return int(members[random_int(state, low[x], high[x])])
    if nth < counts[0] + counts[1]:
        up, ancestors, starts, kin = family
        begin, end = up[x], up[x + 1]
        if begin == end:
            return -1
        above = ancestors[random_int(state, begin, end)]
        return int(kin[random_int(state, starts[above], starts[above + 1])])
    via = memory[x, random_int(state, 0, memory.shape[1])]
    return -1 if via < 0 else int(memory[via, random_int(state, 0, memory.shape[1])])


@compiled
def collect_hard_negatives(
    state: NDArray[np.uint64],
    x: int,
    u: Floats,
    points: Floats,
    curved: bool,
    limit: float,
    counts: tuple[int, int, int],
    memory: Ints,
    pool: tuple[Ints, Ints, Ints],
    links: tuple[Ints, Ints],
    family: Family,
    shared: Ints,
    shared_apart: Floats,
    who: Ints,
    apart: Floats,
    kept: Floats,
    found: int,
) -> int:
    """Add to ``who`` and ``apart`` strangers within the limit, and keep the nearest of all in memory.

    ``found`` are there already, those of ``shared`` among them, which stand for draws at large; an empty one
    leaves all to be drawn. Returns how many there are then.
    """
    size, worst = memory.shape[1], 0
    for slot in range(size):
        y = memory[x, slot]
        kept[slot] = 1e300 if y < 0 else distance_proxy(u, points, y, curved)
        if kept[slot] > kept[worst]:
            worst = slot
        if y >= 0 and kept[slot] <= limit:
            who[found], apart[found] = y, kept[slot]
            found += 1
    for nth in range(counts[0] + counts[1] + counts[2]):
        is_shared = nth < len(shared)
        y = shared[nth] if is_shared else sample_candidate(state, nth, x, counts, memory, pool, family)
        if y < 0 or y == x:
            continue
        gap = shared_apart[nth] if is_shared else distance_proxy(u, points, y, curved)
        if gap >= kept[worst] and (is_shared or gap > limit):
            continue
        if is_positive(links[1], links[0][x], links[0][x + 1], y) or in_row(memory, x, y):
            continue
        if gap <= limit and not is_shared:
            who[found], apart[found] = y, gap
            found += 1
        if gap < kept[worst]:
            memory[x, worst], kept[worst] = y, gap
            for slot in range(size):
                if kept[slot] > kept[worst]:
                    worst = slot
    return found


@compiled
def softmax_gradient(near: Floats, far: Floats, sharpness: float, pull: Floats, push_by: Floats) -> float:
    """Fill in the derivatives of the loss by the distances, over the sharpness; returns the summed loss."""
    nearest = far.min()
    crowd = 0.0
    for j in range(len(far)):
        push_by[j] = math.exp(-sharpness * (far[j] - nearest))
        crowd += push_by[j]
    loss, shares = 0.0, 0.0
    for j in range(len(near)):
        weight = math.exp(min(-sharpness * (near[j] - nearest), 500.0))
        total = weight + crowd
        loss += math.log(total) + max(sharpness * (near[j] - nearest), -500.0)
        pull[j] = crowd / total
        shares += 1.0 / total
    for j in range(len(far)):
        push_by[j] *= shares
    return loss


@compiled
def apply_pair_gradients(
    points: Floats,
    others: Ints,
    u: Floats,
    sign: float,
    force: Floats,
    apart: Floats,
    inverse: Floats,
    tangent: Floats,
    rate: float,
    pace: Floats,
    curved: bool,
    reach: float,
) -> None:
    """Move others away from u, or towards it with a negative sign; adds up the gradient at u."""
    for j in range(len(others)):
        if force[j] < NEGLIGIBLE:
            continue
        y = others[j]
        factor = apart[j] if curved else 1.0
        share = -sign * force[j] * inverse[j]
        for i in range(len(u)):
            tangent[i] += share * (factor * u[i] - points[y, i])
        move_along_geodesic(points, y, u, sign * rate * pace[y] * force[j], apart[j], inverse[j], curved, reach)


@compiled
def epoch(
    points: Floats,
    reach: float,
    pieces: Ints,
    order: Ints,
    counts: tuple[int, int, int],
    memory: Ints,
    pool: tuple[Ints, Ints, Ints],
    links: tuple[Ints, Ints],
    family: Family,
    pace: Floats,
    sharpness: float,
    rate: float,
    margin: float,
    seed: int,
) -> float:
    """One walk over the pieces in flat space, in this order; moves the points and returns the summed loss."""
    state = np.full(1, seed, dtype=np.uint64)
    width, most = points.shape[1], int((pieces[:, 2] - pieces[:, 1]).max())
    crowd = memory.shape[1] + counts[0] + counts[1] + counts[2]
    u, tangent = np.empty(width), np.empty(width)
    a, d, inverse, weight = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    far_a, far_d, far_inverse = np.empty(crowd), np.empty(crowd), np.empty(crowd)
    far_weight, who, kept = np.empty(crowd), np.empty(crowd, np.int64), np.empty(memory.shape[1])
    nobody, loss = np.empty(0, np.int64), 0.0
    for piece in order:
        x, begin, end = pieces[piece]
        m = end - begin
        for c in range(width):
            u[c], tangent[c] = points[x, c], 0.0
        for j in range(m):
            a[j] = distance_proxy(u, points, links[1][begin + j], False)
            d[j], inverse[j] = distance_from_proxy(a[j], False)
        limit = min(d[:m].max() + margin, 1e150) ** 2
        k = collect_hard_negatives(
            state, x, u, points, False, limit, counts, memory, pool, links, family, nobody, far_a, who,
            far_a, kept, 0,
        )  # fmt: skip
        if k == 0:
            continue
        for j in range(k):
            far_d[j], far_inverse[j] = distance_from_proxy(far_a[j], False)
        loss += softmax_gradient(d[:m], far_d[:k], sharpness, weight, far_weight)
        near, far = links[1][begin:end], who[:k]
        apply_pair_gradients(points, near, u, -1.0, weight, a, inverse, tangent, rate, pace, False, reach)
        apply_pair_gradients(points, far, u, 1.0, far_weight, far_a, far_inverse, tangent, rate, pace, False, reach)
        riemannian_step(points, x, u, tangent, rate * pace[x], False, reach)
    return loss


# The descent in curved space, compiled by numba: many pieces in a row against strangers they share.

CHUNKS_PER_SHARED_SAMPLE = 64
"""Pieces in a row that share their strangers."""
REFERENCE_DISTANCE = 5.0
"""A distance: the rate is the step of a pair this far apart."""
_NEAREST = 1.0 + 1e-12


@compiled
def crowd_compiled_epoch(
    points: Floats,
    reach: float,
    pieces: Ints,
    order: Ints,
    counts: tuple[int, int, int],
    remembers: bool,
    memory: Ints,
    pool: tuple[Ints, Ints, Ints],
    links: tuple[Ints, Ints],
    family: Family,
    pace: Floats,
    sharpness: float,
    rate: float,
    margin: float,
    seed: int,
) -> float:
    """One walk over the pieces in this order; moves the points in place and returns the summed loss.

    Strangers whose weight is below ``exp(-margin)`` of the farthest relative's are passed over. With
    ``remembers`` each node also meets the nearest strangers it knows, and gets to know nearer ones.
    """
    state = np.full(1, seed, dtype=np.uint64)
    width, most = points.shape[1], int((pieces[:, 2] - pieces[:, 1]).max())
    crowd = memory.shape[1] + counts[0] + counts[1] + counts[2]
    u, tangent = np.empty(width), np.empty(width)
    a, d, inverse, weight = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    far_a, far_d, far_inverse, far_weight = np.empty(crowd), np.empty(crowd), np.empty(crowd), np.empty(crowd)
    who, place, kept = np.empty(crowd, np.int64), np.empty(counts[0], np.int64), np.empty(memory.shape[1])
    drawn_who, apart = np.empty(counts[0], np.int64), np.empty(counts[0])
    copies = np.empty((width, counts[0]))
    many, loss = 0, 0.0
    for nth in range(len(order)):
        x, begin, end = pieces[order[nth]]
        if nth % CHUNKS_PER_SHARED_SAMPLE == 0:
            many = sample_shared_negatives(state, points, pool[0], pool[1][x], pool[2][x], drawn_who, copies)
        m = end - begin
        u[:], tangent[:] = points[x], 0.0
        for j in range(m):
            a[j] = distance_proxy(u, points, links[1][begin + j], True)
            d[j], inverse[j] = distance_from_proxy(a[j], True)
        farthest = d[:m].max()
        limit = math.cosh(min(math.sqrt(farthest * farthest + margin / sharpness), 350.0))
        distance_proxies(u, copies, apart[:many])
        k = shared = filter_shared_negatives(
            x, drawn_who[:many], apart, limit, links, memory, remembers, who, far_a, place
        )
        if remembers:
            k = collect_hard_negatives(
                state, x, u, points, True, limit, (many, counts[1], counts[2]), memory, pool, links,
                family, drawn_who[:many], apart, who, far_a, kept, k,
            )  # fmt: skip
        if k == 0:
            continue
        for j in range(k):
            far_d[j], far_inverse[j] = distance_from_proxy(far_a[j], True)
        loss += softmax_gradient(d[:m] * d[:m], far_d[:k] * far_d[:k], sharpness, weight, far_weight)
        weight[:m] *= d[:m] / REFERENCE_DISTANCE
        far_weight[:k] *= far_d[:k] / REFERENCE_DISTANCE
        apply_pair_gradients(points, links[1][begin:end], u, -1.0, weight, a, inverse, tangent, rate, pace, True, reach)
        apply_pair_gradients(points, who[:k], u, 1.0, far_weight, far_a, far_inverse, tangent, rate, pace, True, reach)
        riemannian_step(points, x, u, tangent, rate * pace[x], True, reach)
        for j in range(shared):
            if far_weight[j] >= NEGLIGIBLE:
                copies[:, place[j]] = points[who[j]]
    return loss


@compiled
def sample_shared_negatives(
    state: NDArray[np.uint64],
    points: Floats,
    members: Ints,
    low: int,
    high: int,
    drawn_who: Ints,
    copies: Floats,
) -> int:
    """Draw strangers for the pieces to come and copy their coordinates, one coordinate a row.

    Returns how many there are: nobody stands there twice, since one who is pushed twice from the same place
    flies off, which in a small tree would happen all the time.
    """
    many = 0
    for _ in range(len(drawn_who)):
        y = members[random_int(state, low, high)]
        if (drawn_who[:many] == y).any():
            continue
        drawn_who[many] = y
        copies[:, many] = points[y]
        many += 1
    return many


@compiled
def filter_shared_negatives(
    x: int,
    drawn_who: Ints,
    drawn_apart: Floats,
    limit: float,
    links: tuple[Ints, Ints],
    memory: Ints,
    remembers: bool,
    who: Ints,
    apart: Floats,
    place: Ints,
) -> int:
    """Those of the drawn within the limit that x is to be told from, and that it will not remember anyway.

    Fills in who they are, how far apart, and their place among the drawn; returns their number.
    """
    found = 0
    for i in range(len(drawn_who)):
        y = drawn_who[i]
        if drawn_apart[i] > limit or y == x or (remembers and in_row(memory, x, y)):
            continue
        if not is_positive(links[1], links[0][x], links[0][x + 1], y):
            who[found], apart[found], place[found] = y, max(drawn_apart[i], _NEAREST), i
            found += 1
    return found


@compiled
def distance_proxies(u: Floats, copies: Floats, apart: Floats) -> None:
    """The cosh of the distance from u to each of the copied points."""
    for k in range(len(apart)):
        apart[k] = u[0] * copies[0, k]
    for i in range(1, len(u)):
        for k in range(len(apart)):
            apart[k] -= u[i] * copies[i, k]
