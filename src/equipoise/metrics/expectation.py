"""Expectations over random orders of equal scores, in closed form (McSherry and Najork, ECIR 2008).

A tie group begins after ``above`` candidates, has ``size`` members of which ``relevant`` are
relevant, and only ranks up to ``limit`` count.
"""

from __future__ import annotations

import numpy as np

from equipoise.types import Floats, Ints

_BLOCK = 1 << 20
_TABLE = 65_536


def first_hit_within(above: Ints, size: Ints, relevant: Ints, limit: Ints) -> Floats:
    """The chance that at least one relevant member stands at a rank up to ``limit``.

    One minus C(size - seen, relevant) / C(size, relevant), the product taken over the shorter side.
    """
    rows, inverse = _distinct(above, size, relevant, limit)
    above, size, relevant, limit = rows.T
    seen = np.clip(limit - above, 0, size)
    shorter, longer = np.minimum(seen, relevant), np.maximum(seen, relevant)
    miss = np.ones(len(rows))
    for step in range(int(shorter.max(initial=0))):
        factor = np.maximum(size - longer - step, 0) / np.maximum(size - step, 1)
        miss *= np.where(step < shorter, factor, 1.0)
    return (1.0 - miss)[inverse]


def reciprocal_of_first(above: Ints, size: Ints, relevant: Ints, limit: Ints) -> Floats:
    """The expected reciprocal rank of the best relevant member, 0 beyond ``limit``.

    The chance that the first ``j`` places hold none falls by (size - relevant - j) / (size - j).
    """
    rows, inverse = _distinct(above, size, relevant, limit)
    expected = np.zeros(len(rows))
    # The longest sums first, in blocks: padding a block to its longest row then costs little.
    length = np.clip(np.minimum(rows[:, 3] - rows[:, 0], rows[:, 1] - rows[:, 2] + 1), 0, None)
    order = np.argsort(-length, kind="stable")
    start = 0
    while start < len(order) and length[order[start]] > 0:
        longest = int(length[order[start]])
        chosen = order[start : start + max(1, _BLOCK // longest)]
        above, size, relevant = (rows[chosen, column][:, None] for column in range(3))
        place = np.arange(longest)[None, :]
        stay = np.maximum(size - relevant - place, 0) / np.maximum(size - place, 1)
        none_before = np.ones((len(chosen), longest))
        np.cumprod(stay[:, :-1], axis=1, out=none_before[:, 1:])
        chance = none_before * (1.0 - stay)
        chance[place >= length[chosen][:, None]] = 0.0
        expected[chosen] = (chance / (above + place + 1.0)).sum(axis=1)
        start += len(chosen)
    return expected[inverse]


def mean_of_table(table: Floats, above: Ints, size: Ints, limit: Ints) -> Floats:
    """The mean over a member's possible ranks of a value tabled by rank, 0 beyond ``limit``.

    ``table[r]`` is the sum of the values of the ranks 1 .. r.
    """
    low = np.minimum(above, limit)
    high = np.minimum(above + size, limit)
    return (table[high] - table[low]) / size


def precision_at_member(above: Ints, size: Ints, before: Ints, relevant: Ints, limit: Ints) -> Floats:
    """The expected precision at a relevant member's own rank, 0 beyond ``limit``.

    At place j of the group it is (before + 1 + (j - 1)(relevant - 1)/(size - 1)) / (above + j), where
    ``before`` counts the relevant items of earlier groups; the sum over j is one of harmonic numbers.
    """
    seen = np.clip(limit - above, 0, size)
    harmonic = harmonic_numbers(int((above + seen).max(initial=0)))
    span = harmonic[above + seen] - harmonic[above]
    slope = (relevant - 1) / np.maximum(size - 1, 1)
    return ((before + 1.0) * span + slope * (seen - (above + 1.0) * span)) / size


def harmonic_numbers(last: int) -> Floats:
    """H_0 .. H_last."""
    return np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, last + 1))])


def _distinct(*columns: Ints) -> tuple[Ints, Ints]:
    """The distinct rows, and for each row which one it is: few groups differ in large data."""
    rows = np.stack(np.broadcast_arrays(*columns), axis=1)
    if len(rows) == 0:
        return rows, np.zeros(0, dtype=np.int64)
    low = rows.min(axis=0)
    width = rows.max(axis=0) - low + 1
    possible = np.prod(width.astype(np.float64))
    if possible < 2.0**62:
        # One number a row sorts far faster than the rows themselves.
        scale = np.append(np.cumprod(width[:0:-1])[::-1], 1)
        key = (rows - low) @ scale
        if possible <= _TABLE + 4 * len(rows):
            # And where few numbers are possible, a table of those that occur needs no sorting.
            occurs = np.zeros(int(possible), dtype=np.bool_)
            occurs[key] = True
            found = np.stack(np.unravel_index(np.flatnonzero(occurs), tuple(width.tolist())), axis=1) + low
            return found, (np.cumsum(occurs) - 1)[key]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return rows[first], inverse.reshape(-1)
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    return distinct, inverse.reshape(-1)
