"""Rows of every table format, compared with the readers of the standard library."""

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
def write_file(tmp_path):
    def write(name: str, text: str):
        path = tmp_path / name
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return path

    return write


ROWS = [{"id": "a", "text": "one"}, {"id": "b", "text": 'two, "three"\nfour'}]


def test_all_formats_give_the_same_rows(write_file, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress("\n\n".join(map(json.dumps, ROWS)).encode()))
    table = io.StringIO()
    writer = csv.DictWriter(table, ["id", "text"])
    writer.writeheader()
    writer.writerows(ROWS)
    paths = [
        write_file("a.json", json.dumps(ROWS, indent=1)),
        write_file("a.csv", table.getvalue()),
        write_file("a.tsv", 'id\ttext\na\tone\nb\t"two, ""three""\nfour"\n'),
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
    ).filter(lambda rows: all(any(cell.strip() for cell in row) for row in rows))
)
def test_csv_files_written_by_python_are_read_unchanged(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["left", "right"])
        writer.writerows(rows)
    assert [list(row.values()) for row in read_rows(path)] == rows


def test_missing_columns_raise_format_error_with_a_suggestion(write_file):
    with pytest.raises(FormatError, match="line 2") as error:
        read_rows(write_file("a.csv", "id,txet\na,b\n"), columns=["id", "text"])
    assert error.value.hint == "did you mean txet?"
    with pytest.raises(FormatError, match="row 2"):
        read_rows(write_file("a.json", '[{"text": 1}, {}]'), columns=["text"])


def test_rows_of_another_width_raise_format_error_with_the_line(write_file):
    with pytest.raises(FormatError, match=r"line 4.*3 fields.*2") as error:
        read_rows(write_file("a.csv", 'id,text\na,"x\ny"\nb,c,d\n'))
    assert error.value.excerpt == "4 | b,c,d"


def test_duplicate_columns_raise_duplicate_error(write_file):
    with pytest.raises(DuplicateError, match="'id'"):
        read_rows(write_file("a.tsv", "id\tid\n1\t2\n"))


@pytest.mark.parametrize("body", ['a,"open', 'a,"b"c'])
def test_invalid_quoting_raises_format_error(write_file, body):
    with pytest.raises(FormatError, match="line 2"):
        read_rows(write_file("a.csv", f"id,text\n{body}\n"))


def test_invalid_json_lines_raise_format_error_with_line_and_column(write_file):
    with pytest.raises(FormatError, match=r"line 3.*JSON.*8") as error:
        read_rows(write_file("a.jsonl", '{"a": 1}\n\n{"a": 1\n'))
    assert error.value.excerpt == '3 | {"a": 1'
    with pytest.raises(FormatError, match=r"line 1.*JSON"):
        read_rows(write_file("a.jsonl", "[1]\n"))


def test_jsonl_content_in_a_json_file_raises_format_error_with_a_hint(write_file):
    with pytest.raises(FormatError, match=r"line 2.*JSON") as error:
        read_rows(write_file("a.json", '{"a": 1}\n{"a": 2}\n'))
    assert "JSONL" in error.value.hint


def test_duplicate_keys_name_both_lines(write_file):
    text = '[{"a": 1, "b": {"a": 2}},\n {"c": "\\"a\\": {",\n  "d": [{"c": 1}],\n  "c": 2}]'
    with pytest.raises(DuplicateError, match=r"lines 2 and 4.*'c'"):
        read_rows(write_file("a.json", text))
    with pytest.raises(DuplicateError, match=r"line 2.*'x'"):
        read_rows(write_file("a.jsonl", '{"x": 1}\n{"x": 1, "x": 1}\n'))


@pytest.mark.parametrize("constant", ["NaN", "-Infinity"])
def test_invalid_json_constants_raise_not_finite_error_with_the_line(write_file, constant):
    with pytest.raises(NotFiniteError, match=rf"line 2.*{constant}"):
        read_rows(write_file("a.json", f'[{{"{constant}": 1,\n"x": {constant}}}]'))


def test_deep_nesting_huge_numbers_and_lone_surrogates_raise_format_error(write_file):
    for text in ("[" * 100_000, f'[{{"a": {"9" * 5000}}}]', '[{"a": "\\ud800"}]'):
        with pytest.raises(FormatError):
            read_rows(write_file("a.json", text))
    assert read_rows(write_file("a.json", '[{"a": "\\ud83d\\ude00"}]')) == [{"a": "😀"}]


@pytest.mark.parametrize(("name", "text"), [("a.csv", "id,text\n"), ("a.json", "[]"), ("a.json", "{}")])
def test_tables_without_rows_raise_format_error(write_file, name, text):
    with pytest.raises(FormatError):
        read_rows(write_file(name, text))


def test_unknown_suffixes_raise_format_error_with_the_known_ones(write_file):
    with pytest.raises(FormatError) as error:
        read_rows(write_file("a.xlsx", "x"))
    assert ".jsonl" in error.value.hint


def test_missing_pyarrow_raises_missing_extra_error_with_the_command(write_file, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError) as error:
        read_rows(write_file("a.parquet", "PAR1"))
    assert install_command("parquet") in error.value.hint


def test_invalid_parquet_files_raise_format_error(write_file):
    pytest.importorskip("pyarrow")
    with pytest.raises(FormatError):
        read_rows(write_file("a.parquet", "PAR1 and nothing more"))
