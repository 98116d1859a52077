"""The table of audit rules, and the simple ones: bounds, cutoffs, mixed units, intervals of a selected best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import inf, isinf

from equipoise.audit import average_rules, composite_rules, rank_rules, relevance_rules, sampling_rules
from equipoise.audit.assumptions import OPTION_OF_ASSUMPTION, Assumption
from equipoise.audit.table import (
    SLACK,
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
from equipoise.checks.base import Check, Observation, join_names
from equipoise.io.published.numbers import strip_markup
from equipoise.stats.intervals import wilson_interval
from equipoise.types import Severity


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
            (value.derivation_step, f"{value.metric} is {allowed}"),
            (Assumption.MEAN_RANK,) if _may_be_a_miss_rate(row, value) else (),
            hint=_hint(row, value),
        )


def _hint(row: PublishedRow, value: PublishedValue) -> str:
    if _may_be_a_miss_rate(row, value):
        return "if it is a mean rank, label it Mean Rank"
    if value.metric.is_fraction and not value.printed.percent and not row.is_exact and value.range.low > 1:
        return "most values of its column are at most 1; if the column is percent, run again with --percent"
    return ""


def _may_be_a_miss_rate(row: PublishedRow, value: PublishedValue) -> bool:
    """Whether MR may be the miss rate of a detector: a bare MR in a row without other rank metrics."""
    bare = value.metric.symbol == "MR" and strip_markup(value.label).strip().casefold() == "mr"
    ranked = any(value.metric.symbol in ("MRR", "HR", "MedianRank", "nDCG") for value in row.values)
    return bare and not ranked and value.range.high >= 0


BOUNDS_CHECK = Check(
    code="EQ411",
    title="a value out of bounds",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(out_of_bounds),
    why="""\
Shares are between 0 and 1, or 0 and 100 %, correlations between -1 and 1, and ranks start at 1. A mean rank
below 1 was counted from 0, which also changes every reciprocal rank. A share above 100 % is a
sum that was divided by too little: precision by the number of relevant items, or a mean over fewer units
than were summed.""",
    hint="check the denominator of the mean; count ranks from 1",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"mean_rank": 0.83, "MRR": 0.91}).findings""",
)


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
        yield from _never_falls(row.values_by_cutoff(symbol), _WHY[symbol])
    by_relevance = any(value.metric.symbol in _RELEVANCE_METRICS for value in row.values)
    fixed = by_relevance and Assumption.FIXED_RELEVANT not in row.rejected
    yield from _never_falls(row.values_by_cutoff("R"), _WHY["R"], () if fixed else (Assumption.FIXED_RELEVANT,))
    yield from _never_falls(row.values_by_cutoff("MRR", require_cutoff=False), _WHY["MRR"])
    uncut = row.value_of("MAP")
    yield from _never_falls([*row.values_by_cutoff("MAP", norm="R"), *([uncut] if uncut else [])], _WHY["MAP"])
    yield from _precision(row.values_by_cutoff("P"))


def _never_falls(
    series: Sequence[PublishedValue], why: str, assumptions: tuple[Assumption, ...] = ()
) -> Iterator[Violation]:
    violations = []
    for first, second in combinations(series, 2):
        if first.k < second.k and first.range.is_above(second.range):
            steps = (why.format(j=_rank(first.k), k=_rank(second.k)), first.derivation_step, second.derivation_step)
            gap = first.range.low - second.range.high
            sentence = f"{first} is above {second}, but a larger cutoff cannot lower it"
            hint = _CAPPED_HINT if first.metric.symbol == "R" else ""
            violations.append((gap, Violation((first, second), sentence, steps, assumptions, hint=hint)))
    yield from largest_gap(violations)


def _precision(series: Sequence[PublishedValue]) -> Iterator[Violation]:
    """P@k may fall, but k P@k counts relevant items: it never falls, and grows by at most 1 per rank."""
    violations = []
    for first, second in combinations(series, 2):
        j, k = int(first.k), int(second.k)
        before, after = first.range * j, second.range * k
        lost, gained = before.low - after.high, after.low - before.high - (k - j)
        if max(lost, gained) <= SLACK:
            continue
        counts = f"that makes {before} relevant items among the first {j} and {after} among the first {k}"
        steps = (
            "k P@k counts the relevant items among the first k",
            first.derivation_step,
            second.derivation_step,
            counts,
        )
        if lost > SLACK:
            sentence = f"{first} finds more relevant items than {second}"
            violations.append((lost, Violation((first, second), sentence, steps)))
        else:
            sentence = f"{second} needs more relevant items than there are ranks after {first}"
            more = f"{format_digits(after.low - before.high)} more at least, on {k - j} further ranks"
            violations.append((gained, Violation((first, second), sentence, (*steps, more))))
    yield from largest_gap(violations)


def _rank(k: float) -> str:
    return "the whole list" if isinf(k) else str(int(k))


