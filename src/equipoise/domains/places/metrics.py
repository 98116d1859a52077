"""Next-location metrics: accuracy at every k, rank distribution, confusion matrix, and calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError, NotFiniteError, UndefinedError
from equipoise.evidence.base import to_numpy
from equipoise.evidence.kernels.dispatch import candidate_columns
from equipoise.io.arrays import MappedPages
from equipoise.metrics.labels import ClassF1
from equipoise.metrics.ranking import NDCG, HitRate, ReciprocalRank
from equipoise.stats.calibration_curve import CalibrationCurve, reliability
from equipoise.stats.estimate import result_from_values
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.evidence.labels import Labels
    from equipoise.evidence.ranking import Ranking
    from equipoise.metrics.base import Metric
    from equipoise.stats.result import Result
    from equipoise.tasks.classification import ClassificationOutput
    from equipoise.types import Floats, Ids, Ints


# Next-location metrics and their common names.

CUTOFFS = (1, 3, 5, 10)
NDCG_AT = 10


def default_cutoffs(limit: int) -> tuple[int, ...]:
    """The default cutoffs of the accuracy up to ``limit``: beyond the number of classes Acc@k is always 1.

    >>> default_cutoffs(7)
    (1, 3, 5)
    """
    return tuple(k for k in CUTOFFS if k <= limit)


def omitted_cutoffs_note(limit: int, noun: str) -> tuple[str, ...]:
    """A note on the default cutoffs that ``default_cutoffs`` leaves out, or nothing.

    >>> omitted_cutoffs_note(7, "there are 7 classes")
    ('Acc@10 was left out: there are 7 classes',)
    """
    omitted = [f"Acc@{k}" for k in CUTOFFS if k > limit]
    verb = "was" if len(omitted) == 1 else "were"
    return (f"{', '.join(omitted)} {verb} left out: {noun}",) if omitted else ()


def ranking_metrics(ks: Sequence[int]) -> dict[str, Metric[Any]]:
    """What is measured on ranks, by the names of the field.

    >>> [metric.name for metric in ranking_metrics([1, 5]).values()]
    ['HR@1', 'HR@5', 'MRR', 'nDCG@10']
    """
    hits: dict[str, Metric[Any]] = {f"acc@{k}": HitRate(k) for k in ks}
    return hits | {"mrr": ReciprocalRank(), "ndcg": NDCG(NDCG_AT)}


def label_metrics() -> dict[str, Metric[Any]]:
    """What is measured on the top-1 class; f1 alone is the weighted one, as the field has it."""
    return {"f1": ClassF1("weighted"), "f1_macro": ClassF1("macro"), "f1_micro": ClassF1("micro")}


EDGES = (1, 2, 3, 5, 10, 20, 50, 100)
"""The upper rank of each histogram bin; the last bin holds all larger ranks."""


def rank_distribution(ranking: Ranking) -> Floats:
    """The share of units whose target has rank 1, 2, ... up to the number of candidates.

    A tied target has each rank of its tie group with equal probability. A unit whose target was
    not retrieved has no rank, so that shares may add up to less than 1.
    """
    if not len(ranking):
        raise UndefinedError("there are no visits, so there are no ranks")
    if (ranking.counts != 1).any():
        raise UndefinedError(
            "the rank distribution needs one target per visit",
            hint="visits with none or several have no such rank",
        )
    retrieved = ranking.retrieved
    above, size = ranking.above[retrieved], ranking.tied[retrieved] + 1
    deepest = int(ranking.candidates.max())
    weight = 1.0 / size
    begins = np.bincount(above, weights=weight, minlength=deepest + 1)
    ends = np.bincount(above + size, weights=weight, minlength=deepest + 1)
    shares: Floats = np.cumsum(begins - ends)[:deepest] / len(ranking)
    return np.clip(shares, 0.0, 1.0)


def accuracy_curve(ranking: Ranking, deepest: int = 50) -> Floats:
    """Acc@1, Acc@2, ... up to a cutoff, or to the number of candidates if it is smaller."""
    return np.minimum(np.cumsum(rank_distribution(ranking)), 1.0)[:deepest]


@dataclass(frozen=True, eq=False)
class RankHistogram:
    """The share of units in classes of ranks, such as 4-5; ``lost`` is that of units with a lower or unknown rank."""

    names: tuple[str, ...]
    shares: Floats
    lost: float = 0.0


def rank_histogram(ranking: Ranking, edges: Sequence[int] = EDGES, *, deepest: int | None = None) -> RankHistogram:
    """The shares of ranks up to ``deepest`` in classes that widen, since ranks have a long tail."""
    shares = rank_distribution(ranking)[:deepest]
    ends = [edge for edge in edges if edge < len(shares)] + [len(shares)]
    starts = [0, *ends[:-1]]
    names = tuple(
        str(end) if end == start + 1 else f"{start + 1}-{end}" for start, end in zip(starts, ends, strict=True)
    )
    counted = np.add.reduceat(shares, starts)
    is_partial = deepest is not None or not ranking.complete
    return RankHistogram(names, counted, max(0.0, 1.0 - float(counted.sum())) if is_partial else 0.0)


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """Counts of units: one row per true class, one column per predicted class; the last column is all other classes.

    ``other`` counts the units whose true class is none of these.
    """

    classes: tuple[str, ...]
    counts: Ints
    other: int


def confusion_counts(labels: Labels, most: int = 10) -> ConfusionMatrix:
    """The confusion matrix of the classes with the most units; of ties, the lower code is first."""
    support = np.bincount(labels.true, minlength=len(labels.classes))
    chosen = np.argsort(-support, kind="stable")[:most]
    chosen = chosen[support[chosen] > 0]
    column = np.full(len(labels.classes), len(chosen), dtype=np.int64)
    column[chosen] = np.arange(len(chosen))
    row, guess = column[labels.true], column[labels.predicted]
    inside = row < len(chosen)
    width = len(chosen) + 1
    cells = np.bincount(row[inside] * width + guess[inside], minlength=len(chosen) * width)
    names = tuple(str(labels.classes[code]) for code in chosen)
    return ConfusionMatrix(names, cells.reshape(len(chosen), width), int((~inside).sum()))


# Equal weight per user: means per user, and their mean.


def user_means(columns: Mapping[str, Floats | None], users: Ids) -> tuple[Ids, dict[str, Floats]]:
    """The users, each once, and the mean of each column over the rows of each user.

    >>> names, means = user_means({"hit": np.array([1.0, 0.0, 1.0])}, np.array(["b", "a", "b"]))
    >>> names.tolist(), means["hit"].tolist()
    (['a', 'b'], [0.0, 1.0])
    """
    names, codes, sizes = np.unique(users, return_inverse=True, return_counts=True)
    codes = codes.reshape(-1)
    return names, {
        name: np.bincount(codes, weights=column, minlength=len(names)) / sizes
        for name, column in columns.items()
        if column is not None
    }


# Frequency of a place in training: never, seldom, often.

FREQUENCY_EDGES = (0, 1, 10, 100, 1000)


def unseen_classes(unseen: Any, counts: Ints | None) -> Ints:
    """The classes that training never saw: those named, and those counted zero times.

    >>> unseen_classes(1, np.array([0, 5, 3, 0])).tolist()
    [0, 1, 3]
    """
    codes: NDArray[Any] = np.atleast_1d(to_numpy([] if unseen is None else unseen)).astype(np.int64)
    return codes if counts is None else np.union1d(codes, np.flatnonzero(counts == 0))


def frequency_slices(counts: Ints) -> Ids:
    """A class of frequency for each count.

    >>> frequency_slices(np.array([0, 7, 2500])).tolist()
    ['0', '1 to 9', '1000 or more']
    """
    names = ["0", *(f"{low} to {high - 1}" for low, high in pairwise(FREQUENCY_EDGES[1:]))]
    names.append(f"{FREQUENCY_EDGES[-1]} or more")
    return np.array(names, dtype=object)[np.searchsorted(FREQUENCY_EDGES, counts, side="right") - 1]


# Calibration of next-place models: log loss, Brier score and calibration error, of the first place and of the first k.

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
    """Whether the first rows are distributions: no value below 0, and sums of 1."""
    block = _float_block(scores, 0, max(1, BLOCK_SCORES // int(scores.shape[1])))
    return bool((block >= 0).all() and (np.abs(block.sum(axis=1) - 1.0) <= SUM_TOLERANCE).all())


def probability_columns(
    scores: Any, targets: Ints, *, padding: Any = None, ks: Sequence[int] = (1,), probabilities: bool | None = None
) -> ProbabilityColumns:
    """The columns of a matrix of logits or probabilities, one block of rows at a time.

    ``probabilities`` tells which they are; by default this is decided by the first rows. Padding columns have no
    probability. A score of -inf has probability 0; NaN and inf are errors.
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
        share, log_loss = _shares(block, indices[part], start, are_probabilities=given)
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


def _shares(block: Floats, targets: Ints, start: int, *, are_probabilities: bool) -> tuple[Floats, Floats]:
    """Probabilities that sum to 1 in each row, and the log loss of the target."""
    rows = np.arange(len(block))
    if are_probabilities:
        sums = block.sum(axis=1, keepdims=True)
        invalid = (block < 0).any(axis=1) | ~(np.abs(sums[:, 0] - 1.0) <= SUM_TOLERANCE)
        if invalid.any():
            row = int(np.argmax(invalid))
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
        k: reliability(confidence, HitRate(k).per_unit(ranking), clusters=users, config=config)
        for k, confidence in columns.top.items()
        if k < classified.classes
    }
    return PlaceCalibration(result, curves, columns.from_softmax, impossible)
