"""Limits that reach far into a row: most numbers are counted by the bucket they fall into.

Numbers are sorted into buckets by their leading bits, some five hundred for each doubling. A bucket that no
limit touches is counted as a whole; only the numbers of the others have to be known to the last digit.
"""

from __future__ import annotations

import numpy as np

from equipoise.types import Floats, Ints

_BITS = 9
_DOUBLINGS = 40
_SHIFT = 52 - _BITS
_MOST = _DOUBLINGS << _BITS


def sure_counts(numbers: Floats, limits: Floats, slack: float) -> tuple[Ints, Ints]:
    """How many numbers lie below each limit without doubt, and the places of those that have to be looked at.

    ``numbers`` may be too small by up to ``slack``, never too large. A number that is not among the places
    returned lies on the same side of every limit as it was counted.

    >>> below, unsure = sure_counts(np.array([1.0, 5.0, 9.0]), np.array([5.0]), slack=0.0)
    >>> below.tolist(), unsure.tolist()
    ([1], [1])
    """
    least, most = numbers.min(), numbers.max()
    base = int(_bits(np.array([most - least]))[0]) - _MOST
    bucket = _bucket(numbers - least, base)
    first, last = _bucket(limits - slack - least, base), _bucket(limits - least, base)
    edges = np.zeros(_MOST + 3, dtype=np.int64)
    np.add.at(edges, first, 1)
    np.add.at(edges, last + 1, -1)
    touched = np.cumsum(edges[:-1]) > 0
    whole = np.bincount(bucket, minlength=_MOST + 2)
    whole[touched] = 0
    return (np.cumsum(whole) - whole)[first], np.flatnonzero(touched[bucket])


def _bucket(heights: Floats, base: int) -> Ints:
    """The bucket of each number, seen from the least of them; what lies beyond the largest has one more."""
    bucket = _bits(np.maximum(heights, 0.0))
    bucket -= base
    return np.clip(bucket, 0, _MOST + 1, out=bucket)


def _bits(heights: Floats) -> Ints:
    """The leading bits of numbers from 0 up, which have the order of the numbers."""
    return heights.view(np.int64) >> _SHIFT
