"""``eq places compare`` and ``eq places demo`` from the command line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from equipoise.cli.main import COMMANDS, CommandEntry

Eq = Callable[..., Result]
UNITS, CLASSES = 40, 15


@pytest.fixture(autouse=True)
def _entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "places", CommandEntry("equipoise.domains.places.cli:places", "Next places."))


def write_seed(folder: Path, skill: float, seed: int, *, units: int = UNITS) -> Path:
    """A folder with logits that are increased by ``skill`` for the true class."""
    folder.mkdir(parents=True, exist_ok=True)
    targets = np.random.default_rng(5).integers(1, CLASSES, size=units)
    logits = np.random.default_rng(seed).normal(size=(units, CLASSES)).astype(np.float32)
    logits[np.arange(units), targets] += skill
    np.save(folder / "logits.npy", logits)
    np.save(folder / "targets.npy", targets)
    return folder


@pytest.fixture
def seeds(folder: Path) -> Path:
    """Two models with three seeds each, and the users of the units."""
    for seed in (1, 2, 3):
        write_seed(folder / "good" / f"seed{seed}", 2.5, seed)
        write_seed(folder / "bad" / f"seed{seed}", 0.5, 100 + seed)
    np.save(folder / "user.npy", np.repeat(np.arange(8), 5))
    return folder


def seed_paths(*models: str, seeds: int = 3) -> list[str]:
    return [f"{model}/seed{seed}/" for model in models for seed in range(1, seeds + 1)]


def test_folders_of_logits_are_grouped_by_the_folder_around_them(eq: Eq, seeds: Path) -> None:
    result = eq("places", "compare", *seed_paths("good", "bad"), "--user", "user.npy")
    assert result.exit_code == 0, result.output
    assert "good is the best of 2 models on 40 visits of 8 users" in result.output
    assert "A random order scores 7 %." in result.output
    assert "sd of 3 seeds" in result.output
    assert len(result.output.splitlines()) <= 10
    details = eq("places", "compare", *seed_paths("good", "bad"), "--user", "user.npy", "-v").output
    assert "good - bad" in details
    assert "cannot be below 0.250" in details


def test_csv_has_numbers_best_model_first(eq: Eq, seeds: Path) -> None:
    result = eq("places", "compare", "bad", "good", "--to", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["model"] for row in rows] == ["good", "bad"]
    names = {row.pop("model") for row in rows}
    assert names == {"good", "bad"}
    assert all(float(value) >= 0 for row in rows for value in row.values())
    content = json.loads(eq("places", "compare", "bad", "good", "--json").output)
    assert [float(row["Acc@1"]) for row in rows] == [
        next(item["mean"] for item in content["systems"] if (item["system"], item["metric"]) == (name, "HR@1"))
        for name in content["order"]
    ]


@pytest.mark.engines("torch")
def test_ranks_counted_on_a_device_are_the_same(eq: Eq, seeds: Path) -> None:
    on_cpu, on_device = (
        eq("places", "compare", *seed_paths("good", "bad"), "--n-resamples", "100", "--json", *device)
        for device in ((), ("--device", "cpu"))
    )
    assert on_device.exit_code == 0, on_device.output
    assert on_device.stdout == on_cpu.stdout


def test_models_are_in_the_order_of_the_arguments(eq: Eq, seeds: Path) -> None:
    result = eq("places", "compare", *seed_paths("bad", "good"), "--json")
    content = json.loads(result.output)
    assert (content["pairs"][0]["a"], content["pairs"][0]["b"]) == ("bad", "good")
    assert content["pairs"][0]["seeds"]["difference"] < 0
    assert content["people"] == "units"
    assert content["people_count"] == UNITS
    assert len(content["systems"][0]["values"]) == 3


def test_folders_of_models_contain_their_seeds(eq: Eq, seeds: Path) -> None:
    implicit = eq("places", "compare", "good", "bad", "--json")
    explicit = eq("places", "compare", *seed_paths("good", "bad"), "--json")
    assert implicit.exit_code == 0, implicit.output
    assert json.loads(implicit.output) == json.loads(explicit.output)
    inside = eq("places", "compare", ".", "--json")
    assert json.loads(inside.output)["order"] == json.loads(explicit.output)["order"]


def test_given_names_group_seeds(eq: Eq, seeds: Path) -> None:
    paths = ["strong=good/seed1", "strong=good/seed2", "weak=bad/seed1", "weak=bad/seed3"]
    result = eq("places", "compare", *paths, "-m", "MRR")
    assert result.exit_code == 0, result.output
    assert "strong" in result.output
    assert "seed1 with seed1, seed2 with seed3" in result.output


def test_stored_runs_give_the_same_comparison_as_logits(eq: Eq, seeds: Path) -> None:
    for model in ("good", "bad"):
        for seed in (1, 2):
            seed_folder = f"{model}/seed{seed}"
            scored = eq(
                *(
                    "places",
                    "score",
                    "--logits",
                    f"{seed_folder}/logits.npy",
                    "--targets",
                    f"{seed_folder}/targets.npy",
                ),
                *("--user", "user.npy", "-o", f"runs/{seed_folder}", "--n-resamples", "40"),
            )
            assert scored.exit_code == 0, scored.output
    stored = eq("places", "compare", *[f"runs/{path}" for path in seed_paths("good", "bad", seeds=2)], "--json")
    raw = eq("places", "compare", *seed_paths("good", "bad", seeds=2), "--user", "user.npy", "--json")
    assert stored.exit_code == 0, stored.output
    stored_content, raw_content = (json.loads(result.output) for result in (stored, raw))
    assert stored_content["people"] == "users"
    assert stored_content["pairs"] == raw_content["pairs"]


def test_runs_in_one_results_folder_are_grouped_by_their_names(eq: Eq, seeds: Path) -> None:
    for seed_folder in seed_paths("good", "bad", seeds=2):
        files = ("--logits", f"{seed_folder}/logits.npy", "--targets", f"{seed_folder}/targets.npy")
        assert eq("places", "score", *files, "-o", "results", "--n-resamples", "40").exit_code == 0
    separate = eq("places", "compare", *seed_paths("bad", "good", seeds=2), "--json")
    names = [f"results/{model}-seed{seed}" for model in ("bad", "good") for seed in (1, 2)]
    for paths in (names, ["results"]):
        together = eq("places", "compare", *paths, "--json")
        assert together.exit_code == 0, together.output
        assert json.loads(together.output)["pairs"] == json.loads(separate.output)["pairs"]


def test_answerable_units_alone_can_be_compared(eq: Eq, seeds: Path) -> None:
    targets = np.load("good/seed1/targets.npy")
    counts = np.ones(CLASSES, dtype=int)
    counts[int(targets[0])] = 0
    np.save("counts.npy", counts)
    n_answerable = int((targets != targets[0]).sum())
    for model in ("good", "bad"):
        seed_folder = f"{model}/seed1"
        eq(
            *("places", "score", "--logits", f"{seed_folder}/logits.npy", "--targets", f"{seed_folder}/targets.npy"),
            *("--train-counts", "counts.npy", "-o", f"runs/{seed_folder}", "--n-resamples", "40"),
        )
    stored = eq("places", "compare", "runs/good/seed1", "runs/bad/seed1", "--answerable", "--json")
    raw = eq(
        *("places", "compare", "good/seed1", "bad/seed1", "--answerable", "--json"),
        *("--train-counts", "counts.npy"),
    )
    assert stored.exit_code == 0, stored.output
    assert json.loads(stored.output)["units"] == json.loads(raw.output)["units"] == n_answerable
    without_counts = eq("places", "compare", "good/seed1", "bad/seed1", "--answerable")
    assert without_counts.exit_code == 2
    assert "--train-counts" in without_counts.output


def test_one_seed_is_reported(eq: Eq, seeds: Path) -> None:
    result = eq("places", "compare", "good/seed1", "bad/seed1")
    assert "With one seed per model, differences may be due to the seed." in " ".join(result.output.split())
    details = eq("places", "compare", "good/seed1", "bad/seed1", "-v").output
    assert "(one seed)" in details
    assert "how much the scores vary when training is repeated is unknown" in details


def test_padding_is_excluded_from_the_classes(eq: Eq, seeds: Path) -> None:
    all_classes, without_padding = (
        json.loads(eq("places", "compare", "good", "bad", "--json", *options).output)
        for options in ((), ("--padding", "0"))
    )
    assert without_padding["systems"][0]["mean"] >= all_classes["systems"][0]["mean"]
    assert without_padding != all_classes


@pytest.mark.parametrize(
    ("paths", "expected_text"),
    [
        ((), "E310"),
        (("good/seed1", "good/seed2"), "only good"),
        (("good/seed1", "nowhere/seed1"), "nowhere/seed1 is not there"),
        (("good/seed1", "user.npy"), "user.npy is a file"),
        (("good/seed1", "bad/seed1", "bad/seed2"), "good was run with 1 seed (seed1)"),
        (("good/seed1", "bad/seed1", "-m", "nonsense"), "it has Acc@1"),
        (("good/seed1", "bad/seed1", "-m", "Acc@x"), "Acc@x"),
        (("good/seed1", "bad/seed1", "-m", "MR"), "MR is not a fraction"),
    ],
)
def test_invalid_comparisons_are_errors(eq: Eq, seeds: Path, paths: tuple[str, ...], expected_text: str) -> None:
    result = eq("places", "compare", *paths)
    assert result.exit_code == 2
    assert expected_text in result.output
    assert "Traceback" not in result.output


def test_different_targets_are_an_error(eq: Eq, seeds: Path) -> None:
    np.save("bad/seed1/targets.npy", np.load("bad/seed1/targets.npy")[::-1].copy())
    result = eq("places", "compare", "good/seed1", "bad/seed1")
    assert result.exit_code == 2
    assert "have different targets" in result.output


def test_an_empty_folder_and_mismatched_users_are_errors(eq: Eq, seeds: Path) -> None:
    (seeds / "good" / "seed9").mkdir()
    empty = eq("places", "compare", "good/seed9", "bad/seed1")
    assert empty.exit_code == 2
    assert "holds neither a run nor logits.npy" in empty.output
    np.save("few.npy", np.arange(3))
    odd = eq("places", "compare", "good/seed1", "bad/seed1", "--user", "few.npy")
    assert odd.exit_code == 2
    assert "3 users for 40 visits" in odd.output


def test_the_demo_prints_the_model_and_its_baselines(eq: Eq) -> None:
    result = eq("places", "demo", "--users", "12", "--days", "14", "--places", "60")
    assert result.exit_code == 0, result.output
    for expected_text in ("random", "majority", "user", "markov", "Acc@1", "F1 weighted", "calibration error"):
        assert expected_text in result.output
    assert "Simulated 12 users in a city of 60 places" in result.output


@pytest.mark.slow
def test_the_demo_writes_inputs_of_places_score(eq: Eq, folder: Path) -> None:
    quick_options = ("--users", "12", "--days", "14", "--places", "60")
    content = json.loads(eq("places", "demo", *quick_options, "--json").output)
    written = eq("places", "demo", *quick_options, "-o", "kept")
    assert written.exit_code == 0, written.output
    suggested = next(line for line in written.output.splitlines() if line.startswith("Next: eq "))
    scored = eq(*suggested.removeprefix("Next: eq ").split(), "--json")
    assert scored.exit_code == 0, scored.output
    assert json.loads(scored.output)["percent"] == pytest.approx(content["percent"])
    assert json.loads(scored.output)["baselines"]["markov"] == pytest.approx(content["baselines"]["markov"])
    charts = {file.name for file in (folder / "kept").glob("*.svg")}
    assert charts == {
        "accuracy-over-k-interpolated-model.svg",
        "rank-distribution-interpolated-model.svg",
        "reliability-interpolated-model.svg",
        "reliability-interpolated-model-top-5.svg",
        "error-map-interpolated-model.svg",
        "confusion-interpolated-model.svg",
    }


@pytest.mark.slow
def test_the_demo_of_a_single_visit_has_reasons_in_place_of_intervals(eq: Eq) -> None:
    result = eq("places", "demo", "--users", "1", "--days", "1", "--places", "10", "-v", env={"COLUMNS": "140"})
    assert "1 user in a city of 10 places: 2 training visits, and 1 visit to predict." in result.stderr
    (median,) = (line for line in result.stdout.splitlines() if line.startswith("median distance"))
    assert "n/a (one user)" in median
    assert "Intervals: ." not in result.stdout


def test_the_demo_suggests_the_same_seed_and_names_every_kind_of_tie(eq: Eq) -> None:
    result = eq("places", "demo", "--users", "20", "--seed", "7", "--places", "300", "-o", "seven")
    assert "--seed 7" in result.stdout.splitlines()[-1]
    assert ";  (" not in result.stdout
    assert "several places with the largest score" in eq("places", "demo", "--users", "20", "-v").stdout


def test_the_demo_depends_on_the_seed_only(eq: Eq) -> None:
    quick_options = ("places", "demo", "--users", "6", "--days", "7", "--places", "30", "--json")
    first, repeated, other = (eq(*quick_options, "--seed", seed).output for seed in ("1", "1", "2"))
    assert first == repeated != other


@pytest.mark.engines("torch")
def test_the_demo_is_scored_on_a_device(eq: Eq) -> None:
    quick_options = ("places", "demo", "--users", "6", "--days", "7", "--places", "30", "--json")
    on_device = eq(*quick_options, "--device", "cpu")
    assert on_device.exit_code == 0, on_device.output
    assert on_device.stdout == eq(*quick_options).stdout


def test_further_cutoffs_are_computed_from_logits_and_from_runs(eq: Eq, seeds: Path) -> None:
    for word in seed_paths("good", "bad"):
        done = eq("places", "score", "--logits", f"{word}logits.npy", "--targets", f"{word}targets.npy",
                  "--n-resamples", "100", "-o", "results")  # fmt: skip
        assert done.exit_code == 0, done.output
    values = []
    for given in (seed_paths("good", "bad"), ["results"]):
        result = eq("places", "compare", *given, "-m", "Acc@{2,4}", "--json")
        assert result.exit_code == 0, result.output
        content = json.loads(result.stdout)
        values.append(json.dumps(content, sort_keys=True))
        assert all(name in values[-1] for name in ("HR@2", "HR@4"))
    logits, targets = np.load("bad/seed1/logits.npy"), np.load("bad/seed1/targets.npy")
    above = (logits > logits[np.arange(len(targets)), targets][:, None]).sum(axis=1)
    assert str(float((above < 4).mean())) in values[0]


def test_training_and_test_visits_are_different_files(eq: Eq, folder: Path) -> None:
    (folder / "visits.csv").write_text("user,place\nann,0\nann,1\n")
    result = eq("places", "check", "--history", "visits.csv", "--sequences", "visits.csv")
    assert result.exit_code == 2
    assert "the same file" in result.output
