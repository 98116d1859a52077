"""``eq places compare`` and ``eq places demo`` as people type them."""

from __future__ import annotations

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
    """A folder with logits that lift the right class by so much."""
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


def words(*models: str, seeds: int = 3) -> list[str]:
    return [f"{model}/seed{seed}/" for model in models for seed in range(1, seeds + 1)]


def test_folders_of_logits_are_grouped_by_the_folder_around_them(eq: Eq, seeds: Path) -> None:
    result = eq("places", "compare", *words("good", "bad"), "--user", "user.npy")
    assert result.exit_code == 0, result.output
    assert "40 visits of 8 users, 3 seeds per model (percent)" in result.output
    assert "good - bad" in result.output
    assert "On Acc@1, good is better than bad by" in result.output
    assert "cannot be below 0.250" in result.output


@pytest.mark.engines("torch")
def test_ranks_counted_on_a_device_are_the_same(eq: Eq, seeds: Path) -> None:
    here, there = (
        eq("places", "compare", *words("good", "bad"), "--n-resamples", "100", "--json", *device)
        for device in ((), ("--device", "cpu"))
    )
    assert there.exit_code == 0, there.output
    assert there.stdout == here.stdout


def test_the_order_of_the_models_is_that_of_the_words(eq: Eq, seeds: Path) -> None:
    result = eq("places", "compare", *words("bad", "good"), "--json")
    told = json.loads(result.output)
    assert (told["pairs"][0]["a"], told["pairs"][0]["b"]) == ("bad", "good")
    assert told["pairs"][0]["seeds"]["difference"] < 0
    assert told["people"] == "units"
    assert told["people_count"] == UNITS
    assert len(told["systems"][0]["values"]) == 3


def test_models_side_by_side_have_their_seeds_inside(eq: Eq, seeds: Path) -> None:
    inside = eq("places", "compare", "good", "bad", "--json")
    spelled = eq("places", "compare", *words("good", "bad"), "--json")
    assert inside.exit_code == 0, inside.output
    assert json.loads(inside.output) == json.loads(spelled.output)


def test_names_of_ones_own_group_seeds(eq: Eq, seeds: Path) -> None:
    given = ["strong=good/seed1", "strong=good/seed2", "weak=bad/seed1", "weak=bad/seed3"]
    result = eq("places", "compare", *given, "-m", "MRR")
    assert result.exit_code == 0, result.output
    assert "strong - weak" in result.output
    assert "seed1 with seed1, seed2 with seed3" in result.output


def test_what_places_score_wrote_is_read_back_with_the_same_figures(eq: Eq, seeds: Path) -> None:
    for model in ("good", "bad"):
        for seed in (1, 2):
            at = f"{model}/seed{seed}"
            told = eq(
                *("places", "score", "--logits", f"{at}/logits.npy", "--targets", f"{at}/targets.npy"),
                *("--user", "user.npy", "-o", f"runs/{at}", "--n-resamples", "40"),
            )
            assert told.exit_code == 0, told.output
    stored = eq("places", "compare", *[f"runs/{each}" for each in words("good", "bad", seeds=2)], "--json")
    raw = eq("places", "compare", *words("good", "bad", seeds=2), "--user", "user.npy", "--json")
    assert stored.exit_code == 0, stored.output
    one, other = (json.loads(result.output) for result in (stored, raw))
    assert one["people"] == "users"
    assert one["pairs"] == other["pairs"]


def test_runs_in_one_results_folder_are_grouped_by_their_names(eq: Eq, seeds: Path) -> None:
    for at in words("good", "bad", seeds=2):
        files = ("--logits", f"{at}/logits.npy", "--targets", f"{at}/targets.npy")
        assert eq("places", "score", *files, "-o", "results", "--n-resamples", "40").exit_code == 0
    separate = eq("places", "compare", *words("bad", "good", seeds=2), "--json")
    names = [f"results/{model}-seed{seed}" for model in ("bad", "good") for seed in (1, 2)]
    for given in (names, ["results"]):
        together = eq("places", "compare", *given, "--json")
        assert together.exit_code == 0, together.output
        assert json.loads(together.output)["pairs"] == json.loads(separate.output)["pairs"]


def test_answerable_units_alone_can_be_compared(eq: Eq, seeds: Path) -> None:
    targets = np.load("good/seed1/targets.npy")
    counts = np.ones(CLASSES, dtype=int)
    counts[int(targets[0])] = 0
    np.save("counts.npy", counts)
    answerable = int((targets != targets[0]).sum())
    for model in ("good", "bad"):
        at = f"{model}/seed1"
        eq(
            *("places", "score", "--logits", f"{at}/logits.npy", "--targets", f"{at}/targets.npy"),
            *("--train-counts", "counts.npy", "-o", f"runs/{at}", "--n-resamples", "40"),
        )
    stored = eq("places", "compare", "runs/good/seed1", "runs/bad/seed1", "--answerable", "--json")
    raw = eq(
        *("places", "compare", "good/seed1", "bad/seed1", "--answerable", "--json"),
        *("--train-counts", "counts.npy"),
    )
    assert stored.exit_code == 0, stored.output
    assert json.loads(stored.output)["units"] == json.loads(raw.output)["units"] == answerable
    refused = eq("places", "compare", "good/seed1", "bad/seed1", "--answerable")
    assert refused.exit_code == 2
    assert "--train-counts" in refused.output


