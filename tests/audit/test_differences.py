"""Differences and spreads in tables of metrics are never read as metric values."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.audit.apply_rules import audit_table
from equipoise.audit.metric_labels import is_metric_label, names_difference

ROWS = [
    "Δ",
    "Δ vs. baseline",
    "$\\Delta$",
    "\\textbf{$\\Delta$ (%)}",
    "delta",
    "Difference",
    "Diff.",
    "Improvement",
    "rel. improvement",
    "Improv. (%)",
    "abs. gain",
    "Gain over BM25",
    "% change",
    "Dense vs. BM25",
    "std",
    "Std. dev.",
    "p-value",
]
SYSTEMS = [
    "DeltaNet",
    "Improved BERT",
    "triplet loss",
    "real-time",
    "information gain",
    "BM25",
    "DROP",
    "SDPA",
]


@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_differences_is_not_read(name: str, tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    rows = [("BM25", "0.31", "0.52", "0.40"), ("Dense", "0.34", "0.53", "0.43"), (name, "9.7", "1.9", "126")]
    lines = [
        "| model | HR@1 | HR@5 | MRR |",
        "|---|---|---|---|",
        *("| " + " | ".join(r) + " |" for r in rows),
    ]
    table.write_text("\n".join(lines))
    audit = audit_table(table)
    assert audit.findings == ()
    assert audit.n_values == 6
    assert any("(differences)" in label for label in audit.unread)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_name_similar_to_a_difference_is_read(name: str) -> None:
    assert not names_difference(name)
    assert audit_table([{"model": name, "HR@1": "0.31", "HR@5": "0.22"}]).impossible


@pytest.mark.parametrize(
    "label",
    [
        "Δ MRR",
        "MRR gain",
        "f1_improvement",
        "abs. gain HR@1",
        "HR@1 change",
        "acc_drop",
        "Relative MRR",
        "MRR vs. BM25",
    ],
)
def test_a_column_of_differences_is_no_metric(label: str) -> None:
    assert not is_metric_label(label)


@pytest.mark.parametrize("label", ["nDCG(gain=exp)@10", "Normalised Discounted Cumulative Gain (nDCG@10)", "DROP F1"])
def test_gain_in_a_metric_name_is_not_a_difference(label: str) -> None:
    assert is_metric_label(label)


@pytest.mark.parametrize(
    "row",
    [
        {"HR@1": "+2.90%", "HR@5": "+1.12%"},
        {"Acc": "-5.18%", "F1": "+126%"},
        {"Acc": "-5.18%", "F1": "-2.31%"},
        {"HR@1": "+2.9", "HR@5": "0.0", "MRR": "-1.1"},
        {"HR@1": "\u22122.9", "HR@5": "\u22121.0"},
        {"HR@1": "$\\uparrow$ 2.9", "HR@5": "$\\uparrow$ 1.0"},
    ],
)
def test_signed_numbers_under_metrics_are_differences(row: dict[str, str]) -> None:
    baseline = {"model": "BM25", **dict.fromkeys(row, "50.0")}
    assert audit_table([baseline, {"model": "Dense", **row}]).findings == ()


def test_a_column_of_signed_numbers_has_differences() -> None:
    rows = [
        {"model": "a", "HR@1": "0.61", "HR@5": "+0.02"},
        {"model": "b", "HR@1": "0.58", "HR@5": "-0.01"},
    ]
    audit = audit_table(rows)
    assert audit.findings == ()
    assert audit.n_values == 2


def test_signed_correlations_are_values() -> None:
    rows = [{"model": "a", "Spearman": "+0.72"}, {"model": "b", "Spearman": "-0.31"}]
    assert audit_table(rows).n_values == 2


def test_a_single_negative_value_is_out_of_bounds() -> None:
    assert [finding.code for finding in audit_table({"accuracy": "-0.2", "MRR": "0.4"}).impossible] == ["EQ411"]


def test_a_table_of_differences_alone_is_not_an_error() -> None:
    audit = audit_table([{"model": "a", "HR@1": "+2.9", "HR@5": "+1.1"}])
    assert (audit.n_values, audit.findings) == (0, ())


def test_quantities_with_several_definitions_have_no_bounds() -> None:
    table = {"avg_diversity": 4.71, "coherence": 4.5, "completeness": 0.8, "MRR": 0.41, "uniformity": 0.3}
    assert audit_table(table).findings == ()
    assert audit_table({"MRR": 1.41, "avg_diversity": 4.71}, n=10).n_values == 2
