"""Figures without a percent sign are read as either, and nothing is impossible that one reading allows."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.audit import audit as verdicts
from equipoise.audit.audit import _is_known_label, audit_table
from equipoise.audit.reading import DeclaredContext, interpret_table
from equipoise.io.published import read_published

SHARES = ["HR@1", "HR@5", "MRR", "P@5", "R@5", "nDCG@5", "MAP"]


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_deciding_column_by_column_finds_what_trying_all_mixtures_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = rng.choice(SHARES, int(rng.integers(2, 6)), replace=False)
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


def test_many_open_columns_are_not_tried_in_every_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    judged = verdicts._is_impossible
    monkeypatch.setattr(verdicts, "_is_impossible", lambda row: tried.append(row) or judged(row))
    others = ["F1", "accuracy", "Spearman", "Pearson", "MaxOntSim@5", "ARI", "NMI", "Silhouette", "V-measure"]
    row = dict.fromkeys([*others, *SHARES], "0.50") | {"P@5": "0.99", "HR@10": "55.0"}
    audit = audit_table([row | {"model": name} for name in "abcd"])
    assert [each.subject for each in audit.impossible] == ["a", "b", "c", "d"]
    assert len(tried) < 4 * 60, "2^16 mixtures are as many rows each"


def test_a_row_that_takes_too_long_to_decide_has_the_benefit_of_the_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = {"HR@1": "0.50", "HR@5": "0.40", "HR@10": "55.0"}
    swapped = {"HR@1": "0.50", "HR@5": "0.004", "HR@10": "55.0"}
    assert audit_table(swapped).impossible
    assert not audit_table(row).impossible, "HR@1 may be half a percent"
    monkeypatch.setattr(verdicts, "MAX_INTERPRETATIONS", 1)
    assert not audit_table(swapped).impossible


@pytest.mark.parametrize("name", ["random items", "biolord"])
def test_small_shares_without_signs_may_be_percent(name: str) -> None:
    row = {"system": name, "HR@1": "0.08", "MRR": "0.65"}
    audit = audit_table([row])
    assert not audit.issues
    (note,) = audit.findings
    assert note.code == "EQ450"
    assert "if the values are fractions and not percent below 1 (EQ403)" in note.message
    assert "percent sign" in note.hint
    signed = audit_table([row | {"HR@1": "8%", "MRR": "65%"}])
    assert [each.code for each in signed.impossible] == ["EQ403"]


def test_what_percent_does_not_save_is_impossible() -> None:
    (accused,) = audit_table([{"system": "random items", "HR@1": "0.09", "HR@5": "0.07"}]).impossible
    assert accused.code == "EQ402"
    assert audit_table({"HR@1": "0.30", "HR@10": "0.55", "MRR": "0.52"}).impossible, "no share is next to none"


def test_a_bare_mr_below_one_may_be_a_miss_rate() -> None:
    assert not audit_table({"MR": "0.105", "AP": "0.61"}).issues
    for row in ({"Mean Rank": "0.83"}, {"MR": "0.83", "MRR": "0.91"}, {"MR": "-2.5"}):
        assert [each.code for each in audit_table(row).impossible] == ["EQ411"]


def test_a_pair_that_is_accused_is_not_noted_as_well() -> None:
    audit = audit_table({"HR@10": 0.40, "nDCG@10": 0.52})
    assert [finding.code for finding in audit.findings] == ["EQ406"]
