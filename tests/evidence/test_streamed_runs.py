"""A run file streamed query by query gives the ranking of the whole file."""

from __future__ import annotations

import gzip
import os
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import EquipoiseError, InputError
from equipoise.evidence import ranking_from_run_file
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.ranking_from_run_file import QrelsArrays, hash_ids, parse_columns, streamed_ranking
from equipoise.io import text as blocks
from equipoise.io.run_files import RUN, read_qrels, read_run
from equipoise.io.text import NotStreamableError

QRELS = {"q1": {"a": 1, "b": 2, "z": 1}, "q2": {"a": 0, "c": 1}, "q3": {"d": 1}, "é": {"ü": 1}}


def assert_rankings_equal(left: Ranking, right: Ranking) -> None:
    left_arrays, right_arrays = left.to_arrays(), right.to_arrays()
    assert left_arrays.keys() == right_arrays.keys()
    for name, array in left_arrays.items():
        assert array.dtype == right_arrays[name].dtype, name
        assert array.tobytes() == right_arrays[name].tobytes(), name


def trec_lines(run: dict[str, list[tuple[str, float]]]) -> str:
    return "".join(f"{query} Q0 {doc} 1 {score!r} t\n" for query, docs in run.items() for doc, score in docs)


lists = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "d", "z", "ü", "x1", "x2"]), st.sampled_from([0.1, 0.5, 2.0])),
    min_size=1,
    unique_by=lambda pair: pair[0],
)
queries = st.sampled_from(["q1", "q2", "q3", "é", "unknown1", "unknown2"])
runs = st.lists(st.tuples(queries, lists), min_size=1, unique_by=lambda pair: pair[0]).map(dict)


@settings(max_examples=30)
@given(
    run=runs,
    corpus_size=st.sampled_from([None, 50]),
    compressed=st.booleans(),
    line_end=st.sampled_from(["\n", "\r\n"]),
)
def test_contiguous_runs_give_the_same_bytes(tmp_path_factory, run, corpus_size, compressed, line_end) -> None:
    path = tmp_path_factory.mktemp("runs") / "a.trec"
    data = ("\ufeff\n" + trec_lines(run)).replace("\n", line_end).encode()
    path.write_bytes(gzip.compress(data) if compressed else data)
    with pytest.MonkeyPatch.context() as patch:  # blocks end within lists, and lists within blocks
        patch.setattr(blocks, "BLOCK_BYTES", 40)
        patch.setattr(ranking_from_run_file, "_PART_SCORES", 5)
        ranking = streamed_ranking(QrelsArrays.of_dicts(QRELS), path, corpus_size=corpus_size)
    assert ranking is not None
    assert_rankings_equal(ranking, Ranking.from_runs(QRELS, read_run(path), corpus_size=corpus_size))


