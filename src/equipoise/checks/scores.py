"""Checks of the scores: ties, chance, ceiling, and an unknown number of candidates."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite, isnan
from typing import Any

import numpy as np

from equipoise.checks.base import Check, Complaint, counted, listed
from equipoise.checks.subjects import Scored
from equipoise.evidence.sets import Sets
from equipoise.metrics.base import Metric
from equipoise.stats.numbers import decimals, figure, span
from equipoise.stats.result import Estimate
from equipoise.types import Direction, Finding, Floats, Severity, Ties

TIES = "EQ301"
UNKNOWN_CANDIDATES = "EQ110"
TIED_SHARE = 0.01
TIED_REACH = 0.001
"""How far the order of equal scores must move the figure before ties deserve a word."""
CEILING_MARGIN = 0.02
CEILING_SHARE = 0.9
ROUNDING = 1e-12
TIE_PLACES = 4
REACH = "optimistic minus pessimistic"


def unknown_candidates(scored: Scored) -> Iterator[Complaint]:
    """EQ110: truncated lists, and nobody said from how many items they were drawn."""
    ranking = scored.ranking
    if ranking is not None and not (ranking.pool_known or ranking.complete):
        lost = int(np.count_nonzero(~ranking.retrieved))
        yield Complaint(
            scored.system,
            f"{lost:,} of {counted(len(ranking.above), 'relevant item')} were not retrieved and the size of "
            "the corpus is unknown, so the chance levels count only items that were retrieved or relevant",
            (f"median list length {np.median(ranking.depth):g}",),
        )


def ties(scored: Scored) -> Iterator[Complaint]:
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
    if high - low < TIED_REACH:
        return
    yield Complaint(
        scored.system,
        f"{share:.1%} of the relevant items tie with another candidate; depending on the order of equal "
        f"scores {metric.name} lies between {figure(low, TIE_PLACES)} and {figure(high, TIE_PLACES)}",
        (
            f"{tied} of {len(ranking.above)} relevant items tied",
            f"{metric.name} {REACH}: {figure(high - low, 6)}",
        ),
    )


def is_of_primary(finding: Finding) -> bool:
    """Whether a finding is about ties as the metric that was named first sees them: another sees others."""
    return finding.code == TIES and any(REACH in line for line in finding.evidence)


NO_CUTOFF = "use more candidates or more units; or accept that nothing was learnt"
OF_OTHER_DOCUMENTS = "see whether the findings were given to the documents that they come from"
MORE_DOCUMENTS = (
    "measure on more documents, or raise the threshold so that fewer terms are found by luck; or accept that "
    "nothing was learnt"
)


def not_above_chance(scored: Scored) -> Iterator[Complaint]:
    """EQ302: the interval reaches the level of a system that knows nothing, or lies on its wrong side."""
    if scored.ranking is not None and not (scored.ranking.pool_known or scored.ranking.complete):
        return
    known = [each for each in scored.result.estimates.values() if not isnan(each.chance - each.value)]
    sets = isinstance(scored.result.evidence, Sets)
    below = [each for each in known if each.interval.known and _margins(each)[1] < -_slack(each)]
    within = [each for each in known if each not in below and _margins(each)[0] <= _slack(each)]
    if below:
        yield Complaint(
            scored.system,
            _beside_chance(below, "which is worse than a system that knows nothing"),
            tuple(map(_figures, below)),
            OF_OTHER_DOCUMENTS
            if sets
            else "see whether the scores are distances: a higher score must mean a better candidate",
        )
    if within:
        yield Complaint(
            scored.system,
            _beside_chance(within, "which is not shown to be better than knowing nothing"),
            tuple(map(_figures, within)),
            MORE_DOCUMENTS if sets else _out_of_luck(scored, within),
        )


def ceiling(scored: Scored) -> Iterator[Complaint]:
    """EQ303: the mean is at the best bound, or nearly every unit is."""
    full = []
    for name, estimate in scored.result.estimates.items():
        metric = scored.metrics.get(name)
        if metric is None or isnan(estimate.value):
            continue
        share = _share_at_best(metric, scored.result.per_unit.get(name))
        if _near_best(metric, estimate.value) or share > CEILING_SHARE:
            at_best = f", {share:.1%} of the units at the best value" if share >= 0 else ""
            full.append(f"{name} {figure(estimate.value, decimals(estimate.interval))}{at_best}")
    if full:
        yield Complaint(
            scored.system,
            f"{counted(len(full), 'metric')} can hardly improve any further and cannot tell good systems "
            f"apart: {'; '.join(full[:3])}{f' and {len(full) - 3} more' if len(full) > 3 else ''}",
            tuple(full),
        )


def _out_of_luck(scored: Scored, estimates: list[Estimate]) -> str:
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
    more = f"; the same holds for {listed(others)}" if others else ""
    return f"{_figures(estimates[0])}, {verdict}{more}"


def _figures(estimate: Estimate) -> str:
    places = decimals(estimate.interval)
    value, chance = figure(estimate.value, places), figure(estimate.chance, places)
    return f"{estimate.metric} is {value} {span(estimate.interval, places)}, chance {chance}"


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


CHECKS: tuple[Check, ...] = (
    Check(
        code=UNKNOWN_CANDIDATES,
        title="the number of candidates is unknown",
        severity=Severity.NOTE,
        applies_to=Scored,
        function=unknown_candidates,
        why="""\
