"""Is a run worse than a baseline by more than a margin? Paired one-sided tests on the same units."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, sqrt
from typing import TYPE_CHECKING

import numpy as np

from equipoise.checks.base import pluralize
from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import DuplicateError, PairingError, ParameterError, UnknownNameError
from equipoise.metrics.parser import parse_metrics
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import with_metrics
from equipoise.stats.bootstrap_mean import ResamplingUnits, bayesian_bootstrap_sums, ratio
from equipoise.stats.formatting import (
    DEFAULT_DECIMALS,
    format_count,
    format_difference,
    format_p,
    format_percent,
    format_value,
    p_in_sentence,
)
from equipoise.stats.multiple_comparisons import adjust, step_level
from equipoise.stats.paired_tests import paired_t_test, sign_flip_test
from equipoise.stats.pairing import AlignedResults, align_results
from equipoise.stats.power import detectable_difference
from equipoise.stats.result import BUDGET, FOLDS, GRID, MATCHER, TOKENIZER
from equipoise.stats.tuning_uncertainty import DifferenceErrors, larger_p
from equipoise.stats.verdict import Vocabulary, unit_noun
from equipoise.types import Direction, Floats, Ids

if TYPE_CHECKING:
    from equipoise.runs.run_folder import StoredRun
    from equipoise.stats.result import Estimate

# The p value of "the true loss does not exceed the margin", and the smallest p that is possible.

RANDOMISATION, STUDENT, BOUNDS = TESTS = ("randomisation", "t", "bounds")
"""The tests of a loss: sign-flip randomisation, Student's t, or one that uses only the bounds of the metric."""


@dataclass(frozen=True)
class InferiorityTest:
    """The tolerated loss, and the test of a larger one; None is the default test, which depends on the margin."""

    margin: float
    test: str | None = None
    config: StatsConfig = DEFAULT_STATS

    def __post_init__(self) -> None:
        if self.test is not None and self.test not in TESTS:
            raise UnknownNameError.of("test of a loss", self.test, TESTS)
        if self.test == RANDOMISATION and self.margin:
            raise ParameterError(
                "the randomisation test takes no margin",
                hint=f"use the test {STUDENT} or {BOUNDS} with a margin",
            )

    def method(self, width: float) -> str:
        """The test of a metric whose largest difference is ``width``; without a bound, ``bounds`` is the default test.

        >>> InferiorityTest(0.0).method(1.0), InferiorityTest(0.01).method(1.0), InferiorityTest(0.0, "t").method(inf)
        ('randomisation', 't', 't')
        """
        if self.test is None or (self.test == BOUNDS and width == inf):
            return STUDENT if self.margin else RANDOMISATION
        return self.test

    @property
    def alpha(self) -> float:
        """The p below which a loss is significant."""
        return self.config.alpha

    def factor(self, n_metrics: int) -> int:
        """The factor by which the correction multiplies p if it is the smallest possible for all metrics."""
        return n_metrics if self.config.correction == "holm" else 1

    def checked(self, n_metrics: int) -> InferiorityTest:
        """The same test; an error if p cannot be small enough with so few permutations."""
        factor = self.factor(n_metrics)
        if self.test == BOUNDS and factor / (self.config.n_permutations + 1) >= self.alpha:
            scope = f" of {factor} metrics" if factor > 1 else ""
            raise ParameterError(
                f"{format_count(self.config.n_permutations)} permutations cannot show a loss{scope} at "
                f"{format_percent(self.config.confidence_level)}, however large it is",
                hint=f"give --n-permutations {ceil(factor / self.alpha)} or more, or a lower --confidence-level",
            )
        return self


