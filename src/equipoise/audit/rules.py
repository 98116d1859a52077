"""Figures that can only grow with the cutoff: whoever looks further down sees no less."""

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

# Figures beyond the bounds of their metric.


def out_of_bounds(row: PublishedRow) -> Iterator[Violation]:
    """EQ411: a figure that its metric cannot take: a share above 1, a rank below 1."""
    for figure in row.figures:
        low, high = figure.measure.bounds
        if not figure.measure.is_standard and not row.own:
            continue
        if low - SLACK <= figure.span.high and figure.span.low <= high + SLACK:
            continue
        reach = (
            f"at least {format_digits(low)}"
            if high == inf
            else f"between {format_digits(low)} and {format_digits(high)}"
        )
        reach = f"at most {format_digits(high)}" if low == -inf else reach
        if figure.measure.symbol in ("MR", "MedianRank"):
            reach = "at least 1, since ranks start at 1"
        yield Violation(
            (figure,),
            f"{figure} is out of bounds: {figure.measure} is {reach}",
            (figure.read, f"{figure.measure} is {reach}"),
            (Assumption.MEAN_RANK,) if _may_be_a_miss_rate(row, figure) else (),
            hint=_hint(row, figure),
        )


def _hint(row: PublishedRow, figure: PublishedValue) -> str:
    if _may_be_a_miss_rate(row, figure):
        return "if it is a mean rank, call it so: Mean Rank"
    if figure.measure.is_share and not figure.printed.percent and not row.own and figure.span.low > 1:
        return "most values of its column are at most 1; if the column is percent, run again with --percent"
    return ""


def _may_be_a_miss_rate(row: PublishedRow, figure: PublishedValue) -> bool:
    """Detectors have an MR as well, a share; whoever ranks has other figures of ranks beside it."""
    bare = figure.measure.symbol == "MR" and strip_markup(figure.label).strip().casefold() == "mr"
    ranked = any(each.measure.symbol in ("MRR", "HR", "MedianRank", "nDCG") for each in row.figures)
    return bare and not ranked and figure.span.high >= 0


BOUNDS_CHECK = Check(
    code="EQ411",
    title="a figure out of bounds",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(out_of_bounds),
    why="""\
Shares lie between 0 and 1, or 0 and 100 %, correlations between -1 and 1, and ranks start at 1. A mean rank
below 1 was counted from 0, which also turns reciprocal ranks into something else. A share above 100 % is a
sum that was divided by too little: precision by the number of relevant items, or a mean over fewer units
than were summed.""",
    hint="find out what the sum was divided by; count ranks from 1",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"mean_rank": 0.83, "MRR": 0.91}).findings""",
)


_WHY = {
    "HR": "a unit with a relevant item among the first {j} has one among the first {k}",
    "R": "the relevant items among the first {j} are among the first {k}, and R stays the same",
    "MRR": "a reciprocal rank that counts within {j} counts within {k}",
    "MaxOntSim": "the nearest of the first {j} terms is among the first {k}",
    "MAP": "every precision that is summed within {j} is summed within {k}, and R stays the same",
}

_JUDGED = ("HR", "MRR", "nDCG", "MAP", "P")
"""Where one of these stands alongside, recall is over relevant items, and not over nearest neighbours."""
_CAPPED = "see whether the columns were swapped; recall over min(R, k) may fall, and is spelled R(capped)@k"


def decreasing_with_cutoff(row: PublishedRow) -> Iterator[Violation]:
    """EQ402: a figure that falls as the cutoff grows, and cannot."""
    for symbol in ("HR", "MaxOntSim"):
        yield from _never_falls(row.series(symbol), _WHY[symbol])
    judged = any(each.measure.symbol in _JUDGED for each in row.figures)
    fixed = judged and Assumption.FIXED_RELEVANT not in row.denied
    yield from _never_falls(row.series("R"), _WHY["R"], () if fixed else (Assumption.FIXED_RELEVANT,))
    yield from _never_falls(row.series("MRR", cut=False), _WHY["MRR"])
    whole = row.one("MAP")
    yield from _never_falls([*row.series("MAP", norm="R"), *([whole] if whole else [])], _WHY["MAP"])
    yield from _precision(row.series("P"))


def _never_falls(series: Sequence[PublishedValue], why: str, needs: tuple[Assumption, ...] = ()) -> Iterator[Violation]:
    found = []
    for first, second in combinations(series, 2):
        if first.k < second.k and first.span.above(second.span):
            steps = (why.format(j=_rank(first.k), k=_rank(second.k)), first.read, second.read)
            gap = first.span.low - second.span.high
            sentence = f"{first} is above {second}, and a larger cutoff cannot lower it"
            hint = _CAPPED if first.measure.symbol == "R" else ""
            found.append((gap, Violation((first, second), sentence, steps, needs, hint=hint)))
    yield from largest_gap(found)


def _precision(series: Sequence[PublishedValue]) -> Iterator[Violation]:
    """P@k may fall, but k P@k counts relevant items: it never falls, and grows by 1 a rank at most."""
    found = []
    for first, second in combinations(series, 2):
        j, k = int(first.k), int(second.k)
        before, after = first.span * j, second.span * k
        lost, gained = before.low - after.high, after.low - before.high - (k - j)
        if max(lost, gained) <= SLACK:
            continue
        counts = f"that makes {before} relevant items among the first {j} and {after} among the first {k}"
        steps = ("k P@k counts the relevant items among the first k", first.read, second.read, counts)
        if lost > SLACK:
            sentence = f"{first} finds more relevant items than {second}"
            found.append((lost, Violation((first, second), sentence, steps)))
        else:
            sentence = f"{second} needs more relevant items than there are ranks after {first}"
            more = f"{format_digits(after.low - before.high)} more at least, on {k - j} further ranks"
            found.append((gained, Violation((first, second), sentence, (*steps, more))))
    yield from largest_gap(found)


def _rank(k: float) -> str:
    return "the whole list" if isinf(k) else str(int(k))


CHECK = Check(
    code="EQ402",
    title="a figure falls where it can only grow",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(decreasing_with_cutoff),
    why="""\
