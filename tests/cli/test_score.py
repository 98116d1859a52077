"""``eq score`` from the command line."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

SCORE = ("score", "good.trec", "--qrels", "truth.qrels")


def test_the_table_has_estimates_intervals_and_chance_levels(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = eq(*SCORE, "bad.trec", "-m", "HR@{1,3}", "--corpus-size", "5", "-q")
    assert result.exit_code == 0
    assert result.stdout == (
        "2 systems on 12 queries\n"
        "\n"
        "metric  system  estimate  95 % interval   n  undefined  chance\n"
        "──────────────────────────────────────────────────────────────\n"
        "HR@1    good        0.92   [0.65, 0.99]  12          0    0.20\n"
        "        bad         0.00   [0.00, 0.24]  12          0    0.20\n"
        "HR@3    good        1.00   [0.76, 1.00]  12          0    0.60\n"
        "        bad         0.33   [0.14, 0.61]  12          0    0.60\n"
    )
    assert result.stderr == ""


def test_metrics_that_a_replaced_run_loses_are_noted(eq) -> None:
    arguments = (*SCORE, "-o", "results")
    assert "is replaced" not in eq(*arguments, "-m", "HR@1", "-m", "MRR").stderr
    assert "is replaced" not in eq(*arguments, "-m", "HR@1", "-m", "MRR").stderr
    assert "the run of good in results is replaced and no longer has HR@1;" in eq(*arguments, "-m", "MRR").stderr


def test_a_run_with_other_ground_truth_is_not_replaced(eq, assert_error, folder: Path) -> None:
    arguments = ("score", "good.trec", "-m", "MRR", "-o", "results", "--qrels")
    assert eq(*arguments, "truth.qrels").exit_code == 0
    (folder / "other.qrels").write_text((folder / "truth.qrels").read_text().replace("q00", "q99"))
    assert_error(eq(*arguments, "other.qrels"), "E500", "truth.qrels")
    assert eq(*arguments, "truth.qrels").exit_code == 0


def test_runs_are_not_written_into_the_folder_of_an_experiment(eq, assert_error, folder: Path) -> None:
    (folder / "fair" / "runs").mkdir(parents=True)
    (folder / "fair" / "results.json").write_text("{}")
    assert_error(eq("score", "good.trec", "--qrels", "truth.qrels", "-o", "fair"), "E500", "choose another folder")
    assert not (folder / "fair" / "good").exists()


def test_default_metrics_are_scored(eq) -> None:
    estimates = json.loads(eq(*SCORE, "--json").stdout)["results"][0]["estimates"]
    assert "nDCG@10" in [estimate["metric"] for estimate in estimates]


def test_json_output_has_no_nan(eq) -> None:
    command_result = eq(*SCORE, "--json", "-m", "MRR", "-m", "MR")
    result = json.loads(command_result.stdout, parse_constant=pytest.fail)["results"][0]
    assert result["system"] == "good"
    assert result["estimates"][0]["value"] == pytest.approx(11.5 / 12)
    assert result["estimates"][1]["unit"] == "rank"


def test_the_output_depends_on_the_seed(eq) -> None:
    arguments = ("score", "middle.trec", "--qrels", "truth.qrels", "-m", "MRR", "--json")
    first, repeated, other_seed = (eq(*arguments, "--seed", seed).stdout for seed in ("3", "3", "4"))
    assert first == repeated != other_seed


def test_a_run_directory_is_written_per_system(eq, folder: Path) -> None:
    result = eq(*SCORE, "bad.trec", "-m", "MRR", "-o", "results")
    assert result.exit_code == 0
    assert "wrote results/good" in result.stderr
    assert "eq compare results/good results/bad --primary MRR" in result.stdout
    for name in ("good", "bad"):
        manifest = json.loads((folder / "results" / name / "manifest.json").read_text())
        assert manifest["status"] == "complete"
        assert manifest["command"][:2] == ["eq", "score"]
        assert set(manifest["datasets"]) == {"truth.qrels"}
        assert set(manifest["inputs"]) == {f"{name}.trec"}


def test_a_member_of_an_archive_is_fingerprinted_by_its_file(eq, folder: Path) -> None:
    np.savez(folder / "all.npz", dev=np.eye(3), test=np.eye(3))
    np.save(folder / "y.npy", np.arange(3))
    result = eq("score", "all.npz:dev", "--targets", "y.npy", "-m", "HR@1", "-o", "results")
    assert result.exit_code == 0
    manifest = json.loads((folder / "results" / "all-dev" / "manifest.json").read_text())
    assert manifest["inputs"]["all.npz:dev"]


def test_the_suggested_next_command_works(eq) -> None:
    printed = eq(*SCORE, "bad.trec", "-m", "MRR").stdout.splitlines()[-1]
    arguments = printed.removeprefix("Next: eq ").split()
    assert arguments[0] == "compare"
    assert eq(*arguments).exit_code == 0


def test_a_prefix_renames_the_system(eq) -> None:
    result = eq("score", "renamed=good.trec", "--qrels", "truth.qrels", "-m", "MRR", "--json")
    assert json.loads(result.stdout)["results"][0]["system"] == "renamed"


def test_a_run_is_read_from_standard_input(eq, folder: Path) -> None:
    text = (folder / "good.trec").read_bytes()
    result = eq("score", "-", "--qrels", "truth.qrels", "-m", "MRR", "--json", input=text)
    assert json.loads(result.stdout)["results"][0]["system"] == "stdin"


def test_a_metric_of_a_plugin_is_scored_like_the_built_in_one(eq, folder: Path) -> None:
    (folder / "plugin.py").write_text(
        "from equipoise import BaseMetric\n"
        "class FirstHit(BaseMetric):\n"
        "    'Whether the first is right.'\n"
        "    def __init__(self):\n"
        "        super().__init__(name='first_hit', bounds=(0.0, 1.0))\n"
        "    def calculate(self, results):\n"
        "        return (results.best_ranks == 1).astype(float)\n"
    )
    result = eq(*SCORE, "--plugin", "plugin.py", "-m", "first_hit", "-m", "HR@1", "--json")
    plugin_estimate, built_in_estimate = json.loads(result.stdout)["results"][0]["estimates"]
    assert plugin_estimate["value"] == built_in_estimate["value"]
    assert plugin_estimate["interval"] == built_in_estimate["interval"]
    assert "first_hit" in eq("ls", "metrics", "--plugin", "plugin.py").stdout


def test_findings_can_fail_the_command(eq) -> None:
    arguments = ("score", "bad.trec", "--qrels", "truth.qrels", "-m", "HR@1", "--corpus-size", "5")
    assert eq(*arguments).exit_code == 0
    assert "! issue EQ302" in eq(*arguments).stdout
    for quiet in ((), ("-q",)):
        result = eq(*arguments, "--fail-on", "issue", *quiet)
        assert result.exit_code == 1
        assert result.stderr.startswith("--fail-on issue: EQ302 bad: HR@1 0.00")
    assert eq(*arguments, "--fail-on", "issue", "--json").stderr == ""


@pytest.fixture
def logits(folder: Path) -> None:
    """Logits with two correct rows and one incorrect row; column 0 is padding."""
    scores = np.array([[9.0, 3, 1, 0], [9, 1, 3, 0], [9, 3, 1, 0]])
    np.save(folder / "scores.npy", scores)
    np.save(folder / "y.npy", np.array([1, 2, 2]))


@pytest.mark.usefixtures("logits")
def test_logits_are_scored_without_their_padding(eq) -> None:
    arguments = ("score", "scores.npy", "--targets", "y.npy", "-m", "Acc@{1,2}", "--json")
    padded = json.loads(eq(*arguments, "--padding", "0").stdout)["results"][0]["estimates"]
    assert [estimate["value"] for estimate in padded] == pytest.approx([2 / 3, 1.0])
    assert [estimate["chance"] for estimate in padded] == pytest.approx([1 / 3, 2 / 3])
    unpadded = json.loads(eq(*arguments).stdout)["results"][0]["estimates"]
    assert unpadded[0]["value"] == 0.0


@pytest.mark.usefixtures("logits")
def test_metrics_of_classes_are_scored_on_the_top_class(eq) -> None:
    arguments = ("score", "scores.npy", "--targets", "y.npy", "--padding", "0", "--json")
    result = eq(*arguments, "-m", "F1(average=micro)")
    assert json.loads(result.stdout)["results"][0]["estimates"][0]["value"] == pytest.approx(2 / 3)


@pytest.mark.usefixtures("logits")
def test_classes_and_ranks_are_not_mixed(eq) -> None:
    result = eq("score", "scores.npy", "--targets", "y.npy", "-m", "F1", "-m", "MRR")
    assert result.exit_code == 2
    assert "error[E310]" in result.stderr
    assert "one with -m F1, one with -m MRR" in result.stderr


def test_clusters_are_read_from_tables_and_ids(eq, folder: Path) -> None:
    rows = "".join(f"q{unit:02},{'one' if unit < 6 else unit}\n" for unit in range(12))
    (folder / "units.csv").write_text(f"query_id,group\n{rows}")
    arguments = ("score", "middle.trec", "--qrels", "truth.qrels", "-m", "MRR", "--json")
    by_table = json.loads(eq(*arguments, "--cluster", "units.csv:group").stdout)["results"][0]
    assert by_table["clusters"] == 7
    by_name = json.loads(eq(*arguments, "--cluster-by", "^q(.)").stdout)["results"][0]
    assert by_name["clusters"] == 2
    printed = eq(*arguments[:-1], "--cluster-by", "^q(.)").stdout
    assert printed.startswith("middle on 12 queries in 2 clusters\n")


def test_untagged_lines_are_accepted_with_a_run_tag(eq, folder: Path) -> None:
    text = (folder / "good.trec").read_text().replace(" tag", "")
    (folder / "untagged.trec").write_text(text)
    arguments = ("score", "untagged.trec", "--qrels", "truth.qrels", "-m", "MRR")
    without_tag = eq(*arguments)
    assert without_tag.exit_code == 2
    assert "--run-tag" in without_tag.stderr
    assert eq(*arguments, "--run-tag", "baseline").exit_code == 0


def test_ties_are_treated_as_requested(eq, folder: Path) -> None:
    (folder / "flat.trec").write_text("q1 Q0 a 1 0.5 t\nq1 Q0 b 2 0.5 t\n")
    (folder / "one.qrels").write_text("q1 0 a 1\n")
    values = {}
    for ties in ("expected", "by_id", "optimistic", "pessimistic"):
        arguments = (
            "score",
            "flat.trec",
            "--qrels",
            "one.qrels",
            "-m",
            "HR@1",
            "--ties",
            ties,
            "--json",
        )
        values[ties] = json.loads(eq(*arguments).stdout)["results"][0]["estimates"][0]["value"]
    assert values == {"expected": 0.5, "by_id": 0.0, "optimistic": 1.0, "pessimistic": 0.0}


def test_one_unit_is_singular(eq, folder: Path) -> None:
    (folder / "one.qrels").write_text("q00 0 d1 1\n")
    printed = eq("score", "good.trec", "--qrels", "one.qrels", "-m", "MRR").stdout
    assert printed.startswith("good on 1 query\n")


def test_without_a_corpus_size_the_chance_level_is_a_bound(eq, folder: Path) -> None:
    (folder / "short.trec").write_text("q00 Q0 d2 1 0.5 t\n")
    arguments = ("score", "short.trec", "--qrels", "truth.qrels", "-m", "HR@1")
    printed = eq(*arguments).stdout
    assert re.search(r"^HR@1 .* <= 0\.\d+$", printed, re.MULTILINE)
    assert printed.count("only a bound") == 1
    with_size = eq(*arguments, "--corpus-size", "5").stdout
    assert "<=" not in with_size


@pytest.fixture
def labelled(folder: Path) -> None:
    """Logits and targets in one file per format, and in separate files."""
    rng = np.random.default_rng(0)
    logits, targets = rng.normal(size=(40, 7)).astype(np.float32), rng.integers(0, 7, 40)
    np.save(folder / "l.npy", logits)
    np.save(folder / "y.npy", targets)
    np.savez(folder / "big.npz", logits=logits, targets=targets)
    np.savez(folder / "named.npz", scores=logits, targets=targets)
    np.savez(folder / "bare.npz", logits=logits)
    if find_spec("safetensors"):
        from safetensors.numpy import save_file

        save_file({"logits": logits, "targets": targets}, folder / "big.safetensors")


def parse_values(result) -> list[float]:
    assert result.exit_code == 0, result.output
    return [estimate["value"] for estimate in json.loads(result.stdout)["results"][0]["estimates"]]


@pytest.mark.usefixtures("labelled")
@pytest.mark.parametrize("arguments", [("big.npz",), ("big.safetensors",), ("named.npz:scores",), ("big.npz:logits",)])
def test_targets_are_read_from_the_file_of_the_logits(eq, arguments: tuple[str, ...]) -> None:
    if arguments == ("big.safetensors",):
        pytest.importorskip("safetensors")
    options = ("-m", "MRR", "-m", "HR@1", "--json")
    expected = parse_values(eq("score", "l.npy", "--targets", "y.npy", *options))
    assert parse_values(eq("score", *arguments, *options)) == expected


@pytest.mark.usefixtures("labelled")
def test_explicit_targets_override_those_of_the_file(eq, folder: Path) -> None:
    np.save(folder / "best.npy", np.load("l.npy").argmax(axis=1))
    arguments = ("score", "big.npz", "--targets", "best.npy", "-m", "HR@1", "--json")
    assert parse_values(eq(*arguments)) == [1.0]


@pytest.mark.usefixtures("labelled")
def test_logits_without_targets_are_an_error_with_a_hint(eq) -> None:
    result = eq("score", "bare.npz")
    assert result.exit_code == 2
    assert "error[E310]" in result.stderr
    assert "bare.npz" in result.stderr
    assert "--targets y.npy" in result.stderr


@pytest.mark.usefixtures("labelled")
@pytest.mark.parametrize("name", ["bogus", "", "meta"])
def test_an_unknown_device_is_an_error_with_the_valid_names(eq, name: str) -> None:
    result = eq("score", "big.npz", "--device", name)
    assert result.exit_code == 2
    assert f"no device is called {name!r}" in result.stderr
    assert "write cuda, cuda:1, mps or cpu" in result.stderr


@pytest.mark.engines("torch")
@pytest.mark.usefixtures("labelled")
def test_a_missing_device_is_an_error_without_the_file_name(eq) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() > 99:
        pytest.skip("there are that many devices")
    result = eq("score", "big.npz", "--device", "cuda:99")
    assert result.exit_code == 4
    assert "error[E600]: there is no device cuda:99" in result.stderr
    assert "big.npz" not in result.stderr


def test_the_help_shows_how_logits_are_counted_on_a_device(eq) -> None:
    examples = [line.strip() for line in eq("score", "--help").stdout.splitlines() if "  eq score" in line]
    assert len(examples) == 2
    assert any("--device cuda" in line for line in examples)
    assert max(map(len, examples)) <= 100


def test_scattered_queries_give_the_same_output(eq, folder: Path) -> None:
    lines = (folder / "middle.trec").read_text().splitlines(keepends=True)
    arguments = (
        "score",
        "--qrels",
        "truth.qrels",
        "--json",
    )
    contiguous = eq(*arguments, "middle.trec")
    (folder / "other").mkdir()
    (folder / "other" / "middle.trec").write_text("".join([*lines[1::2], *lines[::2]]))
    scattered = eq(*arguments, "other/middle.trec")
    assert contiguous.exit_code == scattered.exit_code == 0
    assert contiguous.stdout == scattered.stdout


def test_a_duplicate_document_in_a_streamed_run_is_reported_with_both_lines(eq, folder: Path) -> None:
    (folder / "twice.trec").write_text("q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.8 t\nq1 Q0 a 3 0.7 t\n")
    result = eq("score", "twice.trec", "--qrels", "truth.qrels")
    assert result.exit_code == 2
    assert "lines 1 and 3" in result.stderr


@pytest.mark.slow
@pytest.mark.engines("tensorboard")
def test_scores_are_logged_to_a_tracker(eq, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORBOARD_LOGDIR", str(folder / "logs"))
    arguments = ("good.trec", "bad.trec", "--qrels", "truth.qrels", "-m", "MRR", "--log", "tensorboard")
    assert eq("score", *arguments).exit_code == 0
    assert eq("compare", *arguments).exit_code == 0
    assert sorted(path.name for path in (folder / "logs").iterdir()) == ["bad", "compare_good_bad", "good"]


def test_a_metric_without_its_option_is_not_read_as_a_file(eq) -> None:
    result = eq("score", "good.trec", "--qrels", "truth.qrels", "-m", "MRR", "AP(rel=2)@10", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stderr)["error"]["code"] == "E310"


def test_similar_findings_about_several_systems_are_one_line(eq, folder: Path) -> None:
    for name, depth in (("a", 2), ("b", 3), ("c", 4)):
        rows = [f"q{query} Q0 d{rank + query} {rank} {9 - rank}" for query in range(6) for rank in range(depth)]
        (folder / f"{name}.trec").write_text("".join(f"{row} x\n" for row in rows))
    (folder / "deep.qrels").write_text("".join(f"q{query} 0 d{n} 1\n" for query in range(6) for n in (query, 50)))
    systems = ("a.trec", "b.trec", "c.trec", "--qrels", "deep.qrels", "-m", "R@3")
    collapsed = eq("score", *systems).stdout
    assert collapsed.count("EQ110") == 1
    assert "EQ110  the number of candidates is unknown (a, b, c)" in collapsed
    assert eq("score", *systems, "-v").stdout.count("relevant items were not retrieved") == 3


@pytest.mark.usefixtures("logits")
def test_rows_of_logits_are_examples(eq) -> None:
    arguments = ("scores.npy", "--targets", "y.npy", "-m", "Acc@1")
    assert " examples" in eq("score", *arguments, "-o", "rows").stdout
    compared = eq("compare", "one=scores.npy", "two=scores.npy", "--targets", "y.npy", "-m", "Acc@1").stdout
    assert " examples" in compared
    assert "quer" not in compared
    again = eq("compare", "one=rows/scores", "two=rows/scores", "-m", "MRR").stdout
    assert " examples" in again