def test_runs_with_a_split_query_are_not_streamed(tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text(trec_lines({"q1": [("a", 0.5)], "q2": [("c", 0.5)]}) + trec_lines({"q1": [("b", 0.7)]}))
    assert streamed_ranking(QrelsArrays.of_dicts(QRELS), path) is None
    assert_rankings_equal(Ranking.from_runs(QRELS, path), Ranking.from_runs(QRELS, read_run(path)))
    path.write_text(trec_lines({"unknown": [("a", 0.5)], "q2": [("c", 0.5)]}) + trec_lines({"unknown": [("b", 1)]}))
    assert streamed_ranking(QrelsArrays.of_dicts(QRELS), path) is None
    assert Ranking.from_runs(QRELS, path).unknown_units == ("unknown",)


UNUSUAL_LINES = (
    b"",
    b" \t",
    b"q1\x0bQ0\x0ca 1 2 t",
    b"q1 Q0 a\x1cb 1 2 t",
    b"q1 Q0 \xc2\xa0 1 2 t",
    b"q1 Q0 a 1 1e999 t",
)
UNUSUAL_LINES += (
    b"q1 Q0 a 1 0.5",
    b"q2 Q0 \xff 1 2 t",
    b"\xef\xbb\xbfq1 Q0 a 1 2 t",
    b"{",
    b"query_id,doc_id,score",
    b"q1 0 a 1",
)
trec_line = st.sampled_from(["q1", "q2", "u"]).flatmap(
    lambda query: st.sampled_from("abcd").map(lambda doc: f"{query} Q0 {doc} 1 0.5 t".encode())
)


@settings(max_examples=60)
@given(
    lines=st.lists(
        st.tuples(
            trec_line | trec_line | trec_line | st.sampled_from(UNUSUAL_LINES), st.sampled_from([b"\n", b"\r\n", b"\r"])
        )
    ),
    name=st.sampled_from(["a.trec", "a.txt", "a.tsv"]),
)
def test_any_bytes_give_the_outcome_of_the_whole_file(tmp_path_factory, lines, name) -> None:
    path = tmp_path_factory.mktemp("runs") / name
    path.write_bytes(b"".join(content + end for content, end in lines))
    outcomes = []
    for read in (lambda: Ranking.from_runs(QRELS, path), lambda: Ranking.from_runs(QRELS, read_run(path))):
        try:
            outcomes.append({key: array.tobytes() for key, array in read().to_arrays().items()})
        except EquipoiseError as error:
            outcomes.append(error.render())
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    "content",
    [
        b"q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.8 t\nq1 Q0 a 3 0.7 t\n",
        b"q1 Q0 a 1 0.9 t\nq2 Q0 c 1 0.8 t\nq1 Q0 a 3 0.7 t\n",
        b"q1 Q0 a 1 nan t\n",
        b"q1 Q0 a 1 1_0 t\n",
        b"q1 Q0 a 1 high t\n",
        b"q1 Q0 a 1 0.9\n",
        b"q1 Q0 a 1 0.9 t\xff\n",
        b"q1 Q0 a 1 0.9 t\0\n",
        b"\n \n",
        b"",
        "q1 Q0 a 1 0.9 t\n".encode("utf-16"),
        gzip.compress(b"q1 Q0 a 1 0.9 t\n" * 9, mtime=0)[:-9],
    ],
)
def test_errors_equal_those_of_the_whole_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.trec"
    path.write_bytes(content)
    with pytest.raises(EquipoiseError) as whole_error:
        read_run(path)
    with pytest.raises(EquipoiseError) as streamed_error:
        Ranking.from_runs(QRELS, path)
    assert (streamed_error.value.code, str(streamed_error.value)) == (whole_error.value.code, str(whole_error.value))
    assert (streamed_error.value.excerpt, streamed_error.value.hint) == (
        whole_error.value.excerpt,
        whole_error.value.hint,
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"q1": {"a": 0.5}, "q2": {}}'),
        ("a.jsonl", '{"query_id": "q1", "doc_id": "a", "score": 0.5}\n'),
        ("a.csv", "query_id,doc_id,score\nq1,a,0.5\n"),
        ("a.tsv", "query_id\tdoc_id\tscore\nq1\ta\t0.5\n"),
        ("a.txt", "\n" * 60 + "query_id,doc_id,score\nq1,a,0.5\n"),
    ],
)
def test_other_formats_are_not_streamed(tmp_path: Path, name: str, text: str, monkeypatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 40)
    path = tmp_path / name
    path.write_text(text)
    assert streamed_ranking(QrelsArrays.of_dicts(QRELS), path) is None
    assert_rankings_equal(Ranking.from_runs(QRELS, path), Ranking.from_runs(QRELS, read_run(path)))


