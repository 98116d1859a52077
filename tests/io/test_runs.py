"""Runs and qrels in every supported format."""

import json
import sys
from io import BytesIO, TextIOWrapper

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import DuplicateError, FormatError, InputError, NotFiniteError
from equipoise.io.run_files import read_qrels, read_run

RUN = {"q1": {"d1": 0.5, "d2": 0.25}, "q2": {"d1": 2.0}}
TREC = "q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.25 t\nq2 Q0 d1 1 2 t\n"
ROWS = [{"query": q, "doc": d, "score": s} for q, docs in RUN.items() for d, s in docs.items()]


@pytest.fixture
def write_file(tmp_path):
    def write(name: str, text: str):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


def delimited(names: str, separator: str) -> str:
    rows = [names.split(","), *([str(value) for value in row.values()] for row in ROWS)]
    return "\n".join(separator.join(row) for row in rows) + "\n"


RUNS_BY_NAME = {
    "a.trec": TREC,
    "a.txt": TREC,
    "a.tsv": TREC.replace(" ", "\t"),
    "a": TREC,
    "b.json": json.dumps(RUN),
    "c.json": json.dumps(ROWS),
    "pretty.out": json.dumps(RUN, indent=2),
    "oneline.out": json.dumps(RUN),
    "d.jsonl": "\n".join(map(json.dumps, ROWS)),
    "lines.out": "\n".join(map(json.dumps, ROWS)),
    "e.csv": delimited("qid,docid,score", ","),
    "f.tsv": delimited("query-id,corpus-id,score", "\t"),
    "g.csv": delimited("Query_ID,doc_id,Score", ","),
    "h.run": delimited("query,doc,sim", ","),
}


@pytest.mark.parametrize("name", RUNS_BY_NAME)
def test_every_format_gives_the_same_run(write_file, name):
    assert read_run(write_file(name, RUNS_BY_NAME[name])) == RUN


def test_parquet_gives_the_same_run(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    assert read_run(tmp_path / "a.parquet") == RUN


@pytest.mark.parametrize("name", ["a.trec", "pretty.out", "f.tsv"])
def test_the_format_of_standard_input_is_detected(monkeypatch, name):
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(RUNS_BY_NAME[name].encode())))
    assert read_run("-") == RUN


def test_qrels_are_read_from_trec_beir_json_and_csv(write_file):
    expected = {"q1": {"d1": 1, "d2": 0}}
    beir = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n"
    assert read_qrels(write_file("a.tsv", beir)) == expected
    assert read_qrels(write_file("a.qrels", "q1 0 d1 1\nq1 0 d2 0\n")) == expected
    assert read_qrels(write_file("trec.tsv", "q1\t0\td1\t1\nq1\t0\td2\t0\n")) == expected
    assert read_qrels(write_file("a.json", json.dumps(expected))) == expected
    assert read_qrels(write_file("a.csv", "qid,docid,label\nq1,d1,1\nq1,d2,0\n")) == expected
    assert type(read_qrels(write_file("a.csv", "qid,docid,label\nq1,d1,1\n"))["q1"]["d1"]) is int


def test_ids_are_preferred_to_texts_and_labels_to_scores(write_file):
    text = "query,query_id,doc,doc_id,score,label\nwhat?,q1,words,d1,0.5,1\n"
    assert read_run(write_file("a.csv", text)) == {"q1": {"d1": 0.5}}
    assert read_qrels(write_file("a.csv", text)) == {"q1": {"d1": 1}}


def test_integer_ids_become_strings(write_file):
    assert read_run(write_file("a.jsonl", '{"qid": 1, "docid": 17, "score": 3}')) == {"1": {"17": 3.0}}


