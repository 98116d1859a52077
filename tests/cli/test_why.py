"""``eq why`` and ``eq score --like`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

RUN = """\
q1 Q0 a 1 0.5 t
q1 Q0 b 2 0.5 t
q1 Q0 c 3 0.1 t
q2 Q0 b 1 0.9 t
q2 Q0 a 2 0.2 t
"""
QRELS = "q1 0 a 1\nq2 0 a 1\nq3 0 a 1\n"


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    """A run with a tie and a missing query, and its qrels."""
    (folder / "run.trec").write_text(RUN)
    (folder / "custom.qrels").write_text(QRELS)


def test_the_difference_of_two_libraries_is_explained_by_conventions(eq) -> None:
    result = eq("why", "run.trec", "--qrels", "custom.qrels", "--like", "mteb", "--like", "ranx", "-m", "MRR@10")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "MRR@10: mteb and ranx agree on 0.5000"  # for different reasons
    rows = [line.split()[:-3] for line in lines if line.endswith(" 1") and line.startswith(("equal", "queries of"))]
    assert rows == [["equal", "scores"], ["queries", "of", "the", "qrels", "that", "the", "run", "misses"]]
    assert "    mteb: equal scores are ordered by document id, descending" in lines
    assert [line for line in lines if line.startswith("note: ")] != []
    assert "call: ranx.evaluate(Qrels(qrels), Run(run), metric)" in " ".join(result.stdout.split())


def test_one_library_is_compared_with_equipoise(eq) -> None:
    result = eq("why", "run.trec", "--qrels", "custom.qrels", "--like", "trec_eval", "-m", "MRR", "--json")
    (difference,) = json.loads(result.stdout)["differences"]
    assert (difference["one"]["name"], difference["other"]["name"]) == ("trec_eval", "equipoise")
    assert difference["one"]["value"] == 0.5
    assert difference["other"]["value"] == pytest.approx((0.75 + 0.5) / 3)
    assert sum(change["share"] for change in difference["changes"]) == pytest.approx(difference["difference"])
    assert {unit["unit"]: unit["one"] for unit in difference["units"]} == {"q3": None, "q1": 0.5}


def test_the_example_has_one_line_per_document(eq) -> None:
    result = eq("why", "run.trec", "--qrels", "custom.qrels", "--like", "trec_eval", "-m", "MRR")
    example = result.stdout.split("For example q1: 0.5000 in trec_eval, 0.7500 in equipoise\n")[1]
    rows = [line.split() for line in example.splitlines()[2:4]]
    assert rows == [["b", "0.5", "0", "1", "1-2"], ["a", "0.5", "1", "2", "1-2"]]


def test_several_metrics_are_explained_one_after_another(eq) -> None:
    result = eq("why", "run.trec", "--qrels", "custom.qrels", "--like", "ranx", "-m", "MRR", "-m", "HR@1", "-q")
    assert [line.split(":")[0] for line in result.stdout.splitlines() if " in ranx" in line] == ["MRR", "HR@1"]


def test_conventions_that_give_a_published_value_are_listed(eq) -> None:
    result = eq("why", "run.trec", "--qrels", "custom.qrels", "--published", "0.4167", "-m", "MRR", "--like", "ranx")
    assert result.exit_code == 0, result.stderr
    assert "- equipoise (0.416667 over 3 queries)" in " ".join(result.stdout.split())
    assert "is not necessarily the one that was used" in " ".join(result.stdout.split())


def test_a_published_value_without_a_match_exits_with_1(eq) -> None:
    result = eq("why", "run.trec", "--qrels", "custom.qrels", "--published", "0.9", "-m", "MRR", "--json")
    assert result.exit_code == 1
    content = json.loads(result.stdout)
    assert content["matches"] == []
    assert content["nearest"]["value"] < 0.9
    assert content["tried"] > content["figures"] > 1


def test_the_difference_to_a_published_value_is_explained_by_parts(eq) -> None:
    arguments = [
        "why",
        "run.trec",
        "--qrels",
        "custom.qrels",
        "--published",
        "0.4167",
        "-m",
        "MRR",
        "--like",
        "ranx",
    ]
    result = eq(*arguments)
    assert "From ranx to the first of these: 0.5000 in ranx, 0.4167 in equipoise" in result.stdout
    explanation = result.stdout.split("From ranx to the first")[1]
    assert "Where it happens" in explanation
    assert "relevant at rank 1-2, averaged over all orders of equal scores -> 0.7500" in explanation
    difference = json.loads(eq(*arguments, "--json").stdout)["difference"]
    assert sum(change["share"] for change in difference["changes"]) == pytest.approx(difference["difference"])
    assert difference["example"]["unit"] == "q1"


def test_without_a_match_the_difference_to_the_nearest_is_explained(eq) -> None:
    result = eq("why", "run.trec", "--qrels", "custom.qrels", "--published", "0.9", "-m", "MRR", "--like", "ranx")
    assert result.exit_code == 1
    assert "From ranx to the nearest score: 0.5000 in ranx" in result.stdout


def test_a_preset_that_gives_the_value_has_no_difference(eq) -> None:
    arguments = ["why", "run.trec", "--qrels", "custom.qrels", "--published", "0.4167", "-m", "MRR", "--json"]
    assert json.loads(eq(*arguments).stdout)["difference"] is None


def test_lists_that_are_too_short_for_a_library_are_an_error(eq, folder: Path) -> None:
    (folder / "one.trec").write_text("q1 Q0 a 1 0.5 t\n")
    result = eq("why", "one.trec", "--qrels", "custom.qrels", "--like", "sklearn")
    assert result.exit_code == 2
    assert "it needs lists of 2 items at least, and the longest here has 1" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "hint"),
    [
        (["--like", "mtbe"], "E300", "did you mean mteb?"),
        ([], "E310", "--like mteb --like ranx"),
        (["--like", "mteb"] * 3, "E310", "--like"),
        (["--like", "sklearn", "-m", "MRR"], "E310", "nearest it has"),
        (["--like", "ranx", "-m", "nDGC"], "E300", "did you mean nDCG?"),
        (["--published", "x", "--like", "ranx"], "E310", "as printed"),
        (
            ["--published", "0.5", "-m", "MRR", "-m", "HR@1"],
            "E310",
            "-m MRR",
        ),
        (
            ["--published", "0.5", "--like", "ranx", "--like", "mteb"],
            "E310",
            "--like ranx",
        ),
    ],
)
def test_bad_input_is_an_error_with_a_hint(eq, arguments: list[str], code: str, hint: str) -> None:
    result = eq("why", "run.trec", "--qrels", "custom.qrels", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"error[{code}]" in result.stderr
    assert hint in result.stderr


def test_a_run_of_other_queries_is_an_error(eq, folder: Path) -> None:
    (folder / "other.qrels").write_text("7 0 a 1\n")
    result = eq("why", "run.trec", "--qrels", "other.qrels", "--like", "ranx")
    assert result.exit_code == 2
    assert "no query in common: q1 in the one, 7 in the other" in result.stderr


def test_scoring_with_a_preset_lists_its_conventions(eq) -> None:
    result = eq("score", "run.trec", "--qrels", "custom.qrels", "--like", "trec_eval", "-m", "MRR")
    assert result.exit_code == 0, result.stderr
    assert "Scored as trec_eval as pytrec_eval-terrier 0.5.11 wraps it" in result.stdout
    assert "call: trec_eval -m MEASURE qrels run" in result.stdout
    assert "- a query of the qrels that the run misses is left out of the mean" in result.stdout
    assert "Next: eq why run.trec --qrels custom.qrels --like trec_eval -m MRR" in result.stdout
    quiet = eq("score", "run.trec", "--qrels", "custom.qrels", "--like", "trec_eval", "-m", "MRR", "-q")
    assert "Scored as trec_eval" in quiet.stdout
    assert "left out of the mean" not in quiet.stdout


def test_scores_of_a_preset_are_stored_with_its_name_and_not_comparable(eq, folder: Path) -> None:
    arguments = ["score", "--qrels", "custom.qrels", "-m", "MRR", "-o", "results"]
    assert eq(*arguments, "preset=run.trec", "--like", "ranx").exit_code == 0
    assert eq(*arguments, "default=run.trec").exit_code == 0
    manifest = json.loads((folder / "results/preset/manifest.json").read_text())
    assert manifest["settings"]["like"] == "ranx"
    result = eq("compare", "results/preset", "results/default")
    assert result.exit_code == 2
    assert "preset was scored with ties=like ranx and default with ties=expected" in result.stderr


def test_a_preset_and_a_tie_rule_exclude_each_other(eq) -> None:
    result = eq("score", "run.trec", "--qrels", "custom.qrels", "--like", "ranx", "--ties", "by_id")
    assert result.exit_code == 2
    assert "error[E310]" in result.stderr
    assert "--ties by_id" in result.stderr


def test_presets_do_not_support_logits(eq, folder: Path) -> None:
    import numpy as np

    np.save(folder / "scores.npy", np.eye(3))
    np.save(folder / "y.npy", np.arange(3))
    result = eq("score", "scores.npy", "--targets", "y.npy", "--like", "ranx")
    assert result.exit_code == 2
    assert "error[E310]" in result.stderr
