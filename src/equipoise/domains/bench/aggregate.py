"""Systems over several data sets: mean scores, ranks and tests, on these data sets and on others like them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.metrics.parser import parse_metrics
from equipoise.stats.aggregate_ranks import AggregateScores, borda_points, first_places
from equipoise.stats.corpus_metrics import value_or_nan
from equipoise.stats.resampling import id_order
from equipoise.types import Floats

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.bench.results import DataComparison

POOL = 300
"""Resamples per data set of a metric that is not a mean over units; each bootstrap repetition picks one of them."""
METRIC_BOUNDS = (-1.0, 1.0)
"""The range of all primary metrics; an interval of Student's t over few data sets may exceed it."""
_STREAM = 23


@dataclass(frozen=True, slots=True)
class AggregateRow:
    """One system over all data sets.

    ``score_interval`` and ``rank_range`` are for these data sets: units are resampled. ``interval_elsewhere`` and
    ``ranks_elsewhere`` are for other data sets like these: data sets and units are resampled. ``borda`` is the number
    of systems that it beats, summed over data sets (a tie counts one half). ``best_on`` counts the data sets on which
    it has the best score.
    """

    system: str
    mean_score: float
    score_interval: tuple[float, float]
    rank_range: tuple[int, int]
    interval_elsewhere: tuple[float, float]
    ranks_elsewhere: tuple[int, int]
    mean_rank: float
    borda: float
    best_on: int


@dataclass(frozen=True)
class Aggregate:
    """The systems that were evaluated on every data set, best mean score first.

    ``significant[a][b]`` says whether the mean score of a is significantly above that of b on these data sets,
    ``significant_elsewhere`` whether it would be on other data sets like these. Intervals, ranks and tests are those
    of ``AggregateScores``.
    """

    rows: tuple[AggregateRow, ...]
    datasets: tuple[str, ...]
    incomplete: tuple[str, ...]
    significant: dict[str, dict[str, bool]]
    significant_elsewhere: dict[str, dict[str, bool]]
    confidence_level: float

    @property
    def leader(self) -> str:
        """The system with the largest mean score."""
        return self.rows[0].system

    @property
    def tied_with_leader(self) -> tuple[str, ...]:
        """The systems that are not significantly worse than the leader on these data sets."""
        return tuple(row.system for row in self.rows[1:] if not self.significant[self.leader][row.system])


def aggregate(datasets: Sequence[DataComparison], config: StatsConfig) -> Aggregate | None:
    """The aggregate over two or more data sets; None if there is one, or if no two systems have all."""
    everyone = dict.fromkeys(system.name for dataset in datasets for system in dataset.systems)
    names = [name for name in everyone if all(name in dataset.order for dataset in datasets)]
    if len(datasets) < 2 or len(names) < 2:
        return None
    scores = np.array([[dataset.score(name) for name in names] for dataset in datasets])
    tables = [resampled_scores(dataset, names, config, place) for place, dataset in enumerate(datasets)]
    n_units = [len(dataset.data.unit_ids) for dataset in datasets]
    here, elsewhere = mean_scores(scores, tables, n_units, config)
    borda, firsts = borda_points(scores), first_places(scores)
    rows = [
        AggregateRow(
            names[place],
            float(here.points[place]),
            _ends(here, place),
            _ranks(here, place),
            _ends(elsewhere, place),
            _ranks(elsewhere, place),
            float(len(names) - borda[:, place].mean()),
            float(borda[:, place].sum()),
            int(firsts[place]),
        )
        for place in here.order.tolist()
    ]
    return Aggregate(
        tuple(rows),
        tuple(dataset.data.name for dataset in datasets),
        tuple(name for name in everyone if name not in names),
        _significant(here, names),
        _significant(elsewhere, names),
        config.confidence_level,
    )


def mean_scores(
    scores: Floats, tables: Sequence[Floats], n_units: Sequence[int], config: StatsConfig
) -> tuple[AggregateScores, AggregateScores]:
    """Mean scores on these data sets, and on other data sets like these.

    Parameters
    ----------
    scores
        One row per data set and one column per system. Higher is better.
    tables
        For each data set, the scores of all systems on resamples of its units (resamples, systems).
    n_units
        The number of units of each data set.
    config
        Confidence level, number of resamples and seed.
    """
    rng = config.rng(_STREAM)
    units, both = np.zeros((2, config.n_resamples, scores.shape[1]))
    for place in range(len(tables)):
        chosen = rng.integers(len(tables), size=config.n_resamples)
        for other, table in enumerate(tables):
            members = np.flatnonzero(chosen == other)
            both[members] += table[rng.integers(len(table), size=len(members))]
        units += tables[place][rng.integers(len(tables[place]), size=config.n_resamples)]
    means, level = scores.mean(axis=0), config.confidence_level
    return (
        AggregateScores(scores, means, units / len(tables), sum(n_units) - len(n_units), level),
        AggregateScores(scores, means, both / len(tables), len(tables) - 1, level),
    )


def _ends(scores: AggregateScores, place: int) -> tuple[float, float]:
    interval, (lowest, highest) = scores.intervals()[place], METRIC_BOUNDS
    return max(lowest, interval.low), min(highest, interval.high)


def _ranks(scores: AggregateScores, place: int) -> tuple[int, int]:
    low, high = scores.rank_intervals[place].tolist()
    return low, high


def _significant(scores: AggregateScores, names: Sequence[str]) -> dict[str, dict[str, bool]]:
    return {
        a: {b: bool(scores.separation[row, column] == 1) for row, b in enumerate(names)}
        for column, a in enumerate(names)
    }


def resampled_scores(dataset: DataComparison, names: Sequence[str], config: StatsConfig, stream: int) -> Floats:
    """The primary metric of every system on the same resamples of the units (resamples, systems)."""
    rng = config.rng(_STREAM, stream)
    results = [dataset.result(name) for name in names]
    primary = dataset.data.primary
    if all(primary in result.per_unit for result in results):
        values = np.column_stack([result.per_unit[primary][id_order(result.unit_ids)] for result in results])
        known = ~np.isnan(values).any(axis=1)
        values, clusters = values[known], results[0].clusters
        size, sums = np.ones(len(values)), values
        if clusters is not None:
            codes = np.unique(clusters[id_order(results[0].unit_ids)][known], return_inverse=True)[1]
            size = np.bincount(codes).astype(np.float64)
            sums = np.column_stack([np.bincount(codes, values[:, place]) for place in range(len(names))])
        counts = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=min(config.n_resamples, 2_000))
        return np.asarray((counts @ sums) / (counts @ size)[:, None])
    evidence = [result.evidence for result in results if result.evidence is not None]
    (metric,) = parse_metrics(primary, evidence=type(evidence[0]))
    table = np.empty((POOL, len(names)))
    for row in table:
        index = rng.integers(len(results[0].unit_ids), size=len(results[0].unit_ids))
        row[:] = [value_or_nan(lambda part: metric.measure(part).value, part.take(index)) for part in evidence]
    return table[~np.isnan(table).any(axis=1)]
