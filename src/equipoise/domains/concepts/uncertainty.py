"""Uncertainty of a weighted score: bootstrap errors, intervals, chance level and permutation test.

The errors have one row per resample: the deviation of the score, scaled to the size of the full data. The
same seed samples the same units for every model, so errors of two models are paired. Errors of different tasks are
from different units, and are sampled independently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan, sqrt
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.concepts.scores import CONCEPT_STATS
from equipoise.metrics.parser import find_metric
from equipoise.stats.bootstrap_mean import cluster_members
from equipoise.stats.corpus_metrics import (
    DEFINED_SHARE,
    MIN_RESAMPLING_UNITS,
    SubsampleFractions,
    resampled_rows,
    subsample_size,
)
from equipoise.stats.intervals import Interval
from equipoise.stats.result import Estimate, Result
from equipoise.stats.tuning_uncertainty import ERROR_DF, RESAMPLE_ID, t_difference
from equipoise.types import Direction, Floats, Ints

if TYPE_CHECKING:
    from equipoise.domains.concepts.permutation import ChanceTest
    from equipoise.domains.concepts.scores import ConceptScore
    from equipoise.evidence.pairs import Pairs
    from equipoise.evidence.space import Space

Parts = Mapping[str, float]


def per_unit(config: StatsConfig) -> StatsConfig:
    """The options of metrics with one value per unit: cheap to resample, so at least the usual number of times."""
    return replace(config, n_resamples=max(config.n_resamples, DEFAULT_STATS.n_resamples))


@dataclass(frozen=True)
class ResamplingPlan:
    """The resampling scheme: ``count`` units, and the parts of the blend on a sample of them.

    ``shares`` are the subsample fractions without replacement; empty means bootstrap with replacement. Units of one
    of the ``groups`` depend on each other and are resampled together.
    ``errors_of`` gives the errors of the parts directly, without measuring again.
    """

    unit: str
    count: int
    shares: SubsampleFractions = ()
    parts_of: Callable[[Ints], Parts] | None = None
    errors_of: Callable[[int, np.random.Generator], Mapping[str, Floats]] | None = None
    description: str = ""
    """The resampling units, if the functions were dropped."""
    groups: Sequence[str] | None = None

    def without_functions(self) -> ResamplingPlan:
        """The plan after its use: it can be stored, and sent to another process."""
        return replace(self, parts_of=None, errors_of=None, description=self.summary)

    @property
    def blocks(self) -> list[Ints]:
        """The rows that are resampled together."""
        return cluster_members(np.arange(self.count) if self.groups is None else self.groups, self.count)

    @property
    def n_blocks(self) -> int:
        """The number of independent units: the groups, if there are any."""
        return self.count if self.groups is None else len(set(self.groups))

    @property
    def counted(self) -> str:
        """The number of units with its verb."""
        one = f"{self.unit[:-3]}y" if self.unit.endswith("ies") else self.unit[:-1]
        return f"1 {one} is" if self.count == 1 else f"{self.count:,} {self.unit} are"

    @property
    def summary(self) -> str:
        """The resampling units, for the caption."""
        if self.description:
            return self.description
        units = f"{self.count:,} {self.unit}"
        if self.errors_of:
            return f"random weights of the {units}"
        if self.shares:
            return f"random halves of the {units}"
        if self.groups is not None:
            return f"bootstrap of the {units}, in {self.n_blocks:,} groups with the same first text"
        return f"bootstrap of the {units}"


@dataclass(frozen=True)
class BootstrapErrors:
    """Errors of a score and the degrees of freedom behind them; ``reason`` if they are unknown."""

    errors: Floats = field(repr=False)
    degrees: float
    reason: str = ""

    @property
    def standard_error(self) -> float:
        """The size of the errors."""
        return float(np.std(self.errors, ddof=1)) if len(self.errors) > 1 else nan

    def interval(self, value: float, confidence_level: float = DEFAULT_STATS.confidence_level) -> Interval:
        """Student's interval around a value."""
        if isnan(value):
            return Interval.unknown("the value is undefined", confidence_level=confidence_level)
        if self.reason:
            return Interval.unknown(self.reason, confidence_level=confidence_level)
        return t_difference(value, self.errors, self.degrees, confidence_level)[0]

    def p(self, difference: float) -> float:
        """The two-sided p of "no difference", where these are errors of a difference; NaN if unknown."""
        return nan if self.reason else t_difference(difference, self.errors, self.degrees)[1]

    def minus(self, other: BootstrapErrors) -> BootstrapErrors:
        """The errors of a difference, resample by resample."""
        reason = self.reason or other.reason
        errors = np.zeros(0) if reason else self.errors - other.errors
        return BootstrapErrors(errors, min(self.degrees, other.degrees), reason)


