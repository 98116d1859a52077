"""``eq places score`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from equipoise.cli.main import COMMANDS, CommandEntry
from equipoise.runs.run_folder import load_run

ROWS, CLASSES = 60, 14
SCORE = ("places", "score", "--logits", "logits.npy", "--targets", "y.npy", "--name", "lstm")


@pytest.fixture(autouse=True)
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits that are correct for half of the rows, users, hours and training counts."""
    monkeypatch.setitem(COMMANDS, "places", CommandEntry("equipoise.domains.places.cli:places", "Next places."))
    rng = np.random.default_rng(0)
    targets = rng.integers(2, CLASSES, ROWS)
    logits = rng.normal(size=(ROWS, CLASSES)).astype(np.float32)
    logits[np.arange(0, ROWS, 2), targets[::2]] += 9
    np.save(folder / "logits.npy", logits)
    np.save(folder / "y.npy", targets)
    np.save(folder / "user.npy", np.array([f"u{row % 6}" for row in range(ROWS)]))
    np.save(folder / "counts.npy", np.r_[0, 0, 0, np.arange(1, CLASSES - 2)])
    (folder / "units.csv").write_text("hour\n" + "".join(f"{row % 24}\n" for row in range(ROWS)))
    visits = [(f"u{row % 6}", place) for row, place in enumerate(rng.integers(3, CLASSES, 80))]
    (folder / "visits.csv").write_text("user,place\n" + "".join(f"{u},{p}\n" for u, p in visits))