What is among the first 5 is among the first 10. So hit rate, recall, MRR@k and MaxOntSim never fall as the
cutoff grows. Precision may, since it is divided by k, but k times P@k counts the relevant items found: it
never falls, and a further rank adds one at most. nDCG and MAP with the denominator min(k, R) may move either
way and are not judged by this.""",
    hint="see whether the columns were swapped, or come from different runs or units",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"HR@1": 0.62, "HR@5": 0.58}).findings""",
)


# Percent beside fractions, and nothing that says which is which.


def mixed_units(table: AuditedTable) -> Iterator[Violation]:
    """EQ412: columns above 1 beside columns below it, and no percent sign on either."""
    if table.unsure and table.percents:
        many = len(table.unsure) > 1
        yield Violation(
            (),
            f"{join_names(table.percents)} must be percent, and {join_names(table.unsure)} may be "
            f"{'fractions' if many else 'a fraction'} or percent below 1",
            (
                f"a share is at most 1, so figures above 1 are percent: {join_names(table.percents)}",
                f"all figures of {join_names(table.unsure)} are below 1 and carry no sign",
                "each row was read in the mixtures of both, and only what none allows is called impossible",
            ),
        )


UNITS_CHECK = Check(
    code="EQ412",
    title="percent beside fractions",
    severity=Severity.TIP,
    applies_to=AuditedTable,
    function=as_check(mixed_units),
    why="""\
A table that gives one share as 71.4 and another as 0.82 leaves the reader to guess: is the second one 0.82 or
0.82 %? Programs that average or compare such columns do not guess, they compute. A figure above 1 proves
percent for its column; one below 1 proves nothing.""",
    hint="write a percent sign, or (%) into the head of the column, or use fractions throughout",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"HR@1": 71.4, "HR@10": 98.6, "MRR": 0.82}).findings""",
)


# An interval around the best of several configurations, made on the units that chose it.


def interval_of_selected_best(row: PublishedRow) -> Iterator[Violation]:
    """EQ413: the interval of a figure that is the best of several configurations."""
    trials = row.facts.trials
    if row.facts.nested or row.own or (trials is not None and trials < 2):
        return
    if trials is None and not row.chosen:
        return
    several = "several" if trials is None else str(trials)
    for figure in row.figures:
        if figure.ends is not None and figure.measure.symbol in ("HR", "Acc"):
            yield Violation(
                (figure,),
                f"the interval of {figure} is that of one configuration, and this is the best of {several}",
                (
                    figure.read,
                    f"the interval goes from {figure.ends_text}",
                    *_as_wilson(row, figure),
                    f"it allows for the luck of one; the best of {several} has the luck of the luckiest",
                    "so the true accuracy lies below such an interval more often than its level says",
                ),
            )


def _as_wilson(row: PublishedRow, figure: PublishedValue) -> tuple[str, ...]:
    """Whether the ends are those of Wilson's interval for one fixed configuration."""
    n = row.units(figure)
    if n is None or figure.ends is None:
        return ()
    share = min(max((figure.span.low + figure.span.high) / 2, 0.0), 1.0)
    reach = wilson_interval(share * n, n, row.facts.level or 0.95)
    ends = (ValueRange(reach.low, reach.low), ValueRange(reach.high, reach.high))
    near = all(
        not end.apart(ValueRange(seen.low - 0.005, seen.high + 0.005))
        for end, seen in zip(ends, figure.ends, strict=True)
    )
    return (f"it is Wilson's interval of one share of {n} units",) if near else ()


