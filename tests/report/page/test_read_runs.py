"""Reading and comparing the runs of a report."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.errors import DuplicateError, PairingError, ParameterError, StoreError, UnknownNameError
from equipoise.report.build_view import compare_runs, read_runs
from equipoise.runs.manifest import MANIFEST
from stored_runs import bread_runs, ranks, synthetic_runs


def test_a_given_name_replaces_the_system_name_in_findings(tmp_path: Path) -> None:
    bread_runs(tmp_path, tuned=False)
    (run,) = read_runs([("renamed", tmp_path / "bm25")])
    assert (run.result.system, run.manifest.system) == ("renamed", "renamed")
    assert "bm25" not in {finding.subject for finding in run.result.findings}


def test_two_runs_of_one_name_are_an_error_with_both_paths(tmp_path: Path) -> None:
    for folder in ("one", "two", "three"):
        synthetic_runs(tmp_path / folder, ["same"], {"MRR": 1 / ranks(1, 5)})
    paths = [("", tmp_path / folder / "run0") for folder in ("one", "two", "three")]
    with pytest.raises(DuplicateError, match=r"one/run0 and .*two/run0 are both runs of same") as error:
        read_runs(paths)
    assert f"same-2={paths[1][1]} same-3={paths[2][1]}" in error.value.hint
    assert len(read_runs([paths[0], ("other", paths[1][1])])) == 2


def test_evidence_is_read_only_if_a_metric_needs_it(tmp_path: Path) -> None:
    bread_runs(tmp_path, tuned=False)
    path = tmp_path / "bm25"
    (run,) = read_runs([("", path)])
    assert run.result.evidence is None
    (with_metric,) = read_runs([("", path)], "R@5")
    assert with_metric.result.names[0] == "R@5"
    assert set(run.result.names) < set(with_metric.result.names)


def test_a_primary_metric_can_be_an_alias(tmp_path: Path) -> None:
    bread_runs(tmp_path, tuned=False)
    (run,) = read_runs([("", tmp_path / "bm25")], "Acc@1")
    assert run.result.names[0] == "HR@1"
    with pytest.raises(UnknownNameError):
        read_runs([("", tmp_path / "bm25")], "nDGC@10")


def test_runs_on_different_units_are_an_error_with_the_difference(tmp_path: Path) -> None:
    runs = synthetic_runs(tmp_path / "a", ["a"], {"MRR": [[1.0, 0.5]]}, units=["q1", "q2"])
    runs += synthetic_runs(tmp_path / "b", ["b"], {"MRR": [[1.0, 0.5]]}, units=["q2", "q3"])
    with pytest.raises(PairingError) as error:
        compare_runs(runs)
    assert "only in a: q1" in error.value.excerpt
    assert "only in b: q3" in error.value.excerpt


def test_runs_without_a_common_metric_are_an_error(tmp_path: Path) -> None:
    runs = synthetic_runs(tmp_path / "a", ["a"], {"MRR": [[1.0, 0.5]]})
    runs += synthetic_runs(tmp_path / "b", ["b"], {"HR@1": [[1.0, 0.0]]})
    with pytest.raises(ParameterError) as error:
        compare_runs(runs)
    assert error.value.code == "E310"


def test_a_run_of_another_schema_is_an_error(tmp_path: Path) -> None:
    (run,) = synthetic_runs(tmp_path, ["a"], {"MRR": [[1.0, 0.5]]})
    file = run.path / MANIFEST
    file.write_text(file.read_text().replace('"schema": 1', '"schema": 0'))
    with pytest.raises(StoreError, match="follows schema 0"):
        read_runs([("", run.path)])


def test_a_single_run_has_no_comparison(tmp_path: Path) -> None:
    assert compare_runs(synthetic_runs(tmp_path, ["a"], {"MRR": [[1.0, 0.5]]})) is None
