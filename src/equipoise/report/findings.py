"""Findings as people read them: mark, code, subject, sentence, remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from equipoise.checks.base import listed
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


def said_once(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of one code, those with the same sentence as one whose subject names them all.

    >>> tip = Finding("EQ1", Severity.TIP, "a", "is odd", "look", ("one",))
    >>> other = replace(tip, subject="b", evidence=("two",))
    >>> found = said_once([tip, other, replace(tip, sentence="is new")])
    >>> [(each.subject, each.sentence, each.evidence) for each in found]
    [('a, b', 'is odd', ('one', 'two')), ('a', 'is new', ('one',))]
    """
    by_sentence: dict[str, list[Finding]] = {}
    for finding in findings:
        by_sentence.setdefault(finding.sentence, []).append(finding)
    return [
        replace(
            alike[0],
            subject=listed([each.subject for each in alike]),
            evidence=tuple(dict.fromkeys(line for each in alike for line in each.evidence)),
        )
        for alike in by_sentence.values()
    ]


def findings_part(findings: Sequence[Finding], *, verbose: bool = False) -> list[Paragraph]:
    """The part of a report that lists the findings; nothing when there are none.

    Findings of one code and remedy stand together, and the remedy once beneath them. What is said of several
    in the same words is said once.
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
        for number, finding in enumerate(said_once(group)):
            lead = mark if number == 0 else " " * len(mark)
            parts.append(
                Paragraph(labelled(finding.subject, finding.sentence), lead=lead, mark=STYLES[severity])
            )
            if verbose:
                parts += [Paragraph(line, indent=len(mark) + 2, style="dim") for line in finding.evidence]
        if remedy:
            parts.append(Paragraph(remedy, indent=len(mark), lead="-> "))
    return parts
