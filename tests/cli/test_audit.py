"""``eq audit``, run as people run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.cli.main import COMMANDS, CommandEntry


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is in the table, whether or not the program offers it yet."""
    monkeypatch.setitem(COMMANDS, "audit", CommandEntry("equipoise.audit.cli:audit", "Find figures that cannot be."))


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return name


def test_an_impossible_table_ends_with_one_and_shows_the_steps(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,HR@1,P@1,MRR\nbiolord,0.3333,1.0000,0.5361\n")
    done = eq("audit", table)
    assert done.exit_code == 1, done.stderr
    assert "EQ401  biolord: HR@1 0.3333 and P@1 1.0000 differ, but are equal by definition" in done.stdout
    assert "P@1 1.0000 is printed, so the value is 0.99995 to 1" in done.stdout
    assert "1 impossible result in biolord." in done.stdout


def test_a_possible_table_ends_with_zero(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,HR@1,MRR,latency\na,0.33,0.5361,12\n")
    done = eq("audit", table)
    assert done.exit_code == 0, done.stderr
    assert "No impossible value was found. That does not mean that the values are correct." in done.stdout
    assert "Not recognised as a metric or a number: latency" in done.stdout


def test_an_assumption_makes_the_difference(eq, folder: Path) -> None:
    table = write(folder, "table.md", "| Median Rank | MAP (%) |\n|---|---|\n| 3.00 | 93.45 |\n")
    noted, accused = eq("audit", table), eq("audit", table, "--one-relevant")
    assert (noted.exit_code, accused.exit_code) == (0, 1)
    assert "impossible if every unit has one relevant item (EQ404)" in noted.stdout
    assert "1 result would be impossible under an assumption" in noted.stdout
    assert "EQ404" in accused.stdout


def test_granularity_follows_n(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,HR@1\na,0.333\n")
    assert eq("audit", table, "--no-ties", "--n", "200").exit_code == 1
    assert eq("audit", table, "--no-ties", "--n", "300").exit_code == 0
    assert eq("audit", table, "--no-ties").exit_code == 0


def test_json_carries_the_derivation(eq, folder: Path) -> None:
    table = write(folder, "table.json", '{"HR@1": 0.62, "HR@5": 0.51}')
    done = eq("audit", table, "--json")
    data = json.loads(done.stdout)
    assert done.exit_code == 1
    assert data["impossible"] == 1
    (finding,) = data["tables"][0]["findings"]
    assert finding["code"] == "EQ402"
    assert finding["derivation"][0] == "a query with a relevant item in the top 1 has one in the top 5"


def test_a_folder_of_runs_of_ours_is_never_accused(eq, folder: Path) -> None:
    words = [
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
    eq("score", "good.trec", "bad.trec", "--corpus-size", "5", *words)
    done = eq("audit", "results")
    assert done.exit_code == 0, done.stdout
    assert "10 values in 2 rows" in done.stdout


@pytest.mark.parametrize("form", ["csv", "md", "latex", "json"])
def test_exports_of_ours_are_read_and_not_accused(form: str, eq, folder: Path) -> None:
    runs = ["good.trec", "middle.trec", "--qrels", "truth.qrels", "--corpus-size", "5"]
    eq("score", *runs, "-m", "MRR", "-m", "HR@{1,3}", "-m", "MAP@3", "-o", "results")
    name = {"latex": "table.tex"}.get(form, f"table.{form}")
    assert eq("export", "results", "--to", form, "-o", name).exit_code == 0
    done = eq("audit", name, "--json", "--one-relevant", "--n", "12")
    assert done.exit_code == 0, done.stdout
    assert json.loads(done.stdout)["tables"][0]["values"] >= 8


def test_a_tampered_result_is_accused(eq, folder: Path) -> None:
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
    done = eq("audit", "results")
    assert done.exit_code == 1
    assert "EQ403" in done.stdout


def test_quiet_shows_only_what_cannot_be(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,HR@1,HR@5,MedianRank,MAP\na,0.62,0.51,3,0.9\n")
    done = eq("audit", table, "-q")
    assert "EQ402" in done.stdout
    assert "EQ450" not in done.stdout


# ---- bad input ---------------------------------------------------------------------------------


def test_a_table_without_metrics_gets_a_suggestion(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,nDGC@10,seconds\na,0.5,12\n")
    done = eq("audit", table)
    assert done.exit_code == 2
    assert "table.csv has no known metric; its numbers have the labels nDGC@10, seconds" in done.stderr
    assert "did you mean nDCG@10 for nDGC@10?" in done.stderr


def test_duplicate_columns_are_refused(eq, folder: Path) -> None:
    done = eq("audit", write(folder, "table.csv", "system,MRR,MRR\na,0.5,0.6\n"))
    assert done.exit_code == 2
    assert "table.csv has two columns called 'MRR'" in done.stderr


@pytest.mark.parametrize("n", ["0", "-5", "many"])
def test_an_impossible_n_is_refused(n: str, eq, folder: Path) -> None:
    done = eq("audit", write(folder, "table.csv", "system,MRR\na,0.5\n"), "--n", n)
    assert done.exit_code == 2
    assert "n" in done.stderr


@pytest.mark.parametrize("n", ["0", "12.5", "some"])
def test_an_impossible_n_in_the_table_is_refused(n: str, eq, folder: Path) -> None:
    done = eq("audit", write(folder, "table.csv", f"system,n,MRR\nbm25,{n},0.5\n"))
    assert done.exit_code == 2
    assert f"n of bm25 is {n}" in done.stderr or f"is {n}" in done.stderr


def test_an_n_that_contradicts_the_table_is_refused(eq, folder: Path) -> None:
    done = eq("audit", write(folder, "table.csv", "system,n,MRR\na,70,0.5\n"), "--n", "200")
    assert done.exit_code == 2
    assert "a states 70 units, and --n is 200" in done.stderr


def test_nothing_to_audit_and_a_missing_file_are_errors(eq, folder: Path) -> None:
    assert eq("audit").exit_code == 2
    done = eq("audit", "tabel.csv")
    assert done.exit_code == 2
    assert "there is no file tabel.csv" in done.stderr


def test_results_scored_like_a_library_that_rounds_are_not_accused(eq, folder: Path) -> None:
    write(folder, "t.qrels", "a 0 x 1\nb 0 y 1\nc 0 z 1\n")
    lists = "".join(f"{query} Q0 x 1 2 r\n{query} Q0 y 2 1 r\n" for query in "abc")
    write(folder, "r.trec", lists)
    scored = eq(
        *("score", "r.trec", "--qrels", "t.qrels", "--like", "mteb"),
        *("-m", "HR@1", "-m", "MRR@1", "-m", "HR@10", "-o", "lk"),
    )
    assert scored.exit_code == 0, scored.stderr
    done = eq("audit", "lk")
    assert done.exit_code == 0, done.stdout
    assert "Not read" not in done.stdout


def test_a_folder_that_is_not_there_is_said_to_be_missing(eq, folder: Path) -> None:
    done = eq("audit", "lg")
    assert done.exit_code == 2
    assert "extension" not in done.stderr
    assert "lg" in done.stderr


@pytest.mark.parametrize(("name", "text"), [("t.json", '{"HR@1": 1e999}'), ("t.csv", "a,HR@1\nx,1e9999999\n")])
def test_numbers_beyond_all_bounds_do_not_stop_the_audit(eq, folder: Path, name: str, text: str) -> None:
    assert eq("audit", write(folder, name, text)).exit_code in (0, 2)


def test_a_declared_denominator_counts(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,MAP@3,nDCG@3\na,1.0000,0.4693\n")
    assert eq("audit", table, "--binary").exit_code == 0
    assert eq("audit", table, "--binary", "--map-over-relevant").exit_code == 1


def test_a_table_whose_figures_cannot_be_read_is_no_clean_table(eq, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"HR@1": 1e999}')
    done = eq("audit", str(tmp_path / "t.json"))
    assert done.exit_code == 2
    assert "1e999" in done.stderr


def test_the_sum_names_the_option_that_would_count_a_note(eq, folder: Path) -> None:
    table = write(folder, "table.md", "| Median Rank | MAP (%) |\n|---|---|\n| 3.00 | 93.45 |\n")
    last = " ".join(eq("audit", table).stdout.split("\n\n")[-1].split())
    assert last == (
        "No impossible value was found. 1 result would be impossible under an assumption: if it holds, declare it with "
        "--one-relevant. That does not mean that the values are correct."
    )


def test_bad_practice_is_told_apart_from_what_cannot_be(eq, folder: Path) -> None:
    ends = '"ci_lower": 88.3, "ci_upper": 97.4, "configs": 27'
    best = f'{{"best_accuracy": 94.4, {ends}, "HR@1": 62.0, "HR@5": 51.0}}'
    table = write(folder, "table.json", f"[{best}]")
    done = eq("audit", table)
    assert done.exit_code == 1
    assert "1 impossible result in 1. 1 misleading value in 1/best." in done.stdout
    data = json.loads(eq("audit", table, "--json").stdout)
    assert (data["impossible"], data["misleading"]) == (1, 1)


@pytest.mark.parametrize("form", ["csv", "md", "latex", "json"])
@pytest.mark.parametrize("several", [False, True])
def test_exports_scored_like_a_library_carry_its_name_and_are_not_accused(
    form: str, several: bool, eq, folder: Path
) -> None:
    write(folder, "t.qrels", "a 0 x 1\nb 0 y 1\nc 0 z 1\n")
    lists = "".join(f"{query} Q0 y 1 2 r\n{query} Q0 x 2 2 r\n" for query in "ab")
    runs = [f"one={write(folder, 'one.trec', lists)}"]
    runs += [f"two={write(folder, 'two.trec', lists)}"] if several else []
    metrics = ["-m", "HR@1", "-m", "P@1", "-m", "MRR@10"]
    scored = eq("score", *runs, "--qrels", "t.qrels", "--like", "beir", *metrics, "-o", "results")
    assert scored.exit_code == 0, scored.stderr
    name = {"latex": "table.tex"}.get(form, f"table.{form}")
    exported = eq("export", "results", "--to", form, "-o", name)
    assert exported.exit_code == 0, exported.stderr
    assert "beir" in (folder / name).read_text()
    done = eq("audit", name)
    assert done.exit_code == 0, done.stdout
    assert "No impossible value was found" in done.stdout


def test_a_file_that_cannot_be_read_does_not_stop_the_audit_of_a_folder(eq, folder: Path) -> None:
    (folder / "tables").mkdir()
    write(folder / "tables", "a.json", '{"HR@1": 0.31, "HR@5": ')
    write(folder / "tables", "b.csv", "system,HR@1,HR@5\na,0.31,0.52\n")
    write(folder / "tables", "c.csv", "system,n,HR@1\na,0,0.52\n")
    done = eq("audit", "tables")
    assert done.exit_code == 3
    assert "2 values in 1 row" in done.stdout
    assert "a.json" in done.stderr
    assert "c.csv" in done.stderr
    data = json.loads(eq("audit", "tables", "--json").stdout)
    assert len(data["tables"][0]["failures"]) == 2
    write(folder / "tables", "d.csv", "system,HR@1,HR@5\na,0.52,0.31\n")
    assert eq("audit", "tables").exit_code == 1


def test_a_table_that_cannot_be_read_does_not_stop_the_others(eq, folder: Path) -> None:
    good = write(folder, "good.csv", "system,HR@1\na,0.31\n")
    done = eq("audit", "missing.csv", good)
    assert done.exit_code == 3
    assert "1 value in 1 row" in done.stdout
    assert "missing.csv" in done.stderr
    assert eq("audit", "missing.csv", "absent.csv").exit_code == 2


def test_a_folder_without_a_single_readable_file_is_an_error(eq, folder: Path) -> None:
    (folder / "tables").mkdir()
    write(folder / "tables", "a.json", "{")
    assert eq("audit", "tables").exit_code == 2


def test_options_give_the_unit_of_shares_without_a_sign(eq, folder: Path) -> None:
    table = write(folder, "table.csv", "system,MRR\na,1.04\nb,0.61\nc,0.58\n")
    assert eq("audit", table).exit_code == 1
    assert eq("audit", table, "--percent").exit_code == 0
    assert eq("audit", table, "--fractions").exit_code == 1
    assert eq("audit", table, "--percent", "--fractions").exit_code == 2
