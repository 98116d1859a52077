"""The median rank: half of the ranks are no better, which caps every mean of reciprocal ranks."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor

from equipoise.checks.audit.facts import Need
from equipoise.checks.audit.first_hits import hit_steps
from equipoise.checks.audit.harmonic import harmonic_number
from equipoise.checks.audit.row import Figure, Row
from equipoise.checks.audit.span import SLACK, digits
from equipoise.checks.audit.violation import Violation, accusing
from equipoise.checks.base import Check
from equipoise.types import Severity

ONE = (Need.ONE_RELEVANT,)


def most_with_ties(median: float) -> float:
    """The largest mean of 1/rank when half of the expected ranks are at least ``median``.

    An item that ties with all others within rank 2m - 1 has the expected rank m, and expects the mean of 1,
    1/2 ... 1/(2m - 1), which is more than 1/m; no other tie expects more.

    >>> round(most_with_ties(3), 4), most_with_ties(1)
    (0.7283, 1.0)
    """
    size = max(1, floor(2 * median - 1 + SLACK))
    return 0.5 + 0.5 * harmonic_number(size) / size


def beyond_median(row: Row) -> Iterator[Violation]:
    """EQ404: MAP, MRR or a mean rank that the median rank does not allow."""
    median = row.one("MedianRank")
    if median is None or row.averaged or median.span.high < 1:
        return
    for target in [row.one("MAP"), row.one("MRR"), *row.series("MAP"), *row.series("MRR")]:
        if target is not None:
            yield from _too_large(target, median)
    for hits in hit_steps(row):
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
                f"their mean is at least {digits((max(median.span.low, 1.0) + 1) / 2)}",
            ),
        )


def _too_large(target: Figure, median: Figure) -> Iterator[Violation]:
    """No unit earns more than 1, and half of them no more than what the median allows."""
    low = max(median.span.low, 1.0)
    # Ranks are whole, expected ones come in halves, and a median may lie halfway between two of these.
    low = max(1.0, ceil(4 * low - SLACK) / 4) if median.printed.half < 0.125 else low
    plain, tied = 0.5 + 0.5 / low, most_with_ties(low)
    steps = (
        f"half of the units have rank {digits(low)} or worse and earn 1/{digits(low)} at most",
        "the other half earn 1 at most",
        median.read,
        f"together that is at most 1/2 + 1/(2 x {digits(low)}) = {digits(plain)}",
        target.read,
    )
    if target.span.low > tied + SLACK:
        yield Violation(
            (target, median),
            f"{target} is too large beside a median rank of {median.text}: {digits(plain, 4)} is the most",
            (*steps, f"even if all ties were averaged over it would be at most {digits(tied)}"),
            ONE,
        )
    elif target.span.low > plain + SLACK:
        yield Violation(
            (target, median),
            f"{target} is too large beside a median rank of {median.text}: {digits(plain, 4)} is the most",
            steps,
            (*ONE, Need.HITS),
        )


def _beside_hits(hits: Figure, median: Figure) -> Iterator[Violation]:
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
        f"{hits} is too {side} beside a median rank of {median.text}: {digits(bound, 4)} is the "
        f"{'least' if side == 'small' else 'most'}",
        (
            f"half of the units have a rank of {words} the median",
            f"a tie around rank m covers the ranks from 1 to 2m - 1 at most, and counts for {k} of them",
            median.read,
            hits.read,
            f"so {hits.measure} is {'at least' if side == 'small' else 'at most'} {digits(bound)}",
        ),
        ONE,
    )


CHECK = Check(
    code="EQ404",
    title="more than the median rank allows",
    severity=Severity.ISSUE,
    applies_to=Row,
    function=accusing(beyond_median),
    why="""\
If the median rank is m, half of the units have rank m or worse, and each of these earns 1/m at most. So with
one relevant item a unit MRR, which is then also MAP, is at most 1/2 + 1/(2m): beside a median of 3 no system
has more than 0.667. A figure that averages over tied scores may reach a little more, and the sentence says
how much. Likewise at least half of the units are hits within rank m, and at most half of them before it
unless ties are averaged over. The mean rank in turn is at least (m + 1) / 2.""",
    remedy="see whether MAP and the ranks are of the same run, and whether MAP counts more than one item",
    example="""\
from equipoise.checks.audit import audit_table
audit_table({"Median Rank": "3.00", "MAP (%)": "93.45"}, one_relevant=True).findings""",
)
