"""What people see of a field: what it holds, every problem, and what it is fit for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from equipoise.checks.base import counted
from equipoise.checks.field import UNLIKE
from equipoise.data.field import Field
from equipoise.report.findings import findings_part
from equipoise.report.fixture import Line, Mark
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph, heading
from equipoise.stats.numbers import count, figure
from equipoise.types import Finding

_OF_PROBLEMS = ("EQ130", "EQ131", "EQ132")
"""Findings that sum up the problems, which the report lists one by one."""
SHOWN = 100
"""So many problems are listed, unless all are asked for: a table with a wrong header has one a row."""


def field_part(
    field: Field, findings: Sequence[Finding], *, quiet: bool = False, verbose: bool = False
) -> list[Any]:
    """The parts of the field, all problems, other findings, and whether it can be used."""
    facts = facts_of(field)
    parts: list[Any] = [heading(f"Field {field.name}")]
    if facts:
        sizes = [count(len(getattr(field, part))) for part in facts]
        columns = [Column("part", list(facts)), Column("entries", sizes, right=True)]
        parts.append(FittedTable([*columns, Column("", list(facts.values()), shortens="end")]))
    if field.unread:
        parts += [Paragraph(""), Paragraph(f"not read: {', '.join(field.unread)}")]
    parts += _problems(field, verbose=verbose)
    if not quiet:
        others = [finding for finding in findings if finding.code not in _OF_PROBLEMS]
        parts += findings_part(others, verbose=verbose)
    return [*parts, Paragraph(""), _status(field, findings)]


def facts_of(field: Field) -> dict[str, str]:
    """A line about each part that there is."""
    return {part: _FACTS[part](field) for part in field.present}


def _problems(field: Field, *, verbose: bool) -> list[Any]:
    if not field.problems:
        return []
    parts: list[Any] = [Paragraph(""), heading(counted(len(field.problems), "problem").capitalize())]
    shown = field.problems if verbose else field.problems[:SHOWN]
    for problem in shown:
        parts.append(Line(Mark.BAD if problem.fatal else Mark.FAIR, problem.sentence))
        if problem.hint:
            parts.append(Paragraph(problem.hint, indent=4, lead="-> "))
    rest = len(field.problems) - len(shown)
    return [*parts, Paragraph(f"and {count(rest)} more (-v shows all)", indent=2)] if rest else parts


def _status(field: Field, findings: Sequence[Finding]) -> Line:
    fatal = sum(problem.fatal for problem in field.problems)
    if fatal:
        return Line(Mark.BAD, f"cannot be used: {counted(fatal, 'problem')} to mend first", indent=0)
    if field.problems:
        return Line(Mark.FAIR, f"can be used, with {counted(len(field.problems), 'problem')}", indent=0)
    if any(finding.code == "EQ135" for finding in findings):
        return Line(Mark.FAIR, "can be used in part: not every score is defined on it", indent=0)
    return Line(Mark.GOOD, "can be used", indent=0)


def _pairs(field: Field) -> str:
    expected = [pair.expected for pair in field.pairs or ()]
    if not expected:
        return "none can be used"
    unlike = sum(each <= UNLIKE for each in expected)
    span = f"expected {figure(min(expected), 2)} to {figure(max(expected), 2)}"
    return f"{span}, {count(unlike)} at {figure(UNLIKE, 2)} or below"


def _clusters(field: Field) -> str:
    sizes = [len(cluster.concepts) for cluster in field.clusters or ()]
    if not sizes:
        return "none can be used"
    span = str(min(sizes)) if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
    return f"{counted(sum(sizes), 'concept')}, {span} in a cluster"


def _sentences(field: Field) -> str:
    types = Counter(entity.label for sentence in field.sentences or () for entity in sentence.entities)
    named = ", ".join(f"{label} {count(times)}" for label, times in types.most_common())
    return f"{sum(types.values()):,} entities: {named}" if types else "no entities"


def _relations(field: Field) -> str:
    relations = field.relations or ()
    entities = {name for each in relations for name in (each.subject, each.object)}
    predicates = {each.predicate for each in relations}
    return f"{count(len(entities))} entities, {counted(len(predicates), 'predicate')}"


def _concepts(field: Field) -> str:
    concepts = field.concepts or ()
    return ", ".join([*concepts[:3], *(["..."] if len(concepts) > 3 else [])])


_FACTS: dict[str, Callable[[Field], str]] = {
    "pairs": _pairs,
    "clusters": _clusters,
    "sentences": _sentences,
    "relations": _relations,
    "concepts": _concepts,
}
