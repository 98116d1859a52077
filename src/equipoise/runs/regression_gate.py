"""Has a run lost against a baseline? A paired question, on the same units, or no answer at all."""

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
from equipoise.stats.alignment import BUDGET, FOLDS, GRID, MATCHER, TOKENIZER, AlignedResults, align_results
from equipoise.stats.bootstrap import ResamplingUnits, bayesian_bootstrap_sums, ratio
from equipoise.stats.corrections import adjust
from equipoise.stats.formatting import (
    DEFAULT_DECIMALS,
    format_count,
    format_difference,
    format_p,
    format_percent,
    format_value,
)
from equipoise.stats.paired_tests import mean_difference, paired_t_test, sign_flip_test
from equipoise.stats.power import detectable_difference
from equipoise.types import Direction, Floats, Ids

if TYPE_CHECKING:
    from equipoise.runs.store import StoredRun
    from equipoise.stats.result import Estimate, Result

# How sure a loss is: p of "the true loss does not exceed the margin", and how small p can become at all.

TESTS = ("t", "bounds")
"""How a loss beyond a margin is judged: by Student's t, or by the bounds of the metric alone."""


@dataclass(frozen=True)
class RegressionTest:
    """What is asked of a pair of results: how much may be lost, and how sure a loss must be."""

    margin: float
    test: str = "t"
    config: StatsConfig = DEFAULT_STATS

    def __post_init__(self) -> None:
        if self.test not in TESTS:
            raise UnknownNameError.of("test of a loss", self.test, TESTS)

    @property
    def alpha(self) -> float:
        """The p below which a loss is significant."""
        return self.config.alpha

    def checked(self, metrics: int) -> RegressionTest:
        """The same test; an error where p cannot be small enough with so few permutations."""
        if metrics and metrics / (self.config.n_permutations + 1) >= self.alpha:
            of = f" of {metrics} metrics" if metrics > 1 else ""
            raise ParameterError(
                f"{format_count(self.config.n_permutations)} permutations cannot show a loss{of} at "
                f"{format_percent(self.config.confidence_level)}, however large it is",
                hint=f"give --n-permutations {ceil(metrics / self.alpha)} or more, or a lower --confidence-level",
            )
        return self


@dataclass(frozen=True)
class UnitGains:
    """Unit by unit, by how much a run is better; ``width`` is the largest gain that the metric allows."""

    values: Floats
    weights: Floats | None
    clusters: Ids | None
    width: float

    @property
    def _draws(self) -> ResamplingUnits:
        return ResamplingUnits.of(self.values[:, np.newaxis], self.weights, self.clusters)

    @property
    def blocks(self) -> int:
        """How many independent pieces there are: units, or clusters of them."""
        return int(self._draws.counts[0])

    def p_of_loss(self, asked: RegressionTest) -> float:
        """How likely so large a loss is, if the true one is within the margin; NaN if nobody can say."""
        rng = asked.config.rng(0)
        if asked.test == "bounds" and self.width < inf:
            return self._p_within_bounds(asked, rng)
        if asked.margin == 0.0:
            found = sign_flip_test(
                self.values,
                weights=self.weights,
                clusters=self.clusters,
                alternative="less",
                n_permutations=asked.config.n_permutations,
                rng=rng,
            )
            return float(found[0])
        by_t = paired_t_test(
            self.values,
            weights=self.weights,
            clusters=self.clusters,
            alternative="less",
            margin=-asked.margin,
        )
        return float(by_t[0])

    def _p_within_bounds(self, asked: RegressionTest, rng: np.random.Generator) -> float:
        """Gaffke's p (2005): the Bayesian bootstrap with one more draw, which gains all it can."""
        draws = self._draws.ordered()
        if not draws.counts[0]:
            return float("nan")
        sums, extra = bayesian_bootstrap_sums(np.hstack([draws.totals, draws.masses]), asked.config.n_permutations, rng)
        extra = extra * ratio(draws.masses.sum(axis=0), draws.counts.astype(np.float64))
        means = ratio(sums[:, :1] + extra * self.width, sums[:, 1:] + extra)
        # A constant loss of exactly the margin is no larger one, whatever rounding says.
        within = np.count_nonzero(means >= -asked.margin - 1e-12 * self.width)
        return (within + 1) / (asked.config.n_permutations + 1)

    def smallest_p(self, asked: RegressionTest) -> float:
        """The p of the worst loss that so many units could show; 0 where nothing keeps it from being small.

        >>> UnitGains(np.full(4, -0.1), None, None, 1.0).smallest_p(RegressionTest(0.0))
        0.0625
        """
        if asked.test == "bounds" and self.width < inf:
            return float(min(1.0, (self.width + asked.margin) / (2 * self.width)) ** self.blocks)
        return float(0.5**self.blocks) if asked.margin == 0.0 else 0.0

    def visible(self, asked: RegressionTest) -> float:
        """The smallest true loss that Student's t would call one with a chance of 80 %; NaN if unknown."""
        found = mean_difference(self.values[:, np.newaxis], weights=self.weights, clusters=self.clusters)
        units, blocks = float(found.units[0]), float(found.blocks[0])
        if asked.config.confidence_level <= 0.5 or blocks < 2:
            return float("nan")
        sd = float(found.error[0]) * sqrt(units)
        beyond = detectable_difference(
            sd, units, confidence_level=2 * asked.config.confidence_level - 1, units_per_block=max(1.0, units / blocks)
        )
        return asked.margin + beyond.value


