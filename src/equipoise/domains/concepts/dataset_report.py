"""What people see of a field: what it holds, every problem, and what it is fit for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import pluralize
from equipoise.domains.concepts.checks import MAX_DISSIMILAR
from equipoise.report.findings import findings_section
from equipoise.report.status_lines import StatusLine, ThresholdStatus
from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable, heading
from equipoise.stats.formatting import format_count, format_value

if TYPE_CHECKING:
    from equipoise.domains.concepts.concept_set import ConceptSet
    from equipoise.types import Finding

_OF_PROBLEMS = ("EQ130", "EQ131", "EQ132")
"""Findings that sum up the problems, which the report lists one by one."""
MAX_LISTED = 100
"""So many problems are listed, unless all are asked for: a table with a wrong header has one a row."""


def concept_set_report(
    field: ConceptSet, findings: Sequence[Finding], *, quiet: bool = False, verbose: bool = False
) -> list[Any]:
    """The parts of the field, all problems, other findings, and whether it can be used."""
    facts = summary_lines(field)
    parts: list[Any] = [heading(f"Field {field.name}")]
    if facts:
        sizes = [format_count(len(getattr(field, part))) for part in facts]
        columns = [ReportColumn("part", list(facts)), ReportColumn("entries", sizes, right=True)]
        parts.append(TerminalTable([*columns, ReportColumn("", list(facts.values()), shortens="end")]))
    if field.unread:
        parts += [Paragraph(""), Paragraph(f"not read: {', '.join(field.unread)}")]
    parts += _problems(field, verbose=verbose)
    if not quiet:
        others = [finding for finding in findings if finding.code not in _OF_PROBLEMS]
        parts += findings_section(others, verbose=verbose)
    return [*parts, Paragraph(""), _status(field, findings)]


def summary_lines(field: ConceptSet) -> dict[str, str]:
    """A line about each part that there is."""
    return {part: _FACTS[part](field) for part in field.present}


def _problems(field: ConceptSet, *, verbose: bool) -> list[Any]:
    if not field.problems:
        return []
    parts: list[Any] = [Paragraph(""), heading(pluralize(len(field.problems), "problem").capitalize())]
    shown = field.problems if verbose else field.problems[:MAX_LISTED]
    for problem in shown:
        parts.append(StatusLine(ThresholdStatus.BAD if problem.fatal else ThresholdStatus.FAIR, problem.message))
        if problem.hint:
            parts.append(Paragraph(problem.hint, indent=4, lead="-> "))
    rest = len(field.problems) - len(shown)
    return [*parts, Paragraph(f"and {format_count(rest)} more (-v shows all)", indent=2)] if rest else parts


def _status(field: ConceptSet, findings: Sequence[Finding]) -> StatusLine:
    fatal = sum(problem.fatal for problem in field.problems)
    if fatal:
        return StatusLine(ThresholdStatus.BAD, f"cannot be used: {pluralize(fatal, 'problem')} to mend first", indent=0)
    if field.problems:
        return StatusLine(
            ThresholdStatus.FAIR, f"can be used, with {pluralize(len(field.problems), 'problem')}", indent=0
        )
    if any(finding.code == "EQ135" for finding in findings):
        return StatusLine(ThresholdStatus.FAIR, "can be used in part: not every score is defined on it", indent=0)
    return StatusLine(ThresholdStatus.GOOD, "can be used", indent=0)


def _pairs(field: ConceptSet) -> str:
    expected = [pair.expected for pair in field.pairs or ()]
    if not expected:
        return "none can be used"
    unlike = sum(each <= MAX_DISSIMILAR for each in expected)
    span = f"expected {format_value(min(expected), 2)} to {format_value(max(expected), 2)}"
    return f"{span}, {format_count(unlike)} at {format_value(MAX_DISSIMILAR, 2)} or below"


def _clusters(field: ConceptSet) -> str:
    sizes = [len(cluster.concepts) for cluster in field.clusters or ()]
    if not sizes:
        return "none can be used"
    span = str(min(sizes)) if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
    return f"{pluralize(sum(sizes), 'concept')}, {span} in a cluster"


def _sentences(field: ConceptSet) -> str:
    types = Counter(entity.label for sentence in field.sentences or () for entity in sentence.entities)
    named = ", ".join(f"{label} {format_count(times)}" for label, times in types.most_common())
    return f"{sum(types.values()):,} entities: {named}" if types else "no entities"


def _relations(field: ConceptSet) -> str:
    relations = field.relations or ()
    entities = {name for each in relations for name in (each.subject, each.object)}
    predicates = {each.predicate for each in relations}
    return f"{format_count(len(entities))} entities, {pluralize(len(predicates), 'predicate')}"


def _concepts(field: ConceptSet) -> str:
    concepts = field.concepts or ()
    return ", ".join([*concepts[:3], *(["..."] if len(concepts) > 3 else [])])


_FACTS: dict[str, Callable[[ConceptSet], str]] = {
    "pairs": _pairs,
    "clusters": _clusters,
    "sentences": _sentences,
    "relations": _relations,
    "concepts": _concepts,
}
