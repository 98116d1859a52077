"""Composite scores: recomputed from their components, with constant components and collapsed spaces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from equipoise.audit.apply_rules import audit_table
from equipoise.audit.composite_rules import Formula
from equipoise.audit.table import ValueRange

MODELS = {
    # accuracy, correlation, mae, silhouette, coherence, separation, entity silhouette, entity similarity,
    # relation coherence, pairwise similarity, variance, mean norm, standard deviation of norms
    "huge-chat": (0.21, 0.12, 0.18, 0.07, 0.97, 0.06, 0.31, 0.82, 0.951, 0.959, 0.88, 286.7, 25.5),
    "small-embed": (0.41, 0.31, 0.11, 0.08, 0.72, 0.37, 0.19, 0.66, 0.642, 0.652, 0.16, 19.4, 0.24),
    "mid-embed": (0.33, 0.25, 0.17, 0.05, 0.73, 0.56, 0.27, 0.41, 0.611, 0.536, 0.9013, 80.3, 3.85),
}
DENSITY, CLUSTERING = 0.0317, 0.1905


def result(name: str) -> dict[str, Any]:
    """A result file of one model: parts by task, and the scores that the published formulas give."""
    acc, corr, mae, sil, coh, sep, ent, text, rel, sim, var, mean, std = MODELS[name]
    scores = {
        "semantic_similarity_score": 0.4 * acc + 0.4 * corr + 0.2 * (1 - mae),
        "clustering_score": 0.5 * sil + 0.3 * coh + 0.2 * sep,
        "entity_recognition_score": 0.6 * ent + 0.4 * text,
        "knowledge_graph_score": 0.4 * rel + 0.3 * min(DENSITY, 0.5) + 0.3 * CLUSTERING,
        "embedding_quality_score": 0.4 * (1 - sim) + 0.3 * min(var, 1) + 0.3 * min(std / mean, 1),
    }
    scores["composite_score"] = sum(scores.values()) / 5
    return {
        "model_name": name,
        "evaluations": {
            "semantic_similarity": {"accuracy": acc, "correlation": corr, "mae": mae, "computed": [0.1, 0.9]},
            "clustering": {"silhouette_score": sil, "cluster_coherence": coh, "cluster_separation": sep},
            "entity_recognition": {
                "entity_clustering": {"silhouette_score": ent, "cluster_coherence": 0.6},
                "avg_entity_text_similarity": text,
            },
            "relation_extraction": {
                "graph_density": DENSITY,
                "clustering_coefficient": CLUSTERING,
                "relation_coherence": rel,
                "num_nodes": 28,
            },
            "embedding_quality": {
                "avg_pairwise_similarity": sim,
                "embedding_variance": var,
                "norm_mean": mean,
                "norm_std": std,
            },
        },
        "overall_scores": scores,
    }


def codes(source: Any) -> list[tuple[str, str]]:
    return [(issue.code, issue.subject) for issue in audit_table(source).issues]


def folder_of(tmp_path: Path, results: list[dict[str, Any]]) -> Path:
    for index, content in enumerate(results):
        (tmp_path / f"model_{index}_results.json").write_text(json.dumps(content))
    return tmp_path


def test_the_collapsed_model_that_is_ranked_first_is_flagged(tmp_path: Path) -> None:
    audit = audit_table(folder_of(tmp_path, list(map(result, MODELS))))
    (collapsed,) = [issue for issue in audit.issues if issue.code == "EQ418"]
    assert collapsed.subject == "huge-chat"
    assert "highest composite_score of 3 systems" in collapsed.message
    assert audit.impossible == ()


def test_constant_graph_statistics_are_flagged_across_files(tmp_path: Path) -> None:
    audit = audit_table(folder_of(tmp_path, list(map(result, MODELS))))
    components = [issue.message.split()[0] for issue in audit.issues if issue.code == "EQ414"]
    assert components == ["graph_density", "clustering_coefficient"]


def test_files_of_evaluations_on_other_data_are_not_compared(tmp_path: Path) -> None:
    first, second = result("small-embed"), result("mid-embed")
    relations = second["evaluations"]["relation_extraction"]
    relations |= {"graph_density": 0.11, "clustering_coefficient": 0.3}
    second["overall_scores"] = {}
    assert codes(folder_of(tmp_path, [first, second])) == []


@pytest.mark.parametrize("name", ["small-embed", "mid-embed"])
def test_scores_equal_to_their_formula_have_no_issues(name: str) -> None:
    assert codes(result(name)) == []


@pytest.mark.parametrize("score", list(result("mid-embed")["overall_scores"]))
def test_a_score_different_from_its_formula_is_flagged(score: str) -> None:
    changed = result("mid-embed")
    changed["overall_scores"][score] += 0.01
    issues = codes(changed)
    assert {code for code, _ in issues} == {"EQ416"}
    assert issues[0][1] == "mid-embed"
    assert len(issues) == (1 if score == "composite_score" else 2), "the composite score is wrong as well"


def test_one_list_of_results_is_read_like_a_folder() -> None:
    assert ("EQ418", "huge-chat") in codes(list(map(result, MODELS)))
    by_name = {name: {key: value for key, value in result(name).items() if key != "model_name"} for name in MODELS}
    assert {code for code, _ in codes(by_name)} == {"EQ414", "EQ418"}


REPORT = """\
COMPARISON

