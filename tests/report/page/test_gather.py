"""Which runs a page is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.errors import DuplicateError, PairingError, ParameterError, StoreError, UnknownNameError
from equipoise.report.build_view import compare_runs, read_runs
from equipoise.runs.manifest import MANIFEST
from stored_runs import bread_runs, ranks, synthetic_runs


def test_a_run_takes_the_name_it_is_given_in_its_findings_too(tmp_path: Path) -> None:
    bread_runs(tmp_path, tuned=False)
    (run,) = read_runs([("ours", tmp_path / "bm25")])
    assert (run.result.system, run.manifest.system) == ("ours", "ours")
    assert "bm25" not in {finding.subject for finding in run.result.findings}


def test_two_runs_of_one_name_are_refused_with_both_paths(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        synthetic_runs(tmp_path / folder, ["same"], {"MRR": 1 / ranks(1, 5)})
    paths = [("", tmp_path / folder / "run0") for folder in ("one", "two")]
    with pytest.raises(DuplicateError, match=r"one/run0 and .*two/run0 are both runs of same") as caught:
        read_runs(paths)
    assert "same-2=" in caught.value.hint
    assert len(read_runs([paths[0], ("other", paths[1][1])])) == 2


def test_evidence_stays_on_disk_unless_a_metric_needs_it(tmp_path: Path) -> None:
    bread_runs(tmp_path, tuned=False)
    path = tmp_path / "bm25"
    (run,) = read_runs([("", path)])
    assert run.result.evidence is None
    (again,) = read_runs([("", path)], "R@5")
    assert again.result.names[0] == "R@5"
    assert set(run.result.names) < set(again.result.names)


def test_a_primary_metric_is_found_under_any_of_its_names(tmp_path: Path) -> None:
    bread_runs(tmp_path, tuned=False)
    (run,) = read_runs([("", tmp_path / "bm25")], "Acc@1")
    assert run.result.names[0] == "HR@1"
    with pytest.raises(UnknownNameError):
        read_runs([("", tmp_path / "bm25")], "nDGC@10")


def test_runs_over_different_units_are_refused_with_the_difference(tmp_path: Path) -> None:
    runs = synthetic_runs(tmp_path / "a", ["a"], {"MRR": [[1.0, 0.5]]}, units=["q1", "q2"])
    runs += synthetic_runs(tmp_path / "b", ["b"], {"MRR": [[1.0, 0.5]]}, units=["q2", "q3"])
    with pytest.raises(PairingError) as caught:
        compare_runs(runs)
    assert "only in a: q1" in caught.value.excerpt
    assert "only in b: q3" in caught.value.excerpt


def test_runs_without_a_common_metric_are_refused(tmp_path: Path) -> None:
    runs = synthetic_runs(tmp_path / "a", ["a"], {"MRR": [[1.0, 0.5]]})
    runs += synthetic_runs(tmp_path / "b", ["b"], {"HR@1": [[1.0, 0.0]]})
    with pytest.raises(ParameterError, match="share no metric"):
        compare_runs(runs)


def test_a_run_of_another_schema_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (run,) = synthetic_runs(tmp_path, ["a"], {"MRR": [[1.0, 0.5]]})
    file = run.path / MANIFEST
    file.write_text(file.read_text().replace('"schema": 1', '"schema": 0'))
    with pytest.raises(StoreError, match="follows schema 0"):
        read_runs([("", run.path)])


def test_one_run_alone_has_no_comparison(tmp_path: Path) -> None:
    assert compare_runs(synthetic_runs(tmp_path, ["a"], {"MRR": [[1.0, 0.5]]})) is None