@dataclass(frozen=True)
class UnitGains:
    """The gain of a run per unit; ``width`` is the largest gain that the metric allows.

    ``errors`` are the bootstrap errors of the mean gain of tuned runs.
    """

    values: Floats
    weights: Floats | None
    clusters: Ids | None
    width: float
    errors: DifferenceErrors | None = None

    @property
    def _units(self) -> ResamplingUnits:
        return ResamplingUnits.of(self.values[:, np.newaxis], self.weights, self.clusters)

    @property
    def blocks(self) -> int:
        """The number of independent units, or clusters of units."""
        return int(self._units.counts[0])

    def p_of_loss(self, test: InferiorityTest) -> float:
        """The p value of the loss if the true loss is within the margin; NaN if unknown.

        That of tuned runs is the larger one of the paired test and of the bootstrap errors, as in a comparison.
        """
        p, n_units = self._paired_p(test), int(self._units.n_units[0])
        if self.errors is None or n_units < 2:
            return p
        # Errors have no direction: p is half the two-sided p, at the confidence level 2 c - 1.
        excess = float(self._units.means[0]) + test.margin
        _, two_sided = self.errors.test(excess, n_units, 2 * test.config.confidence_level - 1)
        return larger_p(p, two_sided / 2 if excess < 0 else 1 - two_sided / 2)

    def _paired_p(self, test: InferiorityTest) -> float:
        rng = test.config.rng(0)
        method = test.method(self.width)
        if method == BOUNDS:
            return self.p_within_bounds(test, rng)
        if method == RANDOMISATION:
            p_values = sign_flip_test(
                self.values,
                weights=self.weights,
                clusters=self.clusters,
                alternative="less",
                n_permutations=test.config.n_permutations,
                rng=rng,
            )
            return float(p_values[0])
        p_values = paired_t_test(
            self.values + test.margin, weights=self.weights, clusters=self.clusters, alternative="less"
        )
        return float(p_values[0])

    def p_within_bounds(self, test: InferiorityTest, rng: np.random.Generator) -> float:
        """The share of Bayesian bootstrap resamples in which the mean loss is not above the margin.

        Each resample has one more unit, with the largest gain that the bounds of the metric allow. So p assumes
        nothing else about the differences, and remains valid if a few of them are very large. A metric without bounds
        gets the default test instead. p is undefined (NaN) if there are no units.
        """
        units = self._units.ordered()
        if not units.counts[0]:
            return float("nan")
        sums, extra = bayesian_bootstrap_sums(np.hstack([units.totals, units.masses]), test.config.n_permutations, rng)
        extra = extra * ratio(units.masses.sum(axis=0), units.counts.astype(np.float64))
        means = ratio(sums[:, :1] + extra * self.width, sums[:, 1:] + extra)
        # A constant loss of exactly the margin does not exceed it; the tolerance covers rounding.
        within = np.count_nonzero(means >= -test.margin - 1e-12 * self.width)
        return (within + 1) / (test.config.n_permutations + 1)

    def smallest_p(self, test: InferiorityTest) -> float:
        """The p of the largest loss with this number of units; 0 if p has no lower limit.

        >>> UnitGains(np.full(4, -0.1), None, None, 1.0).smallest_p(InferiorityTest(0.0))
        0.0625
        """
        method = test.method(self.width)
        if method == BOUNDS:
            return float(min(1.0, (self.width + test.margin) / (2 * self.width)) ** self.blocks)
        return float(0.5**self.blocks) if method == RANDOMISATION else 0.0

    def visible(self, test: InferiorityTest, n_metrics: int) -> float:
        """The smallest true loss that is detected with a power of 80 %; NaN if unknown or larger than any loss.

        It is that of Student's t at the strictest level of ``n_metrics`` tests.
        """
        units, level = self._units, step_level(0, n_metrics, test.config.correction, test.alpha)
        n_units, n_blocks = float(units.n_units[0]), float(units.counts[0])
        if level >= 0.5 or n_blocks < 2 or self.smallest_p(test) >= level:
            return float("nan")
        error, units_per_block = float(units.standard_errors[0]), max(1.0, n_units / n_blocks)
        if self.errors is not None and self.errors.size > 0:
            error, units_per_block = self.errors.size, 1.0
        difference = detectable_difference(
            error * sqrt(n_units),
            n_units,
            confidence_level=1 - 2 * level,
            units_per_block=units_per_block,
        )
        loss = test.margin + difference.value
        return loss if loss <= self.width else float("nan")


# One check of a gate.


@dataclass(frozen=True, slots=True)
class GateCheck:
    """Whether one requirement holds, with a message; None is a value that was not computed.

    ``about`` is its kind: a minimum, a regression, or the state of a run. ``bound`` is the end of an
    interval that was compared, ``difference`` the gain over a baseline (negative: a loss).
    """

    passed: bool
    message: str
    about: str
    metric: str | None = None
    value: float | None = None
    bound: float | None = None
    difference: float | None = None
    p: float | None = None
    n: int | None = None


PROTOCOL_LABELS = {
    "ties": "ties",
    "like": "the conventions of",
    MATCHER: "the matcher",
    TOKENIZER: "the tokenizer",
    FOLDS: "folds",
    BUDGET: "a budget of",
    GRID: "the grid",
    **{name: name.replace("_", " ") for name in ("padding", "unseen", "ignore_index")},
    **{name: name.replace("_", " ") for name in ("relation", "filtered", "measure", "mode", "averaging")},
}
"""Settings that decide what a value means; a setting that only one of two runs has differs."""
_PLACES = DEFAULT_DECIMALS + 1


