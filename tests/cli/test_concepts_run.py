"""``eq concepts run`` from the command line: the report, the files and the exit statuses."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("sklearn")
pytest.importorskip("networkx")

Run = Callable[..., Any]
QUICK = ["--n-resamples", "40"]


@pytest.fixture
def concepts(eq: Run) -> Run:
    """The command with few bootstrap resamples."""
    return lambda *arguments, **options: eq("concepts", "run", *arguments, *QUICK, **options)


@pytest.fixture
def pairs(folder: Path) -> str:
    """A file of concept pairs."""
    rows = [
        {
            "concept_1": f"rye {index}",
            "concept_2": f"rye bread {index % 5}",
            "expected_similarity": index / 20,
        }
        for index in range(20)
    ]
    (folder / "pairs.json").write_text(json.dumps(rows))
    return "pairs.json"


def test_all_scores_components_and_recommendations_are_printed(concepts: Run) -> None:
    short = concepts("--models", "hash,dim=64", "hash,dim=128")
    assert short.exit_code == 0, short.output
    assert len(short.stdout.splitlines()) <= 14
    for text in ("task mean", "similarity", "clustering", "vs. best", "By task: similarity none", "EQ312"):
        assert text in short.stdout, text
    result = concepts("--models", "hash,dim=64", "hash,dim=128", "-v")
    for text in (
        "semantic_similarity_score",
        "clustering_score",
        "entity_recognition_score",
        "knowledge_graph_score",
        "embedding_quality_score",
        "composite_score",
        "0.3 x min(graph_density, 0.5)",
        "ARI",
        "Share of weightings in which each model is first",
        "General Knowledge Graph Tasks: ",
        "EQ312",
    ):
        assert text in result.stdout, text


def test_one_task_on_a_file_of_pairs(concepts: Run, pairs: str) -> None:
    result = concepts("--models", "hash", "--task", "similarity", "--data", pairs)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("No model can be recommended for pairs. The highest Spearman (hash, ")
    assert "ARI" not in result.stdout


def test_sts_scores_need_the_similarity_scale(concepts: Run, folder: Path) -> None:
    lines = [f"word {index},word {index} too,{index % 6}" for index in range(12)]
    (folder / "sts.csv").write_text("\n".join(["sentence1,sentence2,score", *lines]) + "\n")
    unscaled = concepts("--models", "hash", "--data", "sts.csv")
    assert unscaled.exit_code == 2
    assert "sts.csv" in unscaled.stderr
    assert concepts("--models", "hash", "--data", "sts.csv", "--similarity-scale", "5").exit_code == 0


def test_json_has_every_score_with_interval_and_chance_level(concepts: Run) -> None:
    result = concepts("--models", "hash,dim=64", "--task", "similarity,quality", "--json")
    content = json.loads(result.stdout)
    assert [score["score"] for score in content["scores"]] == [
        "semantic_similarity_score",
        "embedding_quality_score",
    ]
    model_score = content["scores"][0]["models"]["hash,dim=64"]
    assert model_score["interval"]["low"] < model_score["value"] < model_score["interval"]["high"]
    assert model_score["chance"] is not None
    assert model_score["rating"]


def test_written_runs_can_be_compared(concepts: Run, eq: Run, folder: Path) -> None:
    result = concepts("--models", "hash,dim=64", "hash,dim=128", "--task", "similarity", "-o", "results", "-v")
    assert result.exit_code == 0, result.output
    assert "Differences between the models" in result.stdout
    assert (folder / "results" / "results.json").is_file()
    assert (folder / "results" / "view.json").is_file()
    compared = eq("compare", *(f"results/runs/similarity/hash,dim={dim}" for dim in (64, 128)), "--json")
    assert compared.exit_code == 0, compared.output
    assert json.loads(compared.stdout)["primary"] == "Spearman"


def test_weights_change_the_composite(concepts: Run) -> None:
    arguments = ("--models", "hash,dim=64", "--task", "similarity", "quality", "--json")
    result = concepts(*arguments, "--weight", "similarity=3", "quality=1")
    content = json.loads(result.stdout)
    scores = content["models"]["hash,dim=64"]["scores"]
    expected = 0.75 * scores["semantic_similarity_score"] + 0.25 * scores["embedding_quality_score"]
    assert scores["composite_score"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--task", "similarty"), "E300"),
        (("--task", "clustering", "--data", "pairs.json"), "E200"),
        (("--weight", "similarity"), "E310"),
        (("--weight", "similarity=much"), "E310"),
        (("--data", "nowhere/"), "E200"),
        (("-o", "truth.qrels"), "E500"),
    ],
)
def test_bad_input_is_an_error_with_exit_status_2(
    concepts: Run, pairs: str, arguments: tuple[str, ...], code: str
) -> None:
    result = concepts("--models", "hash", *arguments)
    assert result.exit_code == 2
    assert f"error[{code}]" in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "entry"),
    [
        ("pairs.json", [{"concept_1": "a", "expected_similarity": 0.5}], "concept_2"),
        ("pairs.json", [{"concept_1": "a", "concept_2": "b", "expected_similarity": 1.5}], "1.5"),
        ("clusters.json", [{"cluster_id": 0, "theme": "x", "concepts": ["a", "b"]}], "1 cluster"),
        ("concepts.json", ["alone"], "concept"),
    ],
)
def test_an_invalid_concept_set_is_reported_with_file_and_entry(
    concepts: Run, folder: Path, name: str, content: Any, entry: str
) -> None:
    (folder / "custom").mkdir()
    (folder / "custom" / name).write_text(json.dumps(content))
    result = concepts("--models", "hash", "--data", "custom")
    assert result.exit_code == 2
    assert name in result.stderr
    assert entry in result.stderr


def test_a_model_without_vectors_does_not_stop_the_others(concepts: Run) -> None:
    result = concepts("--models", "hash", "tfidf:", "--task", "quality")
    assert result.exit_code == 3
    assert result.stdout.splitlines()[1].startswith("1 of 2 requested models failed: tfidf (ranks documents")


def test_fail_on_issue_fails_on_a_reversed_component(concepts: Run) -> None:
    result = concepts("--models", "hash", "--task", "quality", "--fail-on", "issue", "-q")
    assert result.exit_code == 1
    assert "EQ312" in result.stderr


def test_an_unwritable_output_folder_is_reported_before_the_run(concepts: Run) -> None:
    result = concepts("--models", "hash", "--task", "quality", "-o", "truth.qrels/below")
    assert result.exit_code == 2
    assert "truth.qrels/below cannot be written" in result.stderr
    assert "embedding_quality_score" not in result.stdout


def test_the_report_is_by_the_ground_truth_metric(concepts: Run, eq: Run, folder: Path) -> None:
    concepts("--models", "hash,dim=32", "hash,dim=64", "--task", "clustering", "-o", "results")
    assert eq("report", "results", "-o", "page.html", "--no-charts").exit_code == 0
    assert "<title>2 systems by ARI on 120 examples</title>" in (folder / "page.html").read_text()
    assert "by clustering_score" in (folder / "page-clustering.html").read_text()


def test_verbose_explains_the_scores_and_truncates_nothing(concepts: Run) -> None:
    result = concepts("--models", "hash,dim=32", "hash,dim=64", "--task", "relations", "-v")
    assert "relation_coherence is the mean cosine of related entities" in " ".join(result.stdout.split())
    assert "…" not in result.stdout


@pytest.mark.parametrize("name", ["composite_score", "clustering_score", "ground_truth_score"])
def test_concept_scores_have_explain_pages(eq, name: str) -> None:
    page = json.loads(eq("explain", name, "--json").output)
    assert "formula" in json.dumps(page)
    assert name in json.dumps(page)


def test_csv_has_numbers_best_model_first(concepts: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(concepts("--models", "hash,dim=64", "hash,dim=128", "--to", "csv").stdout)))
    assert [row["dims"] for row in rows] == [row.pop("model").partition("=")[2] for row in rows]
    assert rows[0]["rank_low"] == "1"
    assert float(rows[0]["task mean"]) >= float(rows[1]["task mean"])
    assert all(float(value) <= 128 for row in rows for value in row.values())


def test_the_concept_set_may_be_an_argument(concepts: Run, pairs: str) -> None:
    options = ("--models", "hash", "--task", "similarity", "--json")
    by_argument, by_option = concepts(pairs, *options), concepts("--data", pairs, *options)
    assert by_argument.exit_code == 0, by_argument.stderr
    assert json.loads(by_argument.stdout)["models"] == json.loads(by_option.stdout)["models"]
    assert concepts(pairs, "--data", pairs, *options).exit_code == 2


def test_a_composite_without_ground_truth_recommends_nothing(concepts: Run) -> None:
    result = concepts("--models", "hash", "--task", "quality", "--weight", "quality=1")
    assert result.stdout.startswith("Inconclusive: no task that was measured on philosophy has labels")


def test_an_undefined_metric_is_not_marked_as_at_chance(concepts: Run, folder: Path) -> None:
    rows = [{"concept_1": "rye", "concept_2": other, "expected_similarity": 0.8} for other in ("oat", "wheat")]
    (folder / "flat.json").write_text(json.dumps(rows))
    result = concepts("--models", "hash", "--data", "flat.json", "--task", "similarity")
    assert result.exit_code == 0, result.output
    assert "n/a*" not in result.stdout
    assert "n/a" in result.stdout
