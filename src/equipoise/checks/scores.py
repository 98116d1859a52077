"""Checks of the scores: ties, chance, ceiling, and an unknown number of candidates."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import Check, Observation, ScoredResult, join_names, pluralize
from equipoise.config import Ties
from equipoise.evidence.sets import Sets
from equipoise.stats.bootstrap import ResamplingUnits, mean_skewness
from equipoise.stats.comparison import Comparison
from equipoise.stats.formatting import (
    about,
    format_difference,
    format_interval,
    format_p,
    format_percent,
    format_value,
    n_decimals,
)
from equipoise.types import Direction, Finding, Floats, Severity, with_label

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.stats.contrasts import Contrast
    from equipoise.stats.result import Estimate

TIES = "EQ301"
UNKNOWN_CANDIDATES = "EQ110"
TIED_SHARE = 0.01
MIN_TIE_EFFECT = 0.001
"""How far the order of equal scores must move the figure before ties deserve a word."""
CEILING_MARGIN = 0.02
CEILING_SHARE = 0.9
ROUNDING = 1e-12
TIE_PLACES = 4
TIE_RANGE_LABEL = "optimistic minus pessimistic"


def unknown_candidates(scored: ScoredResult) -> Iterator[Observation]:
    """EQ110: truncated lists, and nobody said from how many items they were drawn."""
    ranking = scored.ranking
    if ranking is not None and not (ranking.pool_known or ranking.complete):
        lost = int(np.count_nonzero(~ranking.retrieved))
        yield Observation(
            scored.system,
            f"{lost:,} of {pluralize(len(ranking.above), 'relevant item')} were not retrieved and the size of "
            "the corpus is unknown, so the chance levels count only items that were retrieved or relevant",
            (f"median list length {np.median(ranking.depth):g}",),
        )


def many_ties(scored: ScoredResult) -> Iterator[Observation]:
    """EQ301: more than 1 % of the relevant items tie with another candidate, and that moves the figure."""
    ranking = scored.ranking
    if ranking is None or not ranking.has_ties:
        return
    tied = int(np.count_nonzero(ranking.tied))
    share = tied / len(ranking.above)
    if share <= TIED_SHARE:
        return
    metric = scored.primary
    bounds = [metric.measure(ranking.ordered(each)).value for each in (Ties.PESSIMISTIC, Ties.OPTIMISTIC)]
    low, high = min(bounds), max(bounds)
    if high - low < MIN_TIE_EFFECT:
        return
    yield Observation(
        scored.system,
        f"{share:.1%} of the relevant items tie with another candidate; depending on the order of equal "
        f"scores {metric.name} lies between {format_value(low, TIE_PLACES)} and {format_value(high, TIE_PLACES)}",
        (
            f"{tied} of {len(ranking.above)} relevant items tied",
            f"{metric.name} {TIE_RANGE_LABEL}: {format_value(high - low, 6)}",
        ),
    )


def concerns_primary_metric(finding: Finding) -> bool:
    """Whether a finding is about ties as the metric that was named first sees them: another sees others."""
    return finding.code == TIES and any(TIE_RANGE_LABEL in line for line in finding.evidence)


NO_CUTOFF = "use more candidates or more units; or accept that nothing was learnt"
OF_OTHER_DOCUMENTS = "see whether the findings were given to the documents that they come from"
MORE_DOCUMENTS = (
    "measure on more documents, or raise the threshold so that fewer terms are found by luck; or accept that "
    "nothing was learnt"
)


def not_above_chance(scored: ScoredResult) -> Iterator[Observation]:
    """EQ302: the interval reaches the level of a system that knows nothing, or lies on its wrong side."""
    if scored.ranking is not None and not (scored.ranking.pool_known or scored.ranking.complete):
        return
    known = [each for each in scored.result.estimates.values() if not isnan(each.chance - each.value)]
    sets = isinstance(scored.result.evidence, Sets)
    below = [each for each in known if each.interval.known and _margins(each)[1] < -_slack(each)]
    within = [each for each in known if each not in below and _margins(each)[0] <= _slack(each)]
    if below:
        yield Observation(
            scored.system,
            _beside_chance(below, "which is worse than a system that knows nothing"),
            tuple(map(_figures, below)),
            OF_OTHER_DOCUMENTS
            if sets
            else "see whether the scores are distances: a higher score must mean a better candidate",
        )
    if within:
        yield Observation(
            scored.system,
            _beside_chance(within, "which is not shown to be better than knowing nothing"),
            tuple(map(_figures, within)),
            MORE_DOCUMENTS if sets else _out_of_luck(scored, within),
        )


def ceiling(scored: ScoredResult) -> Iterator[Observation]:
    """EQ303: the mean is at the best bound, or nearly every unit is."""
    full = []
    for name, estimate in scored.result.estimates.items():
        metric = scored.metrics.get(name)
        if metric is None or isnan(estimate.value):
            continue
        share = _share_at_best(metric, scored.result.per_unit.get(name))
        if _near_best(metric, estimate.value) or share > CEILING_SHARE:
            at_best = f", {share:.1%} of the units at the best value" if share >= 0 else ""
            full.append(f"{name} {format_value(estimate.value, n_decimals(estimate.interval))}{at_best}")
    if full:
        yield Observation(
            scored.system,
            f"{pluralize(len(full), 'metric')} can hardly improve any further and cannot tell good systems "
            f"apart: {'; '.join(full[:3])}{f' and {len(full) - 3} more' if len(full) > 3 else ''}",
            tuple(full),
        )


def _out_of_luck(scored: ScoredResult, estimates: list[Estimate]) -> str:
    """What could lift figures above chance; a smaller cutoff only where there is one."""
    cutoffs = [getattr(scored.metrics.get(each.metric), "k", None) for each in estimates]
    return "" if any(k is not None and k > 1 for k in cutoffs) else NO_CUTOFF


def _margins(estimate: Estimate) -> tuple[float, float]:
    """By how much the worse and the better end of the interval beat chance; without one, the value."""
    reach = estimate.interval
    low, high = (reach.low, reach.high) if reach.known else (estimate.value, estimate.value)
    low, high = low - estimate.chance, high - estimate.chance
    return (low, high) if estimate.better == Direction.UP else (-high, -low)


def _slack(estimate: Estimate) -> float:
    """How far two figures may lie apart and still be equal."""
    return ROUNDING * max(1.0, abs(estimate.chance))


def _beside_chance(estimates: list[Estimate], verdict: str) -> str:
    others = [each.metric for each in estimates[1:]]
    more = f"; the same holds for {join_names(others)}" if others else ""
    return f"{_figures(estimates[0])}, {verdict}{more}"


def _figures(estimate: Estimate) -> str:
    places = n_decimals(estimate.interval)
    value, chance = format_value(estimate.value, places), format_value(estimate.chance, places)
    return f"{estimate.metric} is {value} {format_interval(estimate.interval, places)}, chance {chance}"


def _near_best(metric: Metric[Any], value: float) -> bool:
    low, high = metric.bounds
    best = high if metric.better == Direction.UP else low
    scale = high - low if isfinite(high - low) else abs(best)
    return isfinite(best) and abs(best - value) <= CEILING_MARGIN * scale


def _share_at_best(metric: Metric[Any], values: Floats | None) -> float:
    """The share of the defined units at the best value; -1 where there are none."""
    best = metric.bounds[1] if metric.better == Direction.UP else metric.bounds[0]
    if values is None or not isfinite(best):
        return -1.0
    defined = values[~np.isnan(values)]
    return float(np.mean(np.isclose(defined, best, rtol=0.0, atol=1e-9))) if len(defined) else -inf


SCORE_CHECKS: tuple[Check, ...] = (
    Check(
        code=UNKNOWN_CANDIDATES,
        title="the number of candidates is unknown",
        severity=Severity.NOTE,
        applies_to=ScoredResult,
        function=unknown_candidates,
        why="""\
