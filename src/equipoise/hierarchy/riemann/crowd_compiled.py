"""The descent in curved space, compiled by numba: many pieces in a row against strangers they share.

The loss of a node u and its relative v is ``-log(e(u,v) / (e(u,v) + sum of e(u,w)))`` over strangers w, with
``e(u,v) = exp(-sharpness d(u,v)^2)``. Squares, since a pair far apart then pulls harder than one at hand,
which orders the large before the small. Shared strangers lie side by side in memory, and the separation of a
node from all of them is a handful of vector instructions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from equipoise.hierarchy.riemann.compiled import (
    NEGLIGIBLE,
    act,
    compiled,
    distance_of,
    drawn,
    is_among,
    is_relative,
    meet,
    separation,
    walk,
    weigh,
)
from equipoise.hierarchy.riemann.relatives import Family
from equipoise.types import Floats, Ints

RUN = 64
"""Pieces in a row that share their strangers."""
TYPICAL = 5.0
"""A distance: the rate is the step of a pair this far apart."""
_NEAREST = 1.0 + 1e-12


@compiled
def epoch(
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
        if nth % RUN == 0:
            many = draw(state, points, pool[0], pool[1][x], pool[2][x], drawn_who, copies)
        m = end - begin
        u[:], tangent[:] = points[x], 0.0
        for j in range(m):
            a[j] = separation(u, points, links[1][begin + j], True)
            d[j], inverse[j] = distance_of(a[j], True)
        farthest = d[:m].max()
        limit = math.cosh(min(math.sqrt(farthest * farthest + margin / sharpness), 350.0))
        separations(u, copies, apart[:many])
        k = shared = strangers_of(
            x, drawn_who[:many], apart, limit, links, memory, remembers, who, far_a, place
        )
        if remembers:
            k = meet(
                state, x, u, points, True, limit, (many, counts[1], counts[2]), memory, pool, links,
                family, drawn_who[:many], apart, who, far_a, kept, k,
            )  # fmt: skip
        if k == 0:
            continue
        for j in range(k):
            far_d[j], far_inverse[j] = distance_of(far_a[j], True)
        loss += weigh(d[:m] * d[:m], far_d[:k] * far_d[:k], sharpness, weight, far_weight)
        weight[:m] *= d[:m] / TYPICAL
        far_weight[:k] *= far_d[:k] / TYPICAL
        act(points, links[1][begin:end], u, -1.0, weight, a, inverse, tangent, rate, pace, True, reach)
        act(points, who[:k], u, 1.0, far_weight, far_a, far_inverse, tangent, rate, pace, True, reach)
        walk(points, x, u, tangent, rate * pace[x], True, reach)
        for j in range(shared):
            if far_weight[j] >= NEGLIGIBLE:
                copies[:, place[j]] = points[who[j]]
    return loss


@compiled
def draw(
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
        y = members[drawn(state, low, high)]
        if (drawn_who[:many] == y).any():
            continue
        drawn_who[many] = y
        copies[:, many] = points[y]
        many += 1
    return many


@compiled
def strangers_of(
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
        if drawn_apart[i] > limit or y == x or (remembers and is_among(memory, x, y)):
            continue
        if not is_relative(links[1], links[0][x], links[0][x + 1], y):
            who[found], apart[found], place[found] = y, max(drawn_apart[i], _NEAREST), i
            found += 1
    return found


@compiled
def separations(u: Floats, copies: Floats, apart: Floats) -> None:
    """The cosh of the distance from u to each of the copied points."""
    for k in range(len(apart)):
        apart[k] = u[0] * copies[0, k]
    for i in range(1, len(u)):
        for k in range(len(apart)):
            apart[k] -= u[i] * copies[i, k]
