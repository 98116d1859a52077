"""From a matrix of scores to a ranking and to labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise.evidence.columns import unique_ids
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.tasks.classify.guard import checked_scores, class_codes
from equipoise.tasks.classify.landing import landed
from equipoise.types import Bools, Floats, Ints


@dataclass(frozen=True)
class Classified:
    """What a matrix of scores says of its units.

    ``ranking`` holds where the target of each unit landed among the ``classes`` candidates, ``labels`` which
    class came first. ``answerable`` marks units whose target was seen in training, ``confidence`` is the
    softmax of the first class and ``target_probability`` that of the target, where they were asked for.
    """

    ranking: Ranking
    labels: Labels
    answerable: Bools
    classes: int
    confidence: Floats | None = None
    target_probability: Floats | None = None

    def __len__(self) -> int:
        return len(self.ranking)

    @classmethod
    def joined(cls, parts: Sequence[Classified]) -> Classified:
        """The rows of all parts, one part after another."""
        labels = [part.labels for part in parts]
        shares = [
            None if any(each is None for each in column) else np.concatenate(column)
            for column in zip(*((part.confidence, part.target_probability) for part in parts), strict=True)
        ]
        return cls(
            ranking=Ranking.concatenated([part.ranking for part in parts]),
            labels=Labels(
                np.concatenate([each.unit_ids for each in labels]),
                np.concatenate([each.true for each in labels]),
                np.concatenate([each.predicted for each in labels]),
                labels[0].classes,
                np.concatenate([part.tied_top for part in parts]),
            ),
            answerable=np.concatenate([part.answerable for part in parts]),
            classes=parts[0].classes,
            confidence=shares[0],
            target_probability=shares[1],
        )

    @property
    def tied_top(self) -> Bools:
        """Which units have several classes with the largest score; the lowest code was predicted there."""
        tied = self.labels.tied_top
        return np.zeros(len(self), dtype=bool) if tied is None else tied

    def take(self, index: Ints) -> Classified:
        """The units at ``index``, in that order."""
        shares = (
            None if each is None else each[index] for each in (self.confidence, self.target_probability)
        )
        return Classified(
            self.ranking.take(index),
            self.labels.take(index),
            self.answerable[index],
            self.classes,
            *shares,
        )

    def with_ids(self, unit_ids: Any) -> Classified:
        """The same units under other ids."""
        ids = unique_ids(unit_ids, len(self))
        return replace(
            self, ranking=replace(self.ranking, unit_ids=ids), labels=replace(self.labels, unit_ids=ids)
        )


def classify(
    scores: Any,
    targets: Any,
    *,
    padding: Any = None,
    unseen: Any = None,
    unit_ids: Any = None,
    ks: Iterable[int] = (),
    block_bytes: int | None = None,
    probabilities: bool = False,
    compiled: bool | None = None,
) -> Classified:
    """Where the target of each row landed and which class came first, from one read of the scores.

    ``scores`` is a (units, classes) matrix of logits or probabilities: numpy, also memory-mapped and larger
    than memory, or torch on any device, where it stays. ``targets`` is a column a row. Columns in ``padding``
    are no classes; targets in ``unseen`` were not seen in training and are marked as not answerable. ``ks``
    are cutoffs to be refused if there are fewer classes. Equal scores are counted, not ordered. ``compiled``
    asks for numba's kernel in host memory, which takes little more time than reading. It is compiled once, in
    seconds, and loaded in one; so by itself only the largest matrices use it (2^31 scores), and those that
    come after. Its threads share large matrices, as many as there are cores or as OMP_NUM_THREADS says. The
    counts are the same.

    >>> found = classify(np.array([[9.0, 1.0, 2.0], [9.0, 3.0, 3.0]]), [2, 2], padding=0)
    >>> found.ranking.above.tolist(), found.ranking.tied.tolist(), found.labels.predicted.tolist()
    ([0, 0], [0, 1], [2, 1])
    """
    scores = checked_scores(scores)
    width = int(scores.shape[1])
    hidden = class_codes(unseen, width, "unseen")
    found = landed(
        scores,
        targets,
        padding=padding,
        ks=ks,
        block_bytes=block_bytes,
        probabilities=probabilities,
        compiled=compiled,
    )
    rows, placed = len(found.true), found.placed
    ranking = found.ranking(None if unit_ids is None else unique_ids(unit_ids, rows))
    return Classified(
        ranking=ranking,
        labels=Labels(ranking.unit_ids, found.true, found.predicted, np.arange(width), placed.tied_top),
        answerable=~np.isin(found.true, hidden) if len(hidden) else np.ones(rows, dtype=bool),
        classes=found.classes,
        confidence=placed.confidence,
        target_probability=placed.target_probability,
    )
