"""TREC runs and qrels: strict, explained, and equal to a reader that anyone would write."""

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
def file(tmp_path):
    def written(text: str, name: str = "bm25.trec"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return written


def read_trec_run(path, tag=None) -> dict:
    return parse_trec(open_text(path), run_files.RUN if tag is None else run_files.UNTAGGED_RUN)


def read_trec_qrels(path) -> dict:
    return parse_trec(open_text(path), run_files.QRELS)


def naive(text: str, value: int, convert) -> dict:
    table: dict = {}
    for line in text.splitlines():
        fields = line.split()
        if fields:
            table.setdefault(fields[0], {})[fields[2]] = convert(fields[value])
    return table


def test_a_run_is_its_scores_by_query_and_document(file):
    assert read_trec_run(file(RUN)) == {"q1": {"d1": 0.9, "d2": 0.5}, "q2": {"d1": -3.0}}
    assert type(read_trec_run(file(RUN))["q2"]["d1"]) is float


def test_judgements_are_ints_unless_written_otherwise(file):
    qrels = read_trec_qrels(file(QRELS))
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
def test_white_space_blank_lines_and_line_ends_make_no_difference(file, change):
    assert read_trec_run(file(change(RUN))) == read_trec_run(file(RUN))
    assert read_trec_qrels(file(change(QRELS))) == read_trec_qrels(file(QRELS))


def test_a_missing_tag_is_explained_as_the_style_guide_shows(file):
    path = file("q1 Q0 d2 1 1.0 t\nq1 Q0 d3 1 1.0 t\nq1 Q0 d1 1 0.9\n")
    with pytest.raises(FormatError) as caught:
        read_trec_run(path)
    assert caught.value.render().splitlines() == [
        f"error[E204]: {path} line 3 has 5 fields; a TREC run needs 6 (query Q0 doc rank score tag)",
        "  3 | q1 Q0 d1 1 0.9",
        "hint: the last field is the run tag; --run-tag NAME accepts untagged lines",
    ]
    assert read_trec_run(path, tag="bm25")["q1"] == {"d2": 1.0, "d3": 1.0, "d1": 0.9}


def test_with_a_tag_a_line_still_needs_five_fields(file):
    with pytest.raises(FormatError, match=r"line 1.*4 fields"):
        read_trec_run(file("q1 Q0 d1 1\n"), tag="bm25")


def test_lines_that_make_up_for_each_other_are_still_wrong(file):
    with pytest.raises(FormatError, match=r"line 1.*5 fields"):
        read_trec_run(file("q1 Q0 d1 1 0.9\nq1 Q0 d2 2 0.5 bm25 more\n"))


def test_swapped_files_are_recognised(file):
    with pytest.raises(FormatError) as as_run:
        read_trec_run(file(QRELS))
    with pytest.raises(FormatError) as as_qrels:
        read_trec_qrels(file(RUN))
    assert "swapped" in as_run.value.hint
    assert "swapped" in as_qrels.value.hint


def test_a_comment_is_a_line_like_any_other(file):
    with pytest.raises(FormatError, match=r"line 1.*2 fields"):
        read_trec_run(file("# made\n" + RUN))


@pytest.mark.parametrize("score", ["high", "1_000", "٣", "0x1", "--1"])
def test_a_score_that_is_no_number_is_quoted(file, score):
    with pytest.raises(FormatError, match=rf"line 4.*'{score}'"):
        read_trec_run(file(RUN + f"q3 Q0 d1 1 {score} bm25\n"))


@pytest.mark.parametrize("score", ["nan", "NaN", "inf", "-Infinity", "1e999"])
def test_a_score_that_is_not_finite_is_refused(file, score):
    with pytest.raises(NotFiniteError, match=rf"line 4.*{score}") as caught:
        read_trec_run(file(RUN + f"q3 Q0 d1 1 {score} bm25\n"))
    assert caught.value.excerpt == f"4 | q3 Q0 d1 1 {score} bm25"


@pytest.mark.parametrize("relevance", ["nan", "9" * 400, "9" * 5000])
def test_a_relevance_that_is_not_finite_is_refused(file, relevance):
    with pytest.raises(NotFiniteError, match="line 1"):
        read_trec_qrels(file(f"q1 0 d1 {relevance}\n"))


def test_a_duplicate_names_both_lines(file):
    path = file(RUN + "\nq1 Q0 d2 9 0.1 bm25\n")
    with pytest.raises(DuplicateError, match=r"lines 2 and 5.*document d2.*query q1") as caught:
        read_trec_run(path)
    assert caught.value.excerpt.splitlines() == ["2 | q1 Q0 d2 2 0.5 bm25", "5 | q1 Q0 d2 9 0.1 bm25"]
    with pytest.raises(DuplicateError, match="lines 1 and 4"):
        read_trec_qrels(file(QRELS + "q1 0 d1 1\n"))


def test_the_first_wrong_line_is_the_one_reported(file):
    with pytest.raises(FormatError, match="line 2"):
        read_trec_run(file("q1 Q0 d1 1 1 t\nq1 Q0 d2 1 x t\nq1 Q0 d1 1 1 t\nshort\n"))


def test_a_long_file_is_read_as_anyone_would(file):
    text = "".join(f"x{i // 7} Q0 d{i % 7} 0 {i / 3} t\n" for i in range(1000)) + RUN
    assert read_trec_run(file(text)) == naive(text, 4, float)


def test_an_id_that_stands_often_is_stored_once(file):
    run = read_trec_run(file("q1 Q0 document-1 1 1 t\nq2 Q0 document-1 1 1 t\n"))
    assert next(iter(run["q1"])) is next(iter(run["q2"]))


def test_queries_may_be_interleaved(file):
    text = "a Q0 d1 1 1 t\nb Q0 d1 1 2 t\na Q0 d2 1 3 t\n"
    assert read_trec_run(file(text)) == {"a": {"d1": 1, "d2": 3}, "b": {"d1": 2}}


@given(run=st.dictionaries(ids, st.dictionaries(ids, scores, min_size=1), min_size=1))
def test_what_is_written_is_read_back(tmp_path_factory, run):
    path = tmp_path_factory.mktemp("runs") / "a.trec"
    write_run(path, run, "tag")
    assert read_trec_run(path) == run


def test_a_written_run_is_ranked_as_trec_eval_ranks(tmp_path):
    write_run(tmp_path / "a.trec", {"q": {"a": 1, "b": 2, "c": 1}}, "t")
    lines = (tmp_path / "a.trec").read_text().splitlines()
    assert lines == ["q Q0 b 1 2.0 t", "q Q0 c 2 1.0 t", "q Q0 a 3 1.0 t"]


@pytest.mark.parametrize("name", ["", "two words", "tab\there", "line\n", "\0", "\ufeffq"])
def test_ids_that_the_format_cannot_hold_are_not_written(tmp_path, name):
    with pytest.raises(ParameterError):
        write_run(tmp_path / "a.trec", {"q": {name: 1.0}}, "t")
    with pytest.raises(ParameterError):
        write_run(tmp_path / "a.trec", {"q": {"d": 1.0}}, name)
    assert not (tmp_path / "a.trec").exists()


def test_scores_that_are_not_finite_and_empty_runs_are_not_written(tmp_path):
    with pytest.raises(NotFiniteError):
        write_run(tmp_path / "a.trec", {"q": {"d": float("nan")}}, "t")
    with pytest.raises(EquipoiseError):
        write_run(tmp_path / "a.trec", {"q": {}}, "t")
    assert not (tmp_path / "a.trec").exists()
