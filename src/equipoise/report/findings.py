"""Findings as people read them: mark, code, subject, sentence, remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.report.terminal import Paragraph, heading
from equipoise.types import Finding, Severity, labelled

MARKS = {Severity.ISSUE: "!", Severity.TIP: "+", Severity.NOTE: "-"}
STYLES = {Severity.ISSUE: "bold red", Severity.TIP: "yellow", Severity.NOTE: "dim"}
GRAVITY = {severity: place for place, severity in enumerate(Severity)}


def gravest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Every finding once, issues before tips before notes."""
    return sorted(dict.fromkeys(findings), key=lambda finding: GRAVITY[finding.severity])


def as_grave(findings: Iterable[Finding], severity: str) -> list[Finding]:
    """The findings of this severity or a graver one."""
    limit = GRAVITY[Severity(severity)]
    return [finding for finding in findings if GRAVITY[finding.severity] <= limit]


def findings_part(findings: Sequence[Finding], *, verbose: bool = False) -> list[Paragraph]:
    """The part of a report that lists the findings; nothing when there are none.

    Findings of one code and remedy stand together, and the remedy once beneath them.
    """
    if not findings:
        return []
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in gravest_first(findings):
        groups.setdefault((finding.code, finding.remedy), []).append(finding)
    parts = [Paragraph(""), heading("Findings")]
    for (code, remedy), group in groups.items():
        severity = group[0].severity
        mark = f"{MARKS[severity]} {severity:<5} {code}  "
        for number, finding in enumerate(group):
            lead = mark if number == 0 else " " * len(mark)
            parts.append(
                Paragraph(labelled(finding.subject, finding.sentence), lead=lead, mark=STYLES[severity])
            )
            if verbose:
                parts += [Paragraph(line, indent=len(mark) + 2, style="dim") for line in finding.evidence]
        if remedy:
            parts.append(Paragraph(remedy, indent=len(mark), lead="-> "))
    return parts
