"""The ranking metric that gives credit for retrieved items similar to the relevant ones (MaxOntSim)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import UndefinedError
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.segments import multiplicities
from equipoise.metrics.base import Metric
from equipoise.metrics.ranking import RankingMetric, check_not_filtered, first_hit_within

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints


@dataclass(frozen=True)
class MaxSimilarity(RankingMetric):
    """1 if a relevant term is in the top k, else the largest similarity of an expected and a retrieved one.

    It needs evidence that carries the similarity of what else was retrieved (``Ranking.near``).
    """

    k: int | None = None

    symbol = "MaxOntSim"
    title = "maximum ontology similarity"
    aliases = ("max_ont_sim", "MaxOntologySimilarity")
    needs_cutoff = True
    formula = "max over expected e and retrieved r within k of sim(e, r); 1 for a relevant one"

    def per_unit(self, evidence: Ranking) -> Floats:
        """1 if a relevant item ranks within ``k``, else the largest similarity of a near item that does."""
        if evidence.near is None:
            raise UndefinedError(
                "MaxOntSim needs the similarity of the other retrieved items, and this evidence has none",
                hint="give Ranking.near, or build the ranking with an ontology",
            )
        check_not_filtered(evidence)
        near, k = evidence.near, self.k or 1
        depth = int(near.depth.max(initial=0))
        if k > depth and int(evidence.depth.max(initial=0)) > depth:
            raise UndefinedError(
                f"MaxOntSim@{k} needs the similarity of the first {k} items; that of the first {depth} is known",
                hint=f"choose a cutoff of at most {depth}, or measure again with this one",
            )
        value = np.concatenate([np.ones(len(evidence.above)), near.gain])
        unit = np.concatenate([evidence.unit_of, near.unit_of])
        if not (evidence.has_ties or near.has_ties):
            within = np.concatenate([evidence.above, near.above]) < k
            best = np.zeros(len(evidence))
            np.maximum.at(best, unit[within], value[within])
        else:
            best = _expected_largest(evidence, near, k, value, unit)
        best[evidence.counts == 0] = np.nan
        return best

    def chance(self, evidence: Ranking, rng: np.random.Generator) -> float:
        """The credit of random candidates if the evidence has it, else the mean over shuffled evidence.

        Shuffled evidence has similarities of retrieved items only; those of all other candidates count as 0.
        """
        near, k = evidence.random_near, self.k or 1
        if near is not None and k <= near.shape[1] and np.isfinite(near[:, k - 1]).any():
            return float(np.nanmean(near[:, k - 1]))
        return Metric.chance(self, evidence, rng)


METRICS = (MaxSimilarity,)


def _expected_largest(ranking: Ranking, near: Ranking, k: int, value: Floats, unit: Ints) -> Floats:
    """The sum over the levels of similarity of the chance that one at least so large is in the top.

    The items of a unit are taken most similar first; after each, the probability depends on the best tie
    group so far and on how many of the items are in it.
    """
    above = np.concatenate([np.where(part.retrieved, part.above, part.depth[part.unit_of]) for part in (ranking, near)])
    size = np.concatenate([ranking.tied, near.tied]) + 1
    copies = np.concatenate([multiplicities(ranking), multiplicities(near)])
    order = np.lexsort((above, -value, unit))
    unit, value, above, size, copies = unit[order], value[order], above[order], size[order], copies[order]
    # The values of later units are below those of earlier units, so one running minimum is enough for all.
    offset = (len(ranking) - unit) * (int(above.max(initial=0)) + 1)
    first = np.minimum.accumulate(above + offset) - offset
    opens = np.ones(len(unit), dtype=bool)
    opens[1:] = (unit[1:] != unit[:-1]) | (first[1:] != first[:-1])
    group_start = np.flatnonzero(opens)
    group_start = np.repeat(group_start, np.diff(np.append(group_start, len(unit))))
    inside = np.cumsum(np.where(above == first, copies, 0))
    members = inside - inside[group_start] + copies[group_start]
    chance = first_hit_within(first, size[group_start], members, np.minimum(k, ranking.depth[unit]))
    gained = chance.copy()
    gained[1:] -= np.where(unit[1:] == unit[:-1], chance[:-1], 0.0)
    best: Floats = np.bincount(unit, weights=value * gained, minlength=len(ranking)).astype(np.float64)
    return best
