"""The audit: can these published figures be true?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from equipoise.checks.audit.facts import Need, count, is_fact
from equipoise.checks.audit.formula import Formula
from equipoise.checks.audit.laws import MISLEADING
from equipoise.checks.audit.names import is_metric, named, nearest
from equipoise.checks.audit.parts import NAMES, PARTS
from equipoise.checks.audit.reading import Declared, Reading, reading_of
from equipoise.checks.audit.row import Table
from equipoise.checks.audit.scored import Compared, Scored
from equipoise.checks.audit.sums import is_count, is_total, key_of, sum_name
from equipoise.checks.audit.verdicts import findings_about, findings_of
from equipoise.checks.base import listed
from equipoise.data.published import Published, read_published
from equipoise.data.published.printed import printed
from equipoise.data.published.record import Cell
from equipoise.errors import EquipoiseError, InputError, ParameterError, UnknownNameError
from equipoise.markup import findings_table
from equipoise.types import Finding, Severity

Source = str | PathLike[str] | Mapping[Any, Any] | Sequence[Any]


@dataclass(frozen=True)
class Audit:
    """What an audit looked at and what it found; ``unread`` are labels of numbers that are no metrics."""

    name: str
    tables: tuple[Table, ...]
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
        return sum(len(NAMES & row.others.keys()) for table in self.tables for row in table.rows)

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
            "misleading": len(self.misleading),
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
            "failures": [
                {"code": each.code, "sentence": each.sentence, "hint": each.hint} for each in self.failures
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
    flags = {Need.ONE_RELEVANT: one_relevant, Need.BINARY: binary or one_relevant, Need.HITS: no_ties}
    flags[Need.OVER_RELEVANT] = map_over_relevant or one_relevant
    flags[Need.FIXED_RELEVANT] = one_relevant or binary or map_over_relevant
    flags[Need.FRACTIONS] = fractions
    if fractions and percent:
        raise ParameterError("shares are fractions or percent, not both", hint="give one of the two options")
    needs = frozenset(need for need, said in flags.items() if said)
    unit = percent if fractions or percent else None
    declared = Declared(None if n is None else count(n, "n"), needs, unit)
    failures: list[EquipoiseError] = []
    sources = read_published(source, _known, failures.append)
    if failures and not any(each.records for each in sources):
        raise failures[0]
    _refuse_unknown(sources)
    tables: list[Table] = []
    findings: dict[Finding, None] = {}
    differences: list[str] = []
    for published in sources:
        reading = _reading(published, declared, failures if _is_folder(source) else None)
        if reading is not None:
            tables.append(reading.table(reading.over))
            findings.update(dict.fromkeys(findings_of(reading)))
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
            f"{name} names metrics, and none of their figures can be read: {listed(list(beside))}",
            hint="a figure is a number such as 0.41, 41.2 % or 0.41 ± 0.02",
        )
    return found


def _compared(sources: Sequence[Published]) -> Compared:
    """The systems of all files, with the formulas of their files."""
    stated: dict[str, list[Formula]] = {}
    for each in sources:
        formulas = stated.setdefault(_file(each), [])
        formulas += [found for line in each.formulas if (found := Formula.parse(line))]
    systems = [
        Scored.of(system, _file(each), stated[_file(each)]) for each in sources for system in each.systems
    ]
    return Compared(sources[0].name if sources else "", tuple(each for each in systems if each.numbers))


def _file(published: Published) -> str:
    """The file of a table, which its name begins with."""
    return published.name.partition(", ")[0]


def _is_folder(source: Source) -> bool:
    return isinstance(source, str | PathLike) and Path(source).is_dir()


def _reading(
    published: Published, declared: Declared, failures: list[EquipoiseError] | None
) -> Reading | None:
    """The reading of a table; of a folder, an error is kept with the name of its file."""
    if not published.records:
        return None
    try:
        return reading_of(published, declared)
    except EquipoiseError as error:
        if failures is None:
            raise
        failures.append(type(error)(f"{published.name}: {error.sentence}", hint=error.hint))
        return None


def _undeciphered(published: Published) -> list[Cell]:
    """Cells of metrics and blends that hold no number that can be made out."""
    cells = [cell for record in published.records for cell in record.cells if _known(cell.label)]
    return [cell for cell in cells if printed(cell.text) is None]


def _known(label: str) -> bool:
    """Whether the audit knows what stands beside a label."""
    return is_metric(label) or is_count(label) or key_of(label) in NAMES


def _unread(labels: Sequence[str]) -> list[str]:
    """The labels of numbers that are not used; a total is, where there are sums to divide."""
    summed = any(sum_name(label) for label in labels)
    return [label for label in labels if not _is_read(label) and not (summed and is_total(label))]


def _is_read(label: str) -> bool:
    """Whether a number beside this label is used: a figure, an end of an interval, a count or a part."""
    return named(label) is not None or is_count(label) or is_fact(label) or key_of(label) in NAMES | PARTS


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
