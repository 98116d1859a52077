"""The format of a table from standard input is detected from its content."""

from __future__ import annotations

import io
import sys

import pytest

from equipoise.audit.apply_rules import audit_table

TABLES_BY_FORMAT = {
    "json": '{"HR@1": 0.62, "HR@5": 0.51}',
    "pretty json": '[\n{"HR@1": 0.62, "HR@5": 0.51}\n]',
    "json lines": '{"HR@1": 0.62, "HR@5": 0.51}\n{"HR@1": 0.5, "HR@5": 0.6}\n',
    "csv": "system,HR@1,HR@5\na,0.62,0.51\n",
    "tsv": "system\tHR@1\tHR@5\na\t0.62\t0.51\n",
    "markdown": "| system | HR@1 | HR@5 |\n|---|---|---|\n| a | 0.62 | 0.51 |\n",
    "latex": "\\begin{tabular}{lll}\nm & HR@1 & HR@5 \\\\\n\\hline\na & 0.62 & 0.51 \\\\\n\\end{tabular}\n",
    "text": "HR@1: 0.62\nHR@5: 0.51\n",
}


@pytest.mark.parametrize("text", TABLES_BY_FORMAT.values(), ids=TABLES_BY_FORMAT.keys())
def test_the_audit_reads_standard_input(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    audit = audit_table("-")
    assert audit.name == "standard input"
    assert [finding.code for finding in audit.impossible] == ["EQ402"]
