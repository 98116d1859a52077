"""``eq why`` and ``eq score --like``, run as people run them."""

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
    """A run with a tie and a missing query, and its truth."""
    (folder / "run.trec").write_text(RUN)
    (folder / "own.qrels").write_text(QRELS)


def test_two_libraries_are_told_apart_convention_by_convention(eq) -> None:
    done = eq("why", "run.trec", "--qrels", "own.qrels", "--like", "mteb", "--like", "ranx", "-m", "MRR@10")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "MRR@10: mteb and ranx agree on 0.5000"  # and yet for different reasons
    rows = [line.split()[:-3] for line in lines if line.endswith(" 1") and line.startswith(("equal", "queries of"))]
    assert rows == [["equal", "scores"], ["queries", "of", "the", "qrels", "that", "the", "run", "misses"]]
    assert "    mteb: equal scores are ordered by document id, descending" in lines
    assert [line for line in lines if line.startswith("note: ")] != []
    assert "as called: ranx.evaluate(Qrels(qrels), Run(run), metric)" in " ".join(done.stdout.split())


def test_one_library_is_compared_with_equipoise(eq) -> None:
    done = eq("why", "run.trec", "--qrels", "own.qrels", "--like", "trec_eval", "-m", "MRR", "--json")
    (found,) = json.loads(done.stdout)["differences"]
    assert (found["one"]["name"], found["other"]["name"]) == ("trec_eval", "equipoise")
    assert found["one"]["value"] == 0.5
    assert found["other"]["value"] == pytest.approx((0.75 + 0.5) / 3)
    assert sum(change["share"] for change in found["changes"]) == pytest.approx(found["difference"])
    assert {unit["unit"]: unit["one"] for unit in found["units"]} == {"q3": None, "q1": 0.5}


def test_the_example_has_a_line_for_each_document(eq) -> None:
    done = eq("why", "run.trec", "--qrels", "own.qrels", "--like", "trec_eval", "-m", "MRR")
    after = done.stdout.split("For example q1: 0.5000 as trec_eval, 0.7500 as equipoise\n")[1]
    rows = [line.split() for line in after.splitlines()[2:4]]
    assert rows == [["b", "0.5", "0", "1", "1-2"], ["a", "0.5", "1", "2", "1-2"]]


def test_several_metrics_are_explained_one_after_another(eq) -> None:
    done = eq("why", "run.trec", "--qrels", "own.qrels", "--like", "ranx", "-m", "MRR", "-m", "HR@1", "-q")
    assert [line.split(":")[0] for line in done.stdout.splitlines() if " as ranx" in line] == ["MRR", "HR@1"]


def test_a_published_figure_is_traced_to_its_conventions(eq) -> None:
    done = eq("why", "run.trec", "--qrels", "own.qrels", "--published", "0.4167", "-m", "MRR", "--like", "ranx")
    assert done.exit_code == 0, done.stderr
    assert "- as equipoise scores (0.416667 over 3 queries)" in " ".join(done.stdout.split())
    assert "does not prove that it was used" in done.stdout