Lists that were cut at some depth do not say from how many items they were drawn. The metrics need no
more than the lists, but the chance level does: ten of twelve items found by luck are no feat, ten of a
million are. Without the size of the corpus the chance level counts only the items that were retrieved or
judged relevant. That is higher than the true one, and "not above chance" (EQ302) is not decided by it.""",
        hint="say how many items could have been retrieved: corpus_size=N, or --corpus-size N",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1, "b": 1}}, {"q1": {"a": 0.9, "c": 0.5}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code=TIES,
        title="many tied scores",
        severity=Severity.TIP,
        applies_to=ScoredResult,
        function=many_ties,
        why="""\
When a relevant item has the same score as other candidates, its rank depends on how equal scores are put
in order. Programs that sort keep the input order, which often lists the right answer first; then even a
constant score earns a perfect mark. Here a metric is its expectation over all orders of equal scores
(McSherry and Najork, 2008), so luck earns the chance level. More than 1 % of tied relevant items still
deserve a look where they move the figure by .001 or more: the range between the best and the worst order is
how much of it is not decided by the scores.""",
        hint="keep more digits of the scores where they were rounded, or break ties in the system itself",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1}}, {"q1": {"a": 0.5, "b": 0.5, "c": 0.1}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code="EQ302",
        title="not above chance",
        severity=Severity.ISSUE,
        applies_to=ScoredResult,
        function=not_above_chance,
        why="""\
