"""``eq audit`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.audit.rules import MISLEADING_CODES
from equipoise.cli.main import COMMANDS, CommandEntry


@pytest.fixture(autouse=True)
def _entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the command in the table of commands."""
    monkeypatch.setitem(COMMANDS, "audit", CommandEntry("equipoise.audit.cli:audit", "Find impossible values."))


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return name


def test_an_impossible_table_exits_with_1_and_shows_the_derivation(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,HR@1,P@1,MRR\nbiolord,0.3333,1.0000,0.5361\n")
    result = eq("audit", table)
    assert result.exit_code == 1, result.stderr
    assert "EQ401  biolord: HR@1 0.3333 and P@1 1.0000 differ, but are equal by definition" in result.stdout
    assert "P@1 1.0000 is printed, so the value is 0.99995 to 1" in result.stdout
    assert "1 impossible result in biolord." in result.stdout


def test_a_possible_table_exits_with_0(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,HR@1,MRR,latency\na,0.33,0.5361,12\n")
    result = eq("audit", table)
    assert result.exit_code == 0, result.stderr
    assert "No impossible value was found, which does not mean that the values are correct." in result.stdout
    assert "Not recognised as a metric or a number: latency" in result.stdout


def test_a_declared_assumption_changes_a_note_to_an_issue(eq, folder: Path) -> None:
    table = write(folder, "table.md", "| Median Rank | MAP (%) |\n|---|---|\n| 3.00 | 93.45 |\n")
    without_assumption, with_assumption = eq("audit", table), eq("audit", table, "--one-relevant")
    assert (without_assumption.exit_code, with_assumption.exit_code) == (0, 1)
    assert "impossible if every query has one relevant item (EQ404)" in without_assumption.stdout
    assert "1 result would be impossible under an assumption" in without_assumption.stdout
    assert "EQ404" in with_assumption.stdout


def test_granularity_depends_on_n(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,HR@1\na,0.333\n")
    assert eq("audit", table, "--no-ties", "--n", "200").exit_code == 1
    assert eq("audit", table, "--no-ties", "--n", "300").exit_code == 0
    assert eq("audit", table, "--no-ties").exit_code == 0


def test_json_contains_the_derivation(eq, folder: Path) -> None:
    table = write(folder, "table.json", '{"HR@1": 0.62, "HR@5": 0.51}')
    result = eq("audit", table, "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == 1
    assert data["impossible"] == 1
    (finding,) = data["tables"][0]["findings"]
    assert finding["code"] == "EQ402"
    assert finding["derivation"][0] == "a query with a relevant item in the top 1 has one in the top 5"


def test_run_directories_have_no_impossible_values(eq, folder: Path) -> None:
    options = [
        "--qrels",
        "truth.qrels",
        "-m",
        "MRR",
        "-m",
        "HR@{1,3}",
        "-m",
        "nDCG@10",
        "-m",
        "MR",
        "-o",
        "results",
    ]
    eq("score", "good.trec", "bad.trec", "--corpus-size", "5", *options)
    result = eq("audit", "results")
    assert result.exit_code == 0, result.stdout
    assert "10 values in 2 rows" in result.stdout


@pytest.mark.parametrize("format_name", ["csv", "md", "latex", "json"])
def test_exported_tables_have_no_impossible_values(format_name: str, eq, folder: Path) -> None:
    runs = ["good.trec", "middle.trec", "--qrels", "truth.qrels", "--corpus-size", "5"]
    eq("score", *runs, "-m", "MRR", "-m", "HR@{1,3}", "-m", "MAP@3", "-o", "results")
    name = {"latex": "table.tex"}.get(format_name, f"table.{format_name}")
    assert eq("export", "results", "--to", format_name, "-o", name).exit_code == 0
    result = eq("audit", name, "--json", "--one-relevant", "--n", "12")
    assert result.exit_code == 0, result.stdout
    assert json.loads(result.stdout)["tables"][0]["values"] >= 8


def test_a_modified_result_is_impossible(eq, folder: Path) -> None:
    eq(
        "score",
        "good.trec",
        "--qrels",
        "truth.qrels",
        "-m",
        "MRR",
        "-m",
        "HR@{1,3}",
        "-o",
        "results",
    )
    (path,) = (folder / "results").rglob("result.json")
    content = json.loads(path.read_text())
    content["estimates"][1]["value"] = 0.99
    path.write_text(json.dumps(content))
    result = eq("audit", "results")
    assert result.exit_code == 1
    assert "EQ403" in result.stdout


def test_quiet_prints_impossible_values_only(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,HR@1,HR@5,MedianRank,MAP\na,0.62,0.51,3,0.9\n")
    result = eq("audit", table, "-q")
    assert "EQ402" in result.stdout
    assert "EQ450" not in result.stdout


# ---- bad input ---------------------------------------------------------------------------------


def test_a_folder_without_metrics_counts_its_tables(eq, folder: Path) -> None:
    (folder / "tables").mkdir()
    write(folder, "tables/one.csv", "a,b\nx,1\n")
    write(folder, "tables/two.csv", "c,d\ny,2\n")
    assert "none of 2 tables has a known metric" in eq("audit", "tables").stderr


def test_a_table_without_metrics_gets_a_suggestion(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,nDGC@10,seconds\na,0.5,12\n")
    result = eq("audit", table)
    assert result.exit_code == 2
    assert "table.csv has no known metric; its numbers have the labels nDGC@10, seconds" in result.stderr
    assert "did you mean nDCG@10 for nDGC@10?" in result.stderr


def test_duplicate_columns_are_errors(eq, folder: Path) -> None:
    result = eq("audit", write(folder, "table.csv", "system,MRR,MRR\na,0.5,0.6\n"))
    assert result.exit_code == 2
    assert "table.csv has two columns called 'MRR'" in result.stderr


@pytest.mark.parametrize("n", ["0", "-5", "many"])
def test_an_invalid_n_is_an_error(n: str, eq, folder: Path) -> None:
    result = eq("audit", write(folder, "table.csv", "system,MRR\na,0.5\n"), "--n", n)
    assert result.exit_code == 2
    assert "n" in result.stderr


@pytest.mark.parametrize("n", ["0", "12.5", "some"])
def test_an_invalid_n_in_the_table_is_an_error(n: str, eq, folder: Path) -> None:
    result = eq("audit", write(folder, "table.csv", f"system,n,MRR\nbm25,{n},0.5\n"))
    assert result.exit_code == 2
    assert f"n of bm25 is {n}" in result.stderr or f"is {n}" in result.stderr


def test_an_n_that_contradicts_the_table_is_an_error(eq, folder: Path) -> None:
    result = eq("audit", write(folder, "table.csv", "system,n,MRR\na,70,0.5\n"), "--n", "200")
    assert result.exit_code == 2
    assert "a states 70 queries, and --n is 200" in result.stderr


def test_nothing_to_audit_and_a_missing_file_are_errors(eq, folder: Path) -> None:
    assert eq("audit").exit_code == 2
    result = eq("audit", "tabel.csv")
    assert result.exit_code == 2
    assert "there is no file tabel.csv" in result.stderr


def test_results_of_a_preset_that_rounds_are_possible(eq, folder: Path) -> None:
    write(folder, "t.qrels", "a 0 x 1\nb 0 y 1\nc 0 z 1\n")
    lists = "".join(f"{query} Q0 x 1 2 r\n{query} Q0 y 2 1 r\n" for query in "abc")
    write(folder, "r.trec", lists)
    scored = eq(
        *("score", "r.trec", "--qrels", "t.qrels", "--like", "mteb"),
        *("-m", "HR@1", "-m", "MRR@1", "-m", "HR@10", "-o", "lk"),
    )
    assert scored.exit_code == 0, scored.stderr
    result = eq("audit", "lk")
    assert result.exit_code == 0, result.stdout
    assert "Not read" not in result.stdout


def test_a_missing_folder_is_an_error(eq, folder: Path) -> None:
    result = eq("audit", "lg")
    assert result.exit_code == 2
    assert "extension" not in result.stderr
    assert "lg" in result.stderr


@pytest.mark.parametrize(("name", "text"), [("t.json", '{"HR@1": 1e999}'), ("t.csv", "a,HR@1\nx,1e9999999\n")])
def test_infinite_numbers_do_not_stop_the_audit(eq, folder: Path, name: str, text: str) -> None:
    assert eq("audit", write(folder, name, text)).exit_code in (0, 2)


def test_a_declared_denominator_is_used(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,MAP@3,nDCG@3\na,1.0000,0.4693\n")
    assert eq("audit", table, "--binary").exit_code == 0
    assert eq("audit", table, "--binary", "--map-over-relevant").exit_code == 1


def test_a_table_with_unreadable_values_is_an_error(eq, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"HR@1": 1e999}')
    result = eq("audit", str(tmp_path / "t.json"))
    assert result.exit_code == 2
    assert "1e999" in result.stderr


def test_the_summary_names_the_option_of_an_assumption(eq, folder: Path) -> None:
    table = write(folder, "table.md", "| Median Rank | MAP (%) |\n|---|---|\n| 3.00 | 93.45 |\n")
    _, summary = eq("audit", table).stdout.split("\n\n")[0].splitlines()
    assert summary == (
        "No impossible value was found, which does not mean that the values are correct. 1 result would be impossible "
        "under an assumption. If it holds, declare it with --one-relevant."
    )


def test_misleading_and_impossible_values_are_counted_separately(eq, folder: Path) -> None:
    bounds = '"ci_lower": 88.3, "ci_upper": 97.4, "configs": 27'
    row = f'{{"best_accuracy": 94.4, {bounds}, "HR@1": 62.0, "HR@5": 51.0}}'
    table = write(folder, "table.json", f"[{row}]")
    result = eq("audit", table)
    assert result.exit_code == 1
    assert "1 impossible result in 1. 1 misleading value in 1/best." in result.stdout
    data = json.loads(eq("audit", table, "--json").stdout)
    assert (data["impossible"], data["misleading"]) == (1, 1)


@pytest.mark.parametrize("format_name", ["csv", "md", "latex", "json"])
@pytest.mark.parametrize("several", [False, True])
def test_exports_of_a_preset_name_the_library_and_are_possible(
    format_name: str, several: bool, eq, folder: Path
) -> None:
    write(folder, "t.qrels", "a 0 x 1\nb 0 y 1\nc 0 z 1\n")
    lists = "".join(f"{query} Q0 y 1 2 r\n{query} Q0 x 2 2 r\n" for query in "ab")
    runs = [f"one={write(folder, 'one.trec', lists)}"]
    runs += [f"two={write(folder, 'two.trec', lists)}"] if several else []
    metrics = ["-m", "HR@1", "-m", "P@1", "-m", "MRR@10"]
    scored = eq("score", *runs, "--qrels", "t.qrels", "--like", "beir", *metrics, "-o", "results")
    assert scored.exit_code == 0, scored.stderr
    name = {"latex": "table.tex"}.get(format_name, f"table.{format_name}")
    exported = eq("export", "results", "--to", format_name, "-o", name)
    assert exported.exit_code == 0, exported.stderr
    assert "beir" in (folder / name).read_text()
    result = eq("audit", name)
    assert result.exit_code == 0, result.stdout
    assert "No impossible value was found" in result.stdout


def test_a_file_that_cannot_be_read_does_not_stop_the_audit_of_a_folder(eq, folder: Path) -> None:
    (folder / "tables").mkdir()
    write(folder / "tables", "a.json", '{"HR@1": 0.31, "HR@5": ')
    write(folder / "tables", "b.csv", "system,HR@1,HR@5\na,0.31,0.52\n")
    write(folder / "tables", "c.csv", "system,n,HR@1\na,0,0.52\n")
    result = eq("audit", "tables")
    assert result.exit_code == 3
    assert "2 values in 1 row" in result.stdout
    assert "a.json" in result.stderr
    assert "c.csv" in result.stderr
    data = json.loads(eq("audit", "tables", "--json").stdout)
    assert len(data["tables"][0]["failures"]) == 2
    write(folder / "tables", "d.csv", "system,HR@1,HR@5\na,0.52,0.31\n")
    assert eq("audit", "tables").exit_code == 1


def test_a_table_that_cannot_be_read_does_not_stop_the_others(eq, folder: Path) -> None:
    readable_table = write(folder, "good.csv", "system,HR@1\na,0.31\n")
    result = eq("audit", "missing.csv", readable_table)
    assert result.exit_code == 3
    assert "1 value in 1 row" in result.stdout
    assert "missing.csv" in result.stderr
    assert eq("audit", "missing.csv", "absent.csv").exit_code == 2


def test_a_folder_without_a_single_readable_file_is_an_error(eq, folder: Path) -> None:
    (folder / "tables").mkdir()
    write(folder / "tables", "a.json", "{")
    assert eq("audit", "tables").exit_code == 2


def test_options_declare_fractions_or_percentages(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,MRR\na,1.04\nb,0.61\nc,0.58\n")
    assert eq("audit", table).exit_code == 1
    assert eq("audit", table, "--percent").exit_code == 0
    assert eq("audit", table, "--fractions").exit_code == 1
    assert eq("audit", table, "--percent", "--fractions").exit_code == 2


def test_the_guide_names_every_check_of_misleading_values() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "impossible.md").read_text(encoding="utf-8")
    assert all(code in guide for code in MISLEADING_CODES)
