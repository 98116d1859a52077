"""How sure a loss is: p of "the true loss does not exceed the margin", and how small p can become at all.

Without a margin the signs of the differences are flipped: if nothing has changed, either run could have come
first. With a margin nothing says so, and Student's t judges how far beyond it the mean lies. That takes the
units for a fair picture of what gains there are: where 95 % of all units lose 0.037, the others gain 0.5 and
the margin is the true loss, t sees a larger one in a quarter of all samples of 50 units, as many hold none of
the large gains. Who expects such gains asks by ``bounds``: Gaffke's bound counts with the largest gain that
the metric allows, is never deceived, and sees only losses far beyond the margin (at 150 units, a loss of
0.03 beyond a margin of 0.01 in a quarter of all cases where t sees it in three quarters).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, sqrt

import numpy as np

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.stats.draws import Draws, exponential_sums, ratio
from equipoise.stats.numbers import count, percent
from equipoise.stats.paired import paired_t, sign_flip, spread
from equipoise.stats.power import detectable_difference
from equipoise.types import Floats, Ids

TESTS = ("t", "bounds")
"""How a loss beyond a margin is judged: by Student's t, or by the bounds of the metric alone."""


@dataclass(frozen=True)
class Loss:
    """What is asked of a pair of results: how much may be lost, and how sure a loss must be."""

    margin: float
    level: float
    flips: int
    seed: int
    test: str = "t"

    def __post_init__(self) -> None:
        if self.test not in TESTS:
            raise UnknownNameError.of("test of a loss", self.test, TESTS)

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
        if asked.test == "bounds" and self.width < inf:
            return self._p_within_bounds(asked, rng)
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
        draws = self._draws.ordered()
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
        if asked.test == "bounds" and self.width < inf:
            return float(min(1.0, (self.width + asked.margin) / (2 * self.width)) ** self.blocks)
        return float(0.5**self.blocks) if asked.margin == 0.0 else 0.0

    def visible(self, asked: Loss) -> float:
        """The smallest true loss that Student's t would call one with a chance of 80 %; NaN if unknown."""
        found = spread(self.values[:, np.newaxis], weights=self.weights, clusters=self.clusters)
        units, blocks = float(found.units[0]), float(found.blocks[0])
        if asked.level <= 0.5 or blocks < 2:
            return float("nan")
        sd = float(found.error[0]) * sqrt(units)
        beyond = detectable_difference(
            sd, units, level=2 * asked.level - 1, units_per_block=max(1.0, units / blocks)
        )
        return asked.margin + beyond.value