DECREASING_CHECK = Check(
    code="EQ402",
    title="a value falls as the cutoff grows",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(decreasing_with_cutoff),
    why="""\
The first 5 results are part of the first 10. So hit rate, recall, MRR@k and MaxOntSim never fall as the
cutoff grows. Precision may, since it is divided by k, but k times P@k counts the relevant items found: it
never falls, and a further rank adds at most one. nDCG and MAP with the denominator min(k, R) may move either
way and are not checked.""",
    hint="check whether the columns were swapped, or come from different runs or units",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"HR@1": 0.62, "HR@5": 0.58}).findings""",
)


def mixed_units(table: AuditedTable) -> Iterator[Violation]:
    """EQ412: columns with values above 1 and columns below 1, without a percent sign on either."""
    if table.ambiguous_columns and table.percents:
        many = len(table.ambiguous_columns) > 1
        yield Violation(
            (),
            f"{join_names(table.percents)} must be percent, and {join_names(table.ambiguous_columns)} may be "
            f"{'fractions' if many else 'a fraction'} or percent below 1",
            (
                f"a share is at most 1, so values above 1 are percent: {join_names(table.percents)}",
                f"all values of {join_names(table.ambiguous_columns)} are below 1 and have no percent sign",
                "each row was read in every mixture of both; only what all of them forbid is called impossible",
            ),
        )


MIXED_UNITS_CHECK = Check(
    code="EQ412",
    title="percent and fractions in one table",
    severity=Severity.TIP,
    applies_to=AuditedTable,
    function=as_check(mixed_units),
    why="""\
A table with one share of 71.4 and another of 0.82 is ambiguous: the second one is 0.82 or
0.82 %. A program that averages or compares such columns gets a wrong number. A value above 1 proves
percent for its column; a value below 1 proves nothing.""",
    hint="add a percent sign to the values or (%) to the column header, or use fractions throughout",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"HR@1": 71.4, "HR@10": 98.6, "MRR": 0.82}).findings""",
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
                (
                    value.derivation_step,
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
    return (f"it is Wilson's interval of one share of {n} units",) if near else ()


SELECTED_BEST_CHECK = Check(
    code="EQ413",
    title="an interval around the best of several configurations",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(interval_of_selected_best),
    why="""\
A confidence interval assumes a configuration that was fixed before the units were seen. The
best of 27 on the same questions was selected partly by chance, and a 95 % interval around it covers the
true accuracy in about 75 % of cases. The value itself is optimistic by several points.
Nested tuning is unbiased: the configuration scored on a question was selected without it.""",
    hint="report a held-out score (eq fair compare), or select on some units and report on others",
    example="""\
from equipoise.audit.audit import audit_table
audit_table([{"model": "bge-base", "best_accuracy": 94.4, "ci_lower": 88.3, "ci_upper": 97.4,
              "configurations_tested": 27}]).findings""".replace("\n              ", " "),
)


RULES: tuple[tuple[Check, AuditRule], ...] = (
    (composite_rules.ALIASES_CHECK, composite_rules.unequal_aliases),
    (DECREASING_CHECK, decreasing_with_cutoff),
    (rank_rules.RECIPROCAL_RANK_CHECK, rank_rules.impossible_reciprocal_rank),
    (rank_rules.MEDIAN_RANK_CHECK, rank_rules.contradicts_median_rank),
    (relevance_rules.RELEVANT_COUNTS_CHECK, relevance_rules.inconsistent_relevant_counts),
    (relevance_rules.NDCG_CHECK, relevance_rules.impossible_ndcg),
    (sampling_rules.GRANULARITY_CHECK, sampling_rules.impossible_mean_of_n),
    (relevance_rules.F1_CHECK, relevance_rules.inconsistent_f1),
    (sampling_rules.INTERVAL_CHECK, sampling_rules.impossible_interval),
    (sampling_rules.CHANCE_LEVEL_CHECK, sampling_rules.wrong_chance_level),
    (BOUNDS_CHECK, out_of_bounds),
    (MIXED_UNITS_CHECK, mixed_units),
    (SELECTED_BEST_CHECK, interval_of_selected_best),
    (average_rules.AVERAGE_CHECK, average_rules.wrong_averages),
)
MISLEADING_CODES = frozenset(
    check.code
    for check in (
        SELECTED_BEST_CHECK,
        composite_rules.DATA_ONLY_CHECK,
        composite_rules.REVERSED_CHECK,
        composite_rules.COLLAPSED_CHECK,
    )
)
"""Codes of findings about values that are possible but misleading."""
RULES_FOR_CHANCE_ROWS = (
    composite_rules.ALIASES_CHECK,
    DECREASING_CHECK,
    sampling_rules.CHANCE_LEVEL_CHECK,
    BOUNDS_CHECK,
)
"""The rules for a row of chance levels, which are expectations and may each have their own shuffles."""


def apply_rule(check: Check, rule: AuditRule, subject: PublishedRow | AuditedTable) -> Iterator[Violation]:
    """The violations of a rule, if it applies to the subject."""
    if not isinstance(subject, check.applies_to):
        return
    if isinstance(subject, PublishedRow) and subject.chance and check not in RULES_FOR_CHANCE_ROWS:
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
        hint=f"if it holds, declare it with {options}" if options else observation.hint,
    )


UNDECLARED_ASSUMPTION_CHECK = Check(
    code="EQ450",
    title="values that contradict each other under an assumption",
    severity=Severity.NOTE,
    applies_to=PublishedRow,
    function=undeclared_assumption_findings,
    why="""\
Some rules hold only if every unit has one relevant item, if items are relevant without grades, if
no value was averaged over tied scores, or if average precision was divided by the relevant items and not
by those found. A table seldom says so. Without the assumption the values may be correct, and
nothing is called impossible; with it they are. The message names the assumption and the rule; an
option or a column of the table declares the assumption.""",
    hint="check whether the assumption holds, and declare it",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"Median Rank": "3.00", "MAP (%)": "93.45"}).findings""",
)
CHECKS: tuple[Check, ...] = (
    *(check for check, _ in (*RULES, *composite_rules.COMPOSITE_RULES)),
    UNDECLARED_ASSUMPTION_CHECK,
)
