"""A tree embedded in several ways, judged and compared, kept and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.errors import DuplicateError, ParameterError, StoreError, UnknownNameError
from equipoise.hierarchy.embedded import Embedded, read_vectors
from equipoise.hierarchy.tree import Tree
from equipoise.recipes.accounts import evaluate_tree
from equipoise.recipes.accounts.evaluation import AccountsEvaluation
from equipoise.recipes.accounts.pictures import Gallery
from equipoise.recipes.accounts.settings import Cell, checked_settings
from equipoise.recipes.accounts.store import read_kept_tree
from equipoise.recipes.accounts.training import trained
from equipoise.run.evaluate import compare
from equipoise.run.store import read_run

QUICK: dict[str, Any] = {"rates": [0.3], "options": {"epochs": 12}, "resamples": 60}


@pytest.fixture(scope="module")
def found(chart: Tree, tmp_path_factory: pytest.TempPathFactory) -> tuple[AccountsEvaluation, Path]:
    """One evaluation, and the folder that it was kept in."""
    folder = tmp_path_factory.mktemp("accounts") / "results"
    return evaluate_tree(chart, "lorentz", [2, 4], output=folder, **QUICK), folder


def test_a_euclidean_and_a_random_embedding_always_stand_beside(found: tuple[Any, Path]) -> None:
    systems = [each.system for each in found[0].judged]
    assert systems == ["lorentz-2", "lorentz-4", "euclidean-2", "euclidean-4", "random-2", "random-4"]


def test_what_was_trained_is_told_from_what_knows_nothing(found: tuple[Any, Path]) -> None:
    bands = found[0].comparison.bands
    assert not set(bands["lorentz-4"]) & set(bands["random-4"])
    assert found[0]["random-4"].mean_rank.value == pytest.approx(len(found[0].tree) / 2, rel=0.25)


def test_trained_embedders_are_tuned_on_equal_terms(found: tuple[Any, Path]) -> None:
    assert "EQ203" not in {finding.code for finding in found[0].findings}
    tried = {each.system: each.result.settings.get("grid") for each in found[0].judged}
    assert tried["lorentz-2"] == tried["euclidean-2"] == {"rate": [0.3]}
    assert tried["random-2"] is None


def test_the_lowest_loss_decides_the_rate(chart: Tree) -> None:
    settings = checked_settings("euclidean", [2], rates=[1e-6, 0.3], options={"epochs": 12})
    best = trained(chart, Cell("euclidean", 2), settings, seed=0)
    assert best.settings["rate"] == 0.3


def test_runs_are_read_by_whatever_reads_runs(found: tuple[Any, Path]) -> None:
    evaluation, folder = found
    runs = [read_run(path) for path in evaluation.runs(folder)]
    for judged, run in zip(evaluation.judged, runs, strict=True):
        assert run.result.estimates["MAP"].value == judged.map.value
        assert run.manifest.parameters["geometry"] == judged.geometry
    assert compare([run.result for run in runs], primary="MR").leader == evaluation.comparison.leader
    assert runs[0].details["assets.0"].expected == ("assets",)


def test_the_folder_keeps_tree_vectors_and_figures(found: tuple[Any, Path]) -> None:
    evaluation, folder = found
    assert read_kept_tree(folder).fingerprint == evaluation.tree.fingerprint
    kept = read_vectors(folder / "vectors" / "lorentz-2.npz")
    assert np.array_equal(kept.vectors, evaluation["lorentz-2"].embedded.vectors)
    told = json.loads((folder / "results.json").read_text(), parse_constant=pytest.fail)
    assert [each["system"] for each in told["systems"]] == [each.system for each in evaluation.judged]


def test_the_same_call_again_trains_nothing_and_says_the_same(found: tuple[Any, Path], chart: Tree) -> None:
    evaluation, folder = found
    again = evaluate_tree(chart, "lorentz", [2, 4], output=folder, **QUICK)
    assert again.resumed == tuple(each.system for each in evaluation.judged)
    assert [each.mean_rank for each in again.judged] == [each.mean_rank for each in evaluation.judged]


def test_other_settings_or_another_tree_are_trained_anew(chart: Tree, tmp_path: Path) -> None:
    evaluate_tree(chart, "lorentz", [2], output=tmp_path, **QUICK)
    other = evaluate_tree(chart, "lorentz", [2], output=tmp_path, **{**QUICK, "options": {"epochs": 3}})
    assert other.resumed == ("random-2",)
    part = evaluate_tree(chart.taken(np.arange(20)), "lorentz", [2], output=tmp_path, **QUICK)
    assert part.resumed == ()


def test_vectors_of_ones_own_are_judged_beside(chart: Tree) -> None:
    own = Embedded(chart.ids, chart.names, np.random.default_rng(3).normal(size=(len(chart), 7)), "euclidean")
    found = evaluate_tree(chart, [], [2], vectors={"mine": own}, **QUICK)
    assert [each.system for each in found.judged] == ["mine", "euclidean-2", "random-2"]
    assert found["mine"].dim == 7
    with pytest.raises(ParameterError, match="have the name of an embedding that is made here"):
        evaluate_tree(chart, [], [2], vectors={"random-2": own}, **QUICK)


def test_several_seeds_have_a_spread(chart: Tree) -> None:
    found = evaluate_tree(chart, [], [2], seeds=[1, 2, 3], **QUICK)
    over = found["random-2"].over_seeds["MR"]
    assert over.seeds == 3
    assert over.deviation > 0
    assert over.values[0] == found["random-2"].mean_rank.value


def test_the_frame_has_a_row_an_embedding(found: tuple[Any, Path]) -> None:
    pytest.importorskip("pandas")
    frame = found[0].frame()
    assert frame["system"].tolist() == [each.system for each in found[0].judged]
    known = frame.dropna(subset=["map_low"])
    assert len(known) >= 4
    assert (known["map_low"] <= known["map"]).all()
    assert frame["map"].between(0, 1).all()


def test_charts_are_drawn_from_the_folder_as_from_the_evaluation(found: tuple[Any, Path]) -> None:
    evaluation, folder = found
    kept, held = Gallery.read(folder), Gallery.of(evaluation)
    assert kept.system == held.system == "lorentz-2"
    assert [each.name for each in kept.pictures()] == [
        "disk",
        "norm-depth-lorentz-2",
        "dimensions-mr",
        "dimensions-map",
    ]
    assert kept.map().spec == held.map().spec


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"geometry": "cosine"}, ParameterError, "no tree embedder is trained in cosine space"),
        ({"relation": "parents"}, UnknownNameError, "no relation is called 'parents'"),
        ({"dims": [2, 2]}, DuplicateError, "a dimension was named twice"),
        ({"dims": []}, ParameterError, "no dimension was named"),
        ({"rates": []}, ParameterError, "no learning rate is left"),
        ({"embedders": ["combinatoral"]}, UnknownNameError, "no tree embedder is called"),
        ({"level": 95}, ParameterError, "not between 0 and 1"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_the_work(
    options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        checked_settings(**options)


def test_a_folder_without_an_evaluation_is_no_gallery(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"it has no tree\.json"):
        Gallery.read(tmp_path)
