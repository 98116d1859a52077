"""Findings as people read them: mark, code, subject, sentence, hint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from equipoise.checks.registry import all_checks
from equipoise.report.terminal import Paragraph, heading
from equipoise.report.view_model import FindingGroup, FindingItem
from equipoise.types import Finding, Severity, with_label

if TYPE_CHECKING:
    from equipoise.report.build import RunSet

MARKS = {Severity.ISSUE: "!", Severity.TIP: "+", Severity.NOTE: "-"}
STYLES = {Severity.ISSUE: "bold red", Severity.TIP: "yellow", Severity.NOTE: "dim"}
SEVERITY_ORDER = {severity: place for place, severity in enumerate(Severity)}


def sort_by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Every finding once, issues before tips before notes."""
    return sorted(dict.fromkeys(findings), key=lambda finding: SEVERITY_ORDER[finding.severity])


def at_least_severity(findings: Iterable[Finding], severity: str) -> list[Finding]:
    """The findings of this severity or a graver one."""
    limit = SEVERITY_ORDER[Severity(severity)]
    return [finding for finding in findings if SEVERITY_ORDER[finding.severity] <= limit]


def findings_section(findings: Sequence[Finding], *, verbose: bool = False) -> list[Paragraph]:
    """The part of a report that lists the findings; nothing when there are none.

    Findings of one code and hint stand together, and the hint once beneath them.
    """
    if not findings:
        return []
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in sort_by_severity(findings):
        groups.setdefault((finding.code, finding.hint), []).append(finding)
    parts = [Paragraph(""), heading("Findings")]
    for (code, hint), group in groups.items():
        severity = group[0].severity
        mark = f"{MARKS[severity]} {severity:<5} {code}  "
        for number, finding in enumerate(group):
            lead = mark if number == 0 else " " * len(mark)
            parts.append(Paragraph(with_label(finding.subject, finding.message), lead=lead, mark=STYLES[severity]))
            if verbose:
                parts += [Paragraph(line, indent=len(mark) + 2, style="dim") for line in finding.evidence]
        if hint:
            parts.append(Paragraph(hint, indent=len(mark), lead="-> "))
    return parts


# Findings by code: what is wrong, with whom, by what evidence, and what to do.


def group_findings(subject: RunSet) -> tuple[FindingGroup, ...]:
    """Gravest first; those of one code and one hint together."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in sort_by_severity(subject.findings):
        groups.setdefault((finding.code, finding.hint), []).append(finding)
    titles = {check.code: check.title for check in all_checks()}
    return tuple(
        FindingGroup(
            code=code,
            severity=str(group[0].severity),
            title=titles.get(code, ""),
            items=tuple(FindingItem(each.subject, each.message, each.evidence) for each in group),
            hint=hint,
        )
        for (code, hint), group in groups.items()
    )
