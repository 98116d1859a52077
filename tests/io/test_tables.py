"""Rows of every table format, compared with the standard readers."""

import csv
import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import DuplicateError, FormatError, MissingExtraError, NotFiniteError
from equipoise.io.tables import read_rows
from equipoise.types import install_command


@pytest.fixture
def file(tmp_path):
    def written(name: str, text: str):
        path = tmp_path / name
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return path

    return written


ROWS = [{"id": "a", "text": "one"}, {"id": "b", "text": 'two, "three"\nfour'}]


def test_all_formats_give_the_same_rows(file, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress("\n\n".join(map(json.dumps, ROWS)).encode()))
    table = io.StringIO()
    writer = csv.DictWriter(table, ["id", "text"])
    writer.writeheader()
    writer.writerows(ROWS)
    paths = [
        file("a.json", json.dumps(ROWS, indent=1)),
        file("a.csv", table.getvalue()),
        file("a.tsv", 'id\ttext\na\tone\nb\t"two, ""three""\nfour"\n'),
        tmp_path / "a.parquet",
        tmp_path / "a.jsonl.gz",
    ]
    assert [read_rows(path) for path in paths] == [ROWS] * 5


@given(
    st.lists(
        st.lists(
            st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0")),
            min_size=2,
            max_size=2,
        ),
        min_size=1,
    ).filter(lambda rows: all(any(each.strip() for each in row) for row in rows))
)
def test_a_csv_that_python_wrote_is_read_as_it_was(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["left", "right"])
        writer.writerows(rows)
    assert [list(row.values()) for row in read_rows(path)] == rows


def test_a_missing_column_is_named_with_the_nearest_one(file):
    with pytest.raises(FormatError, match="line 2") as caught:
        read_rows(file("a.csv", "id,txet\na,b\n"), columns=["id", "text"])
    assert caught.value.hint == "did you mean txet?"
    with pytest.raises(FormatError, match="row 2"):
        read_rows(file("a.json", '[{"text": 1}, {}]'), columns=["text"])


def test_a_row_of_another_width_than_the_header_is_shown(file):
    with pytest.raises(FormatError, match=r"line 4.*3 fields.*2") as caught:
        read_rows(file("a.csv", 'id,text\na,"x\ny"\nb,c,d\n'))
    assert caught.value.excerpt == "4 | b,c,d"


def test_two_columns_of_one_name_are_refused(file):
    with pytest.raises(DuplicateError, match="'id'"):
        read_rows(file("a.tsv", "id\tid\n1\t2\n"))


@pytest.mark.parametrize("body", ['a,"open', 'a,"b"c'])
def test_broken_quoting_is_explained(file, body):
    with pytest.raises(FormatError, match="line 2"):
        read_rows(file("a.csv", f"id,text\n{body}\n"))


def test_a_line_that_is_no_json_is_shown_with_its_column(file):
    with pytest.raises(FormatError, match=r"line 3.*JSON.*8") as caught:
        read_rows(file("a.jsonl", '{"a": 1}\n\n{"a": 1\n'))
    assert caught.value.excerpt == '3 | {"a": 1'
    with pytest.raises(FormatError, match=r"line 1.*JSON"):
        read_rows(file("a.jsonl", "[1]\n"))


def test_objects_one_a_line_in_a_json_file_are_recognised(file):
    with pytest.raises(FormatError, match=r"line 2.*JSON") as caught:
        read_rows(file("a.json", '{"a": 1}\n{"a": 2}\n'))
    assert "JSONL" in caught.value.hint


def test_a_key_twice_in_one_object_names_both_lines(file):
    text = '[{"a": 1, "b": {"a": 2}},\n {"c": "\\"a\\": {",\n  "d": [{"c": 1}],\n  "c": 2}]'
    with pytest.raises(DuplicateError, match=r"lines 2 and 4.*'c'"):
        read_rows(file("a.json", text))
    with pytest.raises(DuplicateError, match=r"line 2.*'x'"):
        read_rows(file("a.jsonl", '{"x": 1}\n{"x": 1, "x": 1}\n'))


@pytest.mark.parametrize("constant", ["NaN", "-Infinity"])
def test_constants_that_json_does_not_know_are_located(file, constant):
    with pytest.raises(NotFiniteError, match=rf"line 2.*{constant}"):
        read_rows(file("a.json", f'[{{"{constant}": 1,\n"x": {constant}}}]'))


def test_nesting_huge_numbers_and_half_surrogates_are_explained(file):
    for text in ("[" * 100_000, f'[{{"a": {"9" * 5000}}}]', '[{"a": "\\ud800"}]'):
        with pytest.raises(FormatError):
            read_rows(file("a.json", text))
    assert read_rows(file("a.json", '[{"a": "\\ud83d\\ude00"}]')) == [{"a": "😀"}]


@pytest.mark.parametrize(("name", "text"), [("a.csv", "id,text\n"), ("a.json", "[]"), ("a.json", "{}")])
def test_a_table_without_rows_is_refused(file, name, text):
    with pytest.raises(FormatError):
        read_rows(file(name, text))


def test_a_suffix_that_names_no_format_lists_those_that_do(file):
    with pytest.raises(FormatError) as caught:
        read_rows(file("a.xlsx", "x"))
    assert ".jsonl" in caught.value.hint


def test_parquet_without_its_engine_says_how_to_install_it(file, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError) as caught:
        read_rows(file("a.parquet", "PAR1"))
    assert install_command("parquet") in caught.value.hint


def test_a_parquet_file_that_is_none_is_refused(file):
    pytest.importorskip("pyarrow")
    with pytest.raises(FormatError):
        read_rows(file("a.parquet", "PAR1 and nothing more"))
