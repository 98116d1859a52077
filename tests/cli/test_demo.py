"""``eq demo``: the fair comparison, on the document that comes with the program."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from equipoise.domains.fair.cli import DEMO_BUDGET, DEMO_MODELS
from equipoise.models import inventory
from equipoise.models.inventory import MissingRequirement, ModelListing
from equipoise.types import install_command

pytestmark = pytest.mark.slow

WORDS = ["bm25", "tfidf", "hash"]


@pytest.fixture(autouse=True)
def nothing_but_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models of the demo are not installed, so that it takes seconds here."""
    absent = [
        ModelListing(name, name, "nothing", MissingRequirement("a package", "pip install it")) for name in DEMO_MODELS
    ]
    monkeypatch.setattr(inventory, "list_models", lambda: absent)


def test_it_needs_no_model_and_opens_with_the_answer(eq) -> None:
    done = eq("demo", env={"COLUMNS": "100"})
    assert done.exit_code == 0
    assert "Comparing 3 models on 130 questions" in done.stderr
    assert "Not installed: minilm, use, wordllama. See eq ls models." in done.stderr
    assert "eq view equipoise-demo.\nNext: " in done.stdout
    assert "130 questions" in done.stdout.splitlines()[0]
    assert len(done.stdout.splitlines()) <= 16


def test_its_results_are_kept_and_read_back_by_other_commands(eq, folder: Path) -> None:
    done = eq("demo", "-o", "my results/", "--json")
    told = json.loads(done.stdout)
    _words_beat_the_floor_within_the_budget(told)
    assert [each["model_spec"] for each in told["models"]] == WORDS
    assert sorted(path.name for path in (folder / "my results" / "runs").iterdir()) == sorted(WORDS)
    written = json.loads((folder / "my results" / "results.json").read_text())
    assert written["settings"]["budget"] == DEMO_BUDGET
    runs = [f"my results/runs/{name}" for name in WORDS]
    again = json.loads(eq("compare", *runs, "--json").stdout)
    assert again["order"] == told["comparison"]["order"]
    assert "bm25" in (folder / "my results" / "report.html").read_text()
    assert "eq view 'my results'.\nNext: " in eq("demo", "-o", "my results/").stdout


def test_the_report_has_the_statistics_and_the_answer_of_the_command(eq, folder: Path) -> None:
    done = eq("demo", "--confidence-level", "0.9", "--n-resamples", "500", env={"COLUMNS": "200"})
    page = (folder / "equipoise-demo" / "report.html").read_text()
    assert "90 % interval" in done.stdout
    assert done.stdout.partition(".")[0].replace("\n", " ") in page
    assert "90 %" in page
    assert "95 % interval" not in page


def test_without_the_chart_converter_the_page_is_written_and_the_install_command_is_shown(
    eq, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    done = eq("demo")
    assert done.exit_code == 0
    assert install_command("report") in done.stderr
    assert (folder / "equipoise-demo" / "report.html").exists()


def _words_beat_the_floor_within_the_budget(told: dict) -> None:
    accuracy = {each["model_spec"]: each["nested_accuracy"] for each in told["models"]}
    assert 60 < accuracy["bm25"] < 95
    assert accuracy["hash"] < accuracy["bm25"] - 20
    spent = [each["tokens"] for each in map(_best, told["models"])]
    assert all(tokens <= DEMO_BUDGET for tokens in spent)


def _best(model: dict) -> dict:
    """The configuration that scored best, with the tokens it retrieves."""
    return next(
        each for each in model["all_results"] if all(each[key] == value for key, value in model["best_params"].items())
    )


def test_a_file_where_the_folder_should_be_is_refused_before_the_work(eq, folder: Path) -> None:
    done = eq("demo", "-o", "truth.qrels")
    assert done.exit_code == 2
    assert "Comparing" not in done.stderr
