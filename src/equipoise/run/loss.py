"""How sure a loss is: p of "the true loss does not exceed the margin", and how small p can become at all.

Without a margin the signs of the differences are flipped: if nothing has changed, either run could have come
first. With a margin nothing says so, and flips around it would take rare large gains for a loss. There the
bounds of the metric are used, which tell how large the gains can be that the units happen to lack. Where 95 %
of the units lose 0.037, the others gain 0.5 and the margin is the true loss, flips around it see a larger one
in 26 % of all samples of 50 units and 10 % of 200, the bounds in none and 1 %. The price is power: below 100
units only losses far beyond the margin are seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from equipoise.errors import ParameterError
from equipoise.stats.draws import Draws, exponential_sums, ratio
from equipoise.stats.numbers import count, percent
from equipoise.stats.paired import paired_t, sign_flip
from equipoise.types import Floats, Ids


@dataclass(frozen=True)
class Loss:
    """What is asked of a pair of results: how much may be lost, and how sure a loss must be."""

    margin: float
    level: float
    flips: int
    seed: int

    @property
    def alpha(self) -> float:
        """The p below which a loss is significant."""
        return round(1 - self.level, 12)

    def checked(self, metrics: int) -> Loss:
        """The same question, when so many flips can answer it for so many metrics at once."""
        if metrics and metrics / (self.flips + 1) >= self.alpha:
            of = f" of {metrics} metrics" if metrics > 1 else ""
            raise ParameterError(
                f"{count(self.flips)} random flips cannot show a loss{of} at {percent(self.level)}, "
                "however large it is",
                hint=f"give --flips {ceil(metrics / self.alpha)} or more, or a lower --level",
            )
        return self


@dataclass(frozen=True)
class Gains:
    """Unit by unit, by how much a run is better; ``width`` is the largest gain that the metric allows."""

    values: Floats
    weights: Floats | None
    clusters: Ids | None
    width: float

    @property
    def _draws(self) -> Draws:
        return Draws.of(self.values[:, np.newaxis], self.weights, self.clusters)

    @property
    def blocks(self) -> int:
        """How many independent pieces there are: units, or clusters of them."""
        return int(self._draws.counts[0])

    def p_of_loss(self, asked: Loss) -> float:
        """How likely so large a loss is, if the true one is within the margin; NaN if nobody can say."""
        rng = np.random.default_rng([asked.seed, 0])
        if asked.margin == 0.0:
            found = sign_flip(
                self.values,
                weights=self.weights,
                clusters=self.clusters,
                alternative="less",
                flips=asked.flips,
                rng=rng,
            )
            return float(found[0])
        if self.width < inf:
            return self._p_within_bounds(asked, rng)
        by_t = paired_t(
            self.values,
            weights=self.weights,
            clusters=self.clusters,
            alternative="less",
            margin=-asked.margin,
        )
        return float(by_t[0])

    def _p_within_bounds(self, asked: Loss, rng: np.random.Generator) -> float:
        """Gaffke's p (2005): the Bayesian bootstrap with one more draw, which gains all it can."""
        draws = self._draws
        if not draws.counts[0]:
            return float("nan")
        sums, extra = exponential_sums(np.hstack([draws.totals, draws.masses]), asked.flips, rng)
        extra = extra * ratio(draws.masses.sum(axis=0), draws.counts.astype(np.float64))
        means = ratio(sums[:, :1] + extra * self.width, sums[:, 1:] + extra)
        # A constant loss of exactly the margin is no larger one, whatever rounding says.
        within = np.count_nonzero(means >= -asked.margin - 1e-12 * self.width)
        return (within + 1) / (asked.flips + 1)

    def smallest_p(self, asked: Loss) -> float:
        """The p of the worst loss that so many units could show; 0 where nothing keeps it from being small.

        >>> Gains(np.full(4, -0.1), None, None, 1.0).smallest_p(Loss(0.0, 0.95, 10_000, 0))
        0.0625
        """
        if asked.margin == 0.0:
            return float(0.5**self.blocks)
        if self.width < inf:
            return float(min(1.0, (self.width + asked.margin) / (2 * self.width)) ** self.blocks)
        return 0.0
