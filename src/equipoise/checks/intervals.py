"""Checks of intervals: where simulations show that they may cover less than stated."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from equipoise.checks.base import Check, Complaint, counted
from equipoise.checks.subjects import Scored
from equipoise.stats.comparison import Comparison
from equipoise.stats.draws import Draws, mean_skewness
from equipoise.stats.numbers import percent, span
from equipoise.types import Severity, labelled

FEW_UNITS = 50
"""Below this many units, intervals of ranks with a long tail cover 80 to 94 % in simulations."""
SKEWED, SKEWED_FEW = 0.3, 0.15
"""The skewness of the mean above which intervals may cover less, with 50 units and more, and with fewer."""
FEW_MOVED = 10
"""Below this many units that differ, intervals of differences cover 85 to 95 % in simulations."""


def long_tails(scored: Scored) -> Iterator[Complaint]:
    """EQ307: the mean of a metric without an upper bound rests on few units, or on a few of them."""
    result = scored.result
    for name, metric in scored.metrics.items():
        estimate = result.estimates.get(name)
        if estimate is None or not estimate.interval.known or name not in result.per_unit:
            continue
        if all(isfinite(bound) for bound in metric.bounds):
            continue
        draws = Draws.of(result.per_unit[name], result.weights.get(name), result.clusters)
        skewness = float(mean_skewness(draws)[0])
        units = int(draws.counts[0])
        if skewness > (SKEWED_FEW if units < FEW_UNITS else SKEWED):
            noun = "unit" if result.clusters is None else "cluster"
            few = f", of {counted(units, noun)}" if units < FEW_UNITS else ""
            yield Complaint(
                scored.system,
                f"the {percent(estimate.interval.level)} interval of {name}, {span(estimate.interval)}, may "
                f"be too narrow: a few large values decide the mean{few}",
                (f"skewness of the mean {skewness:.2f}, n {units}",),
            )


def few_moved(comparison: Comparison) -> Iterator[Complaint]:
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
        first, more = pairs[0], f" ({counted(len(pairs) - 1, 'more pair')} like it)" if len(pairs) > 1 else ""
        moved = (first.wins or 0) + (first.losses or 0)
        yield Complaint(
            f"{first.a}, {first.b}",
            f"on {comparison.primary} they differ on {moved} of {first.n:,}, so the "
            f"{percent(first.interval.level)} interval of the difference, {span(first.interval)}, may be too "
            f"narrow{more}",
            tuple(
                labelled(f"{each.a}, {each.b}", f"{each.wins} won, {each.losses} lost, n {each.n}")
                for each in pairs
            ),
        )


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ307",
        title="an interval of ranks that may be too narrow",
        severity=Severity.NOTE,
        applies_to=Scored,
        function=long_tails,
        why="""\
A few very large ranks can decide a mean rank, and a sample of few units often holds none of them. No method
can see values that the sample lacks. In simulations of ranks with a long tail (log-normal, sigma 1 to 2) the
95 % intervals cover 81 to 94 % at 30 units and 92 to 96 % at 300; of geometric ranks they cover 95 to 97 %
from 30 units on. The note appears where the skewness of the mean exceeds 0.3, below 50 units 0.15.""",
        remedy="report the median rank or MRR as well, which a few units cannot decide, or score more units",
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
        remedy="score more units, or decide by the p value rather than by the interval",
        example="""\
from equipoise import Ranking, compare
first = Ranking.from_ranks([1] * 40, candidates=9)
second = Ranking.from_ranks([1] * 36 + [2, 3, 3, 4], candidates=9)
compare({"first": first, "second": second}, "MRR").findings""",
    ),
)
