"""How far a blend strays when its units are drawn again: errors that can be added up and compared.

A table of errors has one row a redraw: how far the score was off, scaled to the size of the whole data. The
same seed draws the same units for every model, so errors of two models pair. Errors of different tasks come
from different units, and are drawn independently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan, sqrt
from zlib import crc32

import numpy as np

from equipoise.recipes.concepts.blends import Blend
from equipoise.stats.corpus_interval import DEFINED_SHARE, FEWEST_DRAWS
from equipoise.stats.interval import Interval
from equipoise.stats.parts import Shares, part_rows, taken
from equipoise.stats.redrawn import student_difference
from equipoise.types import Floats, Ints

Parts = Mapping[str, float]


@dataclass(frozen=True)
class Sampling:
    """What is drawn: ``count`` units, and the parts of the blend on any of them.

    ``shares`` says how large a part without repetition is; none means as many as there are, with repetition.
    ``errors_of`` gives the errors of the parts at once, where nothing needs to be measured again.
    """

    unit: str
    count: int
    shares: Shares = ()
    parts_of: Callable[[Ints], Parts] | None = None
    errors_of: Callable[[int, np.random.Generator], Mapping[str, Floats]] | None = None

    @property
    def counted(self) -> str:
        """How many there are, with the verb that fits."""
        one = f"{self.unit[:-3]}y" if self.unit.endswith("ies") else self.unit[:-1]
        return f"1 {one} is" if self.count == 1 else f"{self.count:,} {self.unit} are"

    @property
    def told(self) -> str:
        """What is drawn, for the caption."""
        how = "halves" if self.shares else "as many, with repetition"
        how = "all, weighted anew" if self.errors_of else how
        return f"{self.count:,} {self.unit} ({how})"


@dataclass(frozen=True)
class Spread:
    """Errors of a score and the degrees of freedom behind them; ``reason`` where nothing is known."""

    errors: Floats = field(repr=False)
    degrees: float
    reason: str = ""

    @property
    def standard_error(self) -> float:
        """The size of the errors."""
        return float(np.std(self.errors, ddof=1)) if len(self.errors) > 1 else nan

    def interval(self, value: float, level: float = 0.95) -> Interval:
        """Student's interval around a value."""
        if isnan(value):
            return Interval.unknown("the figure is undefined", level=level)
        if self.reason:
            return Interval.unknown(self.reason, level=level)
        return student_difference(value, self.errors, self.degrees, level)[0]

    def p(self, difference: float) -> float:
        """The two-sided p of "no difference", where these are errors of a difference; NaN if unknown."""
        return nan if self.reason else student_difference(difference, self.errors, self.degrees)[1]

    def minus(self, other: Spread) -> Spread:
        """The errors of a difference, redraw by redraw."""
        reason = self.reason or other.reason
        errors = np.zeros(0) if reason else self.errors - other.errors
        return Spread(errors, min(self.degrees, other.degrees), reason)


def redrawn(
    blend: Blend, sampling: Sampling, *, resamples: int, seed: int
) -> tuple[Spread, dict[str, Spread]]:
    """The blend on redrawn units, and each of its parts.

    Parts without repetition stray more than the whole by a known factor (Politis and Romano, 1994); what is
    left around their own mean is the error.
    """
    count = sampling.count
    if count < FEWEST_DRAWS:
        unknown = Spread(np.zeros(0), nan, f"{sampling.counted} too few to resample")
        return unknown, {term.part: unknown for term in blend.terms}
    rng = np.random.default_rng([seed, crc32(blend.task.encode())])
    if sampling.errors_of is not None:
        return _weighted(blend, sampling.errors_of(resamples, rng), _degrees(sampling, resamples))
    assert sampling.parts_of is not None
    blocks = [np.array([place]) for place in range(count)]
    drawn = [sampling.parts_of(rows) for rows in part_rows(blocks, sampling.shares, resamples, rng)]
    of_parts = {
        term.part: _spread(np.array([each[term.part] for each in drawn]), sampling) for term in blend.terms
    }
    return _spread(np.array([blend.value(each) for each in drawn]), sampling), of_parts


def _weighted(blend: Blend, errors: Mapping[str, Floats], degrees: float) -> tuple[Spread, dict[str, Spread]]:
    """The errors of a blend are those of its parts, as far as no cap is reached."""
    signed = {term.part: (-1.0 if term.from_one else 1.0) * term.weight for term in blend.terms}
    whole = np.sum([weight * errors[part] for part, weight in signed.items()], axis=0)
    if np.isnan(whole).any():
        lost = Spread(np.zeros(0), nan, "nothing to resample")
        return lost, dict.fromkeys(signed, lost)
    return Spread(whole, degrees), {part: Spread(errors[part], degrees) for part in signed}


def _degrees(sampling: Sampling, draws: int) -> float:
    """Degrees of freedom that pay for the number of units, and for the number of draws."""
    return 1.0 / (1.0 / (sampling.count - 1) + 1.0 / max(draws - 1, 1))


def _spread(scores: Floats, sampling: Sampling) -> Spread:
    known = ~np.isnan(scores)
    if known.mean() < DEFINED_SHARE:
        return Spread(np.zeros(0), nan, "undefined in too many resamples")
    # A redraw on which the score is undefined tells nothing; it stays in its row so that models pair.
    errors = np.where(known, scores - scores[known].mean(), 0.0)
    degrees = _degrees(sampling, len(scores))
    return Spread(errors * _factor(sampling.shares, sampling.count), degrees)


def _factor(shares: Shares, count: int) -> float:
    if not shares:
        return 1.0
    size = taken(count, shares[0])
    return sqrt(size / (count - size))


def combined(spreads: Sequence[Spread], weights: Sequence[float]) -> Spread:
    """The errors of a weighted sum of scores that rest on different units; degrees after Welch.

    >>> one = Spread(np.array([-1.0, 1.0, -1.0, 1.0]), 10)
    >>> combined([one, Spread(np.array([-1.0, -1.0, 1.0, 1.0]), 10)], [0.5, 0.5]).errors.tolist()
    [-1.0, 0.0, 0.0, 1.0]
    """
    reason = next((each.reason for each in spreads if each.reason), "")
    if reason:
        return Spread(np.zeros(0), nan, reason)
    errors = np.asarray(np.asarray(weights) @ np.array([each.errors for each in spreads]))
    parts = [(weight * each.standard_error) ** 2 for each, weight in zip(spreads, weights, strict=True)]
    below = sum(part**2 / each.degrees for part, each in zip(parts, spreads, strict=True))
    return Spread(errors, sum(parts) ** 2 / below if below > 0 else min(each.degrees for each in spreads))
