"""All pairs of points within a limit that each point sets for itself: screened by products, tile by tile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from equipoise.geometry.points import Points
from equipoise.geometry.screen import Screen
from equipoise.types import Floats, Ints

ROWS, COLUMNS = 512, 256
"""A tile of scores: 1 MB, which the second-level cache holds between the product and the comparison."""

PAIRS = 1 << 20
"""Pairs that are kept before they are handed out: it bounds the memory whatever the limits are."""


def near_pairs(screen: Screen, rows: Ints, limits: Floats) -> Iterator[tuple[Ints, Ints]]:
    """Chunks of pairs, as places among ``rows`` and columns, among them all whose excess is within the limit.

    Pairs a little beyond the limit may be among them, and every point is near itself.
    """
    left = screen.asking(rows, limits)
    right = _padded(screen.right)
    scores = np.empty(ROWS * COLUMNS, dtype=left.dtype)
    near = np.empty(ROWS * COLUMNS, dtype=np.bool_)
    zero = np.zeros((), dtype=left.dtype)
    found: list[tuple[Ints, Ints]] = []
    held = 0
    for top in range(0, len(left), ROWS):
        block = left[top : top + ROWS]
        size = len(block) * COLUMNS
        tile, flat, flags = scores[:size].reshape(len(block), COLUMNS), scores[:size], near[:size]
        for first in range(0, len(right), COLUMNS):
            np.matmul(block, right[first : first + COLUMNS].T, out=tile)
            hits = np.flatnonzero(np.greater_equal(flat, zero, out=flags))
            if len(hits):
                found.append((hits // COLUMNS + top, hits % COLUMNS + first))
                held += len(hits)
        if held > PAIRS:
            yield _joined(found)
            found, held = [], 0
    if found:
        yield _joined(found)


def _padded(right: Points) -> Points:
    """The right factor with rows that are near nothing, so that every tile is whole."""
    missing = -len(right) % COLUMNS
    return np.concatenate([right, np.full((missing, right.shape[1]), np.nan, dtype=right.dtype)])


def _joined(found: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    return np.concatenate([rows for rows, _ in found]), np.concatenate([columns for _, columns in found])
