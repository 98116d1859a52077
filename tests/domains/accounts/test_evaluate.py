"""Several embeddings of a tree: evaluation, comparison, storage and charts."""

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


StoredEvaluation = tuple[AccountsEvaluation, Path]


@pytest.fixture(scope="module")
def stored_evaluation(chart: Tree, tmp_path_factory: pytest.TempPathFactory) -> StoredEvaluation:
    """One evaluation and its folder."""
    folder = tmp_path_factory.mktemp("accounts") / "results"
    return evaluate_tree(chart, "lorentz", [2, 4], output=folder, **QUICK), folder


def test_euclidean_and_random_embeddings_are_always_baselines(stored_evaluation: StoredEvaluation) -> None:
    systems = [item.system for item in stored_evaluation[0].evaluations]
    assert systems == [
        f"{name}-{dim}" for name in ("lorentz", "combinatorial", "euclidean", "random") for dim in (2, 4)
    ]


def test_trained_embeddings_are_significantly_better_than_random_ones(stored_evaluation: StoredEvaluation) -> None:
    bands = stored_evaluation[0].comparison.bands
    assert not set(bands["lorentz-4"]) & set(bands["random-4"])
    assert stored_evaluation[0]["random-4"].mean_rank.value == pytest.approx(
        len(stored_evaluation[0].tree) / 2, rel=0.25
    )


def test_trained_embedders_are_tuned_with_equal_grids(stored_evaluation: StoredEvaluation) -> None:
    assert "EQ203" not in {finding.code for finding in stored_evaluation[0].findings}
    grids = {item.system: item.result.settings.get("grid") for item in stored_evaluation[0].evaluations}
    assert grids["lorentz-2"] == grids["euclidean-2"] == {"learning_rate": [0.3]}
    assert grids["random-2"] is None


def test_the_learning_rate_with_the_lowest_loss_is_selected(chart: Tree) -> None:
    settings = tree_evaluation_config("euclidean", [2], learning_rates=[1e-6, 0.3], training={"epochs": 6})
    best = train_best_learning_rate(chart, EmbeddingSpec("euclidean", 2), settings, seed=0)
    assert best.settings["learning_rate"] == 0.3


def test_runs_are_readable_by_load_run_and_compare(stored_evaluation: StoredEvaluation) -> None:
    evaluation, folder = stored_evaluation
    run_paths = [load_run(folder / "runs" / item.system) for item in evaluation.evaluations]
    for evaluations, run in zip(evaluation.evaluations, run_paths, strict=True):
        assert run.result.estimates["MAP"].value == evaluations.map.value
        assert run.manifest.parameters["geometry"] == evaluations.geometry
    repeated = compare([run.result for run in run_paths], primary="MR", config=QUICK["config"])
    assert repeated.leader == evaluation.comparison.leader
    assert run_paths[0].details["assets.0"].expected == ("assets",)


def test_the_folder_has_the_tree_the_vectors_and_the_scores(stored_evaluation: StoredEvaluation) -> None:
    evaluation, folder = stored_evaluation
    assert read_stored_tree(folder).fingerprint == evaluation.tree.fingerprint
    vectors = read_node_vectors(folder / "vectors" / "lorentz-2.npz")
    assert np.array_equal(vectors.vectors, evaluation["lorentz-2"].vectors.vectors)
    results = json.loads((folder / "results.json").read_text(), parse_constant=pytest.fail)
    assert [item["system"] for item in results["systems"]] == [item.system for item in evaluation.evaluations]


def test_a_repeated_call_trains_nothing_and_gives_the_same_scores(
    stored_evaluation: StoredEvaluation, chart: Tree
) -> None:
    evaluation, folder = stored_evaluation
    repeated = evaluate_tree(chart, "lorentz", [2, 4], output=folder, **QUICK)
    assert repeated.resumed == tuple(item.system for item in evaluation.evaluations)
    assert [item.mean_rank for item in repeated.evaluations] == [item.mean_rank for item in evaluation.evaluations]


