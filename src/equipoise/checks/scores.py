"""Checks of one scored system: units, points, ties, chance level, ceiling, and intervals that may be too narrow."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose, isfinite, isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import Observation, ScoredResult, declared_checks, evidence_names, join_names, pluralize
from equipoise.config import Ties
from equipoise.evidence.ranking import Ranking
from equipoise.stats.bootstrap_mean import ResamplingUnits, mean_skewness
from equipoise.stats.formatting import format_interval, format_percent, format_value, n_decimals
from equipoise.stats.verdict import UNKNOWN_CANDIDATES, Vocabulary, name_list, plural, unit_noun
from equipoise.types import Direction, Finding, Floats

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.stats.result import Estimate

TIES = "EQ301"
TIED_SHARE = 0.01
MIN_TIE_EFFECT = 0.001
"""The smallest range of a metric over the orders of tied scores that is reported."""
CEILING_MARGIN = 0.02
CEILING_SHARE = 0.9
ROUNDING = 1e-12
TIE_PLACES = 3
MIN_RELEVANT = 10
"""Fewer relevant items may all be missed by a bad system."""
TIE_RANGE_LABEL = "optimistic minus pessimistic"

# Thresholds from simulations of the coverage of intervals.

FEW_UNITS = 50
"""Below this many units, intervals of ranks with a long tail cover 80 to 94 % in simulations."""
SKEWED, SKEWED_FEW = 0.3, 0.15
"""The skewness of the mean above which intervals may cover less, with 50 units and more, and with fewer."""


def missing_units(scored: ScoredResult) -> Iterator[Observation]:
    """EQ101: units with relevant items for which the system returned nothing."""
    evidence = scored.result.evidence
    if isinstance(evidence, Ranking):
        absent = (evidence.depth == 0) & (evidence.counts > 0)
    elif (absent := getattr(evidence, "missing", None)) is None:
        return
    units = scored.result.unit_ids[absent].tolist()
    if units:
        words = Vocabulary.nouns([scored.result])
        scores = "has no results and scores" if len(units) == 1 else "have no results and score"
        yield Observation(
            scored.result.system,
            f"{len(units):,} of {words.units(len(absent))} in the ground truth {scores} 0: {join_names(units)}",
            evidence_names(units),
            f"run the missing {words.plural}, or check that run and ground truth use the same ids",
        )


def undefined_units(scored: ScoredResult) -> Iterator[Observation]:
    """EQ104: units without a value of a metric; metrics that lack the same units share an observation."""
    groups: dict[bytes, list[str]] = {}
    for name, values in scored.result.per_unit.items():
        undefined = np.isnan(values)
        if undefined.any():
            groups.setdefault(undefined.tobytes(), []).append(name)
    for names in groups.values():
        undefined = np.isnan(scored.result.per_unit[names[0]])
        units = scored.result.unit_ids[undefined].tolist()
        metric = scored.metrics.get(names[0])
        why = f" ({metric.undefined})" if metric is not None else ""
        yield Observation(
            scored.result.system,
            f"{len(units):,} of {pluralize(len(undefined), 'value')} of {join_names(names)} "
            f"{'is' if len(units) == 1 else 'are'} undefined{why} and excluded from the mean: {join_names(units)}",
            evidence_names(units),
            "" if metric is None else metric.undefined_hint,
        )


def unknown_units(scored: ScoredResult) -> Iterator[Observation]:
    """EQ106: units of the run that are not in the ground truth."""
    units = getattr(scored.result.evidence, "unknown_units", ())
    if units:
        noun = unit_noun([scored.result])
        yield Observation(
            scored.result.system,
            f"{pluralize(len(units), noun, plural(noun))} of the run {'is' if len(units) == 1 else 'are'} not in the "
            f"ground truth, so {'it was' if len(units) == 1 else 'they were'} not scored: {join_names(units)}",
            evidence_names(units),
        )


def nothing_relevant_retrieved(scored: ScoredResult) -> Iterator[Observation]:
    """EQ114: a run that retrieved items, but none of many relevant ones."""
    ranking = scored.result.evidence
    if not isinstance(ranking, Ranking) or ranking.retrieved.any() or not ranking.depth.any():
        return
    if len(ranking.above) >= MIN_RELEVANT:
        yield Observation(
            scored.result.system,
            f"none of the {len(ranking.above):,} relevant items was retrieved, so every score is 0",
            (f"median list length {np.median(ranking.depth):g}",),
        )


def invalid_points(scored: ScoredResult) -> Iterator[Observation]:
    """EQ109: points outside the ball, off the hyperboloid, not finite, or of zero length.

    A ranking made from embeddings no longer has the points; it has a message about those that were invalid.
    """
    message = getattr(scored.result.evidence, "invalid_points", "")
    if message:
        yield Observation(scored.result.system, message, tuple(message.split("; ")))


def unknown_candidates(scored: ScoredResult) -> Iterator[Observation]:
    """EQ110: truncated lists of an unknown number of candidates."""
    ranking = scored.result.evidence
    if isinstance(ranking, Ranking) and not (ranking.pool_known or ranking.complete):
        n_missed = int(np.count_nonzero(~ranking.retrieved))
        yield Observation(
            scored.result.system,
            f"{n_missed:,} of {pluralize(len(ranking.above), 'relevant item')} {'was' if n_missed == 1 else 'were'} "
            "not retrieved, and the size of the corpus is unknown, so the chance levels are computed from items that "
            "were retrieved or are relevant",
            (f"median list length {np.median(ranking.depth):g}",),
        )


def many_ties(scored: ScoredResult) -> Iterator[Observation]:
    """EQ301: more than 1 % of the relevant items tie with another candidate, and that changes the metric."""
    ranking = scored.result.evidence
    if not isinstance(ranking, Ranking) or not ranking.has_ties:
        return
    tied = int(np.count_nonzero(ranking.tied))
    share = tied / len(ranking.above)
    if share <= TIED_SHARE:
        return
    metric = next(iter(scored.metrics.values()))
    bounds = [metric.measure(ranking.ordered(ties)).value for ties in (Ties.PESSIMISTIC, Ties.OPTIMISTIC)]
    low, high = min(bounds), max(bounds)
    if high - low < MIN_TIE_EFFECT:
        return
    decimals = TIE_PLACES if high <= 1 else 1
    yield Observation(
        scored.result.system,
        f"{format_percent(round(share, 3))} of the relevant items tie with another candidate; depending on the order "
        f"of tied scores, {metric.name} is between {format_value(low, decimals)} and {format_value(high, decimals)}",
        (
            f"{tied} of {len(ranking.above)} relevant items tied",
            f"{metric.name} {TIE_RANGE_LABEL}: {format_value(high - low, decimals)}",
        ),
        NO_SHARED_WORD if 2 * _n_tied_last(ranking) > tied else "",
    )


NO_SHARED_WORD = (
    "most of these have the lowest score: if it is the 0 of texts that share no word, as with bm25 or tfidf, the ties "
    "are correct; otherwise keep more digits of the scores, or break ties in the system itself"
)
"""The hint if ties are at the end of the rankings, where rounding is not the likely cause."""


def _n_tied_last(ranking: Ranking) -> int:
    """The number of tied items that no candidate scores lower than."""
    is_last = ranking.above + ranking.tied + 1 >= ranking.pool[ranking.unit_of]
    return int(np.count_nonzero(is_last & (ranking.tied > 0)))


def concerns_primary_metric(finding: Finding) -> bool:
    """Whether a finding is about the effect of ties on the primary metric."""
    return finding.code == TIES and any(TIE_RANGE_LABEL in line for line in finding.evidence)


NO_CUTOFF = "use more candidates or more data, or report the result as not above chance"
OF_OTHER_DOCUMENTS = "check that the findings are assigned to the right documents"
MORE_DOCUMENTS = (
    "measure on more documents, raise the threshold so that fewer terms are found by chance, or report the result "
    "as not above chance"
)


def not_above_chance(scored: ScoredResult) -> Iterator[Observation]:
    """EQ302: the interval contains the chance level, or is worse than it."""
    evidence = scored.result.evidence
    if isinstance(evidence, Ranking) and not (evidence.pool_known or evidence.complete):
        return
    estimates = [estimate for estimate in _informative_estimates(scored) if not isnan(estimate.chance - estimate.value)]
    sets = evidence is not None and evidence.kind == "sets"
    below = [
        estimate for estimate in estimates if estimate.interval.known and _margins(estimate)[1] < -_tolerance(estimate)
    ]
    within = [
        estimate for estimate in estimates if estimate not in below and _margins(estimate)[0] <= _tolerance(estimate)
    ]
    if below:
        yield Observation(
            scored.result.system,
            _against_chance(below, "significantly worse than"),
            tuple(map(_evidence_of_chance, below)),
            OF_OTHER_DOCUMENTS
            if sets
            else "check whether the scores are distances: a higher score must mean a better candidate",
        )
    if within:
        yield Observation(
            scored.result.system,
            _against_chance(within, "not significantly better than"),
            tuple(map(_evidence_of_chance, within)),
            MORE_DOCUMENTS if sets else _chance_hint(scored, within),
        )


def ceiling(scored: ScoredResult) -> Iterator[Observation]:
    """EQ303: the mean or nearly every unit is at the best possible value."""
    names, shown, saturated = [], [], []
    for estimate in _informative_estimates(scored):
        name, metric = estimate.metric, scored.metrics.get(estimate.metric)
        if metric is None or isnan(estimate.value):
            continue
        share = _share_at_best(metric, scored.result.per_unit.get(name))
        if _near_best(metric, estimate.value) or share > CEILING_SHARE:
            value = format_value(estimate.value, n_decimals(estimate.interval))
            at_best = _at_best(metric, share, unit_noun([scored.result]))
            names.append(name)
            # The share of hits is the score itself.
            is_stated = _near_best(metric, estimate.value) or isclose(share, estimate.value)
            shown.append(f"{name} ({value}{'' if is_stated else at_best})")
            saturated.append(f"{name} {value}{at_best}")
    if saturated:
        are_near = "is near its best possible value" if len(names) == 1 else "are near their best possible values"
        yield Observation(
            scored.result.system,
            f"{name_list(shown)} {are_near} and cannot distinguish good systems",
            tuple(saturated),
            title=f"{join_names(names)} near the best possible value",
        )


def _informative_estimates(scored: ScoredResult) -> list[Estimate]:
    """The estimates without those that any system maximises, such as R@100 on 30 documents, unless all are."""
    estimates = list(scored.result.estimates.values())
    informative = [
        estimate
        for estimate in estimates
        if (metric := scored.metrics.get(estimate.metric)) is None or not _is_best(metric, estimate.chance)
    ]
    return informative or estimates


def _is_best(metric: Metric[Any], value: float) -> bool:
    low, high = metric.bounds
    best = high if metric.better == Direction.UP else low
    return isfinite(best) and abs(best - value) <= ROUNDING


def _chance_hint(scored: ScoredResult, estimates: list[Estimate]) -> str:
    """The hint for values at chance; a smaller cutoff only if there is a cutoff."""
    cutoffs = [getattr(scored.metrics.get(estimate.metric), "k", None) for estimate in estimates]
    return "" if any(k is not None and k > 1 for k in cutoffs) else NO_CUTOFF


def _margins(estimate: Estimate) -> tuple[float, float]:
    """The differences of the worse and the better interval end from chance; without an interval, of the value."""
    interval = estimate.interval
    low, high = (interval.low, interval.high) if interval.known else (estimate.value, estimate.value)
    low, high = low - estimate.chance, high - estimate.chance
    return (low, high) if estimate.better == Direction.UP else (-high, -low)


def _tolerance(estimate: Estimate) -> float:
    """The tolerance for rounding errors."""
    return ROUNDING * max(1.0, abs(estimate.chance))


def _against_chance(estimates: list[Estimate], verdict: str) -> str:
    others = [estimate.metric for estimate in estimates[1:]]
    more = f"; the same holds for {join_names(others)}" if others else ""
    value, chance = _value_and_chance(estimates[0])
    return f"{value} is {verdict} the chance level, {chance}{more}"


def _value_and_chance(estimate: Estimate) -> tuple[str, str]:
    """The metric with its value and, if it is known, its interval, and the chance level."""
    places = n_decimals(estimate.interval)
    value, chance = format_value(estimate.value, places), format_value(estimate.chance, places)
    interval = f" {format_interval(estimate.interval, places)}" if estimate.interval.known else ""
    return f"{estimate.metric} {value}{interval}", chance


def _evidence_of_chance(estimate: Estimate) -> str:
    return ", chance ".join(_value_and_chance(estimate))


def _near_best(metric: Metric[Any], value: float) -> bool:
    low, high = metric.bounds
    best = high if metric.better == Direction.UP else low
    scale = high - low if isfinite(high - low) else abs(best)
    return isfinite(best) and abs(best - value) <= CEILING_MARGIN * scale


def _at_best(metric: Metric[Any], share: float, unit: str) -> str:
    """The number of units with the best value as text; empty if it is unknown."""
    if isnan(share):
        return ""
    # Rounded in percent, as the tables are.
    units = f"all {plural(unit)}" if share == 1 else f"{round(100 * share, 1):g} % of the {plural(unit)}"
    return f", {units} at the {'maximum' if metric.better == Direction.UP else 'minimum'}"


def _share_at_best(metric: Metric[Any], values: Floats | None) -> float:
    """The share of the defined units at the best value; NaN if there are none, or no best value."""
    best = metric.bounds[1] if metric.better == Direction.UP else metric.bounds[0]
    if values is None or not isfinite(best):
        return nan
    defined = values[~np.isnan(values)]
    return float(np.mean(np.isclose(defined, best, rtol=0.0, atol=1e-9))) if len(defined) else nan


def long_tails(scored: ScoredResult) -> Iterator[Observation]:
    """EQ307: the mean of a metric without an upper bound depends on few units or few large values."""
    result = scored.result
    reported: list[float] = []
    for name, metric in scored.metrics.items():
        estimate = result.estimates.get(name)
        if estimate is None or not estimate.interval.known or name not in result.per_unit:
            continue
        if all(isfinite(bound) for bound in metric.bounds):
            continue
        if any(isclose(estimate.value, value) for value in reported):
            continue  # such as MR and MR(over=units) if every unit has one target
        resampling = ResamplingUnits.of(result.per_unit[name], result.weights.get(name), result.clusters)
        skewness = float(mean_skewness(resampling)[0])
        units = int(resampling.counts[0])
        if skewness > (SKEWED_FEW if units < FEW_UNITS else SKEWED):
            noun = "value" if result.clusters is None else Vocabulary.nouns([result]).cluster
            note = f" of {units} {noun if units == 1 else plural(noun)}" if units < FEW_UNITS else ""
            reported.append(estimate.value)
            yield Observation(
                scored.result.system,
                f"the {format_percent(estimate.interval.confidence_level)} interval of {name}, "
                f"{format_interval(estimate.interval)}, may be too narrow: a few large values dominate the mean{note}",
                (f"skewness of the mean {skewness:.2f}, n {units}",),
            )


CHECKS = declared_checks(
    "equipoise.checks",
    {
        "EQ101": (ScoredResult, missing_units),
        "EQ104": (ScoredResult, undefined_units),
        "EQ106": (ScoredResult, unknown_units),
        "EQ109": (ScoredResult, invalid_points),
        "EQ114": (ScoredResult, nothing_relevant_retrieved),
        UNKNOWN_CANDIDATES: (ScoredResult, unknown_candidates),
        TIES: (ScoredResult, many_ties),
        "EQ302": (ScoredResult, not_above_chance),
        "EQ303": (ScoredResult, ceiling),
        "EQ307": (ScoredResult, long_tails),
    },
)
