"""Stored evaluations are read by the other commands."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.domains.concepts.charts import concept_charts
from equipoise.domains.concepts.concept_set import ConceptPair, ConceptSet
from equipoise.domains.concepts.evidence import annotator_ceiling
from equipoise.domains.concepts.experiment import evaluate_concepts
from equipoise.domains.concepts.results import ConceptEvaluation
from equipoise.domains.concepts.tasks import TASKS
from equipoise.errors import StoreError
from equipoise.runs.compare import compare
from equipoise.runs.experiment_folder import check_writable
from equipoise.runs.run_folder import find_runs, load_run

pytestmark = pytest.mark.slow

pytest.importorskip("sklearn")

MODELS = ["hash,dim=48", "hash,dim=96"]
QUICK: dict[str, Any] = {"cache": False, "config": StatsConfig(n_resamples=40)}


@pytest.fixture(scope="module")
def stored_evaluation(tmp_path_factory: pytest.TempPathFactory) -> tuple[ConceptEvaluation, Path]:
    folder = tmp_path_factory.mktemp("results")
    return evaluate_concepts(MODELS, output=folder, tasks=["similarity", "clustering", "quality"], **QUICK), folder


def test_every_kind_of_evidence_has_one_run_per_model(stored_evaluation: tuple[ConceptEvaluation, Path]) -> None:
    evidence = {path.parent.name for path in find_runs(stored_evaluation[1])}
    of_pairs = {"similarity", "similarity-centred", "similarity-whitened", "pair-classification"}
    assert evidence == of_pairs | {"clustering", "clusters-found", "clusters-true", "quality"}
    assert len(find_runs(stored_evaluation[1])) == 2 * len(evidence)


def test_runs_are_compared_on_the_score_with_their_stored_errors(
    stored_evaluation: tuple[ConceptEvaluation, Path],
) -> None:
    runs = [load_run(path).result for path in find_runs(stored_evaluation[1] / "runs" / "similarity")]
    comparison = compare(runs, primary="semantic_similarity_score")
    contrast = comparison.contrast(*MODELS)
    expected = stored_evaluation[0].score_comparisons[0].contrast(*MODELS)
    assert contrast.difference == pytest.approx(expected.difference)
    assert contrast.interval.low == pytest.approx(expected.interval.low)
    assert contrast.p == pytest.approx(expected.p)
    assert not contrast.reason


@pytest.mark.parametrize("task_index", range(3))
def test_stored_runs_have_the_bands_of_the_report(
    stored_evaluation: tuple[ConceptEvaluation, Path], task_index: int
) -> None:
    score_comparison = stored_evaluation[0].score_comparisons[task_index]
    evidence = ("similarity", "clustering", "quality")[task_index]
    runs = [load_run(path).result for path in find_runs(stored_evaluation[1] / "runs" / evidence)]
    comparison = compare(runs, primary=score_comparison.score)
    assert dict(comparison.bands) == dict(score_comparison.letters)


def test_clustering_agreements_can_be_compared(stored_evaluation: tuple[ConceptEvaluation, Path]) -> None:
    runs = [load_run(path).result for path in find_runs(stored_evaluation[1] / "runs" / "clusters-found")]
    assert compare(runs, primary="ARI").ranks.keys() == set(MODELS)


def test_a_folder_that_cannot_be_written_is_an_error_before_the_evaluation(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    with pytest.raises(StoreError):
        check_writable(tmp_path / "taken" / "below")


def test_a_repeated_call_computes_only_the_models_that_are_not_stored(
    stored_evaluation: tuple[ConceptEvaluation, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(stored_evaluation[1], tmp_path / "copy"))
    evaluated: list[str] = []
    score = TASKS["quality"]
    monkeypatch.setitem(TASKS, "quality", lambda *args: evaluated.append(args[2]) or score(*args))
    options = {"tasks": ["similarity", "clustering", "quality"], **QUICK}
    repeated = evaluate_concepts([*MODELS, "hash,dim=24"], output=folder, **options)
    assert repeated.resumed == tuple(MODELS)
    assert evaluated == ["hash,dim=24"]
    for model in MODELS:
        assert (
            repeated.to_dict()["models"][model]["scores"] == stored_evaluation[0].to_dict()["models"][model]["scores"]
        )
    assert evaluate_concepts(MODELS, output=folder, **options).to_dict() == stored_evaluation[0].to_dict()
    other_seed = {**options, "tasks": ["quality"], "config": StatsConfig(n_resamples=40, seed=1)}
    assert evaluate_concepts(MODELS[:1], output=folder, **other_seed).resumed == ()


def test_results_json_has_scores_parts_and_recommendations(stored_evaluation: tuple[ConceptEvaluation, Path]) -> None:
    content = json.loads((stored_evaluation[1] / "results.json").read_text())
    scores = content["models"]["hash,dim=48"]["scores"]
    assert scores["clustering_score"] == pytest.approx(stored_evaluation[0]["hash,dim=48"]["clustering_score"].value)
    similarity = content["scores"][0]
    assert similarity["formula"] == "0.4 x accuracy + 0.4 x correlation + 0.2 x (1 - mae)"
    assert set(similarity["models"]["hash,dim=48"]["parts"]) == {"accuracy", "correlation", "mae"}
    assert {recommendation["use"] for recommendation in content["recommendations"]} == {
        "Semantic Similarity Tasks",
        "Concept Clustering",
    }


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    with pytest.raises(StoreError):
        evaluate_concepts(MODELS, output=tmp_path / "taken", tasks=["quality"], **QUICK)


def test_there_is_a_chart_of_every_kind(stored_evaluation: tuple[ConceptEvaluation, Path]) -> None:
    names = [chart.name for chart in concept_charts(stored_evaluation[0])]
    assert names == [
        "five-scores",
        "similarity-hash-dim-48",
        "similarity-hash-dim-96",
        "cosines",
        "map-hash-dim-48",
        "map-hash-dim-96",
    ]


def test_the_map_prints_the_share_of_preserved_neighbours(
    stored_evaluation: tuple[ConceptEvaluation, Path],
) -> None:
    map_chart = next(chart for chart in concept_charts(stored_evaluation[0]) if chart.name.startswith("map"))
    subtitle = " ".join(map_chart.spec["title"]["subtitle"])
    assert "of the 5 nearest neighbours" in subtitle
    assert subtitle in map_chart.description


def test_charts_are_written_as_svg_and_png(stored_evaluation: tuple[ConceptEvaluation, Path], tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    files = stored_evaluation[0].draw(tmp_path)
    assert len(files) == 2 * len(concept_charts(stored_evaluation[0]))
    assert all(file.stat().st_size > 1000 for file in files)


def test_every_finding_is_in_a_run_directory(stored_evaluation: tuple[ConceptEvaluation, Path]) -> None:
    stored = {finding for path in find_runs(stored_evaluation[1]) for finding in load_run(path).result.findings}
    assert stored_evaluation[0].findings
    assert set(stored_evaluation[0].findings) <= stored


def test_the_report_has_advice_categories_and_the_annotator_ceiling(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pairs = tuple(
        ConceptPair(f"a{n}", f"b{n}", n / 23, "odd" if n % 2 else "even", (n / 23, float(rng.random())))
        for n in range(24)
    )
    evaluation = evaluate_concepts(["hash"], ConceptSet("rated", pairs=pairs), cache=False)
    report_html = evaluation.report(tmp_path / "report.html").read_text(encoding="utf-8")
    for text in (
        "Semantic Similarity Tasks",
        "Spearman, whitened",
        "pair AP",
        "Spearman by category",
        "odd",
        "Annotator",
    ):
        assert text in report_html
    ceiling = evaluation.to_dict()["annotator_ceiling"]
    assert ceiling == pytest.approx(annotator_ceiling(pairs))
    assert set(evaluation.to_dict()["scores"][0]["categories"]) == {"odd", "even"}