The chance level is what the same evidence would give a system that knows nothing: every candidate gets
the same score, or the predictions are dealt out at random. An interval that reaches it means that these
units do not show the system to know anything. An interval wholly on the wrong side usually means that
distances were read as scores. A figure can look good and be luck: with 5 candidates, HR@3 is 0.6 for
nothing.""",
        hint="use a smaller cutoff, more candidates or more units; or accept that nothing was learnt",
        example="""\
from equipoise import Ranking, evaluate
evaluate(Ranking.from_ranks([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], candidates=10), "MRR").findings""",
    ),
    Check(
        code="EQ303",
        title="a metric at its ceiling",
        severity=Severity.TIP,
        applies_to=ScoredResult,
        function=ceiling,
        why="""\
When the mean lies within 2 % of the best value, or more than nine units in ten have it, there is no room
left: a better system could not score better. Systems that such a metric calls equal may differ widely on
harder units, and the few units below the bound decide every comparison.""",
        hint="use a harder metric (a smaller cutoff, or MRR for HR@10), more candidates, or harder units",
        example="""\
from equipoise import Ranking, evaluate
evaluate(Ranking.from_ranks([1] * 19 + [2], candidates=50), "HR@1").findings""",
    ),
)


# Checks of a comparison: whether there were enough units for what it shows.


def too_few_units(comparison: Comparison) -> Iterator[Observation]:
    """EQ304: pairs that are not significantly different, and that more units would separate."""
    from equipoise.stats.verdict import undecided_pairs, what_they_show

    open_pairs = [each for each in undecided_pairs(comparison) if each.needed.known and each.needed.value > each.n]
    if not open_pairs:
        return
    first = open_pairs[0]
    more = f" ({pluralize(len(open_pairs) - 1, 'more pair')} like it)" if len(open_pairs) > 1 else ""
    yield Observation(
        f"{first.a}, {first.b}",
        f"on {comparison.primary} an n of about {about(first.needed.value)} "
        f"{what_they_show(comparison, first)}; here n is {first.n:,}{more}",
        tuple(map(_evidence, open_pairs)),
    )


def _evidence(seen: Contrast) -> str:
    return (
        f"{seen.a} minus {seen.b.removesuffix(':')}: {format_difference(seen.difference, n_decimals(seen.interval))}, "
        f"adjusted p {format_p(seen.adjusted)}, n {seen.n}, n needed about {about(seen.needed.value)}"
    )


POWER_CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ304",
        title="too few units for the difference seen",
        severity=Severity.TIP,
        applies_to=Comparison,
        function=too_few_units,
        why="""\
The systems differ on these units, but a difference of that size arises too often by luck with so few of
them. "Not significant" does not mean "equal". The number of units that would show this difference with 80 %
power is computed from the spread of the paired differences, for the test that is reported: with several
systems, at the level that the correction for the number of pairs leaves to this pair. Showing that one system
is best takes more units, because all its pairs must be significant at once. Both numbers take the differences
seen for the true ones, and those are often smaller: plan for more.""",
        hint="score about that many units, or report the systems as tied",
        example="""\
