"""Rules on relevant items: nDCG, precision, recall, hit rates and F1 must fit each other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import log2

from equipoise.audit.assumptions import Assumption
from equipoise.audit.rank_rules import bound_violation, harmonic_number, hit_rate_steps, hit_rates
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

REQUIRES_ONE_RELEVANT, REQUIRES_BINARY = (Assumption.ONE_RELEVANT,), (Assumption.BINARY,)
MAX_AP_CUTOFF = 100
"""Up to this k, AP@k never exceeds nDCG@k without grades, by exact search over all lists; at 200 it can."""


def log_discount(rank: float) -> float:
    """The contribution of an item at this rank to the discounted gain."""
    return 1.0 / log2(rank + 1.0)


def impossible_ndcg(row: PublishedRow) -> Iterator[Violation]:
    """EQ406: an nDCG that hits, reciprocal ranks or average precision do not allow."""
    gains = [
        *row.values_by_cutoff("nDCG", require_cutoff=False),
        *row.values_by_cutoff("nDCG", require_cutoff=False, gain="exp"),
    ]
    yield from _exceeds_hits(row, gains)
    for gain in gains:
        yield from bound_violation(gain, hit_rate_steps(row), log_discount, REQUIRES_ONE_RELEVANT)
        yield from _below_reciprocal(row, gain)
    for gain in row.values_by_cutoff("nDCG"):
        yield from _against_average_precision(row, gain)


def _exceeds_hits(row: PublishedRow, gains: list[PublishedValue]) -> Iterator[Violation]:
    violations = []
    for gain in gains:
        for hits in hit_rates(row):
            if hits.k >= gain.k and gain.range.is_above(hits.range):
                why = f"a unit without a hit adds 0 to {gain.metric}, and one with a hit adds 1 at most"
                sentence = f"{gain} is above {hits}, the share of units that add anything to it"
                gap = gain.range.low - hits.range.high
                violations.append(
                    (gap, Violation((gain, hits), sentence, (why, gain.derivation_step, hits.derivation_step)))
                )
    yield from largest_gap(violations)


def _below_reciprocal(row: PublishedRow, gain: PublishedValue) -> Iterator[Violation]:
    reciprocal = row.value_of("MRR", gain.metric.k)
    if reciprocal and reciprocal.range.is_above(gain.range):
        why = "at every rank r, 1/r is at most 1/log2(r + 1)"
        sentence = f"{gain} is below {reciprocal}, although it discounts less"
        steps = (why, gain.derivation_step, reciprocal.derivation_step)
        yield Violation(
            (gain, reciprocal), sentence, steps, REQUIRES_ONE_RELEVANT, hint="if one of them has a cutoff, name it"
        )


def max_ap_given_ndcg(k: int) -> float:
    """The largest ratio of AP@k to nDCG@k of a unit without a relevant item at rank 1.

    It is reached by relevant items at all ranks from 2 to k.

    >>> round(max_ap_given_ndcg(2), 4), round(max_ap_given_ndcg(10), 4)
    (0.7925, 0.9433)
    """
    ideal = sum(log_discount(rank) for rank in range(1, k))
    return (k - harmonic_number(k)) / (k - 1) * ideal / (ideal + log_discount(k) - 1.0)


def _against_average_precision(row: PublishedRow, gain: PublishedValue) -> Iterator[Violation]:
    """AP@k <= nDCG@k, and clearly less for a unit whose first item is not relevant."""
    k = int(gain.k)
    average = row.value_of("MAP", k) or row.value_of("MAP", k, norm="R")
    if average is None or not 1 < k <= MAX_AP_CUTOFF:
        return
    first = row.value_of("HR", 1) or row.value_of("P", 1)
    share = max_ap_given_ndcg(k)
    top = 1.0 if first is None else first.range.high
    most = share * gain.range.high + (1.0 - share) * min(top, gain.range.high)
    if average.range.low <= most + SLACK:
        return
    equal = not average.range.is_disjoint(gain.range)
    sentence = (
        f"{average} is {'as large as' if equal else 'too large for'} {gain}: "
        f"at most {format_digits(most, 4)}" + (f" given {first}" if first else "")
    )
    steps = (
        f"without grades AP@{k}, divided by min(k, R) or by R, is never above nDCG@{k}",
        f"a unit whose first item is not relevant gets at most {format_digits(share, 4)} of its nDCG@{k} as AP@{k}",
        *((f"only {first} of the units have a relevant first item",) if first else ()),
        gain.derivation_step,
        average.derivation_step,
        f"so MAP@{k} is at most {format_digits(most)}",
    )
    values = (average, gain, *((first,) if first else ()))
    is_certain = bool(average.metric.parameters) or row.is_exact
    yield Violation(
        values, sentence, steps, REQUIRES_BINARY if is_certain else (*REQUIRES_BINARY, Assumption.OVER_RELEVANT)
    )


NDCG_CHECK = Check(
    code="EQ406",
    title="nDCG contradicts hit rates, ranks or precision",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(impossible_ndcg),
    why="""\