@dataclass(frozen=True)
class AdjustedPValue:
    """The p value of one metric, adjusted for all metrics of the gate."""

    p: float
    n_metrics: int

    @property
    def words(self) -> str:
        """The adjustment, if there is one."""
        return f" adjusted for {self.n_metrics} metrics" if self.n_metrics > 1 else ""


def check_regressions(
    run: StoredRun,
    baseline: StoredRun,
    metrics: Sequence[str],
    test: InferiorityTest,
) -> list[GateCheck]:
    """A check for every metric, or one failed check if the runs cannot be compared."""
    reason = _not_comparable(run, baseline)
    if reason:
        return [GateCheck(False, reason, "regression")]
    current, reference = with_metrics(run.result, metrics), baseline.result
    if reference.system == current.system:
        reference = reference.renamed(f"{current.system} (baseline)")
    try:
        reference = with_metrics(reference, list(current.names))
    except (UnknownNameError, ParameterError) as error:
        return [GateCheck(False, f"the baseline cannot be compared: {error.message}", "regression")]
    try:
        paired = align_results([current, reference])
        return _by_metric(paired, test)
    except (PairingError, DuplicateError) as error:
        return [GateCheck(False, error.message, "regression")]


def _not_comparable(run: StoredRun, baseline: StoredRun) -> str:
    """Why two runs cannot be compared; empty if they can."""
    if baseline.caution:
        return f"the baseline cannot be used: {baseline.caution}"
    datasets, baseline_datasets = (set(stored.manifest.datasets.values()) for stored in (run, baseline))
    if datasets and baseline_datasets and datasets != baseline_datasets:
        return "the runs were scored on different data: the SHA-256 hashes of the ground truth differ"
    current, reference = run.result.settings, baseline.result.settings
    for name, words in PROTOCOL_LABELS.items():
        if current.get(name) != reference.get(name):
            values = [_format_setting(settings.get(name), name) for settings in (current, reference)]
            return f"the runs were scored in different ways: {words} {values[0]} here, {values[1]} in the baseline"
    kinds = [type(result.evidence).kind for result in (run.result, baseline.result) if result.evidence is not None]
    if len(set(kinds)) > 1:
        return f"the runs have different kinds of evidence: {kinds[0]} here, {kinds[1]} in the baseline"
    return ""


def _format_setting(value: object, name: str) -> str:
    if value is None:
        return "equipoise" if name == "like" else "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _by_metric(paired: AlignedResults, test: InferiorityTest) -> list[GateCheck]:
    """All means over units are one family of tests; other values are compared by their intervals."""
    names = paired.results[0].names
    means = [name for name in names if paired.has_parts(name)]
    correction = test.config.correction
    family_size = 1 if correction == "none" else len(means)
    if means:
        test.checked(family_size)
    gains = {name: _gains(paired, name) for name in means}
    p_values = [unit_gains.p_of_loss(test) for unit_gains in gains.values()]
    adjusted = dict(zip(means, adjust(p_values, correction).tolist(), strict=True)) if means else {}
    return [
        _mean_verdict(paired, gains[name], name, AdjustedPValue(adjusted[name], family_size), test)
        if name in adjusted
        else _corpus_verdict(paired, name, test)
        for name in names
    ]


def _gains(paired: AlignedResults, metric: str) -> UnitGains:
    values = paired.per_unit(metric)
    difference = values[:, 0] - values[:, 1]
    better = paired.results[0].estimates[metric].better
    gains = np.asarray(difference if better == Direction.UP else -difference)
    errors = DifferenceErrors.of(metric, *paired.results)
    return UnitGains(gains, paired.weights(metric), paired.clusters, _width(paired, metric), errors)


def _width(paired: AlignedResults, metric: str) -> float:
    """The largest difference of two values of a metric; infinite if unknown."""
    evidence = paired.results[0].evidence
    try:
        low, high = parse_metrics(metric, evidence=None if evidence is None else type(evidence))[0].bounds
    except (UnknownNameError, ParameterError):
        return inf
    return high - low


