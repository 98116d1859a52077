"""Rules on relevant items: identities of metrics, and nDCG, precision, recall, hit rates and F1 that must fit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import log2

from equipoise.audit.rank_rules import bound_violation, harmonic_number, hit_rate_steps, hit_rates
from equipoise.audit.table import (
    REQUIRES_BINARY,
    REQUIRES_ONE_RELEVANT,
    SLACK,
    Assumption,
    PublishedMetric,
    PublishedRow,
    PublishedValue,
    ValueRange,
    Violation,
    format_digits,
    largest_gap,
    too_large,
    too_small,
)

MAX_AP_CUTOFF = 100
"""Up to this k, AP@k never exceeds nDCG@k without grades, by exact search over all lists; at 200 it can."""


def unequal_aliases(row: PublishedRow) -> Iterator[Violation]:
    """EQ401: two values that are equal by definition, and differ."""
    yield from _one_metric_twice(row)
    yield from _first_rank_violations(row)
    yield from _map_at_one(row)
    yield from _with_one_relevant(row)


def _one_metric_twice(row: PublishedRow) -> Iterator[Violation]:
    first_values: dict[PublishedMetric, PublishedValue] = {}
    for value in row.values:
        first = first_values.setdefault(value.metric, value)
        if first is not value:
            yield from _differ(first, value, f"{first.label} and {value.label} both name {value.metric}")


def _first_rank_violations(row: PublishedRow) -> Iterator[Violation]:
    hits = [row.value_of("HR", 1), row.value_of("P", 1), row.value_of("MRR", 1), row.value_of("R", 1, capped="True")]
    present = [hit for hit in hits if hit is not None]
    why = "if the only retrieved item is relevant, both metrics are 1 for the query, otherwise both are 0"
    for other in present[1:]:
        yield from _differ(present[0], other, why)
    if present:
        for gain in (row.value_of("nDCG", 1), row.value_of("nDCG", 1, gain="exp")):
            if gain is not None:
                grades = "without grades the gain of the first item over the ideal one is 1 or 0"
                yield from _differ(present[0], gain, grades, REQUIRES_BINARY, silent_if_undeclared=True)


def _map_at_one(row: PublishedRow) -> Iterator[Violation]:
    """AP@1 is P@1 over min(1, R) relevant items, or R@1 over all of them: libraries differ."""
    hits, recall = row.value_of("HR", 1) or row.value_of("P", 1), row.value_of("R", 1)
    average, by_all = row.value_of("MAP", 1), row.value_of("MAP", 1, norm="R")
    if by_all and recall:
        yield from _differ(by_all, recall, "divided by all R relevant items, AP@1 equals R@1")
    if average and hits and recall and all(average.range.is_disjoint(other.range) for other in (hits, recall)):
        yield Violation(
            (average, hits, recall),
            f"{average} is neither {hits} nor {recall}",
            (
                "AP@1 is 0 unless the first item is relevant",
                "if it is, AP@1 is 1 if the sum is divided by min(k, R), so MAP@1 equals P@1 and HR@1",
                "or 1/R if the sum is divided by R, so MAP@1 equals R@1; no library has a third definition",
            ),
        )


def _with_one_relevant(row: PublishedRow) -> Iterator[Violation]:
    for hits in row.values_by_cutoff("HR"):
        k = int(hits.k)
        for recall in (row.value_of("R", k), row.value_of("R", k, capped="True")):
            if recall:
                yield from _differ(
                    recall,
                    hits,
                    "the one relevant item is found or not",
                    REQUIRES_ONE_RELEVANT,
                    silent_if_undeclared=True,
                )
        precision = row.value_of("P", k)
        if precision and k > 1 and (precision.range * k).is_disjoint(hits.range):
            yield Violation(
                (precision, hits),
                f"{precision} is not {hits} divided by {k}",
                (f"at most one of the {k} items is relevant, so precision is HR@{k} / {k}",),
                REQUIRES_ONE_RELEVANT,
                silent_if_undeclared=True,
                so=(f"HR@{k} / {k} is {hits.range * (1 / k)}",),
            )
    for average in row.values_by_cutoff("MAP", require_cutoff=False):
        reciprocal = row.value_of("MRR", average.metric.k)
        if reciprocal:
            why = "with one relevant item average precision is one over its rank"
            yield from _differ(average, reciprocal, why, REQUIRES_ONE_RELEVANT, silent_if_undeclared=True)


def _differ(
    first: PublishedValue,
    second: PublishedValue,
    why: str,
    assumptions: tuple[Assumption, ...] = (),
    *,
    silent_if_undeclared: bool = False,
) -> Iterator[Violation]:
    if first.range.is_disjoint(second.range):
        yield Violation(
            (first, second),
            f"{first} and {second} differ, but are equal by definition",
            (why,),
            assumptions,
            silent_if_undeclared,
            so=(_gap(first.range, second.range),),
        )


def _gap(first: ValueRange, second: ValueRange) -> str:
    high, low = (first, second) if first.low > second.high else (second, first)
    least, most = ValueRange(high.low, high.low), ValueRange(low.high, low.high)
    return f"no value is in both ranges: one is at least {least}, the other at most {most}"


def log_discount(rank: float) -> float:
    """The contribution of an item at this rank to the discounted gain."""
    return 1.0 / log2(rank + 1.0)


def impossible_ndcg(row: PublishedRow) -> Iterator[Violation]:
    """EQ406: an nDCG that hits, reciprocal ranks or average precision do not allow."""
    gains = [
        *row.values_by_cutoff("nDCG", require_cutoff=False),
        *row.values_by_cutoff("nDCG", require_cutoff=False, gain="exp"),
    ]
    yield from largest_gap(_exceeds_hits(row, gains))
    for gain in gains:
        yield from bound_violation(gain, hit_rate_steps(row), log_discount, REQUIRES_ONE_RELEVANT)
        yield from _below_reciprocal(row, gain)
    for gain in row.values_by_cutoff("nDCG"):
        yield from _against_average_precision(row, gain)


def _exceeds_hits(row: PublishedRow, gains: list[PublishedValue]) -> Iterator[Violation]:
    for gain, hits in product(gains, hit_rates(row)):
        if hits.k >= gain.k and gain.range.is_above(hits.range):
            why = f"a query without a hit adds 0 to {gain.metric}, and one with a hit at most 1"
            sentence = f"{gain} is above {hits}, the share of queries that add anything to it"
            yield Violation((gain, hits), sentence, (why,), gap=gain.range.low - hits.range.high)


def _below_reciprocal(row: PublishedRow, gain: PublishedValue) -> Iterator[Violation]:
    reciprocal = row.value_of("MRR", gain.metric.k)
    if reciprocal and reciprocal.range.is_above(gain.range):
        why = ("at every rank r, 1/r is at most 1/log2(r + 1)",)
        sentence = f"{gain} is below {reciprocal}, although it discounts less"
        yield Violation(
            (gain, reciprocal), sentence, why, REQUIRES_ONE_RELEVANT, hint="if one of them has a cutoff, name it"
        )


def max_ap_given_ndcg(k: int) -> float:
    """The largest ratio of AP@k to nDCG@k of a unit without a relevant item at rank 1.

    It is reached by relevant items at all ranks from 2 to k.
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
    why = (
        f"without grades AP@{k}, divided by min(k, R) or by R, is never above nDCG@{k}",
        f"a query whose first item is not relevant gets at most {format_digits(share, 4)} of its nDCG@{k} as AP@{k}",
        *((f"only {first} of the queries have a relevant first item",) if first else ()),
    )
    so = (f"so MAP@{k} is at most {format_digits(most)}",)
    values = (average, gain, *((first,) if first else ()))
    is_certain = bool(average.metric.parameters) or row.is_exact
    yield Violation(
        values, sentence, why, REQUIRES_BINARY if is_certain else (*REQUIRES_BINARY, Assumption.OVER_RELEVANT), so=so
    )