4. KNOWLEDGE GRAPH
   ---------------
   huge-chat:
     Relation Coherence: 0.951
     Graph Density: 0.032
     Nodes: 28, Edges: 24

   small-embed:
     Relation Coherence: 0.642
     Graph Density: 0.032
     Nodes: 28, Edges: 24

5. EMBEDDING QUALITY
   -----------------
   huge-chat:
     Avg Pairwise Similarity: 0.959
     Norm Mean: 286.7

   small-embed:
     Avg Pairwise Similarity: 0.652
     Norm Mean: 19.4
"""


def test_an_indented_report_is_read_by_system(tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_text(REPORT)
    assert {code for code, _ in codes(tmp_path / "report.txt")} == {"EQ414", "EQ418"}
    assert ("EQ418", "huge-chat") in codes(tmp_path / "report.txt")


def test_a_markdown_report_is_read_by_heading(tmp_path: Path) -> None:
    text = "## huge-chat\n\n- **Mean cosine**: 0.959\n- MRR: 0.31\n\n## small\n\n- **Mean cosine**: 0.41\n"
    (tmp_path / "report.md").write_text(text)
    assert codes(tmp_path / "report.md") == [("EQ418", "huge-chat")]


def test_a_high_similarity_of_texts_is_not_a_collapsed_space() -> None:
    assert codes({"avg_pairwise_similarity": 0.97, "MRR": 0.4, "accuracy": 0.5}) == []
    assert codes({"mean_cosine": 0.97, "MRR": 0.4}) == [("EQ418", "the table")]


def test_a_formula_of_the_file_is_used(tmp_path: Path) -> None:
    rows = "| model | MRR | speed | final_score |\n|---|---|---|---|\n| a | 0.40 | 0.90 | {} |\n"
    table = tmp_path / "table.md"
    table.write_text("final_score = 0.7 × MRR + 0.3 × speed\n\n" + rows.format("0.55"))
    assert codes(table) == []
    table.write_text("final_score = 0.7 × MRR + 0.3 × speed\n\n" + rows.format("0.65"))
    assert codes(table) == [("EQ416", "a")]
    tree = {"formulas": {"overall": "(MRR + recall) / 2"}, "MRR": 0.4, "recall": 0.6, "overall": 0.58}
    assert codes(tree) == [("EQ416", "the table")]
    assert codes(tree | {"overall": 0.5}) == []


def test_formulas_are_arithmetic_and_nothing_else() -> None:
    for line in (
        "a = __import__('os')",
        "a = b.c + d",
        "a = b ** c",
        "a = b",
        "a == b + c",
        "a = f(b, c)",
        "=",
        "",
    ):
        assert Formula.parse(line) is None
    formula = Formula.parse("Score = (a × 0.5) − max(b, 0.2) / c")
    assert formula is not None
    exact = {name: ValueRange(value, value) for name, value in {"a": 1.0, "b": 0.1, "c": 0.5}.items()}
    value = formula.value(exact)
    assert value is not None
    assert value.low == pytest.approx(0.1)
    assert formula.value(exact | {"c": ValueRange(-1, 1)}) is None