def test_lines_without_a_tag_are_streamed_when_a_tag_is_given(tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text("q1 Q0 a 1 0.9\nq1 Q0 x 2 0.9\n")
    assert streamed_ranking(QrelsArrays.of_dicts(QRELS), path) is None
    ranking = streamed_ranking(QrelsArrays.of_dicts(QRELS), path, tag="system")
    assert ranking is not None
    assert_rankings_equal(ranking, Ranking.from_runs(QRELS, read_run(path, tag="system")))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    path, text = tmp_path / "pipe", trec_lines({"q1": [("a", 0.5)], "q3": [("d", 0.1)]})
    os.mkfifo(path)
    assert streamed_ranking(QrelsArrays.of_dicts(QRELS), path) is None  # would wait for a writer if it opened the pipe
    writer = threading.Thread(target=path.write_text, args=(text,))
    writer.start()
    ranking = Ranking.from_runs(QRELS, path)
    writer.join()
    assert ranking.depth.tolist() == [1, 0, 1, 0]


def peak_traced_bytes(path: Path, n_units: int) -> int:
    qrels = {f"q{number}": {"d7": 1} for number in range(n_units)}
    tracemalloc.start()
    try:
        assert streamed_ranking(QrelsArrays.of_dicts(qrels), path) is not None
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr(ranking_from_run_file, "_PART_SCORES", 1 << 11)
    peaks = []
    for n_units in (40, 200):
        path = tmp_path / f"{n_units}.trec"
        path.write_text(
            trec_lines({f"q{number}": [(f"d{doc}", doc / 7) for doc in range(90)] for number in range(n_units)})
        )
        peaks.append(peak_traced_bytes(path, n_units))
    assert peaks[1] < 1.5 * peaks[0]


def test_empty_judgements_raise_input_error(tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text(trec_lines({"q1": [("a", 0.5)]}))
    with pytest.raises(InputError):
        Ranking.from_runs({}, path)


judged_pairs = st.tuples(
    st.sampled_from(["q1", "q2", "a query with a long name".replace(" ", "-"), "é"]), st.sampled_from("abcü")
)


@settings(max_examples=40)
@given(
    judged=st.lists(judged_pairs, min_size=1, unique=True),
    gain=st.sampled_from(["0", "1", "2", "-1", "0.5"]),
    run=runs,
    separator=st.sampled_from([" ", "\t", "  "]),
)
def test_judgements_from_a_file_equal_those_from_dicts(tmp_path_factory, judged, gain, run, separator) -> None:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "a.trec").write_text(trec_lines(run))
    (folder / "t.qrels").write_text(
        "".join(separator.join([query, "0", doc, gain if doc == "a" else "1"]) + "\n" for query, doc in judged)
    )
    expected = Ranking.from_runs(read_qrels(folder / "t.qrels"), read_run(folder / "a.trec"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", 40)
        ranking = streamed_ranking(QrelsArrays.read(folder / "t.qrels"), folder / "a.trec")
    assert ranking is not None
    assert_rankings_equal(ranking, expected)


numbers = st.floats(allow_nan=False, allow_infinity=False).flatmap(
    lambda value: st.sampled_from([repr(value), f"{value:.3f}", f"{value:g}", f"{value:e}", f"+{abs(value)}"])
)


@given(st.lists(numbers | st.sampled_from(["5.", ".5", "-.25", "0", "-0", "00012", "9007199254740993"]), min_size=1))
def test_values_equal_those_of_float(texts: list[str]) -> None:
    lines = "".join(f"q Q0 d{trec_line} 1 {text} t\n" for trec_line, text in enumerate(texts))
    columns = parse_columns(lines.encode(), RUN)
    assert columns is not None
    assert columns.values.tobytes() == np.array([float(text) for text in texts]).tobytes()


@pytest.mark.parametrize("text", [".", "-", "+", "1.2.3", "1-2", "1_0", "nan", "1e999", "--1", "x"])
def test_values_that_are_not_numbers_are_not_streamed(text: str) -> None:
    with pytest.raises(NotStreamableError):
        parse_columns(f"q Q0 d 1 {text} t\n".encode(), RUN)


def test_ids_of_a_file_have_the_hash_of_python_strings() -> None:
    ids = ["a", "b" * 8, "c" * 9, "ü" * 20, "d" * 1000]
    columns = parse_columns("".join(f"q Q0 {doc_id} 1 1 t\n" for doc_id in ids).encode(), RUN)
    assert columns is not None
    assert columns.docs.tolist() == hash_ids(ids).tolist()
    assert [columns.doc(line).decode() for line in range(len(ids))] == ids
