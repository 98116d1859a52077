"""Importance sampling of sign patterns, for p values that too few random sign patterns reach.

Random signs e_i give the differences d_i the total S = sum e_i d_i. Under exponential tilting, a sign is positive with
probability 1 / (1 + exp(-2 t d_i)), and a pattern has the weight exp(K(t) - t S), with K(t) = sum log cosh(t d_i). At
the t with K'(t) equal to the observed total, about half of the patterns are extreme. (Siegmund, Annals of Statistics
1976.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats

MIN_EXTREME = 10
"""With fewer extreme random patterns than this, p is estimated by importance sampling."""
PATTERNS, FEW_PATTERNS, MAX_SIGNS = 1000, 200, 2_000_000
"""Patterns for a standard error of p of 5 to 10 %; with many units fewer, for 10 to 20 %."""
NEWTON_STEPS = 12
MOST_TILTED = 0.99
"""The largest expected total as a share of the largest possible one, at which t is infinite."""


@dataclass(frozen=True)
class TiltedSigns:
    """Tilted signs for each row of differences with a positive sum; ``scaled`` has rows of length 1."""

    scaled: Floats
    tilt: Floats

    @classmethod
    def of(cls, differences: Floats) -> Self:
        """The tilt under which the expected total of each row is the observed one."""
        scaled = differences / np.sqrt(np.square(differences).sum(axis=1, keepdims=True))
        target = np.minimum(scaled.sum(axis=1), MOST_TILTED * np.abs(scaled).sum(axis=1))
        tilt = np.zeros((len(target), 1))
        for _ in range(NEWTON_STEPS):  # from below, because K' is concave
            expected = np.tanh(tilt * scaled)
            slope = (np.square(scaled) * (1.0 - np.square(expected))).sum(axis=1)
            tilt[:, 0] += (target - (scaled * expected).sum(axis=1)) / slope
        return cls(scaled, tilt)

    @property
    def positive(self) -> Floats:
        """The probability of a positive sign of every unit."""
        return np.asarray(1.0 / (1.0 + np.exp(-2.0 * self.tilt * self.scaled)))

    @property
    def n_patterns(self) -> int:
        """The number of patterns to sample."""
        return min(PATTERNS, max(FEW_PATTERNS, MAX_SIGNS // self.scaled.shape[1]))

    def p(self, totals: Floats, extreme: Bools) -> Floats:
        """The probability of an extreme pattern, from the totals of sampled patterns: shape (rows, patterns).

        The observed pattern is counted as well, so p is never 0. (Harrison, Biometrika 2012.) p is at least the
        probability of one pattern.
        """
        exponents = self.tilt * self.scaled
        cumulant = np.logaddexp(exponents, -exponents).sum(axis=1) - exponents.shape[1] * np.log(2.0)
        weights = np.exp(cumulant[:, np.newaxis] - self.tilt * totals) * extreme
        observed = np.exp(cumulant - self.tilt[:, 0] * self.scaled.sum(axis=1))
        p = (weights.sum(axis=1) + observed) / (totals.shape[1] + 1)
        one_pattern = 0.5 ** np.count_nonzero(self.scaled, axis=1)
        return np.asarray(np.clip(p, np.maximum(one_pattern, np.finfo(np.float64).tiny), 1.0))
