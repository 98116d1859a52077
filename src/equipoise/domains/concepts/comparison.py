"""All models on one score: tests against chance, every pair compared on the same resamples, and tie groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import isnan, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.concepts.permutation import ChanceTest
from equipoise.domains.concepts.scores import (
    COMPOSITE,
    CONCEPT_STATS,
    GROUND_TRUTH,
    ConceptScore,
    ScoreTerm,
)
from equipoise.domains.concepts.uncertainty import BootstrapErrors, TaskScore, combine_errors, per_unit
from equipoise.errors import EquipoiseError, ShapeError, UnknownNameError
from equipoise.metrics.parser import parse_metrics
from equipoise.stats.comparison import Contrast
from equipoise.stats.formatting import format_range
from equipoise.stats.intervals import Interval
from equipoise.stats.multiple_comparisons import adjust, correction_text, order_by_score, tie_groups
from equipoise.stats.pairing import compare_results
from equipoise.stats.power import with_power
from equipoise.stats.result import Estimate
from equipoise.types import Direction, Floats

if TYPE_CHECKING:
    from equipoise.config import StatsConfig

ByModel = Mapping[str, Estimate]

STRONG_EVIDENCE = 0.2
"""The share of the significance level below which a single p-value against chance is sufficient."""


@dataclass(frozen=True)
class ScoreComparison:
    """All models on one score.

    ``terms`` are the summands of the score; ``parts`` are their values, and ``reference_metrics``
    metrics without the faults of the score; each by name and then by model. ``letters`` are tie bands: two models
    share one exactly if they are not significantly different. ``units`` are the units of the score, ``resampling``
    says how they were resampled for the intervals, ``chance_baseline`` the baseline of the chance level, ``correction``
    what p was corrected for. ``definitions`` are those of the parts.
    ``truth`` names the reference metric that uses the true labels: ``chance_p`` has the adjusted p of "no
    better than the vectors of other texts" by model, ``truth_contrasts`` every pair of models on it.
    ``n_above_chance`` counts, by model, the ground-truth metrics (their mean included) that are above chance.
    """

    score: str
    title: str
    formula: str
    estimates: ByModel
    contrasts: tuple[Contrast, ...] = field(repr=False)
    letters: Mapping[str, tuple[str, ...]]
    order: tuple[str, ...]
    resampling: str
    units: str = ""
    chance_baseline: str = ""
    correction: str = ""
    method: str = ""
    definitions: tuple[str, ...] = ()
    truth: str = ""
    chance_p: Mapping[str, float] = field(default_factory=dict, repr=False)
    n_above_chance: Mapping[str, int] = field(default_factory=dict, repr=False)
    truth_contrasts: tuple[Contrast, ...] = field(default=(), repr=False)
    terms: Mapping[str, ByModel] = field(default_factory=dict, repr=False)
    parts: Mapping[str, ByModel] = field(default_factory=dict, repr=False)
    reference_metrics: Mapping[str, ByModel] = field(default_factory=dict, repr=False)
    slices: Mapping[str, ByModel] = field(default_factory=dict, repr=False)
    """The ground-truth metric by category of the units and by model."""

    @property
    def ground_truth(self) -> ByModel:
        """The ground-truth metric by model; empty if there is none."""
        return self.reference_metrics.get(self.truth, {})

    @property
    def leader(self) -> str | None:
        """The model with the highest score; None where no model has one."""
        return next((name for name in self.order if self.letters[name]), None)

    @property
    def alpha(self) -> float:
        """The significance level."""
        return 1 - next(iter(self.estimates.values())).interval.confidence_level

    def above_chance(self, model: str) -> bool:
        """Whether the ground-truth metric is significantly above chance."""
        return self.chance_p.get(model, nan) < self.alpha and self.exceeds_chance(model)

    def exceeds_chance(self, model: str) -> bool:
        """Whether the ground-truth metric has a higher value than its chance level.

        If many vectors are equal, all permutations may be slightly below the chance level.
        """
        estimate = self.ground_truth.get(model)
        return estimate is None or isnan(estimate.chance) or estimate.value > estimate.chance

    def can_be_recommended(self, model: str) -> bool:
        """Whether the evidence against chance is strong, or significant in two tests.

        If many models of noise are tested, one may have a p-value just below the significance level, but hardly in a
        second test as well.
        """
        if not self.exceeds_chance(model):
            return False
        p = self.chance_p.get(model, nan)
        return p < STRONG_EVIDENCE * self.alpha or (p < self.alpha and self.n_above_chance.get(model, 0) > 1)

    def truth_contrast(self, a: str, b: str) -> Contrast | None:
        """Model ``a`` minus model ``b`` in the ground-truth metric; None if they could not be compared."""
        for contrast in self.truth_contrasts:
            if {contrast.a, contrast.b} == {a, b}:
                return contrast if contrast.a == a else contrast.reversed()
        return None

    def is_better(self, a: str, b: str) -> bool:
        """Whether the ground-truth metric of ``a`` is significantly better than that of ``b``."""
        contrast = self.truth_contrast(a, b)
        return (
            contrast is not None
            and contrast.difference > 0
            and contrast.adjusted < 1 - contrast.interval.confidence_level
        )

    def contrast(self, a: str, b: str) -> Contrast:
        """Model ``a`` minus model ``b``."""
        for contrast in self.contrasts:
            if {contrast.a, contrast.b} == {a, b} and a != b:
                return contrast if contrast.a == a else contrast.reversed()
        raise UnknownNameError.of("pair of models", f"{a}, {b}", (f"{c.a}, {c.b}" for c in self.contrasts))


# Reference metrics that use the true labels, compared with chance and between models.


def chance_p_values(
    scores: Mapping[str, Mapping[str, TaskScore]], weights: Mapping[str, float], *, config: StatsConfig = CONCEPT_STATS
) -> dict[str, dict[str, float]]:
    """By ground-truth metric and model, the p-value of the permutation test against chance.

    ``scores`` are by model and task. One correction covers all models and all metrics, with the weighted mean
    ``GROUND_TRUTH`` among them: if every model is noise, any of them is recommended for any use with the error
    probability of one test. If a task with a weight was not measured, the mean decides no use and is corrected
    separately.
    """
    p_values: dict[tuple[str, str], float] = {}
    p_of_means: dict[tuple[str, str], float] = {}
    for model, task_scores in scores.items():
        tests = {
            score.blend: score.observed.chance_test
            for score in task_scores.values()
            if score.observed.chance_test is not None
        }
        p_values |= {(blend.truth, model): test.p for blend, test in tests.items()}
        weighted = {blend: weights[blend.task] for blend in tests if blend.task in weights}
        if weighted:
            mean = ChanceTest.weighted([tests[blend] for blend in weighted], list(weighted.values()))
            p_of_means[GROUND_TRUTH, model] = mean.p
    is_complete = all(set(weights) <= set(task_scores) for task_scores in scores.values())
    adjusted: dict[str, dict[str, float]] = {}
    for tested in [p_values | p_of_means] if is_complete else [p_values, p_of_means]:
        for (metric, model), p in zip(tested, adjust(list(tested.values()), config.correction), strict=True):
            adjusted.setdefault(metric, {})[model] = float(p)
    return adjusted


def count_above_chance(chance_p: Mapping[str, Mapping[str, float]], alpha: float) -> dict[str, int]:
    """By model, the number of significant tests against chance. The mean of a single metric is not counted again.

    >>> count_above_chance({"Spearman": {"a": 0.01}, "ARI": {"a": 0.2}, GROUND_TRUTH: {"a": 0.02}}, 0.05)
    {'a': 2}
    """
    counts: dict[str, int] = {}
    for metric, by_model in chance_p.items():
        if metric != GROUND_TRUTH or len(chance_p) > 2:
            for model, p in by_model.items():
                counts[model] = counts.get(model, 0) + (p < alpha)
    return counts


def reference_contrasts(
    measured: Mapping[str, TaskScore], *, config: StatsConfig = CONCEPT_STATS
) -> tuple[Contrast, ...]:
    """Every pair of models on the reference metric, adjusted over the pairs."""
    first = next(iter(measured.values()))
    truth = first.blend.truth
    if len(measured) < 2 or truth not in first.observed.reference_metrics:
        return ()
    metric = first.observed.truth_metric
    results = [score.observed.results[score.observed.truth_result] for score in measured.values()]
    evidence = results[0].evidence
    (parsed,) = parse_metrics(metric, evidence=None if evidence is None else type(evidence))
    try:
        compared = compare_results(
            results,
            metrics=[metric],
            config=per_unit(config),
            metric_objects={metric: parsed},
        )
    except EquipoiseError:  # results that cannot be compared show no difference
        return ()
    return compared.contrasts


def compare_on_score(
    measured: Mapping[str, TaskScore],
    chance_p: Mapping[str, Mapping[str, float]],
    *,
    config: StatsConfig = CONCEPT_STATS,
) -> ScoreComparison:
    """The models on the score of one task; ``chance_p`` is by ground-truth metric and model."""
    first = next(iter(measured.values()))
    blend, sampling = first.blend, first.observed.sampling
    return ScoreComparison(
        score=blend.name,
        title=blend.title,
        formula=blend.formula,
        units=f"{sampling.count:,} {sampling.unit}",
        resampling=sampling.summary,
        chance_baseline=blend.chance_baseline,
        method=_method(measured),
        definitions=blend.definitions,
        chance_p=chance_p.get(blend.truth, {}),
        n_above_chance=count_above_chance(chance_p, config.alpha),
        truth=blend.truth,
        truth_contrasts=reference_contrasts(measured, config=config),
        terms={
            str(term): {name: _blend_part(term, score.observed.parts[term.part]) for name, score in measured.items()}
            for term in blend.terms
        },
        parts=_by_name({name: score.observed.parts for name, score in measured.items()}),
        reference_metrics=_by_name({name: score.observed.reference_metrics for name, score in measured.items()}),
        slices=_by_name({name: score.observed.slices for name, score in measured.items()}),
        **_contrasts_and_order(
            {name: score.estimate for name, score in measured.items()},
            {name: score.spread for name, score in measured.items()},
            config,
        ),
    )


def _method(measured: Mapping[str, TaskScore]) -> str:
    """The computation of the score, and its variability over seeds."""
    method = next(iter(measured.values())).observed.method
    ends = [
        f"{name} {format_range(min(values), max(values))}"
        for name, score in measured.items()
        if (values := [value for value in score.observed.other_seeds if not isnan(value)])
    ]
    seeds = len(next(iter(measured.values())).observed.other_seeds)
    return f"{method}; with {seeds} other seeds the score is: {', '.join(ends)}" if ends else method


def compare_on_composite(
    scores: Mapping[str, Mapping[str, TaskScore]],
    weights: Mapping[str, float],
    chance_p: Mapping[str, Mapping[str, float]],
    *,
    config: StatsConfig = CONCEPT_STATS,
) -> ScoreComparison:
    """The weighted mean of the scores of each model; ``scores`` are by model and task."""
    total = sum(weights.values())
    shares = {task: weight / total for task, weight in weights.items()}
    spreads = {
        name: combine_errors([task_scores[task].spread for task in shares], list(shares.values()))
        for name, task_scores in scores.items()
    }
    blends = [
        task_scores.blend for task_scores in next(iter(scores.values())).values() if task_scores.blend.task in shares
    ]
    low, high = (sum(shares[blend.task] * blend.bounds[end] for blend in blends) for end in (0, 1))
    estimates = {}
    for name, task_scores in scores.items():
        value = sum(share * task_scores[task].value for task, share in shares.items())
        chance = sum(share * task_scores[task].estimate.chance for task, share in shares.items())
        n = sum(task_scores[task].estimate.n for task in shares)
        interval = _composite_interval(task_scores, spreads[name], value, config.confidence_level).clipped((low, high))
        estimates[name] = Estimate(COMPOSITE, value, interval, n, 0, chance, Direction.UP, "blend")
    return ScoreComparison(
        score=COMPOSITE,
        title="Composite",
        formula=_formula(blends, shares),
        resampling="the resamples of its scores, each score by itself",
        chance_p=chance_p.get(GROUND_TRUTH, {}),
        n_above_chance=count_above_chance(chance_p, config.alpha),
        **_ground_truth(scores, weights, config),
        **_contrasts_and_order(estimates, spreads, config),
    )


def _ground_truth(
    scores: Mapping[str, Mapping[str, TaskScore]], weights: Mapping[str, float], config: StatsConfig
) -> dict[str, Any]:
    """The weighted mean of the ground-truth metrics, each rescaled so that chance is 0 and the maximum 1."""
    first = next(iter(scores.values()))
    tasks = [task for task in weights if first[task].blend.truth in first[task].observed.reference_metrics]
    if not tasks:
        return {}
    total = sum(weights[task] for task in tasks)
    estimates, spreads = {}, {}
    for name, task_scores in scores.items():
        metrics = [task_scores[task].ground_truth for task in tasks]
        scales = [weights[task] / total / (1.0 - metric.chance) for task, metric in zip(tasks, metrics, strict=True)]
        value = sum(scale * (metric.value - metric.chance) for scale, metric in zip(scales, metrics, strict=True))
        spreads[name] = combine_errors([task_scores[task].truth_spread for task in tasks], scales)
        interval = spreads[name].interval(value, config.confidence_level)
        n = sum(metric.n for metric in metrics)
        estimates[name] = Estimate(GROUND_TRUTH, value, interval, n, 0, 0.0, Direction.UP, "blend")
    return {
        "truth": GROUND_TRUTH,
        "truth_contrasts": _contrasts_and_order(estimates, spreads, config)["contrasts"],
        "reference_metrics": {GROUND_TRUTH: estimates},
    }


def _composite_interval(
    task_scores: Mapping[str, TaskScore], spread: BootstrapErrors, value: float, confidence_level: float
) -> Interval:
    undefined = [score.blend.name for score in task_scores.values() if isnan(score.value)]
    return (
        Interval.unknown(f"{undefined[0]} is undefined", confidence_level=confidence_level)
        if undefined
        else spread.interval(value, confidence_level)
    )


def _blend_part(term: ScoreTerm, part: Estimate) -> Estimate:
    """A part as it enters the blend; an interval that is taken from 1 changes its ends."""
    ends = sorted((term.entering(part.interval.low), term.entering(part.interval.high)))
    return replace(
        part,
        value=term.entering(part.value),
        interval=replace(part.interval, low=ends[0], high=ends[1]) if part.interval.known else part.interval,
        chance=term.entering(part.chance),
        better=term.better,
    )


def _formula(blends: Sequence[ConceptScore], shares: Mapping[str, float]) -> str:
    if len(set(shares.values())) == 1:
        return f"({' + '.join(blend.name for blend in blends)}) / {len(blends)}"
    return " + ".join(f"{shares[blend.task]:.3g} x {blend.name}" for blend in blends)


def _by_name(by_model: Mapping[str, Mapping[str, Estimate]]) -> dict[str, dict[str, Estimate]]:
    names = dict.fromkeys(name for values in by_model.values() for name in values)
    return {name: {model: values[name] for model, values in by_model.items() if name in values} for name in names}


def _contrasts_and_order(
    estimates: Mapping[str, Estimate], spreads: Mapping[str, BootstrapErrors], config: StatsConfig
) -> dict[str, Any]:
    """The contrasts of all pairs and the order, from the errors."""
    models = list(estimates)
    contrasts = [
        _contrast(estimates[a], estimates[b], a, b, spreads[a].minus(spreads[b]), config.confidence_level)
        for a, b in combinations(models, 2)
    ]
    adjusted = adjust([contrast.p for contrast in contrasts], config.correction)
    contrasts = [replace(contrast, adjusted=float(p)) for contrast, p in zip(contrasts, adjusted, strict=True)]
    contrasts = with_power(contrasts, config.correction, config.alpha)
    position = {name: at for at, name in enumerate(models)}
    matrix = np.full((len(models), len(models)), np.nan)
    for contrast in contrasts:
        matrix[position[contrast.a], position[contrast.b]] = contrast.adjusted
    scores = [estimates[name].value for name in models]
    letters = tie_groups(scores, matrix, better=Direction.UP, alpha=config.alpha)
    tested = sum(not np.isnan(contrast.p) for contrast in contrasts)
    return {
        "estimates": dict(estimates),
        "contrasts": tuple(contrasts),
        "letters": dict(zip(models, letters, strict=True)),
        "order": tuple(models[at] for at in order_by_score(np.array(scores), Direction.UP)),
        "correction": correction_text(config.correction, tested) if tested > 1 else "",
    }


def _contrast(
    one: Estimate, other: Estimate, a: str, b: str, spread: BootstrapErrors, confidence_level: float
) -> Contrast:
    difference, n = one.value - other.value, min(one.n, other.n)
    interval = spread.interval(difference, confidence_level)
    return Contrast(
        metric=one.metric,
        a=a,
        b=b,
        better=Direction.UP,
        difference=difference,
        interval=interval,
        p=spread.p(difference),
        adjusted=float("nan"),
        n=n,
        undefined=0,
        sd=spread.standard_error * sqrt(n),
        reason=interval.reason,
    )


# Sensitivity to the weights: the share of all weightings in which each model ranks first.

WEIGHTINGS = 20_000
"""Number of sampled weightings: the standard error of a share of one half is 0.007."""


@dataclass(frozen=True, slots=True)
class WeightSensitivity:
    """The share of weightings in which a model is first: with the scores, and with resampled units."""

    model: str
    share: float
    resampled: float


def weight_sensitivity(
    scores: Floats, errors: Floats | None = None, *, weightings: int = WEIGHTINGS, seed: int = 0
) -> Floats:
    """Compute the share of all possible weightings in which each model has the highest weighted sum.

    Weights are sampled uniformly from the simplex: not negative, with the sum 1. Models with equal sums share the win.

    Parameters
    ----------
    scores
        Array of shape (models, scores).
    errors
        Array of shape (models, scores, resamples): deviations of the scores in bootstrap resamples. One resample is
        added per weighting, so that the shares include the sampling error.
    weightings
        Number of sampled weightings.
    seed
        Of the weightings.

    Returns
    -------
    array
        One share per model; the sum is 1.

    Examples
    --------
    >>> weight_sensitivity(np.array([[0.9, 0.1], [0.1, 0.9]])).round(1).tolist()
    [0.5, 0.5]
    """
    if scores.ndim != 2:
        raise ShapeError(f"the scores have {scores.ndim} dimensions", hint="give an array of (models, scores)")
    rng = np.random.default_rng([seed, weightings])
    weights = rng.dirichlet(np.ones(scores.shape[1]), size=weightings)
    totals = weights @ scores.T
    if errors is not None and errors.shape[2]:
        totals += np.einsum("ws,msw->wm", weights, errors[:, :, np.arange(weightings) % errors.shape[2]])
    best = totals >= totals.max(axis=1, keepdims=True) - 1e-12
    return np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))