A unit without a hit within k has no gain within k, so nDCG@k is at most HR@k, with or without grades. With
one relevant item at rank r it is 1/log2(r + 1) and the hit rates bound it from both sides, as they bound MRR.
Without grades average precision is below nDCG wherever the first item is irrelevant. Both can only be
equal at a cutoff above 1 if every unit is perfect or a total miss there, which the hit rates would show.""",
    hint="check whether one column was copied from the other, and whether only one of them uses grades",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"HR@10": 0.40, "nDCG@10": 0.52}).findings""",
)


def inconsistent_relevant_counts(row: PublishedRow) -> Iterator[Violation]:
    """EQ405: precision, recall and hit rates that no number of relevant items allows."""
    yield from _recall_against_precision(row)
    yield from _hits_against_precision(row)
    yield from _at_most_the_hits(row)
    yield from _capped_violations(row)


def max_recall(precision: float, k: int, j: int) -> float:
    """The largest R@j given P@k, for j <= k.

    A unit with c relevant items among its first k has at least c in all, and at most j of them among its
    first j: its R@j is at most j/c, and never above 1. Between c = j and c = k the mean over units is
    below the straight line from 1 to j/k.

    >>> round(max_recall(1.0, 10, 1), 6), max_recall(0.05, 10, 10), max_recall(0.3, 5, 5)
    (0.1, 0.5, 1.0)
    """
    bound = k * precision
    return min(bound, 1.0) if bound <= j else 1.0 - (bound - j) / k


def _recall_against_precision(row: PublishedRow) -> Iterator[Violation]:
    for recall in row.values_by_cutoff("R"):
        violations = []
        for precision in row.values_by_cutoff("P"):
            j, k = int(recall.k), int(precision.k)
            most = _max_recall_in_range(precision.range, k, j) if j <= k else 1.0
            if recall.range.low > most + SLACK:
                steps = (
                    f"{precision} means {precision.range * k} relevant items among the first {k}",
                    f"a unit with c of them has at least c relevant items, and its R@{j} is at most {j}/c",
                    precision.derivation_step,
                    recall.derivation_step,
                    f"on average R@{j} is at most {format_digits(most)}",
                )
                sentence = f"{recall} is too large for {precision}: at most {format_digits(most, 4)}"
                violations.append((-most, Violation((recall, precision), sentence, steps)))
        if violations:
            yield max(violations, key=lambda pair: pair[0])[1]


def _max_recall_in_range(precision: ValueRange, k: int, j: int) -> float:
    """The bound rises up to one item found and falls from j items on: its peak is between."""
    ends = (precision.low, precision.high)
    peak = ends[0] * k <= j and ends[1] * k >= 1
    return 1.0 if peak else max(max_recall(end, k, j) for end in ends)


def _hits_against_precision(row: PublishedRow) -> Iterator[Violation]:
    """P@k <= HR@k <= k P@k: a hit is at least one of k items and at most all of them."""
    few, many = [], []
    for precision, hits in product(row.values_by_cutoff("P"), row.values_by_cutoff("HR")):
        k, most = int(precision.k), precision.range * precision.k
        if k == hits.k == 1:
            continue
        if hits.k >= k:
            why = f"a unit without a hit adds 0 to P@{k}, and one with a hit adds 1 at most"
            few += _exceeds(precision, hits, why)
        if hits.k <= k and hits.range.is_above(most):
            steps = (
                f"every hit within {int(hits.k)} has a relevant item among the first {k}",
                precision.derivation_step,
                f"k P@k, the mean number of relevant items among the first {k}, is {most}",
                hits.derivation_step,
            )
            sentence = f"{hits} has more hits than {precision} has relevant items"
            many.append((hits.range.low - most.high, Violation((hits, precision), sentence, steps)))
    yield from largest_gap(few)
    yield from largest_gap(many)


def _at_most_the_hits(row: PublishedRow) -> Iterator[Violation]:
    """A unit without a hit scores 0, and one with a hit at most 1; MaxOntSim gives every hit 1."""
    violations = []
    earning = [
        *row.values_by_cutoff("R"),
        *row.values_by_cutoff("MAP"),
        *row.values_by_cutoff("MAP", norm="R"),
        *row.values_by_cutoff("MRR"),
    ]
    for hits in hit_rates(row):
        for part in earning:
            # At the first rank other rules relate precision, recall and reciprocal rank.
            by_precision = hits.metric.symbol == "P" and part.metric.symbol == "R"
            is_covered = hits.k == 1 and (part.metric.symbol == "MRR" or by_precision)
            if part.k <= hits.k and not is_covered:
                violations += _exceeds(part, hits, f"a unit without a hit adds 0 to {part.metric}, others 1 at most")
        for nearest in row.values_by_cutoff("MaxOntSim"):
            if nearest.k >= hits.k:
                violations += _exceeds(hits, nearest, "a unit with a hit has the similarity 1")
    yield from largest_gap(violations)


