"""Finding run directories at paths and below them."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.errors import StoreError
from equipoise.evidence.ranking import Ranking
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import find_runs, save_run


def store(path: Path) -> Path:
    result = evaluate(Ranking.from_ranks([1, 2, 3], candidates=9), "MRR", system=path.name)
    return save_run(path, result, manifest=Manifest(path.name))


def test_the_path_of_a_run_directory_is_returned(tmp_path: Path) -> None:
    assert find_runs(store(tmp_path / "one")) == [tmp_path / "one"]


def test_a_folder_gives_the_runs_below_it_by_name(tmp_path: Path) -> None:
    for name in ("b", "a/deep/er", "c/x"):
        store(tmp_path / name)
    assert find_runs(tmp_path) == [tmp_path / name for name in ("a/deep/er", "b", "c/x")]
    assert find_runs(tmp_path / "c", tmp_path / "b") == [tmp_path / "c/x", tmp_path / "b"]


def test_a_run_given_twice_is_returned_once(tmp_path: Path) -> None:
    run = store(tmp_path / "one")
    assert find_runs(run, tmp_path, tmp_path / "one" / ".." / "one") == [run]


def test_hidden_folders_other_manifests_links_and_nested_runs_are_ignored(
    tmp_path: Path,
) -> None:
    run = store(tmp_path / "one")
    store(tmp_path / ".one.part")
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "manifest.json").write_text("{}")
    (tmp_path / "round").symlink_to(tmp_path)
    store(run / "within")
    assert find_runs(tmp_path) == [run]


@pytest.mark.parametrize(
    ("name", "expected_text"),
    [
        ("missing", "there is no run directory"),
        ("file.txt", "is a file, not a run directory"),
        ("empty", "neither .*empty nor a folder below it is a run directory"),
    ],
)
def test_a_path_without_a_run_is_an_error(tmp_path: Path, name: str, expected_text: str) -> None:
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match=expected_text):
        find_runs(tmp_path / name)
