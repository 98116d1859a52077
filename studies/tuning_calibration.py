"""Simulations of tuning on fixtures whose truth is known: how biased is the score of the best of many?

``python -m equipoise.tune.calibration`` prints two tables. The first compares the optimistic score (the best
configuration, on the questions that chose it, with Wilson's interval) and the nested one (repeated nested
cross-validation) with the true accuracy of the configuration that would be deployed: the one that is best on
all questions. The nested score must be right within half a point on average, and its 95 % interval cover in
93 to 97 % of simulations. The second table holds tests of three models that are equally good: at 5 % they may
call two of them different in 5 % of simulations, and with Holm's correction any of the three pairs in no
more.
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
    repeated_choice,
    selection_errors,
)
from studies.interval_calibration import PROMISED

if TYPE_CHECKING:
    from equipoise.stats.result import Result
    from equipoise.types import Floats, Ints

# Simulated fixtures for tuning: questions, answers and configurations whose true accuracy is known.

QUESTIONS, N_DUPLICATES, FOLDS, CONFIGURATIONS = 100, 10, 5, 27
SPLITS = 10
"""Fewer than comparisons use, for speed: the score then varies a little more, never less."""
CATEGORY_BORDERS = (-1.5, -0.7, 0.0, 0.7, 1.5)


@dataclass(frozen=True)
class Scenario:
    """Strengths of the configurations (a row a chunking, a column a top_k).

    ``shared`` is the part of the variance that the questions decide.
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
    """Hits of each model (configurations x questions), the splits into folds, and the answers' groups."""

    hits: tuple[Floats, ...]
    splits: list[list[Fold]]
    groups: Ints


