"""The result of a benchmark: a comparison per data set, the aggregate, the costs, and the decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import inf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import run_checks
from equipoise.domains.bench.base_data import BenchData
from equipoise.domains.bench.checks import DatasetFingerprints
from equipoise.domains.bench.costs import SystemCost
from equipoise.domains.bench.systems import RANDOM
from equipoise.errors import EquipoiseError, UnknownNameError
from equipoise.metrics.parser import parse_metrics
from equipoise.runs.experiment_folder import ExperimentFolder, failures_to_dict
from equipoise.stats.aggregate_ranks import AggregateScores, borda_points, first_places
from equipoise.stats.bootstrap_mean import id_order
from equipoise.stats.corpus_metrics import value_or_nan
from equipoise.types import Finding, Floats, require_extra

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.runs.unit_table import UnitContents
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate, Result
    from equipoise.tuning.grid import TuningRecord


@dataclass(frozen=True)
class ScoredSystem:
    """A system on a data set: its result and its cost.

    ``tuning`` is how its parameters were selected; the result is then that of held-out units. ``resumed``: it was read
    from an earlier run.
    """

    name: str
    result: Result
    cost: SystemCost
    resumed: bool = False
    details: UnitContents = field(default_factory=dict, repr=False)
    tuning: TuningRecord | None = field(default=None, repr=False)


@dataclass(frozen=True)
class DataComparison:
    """All systems on one data set. ``comparison`` is None for a single system."""

    data: BenchData
    systems: Sequence[ScoredSystem]
    comparison: Comparison | None

    def system(self, name: str) -> ScoredSystem:
        """The system of this name."""
        for candidate in self.systems:
            if candidate.name == name:
                return candidate
        raise UnknownNameError.of(f"system on {self.data.name}", name, [candidate.name for candidate in self.systems])

    def result(self, name: str) -> Result:
        """The result of a system."""
        return self.system(name).result

    def estimate(self, name: str) -> Estimate:
        """The primary metric of a system."""
        return self.result(name)[self.data.primary]

    def score(self, name: str) -> float:
        """The value of the primary metric."""
        return self.estimate(name).value

    @property
    def order(self) -> list[str]:
        """The systems, best first."""
        if self.comparison is not None:
            return list(self.comparison.order)
        return [system.name for system in self.systems]

    @property
    def leader(self) -> str:
        """The system with the best score."""
        return self.order[0]

    @property
    def tied_with_leader(self) -> list[str]:
        """The systems that are not known to be worse than the leader: not significantly, or not tested."""
        return [] if self.comparison is None else [*self.comparison.tied_with_leader, *self.comparison.untested]

    @property
    def could_be_best(self) -> tuple[str, ...]:
        """The leader, and the tied systems for which the interval of the difference from it includes 0."""
        return (self.leader,) if self.comparison is None else self.comparison.could_be_best

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of the comparison, or of the only result."""
        return self.systems[0].result.findings if self.comparison is None else self.comparison.findings

    def is_better(self, a: str, b: str) -> bool:
        """Whether ``a`` is significantly better than ``b``."""
        if self.comparison is None:
            return False
        return self.comparison.contrast(a, b).winner(self.comparison.alpha) == a


@dataclass(frozen=True)
class BenchDecision:
    """What follows from a benchmark.

    ``tied`` are the systems that are not significantly worse than the ``best``. ``could_be_best`` are the best and
    those of them for which the interval of the difference, not adjusted for the number of pairs, includes 0.
    ``cheapest`` is the cheapest of these. ``dropped`` maps a system to one that is significantly better and not more
    expensive, unless it is significantly better than that one on a data set. ``above_random`` is False if random
    vectors are not significantly worse than the best: the data cannot decide.
    """

    best: str
    tied: tuple[str, ...]
    cheapest: str
    dropped: Mapping[str, str]
    above_random: bool = True
    could_be_best: tuple[str, ...] = ()


NEGLIGIBLE_SECONDS = 0.0005
"""Less time per document than this is not compared: it differs between two runs by more than a system costs."""
TIME_TOLERANCE = 1.25
"""Times are measured once, so that a ratio below this is not a difference."""


