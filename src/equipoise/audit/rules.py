"""The table of audit rules, and the simple ones: bounds, cutoffs, mixed units, intervals of a selected best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import inf, isinf

from equipoise.audit import composite_rules, rank_rules, relevance_rules, sampling_rules
from equipoise.audit.composite_rules import ScoredSystems
from equipoise.audit.table import (
    OPTION_OF_ASSUMPTION,
    SLACK,
    Assumption,
    AuditedTable,
    AuditRule,
    PublishedRow,
    PublishedValue,
    ValueRange,
    Violation,
    as_check,
    format_digits,
    is_ruled_out,
    largest_gap,
    to_observation,
    undeclared_assumptions,
)
from equipoise.checks.base import Check, Observation, declared_checks, join_names
from equipoise.io.published.numbers import strip_markup
from equipoise.stats.intervals import wilson_interval
from equipoise.types import packaged_toml


def out_of_bounds(row: PublishedRow) -> Iterator[Violation]:
    """EQ411: a value outside the bounds of its metric, such as a share above 1 or a rank below 1."""
    for value in row.values:
        low, high = value.metric.bounds
        if not value.metric.is_standard and not row.is_exact:
            continue
        if low - SLACK <= value.range.high and value.range.low <= high + SLACK:
            continue
        allowed = (
            f"at least {format_digits(low)}"
            if high == inf
            else f"between {format_digits(low)} and {format_digits(high)}"
        )
        allowed = f"at most {format_digits(high)}" if low == -inf else allowed
        if value.metric.symbol in ("MR", "MedianRank"):
            allowed = "at least 1, since ranks start at 1"
        yield Violation(
            (value,),
            f"{value} is out of bounds: {value.metric} is {allowed}",
            (),
            (Assumption.MEAN_RANK,) if _may_be_a_miss_rate(row, value) else (),
            hint=_hint(row, value),
            so=(f"{value.metric} is {allowed}",),
        )


def _hint(row: PublishedRow, value: PublishedValue) -> str:
    if _may_be_a_miss_rate(row, value):
        return "if it is a mean rank, label it Mean Rank"
    if value.metric.is_fraction and not value.printed.percent and not row.is_exact and value.range.low > 1:
        return "most values of its column are at most 1; if the column is percent, run again with --percent"
    return ""


def _may_be_a_miss_rate(row: PublishedRow, value: PublishedValue) -> bool:
    """Whether MR may be the miss rate of a detector: a bare MR in a row without other rank metrics."""
    is_ambiguous = value.metric.symbol == "MR" and strip_markup(value.label).strip().casefold() == "mr"
    ranked = any(value.metric.symbol in ("MRR", "HR", "MedianRank", "nDCG") for value in row.values)
    return is_ambiguous and not ranked and value.range.high >= 0


_WHY = {
    "HR": "a query with a relevant item in the top {j} has one in the top {k}",
    "R": "the relevant items among the first {j} are among the first {k}, and R stays the same",
    "MRR": "a reciprocal rank that counts within {j} counts within {k}",
    "MaxOntSim": "the nearest of the first {j} terms is among the first {k}",
    "MAP": "every precision that is summed within {j} is summed within {k}, and R stays the same",
}

_RELEVANCE_METRICS = ("HR", "MRR", "nDCG", "MAP", "P")
"""If one of these is in the row, recall is over relevant items and not over nearest neighbours."""
_CAPPED_HINT = "check whether the columns were swapped; recall over min(R, k) may fall, and is named R(capped)@k"


def decreasing_with_cutoff(row: PublishedRow) -> Iterator[Violation]:
    """EQ402: a value that falls as the cutoff grows, although the metric cannot."""
    for symbol in ("HR", "MaxOntSim"):
        yield from largest_gap(_never_falls(row.values_by_cutoff(symbol)))
    by_relevance = any(value.metric.symbol in _RELEVANCE_METRICS for value in row.values)
    fixed = by_relevance and Assumption.FIXED_RELEVANT not in row.rejected
    recall_assumptions = () if fixed else (Assumption.FIXED_RELEVANT,)
    yield from largest_gap(_never_falls(row.values_by_cutoff("R"), recall_assumptions))
    yield from largest_gap(_never_falls(row.values_by_cutoff("MRR", require_cutoff=False)))
    uncut = row.value_of("MAP")
    yield from largest_gap(_never_falls([*row.values_by_cutoff("MAP", norm="R"), *([uncut] if uncut else [])]))
    yield from largest_gap(_precision(row.values_by_cutoff("P")))


def _never_falls(series: Sequence[PublishedValue], assumptions: tuple[Assumption, ...] = ()) -> Iterator[Violation]:
    for first, second in combinations(series, 2):
        if first.k < second.k and first.range.is_above(second.range):
            reason = _WHY[first.metric.symbol].format(j=_rank(first.k), k=_rank(second.k))
            sentence = f"{first} is above {second}, but a larger cutoff cannot lower it"
            hint = _CAPPED_HINT if first.metric.symbol == "R" else ""
            gap = first.range.low - second.range.high
            yield Violation((first, second), sentence, (reason,), assumptions, hint=hint, gap=gap)


def _precision(series: Sequence[PublishedValue]) -> Iterator[Violation]:
    """P@k may fall, but k P@k counts relevant items: it never falls, and grows by at most 1 per rank."""
    for first, second in combinations(series, 2):
        j, k = int(first.k), int(second.k)
        before, after = first.range * j, second.range * k
        decrease, increase = before.low - after.high, after.low - before.high - (k - j)
        if max(decrease, increase) <= SLACK:
            continue
        counts = f"that makes {before} relevant items among the first {j} and {after} among the first {k}"
        why, so = ("k P@k counts the relevant items among the first k",), (counts,)
        if decrease > SLACK:
            sentence = f"{first} finds more relevant items than {second}"
            yield Violation((first, second), sentence, why, so=so, gap=decrease)
        else:
            sentence = f"{second} needs more relevant items than there are ranks after {first}"
            more = f"{format_digits(after.low - before.high)} more at least, on {k - j} further ranks"
            yield Violation((first, second), sentence, why, so=(*so, more), gap=increase)


def _rank(k: float) -> str:
    return "the whole list" if isinf(k) else str(int(k))


def mixed_units(table: AuditedTable) -> Iterator[Violation]:
    """EQ412: columns with values above 1 and columns below 1, without a percent sign on either."""
    if table.ambiguous_columns and table.percents:
        many = len(table.ambiguous_columns) > 1
        yield Violation(
            (),
            f"{join_names(table.percents)} must be percent, and {join_names(table.ambiguous_columns)} may be "
            f"{'fractions' if many else 'a fraction'} or percent below 1",
            (
                f"a score is at most 1, so values above 1 are percent: {join_names(table.percents)}",
                f"all values of {join_names(table.ambiguous_columns)} are below 1 and have no percent sign",
                "each row was checked with every combination of both; a value is impossible only if none allows it",
            ),
        )


def interval_of_selected_best(row: PublishedRow) -> Iterator[Violation]:
    """EQ413: the interval of a value that is the best of several configurations."""
    trials = row.context.trials
    if row.context.nested or row.is_exact or (trials is not None and trials < 2):
        return
    if trials is None and not row.is_selected:
        return
    several = "several" if trials is None else str(trials)
    for value in row.values:
        if value.interval is not None and value.metric.symbol in ("HR", "Acc"):
            yield Violation(
                (value,),
                f"the interval of {value} is valid for one fixed configuration, but this is the best of {several}",
                (),
                so=(
                    f"the interval goes from {value.interval_text}",
                    *_as_wilson(row, value),
                    f"it covers the sampling error of one; the best of {several} was also selected for its error",
                    "so the true accuracy is below such an interval more often than its confidence level says",
                ),
            )


def _as_wilson(row: PublishedRow, value: PublishedValue) -> tuple[str, ...]:
    """Whether the interval is Wilson's for one fixed configuration."""
    n = row.n_units(value)
    if n is None or value.interval is None:
        return ()
    share = min(max((value.range.low + value.range.high) / 2, 0.0), 1.0)
    allowed = wilson_interval(share * n, n, row.context.confidence_level or 0.95)
    ends = (ValueRange(allowed.low, allowed.low), ValueRange(allowed.high, allowed.high))
    near = all(
        not end.is_disjoint(ValueRange(printed.low - 0.005, printed.high + 0.005))
        for end, printed in zip(ends, value.interval, strict=True)
    )
    return (f"it is Wilson's interval of one share of {n} queries",) if near else ()


