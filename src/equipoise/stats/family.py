"""Families of tests: p values adjusted for having asked more than one question."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.types import Floats


def holm(p: ArrayLike) -> Floats:
    """Holm's step-down adjustment, which bounds the chance of any false positive in the family.

    The i-th smallest of m is multiplied by m - i + 1, then made monotone and cut at 1. NaN stays NaN and
    is not part of the family. (Holm, Scandinavian Journal of Statistics 1979.)

    >>> holm([0.01, 0.04, 0.03]).round(4)
    array([0.03, 0.06, 0.06])
    """
    return _adjusted(p, lambda sorted_p, m: np.maximum.accumulate(sorted_p * np.arange(m, 0, -1)))


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Benjamini and Hochberg's adjustment, which bounds the share of false positives among the positives.

    The i-th smallest of m is multiplied by m / i, then made monotone from the largest down and cut at 1.
    NaN stays NaN and is not part of the family. (Journal of the Royal Statistical Society B, 1995.)

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(4)
    array([0.03, 0.04, 0.04])
    """
    return _adjusted(
        p, lambda sorted_p, m: np.minimum.accumulate((sorted_p * m / np.arange(1, m + 1))[::-1])[::-1]
    )


def unadjusted(p: ArrayLike) -> Floats:
    """The p values as they are."""
    return _adjusted(p, lambda sorted_p, m: sorted_p)


CORRECTIONS: dict[str, tuple[Callable[[ArrayLike], Floats], str]] = {
    "holm": (holm, "Holm"),
    "bh": (benjamini_hochberg, "Benjamini-Hochberg"),
    "none": (unadjusted, "no correction"),
}


def adjust(p: ArrayLike, method: str = "holm") -> Floats:
    """p values adjusted by ``method``: holm, bh or none.

    >>> adjust([0.01, 0.04], "none")
    array([0.01, 0.04])
    """
    if method not in CORRECTIONS:
        raise UnknownNameError.of(
            "correction", method, CORRECTIONS, more=f"choose one of {', '.join(CORRECTIONS)}"
        )
    return CORRECTIONS[method][0](p)


def _adjusted(p: ArrayLike, rule: Callable[[Floats, int], Floats]) -> Floats:
    """Apply ``rule`` to the known p values in rising order and put the answers back in place."""
    values = np.array(p, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    if ((values[known] < 0) | (values[known] > 1)).any():
        raise ParameterError("a p value lies outside 0 to 1")
    order = known[np.argsort(values[known], kind="stable")]
    values[order] = np.minimum(rule(values[order], len(order)), 1.0)
    return values