@dataclass(frozen=True)
class BenchComparison:
    """A benchmark: one comparison per data set, and what they say together.

    ``failures`` are errors by system and data set, ``skipped`` the reasons why a system does not apply to a kind of
    data, ``baselines`` the systems that were added.
    """

    datasets: Sequence[DataComparison]
    failures: Mapping[str, EquipoiseError]
    skipped: Sequence[str]
    baselines: Sequence[str]
    config: StatsConfig
    key: str = ""

    @cached_property
    def aggregate(self) -> Aggregate | None:
        """Mean score and mean rank over the data sets; None for one data set."""
        return aggregate(self.datasets, self.config)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings about the data sets together, and those of all comparisons."""
        suite = DatasetFingerprints({dataset.data.name: dataset.data.fingerprint for dataset in self.datasets})
        findings = (finding for dataset in self.datasets for finding in dataset.findings)
        return tuple(dict.fromkeys((*run_checks(suite), *findings)))

    @property
    def resumed(self) -> bool:
        """Whether every result was read from an earlier run."""
        return all(system.resumed for dataset in self.datasets for system in dataset.systems)

    def __getitem__(self, name: str) -> DataComparison:
        """The comparison on a data set."""
        for dataset in self.datasets:
            if dataset.data.name == name:
                return dataset
        raise UnknownNameError.of("data set", name, [dataset.data.name for dataset in self.datasets])

    def cost(self, name: str) -> tuple[float, float, float]:
        """Mean price and seconds per document, and bytes per vector; unknown costs are infinite."""
        costs = [system.cost for dataset in self.datasets for system in dataset.systems if system.name == name]
        prices, seconds = [cost.price for cost in costs], [cost.seconds_per_document for cost in costs]
        stored = [cost.bytes_per_vector for cost in costs if not isnan(cost.bytes_per_vector)]
        mean_seconds = _mean(seconds)
        return _mean(prices), mean_seconds, stored[0] if stored else 0.0 if mean_seconds < inf else inf

    @cached_property
    def decision(self) -> BenchDecision:
        """The best system, those not significantly worse, the cheapest that could be best, and what can be dropped."""
        board = self.aggregate or self.datasets[0]
        best = board.leader
        tied = tuple(name for name in board.tied_with_leader if name != RANDOM)
        candidates = tuple(name for name in board.could_be_best if name != RANDOM or name == best)
        cheapest = min(candidates, key=self._compared_cost)
        above_random = best != RANDOM and RANDOM not in board.tied_with_leader
        ranked = [row.system for row in board.rows] if isinstance(board, Aggregate) else board.order
        dropped = {}
        for name in ranked:
            if name in self.baselines or name == best:
                continue
            dominating = [other for other in ranked if self._is_better(other, name) and self._not_costlier(other, name)]
            if dominating:
                dropped[name] = dominating[0]
        return BenchDecision(best, tied, cheapest, dropped, above_random, candidates)

    def _is_better(self, a: str, b: str) -> bool:
        """Whether ``a`` is significantly better than ``b``, and significantly worse on no data set."""
        if a == b or any(dataset.is_better(b, a) for dataset in self.datasets):
            return False
        return self.aggregate.significant[a][b] if self.aggregate is not None else self.datasets[0].is_better(a, b)

    def _not_costlier(self, a: str, b: str) -> bool:
        """Whether ``a`` costs no more than ``b``: price, time (within 25 %) and bytes; False if its time is unknown."""
        price, seconds, stored = self._compared_cost(a)
        other_price, other_seconds, other_stored = self._compared_cost(b)
        is_as_fast = seconds < inf and seconds <= TIME_TOLERANCE * other_seconds
        return price <= other_price and is_as_fast and stored <= other_stored

    def _compared_cost(self, name: str) -> tuple[float, float, float]:
        """The cost with times below the resolution of a single measurement counted as equal."""
        price, seconds, stored = self.cost(name)
        return price, max(seconds, NEGLIGIBLE_SECONDS), stored

    def to_frame(self) -> Any:
        """One row per data set, system and metric, as a pandas frame."""
        return require_extra("pandas", extra="accounts").DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """One row per data set, system and metric."""
        return [
            {
                "dataset": dataset.data.name,
                "kind": dataset.data.kind,
                "system": system.name,
                "metric": estimate.metric,
                "primary": estimate.metric == dataset.data.primary,
                "value": estimate.value,
                "low": estimate.interval.low,
                "high": estimate.interval.high,
                "chance": estimate.chance,
                "n": estimate.n,
                **system.cost.to_dict(),
            }
            for dataset in self.datasets
            for system in dataset.systems
            for estimate in system.result.estimates.values()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        from equipoise.domains.bench.report import bench_views

        decision = self.decision
        return {
            "key": self.key,
            "decision": {**asdict(decision), "dropped": dict(decision.dropped)},
            "answers": [asdict(view) for view in bench_views(self)],
            "aggregate": None if self.aggregate is None else asdict(self.aggregate),
            "datasets": [
                {
                    "name": dataset.data.name,
                    "kind": dataset.data.kind,
                    "size": dataset.data.size,
                    "primary": dataset.data.primary,
                    "fingerprint": dataset.data.fingerprint,
                    "issues": [asdict(issue) for issue in dataset.data.issues],
                    "comparison": None if dataset.comparison is None else dataset.comparison.to_dict(),
                    "systems": [
                        {
                            "name": system.name,
                            "estimates": [estimate.to_dict() for estimate in system.result.estimates.values()],
                            "cost": system.cost.to_dict(),
                            "tuning": None if system.tuning is None else system.tuning.to_dict(),
                        }
                        for system in dataset.systems
                    ],
                }
                for dataset in self.datasets
            ],
            "failures": failures_to_dict(self.failures),
            "findings": [asdict(finding) for finding in self.findings],
            "skipped": list(self.skipped),
            "baselines": list(self.baselines),
        }

    def write(self, folder: str | Path, runs: Iterable[Path] = ()) -> Path:
        """Write results.json into the folder of the run directories; ``runs`` are those of this benchmark."""
        from equipoise.domains.bench.report import bench_views

        bench_views(self)[0].write(folder, runs)
        return ExperimentFolder(Path(folder)).write_results(self.to_dict())

    def report(self, path: str | Path, *, charts: bool = True) -> Path:
        """Write one HTML page with the decision, every data set, and quality against cost."""
        from equipoise.domains.bench.report import suite_html
        from equipoise.io.atomic import write_text

        write_text(path, suite_html(self.to_dict(), charts=charts))
        return Path(path)

    def __repr__(self) -> str:
        from equipoise.domains.bench.report import bench_views

        return f"<BenchComparison: {bench_views(self)[0].answer.headline}>"


POOL = 300
"""Resamples per data set of a metric that is not a mean over units; each bootstrap repetition picks one of them."""
_STREAM = 23


def _mean(values: Sequence[float]) -> float:
    """The mean of the known values; infinite if none is."""
    known = [value for value in values if not isnan(value)]
    return sum(known) / len(known) if known else inf


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

    ``could_be_best`` are the leader and the tied systems for which the interval of the difference of the means, not
    adjusted for the number of pairs, includes 0.

    ``significant[a][b]`` says whether the mean score of a is significantly above that of b on these data sets,
    ``significant_elsewhere`` whether it would be on other data sets like these. Intervals, ranks and tests are those
    of ``AggregateScores``.
    """

    rows: tuple[AggregateRow, ...]
    datasets: tuple[str, ...]
    incomplete: tuple[str, ...]
    could_be_best: tuple[str, ...]
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
    """The aggregate over two or more data sets; None if there is one, or if no two systems have a score on all."""
    everyone = dict.fromkeys(system.name for dataset in datasets for system in dataset.systems)
    scored = [{name for name in dataset.order if not isnan(dataset.score(name))} for dataset in datasets]
    names = [name for name in everyone if all(name in systems for systems in scored)]
    if len(datasets) < 2 or len(names) < 2:
        return None
    scores = np.array([[dataset.score(name) for name in names] for dataset in datasets])
    tables = [resampled_scores(dataset, names, config, place) for place, dataset in enumerate(datasets)]
    n_units = [len(dataset.data.unit_ids) for dataset in datasets]
    observed, resampled = mean_scores(scores, tables, n_units, config)
    lowest, highest = np.mean([dataset.data.bounds for dataset in datasets], axis=0).tolist()
    bounds = (lowest, highest)
    borda, firsts = borda_points(scores), first_places(scores)
    rows = [
        AggregateRow(
            names[place],
            float(observed.points[place]),
            _ends(observed, place, bounds),
            _ranks(observed, place),
            _ends(resampled, place, bounds),
            _ranks(resampled, place),
            float(len(names) - borda[:, place].mean()),
            float(borda[:, place].sum()),
            int(firsts[place]),
        )
        for place in observed.order.tolist()
    ]
    return Aggregate(
        tuple(rows),
        tuple(dataset.data.name for dataset in datasets),
        tuple(name for name in everyone if name not in names),
        _could_be_best(observed, names),
        _significant(observed, names),
        _significant(resampled, names),
        config.confidence_level,
    )


