"""A matrix product that never overlooks a near pair, and the distance that then decides.

A product of matrices finds distances fast and rounds them. So it only screens: it carries one column more,
which raises every score by more than rounding can have lowered it, and another, which takes off the score
that is to be reached. What comes out below 0 is farther than asked, without doubt; the few pairs that are
left are looked at one by one, by a formula that keeps its digits near the rim of hyperbolic space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.geometry.base import Geometry
from equipoise.geometry.points import Points
from equipoise.types import Floats, Ints

PAIRS_AT_ONCE = 1 << 16
"""Pairs that are looked at together: their coordinates stay in the cache."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Points among themselves: ``left @ right.T`` is the surrogate less its best value, plus the slack.

    ``slack`` times ``reach`` bounds how far rounding can bring a score of a left row below minus its excess.
    """

    space: Geometry
    points: Floats
    left: Floats
    right: Floats
    slack: Floats
    reach: float

    @classmethod
    def of(cls, points: Points, geometry: Geometry) -> Screen:
        """Both factors of the product for points that the geometry accepts."""
        space, rows = geometry.standard(points)
        prepared = space.prepare_corpus(rows)
        scale = 1.0 if prepared.scale is None else prepared.scale[:, None]
        left, right = space.prepare_queries(rows), prepared.rows * scale
        lengths, reaches = (np.sqrt(np.einsum("ij,ij->i", side, side)) for side in (left, right))
        # Rounding of the product, of the entries of both factors and of the excess: all are bounded by
        # the lengths of the two rows, some three times the columns and a few more of the last digit.
        slack = (3 * left.shape[1] + 16) * np.finfo(np.float64).eps * lengths
        ones = np.ones(len(rows))
        return cls(
            space,
            rows,
            np.column_stack([left, slack, ones]),
            np.column_stack([right, reaches, ones]),
            slack,
            float(reaches.max(initial=0.0)),
        )

    def excess(self, rows: Ints, columns: Ints) -> Floats:
        """What orders the pairs as their distance does, each pair by itself."""
        found = np.empty(len(rows))
        for start in range(0, len(rows), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            found[part] = self.space.excess(
                self.points.take(rows[part], axis=0), self.points.take(columns[part], axis=0)
            )
        return found

    def asking(self, rows: Ints, limits: Floats) -> Floats:
        """Left rows whose product with ``right`` is 0 or more wherever the excess may be within the limit."""
        left = self.left.take(rows, axis=0)
        left[:, -1] = self.raised(limits) - self.space.nearest
        return left

    def raised(self, limits: Floats) -> Floats:
        """Limits with room for their own rounding within the product."""
        return limits + np.abs(limits) * (4 * np.finfo(np.float64).eps * self.left.shape[1])
