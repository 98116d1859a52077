"""How dark a cell of a heat table is."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.types import Direction


def shade(value: float, seen: Sequence[float], better: Direction) -> float:
    """Where a value lies between the worst seen (0) and the best (1).

    >>> shade(0.5, [0.0, 0.5, 1.0], Direction.UP), shade(3.0, [3.0, 9.0], Direction.DOWN)
    (0.5, 1.0)
    """
    low, high = min(seen), max(seen)
    if high <= low:
        return 0.5
    place = (value - low) / (high - low)
    return place if better == Direction.UP else 1 - place
