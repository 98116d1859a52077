"""The audit: can these published figures be true?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.checks.audit.facts import Need, count, is_fact
from equipoise.checks.audit.laws import CONDITIONAL, LAWS, condition, violated
from equipoise.checks.audit.names import is_metric, nearest
from equipoise.checks.audit.parts import NAMES
from equipoise.checks.audit.reading import Declared, readings
from equipoise.checks.audit.row import Row, Table
from equipoise.checks.audit.violation import complaint, undeclared
from equipoise.checks.base import Check, Complaint, listed
from equipoise.data.published import Published, read_published
from equipoise.data.published.printed import printed
from equipoise.data.published.record import Cell
from equipoise.data.text import PathLike
from equipoise.errors import InputError, UnknownNameError
from equipoise.markup import findings_table
from equipoise.types import Finding, Severity

Source = PathLike | Mapping[Any, Any] | Sequence[Any]


@dataclass(frozen=True)
class Audit:
    """What an audit looked at and what it found; ``unread`` are labels of numbers that are no metrics."""

    name: str
    tables: tuple[Table, ...]
    findings: tuple[Finding, ...]
    unread: tuple[str, ...] = ()

    @property
    def impossible(self) -> tuple[Finding, ...]:
        """The findings that say that something cannot be."""
        return tuple(each for each in self.findings if each.severity is Severity.ISSUE)

    @property
    def rows(self) -> int:
        """How many rows of figures were read."""
        return sum(len(table.rows) for table in self.tables)

    @property
    def figures(self) -> int:
        """How many figures were read."""
        return sum(len(row.figures) for table in self.tables for row in table.rows)

    def __repr__(self) -> str:
        return f"<Audit of {self.name}: {self.figures} figures read, {len(self.impossible)} impossible>"

    def _repr_html_(self) -> str:
        """The findings as a table for notebooks."""
        return findings_table(list(self.findings))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "table": self.name,
            "rows": self.rows,
            "figures": self.figures,
            "impossible": len(self.impossible),
            "findings": [
                {
                    "code": each.code,
                    "severity": str(each.severity),
                    "subject": each.subject,
                    "sentence": each.sentence,
                    "derivation": list(each.evidence),
                    "remedy": each.remedy,
                }
                for each in self.findings
            ],
            "unread": list(self.unread),
        }


def audit_table(
    source: Source,
    *,
    n: int | None = None,
    one_relevant: bool = False,
    binary: bool = False,
    no_ties: bool = False,
    map_over_relevant: bool = False,
) -> Audit:
    """Look for figures that cannot be: in a file, in every table of a folder, or in values as JSON has them.

    ``n`` is the number of units behind each figure. ``one_relevant`` declares that every unit has one
    relevant item, ``binary`` that items are relevant without grades, ``no_ties`` that every unit is a hit
    or a miss, ``map_over_relevant`` that average precision is divided by the relevant items and not by
    those found. What cannot be only under an assumption that nobody declared is a note.

    >>> audit = audit_table({"HR@1": "0.3333", "P@1": "1.0000", "MRR": "0.5361"})
    >>> [finding.code for finding in audit.impossible]
    ['EQ401']
    >>> audit.impossible[0].evidence[1]
    'HR@1 0.3333 is printed, so the value is 0.33325 to 0.33335'
    """
    flags = {Need.ONE_RELEVANT: one_relevant, Need.BINARY: binary or one_relevant, Need.HITS: no_ties}
    flags[Need.OVER_RELEVANT] = map_over_relevant or one_relevant
    needs = frozenset(need for need, said in flags.items() if said)
    declared = Declared(None if n is None else count(n, "n"), needs)
    sources = read_published(source, _known)
    _refuse_unknown(sources)
    tables: list[Table] = []
    findings: dict[Finding, None] = {}
    for published in sources:
        if published.records:
            read = readings(published, declared)
            first = next(read)
            tables.append(first)
            findings.update(dict.fromkeys(_in_all(first, read)))
    unread = [label for each in sources for label in each.labels if not (_known(label) or is_fact(label))]
    dark = [f"{cell.label} {cell.text!r}" for each in sources for cell in _undeciphered(each)]
    unread += dark
    name = sources[0].name if len({each.name for each in sources}) == 1 else str(source)
    found = Audit(name, tuple(tables), tuple(findings), tuple(dict.fromkeys(unread)))
    if dark and not found.figures:
        raise InputError(
            f"{name} names metrics, and none of their figures can be read: {listed(dark)}",
            hint="a figure is a number such as 0.41, 41.2 % or 0.41 ± 0.02",
        )
    return found


def _undeciphered(published: Published) -> list[Cell]:
    """Cells of metrics that hold digits, and no number that can be made out."""
    cells = [cell for record in published.records for cell in record.cells if is_metric(cell.label)]
    return [cell for cell in cells if re.search(r"\d", cell.text) and printed(cell.text) is None]


def _known(label: str) -> bool:
    """Whether the audit knows what stands beside a label."""
    return is_metric(label) or label.strip().casefold() in NAMES


def _in_all(first: Table, others: Iterable[Table]) -> list[Finding]:
    """What the first reading violates in rows that no reading allows, and what every reading violates."""
    found = _findings(first)
    shared, impossible = set(found), _accused(found)
    for at, table in enumerate(others):
        if not impossible and (at or not shared):
            break
        again = _findings(table)
        shared &= set(again)
        impossible &= _accused(again)
    return [finding for key, finding in found.items() if key in shared or _place(key) in impossible]


def _accused(found: Mapping[tuple[str, ...], Finding]) -> set[str]:
    """The places of the rows that cannot be."""
    return {_place(key) for key, each in found.items() if each.severity is Severity.ISSUE}


def _place(key: tuple[str, ...]) -> str:
    """The place in a key of a law; a note begins with a code of its own and is of no place."""
    return "" if key[0] == CONDITIONAL.code else key[1]


def _findings(table: Table) -> dict[tuple[str, ...], Finding]:
    accused: dict[tuple[str, ...], Finding] = {}
    notes: dict[tuple[str, ...], Finding] = {}
    things: list[Row | Table] = [table, *table.rows]
    for check, law in LAWS:
        for place, thing in enumerate(things):
            for violation in violated(check, law, thing):
                key = (check.code, str(place), *violation.key)
                if not undeclared(thing, violation):
                    accused[key] = _finding(check, complaint(thing, violation))
                elif (note := condition(thing, check, violation)) is not None:
                    notes[(CONDITIONAL.code, *key)] = _finding(CONDITIONAL, note)
    return accused | notes


def _finding(check: Check, seen: Complaint) -> Finding:
    return Finding(
        check.code, check.severity, seen.subject, seen.sentence, seen.remedy or check.remedy, seen.evidence
    )


def _refuse_unknown(sources: Iterable[Published]) -> None:
    every = list(sources)
    if any(each.records for each in every):
        return
    labels = list(dict.fromkeys(label for each in every for label in each.labels))
    near = [hint for label in labels if (hint := nearest(label))]
    files = list(dict.fromkeys(each.name for each in every))
    name = files[0] if len(files) == 1 else f"none of {len(files)} tables"
    there = f"; the numbers stand beside {listed(labels)}" if labels else " and no numbers"
    raise UnknownNameError(
        f"{name} has no metric that is known here{there}",
        hint="; ".join(near[:3])
        or "eq ls metrics lists the metrics; columns or rows must be named like them",
    )
