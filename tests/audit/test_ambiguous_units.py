"""Values without a percent sign are read as fractions or percentages; one possible reading is enough."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.audit import apply_rules as verdicts
from equipoise.audit.apply_rules import _is_known_label, audit_table
from equipoise.audit.read_records import DeclaredContext, interpret_table
from equipoise.io.published import read_published

FRACTIONS = ["HR@1", "HR@5", "MRR", "P@5", "R@5", "nDCG@5", "MAP"]


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_column_wise_search_equals_trying_all_mixtures(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = rng.choice(FRACTIONS, int(rng.integers(2, 6)), replace=False)
    row = {str(name): f"{rng.random():.2f}" for name in names} | {"HR@10": f"{1 + 99 * rng.random():.1f}"}
    (published,) = read_published(row, _is_known_label)
    reading = interpret_table(published, DeclaredContext())
    (draft,) = reading.rows
    mixtures = chain.from_iterable(
        combinations(sorted(reading.ambiguous_columns, key=str), size)
        for size in range(len(reading.ambiguous_columns) + 1)
    )
    allowed = any(
        not verdicts._is_impossible(draft.row(reading.percent_columns | set(mixture))) for mixture in mixtures
    )
    assert bool(audit_table(row).impossible) == (not allowed)


def test_many_ambiguous_columns_are_not_tried_in_every_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    checked_rows = []
    is_impossible = verdicts._is_impossible
    monkeypatch.setattr(verdicts, "_is_impossible", lambda row: checked_rows.append(row) or is_impossible(row))
    others = ["F1", "accuracy", "Spearman", "Pearson", "MaxOntSim@5", "ARI", "NMI", "Silhouette", "V-measure"]
    row = dict.fromkeys([*others, *FRACTIONS], "0.50") | {"P@5": "0.99", "HR@10": "55.0"}
    audit = audit_table([row | {"model": name} for name in "abcd"])
    assert [finding.subject for finding in audit.impossible] == ["a", "b", "c", "d"]
    assert len(checked_rows) < 4 * 60, "all mixtures would be 2^16 rows per system"


def test_an_undecided_row_is_possible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = {"HR@1": "0.50", "HR@5": "0.40", "HR@10": "55.0"}
    impossible_row = {"HR@1": "0.50", "HR@5": "0.004", "HR@10": "55.0"}
    assert audit_table(impossible_row).impossible
    assert not audit_table(row).impossible, "HR@1 may be 0.5 %"
    monkeypatch.setattr(verdicts, "MAX_INTERPRETATIONS", 1)
    assert not audit_table(impossible_row).impossible


@pytest.mark.parametrize("name", ["random items", "biolord"])
def test_small_values_without_signs_may_be_percentages(name: str) -> None:
    row = {"system": name, "HR@1": "0.08", "MRR": "0.65"}
    audit = audit_table([row])
    assert not audit.issues
    (note,) = audit.findings
    assert note.code == "EQ450"
    assert "if the values are fractions and not percent below 1 (EQ403)" in note.message
    assert "percent sign" in note.hint
    with_signs = audit_table([row | {"HR@1": "8%", "MRR": "65%"}])
    assert [finding.code for finding in with_signs.impossible] == ["EQ403"]


def test_values_impossible_in_every_reading_are_impossible() -> None:
    (issue,) = audit_table([{"system": "random items", "HR@1": "0.09", "HR@5": "0.07"}]).impossible
    assert issue.code == "EQ402"
    assert audit_table({"HR@1": "0.30", "HR@10": "0.55", "MRR": "0.52"}).impossible, "0.30 % would be almost zero"


def test_an_mr_below_one_may_be_a_miss_rate() -> None:
    assert not audit_table({"MR": "0.105", "AP": "0.61"}).issues
    for row in ({"Mean Rank": "0.83"}, {"MR": "0.83", "MRR": "0.91"}, {"MR": "-2.5"}):
        assert [finding.code for finding in audit_table(row).impossible] == ["EQ411"]


def test_an_impossible_pair_has_no_additional_note() -> None:
    audit = audit_table({"HR@10": 0.40, "nDCG@10": 0.52})
    assert [finding.code for finding in audit.findings] == ["EQ406"]