BEST_OF_CHECK = Check(
    code="EQ413",
    title="an interval around the best of several configurations",
    severity=Severity.ISSUE,
    applies_to=PublishedRow,
    function=as_check(interval_of_selected_best),
    why="""\
Wilson's interval, like any other, is made for a configuration that was fixed before the units were seen. The
best of 27 on the same questions was chosen for its luck as well as for its worth, and its interval covers the
truth in three cases of four instead of nineteen of twenty. The figure itself is optimistic by several points.
Nested tuning gives an honest one: what is scored on a question was chosen without it.""",
    hint="report the nested figure (eq fair compare), or choose on some units and report on others",
    example="""\
from equipoise.audit.audit import audit_table
audit_table([{"model": "bge-base", "best_accuracy": 94.4, "ci_lower": 88.3, "ci_upper": 97.4,
              "configurations_tested": 27}]).findings""".replace("\n              ", " "),
)


# All laws of the audit, each with the check that gives it a code.

RULES: tuple[tuple[Check, AuditRule], ...] = (
    (composite_rules.CHECK, composite_rules.unequal_aliases),
    (CHECK, decreasing_with_cutoff),
    (rank_rules.CHECK, rank_rules.impossible_reciprocal_rank),
    (rank_rules.MEDIAN_CHECK, rank_rules.contradicts_median_rank),
    (relevance_rules.CHECK, relevance_rules.inconsistent_relevant_counts),
    (relevance_rules.GAINS_CHECK, relevance_rules.impossible_ndcg),
    (sampling_rules.GRANULARITY_CHECK, sampling_rules.impossible_mean_of_n),
    (relevance_rules.F1_CHECK, relevance_rules.inconsistent_f1),
    (sampling_rules.INTERVALS_CHECK, sampling_rules.impossible_interval),
    (sampling_rules.CHECK, sampling_rules.wrong_chance_level),
    (BOUNDS_CHECK, out_of_bounds),
    (UNITS_CHECK, mixed_units),
    (BEST_OF_CHECK, interval_of_selected_best),
    (average_rules.CHECK, average_rules.wrong_averages),
)
MISLEADING = frozenset(
    check.code
    for check in (BEST_OF_CHECK, composite_rules.CONSTANT, composite_rules.REVERSED, composite_rules.COLLAPSE)
)
"""What these find can be, and does not mean what it seems to."""
RULES_FOR_CHANCE_ROWS = (composite_rules.CHECK, CHECK, sampling_rules.CHECK, BOUNDS_CHECK)
"""The laws for a row of chance levels: expectations, which may rest on shuffles of their own each."""


def apply_rule(check: Check, law: AuditRule, thing: PublishedRow | AuditedTable) -> Iterator[Violation]:
    """What a law finds, unless it cannot be applied."""
    if not isinstance(thing, check.applies_to):
        return
    if isinstance(thing, PublishedRow) and thing.chance and check not in RULES_FOR_CHANCE_ROWS:
        return
    for violation in law(thing):
        if not is_ruled_out(thing, violation):
            yield violation


def undeclared_assumption_findings(row: PublishedRow) -> Iterator[Observation]:
    """EQ450: figures that contradict each other under an assumption that nobody has declared."""
    for check, law in RULES:
        for violation in apply_rule(check, law, row):
            found = assumption_note(row, check, violation)
            if found is not None:
                yield found


def assumption_note(thing: PublishedRow | AuditedTable, check: Check, violation: Violation) -> Observation | None:
    """The note for a violation whose needs are not declared; None where they are, or it is quiet."""
    lacking = undeclared_assumptions(thing, violation)
    if not lacking or violation.quiet or (isinstance(thing, PublishedRow) and thing.own):
        return None
    options = " ".join(OPTION_OF_ASSUMPTION[need] for need in lacking if need in OPTION_OF_ASSUMPTION)
    seen = to_observation(thing, violation)
    return seen._replace(
        message=f"{violation.message}. That cannot be if {' and '.join(lacking)} ({check.code}); "
        "otherwise it may be true",
        hint=f"if it holds, say so with {options}, and the audit counts it" if options else seen.hint,
    )


CONDITIONAL = Check(
    code="EQ450",
    title="figures that contradict each other under an assumption",
    severity=Severity.NOTE,
    applies_to=PublishedRow,
    function=undeclared_assumption_findings,
    why="""\
Some laws hold only where every unit has one relevant item, where items are relevant without grades, where
no figure was averaged over tied scores, or where average precision was divided by the relevant items and not
by those found. A table seldom says so. Without it the figures may be right, and
nothing is called impossible; with it they cannot be. The sentence names the assumption and the law, and an
option or a column of the table declares it.""",
    hint="find out whether the assumption holds, and declare it",
    example="""\
from equipoise.audit.audit import audit_table
audit_table({"Median Rank": "3.00", "MAP (%)": "93.45"}).findings""",
)
CHECKS: tuple[Check, ...] = (*(check for check, _ in (*RULES, *composite_rules.LAWS)), CONDITIONAL)
