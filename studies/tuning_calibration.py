"""Simulations of tuning with known true accuracies: the bias of the best score, and the false-positive rates.

``python -m studies.tuning_calibration`` prints two tables. The first compares the optimistic score (the best
configuration, on the questions that selected it, with Wilson's interval) and the nested one (repeated nested
cross-validation) with the true accuracy of the deployed configuration: the one that is best on
all questions. The nested score must be within half a point on average, and its 95 % interval cover in
93 to 97 % of simulations. The second table has tests of three equally good models: at 5 % at most 5 % of the
simulations may have a significant difference of one pair, and with Holm's correction of any of the three
pairs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from equipoise.config import StatsConfig
from equipoise.io.splits import Fold, kfold_splits
from equipoise.stats.estimate import result_from_values
from equipoise.stats.intervals import wilson_interval
from equipoise.stats.paired_tests import run_test
from equipoise.stats.pairing import compare_results
from equipoise.stats.tuning_uncertainty import ERROR_DF, RESAMPLE_ID
from equipoise.tuning.nested_cv import (
    RESAMPLED_SPLITS,
    majority_hits,
    nested_interval,
    repeated_nested_cv,
    selection_errors,
)
from studies.interval_calibration import PROMISED

if TYPE_CHECKING:
    from equipoise.stats.result import Result
    from equipoise.types import Floats, Ints

# Simulated fixtures for tuning: questions, answers and configurations with known true accuracy.

QUESTIONS, N_DUPLICATES, FOLDS, CONFIGURATIONS = 100, 10, 5, 27
SPLITS = 10
"""Number of splits, smaller than in comparisons for speed; the variance of the score is slightly larger."""
CATEGORY_BORDERS = (-1.5, -0.7, 0.0, 0.7, 1.5)


@dataclass(frozen=True)
class Scenario:
    """Strengths of the configurations (one row per chunking, one column per top_k).

    ``shared`` is the fraction of the variance that depends on the question.
    """

    name: str
    strengths: Floats
    shared: float
    promised: bool = True

    @property
    def accuracies(self) -> Floats:
        """The true accuracy of each configuration."""
        from scipy.special import ndtr

        return np.asarray(ndtr(self.strengths.ravel()), dtype=np.float64)


@dataclass(frozen=True)
class SimulatedFixture:
    """Hits of each model (configurations x questions), the splits into folds, and the groups of answers."""

    hits: tuple[Floats, ...]
    splits: list[list[Fold]]
    groups: Ints


def scenarios() -> list[Scenario]:
    """Kinds of grids: all configurations equal, one best configuration, and accuracy smooth in top_k.

    Real configurations answer the same questions and mostly agree. Those of the last scenario are independent,
    without a guarantee: it shows the negative bias of the nested score if four fifths of the
    questions often do not select the one good configuration that all questions select.
    """
    level = np.full((CONFIGURATIONS, 1), 0.7)
    peak = np.where(np.arange(CONFIGURATIONS)[:, None] == CONFIGURATIONS // 2, 1.1, 0.5)
    hill = 0.15 * np.array([0.0, 0.5, 1.0, 0.8, 1.5, 1.2, 0.5, 1.0, 0.2])
    smooth = hill[:, None] + np.array([-0.1, 0.3, 0.6])
    patterns = [("all equal", level), ("one clearly best", peak), ("smooth grid", smooth)]
    cases = [Scenario(name, strengths, shared) for name, strengths in patterns for shared in (0.5, 0.8)]
    return [*cases, Scenario("one clearly best", peak, 0.0, promised=False)]


def simulate_tuning_data(scenario: Scenario, rng: np.random.Generator, *, models: int = 1) -> SimulatedFixture:
    """Questions in categories of different difficulty, some of them duplicates with one answer, split into folds.

    With several models, half of the noise variance is independent per model and question.

    >>> fixture = simulate_tuning_data(scenarios()[0], np.random.default_rng(0))
    >>> fixture.hits[0].shape, len(fixture.splits), len(fixture.splits[0])
    ((27, 100), 10, 5)
    """
    groups = np.arange(QUESTIONS)
    groups[QUESTIONS - N_DUPLICATES :] = np.arange(N_DUPLICATES)
    easiness = rng.normal(size=QUESTIONS)[groups]
    categories = np.digitize(easiness + rng.normal(size=QUESTIONS), CATEGORY_BORDERS)
    split_options = {"stratify": categories.tolist(), "groups": groups.tolist()}
    splits = [kfold_splits(range(QUESTIONS), FOLDS, **split_options, rng=rng) for _ in range(SPLITS)]
    hits = tuple(_hits(scenario, easiness, models > 1, rng) for _ in range(models))
    return SimulatedFixture(hits, splits, groups)


def _hits(scenario: Scenario, easiness: Floats, independent: bool, rng: np.random.Generator) -> Floats:
    noise = rng.normal(size=(len(scenario.strengths), 1, QUESTIONS))
    if independent:
        noise = np.sqrt(0.5) * (noise + rng.normal(size=QUESTIONS))
    latent = np.sqrt(scenario.shared) * easiness + np.sqrt(1.0 - scenario.shared) * noise
    hits = latent + scenario.strengths[:, :, None] > 0.0
    return np.asarray(hits.reshape(-1, QUESTIONS), dtype=np.float64)


LARGEST_BIAS = 0.005
ALPHA = 0.05
RESAMPLES = 300
N_PERMUTATIONS = 999
MODELS = 3
METRIC = "held-out accuracy"


@dataclass(frozen=True, slots=True)
class SelectionRow:
    """Mean errors and coverages of the optimistic and the nested score in one scenario.

    ``wilson_coverage`` is that of Wilson's interval around the nested score, which assumes independent
    questions; ``bias_of_chosen`` is the nested score minus the true accuracy of the selections of the folds.
    """

    scenario: str
    shared: float
    trials: int
    optimistic_bias: float
    optimistic_coverage: float
    nested_bias: float
    nested_error: float
    wilson_coverage: float
    nested_coverage: float
    bias_of_chosen: float
    promised: bool = True

    @property
    def kept(self) -> bool:
        """Whether bias and coverage are in the guaranteed range, within three Monte Carlo errors."""
        tolerance = 3.0 * sqrt(0.95 * 0.05 / self.trials)
        is_covered = PROMISED[0] - tolerance <= self.nested_coverage <= PROMISED[1] + tolerance
        return is_covered and abs(self.nested_bias) <= LARGEST_BIAS + 3.0 * self.nested_error

    @property
    def note(self) -> str:
        """A remark on the guarantee, or an empty string."""
        if not self.promised:
            return "no promise"
        return "" if self.kept else "not kept"


@dataclass(frozen=True, slots=True)
class FalseAlarmRow:
    """False-positive rates for equally good, tuned models at 5 %.

    ``randomisation`` and ``mcnemar`` are the tests alone, on one pair. ``shipped`` is the rule of comparisons for
    that pair: the larger of the p of the test and of resampled selections. ``any_pair`` is the rate for any of
    the three pairs after Holm's correction.
    """

    scenario: str
    shared: float
    trials: int
    randomisation: float
    mcnemar: float
    shipped: float
    any_pair: float
    promised: bool = True

    @property
    def kept(self) -> bool:
        """Whether the rule of comparisons is below 5 %, within three Monte Carlo errors and half a point."""
        upper_limit = ALPHA + 0.005 + 3.0 * sqrt(ALPHA * (1.0 - ALPHA) / self.trials)
        return max(self.shipped, self.any_pair) <= upper_limit

    @property
    def note(self) -> str:
        """A remark on the guarantee, or an empty string."""
        if not self.promised:
            return "no promise"
        return "" if self.kept else "not kept"


def selection_row(
    scenario: Scenario, simulations: int, rng: np.random.Generator, *, n_resamples: int = RESAMPLES
) -> SelectionRow:
    """Tune on many simulated fixtures, and compare both scores with the true accuracy."""
    accuracies = scenario.accuracies
    results = np.array([_selection(scenario, accuracies, n_resamples, rng) for _ in range(simulations)])
    means = results.mean(axis=0).tolist()
    return SelectionRow(
        scenario=scenario.name,
        shared=scenario.shared,
        trials=simulations,
        optimistic_bias=means[0],
        optimistic_coverage=means[1],
        nested_bias=means[2],
        nested_error=float(results[:, 2].std() / sqrt(simulations)),
        wilson_coverage=means[3],
        nested_coverage=means[4],
        bias_of_chosen=means[5],
        promised=scenario.promised,
    )


def false_alarm_row(
    scenario: Scenario, simulations: int, rng: np.random.Generator, *, n_resamples: int = RESAMPLES
) -> FalseAlarmRow:
    """Tune three equally good models on many simulated fixtures, and compare their nested values."""
    p = np.array([_tests(scenario, n_resamples, rng) for _ in range(simulations)])
    randomisation, mcnemar, shipped, any_pair = (p < ALPHA).mean(axis=0).tolist()
    return FalseAlarmRow(
        scenario=scenario.name,
        shared=scenario.shared,
        trials=simulations,
        randomisation=randomisation,
        mcnemar=mcnemar,
        shipped=shipped,
        any_pair=any_pair,
        promised=scenario.promised,
    )


def selection_lines(rows: Sequence[SelectionRow]) -> list[str]:
    """The rows as aligned text; biases in points."""
    header = f"{'configurations':18}  {'shared':>6}  {'trials':>6}  {'optimistic':>18}  {'nested':>18}"
    lines = [f"{header}  {'by Wilson':>9}  {'of chosen':>9}"]
    for row in rows:
        line = (
            f"{row.scenario:18}  {row.shared:6.1f}  {row.trials:6}  "
            f"{row.optimistic_bias * 100:+9.2f}  {row.optimistic_coverage:7.1%}  "
            f"{row.nested_bias * 100:+9.2f}  {row.nested_coverage:7.1%}  "
            f"{row.wilson_coverage:9.1%}  {row.bias_of_chosen * 100:+9.2f}  {row.note}"
        )
        lines.append(line.rstrip())
    return lines


def false_alarm_lines(rows: Sequence[FalseAlarmRow]) -> list[str]:
    """The rates of false positives as aligned text."""
    header = f"{'configurations':18}  {'shared':>6}  {'trials':>6}"
    lines = [f"{header}  {'randomisation':>13}  {'mcnemar':>7}  {'shipped':>7}  {'any pair':>8}"]
    for row in rows:
        line = (
            f"{row.scenario:18}  {row.shared:6.1f}  {row.trials:6}  "
            f"{row.randomisation:13.1%}  {row.mcnemar:7.1%}  {row.shipped:7.1%}  {row.any_pair:8.1%}  "
            f"{row.note}"
        )
        lines.append(line.rstrip())
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables; return 1 if a guarantee is violated."""
    parser = argparse.ArgumentParser(description="Simulate tuning on fixtures with known true accuracies.")
    parser.add_argument("--simulations", type=int, default=2000, help="fixtures of each kind (2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all randomness (0)")
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(options.seed)
    rows = [selection_row(scenario, options.simulations, rng) for scenario in scenarios()]
    sys.stdout.write(
        "The best of 27 configurations on 100 questions: bias in points and coverage of 95 % intervals\n"
        "(nested: the interval of resampled selections; by Wilson: the coverage if the questions were assumed to be\n"
        "independent; of chosen: bias against the selections of the folds; shared: variance due to the questions)\n"
    )
    sys.stdout.write("\n".join(selection_lines(rows)) + "\n")
    rates = [false_alarm_row(scenario, options.simulations, rng) for scenario in scenarios()]
    sys.stdout.write(
        "\nFalse positives at 5 % of equally good models, each tuned and scored nested (shipped: the larger\n"
        "of the p of randomisation and of resampled selections; any pair: the same for three models, after Holm)\n"
    )
    sys.stdout.write("\n".join(false_alarm_lines(rates)) + "\n")
    violations = [row.note for row in rows if row.promised and not row.kept]
    violations += [rate.note for rate in rates if rate.promised and not rate.kept]
    return int(bool(violations))


