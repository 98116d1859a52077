"""The audit: apply every rule under every interpretation of the units, and keep what all of them forbid."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.audit.composite_rules import COMPONENTS, COMPOSITE_NAMES, Formula, ScoredSystems, SystemNumbers
from equipoise.audit.metric_labels import is_metric_label, parse_label, suggest_label
from equipoise.audit.read_records import (
    Column,
    DeclaredContext,
    TableInterpretation,
    UnresolvedRow,
    interpret_table,
    is_hit_count,
    is_total,
    parse_sum_label,
)
from equipoise.audit.rules import (
    COMPOSITE_RULES,
    MISLEADING_CODES,
    RULES,
    UNDECLARED_ASSUMPTION_CHECK,
    apply_rule,
    assumption_note,
)
from equipoise.audit.table import (
    Assumption,
    AuditedTable,
    PublishedRow,
    Violation,
    is_count_label,
    label_key,
    parse_count,
    to_observation,
    undeclared_assumptions,
)
from equipoise.checks.base import Check, Observation, join_names
from equipoise.errors import EquipoiseError, InputError, ParameterError, UnknownNameError
from equipoise.io.published import read_published
from equipoise.io.published.numbers import parse_printed
from equipoise.report.tables import findings_html
from equipoise.types import Finding, Severity

if TYPE_CHECKING:
    from equipoise.io.published.tables import PublishedTable, TableCell


MAX_INTERPRETATIONS = 200
"""The number of interpretations of a row that are tried before it counts as possible."""
SMALL_FRACTION = 0.1
"""A hit rate below this may be percent: 0.1 % is the chance level among a thousand."""
_CHANCE_NAME = re.compile(r"(?i)\b(?:random|chance|guess\w*|untrained)\b")
_HITS = ("HR", "Acc")


@dataclass(frozen=True)
class RuleHit:
    """A violation of a rule; row index 0 is the whole table, and 1 its first row."""

    check: Check
    row_index: int
    subject: PublishedRow | AuditedTable
    violation: Violation

    @property
    def is_impossible(self) -> bool:
        """Whether it shows that a row is impossible, with all assumptions declared."""
        return self.check.severity is Severity.ISSUE and not undeclared_assumptions(self.subject, self.violation)

    @property
    def key(self) -> tuple[str, int, tuple[str, ...]]:
        """Equal for the same violation in two interpretations of a table."""
        return self.check.code, self.row_index, self.violation.key

    def subsumes(self, other: RuleHit) -> bool:
        """Whether it is the same rule on the values of the other, and perhaps more of them."""
        same_row = (self.check.code, self.row_index) == (other.check.code, other.row_index)
        return same_row and set(other.violation.values) <= set(self.violation.values)


def audit_findings(reading: TableInterpretation) -> list[Finding]:
    """What every interpretation of the table forbids, and as notes what only an undeclared assumption forbids."""
    hits = _rule_hits(reading.table(reading.percent_columns))
    if reading.ambiguous_columns:
        hits = _in_every_interpretation(reading, hits)
    elif not reading.percent_columns:
        hits = [_unless_percent(reading, hit) for hit in hits]
    impossible = [hit for hit in hits if hit.is_impossible]
    unconditional = [hit for hit in hits if not undeclared_assumptions(hit.subject, hit.violation)]
    notes = [
        note
        for hit in hits
        if undeclared_assumptions(hit.subject, hit.violation) and not any(map(hit.subsumes, impossible))
        if (note := assumption_note(hit.subject, hit.check, hit.violation)) is not None
    ]
    findings = [_finding(hit.check, to_observation(hit.subject, hit.violation)) for hit in unconditional]
    return [*findings, *(_finding(UNDECLARED_ASSUMPTION_CHECK, note) for note in notes)]


def composite_findings(compared: ScoredSystems) -> list[Finding]:
    """Findings about composite scores and their components, once per system and number."""
    findings: dict[tuple[str, str, str], Finding] = {}
    for check, rule in COMPOSITE_RULES:
        for violation in rule(compared):
            subject = to_observation(compared, violation)
            findings.setdefault((check.code, subject.subject, violation.message.split()[0]), _finding(check, subject))
    return list(findings.values())


def _rule_hits(table: AuditedTable) -> list[RuleHit]:
    subjects: list[PublishedRow | AuditedTable] = [table, *table.rows]
    return [
        RuleHit(check, row_index, subject, violation)
        for check, rule in RULES
        for row_index, subject in enumerate(subjects)
        for violation in apply_rule(check, rule, subject)
    ]


def _in_every_interpretation(reading: TableInterpretation, hits: Sequence[RuleHit]) -> list[RuleHit]:
    """Violations of rows that are impossible in every interpretation, and those of percent and fractions in common."""
    impossible = [hit for hit in hits if hit.is_impossible and hit.row_index]
    impossible_rows = {
        row_index
        for row_index in dict.fromkeys(finding.row_index for finding in impossible)
        if not _is_possible(
            reading.rows[row_index - 1], reading, [finding for finding in impossible if finding.row_index == row_index]
        )
    }
    again = {hit.key for hit in _rule_hits(reading.table(reading.percent_columns | reading.ambiguous_columns))}
    return [
        hit
        for hit in hits
        if (hit.row_index in impossible_rows if hit.is_impossible and hit.row_index else hit.key in again)
    ]


def _is_possible(draft: UnresolvedRow, reading: TableInterpretation, impossible: Iterable[RuleHit]) -> bool:
    """Whether some choice of units for its ambiguous columns violates nothing.

    Columns are decided one after another, those with violations first. A choice that is already impossible
    is not followed further.
    """
    suspects = [value.metric for finding in impossible for value in finding.violation.values]
    columns = [column for column in dict.fromkeys(draft.columns) if column in reading.ambiguous_columns]
    columns.sort(key=lambda column: column[1] not in suspects)
    paths: list[tuple[int, frozenset[Column]]] = [(0, reading.percent_columns)]
    for _ in range(MAX_INTERPRETATIONS):
        if not paths:
            return False
        decided, percents = paths.pop()
        if _is_impossible(draft.row(percents, without=frozenset(columns[decided:]))):
            continue
        if decided == len(columns):
            return True
        paths += [(decided + 1, percents | {columns[decided]}), (decided + 1, percents)]
    return True


def _is_impossible(row: PublishedRow) -> bool:
    return any(
        check.severity is Severity.ISSUE and not undeclared_assumptions(row, violation)
        for check, rule in RULES
        for violation in apply_rule(check, rule, row)
    )


def _unless_percent(reading: TableInterpretation, hit: RuleHit) -> RuleHit:
    """Add the assumption of fractions to a row of small unsigned shares that is possible if all of them are percent."""
    if not (
        hit.is_impossible and isinstance(hit.subject, PublishedRow) and _may_be_percent(hit.subject, reading.unsigned)
    ):
        return hit
    if _is_impossible(reading.rows[hit.row_index - 1].row(reading.unsigned)):
        return hit
    violation = replace(
        hit.violation,
        assumptions=(*hit.violation.assumptions, Assumption.FRACTIONS),
        hint="add a percent sign if they are percent; if they are fractions, use --fractions",
    )
    return replace(hit, violation=violation)


def _may_be_percent(row: PublishedRow, unsigned: Set[Column]) -> bool:
    """Whether its shares may be percent: a chance row, or very small hit rates."""
    open_measures = {metric for _, metric in unsigned}
    shares = [value for value in row.values if value.metric in open_measures]
    small = any(share.metric.symbol in _HITS and share.range.high < SMALL_FRACTION for share in shares)
    return bool(shares) and (small or _CHANCE_NAME.search(row.name) is not None)


def _finding(check: Check, hit: Observation) -> Finding:
    hint = hit.hint or check.hint
    return Finding(check.code, check.severity, hit.subject, hit.message, hint, hit.evidence, check.title)


Source = str | PathLike[str] | Mapping[Any, Any] | Sequence[Any]


@dataclass(frozen=True)
class Audit:
    """The tables and findings of an audit; ``unread`` are labels of numbers that are not metrics."""

    name: str
    tables: tuple[AuditedTable, ...]
    findings: tuple[Finding, ...]
    unread: tuple[str, ...] = ()
    failures: tuple[EquipoiseError, ...] = ()
    """Why files of a folder could not be read."""

    @property
    def issues(self) -> tuple[Finding, ...]:
        """The findings of severity issue: impossible or misleading values."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ISSUE)

    @property
    def impossible(self) -> tuple[Finding, ...]:
        """The findings of impossible values."""
        return tuple(issue for issue in self.issues if issue.code not in MISLEADING_CODES)

    @property
    def misleading(self) -> tuple[Finding, ...]:
        """The findings of values that are possible but misleading."""
        return tuple(issue for issue in self.issues if issue.code in MISLEADING_CODES)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(len(table.rows) for table in self.tables)

    @property
    def n_values(self) -> int:
        """The number of metric values."""
        return sum(len(row.values) for table in self.tables for row in table.rows)

    @property
    def n_components(self) -> int:
        """The number of composite scores and components that are not metrics."""
        return sum(len(COMPOSITE_NAMES & row.other_numbers.keys()) for table in self.tables for row in table.rows)

    def __repr__(self) -> str:
        return f"<Audit of {self.name}: {self.n_values} values read, {len(self.impossible)} impossible>"

    def _repr_html_(self) -> str:
        """The findings as a table for notebooks."""
        return findings_html(list(self.findings))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "table": self.name,
            "rows": self.n_rows,
            "values": self.n_values,
            "impossible": len(self.impossible),
            "misleading": len(self.misleading),
            "findings": [
                {
                    "code": finding.code,
                    "severity": str(finding.severity),
                    "subject": finding.subject,
                    "message": finding.message,
                    "derivation": list(finding.evidence),
                    "hint": finding.hint,
                }
                for finding in self.findings
            ],
            "unread": list(self.unread),
            "failures": [
                {"code": failure.code, "message": failure.message, "hint": failure.hint} for failure in self.failures
            ],
        }