def inconsistent_relevant_counts(row: PublishedRow) -> Iterator[Violation]:
    """EQ405: precision, recall and hit rates that no number of relevant items allows."""
    yield from _recall_against_precision(row)
    yield from _hits_against_precision(row)
    yield from largest_gap(_at_most_the_hits(row))
    yield from largest_gap(_capped_violations(row))


def max_recall(precision: float, k: int, j: int) -> float:
    """The largest R@j given P@k, for j <= k.

    A unit with c relevant items among its first k has at least c in all, and at most j of them among its
    first j: its R@j is at most j/c, and never above 1. Between c = j and c = k the mean over units is
    below the straight line from 1 to j/k.
    """
    bound = k * precision
    return min(bound, 1.0) if bound <= j else 1.0 - (bound - j) / k


def _recall_against_precision(row: PublishedRow) -> Iterator[Violation]:
    for recall in row.values_by_cutoff("R"):
        violations: list[Violation] = []
        for precision in row.values_by_cutoff("P"):
            j, k = int(recall.k), int(precision.k)
            most = _max_recall_in_range(precision.range, k, j) if j <= k else 1.0
            why = (
                f"{precision} means {precision.range * k} relevant items among the first {k}",
                f"a query with c of them has at least c relevant items, and its R@{j} is at most {j}/c",
            )
            violations += too_large(recall, [precision], most, why, f"on average R@{j} is")
        if violations:
            yield max(violations, key=lambda violation: violation.gap)


