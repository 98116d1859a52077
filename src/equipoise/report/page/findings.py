"""Findings by code: what is wrong, with whom, by what evidence, and what to do."""

from __future__ import annotations

from equipoise.checks.catalogue import all_checks
from equipoise.report.findings import gravest_first
from equipoise.report.page.model import FindingGroup, FindingItem
from equipoise.report.page.subject import Subject
from equipoise.types import Finding


def findings(subject: Subject) -> tuple[FindingGroup, ...]:
    """Gravest first; those of one code and one remedy together."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in gravest_first(subject.findings):
        groups.setdefault((finding.code, finding.remedy), []).append(finding)
    titles = {check.code: check.title for check in all_checks()}
    return tuple(
        FindingGroup(
            code=code,
            severity=str(group[0].severity),
            title=titles.get(code, ""),
            items=tuple(FindingItem(each.subject, each.sentence, each.evidence) for each in group),
            remedy=remedy,
        )
        for (code, remedy), group in groups.items()
    )
