"""``--to`` and ``-o`` of commands that print tables."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from equipoise.cli.output import TABLE_FORMATS

COMPARE = ("compare", "bad.trec", "good.trec", "--qrels", "truth.qrels", "-m", "MRR")
SCORE = ("score", "bad.trec", "good.trec", "--qrels", "truth.qrels", "-m", "MRR", "-m", "HR@1")


def parse_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("arguments", [COMPARE, ("ls", "checks"), ("ls", "tests")], ids=" ".join)
@pytest.mark.parametrize("format_name", TABLE_FORMATS)
def test_a_file_equals_the_standard_output(eq, folder: Path, arguments: tuple[str, ...], format_name: str) -> None:
    suffix = {"latex": "tex"}.get(format_name, format_name)
    printed = eq(*arguments, "--to", format_name)
    written = eq(*arguments, "-o", f"table.{suffix}")
    assert (printed.exit_code, written.exit_code) == (0, 0)
    assert written.stdout == ""
    assert f"wrote table.{suffix}" in written.stderr
    assert (folder / f"table.{suffix}").read_text() == printed.stdout


def test_the_format_overrides_the_suffix(eq, folder: Path) -> None:
    assert eq("ls", "checks", "--to", "csv", "-o", "checks.txt").exit_code == 0
    assert parse_csv((folder / "checks.txt").read_text())[0].keys() == {"code", "severity", "title"}


@pytest.mark.parametrize(
    "arguments", [(*COMPARE, "--to", "csv", "-o", "table.md"), ("ls", "checks", "--to", "md", "-o", "checks.jsonl")]
)
def test_the_suffix_must_fit_the_format(eq, assert_error, folder: Path, arguments: tuple[str, ...]) -> None:
    assert_error(eq(*arguments), "E310", arguments[-1], arguments[-3])
    assert not (folder / arguments[-1]).exists()


def test_a_file_with_other_content_is_not_replaced(eq, folder: Path) -> None:
    assert eq(*COMPARE, "-o", "table.csv").exit_code == 0
    assert eq(*SCORE, "--to", "csv").stdout != (folder / "table.csv").read_text()
    assert eq(*COMPARE[:-1], "HR@1", "-o", "table.csv").exit_code == 0, "another table of the command"
    (folder / "queries.csv").write_text("query,positive\nq,p\n")
    refused = eq(*COMPARE, "-o", "queries.csv")
    assert refused.exit_code == 2
    assert "error[E500]" in refused.stderr
    assert (folder / "queries.csv").read_text() == "query,positive\nq,p\n"


def test_to_json_is_json(eq) -> None:
    assert eq(*COMPARE, "--to", "json").stdout == eq(*COMPARE, "--json").stdout


def test_csv_of_scores_has_one_row_per_system_and_metric(eq) -> None:
    scores = {
        (row["system"], row["metric"]): float(row["value"]) for row in parse_csv(eq(*SCORE, "--to", "csv").stdout)
    }
    results = json.loads(eq(*SCORE, "--json").stdout)["results"]
    assert scores == {
        (result["system"], estimate["metric"]): estimate["value"]
        for result in results
        for estimate in result["estimates"]
    }


def test_a_comparison_is_exported_like_stored_runs(eq) -> None:
    assert eq(*SCORE[:5], "-m", "MRR", "-o", "results").exit_code == 0
    compared = eq("compare", "results/bad", "results/good", "--to", "latex").stdout
    assert compared == eq("export", "results/bad", "results/good", "--to", "latex").stdout
    assert r"\toprule" in compared


def test_a_markdown_table_escapes_its_cells(eq, folder: Path) -> None:
    (folder / "a|b.trec").write_text((folder / "good.trec").read_text())
    assert r"a\|b" in eq("score", "a|b.trec", "bad.trec", "--qrels", "truth.qrels", "--to", "md").stdout


def test_csv_cells_are_escaped_against_formulas(eq, folder: Path) -> None:
    from equipoise.report.export.tables import format_parts
    from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable

    table = TerminalTable([ReportColumn("name", ["=1+1", "a,b"])])
    assert format_parts([table, Paragraph("left out")], "csv") == 'name\n\'=1+1\n"a,b"\n'


def test_nothing_is_written_when_a_command_fails(eq, assert_error, folder: Path) -> None:
    assert_error(
        eq("compare", "good.trec", "none.trec", "--qrels", "truth.qrels", "-o", "table.md"), "E200", "none.trec"
    )
    assert not (folder / "table.md").exists()