def _capped_violations(row: PublishedRow) -> Iterator[Violation]:
    """P@k and R@k divide by more than min(R, k) does."""
    violations = []
    for capped in row.values_by_cutoff("R", capped="True"):
        k = int(capped.k)
        for other, denominator in ((row.value_of("P", k), "k"), (row.value_of("R", k), "R")):
            if other and k > 1:
                violations += _exceeds(other, capped, f"min(R, k) is no more than {denominator}")
        hits = row.value_of("HR", k)
        if hits and k > 1:
            violations += _exceeds(capped, hits, "a unit without a hit adds 0, others 1 at most")
    yield from largest_gap(violations)


def _exceeds(small: PublishedValue, large: PublishedValue, why: str) -> list[tuple[float, Violation]]:
    if not small.range.is_above(large.range):
        return []
    sentence = f"{small} is above {large}, which is impossible"
    gap = small.range.low - large.range.high
    return [(gap, Violation((small, large), sentence, (why, small.derivation_step, large.derivation_step, _by(gap))))]


def _by(gap: float) -> str:
    return f"the difference is at least {ValueRange(gap, gap)}"


RELEVANT_COUNTS_CHECK = Check(
    code="EQ405",
    title="precision, recall and hit rate need different numbers of relevant items",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(inconsistent_relevant_counts),
    why="""\
All three count relevant items among the first k: precision divides by k, recall by their number R, and a hit needs only
one of them. So P@k <= HR@k <= k P@k, and R@k <= HR@k. A high precision needs many relevant items, and then the recall
of a short list is small: P@10 = 1 means at least ten of them for every unit, so that R@1 is at most 0.1.""",
    hint="check the denominator of precision: k, or the number of items that were returned",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"Precision@10": "1.0000", "Recall@1": "0.1667"}).findings""",
)


def harmonic_mean(first: float, second: float) -> float:
    """The harmonic mean; 0 if either is 0.

    >>> harmonic_mean(0.5, 1.0)
    0.6666666666666666
    """
    return 2 * first * second / (first + second) if first > 0 and second > 0 else 0.0


def inconsistent_f1(row: PublishedRow) -> Iterator[Violation]:
    """EQ408: an F1 that precision and recall do not allow."""
    if row.chance:
        return
    for f1 in (value for value in row.values if value.metric.symbol == "F1"):
        parameters = dict(f1.metric.parameters)
        precision, recall = (row.value_of(symbol, None, **parameters) for symbol in ("P", "R"))
        if precision and recall:
            yield from _impossible(f1, precision, recall, pooled=_is_pooled_f1(row, parameters))


def _is_pooled_f1(row: PublishedRow, parameters: dict[str, str]) -> bool:
    return parameters.get("average") == "micro" and not row.averaged


def _impossible(
    f1: PublishedValue, precision: PublishedValue, recall: PublishedValue, *, pooled: bool
) -> Iterator[Violation]:
    p, r = precision.range, recall.range
    mean = ValueRange(harmonic_mean(max(p.low, 0.0), max(r.low, 0.0)), harmonic_mean(p.high, r.high))
    reads = (precision.derivation_step, recall.derivation_step, f1.derivation_step)
    metrics = f"{precision} and {recall}"
    if f1.range.is_above(mean):
        yield Violation(
            (f1, precision, recall),
            f"{f1} is above the harmonic mean of {metrics}, {format_digits(mean.high, 4)}",
            (
                "F1 is the harmonic mean of precision and recall, class by class or document by document",
                "a mean of such means is at most the harmonic mean of the averages, since it is concave",
                *reads,
                f"the harmonic mean is at most {format_digits(mean.high)}",
            ),
        )
    elif pooled and mean.is_above(f1.range):
        yield Violation(
            (f1, precision, recall),
            f"{f1} is below the harmonic mean of {metrics}, {format_digits(mean.low, 4)}; a micro F1 equals it",
            (
                "a micro average pools all counts, so F1 = 2 P R / (P + R) exactly",
                *reads,
                f"2 P R / (P + R) is at least {format_digits(mean.low)}",
            ),
        )
    elif (least := p.low + r.low - 1.0) > f1.range.high + SLACK:
        yield Violation(
            (f1, precision, recall),
            f"{f1} is too small for {metrics}: at least {format_digits(least, 4)}",
            (
                "for each class or document F1 = 2 P R / (P + R) is at least P R, since P + R is at most 2",
                "and the mean of P R is at least the mean of P plus the mean of R minus 1",
                *reads,
                f"that is at least {format_digits(least)}",
            ),
        )


F1_CHECK = Check(
    code="EQ408",
    title="F1 does not follow from precision and recall",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(inconsistent_f1),
    why="""\
Where counts are pooled (micro), F1 is the harmonic mean of precision and recall exactly. Where classes or
documents are averaged (macro, weighted), it is the mean of their harmonic means. That is at most the harmonic
mean of the averages, and at least their sum less 1. So an F1 above the harmonic mean of the precision and the
recall of the same row is impossible for any kind of average, as long as it is the same for all three.""",
    hint="average precision, recall and F1 in the same way, over the same classes or documents",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"precision": 0.50, "recall": 0.60, "f1": 0.62}).findings""",
)
