"""``eq demo``: the fair comparison on the bundled document."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from equipoise.domains.fair.cli import DEMO_BUDGET, DEMO_MODELS
from equipoise.models import inventory
from equipoise.models.inventory import MissingRequirement, ModelListing
from equipoise.types import install_command

pytestmark = pytest.mark.slow

LEXICAL_MODELS = ["bm25", "tfidf", "hash"]


@pytest.fixture(autouse=True)
def lexical_models_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report the models of the demo as not installed, so that the demo takes seconds."""
    absent = [
        ModelListing(name, name, "nothing", MissingRequirement("a package", "pip install it")) for name in DEMO_MODELS
    ]
    monkeypatch.setattr(inventory, "list_models", lambda: absent)


def test_the_demo_needs_no_embedding_model_and_starts_with_the_verdict(eq) -> None:
    result = eq("demo", env={"COLUMNS": "100"})
    assert result.exit_code == 0
    assert "Comparing 3 models on 130 questions" in result.stderr
    assert "Not installed: minilm, use, wordllama. See eq ls models." in result.stderr
    assert result.stdout.endswith("eq view equipoise-demo.\n")
    assert "130 questions" in result.stdout.splitlines()[0]
    assert len(result.stdout.splitlines()) <= 16


def test_the_demo_offers_the_tests_that_it_can_run(eq) -> None:
    result = eq("demo", "--test", "mcnemar")
    assert result.exit_code == 2
    assert "E300" in result.stderr
    assert "[randomisation|t|wilcoxon]" in eq("demo", "--help").stdout


def test_csv_is_numeric(eq) -> None:
    rows = list(csv.DictReader(eq("demo", "--to", "csv").stdout.splitlines()))
    assert sorted(row["model"] for row in rows) == sorted(LEXICAL_MODELS)
    for row in rows:
        assert all(float(value) >= 0 for head, value in row.items() if head not in ("model", "chunking")), row


def test_stored_results_are_read_by_other_commands(eq, folder: Path) -> None:
    result = eq("demo", "-o", "my results/", "--json")
    content = json.loads(result.stdout)
    _check_lexical_models(content)
    assert [model["model_spec"] for model in content["models"]] == LEXICAL_MODELS
    assert sorted(path.name for path in (folder / "my results" / "runs").iterdir()) == sorted(LEXICAL_MODELS)
    written = json.loads((folder / "my results" / "results.json").read_text())
    assert written["settings"]["budget"] == DEMO_BUDGET
    runs = [f"my results/runs/{name}" for name in LEXICAL_MODELS]
    compared = json.loads(eq("compare", *runs, "--json").stdout)
    assert compared["order"] == content["comparison"]["order"]
    assert "bm25" in (folder / "my results" / "report.html").read_text()
    assert eq("demo", "-o", "my results/").stdout.endswith("eq view 'my results'.\n")


def test_the_report_has_the_statistics_and_the_verdict_of_the_command(eq, folder: Path) -> None:
    result = eq("demo", "--confidence-level", "0.9", "--n-resamples", "500", env={"COLUMNS": "200"})
    page = (folder / "equipoise-demo" / "report.html").read_text()
    assert "90 % interval" in result.stdout
    assert result.stdout.partition(".")[0].replace("\n", " ") in page
    assert "90 %" in page
    assert "95 % interval" not in page


def test_without_the_chart_converter_the_page_is_written_and_the_install_command_is_shown(
    eq, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    result = eq("demo")
    assert result.exit_code == 0
    assert install_command("report") in result.stderr
    assert (folder / "equipoise-demo" / "report.html").exists()


def _check_lexical_models(content: dict) -> None:
    accuracy = {item["model_spec"]: item["nested_accuracy"] for item in content["models"]}
    assert 60 < accuracy["bm25"] < 95
    assert accuracy["hash"] < accuracy["bm25"] - 20
    token_counts = [item["tokens"] for item in map(_best, content["models"])]
    assert all(tokens <= DEMO_BUDGET for tokens in token_counts)


def _best(model: dict) -> dict:
    """The best configuration, with the number of retrieved tokens."""
    return next(
        configuration
        for configuration in model["all_results"]
        if all(configuration[key] == value for key, value in model["best_params"].items())
    )


def test_an_output_path_that_is_a_file_is_an_error_before_the_run(eq, folder: Path) -> None:
    result = eq("demo", "-o", "truth.qrels")
    assert result.exit_code == 2
    assert "Comparing" not in result.stderr