def _mean_verdict(
    paired: AlignedResults, gains: UnitGains, metric: str, adjusted: AdjustedPValue, test: InferiorityTest
) -> GateCheck:
    current, reference = (result.estimates[metric] for result in paired.results)
    undefined = np.isnan(paired.per_unit(metric))
    one_sided = int(np.count_nonzero(undefined[:, 0] != undefined[:, 1]))
    n = int(np.count_nonzero(~undefined.any(axis=1)))
    words = Vocabulary(unit_noun(paired.results))
    if one_sided or np.isnan([current.value, reference.value]).any():
        subject = f"{words.units(one_sided)} {'has' if one_sided == 1 else 'have'}"
        what = f"{subject} a value in one run only" if one_sided else "it has no value"
        return GateCheck(False, f"{metric} cannot be compared: {what}", "regression", metric, n=n)
    gain, p = _gain(current, reference), adjusted.p
    is_loss = _exceeds(gain, test.margin)
    undecided = _undecided(gains, adjusted, test)
    failed = is_loss and (bool(undecided) or p < test.alpha)
    verdict = f"{'a' if failed else 'no'} significant loss{_margin_text(test)}"
    if undecided:
        loss = f"a loss{_margin_text(test)}"
        verdict = (
            f"{loss} that cannot be tested: {undecided}" if is_loss else f"{loss} could not be tested: {undecided}"
        )
    details = [*([] if np.isnan(p) else [f"{p_in_sentence(p)}{adjusted.words}"]), words.units(n)]
    visible = gains.visible(test, adjusted.n_metrics)
    if not failed and not undecided and np.isfinite(visible) and test.test != BOUNDS:
        details.append(f"a loss of {format_value(visible, _PLACES)} would be detected with 80 % power")
    message = f"{_describe_gain(current, reference, gain)}; {verdict} ({', '.join(details)})"
    known_p = None if np.isnan(p) else p
    return GateCheck(not failed, message, "regression", metric, current.value, None, gain, known_p, n)


def _undecided(gains: UnitGains, adjusted: AdjustedPValue, test: InferiorityTest) -> str:
    """Why no loss could be significant in this test; empty if one could."""
    what = pluralize(gains.blocks, "value" if gains.clusters is None else "cluster")
    if np.isnan(adjusted.p):
        return f"{what} without variation"
    smallest = min(1.0, gains.smallest_p(test) * test.factor(adjusted.n_metrics))
    if smallest < test.alpha:
        return ""
    return f"{what} cannot give a p below {format_p(smallest)}"


def _corpus_verdict(paired: AlignedResults, metric: str, test: InferiorityTest) -> GateCheck:
    """A value that is not a mean over units: the end of the interval of its difference decides.

    An interval at the level 2 c - 1 has as much probability on each side as a one-sided test at the level c. If
    every resample gives the same difference there is no interval, and the difference itself decides.
    """
    current, reference = (result.estimates[metric] for result in paired.results)
    gain = _gain(current, reference)
    one_sided = replace(test.config, confidence_level=2 * test.config.confidence_level - 1)
    contrast = compare(list(paired.results), [metric], config=one_sided).contrasts[0]
    interval = contrast.interval
    if np.isnan(gain) or (not interval.known and contrast.reason):
        reason = contrast.reason or interval.reason or "it has no value"
        return GateCheck(False, f"{metric} cannot be compared: {reason}", "regression", metric, n=contrast.n)
    units = Vocabulary(unit_noun(paired.results)).units(contrast.n)
    if interval.known:
        best = interval.high if current.better == Direction.UP else -interval.low
        details = (
            f"upper {format_percent(test.config.confidence_level)} confidence limit of the gain: "
            f"{format_difference(best, _PLACES)}; {units}"
        )
    else:
        best, details = gain, f"{interval.reason}, {units}"
    significant = _exceeds(best, test.margin)
    verdict = f"{'a' if significant else 'no'} significant loss{_margin_text(test)}"
    message = f"{_describe_gain(current, reference, gain)}; {verdict} ({details})"
    return GateCheck(not significant, message, "regression", metric, current.value, best, gain, None, contrast.n)


def _exceeds(gain: float, margin: float) -> bool:
    """Whether a gain is a loss beyond the margin, up to rounding: 0.5 - 0.4 does not exceed 0.1."""
    return gain < -margin - 1e-12 * max(1.0, abs(gain))


def _gain(current: Estimate, reference: Estimate) -> float:
    difference = current.value - reference.value
    return difference if current.better == Direction.UP else -difference


def _describe_gain(current: Estimate, reference: Estimate, gain: float) -> str:
    value = f"{current.metric} is {format_value(current.value, _PLACES)}"
    if not gain:
        return f"{value}, unchanged"
    change = "up" if current.value > reference.value else "down"
    direction = "" if current.better == Direction.UP else " (lower is better)"
    before = format_value(reference.value, _PLACES)
    return f"{value}, {change} {format_value(abs(gain), _PLACES)} from {before}{direction}"


def _margin_text(test: InferiorityTest) -> str:
    return f" beyond the margin of {test.margin:g}" if test.margin else ""