def audit_table(
    source: Source,
    *,
    n: int | None = None,
    one_relevant: bool = False,
    binary: bool = False,
    no_ties: bool = False,
    map_over_relevant: bool = False,
    fractions: bool = False,
    percent: bool = False,
) -> Audit:
    """Find impossible values in a file, in every table of a folder, or in values as JSON has them.

    ``n`` is the number of units of each value. ``one_relevant`` declares that every unit has one
    relevant item, ``binary`` that items are relevant without grades, ``no_ties`` that every unit is a hit
    or a miss, ``map_over_relevant`` that average precision is divided by the relevant items and not by
    those found. ``fractions`` and ``percent`` give the unit of all shares without a percent sign; otherwise
    the values of each column decide. What is impossible only under an undeclared assumption is a note.
    Files of a folder that cannot be read are kept in ``failures``.
    """
    flags = {
        Assumption.ONE_RELEVANT: one_relevant,
        Assumption.BINARY: binary or one_relevant,
        Assumption.HITS: no_ties,
        Assumption.OVER_RELEVANT: map_over_relevant or one_relevant,
        Assumption.FIXED_RELEVANT: one_relevant or binary or map_over_relevant,
        Assumption.FRACTIONS: fractions,
    }
    if fractions and percent:
        raise ParameterError("shares are fractions or percent, not both", hint="give one of the two options")
    assumptions = frozenset(assumption for assumption, is_declared in flags.items() if is_declared)
    unit = percent if fractions or percent else None
    declared = DeclaredContext(None if n is None else parse_count(n, "n"), assumptions, unit)
    failures: list[EquipoiseError] = []
    sources = read_published(source, _is_known_label, failures.append)
    if failures and not any(table.records for table in sources):
        raise failures[0]
    _check_has_metrics(sources)
    tables: list[AuditedTable] = []
    findings: dict[Finding, None] = {}
    differences: list[str] = []
    is_folder = isinstance(source, str | PathLike) and Path(source).is_dir()
    for published in sources:
        reading = _interpretation(published, declared, failures if is_folder else None)
        if reading is not None:
            tables.append(reading.table(reading.percent_columns))
            findings.update(dict.fromkeys(audit_findings(reading)))
            differences += reading.differences
    findings.update(dict.fromkeys(composite_findings(_collect_systems(sources))))
    unreadable = [cell for table in sources for cell in _unreadable_cells(table)]
    unread = [label for table in sources for label in _unused_labels(table.labels)]
    unread += [f"{cell.label} {cell.text!r}" for cell in unreadable if re.search(r"\d", cell.text)]
    unread += [f"{label} (differences)" for label in differences]
    name = sources[0].name if len({table.name for table in sources}) == 1 else str(source)
    audit = Audit(name, tuple(tables), tuple(findings), tuple(dict.fromkeys(unread)), tuple(failures))
    if failures and not tables:
        raise failures[0]
    if not audit.n_values and not audit.n_components and not differences:
        labels = dict.fromkeys(f"{cell.label} {cell.text!r}" if cell.text else cell.label for cell in unreadable)
        raise InputError(
            f"{name} names metrics, but none of their values can be read: {join_names(list(labels))}",
            hint="a value is a number such as 0.41, 41.2 % or 0.41 ± 0.02",
        )
    return audit


