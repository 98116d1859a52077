"""``eq concepts run``: the words as they are typed, the report, the files, the exit codes."""

from __future__ import annotations

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
    """The command with few redraws."""
    return lambda *words, **options: eq("concepts", "run", *words, *QUICK, **options)


@pytest.fixture
def pairs(folder: Path) -> str:
    """A file of pairs, as the source writes them."""
    rows = [
        {
            "concept_1": f"rye {place}",
            "concept_2": f"rye bread {place % 5}",
            "expected_similarity": place / 20,
        }
        for place in range(20)
    ]
    (folder / "pairs.json").write_text(json.dumps(rows))
    return "pairs.json"


def test_all_five_scores_and_the_composite_are_printed_with_parts_and_advice(concepts: Run) -> None:
    short = concepts("--models", "hash,dim=64", "hash,dim=128")
    assert short.exit_code == 0, short.output
    for text in ("composite_score", "Spearman", "ARI", "General Knowledge Graph Tasks: ", "EQ312"):
        assert text in short.stdout, text
    done = concepts("--models", "hash,dim=64", "hash,dim=128", "-v")
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
        assert text in done.stdout, text


def test_one_task_on_a_file_of_pairs(concepts: Run, pairs: str) -> None:
    done = concepts("--models", "hash", "--task", "similarity", "--data", pairs)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("No model can be recommended on pairs. The highest Spearman (hash, ")
    assert "ARI" not in done.stdout


def test_sts_scores_are_scaled_when_asked(concepts: Run, folder: Path) -> None:
    lines = [f"word {place},word {place} too,{place % 6}" for place in range(12)]
    (folder / "sts.csv").write_text("\n".join(["sentence1,sentence2,score", *lines]) + "\n")
    refused = concepts("--models", "hash", "--data", "sts.csv")
    assert refused.exit_code == 2
    assert "sts.csv" in refused.stderr
    assert concepts("--models", "hash", "--data", "sts.csv", "--similarity-scale", "5").exit_code == 0


def test_json_has_every_score_with_interval_chance_and_reading(concepts: Run) -> None:
    done = concepts("--models", "hash,dim=64", "--task", "similarity,quality", "--json")
    content = json.loads(done.stdout)
    assert [each["score"] for each in content["scores"]] == [
        "semantic_similarity_score",
        "embedding_quality_score",
    ]
    own = content["scores"][0]["models"]["hash,dim=64"]
    assert own["interval"]["low"] < own["value"] < own["interval"]["high"]
    assert own["chance"] is not None
    assert own["rating"]


def test_what_is_written_can_be_compared(concepts: Run, eq: Run, folder: Path) -> None:
    done = concepts("--models", "hash,dim=64", "hash,dim=128", "--task", "similarity", "-o", "results", "-v")
    assert done.exit_code == 0, done.output
    assert "Every pair" in done.stdout
    assert (folder / "results" / "results.json").is_file()
    assert (folder / "results" / "view.json").is_file()
    command = done.stdout.split("Next: ")[1].split()
    assert command[:2] == ["eq", "compare"]
    compared = eq(*command[1:], "--json")
    assert compared.exit_code == 0, compared.output
    assert json.loads(compared.stdout)["primary"] == "semantic_similarity_score"


def test_weights_change_the_composite(concepts: Run) -> None:
    words = ("--models", "hash,dim=64", "--task", "similarity", "quality", "--json")
    done = concepts(*words, "--weight", "similarity=3", "quality=1")
    content = json.loads(done.stdout)
    scores = content["models"]["hash,dim=64"]["scores"]
    expected = 0.75 * scores["semantic_similarity_score"] + 0.25 * scores["embedding_quality_score"]
    assert scores["composite_score"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--task", "similarty"), "E300"),
        (("--task", "clustering", "--data", "pairs.json"), "E200"),
        (("--weight", "similarity"), "E310"),
        (("--weight", "similarity=much"), "E310"),
        (("--data", "nowhere/"), "E200"),
        (("-o", "truth.qrels"), "E500"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(concepts: Run, pairs: str, words: tuple[str, ...], code: str) -> None:
    done = concepts("--models", "hash", *words)
    assert done.exit_code == 2
    assert f"error[{code}]" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "entry"),
    [
        ("pairs.json", [{"concept_1": "a", "expected_similarity": 0.5}], "concept_2"),
        ("pairs.json", [{"concept_1": "a", "concept_2": "b", "expected_similarity": 1.5}], "1.5"),
        ("clusters.json", [{"cluster_id": 0, "theme": "x", "concepts": ["a", "b"]}], "1 cluster"),
        ("concepts.json", ["alone"], "concept"),
    ],
)
def test_a_field_that_cannot_be_used_names_file_and_entry(
    concepts: Run, folder: Path, name: str, content: Any, entry: str
) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / name).write_text(json.dumps(content))
    done = concepts("--models", "hash", "--data", "mine")
    assert done.exit_code == 2
    assert name in done.stderr
    assert entry in done.stderr


def test_a_model_without_vectors_fails_alone(concepts: Run) -> None:
    done = concepts("--models", "hash", "tfidf:", "--task", "quality")
    assert done.exit_code == 3
    assert "tfidf failed: tfidf makes rankings, not vectors" in done.stdout


def test_a_gate_closes_on_the_reversed_part(concepts: Run) -> None:
    done = concepts("--models", "hash", "--task", "quality", "--fail-on", "issue", "-q")
    assert done.exit_code == 1
    assert "EQ312" in done.stderr


def test_a_folder_that_cannot_be_made_is_told_at_once(concepts: Run) -> None:
    done = concepts("--models", "hash", "--task", "quality", "-o", "truth.qrels/below")
    assert done.exit_code == 2
    assert "truth.qrels/below cannot be written" in done.stderr
    assert "embedding_quality_score" not in done.stdout


def test_the_next_command_fits_the_task(concepts: Run, eq: Run) -> None:
    done = concepts("--models", "hash,dim=256", "--task", "clustering")
    command = done.stdout.split("Next: ")[1].split()
    assert command == ["eq", "explain", "ARI"]
    assert eq(*command[1:]).exit_code == 0


def test_one_model_that_is_written_can_be_reported_as_the_program_says(concepts: Run, eq: Run) -> None:
    done = concepts("--models", "hash,dim=32", "--task", "similarity", "-o", "results")
    command = done.stdout.split("Next: ")[1].split()
    assert command[:2] == ["eq", "report"]
    assert eq(*command[1:]).exit_code == 0


def test_in_detail_it_says_how_the_source_was_read_and_cuts_no_interval(concepts: Run) -> None:
    done = concepts("--models", "hash,dim=32", "hash,dim=64", "--task", "relations", "-v")
    assert "clustering_coefficient that of the graph without" in " ".join(done.stdout.split())
    assert "…" not in done.stdout


@pytest.mark.parametrize("name", ["composite_score", "clustering_score", "ground_truth_score"])
def test_a_concept_score_has_a_page(eq, name: str) -> None:
    page = json.loads(eq("explain", name, "--json").output)
    assert "formula" in json.dumps(page)
    assert name in json.dumps(page)
