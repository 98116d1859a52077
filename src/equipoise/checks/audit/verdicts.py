"""What the laws say of a table whose units may be open: nothing is impossible that one reading allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace

from equipoise.checks.audit import parts
from equipoise.checks.audit.drafts import Column
from equipoise.checks.audit.facts import Need
from equipoise.checks.audit.laws import CONDITIONAL, LAWS, condition, violated
from equipoise.checks.audit.reading import Reading, RowDraft
from equipoise.checks.audit.row import Row, Table
from equipoise.checks.audit.scored import Compared
from equipoise.checks.audit.violation import Violation, complaint, undeclared
from equipoise.checks.base import Check, Complaint
from equipoise.types import Finding, Severity

MOST_READINGS = 200
"""So many readings of a row are tried before it is given the benefit of the doubt."""
SMALL_SHARE = 0.1
"""A hit rate below this may well be percent: a tenth of a percent is what luck gives among a thousand."""
_LUCKY = re.compile(r"(?i)\b(?:random|chance|guess\w*|untrained)\b")
_HITS = ("HR", "Acc")


@dataclass(frozen=True)
class Seen:
    """A violation of a law at a place: 0 is the table as a whole, and 1 its first row."""

    check: Check
    place: int
    thing: Row | Table
    violation: Violation

    @property
    def accuses(self) -> bool:
        """Whether it says that a row cannot be, all its needs being declared."""
        return self.check.severity is Severity.ISSUE and not undeclared(self.thing, self.violation)

    @property
    def key(self) -> tuple[str, int, tuple[str, ...]]:
        """What two readings of a table that violate the same have in common."""
        return self.check.code, self.place, self.violation.key

    def says_the_same_as(self, other: Seen) -> bool:
        """Whether it is the same law on the same figures, and perhaps more of them."""
        same = (self.check.code, self.place) == (other.check.code, other.place)
        return same and set(other.violation.figures) <= set(self.violation.figures)


def findings_of(reading: Reading) -> list[Finding]:
    """What no reading of the table allows, and as notes what only an undeclared assumption forbids."""
    seen = _seen(reading.table(reading.over))
    if reading.unsure:
        seen = _in_every_reading(reading, seen)
    elif not reading.over:
        seen = [_unless_percent(reading, each) for each in seen]
    accusing = [each for each in seen if each.accuses]
    told = [each for each in seen if not undeclared(each.thing, each.violation)]
    notes = [
        note
        for each in seen
        if undeclared(each.thing, each.violation) and not any(map(each.says_the_same_as, accusing))
        if (note := condition(each.thing, each.check, each.violation)) is not None
    ]
    accused = [_finding(each.check, complaint(each.thing, each.violation)) for each in told]
    return [*accused, *(_finding(CONDITIONAL, note) for note in notes)]


def findings_about(compared: Compared) -> list[Finding]:
    """What is wrong with scores and their parts, once per system and number."""
    found: dict[tuple[str, str, str], Finding] = {}
    for check, law in parts.LAWS:
        for violation in law(compared):
            subject = complaint(compared, violation)
            found.setdefault(
                (check.code, subject.subject, violation.sentence.split()[0]), _finding(check, subject)
            )
    return list(found.values())


def _seen(table: Table) -> list[Seen]:
    things: list[Row | Table] = [table, *table.rows]
    return [
        Seen(check, place, thing, violation)
        for check, law in LAWS
        for place, thing in enumerate(things)
        for violation in violated(check, law, thing)
    ]


def _in_every_reading(reading: Reading, seen: Sequence[Seen]) -> list[Seen]:
    """The violations of rows that nothing saves, and those that percent and fractions have in common."""
    accusing = [each for each in seen if each.accuses and each.place]
    lost = {
        place
        for place in dict.fromkeys(each.place for each in accusing)
        if not _is_possible(
            reading.rows[place - 1], reading, [each for each in accusing if each.place == place]
        )
    }
    again = {each.key for each in _seen(reading.table(reading.over | reading.unsure))}
    return [
        each for each in seen if (each.place in lost if each.accuses and each.place else each.key in again)
    ]


def _is_possible(draft: RowDraft, reading: Reading, accusing: Iterable[Seen]) -> bool:
    """Whether some choice of units for its open columns violates nothing.

    Columns are decided one after another, those first that are accused, and a choice that is impossible
    already is not followed further.
    """
    accused = [figure.measure for each in accusing for figure in each.violation.figures]
    columns = [each for each in dict.fromkeys(draft.columns) if each in reading.unsure]
    columns.sort(key=lambda column: column[1] not in accused)
    paths: list[tuple[int, frozenset[Column]]] = [(0, reading.over)]
    for _ in range(MOST_READINGS):
        if not paths:
            return False
        decided, percents = paths.pop()
        if _cannot_be(draft.row(percents, without=frozenset(columns[decided:]))):
            continue
        if decided == len(columns):
            return True
        paths += [(decided + 1, percents | {columns[decided]}), (decided + 1, percents)]
    return True


def _cannot_be(row: Row) -> bool:
    return any(
        check.severity is Severity.ISSUE and not undeclared(row, violation)
        for check, law in LAWS
        for violation in violated(check, law, row)
    )


def _unless_percent(reading: Reading, seen: Seen) -> Seen:
    """With a doubt where a row of small shares without signs can be if all of them are percent."""
    if not (seen.accuses and isinstance(seen.thing, Row) and _may_be_percent(seen.thing, reading.unsigned)):
        return seen
    if _cannot_be(reading.rows[seen.place - 1].row(reading.unsigned)):
        return seen
    doubted = replace(
        seen.violation,
        needs=(*seen.violation.needs, Need.FRACTIONS),
        remedy="write a percent sign if they are percent; if they are fractions, run again with --fractions",
    )
    return replace(seen, violation=doubted)


def _may_be_percent(row: Row, unsigned: Set[Column]) -> bool:
    """Whether its shares look like percent: of luck, or with hits that are next to none."""
    open_measures = {measure for _, measure in unsigned}
    shares = [each for each in row.figures if each.measure in open_measures]
    small = any(each.measure.symbol in _HITS and each.span.high < SMALL_SHARE for each in shares)
    return bool(shares) and (small or _LUCKY.search(row.name) is not None)


def _finding(check: Check, seen: Complaint) -> Finding:
    return Finding(
        check.code, check.severity, seen.subject, seen.sentence, seen.remedy or check.remedy, seen.evidence
    )
