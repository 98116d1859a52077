"""True tables that look impossible, and impossible ones."""

from __future__ import annotations

from itertools import permutations
from math import log2
from typing import Any

import pytest

from equipoise.audit.apply_rules import audit_table
from equipoise.audit.table import parse_context
from equipoise.io.published.tables import TableCell

TRUE: dict[str, Any] = {
    "a random run of unknown length": [{"system": "random", "classes": 12, "Acc@1": "0.12", "MRR": "0.269"}],
    "two directions": {"R@1 (I2T)": "58.4", "R@1 (T2I)": "37.8"},
    "two splits": {"HR@1 (dev)": "0.61", "HR@1 (test)": "0.58"},
    "two splits in square brackets": {"HR@1 [dev]": "0.61", "HR@1 [test]": "0.58"},
    "two sides": {"MRR (head)": "0.31", "MRR (tail)": "0.42"},
    "two kinds of F1": {"F1 (entity)": "0.91", "F1 (relation)": "0.62"},
    "two depths": {"Recall (10)": "0.51", "Recall (20)": "0.62"},
    "average precision and its mean": {"AP": "0.52", "mAP": "0.41"},
    "documents and queries": {"documents": 5183, "queries": 300, "library": "pytrec_eval", "HR@1": "0.5033"},
    "samples and queries": {"samples": 7, "queries": 300, "library": "pytrec_eval", "HR@1": "0.5033"},
    "classes with several items each": {"classes": 100, "MAP": "0.41", "MRR": "0.72"},
    "several labels per text": {"labels": 3993, "P@3": "0.69", "HR@3": "0.93"},
    "two densities": [{"model": "a", "density": 0.3, "MRR": 0.5}, {"model": "b", "density": 0.4, "MRR": 0.6}],
    "one density": [{"model": "a", "density": 0.3, "MRR": 0.5}, {"model": "b", "density": 0.3, "MRR": 0.6}],
    "trials of a coin": {"accuracy": 0.9, "ci_lower": 0.85, "ci_upper": 0.94, "n_trials": 200},
    "small percent beside a fraction": {"HR@1": "0.8", "HR@10": "6.2", "MRR": "0.03"},
    "a credible interval": {"HR@1": "1.000 [0.741, 0.997]"},
    "a credible interval of nothing": {"HR@1": "0.000 [0.003, 0.259]"},
}


@pytest.mark.parametrize("table", TRUE.values(), ids=TRUE.keys())
def test_true_tables_are_possible(table: Any) -> None:
    audit = audit_table(table)
    assert not audit.impossible, [finding.message for finding in audit.impossible]
    assert audit.n_values


def test_average_precision_over_hits_may_exceed_ndcg() -> None:
    ideal = sum(1 / log2(rank + 1) for rank in (1, 2, 3))
    table = {"MAP@3": "1.0000", "nDCG@3": f"{1 / ideal:.4f}"}
    assert table["nDCG@3"] == "0.4693", "relevant at ranks 1, 5 and 6, so one of three is found"
    audit = audit_table(table, binary=True)
    assert not audit.impossible
    assert "--map-over-relevant" in audit.findings[0].hint
    assert [finding.code for finding in audit_table(table, binary=True, map_over_relevant=True).impossible] == ["EQ406"]
    assert audit_table(table | {"library": "torchmetrics"}, binary=True).findings == ()
    ranx_audit = audit_table(table | {"library": "ranx"}, binary=True)
    assert [finding.code for finding in ranx_audit.impossible] == ["EQ406"]


def test_a_random_run_is_checked_with_its_number_of_units() -> None:
    row = {"system": "random", "classes": 12, "Acc@1": "0.12", "MRR": "0.45"}
    assert "was not measured" in audit_table([row]).findings[0].message
    assert "--n" in audit_table([row]).findings[0].hint
    assert [finding.code for finding in audit_table([row], n=5_000).impossible] == ["EQ410", "EQ410"]
    assert not audit_table([row | {"MRR": "0.269"}], n=50).findings


def test_contradicting_numbers_of_units_are_ignored() -> None:
    for cells in permutations([TableCell("queries", "300"), TableCell("topics", "50")]):
        assert parse_context(cells, "a table").n is None
    assert parse_context([TableCell("queries", "300"), TableCell("n", "300")], "a table").n == 300


IMPOSSIBLE: dict[str, tuple[dict[str, str], str]] = {
    "recall above the reciprocal rank": ({"R@1": "60.0", "MRR": "40.0"}, "EQ403"),
    "recall at ten above ten times it": ({"R@10": ".80", "MRR": ".07"}, "EQ403"),
    "precision at five": ({"P@5": ".90", "MRR": ".17"}, "EQ403"),
    "gain at ten": ({"nDCG@10": ".80", "MRR@10": ".07"}, "EQ403"),
    "a jump of the reciprocal rank": ({"MRR@5": ".30", "MRR@10": ".60"}, "EQ403"),
    "gain above precision": ({"nDCG@1": ".60", "P@1": ".50"}, "EQ406"),
    "average precision above precision": ({"MAP@1": ".60", "P@1": ".50"}, "EQ405"),
}


@pytest.mark.parametrize(("table", "code"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_impossible_tables_need_no_assumption(table: dict[str, str], code: str) -> None:
    assert [finding.code for finding in audit_table(table).impossible] == [code]


def test_values_at_the_bounds_are_possible() -> None:
    for table in (
        {"R@1": "0.40", "MRR": "0.40"},
        {"R@10": "0.80", "MRR": "0.08"},
        {"MRR@5": "0.30", "MRR@10": "0.41"},
        {"nDCG@1": "0.50", "MAP@1": "0.50", "P@1": "0.50"},
    ):
        assert not audit_table(table).findings


@pytest.mark.parametrize(
    "table",
    [
        {"MedR": "1.0", "R@1": "37.8%"},
        {"MdR": "2.0", "HR@5": ".45"},
        {"MedianRank": "10.0", "HR@5": ".90"},
    ],
)
def test_half_of_the_ranks_are_at_or_below_the_median(table: dict[str, str]) -> None:
    assert [finding.code for finding in audit_table(table, one_relevant=True).impossible] == ["EQ404"]
    assert not audit_table(table).impossible


def test_a_median_at_the_bound_is_possible() -> None:
    for table in (
        {"MedR": "1.0", "HR@1": ".50"},
        {"MedR": "6.0", "HR@5": ".45"},
        {"MedR": "2.0", "HR@1": ".49"},
    ):
        assert not audit_table(table, one_relevant=True).impossible


def test_unreadable_cells_are_listed() -> None:
    audit = audit_table([{"model": "a", "HR@1": "45.1→46.2", "HR@5": "82.4 (+5.4)"}])
    assert audit.unread == ("HR@1 '45.1→46.2'",)
    assert audit.n_values == 1


def test_with_different_tie_orders_per_cutoff_values_may_decrease() -> None:
    decreasing = {"MRR@10": "0.2493", "MRR": "0.2198"}
    assert [finding.code for finding in audit_table(decreasing | {"like": "ranx"}).impossible] == ["EQ402"]
    assert not audit_table(decreasing | {"like": "torchmetrics"}).impossible
