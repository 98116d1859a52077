"""Corrections of p values for multiple comparisons: Holm, Benjamini-Hochberg."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints


def holm(p: ArrayLike) -> Floats:
    """Holm's step-down adjustment, which bounds the chance of any false positive in the family.

    The i-th smallest of m is multiplied by m - i + 1, then made monotone and capped at 1. NaN remains NaN and
    is not part of the family. (Holm, Scandinavian Journal of Statistics 1979.)

    >>> holm([0.01, 0.04, 0.03]).round(4)
    array([0.03, 0.06, 0.06])
    """
    return _adjust_families(p, lambda sorted_p, m: np.maximum.accumulate(sorted_p * (m - _steps(sorted_p)), axis=-1))


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Benjamini and Hochberg's adjustment, which bounds the share of false positives among the positives.

    The i-th smallest of m is multiplied by m / i, then made monotone from the largest down and capped at 1.
    NaN remains NaN and is not part of the family. (Journal of the Royal Statistical Society B, 1995.)

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(4)
    array([0.03, 0.04, 0.04])
    """

    def rule(sorted_p: Floats, m: Ints) -> Floats:
        scaled = sorted_p * m / (1 + _steps(sorted_p))
        # fmin ignores NaN, which is first in this direction.
        smallest = np.fmin.accumulate(scaled[..., ::-1], axis=-1)[..., ::-1]
        return np.where(np.isnan(sorted_p), np.nan, smallest)

    return _adjust_families(p, rule)


def unadjusted(p: ArrayLike) -> Floats:
    """The p values as they are."""
    return _adjust_families(p, lambda sorted_p, m: sorted_p)


CORRECTIONS: dict[str, tuple[Callable[[ArrayLike], Floats], str]] = {
    "holm": (holm, "Holm"),
    "bh": (benjamini_hochberg, "Benjamini-Hochberg"),
    "none": (unadjusted, "no correction"),
}


def adjust(p: ArrayLike, method: str = "holm") -> Floats:
    """p values adjusted by ``method``: holm, bh or none. Of an array, each row is a family.

    >>> adjust([0.01, 0.04], "none")
    array([0.01, 0.04])
    """
    if method not in CORRECTIONS:
        raise UnknownNameError.of("correction", method, CORRECTIONS, more=f"choose one of {', '.join(CORRECTIONS)}")
    return CORRECTIONS[method][0](p)


def _steps(sorted_p: Floats) -> Ints:
    return np.arange(sorted_p.shape[-1])


def step_level(position: float, tests: int, method: str, alpha: float) -> float:
    """The level at which a correction tests the pair at ``position`` (from 0) of ``tests``.

    >>> step_level(0, 10, "holm", 0.05), step_level(9, 10, "holm", 0.05), step_level(4, 10, "bh", 0.05)
    (0.005, 0.05, 0.025)
    """
    if method == "holm":
        return alpha / (tests - position)
    return alpha * (position + 1) / tests if method == "bh" else alpha


def _adjust_families(p: ArrayLike, rule: Callable[[Floats, Ints], Floats]) -> Floats:
    """Apply ``rule`` to the p values of each family (last axis) in rising order; NaN remains NaN."""
    values = np.array(p, dtype=np.float64)
    if ((values < 0) | (values > 1)).any():
        raise ParameterError("a p value is outside 0 to 1")
    order = np.argsort(values, axis=-1, kind="stable")
    tests = np.count_nonzero(~np.isnan(values), axis=-1, keepdims=True)
    adjusted = np.minimum(rule(np.take_along_axis(values, order, axis=-1), tests), 1.0)
    np.put_along_axis(values, order, adjusted, axis=-1)
    return values
