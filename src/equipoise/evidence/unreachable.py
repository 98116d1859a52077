"""Units that can only be missed: what they ask for is no candidate at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from equipoise.evidence.placement import NEVER, starts_of
from equipoise.evidence.ranking import Ranking


def with_misses(ranking: Ranking) -> Ranking:
    """The same ranking, in which a unit without relevant items is a miss instead of undefined.

    Such a unit gets one relevant item, a candidate beyond all others that was not retrieved, and an observed
    depth of 0. So it scores 0 on every ranking metric, and 0 by chance as well: no order could find it.

    >>> ranking = with_misses(Ranking.from_scores(np.array([[0.9, 0.1], [0.9, 0.1]]), [[0], []]))
    >>> ranking.ranks
    array([ 1., inf])
    """
    empty = ranking.counts == 0
    if not empty.any():
        return ranking
    at = ranking.starts[:-1][empty]
    return replace(
        ranking,
        starts=starts_of(np.maximum(ranking.counts, 1)),
        gain=np.insert(ranking.gain, at, 1.0),
        above=np.insert(ranking.above, at, NEVER),
        tied=np.insert(ranking.tied, at, 0),
        before=np.insert(ranking.before, at, 0),
        candidates=ranking.candidates + empty,
        depth=np.where(empty, 0, ranking.depth),
    )
