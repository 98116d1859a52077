"""Published tables of every format give the same records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.errors import DuplicateError, FormatError, InputError
from equipoise.io.published import read_published
from equipoise.io.published.tables import SystemRecord, TableCell

METRIC_LABELS = {"HR@1", "HR@5", "MRR", "hit_rate@1", "hit_rate@5", "F1"}


def is_metric(label: str) -> bool:
    return label.strip() in METRIC_LABELS


def records_of(path: Path) -> list[SystemRecord]:
    return [record for table in read_published(path, is_metric) for record in table.records]


def metric_texts(record: SystemRecord) -> dict[str, str]:
    return {cell.label: cell.text for cell in record.cells if is_metric(cell.label)}


EXPECTED_RECORDS = [
    ("bm25", {"HR@1": "0.41", "MRR": "0.520"}),
    ("dense", {"HR@1": "0.48", "MRR": "0.610"}),
]
ROWS = (
    '{"model": "bm25", "HR@1": 0.41, "MRR": 0.520}',
    '{"model": "dense", "HR@1": 0.48, "MRR": 0.610}',
)
TABLES_BY_NAME = {
    "rows.csv": "model,HR@1,MRR\nbm25,0.41,0.520\ndense,0.48,0.610\n",
    "semicolons.csv": "model;HR@1;MRR\nbm25;0.41;0.520\ndense;0.48;0.610\n",
    "rows.tsv": "model\tHR@1\tMRR\nbm25\t0.41\t0.520\ndense\t0.48\t0.610\n",
    "columns.csv": "metric name,bm25,dense\nHR@1,0.41,0.48\nMRR,0.520,0.610\n",
    "long.csv": "system,metric,value\nbm25,HR@1,0.41\nbm25,MRR,0.520\ndense,HR@1,0.48\ndense,MRR,0.610\n",
    "table.md": "| model | HR@1 | MRR |\n|:--|--:|--:|\n| bm25 | 0.41 | 0.520 |\n| dense | 0.48 | 0.610 |\n",
    "screen.txt": "model   HR@1   MRR\n------------------\nbm25    0.41   0.520\ndense   0.48   0.610\n",
    "fence.md": "```\nmodel  |  HR@1   MRR\nbm25   |  0.41   0.520\ndense  |  0.48   0.610\n```\n",
    "list.md": "# bm25\n- **HR@1**: 0.41, **MRR**: 0.520\n\n# dense\n- HR@1 = 0.48\n- MRR = 0.610\n",
    "table.tex": (
        "\\begin{tabular}{lrr}\n\\toprule\nmodel & HR@1 & MRR \\\\\n\\midrule\n"
        "bm25 & 0.41 & 0.520 \\\\\ndense & 0.48 & 0.610 \\\\\n\\bottomrule\n\\end{tabular}\n"
    ),
    "hline.tex": (
        "\\begin{tabularx}{\\textwidth}{l|rr}\\hline\nmodel & HR@1 & MRR\\\\\\hline\n"
        "bm25 & 0.41 & 0.520\\\\\ndense & 0.48 & 0.610\\\\[2pt]\n\\hline\\end{tabularx}"
    ),
    "rows.json": f"[{ROWS[0]}, {ROWS[1]}]",
    "rows.jsonl": f"{ROWS[0]}\n{ROWS[1]}\n",
    "nested.json": '{"bm25": {"HR@1": 0.41, "MRR": 0.520}, "dense": {"HR@1": 0.48, "MRR": 0.610}}',
}


@pytest.mark.parametrize("name", TABLES_BY_NAME)
def test_every_format_gives_the_same_values(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(TABLES_BY_NAME[name])
    assert [(record.name, metric_texts(record)) for record in records_of(tmp_path / name)] == EXPECTED_RECORDS


def test_nested_objects_inherit_the_values_around_them(tmp_path: Path) -> None:
    content = {"n": 200, "scores": {"test": [{"subset": "de", "HR@1": 0.41}, {"subset": "en", "HR@1": 0.52}]}}
    (tmp_path / "mteb.json").write_text(json.dumps(content))
    records = records_of(tmp_path / "mteb.json")
    assert [record.name for record in records] == ["scores/test/1", "scores/test/2"]
    assert all(TableCell("n", "200") in record.cells for record in records)


def test_values_per_cutoff_and_values_with_intervals_are_read(tmp_path: Path) -> None:
    content = {"hit_rate": {"1": 0.41, "5": 0.60}, "MRR": {"mean": 0.52, "ci": [0.48, 0.57], "n": 90}}
    (tmp_path / "deep.json").write_text(json.dumps(content))
    (record,) = records_of(tmp_path / "deep.json")
    assert metric_texts(record) == {"hit_rate@1": "0.41", "hit_rate@5": "0.6", "MRR": "0.52 [0.48, 0.57]"}
    assert [cell.n for cell in record.cells if cell.label == "MRR"] == ["90"]


def test_intervals_are_not_inherited_by_nested_objects(tmp_path: Path) -> None:
    content = {"MRR": 0.5, "ci_lower": 0.4, "ci_upper": 0.6, "n": 9, "trials": [{"MRR": 0.7}, {"MRR": 0.2}]}
    (tmp_path / "trials.json").write_text(json.dumps(content))
    outer, *nested = records_of(tmp_path / "trials.json")
    assert {cell.label for cell in outer.cells} == {"MRR", "ci_lower", "ci_upper", "n"}
    assert [{cell.label for cell in record.cells} for record in nested] == [{"MRR", "n"}] * 2


def test_list_items_with_the_same_metric_are_separate_records(tmp_path: Path) -> None:
    content = {"slices": [{"metric": "MRR", "value": 0.5}, {"metric": "MRR", "value": 0.9}]}
    (tmp_path / "slices.json").write_text(json.dumps(content))
    assert [metric_texts(record) for record in records_of(tmp_path / "slices.json")] == [
        {"MRR": "0.5"},
        {"MRR": "0.9"},
    ]


def test_nesting_levels_are_separate_tables(tmp_path: Path) -> None:
    content = {"a": {"MRR": 50.1, "parts": [{"MRR": 0.4}]}, "b": {"MRR": 0.9}}
    (tmp_path / "deep.json").write_text(json.dumps(content))
    tables = read_published(tmp_path / "deep.json", is_metric)
    assert [[record.name for record in table.records] for table in tables] == [["a", "b"], ["a/parts/1"]]


def test_spanning_headers_prefix_their_columns(tmp_path: Path) -> None:
    text = (
        "\\begin{tabular}{lcc}\n\\toprule\n & \\multicolumn{2}{c}{NQ} \\\\\n\\cmidrule(lr){2-3}\n"
        "model & HR@1 & HR@5 \\\\\n\\midrule\nbm25 & 0.1 & 0.2 \\\\\n\\end{tabular}\n"
    )
    (tmp_path / "heads.tex").write_text(text)
    (table,) = read_published(tmp_path / "heads.tex", lambda label: "HR" in label)
    assert [cell.label for cell in table.records[0].cells] == ["model", "NQ HR@1", "NQ HR@5"]


def test_prose_is_not_a_table(tmp_path: Path) -> None:
    (tmp_path / "prose.md").write_text("If MRR = 0.4, ranks are usually low.\n\nBest: MRR: 0.7 at dimension 50\n")
    assert records_of(tmp_path / "prose.md") == []


@pytest.mark.parametrize(
    ("name", "text", "fragment"),
    [
        ("twice.csv", "model,MRR,MRR\na,0.1,0.2\n", "two columns called 'MRR'"),
        ("twice.md", "| m | MRR | MRR |\n|---|---|---|\n| a | 0.1 | 0.2 |\n", "two columns called 'MRR'"),
        ("rows.csv", "metric name,a\nMRR,0.1\nMRR,0.2\n", "two columns called 'MRR'"),
        ("long.csv", "system,metric,value\na,MRR,0.1\na,MRR,0.2\n", "gives MRR of a again"),
        ("twice.json", '{"MRR": 0.1, "MRR": 0.2}', "gives the key 'MRR' twice"),
    ],
)
def test_repeated_values_raise_duplicate_error(name: str, text: str, fragment: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DuplicateError, match=fragment):
        records_of(tmp_path / name)


def test_other_files_raise_errors(tmp_path: Path) -> None:
    (tmp_path / "table.docx").write_text("MRR")
    with pytest.raises(FormatError):
        records_of(tmp_path / "table.docx")
    (tmp_path / "short.csv").write_text("model,MRR\na,0.1,0.2\n")
    with pytest.raises(FormatError, match=r"line 2.*3 fields.*2"):
        records_of(tmp_path / "short.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError):
        records_of(tmp_path / "empty")
