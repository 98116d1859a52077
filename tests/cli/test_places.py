"""``eq places score``, run as people run it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from equipoise.cli.app import COMMANDS, CommandEntry
from equipoise.runs.store import load_run

ROWS, CLASSES = 60, 14
SCORE = ("places", "score", "--logits", "logits.npy", "--targets", "y.npy")


@pytest.fixture(autouse=True)
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits that are right half of the time, users, hours and training counts."""
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


def test_the_table_is_in_percent_and_says_so(eq, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = eq(*SCORE, "--padding", "0", "--train-counts", "counts.npy", "-q", "--ks", "1", "10")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["metric", "estimate", "95", "%", "interval", "random", "majority", "n"]
    first = lines[2].split()
    assert first[0] == "Acc@1"
    assert 40 < float(first[1]) < 70
    assert first[4] == "7.7"
    words = (*SCORE, "--padding", "0", "--train-counts", "counts.npy", "--ks", "1", "10")
    assert eq(*words).stdout.startswith("logits: Acc@1 ")
    assert "logits, answerable visits: " in eq(*words, "-v").stdout


def test_everything_that_is_given_is_used(eq) -> None:
    done = eq(
        *SCORE, "--train-counts", "counts.npy", "--user", "user.npy", "--slice", "hour=units.csv:hour",
        "--history", "visits.csv", "--n-resamples", "100", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout, parse_constant=pytest.fail)
    assert set(told["baselines"]) == {"random", "majority", "user"}
    assert told["all"]["clusters"] == 6
    assert told["by_user"]["units"] == 6
    assert {each["name"] for each in told["slices"]} == {"hour", "visits in training", "seen in training"}
    assert told["percent"]["Acc@1"] == pytest.approx(100 * told["all"]["estimates"][0]["value"])
    assert told["all"]["estimates"][0]["unit"] == "fraction"


def test_people_are_told_about_ties_users_and_slices(eq) -> None:
    done = eq(*SCORE, "--user", "user.npy", "--slice", "hour=units.csv:hour", "--n-resamples", "100", "-v")
    assert "Ties: no target shares its score" in done.stdout
    assert "Mean over users: 6 users (percent)" in done.stdout
    assert "Lowest Acc@1: u" in done.stdout
    assert "Acc@1 by slice (percent)" in done.stdout
    assert "Whole users are resampled (6)" in done.stdout
    assert "few visits: the score is not reliable" in done.stdout


def test_a_run_directory_is_left_for_all_and_for_answerable_units(eq, folder: Path) -> None:
    done = eq(*SCORE, "--train-counts", "counts.npy", "--user", "user.npy", "--n-resamples", "100", "-o", "results")
    assert done.exit_code == 0, done.stderr
    run = load_run(folder / "results" / "logits")
    assert run.result["Acc@1"].n == ROWS
    assert run.result.estimates["F1(average=macro)"].value > 0
    assert set(run.manifest.datasets) == {"y.npy"}
    assert set(run.manifest.inputs) == {"logits.npy"}
    assert run.details[0].slices["user"] == "u0"
    part = load_run(folder / "results" / "logits-answerable")
    assert part.result["Acc@1"].n == int((np.load(folder / "y.npy") != 2).sum())
    assert eq(*done.stdout.splitlines()[-1].removeprefix("Next: eq ").split()).exit_code == 0
    assert eq("report", "results", "-o", "page.html", "--no-charts").exit_code == 0
    assert "60 visits" in (folder / "page.html").read_text()
    assert 'href="page-logits-answerable.html"' in (folder / "page.html").read_text()
    assert 'href="page.html"' in (folder / "page-logits-answerable.html").read_text()


def test_predictions_that_were_cut_are_scored_from_parquet(eq, folder: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    logits, targets = np.load(folder / "logits.npy"), np.load(folder / "y.npy")
    best = np.argsort(-logits, axis=1)[:, :10]
    pq.write_table(pa.table({"target": targets, "predictions": best.tolist()}), folder / "top.parquet")
    cut = json.loads(eq("places", "score", "--predictions", "top.parquet", "--n-classes", "14", "--json").stdout)
    whole = json.loads(eq(*SCORE, "--json").stdout)
    for name in ("Acc@1", "Acc@10", "nDCG@10", "F1 weighted"):
        assert cut["percent"][name] == pytest.approx(whole["percent"][name])
    assert "beyond the predicted classes" in cut["notes"][0]


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_other_formats_give_the_same(eq, folder: Path, suffix: str) -> None:
    logits, targets = np.load(folder / "logits.npy"), np.load(folder / "y.npy")
    if suffix == "npz":
        np.savez(folder / "all.npz", logits=logits, y=targets)
    else:
        save = pytest.importorskip("safetensors.numpy").save_file
        save({"logits": logits, "y": targets}, folder / "all.safetensors")
    done = eq(
        "places", "score", "--logits", f"all={folder}/all.{suffix}:logits",
        "--targets", f"all.{suffix}:y", "--json",
    )  # fmt: skip
    assert json.loads(done.stdout)["percent"] == json.loads(eq(*SCORE, "--json").stdout)["percent"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("places", "score"), "E310"),
        ((*SCORE, "--predictions", "top.parquet"), "E310"),
        (SCORE[:4], "E310"),
        ((*SCORE, "--padding", "99"), "E310"),
        ((*SCORE, "--ks", "1", "15"), "E310"),
        ((*SCORE, "--user", "units.csv"), "E310"),
        ((*SCORE, "--user", "units.csv:who"), "E204"),
        ((*SCORE, "--slice", "units.csv:hour"), "E310"),
        ((*SCORE, "--history", "visits.csv"), "E310"),
        ((*SCORE[:4], "--targets", "user.npy"), "E200"),
        ((*SCORE[:4], "--targets", "short.npy"), "E206"),
        ((*SCORE[:2], "--logits", "nan.npy", *SCORE[4:]), "E207"),
        ((*SCORE, "--padding", "5"), "E200"),
    ],
)
def test_bad_input_ends_with_a_sentence_and_exit_code_2(eq, folder: Path, words, code: str) -> None:
    np.save(folder / "short.npy", np.array([1]))
    logits = np.load(folder / "logits.npy")
    logits[7, 3] = np.nan
    np.save(folder / "nan.npy", logits)
    done = eq(*words)
    assert done.exit_code == 2
    assert f"error[{code}]" in done.stderr
    assert "Traceback" not in done.stderr


def test_fewer_classes_than_the_default_cutoffs_are_scored_with_a_note(eq, folder: Path) -> None:
    np.save(folder / "four.npy", np.eye(4)[[0, 1, 2, 2]])
    np.save(folder / "four_y.npy", np.array([0, 1, 2, 3]))
    words = ("places", "score", "--logits", "four.npy", "--targets", "four_y.npy")
    done = eq(*words, "--n-resamples", "50", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert [name for name in told["percent"] if "@" in name] == ["Acc@1", "Acc@3", "nDCG@10"]
    assert any("Acc@5, Acc@10" in note for note in told["notes"])
    assert eq(*words, "--ks", "1", "10").exit_code == 2
