"""``eq score``, run as people run it."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

SCORE = ("score", "good.trec", "--qrels", "truth.qrels")


def test_the_table_is_what_it_should_be(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = eq(*SCORE, "bad.trec", "-m", "HR@{1,3}", "--corpus-size", "5", "-q")
    assert done.exit_code == 0
    assert done.stdout == (
        "2 systems on 12 queries\n"
        "\n"
        "metric  system  estimate  95 % interval   n  undefined  chance\n"
        "──────────────────────────────────────────────────────────────\n"
        "HR@1    good        0.92   [0.65, 0.99]  12          0    0.20\n"
        "        bad         0.00   [0.00, 0.24]  12          0    0.20\n"
        "HR@3    good        1.00   [0.76, 1.00]  12          0    0.60\n"
        "        bad         0.33   [0.14, 0.61]  12          0    0.60\n"
    )
    assert done.stderr == ""


def test_without_metrics_the_usual_ones_are_scored(eq) -> None:
    found = json.loads(eq(*SCORE, "--json").stdout)["results"][0]["estimates"]
    assert "nDCG@10" in [each["metric"] for each in found]


def test_json_is_data_alone_and_has_no_nan(eq) -> None:
    done = eq(*SCORE, "--json", "-m", "MRR", "-m", "MR")
    result = json.loads(done.stdout, parse_constant=pytest.fail)["results"][0]
    assert result["system"] == "good"
    assert result["estimates"][0]["value"] == pytest.approx(11.5 / 12)
    assert result["estimates"][1]["unit"] == "rank"


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(eq) -> None:
    words = ("score", "middle.trec", "--qrels", "truth.qrels", "-m", "MRR", "--json")
    first, again, other = (eq(*words, "--seed", seed).stdout for seed in ("3", "3", "4"))
    assert first == again != other


def test_a_run_directory_is_left_for_each_system(eq, folder: Path) -> None:
    done = eq(*SCORE, "bad.trec", "-m", "MRR", "-o", "results")
    assert done.exit_code == 0
    assert "wrote results/good" in done.stderr
    assert "eq compare results/good results/bad --primary MRR" in done.stdout
    for name in ("good", "bad"):
        manifest = json.loads((folder / "results" / name / "manifest.json").read_text())
        assert manifest["status"] == "complete"
        assert manifest["command"][:2] == ["eq", "score"]
        assert set(manifest["datasets"]) == {"truth.qrels"}
        assert set(manifest["inputs"]) == {f"{name}.trec"}


def test_a_member_of_an_archive_is_fingerprinted_by_its_file(eq, folder: Path) -> None:
    np.savez(folder / "all.npz", dev=np.eye(3), test=np.eye(3))
    np.save(folder / "y.npy", np.arange(3))
    done = eq("score", "all.npz:dev", "--targets", "y.npy", "-m", "HR@1", "-o", "results")
    assert done.exit_code == 0
    manifest = json.loads((folder / "results" / "all-dev" / "manifest.json").read_text())
    assert manifest["inputs"]["all.npz:dev"]


def test_the_next_command_can_be_typed_as_it_stands(eq) -> None:
    printed = eq(*SCORE, "bad.trec", "-m", "MRR").stdout.splitlines()[-1]
    words = printed.removeprefix("Next: eq ").split()
    assert words[0] == "compare"
    assert eq(*words).exit_code == 0


def test_a_name_of_ones_own_goes_before_the_path(eq) -> None:
    done = eq("score", "ours=good.trec", "--qrels", "truth.qrels", "-m", "MRR", "--json")
    assert json.loads(done.stdout)["results"][0]["system"] == "ours"


def test_standard_input_is_a_run_too(eq, folder: Path) -> None:
    text = (folder / "good.trec").read_bytes()
    done = eq("score", "-", "--qrels", "truth.qrels", "-m", "MRR", "--json", input=text)
    assert json.loads(done.stdout)["results"][0]["system"] == "stdin"


def test_a_metric_of_ones_own_is_scored_like_the_others(eq, folder: Path) -> None:
    (folder / "mine.py").write_text(
        "from equipoise import BaseMetric\n"
        "class FirstHit(BaseMetric):\n"
        "    'Whether the first is right.'\n"
        "    def __init__(self):\n"
        "        super().__init__(name='first_hit', bounds=(0.0, 1.0))\n"
        "    def calculate(self, results):\n"
        "        return (results.best_ranks == 1).astype(float)\n"
    )
    done = eq(*SCORE, "--plugin", "mine.py", "-m", "first_hit", "-m", "HR@1", "--json")
    own, built_in = json.loads(done.stdout)["results"][0]["estimates"]
    assert own["value"] == built_in["value"]
    assert own["interval"] == built_in["interval"]
    assert "first_hit" in eq("ls", "metrics", "--plugin", "mine.py").stdout


def test_findings_can_be_a_gate(eq) -> None:
    words = ("score", "bad.trec", "--qrels", "truth.qrels", "-m", "HR@1", "--corpus-size", "5")
    assert eq(*words).exit_code == 0
    assert "! issue EQ302" in eq(*words).stdout
    for quiet in ((), ("-q",)):
        done = eq(*words, "--fail-on", "issue", *quiet)
        assert done.exit_code == 1
        assert done.stderr.startswith("--fail-on issue: EQ302 bad: HR@1 is 0")
    assert eq(*words, "--fail-on", "issue", "--json").stderr == ""


@pytest.fixture
def logits(folder: Path) -> None:
    """Two rows right, one wrong, column 0 padding."""
    scores = np.array([[9.0, 3, 1, 0], [9, 1, 3, 0], [9, 3, 1, 0]])
    np.save(folder / "scores.npy", scores)
    np.save(folder / "y.npy", np.array([1, 2, 2]))


@pytest.mark.usefixtures("logits")
def test_logits_are_scored_without_their_padding(eq) -> None:
    words = ("score", "scores.npy", "--targets", "y.npy", "-m", "Acc@{1,2}", "--json")
    padded = json.loads(eq(*words, "--padding", "0").stdout)["results"][0]["estimates"]
    assert [each["value"] for each in padded] == pytest.approx([2 / 3, 1.0])
    assert [each["chance"] for each in padded] == pytest.approx([1 / 3, 2 / 3])
    unpadded = json.loads(eq(*words).stdout)["results"][0]["estimates"]
    assert unpadded[0]["value"] == 0.0


@pytest.mark.usefixtures("logits")
def test_metrics_of_classes_are_scored_on_the_top_class(eq) -> None:
    words = ("score", "scores.npy", "--targets", "y.npy", "--padding", "0", "--json")
    done = eq(*words, "-m", "F1(average=micro)")
    assert json.loads(done.stdout)["results"][0]["estimates"][0]["value"] == pytest.approx(2 / 3)


@pytest.mark.usefixtures("logits")
def test_classes_and_ranks_are_not_mixed(eq) -> None:
    done = eq("score", "scores.npy", "--targets", "y.npy", "-m", "F1", "-m", "MRR")
    assert done.exit_code == 2
    assert "error[E310]" in done.stderr
    assert "one with -m F1, one with -m MRR" in done.stderr


def test_clusters_widen_what_is_claimed(eq, folder: Path) -> None:
    rows = "".join(f"q{unit:02},{'one' if unit < 6 else unit}\n" for unit in range(12))
    (folder / "units.csv").write_text(f"query_id,group\n{rows}")
    words = ("score", "middle.trec", "--qrels", "truth.qrels", "-m", "MRR", "--json")
    by_table = json.loads(eq(*words, "--cluster", "units.csv:group").stdout)["results"][0]
    assert by_table["clusters"] == 7
    by_name = json.loads(eq(*words, "--cluster-by", "^q(.)").stdout)["results"][0]
    assert by_name["clusters"] == 2
    printed = eq(*words[:-1], "--cluster-by", "^q(.)").stdout
    assert printed.startswith("middle on 12 queries in 2 clusters\n")


def test_untagged_lines_are_accepted_when_a_tag_is_named(eq, folder: Path) -> None:
    text = (folder / "good.trec").read_text().replace(" tag", "")
    (folder / "untagged.trec").write_text(text)
    words = ("score", "untagged.trec", "--qrels", "truth.qrels", "-m", "MRR")
    refused = eq(*words)
    assert refused.exit_code == 2
    assert "--run-tag" in refused.stderr
    assert eq(*words, "--run-tag", "mine").exit_code == 0


def test_ties_are_treated_as_asked(eq, folder: Path) -> None:
    (folder / "flat.trec").write_text("q1 Q0 a 1 0.5 t\nq1 Q0 b 2 0.5 t\n")
    (folder / "one.qrels").write_text("q1 0 a 1\n")
    values = {}
    for ties in ("expected", "by_id", "optimistic", "pessimistic"):
        words = (
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
        values[ties] = json.loads(eq(*words).stdout)["results"][0]["estimates"][0]["value"]
    assert values == {"expected": 0.5, "by_id": 0.0, "optimistic": 1.0, "pessimistic": 0.0}


def test_one_unit_is_not_called_units(eq, folder: Path) -> None:
    (folder / "one.qrels").write_text("q00 0 d1 1\n")
    printed = eq("score", "good.trec", "--qrels", "one.qrels", "-m", "MRR").stdout
    assert printed.startswith("good on 1 query\n")


def test_without_the_size_of_the_corpus_chance_is_a_bound(eq, folder: Path) -> None:
    (folder / "short.trec").write_text("q00 Q0 d2 1 0.5 t\n")
    words = ("score", "short.trec", "--qrels", "truth.qrels", "-m", "HR@1")
    printed = eq(*words).stdout
    assert re.search(r"^HR@1 .* <= 0\.\d+$", printed, re.MULTILINE)
    assert printed.count("only a bound") == 1
    known = eq(*words, "--corpus-size", "5").stdout
    assert "<=" not in known


@pytest.fixture
def labelled(folder: Path) -> None:
    """Logits and their targets in one file of each kind, and apart."""
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


def figures(done) -> list[float]:
    assert done.exit_code == 0, done.output
    return [each["value"] for each in json.loads(done.stdout)["results"][0]["estimates"]]


@pytest.mark.usefixtures("labelled")
@pytest.mark.parametrize("words", [("big.npz",), ("big.safetensors",), ("named.npz:scores",), ("big.npz:logits",)])
def test_targets_come_from_the_file_of_the_logits(eq, words: tuple[str, ...]) -> None:
    if words == ("big.safetensors",):
        pytest.importorskip("safetensors")
    asked = ("-m", "MRR", "-m", "HR@1", "--json")
    apart = figures(eq("score", "l.npy", "--targets", "y.npy", *asked))
    assert figures(eq("score", *words, *asked)) == apart


@pytest.mark.usefixtures("labelled")
def test_targets_that_are_named_go_before_those_of_the_file(eq, folder: Path) -> None:
    np.save(folder / "best.npy", np.load("l.npy").argmax(axis=1))
    words = ("score", "big.npz", "--targets", "best.npy", "-m", "HR@1", "--json")
    assert figures(eq(*words)) == [1.0]


@pytest.mark.usefixtures("labelled")
def test_logits_without_targets_say_where_targets_may_lie(eq) -> None:
    done = eq("score", "bare.npz")
    assert done.exit_code == 2
    assert "error[E310]" in done.stderr
    assert "bare.npz" in done.stderr
    assert "--targets y.npy" in done.stderr


@pytest.mark.usefixtures("labelled")
@pytest.mark.parametrize("name", ["bogus", "", "meta"])
def test_an_unknown_device_gets_the_names_of_devices(eq, name: str) -> None:
    done = eq("score", "big.npz", "--device", name)
    assert done.exit_code == 2
    assert f"no device is called {name!r}" in done.stderr
    assert "write cuda, cuda:1, mps or cpu" in done.stderr


@pytest.mark.engines("torch")
@pytest.mark.usefixtures("labelled")
def test_a_device_that_is_not_there_is_no_fault_of_the_file(eq) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() > 99:
        pytest.skip("there are that many devices")
    done = eq("score", "big.npz", "--device", "cuda:99")
    assert done.exit_code == 4
    assert "error[E600]: there is no device cuda:99" in done.stderr
    assert "big.npz" not in done.stderr


def test_the_help_shows_how_logits_are_counted_on_a_device(eq) -> None:
    examples = [line.strip() for line in eq("score", "--help").stdout.splitlines() if "  eq score" in line]
    assert len(examples) == 2
    assert any("--device cuda" in line for line in examples)
    assert max(map(len, examples)) <= 100


def test_a_run_whose_queries_are_in_several_places_gives_the_same_output(eq, folder: Path) -> None:
    lines = (folder / "middle.trec").read_text().splitlines(keepends=True)
    words = (
        "score",
        "--qrels",
        "truth.qrels",
        "--json",
    )
    whole = eq(*words, "middle.trec")
    (folder / "other").mkdir()
    (folder / "other" / "middle.trec").write_text("".join([*lines[1::2], *lines[::2]]))
    scattered = eq(*words, "other/middle.trec")
    assert whole.exit_code == scattered.exit_code == 0
    assert whole.stdout == scattered.stdout


def test_a_document_twice_in_a_streamed_run_is_named_with_both_lines(eq, folder: Path) -> None:
    (folder / "twice.trec").write_text("q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.8 t\nq1 Q0 a 3 0.7 t\n")
    done = eq("score", "twice.trec", "--qrels", "truth.qrels")
    assert done.exit_code == 2
    assert "lines 1 and 3" in done.stderr


@pytest.mark.slow
@pytest.mark.engines("tensorboard")
def test_scores_are_logged_to_a_tracker(eq, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORBOARD_LOGDIR", str(folder / "logs"))
    words = ("good.trec", "bad.trec", "--qrels", "truth.qrels", "-m", "MRR", "--log", "tensorboard")
    assert eq("score", *words).exit_code == 0
    assert eq("compare", *words).exit_code == 0
    assert sorted(path.name for path in (folder / "logs").iterdir()) == ["bad", "compare_good_bad", "good"]


def test_a_metric_without_its_option_is_not_taken_for_a_file(eq) -> None:
    ended = eq("score", "good.trec", "--qrels", "truth.qrels", "-m", "MRR", "AP(rel=2)@10", "--json")
    assert ended.exit_code == 2
    assert json.loads(ended.stderr)["error"]["code"] == "E310"
