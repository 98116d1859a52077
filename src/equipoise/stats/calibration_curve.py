"""Calibration: the reliability diagram of a classifier and its expected calibration error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import CONFIDENCE_LEVEL, DEFAULT_STATS, StatsConfig
from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.evidence.base import check_same_length, float_column
from equipoise.stats.bootstrap_mean import mean_intervals
from equipoise.stats.intervals import Interval

if TYPE_CHECKING:
    from equipoise.types import Floats, Ids, Ints

BINS = 15
"""The default of Guo et al. (ICML 2017)."""
N_SIMULATIONS = 500
_INTERVALS, _CALIBRATED = range(2)
"""Streams of randomness."""
_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """The units with ``low`` < confidence <= ``high``."""

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float
    interval: Interval

    @property
    def gap(self) -> float:
        """Confidence minus accuracy: positive if overconfident, negative if underconfident."""
        return self.confidence - self.accuracy


@dataclass(frozen=True)
class CalibrationCurve:
    """Mean confidence and accuracy per bin; bins without units are left out.

    ``ece`` is the expected calibration error: the mean absolute gap, weighted by units. It is above 0
    for every model on finitely many units. ``calibrated`` is its mean for a perfectly calibrated model on these
    units (by simulation), ``calibrated_high`` the value that such a model exceeds with probability 1 - level.
    The simulation assumes independent units; if a model is underconfident for some users and overconfident
    for others, it is too narrow.
    """

    bins: tuple[CalibrationBin, ...]
    n: int
    confidence: float
    accuracy: float
    ece: float
    calibrated: float
    calibrated_high: float
    confidence_level: float = CONFIDENCE_LEVEL

    @property
    def largest_gap(self) -> float:
        """The gap of the worst bin, without its sign."""
        return max(abs(bucket.gap) for bucket in self.bins)

    @property
    def is_miscalibrated(self) -> bool:
        """Whether the error is significantly larger than that of a calibrated model."""
        return self.ece > self.calibrated_high

    def __repr__(self) -> str:
        return (
            f"<Reliability: ECE {self.ece:.4g} on {self.n} units; a calibrated model would have {self.calibrated:.2g}>"
        )


def reliability(
    confidence: Any,
    correct: Any,
    *,
    bins: int = BINS,
    clusters: Ids | None = None,
    n_simulations: int = N_SIMULATIONS,
    config: StatsConfig = DEFAULT_STATS,
) -> CalibrationCurve:
    """Compare the probability of the first choice with how often it is right.

    ``correct`` is 1 or 0 per unit, or a share where the first choice is tied. Bins have equal width; a
    confidence on an edge belongs to the bin below it. With ``clusters`` (the users) the
    intervals of the bins resample clusters.

    >>> curve = reliability([0.9, 0.9, 0.9, 0.9], [1, 1, 1, 0], bins=10, n_simulations=10)
    >>> round(curve.ece, 3), curve.bins[0].n
    (0.15, 4)
    """
    if bins < 1 or n_simulations < 1:
        raise ParameterError(
            f"{bins} bins and {n_simulations} simulations were requested", hint="give at least 1 of each"
        )
    confidences, right = _shares(confidence, "confidences"), _shares(correct, "right answers")
    check_same_length(confidences, right, "confidences", "right answers")
    if not len(confidences):
        raise InputError("there are no units")
    if clusters is not None and len(clusters) != len(confidences):
        raise ShapeError(f"there are {len(clusters)} clusters for {len(confidences)} units", hint="give one per unit")
    edges = np.linspace(0.0, 1.0, bins + 1)
    member = np.searchsorted(edges[1:-1], confidences)
    size = np.bincount(member, minlength=bins)
    bin_rngs = config.rng(_INTERVALS).spawn(int((size > 0).sum()))
    filled_bins = []
    for index, rng in zip(np.flatnonzero(size).tolist(), bin_rngs, strict=True):
        rows = np.flatnonzero(member == index)
        interval = mean_intervals(
            right[rows][:, None],
            clusters=None if clusters is None else clusters[rows],
            bounds=[(0.0, 1.0)],
            config=config,
            rng=rng,
        )[0]
        low, high = float(edges[index]), float(edges[index + 1])
        mean_confidence, accuracy = float(confidences[rows].mean()), float(right[rows].mean())
        filled_bins.append(CalibrationBin(low, high, len(rows), mean_confidence, accuracy, interval))
    by_chance = _calibrated_errors(confidences, member, bins, n_simulations, config.rng(_CALIBRATED))
    return CalibrationCurve(
        tuple(filled_bins),
        len(confidences),
        float(confidences.mean()),
        float(right.mean()),
        float(np.abs(np.bincount(member, right - confidences, bins)).sum() / len(confidences)),
        float(by_chance.mean()),
        float(np.quantile(by_chance, config.confidence_level)),
        config.confidence_level,
    )


def _calibrated_errors(
    confidences: Floats, member: Ints, bins: int, n_simulations: int, rng: np.random.Generator
) -> Floats:
    """Simulated calibration errors of perfectly calibrated models on these units."""
    expected = np.bincount(member, confidences, bins)
    errors = np.empty(n_simulations)
    # Sorted, so that a bin's hits are one slice of the sample, and the order of the units does not matter.
    order = np.argsort(confidences, kind="stable")
    filled, starts = np.unique(member[order], return_index=True)
    step = max(1, _BLOCK // len(confidences))
    for start in range(0, n_simulations, step):
        size = min(step, n_simulations - start)
        hits = rng.random((size, len(confidences))) < confidences[order]
        sums = np.add.reduceat(hits.astype(np.int64), starts, axis=1)
        errors[start : start + size] = np.abs(sums - expected[filled]).sum(axis=1) / len(confidences)
    return errors


def _shares(values: Any, name: str) -> Floats:
    shares = float_column(values, f"the {name}")
    invalid = (shares < 0) | (shares > 1)
    if invalid.any():
        first = int(np.argmax(invalid))
        raise InputError(
            f"the {name} hold {shares[first]:g} at position {first}",
            hint="probabilities are between 0 and 1; apply a softmax to logits",
        )
    return shares