def scenarios() -> list[Scenario]:
    """What grids look like: nothing to choose, one thing to choose, and a smooth hill with top_k.

    Real configurations answer the same questions and mostly agree. Those of the last scenario share nothing,
    which no promise covers: it shows how far the nested figure can lag when four fifths of the
    questions often miss the one good configuration that all of them find.
    """
    level = np.full((CONFIGURATIONS, 1), 0.7)
    peak = np.where(np.arange(CONFIGURATIONS)[:, None] == CONFIGURATIONS // 2, 1.1, 0.5)
    hill = 0.15 * np.array([0.0, 0.5, 1.0, 0.8, 1.5, 1.2, 0.5, 1.0, 0.2])
    smooth = hill[:, None] + np.array([-0.1, 0.3, 0.6])
    patterns = [("all equal", level), ("one clearly best", peak), ("smooth grid", smooth)]
    cases = [Scenario(name, strengths, shared) for name, strengths in patterns for shared in (0.5, 0.8)]
    return [*cases, Scenario("one clearly best", peak, 0.0, promised=False)]


def simulate_tuning_data(scenario: Scenario, rng: np.random.Generator, *, models: int = 1) -> SimulatedFixture:
    """Questions in categories of different ease, some of them twins with one answer, dealt to folds.

    Of several models, each has luck of its own with each question, half of all the luck there is.

    >>> fixture = simulate_tuning_data(scenarios()[0], np.random.default_rng(0))
    >>> fixture.hits[0].shape, len(fixture.splits), len(fixture.splits[0])
    ((27, 100), 10, 5)
    """
    groups = np.arange(QUESTIONS)
    groups[QUESTIONS - N_DUPLICATES :] = np.arange(N_DUPLICATES)
    ease = rng.normal(size=QUESTIONS)[groups]
    categories = np.digitize(ease + rng.normal(size=QUESTIONS), CATEGORY_BORDERS)
    kinds = {"stratify": categories.tolist(), "groups": groups.tolist()}
    splits = [kfold_splits(range(QUESTIONS), FOLDS, **kinds, rng=rng) for _ in range(SPLITS)]
    hits = tuple(_hits(scenario, ease, models > 1, rng) for _ in range(models))
    return SimulatedFixture(hits, splits, groups)


def _hits(scenario: Scenario, ease: Floats, independent: bool, rng: np.random.Generator) -> Floats:
    noise = rng.normal(size=(len(scenario.strengths), 1, QUESTIONS))
    if independent:
        noise = np.sqrt(0.5) * (noise + rng.normal(size=QUESTIONS))
    latent = np.sqrt(scenario.shared) * ease + np.sqrt(1.0 - scenario.shared) * noise
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
    """Mean errors and coverages of the optimistic and the nested figure in one scenario.

    ``wilson_coverage`` is that of Wilson's interval around the nested figure, which takes the questions
    for independent; ``bias_of_chosen`` is the nested figure minus the truth of what the folds chose.
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
        """Whether bias and coverage lie where they must, three Monte-Carlo errors allowed."""
        slack = 3.0 * sqrt(0.95 * 0.05 / self.trials)
        covered = PROMISED[0] - slack <= self.nested_coverage <= PROMISED[1] + slack
        return covered and abs(self.nested_bias) <= LARGEST_BIAS + 3.0 * self.nested_error

    @property
    def note(self) -> str:
        """What a reader must know beside the numbers, or nothing."""
        if not self.promised:
            return "no promise"
        return "" if self.kept else "not kept"


@dataclass(frozen=True, slots=True)
class FalseAlarmRow:
    """How often equally good, tuned models were told apart at 5 %.

    ``randomisation`` and ``mcnemar`` are the tests alone, on one pair. ``shipped`` is what comparisons say of
    that pair: the larger of the test's p and of the redrawn one. ``any_pair`` is how often they tell any of
    the three pairs apart after Holm's correction.
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
        """Whether the shipped rule stays below 5 %, three Monte-Carlo errors and half a point allowed."""
        most = ALPHA + 0.005 + 3.0 * sqrt(ALPHA * (1.0 - ALPHA) / self.trials)
        return max(self.shipped, self.any_pair) <= most

    @property
    def note(self) -> str:
        """What a reader must know beside the numbers, or nothing."""
        if not self.promised:
            return "no promise"
        return "" if self.kept else "not kept"


def selection_row(
    scenario: Scenario, simulations: int, rng: np.random.Generator, *, n_resamples: int = RESAMPLES
) -> SelectionRow:
    """Tune on many simulated fixtures, and hold both figures against the truth."""
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
    head = f"{'configurations':18}  {'shared':>6}  {'trials':>6}  {'optimistic':>18}  {'nested':>18}"
    lines = [f"{head}  {'by Wilson':>9}  {'of chosen':>9}"]
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
    head = f"{'configurations':18}  {'shared':>6}  {'trials':>6}"
    lines = [f"{head}  {'randomisation':>13}  {'mcnemar':>7}  {'shipped':>7}  {'any pair':>8}"]
    for row in rows:
        line = (
            f"{row.scenario:18}  {row.shared:6.1f}  {row.trials:6}  "
            f"{row.randomisation:13.1%}  {row.mcnemar:7.1%}  {row.shipped:7.1%}  {row.any_pair:8.1%}  "
            f"{row.note}"
        )
        lines.append(line.rstrip())
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables; 1 if a promise is broken."""
    parser = argparse.ArgumentParser(description="Try tuning on fixtures whose truth is known.")
    parser.add_argument("--simulations", type=int, default=2000, help="fixtures of each kind (2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all randomness (0)")
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(options.seed)
    rows = [selection_row(scenario, options.simulations, rng) for scenario in scenarios()]
    sys.stdout.write(
        "The best of 27 configurations on 100 questions: bias in points and coverage of 95 % intervals\n"
        "(nested: the interval of redrawn choices; by Wilson: the coverage if the questions were taken for\n"
        "independent; of chosen: bias against what the folds chose; shared: what the questions decide)\n"
    )
    sys.stdout.write("\n".join(selection_lines(rows)) + "\n")
    rates = [false_alarm_row(scenario, options.simulations, rng) for scenario in scenarios()]
    sys.stdout.write(
        "\nFalse positives at 5 % of equally good models, each tuned and scored nested (shipped: the larger\n"
        "of the p of randomisation and of redrawn choices; any pair: the same of three models, after Holm)\n"
    )
    sys.stdout.write("\n".join(false_alarm_lines(rates)) + "\n")
    broken = [row.note for row in rows if row.promised and not row.kept]
    broken += [rate.note for rate in rates if rate.promised and not rate.kept]
    return int(bool(broken))


def _selection(scenario: Scenario, accuracies: Floats, n_resamples: int, rng: np.random.Generator) -> tuple[float, ...]:
    """One fixture: errors of the figures and whether the intervals cover, in the order of the row."""
    fixture = simulate_tuning_data(scenario, rng)
    hits = fixture.hits[0]
    nested = repeated_choice(hits, fixture.splits)
    truth = float(accuracies[nested.best])
    errors = _errors(hits, fixture, n_resamples, rng)
    of_chosen = accuracies[nested.trial_of].mean()
    return (
        nested.optimistic - truth,
        wilson_interval(hits[nested.best].sum(), QUESTIONS).covers(truth),
        nested.value - truth,
        wilson_interval(nested.values.sum(), QUESTIONS).covers(truth),
        nested_interval(nested, errors).covers(truth),
        nested.value - float(of_chosen),
    )


def _tests(scenario: Scenario, n_resamples: int, rng: np.random.Generator) -> tuple[float, ...]:
    """One fixture: the p of each test of the first pair, and the least adjusted p of all pairs."""
    fixture = simulate_tuning_data(scenario, rng, models=MODELS)
    seed = int(rng.integers(2**32))
    results = [_result(str(at), hits, fixture, n_resamples, seed) for at, hits in enumerate(fixture.hits)]
    one, other = (result.per_unit[METRIC] for result in results[:2])
    alone = [
        run_test("randomisation", one - other, n_permutations=N_PERMUTATIONS, rng=rng)[0],
        run_test("mcnemar", majority_hits(one) - majority_hits(other), n_permutations=N_PERMUTATIONS, rng=rng)[0],
    ]
    shipped = compare_results(
        results, config=StatsConfig(n_permutations=N_PERMUTATIONS, n_resamples=1, seed=seed)
    ).contrasts
    return (*map(float, alone), shipped[0].p, min(contrast.adjusted for contrast in shipped))


def _result(system: str, hits: Floats, fixture: SimulatedFixture, n_resamples: int, seed: int) -> Result:
    """What a comparison gets of one model: nested values, and errors that pair with those of the others."""
    nested = repeated_choice(hits, fixture.splits)
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
