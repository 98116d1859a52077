"""``eq bench`` as a command."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Eq = Callable[..., Any]

FAST = ("--n-resamples", "100", "--n-permutations", "1000")


@pytest.fixture
def data(folder: Path) -> Path:
    """Two tables and a BEIR folder in the working folder."""
    rows = [f"question {row} word{row},answer {row} word{row}" for row in range(20)]
    (folder / "faq.csv").write_text("question,answer\n" + "\n".join(rows) + "\n")
    tickets = [f"ticket {row} kind{row % 2},kind{row % 2}" for row in range(20)]
    (folder / "tickets.csv").write_text("subject,label\n" + "\n".join(tickets) + "\n")
    return folder


def test_every_metric_of_a_kind_can_be_explained(eq: Eq) -> None:
    for kind in json.loads(eq("bench", "ls", "--json").stdout):
        for name in kind["metrics"]:
            assert eq("explain", name).exit_code == 0, name


def test_a_run_prints_the_decision_first(eq: Eq, data: Path) -> None:
    result = eq("bench", "run", "faq.csv", "--models", "hash", *FAST)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "20 queries" in lines[0]
    assert lines[2].split()[:3] == ["rank", "system", "nDCG@10"]
    assert len(lines) <= 15
    verbose = eq("bench", "run", "faq.csv", "--models", "hash", *FAST, "-v").stdout
    assert verbose.startswith("faq: retrieval, 20 queries, 20 documents\n")
    assert "queries: question; documents: answer." in verbose


def test_several_data_sets_have_one_table(eq: Eq, data: Path) -> None:
    result = eq("bench", "run", "faq.csv", "tickets.csv", "--models", "hash", "--text", "subject", *FAST)
    assert result.exit_code == 0, result.output  # --text applies to the tables that have the column
    lines = result.stdout.splitlines()
    assert "2 data sets" in lines[0]
    assert {"faq", "tickets"} <= set(lines[2].split())


def test_csv_is_numeric(eq: Eq, data: Path) -> None:
    for sources in (["faq.csv"], ["faq.csv", "tickets.csv", "--text", "subject"]):
        table = eq("bench", "run", *sources, "--models", "hash", *FAST, "--to", "csv").stdout
        for row in csv.DictReader(table.splitlines()):
            del row["system"]
            assert all(value == "" or np.isfinite(float(value)) for value in row.values()), row


def test_a_repeated_run_reads_the_stored_results(eq: Eq, data: Path) -> None:
    arguments = ("bench", "run", "faq.csv", "--models", "hash", "-o", "out", *FAST)
    first, second = eq(*arguments), eq(*arguments)
    assert "wrote out" in first.stderr
    assert "results read from out" in second.stderr
    assert first.stdout == second.stdout


def test_json_has_the_decision_the_scores_and_the_costs(eq: Eq, data: Path) -> None:
    result = eq("bench", "run", "faq.csv", "--models", "hash", "--no-baselines", "--dims", "16", "--json", *FAST)
    content: dict[str, Any] = json.loads(result.stdout)
    assert content["decision"]["best"] in ("hash", "hash,dim=16")
    (dataset,) = content["datasets"]
    assert [system["name"] for system in dataset["systems"]] == ["hash", "hash,dim=16"]
    assert dataset["systems"][0]["cost"]["dims"] == 256


def test_a_stored_run_can_be_gated_and_reported(eq: Eq, data: Path) -> None:
    eq("bench", "run", "faq.csv", "--models", "hash", "-o", "out", *FAST)
    assert eq("gate", "out/runs/faq/hash", "--require", "nDCG@10>=0.1").exit_code == 0
    assert eq("report", "out", "-o", "page.html", "--no-charts", *FAST).exit_code == 0
    assert "hash" in Path("page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--models", "hash"), "E310"),
        (("faq.csv", "--no-baselines"), "E310"),
        (("faq.csv",), "E310"),
        (("similarty:faq.csv", "--models", "hash"), "E300"),
        (("faq.csv", "--models", "hash", "--rerankers", "cross-encoder:/no/such"), "E200"),
        (("nowhere/", "--models", "hash"), "E200"),
        (("faq.csv", "--models", "hahs"), "E300"),
        (("faq.csv", "--models", "hash", "bge-base,dims=256"), "E310"),
        (("faq.csv", "--models", "hash", "--dtypes", "int7"), "E300"),
        (("faq.csv", "--models", "hash", "--price", "hash"), "E310"),
        (("faq.csv", "--models", "hash", "--price", "hash=nan"), "E310"),
        (("faq.csv", "--models", "hash", "--price", "hash=-3"), "E310"),
        (("faq.csv", "--models", "hash", "--price", "=1"), "E300"),
        (("faq.csv", "--models", "hash", "--tune", "fusion"), "E310"),
        (("faq.csv", "--models", "hash", "--tune", "weight"), "E300"),
        (("tickets.csv", "--models", "hash"), "E204"),
        (("faq.csv", "tickets.csv", "--models", "hash", "--text", "body"), "E300"),
    ],
)
def test_bad_input_has_a_code_and_exit_status_2(eq: Eq, data: Path, arguments: tuple[str, ...], code: str) -> None:
    result = eq("bench", "run", *arguments, "--json")
    assert result.exit_code == 2
    assert json.loads(result.stderr.splitlines()[-1])["error"]["code"] == code


def test_kinds_are_listed(eq: Eq) -> None:
    kinds = json.loads(eq("bench", "ls", "--json").stdout)
    assert {entry["kind"] for entry in kinds} >= {"retrieval", "similarity", "bitext"}
    (few_shot,) = [entry for entry in kinds if entry["kind"] == "few-shot"]
    assert few_shot["metrics"] == ["Acc"]
    text = eq("bench", "ls").stdout
    assert "reranking" in text
    assert "few-shot  " in text


def test_a_suite_is_one_page_with_a_report_per_data_set(eq: Eq, data: Path) -> None:
    column_option = ("--text", "subject")
    eq("bench", "run", "faq.csv", "tickets.csv", "--models", "hash", *column_option, "-o", "out", *FAST)
    result = eq("report", "out", "-o", "page.html", "--no-charts", *FAST)
    assert result.exit_code == 0, result.output
    page = Path("page.html").read_text()
    assert "2 data sets" in page
    for name in ("faq", "tickets"):
        assert f'href="page-{name}.html"' in page
        assert Path(f"page-{name}.html").is_file()


def test_a_failed_model_is_in_the_answer_and_on_the_page(eq: Eq, data: Path) -> None:
    models = ("--models", "hash", "py:missing_import.one", "py:missing_import.two")
    result = eq("bench", "run", "faq.csv", *models, "-o", "out", *FAST)
    start = "2 of 3 requested models failed: py:missing_import.one, py:missing_import.two ("
    assert result.exit_code == 3
    assert result.stdout.splitlines()[1].startswith(start)
    eq("report", "out", "-o", "page.html", "--no-charts")
    assert start in Path("page.html").read_text()
    both = ("faq.csv", "tickets.csv", "--text", "subject", "-o", "suite", *FAST)
    result = eq("bench", "run", *both, *models[:3])
    assert result.stdout.splitlines()[1].startswith("2 of 4 evaluations failed: py:missing_import.one on faq, ")
    eq("report", "suite", "-o", "page.html", "--no-charts")
    assert "2 of 4 evaluations failed: " in Path("page.html").read_text()


def test_a_report_has_only_the_runs_of_the_last_command(eq: Eq, data: Path) -> None:
    eq("bench", "run", "faq.csv", "--models", "hash", "hash,dim=16", "-o", "out", *FAST)
    answer = eq("bench", "run", "faq.csv", "--models", "hash", "-o", "out", *FAST).stdout.splitlines()[0]
    result = eq("report", "out", "-o", "page.html", "--no-charts", "--json")
    assert json.loads(result.stdout)["verdict"] == answer
    assert sorted(json.loads(result.stdout)["systems"]) == ["bm25", "hash", "random", "tfidf"]
    assert "not shown: faq/hash,dim=16." in result.stderr
    assert "not shown: faq/hash,dim=16." in Path("page.html").read_text()
    tickets = ("bench", "run", "tickets.csv", "--text", "subject", "--models", "hash", "-o", "out", *FAST)
    answer = eq(*tickets).stdout.splitlines()[0]
    result = eq("report", "out", "-o", "page.html", "--no-charts", "--json")
    assert json.loads(result.stdout)["verdict"] == answer
    assert not Path("page-faq.html").exists()


def test_a_folder_takes_further_data_sets_but_no_changed_ones(eq: Eq, data: Path) -> None:
    arguments = ("bench", "run", "faq.csv", "--models", "hash", "-o", "out", *FAST)
    assert eq(*arguments).exit_code == 0
    (data / "faq.csv").write_text((data / "faq.csv").read_text().replace("word3", "word4"))
    refused = eq(*arguments)
    assert (refused.exit_code, "error[E500]" in refused.stderr) == (2, True)
    run = ("concepts", "run", "--models", "hash", "--task", "similarity", "-o", "out")
    assert "error[E500]" in eq(*run).stderr


def test_tables_of_several_data_sets_have_their_names(eq: Eq, data: Path) -> None:
    eq("bench", "run", "faq.csv", "tickets.csv", "--models", "hash", "--text", "subject", "-o", "out", *FAST)
    exported = eq("export", "out", "--to", "latex").stdout
    for name in ("faq", "tickets"):
        assert rf"\label{{tab:equipoise-{name}}}" in exported
        assert f" of {name}, ordered by" in exported
    refused = eq("compare", "out")
    assert refused.exit_code == 2
    assert "eq report out/runs/faq" in refused.stderr


def test_an_export_has_one_table_per_data_set(eq: Eq, data: Path) -> None:
    both = ("faq.csv", "tickets.csv", "--text", "subject", "-o", "out", *FAST)
    eq("bench", "run", *both, "--models", "hash")
    result = eq("export", "out", "--to", "md")
    assert result.exit_code == 0, result.stderr
    assert [line for line in result.stdout.splitlines() if line.startswith("## ")] == ["## faq", "## tickets"]
    latex = eq("export", "out", "--to", "latex").stdout
    assert latex.count(r"\begin{table}") == 2
    refused = eq("export", "out", "--to", "csv")
    assert (refused.exit_code, "error[E310]" in refused.stderr) == (2, True)
    assert eq("export", "out/runs/faq", "--to", "csv").exit_code == 0


def test_a_suite_has_only_the_runs_of_the_last_command(eq: Eq, data: Path) -> None:
    both = ("faq.csv", "tickets.csv", "--text", "subject", "-o", "out", *FAST)
    eq("bench", "run", *both, "--models", "hash", "hash,dim=16")
    eq("bench", "run", *both, "--models", "hash")
    result = eq("report", "out", "-o", "page.html", "--no-charts")
    assert "not shown: faq/hash,dim=16 and tickets/hash,dim=16." in result.stderr
    assert "not shown: faq/hash,dim=16 and tickets/hash,dim=16." in Path("page.html").read_text()
    systems = "<td>hash,dim=16</td>", ">hash,dim=16</"
    assert not any(cell in Path("page-faq.html").read_text() for cell in systems)


def test_a_file_name_with_a_typo_gets_a_suggestion(eq: Eq, data: Path) -> None:
    result = eq("bench", "run", "faq.cvs", "--models", "hash")
    assert "did you mean faq.csv?" in result.stderr
