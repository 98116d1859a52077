"""Classification reports of scikit-learn are read from text files."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.audit.apply_rules import audit_table
from equipoise.io.published.tables import class_reports


def report_text(digits: int = 2) -> str:
    metrics = pytest.importorskip("sklearn.metrics")
    true, predicted = [0, 1, 2, 2, 2], [0, 0, 2, 2, 1]
    names = ["A", "class two", "C"]
    text: str = metrics.classification_report(true, predicted, target_names=names, digits=digits, zero_division=0)
    return text


def test_every_class_and_every_average_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "cls.txt").write_text(f"epoch 3\n\n{report_text()}\n")
    audit = audit_table(tmp_path / "cls.txt")
    assert not audit.findings
    names = [Path(row.name).name for table in audit.tables for row in table.rows]
    assert names == ["A", "class two", "C", "macro avg", "weighted avg", "cls.txt"]
    assert audit.n_values == 5 * 3 + 1
    assert audit.tables[-1].rows[0].values[0].n == 5


def test_impossible_averages_are_reported(tmp_path: Path) -> None:
    lines = report_text(4).splitlines()
    (tmp_path / "cls.txt").write_text("\n".join(line.replace("0.4889", "0.7500") for line in lines))
    assert [finding.code for finding in audit_table(tmp_path / "cls.txt").impossible] == ["EQ408"]


def test_other_lines_are_returned_unchanged() -> None:
    lines = [(1, "before"), (2, " precision recall f1-score support"), (3, "A 0.5 1.0 0.67 1"), (4, "after")]
    grids, notes, other_lines = class_reports("a file", lines)
    assert [grid.rows for grid in grids] == [(("A", "0.5", "1.0", "0.67", "1"),)]
    assert notes == []
    assert other_lines == [(1, "before"), (4, "after")]


def test_reports_with_float_support_are_read(tmp_path: Path) -> None:
    text = (
        "              precision    recall  f1-score   support\n\n"
        "     class 0       0.00      0.00      0.00       1.0\n"
        "     class 1       0.00      0.00      0.00       2.0\n\n"
        "    accuracy                           0.00       3.0\n"
    )
    (tmp_path / "report.txt").write_text(text)
    assert audit_table(tmp_path / "report.txt").n_values == 7
