"""Trials of the intervals on data whose truth is known: how often do they cover it?

``python -m equipoise.stats.calibration`` prints that table, the one of the tests, and the one of the planned
numbers of units. A 95 % interval must
cover in 93 to 97 % of trials from 50 units and 10 clusters on. With less, or with nearly all hits, nothing
is promised, and the table shows what happens. Where rare values decide the figure, it may cover more often.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan, sqrt

import numpy as np

from equipoise.stats.calibration_data import CorpusTrial, MeanTrial, Rows, corpus_trials, mean_trials
from equipoise.stats.calibration_power import PowerRow, planned_power
from equipoise.stats.calibration_tests import FalsePositiveRow, false_positive_rates
from equipoise.stats.corpus_interval import evidence_interval
from equipoise.stats.interval import Interval
from equipoise.stats.resample import mean_intervals

PROMISED = (0.93, 0.97)
"""The shares of trials between which a 95 % interval must cover."""
FEWEST_UNITS, FEWEST_CLUSTERS = 50, 10
"""Where the promise begins."""
BATCH = 250
"""Trials that share their resamples; few enough for the shared luck to average out."""


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """How often one kind of interval held the truth on one kind of data.

    ``below`` and ``above`` count the intervals that lie wholly on that side of the truth.
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
        """The share of the known intervals that held the truth; NaN when none is known."""
        known = self.trials - self.unknown
        return 1.0 - (self.below + self.above) / known if known else nan

    @property
    def promised(self) -> bool:
        """Whether the promise binds: units and clusters enough, and not all of them next to a bound."""
        enough = self.units >= FEWEST_UNITS and (self.clusters is None or self.clusters >= FEWEST_CLUSTERS)
        return enough and not self.extreme

    @property
    def kept(self) -> bool:
        """Whether the coverage lies where it must, three Monte-Carlo errors allowed."""
        slack = 3.0 * sqrt(0.95 * 0.05 / max(self.trials - self.unknown, 1))
        most = 1.0 if self.rare else PROMISED[1] + slack
        return PROMISED[0] - slack <= self.coverage <= most

    @property
    def note(self) -> str:
        """What a reader must know beside the numbers, or nothing."""
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
    resamples: int = 1000,
    rng: np.random.Generator,
) -> list[CoverageRow]:
    """The coverage of every kind of interval, for each number of units or of clusters.

    A trial of a corpus-level figure costs hundreds of evaluations: a quarter as many of them are run, and
    for the two smallest sizes only.
    """
    rows = []
    for trial in mean_trials():
        for size in clusters if trial.clustered else sizes:
            rows.append(_mean_row(trial, size, simulations, resamples, rng))
    for figure in corpus_trials():
        for size in sorted(sizes)[:2]:
            rows.append(_corpus_row(figure, size, max(1, simulations // 4), resamples, rng))
    return rows


def table_lines(rows: Sequence[CoverageRow]) -> list[str]:
    """The rows as aligned text, marked where the promise binds and was not kept, or does not bind."""
    head = f"{'data':28}  {'interval':16}  {'units':>5}  {'clusters':>8}  {'trials':>6}  "
    lines = [head + f"{'covered':>7}  {'below':>5}  {'above':>5}"]
    for row in rows:
        line = (
            f"{row.data:28}  {row.method:16}  {row.units:5}  {row.clusters or '-':>8}  {row.trials:6}  "
            f"{row.coverage:7.1%}  {row.below / row.trials:5.1%}  {row.above / row.trials:5.1%}  {row.note}"
        )
        lines.append(line.rstrip())
    return lines


def rate_lines(rows: Sequence[FalsePositiveRow]) -> list[str]:
    """The false positives of the tests as aligned text, marked where a promise was not kept."""
    lines = [f"{'test':14}  {'data':8}  {'units':>5}  {'clusters':8}  {'trials':>6}  {'rate':>6}  promise"]
    for row in rows:
        note = "" if row.kept else "  not kept"
        lines.append(
            f"{row.test:14}  {row.data:8}  {row.n:5}  {row.clusters:8}  {row.simulations:6}  "
            f"{row.rate:6.1%}  {row.promise}{note}"
        )
    return lines


def power_lines(rows: Sequence[PowerRow]) -> list[str]:
    """How often the planned number of units was enough, as aligned text, marked where it was not 80 %."""
    lines = [f"{'systems':18}  {'decision':13}  {'correction':10}  {'units':>5}  {'trials':>6}  {'rate':>6}"]
    for row in rows:
        note = "" if row.kept else "  not 80 %"
        lines.append(
            f"{row.systems:18}  {row.decision:13}  {row.correction:10}  {row.n:5}  {row.simulations:6}  "
            f"{row.rate:6.1%}{note}"
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the coverage of the intervals and the false positives of the tests; 1 if a promise is broken."""
    parser = argparse.ArgumentParser(description="Try intervals and tests on data whose truth is known.")
    parser.add_argument("--simulations", type=int, default=2000, help="trials of each kind (2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all randomness (0)")
    options = parser.parse_args(arguments)
    rows = interval_coverage(simulations=options.simulations, rng=np.random.default_rng(options.seed))
    sys.stdout.write(
        "Coverage of 95 % intervals (below, above: intervals wholly on that side of the truth)\n"
    )
    sys.stdout.write("\n".join(table_lines(rows)) + "\n")
    rates = false_positive_rates(simulations=options.simulations, rng=np.random.default_rng(options.seed))
    sys.stdout.write("\nFalse positives at 5 % when there is no difference\n")
    sys.stdout.write("\n".join(rate_lines(rates)) + "\n")
    # A trial is a comparison of five systems: a quarter as many of them are run.
    powers = planned_power(max(1, options.simulations // 4), np.random.default_rng(options.seed))
    sys.stdout.write("\nDecisions of five systems with the number of units planned for 80 % power\n")
    sys.stdout.write("\n".join(power_lines(powers)) + "\n")
    broken = [row for row in rows if row.promised and not row.kept]
    kept = all(rate.kept for rate in rates) and all(row.kept for row in powers)
    return int(bool(broken) or not kept)


def _mean_row(
    trial: MeanTrial, size: int, simulations: int, resamples: int, rng: np.random.Generator
) -> CoverageRow:
    found: list[Interval] = []
    units = []
    while len(found) < simulations:
        columns = min(BATCH, simulations - len(found))
        sample = trial.draw(size, columns, rng)
        units.append(len(sample.values))
        found += mean_intervals(
            sample.values,
            weights=sample.weights,
            clusters=sample.clusters,
            bounds=[trial.bounds] * columns,
            limits=None if trial.limits is None else [trial.limits] * columns,
            reach=trial.reach,
            resamples=resamples,
            rng=rng,
        )
    clusters = size if trial.clustered else None
    row = _row(trial.data, round(float(np.mean(units))), clusters, found, trial.truth)
    return replace(row, extreme=trial.extreme, rare=trial.rare)


def _corpus_row(
    trial: CorpusTrial, size: int, simulations: int, resamples: int, rng: np.random.Generator
) -> CoverageRow:
    found = [
        evidence_interval(
            trial.figure,
            Rows(trial.draw(size, rng)),
            bounds=trial.bounds,
            resamples=resamples,
            subsample=trial.subsample,
            rng=rng,
        )
        for _ in range(simulations)
    ]
    return replace(_row(trial.data, size, None, found, trial.truth_at(size)), rare=trial.rare)


def _row(data: str, units: int, clusters: int | None, found: list[Interval], truth: float) -> CoverageRow:
    known = [interval for interval in found if interval.known]
    return CoverageRow(
        data=data,
        method=Counter(interval.method for interval in found).most_common(1)[0][0],
        units=units,
        clusters=clusters,
        trials=len(found),
        below=sum(interval.high < truth for interval in known),
        above=sum(interval.low > truth for interval in known),
        unknown=len(found) - len(known),
        mean_width=float(np.mean([interval.width for interval in known])) if known else nan,
    )


if __name__ == "__main__":
    sys.exit(main())