def bootstrap_score(
    blend: ConceptScore, sampling: ResamplingPlan, *, config: StatsConfig = CONCEPT_STATS
) -> tuple[BootstrapErrors, dict[str, BootstrapErrors]]:
    """The score on resampled units, and every value that the plan gives: its parts and the ground-truth metric.

    Subsamples without replacement have a larger error by a known factor (Politis and Romano, 1994); what is
    left around their mean is the error.
    """
    if sampling.count < MIN_RESAMPLING_UNITS:
        unknown = BootstrapErrors(np.zeros(0), nan, f"{sampling.counted} too few to resample")
        return unknown, dict.fromkeys((*(term.part for term in blend.terms), blend.truth), unknown)
    rng = config.rng(crc32(blend.task.encode()))
    n_resamples = config.n_resamples
    if sampling.errors_of is not None:
        return _combine_parts(blend, sampling.errors_of(n_resamples, rng), _degrees(sampling, n_resamples))
    assert sampling.parts_of is not None
    resamples = resampled_rows(sampling.blocks, sampling.shares, n_resamples, rng)
    samples = [sampling.parts_of(rows) for rows in resamples]
    of_parts = {name: _spread(np.array([sample[name] for sample in samples]), sampling) for name in samples[0]}
    return _spread(np.array([blend.value(sample) for sample in samples]), sampling), of_parts


def _combine_parts(
    blend: ConceptScore, errors: Mapping[str, Floats], degrees: float
) -> tuple[BootstrapErrors, dict[str, BootstrapErrors]]:
    """The errors of a blend are those of its parts, as far as no cap is reached."""
    signed = {term.part: (-1.0 if term.from_one else 1.0) * term.weight for term in blend.terms}
    total = np.sum([weight * errors[part] for part, weight in signed.items()], axis=0)
    if np.isnan(total).any():
        unknown = BootstrapErrors(np.zeros(0), nan, "nothing to resample")
        return unknown, dict.fromkeys(errors, unknown)
    return BootstrapErrors(total, degrees), {part: BootstrapErrors(errors[part], degrees) for part in errors}


def _degrees(sampling: ResamplingPlan, n_resamples: int) -> float:
    """Degrees of freedom for the number of units and of resamples."""
    return 1.0 / (1.0 / (sampling.n_blocks - 1) + 1.0 / max(n_resamples - 1, 1))


def _spread(scores: Floats, sampling: ResamplingPlan) -> BootstrapErrors:
    defined = ~np.isnan(scores)
    if defined.mean() < DEFINED_SHARE:
        return BootstrapErrors(np.zeros(0), nan, "undefined in too many resamples")
    # A resample with an undefined score is ignored; its row is kept so that models are paired.
    errors = np.where(defined, scores - scores[defined].mean(), 0.0)
    degrees = _degrees(sampling, len(scores))
    return BootstrapErrors(errors * _factor(sampling.shares, sampling.count), degrees)


def _factor(shares: SubsampleFractions, count: int) -> float:
    if not shares:
        return 1.0
    size = subsample_size(count, shares[0])
    return sqrt(size / (count - size))


def combine_errors(spreads: Sequence[BootstrapErrors], weights: Sequence[float]) -> BootstrapErrors:
    """The errors of a weighted sum of scores on different units; degrees after Welch."""
    reason = next((spread.reason for spread in spreads if spread.reason), "")
    if reason:
        return BootstrapErrors(np.zeros(0), nan, reason)
    errors = np.asarray(np.asarray(weights) @ np.array([spread.errors for spread in spreads]))
    parts = [(weight * spread.standard_error) ** 2 for spread, weight in zip(spreads, weights, strict=True)]
    below = sum(part**2 / spread.degrees for part, spread in zip(parts, spreads, strict=True))
    return BootstrapErrors(errors, sum(parts) ** 2 / below if below > 0 else min(spread.degrees for spread in spreads))


# One task on one model: its score, parts, reference metrics and errors.

MODEL_INDEPENDENT = "fixed"
"""Why a part has no interval that no model can change."""


@dataclass(frozen=True)
class TaskEvidence:
    """The measurements of a task on a model.

    ``parts`` are those of the blend under the names of its source, ``reference_metrics`` the metrics without
    its faults. ``results`` are what can be stored and compared, each with its evidence; ``main`` names
    the one that the blend belongs to. ``chance_test`` is the permutation test of the ground-truth metric,
    ``other_seeds`` the blend with other seeds, where it depends on one, ``slices`` the ground-truth metric by category.
    """

    blend: ConceptScore
    parts: Mapping[str, Estimate]
    reference_metrics: Mapping[str, Estimate]
    results: Mapping[str, Result]
    main: str
    sampling: ResamplingPlan
    method: str = ""
    other_seeds: Sequence[float] = ()
    chance_test: ChanceTest | None = None
    space: Space | None = None
    pairs: Pairs | None = None
    slices: Mapping[str, Estimate] = field(default_factory=dict)

    @property
    def truth_metric(self) -> str:
        """The ground-truth metric by the name that results have; empty if there is none."""
        truth = self.reference_metrics.get(self.blend.truth)
        return "" if truth is None else truth.metric

    @property
    def truth_result(self) -> str:
        """The name of the result with the ground-truth metric, or that of the score if there is none."""
        names = (name for name, result in self.results.items() if self.truth_metric in result.estimates)
        return next(names, self.main)