def test_a_published_figure_that_nothing_gives_fails(eq) -> None:
    done = eq("why", "run.trec", "--qrels", "own.qrels", "--published", "0.9", "-m", "MRR", "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["matches"] == []
    assert found["nearest"]["value"] < 0.9
    assert found["tried"] > found["figures"] > 1


def test_a_published_figure_is_explained_part_by_part(eq) -> None:
    words = [
        "why",
        "run.trec",
        "--qrels",
        "own.qrels",
        "--published",
        "0.4167",
        "-m",
        "MRR",
        "--like",
        "ranx",
    ]
    done = eq(*words)
    assert "From ranx to the first of these: 0.5000 as ranx, 0.4167 as equipoise" in done.stdout
    after = done.stdout.split("From ranx to the first")[1]
    assert "Where it happens" in after
    assert "relevant at rank 1-2, averaged over all orders of equal scores -> 0.7500" in after
    found = json.loads(eq(*words, "--json").stdout)["difference"]
    assert sum(change["share"] for change in found["changes"]) == pytest.approx(found["difference"])
    assert found["example"]["unit"] == "q1"


def test_without_a_match_the_way_to_the_nearest_is_explained(eq) -> None:
    done = eq("why", "run.trec", "--qrels", "own.qrels", "--published", "0.9", "-m", "MRR", "--like", "ranx")
    assert done.exit_code == 1
    assert "From ranx to the nearest: 0.5000 as ranx" in done.stdout


def test_a_preset_that_gives_the_figure_itself_needs_no_way(eq) -> None:
    words = ["why", "run.trec", "--qrels", "own.qrels", "--published", "0.4167", "-m", "MRR", "--json"]
    assert json.loads(eq(*words).stdout)["difference"] is None


def test_lists_that_are_too_short_for_a_library_are_named_as_the_cause(eq, folder: Path) -> None:
    (folder / "one.trec").write_text("q1 Q0 a 1 0.5 t\n")
    done = eq("why", "one.trec", "--qrels", "own.qrels", "--like", "sklearn")
    assert done.exit_code == 2
    assert "it needs lists of 2 items at least, and the longest here has 1" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "hint"),
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
def test_bad_input_gets_a_sentence_and_a_hint(eq, words: list[str], code: str, hint: str) -> None:
    done = eq("why", "run.trec", "--qrels", "own.qrels", *words)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert f"error[{code}]" in done.stderr
    assert hint in done.stderr


def test_a_run_of_other_queries_is_refused(eq, folder: Path) -> None:
    (folder / "other.qrels").write_text("7 0 a 1\n")
    done = eq("why", "run.trec", "--qrels", "other.qrels", "--like", "ranx")
    assert done.exit_code == 2
    assert "no query in common: q1 in the one, 7 in the other" in done.stderr


def test_scoring_as_a_library_says_so(eq) -> None:
    done = eq("score", "run.trec", "--qrels", "own.qrels", "--like", "trec_eval", "-m", "MRR")
    assert done.exit_code == 0, done.stderr
    assert "Scored as trec_eval as pytrec_eval-terrier 0.5.11 wraps it" in done.stdout
    assert "as called: trec_eval -m MEASURE qrels run" in done.stdout
    assert "- a query of the qrels that the run misses is left out of the mean" in done.stdout
    assert "Next: eq why run.trec --qrels own.qrels --like trec_eval -m MRR" in done.stdout
    quiet = eq("score", "run.trec", "--qrels", "own.qrels", "--like", "trec_eval", "-m", "MRR", "-q")
    assert "Scored as trec_eval" in quiet.stdout
    assert "left out of the mean" not in quiet.stdout


def test_scores_as_a_library_are_kept_with_its_name_and_not_compared_with_ours(eq, folder: Path) -> None:
    words = ["score", "--qrels", "own.qrels", "-m", "MRR", "-o", "results"]
    assert eq(*words, "theirs=run.trec", "--like", "ranx").exit_code == 0
    assert eq(*words, "ours=run.trec").exit_code == 0
    manifest = json.loads((folder / "results/theirs/manifest.json").read_text())
    assert manifest["settings"]["like"] == "ranx"
    done = eq("compare", "results/theirs", "results/ours")
    assert done.exit_code == 2
    assert "theirs was scored with ties=like ranx and ours with ties=expected" in done.stderr


def test_a_preset_and_a_tie_rule_exclude_each_other(eq) -> None:
    done = eq("score", "run.trec", "--qrels", "own.qrels", "--like", "ranx", "--ties", "by_id")
    assert done.exit_code == 2
    assert "error[E310]" in done.stderr
    assert "--ties by_id" in done.stderr


def test_logits_are_no_run_for_a_preset(eq, folder: Path) -> None:
    import numpy as np

    np.save(folder / "scores.npy", np.eye(3))
    np.save(folder / "y.npy", np.arange(3))
    done = eq("score", "scores.npy", "--targets", "y.npy", "--like", "ranx")
    assert done.exit_code == 2
    assert "error[E310]" in done.stderr
