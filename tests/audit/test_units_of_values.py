"""The number of units of a value: invalid numbers are errors, and different numbers are separate groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from equipoise.audit.apply_rules import audit_table
from equipoise.errors import InputError, ParameterError


@pytest.mark.parametrize("n", [-5, 0, 200.5, True, "many"])
def test_an_invalid_n_of_a_value_is_an_error(n: Any) -> None:
    with pytest.raises(ParameterError, match=rf"HR@1.*{n}"):
        audit_table([{"metric": "HR@1", "value": 0.3, "n": n, "interval": [0.2, 0.4]}])


@pytest.mark.parametrize("n", ["-5", "0", "200.5"])
def test_an_invalid_n_in_the_long_format_is_an_error(n: str, tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text(f"system,metric,value,n\na,HR@1,0.3,{n}\n")
    with pytest.raises(ParameterError, match=rf"HR@1.*{n}"):
        audit_table(tmp_path / "long.csv")


def test_an_undefined_value_may_have_zero_units(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("system,metric,value,n\na,HR@1,,0\na,MRR,0.5,3\n")
    assert audit_table(tmp_path / "long.csv").n_values == 1


def test_values_on_different_units_are_not_compared(tmp_path: Path) -> None:
    table = tmp_path / "long.csv"
    table.write_text("system,metric,value,n\na,HR@1,0.30,50\na,P@1,0.35,60\n")
    assert not audit_table(table).findings
    assert not audit_table({"HR@1": {"value": 0.3, "n": 50}, "P@1": {"value": 0.35, "n": 60}}).findings
    table.write_text(table.read_text().replace("60", "50"))
    assert [finding.code for finding in audit_table(table).impossible] == ["EQ401"]


MTEB = {
    "mteb_version": "1.12.75",
    "scores": {
        "test": [
            {
                "accuracy": 0.712337,
                "f1": 0.70551,
                "scores_per_experiment": [{"accuracy": 0.71, "f1": 0.70}, {"accuracy": 0.72, "f1": 0.71}],
                "main_score": 0.712337,
            }
        ]
    },
}


def test_a_mean_over_experiments_has_no_granularity() -> None:
    assert not audit_table(MTEB, n=200).findings
    assert not audit_table(MTEB, n=200, no_ties=True).findings


def test_a_hit_rate_of_mteb_has_granularity() -> None:
    ranked = {"mteb_version": "1.12.75", "scores": {"test": [{"hit_rate_at_1": 0.712337}]}}
    assert [finding.code for finding in audit_table(ranked, n=200).impossible] == ["EQ407"]


@pytest.mark.parametrize(
    "text",
    [
        "model,MRR,HR@1\na,nan,inf\n",
        "model,MRR,HR@1\na,n/a,-\n",
        "model,MRR,HR@1\na,,\n",
        "model,composite_score\na,?\n",
    ],
)
def test_a_table_without_values_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text(text)
    with pytest.raises(InputError):
        audit_table(tmp_path / "empty.csv")


def test_used_columns_are_not_listed_as_unread(tmp_path: Path) -> None:
    best_row = {
        "best_accuracy": 94.4,
        "ci_lower": 88.3,
        "ci_upper": 97.4,
        "configurations_tested": 27,
        "seconds": 3,
    }
    assert audit_table([best_row]).unread == ("seconds",)
    components = {"relation_coherence": 0.40, "graph_density": 0.03, "clustering_coefficient": 0.12}
    assert audit_table({"knowledge_graph_score": 0.55, **components}).unread == ()
    norms = {"norm_mean": 1.0, "norm_std": 0.0, "norm_consistency": 0.0}
    assert audit_table(norms).unread == ()
    (tmp_path / "long.csv").write_text("system,metric,value,n\na,HR@1,0.30,50\na,seconds,3,50\n")
    assert audit_table(tmp_path / "long.csv").unread == ("seconds",)
    assert audit_table({"HR@1": {"value": 0.3, "n": 50}}).unread == ()
