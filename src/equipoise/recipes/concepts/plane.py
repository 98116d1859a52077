"""Points of many dimensions in the plane, and how much of their neighbourhoods is left there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.evidence.space import Space
from equipoise.metrics.directions import directions
from equipoise.stats.numbers import percent
from equipoise.types import Floats, Ints

NEIGHBOURS = 5


@dataclass(frozen=True)
class Plane:
    """Two coordinates a point, and what they keep of the space.

    ``kept`` is the share of the nearest neighbours of a point, by cosine, that are among its nearest in
    the plane too, averaged over the points; ``luck`` is what points dealt out at random keep; ``variance`` is
    the share of the variance of the directions that the two axes carry.
    """

    points: Floats
    rows: Ints
    kept: float
    luck: float
    variance: float
    neighbours: int

    @property
    def caption(self) -> str:
        """What to print beside the picture."""
        return (
            f"The plane keeps {percent(round(self.kept, 2))} of the {self.neighbours} nearest neighbours "
            f"(at random: {percent(round(self.luck, 2))}) and {percent(round(self.variance, 2))} of the "
            "variance: what looks near may not be."
        )


def flattened(space: Space, neighbours: int = NEIGHBOURS) -> Plane:
    """The directions along the two axes in which they differ most; points without a direction are left out.

    >>> plane = flattened(Space.of(np.eye(3)[[0, 0, 1, 1]] + 0.1 * np.eye(4, 3)), neighbours=1)
    >>> plane.kept, round(plane.luck, 2)
    (1.0, 0.33)
    """
    units, pointed = directions(space)
    many = len(units)
    centred = units - units.mean(axis=0) if many else units
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((many, 2))
    width = min(2, len(sizes))
    points[:, :width] = left[:, :width] * sizes[:width]
    # A direction and its opposite are alike; the one whose largest coordinate is positive is taken.
    largest = np.abs(points).argmax(axis=0) if many else np.zeros(2, dtype=np.int64)
    points *= np.where(points[largest, [0, 1]] < 0, -1.0, 1.0) if many else 1.0
    count = max(1, min(neighbours, many - 1))
    near, flat = nearest(-(units @ units.T), count), nearest(_squares(points), count)
    shared = [len(set(a) & set(b)) for a, b in zip(near.tolist(), flat.tolist(), strict=True)]
    total = float((sizes**2).sum())
    return Plane(
        points,
        np.flatnonzero(pointed),
        float(np.mean(shared)) / count if many > 1 else float("nan"),
        count / (many - 1) if many > 1 else float("nan"),
        float((sizes[:2] ** 2).sum()) / total if total else float("nan"),
        count,
    )


def nearest(distances: Floats, count: int) -> Ints:
    """The nearest others of each point, nearest first."""
    others = distances.copy()
    np.fill_diagonal(others, np.inf)
    return np.argsort(others, axis=1, kind="stable")[:, :count].astype(np.int64)


def _squares(points: Floats) -> Floats:
    gaps = points[:, None, :] - points[None, :, :]
    return np.asarray((gaps**2).sum(axis=2))
