"""An audit as people read it: what was read, what cannot be, and the steps that show it."""

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
    """Title, findings with their derivations, and the sum."""
    read = f"{pluralize(audit.figures, 'figure')} of {pluralize(audit.rows, 'row')}"
    parts = [heading(f"Audit of {audit.name}: {read}")]
    shown = [each for each in audit.findings if not quiet or each.severity is Severity.ISSUE]
    parts += findings_section(shown, verbose=not quiet)
    if quiet:
        return parts
    if audit.unread:
        parts += [
            Paragraph(""),
            Paragraph(f"Not read, being no known metric or number: {join_names(audit.unread)}"),
        ]
    return [*parts, Paragraph(""), Paragraph(audit_summary(audit))]


def audit_summary(audit: Audit) -> str:
    """What the audit comes to.

    >>> from equipoise.audit.audit import audit_table
    >>> audit_summary(audit_table({"HR@1": 0.31, "MRR": 0.42}))
    'Nothing here is impossible. That does not make it true.'
    """
    found, odd = audit.impossible, audit.misleading
    said = [f"{pluralize(len(found), 'thing')} cannot be, in {_subjects(found)}."] if found else []
    if odd:
        verb = "does not mean what it seems to" if len(odd) == 1 else "do not mean what they seem to"
        said.append(f"{pluralize(len(odd), 'figure')} {verb}, in {_subjects(odd)}.")
    said += _conditional(audit.findings)
    return " ".join(said if audit.issues else ["Nothing here is impossible.", *said, "That does not make it true."])


def _conditional(findings: Sequence[Finding]) -> list[str]:
    """How much hangs on assumptions, and the options that would count it."""
    notes = [each for each in findings if each.severity is Severity.NOTE]
    options = dict.fromkeys(word for each in notes for word in _OPTION.findall(each.hint))
    if not notes:
        return []
    count = f"{pluralize(len(notes), 'thing')} cannot be under an assumption"
    if not options:
        return [f"{count}."]
    one = "it" if len(notes) == 1 else "them"
    return [f"{count}: if it holds, run again with {' '.join(options)}, which counts {one}."]


def _subjects(findings: Sequence[Finding]) -> str:
    return join_names(list(dict.fromkeys(each.subject for each in findings)))
