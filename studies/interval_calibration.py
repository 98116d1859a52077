"""Simulations of intervals and tests on data with known true values: coverage, false positives and power.

``python -m studies.interval_calibration`` prints the coverage of the intervals, the false-positive rates of the
tests, the power with planned numbers of units, and the coverage of rank intervals. A 95 % interval must
cover in 93 to 97 % of the trials with at least 50 units and 10 clusters. With fewer, or with nearly all hits, there
is no guarantee, and the table is for information. If rare values determine the score, coverage may be higher.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from equipoise.config import StatsConfig
from equipoise.stats.bootstrap_mean import mean_intervals
from equipoise.stats.corpus_metrics import evidence_intervals
from equipoise.stats.paired_tests import TESTS, run_test
from studies.interval_calibration_data import (
    CorpusTrial,
    MeanTrial,
    NumberRows,
    corpus_trials,
    mean_trials,
)
from studies.power_calibration import PowerRow, planned_power
from studies.rank_calibration import RankRow, rank_coverage

if TYPE_CHECKING:
    from equipoise.stats.intervals import Interval
    from equipoise.types import Floats, Ids

# False-positive rates of the paired tests on simulated data without a difference.

ALPHA = 0.05
SIZES = (20, 50, 200)
DATA = ("binary", "graded", "rank")
# Values on a coarse grid make many sign patterns equally extreme, and few p values possible.
COARSE = ("binary", "graded")
UNITS_PER_CLUSTER = 4
# 0.05 * (999 + 1) is an integer, so the randomisation tests can reach 5 % exactly.
N_PERMUTATIONS = 999
# Simulations that share random signs are not independent, so batches are small.
CALIBRATION_TESTS_BATCH = 50


@dataclass(frozen=True, slots=True)
class FalsePositiveRow:
    """False-positive rate of one test.

    ``clusters`` is "none", "used", or "ignored"; the last shows the effect of ignoring clusters, without a
    guarantee. ``at_most`` marks tests that may be below 5 % because p has few possible values.
    """

    test: str
    data: str
    n: int
    clusters: str
    simulations: int
    rate: float
    at_most: bool

    @property
    def error(self) -> float:
        """The Monte Carlo standard error of a rate of 5 %."""
        return sqrt(ALPHA * (1 - ALPHA) / self.simulations)

    @property
    def promise(self) -> str:
        """The guaranteed rate as text."""
        if self.clusters == "ignored":
            return "none, clusters ignored"
        return "at most 5 %" if self.at_most else "5 %"

    @property
    def kept(self) -> bool:
        """Whether the rate is as guaranteed, within 3.5 Monte Carlo errors (and 0.5 % for t).

        Student's t is exact for normal differences only, and these are not normal.
        """
        if self.clusters == "ignored":
            return True
        tolerance = 3.5 * self.error + (0.005 if self.test == "t" else 0.0)
        return self.rate <= ALPHA + tolerance and (self.at_most or self.rate >= ALPHA - tolerance)


def false_positive_rates(
    simulations: int,
    rng: np.random.Generator,
    *,
    sizes: Sequence[int] = SIZES,
    data: Sequence[str] = DATA,
) -> list[FalsePositiveRow]:
    """The rate of every test for every kind of data and number of units, with and without clusters."""
    rows = []
    for kind in data:
        for n in sizes:
            labels = np.arange(n) // UNITS_PER_CLUSTER
            for name, treated in _trials(kind):
                rejected = 0
                clusters = labels if treated == "used" else None
                for size in _batches(simulations):
                    differences = null_differences(kind, n, size, None if treated == "none" else labels, rng)
                    p = run_test(name, differences, clusters=clusters, n_permutations=N_PERMUTATIONS, rng=rng)
                    rejected += int((p <= ALPHA).sum())
                blocks = n if treated == "none" else n // UNITS_PER_CLUSTER
                at_most = _may_stay_below(name, kind, blocks)
                rows.append(FalsePositiveRow(name, kind, n, treated, simulations, rejected / simulations, at_most))
    return rows


def null_differences(kind: str, n: int, simulations: int, clusters: Ids | None, rng: np.random.Generator) -> Floats:
    """Differences of two exchangeable systems: shape (n, simulations).

    >>> null_differences("binary", 4, 2, None, np.random.default_rng(0)).shape
    (4, 2)
    """
    difficulty = rng.normal(size=(n, simulations))
    first, second = (_scores(kind, difficulty, clusters, rng) for _ in range(2))
    return first - second


def _scores(kind: str, difficulty: Floats, clusters: Ids | None, rng: np.random.Generator) -> Floats:
    """Values of one system: difficulty of the unit, random effect of its cluster and noise, as a metric value."""
    latent = difficulty + rng.normal(size=difficulty.shape)
    if clusters is not None:
        labels, inverse = np.unique(clusters, return_inverse=True)
        latent += rng.normal(size=(len(labels), difficulty.shape[1]))[inverse]
    if kind == "binary":
        return np.asarray(latent > 0, dtype=np.float64)
    if kind == "graded":
        return np.asarray(np.clip(np.round(2 + latent), 0, 4) / 4)
    return np.asarray(1.0 / np.ceil(np.exp(1.0 - latent).clip(1e-9, 1000.0)))


def _trials(kind: str) -> Iterator[tuple[str, str]]:
    """Every test with every treatment of clusters that it supports."""
    for name, test in TESTS.items():
        if test.binary_only and kind != "binary":
            continue
        yield name, "none"
        if "clusters" in test.options:
            yield name, "used"
        yield name, "ignored"


def _may_stay_below(name: str, kind: str, blocks: int) -> bool:
    """Whether few p values are possible: few blocks, a coarse grid, or sums of few integer ranks."""
    if name == "t":
        return blocks < 20
    return kind in COARSE or blocks < (50 if name == "wilcoxon" else 20)


def _batches(simulations: int) -> Iterator[int]:
    for start in range(0, simulations, CALIBRATION_TESTS_BATCH):
        yield min(CALIBRATION_TESTS_BATCH, simulations - start)


PROMISED = (0.93, 0.97)
"""Guaranteed range of the coverage of a 95 % interval."""
FEWEST_UNITS, FEWEST_CLUSTERS = 50, 10
"""The minimum sample size of the guarantee."""
BATCH = 250
"""Number of trials that share their resamples; small, so that their common deviation averages out."""


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """Coverage of one kind of interval on one kind of data.

    ``below`` and ``above`` count the intervals that are entirely on that side of the true value.
    """

    data: str
    method: str
    units: int
    clusters: int | None
    trials: int
    below: int
    above: int
    unknown: int
    mean_width: float
    extreme: bool = False
    rare: bool = False

    @property
    def coverage(self) -> float:
        """The fraction of the defined intervals that contain the true value; NaN if none is defined."""
        defined = self.trials - self.unknown
        return 1.0 - (self.below + self.above) / defined if defined else nan

    @property
    def promised(self) -> bool:
        """Whether the guarantee applies: enough units and clusters, and values not extremely close to a bound."""
        large_enough = self.units >= FEWEST_UNITS and (self.clusters is None or self.clusters >= FEWEST_CLUSTERS)
        return large_enough and not self.extreme

    @property
    def kept(self) -> bool:
        """Whether the coverage is in the guaranteed range, within three Monte Carlo errors."""
        tolerance = 3.0 * sqrt(0.95 * 0.05 / max(self.trials - self.unknown, 1))
        upper_limit = 1.0 if self.rare else PROMISED[1] + tolerance
        return PROMISED[0] - tolerance <= self.coverage <= upper_limit

    @property
    def note(self) -> str:
        """A remark on the guarantee, or an empty string."""
        if self.promised:
            if self.kept:
                return ""
            return f"below {PROMISED[0]:.0%}" if self.rare else "not 93 to 97 %"
        return "too near a bound for a promise" if self.extreme else "too few for a promise"


def interval_coverage(
    *,
    sizes: Sequence[int] = (50, 100, 200, 1000),
    clusters: Sequence[int] = (5, 12, 20, 30, 60),
    simulations: int = 2000,
    n_resamples: int = 1000,
    rng: np.random.Generator,
) -> list[CoverageRow]:
    """The coverage of every kind of interval, for each number of units or of clusters.

    A trial of a corpus-level metric costs hundreds of evaluations, so there are a quarter as many of them, and
    only for the two smallest sizes.
    """
    rows = []
    for trial in mean_trials():
        for size in clusters if trial.clustered else sizes:
            rows.append(_mean_row(trial, size, simulations, n_resamples, rng))
    for corpus_trial in corpus_trials():
        for size in sorted(sizes)[:2]:
            rows.append(_corpus_row(corpus_trial, size, max(1, simulations // 4), n_resamples, rng))
    return rows


def table_lines(rows: Sequence[CoverageRow]) -> list[str]:
    """The rows as aligned text, with remarks on the guarantee."""
    header = f"{'data':28}  {'interval':16}  {'units':>5}  {'clusters':>8}  {'trials':>6}  "
    lines = [header + f"{'covered':>7}  {'below':>5}  {'above':>5}"]
    for row in rows:
        line = (
            f"{row.data:28}  {row.method:16}  {row.units:5}  {row.clusters or '-':>8}  {row.trials:6}  "
            f"{row.coverage:7.1%}  {row.below / row.trials:5.1%}  {row.above / row.trials:5.1%}  {row.note}"
        )
        lines.append(line.rstrip())
    return lines


def rate_lines(rows: Sequence[FalsePositiveRow]) -> list[str]:
    """The false-positive rates of the tests as aligned text, with rates outside the guarantee marked."""
    lines = [f"{'test':14}  {'data':8}  {'units':>5}  {'clusters':8}  {'trials':>6}  {'rate':>6}  promise"]
    for row in rows:
        note = "" if row.kept else "  not kept"
        lines.append(
            f"{row.test:14}  {row.data:8}  {row.n:5}  {row.clusters:8}  {row.simulations:6}  "
            f"{row.rate:6.1%}  {row.promise}{note}"
        )
    return lines


def power_lines(rows: Sequence[PowerRow]) -> list[str]:
    """The power with the planned number of units as aligned text, with rates other than 80 % marked."""
    lines = [f"{'systems':18}  {'decision':13}  {'correction':10}  {'units':>5}  {'trials':>6}  {'rate':>6}"]
    for row in rows:
        note = "" if row.kept else "  not 80 %"
        lines.append(
            f"{row.systems:18}  {row.decision:13}  {row.correction:10}  {row.n:5}  {row.simulations:6}  "
            f"{row.rate:6.1%}{note}"
        )
    return lines


def rank_lines(rows: Sequence[RankRow]) -> list[str]:
    """The coverage of rank intervals as aligned text, with coverage below 95 % marked."""
    lines = [f"{'systems':20}  {'values':6}  {'units':>5}  {'trials':>6}  {'covered':>7}  {'ranks':>5}"]
    for row in rows:
        note = "" if row.kept else "  below 95 %"
        lines.append(
            f"{row.systems:20}  {row.values:6}  {row.units:5}  {row.trials:6}  {row.coverage:7.1%}  "
            f"{row.mean_width:5.1f}{note}"
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print coverage, false-positive rates, power and the coverage of ranks; return 1 if a guarantee is violated."""
    parser = argparse.ArgumentParser(description="Simulate intervals and tests on data with known true values.")
    parser.add_argument("--simulations", type=int, default=2000, help="trials of each kind (2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all randomness (0)")
    options = parser.parse_args(arguments)
    rows = interval_coverage(simulations=options.simulations, rng=np.random.default_rng(options.seed))
    sys.stdout.write("Coverage of 95 % intervals (below, above: intervals wholly on that side of the truth)\n")
    sys.stdout.write("\n".join(table_lines(rows)) + "\n")
    rates = false_positive_rates(simulations=options.simulations, rng=np.random.default_rng(options.seed))
    sys.stdout.write("\nFalse positives at 5 % when there is no difference\n")
    sys.stdout.write("\n".join(rate_lines(rates)) + "\n")
    # A trial is a comparison of five systems, so there are a quarter as many of them.
    powers = planned_power(max(1, options.simulations // 4), np.random.default_rng(options.seed))
    sys.stdout.write("\nDecisions of five systems with the number of units planned for 80 % power\n")
    sys.stdout.write("\n".join(power_lines(powers)) + "\n")
    ranks = rank_coverage(max(1, options.simulations // 8), np.random.default_rng(options.seed))
    sys.stdout.write("\nCoverage of 95 % rank intervals (of all systems together; mean number of ranks)\n")
    sys.stdout.write("\n".join(rank_lines(ranks)) + "\n")
    violations = [row for row in rows if row.promised and not row.kept]
    is_kept = all(row.kept for row in (*rates, *powers, *ranks))
    return int(bool(violations) or not is_kept)


def _mean_row(trial: MeanTrial, size: int, simulations: int, n_resamples: int, rng: np.random.Generator) -> CoverageRow:
    intervals: list[Interval] = []
    units = []
    while len(intervals) < simulations:
        columns = min(BATCH, simulations - len(intervals))
        sample = trial.draw(size, columns, rng)
        units.append(len(sample.values))
        intervals += mean_intervals(
            sample.values,
            weights=sample.weights,
            clusters=sample.clusters,
            bounds=[trial.bounds] * columns,
            limits=None if trial.limits is None else [trial.limits] * columns,
            reach=trial.reach,
            config=StatsConfig(n_resamples=n_resamples),
            rng=rng,
        )
    clusters = size if trial.clustered else None
    row = _row(trial.data, round(float(np.mean(units))), clusters, intervals, trial.truth)
    return replace(row, extreme=trial.extreme, rare=trial.rare)


def _corpus_row(
    trial: CorpusTrial, size: int, simulations: int, n_resamples: int, rng: np.random.Generator
) -> CoverageRow:
    intervals = [
        evidence_intervals(
            [trial.figure],
            NumberRows(trial.draw(size, rng)),
            bounds=[trial.bounds],
            config=StatsConfig(n_resamples=n_resamples),
            subsample=trial.subsample,
            rng=rng,
        )[0]
        for _ in range(simulations)
    ]
    return replace(_row(trial.data, size, None, intervals, trial.truth_at(size)), rare=trial.rare)


def _row(data: str, units: int, clusters: int | None, intervals: list[Interval], truth: float) -> CoverageRow:
    defined = [interval for interval in intervals if interval.known]
    return CoverageRow(
        data=data,
        method=Counter(interval.method for interval in intervals).most_common(1)[0][0],
        units=units,
        clusters=clusters,
        trials=len(intervals),
        below=sum(interval.high < truth for interval in defined),
        above=sum(interval.low > truth for interval in defined),
        unknown=len(intervals) - len(defined),
        mean_width=float(np.mean([interval.width for interval in defined])) if defined else nan,
    )


if __name__ == "__main__":
    sys.exit(main())
