"""Unit vectors, and looking at all pairs of points a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan

import numpy as np

from equipoise.evidence.space import Space
from equipoise.types import Bools, Floats

BLOCK_BYTES = 32 << 20
NOISE = 1e-12
"""Cosines in double precision that differ by less are equal."""


def directions(space: Space) -> tuple[Floats, Bools]:
    """Unit vectors of the points that have a direction, and which points those are."""
    vectors = space.vectors.astype(np.float64, copy=False)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    pointed = lengths > 0
    if not pointed.all():
        vectors, lengths = vectors[pointed], lengths[pointed]
    return vectors / lengths[:, None], pointed


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Slices of rows, so that a block of ``columns`` doubles a row stays within ``BLOCK_BYTES``."""
    step = max(1, BLOCK_BYTES // (8 * max(1, columns)))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def mean_cosine(units: Floats, points: int | None = None) -> float:
    """Mean over pairs of different rows; NaN for fewer than two.

    ``points`` counts those without a direction as well, whose cosine with any other is 0.
    """
    total, count = units.sum(axis=0), len(units) if points is None else points
    return float((total @ total - len(units)) / (count * (count - 1))) if len(units) > 1 else nan