def mean_scores(
    scores: Floats, tables: Sequence[Floats], n_units: Sequence[int], config: StatsConfig
) -> tuple[AggregateScores, AggregateScores]:
    """Mean scores on these data sets, and on other data sets like these.

    ``scores`` has shape (data sets, systems). ``tables`` are the scores of all systems on resamples of the units of a
    data set, of shape (resamples, systems), and ``n_units`` the numbers of these units.
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


def _ends(scores: AggregateScores, place: int, bounds: tuple[float, float]) -> tuple[float, float]:
    """The interval of a mean, within its bounds: one of Student's t over few data sets may exceed them."""
    interval = scores.intervals()[place].clipped(bounds)
    return interval.low, interval.high


def _ranks(scores: AggregateScores, place: int) -> tuple[int, int]:
    low, high = scores.rank_intervals[place].tolist()
    return low, high


def _could_be_best(scores: AggregateScores, names: Sequence[str]) -> tuple[str, ...]:
    best, *others = scores.order.tolist()
    candidates = [
        place
        for place in others
        if scores.separation[place, best] != 1 and scores.difference_interval(best, place).covers(0.0)
    ]
    return tuple(names[place] for place in (best, *candidates))


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
    evidence = [result.evidence.take(id_order(result.unit_ids)) for result in results if result.evidence is not None]
    (metric,) = parse_metrics(primary, evidence=type(evidence[0]))
    table = np.empty((POOL, len(names)))
    for row in table:
        index = rng.integers(len(results[0].unit_ids), size=len(results[0].unit_ids))
        row[:] = [value_or_nan(lambda part: metric.measure(part).value, part.take(index)) for part in evidence]
    return table[~np.isnan(table).any(axis=1)]