def test_the_table_is_in_percent(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = eq(*SCORE, "--padding", "0", "--train-counts", "counts.npy", "-q", "--ks", "1", "10")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.split("\n\n")[1].splitlines()
    assert lines[0].split() == ["metric", "estimate", "95", "%", "interval", "random", "majority", "n"]
    first = lines[2].split()
    assert first[0] == "Acc@1"
    assert 40 < float(first[1]) < 70
    assert first[4] == "7.7"
    arguments = (*SCORE, "--padding", "0", "--train-counts", "counts.npy", "--ks", "1", "10")
    assert eq(*arguments).stdout.startswith("lstm: Acc@1 ")
    assert " visits whose target occurs in training" in eq(*arguments, "-v").stdout


def test_counts_users_slices_and_history_are_used(eq) -> None:
    result = eq(
        *SCORE, "--train-counts", "counts.npy", "--user", "user.npy", "--slice", "hour=units.csv:hour",
        "--history", "visits.csv", "--n-resamples", "100", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    assert set(content["baselines"]) == {"random", "majority", "user"}
    assert content["all"]["clusters"] == 6
    assert content["by_user"]["units"] == 6
    assert {entry["name"] for entry in content["slices"]} == {
        "hour",
        "training visits of the target",
        "target in training",
    }
    assert content["percent"]["Acc@1"] == pytest.approx(100 * content["all"]["estimates"][0]["value"])
    assert content["all"]["estimates"][0]["unit"] == "fraction"


def test_verbose_reports_ties_users_and_slices(eq) -> None:
    result = eq(*SCORE, "--user", "user.npy", "--slice", "hour=units.csv:hour", "--n-resamples", "100", "-v")
    assert "Ties: no target shares its score" in result.stdout
    assert "Mean over users: 6 users (percent)" in result.stdout
    assert "Lowest Acc@1: u" in result.stdout
    assert "Acc@1 by slice (percent)" in result.stdout
    assert "visits of the same user (6 users)" in result.stdout
    assert "Few visits: the score is not reliable" in result.stdout


def test_run_directories_are_written_for_all_and_for_answerable_units(eq, folder: Path) -> None:
    result = eq(*SCORE, "--train-counts", "counts.npy", "--user", "user.npy", "--n-resamples", "100", "-o", "results")
    assert result.exit_code == 0, result.stderr
    run = load_run(folder / "results" / "lstm")
    assert run.result["Acc@1"].n == ROWS
    assert run.result.estimates["F1(average=macro)"].value > 0
    assert set(run.manifest.datasets) == {"y.npy"}
    assert set(run.manifest.inputs) == {"logits.npy"}
    assert run.details[0].slices["user"] == "u0"
    answerable = load_run(folder / "results" / "lstm-answerable")
    assert answerable.result["Acc@1"].n == int((np.load(folder / "y.npy") != 2).sum())
    assert eq(*result.stdout.splitlines()[-1].removeprefix("Next: eq ").split()).exit_code == 0
    assert eq("report", "results", "-o", "page.html", "--no-charts").exit_code == 0
    page = (folder / "page.html").read_text()
    assert "60 visits" in page
    assert 'href="page-all-visits.html"' in page
    assert (folder / "page-visits-with-known-targets.html").is_file()


def test_the_page_has_the_values_and_names_of_the_terminal(eq, folder: Path) -> None:
    arguments = (*SCORE, "--train-counts", "counts.npy", "--n-resamples", "100")
    terminal = eq(*arguments, "-o", "results").stdout
    result = eq("report", "results", "-o", "page.html")
    assert result.exit_code == 0, result.stderr
    page = (folder / "page.html").read_text()
    assert result.stdout.strip() in terminal
    assert "HR@" not in page
    assert "HR@" not in terminal
    for line in terminal.splitlines()[4:12]:
        for cell in line.split("  "):
            assert cell.strip() in page
    for name in ("Accuracy over k", "Ranks of the target place", "Reliability of lstm", "Confusion matrix of lstm"):
        assert name in page


def test_the_page_has_distances_and_a_map(eq, folder: Path) -> None:
    np.save(folder / "points.npy", np.random.default_rng(2).uniform(47.0, 47.2, (CLASSES, 2)))
    arguments = (*SCORE, "--user", "user.npy", "--coordinates", "points.npy", "--n-resamples", "100")
    terminal = eq(*arguments, "-o", "results", "-v").stdout
    assert eq("report", "results", "-o", "page.html").exit_code == 0
    page = (folder / "page.html").read_text()
    rows = [line for line in terminal.splitlines() if "distance (km)" in line or "within" in line.split()[:1]]
    assert len(rows) == 4
    assert all(cell.strip() in page for row in rows for cell in row.split("  "))
    assert "Distance error of lstm by true place" in page
    all_visits_page = (folder / "page-all-visits.html").read_text()
    assert "n/a (one user)" in all_visits_page
    assert "one cluster" not in all_visits_page


def test_a_report_of_several_models_and_seeds_compares_the_models(eq, folder: Path) -> None:
    logits = np.load(folder / "logits.npy")
    for model, noise in (("lstm", 0.5), ("gru", 9.0)):
        for seed in (1, 2):
            seed_folder = folder / model / f"seed{seed}"
            seed_folder.mkdir(parents=True)
            np.save(seed_folder / "logits.npy", logits + np.random.default_rng(seed).normal(0, noise, logits.shape))
            result = eq("places", "score", "--logits", f"{model}/seed{seed}/logits.npy", "--targets", "y.npy",
                      "--train-counts", "counts.npy", "--n-resamples", "100", "-o", "results")  # fmt: skip
            assert result.exit_code == 0, result.stderr
    content = json.loads(eq("report", "results", "-o", "page.html", "--no-charts", "--json").stdout)
    assert set(content["systems"]) == {"lstm-seed1", "lstm-seed2", "gru-seed1", "gru-seed2"}
    page = (folder / "page.html").read_text()
    assert "Seeds and users" in page
    assert content["verdict"].startswith("lstm is the best of 2 models on 60 visits")
    all_visits_page = (folder / "page-all-visits.html").read_text()
    assert "HR@" not in all_visits_page.partition('id="protocol"')[0]
    assert "Acc@1 (%)" in all_visits_page
    assert content["verdict"] in page
    assert all(f"{name}: Acc@1" in page for name in content["systems"])
    single = eq("report", "renamed=results/lstm-seed1", "-o", "one.html", "--no-charts")
    assert single.exit_code == 0, single.stderr


def test_a_report_of_several_data_sets_compares_within_each(eq, folder: Path) -> None:
    logits, targets = np.load("logits.npy"), np.load("y.npy")
    np.save("half.npy", logits[:30])
    np.save("y-half.npy", targets[:30])
    for name, files in (
        ("lstm", ("logits.npy", "y.npy")),
        ("gru", ("logits.npy", "y.npy")),
        ("diy", ("half.npy", "y-half.npy")),
    ):
        result = eq("places", "score", "--logits", files[0], "--targets", files[1], "--name", name, "-o", "results")
        assert result.exit_code == 0, result.stderr
    result = eq("report", "results", "-o", "page.html", "--no-charts")
    assert result.exit_code == 0, result.stderr
    assert "different visits" in result.stderr
    assert "gru and lstm share the best Acc@1 on 60 visits" in result.stdout
    assert {file.name for file in folder.glob("page-*.html")} == {
        "page-all-visits-of-diy.html", "page-all-visits-of-gru-lstm.html",
    }  # fmt: skip


def test_an_unknown_primary_metric_of_a_report_is_an_error_and_another_cutoff_is_computed(eq, assert_error) -> None:
    for name in ("lstm-seed1", "lstm-seed2", "gru-seed1", "gru-seed2"):
        assert eq(*SCORE[:-1], name, "--n-resamples", "100", "-o", "results").exit_code == 0
    assert_error(eq("report", "results", "--primary", "nonsense", "-o", "page.html", "--no-charts"), "E300")
    result = eq("report", "results", "--primary", "Acc@7", "-o", "page.html", "--no-charts")
    assert result.exit_code == 0, result.stderr
    assert "Acc@7" in result.stdout


def test_training_and_test_visits_are_checked(eq, folder: Path) -> None:
    rows = [f"u{row % 6},{place},2024-05-{row % 28 + 1:02}" for row, place in enumerate(range(3, 43))]
    (folder / "test.csv").write_text("\n".join(["user,target,time", *rows]))
    result = eq("places", "check", "--history", "visits.csv", "--sequences", "test.csv")
    assert result.exit_code == 0, result.stderr
    assert "EQ180" in result.stdout
    assert "No leakage was found" in result.stdout
    leaking_rows = [f"{row},{row.split(',')[1]}" for row in rows]
    (folder / "leak.csv").write_text("\n".join(["user,target,time,stop", *leaking_rows]))
    with_leak = eq(
        "places", "check", "--history", "visits.csv", "--sequences", "leak.csv", "--fail-on", "issue", "--json"
    )
    assert with_leak.exit_code == 1
    content = json.loads(with_leak.stdout)
    assert {finding["code"] for finding in content["findings"]} == {"EQ180", "EQ182"}
    assert content["test"]["visits"] == 40


def test_truncated_predictions_are_scored_from_parquet(eq, folder: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    logits, targets = np.load(folder / "logits.npy"), np.load(folder / "y.npy")
    top_classes = np.argsort(-logits, axis=1)[:, :10]
    pq.write_table(pa.table({"target": targets, "predictions": top_classes.tolist()}), folder / "top.parquet")
    truncated = json.loads(eq("places", "score", "--predictions", "top.parquet", "--n-classes", "14", "--json").stdout)
    complete = json.loads(eq(*SCORE, "--json").stdout)
    for name in ("Acc@1", "Acc@10", "nDCG@10", "F1 weighted"):
        assert truncated["percent"][name] == pytest.approx(complete["percent"][name])
    assert "not among the predicted places" in truncated["notes"][0]


def test_the_number_of_places_is_known_or_stated_to_be_unknown(eq, folder: Path, assert_error) -> None:
    logits, targets = np.load(folder / "logits.npy"), np.load(folder / "y.npy")
    top = np.argsort(-logits, axis=1)[:, :5]
    rows = [{"target": int(target), "predictions": row.tolist()} for target, row in zip(targets, top, strict=True)]
    (folder / "top.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ("places", "score", "--predictions", "top.jsonl")
    unknown = " ".join(eq(*command, "-v").stdout.split())
    assert f"The number of places is unknown; the random baseline assumes {CLASSES}, one per class id" in unknown
    assert "the number of places is unknown, so the random baseline assumes one place per class id" in unknown
    known = " ".join(eq(*command, "--n-classes", "50", "-v").stdout.split())
    assert "each visit has 50 candidate places" in known
    assert "unknown, so" not in known
    assert eq(*SCORE, "--n-classes", str(CLASSES)).exit_code == 0
    assert_error(eq(*SCORE, "--n-classes", "50"), "E310", "--n-classes")


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_other_formats_give_the_same_scores(eq, folder: Path, suffix: str) -> None:
    logits, targets = np.load(folder / "logits.npy"), np.load(folder / "y.npy")
    if suffix == "npz":
        np.savez(folder / "all.npz", logits=logits, y=targets)
    else:
        save = pytest.importorskip("safetensors.numpy").save_file
        save({"logits": logits, "y": targets}, folder / "all.safetensors")
    result = eq(
        "places", "score", "--logits", f"all={folder}/all.{suffix}:logits",
        "--targets", f"all.{suffix}:y", "--json",
    )  # fmt: skip
    assert json.loads(result.stdout)["percent"] == json.loads(eq(*SCORE, "--json").stdout)["percent"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("places", "score"), "E310"),
        ((*SCORE, "--predictions", "top.parquet"), "E310"),
        (SCORE[:4], "E310"),
        ((*SCORE, "--padding", "99"), "E310"),
        ((*SCORE, "--ks", "1", "15"), "E310"),
        ((*SCORE, "--user", "units.csv"), "E310"),
        ((*SCORE, "--user", "units.csv:who"), "E204"),
        ((*SCORE, "--user", "blank.csv:user"), "E200"),
        ((*SCORE, "--slice", "units.csv:hour"), "E310"),
        ((*SCORE, "--history", "visits.csv"), "E310"),
        ((*SCORE[:4], "--targets", "user.npy"), "E200"),
        ((*SCORE[:4], "--targets", "short.npy"), "E206"),
        ((*SCORE[:2], "--logits", "nan.npy", *SCORE[4:]), "E207"),
        ((*SCORE, "--padding", "5"), "E200"),
    ],
)
def test_bad_input_is_an_error_with_exit_status_2(eq, folder: Path, arguments, code: str) -> None:
    np.save(folder / "short.npy", np.array([1]))
    (folder / "blank.csv").write_text("user,hour\n" + ",7\n" * ROWS)
    logits = np.load(folder / "logits.npy")
    logits[7, 3] = np.nan
    np.save(folder / "nan.npy", logits)
    result = eq(*arguments)
    assert result.exit_code == 2
    assert f"error[{code}]" in result.stderr
    assert "Traceback" not in result.stderr


def test_fewer_classes_than_the_default_cutoffs_are_scored_with_a_note(eq, folder: Path) -> None:
    np.save(folder / "four.npy", np.eye(4)[[0, 1, 2, 2]])
    np.save(folder / "four_y.npy", np.array([0, 1, 2, 3]))
    arguments = ("places", "score", "--logits", "four.npy", "--targets", "four_y.npy")
    result = eq(*arguments, "--n-resamples", "50", "--json")
    assert result.exit_code == 0, result.stderr
    content = json.loads(result.stdout)
    assert [name for name in content["percent"] if "@" in name] == ["Acc@1", "Acc@3", "nDCG@10"]
    assert any("Acc@5, Acc@10" in note for note in content["notes"])
    assert eq(*arguments, "--ks", "1", "10").exit_code == 2


def test_systems_are_named_by_option_prefix_folder_or_file(eq, folder: Path) -> None:
    (folder / "gru" / "seed2").mkdir(parents=True)
    logits = np.load(folder / "logits.npy")
    np.save(folder / "gru" / "seed2" / "logits.npy", logits)
    np.save(folder / "best.npy", logits)

    def name(file: str, *options: str) -> str:
        result = eq(
            "places", "score", "--logits", file, "--targets", "y.npy", "--calibration", "none", *options, "--json"
        )
        return json.loads(result.stdout)["system"]

    assert name("gru/seed2/logits.npy") == "gru-seed2"
    assert name("best.npy") == "best"
    assert name("custom=best.npy") == "custom"
    assert name("custom=best.npy", "--name", "ours") == "ours"
    invalid = eq(*SCORE[:-1], "a/b")
    assert invalid.exit_code == 2
    assert invalid.stderr.splitlines()[-1].endswith("--name mine")


RESULT = {"correct@1": 12.0, "correct@5": 30.0, "rr": 20.5, "ndcg": 46.5, "f1": 0.23, "total": 50.0, "acc@1": 24.0}


def test_result_files_are_read_and_detected_as_predictions(eq, folder: Path) -> None:
    (folder / "lstm_results.json").write_text(json.dumps(RESULT))
    (folder / "unclear.json").write_text(json.dumps({"acc@1": 0.4}))
    as_predictions = eq("places", "score", "--predictions", "lstm_results.json")
    assert as_predictions.exit_code == 2
    assert "error[E204]: lstm_results.json has results (correct@1, " in as_predictions.stderr
    command = as_predictions.stderr.split("hint: ")[1].split(" reads it")[0]
    result = eq(*command.removeprefix("eq ").split(), "unclear.json")
    assert result.exit_code == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["result", "Acc@1", "Acc@5", "MRR", "nDCG@10", "F1", "weighted", "n"] in lines
    assert ["lstm_results", "24.00", "60.00", "41.00", "46.50", "23.00", "50"] in lines
    assert "Rejected: unclear, acc@1 0.4: it may be a fraction" in result.stdout
    assert "12 of 50 visits" in eq("places", "results", "lstm_results.json", "-v").stdout
    (row,) = json.loads(eq("places", "results", "lstm_results.json", "--json").stdout)["results"]
    assert row["values"]["HR@1"] == pytest.approx(12 / 50)


def test_one_table_of_sequences_gives_targets_users_previous_places_and_slices(eq, folder: Path) -> None:
    targets = np.load(folder / "y.npy").tolist()
    rows = [
        {
            "user": f"u{row % 6}",
            "sequence": [3, 5 + row % 4],
            "target": target,
            "time": f"2024-05-{1 + row % 28:02}T07:30",
        }
        for row, target in enumerate(targets)
    ]
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "places.csv").write_text(
        "place,lat,lon\n" + "".join(f"{place},{47 + place / 100},{8 + place / 50}\n" for place in range(CLASSES))
    )
    arguments = (
        "--sequences",
        "test.jsonl",
        "--history",
        "visits.csv",
        "--coordinates",
        "places.csv",
        "--n-resamples",
        "100",
    )
    result = eq("places", "score", "--logits", "lstm=logits.npy", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    assert set(content["baselines"]) == {"random", "majority", "user", "markov"}
    weekdays = [part["slice"] for part in content["slices"] if part["name"] == "weekday"]
    assert weekdays == ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    assert content["by_user"]["units"] == 6
    assert set(content["distances"]) == {
        "distance error", "within 1 km", "within 5 km", "median", "undefined", "baselines",
    }  # fmt: skip
    assert content["calibration"]["ece"]["1"]["accuracy"] == pytest.approx(content["percent"]["Acc@1"] / 100)


def test_files_of_libcity_are_scored_like_logits(eq, folder: Path) -> None:
    logits, targets = np.load(folder / "logits.npy").astype(float), np.load(folder / "y.npy")
    content = {"uid": [row % 6 for row in range(ROWS)], "loc_true": targets.tolist(), "loc_pred": logits.tolist()}
    (folder / "libcity.json").write_text(json.dumps(content))
    result = eq("places", "score", "--predictions", "libcity.json", "--n-resamples", "100", "--json")
    assert result.exit_code == 0, result.stderr
    output = json.loads(result.stdout)
    assert output["system"] == "libcity"
    assert output["percent"] == json.loads(eq(*SCORE, "--json").stdout)["percent"]
    assert output["by_user"]["units"] == 6


def test_files_of_libcity_with_one_visit_per_line_are_read(eq, folder: Path) -> None:
    logits, targets = np.load("logits.npy").astype(float), np.load("y.npy")
    rows = [
        {"uid": f"u{row % 6}", "loc_true": int(target), "loc_pred": scores.tolist()}
        for row, (target, scores) in enumerate(zip(targets, logits, strict=True))
    ]
    (folder / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    best = [row | {"loc_pred": np.argsort(row["loc_pred"])[::-1][:5].tolist()} for row in rows]
    (folder / "best.jsonl").write_text("".join(json.dumps(row) + "\n" for row in best))
    expected = json.loads(eq(*SCORE, "--user", "user.npy", "--json").stdout)["percent"]
    for arguments in (("scores.jsonl",), ("best.jsonl", "--n-classes", str(CLASSES))):
        result = eq("places", "score", "--predictions", *arguments, "--name", "lstm", "--json")
        assert result.exit_code == 0, result.stderr
        output = json.loads(result.stdout)
        assert output["all"]["clusters"] == 6
        assert {name: output["percent"][name] for name in ("Acc@1", "Acc@5")} == {
            name: expected[name] for name in ("Acc@1", "Acc@5")
        }


def test_a_second_system_is_an_error_and_not_ignored(eq, assert_error) -> None:
    assert_error(eq(*SCORE, "--logits", "logits.npy"), "E310", "-o FOLDER")


def test_targets_that_differ_from_those_of_the_table_are_an_error(eq, assert_error, folder: Path) -> None:
    targets = np.load("y.npy")
    shifted = np.roll(targets, 1)
    (folder / "test.csv").write_text("user,target\n" + "".join(f"u{row},{y}\n" for row, y in enumerate(shifted)))
    result = eq(*SCORE, "--sequences", "test.csv")
    assert_error(result, "E200", "same visits in the same order")
    assert f"the first in row {int(np.argmax(targets != shifted)) + 1}" in result.stderr


def test_object_arrays_of_names_raise_an_error_with_a_hint(eq, assert_error, folder: Path) -> None:
    np.save(folder / "objects.npy", np.array(["u1"] * ROWS, dtype=object), allow_pickle=True)
    assert_error(eq(*SCORE, "--user", "objects.npy"), "E204", "dtype=str")


def test_a_small_share_is_not_shown_as_zero(eq, folder: Path) -> None:
    (folder / "test.csv").write_text("user,place\n" + "u1,3\n" * 3000 + "u1,99\n")
    shown = eq("places", "check", "--history", "visits.csv", "--sequences", "test.csv").stdout
    assert "<0.1 % of the targets do not occur in training" in shown
    assert "at most >99.9 %" in shown
