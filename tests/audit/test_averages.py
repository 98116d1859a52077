"""Stated averages are compared with the mean of their rows or columns."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.audit.apply_rules import audit_table

DATA = {"NQ": 0.524, "SciFact": 0.643, "FiQA": 0.362, "Quora": 0.875}
MEAN = sum(DATA.values()) / len(DATA)


def table(
    average: float, name: str = "Average", *, header: str = "dataset", **extra_columns: Any
) -> list[dict[str, Any]]:
    rows = [{header: key, "nDCG@10": f"{value:.3f}"} for key, value in DATA.items()]
    return [*rows, {header: name, "nDCG@10": f"{average:.3f}", **extra_columns}]


def codes(rows: Any) -> list[str]:
    return [finding.code for finding in audit_table(rows).findings]


@pytest.mark.parametrize("name", ["Average", "Avg.", "avg", "Mean", "**Average**", "Macro average"])
def test_an_average_row_is_the_mean_of_the_others(name: str) -> None:
    assert codes(table(MEAN, name)) == []
    assert codes(table(MEAN + 0.02, name)) == ["EQ417"]
    assert codes(table(0.91, name)) == ["EQ417"]


def test_percent_and_rounding_make_no_difference() -> None:
    rows = [{"dataset": key, "nDCG@10": f"{100 * value:.1f}"} for key, value in DATA.items()]
    assert codes([*rows, {"dataset": "Avg", "nDCG@10": "60"}]) == []
    assert codes([*rows, {"dataset": "Avg", "nDCG@10": "60.0"}]) == []
    assert codes([*rows, {"dataset": "Avg", "nDCG@10": "63.0"}]) == ["EQ417"]


def test_an_average_column_is_the_mean_of_the_data_sets() -> None:
    row = {f"{key} nDCG@10": f"{value:.3f}" for key, value in DATA.items()}
    assert codes([{"model": "a", **row, "Avg nDCG@10": f"{MEAN:.3f}"}]) == []
    assert codes([{"model": "a", **row, "Avg nDCG@10": "0.701"}]) == ["EQ417"]


def test_one_wrong_average_among_right_ones_is_found() -> None:
    rows = []
    for index in range(4):
        values = {key: value - 0.03 * index for key, value in DATA.items()}
        mean = sum(values.values()) / 4 + (0.01 if index == 2 else 0)
        rows.append(
            {"model": f"m{index}"}
            | {f"{key} nDCG@10": f"{value:.3f}" for key, value in values.items()}
            | {"Average nDCG@10": f"{mean:.3f}"}
        )
    (finding,) = audit_table(rows).findings
    assert finding.code == "EQ417"
    assert finding.subject == "m2/Average"


def test_averages_over_missing_columns_are_notes() -> None:
    rows = [
        {"model": f"m{index}", "NQ nDCG@10": f"{0.5 - index / 10:.2f}", "FiQA nDCG@10": f"{0.4 - index / 10:.2f}"}
        | {"Avg nDCG@10": f"{0.48 - index / 10:.2f}"}
        for index in range(3)
    ]
    audit = audit_table(rows)
    assert audit.issues == ()
    assert {finding.code for finding in audit.findings} == {"EQ450"}


def test_averages_may_be_weighted_by_size() -> None:
    sizes = dict(zip(DATA, (3452, 300, 648, 10_000), strict=True))
    mean = sum(DATA[key] * size for key, size in sizes.items()) / sum(sizes.values())
    rows = [{"dataset": key, "size": sizes[key], "nDCG@10": f"{DATA[key]:.3f}"} for key in DATA]
    assert codes([*rows, {"dataset": "Average", "nDCG@10": f"{mean:.3f}"}]) == []
    assert codes([*rows, {"dataset": "Average", "nDCG@10": "0.700"}]) == ["EQ417"]


def test_an_average_without_one_of_the_rows_is_possible() -> None:
    mean = sum(value for key, value in DATA.items() if key != "Quora") / 3
    assert codes(table(mean)) == []


def test_averages_of_sections_use_the_rows_of_the_section() -> None:
    rows = [("NQ", 0.5), ("FiQA", 0.4), ("Average", 0.45), ("STS-B", 0.9), ("SICK", 0.8), ("Average", 0.85)]
    rows_with_averages = [{"task": name, "nDCG@10": f"{value:.3f}"} for name, value in rows]
    assert codes(rows_with_averages) == []
    assert codes([*rows_with_averages, {"task": "Average", "nDCG@10": "0.650"}]) == []
    assert codes([*rows_with_averages[:-1], {"task": "Average", "nDCG@10": "0.950"}]) == ["EQ417"]


@pytest.mark.parametrize(
    "rows",
    [
        [{"pooling": name, "MRR": value} for name, value in (("cls", 0.41), ("max", 0.45), ("mean", 0.52))],
        table(0.52, "Average (18 datasets)"),
        table(0.52, "Weighted average"),
        table(0.52, "Overall"),
        table(0.91, "Average", header="model"),
    ],
    ids=["a way of pooling", "other data", "other weights", "pooled units", "an ensemble"],
)
def test_other_kinds_of_averages_have_no_issues(rows: list[dict[str, Any]]) -> None:
    assert audit_table(rows).issues == ()


def test_an_f1_of_the_averages_is_an_average_f1() -> None:
    rows = [{"class": "a", "P": 0.9, "R": 0.5, "F1": 0.643}, {"class": "b", "P": 0.4, "R": 0.8, "F1": 0.533}]
    f1_of_means = 2 * 0.65 * 0.65 / 1.3
    assert codes([*rows, {"class": "Average", "P": 0.65, "R": 0.65, "F1": round(f1_of_means, 3)}]) == []
    assert codes([*rows, {"class": "Average", "P": 0.65, "R": 0.65, "F1": 0.588}]) == []
    assert codes([*rows, {"class": "Average", "P": 0.65, "R": 0.65, "F1": 0.55}]) == ["EQ417"]


def test_averages_in_nested_objects_are_read() -> None:
    tree = {"results": {key: {"nDCG@10": value} for key, value in DATA.items()}}
    tree["results"]["average"] = {"nDCG@10": MEAN}
    assert codes(tree) == []
    tree["results"]["average"] = {"nDCG@10": 0.701}
    assert codes(tree) == ["EQ417"]
