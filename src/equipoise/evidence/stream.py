"""Evidence that arrives in batches, from one process or from many."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from equipoise.errors import DuplicateError, InputError
from equipoise.evidence.ranking import Ranking


@dataclass
class RankingStream:
    """Collects rankings batch by batch; any split and any order of merging give the same bytes.

    Only counts are kept, never the scores. Units are numbered in the order they come unless they
    bring ids; streams that will be merged need ids, and ``compute`` puts the units in their order.

    >>> stream = RankingStream()
    >>> stream.update(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
    >>> stream.compute().ranks
    array([1., 2.])
    """

    exclude: Any = None
    parts: list[Ranking] = field(default_factory=list)

    def update(self, scores: Any, targets: Any, *, unit_ids: Any = None) -> None:
        """Add a batch of scores (units x candidates) with the target column of each unit."""
        if len(scores) == 0:
            return
        if unit_ids is None:
            unit_ids = np.arange(len(self), len(self) + len(scores))
        self.parts.append(Ranking.from_scores(scores, targets, exclude=self.exclude, unit_ids=unit_ids))

    def merge(self, other: RankingStream) -> None:
        """Add all that another stream has seen."""
        self.parts.extend(other.parts)

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def compute(self) -> Ranking:
        """The ranking of all units seen so far, ordered by unit id."""
        if not self.parts:
            raise InputError("the stream has seen no unit yet", hint="call update first")
        kinds = {part.unit_ids.dtype.kind for part in self.parts}
        if len(kinds) > 1:
            raise InputError(
                "some batches came with names as unit ids and some with numbers or none",
                hint="give unit_ids of one kind to every update",
            )
        whole = Ranking.concatenated(self.parts)
        order = np.argsort(whole.unit_ids, kind="stable")
        ids = whole.unit_ids[order]
        twice = np.flatnonzero(ids[1:] == ids[:-1])
        if len(twice):
            raise DuplicateError(
                f"unit {ids[twice[0]]} came twice", hint="give unit_ids to update when streams are merged"
            )
        return whole.take(order)
