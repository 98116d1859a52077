"""The short answer of an experiment: the decision, a ranked table, and one line for each thing to know next.

Every command that compares systems opens with it. Details (other metrics, pairs, slices, methods, hints of
findings) follow with --verbose, and are in the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING

from equipoise.checks.base import join_names, pluralize
from equipoise.errors import EquipoiseError
from equipoise.report.terminal import MARKS, STYLES, Paragraph, Part, ReportColumn, TerminalTable, sort_by_severity
from equipoise.stats.formatting import (
    ScoreFormat,
    estimate_decimals,
    format_percent,
    format_ranks,
    format_value,
    with_unit,
)
from equipoise.stats.verdict import (
    INCOMPLETE_MARK,
    PARTIAL_RUN,
    UNKNOWN_CANDIDATES,
    Vocabulary,
    headline,
    other_metrics_note,
    sample_size,
    score_format,
    why_uninformative,
)
from equipoise.types import Direction, Finding, Severity, with_label

if TYPE_CHECKING:
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.intervals import Interval
    from equipoise.stats.result import Estimate

SAMPLE_SIZE = "EQ304"
"""The finding that the sample size line of the answer already states."""
TIED, WORSE, NOT_TESTED = "tied", "worse", "not tested"
TIED_AND_RANK = (
    "Tied means that the difference from the best is not significant. Rank is the range of ranks that agrees with the "
    "significant differences of all pairs. A tied {system} could be best if the interval of its difference from the "
    "best, which is not adjusted for the number of pairs, includes 0."
)
UNKNOWN_INTERVALS = "Intervals shown as n/a"
"""The start of the note on them."""
MAX_FINDINGS = 4
"""Further codes are listed without their messages."""
MAX_ROWS = 8
"""Further systems are counted; ``--verbose`` and files have all."""
SECONDARY_RANK = 2
"""Columns with a higher rank are left out of the short answer rather than names shortened."""
METRIC_RANK = 10
"""Columns of other metrics are dropped before those of the primary one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The short answer. ``notes`` are one line each; ``warnings`` belong to the table."""

    headline: str
    columns: tuple[ReportColumn, ...]
    notes: tuple[str, ...] = ()
    failures: str = ""
    """The systems that are missing because they failed."""
    warnings: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    details: str = ""
    explains_codes: bool = False
    """Whether ``details`` is followed by how to look up the codes of the findings."""
    explanation: str = ""
    """How to read the table; part of the verbose answer."""
    details_only: tuple[str, ...] = ()
    """Codes of findings that only the verbose answer lists."""
    max_rows: int = 0
    """How many rows of the table a terminal shows without ``--verbose``; 0 for all."""

    def parts(self, *, quiet: bool = False, verbose: bool = False) -> list[Part]:
        """The answer for the terminal; ``quiet`` leaves out the notes, ``verbose`` leaves findings to the details."""
        parts: list[Part] = [Paragraph(self.headline, style="bold")]
        parts += [Paragraph(self.failures)] if self.failures else []
        if self.columns:
            # The least important columns are left out of a narrow terminal without a word, before names are cut.
            columns = [replace(column, extra=column.extra or column.rank > SECONDARY_RANK) for column in self.columns]
            table = TerminalTable(self.columns) if verbose else TerminalTable(columns, "", self.max_rows)
            parts += [Paragraph(""), table]
        parts += map(Paragraph, self.warnings)
        if quiet:
            return parts
        parts += map(Paragraph, self.notes)
        if not verbose:
            parts += finding_lines(self._listed)
            parts += [Paragraph(self._pointers)] if self.details else []
        elif self.explanation:
            parts.append(Paragraph(self.explanation))
        return parts

    @property
    def _listed(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.code not in self.details_only]

    @property
    def _pointers(self) -> str:
        """Where the details are, and the command that explains the codes of the findings above."""
        codes = shown_codes(self._listed) if self.explains_codes else []
        return f"{self.details} Codes such as {codes[0]}: eq explain CODE." if codes else self.details


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """The parts of a domain in the answer of a comparison.

    ``columns`` are further columns in the order of the comparison. ``baseline`` is the subject of the sentence
    about chance (empty: the sentence starts with "Chance level"), ``score_note`` follows it in the same line.
    ``notes`` are further lines. ``details`` says where the rest is. ``cheapest`` is the cheapest of the systems that
    could be best (``Comparison.could_be_best``), if known. ``sample_size`` replaces the sentence about the units that
    would be needed.
    """

    words: Vocabulary
    columns: tuple[ReportColumn, ...] = ()
    baseline: str = "A random baseline"
    score_note: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failures: str = ""
    findings: tuple[Finding, ...] | None = None
    details: str = ""
    explains_codes: bool = False
    cheapest: str = ""
    sample_size: str | None = None


def comparison_answer(comparison: Comparison, options: AnswerOptions) -> Answer:
    """The answer of a comparison on its primary metric."""
    words, shown = options.words, score_format(comparison, options.words)
    uninformative = why_uninformative(comparison, words)
    findings = comparison.findings if options.findings is None else options.findings
    chance = " ".join(filter(None, (_chance_sentence(comparison, words, shown, options.baseline), options.score_note)))
    size, first_line = options.sample_size, headline(comparison, words, uninformative)
    if size is None:
        decided = not uninformative or comparison.any_significant
        size = sample_size(comparison, words, brief=True) if decided else ""
    if len(comparison.could_be_best) > 1 and not uninformative and options.cheapest:
        first_line = f"{first_line} {cheapest_sentence(options.cheapest)}"
    estimates = [comparison.estimates[name][comparison.primary] for name in comparison.order]
    notes = (chance, *_unknown_intervals(estimates), *options.notes, other_metrics_note(comparison), size)
    return Answer(
        headline=first_line,
        columns=_answer_columns(comparison, words, shown, options.columns),
        notes=tuple(filter(None, notes)),
        failures=options.failures,
        warnings=(*options.warnings, *incomplete_run_notes(comparison)),
        findings=findings,
        details=options.details,
        explains_codes=options.explains_codes,
        explanation=TIED_AND_RANK.format(system=words.system) if comparison.tied_with_leader else "",
        max_rows=MAX_ROWS,
    )


def failure_line(failures: Mapping[str, EquipoiseError], n_finished: int, noun: str = "requested model") -> str:
    """How many systems failed and why, each cause once; empty if none failed.

    >>> failure_line({"a": EquipoiseError("no key"), "b": EquipoiseError("no key")}, 1)
    '2 of 3 requested models failed: a, b (no key).'
    """
    names_of: dict[str, list[str]] = {}
    for name, error in failures.items():
        names_of.setdefault(error.message.removeprefix(f"{name} "), []).append(name)
    causes = "; ".join(f"{join_names(names)} ({message})" for message, names in names_of.items())
    return f"{len(failures)} of {len(failures) + n_finished} {noun}s failed: {causes}." if failures else ""


def cheapest_sentence(cheapest: str, faster: str = "") -> str:
    """The cheapest of several systems in ``Comparison.could_be_best``."""
    return f"The cheapest that could be best is {cheapest}{faster}."


def all_metrics_answer(comparison: Comparison, options: AnswerOptions | None = None) -> Answer:
    """The answer of a comparison, with one more column per other metric."""
    options = options or AnswerOptions(comparison.words)
    others = [name for name in comparison.metrics if name != comparison.primary]
    return comparison_answer(
        comparison, replace(options, columns=(*metric_columns(comparison, others), *options.columns))
    )


def metric_columns(comparison: Comparison, metrics: Sequence[str]) -> list[ReportColumn]:
    """The scores on the other metrics, one column per metric, in the order of the primary one."""
    columns = []
    for index, metric in enumerate(metrics):
        estimates = [comparison.estimates[name][metric] for name in comparison.order]
        decimals = estimate_decimals(estimates)
        cells = [format_value(estimate.value, decimals) for estimate in estimates]
        head = with_unit(metric, estimates[0].unit)
        columns.append(metric_column(head, cells, estimates, rank=METRIC_RANK + index))
    return columns


def metric_column(head: str, cells: Sequence[str], estimates: Sequence[Estimate], rank: int = 0) -> ReportColumn:
    """Formatted scores, with the unrounded values for files."""
    return ReportColumn(head, cells, right=True, rank=rank, values={head: [estimate.value for estimate in estimates]})


def _answer_columns(
    comparison: Comparison, words: Vocabulary, shown: ScoreFormat, columns: Sequence[ReportColumn]
) -> tuple[ReportColumn, ...]:
    """Rank interval, name, score with interval, and the result of the test against the best system."""
    order, primary = comparison.order, comparison.primary
    estimates = [comparison.estimates[name][primary] for name in order]
    return (
        rank_column([comparison.ranks[name] for name in order]),
        ReportColumn(words.system, marked_names(comparison), shortens="middle", values={words.system: order}),
        *score_columns(estimates, shown, words.metric or primary),
        status_column([_status(comparison, name) for name in order]),
        # Names are not shortened for further columns.
        *(replace(column, extra=True) for column in columns),
    )


def rank_column(ranks: Sequence[tuple[int, int]]) -> ReportColumn:
    """The lowest and the highest possible rank of every system."""
    ends = {"rank_low": [low for low, _ in ranks], "rank_high": [high for _, high in ranks]}
    return ReportColumn("rank", [format_ranks(*ends) for ends in ranks], values=ends)


def status_column(statuses: Sequence[str]) -> ReportColumn:
    """Whether every system is significantly worse than the best one."""
    worse = [None if status in ("n/a", NOT_TESTED) else int(status == WORSE) for status in statuses]
    return ReportColumn("vs. best", statuses, rank=2, values={"significantly_worse": worse})


def score_columns(estimates: Sequence[Estimate], shown: ScoreFormat, metric: str) -> tuple[ReportColumn, ReportColumn]:
    """The scores and their intervals."""
    intervals = [estimate.interval for estimate in estimates]
    return (
        metric_column(metric, [shown.value(estimate.value) for estimate in estimates], estimates),
        interval_column([shown.interval(item) if item.known else "n/a" for item in intervals], intervals),
    )


def interval_column(cells: Sequence[str], intervals: Sequence[Interval]) -> ReportColumn:
    """Formatted confidence intervals, with the unrounded ends for files."""
    head = f"{format_percent(intervals[0].confidence_level)} interval"
    ends = {"low": [interval.low for interval in intervals], "high": [interval.high for interval in intervals]}
    return ReportColumn(head, cells, right=True, rank=1, values=ends)


def _status(comparison: Comparison, name: str) -> str:
    """Whether a system is significantly worse than the best one."""
    if comparison.leader is None or name == comparison.leader:
        return ""
    if isnan(comparison.scores[name]):
        return "n/a"
    if name in comparison.untested:
        return NOT_TESTED
    return TIED if name in comparison.tied_with_leader else WORSE


def marked_names(comparison: Comparison) -> list[str]:
    """The systems, best first; incomplete runs have a mark."""
    partial = {finding.subject for finding in comparison.findings if finding.code == PARTIAL_RUN}
    return [f"{name}{INCOMPLETE_MARK}" if name in partial else name for name in comparison.order]


def incomplete_run_notes(comparison: Comparison) -> list[str]:
    """One note per incomplete run."""
    return [
        f"{INCOMPLETE_MARK} {with_label(finding.subject, finding.message)}"
        for finding in comparison.findings
        if finding.code == PARTIAL_RUN
    ]


def _unknown_intervals(estimates: Sequence[Estimate]) -> list[str]:
    """Why intervals in the table are n/a."""
    reasons = dict.fromkeys(estimate.interval.reason for estimate in estimates)
    reasons.pop("", None)
    return [f"{UNKNOWN_INTERVALS}: {'; '.join(reasons)}."] if reasons else []


def _chance_sentence(comparison: Comparison, words: Vocabulary, shown: ScoreFormat, baseline: str) -> str:
    """The chance level on the primary metric; a bound if the number of candidates is unknown."""
    levels = [comparison.estimates[name][comparison.primary].chance for name in comparison.order]
    levels = [level for level in levels if not isnan(level)]
    metric = words.metric or comparison.primary
    if not levels:
        return f"The chance level of {metric} is n/a (not computed)."
    if all(finding.code != UNKNOWN_CANDIDATES for finding in comparison.findings):
        return _chance_level(baseline, shown.range(levels))
    up = comparison.better == Direction.UP
    bound = shown.value(max(levels) if up else min(levels))
    return f"{baseline} scores at {'most' if up else 'least'} {bound}; --corpus-size gives the exact chance level."


def _chance_level(baseline: str, level: str) -> str:
    return f"{baseline} scores {level}." if baseline else f"Chance level: {level}."


def finding_lines(findings: Iterable[Finding]) -> list[Paragraph]:
    """One entry per code: severity mark, code, and the first message or the title."""
    groups = list(_by_code(findings).values())
    lines = [
        Paragraph(
            collapsed(group),
            lead=f"{MARKS[group[0].severity]} {group[0].code}  ",
            mark=STYLES[group[0].severity],
        )
        for group in groups[:MAX_FINDINGS]
    ]
    other_codes = [group[0].code for group in groups[MAX_FINDINGS:]]
    return [*lines, Paragraph(f"and {', '.join(other_codes)}", lead="  ", overflow="end")] if other_codes else lines


def _by_code(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """The findings that the answer lists, in the order of their severity."""
    by_code: dict[str, list[Finding]] = {}
    for finding in sort_by_severity(findings):
        if finding.code not in (SAMPLE_SIZE, PARTIAL_RUN):
            by_code.setdefault(finding.code, []).append(finding)
    return by_code


def shown_codes(findings: Iterable[Finding]) -> list[str]:
    """The codes of the findings that the answer lists, most severe first."""
    return list(_by_code(findings))


def collapsed(group: Sequence[Finding]) -> str:
    """The findings of one code as one: an issue in full, others by the title of their check."""
    first, *others = group
    if first.title and first.severity != Severity.ISSUE:
        by_title: dict[str, list[str]] = {}
        for finding in group:
            by_title.setdefault(finding.title, []).append(finding.subject)
        title, names = next(iter(by_title.items()))
        n_others = sum(map(len, by_title.values())) - len(names)
        text = f"{title} ({_subjects(names)})"
    else:
        n_others, text = len(others), with_label(first.subject, first.message)
    return f"{text} (and {pluralize(n_others, 'similar finding')})" if n_others else text


def _subjects(names: Sequence[str]) -> str:
    """The subjects, each once; one of several systems is a list itself."""
    separator = "; " if any(", " in name for name in names) else ", "
    return join_names(list(dict.fromkeys(names)), separator)


def single_answer(name: str, estimate: Estimate, options: AnswerOptions) -> Answer:
    """The answer if only one system was measured."""
    words = options.words
    shown = ScoreFormat.of([estimate.interval], percent=words.percent)
    metric = words.metric or estimate.metric
    chance = "" if isnan(estimate.chance) else _chance_level(options.baseline, shown.value(estimate.chance))
    level = format_percent(estimate.interval.confidence_level)
    return Answer(
        headline=(
            f"{with_label(name, metric)} {shown.value(estimate.value)} on {words.units(estimate.n)} ({level} "
            f"interval {shown.interval(estimate.interval)}). One {words.system} alone does not show which is best: "
            "add a baseline."
        ),
        columns=(ReportColumn(words.system, [name]), *score_columns([estimate], shown, metric), *options.columns),
        notes=tuple(
            filter(
                None,
                (" ".join(filter(None, (chance, options.score_note))), *_unknown_intervals([estimate]), *options.notes),
            )
        ),
        failures=options.failures,
        warnings=options.warnings,
        findings=options.findings or (),
        details=options.details,
        explains_codes=options.explains_codes,
    )
