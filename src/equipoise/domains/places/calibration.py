"""Calibration of next-place models: log loss, Brier score and calibration error, of the first place and of the first k.

For a row of logits ``s`` with target ``t``, ``p = softmax(s)``; rows that are probabilities already are only divided by
their sum::

    NLL   = -log p[t]
    Brier = sum over all places j of (p[j] - [j == t])^2 = sum p[j]^2 - 2 p[t] + 1
    confidence at k = sum of the k largest p

A model is calibrated at k if, of the visits with confidence c, a share c has its target among the first k places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError, NotFiniteError
from equipoise.evidence.base import to_numpy
from equipoise.evidence.kernels.dispatch import candidate_columns
from equipoise.io.arrays import MappedPages
from equipoise.metrics.ranking import HitRate
from equipoise.stats.calibration_curve import CalibrationCurve, reliability
from equipoise.stats.estimate import result_from_values
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.stats.result import Result
    from equipoise.tasks.classification import ClassificationOutput
    from equipoise.types import Floats, Ids, Ints

BLOCK_SCORES = 1 << 19
"""Scores per block; in float64 a block and its exponentials stay in the cache."""

SUM_TOLERANCE = 1e-3
"""How far the sum of a row may be from 1 for its values to be probabilities: float16 rounds so much."""


@dataclass(frozen=True, eq=False, slots=True)
class ProbabilityColumns:
    """For each unit: probability of the target, log loss, Brier score, and the sum of the k largest probabilities."""

    target: Floats
    nll: Floats
    brier: Floats
    top: Mapping[int, Floats]
    from_softmax: bool


@dataclass(frozen=True)
class PlaceCalibration:
    """Log loss and Brier score with intervals, and the reliability diagram at each cutoff.

    ``result`` lacks NLL if a target has probability 0, because its log loss is infinite; ``impossible`` counts them.
    """

    result: Result
    curves: Mapping[int, CalibrationCurve]
    from_softmax: bool
    impossible: int = 0

    @property
    def ece(self) -> dict[int, float]:
        """The expected calibration error by cutoff."""
        return {k: curve.ece for k, curve in self.curves.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "probabilities": "softmax of the scores" if self.from_softmax else "as given",
            "impossible_targets": self.impossible,
            **{name: estimate.to_dict() for name, estimate in self.result.estimates.items()},
            "ece": {
                str(k): {
                    "ece": curve.ece,
                    "calibrated": curve.calibrated,
                    "calibrated_high": curve.calibrated_high,
                    "confidence": curve.confidence,
                    "accuracy": curve.accuracy,
                }
                for k, curve in self.curves.items()
            },
        }


def are_probabilities(scores: Any) -> bool:
    """Whether the first rows are distributions: no value below 0, and sums of 1.

    >>> are_probabilities(np.array([[0.25, 0.75]])), are_probabilities(np.array([[2.0, 1.0]]))
    (True, False)
    """
    block = _float_block(scores, 0, max(1, BLOCK_SCORES // int(scores.shape[1])))
    return bool((block >= 0).all() and (np.abs(block.sum(axis=1) - 1.0) <= SUM_TOLERANCE).all())


def probability_columns(
    scores: Any, targets: Ints, *, padding: Any = None, ks: Sequence[int] = (1,), probabilities: bool | None = None
) -> ProbabilityColumns:
    """The columns of a matrix of logits or probabilities, one block of rows at a time.

    ``probabilities`` tells which they are; by default this is decided by the first rows. Padding columns have no
    probability. A score of -inf has probability 0; NaN and inf are errors.

    >>> columns = probability_columns(np.log([[0.5, 0.3, 0.2]]), np.array([1]), ks=(1, 2))
    >>> columns.target.round(3).item(), columns.brier.round(3).item(), columns.top[2].round(3).item()
    (0.3, 0.78, 0.8)
    """
    rows, width = (int(size) for size in scores.shape)
    classes = candidate_columns(padding, width)
    given = are_probabilities(scores) if probabilities is None else probabilities
    most = min(max(ks), len(classes.codes))
    target, nll, brier = (np.empty(rows) for _ in range(3))
    top = np.empty((rows, most))
    indices = classes.indices_of(np.asarray(targets, dtype=np.int64))
    step = max(1, BLOCK_SCORES // width)
    pages = MappedPages(scores) if isinstance(scores, np.ndarray) else None
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        block = _float_block(scores, part.start, part.stop)
        block = block[:, classes.span] if classes.span is not None else block[:, classes.codes]
        share, log_loss = _shares(block, indices[part], start, given=given)
        target[part] = share[np.arange(len(share)), indices[part]]
        nll[part] = log_loss
        brier[part] = np.einsum("ij,ij->i", share, share) - 2.0 * target[part] + 1.0
        largest = np.sort(np.partition(share, share.shape[1] - most, axis=1)[:, -most:], axis=1)[:, ::-1]
        top[part] = np.cumsum(largest, axis=1)
        if pages is not None:
            pages.drop(scores[part])
    confidence = {k: np.minimum(top[:, min(k, most) - 1], 1.0) for k in ks}
    return ProbabilityColumns(target, nll, np.maximum(brier, 0.0), confidence, not given)


def _float_block(scores: Any, start: int, stop: int) -> Floats:
    block = scores[start:stop]
    if hasattr(block, "detach"):  # a tensor, of any type and on any device
        block = block.detach().double().cpu()
    return to_numpy(block).astype(np.float64, copy=False)


def _shares(block: Floats, targets: Ints, start: int, *, given: bool) -> tuple[Floats, Floats]:
    """Probabilities that sum to 1 in each row, and the log loss of the target."""
    rows = np.arange(len(block))
    if given:
        sums = block.sum(axis=1, keepdims=True)
        wrong = (block < 0).any(axis=1) | ~(np.abs(sums[:, 0] - 1.0) <= SUM_TOLERANCE)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"row {start + row} is not a distribution: its values add up to {sums[row, 0]:g}",
                hint="give logits, or probabilities that are not negative and add up to 1 in each row",
            )
        shares = block / sums
        with np.errstate(divide="ignore"):
            return shares, -np.log(shares[rows, targets])
    largest = block.max(axis=1, keepdims=True)
    if not np.isfinite(largest).all():
        row = int(np.argmax(~np.isfinite(largest)))
        raise NotFiniteError(
            f"row {start + row} has no softmax: its largest score is {largest[row, 0]}",
            hint="probabilities need finite scores; -inf may exclude a class",
        )
    shifted = block - largest
    shares = np.exp(shifted)
    sums = shares.sum(axis=1, keepdims=True)
    return shares / sums, np.log(sums[:, 0]) - shifted[rows, targets]


def calibrate(
    columns: ProbabilityColumns, classified: ClassificationOutput, users: Ids | None, system: str, config: StatsConfig
) -> PlaceCalibration:
    """Log loss and Brier score of all units, and calibration at every cutoff; users are resampled where known."""
    config = replace(config, clusters=users)
    ids = classified.ranking.unit_ids
    impossible = int(np.count_nonzero(np.isinf(columns.nll)))
    options: dict[str, Any] = {"better": Direction.DOWN, "config": config}
    result = result_from_values(system, ids, {"Brier": columns.brier}, bounds=(0.0, 2.0), unit="score", **options)
    if not impossible:
        loss = result_from_values(system, ids, {"NLL": columns.nll}, bounds=(0.0, inf), unit="nats", **options)
        result = replace(
            loss, estimates={**loss.estimates, **result.estimates}, per_unit={**loss.per_unit, **result.per_unit}
        )
    ranking = classified.ranking.ordered(config.ties)
    curves = {
        k: reliability(
            confidence,
            HitRate(k).per_unit(ranking),
            clusters=users,
            confidence_level=config.confidence_level,
            seed=config.seed,
        )
        for k, confidence in columns.top.items()
        if k < classified.classes
    }
    return PlaceCalibration(result, curves, columns.from_softmax, impossible)
