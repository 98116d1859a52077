"""Next-location metrics: accuracy at every k, rank distribution, and confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.base import to_numpy
from equipoise.metrics.labels import ClassF1
from equipoise.metrics.ranking import NDCG, HitRate, ReciprocalRank

if TYPE_CHECKING:
    from equipoise.evidence.labels import Labels
    from equipoise.evidence.ranking import Ranking
    from equipoise.metrics.base import Metric
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


def to_percent(fractions: Mapping[str, float]) -> dict[str, float]:
    """The same scores in percent.

    >>> to_percent({"acc@1": 0.25})
    {'acc@1': 25.0}
    """
    return {name: 100.0 * value for name, value in fractions.items()}


EDGES = (1, 2, 3, 5, 10, 20, 50, 100)
"""The upper rank of each histogram bin; the last bin holds all larger ranks."""


def rank_distribution(ranking: Ranking) -> Floats:
    """The share of units whose target has rank 1, 2, ... up to the number of candidates.

    A tied target has each rank of its tie group with equal probability. A unit whose target was
    not retrieved has no rank, so that shares may add up to less than 1.

    >>> from equipoise.evidence.ranking import Ranking
    >>> rank_distribution(Ranking.from_ranks([1, 3, 3, 4], candidates=4)).tolist()
    [0.25, 0.0, 0.5, 0.25]
    """
    if not len(ranking):
        raise UndefinedError("there are no units, so there are no ranks")
    if (ranking.counts != 1).any():
        raise UndefinedError(
            "the rank distribution needs one target per unit",
            hint="units with none or several have no such rank",
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
    """Acc@1, Acc@2, ... up to a cutoff, or to the number of candidates where there are fewer.

    >>> from equipoise.evidence.ranking import Ranking
    >>> accuracy_curve(Ranking.from_ranks([1, 3, 3, 4], candidates=9), 4).tolist()
    [0.25, 0.25, 0.75, 1.0]
    """
    if deepest < 1:
        raise ParameterError(f"the deepest cutoff is {deepest}", hint="ranks start at 1")
    return np.minimum(np.cumsum(rank_distribution(ranking)), 1.0)[:deepest]


@dataclass(frozen=True, eq=False)
class RankHistogram:
    """The share of units in classes of ranks, such as 4-5; ``lost`` is that of units without a rank."""

    names: tuple[str, ...]
    shares: Floats
    lost: float = 0.0


def rank_histogram(ranking: Ranking, edges: Sequence[int] = EDGES) -> RankHistogram:
    """The shares of ranks in classes that widen, since ranks have a long tail.

    >>> from equipoise.evidence.ranking import Ranking
    >>> found = rank_histogram(Ranking.from_ranks([1, 3, 30], candidates=40), edges=(1, 5))
    >>> found.names, found.shares.round(2).tolist()
    (('1', '2-5', '6-40'), [0.33, 0.33, 0.33])
    """
    if list(edges) != sorted(set(edges)) or not edges or edges[0] < 1:
        raise ParameterError(f"the classes of ranks end at {list(edges)}", hint="give growing ranks from 1")
    shares = rank_distribution(ranking)
    ends = [edge for edge in edges if edge < len(shares)] + [len(shares)]
    starts = [0, *ends[:-1]]
    names = tuple(
        str(end) if end == start + 1 else f"{start + 1}-{end}" for start, end in zip(starts, ends, strict=True)
    )
    counted = np.add.reduceat(shares, starts)
    return RankHistogram(names, counted, max(0.0, 1.0 - float(counted.sum())) if not ranking.complete else 0.0)


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """Counts of units: one row per true class, one column per predicted class; the last column is all other classes.

    ``other`` counts the units whose true class is none of these.
    """

    classes: tuple[str, ...]
    counts: Ints
    other: int

    @property
    def totals(self) -> Ints:
        """The units of each true class."""
        return self.counts.sum(axis=1)


def confusion_counts(labels: Labels, most: int = 10) -> ConfusionMatrix:
    """The confusion matrix of the classes with the most units; of ties, the lower code is first.

    >>> from equipoise.evidence.labels import Labels
    >>> found = confusion_counts(Labels.of(["a", "a", "b", "c"], ["a", "b", "c", "c"]), most=2)
    >>> found.classes, found.counts.tolist(), found.other
    (('a', 'b'), [[1, 1, 0], [0, 0, 1]], 1)
    """
    if most < 1:
        raise ParameterError(f"{most} classes make no table", hint="give at least 1")
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


# Equal weight per user: the means of users, and their mean.


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
