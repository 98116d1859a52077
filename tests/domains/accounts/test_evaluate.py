"""A tree embedded in several ways, judged and compared, kept and read back."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.domains.accounts import experiment
from equipoise.domains.accounts.charts import TreeCharts
from equipoise.domains.accounts.checks import merge_findings
from equipoise.domains.accounts.embedders import EuclideanEmbedder
from equipoise.domains.accounts.experiment import (
    EmbeddingSpec,
    evaluate_tree,
    train_best_learning_rate,
    tree_evaluation_config,
)
from equipoise.domains.accounts.results import AccountsEvaluation, read_stored_tree
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.domains.accounts.vectors import NodeVectors, read_node_vectors
from equipoise.errors import (
    ChangedFileError,
    DuplicateError,
    NotFiniteError,
    ParameterError,
    StoreError,
    UndefinedError,
    UnknownNameError,
)
from equipoise.geometry import distances
from equipoise.io.dataset import file_sha256
from equipoise.runs.compare import compare
from equipoise.runs.run_folder import load_run
from equipoise.types import Finding, Severity

QUICK: dict[str, Any] = {"learning_rates": [0.3], "training": {"epochs": 8}, "config": StatsConfig(n_resamples=40)}


Kept = tuple[AccountsEvaluation, Path]


@pytest.fixture(scope="module")
def found(chart: Tree, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """One evaluation, and the folder that it was kept in."""
    folder = tmp_path_factory.mktemp("accounts") / "results"
    return evaluate_tree(chart, "lorentz", [2, 4], output=folder, **QUICK), folder


def test_a_euclidean_and_a_random_embedding_always_stand_beside(found: Kept) -> None:
    systems = [each.system for each in found[0].evaluations]
    assert systems == [
        f"{name}-{dim}" for name in ("lorentz", "combinatorial", "euclidean", "random") for dim in (2, 4)
    ]


def test_what_was_trained_is_told_from_what_knows_nothing(found: Kept) -> None:
    bands = found[0].comparison.bands
    assert not set(bands["lorentz-4"]) & set(bands["random-4"])
    assert found[0]["random-4"].mean_rank.value == pytest.approx(len(found[0].tree) / 2, rel=0.25)


def test_trained_embedders_are_tuned_on_equal_terms(found: Kept) -> None:
    assert "EQ203" not in {finding.code for finding in found[0].findings}
    tried = {each.system: each.result.settings.get("grid") for each in found[0].evaluations}
    assert tried["lorentz-2"] == tried["euclidean-2"] == {"learning_rate": [0.3]}
    assert tried["random-2"] is None


def test_the_lowest_loss_decides_the_rate(chart: Tree) -> None:
    settings = tree_evaluation_config("euclidean", [2], learning_rates=[1e-6, 0.3], training={"epochs": 6})
    best = train_best_learning_rate(chart, EmbeddingSpec("euclidean", 2), settings, seed=0)
    assert best.settings["learning_rate"] == 0.3


def test_runs_are_read_by_whatever_reads_runs(found: Kept) -> None:
    evaluation, folder = found
    run_paths = [load_run(folder / "runs" / item.system) for item in evaluation.evaluations]
    for evaluations, run in zip(evaluation.evaluations, run_paths, strict=True):
        assert run.result.estimates["MAP"].value == evaluations.map.value
        assert run.manifest.parameters["geometry"] == evaluations.geometry
    again = compare([run.result for run in run_paths], primary="MR", config=QUICK["config"])
    assert again.leader == evaluation.comparison.leader
    assert run_paths[0].details["assets.0"].expected == ("assets",)


def test_the_folder_keeps_tree_vectors_and_figures(found: Kept) -> None:
    evaluation, folder = found
    assert read_stored_tree(folder).fingerprint == evaluation.tree.fingerprint
    kept = read_node_vectors(folder / "vectors" / "lorentz-2.npz")
    assert np.array_equal(kept.vectors, evaluation["lorentz-2"].vectors.vectors)
    told = json.loads((folder / "results.json").read_text(), parse_constant=pytest.fail)
    assert [each["system"] for each in told["systems"]] == [each.system for each in evaluation.evaluations]


def test_the_same_call_again_trains_nothing_and_says_the_same(found: Kept, chart: Tree) -> None:
    evaluation, folder = found
    again = evaluate_tree(chart, "lorentz", [2, 4], output=folder, **QUICK)
    assert again.resumed == tuple(each.system for each in evaluation.evaluations)
    assert [each.mean_rank for each in again.evaluations] == [each.mean_rank for each in evaluation.evaluations]


def test_edited_vectors_are_made_again_and_not_drawn(chart: Tree, tmp_path: Path) -> None:
    first = evaluate_tree(chart, [], [2], output=tmp_path, seeds=[1, 2], **QUICK)
    vectors = first["random-2"].vectors
    shifted = replace(vectors, vectors=vectors.vectors + 1.0)
    for file in (tmp_path / "vectors").rglob("random-2*.npz"):
        shifted.write(file)
    with pytest.raises(ChangedFileError, match=r"random-2\.npz"):
        TreeCharts.read(tmp_path, "random-2")
    again = evaluate_tree(chart, [], [2], output=tmp_path, seeds=[1, 2], **QUICK)
    assert "random-2" not in again.resumed
    assert again["random-2"].seed_summaries == first["random-2"].seed_summaries


def test_an_edited_tree_is_not_drawn(chart: Tree, tmp_path: Path) -> None:
    evaluate_tree(chart, [], [2], output=tmp_path, **QUICK)
    file = tmp_path / "tree.json"
    content = json.loads(file.read_text())
    content["names"][1] = "another"
    file.write_text(json.dumps(content))
    with pytest.raises(ChangedFileError, match=r"tree\.json"):
        TreeCharts.read(tmp_path)


def test_other_settings_are_trained_anew(chart: Tree, tmp_path: Path) -> None:
    evaluate_tree(chart, [], [2], output=tmp_path, **QUICK)
    other = evaluate_tree(chart, [], [2], output=tmp_path, **{**QUICK, "training": {"epochs": 3}})
    assert other.resumed == ("combinatorial-2", "random-2")


def test_the_folder_of_another_tree_is_refused_and_left_as_it_was(found: Kept, chart: Tree) -> None:
    folder = found[1]
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(StoreError, match="40 nodes"):
        evaluate_tree(chart.taken(np.arange(20)), "lorentz", [2], output=folder, **QUICK)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_what_cannot_be_judged_leaves_nothing_behind(chart: Tree, tmp_path: Path) -> None:
    rows = np.full((len(chart), 2), np.nan)
    own = NodeVectors(chart.ids, chart.names, rows, "euclidean")
    with pytest.raises(NotFiniteError):
        evaluate_tree(chart, [], [2], vectors={"mine": own}, output=tmp_path / "results", **QUICK)
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".json", ".npz")]
    with pytest.raises(UndefinedError):
        evaluate_tree(Tree.of(["a", "b"], []), "lorentz", [2], output=tmp_path / "results", **QUICK)


class Wild(EuclideanEmbedder):
    """Trains as told: the loss and the points that go with each rate."""

    def __init__(self, ends: dict[float, tuple[float, float]], learning_rate: float = 0.1) -> None:
        super().__init__(learning_rate=learning_rate)
        self.end = ends[learning_rate]

    def fit_from(self, tree: Tree, dim: int, seed: int, start: int, *, progress: Any = None) -> NodeVectors:
        """All points are equal."""
        loss, point = self.end
        rows = np.full((len(tree), dim), point)
        settings = {"learning_rate": self.config.learning_rate, "start": start}
        return NodeVectors(tree.ids, tree.names, rows, "euclidean", settings, (1.0, loss))


@pytest.mark.parametrize("bad", [(np.nan, 1.0), (-np.inf, 1.0), (0.0, np.nan), (0.0, np.inf)])
@pytest.mark.parametrize("first", [True, False])
def test_a_loss_or_a_point_that_is_not_finite_never_wins(
    chart: Tree, monkeypatch: pytest.MonkeyPatch, bad: tuple[float, float], first: bool
) -> None:
    learning_rates = [0.3, 0.1] if first else [0.1, 0.3]
    ends = {0.1: (5.0, 1.0), 0.3: bad}
    settings = replace(tree_evaluation_config("euclidean", [2]), learning_rates=tuple(learning_rates))
    monkeypatch.setattr(
        experiment, "tree_embedder", lambda name, learning_rate=0.1, train_relation="": Wild(ends, learning_rate)
    )
    assert (
        train_best_learning_rate(chart, EmbeddingSpec("euclidean", 2), settings, seed=0).settings["learning_rate"]
        == 0.1
    )


def test_training_that_leaves_no_finite_point_is_an_error_that_names_the_rate(
    chart: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(tree_evaluation_config("euclidean", [2]), learning_rates=(0.3,))
    monkeypatch.setattr(
        experiment,
        "tree_embedder",
        lambda name, learning_rate=0.3, train_relation="": Wild({0.3: (0.0, np.nan)}, learning_rate),
    )
    with pytest.raises(ParameterError, match=r"euclidean-2.*0\.3.*40.*40 points"):
        train_best_learning_rate(chart, EmbeddingSpec("euclidean", 2), settings, seed=0)


def test_vectors_of_ones_own_are_judged_beside(chart: Tree) -> None:
    own = NodeVectors(chart.ids, chart.names, np.random.default_rng(3).normal(size=(len(chart), 7)), "euclidean")
    found = evaluate_tree(chart, [], [2], vectors={"mine": own}, **QUICK)
    assert [each.system for each in found.evaluations] == ["mine", "combinatorial-2", "euclidean-2", "random-2"]
    assert found["mine"].dim == 7
    with pytest.raises(ParameterError):
        evaluate_tree(chart, [], [2], vectors={"random-2": own}, **QUICK)


def test_several_seeds_have_a_spread(chart: Tree) -> None:
    found = evaluate_tree(chart, [], [2], seeds=[1, 2, 3], **QUICK)
    over = found["random-2"].seed_summaries["MR"]
    assert over.seeds == 3
    assert over.deviation > 0
    assert over.mean == pytest.approx(found["random-2"].mean_rank.value)
    single = [evaluate_tree(chart, [], [2], seeds=seed, **QUICK)["random-2"] for seed in (1, 2, 3)]
    assert over.values == tuple(item.mean_rank.value for item in single)
    means = np.mean([item.result.per_unit["MAP"] for item in single], axis=0)
    np.testing.assert_allclose(found["random-2"].result.per_unit["MAP"], means)
    assert found["random-2"].map.interval.covers(found["random-2"].map.value)
    assert found["random-2"].spearman.value == pytest.approx(np.mean([item.spearman.value for item in single]))


def test_lorentz_and_poincare_are_trained_once(chart: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = []
    original = experiment.train_best_learning_rate
    monkeypatch.setattr(
        experiment,
        "train_best_learning_rate",
        lambda tree, spec, *args: trained.append(spec.system) or original(tree, spec, *args),
    )
    found = evaluate_tree(chart, ["lorentz", "poincare"], [3], **QUICK)
    assert "lorentz-3" in trained
    assert "poincare-3" not in trained
    ball, sheet = found["poincare-3"], found["lorentz-3"]
    np.testing.assert_allclose(distances.ball_to_hyperboloid(ball.vectors.vectors), sheet.vectors.vectors, rtol=1e-8)
    assert ball.mean_rank.value == pytest.approx(sheet.mean_rank.value)
    assert (ball.geometry, ball.vectors.settings["embedder"]) == ("poincare", "poincare")


def test_scores_of_the_other_relations_are_included(chart: Tree) -> None:
    found = evaluate_tree(chart, [], [2], **QUICK)["combinatorial-2"]
    other = evaluate_tree(chart, [], [2], relation="closure", **QUICK)["combinatorial-2"]
    assert set(found.other_relations) == {"ancestors", "closure"}
    assert found.other_relations["closure"].map == pytest.approx(other.map.value)
    assert found.other_relations["closure"].mean_rank == pytest.approx(other.mean_rank.value)
    assert other.other_relations["parent"].mean_rank == pytest.approx(found.mean_rank.value)


def test_the_frame_has_a_row_an_embedding(found: Kept) -> None:
    pytest.importorskip("pandas")
    to_frame = found[0].to_frame()
    assert to_frame["system"].tolist() == [each.system for each in found[0].evaluations]
    known = to_frame.dropna(subset=["map_low"])
    assert len(known) >= 4
    assert (known["map_low"] <= known["map"]).all()
    assert to_frame["map"].between(0, 1).all()


def test_charts_are_drawn_from_the_folder_as_from_the_evaluation(found: Kept) -> None:
    evaluation, folder = found
    kept, held = TreeCharts.read(folder), TreeCharts.of(evaluation)
    assert kept.system == held.system == "combinatorial-2"
    assert [each.name for each in kept.charts()] == [
        "disk",
        "norm-depth-combinatorial-2",
        "dimensions-mr",
        "dimensions-map",
    ]
    for one, other in zip(kept.charts(), held.charts(), strict=True):
        assert one.spec == other.spec  # the order of the systems decides colours and marks


def test_runs_of_other_settings_are_not_drawn_among_those_of_the_last(chart: Tree, tmp_path: Path) -> None:
    options = {**QUICK, "relation": "closure", "training": {"epochs": 2}, "config": StatsConfig(n_resamples=20)}
    evaluate_tree(chart, [], [2, 3], output=tmp_path, **options)
    evaluate_tree(chart, [], [4], output=tmp_path, **{**options, "relation": "parent"})
    assert [each.system for each in TreeCharts.read(tmp_path, "euclidean-4").results] == [
        "combinatorial-4",
        "euclidean-4",
        "random-4",
    ]


def test_a_text_model_keeps_its_name_in_the_folder(chart: Tree, tmp_path: Path) -> None:
    evaluate_tree(chart, [], [2], embedders=["text:hash"], output=tmp_path, **{**QUICK, "training": {"epochs": 2}})
    drawn = TreeCharts.read(tmp_path, "text:hash").norm_chart()
    assert "Spearman" in drawn.spec["title"]["subtitle"]


def test_vectors_that_lie_in_another_order_are_drawn_at_their_nodes(found: Kept, chart: Tree, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(found[1], tmp_path / "copy"))
    turned = read_node_vectors(copied / "vectors" / "lorentz-2.npz")
    file = copied / "vectors" / "lorentz-2.npz"
    before = file_sha256(file)
    NodeVectors(turned.ids[::-1], turned.names[::-1], turned.vectors[::-1], "lorentz").write(file)
    manifest = copied / "runs" / "lorentz-2" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(before, file_sha256(file)))
    assert np.array_equal(TreeCharts.read(copied, "lorentz-2").vectors.vectors, turned.vectors)


def test_baselines_and_norms_are_not_held_against_chance(found: Kept) -> None:
    for evaluations in found[0].evaluations:
        codes = {finding.code for finding in evaluations.result.findings}
        assert "EQ302" not in codes


def test_what_is_asked_for_and_no_better_than_chance_is_an_issue(chart: Tree) -> None:
    own = NodeVectors(chart.ids, chart.names, np.random.default_rng(3).normal(size=(len(chart), 2)), "euclidean")
    evaluations = evaluate_tree(chart, [], [2], vectors={"mine": own}, **QUICK)
    (finding,) = [each for each in evaluations.findings if each.code == "EQ302"]
    assert finding.subject == "mine"
    assert "NormDepth" not in finding.message
    assert "cutoff" not in finding.hint


def test_figures_at_their_best_are_told_of_those_embeddings_alone_that_reach_them() -> None:
    ends = [("lorentz-5", "MedianRank 1.00"), ("lorentz-10", "MedianRank 1.00"), ("random-5", "MAP 1.00")]
    told = [Finding("EQ303", Severity.TIP, name, "...", "...", (line,)) for name, line in ends]
    median, precision = merge_findings([*told, told[0]])
    assert median.subject == "lorentz-5, lorentz-10"
    assert median.message.startswith("MedianRank is saturated")
    assert median.evidence == tuple(f"{name}: {line}" for name, line in ends[:2])
    assert (precision.subject, precision.message[:7]) == ("random-5", "MAP is ")


def test_an_embedding_with_two_findings_on_the_same_metrics_is_named_once() -> None:
    lines = [("lorentz-2", "MedianRank 1.00"), ("lorentz-2", "MedianRank 1.01"), ("random-2", "MedianRank 1.00")]
    (found,) = merge_findings([Finding("EQ303", Severity.TIP, name, "...", "...", (line,)) for name, line in lines])
    assert found.subject == "lorentz-2, random-2"


@pytest.mark.parametrize(
    ("figures", "relation", "sentence", "hint"),
    [
        (["MedianRank"], "parent", "MedianRank is", "compare on MR or MAP, or rank all related nodes"),
        (["MR", "MR(over=units)", "MAP", "MRR"], "parent", "MR, MAP are", "rank all related nodes: --relation"),
        (["MR(filtered)"], "closure", "MR(filtered) is", "compare on MAP"),
        (["MR", "MAP"], "closure", "MR, MAP are", "compare in fewer dimensions"),
    ],
)
def test_the_hint_names_no_figure_that_is_at_its_best(figures, relation, sentence, hint) -> None:
    lines = tuple(f"{name} 1.00, 99 % of the nodes at the maximum" for name in figures)
    told = [
        Finding("EQ305", Severity.NOTE, "mine", "MAP is MRR", "..."),
        Finding("EQ303", Severity.TIP, "mine", "...", "...", lines),
    ]
    (found,) = merge_findings(told, relation)
    assert found.message.startswith(sentence)
    assert found.hint.startswith(hint)


def test_what_is_the_same_of_several_embeddings_is_told_once() -> None:
    told = [
        Finding("EQ301", Severity.TIP, name, sentence, "keep more digits")
        for name, sentence in [("a", "27.9% tie"), ("b", "27.9% tie"), ("c", "1.0% tie")]
    ]
    found = merge_findings(told)
    assert [(each.subject, each.message) for each in found] == [("a, b", "27.9% tie"), ("c", "1.0% tie")]
    assert {each.hint.partition(":")[0] for each in found} == {"no action needed if the distances are equal by design"}


def test_figures_that_several_relatives_tell_apart_are_all_named() -> None:
    told = Finding("EQ303", Severity.TIP, "mine", "...", "...", ("MAP 1.00", "MRR 1.00"))
    assert merge_findings([told], "closure")[0].message.startswith("MAP, MRR are")


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"geometry": "cosine"}, ParameterError, "no tree embedder is trained in cosine space"),
        ({"relation": "parents"}, UnknownNameError, "no relation is called 'parents'"),
        ({"dims": [2, 2]}, DuplicateError, "a dimension was given twice"),
        ({"dims": []}, ParameterError, "no dimension was given"),
        ({"learning_rates": []}, ParameterError, "no learning rate was given"),
        ({"embedders": ["combinatoral"]}, UnknownNameError, "no tree embedder is called"),
        ({"embedders": ["combinatorial"], "dims": [1, 2]}, ParameterError, "needs at least two dimensions"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_the_work(
    options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        tree_evaluation_config(**options)


def test_a_folder_without_an_evaluation_is_no_gallery(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"tree\.json"):
        TreeCharts.read(tmp_path)