def _max_recall_in_range(precision: ValueRange, k: int, j: int) -> float:
    """The bound rises up to one item found and falls from j items on: its peak is between."""
    ends = (precision.low, precision.high)
    peak = ends[0] * k <= j and ends[1] * k >= 1
    return 1.0 if peak else max(max_recall(end, k, j) for end in ends)


def _hits_against_precision(row: PublishedRow) -> Iterator[Violation]:
    """P@k <= HR@k <= k P@k: a hit is at least one of k items and at most all of them."""
    too_few: list[Violation] = []
    too_many: list[Violation] = []
    for precision, hits in product(row.values_by_cutoff("P"), row.values_by_cutoff("HR")):
        k, most = int(precision.k), precision.range * precision.k
        if k == hits.k == 1:
            continue
        if hits.k >= k:
            too_few += _exceeds(precision, hits, f"a query without a hit adds 0 to P@{k}, and one with a hit at most 1")
        if hits.k <= k and hits.range.is_above(most):
            why = (f"every hit within {int(hits.k)} has a relevant item among the first {k}",)
            so = (f"k P@k, the mean number of relevant items among the first {k}, is {most}",)
            sentence = f"{hits} has more hits than {precision} has relevant items"
            too_many.append(Violation((hits, precision), sentence, why, so=so, gap=hits.range.low - most.high))
    yield from largest_gap(too_few)
    yield from largest_gap(too_many)


def _at_most_the_hits(row: PublishedRow) -> Iterator[Violation]:
    """A unit without a hit scores 0, and one with a hit at most 1; MaxOntSim gives every hit 1."""
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
                yield from _exceeds(
                    part, hits, f"a query without a hit adds 0 to {part.metric}, the others add at most 1"
                )
        for nearest in row.values_by_cutoff("MaxOntSim"):
            if nearest.k >= hits.k:
                yield from _exceeds(hits, nearest, "a query with a hit has the similarity 1")


def _capped_violations(row: PublishedRow) -> Iterator[Violation]:
    """P@k and R@k divide by more than min(R, k) does."""
    for capped in row.values_by_cutoff("R", capped="True"):
        k = int(capped.k)
        for other, denominator in ((row.value_of("P", k), "k"), (row.value_of("R", k), "R")):
            if other and k > 1:
                yield from _exceeds(other, capped, f"min(R, k) is no more than {denominator}")
        hits = row.value_of("HR", k)
        if hits and k > 1:
            yield from _exceeds(capped, hits, "a query without a hit adds 0, the others add at most 1")


def _exceeds(small: PublishedValue, large: PublishedValue, why: str) -> Iterator[Violation]:
    if small.range.is_above(large.range):
        gap = small.range.low - large.range.high
        so = f"the difference is at least {ValueRange(gap, gap)}"
        yield Violation((small, large), f"{small} is above {large}, which is impossible", (why,), so=(so,), gap=gap)


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
            pooled = parameters.get("average") == "micro" and not row.averaged
            yield from _impossible(f1, precision, recall, pooled=pooled)


def _impossible(
    f1: PublishedValue, precision: PublishedValue, recall: PublishedValue, *, pooled: bool
) -> Iterator[Violation]:
    p, r = precision.range, recall.range
    mean = ValueRange(harmonic_mean(max(p.low, 0.0), max(r.low, 0.0)), harmonic_mean(p.high, r.high))
    metrics = f"{precision} and {recall}"
    if f1.range.is_above(mean):
        yield Violation(
            (f1, precision, recall),
            f"{f1} is above the harmonic mean of {metrics}, {format_digits(mean.high, 4)}",
            (
                "F1 is the harmonic mean of precision and recall, class by class or document by document",
                "a mean of such means is at most the harmonic mean of the averages, since it is concave",
            ),
            so=(f"the harmonic mean is at most {format_digits(mean.high)}",),
        )
    elif pooled and mean.is_above(f1.range):
        yield Violation(
            (f1, precision, recall),
            f"{f1} is below the harmonic mean of {metrics}, {format_digits(mean.low, 4)}; a micro F1 equals it",
            ("a micro average pools all counts, so F1 = 2 P R / (P + R) exactly",),
            so=(f"2 P R / (P + R) is at least {format_digits(mean.low)}",),
        )
    else:
        why = (
            "for each class or document F1 = 2 P R / (P + R) is at least P R, since P + R is at most 2",
            "and the mean of P R is at least the mean of P plus the mean of R minus 1",
        )
        yield from too_small(f1, [precision, recall], p.low + r.low - 1.0, why, "that is")