def _collect_systems(sources: Sequence[PublishedTable]) -> ScoredSystems:
    """The systems of all files, with the formulas of their files."""
    stated: dict[str, list[Formula]] = {}
    for table in sources:
        formulas = stated.setdefault(_file(table), [])
        formulas += [formula for line in table.formulas if (formula := Formula.parse(line))]
    systems = [
        SystemNumbers.of(system, _file(source), stated[_file(source)])
        for source in sources
        for system in source.systems
    ]
    return ScoredSystems(sources[0].name if sources else "", tuple(system for system in systems if system.numbers))


def _file(published: PublishedTable) -> str:
    """The file of a table, the first part of its name."""
    return published.name.partition(", ")[0]


def _interpretation(
    published: PublishedTable, declared: DeclaredContext, failures: list[EquipoiseError] | None
) -> TableInterpretation | None:
    """The interpretation of a table. In a folder, an error is recorded with the name of its file."""
    if not published.records:
        return None
    try:
        return interpret_table(published, declared)
    except EquipoiseError as error:
        if failures is None:
            raise
        failures.append(type(error)(f"{published.name}: {error.message}", hint=error.hint))
        return None


def _unreadable_cells(published: PublishedTable) -> list[TableCell]:
    """Cells of metrics and composite scores without a readable number."""
    cells = [cell for record in published.records for cell in record.cells if _is_known_label(cell.label)]
    return [cell for cell in cells if parse_printed(cell.text) is None]


