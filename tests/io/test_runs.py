"""Runs and qrels in every form they come in."""

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
def file(tmp_path):
    def written(name: str, text: str):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return written


def delimited(names: str, separator: str) -> str:
    rows = [names.split(","), *([str(value) for value in row.values()] for row in ROWS)]
    return "\n".join(separator.join(row) for row in rows) + "\n"


FORMS = {
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


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_run(file, name):
    assert read_run(file(name, FORMS[name])) == RUN


def test_parquet_gives_the_same_run(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    assert read_run(tmp_path / "a.parquet") == RUN


@pytest.mark.parametrize("name", ["a.trec", "pretty.out", "f.tsv"])
def test_standard_input_is_read_by_its_first_line(monkeypatch, name):
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(FORMS[name].encode())))
    assert read_run("-") == RUN


def test_qrels_come_as_trec_beir_json_and_csv(file):
    expected = {"q1": {"d1": 1, "d2": 0}}
    beir = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n"
    assert read_qrels(file("a.tsv", beir)) == expected
    assert read_qrels(file("a.qrels", "q1 0 d1 1\nq1 0 d2 0\n")) == expected
    assert read_qrels(file("trec.tsv", "q1\t0\td1\t1\nq1\t0\td2\t0\n")) == expected
    assert read_qrels(file("a.json", json.dumps(expected))) == expected
    assert read_qrels(file("a.csv", "qid,docid,label\nq1,d1,1\nq1,d2,0\n")) == expected
    assert type(read_qrels(file("a.csv", "qid,docid,label\nq1,d1,1\n"))["q1"]["d1"]) is int


def test_ids_go_before_texts_and_labels_before_scores(file):
    text = "query,query_id,doc,doc_id,score,label\nwhat?,q1,words,d1,0.5,1\n"
    assert read_run(file("a.csv", text)) == {"q1": {"d1": 0.5}}
    assert read_qrels(file("a.csv", text)) == {"q1": {"d1": 1}}


def test_whole_numbers_are_ids_too(file):
    assert read_run(file("a.jsonl", '{"qid": 1, "docid": 17, "score": 3}')) == {"1": {"17": 3.0}}


@given(st.dictionaries(st.text(min_size=1), st.dictionaries(st.text(min_size=1), st.floats()), min_size=1))
def test_a_json_run_is_what_json_says_or_refused(tmp_path_factory, run):
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


def test_a_missing_column_says_which_names_are_understood(file):
    with pytest.raises(FormatError) as caught:
        read_run(file("a.csv", "query,dok,score\nq,d,1\n"))
    assert caught.value.hint.startswith("did you mean dok? (understood: doc_id,")


def test_errors_say_which_format_was_assumed_and_why(file):
    with pytest.raises(FormatError, match=r"line 1.*1 field") as caught:
        read_run(file("a.txt", "name;value\n"))
    assert caught.value.hint.endswith("it was read as TREC because line 1 is neither a header nor JSON")
    with pytest.raises(FormatError) as caught:
        read_run(file("a.csv", "query,doc,score\nq,d,x\n"))
    assert caught.value.hint == "it was read as CSV by its file extension"
    with pytest.raises(FormatError) as caught:
        read_run(file("a.trec", "q1 Q0 d1 1 0.5\n"))
    assert "read as" not in caught.value.hint


def test_untagged_lines_pass_with_a_tag(file):
    assert read_run(file("a.trec", "q1 Q0 d1 1 0.5\n"), tag="bm25") == {"q1": {"d1": 0.5}}


def test_duplicates_name_both_lines(file):
    with pytest.raises(DuplicateError, match="lines 2 and 3") as caught:
        read_run(file("a.csv", "query,doc,score\nq,d,1\nq, d,2\n"))
    assert caught.value.excerpt.splitlines() == ["2 | q,d,1", "3 | q, d,2"]
    with pytest.raises(DuplicateError, match="rows 1 and 2"):
        read_run(file("a.json", json.dumps([ROWS[0], ROWS[0]])))
    with pytest.raises(DuplicateError, match=r"lines 2 and 3.*'d'"):
        read_run(file("a.json", '{"q": {\n"d": 1,\n"d": 2}}'))


@pytest.mark.parametrize("score", ["nan", "inf", "1e999"])
def test_scores_that_are_not_finite_are_refused_everywhere(file, score):
    with pytest.raises(NotFiniteError, match="line 2") as caught:
        read_run(file("a.csv", f"query,doc,score\nq,d,{score}\n"))
    assert caught.value.excerpt == f"2 | q,d,{score}"
    with pytest.raises(NotFiniteError):
        read_run(file("a.json", f'{{"q": {{"d": {score.replace("nan", "NaN").replace("inf", "Infinity")}}}}}'))


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
def test_json_of_another_shape_is_refused(file, text):
    with pytest.raises(FormatError):
        read_run(file("a.json", text))


@pytest.mark.parametrize("row", [{"query": "", "doc": "d"}, {"query": None, "doc": "d"}, {"query": 1.5, "doc": "d"}])
def test_rows_without_a_proper_id_are_refused(file, row):
    with pytest.raises(FormatError, match="line 1"):
        read_run(file("a.jsonl", json.dumps({**row, "score": 1})))


def test_a_later_row_that_lacks_a_column_is_named(file):
    with pytest.raises(FormatError, match="line 2"):
        read_run(file("a.jsonl", '{"query": "q", "doc": "d", "score": 1}\n{"query": "q", "doc": "e"}'))
