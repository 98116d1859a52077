"""Parts of the evidence on which a figure that is no mean over units is measured again.

Units are drawn with repetition where a figure bears it. A copy of a point is its own nearest neighbour, and
a copy of a unit agrees with itself in both partitions, so figures of a space and agreements of partitions
are measured on parts without repetition. The number of parts is fixed by the size alone, never by a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from typing import Any, TypeVar

import numpy as np

from equipoise.errors import UndefinedError
from equipoise.evidence.base import Evidence
from equipoise.evidence.labels import Labels
from equipoise.metrics.base import Metric
from equipoise.metrics.clusterings import (
    AdjustedRand,
    Completeness,
    Homogeneity,
    MutualInformation,
    VMeasure,
    contingency,
)
from equipoise.stats.draws import checked_resamples, members
from equipoise.types import Floats, Ints

E = TypeVar("E", bound=Evidence)

Shares = tuple[float, ...]
REPEATED: Shares = ()
"""Parts as large as the evidence, with repetition."""
HALVES: Shares = (0.5,)
HALVES_AND_MOST: Shares = (0.5, 0.9)
"""Halves, and nine tenths: halves see how far a figure strays that is near its extremum, as an agreement of
independent partitions is; nine tenths see how it varies at nearly its own size, where cells are sparse."""
PARTITIONS = (AdjustedRand, MutualInformation, Homogeneity, Completeness, VMeasure)
FEWEST_PAIRS = 5
"""With fewer pairs of units that share class and cluster, the adjusted Rand index has no visible spread."""


def shares_for(metric: Metric[Any], evidence: Evidence) -> Shares:
    """The kind of parts that this metric can be measured on."""
    if evidence.kind == "space":
        return HALVES
    return HALVES_AND_MOST if isinstance(metric, PARTITIONS) else REPEATED


def too_sparse(metric: Metric[Any], evidence: Evidence) -> str:
    """Why parts of this evidence show no spread of this metric, or nothing when they do."""
    if isinstance(metric, AdjustedRand) and isinstance(evidence, Labels):
        cells = contingency(evidence).cells
        if (cells * (cells - 1)).sum() / 2 < FEWEST_PAIRS:
            return f"fewer than {FEWEST_PAIRS} pairs of units share class and cluster"
    return ""


def part_count(kind: str, units: int, asked: int) -> int:
    """How many parts are measured: as many as asked for, fewer where each is costly.

    4,000,000 units are measured in all and 200 parts at least. Figures of a space grow with the square of
    the points: there it is 120,000 points in all, and from 64 to 1,000 parts.

    >>> part_count("pairs", 300, 2000), part_count("pairs", 20_000, 2000)
    (2000, 200)
    >>> part_count("space", 300, 2000), part_count("space", 3000, 2000)
    (400, 64)
    """
    checked_resamples(asked)
    size = max(units, 1)
    if kind == "space":
        return min(asked, 1000, max(64, 120_000 // size))
    return min(asked, max(200, 4_000_000 // size))


def blocks_of(evidence: Evidence, clusters: Any) -> list[Ints]:
    """What is drawn: the rows of each cluster, or each row."""
    return members(np.arange(len(evidence)) if clusters is None else clusters, len(evidence))


def part_rows(blocks: Sequence[Ints], shares: Shares, parts: int, rng: np.random.Generator) -> Iterator[Ints]:
    """The rows of each part; several shares take turns."""
    count = len(blocks)
    together = np.concatenate(blocks)
    alone = len(together) == count
    for at in range(parts):
        if shares:
            picks = np.sort(rng.permutation(count)[: taken(count, shares[at % len(shares)])])
        else:
            picks = rng.integers(0, count, size=count)
        yield together[picks] if alone else np.concatenate([blocks[pick] for pick in picks.tolist()])


def taken(count: int, share: float) -> int:
    """How many of the draws a part without repetition holds."""
    return min(max(int(count * share), 1), count - 1)


def standard_error(figures: Floats, shares: Shares, count: int) -> tuple[float, float]:
    """The standard error from parts without repetition, and its degrees of freedom.

    The spread of m of k draws is rescaled by sqrt(m / k) (Politis and Romano, 1994) and freed of the
    finite-population factor sqrt(1 - m / k). It is taken around its own mean: a figure of distances shifts
    with the number of points, which is no uncertainty. Of several shares the larger spread counts. The
    degrees of freedom pay for the number of draws, and for the number of parts.
    """
    errors, sizes = [], []
    for at, share in enumerate(shares):
        known = figures[at :: len(shares)]
        known = known[~np.isnan(known)]
        size = taken(count, share)
        errors.append(float(np.std(known, ddof=1)) * sqrt(size / (count - size)) if len(known) > 1 else 0.0)
        sizes.append(len(known))
    degrees = 1.0 / (1.0 / (count - 1) + 1.0 / max(min(sizes) - 1, 1))
    return max(errors), degrees


def value_of(figure: Callable[[E], float], evidence: E) -> float:
    """The figure, or NaN where this part of the evidence cannot give it."""
    try:
        return float(figure(evidence))
    except UndefinedError:
        return float("nan")