# One answer of a gate.


@dataclass(frozen=True, slots=True)
class GateCheck:
    """Whether one thing that was asked holds, in a sentence; None is what was not computed.

    ``about`` is what was asked: a minimum, a regression, or the state of a run. ``bound`` is the end of an
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
"""Settings that decide what a figure means; one that only one of two runs knows differs."""
_PLACES = DEFAULT_DECIMALS + 1


@dataclass(frozen=True)
class AdjustedPValue:
    """The p of one metric, adjusted for all that were asked about."""

    p: float
    metrics: int

    @property
    def words(self) -> str:
        """That p is adjusted, where it is."""
        return f" adjusted for {self.metrics} metrics" if self.metrics > 1 else ""


def check_regressions(
    run: StoredRun,
    baseline: StoredRun,
    metrics: Sequence[str],
    asked: RegressionTest,
) -> list[GateCheck]:
    """A verdict for every metric, or one that says why there can be none."""
    closed = _different_ways(run, baseline)
    if closed:
        return [GateCheck(False, closed, "regression")]
    ours = with_metrics(run.result, metrics)
    try:
        theirs = with_metrics(_renamed(baseline.result, ours.system), list(ours.names))
    except (UnknownNameError, ParameterError) as error:
        return [GateCheck(False, f"the baseline cannot be compared: {error.message}", "regression")]
    try:
        paired = align_results([ours, theirs])
        return _by_metric(paired, asked)
    except (PairingError, DuplicateError) as error:
        return [GateCheck(False, error.message, "regression")]


def _different_ways(run: StoredRun, baseline: StoredRun) -> str:
    """Why two runs cannot be held against each other; empty when they can."""
    if baseline.caution:
        return f"the baseline decides nothing: {baseline.caution}"
    ours, theirs = run.result.settings, baseline.result.settings
    for name, words in PROTOCOL_LABELS.items():
        if ours.get(name) != theirs.get(name):
            how = [_said(each.get(name), name) for each in (ours, theirs)]
            return f"the runs were scored in different ways: {words} {how[0]} here, {how[1]} in the baseline"
    kinds = [type(each.evidence).kind for each in (run.result, baseline.result) if each.evidence is not None]
    if len(set(kinds)) > 1:
        return f"the runs hold different kinds of evidence: {kinds[0]} here, {kinds[1]} in the baseline"
    here, there = (set(each.manifest.datasets.values()) for each in (run, baseline))
    if here and there and here != there:
        return "the runs were scored on different data: the fingerprints of the truth differ"
    return ""


def _said(value: object, name: str) -> str:
    if value is None:
        return "equipoise" if name == "like" else "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _renamed(result: Result, system: str) -> Result:
    return replace(result, system=f"{system} (baseline)") if result.system == system else result


def _by_metric(paired: AlignedResults, asked: RegressionTest) -> list[GateCheck]:
    """All means over units are one family; other figures are judged by their own intervals."""
    names = paired.results[0].names
    means = [name for name in names if paired.has_parts(name)]
    asked.checked(len(means))
    gains = {name: _gains(paired, name) for name in means}
    p = [each.p_of_loss(asked) for each in gains.values()]
    adjusted = dict(zip(means, adjust(p, "holm").tolist(), strict=True)) if means else {}
    return [
        _mean_verdict(paired, gains[name], name, AdjustedPValue(adjusted[name], len(means)), asked)
        if name in adjusted
        else _corpus_verdict(paired, name, asked)
        for name in names
    ]


def _gains(paired: AlignedResults, metric: str) -> UnitGains:
    values = paired.per_unit(metric)
    difference = values[:, 0] - values[:, 1]
    better = paired.results[0].estimates[metric].better
    gains = np.asarray(difference if better == Direction.UP else -difference)
    return UnitGains(gains, paired.weights(metric), paired.clusters, _width(paired, metric))


def _width(paired: AlignedResults, metric: str) -> float:
    """How far apart two values of a metric can lie; infinite where nobody knows."""
    evidence = paired.results[0].evidence
    try:
        low, high = parse_metrics(metric, evidence=None if evidence is None else type(evidence))[0].bounds
    except (UnknownNameError, ParameterError):
        return inf
    return high - low


def _mean_verdict(
    paired: AlignedResults, gains: UnitGains, metric: str, tested: AdjustedPValue, asked: RegressionTest
) -> GateCheck:
    ours, theirs = (result.estimates[metric] for result in paired.results)
    undefined = np.isnan(paired.per_unit(metric))
    one_sided = int(np.count_nonzero(undefined[:, 0] != undefined[:, 1]))
    n = int(np.count_nonzero(~undefined.any(axis=1)))
    if one_sided or np.isnan([ours.value, theirs.value]).any():
        units = "1 unit has" if one_sided == 1 else f"{one_sided} units have"
        what = f"{units} a value in one run only" if one_sided else "it has no value"
        return GateCheck(False, f"{metric} cannot be compared: {what}", "regression", metric, n=n)
    gain, p = _gain(ours, theirs), tested.p
    lost = _exceeds(gain, asked.margin)
    undecided = _undecided(gains, tested, asked) if lost else ""
    closed = lost and (bool(undecided) or p < asked.alpha)
    judged = f"{'a' if closed else 'no'} significant loss{_beyond(asked)}"
    if undecided:
        judged = f"a loss{_beyond(asked)} that cannot be judged: {undecided}"
    details = [*([] if np.isnan(p) else [f"p {format_p(p)}{tested.words}"]), pluralize(n, "unit")]
    if not closed and np.isfinite(visible := gains.visible(asked)) and asked.test == "t":
        details.append(f"a true loss of {format_value(visible, _PLACES)} would show four times in five")
    sentence = f"{_beside(ours, theirs, gain)}, {judged} ({', '.join(details)})"
    shown = None if np.isnan(p) else p
    return GateCheck(not closed, sentence, "regression", metric, ours.value, None, gain, shown, n)


def _undecided(gains: UnitGains, tested: AdjustedPValue, asked: RegressionTest) -> str:
    """Why the test could not have called any loss significant; empty when it could."""
    what = pluralize(gains.blocks, "unit" if gains.clusters is None else "cluster")
    if np.isnan(tested.p):
        return f"{what} without any spread"
    smallest = gains.smallest_p(asked) * tested.metrics
    if smallest < asked.alpha:
        return ""
    return f"{what} cannot give a p below {format_p(min(smallest, 1.0))}"


def _corpus_verdict(paired: AlignedResults, metric: str, asked: RegressionTest) -> GateCheck:
    """A figure that is no mean over units: the end of the interval of its difference decides.

    At twice the level less 1 an interval leaves as much on each side as a one-sided test at the level. Where
    every resample gives the same difference there is no interval, but no doubt about the difference either.
    """
    ours, theirs = (result.estimates[metric] for result in paired.results)
    gain = _gain(ours, theirs)
    one_sided = replace(asked.config, confidence_level=2 * asked.config.confidence_level - 1)
    found = compare(list(paired.results), [metric], config=one_sided).contrasts[0]
    reach = found.interval
    if np.isnan(gain) or (not reach.known and found.reason):
        why = found.reason or reach.reason or "it has no value"
        return GateCheck(False, f"{metric} cannot be compared: {why}", "regression", metric, n=found.n)
    units = pluralize(found.n, "unit")
    if reach.known:
        best = reach.high if ours.better == Direction.UP else -reach.low
        how = f"at best {format_difference(best, _PLACES)} at {format_percent(asked.config.confidence_level)}, {units}"
    else:
        best, how = gain, f"{reach.reason}, {units}"
    significant = _exceeds(best, asked.margin)
    judged = f"{'a' if significant else 'no'} significant loss{_beyond(asked)}"
    sentence = f"{_beside(ours, theirs, gain)}, {judged} ({how})"
    return GateCheck(not significant, sentence, "regression", metric, ours.value, best, gain, None, found.n)


def _exceeds(gain: float, margin: float) -> bool:
    """Whether a gain is a loss beyond the margin; 0.5 - 0.4 is no more than 0.1."""
    return gain < -margin - 1e-12 * max(1.0, abs(gain))


def _gain(ours: Estimate, theirs: Estimate) -> float:
    difference = ours.value - theirs.value
    return difference if ours.better == Direction.UP else -difference


def _beside(ours: Estimate, theirs: Estimate, gain: float) -> str:
    better = "better" if gain > 0 else "worse"
    values = f"{ours.metric} is {format_value(ours.value, _PLACES)} and was {format_value(theirs.value, _PLACES)}"
    return f"{values}, {format_value(abs(gain), _PLACES)} {better}" if gain else f"{values}, the same"


def _beyond(asked: RegressionTest) -> str:
    return f" beyond the margin of {asked.margin:g}" if asked.margin else ""
