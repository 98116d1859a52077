"""The terminal report of an audit: values read, findings with derivations, and a summary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from equipoise.checks.base import join_names, pluralize
from equipoise.report.findings import findings_section
from equipoise.report.terminal import Paragraph, heading
from equipoise.types import Finding, Severity

if TYPE_CHECKING:
    from equipoise.audit.audit import Audit

_OPTION = re.compile(r"--[a-z-]+")


def audit_report(audit: Audit, *, quiet: bool = False) -> list[Paragraph]:
    """Title, findings with their derivations, and the summary."""
    read = f"{pluralize(audit.n_values, 'value')} of {pluralize(audit.n_rows, 'row')}"
    parts = [heading(f"Audit of {audit.name}: {read}")]
    findings = [finding for finding in audit.findings if not quiet or finding.severity is Severity.ISSUE]
    parts += findings_section(findings, verbose=not quiet)
    if quiet:
        return parts
    if audit.unread:
        parts += [
            Paragraph(""),
            Paragraph(f"Not recognised as a metric or a number: {join_names(audit.unread)}"),
        ]
    return [*parts, Paragraph(""), Paragraph(audit_summary(audit))]


def audit_summary(audit: Audit) -> str:
    """One or two sentences with the counts of findings.

    >>> from equipoise.audit.audit import audit_table
    >>> audit_summary(audit_table({"HR@1": 0.31, "MRR": 0.42}))
    'No value is impossible. This does not show that they are correct.'
    """
    impossible, misleading = audit.impossible, audit.misleading
    sentences = []
    if impossible:
        sentences.append(f"{pluralize(len(impossible), 'impossible result')} in {_subjects(impossible)}.")
    if misleading:
        sentences.append(f"{pluralize(len(misleading), 'misleading value')} in {_subjects(misleading)}.")
    sentences += _conditional(audit.findings)
    if audit.issues:
        return " ".join(sentences)
    return " ".join(["No value is impossible.", *sentences, "This does not show that they are correct."])


def _conditional(findings: Sequence[Finding]) -> list[str]:
    """The number of results that depend on an assumption, and the options that declare it."""
    notes = [finding for finding in findings if finding.severity is Severity.NOTE]
    options = dict.fromkeys(word for note in notes for word in _OPTION.findall(note.hint))
    if not notes:
        return []
    count = f"{pluralize(len(notes), 'result')} would be impossible under an assumption"
    if not options:
        return [f"{count}."]
    return [f"{count}: if it holds, declare it with {' '.join(options)}."]


def _subjects(findings: Sequence[Finding]) -> str:
    return join_names(list(dict.fromkeys(finding.subject for finding in findings)))
