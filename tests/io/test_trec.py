"""TREC runs and qrels: errors, and agreement with a simple reader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import DuplicateError, EquipoiseError, FormatError, NotFiniteError, ParameterError
from equipoise.io import run_files
from equipoise.io.run_files import parse_trec, write_run
from equipoise.io.text import open_text

RUN = "q1 Q0 d1 1 0.9 bm25\nq1 Q0 d2 2 0.5 bm25\nq2 Q0 d1 1 -3 bm25\n"
QRELS = "q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 0.5\n"

ids = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\ufeff"), min_size=1).filter(
    lambda name: name.encode().split() == [name.encode()]
)
scores = st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture
def write_file(tmp_path):
    def write(text: str, name: str = "bm25.trec"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


def read_trec_run(path, tag=None) -> dict:
    return parse_trec(open_text(path), run_files.RUN if tag is None else run_files.UNTAGGED_RUN)


def read_trec_qrels(path) -> dict:
    return parse_trec(open_text(path), run_files.QRELS)


def naive_reader(text: str, value_column: int, convert) -> dict:
    table: dict = {}
    for line in text.splitlines():
        fields = line.split()
        if fields:
            table.setdefault(fields[0], {})[fields[2]] = convert(fields[value_column])
    return table


def test_runs_are_scores_by_query_and_document(write_file):
    assert read_trec_run(write_file(RUN)) == {"q1": {"d1": 0.9, "d2": 0.5}, "q2": {"d1": -3.0}}
    assert type(read_trec_run(write_file(RUN))["q2"]["d1"]) is float


def test_judgements_are_integers_unless_written_as_floats(write_file):
    qrels = read_trec_qrels(write_file(QRELS))
    assert qrels == {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 0.5}}
    assert [type(qrels["q1"]["d1"]), type(qrels["q2"]["d1"])] == [int, float]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(" ", "\t"),
        lambda text: text.replace(" ", "  "),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\n\n \n"),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
    ],
)
def test_white_space_blank_lines_and_line_ends_make_no_difference(write_file, change):
    assert read_trec_run(write_file(change(RUN))) == read_trec_run(write_file(RUN))
    assert read_trec_qrels(write_file(change(QRELS))) == read_trec_qrels(write_file(QRELS))


def test_missing_tags_raise_format_error_with_a_hint(write_file):
    path = write_file("q1 Q0 d2 1 1.0 t\nq1 Q0 d3 1 1.0 t\nq1 Q0 d1 1 0.9\n")
    with pytest.raises(FormatError) as error:
        read_trec_run(path)
    assert error.value.render().splitlines() == [
        f"error[E204]: {path} line 3 has 5 fields; a TREC run needs 6 (query Q0 doc rank score tag)",
        "  3 | q1 Q0 d1 1 0.9",
        "hint: the last field is the run tag; --run-tag NAME accepts untagged lines",
    ]
    assert read_trec_run(path, tag="bm25")["q1"] == {"d2": 1.0, "d3": 1.0, "d1": 0.9}


def test_lines_of_four_fields_raise_format_error_with_a_tag(write_file):
    with pytest.raises(FormatError, match=r"line 1.*4 fields"):
        read_trec_run(write_file("q1 Q0 d1 1\n"), tag="bm25")


def test_lines_of_five_and_seven_fields_raise_format_error(write_file):
    with pytest.raises(FormatError, match=r"line 1.*5 fields"):
        read_trec_run(write_file("q1 Q0 d1 1 0.9\nq1 Q0 d2 2 0.5 bm25 more\n"))


def test_swapped_files_raise_format_error_with_a_hint(write_file):
    with pytest.raises(FormatError) as run_error:
        read_trec_run(write_file(QRELS))
    with pytest.raises(FormatError) as qrels_error:
        read_trec_qrels(write_file(RUN))
    assert "swapped" in run_error.value.hint
    assert "swapped" in qrels_error.value.hint


def test_comments_raise_format_error(write_file):
    with pytest.raises(FormatError, match=r"line 1.*2 fields"):
        read_trec_run(write_file("# comment\n" + RUN))


@pytest.mark.parametrize("score", ["high", "1_000", "٣", "0x1", "--1"])
def test_invalid_scores_raise_format_error(write_file, score):
    with pytest.raises(FormatError, match=rf"line 4.*'{score}'"):
        read_trec_run(write_file(RUN + f"q3 Q0 d1 1 {score} bm25\n"))


@pytest.mark.parametrize("score", ["nan", "NaN", "inf", "-Infinity", "1e999"])
def test_non_finite_scores_raise_not_finite_error(write_file, score):
    with pytest.raises(NotFiniteError, match=rf"line 4.*{score}") as error:
        read_trec_run(write_file(RUN + f"q3 Q0 d1 1 {score} bm25\n"))
    assert error.value.excerpt == f"4 | q3 Q0 d1 1 {score} bm25"


@pytest.mark.parametrize("relevance", ["nan", "9" * 400, "9" * 5000])
def test_non_finite_relevances_raise_not_finite_error(write_file, relevance):
    with pytest.raises(NotFiniteError, match="line 1"):
        read_trec_qrels(write_file(f"q1 0 d1 {relevance}\n"))


def test_duplicates_name_both_lines(write_file):
    path = write_file(RUN + "\nq1 Q0 d2 9 0.1 bm25\n")
    with pytest.raises(DuplicateError, match=r"lines 2 and 5.*document d2.*query q1") as error:
        read_trec_run(path)
    assert error.value.excerpt.splitlines() == ["2 | q1 Q0 d2 2 0.5 bm25", "5 | q1 Q0 d2 9 0.1 bm25"]
    with pytest.raises(DuplicateError, match="lines 1 and 4"):
        read_trec_qrels(write_file(QRELS + "q1 0 d1 1\n"))


def test_the_first_invalid_line_is_reported(write_file):
    with pytest.raises(FormatError, match="line 2"):
        read_trec_run(write_file("q1 Q0 d1 1 1 t\nq1 Q0 d2 1 x t\nq1 Q0 d1 1 1 t\nshort\n"))


def test_long_files_agree_with_a_naive_reader(write_file):
    text = "".join(f"x{i // 7} Q0 d{i % 7} 0 {i / 3} t\n" for i in range(1000)) + RUN
    assert read_trec_run(write_file(text)) == naive_reader(text, 4, float)


def test_repeated_ids_share_one_string(write_file):
    run = read_trec_run(write_file("q1 Q0 document-1 1 1 t\nq2 Q0 document-1 1 1 t\n"))
    assert next(iter(run["q1"])) is next(iter(run["q2"]))


def test_queries_may_be_interleaved(write_file):
    text = "a Q0 d1 1 1 t\nb Q0 d1 1 2 t\na Q0 d2 1 3 t\n"
    assert read_trec_run(write_file(text)) == {"a": {"d1": 1, "d2": 3}, "b": {"d1": 2}}


@given(run=st.dictionaries(ids, st.dictionaries(ids, scores, min_size=1), min_size=1))
def test_written_runs_are_read_back(tmp_path_factory, run):
    path = tmp_path_factory.mktemp("runs") / "a.trec"
    write_run(path, run, "tag")
    assert read_trec_run(path) == run


def test_written_runs_are_in_the_order_of_trec_eval(tmp_path):
    write_run(tmp_path / "a.trec", {"q": {"a": 1, "b": 2, "c": 1}}, "t")
    lines = (tmp_path / "a.trec").read_text().splitlines()
    assert lines == ["q Q0 b 1 2.0 t", "q Q0 c 2 1.0 t", "q Q0 a 3 1.0 t"]


@pytest.mark.parametrize("name", ["", "two words", "tab\there", "line\n", "\0", "\ufeffq"])
def test_invalid_ids_raise_parameter_error(tmp_path, name):
    with pytest.raises(ParameterError):
        write_run(tmp_path / "a.trec", {"q": {name: 1.0}}, "t")
    with pytest.raises(ParameterError):
        write_run(tmp_path / "a.trec", {"q": {"d": 1.0}}, name)
    assert not (tmp_path / "a.trec").exists()


def test_non_finite_scores_and_empty_runs_raise_errors(tmp_path):
    with pytest.raises(NotFiniteError):
        write_run(tmp_path / "a.trec", {"q": {"d": float("nan")}}, "t")
    with pytest.raises(EquipoiseError):
        write_run(tmp_path / "a.trec", {"q": {}}, "t")
    assert not (tmp_path / "a.trec").exists()
