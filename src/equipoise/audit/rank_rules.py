"""Rules on ranks: hit rates and the median rank bound the reciprocal rank and the mean rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from math import ceil, floor, inf, isinf, log

from equipoise.audit.table import (
    REQUIRES_ONE_RELEVANT,
    SLACK,
    Assumption,
    PublishedRow,
    PublishedValue,
    ValueRange,
    Violation,
    format_digits,
    largest_gap,
    too_large,
    too_small,
)

Weight = Callable[[float], float]
"""The score of a unit by the rank of its best relevant item; it falls with the rank."""


def hit_rates(row: PublishedRow) -> list[PublishedValue]:
    """The shares of units with a hit within a cutoff, by cutoff; at 1 also P@1 and MRR@1."""
    steps = {value.k: value for value in row.values_by_cutoff("HR")}
    first = row.value_of("P", 1) or row.value_of("MRR", 1)
    if first:
        steps.setdefault(1, first)
    return [steps[k] for k in sorted(steps)]


def hit_rate_steps(row: PublishedRow) -> list[PublishedValue]:
    """The hit rates; with one relevant item per unit also the recall."""
    steps = {hit_rate.k: hit_rate for hit_rate in hit_rates(row)}
    if Assumption.ONE_RELEVANT in row.context.assumed:
        for recall in row.values_by_cutoff("R"):
            steps.setdefault(recall.k, recall)
    return [steps[k] for k in sorted(steps)]


def mean_bounds(steps: Sequence[PublishedValue], weight: Weight, cutoff: float = inf) -> ValueRange:
    """The smallest and the largest mean score of units with these hit rates.

    Units whose best rank is after cutoff j and within cutoff k score at most weight(j + 1) and at least
    weight(k); units beyond the last cutoff score at least 0.
    """
    least, best = _least(steps, weight, cutoff), _most(steps, weight, cutoff)
    low = sum(step.range.low * (least[at] - least[at + 1]) for at, step in enumerate(steps))
    high = best[-1] + sum(step.range.high * (best[at] - best[at + 1]) for at, step in enumerate(steps))
    return ValueRange(low, high)


def _least(steps: Sequence[PublishedValue], weight: Weight, cutoff: float) -> list[float]:
    """The smallest score of a unit within each step; 0 beyond the last."""
    return [*(weight(step.k) if step.k <= cutoff else 0.0 for step in steps), 0.0]


def _most(steps: Sequence[PublishedValue], weight: Weight, cutoff: float) -> list[float]:
    """The largest score of any unit, and of a unit beyond each step."""
    return [weight(j + 1) if j + 1 <= cutoff else 0.0 for j in (0.0, *(step.k for step in steps))]


def impossible_reciprocal_rank(row: PublishedRow) -> Iterator[Violation]:
    """EQ403: a reciprocal or mean rank that the hit rates, or the other ranks, do not allow."""
    steps = hit_rate_steps(row)
    if steps:
        for target in row.values_by_cutoff("MRR", require_cutoff=False):
            yield from bound_violation(target, [s for s in steps if s is not target], _reciprocal)
        for target in row.values_by_cutoff("MAP", require_cutoff=False):
            if row.value_of("MRR", target.metric.k) is None:
                yield from bound_violation(target, steps, _reciprocal, REQUIRES_ONE_RELEVANT)
        yield from _mean_rank_too_small(row, steps)
    yield from _reciprocal_of_mean(row)
    yield from largest_gap(_mrr_below_found(row))
    yield from largest_gap(_mrr_gain_too_large(row))


def bound_violation(
    target: PublishedValue,
    steps: Sequence[PublishedValue],
    weight: Weight,
    assumptions: tuple[Assumption, ...] = (),
) -> Iterator[Violation]:
    """A violation if the target is outside what the steps allow."""
    if not steps:
        return
    bounds = mean_bounds(steps, weight, target.k)
    most = zip([0, *(int(step.k) for step in steps)], _most(steps, weight, target.k), strict=True)
    why = tuple(
        f"a query whose best hit is at rank {j + 1} or worse scores at most {format_digits(credit)}"
        for j, credit in most
    )
    yield from too_large(target, steps, bounds.high, why, "on average that is", assumptions)
    least = zip(steps, _least(steps, weight, target.k), strict=False)
    why = tuple(
        f"a query with a hit in the top {int(step.k)} scores at least {format_digits(credit)}" for step, credit in least
    )
    hint = "" if target.metric.k else f"if {target.metric} has a cutoff, name it"
    yield from too_small(target, steps, bounds.low, why, "on average that is", assumptions, hint)


def _reciprocal(rank: float) -> float:
    return 1.0 / rank


def _mean_rank_too_small(row: PublishedRow, steps: Sequence[PublishedValue]) -> Iterator[Violation]:
    """A unit beyond rank k has at least rank k + 1."""
    target = row.value_of("MR")
    if target is None:
        return
    # The negated rank falls as the rank grows, so that the same sums apply.
    least = -mean_bounds(steps, lambda rank: -rank if not isinf(rank) else 0.0).high
    why = tuple(f"a query that is no hit within {int(step.k)} has rank {int(step.k) + 1} or more" for step in steps)
    yield from too_small(target, steps, least, why, "on average that is", REQUIRES_ONE_RELEVANT)


def _mrr_below_found(row: PublishedRow) -> Iterator[Violation]:
    """An item found within k has rank k or better: MRR is at least 1/k of R, P and nDCG at k."""
    parts = [
        *row.values_by_cutoff("R"),
        *row.values_by_cutoff("R", capped="True"),
        *row.values_by_cutoff("P"),
        *row.values_by_cutoff("nDCG"),
        *row.values_by_cutoff("nDCG", gain="exp"),
    ]
    for part, target in product(parts, row.values_by_cutoff("MRR", require_cutoff=False)):
        least = part.range * (1.0 / part.k)
        if target.k < part.k or not least.is_above(target.range) or (part.k == 1 and target.k == 1):
            continue
        if part.metric.symbol == "P" and part.k == 1:
            continue
        k = int(part.k)
        share = "" if k == 1 else f" / {k}"
        why = (
            f"a query without a hit within {k} adds 0 to {part.metric}, and one with a hit at most 1",
            f"a query with a hit within {k} has a reciprocal rank of at least 1/{k}"
            if k > 1
            else "a query with a hit at the first rank has a reciprocal rank of 1",
        )
        so = (f"so {target.metric} is at least {part.metric}{share}, which is {least}",)
        sentence = f"{target} is too small for {part}: at least {format_digits(least.low, 4)}"
        yield Violation((target, part), sentence, why, so=so, gap=least.low - target.range.high)


def _mrr_gain_too_large(row: PublishedRow) -> Iterator[Violation]:
    """Between two cutoffs only units without a hit gain, 1/(j + 1) at most."""
    for first, second in combinations(row.values_by_cutoff("MRR", require_cutoff=False), 2):
        if first.k != second.k:
            j = int(first.k)
            most = first.range.high + max(0.0, 1.0 - first.range.high) / (j + 1)
            why = (
                f"a query that scores within {j} gains nothing after it, and scores at most 1",
                f"so at least {first.metric} of the queries are hits within {j}, and others score at most 1/{j + 1}",
            )
            yield from too_large(second, [first], most, why, f"{second.metric} is")


def _reciprocal_of_mean(row: PublishedRow) -> Iterator[Violation]:
    """The mean of 1/rank is at least one over the mean rank (Jensen's inequality)."""
    rank, reciprocal = row.value_of("MR"), row.value_of("MRR") or row.value_of("MAP")
    if rank and reciprocal and rank.range.high >= 1:
        least = ValueRange(1.0 / rank.range.high, 1.0 / max(rank.range.low, 1.0))
        if least.is_above(reciprocal.range):
            yield Violation(
                (reciprocal, rank),
                f"{reciprocal} is below one over {rank}, {format_digits(least.low, 4)}",
                ("the mean of 1/rank is never below one over the mean rank, since 1/x is convex",),
                REQUIRES_ONE_RELEVANT,
                so=(f"one over the mean rank is at least {format_digits(least.low)}",),
            )


MAX_SUMMED_TERMS = 10_000
_EULER = 0.5772156649015329


def harmonic_number(n: float) -> float:
    """H_n, summed up to n = 10,000 and by the Euler-Maclaurin formula beyond, which is exact to 1e-17 there."""
    if n <= MAX_SUMMED_TERMS:
        return sum(1.0 / rank for rank in range(1, int(n) + 1))
    return log(n) + _EULER + 1.0 / (2.0 * n) - 1.0 / (12.0 * n * n)


def max_mrr_given_median(median: float) -> float:
    """The largest mean of 1/rank when half of the expected ranks are at least ``median``.

    An item that ties with all others within rank 2m - 1 has the expected rank m, and expects the mean of 1,
    1/2 ... 1/(2m - 1), which is more than 1/m; no other tie expects more.
    """
    size = max(1, floor(2 * median - 1 + SLACK))
    return 0.5 + 0.5 * harmonic_number(size) / size


def contradicts_median_rank(row: PublishedRow) -> Iterator[Violation]:
    """EQ404: a MAP, MRR, hit rate or mean rank that the median rank does not allow."""
    median = row.value_of("MedianRank")
    if median is None or row.averaged or median.range.high < 1:
        return
    for target in [
        row.value_of("MAP"),
        row.value_of("MRR"),
        *row.values_by_cutoff("MAP"),
        *row.values_by_cutoff("MRR"),
    ]:
        if target is not None:
            yield from _score_against_median(target, median)
    for hits in hit_rate_steps(row):
        yield from _hits_against_median(hits, median)
    mean = row.value_of("MR")
    if mean and mean.range.high < (max(median.range.low, 1.0) + 1) / 2 - SLACK:
        yield Violation(
            (mean, median),
            f"{mean} is below half of one more than {median}",
            ("half of the ranks are at least the median, and the others are at least 1",),
            so=(f"their mean is at least {format_digits((max(median.range.low, 1.0) + 1) / 2)}",),
        )


def _score_against_median(target: PublishedValue, median: PublishedValue) -> Iterator[Violation]:
    """No unit scores more than 1, and half of them no more than the median rank allows."""
    low = max(median.range.low, 1.0)
    # Ranks are integers, expected ranks multiples of 1/2, and a median may be halfway between two of these.
    low = max(1.0, ceil(4 * low - SLACK) / 4) if median.printed.half < 0.125 else low
    plain, tied = 0.5 + 0.5 / low, max_mrr_given_median(low)
    if target.range.low <= plain + SLACK:
        return
    so: tuple[str, ...] = (f"together that is at most 1/2 + 1/(2 x {format_digits(low)}) = {format_digits(plain)}",)
    assumptions: tuple[Assumption, ...] = (*REQUIRES_ONE_RELEVANT, Assumption.HITS)
    if target.range.low > tied + SLACK:
        so = (*so, f"with averaging over all ties it would be at most {format_digits(tied)}")
        assumptions = REQUIRES_ONE_RELEVANT
    yield Violation(
        (target, median),
        f"{target} is too large for a median rank of {median.text}: at most {format_digits(plain, 4)}",
        (
            f"half of the queries have rank {format_digits(low)} or worse and score at most 1/{format_digits(low)}",
            "the other half score at most 1",
        ),
        assumptions,
        so=so,
    )


def _hits_against_median(hits: PublishedValue, median: PublishedValue) -> Iterator[Violation]:
    """Half of the ranks are at most the median and half at least; a tie spreads an item over 2m - 1 ranks."""
    # A rank is an integer, or a multiple of 1/2 if it is averaged over a tie.
    k, low, high = int(hits.k), ceil(2 * median.range.low - SLACK) / 2, floor(2 * median.range.high + SLACK) / 2
    tie_size, start = floor(2 * high - 1), max(1, ceil(2 * low - 1))
    least = 0.5 * min(1.0, k / tie_size) if k >= high - SLACK and tie_size >= 1 else 0.0
    most = 0.5 + 0.5 * min(1.0, k / start) if k < low - SLACK else 1.0
    if hits.range.high < least - SLACK:
        side, words, bound = "small", "at most", least
    elif hits.range.low > most + SLACK:
        side, words, bound = "large", "at least", most
    else:
        return
    yield Violation(
        (hits, median),
        f"{hits} is too {side} for a median rank of {median.text}: "
        f"{'at least' if side == 'small' else 'at most'} {format_digits(bound, 4)}",
        (
            f"half of the queries have a rank of {words} the median",
            f"a tie around rank m covers the ranks from 1 to 2m - 1 at most, and counts for {k} of them",
        ),
        REQUIRES_ONE_RELEVANT,
        so=(f"so {hits.metric} is {'at least' if side == 'small' else 'at most'} {format_digits(bound)}",),
    )