from equipoise import Ranking, compare
first = Ranking.from_ranks([1, 2, 1, 3, 1, 2, 4, 1], candidates=9)
second = Ranking.from_ranks([1, 3, 1, 2, 2, 2, 4, 2], candidates=9)
compare({"first": first, "second": second}, "MRR").findings""",
    ),
)


# Checks of intervals: where simulations show that they may cover less than stated.

FEW_UNITS = 50
"""Below this many units, intervals of ranks with a long tail cover 80 to 94 % in simulations."""
SKEWED, SKEWED_FEW = 0.3, 0.15
"""The skewness of the mean above which intervals may cover less, with 50 units and more, and with fewer."""
FEW_MOVED = 10
"""Below this many units that differ, intervals of differences cover 85 to 95 % in simulations."""


def long_tails(scored: ScoredResult) -> Iterator[Observation]:
    """EQ307: the mean of a metric without an upper bound rests on few units, or on a few of them."""
    result = scored.result
    for name, metric in scored.metrics.items():
        estimate = result.estimates.get(name)
        if estimate is None or not estimate.interval.known or name not in result.per_unit:
            continue
        if all(isfinite(bound) for bound in metric.bounds):
            continue
        draws = ResamplingUnits.of(result.per_unit[name], result.weights.get(name), result.clusters)
        skewness = float(mean_skewness(draws)[0])
        units = int(draws.counts[0])
        if skewness > (SKEWED_FEW if units < FEW_UNITS else SKEWED):
            noun = "unit" if result.clusters is None else "cluster"
            few = f", of {pluralize(units, noun)}" if units < FEW_UNITS else ""
            yield Observation(
                scored.system,
                f"the {format_percent(estimate.interval.confidence_level)} interval of {name}, "
                f"{format_interval(estimate.interval)}, may "
                f"be too narrow: a few large values decide the mean{few}",
                (f"skewness of the mean {skewness:.2f}, n {units}",),
            )


def few_moved(comparison: Comparison) -> Iterator[Observation]:
    """EQ308: few units differ between two systems, so the interval of the difference may be too narrow."""
    pairs = [
        each
        for each in comparison.contrasts
        if each.metric == comparison.primary
        and each.interval.known
        and each.wins is not None
        and each.losses is not None
        and 0 < each.wins + each.losses < FEW_MOVED
    ]
    if pairs:
        first, more = (
            pairs[0],
            f" ({pluralize(len(pairs) - 1, 'more pair')} like it)" if len(pairs) > 1 else "",
        )
        moved = (first.wins or 0) + (first.losses or 0)
        yield Observation(
            f"{first.a}, {first.b}",
            f"on {comparison.primary} they differ on {moved} of {first.n:,}, so the "
            f"{format_percent(first.interval.confidence_level)} interval of the difference, "
            f"{format_interval(first.interval)}, may be too narrow{more}",
            tuple(
                with_label(f"{each.a}, {each.b}", f"{each.wins} won, {each.losses} lost, n {each.n}") for each in pairs
            ),
        )


INTERVALS_CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ307",
        title="an interval of ranks that may be too narrow",
        severity=Severity.NOTE,
        applies_to=ScoredResult,
        function=long_tails,
        why="""\
A few very large ranks can decide a mean rank, and a sample of few units often holds none of them. No method
can see values that the sample lacks. In simulations of ranks with a long tail (log-normal, sigma 1 to 2) the
95 % intervals cover 81 to 94 % at 30 units and 92 to 96 % at 300; of geometric ranks they cover 95 to 97 %
from 30 units on. The note appears where the skewness of the mean exceeds 0.3, below 50 units 0.15.""",
        hint="report the median rank or MRR as well, which a few units cannot decide, or score more units",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_ranks([1, 1, 2, 1, 3, 1, 1, 2, 1, 1, 1, 180], candidates=203)
evaluate(ranking, "MR").findings""",
    ),
    Check(
        code="EQ308",
        title="a difference that rests on few units",
        severity=Severity.NOTE,
        applies_to=Comparison,
        function=few_moved,
        why="""\
Only units on which two systems differ say how large their difference is. With fewer than ten of them the
sample often lacks the largest differences. In simulations the 95 % interval of the difference covers 96 to
99 % for hits and misses then, but 86 to 96 % for graded metrics; from ten such units on it covers 93 to 97 %.
The p value of the randomisation test does not rest on the interval and stays valid.""",
        hint="score more units, or decide by the p value rather than by the interval",
        example="""\
from equipoise import Ranking, compare
first = Ranking.from_ranks([1] * 40, candidates=9)
second = Ranking.from_ranks([1] * 36 + [2, 3, 3, 4], candidates=9)
compare({"first": first, "second": second}, "MRR").findings""",
    ),
)


CHECKS: tuple[Check, ...] = (*SCORE_CHECKS, *POWER_CHECKS, *INTERVALS_CHECKS)