def _selection(scenario: Scenario, accuracies: Floats, n_resamples: int, rng: np.random.Generator) -> tuple[float, ...]:
    """One fixture: errors of the scores and whether the intervals cover, in the order of the row."""
    fixture = simulate_tuning_data(scenario, rng)
    hits = fixture.hits[0]
    nested = repeated_nested_cv(hits, fixture.splits)
    truth = float(accuracies[nested.best])
    errors = _errors(hits, fixture, n_resamples, rng)
    selected_accuracy = accuracies[nested.trial_of].mean()
    return (
        nested.optimistic - truth,
        wilson_interval(hits[nested.best].sum(), QUESTIONS).covers(truth),
        nested.value - truth,
        wilson_interval(nested.values.sum(), QUESTIONS).covers(truth),
        nested_interval(nested, errors).covers(truth),
        nested.value - float(selected_accuracy),
    )


def _tests(scenario: Scenario, n_resamples: int, rng: np.random.Generator) -> tuple[float, ...]:
    """One fixture: the p of each test of the first pair, and the smallest adjusted p of all pairs."""
    fixture = simulate_tuning_data(scenario, rng, models=MODELS)
    seed = int(rng.integers(2**32))
    results = [_result(str(index), hits, fixture, n_resamples, seed) for index, hits in enumerate(fixture.hits)]
    first, second = (result.per_unit[METRIC] for result in results[:2])
    test_p = [
        run_test("randomisation", first - second, n_permutations=N_PERMUTATIONS, rng=rng)[0],
        run_test("mcnemar", majority_hits(first) - majority_hits(second), n_permutations=N_PERMUTATIONS, rng=rng)[0],
    ]
    contrasts = compare_results(
        results, config=StatsConfig(n_permutations=N_PERMUTATIONS, n_resamples=1, seed=seed)
    ).contrasts
    return (*map(float, test_p), contrasts[0].p, min(contrast.adjusted for contrast in contrasts))


def _result(system: str, hits: Floats, fixture: SimulatedFixture, n_resamples: int, seed: int) -> Result:
    """The result of one model: nested values, and error samples that are paired with those of other models."""
    nested = repeated_nested_cv(hits, fixture.splits)
    errors = _errors(hits, fixture, n_resamples, np.random.default_rng(seed))
    return result_from_values(
        system,
        range(QUESTIONS),
        {METRIC: nested.values},
        intervals={METRIC: nested_interval(nested, errors)},
        errors={METRIC: errors},
        settings={RESAMPLE_ID: "the same", ERROR_DF: QUESTIONS - 1},
    )


def _errors(hits: Floats, fixture: SimulatedFixture, n_resamples: int, rng: np.random.Generator) -> Floats:
    return selection_errors(
        hits,
        fixture.splits[0],
        splits=RESAMPLED_SPLITS,
        clusters=fixture.groups,
        n_resamples=n_resamples,
        rng=rng,
    )


if __name__ == "__main__":
    sys.exit(main())