def test_edited_vectors_are_trained_again_and_not_drawn(chart: Tree, tmp_path: Path) -> None:
    first = evaluate_tree(chart, [], [2], output=tmp_path, seeds=[1, 2], **QUICK)
    vectors = first["random-2"].vectors
    shifted = replace(vectors, vectors=vectors.vectors + 1.0)
    for file in (tmp_path / "vectors").rglob("random-2*.npz"):
        shifted.write(file)
    with pytest.raises(ChangedFileError, match=r"random-2\.npz"):
        TreeCharts.read(tmp_path, "random-2")
    repeated = evaluate_tree(chart, [], [2], output=tmp_path, seeds=[1, 2], **QUICK)
    assert "random-2" not in repeated.resumed
    assert repeated["random-2"].seed_summaries == first["random-2"].seed_summaries


def test_an_edited_tree_is_not_drawn(chart: Tree, tmp_path: Path) -> None:
    evaluate_tree(chart, [], [2], output=tmp_path, **QUICK)
    file = tmp_path / "tree.json"
    content = json.loads(file.read_text())
    content["names"][1] = "another"
    file.write_text(json.dumps(content))
    with pytest.raises(ChangedFileError, match=r"tree\.json"):
        TreeCharts.read(tmp_path)


def test_other_settings_are_trained_again(chart: Tree, tmp_path: Path) -> None:
    evaluate_tree(chart, [], [2], output=tmp_path, **QUICK)
    other = evaluate_tree(chart, [], [2], output=tmp_path, **{**QUICK, "training": {"epochs": 3}})
    assert other.resumed == ("combinatorial-2", "random-2")


def test_the_folder_of_another_tree_is_an_error_and_unchanged(stored_evaluation: StoredEvaluation, chart: Tree) -> None:
    folder = stored_evaluation[1]
    contents = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(StoreError, match="other data: a small chart"):
        evaluate_tree(chart.taken(np.arange(20)), "lorentz", [2], output=folder, **QUICK)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == contents


def test_a_failed_evaluation_leaves_no_files(chart: Tree, tmp_path: Path) -> None:
    rows = np.full((len(chart), 2), np.nan)
    vectors = NodeVectors(chart.ids, chart.names, rows, "euclidean")
    with pytest.raises(NotFiniteError):
        evaluate_tree(chart, [], [2], vectors={"custom": vectors}, output=tmp_path / "results", **QUICK)
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".json", ".npz")]
    with pytest.raises(UndefinedError):
        evaluate_tree(Tree.of(["a", "b"], []), "lorentz", [2], output=tmp_path / "results", **QUICK)


class FixedEmbedder(EuclideanEmbedder):
    """Returns a given loss and given points for each learning rate."""

    def __init__(self, ends: dict[float, tuple[float, float]], learning_rate: float = 0.1) -> None:
        super().__init__(learning_rate=learning_rate)
        self.loss_and_point = ends[learning_rate]

    def fit_from(self, tree: Tree, dim: int, seed: int, start: int, *, progress: Any = None) -> NodeVectors:
        """Embed all nodes at the same point."""
        loss, point = self.loss_and_point
        rows = np.full((len(tree), dim), point)
        settings = {"learning_rate": self.config.learning_rate, "start": start}
        return NodeVectors(tree.ids, tree.names, rows, "euclidean", settings, (1.0, loss))


@pytest.mark.parametrize("not_finite", [(np.nan, 1.0), (-np.inf, 1.0), (0.0, np.nan), (0.0, np.inf)])
@pytest.mark.parametrize("first", [True, False])
def test_a_loss_or_a_point_that_is_not_finite_is_not_selected(
    chart: Tree, monkeypatch: pytest.MonkeyPatch, not_finite: tuple[float, float], first: bool
) -> None:
    learning_rates = [0.3, 0.1] if first else [0.1, 0.3]
    results = {0.1: (5.0, 1.0), 0.3: not_finite}
    settings = replace(tree_evaluation_config("euclidean", [2]), learning_rates=tuple(learning_rates))
    monkeypatch.setattr(
        experiment,
        "tree_embedder",
        lambda name, learning_rate=0.1, train_relation="": FixedEmbedder(results, learning_rate),
    )
    assert (
        train_best_learning_rate(chart, EmbeddingSpec("euclidean", 2), settings, seed=0).settings["learning_rate"]
        == 0.1
    )


