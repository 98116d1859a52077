"""Systems over several data sets: mean score and mean rank, with a hierarchical bootstrap over data sets and units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.metrics.parser import parse_metrics
from equipoise.stats.bootstrap import id_order
from equipoise.stats.corpus_intervals import value_or_nan
from equipoise.types import Direction, Floats

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.bench.results import DataComparison

POOL = 300
"""Resamples per data set of a metric that is not a mean over units; each bootstrap repetition picks one of them."""
_STREAM = 23


@dataclass(frozen=True, slots=True)
class AggregateRow:
    """One system over all data sets. Intervals are percentile intervals of the hierarchical bootstrap.

    ``rank_range`` is the interval of the rank by mean score. ``borda`` is the number of systems that it beats, summed
    over data sets (a tie counts one half). ``best_on`` counts the data sets on which it has the best score.
    """

    system: str
    mean_score: float
    score_interval: tuple[float, float]
    rank_range: tuple[int, int]
    mean_rank: float
    rank_interval: tuple[float, float]
    borda: float
    best_on: int


@dataclass(frozen=True)
class Aggregate:
    """The systems that were evaluated on every data set, best mean score first.

    ``significant[a][b]`` says whether the mean score of a is significantly above that of b: the interval of the
    difference, resampled over data sets and units, excludes 0.
    """

    rows: tuple[AggregateRow, ...]
    datasets: tuple[str, ...]
    incomplete: tuple[str, ...]
    significant: dict[str, dict[str, bool]]
    confidence_level: float

    @property
    def leader(self) -> str:
        """The system with the largest mean score."""
        return self.rows[0].system

    @property
    def tied_with_leader(self) -> tuple[str, ...]:
        """The systems that are not significantly worse than the leader."""
        return tuple(row.system for row in self.rows[1:] if not self.significant[self.leader][row.system])


def aggregate(datasets: Sequence[DataComparison], config: StatsConfig) -> Aggregate | None:
    """The aggregate over two or more data sets; None if there is one, or if no two systems have all."""
    names = [
        system.name
        for system in datasets[0].systems
        if all(system.name in {other.name for other in each.systems} for each in datasets)
    ]
    everyone = dict.fromkeys(system.name for each in datasets for system in each.systems)
    if len(datasets) < 2 or len(names) < 2:
        return None
    scores = np.array([[each.score(name) for name in names] for each in datasets])
    ranks = np.array([_ranks(row) for row in scores])
    means, rank_means = resample(datasets, names, config)
    tail = 100 * (1 - config.confidence_level) / 2
    low, high = np.nanpercentile(means, [tail, 100 - tail], axis=0)
    rank_low, rank_high = np.nanpercentile(rank_means, [tail, 100 - tail], axis=0)
    positions = 1 + (means[:, None, :] > means[:, :, None]).sum(axis=2)
    first, last = np.percentile(positions, [tail, 100 - tail], axis=0, method="nearest")
    rows = [
        AggregateRow(
            name,
            float(scores[:, place].mean()),
            (float(low[place]), float(high[place])),
            (int(first[place]), int(last[place])),
            float(ranks[:, place].mean()),
            (float(rank_low[place]), float(rank_high[place])),
            float((len(names) - ranks[:, place]).sum()),
            int((ranks[:, place] == ranks.min(axis=1)).sum()),
        )
        for place, name in enumerate(names)
    ]
    significant = {
        a: {b: bool(np.nanpercentile(means[:, i] - means[:, j], tail) > 0) for j, b in enumerate(names)}
        for i, a in enumerate(names)
    }
    rows.sort(key=lambda row: -row.mean_score)
    return Aggregate(
        tuple(rows),
        tuple(each.data.name for each in datasets),
        tuple(name for name in everyone if name not in names),
        significant,
        config.confidence_level,
    )


def resample(datasets: Sequence[DataComparison], names: Sequence[str], config: StatsConfig) -> tuple[Floats, Floats]:
    """Mean scores and mean ranks (resamples, systems): data sets with replacement, then units within each."""
    tables = [resampled_scores(each, names, config, place) for place, each in enumerate(datasets)]
    ranks = [np.array([_ranks(row) for row in table]) for table in tables]
    rng = config.rng(_STREAM)
    means = np.zeros((config.n_resamples, len(names)))
    mean_ranks = np.zeros_like(means)
    for _ in datasets:
        chosen = rng.integers(len(datasets), size=config.n_resamples)
        for place, (table, ranked) in enumerate(zip(tables, ranks, strict=True)):
            here = np.flatnonzero(chosen == place)
            row = rng.integers(len(table), size=len(here))
            means[here] += table[row]
            mean_ranks[here] += ranked[row]
    return means / len(datasets), mean_ranks / len(datasets)


def resampled_scores(each: DataComparison, names: Sequence[str], config: StatsConfig, stream: int) -> Floats:
    """The primary metric of every system on the same resamples of the units (resamples, systems)."""
    rng = config.rng(_STREAM, stream)
    results = [each.result(name) for name in names]
    primary, sign = each.data.primary, 1.0 if each.better == Direction.UP else -1.0
    if all(primary in result.per_unit for result in results):
        values = np.column_stack([result.per_unit[primary][id_order(result.unit_ids)] for result in results])
        values = values[~np.isnan(values).any(axis=1)]
        clusters = results[0].clusters
        size, sums = np.ones(len(values)), values
        if clusters is not None:
            codes = np.unique(clusters[id_order(results[0].unit_ids)], return_inverse=True)[1]
            size = np.bincount(codes).astype(np.float64)
            sums = np.column_stack([np.bincount(codes, values[:, place]) for place in range(len(names))])
        counts = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=min(config.n_resamples, 2_000))
        return np.asarray(sign * (counts @ sums) / (counts @ size)[:, None])
    evidence = [result.evidence for result in results if result.evidence is not None]
    (metric,) = parse_metrics(primary, evidence=type(evidence[0]))
    table = np.empty((POOL, len(names)))
    for row in table:
        index = rng.integers(len(results[0].unit_ids), size=len(results[0].unit_ids))
        row[:] = [sign * value_or_nan(lambda part: metric.measure(part).value, part.take(index)) for part in evidence]
    return table[~np.isnan(table).any(axis=1)]


def _ranks(scores: Floats) -> Floats:
    """Ranks from 1 for the largest score; equal scores share the mean of theirs."""
    above = (scores[None, :] > scores[:, None]).sum(axis=1)
    equal = (scores[None, :] == scores[:, None]).sum(axis=1)
    return np.asarray(above + (equal + 1) / 2)