def _is_known_label(label: str) -> bool:
    """Whether the audit recognises a label."""
    return is_metric_label(label) or is_hit_count(label) or label_key(label) in COMPOSITE_NAMES


def _unused_labels(labels: Sequence[str]) -> list[str]:
    """The labels of numbers that are not used. A total is used if there are sums to divide."""
    summed = any(parse_sum_label(label) for label in labels)
    return [label for label in labels if not _is_used(label) and not (summed and is_total(label))]


def _is_used(label: str) -> bool:
    """Whether a number with this label is used: a value, an interval end, a count or a component."""
    return (
        parse_label(label) is not None
        or is_hit_count(label)
        or is_count_label(label)
        or label_key(label) in COMPOSITE_NAMES | COMPONENTS
    )


def _check_has_metrics(sources: Iterable[PublishedTable]) -> None:
    tables = list(sources)
    if any(table.records for table in tables):
        return
    labels = list(dict.fromkeys(label for table in tables for label in table.labels))
    near = [hint for label in labels if (hint := suggest_label(label))]
    files = list(dict.fromkeys(table.name for table in tables))
    is_one = len(files) == 1
    problem = f"{files[0]} has no known metric" if is_one else f"none of {len(files)} tables has a known metric"
    numbers_text = f"; its numbers have the labels {join_names(labels)}" if labels else " and no numbers"
    named = "; ".join(near[:3]) or "eq ls metrics lists the metrics; columns or rows must be named after them"
    table = files[0] if len(files) == 1 else "TABLE"
    raise UnknownNameError(
        f"{problem}{numbers_text}",
        hint=f"{named}; if the columns are data sets: eq leaderboard {table}" if labels else named,
    )