def test_one_seed_says_so(eq: Eq, seeds: Path) -> None:
    result = eq("places", "compare", "good/seed1", "bad/seed1")
    assert "one seed per model" in result.output
    assert "(one seed)" in result.output
    assert "how much the scores vary when training is repeated is unknown" in result.output


def test_padding_is_no_class(eq: Eq, seeds: Path) -> None:
    plain, without = (
        json.loads(eq("places", "compare", "good", "bad", "--json", *more).output) for more in ((), ("--padding", "0"))
    )
    assert without["systems"][0]["mean"] >= plain["systems"][0]["mean"]
    assert without != plain


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((), "E310"),
        (("good/seed1", "good/seed2"), "only good"),
        (("good/seed1", "nowhere/seed1"), "nowhere/seed1 is not there"),
        (("good/seed1", "user.npy"), "user.npy is a file"),
        (("good/seed1", "bad/seed1", "bad/seed2"), "good was run with 1 seeds"),
        (("good/seed1", "bad/seed1", "-m", "nonsense"), "it has Acc@1"),
        (("good/seed1", "bad/seed1", "-m", "Acc@x"), "Acc@x"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_sentence(
    eq: Eq, seeds: Path, given: tuple[str, ...], sentence: str
) -> None:
    result = eq("places", "compare", *given)
    assert result.exit_code == 2
    assert sentence in result.output
    assert "Traceback" not in result.output


def test_rows_that_are_not_the_same_are_refused(eq: Eq, seeds: Path) -> None:
    np.save("bad/seed1/targets.npy", np.load("bad/seed1/targets.npy")[::-1].copy())
    result = eq("places", "compare", "good/seed1", "bad/seed1")
    assert result.exit_code == 2
    assert "have different targets" in result.output


def test_an_empty_folder_and_odd_users_are_refused(eq: Eq, seeds: Path) -> None:
    (seeds / "good" / "seed9").mkdir()
    empty = eq("places", "compare", "good/seed9", "bad/seed1")
    assert empty.exit_code == 2
    assert "holds neither a run nor logits.npy" in empty.output
    np.save("few.npy", np.arange(3))
    odd = eq("places", "compare", "good/seed1", "bad/seed1", "--user", "few.npy")
    assert odd.exit_code == 2
    assert "3 users for 40 units" in odd.output


def test_the_demo_prints_the_model_beside_its_baselines(eq: Eq) -> None:
    result = eq("places", "demo", "--users", "12", "--days", "14", "--places", "60")
    assert result.exit_code == 0, result.output
    for word in ("random", "majority", "user", "markov", "Acc@1", "F1 weighted", "calibration error"):
        assert word in result.output
    assert "12 simulated users" in result.output


@pytest.mark.slow
def test_the_demo_leaves_what_places_score_takes(eq: Eq, folder: Path) -> None:
    few = ("--users", "12", "--days", "14", "--places", "60")
    told = json.loads(eq("places", "demo", *few, "--json").output)
    kept = eq("places", "demo", *few, "-o", "kept")
    assert kept.exit_code == 0, kept.output
    suggested = next(line for line in kept.output.splitlines() if line.startswith("Next: eq "))
    again = eq(*suggested.removeprefix("Next: eq ").split(), "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.output)["percent"] == pytest.approx(told["percent"])
    assert json.loads(again.output)["baselines"]["markov"] == pytest.approx(told["baselines"]["markov"])
    charts = {file.name for file in (folder / "kept").glob("*.svg")}
    assert charts == {
        "accuracy-over-k.svg",
        "rank-distribution.svg",
        "reliability-markov-model.svg",
        "reliability-markov-model-top-5.svg",
        "error-map-markov-model.svg",
        "confusion-markov-model.svg",
    }


@pytest.mark.slow
def test_the_demo_is_the_same_for_the_same_seed_and_another_for_another(eq: Eq) -> None:
    few = ("places", "demo", "--users", "6", "--days", "7", "--places", "30", "--json")
    first, again, other = (eq(*few, "--seed", seed).output for seed in ("1", "1", "2"))
    assert first == again != other


def test_further_cutoffs_are_computed_from_logits_and_from_runs(eq: Eq, seeds: Path) -> None:
    for word in words("good", "bad"):
        done = eq("places", "score", "--logits", f"{word}logits.npy", "--targets", f"{word}targets.npy",
                  "--n-resamples", "100", "-o", "results")  # fmt: skip
        assert done.exit_code == 0, done.output
    values = []
    for given in (words("good", "bad"), ["results"]):
        result = eq("places", "compare", *given, "-m", "Acc@{2,4}", "--json")
        assert result.exit_code == 0, result.output
        told = json.loads(result.stdout)
        values.append(json.dumps(told, sort_keys=True))
        assert all(name in values[-1] for name in ("HR@2", "HR@4"))
    logits, targets = np.load("bad/seed1/logits.npy"), np.load("bad/seed1/targets.npy")
    above = (logits > logits[np.arange(len(targets)), targets][:, None]).sum(axis=1)
    assert str(float((above < 4).mean())) in values[0]