def test_training_without_finite_points_is_an_error_with_the_learning_rate(
    chart: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(tree_evaluation_config("euclidean", [2]), learning_rates=(0.3,))
    monkeypatch.setattr(
        experiment,
        "tree_embedder",
        lambda name, learning_rate=0.3, train_relation="": FixedEmbedder({0.3: (0.0, np.nan)}, learning_rate),
    )
    with pytest.raises(ParameterError, match=r"euclidean-2.*0\.3.*40.*40 points"):
        train_best_learning_rate(chart, EmbeddingSpec("euclidean", 2), settings, seed=0)


def test_given_vectors_are_evaluated_with_the_baselines(chart: Tree) -> None:
    vectors = NodeVectors(chart.ids, chart.names, np.random.default_rng(3).normal(size=(len(chart), 7)), "euclidean")
    evaluation = evaluate_tree(chart, [], [2], vectors={"custom": vectors}, **QUICK)
    assert [item.system for item in evaluation.evaluations] == ["custom", "combinatorial-2", "euclidean-2", "random-2"]
    assert evaluation["custom"].dim == 7
    with pytest.raises(ParameterError):
        evaluate_tree(chart, [], [2], vectors={"random-2": vectors}, **QUICK)


def test_several_seeds_have_a_standard_deviation(chart: Tree) -> None:
    evaluation = evaluate_tree(chart, [], [2], seeds=[1, 2, 3], **QUICK)
    summary = evaluation["random-2"].seed_summaries["MR"]
    assert summary.seeds == 3
    assert summary.deviation > 0
    assert summary.mean == pytest.approx(evaluation["random-2"].mean_rank.value)
    single_seed_results = [evaluate_tree(chart, [], [2], seeds=seed, **QUICK)["random-2"] for seed in (1, 2, 3)]
    assert summary.values == tuple(item.mean_rank.value for item in single_seed_results)
    means = np.mean([item.result.per_unit["MAP"] for item in single_seed_results], axis=0)
    np.testing.assert_allclose(evaluation["random-2"].result.per_unit["MAP"], means)
    assert evaluation["random-2"].map.interval.covers(evaluation["random-2"].map.value)
    assert evaluation["random-2"].spearman.value == pytest.approx(
        np.mean([item.spearman.value for item in single_seed_results])
    )


def test_lorentz_and_poincare_are_trained_once(chart: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    trained_systems = []
    original = experiment.train_best_learning_rate
    monkeypatch.setattr(
        experiment,
        "train_best_learning_rate",
        lambda tree, spec, *args: trained_systems.append(spec.system) or original(tree, spec, *args),
    )
    evaluation = evaluate_tree(chart, ["lorentz", "poincare"], [3], **QUICK)
    assert "lorentz-3" in trained_systems
    assert "poincare-3" not in trained_systems
    ball, hyperboloid = evaluation["poincare-3"], evaluation["lorentz-3"]
    np.testing.assert_allclose(
        distances.ball_to_hyperboloid(ball.vectors.vectors), hyperboloid.vectors.vectors, rtol=1e-8
    )
    assert ball.mean_rank.value == pytest.approx(hyperboloid.mean_rank.value)
    assert (ball.geometry, ball.vectors.settings["embedder"]) == ("poincare", "poincare")


def test_scores_of_the_other_relations_are_included(chart: Tree) -> None:
    evaluation = evaluate_tree(chart, [], [2], **QUICK)["combinatorial-2"]
    closure_evaluation = evaluate_tree(chart, [], [2], relation="closure", **QUICK)["combinatorial-2"]
    assert set(evaluation.other_relations) == {"ancestors", "closure"}
    assert evaluation.other_relations["closure"].map == pytest.approx(closure_evaluation.map.value)
    assert evaluation.other_relations["closure"].mean_rank == pytest.approx(closure_evaluation.mean_rank.value)
    assert closure_evaluation.other_relations["parent"].mean_rank == pytest.approx(evaluation.mean_rank.value)


def test_the_frame_has_one_row_per_embedding(stored_evaluation: StoredEvaluation) -> None:
    pytest.importorskip("pandas")
    frame = stored_evaluation[0].to_frame()
    assert frame["system"].tolist() == [item.system for item in stored_evaluation[0].evaluations]
    with_interval = frame.dropna(subset=["map_low"])
    assert len(with_interval) >= 4
    assert (with_interval["map_low"] <= with_interval["map"]).all()
    assert frame["map"].between(0, 1).all()


def test_charts_of_the_folder_equal_those_of_the_evaluation(stored_evaluation: StoredEvaluation) -> None:
    evaluation, folder = stored_evaluation
    from_folder, from_evaluation = TreeCharts.read(folder), TreeCharts.of(evaluation)
    assert from_folder.system == from_evaluation.system == "combinatorial-2"
    assert [item.name for item in from_folder.charts()] == [
        "disk",
        "norm-position-combinatorial-2",
        "dimensions-mr",
        "dimensions-map",
    ]
    for chart, expected in zip(from_folder.charts(), from_evaluation.charts(), strict=True):
        assert chart.spec == expected.spec  # the order of the systems determines colours and marks


def test_runs_of_other_settings_are_not_in_the_charts(chart: Tree, tmp_path: Path) -> None:
    options = {**QUICK, "relation": "closure", "training": {"epochs": 2}, "config": StatsConfig(n_resamples=20)}
    evaluate_tree(chart, [], [2, 3], output=tmp_path, **options)
    evaluate_tree(chart, [], [4], output=tmp_path, **{**options, "relation": "parent"})
    assert [item.system for item in TreeCharts.read(tmp_path, "euclidean-4").results] == [
        "combinatorial-4",
        "euclidean-4",
        "random-4",
    ]


def test_a_text_model_keeps_its_name_in_the_folder(chart: Tree, tmp_path: Path) -> None:
    evaluate_tree(chart, [], [2], embedders=["text:hash"], output=tmp_path, **{**QUICK, "training": {"epochs": 2}})
    norm_chart = TreeCharts.read(tmp_path, "text:hash").norm_chart()
    assert "Spearman" in norm_chart.spec["title"]["subtitle"]


def test_vectors_in_another_order_are_drawn_at_their_nodes(
    stored_evaluation: StoredEvaluation, chart: Tree, tmp_path: Path
) -> None:
    copied = Path(shutil.copytree(stored_evaluation[1], tmp_path / "copy"))
    vectors = read_node_vectors(copied / "vectors" / "lorentz-2.npz")
    file = copied / "vectors" / "lorentz-2.npz"
    checksum = file_sha256(file)
    NodeVectors(vectors.ids[::-1], vectors.names[::-1], vectors.vectors[::-1], "lorentz").write(file)
    manifest = copied / "runs" / "lorentz-2" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(checksum, file_sha256(file)))
    assert np.array_equal(TreeCharts.read(copied, "lorentz-2").vectors.vectors, vectors.vectors)


def test_baselines_and_norms_have_no_finding_about_chance(stored_evaluation: StoredEvaluation) -> None:
    for evaluations in stored_evaluation[0].evaluations:
        codes = {finding.code for finding in evaluations.result.findings}
        assert "EQ302" not in codes


def test_a_requested_embedding_at_chance_is_an_issue(chart: Tree) -> None:
    vectors = NodeVectors(chart.ids, chart.names, np.random.default_rng(3).normal(size=(len(chart), 2)), "euclidean")
    evaluations = evaluate_tree(chart, [], [2], vectors={"custom": vectors}, **QUICK)
    (finding,) = [item for item in evaluations.findings if item.code == "EQ302"]
    assert finding.subject == "custom"
    assert "NormDepth" not in finding.message
    assert "cutoff" not in finding.hint


def test_saturation_findings_list_only_the_saturated_embeddings() -> None:
    saturated = [("lorentz-5", "MedianRank 1.00"), ("lorentz-10", "MedianRank 1.00"), ("random-5", "MAP 1.00")]
    findings = [Finding("EQ303", Severity.TIP, name, "...", "...", (line,)) for name, line in saturated]
    median, precision = merge_findings([*findings, findings[0]])
    assert median.subject == "lorentz-5, lorentz-10"
    assert median.message.startswith("MedianRank is saturated")
    assert median.evidence == tuple(f"{name}: {line}" for name, line in saturated[:2])
    assert (precision.subject, precision.message[:7]) == ("random-5", "MAP is ")


def test_an_embedding_with_two_findings_on_the_same_metrics_is_named_once() -> None:
    lines = [("lorentz-2", "MedianRank 1.00"), ("lorentz-2", "MedianRank 1.01"), ("random-2", "MedianRank 1.00")]
    (found,) = merge_findings([Finding("EQ303", Severity.TIP, name, "...", "...", (line,)) for name, line in lines])
    assert found.subject == "lorentz-2, random-2"


@pytest.mark.parametrize(
    ("metrics", "relation", "text", "hint"),
    [
        (["MedianRank"], "parent", "MedianRank is", "compare on MR or MAP, or rank all related nodes"),
        (["MR", "MAP"], "parent", "MR, MAP are", "rank all related nodes: --relation"),
        (["MR(filtered)"], "closure", "MR(filtered) is", "compare on MAP"),
        (["MR", "MAP"], "closure", "MR, MAP are", "compare in fewer dimensions"),
    ],
)
def test_the_hint_does_not_list_a_saturated_metric(metrics, relation, text, hint) -> None:
    lines = tuple(f"{name} 1.00, 99 % of the nodes at the maximum" for name in metrics)
    findings = [
        Finding("EQ305", Severity.NOTE, "custom", "MAP is MRR", "..."),
        Finding("EQ303", Severity.TIP, "custom", "...", "...", lines),
    ]
    (finding,) = merge_findings(findings, relation)
    assert finding.message.startswith(text)
    assert finding.hint.startswith(hint)


def test_equal_findings_of_several_embeddings_are_merged() -> None:
    findings = [
        Finding("EQ301", Severity.TIP, name, text, "keep more digits")
        for name, text in [("a", "27.9% tie"), ("b", "27.9% tie"), ("c", "1.0% tie")]
    ]
    merged = merge_findings(findings)
    assert [(item.subject, item.message) for item in merged] == [("a, b", "27.9% tie"), ("c", "1.0% tie")]
    assert {item.hint.partition(":")[0] for item in merged} == {"no action needed if the distances are equal by design"}


def test_saturated_metrics_with_several_targets_are_all_listed() -> None:
    finding = Finding("EQ303", Severity.TIP, "custom", "...", "...", ("MAP 1.00", "MRR 1.00"))
    assert merge_findings([finding], "closure")[0].message.startswith("MAP, MRR are")


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"geometry": "cosine"}, ParameterError, "cosine"),
        ({"relation": "parents"}, UnknownNameError, "'parents'"),
        ({"dims": [2, 2]}, DuplicateError, "twice"),
        ({"dims": []}, ParameterError, "dimension"),
        ({"learning_rates": []}, ParameterError, "learning rate"),
        ({"embedders": ["combinatoral"]}, UnknownNameError, "'combinatoral'"),
        ({"embedders": ["combinatorial"], "dims": [1, 2]}, ParameterError, "two dimensions"),
    ],
)
def test_invalid_settings_are_errors_before_the_evaluation(
    options: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        tree_evaluation_config(**options)


def test_a_folder_without_an_evaluation_has_no_charts(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"tree\.json"):
        TreeCharts.read(tmp_path)
