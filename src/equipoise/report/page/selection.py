"""Which units a page keeps when it cannot keep all: those that tell systems apart."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from equipoise.stats.numbers import count
from equipoise.types import Direction, Floats, Ints

SEED = 0


@dataclass(frozen=True)
class Selection:
    """Places of the units that are kept, in their own order; ``ranked`` has the most telling first."""

    kept: Ints
    ranked: Ints
    note: str


def selected(values: Floats, room: int, better: Direction, *, seed: int = SEED) -> Selection:
    """At most ``room`` units: where the systems differ most, or where a single one does worst.

    Equals are drawn at random, by the seed.

    >>> selected(np.array([[1.0, 1.0], [1.0, 0.0], [0.5, 0.2]]), 2, Direction.UP).kept
    array([1, 2])
    """
    ranked = np.lexsort((np.random.default_rng(seed).permutation(len(values)), -_interest(values, better)))
    chosen = ranked[:room].astype(np.int64)
    note = ""
    if len(values) > room:
        why = "the systems differ most" if values.shape[1] > 1 else "the system does worst"
        note = (
            f"{count(room)} of {count(len(values))} units are kept here: those on which {why}, "
            f"equals drawn at random (seed {seed}). The tables and figures above rest on all of them."
        )
    return Selection(np.sort(chosen), chosen, note)


def _interest(values: Floats, better: Direction) -> Floats:
    """How much a unit tells; one that is undefined for every system tells nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a row without any value
        if values.shape[1] == 1:
            told = -values[:, 0] if better == Direction.UP else values[:, 0]
        else:
            told = np.nanmax(values, axis=1) - np.nanmin(values, axis=1)
    told = np.nan_to_num(told, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return np.asarray(told, dtype=np.float64)
