"""Tables of every form come to the same records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.errors import DuplicateError, FormatError, InputError
from equipoise.io.published import read_published
from equipoise.io.published.tables import SystemRecord, TableCell

FIGURES = {"HR@1", "HR@5", "MRR", "hit_rate@1", "hit_rate@5", "F1"}


def known(label: str) -> bool:
    return label.strip() in FIGURES


def records(path: Path) -> list[SystemRecord]:
    return [record for each in read_published(path, known) for record in each.records]


def figures(record: SystemRecord) -> dict[str, str]:
    return {cell.label: cell.text for cell in record.cells if known(cell.label)}


EXPECTED = [
    ("bm25", {"HR@1": "0.41", "MRR": "0.520"}),
    ("dense", {"HR@1": "0.48", "MRR": "0.610"}),
]
ROWS = (
    '{"model": "bm25", "HR@1": 0.41, "MRR": 0.520}',
    '{"model": "dense", "HR@1": 0.48, "MRR": 0.610}',
)
FORMS = {
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


@pytest.mark.parametrize("name", FORMS)
def test_the_same_figures_are_read_from_every_form(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FORMS[name])
    assert [(record.name, figures(record)) for record in records(tmp_path / name)] == EXPECTED


def test_objects_know_what_stands_around_them(tmp_path: Path) -> None:
    content = {"n": 200, "scores": {"test": [{"subset": "de", "HR@1": 0.41}, {"subset": "en", "HR@1": 0.52}]}}
    (tmp_path / "mteb.json").write_text(json.dumps(content))
    found = records(tmp_path / "mteb.json")
    assert [record.name for record in found] == ["scores/test/1", "scores/test/2"]
    assert all(TableCell("n", "200") in record.cells for record in found)


def test_figures_by_cutoff_and_figures_with_intervals_are_read(tmp_path: Path) -> None:
    content = {"hit_rate": {"1": 0.41, "5": 0.60}, "MRR": {"mean": 0.52, "ci": [0.48, 0.57], "n": 90}}
    (tmp_path / "deep.json").write_text(json.dumps(content))
    (record,) = records(tmp_path / "deep.json")
    assert figures(record) == {"hit_rate@1": "0.41", "hit_rate@5": "0.6", "MRR": "0.52 [0.48, 0.57]"}
    assert [cell.n for cell in record.cells if cell.label == "MRR"] == ["90"]


def test_the_ends_of_one_interval_are_not_those_of_the_figures_below(tmp_path: Path) -> None:
    content = {"MRR": 0.5, "ci_lower": 0.4, "ci_upper": 0.6, "n": 9, "trials": [{"MRR": 0.7}, {"MRR": 0.2}]}
    (tmp_path / "trials.json").write_text(json.dumps(content))
    above, *below = records(tmp_path / "trials.json")
    assert {cell.label for cell in above.cells} == {"MRR", "ci_lower", "ci_upper", "n"}
    assert [{cell.label for cell in record.cells} for record in below] == [{"MRR", "n"}] * 2


def test_a_metric_that_returns_in_a_list_is_that_of_another_slice(tmp_path: Path) -> None:
    content = {"slices": [{"metric": "MRR", "value": 0.5}, {"metric": "MRR", "value": 0.9}]}
    (tmp_path / "slices.json").write_text(json.dumps(content))
    assert [figures(record) for record in records(tmp_path / "slices.json")] == [
        {"MRR": "0.5"},
        {"MRR": "0.9"},
    ]


def test_objects_side_by_side_are_a_table_and_deeper_ones_another(tmp_path: Path) -> None:
    content = {"a": {"MRR": 50.1, "parts": [{"MRR": 0.4}]}, "b": {"MRR": 0.9}}
    (tmp_path / "deep.json").write_text(json.dumps(content))
    tables = read_published(tmp_path / "deep.json", known)
    assert [[record.name for record in table.records] for table in tables] == [["a", "b"], ["a/parts/1"]]


def test_heads_that_span_columns_stand_before_each_of_them(tmp_path: Path) -> None:
    text = (
        "\\begin{tabular}{lcc}\n\\toprule\n & \\multicolumn{2}{c}{NQ} \\\\\n\\cmidrule(lr){2-3}\n"
        "model & HR@1 & HR@5 \\\\\n\\midrule\nbm25 & 0.1 & 0.2 \\\\\n\\end{tabular}\n"
    )
    (tmp_path / "heads.tex").write_text(text)
    (table,) = read_published(tmp_path / "heads.tex", lambda label: "HR" in label)
    assert [cell.label for cell in table.records[0].cells] == ["model", "NQ HR@1", "NQ HR@5"]


def test_sentences_that_mention_a_figure_are_no_table(tmp_path: Path) -> None:
    (tmp_path / "prose.md").write_text("If MRR = 0.4, ranks are usually low.\n\nBest: MRR: 0.7 at dimension 50\n")
    assert records(tmp_path / "prose.md") == []


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("twice.csv", "model,MRR,MRR\na,0.1,0.2\n", "two columns called 'MRR'"),
        ("twice.md", "| m | MRR | MRR |\n|---|---|---|\n| a | 0.1 | 0.2 |\n", "two columns called 'MRR'"),
        ("rows.csv", "metric name,a\nMRR,0.1\nMRR,0.2\n", "two columns called 'MRR'"),
        ("long.csv", "system,metric,value\na,MRR,0.1\na,MRR,0.2\n", "gives MRR of a again"),
        ("twice.json", '{"MRR": 0.1, "MRR": 0.2}', "gives the key 'MRR' twice"),
    ],
)
def test_figures_that_stand_there_twice_are_refused(name: str, text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DuplicateError, match=sentence):
        records(tmp_path / name)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table.docx").write_text("MRR")
    with pytest.raises(FormatError):
        records(tmp_path / "table.docx")
    (tmp_path / "short.csv").write_text("model,MRR\na,0.1,0.2\n")
    with pytest.raises(FormatError, match=r"line 2.*3 fields.*2"):
        records(tmp_path / "short.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError):
        records(tmp_path / "empty")
