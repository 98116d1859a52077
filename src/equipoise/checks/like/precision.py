"""Average precision as some libraries have it: over the hits, or with equal scores as one threshold."""

from __future__ import annotations

from math import comb

import numpy as np

from equipoise.evidence.placement import sums_within_units, tie_groups
from equipoise.evidence.ranking import Ranking
from equipoise.metrics import functions
from equipoise.metrics.expectation import harmonic_numbers
from equipoise.types import Floats


def average_precision_of_hits(ranking: Ranking, k: int | None) -> Floats:
    """Precision at each relevant rank within ``k``, averaged over those alone; 0 where there is none.

    With ties it is the expectation over the orders of equal scores: the group that reaches over the cutoff
    brings a random number of hits, so the ratio is averaged over that number.

    >>> ranking = Ranking.from_lists([[1, 2, 3, 4]], [[1, 4, 9]])
    >>> average_precision_of_hits(ranking, 4)
    array([0.75])
    """
    last = int(ranking.depth.max(initial=1)) if k is None else k
    total = functions.average_precision(ranking, k, capped=False) * np.maximum(ranking.counts, 1)
    hits = functions.found_within(ranking, max(last, 1))
    values = np.divide(total, hits, out=np.where(np.isnan(total), np.nan, 0.0), where=hits > 0)
    if ranking.has_ties:
        for unit in _cut_within_ties(ranking, last):
            values[unit] = _over_hits(ranking, unit, last)
    return values


def _cut_within_ties(ranking: Ranking, k: int) -> list[int]:
    """Units with a relevant item in a group of equals that reaches over the cutoff."""
    reaches = (ranking.above < k) & (ranking.tied > 0) & (ranking.above + np.minimum(ranking.tied, k) >= k)
    return np.unique(ranking.unit_of[reaches]).tolist()


def _over_hits(ranking: Ranking, unit: int, k: int) -> float:
    """The expectation of one unit, summed over how many hits the cut group brings."""
    span = slice(int(ranking.starts[unit]), int(ranking.starts[unit + 1]))
    above, size = ranking.above[span], ranking.tied[span] + 1
    cut = (above < k) & (above + np.minimum(size, k + 1) > k)
    start, members, relevant = int(above[cut][0]), int(size[cut][0]), int(cut.sum())
    before = int((above < start).sum())
    whole = ranking.take(np.array([unit]))
    settled = float(functions.average_precision(whole, max(start, 1), capped=False)[0]) * len(above)
    settled = settled if start else 0.0
    room = k - start
    harmonic = harmonic_numbers(k)
    reach = harmonic[k] - harmonic[start]
    expected = 0.0
    for hits in range(max(0, relevant - (members - room)), min(relevant, room) + 1):
        chance = comb(room, hits) * comb(members - room, relevant - hits) / comb(members, relevant)
        slope = (hits - 1) / max(room - 1, 1)
        gained = hits * ((before + 1) * reach + slope * (room - (start + 1) * reach)) / room
        expected += chance * (settled + gained) / (before + hits) if before + hits else 0.0
    return expected


def average_precision_at_thresholds(ranking: Ranking, *, over_hits: bool) -> Floats:
    """Precision at the end of each relevant item's group of equals, averaged over R or over those retrieved.

    >>> ranking = Ranking.from_runs({"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5}})
    >>> average_precision_at_thresholds(ranking, over_hits=True)
    array([0.5])
    """
    before, relevant = tie_groups(ranking)
    found = ranking.retrieved
    ends = np.where(found, ranking.above, 0) + ranking.tied + 1.0
    total = sums_within_units(np.where(found, (before + relevant) / ends, 0.0), ranking.starts)
    hits = sums_within_units(found.astype(np.float64), ranking.starts)
    return total / np.maximum(hits if over_hits else ranking.counts, 1)
