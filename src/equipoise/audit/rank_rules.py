"""Where the best relevant item can stand: hit rates bound the reciprocal rank from both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from math import ceil, floor, inf, isinf, log

from equipoise.audit.assumptions import Assumption
from equipoise.audit.table import (
    SLACK,
    PublishedRow,
    PublishedValue,
    ValueRange,
    Violation,
    as_check,
    format_digits,
    largest_gap,
)
from equipoise.checks.base import Check
from equipoise.types import Severity

ONE = (Assumption.ONE_RELEVANT,)
Weight = Callable[[float], float]
"""What a unit earns whose best relevant item has this rank; it falls with the rank."""


def hit_rates(row: PublishedRow) -> list[PublishedValue]:
    """The shares of units with a hit within a cutoff, by cutoff; at 1 also under its other names."""
    steps = {each.k: each for each in row.series("HR")}
    first = row.one("P", 1) or row.one("MRR", 1)
    if first:
        steps.setdefault(1, first)
    return [steps[k] for k in sorted(steps)]


def hit_rate_steps(row: PublishedRow) -> list[PublishedValue]:
    """The known hits; recall is another name for them where every unit has one relevant item."""
    steps = {each.k: each for each in hit_rates(row)}
    if Assumption.ONE_RELEVANT in row.facts.assumed:
        for recall in row.series("R"):
            steps.setdefault(recall.k, recall)
    return [steps[k] for k in sorted(steps)]


def mean_bounds(steps: Sequence[PublishedValue], weight: Weight, cutoff: float = inf) -> ValueRange:
    """The least and the most that units with these hit rates can earn on average.

    Units whose best rank lies behind cutoff j and within cutoff k earn weight(j + 1) at most, weight(k) at
    least; those beyond the last cutoff earn next to nothing at least.
    """
    earned, best = _least(steps, weight, cutoff), _most(steps, weight, cutoff)
    low = sum(step.span.low * (earned[at] - earned[at + 1]) for at, step in enumerate(steps))
    high = best[-1] + sum(step.span.high * (best[at] - best[at + 1]) for at, step in enumerate(steps))
    return ValueRange(low, high)


def _least(steps: Sequence[PublishedValue], weight: Weight, cutoff: float) -> list[float]:
    """What a unit within each step earns at least; beyond all of them, nothing."""
    return [*(weight(each.k) if each.k <= cutoff else 0.0 for each in steps), 0.0]


def _most(steps: Sequence[PublishedValue], weight: Weight, cutoff: float) -> list[float]:
    """What a unit earns at most: any unit, and then one behind each step."""
    return [weight(j + 1) if j + 1 <= cutoff else 0.0 for j in (0.0, *(each.k for each in steps))]


def impossible_reciprocal_rank(row: PublishedRow) -> Iterator[Violation]:
    """EQ403: a reciprocal or mean rank that the hit rates, or the other ranks, do not allow."""
    steps = hit_rate_steps(row)
    if steps:
        for target in row.series("MRR", cut=False):
            yield from bound_violation(target, [s for s in steps if s is not target], _reciprocal)
        for target in row.series("MAP", cut=False):
            if row.one("MRR", target.measure.k) is None:
                yield from bound_violation(target, steps, _reciprocal, ONE)
        yield from _mean_rank_too_small(row, steps)
    yield from _reciprocal_of_mean(row)
    yield from _below_what_was_found(row)
    yield from _gained_too_much(row)


def bound_violation(
    target: PublishedValue,
    steps: Sequence[PublishedValue],
    weight: Weight,
    needs: tuple[Assumption, ...] = (),
) -> Iterator[Violation]:
    """A violation where the target lies beyond what the steps allow."""
    bounds = mean_bounds(steps, weight, target.k) if steps else target.span
    if not target.span.apart(bounds):
        return
    named = " and ".join(str(each) for each in steps)
    reads = [each.read for each in (*steps, target)]
    if target.span.low > bounds.high + SLACK:
        behind = [0, *(int(each.k) for each in steps)]
        most = zip(behind, _most(steps, weight, target.k), strict=True)
        yield Violation(
            (target, *steps),
            f"{target} is too large beside {named}: {format_digits(bounds.high, 4)} is the most",
            (
                *(f"a unit at rank {j + 1} or worse earns at most {format_digits(earned)}" for j, earned in most),
                *reads,
                f"on average that is at most {format_digits(bounds.high)}",
            ),
            needs,
        )
    elif target.span.high < bounds.low - SLACK:
        least = zip(steps, _least(steps, weight, target.k), strict=False)
        yield Violation(
            (target, *steps),
            f"{target} is too small beside {named}: {format_digits(bounds.low, 4)} is the least",
            (
                *(f"a unit within rank {int(s.k)} earns at least {format_digits(earned)}" for s, earned in least),
                *reads,
                f"on average that is at least {format_digits(bounds.low)}",
            ),
            needs,
            hint="" if target.measure.k else f"if {target.measure} is cut at some rank, say at which",
        )


def _reciprocal(rank: float) -> float:
    return 1.0 / rank


def _mean_rank_too_small(row: PublishedRow, steps: Sequence[PublishedValue]) -> Iterator[Violation]:
    """A unit beyond rank k has at least rank k + 1."""
    target = row.one("MR")
    if target is None:
        return
    # As a rank grows, minus the rank falls, so that the same sums apply.
    least = -mean_bounds(steps, lambda rank: -rank if not isinf(rank) else 0.0).high
    if target.span.high < least - SLACK:
        yield Violation(
            (target, *steps),
            f"{target} is too small beside {' and '.join(map(str, steps))}: {format_digits(least, 4)} is the least",
            (
                *(f"a unit that is no hit within {int(s.k)} has rank {int(s.k) + 1} or more" for s in steps),
                *(each.read for each in (*steps, target)),
                f"on average that is at least {format_digits(least)}",
            ),
            ONE,
        )


def _below_what_was_found(row: PublishedRow) -> Iterator[Violation]:
    """Whatever is found within k stands at rank k at worst: MRR is at least a k-th of R, P and nDCG at k."""
    found = []
    parts = [
        *row.series("R"),
        *row.series("R", capped="True"),
        *row.series("P"),
        *row.series("nDCG"),
        *row.series("nDCG", gain="exp"),
    ]
    for part, target in product(parts, row.series("MRR", cut=False)):
        least = part.span * (1.0 / part.k)
        if target.k < part.k or not least.above(target.span) or (part.k == 1 and target.k == 1):
            continue
        if part.measure.symbol == "P" and part.k == 1:
            continue
        k = int(part.k)
        share = "" if k == 1 else f" / {k}"
        steps = (
            f"a unit without a hit within {k} adds 0 to {part.measure}, and one with a hit adds 1 at most",
            f"a unit with a hit within {k} has a reciprocal rank of 1/{k} at least"
            if k > 1
            else "a unit with a hit at the first rank has a reciprocal rank of 1",
            part.read,
            target.read,
            f"so {target.measure} is at least {part.measure}{share}, which is {least}",
        )
        sentence = f"{target} is too small beside {part}: {format_digits(least.low, 4)} is the least"
        found.append((least.low - target.span.high, Violation((target, part), sentence, steps)))
    yield from largest_gap(found)


def _gained_too_much(row: PublishedRow) -> Iterator[Violation]:
    """Between two cutoffs only units without a hit gain, 1/(j + 1) at most."""
    found = []
    for first, second in combinations(row.series("MRR", cut=False), 2):
        if first.k == second.k:
            continue
        j = int(first.k)
        most = first.span.high + max(0.0, 1.0 - first.span.high) / (j + 1)
        if second.span.low > most + SLACK:
            steps = (
                f"a unit that earns anything within {j} earns no more behind it, and earns 1 at most",
                f"so at least {first.measure} of the units are hits within {j}, and the others earn 1/{j + 1} at most",
                first.read,
                second.read,
                f"{second.measure} is at most {format_digits(most)}",
            )
            sentence = f"{second} is too large beside {first}: {format_digits(most, 4)} is the most"
            found.append((second.span.low - most, Violation((second, first), sentence, steps)))
    yield from largest_gap(found)


def _reciprocal_of_mean(row: PublishedRow) -> Iterator[Violation]:
    """The mean of 1/rank is at least one over the mean rank (Jensen's inequality)."""
    rank, reciprocal = row.one("MR"), row.one("MRR") or row.one("MAP")
    if rank and reciprocal and rank.span.high >= 1:
        least = ValueRange(1.0 / rank.span.high, 1.0 / max(rank.span.low, 1.0))
        if least.above(reciprocal.span):
            yield Violation(
                (reciprocal, rank),
                f"{reciprocal} is below one over {rank}, {format_digits(least.low, 4)}",
                (
                    "the mean of 1/rank is never below one over the mean rank, since 1/x is convex",
                    rank.read,
                    reciprocal.read,
                    f"one over the mean rank is at least {format_digits(least.low)}",
                ),
                ONE,
            )


CHECK = Check(
    code="EQ403",
    title="reciprocal rank and hit rates contradict each other",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(impossible_reciprocal_rank),
    why="""\
Hit rates say how many units have their best relevant item within a cutoff; the reciprocal rank is a mean
over the same ranks. A unit that is a hit at 1 earns 1, one that is a hit at 5 but not at 1 earns between 1/5
and 1/2, one that is no hit at 10 earns 1/11 at most. So HR@1 <= MRR <= HR@1 + (1 - HR@1) / 2, and every
further hit rate narrows the range. With one relevant item the same holds for MAP, and the mean rank is
bounded by the hit rates and by one over MRR. Recall, precision and nDCG at k are no larger than HR@k, so
MRR is at least a k-th of each. Averages over tied scores obey all this too.""",
    hint="compute both from the same ranks and the same units",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"HR@1": 0.30, "HR@10": 0.55, "MRR": 0.52}).findings""",
)


# Harmonic numbers: the sum of 1, 1/2, ... 1/n.

EXACT = 10_000
_EULER = 0.5772156649015329


def harmonic_number(n: float) -> float:
    """H_n, summed up to 10,000 and by Euler and Maclaurin's formula beyond, which is exact to 1e-17 there.

    >>> harmonic_number(3), round(harmonic_number(1187) / 1187, 6)
    (1.8333333333333333, 0.006451)
    """
    if n <= EXACT:
        return sum(1.0 / rank for rank in range(1, int(n) + 1))
    return log(n) + _EULER + 1.0 / (2.0 * n) - 1.0 / (12.0 * n * n)


# The median rank: half of the ranks are no better, which caps every mean of reciprocal ranks.

MEDIAN_ONE = (Assumption.ONE_RELEVANT,)


def max_mrr_given_median(median: float) -> float:
    """The largest mean of 1/rank when half of the expected ranks are at least ``median``.

    An item that ties with all others within rank 2m - 1 has the expected rank m, and expects the mean of 1,
    1/2 ... 1/(2m - 1), which is more than 1/m; no other tie expects more.

    >>> round(max_mrr_given_median(3), 4), max_mrr_given_median(1)
    (0.7283, 1.0)
    """
    size = max(1, floor(2 * median - 1 + SLACK))
    return 0.5 + 0.5 * harmonic_number(size) / size


def contradicts_median_rank(row: PublishedRow) -> Iterator[Violation]:
    """EQ404: MAP, MRR or a mean rank that the median rank does not allow."""
    median = row.one("MedianRank")
    if median is None or row.averaged or median.span.high < 1:
        return
    for target in [row.one("MAP"), row.one("MRR"), *row.series("MAP"), *row.series("MRR")]:
        if target is not None:
            yield from _too_large(target, median)
    for hits in hit_rate_steps(row):
        yield from _beside_hits(hits, median)
    mean = row.one("MR")
    if mean and mean.span.high < (max(median.span.low, 1.0) + 1) / 2 - SLACK:
        yield Violation(
            (mean, median),
            f"{mean} is below half of one more than {median}",
            (
                "half of the ranks are at least the median, and the others are at least 1",
                median.read,
                mean.read,
                f"their mean is at least {format_digits((max(median.span.low, 1.0) + 1) / 2)}",
            ),
        )


def _too_large(target: PublishedValue, median: PublishedValue) -> Iterator[Violation]:
    """No unit earns more than 1, and half of them no more than what the median allows."""
    low = max(median.span.low, 1.0)
    # Ranks are whole, expected ones come in halves, and a median may lie halfway between two of these.
    low = max(1.0, ceil(4 * low - SLACK) / 4) if median.printed.half < 0.125 else low
    plain, tied = 0.5 + 0.5 / low, max_mrr_given_median(low)
    steps = (
        f"half of the units have rank {format_digits(low)} or worse and earn 1/{format_digits(low)} at most",
        "the other half earn 1 at most",
        median.read,
        f"together that is at most 1/2 + 1/(2 x {format_digits(low)}) = {format_digits(plain)}",
        target.read,
    )
    if target.span.low > tied + SLACK:
        yield Violation(
            (target, median),
            f"{target} is too large beside a median rank of {median.text}: {format_digits(plain, 4)} is the most",
            (*steps, f"even if all ties were averaged over it would be at most {format_digits(tied)}"),
            MEDIAN_ONE,
        )
    elif target.span.low > plain + SLACK:
        yield Violation(
            (target, median),
            f"{target} is too large beside a median rank of {median.text}: {format_digits(plain, 4)} is the most",
            steps,
            (*MEDIAN_ONE, Assumption.HITS),
        )


def _beside_hits(hits: PublishedValue, median: PublishedValue) -> Iterator[Violation]:
    """Half of the ranks are at most the median and half at least; ties spread an item over 2m - 1 ranks."""
    # A rank is whole, or half where it is averaged over a tie.
    k, low, high = int(hits.k), ceil(2 * median.span.low - SLACK) / 2, floor(2 * median.span.high + SLACK) / 2
    reach, start = floor(2 * high - 1), max(1, ceil(2 * low - 1))
    least = 0.5 * min(1.0, k / reach) if k >= high - SLACK and reach >= 1 else 0.0
    most = 0.5 + 0.5 * min(1.0, k / start) if k < low - SLACK else 1.0
    if hits.span.high < least - SLACK:
        side, words, bound = "small", "at most", least
    elif hits.span.low > most + SLACK:
        side, words, bound = "large", "at least", most
    else:
        return
    yield Violation(
        (hits, median),
        f"{hits} is too {side} beside a median rank of {median.text}: {format_digits(bound, 4)} is the "
        f"{'least' if side == 'small' else 'most'}",
        (
            f"half of the units have a rank of {words} the median",
            f"a tie around rank m covers the ranks from 1 to 2m - 1 at most, and counts for {k} of them",
            median.read,
            hits.read,
            f"so {hits.measure} is {'at least' if side == 'small' else 'at most'} {format_digits(bound)}",
        ),
        MEDIAN_ONE,
    )


MEDIAN_CHECK = Check(
    code="EQ404",
    title="more than the median rank allows",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(contradicts_median_rank),
    why="""\
If the median rank is m, half of the units have rank m or worse, and each of these earns 1/m at most. So with
one relevant item a unit MRR, which is then also MAP, is at most 1/2 + 1/(2m): beside a median of 3 no system
has more than 0.667. A figure that averages over tied scores may reach a little more, and the sentence says
how much. Likewise at least half of the units are hits within rank m, and at most half of them before it
unless ties are averaged over. The mean rank in turn is at least (m + 1) / 2.""",
    hint="see whether MAP and the ranks are of the same run, and whether MAP counts more than one item",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"Median Rank": "3.00", "MAP (%)": "93.45"}, one_relevant=True).findings""",
)
