"""The unit of a column is decided from all of its values, or by an option."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.audit.apply_rules import audit_table
from equipoise.errors import ParameterError


def column(label: str, *values: str, **other_columns: str) -> list[dict[str, str]]:
    return [{"model": f"m{index}", label: value, **other_columns} for index, value in enumerate(values)]


@pytest.mark.parametrize("label", ["nDCG@10", "MRR", "HR@1", "accuracy", "F1"])
def test_a_value_above_one_in_a_column_of_fractions_is_impossible(label: str) -> None:
    (finding,) = audit_table(column(label, "1.04", "0.61", "0.58")).impossible
    assert (finding.code, finding.subject) == ("EQ411", "m0")
    assert "--percent" in finding.hint


def test_a_value_above_one_is_found_among_other_columns() -> None:
    rows = column("MRR", "0.44", "1.04", "0.41", "0.39")
    table = [row | {"HR@1": "0.31", "HR@10": "0.62"} for row in rows]
    assert {finding.subject for finding in audit_table(table).impossible} == {"m1"}


@pytest.mark.parametrize(
    "table",
    [
        column("HR@1", "0.8", "1.2", "58.3"),
        column("HR@1", "1.2", "0.8"),
        column("HR@1", "1.2", "0.8", "1.4"),
        column("HR@1 (%)", "1.04", "0.61", "0.58"),
        column("HR@1", "1.04%", "0.61%", "0.58%"),
        [row | {"HR@10": value} for row, value in zip(column("HR@1", "1.0", "0.6", "1.1"), "765", strict=True)],
        [row | {"HR@10": value} for row, value in zip(column("HR@1", "1.1", "0.6", "0.5"), "765", strict=True)],
    ],
    ids=str,
)
def test_low_percentages_have_no_issues(table: list[dict[str, str]]) -> None:
    assert audit_table(table).issues == ()


def test_the_text_around_a_table_can_declare_percentages(tmp_path: Path) -> None:
    rows = "| model | MRR |\n|---|---|\n| a | 1.04 |\n| b | 0.61 |\n| c | 0.58 |\n"
    table = tmp_path / "table.md"
    table.write_text(rows)
    assert audit_table(table).impossible
    for text in (
        "All scores are in percent.",
        "Scores are multiplied by 100 (x100).",
        "We report percentages.",
    ):
        table.write_text(f"{text}\n\n{rows}")
        assert not audit_table(table).impossible


def test_options_decide_the_unit() -> None:
    table = column("MRR", "1.04", "0.61", "0.58")
    assert not audit_table(table, percent=True).issues
    single_value = {"MRR": "1.04"}
    assert not audit_table(single_value).issues
    assert [finding.code for finding in audit_table(single_value, fractions=True).impossible] == ["EQ411"]
    low_values = {"HR@1": "0.08", "MRR": "0.65"}
    assert not audit_table(low_values).issues
    assert [finding.code for finding in audit_table(low_values, fractions=True).impossible] == ["EQ403"]
    assert not audit_table(low_values, percent=True).issues
    with pytest.raises(ParameterError):
        audit_table(single_value, percent=True, fractions=True)
