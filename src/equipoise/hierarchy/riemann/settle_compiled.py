"""The loops of settling, compiled by numba: who is near, the gradient of a batch, and Adam's step."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.hierarchy.riemann.compiled import bounded, compiled, distance_of, drawn, separation
from equipoise.types import Bools, Floats, Ints

Short = NDArray[np.int32]

LONGEST_STEP = 1.0
CHUNK = 64
"""Products are looked at this many at a time: most chunks hold nobody near."""
_FIRST, _SECOND = 0.9, 0.99


class State(NamedTuple):
    """What Adam keeps of every point, and the gradient of the batch at hand."""

    gradient: Floats
    momentum: Floats
    square: Floats
    last: Ints
    """The step that touched the point last; moments fade with the steps since."""
    times: Ints
    touched: Bools


def new_state(points: Floats) -> State:
    """Nothing moved yet."""
    count = len(points)
    zero = np.zeros(count, dtype=np.int64)
    return State(
        np.zeros_like(points), np.zeros_like(points), np.zeros(count), zero, zero.copy(), zero.astype(bool)
    )


@compiled
def limits(points: Floats, curved: bool, starts: Ints, targets: Ints, margin: float) -> Floats:
    """For each node the separation of its farthest relative, farther by the margin; below 0 for none."""
    found = np.full(len(points), -1.0)
    for x in range(len(points)):
        if starts[x] == starts[x + 1]:
            continue
        apart = 0.0
        for at in range(starts[x], starts[x + 1]):
            apart = max(apart, separation(points[x], points, targets[at], curved))
        found[x] = extended(apart, margin, curved)
    return found


@compiled
def extended(apart: float, margin: float, curved: bool) -> float:
    """The separation at which the squared distance is larger by the margin."""
    if not curved:
        return apart + margin
    distance, _ = distance_of(apart, True)
    return math.cosh(math.sqrt(distance * distance + margin))


@compiled
def near_ones(
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
        found = within(product[row], limit[x], known, here)
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
            thin(state, here[:found], apart[:found], who[end : end + kept], weight[end : end + kept])
        counts[x] = kept
        end += kept
    return who[:end].copy(), weight[:end].copy()


@compiled
def within(apart: Floats, limit: float, known: Bools, here: Short) -> int:
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
def thin(state: NDArray[np.uint64], here: Short, apart: Floats, who: Short, weight: Floats) -> None:
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
        pick = drawn(state, k, others)
        here[k], here[pick] = here[pick], here[k]
        who[kept + k], weight[kept + k] = here[k], others / room


@compiled
def gradient(
    points: Floats,
    curved: bool,
    pieces: Ints,
    targets: Ints,
    starts: Ints,
    who: Short,
    weight: Floats,
    margin: float,
    damping: float,
    state: State,
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
            apart = separation(points[x], points, targets[begin + j], curved)
            farthest = max(farthest, apart)
            near[j], near_slope[j] = squared(apart, curved)
            near[j] += margin
            ahead[j], depth[j] = 0.0, 0.0
        limit = extended(farthest, margin, curved)
        for at in range(starts[x], starts[x + 1]):
            apart = separation(points[x], points, who[at], curved)
            if apart < limit:
                far[k], far_slope[k] = squared(apart, curved)
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
                moving = pulled(
                    points, curved, x, targets[begin + j], ahead[j] * near_slope[j], state, touched, moving
                )
        for w in range(k):
            if force[w] > 0.0:
                share = -force[w] * stands_for[w] * far_slope[w]
                moving = pulled(points, curved, x, others[w], share, state, touched, moving)
    return touched[:moving], loss


@compiled
def squared(apart: float, curved: bool) -> tuple[float, float]:
    """The squared distance of a separation, and its derivative by the separation."""
    if not curved:
        return apart, 1.0
    distance, inverse = distance_of(apart, True)
    return distance * distance, 2.0 * distance * inverse


@compiled
def pulled(
    points: Floats, curved: bool, x: int, y: int, share: float, state: State, touched: Ints, moving: int
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
def step(
    points: Floats, curved: bool, reach: float, state: State, touched: Ints, steps: int, rate: float
) -> None:
    """Move what the batch touched, by Adam; its gradient is spent."""
    for y in touched:
        state.touched[y] = False
        slope, carried = state.gradient[y], state.momentum[y]
        flatten(points[y], slope, curved)
        flatten(points[y], carried, curved)
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
            go(points, y, carried, rate / (1.0 - _FIRST ** state.times[y]) / scale, curved, reach)


@compiled
def flatten(point: Floats, vector: Floats, curved: bool) -> None:
    """Keep of an ambient vector what is tangent at the point."""
    if not curved:
        return
    product = -point[0] * vector[0]
    for i in range(1, len(point)):
        product += point[i] * vector[i]
    for i in range(len(point)):
        vector[i] += product * point[i]


@compiled
def go(points: Floats, y: int, tangent: Floats, rate: float, curved: bool, reach: float) -> None:
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
    bounded(points, y, square, curved, reach)