@given(st.dictionaries(st.text(min_size=1), st.dictionaries(st.text(min_size=1), st.floats()), min_size=1))
def test_json_runs_are_read_unchanged_or_raise_input_error(tmp_path_factory, run):
    path = tmp_path_factory.mktemp("runs") / "a.json"
    path.write_text(json.dumps(run))
    try:
        value = read_run(path)
    except InputError:
        names = [*run, *(doc for docs in run.values() for doc in docs)]
        bad_id = any(not name.strip() or "\0" in name for name in names)
        bad_score = any(score - score != 0 for docs in run.values() for score in docs.values())
        assert bad_id or bad_score
    else:
        assert value == run


def test_missing_columns_raise_format_error_with_the_known_names(write_file):
    with pytest.raises(FormatError) as error:
        read_run(write_file("a.csv", "query,dok,score\nq,d,1\n"))
    assert error.value.hint.startswith("did you mean dok? (understood: doc_id,")


def test_errors_state_the_detected_format(write_file):
    with pytest.raises(FormatError, match=r"line 1.*1 field") as error:
        read_run(write_file("a.txt", "name;value\n"))
    assert error.value.hint.endswith("it was read as TREC because line 1 is neither a header nor JSON")
    with pytest.raises(FormatError) as error:
        read_run(write_file("a.csv", "query,doc,score\nq,d,x\n"))
    assert error.value.hint == "it was read as CSV by its file extension"
    with pytest.raises(FormatError) as error:
        read_run(write_file("a.trec", "q1 Q0 d1 1 0.5\n"))
    assert "read as" not in error.value.hint


def test_untagged_lines_are_accepted_with_a_tag(write_file):
    assert read_run(write_file("a.trec", "q1 Q0 d1 1 0.5\n"), tag="bm25") == {"q1": {"d1": 0.5}}


def test_duplicates_name_both_lines(write_file):
    with pytest.raises(DuplicateError, match="lines 2 and 3") as error:
        read_run(write_file("a.csv", "query,doc,score\nq,d,1\nq, d,2\n"))
    assert error.value.excerpt.splitlines() == ["2 | q,d,1", "3 | q, d,2"]
    with pytest.raises(DuplicateError, match="rows 1 and 2"):
        read_run(write_file("a.json", json.dumps([ROWS[0], ROWS[0]])))
    with pytest.raises(DuplicateError, match=r"lines 2 and 3.*'d'"):
        read_run(write_file("a.json", '{"q": {\n"d": 1,\n"d": 2}}'))


@pytest.mark.parametrize("score", ["nan", "inf", "1e999"])
def test_non_finite_scores_raise_not_finite_error(write_file, score):
    with pytest.raises(NotFiniteError, match="line 2") as error:
        read_run(write_file("a.csv", f"query,doc,score\nq,d,{score}\n"))
    assert error.value.excerpt == f"2 | q,d,{score}"
    with pytest.raises(NotFiniteError):
        read_run(write_file("a.json", f'{{"q": {{"d": {score.replace("nan", "NaN").replace("inf", "Infinity")}}}}}'))


@pytest.mark.parametrize(
    "text",
    [
        '{"q": 1}',
        '{"q": ["d"]}',
        "{}",
        '{"q": {"d": null}}',
        '{"q": {"d": true}}',
        '{"": {"d": 1}}',
        '"q"',
        "[1]",
    ],
)
def test_json_of_another_structure_raises_format_error(write_file, text):
    with pytest.raises(FormatError):
        read_run(write_file("a.json", text))


@pytest.mark.parametrize("row", [{"query": "", "doc": "d"}, {"query": None, "doc": "d"}, {"query": 1.5, "doc": "d"}])
def test_rows_with_invalid_ids_raise_format_error(write_file, row):
    with pytest.raises(FormatError, match="line 1"):
        read_run(write_file("a.jsonl", json.dumps({**row, "score": 1})))


def test_rows_without_a_column_raise_format_error_with_the_line(write_file):
    with pytest.raises(FormatError, match="line 2"):
        read_run(write_file("a.jsonl", '{"query": "q", "doc": "d", "score": 1}\n{"query": "q", "doc": "e"}'))