_FUNCTIONS: dict[str, tuple[type, AuditRule]] = {
    "EQ401": (PublishedRow, relevance_rules.unequal_aliases),
    "EQ402": (PublishedRow, decreasing_with_cutoff),
    "EQ403": (PublishedRow, rank_rules.impossible_reciprocal_rank),
    "EQ404": (PublishedRow, rank_rules.contradicts_median_rank),
    "EQ405": (PublishedRow, relevance_rules.inconsistent_relevant_counts),
    "EQ406": (PublishedRow, relevance_rules.impossible_ndcg),
    "EQ407": (PublishedRow, sampling_rules.impossible_mean_of_n),
    "EQ408": (PublishedRow, relevance_rules.inconsistent_f1),
    "EQ409": (PublishedRow, sampling_rules.impossible_interval),
    "EQ410": (PublishedRow, sampling_rules.wrong_chance_level),
    "EQ411": (PublishedRow, out_of_bounds),
    "EQ412": (AuditedTable, mixed_units),
    "EQ413": (PublishedRow, interval_of_selected_best),
    "EQ417": (AuditedTable, sampling_rules.wrong_averages),
    "EQ418": (ScoredSystems, composite_rules.collapsed_space),
    "EQ414": (ScoredSystems, composite_rules.data_only_components),
    "EQ415": (ScoredSystems, composite_rules.reversed_components),
    "EQ416": (ScoredSystems, composite_rules.inconsistent_weighted_sum),
}
"""The subject and the function of every rule, in the order in which they are applied."""
_TEXTS = packaged_toml("equipoise.audit", "checks.toml")
MISLEADING_CODES = frozenset(code for code, texts in _TEXTS.items() if texts.get("misleading"))
"""Codes of findings about values that are possible but misleading."""
_OF_CHANCE = frozenset(code for code, texts in _TEXTS.items() if texts.get("of_chance"))
"""Codes of the rules for a row of chance levels, which are expectations and may each have their own shuffles."""


