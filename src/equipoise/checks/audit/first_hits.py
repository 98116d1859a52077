"""Where the best relevant item can stand: hit rates bound the reciprocal rank from both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from math import inf, isinf

from equipoise.checks.audit.facts import Need
from equipoise.checks.audit.row import Figure, Row
from equipoise.checks.audit.span import SLACK, Span, digits
from equipoise.checks.audit.violation import Violation, accusing, widest
from equipoise.checks.base import Check
from equipoise.types import Severity

ONE = (Need.ONE_RELEVANT,)
Weight = Callable[[float], float]
"""What a unit earns whose best relevant item has this rank; it falls with the rank."""


def known_hits(row: Row) -> list[Figure]:
    """The shares of units with a hit within a cutoff, by cutoff; at 1 also under its other names."""
    steps = {each.k: each for each in row.series("HR")}
    first = row.one("P", 1) or row.one("MRR", 1)
    if first:
        steps.setdefault(1, first)
    return [steps[k] for k in sorted(steps)]


def hit_steps(row: Row) -> list[Figure]:
    """The known hits; recall is another name for them where every unit has one relevant item."""
    steps = {each.k: each for each in known_hits(row)}
    if Need.ONE_RELEVANT in row.facts.assumed:
        for recall in row.series("R"):
            steps.setdefault(recall.k, recall)
    return [steps[k] for k in sorted(steps)]


def bounds_of(steps: Sequence[Figure], weight: Weight, cutoff: float = inf) -> Span:
    """The least and the most that units with these hit rates can earn on average.

    Units whose best rank lies behind cutoff j and within cutoff k earn weight(j + 1) at most, weight(k) at
    least; those beyond the last cutoff earn next to nothing at least.
    """
    earned, best = _least(steps, weight, cutoff), _most(steps, weight, cutoff)
    low = sum(step.span.low * (earned[at] - earned[at + 1]) for at, step in enumerate(steps))
    high = best[-1] + sum(step.span.high * (best[at] - best[at + 1]) for at, step in enumerate(steps))
    return Span(low, high)


def _least(steps: Sequence[Figure], weight: Weight, cutoff: float) -> list[float]:
    """What a unit within each step earns at least; beyond all of them, nothing."""
    return [*(weight(each.k) if each.k <= cutoff else 0.0 for each in steps), 0.0]


def _most(steps: Sequence[Figure], weight: Weight, cutoff: float) -> list[float]:
    """What a unit earns at most: any unit, and then one behind each step."""
    return [weight(j + 1) if j + 1 <= cutoff else 0.0 for j in (0.0, *(each.k for each in steps))]


def impossible_reciprocals(row: Row) -> Iterator[Violation]:
    """EQ403: a reciprocal or mean rank that the hit rates, or the other ranks, do not allow."""
    steps = hit_steps(row)
    if steps:
        for target in row.series("MRR", cut=False):
            yield from outside(target, [s for s in steps if s is not target], _reciprocal)
        for target in row.series("MAP", cut=False):
            if row.one("MRR", target.measure.k) is None:
                yield from outside(target, steps, _reciprocal, ONE)
        yield from _mean_rank_too_small(row, steps)
    yield from _reciprocal_of_mean(row)
    yield from _below_what_was_found(row)
    yield from _gained_too_much(row)


def outside(
    target: Figure, steps: Sequence[Figure], weight: Weight, needs: tuple[Need, ...] = ()
) -> Iterator[Violation]:
    """A violation where the target lies beyond what the steps allow."""
    bounds = bounds_of(steps, weight, target.k) if steps else target.span
    if not target.span.apart(bounds):
        return
    named = " and ".join(str(each) for each in steps)
    reads = [each.read for each in (*steps, target)]
    if target.span.low > bounds.high + SLACK:
        behind = [0, *(int(each.k) for each in steps)]
        most = zip(behind, _most(steps, weight, target.k), strict=True)
        yield Violation(
            (target, *steps),
            f"{target} is too large beside {named}: {digits(bounds.high, 4)} is the most",
            (
                *(f"a unit at rank {j + 1} or worse earns at most {digits(earned)}" for j, earned in most),
                *reads,
                f"on average that is at most {digits(bounds.high)}",
            ),
            needs,
        )
    elif target.span.high < bounds.low - SLACK:
        least = zip(steps, _least(steps, weight, target.k), strict=False)
        yield Violation(
            (target, *steps),
            f"{target} is too small beside {named}: {digits(bounds.low, 4)} is the least",
            (
                *(f"a unit within rank {int(s.k)} earns at least {digits(earned)}" for s, earned in least),
                *reads,
                f"on average that is at least {digits(bounds.low)}",
            ),
            needs,
            remedy="" if target.measure.k else f"if {target.measure} is cut at some rank, say at which",
        )


def _reciprocal(rank: float) -> float:
    return 1.0 / rank


def _mean_rank_too_small(row: Row, steps: Sequence[Figure]) -> Iterator[Violation]:
    """A unit beyond rank k has at least rank k + 1."""
    target = row.one("MR")
    if target is None:
        return
    # As a rank grows, minus the rank falls, so that the same sums apply.
    least = -bounds_of(steps, lambda rank: -rank if not isinf(rank) else 0.0).high
    if target.span.high < least - SLACK:
        yield Violation(
            (target, *steps),
            f"{target} is too small beside {' and '.join(map(str, steps))}: {digits(least, 4)} is the least",
            (
                *(f"a unit that is no hit within {int(s.k)} has rank {int(s.k) + 1} or more" for s in steps),
                *(each.read for each in (*steps, target)),
                f"on average that is at least {digits(least)}",
            ),
            ONE,
        )


def _below_what_was_found(row: Row) -> Iterator[Violation]:
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
        sentence = f"{target} is too small beside {part}: {digits(least.low, 4)} is the least"
        found.append((least.low - target.span.high, Violation((target, part), sentence, steps)))
    yield from widest(found)


def _gained_too_much(row: Row) -> Iterator[Violation]:
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
                f"so at least {first.measure} of the units are hits within {j}, and the others earn "
                f"1/{j + 1} at most",
                first.read,
                second.read,
                f"{second.measure} is at most {digits(most)}",
            )
            sentence = f"{second} is too large beside {first}: {digits(most, 4)} is the most"
            found.append((second.span.low - most, Violation((second, first), sentence, steps)))
    yield from widest(found)


def _reciprocal_of_mean(row: Row) -> Iterator[Violation]:
    """The mean of 1/rank is at least one over the mean rank (Jensen's inequality)."""
    rank, reciprocal = row.one("MR"), row.one("MRR") or row.one("MAP")
    if rank and reciprocal and rank.span.high >= 1:
        least = Span(1.0 / rank.span.high, 1.0 / max(rank.span.low, 1.0))
        if least.above(reciprocal.span):
            yield Violation(
                (reciprocal, rank),
                f"{reciprocal} is below one over {rank}, {digits(least.low, 4)}",
                (
                    "the mean of 1/rank is never below one over the mean rank, since 1/x is convex",
                    rank.read,
                    reciprocal.read,
                    f"one over the mean rank is at least {digits(least.low)}",
                ),
                ONE,
            )


CHECK = Check(
    code="EQ403",
    title="reciprocal rank and hit rates contradict each other",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(impossible_reciprocals),
    why="""\
Hit rates say how many units have their best relevant item within a cutoff; the reciprocal rank is a mean
over the same ranks. A unit that is a hit at 1 earns 1, one that is a hit at 5 but not at 1 earns between 1/5
and 1/2, one that is no hit at 10 earns 1/11 at most. So HR@1 <= MRR <= HR@1 + (1 - HR@1) / 2, and every
further hit rate narrows the range. With one relevant item the same holds for MAP, and the mean rank is
bounded by the hit rates and by one over MRR. Recall, precision and nDCG at k are no larger than HR@k, so
MRR is at least a k-th of each. Averages over tied scores obey all this too.""",
    remedy="compute both from the same ranks and the same units",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"HR@1": 0.30, "HR@10": 0.55, "MRR": 0.52}).findings""",
)
