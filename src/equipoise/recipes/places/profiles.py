"""More than one figure: accuracy over every k, the ranks of the right places, and who is taken for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.types import Floats, Ints

EDGES = (1, 2, 3, 5, 10, 20, 50, 100)
"""The last ranks of the classes that ranks are counted in; what lies beyond is a class of its own."""


def rank_shares(ranking: Ranking) -> Floats:
    """The share of units whose right place has the rank 1, 2, ... up to the number of candidates.

    A place that is tied with others has each of their ranks equally often. A unit whose right place was
    not retrieved has no rank, so that shares may add up to less than 1.

    >>> rank_shares(Ranking.from_ranks([1, 3, 3, 4], candidates=4)).tolist()
    [0.25, 0.0, 0.5, 0.25]
    """
    if not len(ranking):
        raise UndefinedError("there are no units, so there are no ranks")
    if (ranking.counts != 1).any():
        raise UndefinedError(
            "the shares of ranks are those of the one right place of each unit",
            hint="units with none or several have no such rank",
        )
    found = ranking.retrieved
    above, size = ranking.above[found], ranking.tied[found] + 1
    deepest = int(ranking.candidates.max())
    weight = 1.0 / size
    begins = np.bincount(above, weights=weight, minlength=deepest + 1)
    ends = np.bincount(above + size, weights=weight, minlength=deepest + 1)
    shares: Floats = np.cumsum(begins - ends)[:deepest] / len(ranking)
    return np.clip(shares, 0.0, 1.0)


def accuracy_curve(ranking: Ranking, deepest: int = 50) -> Floats:
    """Acc@1, Acc@2, ... up to a cutoff, or to the number of candidates where there are fewer.

    >>> accuracy_curve(Ranking.from_ranks([1, 3, 3, 4], candidates=9), 4).tolist()
    [0.25, 0.25, 0.75, 1.0]
    """
    if deepest < 1:
        raise ParameterError(f"the deepest cutoff is {deepest}", hint="ranks start at 1")
    return np.minimum(np.cumsum(rank_shares(ranking)), 1.0)[:deepest]


@dataclass(frozen=True, eq=False)
class RankClasses:
    """The share of units in classes of ranks, such as 4-5; ``lost`` is that of units without a rank."""

    names: tuple[str, ...]
    shares: Floats
    lost: float = 0.0


def rank_classes(ranking: Ranking, edges: Sequence[int] = EDGES) -> RankClasses:
    """The shares of ranks in classes that widen, since ranks have a long tail.

    >>> found = rank_classes(Ranking.from_ranks([1, 3, 30], candidates=40), edges=(1, 5))
    >>> found.names, found.shares.round(2).tolist()
    (('1', '2-5', '6-40'), [0.33, 0.33, 0.33])
    """
    if list(edges) != sorted(set(edges)) or not edges or edges[0] < 1:
        raise ParameterError(f"the classes of ranks end at {list(edges)}", hint="give growing ranks from 1")
    shares = rank_shares(ranking)
    ends = [edge for edge in edges if edge < len(shares)] + [len(shares)]
    starts = [0, *ends[:-1]]
    names = tuple(
        str(end) if end == start + 1 else f"{start + 1}-{end}"
        for start, end in zip(starts, ends, strict=True)
    )
    counted = np.add.reduceat(shares, starts)
    return RankClasses(names, counted, max(0.0, 1.0 - float(counted.sum())) if not ranking.complete else 0.0)


@dataclass(frozen=True, eq=False)
class Confusion:
    """Counts of units: a row a true class, a column a predicted one, the last column all other classes.

    ``elsewhere`` counts the units whose true class is none of these.
    """

    classes: tuple[str, ...]
    counts: Ints
    elsewhere: int

    @property
    def totals(self) -> Ints:
        """The units of each true class."""
        return self.counts.sum(axis=1)


def confusion(labels: Labels, most: int = 10) -> Confusion:
    """Who is taken for whom among the classes with the most units; of equals, the lower code goes first.

    >>> found = confusion(Labels.of(["a", "a", "b", "c"], ["a", "b", "c", "c"]), most=2)
    >>> found.classes, found.counts.tolist(), found.elsewhere
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
    return Confusion(names, cells.reshape(len(chosen), width), int((~inside).sum()))
