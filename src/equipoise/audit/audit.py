"""The audit: can these published figures be true?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.audit import composite_rules
from equipoise.audit.assumptions import Assumption, is_count_label, parse_count
from equipoise.audit.composite_rules import COMPONENTS, COMPOSITE_NAMES, Compared, Formula, Scored
from equipoise.audit.metric_labels import is_metric_label, parse_label, suggest_label
from equipoise.audit.reading import (
    Column,
    DeclaredContext,
    TableInterpretation,
    UnresolvedRow,
    interpret_table,
    is_count,
    is_total,
    key_of,
    sum_name,
)
from equipoise.audit.rules import CONDITIONAL, MISLEADING, RULES, apply_rule, assumption_note
from equipoise.audit.table import (
    AuditedTable,
    PublishedRow,
    Violation,
    to_observation,
    undeclared_assumptions,
)
from equipoise.checks.base import Check, Observation, join_names
from equipoise.errors import EquipoiseError, InputError, ParameterError, UnknownNameError
from equipoise.io.published import read_published
from equipoise.io.published.numbers import parse_printed
from equipoise.report.notebook import findings_html
from equipoise.types import Finding, Severity

if TYPE_CHECKING:
    from equipoise.io.published.tables import PublishedTable, TableCell

# What the laws say of a table whose units may be open: nothing is impossible that one reading allows.

MAX_INTERPRETATIONS = 200
"""So many readings of a row are tried before it is given the benefit of the doubt."""
SMALL_FRACTION = 0.1
"""A hit rate below this may well be percent: a tenth of a percent is what luck gives among a thousand."""
_LUCKY = re.compile(r"(?i)\b(?:random|chance|guess\w*|untrained)\b")
_HITS = ("HR", "Acc")


@dataclass(frozen=True)
class RuleHit:
    """A violation of a law at a place: 0 is the table as a whole, and 1 its first row."""

    check: Check
    place: int
    thing: PublishedRow | AuditedTable
    violation: Violation

    @property
    def accuses(self) -> bool:
        """Whether it says that a row cannot be, all its needs being declared."""
        return self.check.severity is Severity.ISSUE and not undeclared_assumptions(self.thing, self.violation)

    @property
    def key(self) -> tuple[str, int, tuple[str, ...]]:
        """What two readings of a table that violate the same have in common."""
        return self.check.code, self.place, self.violation.key

    def says_the_same_as(self, other: RuleHit) -> bool:
        """Whether it is the same law on the same figures, and perhaps more of them."""
        same = (self.check.code, self.place) == (other.check.code, other.place)
        return same and set(other.violation.figures) <= set(self.violation.figures)


def audit_findings(reading: TableInterpretation) -> list[Finding]:
    """What no reading of the table allows, and as notes what only an undeclared assumption forbids."""
    seen = _seen(reading.table(reading.over))
    if reading.unsure:
        seen = _in_every_reading(reading, seen)
    elif not reading.over:
        seen = [_unless_percent(reading, each) for each in seen]
    accusing = [each for each in seen if each.accuses]
    told = [each for each in seen if not undeclared_assumptions(each.thing, each.violation)]
    notes = [
        note
        for each in seen
        if undeclared_assumptions(each.thing, each.violation) and not any(map(each.says_the_same_as, accusing))
        if (note := assumption_note(each.thing, each.check, each.violation)) is not None
    ]
    accused = [_finding(each.check, to_observation(each.thing, each.violation)) for each in told]
    return [*accused, *(_finding(CONDITIONAL, note) for note in notes)]


def findings_about(compared: Compared) -> list[Finding]:
    """What is wrong with scores and their parts, once per system and number."""
    found: dict[tuple[str, str, str], Finding] = {}
    for check, law in composite_rules.LAWS:
        for violation in law(compared):
            subject = to_observation(compared, violation)
            found.setdefault((check.code, subject.subject, violation.message.split()[0]), _finding(check, subject))
    return list(found.values())


def _seen(table: AuditedTable) -> list[RuleHit]:
    things: list[PublishedRow | AuditedTable] = [table, *table.rows]
    return [
        RuleHit(check, place, thing, violation)
        for check, law in RULES
        for place, thing in enumerate(things)
        for violation in apply_rule(check, law, thing)
    ]


def _in_every_reading(reading: TableInterpretation, seen: Sequence[RuleHit]) -> list[RuleHit]:
    """The violations of rows that nothing saves, and those that percent and fractions have in common."""
    accusing = [each for each in seen if each.accuses and each.place]
    lost = {
        place
        for place in dict.fromkeys(each.place for each in accusing)
        if not _is_possible(reading.rows[place - 1], reading, [each for each in accusing if each.place == place])
    }
    again = {each.key for each in _seen(reading.table(reading.over | reading.unsure))}
    return [each for each in seen if (each.place in lost if each.accuses and each.place else each.key in again)]


def _is_possible(draft: UnresolvedRow, reading: TableInterpretation, accusing: Iterable[RuleHit]) -> bool:
    """Whether some choice of units for its open columns violates nothing.

    Columns are decided one after another, those first that are accused, and a choice that is impossible
    already is not followed further.
    """
    accused = [figure.measure for each in accusing for figure in each.violation.figures]
    columns = [each for each in dict.fromkeys(draft.columns) if each in reading.unsure]
    columns.sort(key=lambda column: column[1] not in accused)
    paths: list[tuple[int, frozenset[Column]]] = [(0, reading.over)]
    for _ in range(MAX_INTERPRETATIONS):
        if not paths:
            return False
        decided, percents = paths.pop()
        if _cannot_be(draft.row(percents, without=frozenset(columns[decided:]))):
            continue
        if decided == len(columns):
            return True
        paths += [(decided + 1, percents | {columns[decided]}), (decided + 1, percents)]
    return True


def _cannot_be(row: PublishedRow) -> bool:
    return any(
        check.severity is Severity.ISSUE and not undeclared_assumptions(row, violation)
        for check, law in RULES
        for violation in apply_rule(check, law, row)
    )


def _unless_percent(reading: TableInterpretation, seen: RuleHit) -> RuleHit:
    """With a doubt where a row of small shares without signs can be if all of them are percent."""
    if not (seen.accuses and isinstance(seen.thing, PublishedRow) and _may_be_percent(seen.thing, reading.unsigned)):
        return seen
    if _cannot_be(reading.rows[seen.place - 1].row(reading.unsigned)):
        return seen
    doubted = replace(
        seen.violation,
        needs=(*seen.violation.needs, Assumption.FRACTIONS),
        hint="write a percent sign if they are percent; if they are fractions, run again with --fractions",
    )
    return replace(seen, violation=doubted)


def _may_be_percent(row: PublishedRow, unsigned: Set[Column]) -> bool:
    """Whether its shares look like percent: of luck, or with hits that are next to none."""
    open_measures = {measure for _, measure in unsigned}
    shares = [each for each in row.figures if each.measure in open_measures]
    small = any(each.measure.symbol in _HITS and each.span.high < SMALL_FRACTION for each in shares)
    return bool(shares) and (small or _LUCKY.search(row.name) is not None)


def _finding(check: Check, seen: Observation) -> Finding:
    return Finding(check.code, check.severity, seen.subject, seen.message, seen.hint or check.hint, seen.evidence)


Source = str | PathLike[str] | Mapping[Any, Any] | Sequence[Any]


@dataclass(frozen=True)
class Audit:
    """What an audit looked at and what it found; ``unread`` are labels of numbers that are no metrics."""

    name: str
    tables: tuple[AuditedTable, ...]
    findings: tuple[Finding, ...]
    unread: tuple[str, ...] = ()
    failures: tuple[EquipoiseError, ...] = ()
    """Why files of a folder could not be read."""

    @property
    def issues(self) -> tuple[Finding, ...]:
        """The findings that count: what cannot be, and what does not mean what it seems to."""
        return tuple(each for each in self.findings if each.severity is Severity.ISSUE)

    @property
    def impossible(self) -> tuple[Finding, ...]:
        """The findings that say that something cannot be."""
        return tuple(each for each in self.issues if each.code not in MISLEADING)

    @property
    def misleading(self) -> tuple[Finding, ...]:
        """The findings of figures that can be, and do not mean what they seem to."""
        return tuple(each for each in self.issues if each.code in MISLEADING)

    @property
    def rows(self) -> int:
        """How many rows of figures were read."""
        return sum(len(table.rows) for table in self.tables)

    @property
    def figures(self) -> int:
        """How many figures were read."""
        return sum(len(row.figures) for table in self.tables for row in table.rows)

    @property
    def parts(self) -> int:
        """How many blended scores and parts of them were read that are no metrics."""
        return sum(len(COMPOSITE_NAMES & row.others.keys()) for table in self.tables for row in table.rows)

    def __repr__(self) -> str:
        return f"<Audit of {self.name}: {self.figures} figures read, {len(self.impossible)} impossible>"

    def _repr_html_(self) -> str:
        """The findings as a table for notebooks."""
        return findings_html(list(self.findings))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "table": self.name,
            "rows": self.rows,
            "figures": self.figures,
            "impossible": len(self.impossible),
            "misleading": len(self.misleading),
            "findings": [
                {
                    "code": each.code,
                    "severity": str(each.severity),
                    "subject": each.subject,
                    "message": each.message,
                    "derivation": list(each.evidence),
                    "hint": each.hint,
                }
                for each in self.findings
            ],
            "unread": list(self.unread),
            "failures": [{"code": each.code, "message": each.message, "hint": each.hint} for each in self.failures],
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
    """Look for figures that cannot be: in a file, in every table of a folder, or in values as JSON has them.

    ``n`` is the number of units behind each figure. ``one_relevant`` declares that every unit has one
    relevant item, ``binary`` that items are relevant without grades, ``no_ties`` that every unit is a hit
    or a miss, ``map_over_relevant`` that average precision is divided by the relevant items and not by
    those found. ``fractions`` and ``percent`` give the unit of all shares without a percent sign; otherwise
    the values of each column decide. What cannot be only under an assumption that nobody declared is a note.
    Files of a folder that cannot be read are kept in ``failures``.

    >>> audit = audit_table({"HR@1": "0.3333", "P@1": "1.0000", "MRR": "0.5361"})
    >>> [finding.code for finding in audit.impossible]
    ['EQ401']
    >>> audit.impossible[0].evidence[1]
    'HR@1 0.3333 is printed, so the value is 0.33325 to 0.33335'
    """
    flags = {
        Assumption.ONE_RELEVANT: one_relevant,
        Assumption.BINARY: binary or one_relevant,
        Assumption.HITS: no_ties,
    }
    flags[Assumption.OVER_RELEVANT] = map_over_relevant or one_relevant
    flags[Assumption.FIXED_RELEVANT] = one_relevant or binary or map_over_relevant
    flags[Assumption.FRACTIONS] = fractions
    if fractions and percent:
        raise ParameterError("shares are fractions or percent, not both", hint="give one of the two options")
    needs = frozenset(need for need, said in flags.items() if said)
    unit = percent if fractions or percent else None
    declared = DeclaredContext(None if n is None else parse_count(n, "n"), needs, unit)
    failures: list[EquipoiseError] = []
    sources = read_published(source, _known, failures.append)
    if failures and not any(each.records for each in sources):
        raise failures[0]
    _refuse_unknown(sources)
    tables: list[AuditedTable] = []
    findings: dict[Finding, None] = {}
    differences: list[str] = []
    for published in sources:
        reading = _reading(published, declared, failures if _is_folder(source) else None)
        if reading is not None:
            tables.append(reading.table(reading.over))
            findings.update(dict.fromkeys(audit_findings(reading)))
            differences += reading.differences
    findings.update(dict.fromkeys(findings_about(_compared(sources))))
    dark = [cell for each in sources for cell in _undeciphered(each)]
    unread = [label for each in sources for label in _unread(each.labels)]
    unread += [f"{cell.label} {cell.text!r}" for cell in dark if re.search(r"\d", cell.text)]
    unread += [f"{label} (differences)" for label in differences]
    name = sources[0].name if len({each.name for each in sources}) == 1 else str(source)
    found = Audit(name, tuple(tables), tuple(findings), tuple(dict.fromkeys(unread)), tuple(failures))
    if failures and not tables:
        raise failures[0]
    if not found.figures and not found.parts and not differences:
        beside = dict.fromkeys(f"{cell.label} {cell.text!r}" if cell.text else cell.label for cell in dark)
        raise InputError(
            f"{name} names metrics, and none of their figures can be read: {join_names(list(beside))}",
            hint="a figure is a number such as 0.41, 41.2 % or 0.41 ± 0.02",
        )
    return found


def _compared(sources: Sequence[PublishedTable]) -> Compared:
    """The systems of all files, with the formulas of their files."""
    stated: dict[str, list[Formula]] = {}
    for each in sources:
        formulas = stated.setdefault(_file(each), [])
        formulas += [found for line in each.formulas if (found := Formula.parse(line))]
    systems = [Scored.of(system, _file(each), stated[_file(each)]) for each in sources for system in each.systems]
    return Compared(sources[0].name if sources else "", tuple(each for each in systems if each.numbers))


def _file(published: PublishedTable) -> str:
    """The file of a table, which its name begins with."""
    return published.name.partition(", ")[0]


def _is_folder(source: Source) -> bool:
    return isinstance(source, str | PathLike) and Path(source).is_dir()


def _reading(
    published: PublishedTable, declared: DeclaredContext, failures: list[EquipoiseError] | None
) -> TableInterpretation | None:
    """The reading of a table; of a folder, an error is kept with the name of its file."""
    if not published.records:
        return None
    try:
        return interpret_table(published, declared)
    except EquipoiseError as error:
        if failures is None:
            raise
        failures.append(type(error)(f"{published.name}: {error.message}", hint=error.hint))
        return None


def _undeciphered(published: PublishedTable) -> list[TableCell]:
    """Cells of metrics and blends that hold no number that can be made out."""
    cells = [cell for record in published.records for cell in record.cells if _known(cell.label)]
    return [cell for cell in cells if parse_printed(cell.text) is None]


def _known(label: str) -> bool:
    """Whether the audit knows what stands beside a label."""
    return is_metric_label(label) or is_count(label) or key_of(label) in COMPOSITE_NAMES


def _unread(labels: Sequence[str]) -> list[str]:
    """The labels of numbers that are not used; a total is, where there are sums to divide."""
    summed = any(sum_name(label) for label in labels)
    return [label for label in labels if not _is_read(label) and not (summed and is_total(label))]


def _is_read(label: str) -> bool:
    """Whether a number beside this label is used: a figure, an end of an interval, a count or a part."""
    return (
        parse_label(label) is not None
        or is_count(label)
        or is_count_label(label)
        or key_of(label) in COMPOSITE_NAMES | COMPONENTS
    )


def _refuse_unknown(sources: Iterable[PublishedTable]) -> None:
    every = list(sources)
    if any(each.records for each in every):
        return
    labels = list(dict.fromkeys(label for each in every for label in each.labels))
    near = [hint for label in labels if (hint := suggest_label(label))]
    files = list(dict.fromkeys(each.name for each in every))
    name = files[0] if len(files) == 1 else f"none of {len(files)} tables"
    there = f"; the numbers stand beside {join_names(labels)}" if labels else " and no numbers"
    raise UnknownNameError(
        f"{name} has no metric that is known here{there}",
        hint="; ".join(near[:3]) or "eq ls metrics lists the metrics; columns or rows must be named like them",
    )
