"""The terminal report of a concept set: its parts, its problems and whether it can be used."""

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
    concept_set: ConceptSet, findings: Sequence[Finding], *, quiet: bool = False, verbose: bool = False
) -> list[Any]:
    """The parts, all problems, other findings, and the status."""
    facts = summary_lines(concept_set)
    parts: list[Any] = [heading(f"Concept set {concept_set.name}")]
    if facts:
        sizes = [format_count(len(getattr(concept_set, part))) for part in facts]
        columns = [ReportColumn("part", list(facts)), ReportColumn("entries", sizes, right=True)]
        parts.append(TerminalTable([*columns, ReportColumn("", list(facts.values()), shortens="end")]))
    if concept_set.unread:
        parts += [Paragraph(""), Paragraph(f"not read: {', '.join(concept_set.unread)}")]
    parts += _problems(concept_set, verbose=verbose)
    if not quiet:
        others = [finding for finding in findings if finding.code not in _OF_PROBLEMS]
        parts += findings_section(others, verbose=verbose)
    return [*parts, Paragraph(""), _status(concept_set, findings)]


def summary_lines(concept_set: ConceptSet) -> dict[str, str]:
    """A line about each part that there is."""
    return {part: _FACTS[part](concept_set) for part in concept_set.present}


def _problems(concept_set: ConceptSet, *, verbose: bool) -> list[Any]:
    if not concept_set.problems:
        return []
    parts: list[Any] = [Paragraph(""), heading(pluralize(len(concept_set.problems), "problem").capitalize())]
    shown = concept_set.problems if verbose else concept_set.problems[:MAX_LISTED]
    for problem in shown:
        parts.append(StatusLine(ThresholdStatus.BAD if problem.fatal else ThresholdStatus.FAIR, problem.message))
        if problem.hint:
            parts.append(Paragraph(problem.hint, indent=4, lead="-> "))
    rest = len(concept_set.problems) - len(shown)
    return [*parts, Paragraph(f"and {format_count(rest)} more (-v shows all)", indent=2)] if rest else parts


def _status(concept_set: ConceptSet, findings: Sequence[Finding]) -> StatusLine:
    fatal = sum(problem.fatal for problem in concept_set.problems)
    if fatal:
        return StatusLine(ThresholdStatus.BAD, f"cannot be used: {pluralize(fatal, 'problem')} to mend first", indent=0)
    if concept_set.problems:
        return StatusLine(
            ThresholdStatus.FAIR, f"can be used, with {pluralize(len(concept_set.problems), 'problem')}", indent=0
        )
    if any(finding.code == "EQ135" for finding in findings):
        return StatusLine(ThresholdStatus.FAIR, "can be used in part: not every score is defined on it", indent=0)
    return StatusLine(ThresholdStatus.GOOD, "can be used", indent=0)


def _pairs(concept_set: ConceptSet) -> str:
    expected = [pair.expected for pair in concept_set.pairs or ()]
    if not expected:
        return "none can be used"
    unlike = sum(each <= MAX_DISSIMILAR for each in expected)
    span = f"expected {format_value(min(expected), 2)} to {format_value(max(expected), 2)}"
    return f"{span}, {format_count(unlike)} at {format_value(MAX_DISSIMILAR, 2)} or below"


def _clusters(concept_set: ConceptSet) -> str:
    sizes = [len(cluster.concepts) for cluster in concept_set.clusters or ()]
    if not sizes:
        return "none can be used"
    span = str(min(sizes)) if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
    return f"{pluralize(sum(sizes), 'concept')}, {span} in a cluster"


def _sentences(concept_set: ConceptSet) -> str:
    types = Counter(entity.label for sentence in concept_set.sentences or () for entity in sentence.entities)
    named = ", ".join(f"{label} {format_count(times)}" for label, times in types.most_common())
    return f"{sum(types.values()):,} entities: {named}" if types else "no entities"


def _relations(concept_set: ConceptSet) -> str:
    relations = concept_set.relations or ()
    entities = {name for each in relations for name in (each.subject, each.object)}
    predicates = {each.predicate for each in relations}
    return f"{format_count(len(entities))} entities, {pluralize(len(predicates), 'predicate')}"


def _concepts(concept_set: ConceptSet) -> str:
    concepts = concept_set.concepts or ()
    return ", ".join([*concepts[:3], *(["..."] if len(concepts) > 3 else [])])


_FACTS: dict[str, Callable[[ConceptSet], str]] = {
    "pairs": _pairs,
    "clusters": _clusters,
    "sentences": _sentences,
    "relations": _relations,
    "concepts": _concepts,
}
