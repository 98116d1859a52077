"""Findings in a report: severity, code, subject, message and hint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.report.terminal import Paragraph, heading
from equipoise.types import Finding, Severity, with_label

MARKS = {Severity.ISSUE: "!", Severity.TIP: "+", Severity.NOTE: "-"}
STYLES = {Severity.ISSUE: "bold red", Severity.TIP: "yellow", Severity.NOTE: "dim"}
SEVERITY_ORDER = list(Severity)


def sort_by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Every finding once, issues before tips before notes."""
    return sorted(dict.fromkeys(findings), key=lambda finding: SEVERITY_ORDER.index(finding.severity))


def at_least_severity(findings: Iterable[Finding], severity: str) -> list[Finding]:
    """The findings of this severity or higher."""
    included = SEVERITY_ORDER[: SEVERITY_ORDER.index(Severity(severity)) + 1]
    return [finding for finding in findings if finding.severity in included]


def grouped_findings(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings of one code and hint together, most severe first."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in sort_by_severity(findings):
        groups.setdefault((finding.code, finding.hint), []).append(finding)
    return list(groups.values())


def findings_section(findings: Sequence[Finding], *, verbose: bool = False) -> list[Paragraph]:
    """The findings for the terminal; nothing if there are none. A hint is printed once per group."""
    if not findings:
        return []
    parts = [Paragraph(""), heading("Findings")]
    for group in grouped_findings(findings):
        severity, hint = group[0].severity, group[0].hint
        mark = f"{MARKS[severity]} {severity:<5} {group[0].code}  "
        for number, finding in enumerate(group):
            lead = mark if number == 0 else " " * len(mark)
            parts.append(Paragraph(with_label(finding.subject, finding.message), lead=lead, mark=STYLES[severity]))
            if verbose:
                parts += [Paragraph(line, indent=len(mark) + 2, style="dim") for line in finding.evidence]
        if hint:
            parts.append(Paragraph(hint, indent=len(mark), lead="-> "))
    return parts