Lists that were cut at some depth do not say from how many items they were drawn. The metrics need no
more than the lists, but the chance level does: ten of twelve items found by luck are no feat, ten of a
million are. Without the size of the corpus the chance level counts only the items that were retrieved or
judged relevant. That is higher than the true one, and "not above chance" (EQ302) is not decided by it.""",
        remedy="say how many items could have been retrieved: corpus_size=N, or --corpus-size N",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1, "b": 1}}, {"q1": {"a": 0.9, "c": 0.5}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code=TIES,
        title="many tied scores",
        severity=Severity.TIP,
        applies_to=Scored,
        function=ties,
        why="""\
When a relevant item has the same score as other candidates, its rank depends on how equal scores are put
in order. Programs that sort keep the input order, which often lists the right answer first; then even a
constant score earns a perfect mark. Here a metric is its expectation over all orders of equal scores
(McSherry and Najork, 2008), so luck earns the chance level. More than 1 % of tied relevant items still
deserve a look where they move the figure by .001 or more: the range between the best and the worst order is
how much of it is not decided by the scores.""",
        remedy="keep more digits of the scores where they were rounded, or break ties in the system itself",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1}}, {"q1": {"a": 0.5, "b": 0.5, "c": 0.1}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code="EQ302",
        title="not above chance",
        severity=Severity.ISSUE,
        applies_to=Scored,
        function=not_above_chance,
        why="""\
The chance level is what the same evidence would give a system that knows nothing: every candidate gets
the same score, or the predictions are dealt out at random. An interval that reaches it means that these
units do not show the system to know anything. An interval wholly on the wrong side usually means that
distances were read as scores. A figure can look good and be luck: with 5 candidates, HR@3 is 0.6 for
nothing.""",
        remedy="use a smaller cutoff, more candidates or more units; or accept that nothing was learnt",
        example="""\
from equipoise import Ranking, evaluate
evaluate(Ranking.from_ranks([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], candidates=10), "MRR").findings""",
    ),
    Check(
        code="EQ303",
        title="a metric at its ceiling",
        severity=Severity.TIP,
        applies_to=Scored,
        function=ceiling,
        why="""\
When the mean lies within 2 % of the best value, or more than nine units in ten have it, there is no room
left: a better system could not score better. Systems that such a metric calls equal may differ widely on
harder units, and the few units below the bound decide every comparison.""",
        remedy="use a harder metric (a smaller cutoff, or MRR for HR@10), more candidates, or harder units",
        example="""\
from equipoise import Ranking, evaluate
evaluate(Ranking.from_ranks([1] * 19 + [2], candidates=50), "HR@1").findings""",
    ),
)