@dataclass(frozen=True)
class TaskScore:
    """An observed task with its score and the bootstrap errors of the score and of its ground-truth metric."""

    observed: TaskEvidence
    estimate: Estimate
    spread: BootstrapErrors = field(repr=False)
    truth_spread: BootstrapErrors = field(repr=False)

    @property
    def blend(self) -> ConceptScore:
        """The score that this is about."""
        return self.observed.blend

    @property
    def ground_truth(self) -> Estimate:
        """The metric that compares the model with the labels, such as Spearman; quality has none."""
        return self.observed.reference_metrics[self.blend.truth]

    @property
    def stored(self) -> Result:
        """The score and its parts with their intervals; before them the ground-truth metric, if the result has it."""
        main = self.observed.results[self.observed.main]
        parts = {estimate.metric: estimate for estimate in self.observed.parts.values()}
        estimates = {name: parts.get(name, estimate) for name, estimate in main.estimates.items()}
        truth = {name: estimate for name, estimate in estimates.items() if name == self.observed.truth_metric}
        estimates = {**truth, self.blend.name: self.estimate, **estimates}
        if self.spread.reason:
            return replace(main, estimates=estimates)
        return replace(
            main,
            estimates=estimates,
            errors={self.blend.name: self.spread.errors},
            settings={
                **main.settings,
                RESAMPLE_ID: f"{self.observed.sampling.summary}, {len(self.spread.errors)}",
                ERROR_DF: self.spread.degrees,
            },
        )

    @property
    def undefined_part(self) -> str:
        """The part that leaves the score undefined, and why; empty if the score is defined."""
        for name, estimate in self.observed.parts.items():
            if isnan(estimate.value):
                metric = find_metric(estimate.metric)
                why = f" ({metric.undefined})" if metric is not None and metric.undefined else ""
                return f"{name} is undefined{why}"
        return ""

    @property
    def value(self) -> float:
        """The score itself."""
        return self.estimate.value


def score_task(observed: TaskEvidence, *, config: StatsConfig = CONCEPT_STATS) -> TaskScore:
    """The blend of the observed parts, with its interval and its chance level.

    Parts that are metrics of a space get their intervals from the same resamples as the blend.
    """
    confidence_level = config.confidence_level
    blend, sampling = observed.blend, observed.sampling
    value = blend.value({name: estimate.value for name, estimate in observed.parts.items()})
    spread, of_parts = bootstrap_score(blend, sampling, config=config)
    interval = _interval(observed, spread, value, confidence_level).clipped(blend.bounds)
    chance = blend.value({name: part.chance for name, part in observed.parts.items()})
    estimate = Estimate(blend.name, value, interval, sampling.count, 0, chance, Direction.UP, "blend")
    parts = dict(observed.parts)
    if sampling.shares or sampling.errors_of:
        for term in blend.terms:
            part = parts[term.part]
            if term.fixed:
                part_interval = Interval.unknown(MODEL_INDEPENDENT, confidence_level=confidence_level)
            else:
                part_interval = of_parts[term.part].interval(part.value, confidence_level)
            parts[term.part] = replace(part, interval=part_interval)
    by_metric = {estimate.metric: estimate for estimate in parts.values()}
    # A metric that is also a part of the score has one interval.
    reference_metrics = {
        name: by_metric.get(estimate.metric, estimate) for name, estimate in observed.reference_metrics.items()
    }
    observed = replace(
        observed, parts=parts, reference_metrics=reference_metrics, sampling=sampling.without_functions()
    )
    unknown = BootstrapErrors(np.zeros(0), nan, "there is no ground truth")
    return TaskScore(observed, estimate, spread, of_parts.get(blend.truth, unknown))


def _interval(observed: TaskEvidence, spread: BootstrapErrors, value: float, confidence_level: float) -> Interval:
    """The interval of the blend, or which part leaves it without one."""
    undefined = [name for name, estimate in observed.parts.items() if isnan(estimate.value)]
    if undefined:
        return Interval.unknown(f"{undefined[0]} is undefined", confidence_level=confidence_level)
    return spread.interval(value, confidence_level)
