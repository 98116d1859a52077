"""An audit as people read it: what was read, what cannot be, and the steps that show it."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.checks.audit import Audit
from equipoise.checks.base import counted, listed
from equipoise.report.findings import findings_part
from equipoise.report.terminal import Paragraph, heading
from equipoise.types import Finding, Severity


def audit_part(audit: Audit, *, quiet: bool = False) -> list[Paragraph]:
    """Title, findings with their derivations, and the sum."""
    read = f"{counted(audit.figures, 'figure')} of {counted(audit.rows, 'row')}"
    parts = [heading(f"Audit of {audit.name}: {read}")]
    shown = [each for each in audit.findings if not quiet or each.severity is Severity.ISSUE]
    parts += findings_part(shown, verbose=not quiet)
    if quiet:
        return parts
    if audit.unread:
        parts += [
            Paragraph(""),
            Paragraph(f"Not read, being no known metric or number: {listed(audit.unread)}"),
        ]
    return [*parts, Paragraph(""), Paragraph(sentence(audit))]


def sentence(audit: Audit) -> str:
    """What the audit comes to.

    >>> from equipoise.checks.audit import audit_table
    >>> sentence(audit_table({"HR@1": 0.31, "MRR": 0.42}))
    'Nothing here is impossible. That does not make it true.'
    """
    found = audit.impossible
    conditional = _kept(audit.findings, Severity.NOTE)
    more = f" {counted(len(conditional), 'thing')} cannot be under an assumption." if conditional else ""
    if not found:
        return f"Nothing here is impossible.{more} That does not make it true."
    subjects = list(dict.fromkeys(each.subject for each in found))
    return f"{counted(len(found), 'thing')} cannot be, in {listed(subjects)}.{more}"


def _kept(findings: Sequence[Finding], severity: Severity) -> list[Finding]:
    return [each for each in findings if each.severity is severity]
