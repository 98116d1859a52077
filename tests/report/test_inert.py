"""Names from untrusted files are printed without control characters in terminals, tables and pages."""

from __future__ import annotations

import csv
import io
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from equipoise.cli.main import cli
from equipoise.cli.output import Output
from equipoise.redaction import inert
from equipoise.report.build_view import build_view
from equipoise.report.export import export
from equipoise.report.export.tables import inert_cell
from equipoise.report.html.render import render_html
from equipoise.report.terminal import ReportColumn, TerminalTable, render_text
from equipoise.runs.compare import compare
from equipoise.runs.run_folder import StoredRun
from stored_runs import synthetic_runs

ATTACK = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\u2066\x7f\r"
BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def is_clean(text: str) -> bool:
    """Whether a text has no control characters (Unicode category Cc) and no bidirectional controls."""
    normalised = text.replace("\r\n", "\n")
    controls = (
        character for character in normalised if unicodedata.category(character) == "Cc" and character not in "\t\n"
    )
    return not any(controls) and not BIDI & set(text)


@pytest.fixture
def hostile(tmp_path: Path) -> list[StoredRun]:
    """Two runs with escape sequences and formulas in names, units and metrics."""
    values = {f"M{ATTACK}": np.array([[0.1, 0.5, 0.9], [0.2, 0.4, 0.8]])}
    return synthetic_runs(tmp_path, [ATTACK, f"=cmd|'/c calc'!A1{ATTACK}"], values, units=["@u1", "-2", f"+{ATTACK}"])


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    assert is_clean(inert(text))
    assert inert(inert(text)) == inert(text)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_other_text_is_unchanged(text: str) -> None:
    assert inert(text) == text


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@SUM(A1)", "\tx", "\rx", "-", "＝1", "=", "-1,5"])
def test_spreadsheet_formulas_are_quoted(text: str) -> None:
    assert inert_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-0.5", "+1.2", "-1e-9", "1", "", "bm25", "a=b", "'=1"])
def test_numbers_and_other_names_are_not_quoted(text: str) -> None:
    assert inert_cell(text) == text


@pytest.mark.parametrize("format_name", ["latex", "md", "csv", "json", "card", "bibtex"])
def test_exports_are_clean(hostile: list[StoredRun], format_name: str) -> None:
    comparison = compare([run.result for run in hostile])
    assert is_clean(export(hostile, comparison, format_name))


@pytest.mark.parametrize("units", [True, False])
@pytest.mark.parametrize("formulas", [True, False])
def test_csv_has_formulas_only_with_the_option(hostile: list[StoredRun], units: bool, formulas: bool) -> None:
    comparison = compare([run.result for run in hostile])
    text = export(hostile, comparison, "csv", units=units, formulas=formulas)
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    formula_cells = [cell for cell in cells if cell.startswith(("=", "+", "@"))]
    assert bool(formula_cells) == formulas
    assert not any(cell.startswith("'") for cell in cells) or not formulas
    assert "-2" in cells or not units


def test_tables_and_paragraphs_are_clean() -> None:
    text = render_text(TerminalTable([ReportColumn(ATTACK, [ATTACK])]))
    assert is_clean(text)
    assert "\\x1b" in text


@pytest.mark.parametrize("method", ["text", "note", "error"])
def test_the_output_of_a_command_is_clean(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = Output()
    out.error({}, ATTACK) if method == "error" else getattr(out, method)(ATTACK)
    captured = capsys.readouterr()
    assert is_clean(captured.out + captured.err)
    assert "owned" in captured.out + captured.err


def test_commands_print_no_escape_sequences_of_files(hostile: list[StoredRun], tmp_path: Path) -> None:
    paths = [str(run.path) for run in hostile]
    for arguments in (["compare", *paths], ["compare", *paths, "--json"], ["export", paths[0], "--to", "md"]):
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == 0, result.output
        assert is_clean(result.output)
    result = CliRunner().invoke(cli, ["score", ATTACK, "--qrels", ATTACK])
    assert (result.exit_code, is_clean(result.output)) == (2, True)


def test_pages_are_clean_and_isolate_names(hostile: list[StoredRun]) -> None:
    pytest.importorskip("jinja2")
    report = render_html(build_view(hostile, compare([run.result for run in hostile])), charts=False)
    assert is_clean(report)
    assert ">a\\x1b]0;owned" in report
    assert "unicode-bidi: isolate" in report
