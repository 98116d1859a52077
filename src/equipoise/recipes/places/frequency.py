"""How well known a place is: never seen in training, seldom, often."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.columns import host
from equipoise.types import Ids, Ints

EDGES = (0, 1, 10, 100, 1000)


def never_seen(unseen: Any, counts: Ints | None) -> Ints:
    """The classes that training never saw: those named, and those counted zero times.

    >>> never_seen(1, np.array([0, 5, 3, 0])).tolist()
    [0, 1, 3]
    """
    named: NDArray[Any] = np.atleast_1d(host([] if unseen is None else unseen)).astype(np.int64)
    return named if counts is None else np.union1d(named, np.flatnonzero(counts == 0))


def frequency_slices(counts: Ints) -> Ids:
    """A class of frequency for each count.

    >>> frequency_slices(np.array([0, 7, 2500])).tolist()
    ['0', '1 to 9', '1000 or more']
    """
    names = ["0", *(f"{low} to {high - 1}" for low, high in pairwise(EDGES[1:]))]
    names.append(f"{EDGES[-1]} or more")
    return np.array(names, dtype=object)[np.searchsorted(EDGES, counts, side="right") - 1]