_RULE_CHECKS = declared_checks(
    "equipoise.audit", {code: (subject, as_check(rule)) for code, (subject, rule) in _FUNCTIONS.items()}
)
_RULES = [(check, rule) for check, (_, rule) in zip(_RULE_CHECKS, _FUNCTIONS.values(), strict=True)]
RULES = [(check, rule) for check, rule in _RULES if check.applies_to is not ScoredSystems]
COMPOSITE_RULES = [(check, rule) for check, rule in _RULES if check.applies_to is ScoredSystems]


def apply_rule(check: Check, rule: AuditRule, subject: PublishedRow | AuditedTable) -> Iterator[Violation]:
    """The violations of a rule, if it applies to the subject."""
    if not isinstance(subject, check.applies_to):
        return
    if isinstance(subject, PublishedRow) and subject.chance and check.code not in _OF_CHANCE:
        return
    for violation in rule(subject):
        if not is_ruled_out(subject, violation):
            yield violation


def undeclared_assumption_findings(row: PublishedRow) -> Iterator[Observation]:
    """EQ450: values that contradict each other under an assumption that is not declared."""
    for check, rule in RULES:
        for violation in apply_rule(check, rule, row):
            note = assumption_note(row, check, violation)
            if note is not None:
                yield note


def assumption_note(subject: PublishedRow | AuditedTable, check: Check, violation: Violation) -> Observation | None:
    """The note for a violation with undeclared assumptions; None if all are declared or it is silent."""
    undeclared = undeclared_assumptions(subject, violation)
    if not undeclared or violation.silent_if_undeclared or (isinstance(subject, PublishedRow) and subject.is_exact):
        return None
    options = " ".join(OPTION_OF_ASSUMPTION[need] for need in undeclared if need in OPTION_OF_ASSUMPTION)
    observation = to_observation(subject, violation)
    return observation._replace(
        message=f"{violation.message}. This is impossible if {' and '.join(undeclared)} ({check.code}); "
        "otherwise it may be correct",
        hint=f"if this assumption holds, declare it with {options}" if options else observation.hint,
    )


(UNDECLARED_ASSUMPTION_CHECK,) = declared_checks(
    "equipoise.audit", {"EQ450": (PublishedRow, undeclared_assumption_findings)}
)
CHECKS = (*_RULE_CHECKS, UNDECLARED_ASSUMPTION_CHECK)
